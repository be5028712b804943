"""Horovod's collectives: synchronous, asynchronous and in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import autograd, parallel
from ..core.errors import ArgumentError, ArgumentTypeError
from ..namespace import nd
from ..ndarray import NDArray
from ..ndarray.deferred import set_deferred
from ..parallel.collectives import DifferentiableCollective
from ..parallel.mailbox import Handle
from .background_loop import TensorEntry
from .basics import require_init
from .controller import Request
from .enqueue import (
    Adasum,
    Average,
    Max,
    Min,
    Product,
    Sum,
    enqueue_allgather,
    enqueue_allreduce,
    enqueue_alltoall,
    enqueue_broadcast,
    enqueue_reducescatter,
)
from .process_sets import ProcessSet, global_process_set, group_of, loop_of

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


def first_of(handle: Handle) -> Handle:
    """Return the handle of the only array of a list."""
    return Handle(lambda: handle.wait()[0], handle.is_completed)


def enqueue_in_place(tensors: Sequence[NDArray], begin: Callable[[], Handle], process_set: ProcessSet) -> Handle:
    """Enqueue a collective whose results replace arrays from now on: readers wait."""
    handle = begin()
    if process_set._engine is None:
        for t, value in zip(tensors, handle.wait(), strict=True):
            value.copyto(t)
    else:
        for i, t in enumerate(tensors):
            # Sparse arrays have parts, which cannot be promised one by one.
            set_deferred(t, lambda i=i: handle.wait()[i]) if t.stype == "default" else handle.wait()[i].copyto(t)
    return Handle(lambda: [t for t, _ in zip(tensors, handle.wait(), strict=True)], handle.is_completed)


def synchronize(handle: Handle) -> Any:
    """Wait for an exchange that was begun, and return its result.

    Raises:
        ArgumentTypeError: not a handle. ArgumentError: the processes called different things.
        MXNetError: a process is gone.

    Example:
        >>> import dualmx as mx
        >>> import dualmx.horovod as hvd
        >>> hvd.init()
        >>> handle = hvd.allreduce_async(mx.nd.ones((2,)), name="x")
        >>> hvd.synchronize(handle).asnumpy().tolist()
        [1.0, 1.0]
    """
    if not isinstance(handle, Handle):
        raise ArgumentTypeError(f"hvd.synchronize: a {type(handle).__name__}: expected what an _async function returns")
    return handle.wait()


def poll(handle: Handle) -> bool:
    """Return whether `synchronize` returns, or raises, at once."""
    if not isinstance(handle, Handle):
        raise ArgumentTypeError(f"hvd.poll: a {type(handle).__name__}: expected what an _async function returns")
    return handle.is_completed()


def allreduce_async(
    tensor: NDArray, average: bool | None = None, name: str | None = None, op: Any = None,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
) -> Handle:  # fmt: skip
    """Begin an `allreduce`; returns a handle for `synchronize` and `poll`."""
    require_init("allreduce_async")
    how = reduce_op_of("allreduce_async", op, average)
    found = enqueue_allreduce("allreduce_async", [tensor], how, prescale_factor, postscale_factor, process_set, name)
    return first_of(found)


def allreduce_async_(
    tensor: NDArray, average: bool | None = None, name: str | None = None, op: Any = None,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
) -> Handle:  # fmt: skip
    """Begin an `allreduce_`."""
    return first_of(
        grouped_allreduce_async_([tensor], average, name, op, prescale_factor, postscale_factor, process_set)
    )


def grouped_allreduce_async(
    tensors: Sequence[NDArray], average: bool | None = None, name: str | None = None, op: Any = None,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
) -> Handle:  # fmt: skip
    """Begin a `grouped_allreduce`."""
    what = "grouped_allreduce_async"
    require_init(what)
    how = reduce_op_of(what, op, average)
    return enqueue_allreduce(what, as_list(what, tensors), how, prescale_factor, postscale_factor, process_set, name)


def grouped_allreduce_async_(
    tensors: Sequence[NDArray], average: bool | None = None, name: str | None = None, op: Any = None,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
) -> Handle:  # fmt: skip
    """Begin a `grouped_allreduce_`."""
    begin = lambda: grouped_allreduce_async(  # noqa: E731
        tensors, average, name, op, prescale_factor, postscale_factor, process_set
    )
    return enqueue_in_place(as_list("grouped_allreduce_async_", tensors), begin, process_set)


def allgather_async(tensor: NDArray, name: str | None = None, process_set: ProcessSet = global_process_set) -> Handle:
    """Begin an `allgather`."""
    require_init("allgather_async")
    return first_of(enqueue_allgather("allgather_async", [tensor], process_set, name))


def grouped_allgather_async(
    tensors: Sequence[NDArray], name: str | None = None, process_set: ProcessSet = global_process_set
) -> Handle:
    """Begin a `grouped_allgather`."""
    require_init("grouped_allgather_async")
    return enqueue_allgather("grouped_allgather_async", as_list("grouped_allgather_async", tensors), process_set, name)


def broadcast_async(
    tensor: NDArray, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Handle:
    """Begin a `broadcast`."""
    require_init("broadcast_async")
    root = root_of("broadcast_async", root_rank, process_set)
    return first_of(enqueue_broadcast("broadcast_async", [tensor], root, process_set, name))


def broadcast_async_(
    tensor: NDArray, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Handle:
    """Begin a `broadcast_`."""
    require_init("broadcast_async_")
    root = root_of("broadcast_async_", root_rank, process_set)
    return first_of(
        enqueue_in_place(
            [tensor], lambda: enqueue_broadcast("broadcast_async_", [tensor], root, process_set, name), process_set
        )
    )


def alltoall_async(
    tensor: NDArray, splits: Any = None, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Handle:
    """Begin an `alltoall`."""
    from ..namespace import nd

    require_init("alltoall_async")
    handle = enqueue_alltoall("alltoall_async", tensor, as_splits(splits), process_set, name)

    def finish() -> Any:
        rows, counts = handle.wait()
        return rows if splits is None else (rows, nd.array(counts, dtype="int32"))

    return Handle(finish, handle.is_completed)


def reducescatter_async(
    tensor: NDArray, name: str | None = None, op: Any = None, process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0,
) -> Handle:  # fmt: skip
    """Begin a `reducescatter`."""
    factors = (process_set, prescale_factor, postscale_factor)
    return first_of(grouped_reducescatter_async([tensor], name, op, *factors))


def grouped_reducescatter_async(
    tensors: Sequence[NDArray], name: str | None = None, op: Any = None,
    process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
) -> Handle:  # fmt: skip
    """Begin a `grouped_reducescatter`."""
    what = "grouped_reducescatter_async"
    require_init(what)
    how = reduce_op_of(what, op, None)
    return enqueue_reducescatter(
        what, as_list(what, tensors), how, prescale_factor, postscale_factor, process_set, name
    )


def _differentiable(there: Callable[[list[NDArray]], Handle], back: Callable[[list[NDArray]], Handle], xs: Any) -> Any:
    """Make an exchange that has a gradient."""
    if not autograd.is_recording():
        return there(list(xs)).wait()
    found = DifferentiableCollective(lambda xs: list(there(xs).wait()), lambda dys: list(back(dys).wait()))(*xs)
    return list(found) if isinstance(found, (list, tuple)) else [found]


def _allreduce_list(
    what: str, tensors: list[Any], op: str, before: float, after: float, process_set: ProcessSet, name: str | None
) -> list[NDArray]:
    require_init(what)

    def there(xs: list[NDArray]) -> Handle:
        return enqueue_allreduce(what, xs, op, before, after, process_set, name)

    def back(dys: list[NDArray]) -> Handle:
        if op not in (Sum, Average):
            raise ArgumentError(f"hvd.{what}: op={op!r} has no gradient; sums and averages do")
        return enqueue_allreduce(what, dys, op, before, after, process_set, f"{name}.gradient" if name else None)

    if any(getattr(t, "stype", "default") != "default" for t in tensors):
        return there(tensors).wait()
    return _differentiable(there, back, tensors)


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
    how = reduce_op_of("allreduce", op, average)
    return _allreduce_list("allreduce", [tensor], how, prescale_factor, postscale_factor, process_set, name)[0]


def allreduce_(
    tensor: NDArray, average: bool | None = None, name: str | None = None, priority: int = 0,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
    op: Any = None,
) -> NDArray:  # fmt: skip
    """`allreduce` in place; returns the array at once: reading it waits, and raises errors."""
    allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor, process_set)
    return tensor


def grouped_allreduce(
    tensors: Sequence[NDArray], average: bool | None = None, name: str | None = None, priority: int = 0,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
    op: Any = None,
) -> list[NDArray]:  # fmt: skip
    """`allreduce` of several arrays, fused."""
    what = "grouped_allreduce"
    how = reduce_op_of(what, op, average)
    return _allreduce_list(what, as_list(what, tensors), how, prescale_factor, postscale_factor, process_set, name)


def grouped_allreduce_(
    tensors: Sequence[NDArray], average: bool | None = None, name: str | None = None, priority: int = 0,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
    op: Any = None,
) -> list[NDArray]:  # fmt: skip
    """`grouped_allreduce` in place; returns the arrays, at once."""
    grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor, process_set)
    return list(tensors)


def allgather(
    tensor: NDArray, name: str | None = None, priority: int = 0, process_set: ProcessSet = global_process_set
) -> NDArray:
    """Return the arrays of all processes, joined along their first axis, in which they may differ.

    Raises:
        ArgumentError: dtypes or other axes differ. MXNetError: a process is gone.
    """
    return _allgather_list("allgather", [tensor], process_set, name)[0]


def _allgather_list(what: str, tensors: list[NDArray], process_set: ProcessSet, name: str | None) -> list[NDArray]:
    require_init(what)

    def back(dys: list[NDArray]) -> Handle:
        """Each process gets the sum of what all have for its rows."""
        counts = [parallel.all_gather_object(len(x), group_of(what, process_set)) for x in tensors]
        sums = enqueue_allreduce(what, dys, Sum, 1.0, 1.0, process_set, f"{name}.gradient" if name else None).wait()
        me = process_set.rank()
        return Handle(
            lambda: [s[sum(n[:me]) : sum(n[: me + 1])] for s, n in zip(sums, counts, strict=True)], lambda: True
        )

    return _differentiable(lambda xs: enqueue_allgather(what, xs, process_set, name), back, tensors)


def grouped_allgather(
    tensors: Sequence[NDArray], name: str | None = None, priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> list[NDArray]:  # fmt: skip
    """`allgather` of several arrays."""
    return _allgather_list("grouped_allgather", as_list("grouped_allgather", tensors), process_set, name)


def broadcast(
    tensor: NDArray, root_rank: int, name: str | None = None, priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> NDArray:  # fmt: skip
    """Return the array of process `root_rank`.

    Raises:
        ArgumentError: no such process, or shapes or dtypes differ. MXNetError: a process is gone.
    """
    require_init("broadcast")
    root = root_of("broadcast", root_rank, process_set)

    def back(dys: list[NDArray]) -> Handle:
        summed = enqueue_allreduce("broadcast", dys, Sum, 1.0, 1.0, process_set, f"{name}.gradient" if name else None)
        return Handle(lambda: [s if process_set.rank() == root else s * 0 for s in summed.wait()], summed.is_completed)

    return _differentiable(lambda xs: enqueue_broadcast("broadcast", xs, root, process_set, name), back, [tensor])[0]


def broadcast_(
    tensor: NDArray, root_rank: int, name: str | None = None, priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> NDArray:  # fmt: skip
    """`broadcast` in place; returns the array at once: reading it waits, and raises errors."""
    broadcast_async_(tensor, root_rank, name, process_set)
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
    require_init("alltoall")
    counts = as_splits(splits)
    received: list[int] = []

    def there(xs: list[NDArray]) -> Handle:
        handle = enqueue_alltoall("alltoall", xs[0], counts, process_set, name)
        rows, received[:] = handle.wait()
        return Handle(lambda: [rows], lambda: True)

    def back(dys: list[NDArray]) -> Handle:
        return _first_of_pair(
            enqueue_alltoall("alltoall", dys[0], received, process_set, f"{name}.gradient" if name else None)
        )

    found = _differentiable(there, back, [tensor])[0]
    return found if splits is None else (found, nd.array(received, dtype="int32"))


def _first_of_pair(handle: Handle) -> Handle:
    return Handle(lambda: [handle.wait()[0]], handle.is_completed)


def reducescatter(
    tensor: NDArray, op: Any = None, name: str | None = None, priority: int = 0,
    process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
) -> NDArray:  # fmt: skip
    """Return this process's part, along the first axis, of the mean (or sum) of all arrays.

    Parts are equal; if the rows do not allow that, the first processes get one more.

    Raises:
        ArgumentError: shapes or dtypes differ. MXNetError: a process is gone.
    """
    return _scattered("reducescatter", [tensor], op, prescale_factor, postscale_factor, process_set, name)[0]


def _scattered(
    what: str, tensors: list[NDArray], op: Any, before: float, after: float, process_set: ProcessSet, name: str | None
) -> list[NDArray]:
    require_init(what)
    how = reduce_op_of(what, op, None)

    def back(dys: list[NDArray]) -> Handle:
        factor = before * after / (process_set.size() if how == Average else 1)
        gathered = enqueue_allgather(what, dys, process_set, f"{name}.gradient" if name else None)
        return Handle(lambda: [g * factor for g in gathered.wait()], gathered.is_completed)

    return _differentiable(
        lambda xs: enqueue_reducescatter(what, xs, how, before, after, process_set, name), back, tensors
    )


def grouped_reducescatter(
    tensors: Sequence[NDArray], op: Any = None, name: str | None = None, priority: int = 0,
    process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
) -> list[NDArray]:  # fmt: skip
    """`reducescatter` of several arrays."""
    found = as_list("grouped_reducescatter", tensors)
    return _scattered("grouped_reducescatter", found, op, prescale_factor, postscale_factor, process_set, name)


def broadcast_object(
    obj: Any = None, root_rank: int = 0, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    """Return the value of process `root_rank`: plain data and arrays, never code.

    Raises:
        ArgumentTypeError: something else. MXNetError: a process is gone.
    """
    require_init("broadcast_object")
    group = group_of("broadcast_object", process_set)
    return parallel.broadcast_object(obj, root_of("broadcast_object", root_rank, process_set), group)


def allgather_object(obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set) -> list[Any]:
    """Return the values of all processes; see `broadcast_object`."""
    require_init("allgather_object")
    return parallel.all_gather_object(obj, group_of("allgather_object", process_set))


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Wait until all processes are here."""
    require_init("barrier")
    engine = loop_of("barrier", process_set)
    if engine is None:
        parallel.barrier(group_of("barrier", process_set))
    else:
        ask = Request("", "barrier", "all")
        engine.wait(engine.submit(TensorEntry(ask, run=lambda group: group.barrier("hvd.barrier"))))


def join() -> int:
    """Say that this process has no more data: it takes part in the reductions of the others, without values.

    Returns:
        The number of the process that joined last.
    """
    require_init("join")
    engine = loop_of("join", global_process_set)
    return parallel.join() if engine is None else engine.join()


__all__ = [
    "allgather", "allgather_async", "allgather_object", "allreduce", "allreduce_", "allreduce_async",
    "allreduce_async_", "alltoall", "alltoall_async", "barrier", "broadcast", "broadcast_", "broadcast_async",
    "broadcast_async_", "broadcast_object", "grouped_allgather", "grouped_allgather_async", "grouped_allreduce",
    "grouped_allreduce_", "grouped_allreduce_async", "grouped_allreduce_async_", "grouped_reducescatter",
    "grouped_reducescatter_async", "join", "poll", "reducescatter", "reducescatter_async", "synchronize",
]  # fmt: skip
