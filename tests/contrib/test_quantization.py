"""Whole networks on 8-bit integers: the graphs that MXNet makes, and results close to those in floats."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import dualmx as mx
from dualmx import MXNetError
from dualmx.contrib import quantization
from tests.goldens.quantization_cases import described, networks, values
from tests.goldens.store import load

GOLDEN = load("quantization")
RANGES = ("min_calib_range", "max_calib_range")
CASES = {name: (network, params) for name, network, params in networks(mx)}
nn: Any = mx.gluon.nn
# MXNet loses these ranges, and looks at every batch: nodes behind these operators, and normalization.
LOST = ("t_output_quantize", "r_output_quantize", "dr_output_quantize", "quantized_bn")


@pytest.mark.parametrize("name", CASES)
def test_graphs_are_those_of_mxnet(name: str):
    network, params = CASES[name]
    nodes, heads, kept = described(mx, quantization.quantize_model, network, params)
    want_nodes, want_heads, want_kept = GOLDEN[name]
    assert heads == want_heads
    for (op, label, attrs, inputs), (want_op, want_label, want_attrs, want_inputs) in zip(
        nodes, want_nodes, strict=True
    ):
        assert (op, label, inputs) == (want_op, want_label, want_inputs)
        ends, want_ends = ([a.pop(r, None) for r in RANGES] for a in (attrs, want_attrs))
        assert attrs == want_attrs, label
        if label not in LOST and want_ends[0] is not None:
            np.testing.assert_allclose([float(e) for e in ends], [float(e) for e in want_ends], rtol=1e-4, atol=1e-5)
    assert kept.keys() == want_kept.keys()
    for label, (dtype, shape, total) in kept.items():
        assert [dtype, shape] == want_kept[label][:2], label
        assert total == pytest.approx(want_kept[label][2], abs=1.01 if dtype == "int8" else 1e-4), label


@pytest.mark.parametrize("name", ["lenet int8", "lenet none", "residual full", "residual between", "norm between",
                                  "concat full", "product full", "reshape", "fork"])  # fmt: skip
def test_results_are_close_to_those_in_floats(name: str):
    network, params = CASES[name]
    args, states, data = values(network, mx)
    found = []
    for graph, a, s in (
        (network, args, states),
        quantization.quantize_model(
            network, args, states,
            **{"calib_mode": "naive", "calib_data": mx.io.NDArrayIter(data, batch_size=2), **params},
        ),
    ):  # fmt: skip
        read = mx.sym.load_json(graph.tojson())
        found.append(read.bind(mx.cpu(), {"data": mx.nd.array(data), **a}, aux_states=s).forward())
    for small, real in zip(found[1], found[0], strict=True):
        error = np.abs(small.asnumpy() - real.asnumpy()).mean() / np.abs(real.asnumpy()).max()
        assert error < 0.05, error


def digits(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Images of four kinds of stripes under noise, and the kinds."""
    rng = np.random.RandomState(5)
    kinds = rng.randint(0, 4, count)
    rows, columns = np.mgrid[:12, :12]
    waves = [np.sin(rows * 1.3), np.sin(columns * 1.3), np.sin((rows + columns) * 0.9), np.sin((rows - columns) * 0.9)]
    images = np.stack([waves[k] for k in kinds])[:, None] + rng.normal(0, 0.5, (count, 1, 12, 12))
    return images.astype(np.float32), kinds.astype(np.float32)


