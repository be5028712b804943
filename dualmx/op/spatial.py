"""Layouts, per-axis parameters and accumulation dtype of convolution and pooling."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from ..core.errors import ArgumentError

CHANNELS_FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
CHANNELS_LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}


def channels_last(op: str, layout: str | None, n: int) -> bool:
    """True if `layout` puts channels last; `ArgumentError` if it does not belong to `n` spatial axes."""
    if n not in CHANNELS_FIRST:
        raise ArgumentError(f"{op}: kernel has {n} axes: expected 1, 2 or 3")
    if layout in (None, CHANNELS_FIRST[n]):
        return False
    if layout != CHANNELS_LAST[n]:
        want = f"{CHANNELS_FIRST[n]} or {CHANNELS_LAST[n]}"
        raise ArgumentError(f"{op}: layout={layout!r}: expected {want} for {n} spatial axes")
    return True


def per_axis(op: str, name: str, value: Sequence[int], n: int, default: int, low: int) -> tuple[int, ...]:
    """Return `value` as `n` integers (`default` for each when empty), none below `low`."""
    if not value:
        return (default,) * n
    if len(value) != n or min(value) < low:
        raise ArgumentError(f"{op}: {name}={tuple(value)}: expected {n} integers >= {low}, one per kernel axis")
    return tuple(value)


def check_rank(op: str, shape: Sequence[int], n: int, why: str) -> None:
    """Raise `ArgumentError` unless `shape` is batch, channels and `n` spatial axes."""
    if len(shape) != n + 2:
        raise ArgumentError(f"{op}: {why} needs {n + 2}-d data, got shape {tuple(shape)}")


def check_float(op: str, data: jax.Array) -> None:
    """Raise `ArgumentError` unless `data` is of a floating type."""
    if not jnp.issubdtype(data.dtype, jnp.floating):
        raise ArgumentError(f"{op}: data has dtype {data.dtype}: expected a floating type; cast it with .astype()")


def check_shape(op: str, name: str, got: Sequence[int], want: Sequence[int], why: str) -> None:
    """Raise `ArgumentError` unless the input `name` has the shape `want`."""
    if tuple(got) != tuple(want):
        raise ArgumentError(f"{op}: {name} has shape {tuple(got)}: expected {tuple(want)} ({why})")


def is_half(x: jax.Array) -> bool:
    """True for 16-bit floats, whose sums are accumulated in float32."""
    return x.dtype.itemsize == 2 and jnp.issubdtype(x.dtype, jnp.floating)


def widen(x: jax.Array) -> jax.Array:
    """Return `x` in the type it is accumulated in: float32 for 16-bit floats, its own otherwise."""
    return x.astype(jnp.float32) if is_half(x) else x


def known(*dims: int) -> bool:
    """True if no dimension is 0, which stands for unknown during shape inference."""
    return all(d > 0 for d in dims)
