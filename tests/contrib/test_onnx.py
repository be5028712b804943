"""Networks through ONNX files: what ONNX's own evaluator computes, what reading them back gives, and errors.

Runs where the package onnx is installed; otherwise only the error that says so is tested.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import MXNetError
from dualmx.contrib import onnx as contrib_onnx

S: Any = mx.sym
nn: Any = mx.gluon.nn
needs_onnx = pytest.mark.skipif(importlib.util.find_spec("onnx") is None, reason="the package onnx is not installed")
SHAPE = (2, 3, 8, 8)
CASES: dict[str, Callable[[Any], Any]] = {
    "mlp": lambda d: S.SoftmaxOutput(
        S.FullyConnected(S.Activation(S.FullyConnected(d, num_hidden=5), act_type="tanh"), num_hidden=3), name="softmax"
    ),
    "dense": lambda d: S.FullyConnected(d, num_hidden=4, flatten=False),
    "norm": lambda d: S.BatchNorm(S.Convolution(d, kernel=(3, 3), pad=(1, 1), num_filter=4), fix_gamma=False),
    "fixed": lambda d: S.BatchNorm(d, fix_gamma=True),
    "groups": lambda d: S.Convolution(d, kernel=(2, 3), dilate=(1, 2), num_filter=6, num_group=3, no_bias=True),
    **{k: (lambda d, k=k: S.LeakyReLU(d, act_type=k, slope=0.3)) for k in ("leaky", "elu", "selu", "prelu", "gelu")},
    "deconvolution": lambda d: S.Deconvolution(d, kernel=(3, 3), stride=(2, 2), pad=(1, 1), adj=(1, 1), num_filter=4),
    "scalars": lambda d: 2 / (1 + S.sqrt(S.square(d) * 3 + 0.5)) - d**2,
    "pairs": lambda d: S.broadcast_maximum(S.broadcast_add(d, S.mean(d, axis=1, keepdims=True)), S.exp(-d)),
    "average": lambda d: S.Pooling(
        d, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="avg", count_include_pad=False
    ),
    "counted": lambda d: S.Pooling(d, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="avg"),
    "full": lambda d: S.Pooling(d, kernel=(3, 3), stride=(2, 2), pool_type="max", pooling_convention="full"),
    "global": lambda d: S.Flatten(S.Pooling(d, global_pool=True, pool_type="avg", kernel=(1, 1))),
    "shapes": lambda d: S.transpose(
        S.reshape(S.expand_dims(S.slice_axis(d, axis=2, begin=1, end=5), axis=1), shape=(0, -1, 4)), axes=(0, 2, 1)
    ),
    "reductions": lambda d: S.Group([S.mean(d, axis=(2, 3)), S.sum(d, axis=1, keepdims=True), S.max(d)]),
    "split": lambda d: S.Group(list(S.SliceChannel(d, num_outputs=2, axis=3))),
    "squeezed": lambda d: S.concat(*S.SliceChannel(d, num_outputs=3, axis=1, squeeze_axis=True), dim=2),
    "layer norm": lambda d: S.LayerNorm(d, axis=-1),
    "instance norm": lambda d: S.InstanceNorm(d),
    "lrn": lambda d: S.LRN(d, nsize=3),
    "pad": lambda d: S.Pad(d, mode="edge", pad_width=(0, 0, 0, 0, 1, 2, 2, 1)),
    "clip": lambda d: S.clip(S.Dropout(d), a_min=-0.2, a_max=0.4),
    "softmax": lambda d: S.Group([S.log_softmax(d, axis=1), S.softmax(d, temperature=2.0)]),
    "products": lambda d: S.batch_dot(S.reshape(d, shape=(-3, 0, 0)), S.reshape(d, shape=(-3, 0, 0)), transpose_b=True),
}


def parameters(symbol: Any, **shapes: tuple[int, ...]) -> dict[str, Any]:
    found, _, states = symbol.infer_shape(**shapes)
    rng = np.random.RandomState(3)
    names = [
        *zip(symbol.list_arguments(), found, strict=True),
        *zip(symbol.list_auxiliary_states(), states, strict=True),
    ]
    return {
        n: mx.nd.array(rng.uniform(0.1, 0.9, s)) for n, s in names if n not in shapes and not n.endswith("label")
    }  # fmt: skip


def evaluated(symbol: Any, params: dict[str, Any], feed: dict[str, np.ndarray]) -> list[np.ndarray]:
    args = {n: params[n] for n in symbol.list_arguments() if n in params}
    args |= {n: mx.nd.array(a) for n, a in feed.items()}
    args |= {n: mx.nd.zeros((2,)) for n in symbol.list_arguments() if n.endswith("label")}
    states = {n: params[n] for n in symbol.list_auxiliary_states()}
    return [o.asnumpy() for o in symbol.bind(mx.cpu(), args, aux_states=states).forward()]


def round_trip(symbol: Any, params: dict[str, Any], feed: dict[str, np.ndarray], path: str) -> None:
    """ONNX's evaluator and the network that is read back give what the symbol gives."""
    assert contrib_onnx.export_model(symbol, params, [a.shape for a in feed.values()], np.float32, path) == path
    want = evaluated(symbol, params, feed)
    for name, got in (("onnx", elsewhere(path, feed)), ("back", back(path, feed))):
        for g, w in zip(got, want, strict=bool(got)):
            assert g.shape == w.shape, name
            np.testing.assert_allclose(g, w, rtol=2e-4, atol=2e-5, err_msg=name)


