"""Exchanges of arrays by Horovod's names and arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import parallel
from ..core.errors import ArgumentError, ArgumentTypeError
from ..namespace import nd
from ..ndarray import NDArray
from .basics import require
from .process_sets import ProcessSet, global_process_set, group_of

Average, Sum, Adasum, Min, Max, Product = "average", "sum", "adasum", "min", "max", "product"
_OPS = (Average, Sum, Adasum, Min, Max, Product)


def _chosen(what: str, op: Any, average: Any) -> str:
    """The operation of a call, which older scripts choose by `average`."""
    if average is not None:
        if op is not None:
            raise ArgumentError(f"hvd.{what}: average and op: expected one of them")
        return Average if average else Sum
    if op is None:
        return Average
    if op not in _OPS:
        raise ArgumentError(f"hvd.{what}: op={op!r}: expected Average, Sum, Min, Max, Product or Adasum of hvd")
    return op


def _arrays(what: str, tensors: Any) -> list[NDArray]:
    if not isinstance(tensors, (list, tuple)):
        raise ArgumentTypeError(f"hvd.{what}: tensors of type {type(tensors).__name__}: expected a list of NDArrays")
    return list(tensors)


def _reduced(
    what: str, tensors: list[Any], op: str, before: float, after: float, process_set: ProcessSet
) -> list[NDArray]:
    require(what)
    group = group_of(what, process_set)
    if op == Adasum:
        return [_adasum(what, t, before, after, group) for t in tensors]
    return parallel.all_reduce(tensors, op, before, after, group)


def _adasum(what: str, tensor: NDArray, before: float, after: float, group: parallel.Group | None) -> NDArray:
    """Combine by a tree of pairs: (1 - a·b / 2a·a)·a + (1 - a·b / 2b·b)·b (Maleki et al. 2020)."""
    count = parallel.size(group)
    if count & (count - 1):
        raise ArgumentError(f"hvd.{what}: op=Adasum with {count} processes: expected a power of 2")
    wide = tensor.asnumpy().astype(np.float64) * before
    parts = list(parallel.all_gather(nd.array(wide, dtype="float64"), group=group).asnumpy())
    while len(parts) > 1:
        parts = [_pair(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return nd.array(parts[0] * after, ctx=tensor.context, dtype=tensor.dtype)


def _pair(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    dot, of_a, of_b = (float(np.vdot(x, y)) for x, y in ((a, b), (a, a), (b, b)))
    return (1 - dot / (2 * of_a) if of_a else 1) * a + (1 - dot / (2 * of_b) if of_b else 1) * b


def allreduce(
    tensor: NDArray, average: bool | None = None, name: str | None = None, priority: int = 0,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
    op: Any = None,
) -> NDArray:  # fmt: skip
    """Return the mean of an array over all processes, or what `op` makes of it.

    Args:
        tensor: of the same shape and dtype in all processes.
        average: in older scripts, instead of `op`: True for `Average`, False for `Sum`.
        name, priority: accepted; exchanges happen in the order of the calls.
        prescale_factor, postscale_factor: factors before and after.
        process_set: the processes.
        op: `Average` (the default), `Sum`, `Min`, `Max`, `Product` or `Adasum`.

    Raises:
        ArgumentError: the processes call different things, or an unknown `op`. MXNetError: a process is gone.
    """
    how = _chosen("allreduce", op, average)
    return _reduced("allreduce", [tensor], how, prescale_factor, postscale_factor, process_set)[0]


def allreduce_(
    tensor: NDArray, average: bool | None = None, name: str | None = None, priority: int = 0,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
    op: Any = None,
) -> NDArray:  # fmt: skip
    """`allreduce` in place; returns the array."""
    how = _chosen("allreduce_", op, average)
    _reduced("allreduce_", [tensor], how, prescale_factor, postscale_factor, process_set)[0].copyto(tensor)
    return tensor


def grouped_allreduce(
    tensors: Sequence[NDArray], average: bool | None = None, name: str | None = None, priority: int = 0,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
    op: Any = None,
) -> list[NDArray]:  # fmt: skip
    """`allreduce` of several arrays, which travel together."""
    what = "grouped_allreduce"
    how = _chosen(what, op, average)
    return _reduced(what, _arrays(what, tensors), how, prescale_factor, postscale_factor, process_set)


def grouped_allreduce_(
    tensors: Sequence[NDArray], average: bool | None = None, name: str | None = None, priority: int = 0,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
    op: Any = None,
) -> list[NDArray]:  # fmt: skip
    """`grouped_allreduce` in place; returns the arrays."""
    found = grouped_allreduce(
        tensors, average, name, priority, prescale_factor, postscale_factor, process_set, op
    )  # fmt: skip
    for tensor, value in zip(tensors, found, strict=True):
        value.copyto(tensor)
    return list(tensors)


def allgather(
    tensor: NDArray, name: str | None = None, priority: int = 0, process_set: ProcessSet = global_process_set
) -> NDArray:
    """Return the arrays of all processes, joined along their first axis, in which they may differ.

    Raises:
        ArgumentError: dtypes or other axes differ. MXNetError: a process is gone.
    """
    require("allgather")
    return parallel.all_gather(tensor, join=True, group=group_of("allgather", process_set))


def grouped_allgather(
    tensors: Sequence[NDArray], name: str | None = None, priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> list[NDArray]:  # fmt: skip
    """`allgather` of several arrays."""
    require("grouped_allgather")
    found = _arrays("grouped_allgather", tensors)
    return parallel.all_gather(found, join=True, group=group_of("grouped_allgather", process_set))


def _root(what: str, root_rank: int, process_set: ProcessSet) -> int:
    """The number of a process in its set."""
    ranks = process_set.ranks
    if root_rank not in ranks:
        raise ArgumentError(f"hvd.{what}: root_rank={root_rank!r}: expected one of {ranks}")
    return ranks.index(root_rank)


def broadcast(
    tensor: NDArray, root_rank: int, name: str | None = None, priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> NDArray:  # fmt: skip
    """Return the array of process `root_rank`.

    Raises:
        ArgumentError: no such process, or shapes or dtypes differ. MXNetError: a process is gone.
    """
    require("broadcast")
    group = group_of("broadcast", process_set)
    return parallel.broadcast(tensor, _root("broadcast", root_rank, process_set), group)


def broadcast_(
    tensor: NDArray, root_rank: int, name: str | None = None, priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> NDArray:  # fmt: skip
    """`broadcast` in place; returns the array."""
    broadcast(tensor, root_rank, name, priority, process_set).copyto(tensor)
    return tensor


def alltoall(
    tensor: NDArray, splits: Any = None, name: str | None = None, priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """Send to each process its rows, and return those from all, joined.

    Args:
        tensor: cut along its first axis.
        splits: rows for each process, a list or an array of integers; equally many by default.
        name, priority, process_set: see `allreduce`.

    Returns:
        The array; with `splits`, also how many rows came from each process, an NDArray of int32.

    Raises:
        ArgumentError: splits that do not fit, or dtypes or other axes differ. MXNetError: a process is gone.
    """
    require("alltoall")
    group = group_of("alltoall", process_set)
    if splits is None:
        return parallel.all_to_all(tensor, group=group)
    counts = splits.asnumpy() if isinstance(splits, NDArray) else np.asarray(splits)
    if counts.dtype.kind not in "iu" or counts.ndim != 1:
        raise ArgumentError(f"hvd.alltoall: splits={splits!r}: expected integers, one for each process")
    found = parallel.all_to_all(tensor, counts.tolist(), group)
    sent = [nd.array([n], dtype="int32") for n in counts.tolist()]
    return found, nd.concat(*parallel.all_to_all(sent, group=group), dim=0)


def reducescatter(
    tensor: NDArray, op: Any = None, name: str | None = None, priority: int = 0,
    process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
) -> NDArray:  # fmt: skip
    """Return this process's equal part, along the first axis, of the mean (or sum) of all arrays.

    Raises:
        ArgumentError: rows that cannot be cut equally, or shapes or dtypes differ. MXNetError: a process is gone.
    """
    require("reducescatter")
    how = _chosen("reducescatter", op, None)
    group = group_of("reducescatter", process_set)
    return parallel.reduce_scatter(tensor, how, prescale_factor, postscale_factor, group)


def grouped_reducescatter(
    tensors: Sequence[NDArray], op: Any = None, name: str | None = None, priority: int = 0,
    process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
) -> list[NDArray]:  # fmt: skip
    """`reducescatter` of several arrays."""
    factors = (process_set, prescale_factor, postscale_factor)
    return [reducescatter(t, op, name, priority, *factors) for t in _arrays("grouped_reducescatter", tensors)]


def broadcast_object(
    obj: Any = None, root_rank: int = 0, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    """Return the value of process `root_rank`: plain data and arrays, never code.

    Raises:
        ArgumentTypeError: something else. MXNetError: a process is gone.
    """
    require("broadcast_object")
    group = group_of("broadcast_object", process_set)
    return parallel.broadcast_object(obj, _root("broadcast_object", root_rank, process_set), group)


def allgather_object(obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set) -> list[Any]:
    """Return the values of all processes; see `broadcast_object`."""
    require("allgather_object")
    return parallel.all_gather_object(obj, group_of("allgather_object", process_set))


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Wait until all processes are here."""
    require("barrier")
    parallel.barrier(group_of("barrier", process_set))


def join() -> int:
    """Say that this process has no more data: it takes part in the reductions of the others, without values.

    Returns:
        The number of the process that joined last.
    """
    require("join")
    return parallel.join()
