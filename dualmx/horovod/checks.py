"""Arguments of exchanges."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray import NDArray
from .process_sets import ProcessSet
from .starting import Adasum, Average, Max, Min, Product, Sum

_OPS = (Average, Sum, Adasum, Min, Max, Product)


def reduce_op_of(what: str, op: Any, average: Any) -> str:
    """Return the operation of a call, which older scripts choose by `average`.

    Raises:
        ArgumentError: both, or an unknown one.
    """
    if average is not None:
        if op is not None:
            raise ArgumentError(f"hvd.{what}: average and op: expected one of them")
        return Average if average else Sum
    if op is None:
        return Average
    if op not in _OPS:
        raise ArgumentError(f"hvd.{what}: op={op!r}: expected Average, Sum, Min, Max, Product or Adasum of hvd")
    return op


def as_list(what: str, tensors: Any) -> list[NDArray]:
    """Return several arrays as a list.

    Raises:
        ArgumentTypeError: something else.
    """
    if not isinstance(tensors, (list, tuple)):
        raise ArgumentTypeError(f"hvd.{what}: tensors of type {type(tensors).__name__}: expected a list of NDArrays")
    return list(tensors)


def root_of(what: str, root_rank: int, process_set: ProcessSet) -> int:
    """Return the number of a process in its set.

    Raises:
        ArgumentError: it is not in it.
    """
    ranks = process_set.ranks
    if root_rank not in ranks:
        raise ArgumentError(f"hvd.{what}: root_rank={root_rank!r}: expected one of {ranks}")
    return ranks.index(root_rank)


def as_splits(splits: Any) -> list[int] | None:
    """Return rows for each process as a list.

    Raises:
        ArgumentError: not integers.
    """
    if splits is None:
        return None
    counts = splits.asnumpy() if isinstance(splits, NDArray) else np.asarray(splits)
    if counts.dtype.kind not in "iu" or counts.ndim != 1:
        raise ArgumentError(f"hvd.alltoall: splits={splits!r}: expected integers, one for each process")
    return counts.tolist()
