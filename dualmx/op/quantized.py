"""Scales of quantized values: what one step of an integer stands for, and rounding to it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..core.errors import ArgumentError, DtypeError

HALF_INT8, HALF_UINT8, HALF_INT32 = 127.5, 255.5, 2147483647.5
TOP_INT32 = 2147483648.0


def single(op: str, **ranges: jax.Array) -> tuple[jax.Array, ...]:
    """The ends of ranges as float32 of shape (1,); `ArgumentError` for other shapes."""
    for name, value in ranges.items():
        if value.shape not in ((1,), ()):
            raise ArgumentError(f"{op}: {name} has shape {value.shape}: expected (1,), one number")
    return tuple(v.reshape(1).astype(jnp.float32) for v in ranges.values())


def span(low: jax.Array, high: jax.Array) -> jax.Array:
    """The larger absolute value of two thresholds."""
    return jnp.maximum(jnp.abs(low), jnp.abs(high))


def round_to(x: jax.Array, dtype: Any) -> jax.Array:
    """Round to nearest, halves to even, and saturate to the integer type."""
    info = jnp.iinfo(dtype)
    return jnp.clip(jnp.round(x), float(info.min), float(info.max)).astype(dtype)


def eight_bits(op: str, name: str, data: jax.Array) -> None:
    """Raise `ArgumentError` unless `data` is int8 or uint8."""
    if data.dtype not in (jnp.int8, jnp.uint8):
        raise DtypeError(f"{op}: {name} has dtype {data.dtype}: expected int8 or uint8")


def half(data: jax.Array) -> float:
    """The number of steps between 0 and the threshold when values are rescaled."""
    return HALF_UINT8 if data.dtype == jnp.uint8 else HALF_INT8


def steps(data: jax.Array) -> int:
    """The number of steps between 0 and the threshold when values are multiplied."""
    return 255 if data.dtype == jnp.uint8 else 127


def product_range(a: jax.Array, a_top: jax.Array, b: jax.Array, b_top: jax.Array) -> jax.Array:
    """Largest real value of 32-bit sums of products of quantized values."""
    return a_top / steps(a) * (b_top / steps(b)) * TOP_INT32
