"""Export rules: one function per operator, from input names to ONNX nodes (opset 13) and output names."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.errors import MXNetError
from ...symbol.node import Node

Convert = Callable[[Any, Node, Sequence[str], Mapping[str, Any]], Any]
OPERATORS: dict[str, Convert] = {}


def _for(*names: str) -> Callable[[Convert], Convert]:
    def register(fn: Convert) -> Convert:
        OPERATORS.update(dict.fromkeys(names, fn))
        return fn

    return register


def _only(node: Node, condition: bool, what: str) -> None:
    if not condition:
        raise MXNetError(
            f"export_model: node {node.name!r} ({node.op.name if node.op else ''}): {what} has no counterpart in ONNX"
        )


def _simple(op: str, **attrs: Any) -> Convert:
    return lambda g, node, ins, p: g.node(op, ins, node.name, **attrs)


for _name, _op in {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "softsign": "Softsign", "exp": "Exp", "log": "Log",
    "sqrt": "Sqrt", "abs": "Abs", "negative": "Neg", "reciprocal": "Reciprocal", "floor": "Floor", "ceil": "Ceil",
    "erf": "Erf", "sin": "Sin", "cos": "Cos", "sign": "Sign", "_copy": "Identity", "BlockGrad": "Identity",
    "Dropout": "Identity", "MakeLoss": "Identity", "make_loss": "Identity", "elemwise_add": "Add",
    "broadcast_add": "Add", "elemwise_sub": "Sub", "broadcast_sub": "Sub", "elemwise_mul": "Mul",
    "broadcast_mul": "Mul", "elemwise_div": "Div", "broadcast_div": "Div", "broadcast_power": "Pow",
    "_power": "Pow", "add_n": "Sum", "broadcast_maximum": "Max", "_maximum": "Max", "broadcast_minimum": "Min",
    "_minimum": "Min", "LogisticRegressionOutput": "Sigmoid", "LinearRegressionOutput": "Identity",
}.items():  # fmt: skip
    OPERATORS[_name] = (lambda op: lambda g, node, ins, p: g.node(op, [i for i in ins if i], node.name))(_op)


def _scalar(op: str, turned: bool = False) -> Convert:
    def convert(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
        number = g.constant(np.asarray(p["scalar"], g.dtype(node, 0)), f"{node.name}_scalar")
        return g.node(op, [number, ins[0]] if turned else [ins[0], number], node.name)

    return convert


for _name, _op, _turned in (
    ("_plus_scalar", "Add", False), ("_minus_scalar", "Sub", False), ("_rminus_scalar", "Sub", True),
    ("_mul_scalar", "Mul", False), ("_div_scalar", "Div", False), ("_rdiv_scalar", "Div", True),
    ("_power_scalar", "Pow", False), ("_maximum_scalar", "Max", False), ("_minimum_scalar", "Min", False),
):  # fmt: skip
    OPERATORS[_name] = _scalar(_op, _turned)


@_for("square")
def _square(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    return g.node("Mul", [ins[0], ins[0]], node.name)


def _pads(p: Mapping[str, Any], n: int) -> list[int]:
    return [*(p["pad"] or (0,) * n)] * 2


@_for("Convolution", "Deconvolution")
def _convolution(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    n = len(p["kernel"])
    _only(node, p["layout"] in (None, "NCW", "NCHW", "NCDHW"), f"layout={p['layout']!r}")
    attrs = {
        "kernel_shape": p["kernel"], "strides": p["stride"] or (1,) * n, "dilations": p["dilate"] or (1,) * n,
        "pads": _pads(p, n), "group": p["num_group"],
    }  # fmt: skip
    if node.op is not None and node.op.name == "Deconvolution":
        _only(node, not p["target_shape"], "target_shape")
        return g.node("ConvTranspose", ins, node.name, output_padding=p["adj"] or (0,) * n, **attrs)
    return g.node("Conv", ins, node.name, **attrs)


@_for("FullyConnected")
def _dense(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    if p["flatten"]:
        data = g.node("Flatten", [ins[0]], f"{node.name}_flat", axis=1)
        return g.node("Gemm", [data, *ins[1:]], node.name, alpha=1.0, beta=1.0, transA=0, transB=1)
    if ins[1] in g.constants:
        turned = g.constant(np.ascontiguousarray(g.constants[ins[1]].T), f"{node.name}_weight_t")
    else:
        turned = g.node("Transpose", [ins[1]], f"{node.name}_weight_t", perm=[1, 0])
    product = g.node("MatMul", [ins[0], turned], f"{node.name}_product" if len(ins) > 2 else node.name)
    return g.node("Add", [product, ins[2]], node.name) if len(ins) > 2 else product


@_for("BatchNorm")
def _batch_norm(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    _only(node, p["axis"] == 1, f"axis={p['axis']}")
    data, gamma, *rest = ins
    if p["fix_gamma"]:
        gamma = g.constant(np.ones(g.shape(node, 1), np.float32), f"{node.name}_ones")
    return g.node("BatchNormalization", [data, gamma, *rest], node.name, epsilon=p["eps"], momentum=p["momentum"])


@_for("Activation")
def _activation(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    op = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "softrelu": "Softplus", "softsign": "Softsign"}
    return g.node(op[p["act_type"]], ins, node.name)


@_for("LeakyReLU")
def _leaky(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    kind = p["act_type"]
    if kind == "leaky":
        return g.node("LeakyRelu", ins, node.name, alpha=p["slope"])
    if kind == "elu":
        return g.node("Elu", ins, node.name, alpha=p["slope"])
    if kind == "selu":
        return g.node("Selu", ins, node.name)
    if kind == "prelu":
        rank = len(g.shape(node, 0))
        slope = g.constant(g.value(node, 1).reshape(-1, *(1,) * (rank - 2)), f"{node.name}_slope")
        return g.node("PRelu", [ins[0], slope], node.name)
    _only(node, kind == "gelu", f"act_type={kind!r}")
    halves = g.node("Mul", [ins[0], g.constant(np.float32(0.5), f"{node.name}_half")], f"{node.name}_halves")
    scaled = g.node("Mul", [ins[0], g.constant(np.float32(0.5**0.5), f"{node.name}_root")], f"{node.name}_scaled")
    erf = g.node("Erf", [scaled], f"{node.name}_erf")
    return g.node(
        "Mul",
        [halves, g.node("Add", [erf, g.constant(np.float32(1), f"{node.name}_one")], f"{node.name}_more")],
        node.name,
    )


@_for("Pooling")
def _pooling(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    kind = p["pool_type"]
    _only(node, kind in ("max", "avg"), f"pool_type={kind!r}")
    _only(node, p["layout"] in (None, "NCW", "NCHW", "NCDHW"), f"layout={p['layout']!r}")
    if p["global_pool"]:
        return g.node("GlobalMaxPool" if kind == "max" else "GlobalAveragePool", ins, node.name)
    n = len(p["kernel"])
    _only(node, p["pooling_convention"] in ("valid", "full"), f"pooling_convention={p['pooling_convention']!r}")
    attrs: dict[str, Any] = {
        "kernel_shape": p["kernel"], "strides": p["stride"] or (1,) * n, "pads": _pads(p, n),
        "ceil_mode": int(p["pooling_convention"] == "full"),
    }  # fmt: skip
    if kind == "max":
        return g.node("MaxPool", ins, node.name, **attrs)
    return g.node("AveragePool", ins, node.name, count_include_pad=int(p["count_include_pad"] is not False), **attrs)


@_for("Concat")
def _concat(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    return g.node("Concat", ins, node.name, axis=p["dim"])


@_for("Flatten")
def _flatten(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    return g.node("Flatten", ins, node.name, axis=1)


@_for("softmax", "log_softmax")
def _softmax(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    _only(node, not p.get("use_length"), "use_length")
    data = ins[0]
    if p["temperature"] not in (None, 1.0):
        heat = g.constant(np.float32(p["temperature"]), f"{node.name}_temperature")
        data = g.node("Div", [data, heat], f"{node.name}_cooled")
    assert node.op is not None
    return g.node("Softmax" if node.op.name == "softmax" else "LogSoftmax", [data], node.name, axis=p["axis"])


@_for("SoftmaxOutput", "SoftmaxActivation")
def _softmax_output(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    channel = p.get("multi_output") or p.get("mode") == "channel"
    return g.node("Softmax", [ins[0]], node.name, axis=1 if channel else -1)


@_for("Reshape")
def _reshape(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    shape = p["shape"]
    _only(node, not p["reverse"], "reverse=True")
    if any(d < -1 for d in shape):
        found = g.shapes[id(node), 0]
        shape = (0 if found[0] == g.shape(node, 0)[0] else found[0], *found[1:])
    return g.node("Reshape", [ins[0], g.constant(np.asarray(shape, np.int64), f"{node.name}_shape")], node.name)


@_for("transpose")
def _transpose(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    return g.node("Transpose", ins, node.name, perm=p["axes"] or None)


@_for("SwapAxis")
def _swap(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    order = list(range(len(g.shape(node, 0))))
    order[p["dim1"]], order[p["dim2"]] = order[p["dim2"]], order[p["dim1"]]
    return g.node("Transpose", ins, node.name, perm=order)


@_for("clip")
def _clip(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    kind = g.dtype(node, 0)
    ends = [g.constant(np.asarray(p[k], kind), f"{node.name}_{k}") for k in ("a_min", "a_max")]
    return g.node("Clip", [ins[0], *ends], node.name)


def _reduced(op: str) -> Convert:
    def convert(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
        rank = len(g.shape(node, 0))
        axes = tuple(range(rank)) if p["axis"] is None or p["axis"] == () else tuple(a % rank for a in p["axis"])
        if p["exclude"]:
            axes = tuple(a for a in range(rank) if a not in axes)
        keep = int(p["keepdims"])
        if op == "ReduceSum":
            return g.node(
                op, [ins[0], g.constant(np.asarray(axes, np.int64), f"{node.name}_axes")], node.name, keepdims=keep
            )
        found = g.node(op, ins, node.name if keep or len(axes) < rank else f"{node.name}_0d", axes=axes, keepdims=keep)
        if keep or len(axes) < rank:
            return found
        return g.node("Reshape", [found, g.constant(np.asarray([1], np.int64), f"{node.name}_shape")], node.name)

    return convert


for _name, _op in (("mean", "ReduceMean"), ("sum", "ReduceSum"), ("max", "ReduceMax"), ("min", "ReduceMin"),
                   ("prod", "ReduceProd")):  # fmt: skip
    OPERATORS[_name] = _reduced(_op)


@_for("LRN")
def _lrn(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    return g.node("LRN", ins, node.name, alpha=p["alpha"], beta=p["beta"], bias=p["knorm"], size=p["nsize"])


@_for("Embedding")
def _embedding(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    ids = g.node("Cast", [ins[0]], f"{node.name}_ids", to=7)
    return g.node("Gather", [ins[1], ids], node.name, axis=0)


@_for("Cast", "amp_cast")
def _cast(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:

    return g.node("Cast", ins, node.name, to=onnx().helper.np_dtype_to_tensor_dtype(np.dtype(p["dtype"])))


@_for("expand_dims")
def _expand(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    return g.node("Unsqueeze", [ins[0], g.constant(np.asarray([p["axis"]], np.int64), f"{node.name}_axes")], node.name)


@_for("squeeze")
def _squeeze(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    axes = [] if p["axis"] is None else [g.constant(np.asarray(p["axis"], np.int64), f"{node.name}_axes")]
    return g.node("Squeeze", [ins[0], *axes], node.name)


@_for("slice_axis")
def _slice_axis(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    end = p["end"] if p["end"] is not None else np.iinfo(np.int64).max
    parts = [g.constant(np.asarray([v], np.int64), f"{node.name}_{k}") for k, v in
             (("begin", p["begin"]), ("end", end), ("axis", p["axis"]))]  # fmt: skip
    return g.node("Slice", [ins[0], *parts], node.name)


@_for("SliceChannel")
def _split(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    n = p["num_outputs"]
    found = g.node("Split", ins, f"{node.name}_split" if p["squeeze_axis"] else node.name, outputs=n, axis=p["axis"])
    found = found if isinstance(found, list) else [found]
    if not p["squeeze_axis"]:
        return found
    axes = g.constant(np.asarray([p["axis"]], np.int64), f"{node.name}_axes")
    return [g.node("Squeeze", [f, axes], f"{node.name}_{i}") for i, f in enumerate(found)]


@_for("Pad")
def _pad(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    width = p["pad_width"]
    amounts = g.constant(np.asarray([*width[::2], *width[1::2]], np.int64), f"{node.name}_pads")
    fill = g.constant(np.asarray(p["constant_value"], g.dtype(node, 0)), f"{node.name}_value")
    return g.node("Pad", [ins[0], amounts, fill], node.name, mode=p["mode"])


@_for("dot", "batch_dot")
def _dot(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    made = []
    for k, key in enumerate(("transpose_a", "transpose_b")):
        rank = len(g.shape(node, k))
        assert node.op is not None
        _only(node, node.op.name == "batch_dot" or rank == 2, "dot of other than matrices")
        order = [*range(rank - 2), rank - 1, rank - 2]
        made.append(g.node("Transpose", [ins[k]], f"{node.name}_{key}", perm=order) if p[key] else ins[k])
    return g.node("MatMul", made, node.name)


@_for("LayerNorm")
def _layer_norm(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    rank = len(g.shape(node, 0))
    _only(node, p["axis"] % rank == rank - 1, f"axis={p['axis']}")
    name = node.name
    middle = g.node("ReduceMean", [ins[0]], f"{name}_mean", axes=[-1], keepdims=1)
    apart = g.node("Sub", [ins[0], middle], f"{name}_apart")
    variance = g.node(
        "ReduceMean", [g.node("Mul", [apart, apart], f"{name}_squares")], f"{name}_var", axes=[-1], keepdims=1
    )
    safe = g.node("Add", [variance, g.constant(np.float32(p["eps"]), f"{name}_eps")], f"{name}_safe")
    unit = g.node("Div", [apart, g.node("Sqrt", [safe], f"{name}_std")], f"{name}_unit")
    return g.node("Add", [g.node("Mul", [unit, ins[1]], f"{name}_scaled"), ins[2]], name)


@_for("InstanceNorm")
def _instance_norm(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    return g.node("InstanceNormalization", ins, node.name, epsilon=p["eps"])


# The order of gates: MXNet's i f g o as ONNX's i o f g, MXNet's r z n as ONNX's z r n.
_GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn_tanh": (0,), "rnn_relu": (0,)}


@_for("RNN")
def _rnn(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    mode, size, name = p["mode"], p["state_size"], node.name
    _only(node, not p["projection_size"] and not p["use_sequence_length"], "projection_size or use_sequence_length")
    vector, width = g.value(node, 1), g.shape(node, 0)[2]
    order, directions = _GATES[mode], 2 if p["bidirectional"] else 1
    weights, biases = _unpacked(vector, p["num_layers"], directions, len(order), size, width)
    op = {"lstm": "LSTM", "gru": "GRU"}.get(mode, "RNN")
    attrs: dict[str, Any] = {"hidden_size": size, "direction": "bidirectional" if directions == 2 else "forward"}
    if op == "GRU":
        attrs["linear_before_reset"] = 1
    if op == "RNN":
        attrs["activations"] = ["Tanh" if mode == "rnn_tanh" else "Relu"] * directions
    data, last = ins[0], [[], []]
    for layer in range(p["num_layers"]):
        at = slice(layer * directions, (layer + 1) * directions)
        packed = [np.stack([_sorted(w[k], order, size) for w in weights[at]]) for k in (0, 1)]
        bias = np.stack([np.concatenate([_sorted(b, order, size) for b in pair]) for pair in biases[at]])
        given = [g.constant(v, f"{name}_{layer}_{k}") for k, v in zip("WRB", (*packed, bias), strict=True)]
        span = [
            g.constant(np.asarray([v], np.int64), f"{name}_{layer}_{k}")
            for k, v in (("from", at.start), ("to", at.stop), ("axis", 0))
        ]
        states = [g.node("Slice", [s, *span], f"{name}_{layer}_s{k}") for k, s in enumerate(ins[2:])]
        outs = g.node(op, [data, *given, "", *states], f"{name}_{layer}", outputs=3 if op == "LSTM" else 2, **attrs)
        for k, found in enumerate(outs[1:]):
            last[k].append(found)
        turned = g.node("Transpose", [outs[0]], f"{name}_{layer}_turned", perm=[0, 2, 1, 3])
        shape = g.constant(np.asarray([0, 0, -1], np.int64), f"{name}_{layer}_shape")
        data = g.node("Reshape", [turned, shape], f"{name}_{layer}_out")
    if not p["state_outputs"]:
        return data
    return [data, *(g.node("Concat", parts, f"{name}_last{k}", axis=0) for k, parts in enumerate(last) if parts)]


def _sorted(rows: np.ndarray, order: Sequence[int], size: int) -> np.ndarray:
    return np.concatenate([rows[k * size : (k + 1) * size] for k in order])


def _unpacked(vector: np.ndarray, layers: int, directions: int, gates: int, size: int, width: int) -> Any:
    """Weights (input, state) and biases (input, state) of every layer and direction in a flat vector."""
    rows, at, weights, biases = gates * size, 0, [], []
    for layer in range(layers):
        for _ in range(directions):
            pair = []
            for columns in (width if layer == 0 else size * directions, size):
                pair.append(vector[at : at + rows * columns].reshape(rows, columns))
                at += rows * columns
            weights.append(pair)
    for _ in range(layers * directions):
        biases.append((vector[at : at + rows], vector[at + rows : at + 2 * rows]))
        at += 2 * rows
    return weights, biases


@_for("_zeros", "_full", "_ones")
def _filled(g: Any, node: Node, ins: Sequence[str], p: Mapping[str, Any]) -> Any:
    assert node.op is not None
    value = {"_zeros": 0, "_ones": 1}.get(node.op.name, p.get("value"))
    return g.constant(np.full(g.shapes[id(node), 0], value, p["dtype"]), node.name)


OPSET = 13


def onnx() -> Any:
    """Return the package.

    Raises:
        MXNetError: it is not installed.
    """
    try:
        return importlib.import_module("onnx")
    except ImportError as e:
        raise MXNetError(f"contrib.onnx needs the package onnx: pip install 'dualmx[onnx]' ({e})") from None


__all__ = ["OPERATORS", "OPSET", "onnx"]
