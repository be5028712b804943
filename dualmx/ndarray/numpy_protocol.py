"""NumPy's functions on arrays: `np.sin(x)` records `sin`; NumPy computes on the host what has no operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.errors import MXNetError
from ..op.registry import OPS
from .creation import array, concatenate, full, moveaxis
from .handle import invoke, invoke_unary, is_tracked
from .ndarray import NDArray
from .recorder import local

_UNARY: dict[Any, str] = {
    np.negative: "negative", np.absolute: "abs", np.fabs: "abs", np.sign: "sign", np.rint: "rint", np.ceil: "ceil",
    np.floor: "floor", np.trunc: "trunc", np.exp: "exp", np.expm1: "expm1", np.log: "log", np.log2: "log2",
    np.log10: "log10", np.log1p: "log1p", np.sqrt: "sqrt", np.cbrt: "cbrt", np.square: "square",
    np.reciprocal: "reciprocal", np.sin: "sin", np.cos: "cos", np.tan: "tan", np.arcsin: "arcsin",
    np.arccos: "arccos", np.arctan: "arctan", np.sinh: "sinh", np.cosh: "cosh", np.tanh: "tanh",
    np.arcsinh: "arcsinh", np.arccosh: "arccosh", np.arctanh: "arctanh", np.degrees: "degrees",
    np.rad2deg: "degrees", np.radians: "radians", np.deg2rad: "radians", np.logical_not: "logical_not",
}  # fmt: skip

# Method with the array on the left, method with it on the right.
_BINARY: dict[Any, tuple[str, str]] = {
    np.add: ("__add__", "__radd__"), np.subtract: ("__sub__", "__rsub__"), np.multiply: ("__mul__", "__rmul__"),
    np.divide: ("__truediv__", "__rtruediv__"), np.remainder: ("__mod__", "__rmod__"),
    np.power: ("__pow__", "__rpow__"), np.float_power: ("__pow__", "__rpow__"), np.equal: ("__eq__", "__eq__"),
    np.not_equal: ("__ne__", "__ne__"), np.greater: ("__gt__", "__lt__"), np.greater_equal: ("__ge__", "__le__"),
    np.less: ("__lt__", "__gt__"), np.less_equal: ("__le__", "__ge__"),
}  # fmt: skip

_BROADCAST = {
    np.maximum: "broadcast_maximum", np.minimum: "broadcast_minimum", np.hypot: "broadcast_hypot",
    np.logical_and: "broadcast_logical_and", np.logical_or: "broadcast_logical_or",
    np.logical_xor: "broadcast_logical_xor",
}  # fmt: skip


def array_ufunc(self: NDArray, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Apply a NumPy ufunc: as an operator (with its dtype rules, result on the array's context) where there is one.

    Raises:
        MXNetError: it would be computed on the host although a gradient is being recorded.
    """
    if method == "at":
        raise MXNetError(f"np.{ufunc.__name__}.at: an NDArray cannot be changed by NumPy; use x[index] = values")
    outs = kwargs.pop("out", ())
    mapped = NotImplemented
    if method == "__call__" and not kwargs and not any(isinstance(o, np.ndarray) for o in outs):
        mapped = _as_operator(ufunc, inputs)
    if mapped is NotImplemented:
        targets = [o for o in outs if isinstance(o, NDArray)]
        host = tuple(np.array(o) if isinstance(o, NDArray) else o for o in outs)
        if host:
            kwargs["out"] = host
        found = getattr(ufunc, method)(*to_numpy_tree(inputs, f"np.{ufunc.__name__}"), **to_numpy_tree(kwargs, "out"))
        for target, values in zip(outs, host, strict=True):
            if isinstance(target, NDArray):
                target[:] = values
        return (outs[0] if len(outs) == 1 else outs) if targets else found
    return _write_out(mapped, outs)


