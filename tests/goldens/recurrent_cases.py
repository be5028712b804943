"""Recurrent layers and cells, run alike with MXNet and dualmx: outputs, last states, gradients, names."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np

LAYERS: dict[str, Any] = {
    "rnn_relu": lambda r: r.RNN(4, 2),
    "rnn_tanh_ntc": lambda r: r.RNN(4, activation="tanh", layout="NTC", bidirectional=True),
    "lstm": lambda r: r.LSTM(4),
    "lstm_bi_2": lambda r: r.LSTM(3, 2, bidirectional=True, layout="NTC"),
    "lstm_projection": lambda r: r.LSTM(4, 2, projection_size=3, bidirectional=True),
    "gru": lambda r: r.GRU(4, 2, input_size=5),
    "gru_bi": lambda r: r.GRU(3, bidirectional=True, layout="NTC", h2h_bias_initializer="ones"),
}

CELLS: dict[str, Any] = {
    "rnn": lambda g: g.rnn.RNNCell(4, activation="relu"),
    "lstm": lambda g: g.rnn.LSTMCell(4, activation="relu", recurrent_activation="tanh"),
    "gru": lambda g: g.rnn.GRUCell(5),
    "residual": lambda g: g.rnn.ResidualCell(g.rnn.GRUCell(5)),
    "sequential": lambda g: _stack(g, g.rnn.SequentialRNNCell()),
    "hybrid_sequential": lambda g: _stack(g, g.rnn.HybridSequentialRNNCell()),
    "bidirectional": lambda g: g.rnn.BidirectionalCell(g.rnn.LSTMCell(4), g.rnn.GRUCell(3)),
    "lstmp": lambda g: g.contrib.rnn.LSTMPCell(4, 3),
    "unfused": lambda g: g.rnn.LSTM(3, 2, bidirectional=True, input_size=5, dropout=0.4)._unfuse(),
}

UNROLLINGS: dict[str, dict[str, Any]] = {
    "list": {},
    "merged": {"merge_outputs": True},
    "time_major": {"merge_outputs": True, "layout": "TNC"},
    "lengths": {"merge_outputs": True, "valid_length": [1.0, 2.0, 2.0]},
    "lengths_list": {"merge_outputs": False, "valid_length": [1.0, 2.0, 1.0]},
}

PAIRS = [("rnn", how) for how in UNROLLINGS]
# MXNet cannot unroll bidirectional cells on top of each other with lengths.
PAIRS += [
    (c, how) for c in sorted(CELLS) for how in ("list", "lengths") if c != "rnn" and (c, how) != ("unfused", "lengths")
]

# With names of their own: counted ones depend on what was made before.
CONVOLUTIONS: dict[str, Any] = {
    "conv1d_rnn": lambda c: (c.Conv1DRNNCell((3, 6), 4, 3, 3, prefix="conv_rnn0_"), (2, 3, 6)),
    "conv2d_lstm": lambda c: (c.Conv2DLSTMCell((2, 5, 4), 3, 3, (3, 1), i2h_pad=1, prefix="conv_lstm0_"), (2, 2, 5, 4)),
    "conv2d_gru": lambda c: (
        c.Conv2DGRUCell((2, 5, 5), 3, 2, 3, i2h_dilate=2, activation="relu", prefix="conv_gru0_"),
        (2, 2, 5, 5),
    ),
    "conv3d_lstm": lambda c: (c.Conv3DLSTMCell((1, 3, 3, 3), 2, 2, 1, prefix="conv_lstm1_"), (1, 1, 3, 3, 3)),
}


def _stack(gluon: Any, cells: Any) -> Any:
    with cells.name_scope():
        cells.add(gluon.rnn.LSTMCell(4))
        cells.add(gluon.rnn.DropoutCell(0.5))
        cells.add(gluon.rnn.RNNCell(3))
    return cells


def _filled(mx: Any, block: Any) -> None:
    """Give each parameter values of its own; biases keep something of their initializer's."""
    rng = np.random.RandomState(7)
    for param in block.collect_params().values():
        drawn = rng.uniform(-0.5, 0.5, param.shape).astype(np.float32)
        param.set_data(mx.nd.array(drawn) + (param.data() * 0.1 if "bias" in param.name else 0))


