"""Exchanges of arrays by Horovod's names and arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import autograd, parallel
from ..core.errors import ArgumentError
from ..namespace import nd
from ..ndarray import NDArray
from ..parallel.collectives import _DifferentiableCollective
from ..parallel.mail import Handle
from .asynchronous import allreduce_async_, broadcast_async_, grouped_allreduce_async_
from .basics import require_init
from .checks import as_list, as_splits, reduce_op_of, root_of
from .engine import TensorEntry
from .negotiation import Request
from .process_sets import ProcessSet, global_process_set, group_of, loop_of
from .starting import (
    Average,
    Sum,
    enqueue_allgather,
    enqueue_allreduce,
    enqueue_alltoall,
    enqueue_broadcast,
    enqueue_reducescatter,
)


def _differentiable(there: Callable[[list[NDArray]], Handle], back: Callable[[list[NDArray]], Handle], xs: Any) -> Any:
    """Make an exchange that has a gradient."""
    if not autograd.is_recording():
        return there(list(xs)).wait()
    found = _DifferentiableCollective(lambda xs: list(there(xs).wait()), lambda dys: list(back(dys).wait()))(*xs)
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
    """`allreduce` in place; returns the array, at once: what reads it waits, and is told of errors."""
    allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor, process_set)
    return tensor


def grouped_allreduce(
    tensors: Sequence[NDArray], average: bool | None = None, name: str | None = None, priority: int = 0,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
    op: Any = None,
) -> list[NDArray]:  # fmt: skip
    """`allreduce` of several arrays, which travel together."""
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
    return _gathered("allgather", [tensor], process_set, name)[0]


def _gathered(what: str, tensors: list[NDArray], process_set: ProcessSet, name: str | None) -> list[NDArray]:
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
    return _gathered("grouped_allgather", as_list("grouped_allgather", tensors), process_set, name)


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
    """`broadcast` in place; returns the array, at once: what reads it waits, and is told of errors."""
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
    told: list[int] = []

    def there(xs: list[NDArray]) -> Handle:
        handle = enqueue_alltoall("alltoall", xs[0], counts, process_set, name)
        rows, told[:] = handle.wait()
        return Handle(lambda: [rows], lambda: True)

    def back(dys: list[NDArray]) -> Handle:
        return _first_of_pair(
            enqueue_alltoall("alltoall", dys[0], told, process_set, f"{name}.gradient" if name else None)
        )

    found = _differentiable(there, back, [tensor])[0]
    return found if splits is None else (found, nd.array(told, dtype="int32"))


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
