"""Random sparse arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.context import Context
from ..core.errors import ArgumentError
from ..sparse import creation
from .arrays import assign_each, default_dtype


def rand_sparse_ndarray(
    shape: Sequence[int], stype: str, density: float | None = None, dtype: Any = None,
    distribution: str | None = None, data_init: float | None = None, rsp_indices: Any = None,
    modifier_func: Callable[[float], float] | None = None, shuffle_csr_indices: bool = False,
    ctx: Context | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Return a random sparse array and its parts.

    Args:
        shape: its shape.
        stype: `"row_sparse"` or `"csr"`.
        density: share of rows or of elements that are stored; random by default.
        dtype: element type, float32 by default.
        distribution: `"uniform"` (default) or, for csr, `"powerlaw"`: twice as many elements in each row.
        data_init: value of all elements, instead of random ones.
        rsp_indices: which rows are stored.
        modifier_func: applied to every stored element.
        shuffle_csr_indices: shuffle the columns within the rows of a csr array.
        ctx: where to put it.

    Returns:
        The array, and (values, indices) or (indptr, indices, values).

    Raises:
        ArgumentError: another storage type or distribution.
    """
    dtype = default_dtype() if dtype is None else dtype
    density = float(np.random.rand()) if density is None else density
    if not 0 <= density <= 1:
        raise ArgumentError(f"rand_sparse_ndarray: density={density}: expected 0 to 1")
    if distribution not in (None, "uniform", "powerlaw"):
        raise ArgumentError(f"rand_sparse_ndarray: distribution={distribution!r}: expected uniform or powerlaw")
    shape = tuple(shape)
    if stype == "row_sparse":
        rows = np.flatnonzero(np.random.rand(shape[0]) < density) if rsp_indices is None else np.array(rsp_indices)
        values = _filled((len(rows), *shape[1:]), data_init, modifier_func).astype(dtype)
        if not len(rows):
            return creation.zeros("row_sparse", shape, ctx=ctx, dtype=dtype), (np.array([]), np.array([]))
        made = creation.row_sparse_array((values, rows), shape=shape, ctx=ctx, dtype=dtype)
        return made, (values, rows)
    if stype != "csr" or len(shape) != 2:
        raise ArgumentError(
            f"rand_sparse_ndarray: stype={stype!r}, shape={shape}: expected row_sparse, or csr of 2 axes"
        )
    if distribution == "powerlaw":
        counts = np.minimum(2.0 ** np.arange(shape[0]), shape[1])
        mask = np.arange(shape[1]) < counts[:, None]
        mask &= np.cumsum(mask).reshape(shape) <= density * mask.size
    else:
        mask = np.random.rand(*shape) < density
    dense = np.where(mask, _filled(shape, data_init, modifier_func), 0).astype(dtype)
    made = creation.csr_matrix(dense, shape=shape, ctx=ctx, dtype=dtype)
    if shuffle_csr_indices:
        made = shuffle_csr_column_indices(made)
    return made, (made.indptr, made.indices, made.data)


def _filled(shape: tuple[int, ...], value: float | None, change: Callable[[float], float] | None) -> np.ndarray:
    values = np.random.uniform(0.1, 1, shape) if value is None else np.full(shape, float(value))
    return values if change is None else assign_each(values, change)


def shuffle_csr_column_indices(csr: Any) -> Any:
    """Return the same csr array with the columns of every row in random order."""
    pointer, columns, values = (a.asnumpy() for a in (csr.indptr, csr.indices, csr.data))
    order = np.concatenate([
        np.random.permutation(np.arange(a, b)) for a, b in zip(pointer[:-1], pointer[1:], strict=True)
    ] or [np.arange(0)]).astype(int)  # fmt: skip
    return creation.csr_matrix((values[order], columns[order], pointer), shape=csr.shape, dtype=csr.dtype)


def create_sparse_array(
    shape: Sequence[int], stype: str, data_init: float | None = None, rsp_indices: Any = None, dtype: Any = None,
    modifier_func: Callable[[float], float] | None = None, density: float = 0.5, shuffle_csr_indices: bool = False,
) -> Any:  # fmt: skip
    """Return a random sparse array; arguments as for `rand_sparse_ndarray`."""
    return rand_sparse_ndarray(
        shape, stype, density, dtype, None, data_init, rsp_indices, modifier_func, shuffle_csr_indices
    )[0]


def create_sparse_array_zd(
    shape: Sequence[int], stype: str, density: float, data_init: float | None = None, rsp_indices: Any = None,
    dtype: Any = None, modifier_func: Callable[[float], float] | None = None, shuffle_csr_indices: bool = False,
) -> Any:  # fmt: skip
    """Like `create_sparse_array`, storing nothing where `density` is 0."""
    if stype == "row_sparse" and density == 0 and rsp_indices is not None and not len(rsp_indices):
        rsp_indices = None
    return create_sparse_array(shape, stype, data_init, rsp_indices, dtype, modifier_func, density, shuffle_csr_indices)