def _draw(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


def _results(params: Any, inputs: Any, outputs: Any, states: Any) -> dict[str, np.ndarray]:
    found = {"grad": inputs.grad.asnumpy()}
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    found.update({f"out{i}": a.asnumpy() for i, a in enumerate(outputs)})
    found.update({f"state{i}": a.asnumpy() for i, a in enumerate(states)})
    found.update({f"grad:{name.split('_', 1)[1]}": p.grad().asnumpy() for name, p in params.items()})
    return found


def _backward(mx: Any, arrays: list[Any]) -> None:
    mx.autograd.backward(arrays, [mx.nd.array(_draw(a.shape, 30 + i)) for i, a in enumerate(arrays)])


def run_layer(mx: Any, name: str, hybridize: bool = False) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Run a layer forwards and backwards, with states, and without; return arrays and names."""
    layer = LAYERS[name](mx.gluon.rnn)
    about: dict[str, Any] = {"repr": repr(layer)}
    layer.initialize()
    x = mx.nd.array(_draw((3, 2, 5), 1))
    layer(x)
    _filled(mx, layer)
    if hybridize:
        layer.hybridize()
    x.attach_grad()
    batch = 2 if layer._layout == "TNC" else 3
    states = [mx.nd.array(_draw(i["shape"], 11 + k)) for k, i in enumerate(layer.state_info(batch))]
    if layer._projection_size:  # MXNet cannot train it on the CPU
        outputs, last = layer(x, states)
        found = {"out": outputs.asnumpy(), "h": last[0].asnumpy(), "c": last[1].asnumpy()}
    else:
        with mx.autograd.record():
            outputs, last = layer(x, states)
        _backward(mx, [outputs, *last])
        found = _results(layer.collect_params(), x, outputs, last)
    about.update(
        after=repr(layer),
        shapes={n.split("_", 1)[1]: list(p.shape) for n, p in layer.collect_params().items()},
        paths=list(layer._collect_params_with_prefix()),
        states=layer.state_info(2),
    )
    return found, about


def run_cell(mx: Any, name: str, how: str, hybridize: bool = False) -> dict[str, np.ndarray]:
    """Unroll a cell forwards and backwards over two steps."""
    cell = CELLS[name](mx.gluon)
    cell.initialize()
    given = dict(UNROLLINGS[how])
    shape = (2, 3, 5) if given.get("layout") == "TNC" else (3, 2, 5)
    if "valid_length" in given:
        given["valid_length"] = mx.nd.array(given["valid_length"])
    x = mx.nd.array(_draw(shape, 1))
    cell.unroll(2, x, **given)
    _filled(mx, cell)
    if hybridize:
        cell.hybridize()
    x.attach_grad()
    with mx.autograd.record(train_mode=False):
        outputs, states = cell.unroll(2, x, **given)
    _backward(mx, outputs if isinstance(outputs, (list, tuple)) else [outputs])
    return _results(cell.collect_params(), x, outputs, states)


def run_convolution(mx: Any, name: str) -> dict[str, np.ndarray]:
    """Take two steps of a convolutional cell, forwards and backwards."""
    cell, shape = CONVOLUTIONS[name](mx.gluon.contrib.rnn)
    cell.initialize()
    _filled(mx, cell)
    x = mx.nd.array(_draw(shape, 1))
    x.attach_grad()
    with mx.autograd.record():
        outputs, states = cell.unroll(2, [x, x * 0.5])
    _backward(mx, outputs)
    return _results(cell.collect_params(), x, outputs, states)


def graph(mx: Any) -> dict[str, Any]:
    """Node names and arguments of cells and layers called on symbols."""
    rnn, var, Group = mx.gluon.rnn, mx.sym.var, mx.sym.Group
    steps = [var("x0"), var("x1")]
    cells = {
        "rnn": rnn.RNNCell(4, prefix="a_"),
        "lstm": rnn.LSTMCell(4, prefix="b_"),
        "gru": rnn.GRUCell(4, prefix="c_"),
        "zoneout": rnn.ZoneoutCell(rnn.LSTMCell(4, prefix="d_"), 0.5, 0.5),
        "lstmp": mx.gluon.contrib.rnn.LSTMPCell(4, 3, prefix="e_"),
        "variational": mx.gluon.contrib.rnn.VariationalDropoutCell(rnn.GRUCell(4, prefix="f_"), 0.1, 0.2, 0.3),
        "conv": mx.gluon.contrib.rnn.Conv2DLSTMCell((2, 5, 5), 3, 3, 3, prefix="g_"),
    }
    found: dict[str, Any] = {}
    for name, cell in cells.items():
        outputs, states = cell.unroll(2, steps)
        found[name] = [repr(cell), Group([*outputs, *states]).get_internals().list_outputs()]
    layer = rnn.LSTM(4, 2, layout="NTC", bidirectional=True, prefix="h_")
    output, states = layer(var("data"), [var("h"), var("c")])
    found["layer"] = Group([output, *states]).get_internals().list_outputs()
    found["layer_zeros"] = layer(var("data")).get_internals().list_outputs()
    return found


def record(mx: Any) -> Any:
    """Arrays and names of every case, and a file of parameters."""
    arrays: dict[str, Any] = {}
    facts: dict[str, Any] = {"graph": graph(mx)}

    def keep(name: str, found: dict[str, np.ndarray]) -> None:
        arrays.update({f"{name}|{k}": v for k, v in found.items()})

    for name in LAYERS:
        found, facts[name] = run_layer(mx, name)
        keep(f"layer_{name}", found)
    for name, how in PAIRS:
        keep(f"cell_{name}_{how}", run_cell(mx, name, how))
    for name in CONVOLUTIONS:
        keep(name, run_convolution(mx, name))
    layer = mx.gluon.rnn.LSTM(2, 2, input_size=3, bidirectional=True, prefix="lstm_")
    layer.initialize(mx.init.Uniform(0.5))
    with tempfile.TemporaryDirectory() as folder:
        layer.save_parameters(f"{folder}/params")
        file = np.fromfile(f"{folder}/params", np.uint8)
    arrays["file|out"] = layer(mx.nd.ones((2, 1, 3))).asnumpy()
    return {"facts": facts, "arrays": arrays, "file": file}
