"""`init`, `shutdown`, ranks and sizes."""

from __future__ import annotations

import atexit
from typing import Any

from .. import parallel
from ..core.errors import ArgumentError, MXNetError
from ..core.knobs import TIMELINE, TIMELINE_CYCLES
from ..parallel import world
from .process_sets import add_process_set, init_global_set, remove_all_sets
from .timeline import timeline


class _State:
    begun = False


_state = _State()


def init(comm: Any = None, process_sets: Any = None) -> None:
    """Join the processes of the job; a single process runs alone.

    Args:
        comm: left out; choose processes by `process_sets`.
        process_sets: sets (or lists of ranks) to be added at once.

    Raises:
        ArgumentError: `comm` is given. MXNetError: not all processes came.
    """
    if comm:
        raise ArgumentError("hvd.init: comm: all processes of the job take part; use process_sets for some of them")
    parallel.init()
    if not _state.begun:
        init_global_set()
        if TIMELINE.read() and parallel.rank() == 0 and not timeline.on:
            timeline.start(TIMELINE.read(), TIMELINE_CYCLES.read() == "1")
        atexit.register(shutdown)
    _state.begun = True
    for one in process_sets or ():
        add_process_set(one)


def shutdown() -> None:
    """Leave the processes of the job."""
    if _state.begun:
        atexit.unregister(shutdown)
        remove_all_sets()
        parallel.shutdown()
        timeline.stop()
        _state.begun = False


def reinitialize(broken: bool) -> None:
    """Form the group of processes again; process sets have to be added again.

    Args:
        broken: an exchange failed, so that what is under way cannot end well.

    Raises:
        MXNetError: a process that lives did not come.
    """
    if broken:
        world.leave_group()  # else engines would wait for each other
    remove_all_sets()
    world.regroup()
    init_global_set()


def is_initialized() -> bool:
    """Return whether `init` was called."""
    return _state.begun


def require_init(what: str) -> None:
    """Raise if `init` was not called.

    Raises:
        MXNetError: it was not.
    """
    if not _state.begun:
        raise MXNetError(f"hvd.{what}: Horovod has not been initialized; call hvd.init() first")


def rank() -> int:
    """Return the number of this process."""
    require_init("rank")
    return parallel.rank()


def size() -> int:
    """Return how many processes there are."""
    require_init("size")
    return parallel.size()


def local_rank() -> int:
    """Return the number of this process on its host."""
    require_init("local_rank")
    return parallel.local_rank()


def local_size() -> int:
    """Return how many processes are on this host."""
    require_init("local_size")
    return parallel.local_size()


def cross_rank() -> int:
    """Return the number of this host."""
    require_init("cross_rank")
    return parallel.cross_rank()


def cross_size() -> int:
    """Return how many hosts there are."""
    require_init("cross_size")
    return parallel.cross_size()


def is_homogeneous() -> bool:
    """Return whether all hosts have equally many processes."""
    require_init("is_homogeneous")
    return len(set(parallel.all_gather_object(parallel.local_size()))) == 1


def mpi_threads_supported() -> bool:
    """Return False: processes do not talk by MPI."""
    return False


def mpi_enabled() -> bool:
    """Return False: processes do not talk by MPI, which may start them."""
    return False


def mpi_built() -> bool:
    """Return False: there is no MPI inside."""
    return False


def gloo_enabled() -> bool:
    """Return True: processes talk without MPI."""
    return True


def gloo_built() -> bool:
    """Return True: processes talk without MPI."""
    return True


def nccl_built() -> int:
    """Return 0: XLA chooses how accelerators exchange values."""
    return 0


def ddl_built() -> bool:
    """Return False: there is no DDL inside."""
    return False


def ccl_built() -> bool:
    """Return False: there is no oneCCL inside."""
    return False


def cuda_built() -> bool:
    """Return False: the collectives have no CUDA code."""
    return False


def rocm_built() -> bool:
    """Return False: the collectives have no ROCm code."""
    return False


__all__ = [
    "ccl_built", "cross_rank", "cross_size", "cuda_built", "ddl_built", "gloo_built", "gloo_enabled", "init",
    "is_homogeneous", "is_initialized", "local_rank", "local_size", "mpi_built", "mpi_enabled", "mpi_threads_supported",
    "nccl_built", "rank", "rocm_built", "shutdown", "size",
]  # fmt: skip
