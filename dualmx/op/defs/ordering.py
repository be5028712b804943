"""Operators that order elements along an axis: topk, sort, argsort."""

from __future__ import annotations

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtypes import is_float
from ...core.errors import ArgumentError
from ..axes import one_axis
from ..registry import op
from ..schema import Tensor

IndexType = Literal["float32", "float16", "float64", "int32", "int64", "uint8"]


def _order(data: jax.Array, axis: int, k: int, ascending: bool) -> jax.Array:
    """Positions (int32) of the first `k` elements in order along `axis`; equal elements keep their order."""
    data = lax.stop_gradient(data)
    if k == data.shape[axis]:
        return jnp.argsort(data, axis, stable=True, descending=not ascending).astype(jnp.int32)
    if data.dtype == np.bool_:
        data = data.astype(jnp.uint8)
    if ascending:
        data = -data if is_float(np.dtype(data.dtype)) else ~data
    return jnp.moveaxis(lax.top_k(jnp.moveaxis(data, axis, -1), k)[1], -1, axis).astype(jnp.int32)


def _flat(data: jax.Array, axis: int | None) -> tuple[jax.Array, int]:
    return (data.reshape(-1), 0) if axis is None else (data, one_axis(axis, data.ndim))


def _pair(p: Any) -> int:
    return 2 if p.ret_typ == "both" else 1


@op(aliases=("_npx_topk",), outputs=_pair)
def topk(
    data: Tensor,
    *,
    axis: int | None = -1,
    k: int = 1,
    ret_typ: Literal["indices", "value", "both", "mask"] = "indices",
    is_ascend: bool = False,
    dtype: IndexType = "float32",
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """Find the `k` largest (`is_ascend`: smallest) elements along `axis`, of the flattened array without `axis`.

    `ret_typ`: `indices` their positions as `dtype`, `value` the elements, `both` values then positions, `mask` an
    array like `data` with 1 at the found elements and 0 elsewhere. Shapes: the length of `axis` becomes `k`; without
    axis (k,). `k` below 1 means all. Of equal elements the first come first.
    """
    source, at = _flat(data, axis)
    n = source.shape[at]
    if k > n:
        raise ArgumentError(f"k={k}: expected at most {n}, the length of axis {axis}")
    found = _order(source, at, k if k >= 1 else n, is_ascend)
    if ret_typ == "indices":
        return found.astype(dtype)
    if ret_typ == "mask":
        zeros = jnp.zeros(source.shape, data.dtype)
        return jnp.put_along_axis(zeros, found, jnp.ones((), data.dtype), at, inplace=False).reshape(data.shape)
    values = jnp.take_along_axis(source, found, at)
    return values if ret_typ == "value" else (values, found.astype(dtype))


@op(aliases=("_npi_sort",), output_names=("output0",))
def sort(data: Tensor, *, axis: int | None = -1, is_ascend: bool = True) -> jax.Array:
    """Sort along `axis`, or the flattened array without `axis`."""
    source, at = _flat(data, axis)
    return jnp.sort(source, at, stable=True, descending=not is_ascend)


@op(aliases=("_npi_argsort",))
def argsort(data: Tensor, *, axis: int | None = -1, is_ascend: bool = True, dtype: IndexType = "float32") -> jax.Array:
    """Positions, as `dtype`, that sort along `axis` (of the flattened array without `axis`); equal elements keep
    their order."""
    source, at = _flat(data, axis)
    return _order(source, at, source.shape[at], is_ascend).astype(dtype)
