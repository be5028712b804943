"""`mx.nd.sparse`: classes and functions that are not operators."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..ndarray.array import NDArray
from ..sparse import (
    BaseSparseNDArray,
    CSRNDArray,
    NotSupportedForSparseNDArray,
    RowSparseNDArray,
    array,
    csr_matrix,
    empty,
    row_sparse_array,
    zeros,
)

OWN = (
    BaseSparseNDArray, CSRNDArray, NDArray, NotSupportedForSparseNDArray, RowSparseNDArray, array, csr_matrix, empty,
    row_sparse_array, zeros,
)  # fmt: skip


def populate(top: ModuleType) -> None:
    """Put the functions into the namespace of sparse arrays."""
    room = top.sparse
    for made in OWN:
        setattr(room, made.__name__, made)
    room.integer_types = (int, np.int32, np.int64)
    room.numeric_types = (float, int, np.generic)
    room.__all__ = [made.__name__ for made in OWN if made is not NDArray]
