"""Sparse arrays: `CSRNDArray`, `RowSparseNDArray` and the kernels for them."""

from ..ndarray.storage import register_storage
from . import creation, graph_kernels, kernels, operators  # noqa: F401
from .base import STYPES, BaseSparseNDArray, NotSupportedForSparseNDArray
from .creation import array, csr_matrix, empty, row_sparse_array, rows_of_table, with_storage, zeros
from .csr import CSRNDArray
from .dispatch import (
    RecordingExecutor,
    as_stype,
    invoke,
    invoke_out,
    is_sparse,
    needs_stepwise,
    run_program_stepwise,
    store,
)
from .lazy_update import write_rows
from .row_sparse import RowSparseNDArray

register_storage(creation)

__all__ = [
    "STYPES", "BaseSparseNDArray", "CSRNDArray", "NotSupportedForSparseNDArray", "RecordingExecutor",
    "RowSparseNDArray",
    "array", "as_stype", "csr_matrix", "empty", "invoke", "invoke_out", "is_sparse",
    "needs_stepwise", "row_sparse_array", "rows_of_table", "run_program_stepwise", "store", "with_storage",
    "write_rows", "zeros",
]  # fmt: skip