def _write_out(result: NDArray, outs: Sequence[Any]) -> NDArray:
    """Return the result, or the array it was to be written to."""
    if not outs or outs[0] is None:
        return result
    outs[0][:] = result
    return outs[0]


def _as_operator(ufunc: Any, inputs: Sequence[Any]) -> Any:
    if ufunc in _UNARY:
        return invoke_unary(OPS[_UNARY[ufunc]].call(), inputs[0])
    if ufunc in _BINARY:
        left, right = inputs
        if not all(_operand(i) for i in inputs):
            return NotImplemented
        forward, backward = _BINARY[ufunc]
        return getattr(left, forward)(right) if isinstance(left, NDArray) else getattr(right, backward)(left)
    if ufunc in _BROADCAST and all(isinstance(i, (NDArray, np.ndarray, int, float, np.number)) for i in inputs):
        like: Any = next(i for i in inputs if isinstance(i, NDArray))
        return invoke(OPS[_BROADCAST[ufunc]].call(), [_array_like_other(i, like) for i in inputs])[0]
    if ufunc is np.matmul and all(isinstance(i, NDArray) and len(i._value.shape) == 2 for i in inputs):
        return invoke(OPS["dot"].call(), inputs)[0]
    return NotImplemented


def _operand(value: Any) -> bool:
    return isinstance(value, (NDArray, np.ndarray, int, float, np.number, np.bool_))


def _array_like_other(value: Any, other: NDArray) -> NDArray:
    """Return an operand as an array of the dtype and context of `other`."""
    return value if isinstance(value, NDArray) else array(np.atleast_1d(value), ctx=other.context, dtype=other.dtype)


def to_numpy_tree(value: Any, what: str, instead: str = "an operator of mx.nd") -> Any:
    """Return `value` with every array in it as a NumPy copy.

    Args:
        value: an array, something else, or a nest of both.
        what: who asks, and `instead`: what to use in its place, for the error's text.

    Raises:
        MXNetError: a gradient through one of them is being recorded; it would be lost.
    """
    if isinstance(value, NDArray):
        if local.recording and is_tracked(value):
            raise MXNetError(
                f"{what}: NumPy computes it on the host, where its gradient is not recorded; use {instead}, "
                f"x.detach(), or autograd.pause()"
            )
        return value.asnumpy()
    if isinstance(value, (list, tuple)):
        return type(value)(to_numpy_tree(v, what, instead) for v in value)
    if isinstance(value, dict):
        return {k: to_numpy_tree(v, what, instead) for k, v in value.items()}
    return value


