"""Process groups of `torch.distributed`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .. import parallel
from ..core import knobs
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError, OrderError
from ..core.net import free_port, route_to
from ..parallel import ProcessGroup
from .store import Store

DistError = DistBackendError = DistNetworkError = DistStoreError = MXNetError


class BeginningError(OrderError, ValueError):
    """Raised by calls before `init_process_group`, and by a second one; torch raises `ValueError` for both."""


class _State:
    begun = False
    backend = ""
    rendezvous = 0  # how often processes have met by a store


_state = _State()


class group:
    """Names of groups that are always there.

    Attributes:
        WORLD: all processes.
    """

    WORLD: ProcessGroup | None = None


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: Any = None, world_size: int = -1,
    rank: int = -1, store: Any = None, group_name: str = "", pg_options: Any = None, device_id: Any = None,
) -> None:  # fmt: skip
    """Join the processes of the job.

    Args:
        backend: `"gloo"` or `"mpi"`: sockets and shared memory; `"nccl"` (or `"xla"`): XLA's collectives, chosen before
            any array is made; by default the second on accelerators.
        init_method: `"env://"` (the default, also in jobs of `dualmx-launch`, MPI and Slurm), `"tcp://host:port"` or
            `"file:///path"`.
        world_size, rank: how many processes there are and which this is, where nothing else tells.
        timeout, group_name, pg_options, device_id: accepted; `DUALMX_DIST_TIMEOUT` is the time-out.
        store: a `TCPStore`, `FileStore` or another store by which the processes find each other, instead of
            `init_method`; needs `world_size` and `rank`.

    Raises:
        BeginningError: a second call. MXNetError: not all processes came. ArgumentError: an unknown backend or address.
    """
    if _state.begun:
        raise BeginningError("init_process_group: it was called before; call destroy_process_group first")
    if store is not None:
        init_method = _by_store(store, init_method, world_size, rank)
    name = "auto" if backend is None else str(backend).lower()
    # A process that is told to be the only one needs nobody to meet.
    if world_size != 1:
        parallel.init(init_method, world_size if world_size >= 0 else None, rank if rank >= 0 else None, name)
    elif rank not in (-1, 0):
        raise ArgumentError(f"init_process_group: rank={rank}: expected a number below world_size=1")
    if 0 <= world_size != parallel.size() or 0 <= rank != parallel.rank():
        raise MXNetError(
            f"init_process_group: rank={rank}, world_size={world_size}: this is process {parallel.rank()} of "
            f"{parallel.size()}"
        )
    _state.begun, _state.backend = True, "gloo" if name == "auto" else name


def _by_store(store: Any, init_method: str | None, world_size: int, rank: int) -> str:
    """Return the address of process 0, which it writes to a store."""
    what = "init_process_group"
    if not isinstance(store, Store):
        raise ArgumentTypeError(f"{what}: store={store!r}: expected a TCPStore, FileStore, HashStore or PrefixStore")
    if init_method is not None:
        raise ArgumentError(f"{what}: init_method={init_method!r} and a store: expected one of them")
    if not 0 <= rank < world_size:
        raise ArgumentError(f"{what}: store: rank={rank}, world_size={world_size}: expected both")
    _state.rendezvous += 1
    key = f"{what}/{_state.rendezvous}"
    if rank == 0:
        # Without a secret of the job, its processes are on one host.
        outside = knobs.SECRET.read() or knobs.INSECURE.read() == "1"
        host = (route_to() if outside else "") or "127.0.0.1"
        store.set(key, f"{host}:{free_port(host)}")
    return f"tcp://{store.get(key).decode()}"


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave the processes of the job; with a group, do nothing: it needs no end."""
    if group is None:
        require("destroy_process_group")
        parallel.shutdown()
        _state.begun = False


def is_available() -> bool:
    """Return True."""
    return True


def is_initialized() -> bool:
    """Return whether `init_process_group` was called."""
    return _state.begun


def is_nccl_available() -> bool:
    """Return True: the name chooses XLA's collectives."""
    return True


def is_gloo_available() -> bool:
    """Return True: the name chooses sockets and shared memory."""
    return True


def is_backend_available(backend: str) -> bool:
    """Return whether `init_process_group` takes a backend."""
    return backend.lower() in ("gloo", "mpi", "nccl", "xla")


