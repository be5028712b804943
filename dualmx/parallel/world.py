"""The processes of this job: join, leave, regroup, query."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ..compile.job_rounds import job_rounds
from ..core.errors import ArgumentError, MXNetError
from ..core.knobs import COLLECTIVES, ON_WORKER_DEATH
from ..op.lowering_context import sum_processes_by
from ..ps import Job, PeerLinks, current_worker, leave_job
from . import jax_distributed
from .mailbox import Mailbox
from .process_group import ProcessGroup
from .rendezvous import remove_file, rendezvous

# What torch.distributed and MPI call them.
BACKENDS = {"auto": "auto", "host": "host", "gloo": "host", "mpi": "host", "tcp": "host", "xla": "xla", "nccl": "xla"}


class _World:
    def __init__(self) -> None:
        self.peers: PeerLinks | None = None
        self.group = ProcessGroup([0], None, "world", 0)
        self.joined = False
        self.worker: Any = None
        self.groups: dict[tuple[int, ...], int] = {}


_world = _World()
_lock = threading.Lock()


def init(where: str | None = None, size: int | None = None, rank: int | None = None, backend: str = "auto") -> None:
    """Join the processes of the job; a second call does nothing, and a process that is alone stays so.

    Args:
        where: how the processes find each other. `None`: as `dualmx-launch`, Open MPI, MPICH or Slurm tell, or by
            `MASTER_ADDR`, `MASTER_PORT`, `WORLD_SIZE` and `RANK` (also `"env://"`); `"tcp://host:port"` or
            `"host:port"` where process 0 listens; `"file:///path"` in a folder that all see.
        size: how many processes there are, where nothing else tells.
        rank: number of this one, from 0.
        backend: how arrays travel: `"host"` (also `"gloo"`, `"mpi"`, `"tcp"`) by sockets and shared memory, `"xla"`
            (also `"nccl"`) by XLA's collectives where they can, which must be chosen before any array is made;
            `"auto"` is `"xla"` on accelerators, or what `DUALMX_COLLECTIVES` says; in elastic jobs it is `"host"`.

    Raises:
        ArgumentError: an unknown backend, `"xla"` in an elastic job, or an address that cannot be read.
        MXNetError: not all processes came. SystemExit: those of an elastic job have finished already.

    Example:
        >>> import dualmx as mx
        >>> mx.parallel.init()
        >>> mx.parallel.rank(), mx.parallel.size()
        (0, 1)
    """
    if backend not in BACKENDS:
        raise ArgumentError(f"parallel.init: backend={backend!r}: expected one of {', '.join(BACKENDS)}")
    with _lock:
        if _world.joined:
            return
        kind = BACKENDS[backend] if BACKENDS[backend] != "auto" else COLLECTIVES.read()
        elastic = ON_WORKER_DEATH.read() == "elastic"
        if kind == "auto":
            kind = "xla" if _on_accelerators() and not elastic else "host"
        if kind == "xla" and elastic:
            raise ArgumentError("parallel.init: XLA cannot do without a process; elastic jobs need backend='host'")
        if kind == "xla":
            jax_distributed.check_not_started()
        found = rendezvous(where, size, rank, jax_distributed.start_service)
        if found is None or (found.job.workers == 1 and not elastic):
            if kind == "xla" and found is None and BACKENDS[backend] == "xla" and where is None:
                jax_distributed.init_from_environment()
            return
        if found.serve is not None:
            threading.Thread(target=found.serve, name="dualmx-scheduler", daemon=True).start()
        worker = current_worker("parallel.init", found.job)
        peers = worker.regroup() if elastic else worker.peers()
        if found.serve is not None:
            remove_file(where)
        if kind == "xla":
            address = jax_distributed.keep_connection(worker.coordinator())
            jax_distributed.init_jax_distributed(address, worker.job.workers, worker.rank)
            jax_distributed.attach_counters(worker.counters)
            jax_distributed.failure_detectors.append(lambda: next(iter(peers.lost_ranks.values()), ""))
        _world.worker, _world.joined = worker, True
        job_rounds.is_joined = True
        _attach_peer_links(peers)
        sum_processes_by(_sums)


def _attach_peer_links(peers: PeerLinks) -> None:
    """Let all exchanges go by these links."""
    _world.peers, _world.groups = peers, {}
    _world.group = ProcessGroup(range(peers.size), peers, "world", peers.rank)
    mailbox_of.cache_clear()


def _sums(key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Sum arrays of one dtype over all processes, for running operators."""
    flat = np.concatenate([a.reshape(-1) for a in arrays])
    total = _world.group.all_reduce_named(flat, key, f"exchange {key}")
    ends = np.cumsum([a.size for a in arrays])[:-1]
    return [part.reshape(a.shape) for part, a in zip(np.split(total, ends), arrays, strict=True)]


def _on_accelerators() -> bool:
    named = os.environ.get("JAX_PLATFORMS") or getattr(jax.config, "jax_platforms", None) or ""
    if named:
        return named.split(",")[0] != "cpu"
    return any(os.path.exists(path) for path in ("/dev/nvidiactl", "/dev/kfd", "/dev/accel0"))


