"""Create sparse arrays from components, dense arrays and SciPy matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.argcheck import DType, Shape
from ..core.argcheck import context as as_context
from ..core.context import Context, current_context
from ..core.dtypes import as_dtype, as_numbers
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ..ndarray import creation as dense
from ..ndarray.handle import is_tracked
from ..ndarray.ndarray import NDArray
from ..ndarray.recorder import local
from ..ndarray.serialize import SparseBody
from .base import STYPES, BaseSparseNDArray
from .csr import CSRNDArray, indptr_of
from .row_sparse import RowSparseNDArray

CLASSES: dict[str, type[CSRNDArray] | type[RowSparseNDArray]] = {
    "csr": CSRNDArray,
    "row_sparse": RowSparseNDArray,
}


def _is_scipy(value: Any) -> bool:
    return type(value).__module__.startswith("scipy.sparse")


def _host(value: Any, dtype: Any = None) -> np.ndarray:
    """Return pieces as NumPy; `dtype` None keeps the type of arrays and takes float32 for everything else."""
    if isinstance(value, NDArray):
        value = value.asnumpy()
    if dtype is None:
        dtype = value.dtype if hasattr(value, "dtype") else np.float32
    try:
        return np.array(as_numbers(np.asarray(value), dtype))
    except (TypeError, ValueError) as e:
        raise ArgumentTypeError(f"source_array of type {type(value).__name__} is not array-like: {e}") from None


def _indices(value: Any) -> np.ndarray:
    return _host(value, np.int64).reshape(-1)


def _checked_shape(what: str, shape: Any, found: tuple[int, ...]) -> None:
    if shape is not None and tuple(shape) != tuple(found):
        raise ArgumentError(f"{what}: shape={tuple(shape)}: the source has shape {tuple(found)}")


def _is_shape(arg: tuple[Any, ...]) -> bool:
    return all(isinstance(n, (int, np.integer)) for n in arg)


def csr_matrix(
    arg1: Any, shape: Shape | None = None, ctx: Context | None = None, dtype: DType | None = None
) -> CSRNDArray:
    """Return a csr matrix.

    Args:
        arg1: a shape (M, N); pieces `(data, indices, indptr)`; pieces `(data, (row, col))`, equal places being summed;
            a SciPy or csr matrix; or anything dense of two axes.
        shape: (M, N); by default what the pieces need.
        ctx: the current context by default.
        dtype: by default that of an array, float32 for everything else.

    Raises:
        ArgumentError: another number of pieces, or another shape than `shape`. ArgumentTypeError: not array-like.

    Example:
        >>> import dualmx as mx
        >>> mx.nd.sparse.csr_matrix(([7, 8], [2, 0], [0, 1, 2]), shape=(2, 3)).asnumpy().tolist()
        [[0.0, 0.0, 7.0], [8.0, 0.0, 0.0]]
    """
    if isinstance(arg1, tuple):
        if len(arg1) == 2:
            if _is_shape(arg1):
                _checked_shape("csr_matrix", shape, arg1)
                return zeros("csr", arg1, ctx, dtype)
            return _of_coordinates(arg1, shape, ctx, dtype)
        if len(arg1) == 3:
            return _of_pieces(arg1, shape, ctx, dtype)
        raise ArgumentError(f"csr_matrix: a tuple of {len(arg1)}: expected (M, N), (data, indices, indptr) or "
                            f"(data, (row, col))")  # fmt: skip
    if isinstance(arg1, CSRNDArray):
        _checked_shape("csr_matrix", shape, arg1.shape)
        return array(arg1, ctx, dtype)
    if isinstance(arg1, RowSparseNDArray):
        raise ArgumentError("csr_matrix: cannot be made of a row_sparse array; convert it with tostype('default')")
    if _is_scipy(arg1):
        _checked_shape("csr_matrix", shape, arg1.shape)
        return _of_scipy(arg1.tocsr(), ctx, dtype)
    values = _host(arg1, dtype)
    if values.ndim != 2:
        raise ArgumentError(f"csr_matrix: a csr array has 2 axes; the source has shape {values.shape}")
    _checked_shape("csr_matrix", shape, values.shape)
    return CSRNDArray.of_numpy(values, current_context() if ctx is None else as_context(ctx))


def _of_pieces(arg: tuple[Any, ...], shape: Any, ctx: Any, dtype: Any) -> CSRNDArray:
    data, columns, pointer = _host(arg[0], dtype), _indices(arg[1]), _indices(arg[2])
    if data.ndim != 1 or len(data) != len(columns) or not len(pointer):
        raise ArgumentError(
            f"csr_matrix: data of shape {data.shape}, indices {columns.shape}, indptr {pointer.shape}: expected "
            f"(nnz,), (nnz,) and (rows + 1,)"
        )
    if shape is None:
        shape = (len(pointer) - 1, int(columns.max()) + 1 if len(columns) else 0)
    if len(shape) != 2:
        raise ArgumentError(f"csr_matrix: shape={tuple(shape)}: expected two lengths")
    return CSRNDArray.of_host(tuple(shape), data, columns, pointer, ctx)


def _of_coordinates(arg: tuple[Any, ...], shape: Any, ctx: Any, dtype: Any) -> CSRNDArray:
    if not isinstance(arg[1], (tuple, list)) or len(arg[1]) != 2:
        raise ArgumentError("csr_matrix: a tuple of 2: expected (M, N) or (data, (row, col))")
    # Pieces in coordinates come from SciPy in MXNet, which keeps the type of plain numbers.
    data = _host(arg[0], dtype if dtype is not None else np.asarray(_plain(arg[0])).dtype)
    lines, columns = _indices(arg[1][0]), _indices(arg[1][1])
    if not data.shape == lines.shape == columns.shape:
        raise ArgumentError(
            f"csr_matrix: data of shape {data.shape}, row {lines.shape} and col {columns.shape} must be equally long"
        )
    if shape is None:
        shape = tuple(int(a.max()) + 1 if len(a) else 0 for a in (lines, columns))
    if len(data) and (lines.min() < 0 or lines.max() >= shape[0] or columns.min() < 0 or columns.max() >= shape[1]):
        raise ArgumentError(f"csr_matrix: row or col leaves the shape {tuple(shape)}")
    places, at = np.unique(lines * shape[1] + columns, return_inverse=True)
    summed = np.zeros(len(places), data.dtype)
    np.add.at(summed, at.reshape(-1), data)
    pointer = indptr_of(places // max(shape[1], 1), shape[0])
    return CSRNDArray.of_host(tuple(shape), summed, places % max(shape[1], 1), pointer, ctx)


def _plain(value: Any) -> Any:
    return value.asnumpy() if isinstance(value, NDArray) else value


def _of_scipy(matrix: Any, ctx: Any, dtype: Any) -> CSRNDArray:
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    data = _host(matrix.data, dtype)
    return CSRNDArray.of_host(matrix.shape, data, matrix.indices, matrix.indptr, ctx)


def row_sparse_array(
    arg1: Any, shape: Shape | None = None, ctx: Context | None = None, dtype: DType | None = None
) -> RowSparseNDArray:
    """Return a row_sparse array.

    Args:
        arg1: a shape; pieces `(data, indices)` with data of shape (k, …) and the numbers of these rows; a row_sparse
            array; or anything dense.
        shape: by default what the pieces need.
        ctx: the current context by default.
        dtype: by default that of an array, float32 for everything else.

    Raises:
        ArgumentError: pieces that do not fit, or another shape than `shape`. ArgumentTypeError: not array-like.

    Example:
        >>> import dualmx as mx
        >>> mx.nd.sparse.row_sparse_array(([[1, 2]], [1]), shape=(3, 2)).asnumpy().tolist()
        [[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]]
    """
    if isinstance(arg1, tuple):
        if len(arg1) < 2:
            raise ArgumentError(f"row_sparse_array: a tuple of {len(arg1)}: expected a shape or (data, indices)")
        if _is_shape(arg1):
            _checked_shape("row_sparse_array", shape, arg1)
            return zeros("row_sparse", arg1, ctx, dtype)
        if len(arg1) > 2:
            raise ArgumentError(f"row_sparse_array: a tuple of {len(arg1)}: expected a shape or (data, indices)")
        rows, ids = _host(arg1[0], dtype), _indices(arg1[1])
        least = (int(ids.max()) + 1 if len(ids) else 0, *rows.shape[1:])
        lengths = least if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
        if rows.shape != (len(ids), *lengths[1:]):
            raise ArgumentError(
                f"row_sparse_array: data of shape {rows.shape} with {len(ids)} indices does not fit the shape "
                f"{lengths}; expected {(len(ids), *lengths[1:])}"
            )
        return RowSparseNDArray.from_numpy_parts(lengths, rows, ids, ctx)
    if isinstance(arg1, RowSparseNDArray):
        _checked_shape("row_sparse_array", shape, arg1.shape)
        return array(arg1, ctx, dtype)
    if isinstance(arg1, CSRNDArray):
        raise ArgumentError("row_sparse_array: cannot be made of a csr array; convert it with tostype('default')")
    values = _host(arg1, dtype)
    if not values.ndim:
        raise ArgumentTypeError(f"row_sparse_array: {arg1!r}: expected an array")
    _checked_shape("row_sparse_array", shape, values.shape)
    return RowSparseNDArray.of_numpy(values, current_context() if ctx is None else as_context(ctx))


def zeros(stype: str, shape: Shape, ctx: Context | None = None, dtype: DType | None = None, **kwargs: Any) -> Any:
    """Return an array of zeros in the storage type `stype`, which stores nothing if that is a sparse one.

    Raises:
        ArgumentError: an unknown storage type.

    Example:
        >>> import dualmx as mx
        >>> mx.nd.sparse.zeros("csr", (2, 3)).nnz
        0
    """
    if stype == "default":
        return dense.zeros(shape, ctx, dtype, **kwargs)
    if stype not in STYPES:
        raise ArgumentError(f"zeros: stype={stype!r}: expected one of {', '.join(STYPES)}")
    lengths = (shape,) if isinstance(shape, (int, np.integer)) else shape
    shape = tuple(int(n) for n in lengths)
    kind = as_dtype(np.float32 if dtype is None else dtype)
    if stype == "csr":
        pointer = np.zeros((shape[0] if shape else 0) + 1, np.int32)
        return CSRNDArray.of_host(shape, np.zeros(0, kind), np.zeros(0), pointer, ctx)
    return RowSparseNDArray.from_numpy_parts(shape, np.zeros((0, *shape[1:]), kind), np.zeros(0), ctx)


def empty(stype: str, shape: Shape, ctx: Context | None = None, dtype: DType | None = None) -> Any:
    """Return an array without stored elements in the storage type `stype`."""
    return zeros(stype, shape, ctx, dtype)


def array(source_array: Any, ctx: Context | None = None, dtype: DType | None = None) -> Any:
    """Return a sparse array with the values of a sparse array or a SciPy csr matrix, on the current context by default.

    Raises:
        ArgumentError: a dense source: use `mx.nd.array`, or `tostype` for an NDArray.

    Example:
        >>> import dualmx as mx, numpy as np, scipy.sparse
        >>> mx.nd.sparse.array(scipy.sparse.csr_matrix(np.eye(2))).stype
        'csr'
    """
    if isinstance(source_array, BaseSparseNDArray):
        made = source_array.to_context(current_context() if ctx is None else as_context(ctx))
        return made if dtype is None else made.astype(dtype)
    if isinstance(source_array, NDArray):
        raise ArgumentError("sparse.array: the source is dense; convert it with tostype('csr') or ('row_sparse')")
    if _is_scipy(source_array):
        if source_array.format != "csr":
            raise ArgumentError(f"sparse.array: a SciPy {source_array.format} matrix: expected csr; use its tocsr()")
        return _of_scipy(source_array, ctx, dtype)
    raise ArgumentError(
        f"sparse.array: source_array of type {type(source_array).__name__}: use mx.nd.array for dense values"
    )


def of_body(body: SparseBody) -> NDArray:
    """Return the sparse array that a file holds."""
    return CLASSES[body.stype].of_body(body)


def of_array(source: NDArray, stype: str) -> NDArray:
    """Return a dense array in a sparse storage type, linked to the tape if it is.

    Raises:
        MXNetError: an unknown storage type. ArgumentError: csr for other than two axes.
    """
    if stype not in CLASSES:
        raise MXNetError(f"cast_storage: stype={stype!r}: expected one of {', '.join(STYPES)}")
    if stype == "csr" and source.ndim != 2:
        raise ArgumentError(f"cast_storage: a csr array has 2 axes; got an array of shape {source.shape}")
    cls = CLASSES[stype]
    if local.recording and is_tracked(source):
        # A step of its own: standing for a variable itself, the result would be a second one with the same gradient.
        return cls.of_dense(source.copy())
    return cls.of_numpy(source.asnumpy(), source.context)


def with_storage(table: NDArray, stype: str) -> NDArray:
    """Return a sparse array that is held in the dense `table`, and changes with it."""
    return CLASSES[stype].of_dense(table)


def rows_of_table(full: NDArray, row_id: NDArray) -> NDArray:
    """Return the rows `row_id`, each once, of a row_sparse array that is held densely; lookups in it reach `full`."""
    assert isinstance(full, RowSparseNDArray) and full.dense is not None
    ids = np.unique(row_id.asnumpy().reshape(-1).astype(np.int64))
    if len(ids) and (ids[0] < 0 or ids[-1] >= full.shape[0]):
        wrong = ids[0] if ids[0] < 0 else ids[-1]
        raise ArgumentError(f"row_sparse_data: row_id={wrong}: expected rows from 0 to {full.shape[0] - 1}")
    made = full.retain(dense.array_from_numpy(ids, full.context))
    made.table = full.dense
    return made


def of_source(source: Any, ctx: Context | None, dtype: Any) -> NDArray | None:
    """Return what `mx.nd.array` makes of a sparse source, None for a dense one."""
    if isinstance(source, BaseSparseNDArray):
        return array(source, ctx, dtype)
    return _of_scipy(source.tocsr(), ctx, dtype) if _is_scipy(source) else None


__all__ = [
    "CLASSES", "array", "csr_matrix", "empty", "of_array", "of_body", "of_source", "row_sparse_array", "rows_of_table",
    "with_storage", "zeros",
]  # fmt: skip