def is_torchelastic_launched() -> bool:
    """Return False: jobs are started by `dualmx-launch`, MPI or Slurm."""
    return False


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return the number of this process on its host, `LOCAL_RANK`.

    Raises:
        MXNetError: nothing tells, and there is no `fallback_rank`.
    """
    local_rank = os.environ.get("LOCAL_RANK", fallback_rank)
    if local_rank is None:
        raise MXNetError("get_node_local_rank: LOCAL_RANK is not set; set it, or pass fallback_rank")
    return int(local_rank)


def is_mpi_available() -> bool:
    """Return True: the name chooses sockets and shared memory; MPI may start the processes."""
    return True


def require(what: str) -> None:
    """Raise if `init_process_group` was not called.

    Raises:
        BeginningError: it was not.
    """
    if not _state.begun:
        raise BeginningError(f"{what}: Default process group has not been initialized; call init_process_group first")


def group_of(what: str, group: Any) -> ProcessGroup | None:
    """Return a group, None for all processes.

    Raises:
        BeginningError: `init_process_group` was not called. ArgumentTypeError: not a group.
    """
    require(what)
    if group is not None and not isinstance(group, ProcessGroup):
        raise ArgumentTypeError(f"{what}: group={group!r}: expected what new_group returns")
    return group


def is_not_member(what: str, group: ProcessGroup | None) -> bool:
    """Whether this process is in no position to take part, which torch lets pass."""
    return group_of(what, group) is not None and parallel.rank(group) < 0


def group_rank(
    what: str,
    name: str,
    rank: int | None,
    group: ProcessGroup | None,
    inside: int | None = None,
    default: int | None = None,
) -> int:
    """Return the number in a group of a process.

    Args:
        what, name: the caller and its argument, for messages.
        rank: its number in the job.
        group: the processes.
        inside: its number in the group, in place of `rank`.
        default: its number in the job, if neither is given.

    Raises:
        ArgumentError: it is not in the group, or both or none are given.
    """
    ranks = range(parallel.size()) if group is None else group.ranks
    if inside is not None:
        if rank is not None:
            raise ArgumentError(f"{what}: {name}={rank!r}, group_{name}={inside!r}: expected one of them")
        if inside not in range(len(ranks)):
            raise ArgumentError(f"{what}: group_{name}={inside!r}: expected a number below {len(ranks)}")
        return inside
    rank = default if rank is None else rank
    if rank is None or rank not in ranks:
        raise ArgumentError(f"{what}: {name}={rank!r}: expected one of {list(ranks)}")
    return list(ranks).index(rank)


def get_rank(group: ProcessGroup | None = None) -> int:
    """Return the number of this process, in a group -1 if it is not in it."""
    return parallel.rank(group_of("get_rank", group))


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return how many processes there are, in a group -1 if this one is not in it."""
    return -1 if is_not_member("get_world_size", group) else parallel.size(group)


def get_backend(group: ProcessGroup | None = None) -> str:
    """Return the backend's name."""
    group_of("get_backend", group)
    return _state.backend


def new_group(ranks: Sequence[int] | None = None, timeout: Any = None, backend: Any = None, **_: Any) -> ProcessGroup:
    """Return a group of some processes; all processes of the job call it.

    Raises:
        ArgumentError: no such processes.
    """
    require("new_group")
    return parallel.new_group(ranks)


def new_subgroups(
    group_size: int | None = None, group: ProcessGroup | None = None, **_: Any
) -> tuple[ProcessGroup | None, list[ProcessGroup]]:
    """Divide a group into groups of consecutive ranks; all processes of the job call it.

    Args:
        group_size: processes of each; required, as not all hosts may have equally many.
        group: what is cut; all processes by default.

    Returns:
        The group of this process, and all of them.

    Raises:
        ArgumentError: the processes cannot be cut so.
    """
    ranks = get_process_group_ranks(group)
    if not group_size or group_size < 0 or len(ranks) % group_size:
        raise ArgumentError(f"new_subgroups: group_size={group_size!r}: expected a divisor of {len(ranks)}")
    return new_subgroups_by_enumeration([ranks[k : k + group_size] for k in range(0, len(ranks), group_size)])


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]], **_: Any
) -> tuple[ProcessGroup | None, list[ProcessGroup]]:
    """Return the group of this process among some that have no process in common, and all of them.

    Raises:
        ArgumentError: no such processes, or one that is in two groups.
    """
    every = [r for ranks in ranks_per_subgroup_list for r in ranks]
    if not every or len(set(every)) < len(every):
        raise ArgumentError(
            f"new_subgroups_by_enumeration: {ranks_per_subgroup_list!r}: expected lists without a process in common"
        )
    groups = [new_group(ranks) for ranks in ranks_per_subgroup_list]
    return next((g for g in groups if g.rank >= 0), None), groups


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """Return the numbers of a group's processes in the job."""
    found = group_of("get_process_group_ranks", group)
    return list(range(parallel.size())) if found is None else list(found.ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Return the number in a group of a process of the job."""
    return group_rank("get_group_rank", "global_rank", global_rank, group_of("get_group_rank", group))


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Return the number in the job of a process of a group."""
    return get_process_group_ranks(group)[group_rank]


__all__ = [
    "BeginningError", "DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "destroy_process_group",
    "get_backend", "get_global_rank", "get_group_rank", "get_node_local_rank", "get_process_group_ranks", "get_rank",
    "get_world_size", "group", "init_process_group", "is_available", "is_backend_available", "is_gloo_available",
    "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "new_group", "new_subgroups",
    "new_subgroups_by_enumeration",
]  # fmt: skip
