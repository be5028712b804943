"""Import rules: one function per ONNX node, from input symbols to an output symbol or several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import as_dtype
from ...core.errors import MXNetError
from ...namespace import sym
from .export_rules import _GATES, _sorted

Build = Callable[["Reader", str, Sequence[str], Mapping[str, Any]], Any]
NODES: dict[str, Build] = {}
S: Any = sym


class Reader:
    """What is known while a graph is read.

    Attributes:
        values: constants by name.
        symbols: symbols by name.
        outputs: the names of the outputs of the node that is being read.
    """

    def __init__(self, values: dict[str, np.ndarray]):
        self.values = values
        self.symbols: dict[str, Any] = {}
        self.used: set[str] = set()
        self.outputs: list[str] = []
        self.opset = 13

    def symbol(self, name: str) -> Any:
        """The symbol of a value; a constant becomes a parameter."""
        if name not in self.symbols:
            if name not in self.values:
                raise MXNetError(f"import_model: value {name!r} is read before a node makes it")
            self.symbols[name] = S.var(name)
        if name in self.values:
            self.used.add(name)
        return self.symbols[name]

    def constant(self, name: str, what: str) -> np.ndarray:
        """The value of an input that has to be constant.

        Raises:
            MXNetError: it is computed.
        """
        if name not in self.values:
            raise MXNetError(f"import_model: {what} is computed by the network: expected a constant")
        return self.values[name]

    def added(self, name: str, value: np.ndarray) -> Any:
        """A further parameter."""
        self.values[name] = value
        return self.symbol(name)


def _for(*names: str) -> Callable[[Build], Build]:
    def register(fn: Build) -> Build:
        NODES.update(dict.fromkeys(names, fn))
        return fn

    return register


def _refuse(name: str, what: str) -> None:
    raise MXNetError(f"import_model: node {name!r}: {what} is not supported")


for _op, _name in {
    "Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Softsign": "softsign", "Exp": "exp", "Log": "log",
    "Sqrt": "sqrt", "Abs": "abs", "Neg": "negative", "Reciprocal": "reciprocal", "Floor": "floor", "Ceil": "ceil",
    "Erf": "erf", "Sin": "sin", "Cos": "cos", "Sign": "sign", "Identity": "identity",
}.items():  # fmt: skip
    NODES[_op] = (lambda n: lambda r, name, ins, a: getattr(S, n)(r.symbol(ins[0]), name=name))(_name)
for _op, _name in {
    "Add": "broadcast_add", "Sub": "broadcast_sub", "Mul": "broadcast_mul", "Div": "broadcast_div",
    "Pow": "broadcast_power",
}.items():  # fmt: skip
    NODES[_op] = (lambda n: lambda r, name, ins, a: _pair(r, n, name, ins))(_name)


def _pair(r: Reader, function: str, name: str, ins: Sequence[str]) -> Any:
    """A broadcasting operator; a constant scalar becomes a number."""
    numbers = {"broadcast_add": "__add__", "broadcast_sub": "__sub__", "broadcast_mul": "__mul__",
               "broadcast_div": "__truediv__", "broadcast_power": "__pow__"}  # fmt: skip
    if ins[1] in r.values and r.values[ins[1]].ndim == 0:
        return getattr(r.symbol(ins[0]), numbers[function])(float(r.values[ins[1]]))
    if ins[0] in r.values and r.values[ins[0]].ndim == 0:
        turned = numbers[function].replace("__", "__r", 1)
        return getattr(r.symbol(ins[1]), turned)(float(r.values[ins[0]]))
    return getattr(S, function)(r.symbol(ins[0]), r.symbol(ins[1]), name=name)


@_for("Sum")
def _sum(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    return S.add_n(*(r.symbol(i) for i in ins), name=name)


@_for("Max", "Min")
def _extreme(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    if len(ins) != 2:
        _refuse(name, f"{len(ins)} inputs")
    function = S.broadcast_maximum if a["op_type"] == "Max" else S.broadcast_minimum
    for one, other in (ins, ins[::-1]):
        if one in r.values and r.values[one].ndim == 0:
            return (S.maximum if a["op_type"] == "Max" else S.minimum)(r.symbol(other), float(r.values[one]))
    return function(r.symbol(ins[0]), r.symbol(ins[1]), name=name)


def _padding(a: Mapping[str, Any], n: int, name: str) -> tuple[int, ...]:
    if a.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        _refuse(name, f"auto_pad={a['auto_pad'].decode()}")
    pads = tuple(a.get("pads", (0,) * 2 * n))
    if pads[:n] != pads[n:]:
        _refuse(name, f"uneven padding {pads}")
    return pads[:n]


@_for("Conv", "ConvTranspose")
def _conv(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    weight = r.constant(ins[1], f"the weight of {name!r}")
    kernel = weight.shape[2:]
    n, groups = len(kernel), a.get("group", 1)
    params: dict[str, Any] = {
        "kernel": kernel, "stride": tuple(a.get("strides", (1,) * n)), "dilate": tuple(a.get("dilations", (1,) * n)),
        "pad": _padding(a, n, name), "num_group": groups, "no_bias": len(ins) < 3, "name": name,
    }  # fmt: skip
    inputs = [r.symbol(i) for i in ins]
    if a["op_type"] == "Conv":
        return S.Convolution(*inputs, num_filter=weight.shape[0], **params)
    adj = tuple(a.get("output_padding", (0,) * n))
    return S.Deconvolution(*inputs, num_filter=weight.shape[1] * groups, adj=adj, **params)


@_for("Gemm")
def _gemm(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    factor, shift = a.get("alpha", 1.0), a.get("beta", 1.0)
    data = r.symbol(ins[0])
    if a.get("transB") and not a.get("transA") and factor == shift == 1.0 and ins[1] in r.values and (
        len(ins) < 3 or (ins[2] in r.values and r.values[ins[2]].ndim == 1)
    ):  # fmt: skip
        rest = [r.symbol(i) for i in ins[1:]]
        return S.FullyConnected(
            data, *rest, num_hidden=len(r.values[ins[1]]), no_bias=len(ins) < 3, flatten=False, name=name
        )
    found = S.dot(data, r.symbol(ins[1]), transpose_a=bool(a.get("transA")), transpose_b=bool(a.get("transB")))
    found = found * factor if factor != 1.0 else found
    if len(ins) < 3:
        return found
    return S.broadcast_add(found, r.symbol(ins[2]) * shift if shift != 1.0 else r.symbol(ins[2]), name=name)


@_for("MatMul")
def _matmul(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    weight = r.values.get(ins[1])
    if weight is not None and weight.ndim == 2:
        turned = r.added(f"{ins[1]}_turned", np.ascontiguousarray(weight.T))
        return S.FullyConnected(
            r.symbol(ins[0]), turned, num_hidden=weight.shape[1], no_bias=True, flatten=False, name=name
        )
    return S.linalg.gemm2(r.symbol(ins[0]), r.symbol(ins[1]), name=name)


@_for("BatchNormalization")
def _batch_norm(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    params = {"eps": a.get("epsilon", 1e-5), "momentum": a.get("momentum", 0.9), "fix_gamma": False}
    return S.BatchNorm(*(r.symbol(i) for i in ins), name=name, **params)[0]


@_for("InstanceNormalization")
def _instance_norm(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    return S.InstanceNorm(*(r.symbol(i) for i in ins), eps=a.get("epsilon", 1e-5), name=name)


@_for("LeakyRelu", "Elu", "Selu", "PRelu", "Softplus")
def _activation(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    data, op = r.symbol(ins[0]), a["op_type"]
    if op == "Softplus":
        return S.Activation(data, act_type="softrelu", name=name)
    if op == "PRelu":
        slope = r.added(f"{ins[1]}_flat", r.constant(ins[1], f"the slope of {name!r}").reshape(-1))
        return S.LeakyReLU(data, slope, act_type="prelu", name=name)
    if op == "Selu":
        return S.LeakyReLU(data, act_type="selu", name=name)
    slope = a.get("alpha", 0.01 if op == "LeakyRelu" else 1.0)
    return S.LeakyReLU(data, act_type="leaky" if op == "LeakyRelu" else "elu", slope=slope, name=name)


@_for("MaxPool", "AveragePool")
def _pool(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    kernel = tuple(a["kernel_shape"])
    n = len(kernel)
    if tuple(a.get("dilations", (1,) * n)) != (1,) * n:
        _refuse(name, "dilations")
    params: dict[str, Any] = {
        "kernel": kernel, "stride": tuple(a.get("strides", (1,) * n)), "pad": _padding(a, n, name), "name": name,
        "pooling_convention": "full" if a.get("ceil_mode") else "valid",
    }  # fmt: skip
    if a["op_type"] == "MaxPool":
        return S.Pooling(r.symbol(ins[0]), pool_type="max", **params)
    counted = bool(a.get("count_include_pad", 0))
    return S.Pooling(r.symbol(ins[0]), pool_type="avg", count_include_pad=counted, **params)


@_for("GlobalMaxPool", "GlobalAveragePool")
def _global_pool(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    kind = "max" if a["op_type"] == "GlobalMaxPool" else "avg"
    return S.Pooling(r.symbol(ins[0]), pool_type=kind, global_pool=True, kernel=(1, 1), name=name)


@_for("Concat")
def _concat(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    return S.concat(*(r.symbol(i) for i in ins), dim=a["axis"], name=name)


@_for("Flatten")
def _flatten(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    if a.get("axis", 1) != 1:
        _refuse(name, f"axis={a['axis']}")
    return S.Flatten(r.symbol(ins[0]), name=name)


@_for("Softmax", "LogSoftmax")
def _softmax(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    function = S.softmax if a["op_type"] == "Softmax" else S.log_softmax
    return function(r.symbol(ins[0]), axis=a.get("axis", -1 if r.opset >= 13 else 1), name=name)


@_for("Dropout")
def _dropout(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    ratio = float(r.values[ins[1]]) if len(ins) > 1 and ins[1] in r.values else a.get("ratio", 0.5)
    return S.Dropout(r.symbol(ins[0]), p=ratio, name=name)


@_for("Reshape")
def _reshape(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    shape = r.constant(ins[1], f"the shape of {name!r}") if len(ins) > 1 else a["shape"]
    return S.reshape(r.symbol(ins[0]), shape=tuple(int(d) for d in shape), name=name)


@_for("Transpose")
def _transpose(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    return S.transpose(r.symbol(ins[0]), axes=tuple(a.get("perm", ())), name=name)


@_for("Clip")
def _clip(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    ends = [a.get("min", -np.inf), a.get("max", np.inf)]
    for k, i in enumerate(ins[1:]):
        if i:
            ends[k] = float(r.constant(i, f"an end of {name!r}"))
    return S.clip(r.symbol(ins[0]), a_min=ends[0], a_max=ends[1], name=name)


@_for("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd")
def _reduce(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    axes = a.get("axes")
    if len(ins) > 1 and ins[1]:
        axes = r.constant(ins[1], f"the axes of {name!r}").tolist()
    function = getattr(S, a["op_type"].removeprefix("Reduce").lower())
    params = {} if axes is None else {"axis": tuple(axes)}
    return function(r.symbol(ins[0]), keepdims=bool(a.get("keepdims", 1)), name=name, **params)


@_for("LRN")
def _lrn(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    params = {"alpha": a.get("alpha", 1e-4), "beta": a.get("beta", 0.75), "knorm": a.get("bias", 1.0)}
    return S.LRN(r.symbol(ins[0]), nsize=a["size"], name=name, **params)


@_for("Gather")
def _gather(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    return S.take(r.symbol(ins[0]), r.symbol(ins[1]), axis=a.get("axis", 0), name=name)


@_for("Cast")
def _cast(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    from .export_rules import onnx

    dtype = as_dtype(onnx().helper.tensor_dtype_to_np_dtype(a["to"])).name
    return S.Cast(r.symbol(ins[0]), dtype=dtype, name=name)


def _axes(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    return r.constant(ins[1], f"the axes of {name!r}").tolist() if len(ins) > 1 else a.get("axes")


@_for("Unsqueeze")
def _unsqueeze(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    found = r.symbol(ins[0])
    for axis in sorted(_axes(r, name, ins, a)):
        found = S.expand_dims(found, axis=axis)
    return found


@_for("Squeeze")
def _squeeze(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    axes = _axes(r, name, ins, a)
    return S.squeeze(r.symbol(ins[0]), name=name, **({} if axes is None else {"axis": tuple(axes)}))


@_for("Slice")
def _slice(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    if len(ins) < 3:
        _refuse(name, "attributes in place of inputs")
    parts = [r.constant(i, f"an input of {name!r}").tolist() for i in ins[1:] if i]
    starts, ends = parts[:2]
    axes = parts[2] if len(parts) > 2 else range(len(starts))
    if len(parts) > 3 and any(s != 1 for s in parts[3]):
        _refuse(name, f"steps={parts[3]}")
    found = r.symbol(ins[0])
    for start, end, axis in zip(starts, ends, axes, strict=True):
        found = S.slice_axis(found, axis=axis, begin=start, end=None if end >= 2**31 - 1 else end)
    return found


@_for("Split")
def _split(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    sizes = r.constant(ins[1], f"the sizes of {name!r}").tolist() if len(ins) > 1 else a.get("split")
    if sizes is not None and len(set(sizes)) != 1:
        _refuse(name, f"parts of sizes {sizes}")
    parts = S.SliceChannel(r.symbol(ins[0]), num_outputs=len(r.outputs), axis=a.get("axis", 0), name=name)
    return list(parts) if len(r.outputs) > 1 else parts


@_for("Pad")
def _pad(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    pads = r.constant(ins[1], f"the pads of {name!r}").tolist() if len(ins) > 1 else list(a["pads"])
    n = len(pads) // 2
    value = float(r.constant(ins[2], "the value")) if len(ins) > 2 and ins[2] else a.get("value", 0.0)
    width = tuple(v for pair in zip(pads[:n], pads[n:], strict=True) for v in pair)
    return S.Pad(
        r.symbol(ins[0]), mode=a.get("mode", b"constant").decode(), pad_width=width, constant_value=value, name=name
    )


@_for("Constant")
def _constant(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    if "value" not in a:
        _refuse(name, "a constant without a tensor")
    return a["value"]


@_for("LSTM", "GRU", "RNN")
def _rnn(r: Reader, name: str, ins: Sequence[str], a: Mapping[str, Any]) -> Any:
    op, size, both = a["op_type"], a["hidden_size"], a.get("direction", b"forward") == b"bidirectional"
    if (
        a.get("direction", b"forward") == b"reverse"
        or a.get("layout")
        or (op == "GRU" and not a.get("linear_before_reset"))
    ):
        _refuse(name, "a reverse direction, batch-first layout, or GRU without linear_before_reset")
    if len(ins) < 6 or not ins[3] or not ins[5] or ins[4]:
        _refuse(name, "a missing bias or initial state, or sequence lengths")
    kinds = {bytes(k).lower() for k in a.get("activations", [b"Tanh"])}
    mode = {"LSTM": "lstm", "GRU": "gru"}.get(op, "rnn_relu" if kinds == {b"relu"} else "rnn_tanh")
    back = tuple(np.argsort(_GATES[mode]))
    w, u, b = (r.constant(i, f"a weight of {name!r}") for i in ins[1:4])
    parts = [_sorted(m, back, size).ravel() for pair in zip(w, u, strict=True) for m in pair]
    half = b.shape[1] // 2
    parts += [_sorted(v, back, size) for row in b for v in (row[:half], row[half:])]
    vector = r.added(f"{name}_parameters", np.concatenate(parts))
    states = [r.symbol(i) for i in ins[5:] if i]
    found = S.RNN(
        r.symbol(ins[0]), vector, *states, mode=mode, state_size=size, num_layers=1, bidirectional=both,
        state_outputs=True, name=name,
    )  # fmt: skip
    split = S.reshape(found[0], shape=(0, 0, 2 if both else 1, size))
    return [S.transpose(split, axes=(0, 2, 1, 3)), *(found[k] for k in range(1, len(found.list_outputs())))]


__all__ = ["NODES", "Reader"]