def _reduction(name: str) -> Callable[..., Any]:
    def reduced(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        return getattr(a, name)(axis=axis, keepdims=bool(keepdims))

    return reduced


def _positions(name: str) -> Callable[..., Any]:
    def found(a: Any, axis: Any = None) -> Any:
        return getattr(a, name)(axis=axis)

    return found


def _joined(arrays: Sequence[Any]) -> list[NDArray]:
    like: Any = next(a for a in arrays if isinstance(a, NDArray))
    return [_array_like_other(a, like) for a in arrays]


def _concatenate(arrays: Any, axis: int = 0) -> NDArray:
    return concatenate(_joined(arrays), axis)


def _stack(arrays: Any, axis: int = 0) -> NDArray:
    found = _joined(arrays)
    return invoke(OPS["stack"].call(axis=axis, num_args=len(found)), found)[0]


def _where(condition: Any, x: Any, y: Any) -> Any:
    same = all(isinstance(a, NDArray) for a in (condition, x, y)) and condition.shape == x.shape == y.shape
    return invoke(OPS["where"].call(), (condition, x, y))[0] if same else NotImplemented


def _dot(a: Any, b: Any) -> Any:
    fits = isinstance(a, NDArray) and isinstance(b, NDArray) and len(a._value.shape) <= 2 and len(b._value.shape) <= 2
    return invoke(OPS["dot"].call(), (a, b))[0] if fits else NotImplemented


def _clip(a: Any, a_min: Any, a_max: Any) -> Any:
    plain = all(isinstance(v, (int, float, np.number)) for v in (a_min, a_max))
    return a.clip(float(a_min), float(a_max)) if plain and isinstance(a, NDArray) else NotImplemented


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    found = ary.split_v2(indices_or_sections, axis)
    return found if isinstance(found, list) else [found]


def _reshape(a: Any, shape: Any) -> Any:
    lengths = (shape,) if isinstance(shape, int) else tuple(shape)
    # Other numbers are codes to `NDArray.reshape`, which NumPy does not know.
    return a.reshape(lengths) if lengths and all(n > 0 or n == -1 for n in lengths) else NotImplemented


def _norm(x: Any) -> Any:
    return x.norm()


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: _reduction("sum"),
    np.mean: _reduction("mean"),
    np.prod: _reduction("prod"),
    np.max: _reduction("max"),
    np.amax: _reduction("max"),
    np.min: _reduction("min"),
    np.amin: _reduction("min"),
    np.nansum: _reduction("nansum"),
    np.nanprod: _reduction("nanprod"),
    np.argmax: _positions("argmax"),
    np.argmin: _positions("argmin"),
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.split: _split,
    np.where: _where,
    np.dot: _dot,
    np.clip: _clip,
    np.linalg.norm: _norm,
    np.transpose: lambda a, axes=None: a.transpose(axes or ()),
    np.reshape: _reshape,
    np.ravel: lambda a: a.reshape(-1),
    np.expand_dims: lambda a, axis: a.expand_dims(axis=axis) if isinstance(axis, int) else NotImplemented,
    np.squeeze: lambda a, axis=None: a.squeeze(axis=axis),
    np.swapaxes: lambda a, axis1, axis2: a.swapaxes(axis1, axis2),
    np.moveaxis: lambda a, source, destination: moveaxis(a, source, destination),
    np.broadcast_to: lambda array, shape: array.broadcast_to(shape),
    np.tile: lambda A, reps: A.tile(reps=reps),
    np.flip: lambda m, axis: m.flip(axis=axis) if isinstance(axis, int) else NotImplemented,
    np.diag: lambda v, k=0: v.diag(k=k),
    np.copy: lambda a: a.copy(),
    np.zeros_like: lambda a: a.zeros_like(),
    np.ones_like: lambda a: a.ones_like(),
    np.full_like: lambda a, fill_value: full(a.shape, fill_value, a.context, a.dtype),
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a: a.size,
}
_SIGNATURES = {fn: inspect.signature(made) for fn, made in _FUNCTIONS.items()}


def array_function(self: NDArray, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Apply a NumPy function: as operators with MXNet's results where they exist, else by NumPy on host copies.

    Operators return NDArrays, shapes and dtypes as in `mx.nd` (a full reduction has shape (1,)); NumPy's results are
    NumPy arrays.

    Raises:
        MXNetError: it would be computed on the host although a gradient is being recorded.
    """
    if not all(issubclass(t, (NDArray, np.ndarray)) for t in types):
        return NotImplemented
    out = kwargs.pop("out", None)
    result = NotImplemented
    if func in _FUNCTIONS and not isinstance(out, np.ndarray):
        try:
            _SIGNATURES[func].bind(*args, **kwargs)
        except TypeError:
            # An argument that only NumPy knows.
            result = NotImplemented
        else:
            result = _FUNCTIONS[func](*args, **kwargs)
    if result is NotImplemented:
        what = f"np.{func.__name__}"
        extra = {"out": out} if isinstance(out, np.ndarray) else {}
        result = func(*to_numpy_tree(args, what), **to_numpy_tree(kwargs, what), **extra)
    if isinstance(out, NDArray):
        out[:] = result
        return out
    return result


for _method in (array_ufunc, array_function):
    setattr(NDArray, f"__{_method.__name__}__", _method)
