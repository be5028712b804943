"""Recurrent layers and cells against records of MXNet 1.9.1, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import dualmx as mx
from dualmx.gluon import rnn
from dualmx.gluon.contrib.rnn import LSTMPCell, VariationalDropoutCell
from dualmx.gluon.contrib.rnn.rnn_cell import dynamic_unroll
from tests.goldens import recurrent_cases as cases
from tests.goldens.store import load

ARRAYS, FACTS = load("recurrent")["arrays"], load("recurrent")["facts"]


def compare(name: str, found: dict[str, np.ndarray]) -> None:
    expected = {k.split("|")[1]: v for k, v in ARRAYS.items() if k.split("|")[0] == name}
    assert set(found) == set(expected)
    for key, value in expected.items():
        assert found[key].dtype == value.dtype
        np.testing.assert_allclose(found[key], value, rtol=2e-5, atol=2e-5, err_msg=f"{name} {key}")


@pytest.mark.parametrize("hybridize", [False, True], ids=["imperative", "hybridized"])
@pytest.mark.parametrize("name", cases.LAYERS)
def test_layer(name: str, hybridize: bool) -> None:
    found, about = cases.run_layer(mx, name, hybridize)
    compare(f"layer_{name}", found)
    assert json.loads(json.dumps(about)) == FACTS[name]


@pytest.mark.parametrize(("name", "how"), cases.PAIRS)
def test_cell(name: str, how: str) -> None:
    compare(f"cell_{name}_{how}", cases.run_cell(mx, name, how, hybridize=how == "list"))


@pytest.mark.parametrize("name", cases.CONVOLUTIONS)
def test_convolution(name: str) -> None:
    compare(name, cases.run_convolution(mx, name))


def test_names_of_nodes() -> None:
    found = json.loads(json.dumps(cases.graph(mx)))
    for key, value in FACTS["graph"].items():
        assert found[key] == value, key


def test_a_file_of_mxnet_loads(tmp_path: Path) -> None:
    (tmp_path / "params").write_bytes(load("recurrent")["file"].tobytes())
    layer = rnn.LSTM(2, 2, bidirectional=True)
    layer.load_parameters(str(tmp_path / "params"))
    assert layer._reg_params["l0_i2h_weight"].shape == (8, 3)
    np.testing.assert_allclose(layer(mx.nd.ones((2, 1, 3))).asnumpy(), ARRAYS["file|out"], rtol=1e-5)


def test_files_and_unfused_cells_agree_with_the_layer(tmp_path: Path) -> None:
    net = mx.gluon.nn.HybridSequential()
    with net.name_scope():
        net.add(mx.gluon.nn.Embedding(7, 5), rnn.GRU(3, 2, layout="NTC"), mx.gluon.nn.Dense(2, flatten=False))
    net.initialize()
    tokens = mx.nd.array([[1, 2, 3], [4, 5, 6]])
    before = net(tokens).asnumpy()
    net.save_parameters(str(tmp_path / "net.params"))
    net.hybridize()
    np.testing.assert_allclose(net(tokens).asnumpy(), before, rtol=1e-6)
    net.export(str(tmp_path / "net"))
    block = mx.gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params"))
    np.testing.assert_allclose(block(tokens).asnumpy(), before, rtol=1e-6)
    net.load_parameters(str(tmp_path / "net.params"))
    cells = net[1]._unfuse()
    embedded = net[0](tokens)
    np.testing.assert_allclose(
        cells.unroll(3, embedded, merge_outputs=True)[0].asnumpy(), net[1](embedded).asnumpy(), rtol=1e-5
    )


def test_a_hybridized_layer_returns_a_list() -> None:
    layer = rnn.GRU(3)
    layer.initialize()
    x = mx.nd.ones((2, 1, 4))
    assert isinstance(layer(x, layer.begin_state(1)), tuple)
    layer.hybridize()
    out = layer(x, layer.begin_state(1))
    assert isinstance(out, list) and [out[0].shape, out[1][0].shape] == [(2, 1, 3), (1, 1, 3)]
    assert layer(x).shape == (2, 1, 3)


def test_lengths_of_a_layer() -> None:
    layer = rnn.LSTM(3, bidirectional=True, use_sequence_length=True)
    layer.initialize()
    x = mx.nd.random.uniform(shape=(4, 2, 3))
    out, (h, _) = layer(x, layer.begin_state(2), mx.nd.array([2, 4]))
    assert (out[2:, 0].asnumpy() == 0).all() and (out[:, 1].asnumpy() != 0).all()
    short = layer(x[:2, :1], sequence_length=mx.nd.array([2]))
    np.testing.assert_allclose(short[:, 0].asnumpy(), out[:2, 0].asnumpy(), rtol=1e-6)
    np.testing.assert_allclose(h[0, 0].asnumpy(), out[1, 0, :3].asnumpy(), rtol=1e-6)
    with pytest.raises(mx.MXNetError, match="sequence_length"):
        layer(x)


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("split", [True, False])
def test_dropout_between_cells_masks_nothing(split: bool, merge: bool) -> None:
    x = mx.nd.array([[[1, 2], [3, 4]]])
    given = [x[:, 0], x[:, 1]] if split else x
    out, states = rnn.DropoutCell(0.5).unroll(2, given, merge_outputs=merge, valid_length=mx.nd.array([1]))
    assert states == [] and isinstance(out, list) is not merge
    steps = out if isinstance(out, list) else [out[:, 0], out[:, 1]]
    assert [step.asnumpy().tolist() for step in steps] == [[[1, 2]], [[3, 4]]]


def test_masks_of_dropout() -> None:
    x = mx.nd.ones((2, 4, 6))
    cell = VariationalDropoutCell(rnn.RNNCell(8, input_size=6), drop_inputs=0.5)
    cell.initialize()
    with mx.autograd.record():
        outputs = cell.unroll(4, x, merge_outputs=True)[0]
    assert outputs.shape == (2, 4, 8)
    cell = VariationalDropoutCell(rnn.RNNCell(8, input_size=6), drop_states=0.3, drop_outputs=0.5)
    cell.initialize()
    with mx.autograd.record():
        outputs = cell.unroll(4, x, merge_outputs=True)[0].asnumpy()
    dropped = outputs == 0
    assert dropped.any() and not dropped.all() and (dropped == dropped[:, :1]).all()
    assert ((cell.drop_outputs_mask.asnumpy() == 0) == dropped[:, 0]).all()
    assert cell.drop_inputs_mask is None and cell.drop_states_mask.shape == (2, 8)
    for share in (0.1, 0.9):
        cell = rnn.ZoneoutCell(rnn.RNNCell(50, input_size=6), zoneout_outputs=share)
        cell.initialize()
        for _ in range(2):  # each sequence begins without an output before it
            with mx.autograd.record():
                outputs = cell.unroll(4, x, merge_outputs=True)[0].asnumpy()
            assert abs((outputs[:, 0] == 0).mean() - share) < 0.15
            assert abs((outputs[:, 1:] == outputs[:, :-1]).mean() - share) < 0.15
    cell = rnn.ZoneoutCell(rnn.RNNCell(50, input_size=6), zoneout_states=0.1)
    cell.initialize()
    with mx.autograd.record():
        (state,) = cell(x[:, 0], [mx.nd.full((2, 50), 7)])[1]
    assert abs((state.asnumpy() == 7).mean() - 0.1) < 0.09
    quiet = rnn.ZoneoutCell(rnn.RNNCell(5), 0.5, 0.5)
    quiet.initialize()
    assert (quiet.unroll(4, x, merge_outputs=True)[0].asnumpy() != 0).all()


@pytest.mark.parametrize("layout", ["TNC", "NTC"])
def test_dynamic_unroll(layout: str) -> None:
    cell = rnn.LSTMCell(4, input_size=3)
    cell.initialize()
    x = mx.nd.random.uniform(shape=(3, 2, 3) if layout == "TNC" else (2, 3, 3))
    lengths = mx.nd.array([1, 3])
    for given in (None, lengths):
        out, states = dynamic_unroll(cell, x, cell.begin_state(2), layout=layout, valid_length=given)
        want, last = cell.unroll(3, x, layout=layout, merge_outputs=True, valid_length=given)
        np.testing.assert_allclose(out.asnumpy(), want.asnumpy(), rtol=1e-5)
        np.testing.assert_allclose(states[1].asnumpy(), last[1].asnumpy(), rtol=1e-5)


def test_training_reduces_the_loss() -> None:
    mx.random.seed(3)
    net = mx.gluon.nn.HybridSequential()
    with net.name_scope():
        net.add(rnn.LSTM(8, layout="NTC", dropout=0.1, num_layers=2), mx.gluon.nn.Dense(1))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    x = mx.nd.random.uniform(-1, 1, shape=(16, 3, 2))
    y = x.sum(axis=(1, 2))
    trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05})
    losses = []
    for _ in range(12):
        with mx.autograd.record():
            loss = mx.gluon.loss.L2Loss()(net(x), y)
        loss.backward()
        trainer.step(16)
        losses.append(loss.mean().asscalar())
    assert losses[-1] < 0.5 * losses[0]


def test_clipped_states() -> None:
    layer = rnn.LSTM(4, state_clip_min=-0.05, state_clip_max=0.04, i2h_bias_initializer="ones")
    layer.initialize()
    _, (_, c) = layer(mx.nd.ones((3, 1, 2)), layer.begin_state(1))
    np.testing.assert_allclose(c.asnumpy(), 0.04, rtol=1e-6)


def test_other_dtypes() -> None:
    layer = rnn.GRU(3, dtype="float64")
    layer.initialize()
    assert layer(mx.nd.ones((2, 1, 3), dtype="float64")).dtype == np.float64
    layer.cast("float16")
    out, (state,) = layer(mx.nd.ones((2, 1, 3), dtype="float16"), layer.begin_state(1))
    assert out.dtype == state.dtype == np.float16


def test_states() -> None:
    layer = rnn.LSTM(3, prefix="l_")
    assert [s.name for s in layer.begin_state(func=mx.sym.zeros)] == ["l_h0_0", "l_h0_1"]
    assert layer.begin_state(2, func=mx.nd.random.uniform)[0].shape == (1, 2, 3)
    assert layer.begin_state(2, func=lambda **about: about)[0]["__layout__"] == "LNC"
    cell = rnn.LSTMCell(3, prefix="c_")
    assert (cell.begin_state(2, func=mx.nd.ones, dtype="float16")[1].asnumpy() == np.ones((2, 3), "float16")).all()
    assert [s.name for s in cell.begin_state(func=mx.sym.Variable)] == ["c_begin_state_2", "c_begin_state_3"]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (lambda: rnn.LSTM(3, layout="CTN"), "layout='CTN'"),
        (lambda: rnn.RNN(3, activation="foo"), "activation='foo'"),
        (lambda: rnn.LSTM(0), "hidden_size=0"),
        (lambda: rnn.LSTM(2).forward(mx.nd.ones((2, 3))), "three axes"),
        (lambda: rnn.GRU(2)(mx.nd.ones((4, 2, 3)), mx.nd.ones((1, 3, 2))), "Invalid recurrent state shape"),
        (lambda: rnn.LSTM(2)(mx.nd.ones((4, 2, 3)), [mx.nd.ones((1, 2, 2))]), "1 states: expected 2"),
        (lambda: rnn.LSTM(2, projection_size=2)._unfuse(), "projection"),
        (lambda: rnn.RNNCell(3).unroll(4, mx.nd.ones((2, 3, 4))), "length=4"),
        (lambda: rnn.RNNCell(3).unroll(2, [mx.nd.ones((2, 3))] * 3), "length=2"),
        (lambda: rnn.RNNCell(3).unroll(4, mx.nd.ones((2, 4, 4)), layout="XYZ"), "layout='XYZ'"),
        (lambda: rnn.DropoutCell(cast(Any, "a")), "rate='a'"),
        (lambda: rnn.ZoneoutCell(rnn.BidirectionalCell(rnn.RNNCell(2), rnn.RNNCell(2))), "stepped"),
        (lambda: rnn.ResidualCell(rnn.RNNCell(2)).base_cell.begin_state(2), "modifier"),
        (lambda: LSTMPCell(4, 2).begin_state(0), "shape"),
        (lambda: mx.gluon.contrib.rnn.Conv2DRNNCell((1, 4, 4), 2, 3, 2), "odd"),
        (lambda: mx.gluon.contrib.rnn.Conv2DRNNCell((1, 4, 4), 2, (3,), 3), "i2h_kernel"),
    ],
)
def test_refusals(bad: Any, says: str) -> None:
    with pytest.raises(mx.MXNetError, match=says):
        bad()