def elsewhere(path: str, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The results of onnxruntime, or of ONNX's own evaluator, which normalizes batches otherwise."""
    if importlib.util.find_spec("onnxruntime") is not None:
        runtime: Any = importlib.import_module("onnxruntime")
        return runtime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feed)
    package: Any = importlib.import_module("onnx")
    if any(n.op_type == "BatchNormalization" for n in package.load(path).graph.node):
        return []
    reference: Any = importlib.import_module("onnx.reference")
    return reference.ReferenceEvaluator(path).run(None, feed)


def back(path: str, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
    symbol, args, aux = contrib_onnx.import_model(path)
    assert not args.keys() & aux.keys()
    return evaluated(symbol, args | aux, feed)


@needs_onnx
@pytest.mark.parametrize("name", CASES)
def test_operators(name: str, tmp_path: Path):
    symbol = CASES[name](S.var("data"))
    data = np.random.RandomState(1).uniform(-1, 1, SHAPE).astype(np.float32)
    round_trip(symbol, parameters(symbol, data=SHAPE), {"data": data}, str(tmp_path / "net.onnx"))


@needs_onnx
@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh"])
def test_recurrent_layers(mode: str, tmp_path: Path):
    both = mode != "gru"
    states = {f"s{k}": (4 if both else 2, 3, 6) for k in range(2 if mode == "lstm" else 1)}
    symbol = S.RNN(
        S.var("data"), S.var("p"), *map(S.var, states), mode=mode, state_size=6, num_layers=2, bidirectional=both,
        state_outputs=True,
    )  # fmt: skip
    shapes = {"data": (5, 3, 4), **states}
    rng = np.random.RandomState(2)
    feed = {n: rng.uniform(-1, 1, s).astype(np.float32) for n, s in shapes.items()}
    round_trip(symbol, parameters(symbol, **shapes), feed, str(tmp_path / "rnn.onnx"))


@needs_onnx
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size"),
    [("resnet18_v1", 64), ("resnet18_v2", 64), ("mobilenet0.25", 64), ("mobilenetv2_0.25", 64), ("squeezenet1.0", 224)],
)
def test_networks_of_the_zoo(name: str, size: int, tmp_path: Path):
    net = mx.gluon.model_zoo.vision.get_model(name, classes=7)
    net.initialize(mx.init.Xavier())
    data = np.random.RandomState(0).uniform(-1, 1, (1, 3, size, size)).astype(np.float32)
    want = net(mx.nd.array(data)).asnumpy()
    path = str(tmp_path / "net.onnx")
    values = {n: p.data() for n, p in net.collect_params().items()}
    contrib_onnx.export_model(net(S.var("data")), values, [data.shape], onnx_file_path=path)
    block = contrib_onnx.import_to_gluon(path)
    np.testing.assert_allclose(block(mx.nd.array(data)).asnumpy(), want, rtol=1e-3, atol=1e-5)


