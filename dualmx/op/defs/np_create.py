"""NumPy's functions that make arrays from parameters alone, for graphs; arrays themselves are made on the host."""

from __future__ import annotations

from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from ...core.dtypes import arange_values
from ..registry import op
from ..schema import Count, DType, Ignored, OptDType, Shape, Tensor, to_dtype
from .window import constant

Ctx = Annotated[str, str, Ignored]
Type = Annotated[str, lambda v: to_dtype("float32" if v in (None, "None") else v)]


def _filled(name: str, value: float) -> None:
    def body(*, shape: Shape = (), ctx: Ctx = "", dtype: Type = "float32") -> jax.Array:
        return jnp.full(shape, constant(value, np.dtype(dtype)))

    body.__doc__ = f"An array of `shape`, () and lengths of 0 included, filled with {value:g}."
    op(name=name)(body)


_filled("_npi_zeros", 0.0)
_filled("_npi_ones", 1.0)


@op()
def _npi_full_like(a: Tensor, *, fill_value: float, ctx: Ctx = "", dtype: OptDType = None) -> jax.Array:
    """An array of the shape and, unless given, the dtype of `a`, filled with `fill_value`."""
    return jnp.full(a.shape, constant(fill_value, np.dtype(dtype or a.dtype)))


def _from_host(values: Any, dtype: str) -> jax.Array:
    return jnp.asarray(values.astype(np.dtype(dtype)))


@op()
def _npi_arange(
    *,
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: Count = 1,
    infer_range: bool = False,
    ctx: Ctx = "",
    dtype: Type = "float32",
) -> jax.Array:
    """`start, start + step, …` below `stop`, each value `repeat` times; without `stop` from 0 below `start`."""
    low, high = (0.0, start) if stop is None else (start, stop)
    return _from_host(np.repeat(arange_values(low, high, step, dtype), repeat), dtype)


@op()
def _npi_eye(*, N: Count, M: int | None = None, k: int = 0, ctx: Ctx = "", dtype: Type = "float32") -> jax.Array:
    """A matrix with ones on diagonal `k`; square without `M`."""
    return _from_host(np.eye(N, M, k), dtype)


@op()
def _npi_identity(*, shape: Shape = (), ctx: Ctx = "", dtype: Type = "float32") -> jax.Array:
    """The identity matrix of `shape` (n, n)."""
    return _from_host(np.eye(*shape), dtype)


@op()
def _npi_indices(*, dimensions: Shape, dtype: DType = "int32", ctx: Ctx = "") -> jax.Array:
    """The coordinates of every element of an array of these dimensions: (k, d1, …, dk)."""
    return _from_host(np.indices(dimensions), dtype)


@op()
def _npi_logspace(
    *,
    start: float,
    stop: float,
    num: Count,
    endpoint: bool = True,
    base: float = 10.0,
    ctx: Ctx = "",
    dtype: Type = "float32",
) -> jax.Array:
    """`base` to the power of `num` evenly spaced values from `start` to `stop`."""
    return _from_host(np.logspace(start, stop, num, endpoint, base), dtype)


def _window(name: str) -> None:
    def body(*, M: int = 0, ctx: Ctx = "", dtype: Type = "float32") -> jax.Array:
        return _from_host(getattr(np, name)(M), dtype)

    body.__doc__ = f"The {name} window of `M` points, which falls off towards both ends."
    op(name=f"_npi_{name}")(body)


for _name in ("hanning", "hamming", "blackman"):
    _window(_name)