def shutdown() -> None:
    """Leave the processes of the job; this process continues alone, and cannot join again.

    Example:
        >>> shutdown()
    """
    with _lock:
        if _world.joined:
            leave_job()
            _world.peers, _world.group, _world.joined = None, ProcessGroup([0], None, "world", 0), False
            mailbox_of.cache_clear()


def is_initialized() -> bool:
    """Return whether this process has joined others."""
    return _world.joined


def rank(group: ProcessGroup | None = None) -> int:
    """Return the number of this process in the job, 0 if it is alone; or in a group, -1 if it is not in it."""
    if group is None and not _world.joined:
        return jax_distributed.rank()
    return (group or _world.group).rank


def size(group: ProcessGroup | None = None) -> int:
    """Return how many processes the job has, 1 if this one is alone; or a group."""
    if group is None and not _world.joined:
        return jax_distributed.size()
    return (group or _world.group).size


def _host_layout() -> tuple[list[int], list[str]]:
    """Ranks on this host, and the hosts in the order of ranks."""
    if _world.peers is None:
        return [0], [""]
    nodes = _world.peers.nodes
    return [r for r, n in enumerate(nodes) if n == nodes[_world.peers.rank]], list(dict.fromkeys(nodes))


def local_rank() -> int:
    """Return the number of this process among those of its host."""
    return _host_layout()[0].index(rank()) if _world.joined else 0


def local_size() -> int:
    """Return how many processes of the job are on this host."""
    return len(_host_layout()[0])


def cross_rank() -> int:
    """Return the number of this host among those of the job."""
    return _host_layout()[1].index(_world.peers.nodes[rank()]) if _world.peers is not None else 0


def cross_size() -> int:
    """Return how many hosts the job has."""
    return len(_host_layout()[1])


def new_group(ranks: Sequence[int] | None = None) -> ProcessGroup:
    """Return a group of some processes of the job, which exchange arrays among themselves.

    Members make the same groups in the same order; others may make them, too.

    Args:
        ranks: numbers of processes; all by default.

    Raises:
        ArgumentError: no ranks, or not of this job.

    Example:
        >>> new_group([0]).ranks
        (0,)
    """
    chosen = tuple(sorted(set(range(size()) if ranks is None else ranks)))
    if not chosen or not all(isinstance(r, int) and 0 <= r < size() for r in chosen):
        raise ArgumentError(f"parallel.new_group: ranks={ranks!r}: expected numbers below {size()}")
    count = _world.groups[chosen] = _world.groups.get(chosen, 0) + 1
    return ProcessGroup(chosen, _world.peers, f"{','.join(map(str, chosen))}#{count}", rank())


def group_of(group: Any, what: str) -> ProcessGroup:
    """Return the group that an exchange is for.

    Raises:
        ArgumentError: not a group, or this process is no member. MXNetError: in a job that was not joined.
    """
    if group is None:
        if not _world.joined and Job.in_environment() and Job.from_env().workers > 1:
            raise MXNetError(f"{what}: this process belongs to a job; call dualmx.parallel.init() first")
        return _world.group
    if not isinstance(group, ProcessGroup):
        raise ArgumentError(f"{what}: group={group!r}: expected what parallel.new_group returns")
    if group.rank < 0:
        raise ArgumentError(f"{what}: process {rank()} is not in {group!r}")
    return group


@functools.cache
def mailbox_of(group: ProcessGroup) -> Mailbox:
    """Return what the members of a group send to each other."""
    return Mailbox(group)


def is_elastic() -> bool:
    """Return whether processes may join and leave, so that `regroup` can be called."""
    return _world.joined and _world.worker.job.elastic


def lost_reason() -> str:
    """Return why a process of this group was lost; empty if none was."""
    return next(iter(_world.peers.lost_ranks.values()), "") if _world.peers is not None else ""


def has_waiting_processes() -> bool:
    """Return whether processes wait to take part, as far as this one knows; `regroup` lets them."""
    return _world.joined and bool(_world.worker.waiting_workers)


def leave_group() -> None:
    """Leave the current group: pending collectives fail; `regroup` starts the next."""
    if _world.peers is not None:
        _world.peers.leave_group()


def regroup() -> None:
    """Begin a new group with all processes of an elastic job that are there, with new ranks; all of them call it.

    Those that were in the group before keep their order, and newcomers follow. Groups of before are of no use any more.

    Raises:
        MXNetError: a process did not come, or cannot be reached. SystemExit: see `init`.
    """
    with _lock:
        if is_elastic():
            _attach_peer_links(_world.worker.regroup())


def num_dead() -> int:
    """Return how many other processes are known to have died."""
    return len(_world.worker.dead) if _world.worker is not None else 0


__all__ = [
    "cross_rank", "cross_size", "group_of", "init", "is_initialized", "local_rank", "local_size", "mailbox_of",
    "new_group", "num_dead", "rank", "shutdown", "size",
]  # fmt: skip