@needs_onnx
def test_files_metadata_and_free_lengths(tmp_path: Path):
    net = nn.Dense(3, in_units=4, prefix="d_")
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((2, 4)))
    net.export(str(tmp_path / "net"))
    files = str(tmp_path / "net-symbol.json"), str(tmp_path / "net-0000.params")
    path = contrib_onnx.export_model(*files, [(2, 4)], onnx_file_path=str(tmp_path / "a.onnx"), dynamic=True)
    assert contrib_onnx.get_model_metadata(path)["input_tensor_data"] == [("data", (0, 4))]
    block = contrib_onnx.import_to_gluon(path)
    x = mx.nd.ones((5, 4))
    np.testing.assert_allclose(block(x).asnumpy(), net(x).asnumpy(), rtol=1e-6)
    again = contrib_onnx.export_model(*files, input_shape=[(2, 4)], input_type=np.float32, run_shape_inference=True,
                                      onnx_file_path=str(tmp_path / "b.onnx"))  # fmt: skip
    names = contrib_onnx.get_model_metadata(again)
    assert names["output_tensor_data"][0][1] == (2, 3) and names["input_tensor_data"][0][1] == (2, 4)


@needs_onnx
def test_what_has_no_counterpart_is_named(tmp_path: Path):
    onnx: Any = importlib.import_module("onnx")
    d = S.var("data")
    path = str(tmp_path / "net.onnx")
    for symbol, text in (
        (S.contrib.box_nms(d), "_contrib_box_nms"),
        (S.Pooling(d, kernel=(2, 2), pool_type="sum"), "pool_type"),
        (S.BatchNorm(d, axis=3), "axis"),
    ):
        with pytest.raises(MXNetError, match=text):
            contrib_onnx.export_model(symbol, parameters(symbol, data=SHAPE), [SHAPE], onnx_file_path=path)
    with pytest.raises(MXNetError, match="shapes for the inputs"):
        contrib_onnx.export_model(d * 2, {}, [], onnx_file_path=path)
    helper = onnx.helper
    ends = [helper.make_tensor_value_info(n, 1, [2]) for n in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Det", ["x"], ["y"], name="odd")], "g", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph), path)
    with pytest.raises(MXNetError, match="'Det' of node 'odd'"):
        contrib_onnx.import_model(path)
    (tmp_path / "bad.onnx").write_bytes(b"\xff\x00nonsense")
    for wrong, text in ((tmp_path / "bad.onnx", "not an ONNX model"), (tmp_path / "none.onnx", "no file")):
        with pytest.raises(MXNetError, match=text):
            contrib_onnx.import_model(wrong)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(importlib.import_module("sys").modules, "onnx", None)
    with pytest.raises(MXNetError, match="pip install"):
        contrib_onnx.export_model(S.var("x") * 2, {}, [(2,)])


def test_the_place_where_mxnet_1_9_has_export():
    assert importlib.import_module("dualmx.onnx").export_model is mx.onnx.export_model is contrib_onnx.export_model
    assert (
        mx.onnx.get_operator_support()
        == mx.onnx.get_operator_support(opset_version=13)
        == sorted(contrib_onnx.OPERATORS)
    )
    assert mx.onnx.get_operator_support(12) == []
