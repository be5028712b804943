"""Shape, axis and dtype rules that operator families share."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..core.dtypes import is_float
from ..core.errors import ArgumentError


def one_axis(axis: int, ndim: int, name: str = "axis") -> int:
    """Return `axis` in `[0, ndim)`; `ArgumentError` when it is not in `[-ndim, ndim)`."""
    if not -ndim <= axis < ndim:
        raise ArgumentError(f"{name}={axis}: expected a value in [{-ndim}, {ndim - 1}] for {ndim} dimensions")
    return axis % ndim


def many_axes(axes: Iterable[int], ndim: int, name: str = "axis") -> tuple[int, ...]:
    """Return `axes` in `[0, ndim)`; `ArgumentError` when one is out of range or occurs twice."""
    axes = tuple(axes)
    found = tuple(one_axis(a, ndim, name) for a in axes)
    if len(set(found)) != len(found):
        raise ArgumentError(f"{name}={axes}: expected every axis at most once")
    return found


_SMALL = ("int8", "uint8", "int16", "uint16")


def accumulator(dtype: Any) -> np.dtype:
    """Return the dtype in which sums over `dtype` are kept: float32 for half precision, `dtype` itself otherwise."""
    dtype = np.dtype(dtype)
    return np.dtype("float32") if is_float(dtype) and dtype.itemsize == 2 else dtype


def convert(x: jax.Array, dtype: Any) -> jax.Array:
    """Convert to `dtype` as C does: floats truncate toward zero, and wrap into small integers instead of saturating."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return x != 0
    if is_float(np.dtype(x.dtype)):
        if dtype.name in _SMALL:
            x = _cut(x, np.dtype("int32"))
        elif dtype.name == "uint32":
            x = _cut(x, np.dtype("int64"))
        elif dtype.kind == "i":
            x = _cut(x, dtype)
    return x.astype(dtype)


def _cut(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """Floats as integers of 32 or 64 bits; what these cannot hold becomes the least one, as on x86."""
    x = x.astype(accumulator(x.dtype))
    least = float(np.iinfo(dtype).min)
    return jnp.where((x >= least) & (x < -least), x, jnp.asarray(least, x.dtype)).astype(dtype)


def through_float(fn: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """Let a floating-point function accept integers and bools: compute in floating point, convert back."""

    def run(x: jax.Array) -> jax.Array:
        dtype = np.dtype(x.dtype)
        if is_float(dtype):
            return fn(x)
        return convert(fn(x.astype(jnp.float64)), dtype)

    return run


def widened(fn: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """Let a floating-point function compute half precision in float32, converting the result back."""
    return lambda x: fn(x.astype(accumulator(x.dtype))).astype(x.dtype)


def typed_scalar(name: str, data: jax.Array, scalar: float) -> np.ndarray:
    """Return `scalar` in the dtype of `data`, truncated and wrapped for integers.

    Raises:
        ArgumentError: an infinite or undefined scalar meets an integer array.
    """
    dtype = np.dtype(data.dtype)
    if is_float(dtype):
        with np.errstate(over="ignore"):  # what is beyond the type is infinite in it
            return np.asarray(scalar).astype(dtype)
    if not np.isfinite(scalar):
        raise ArgumentError(f"{name}: scalar={scalar}: no {dtype.name} has this value; cast the array with .astype()")
    if dtype == np.bool_:
        return np.asarray(scalar != 0)
    bits = int(scalar) % (1 << 8 * dtype.itemsize)
    return np.asarray(bits, f"uint{8 * dtype.itemsize}").astype(dtype)


def need_float(name: str, **inputs: jax.Array) -> None:
    """Raise `ArgumentError` for an input that is not floating-point."""
    for n, x in inputs.items():
        if not is_float(np.dtype(x.dtype)):
            raise ArgumentError(f"{name}: {n} is {x.dtype}: expected floating-point; cast with .astype()")


def merge_shapes(name: str, shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the common shape of inputs that must agree; a 0 is an unknown dimension, `None` means none is known.

    Raises:
        ArgumentError: two known dimensions, or two numbers of dimensions, differ.
    """
    merged: tuple[int, ...] | None = None
    for shape in shapes.values():
        if merged is None:
            merged = tuple(shape)
        elif len(shape) != len(merged) or any(a != b and a and b for a, b in zip(shape, merged, strict=True)):
            shown = ", ".join(f"{n}: {list(s)}" for n, s in shapes.items())
            raise ArgumentError(f"{name}: inputs have different shapes ({shown}); use a broadcast_* operator")
        else:
            merged = tuple(a or b for a, b in zip(shape, merged, strict=True))
    return merged


def same_shape(name: str, *inputs: str) -> Callable[..., dict[str, tuple[int, ...]]]:
    """Return a `complete=` function that gives the named inputs one common shape."""

    def complete(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        known = {n: shapes[n] for n in inputs if shapes.get(n) is not None}
        merged = merge_shapes(name, known)
        return {} if merged is None else dict.fromkeys(inputs, merged)

    return complete


def reduced_axes(axis: tuple[int, ...] | None, ndim: int, exclude: bool = False) -> tuple[int, ...]:
    """Return the axes to reduce as sorted non-negative numbers; `None` and `()` mean all, `exclude` the complement.

    Raises:
        ArgumentError: an axis is out of range or named twice.
    """
    if not axis:
        return tuple(range(ndim))
    named = many_axes(axis, ndim)
    return tuple(a for a in range(ndim) if (a in named) != exclude)


def reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """Return the shape after reducing `axes`; reducing all without `keepdims` gives (1,), never ()."""
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes) or (1,)


def typed_body(fn: Any, doc: str, inputs: Mapping[str, Any], params: Mapping[str, tuple[Any, Any]]) -> Any:
    """Give a keyword-only body of a family the docstring and the signature that the op schema reads.

    inputs: name -> role, in order. params: name -> (type, default).
    """
    kind = inspect.Parameter
    arguments = [kind(n, kind.POSITIONAL_OR_KEYWORD, annotation=t) for n, t in inputs.items()]
    arguments += [kind(n, kind.KEYWORD_ONLY, annotation=t, default=v) for n, (t, v) in params.items()]
    fn.__doc__ = doc
    fn.__signature__ = inspect.Signature(arguments)
    fn.__annotations__ = {a.name: a.annotation for a in arguments}
    return fn


def signature_of(base: Callable[..., Any], *without: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a body the signature of another one that the op schema reads, but for the arguments `without`.

    What the body declares itself replaces arguments of these names, or follows them; without an annotation it is as in
    `base`. All others come in `**given`.
    """

    def sign(fn: Callable[..., Any]) -> Callable[..., Any]:
        hints = typing.get_type_hints(base, include_extras=True)
        arguments = {n: p for n, p in inspect.signature(base).parameters.items() if n not in without}
        own = [p for p in inspect.signature(fn).parameters.values() if p.kind is not p.VAR_KEYWORD]
        arguments |= {p.name: p for p in own if p.annotation is not p.empty}
        hints |= typing.get_type_hints(fn, include_extras=True)
        ordered = sorted(arguments.values(), key=lambda p: p.kind)
        signed: Any = fn
        signed.__signature__ = inspect.Signature([p.replace(annotation=hints[p.name]) for p in ordered])
        signed.__annotations__ = {n: hints[n] for n in arguments}
        return fn

    return sign
