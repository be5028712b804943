"""Sums of row_sparse arrays over processes: only rows that somebody has travel."""

from __future__ import annotations

import zlib

import numpy as np

from ..core.errors import ArgumentError
from ..ndarray import array
from ..sparse import RowSparseNDArray, row_sparse_array
from .group import ProcessGroup


def all_reduce_rows(a: object, factor: float, group: ProcessGroup, what: str, name: str = "") -> RowSparseNDArray:
    """Return the sum over a group of row_sparse arrays of one shape, times `factor`; rows are added in rank order.

    Raises:
        ArgumentError: not row_sparse, or shapes, dtypes or names differ. MXNetError: a member is gone.
    """
    if not isinstance(a, RowSparseNDArray):
        raise ArgumentError(
            f"{what}: a {getattr(a, 'stype', type(a).__name__)} array; expected dense or row_sparse ones"
        )
    values, rows = a.data.asnumpy(), a.indices.asnumpy().astype(np.int64)
    if group.size == 1:
        parts, places = [values], [rows]
    else:
        parts = group.run_in_order(lambda: group.all_gather(np.ascontiguousarray(values), False, what))
        marked = np.concatenate([[zlib.crc32(name.encode())], rows])  # the name travels with the rows
        places = group.run_in_order(lambda: group.all_gather(marked, False, what))
        for rank, other in zip(group.ranks, places, strict=True):
            if other[0] != marked[0]:
                raise ArgumentError(f"{what}: the processes disagree: process {rank} sums something else than {name!r}")
        places = [p[1:] for p in places]
    found, position = np.unique(np.concatenate(places), return_inverse=True)
    total = np.zeros((len(found), *values.shape[1:]), values.dtype)
    begin = 0
    for part in parts:
        total[position[begin : begin + len(part)]] += part  # a process names each row once
        begin += len(part)
    if factor != 1:
        total = (total * factor).astype(values.dtype)
    pieces = (array(total, dtype=total.dtype, ctx=a.context), array(found, dtype=np.int64, ctx=a.context))
    return row_sparse_array(pieces, shape=a.shape, ctx=a.context, dtype=values.dtype)


__all__ = ["all_reduce_rows"]