class Residual(mx.gluon.HybridBlock):
    """Two convolutions around which the input passes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2D(8, 3, padding=1), nn.Conv2D(8, 3, padding=1)
        self.norms = [nn.BatchNorm(), nn.BatchNorm()]
        for norm in self.norms:
            self.register_child(norm)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        inner = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(inner)) + x)


def trained(net: Any, images: np.ndarray, kinds: np.ndarray) -> None:
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    for step in range(30):
        at = slice(step % 4 * 64, step % 4 * 64 + 64)
        with mx.autograd.record():
            value = loss(net(mx.nd.array(images[at])), mx.nd.array(kinds[at]))
        value.backward()
        trainer.step(64)


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("kind", "mode", "dtype"),
    [
        ("lenet", "naive", "auto"),
        *(pytest.param("lenet", mode, "int8", marks=SLOW) for mode in ("none", "entropy")),
        *(pytest.param("resnet", mode, "int8", marks=SLOW) for mode in ("none", "naive", "entropy")),
    ],
)
def test_nets_keep_their_accuracy(kind: str, mode: str, dtype: str):
    mx.random.seed(1)
    images, kinds = digits(320)
    net = nn.HybridSequential(prefix="")
    with net.name_scope():
        if kind == "lenet":
            net.add(nn.Conv2D(6, 3, activation="relu"), nn.MaxPool2D(), nn.Flatten())
            net.add(nn.Dense(16, activation="relu"))
        else:
            net.add(nn.Conv2D(8, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), Residual())
            net.add(nn.GlobalAvgPool2D(), nn.Flatten())
        net.add(nn.Dense(4))
    trained(net, images, kinds)
    data = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(images[:64], kinds[:64]), 32)
    small = quantization.quantize_net(net, dtype, calib_data=data, calib_mode=mode)
    test, truth = mx.nd.array(images[256:]), kinds[256:]
    before, after = ((n(test).asnumpy().argmax(1) == truth).mean() for n in (net, small))
    assert before > 0.9 and after >= before - 0.05
    assert {np.dtype(p.dtype).name for p in small.collect_params().values()} >= {"int8", "float32"}


def test_layers_are_left_out_by_name_part_and_operator(tmp_path: Path):
    net = nn.HybridSequential(prefix="n_")
    with net.name_scope():
        net.add(nn.Dense(3, prefix="one_"), nn.Dense(3, prefix="two_"), nn.Dense(2, prefix="three_"))
    net.initialize()
    given: Any = {"data_shapes": [mx.io.DataDesc("data", (2, 5))]}
    small = quantization.quantize_net_v2(net, exclude_layers=["n_one_fwd"], exclude_layers_match=["thr"], **given)
    params = small.collect_params()
    assert "n_one_weight" in params and "n_two_weight_quantize" in params and "n_three_weight" in params
    assert small(mx.nd.ones((2, 5))).shape == (2, 2)
    small.export(str(tmp_path / "small"))
    back = mx.gluon.SymbolBlock.imports(
        str(tmp_path / "small-symbol.json"), ["data"], str(tmp_path / "small-0000.params")
    )
    np.testing.assert_array_equal(back(mx.nd.ones((2, 5))).asnumpy(), small(mx.nd.ones((2, 5))).asnumpy())
    whole = quantization.quantize_net(net, exclude_operators=["FullyConnected"], **given)
    assert sorted(whole.collect_params()) == sorted(net.collect_params())


def test_quantized_modules_bind_by_inference():
    network, _ = CASES["lenet int8"]
    args, _, data = values(network, mx)
    small, qargs, _ = quantization.quantize_model_mkldnn(network, args, {}, calib_mode="none")
    module = mx.mod.Module(small, label_names=None)
    module.bind([("data", data.shape)], for_training=False)
    module.set_params(qargs, {})
    module.forward(mx.io.DataBatch([mx.nd.array(data)]), is_train=False)
    assert module.get_outputs()[0].shape == (2, 3)


def test_own_collectors_and_histograms():
    network, _ = CASES["lenet int8"]
    args, _, data = values(network, mx)

    class Whole:
        include_layer: Any = None
        min_max_dict: Any = {"data": (-2.0, 2.0)}

        def collect(self, name: str, op_name: str, arr: Any) -> None:
            raise AssertionError

    made, qargs, qaux, collector = quantization.quantize_graph(
        network, args, {}, calib_mode="customize", LayerOutputCollector=Whole()
    )
    found = quantization.calib_graph(made, qargs, qaux, collector, "customize")[0]
    assert found.attr_dict()["data_quantize"]["max_calib_range"] == "2.000000"
    old = (np.array([1, 2, 1]), np.linspace(-1, 1, 4), -1, 1, 1)
    counts, edges, low, high, top = quantization.combine_histogram(old, np.array([0.5, 2.0]), -1, 2, 2)
    assert counts.tolist() == [0, 0, 1, 2, 2, 0, 1] and (low, high) == (-1, 2)  # as MXNet gave it
    assert top == pytest.approx(7 / 3) and edges[0] == pytest.approx(-7 / 3)
    same = quantization.combine_histogram(old, np.array([0.5, -0.9]), -0.9, 0.5, 0.9)
    assert same[0].tolist() == [2, 2, 2] and same[4] == 1


def test_wrong_arguments():
    network, _ = CASES["lenet int8"]
    args, _, data = values(network, mx)

    def model(**params: Any) -> Any:
        return quantization.quantize_model(network, args, {}, **{"calib_mode": "none", **params})

    for call, text in (
        (lambda: model(quantized_dtype="int4"), "int4"), (lambda: model(quantize_mode="half"), "half"),
        (lambda: model(calib_mode="naive"), "calib_data"),
        (lambda: model(calib_mode="naive", calib_data=[1]), "DataIter"),
        (lambda: model(excluded_sym_names=3), "list of names"), (lambda: model(ctx=3), "context"),
        (lambda: quantization.quantize_net(nn.Dense(2)), "data_shapes"),
        (lambda: quantization.quantize_net(cast(Any, object())), "HybridBlock"),
        (lambda: quantization.quantize_model_mkldnn(network, args, {}, ctx=mx.Context("gpu", 0)), "CPU"),
        (lambda: quantization.calib_graph(network, {}, {}, None, "naive"), "quantize_graph"),
    ):  # fmt: skip
        with pytest.raises(MXNetError, match=text):
            call()
