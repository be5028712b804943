"""Exchanges that are begun and waited for later, by the names that Horovod has for PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.errors import ArgumentTypeError
from ..ndarray import NDArray
from ..ndarray.promise import set_deferred
from ..parallel.mail import Handle
from .basics import require_init
from .checks import as_list, as_splits, reduce_op_of, root_of
from .process_sets import ProcessSet, global_process_set
from .starting import enqueue_allgather, enqueue_allreduce, enqueue_alltoall, enqueue_broadcast, enqueue_reducescatter


def first_of(handle: Handle) -> Handle:
    """Return the handle of the only array of a list."""
    return Handle(lambda: handle.wait()[0], handle.is_completed)


def enqueue_in_place(tensors: Sequence[NDArray], begin: Callable[[], Handle], process_set: ProcessSet) -> Handle:
    """Begin an exchange whose results arrays stand for from now on: what reads them waits."""
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
