"""`DistKVStore`: values live on parameter servers, to which all workers push and from which they pull."""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Mapping, Sequence
from threading import get_ident
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from ..compile.job_rounds import job_rounds
from ..core.context import Context
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError, OrderError
from ..core.knobs import DETERMINISM
from ..core.rng import rng_streams
from ..ndarray import NDArray, waitall
from ..ndarray.interop import array_from_numpy, as_numpy_view, assign_numpy
from ..ndarray.serialize import write_file
from ..optimizer import Nadam, Optimizer
from ..optimizer.optimizer import count_updates, update_counts
from ..optimizer.state_file import dump_states
from ..profiler import set_kvstore_handle
from ..ps import WorkerNode, current_worker
from ..ps.customer import Request
from ..ps.elastic_worker import ElasticWorker
from ..ps.journal import Journal
from ..ps.protocol import (
    UNCHANGED,
    Command,
    Factor,
    LoadStates,
    PutMode,
    SetOptimizer,
    StatesRequest,
    UpdateOptimizer,
    header,
)
from ..ps.row_requests import is_row_sliced, pull_rows, push_rows
from ..ps.worker import KVWorker, PushFuture
from ..sparse import RowSparseNDArray, write_rows
from .base import staleness_of
from .compression import Compression, make
from .local import KVStore, _flat
from .optimizer_config import is_elementwise, schedule_of, settings, to_config, unsupported_reason
from .residuals import Residuals
from .row_sparse import parse_row_ids, rows_of, select_rows, store_rows, union_ids
from .states import (
    Snapshot,
    StateReader,
    flatten,
    join_slices,
    on_device,
    read_snapshot,
    read_states,
    restore_random_streams,
    slice_state,
    write_random_streams,
)


class MemberStore(KVStore):
    """What distributed stores know of their job.

    Attributes:
        _worker: this process's place in the job, and `_kv` its requests to servers.
        _number: of this store.
        _completed: rounds of this worker before it died, and `_restored` those of a snapshot.
    """

    _worker: WorkerNode
    _kv: KVWorker
    _number: int
    _completed = 0
    _restored = 0
    _contributes_zero = False  # what is pushed does not count: this worker has no samples in this batch

    def send_command_to_servers(self, head: int, body: str) -> None:
        """Send a command to all servers, which log those that they do not know.

        Args:
            head: number of the command: 5 has the profiler do what `body` says, see `profile_servers`.
            body: text.

        Raises:
            ArgumentError: a server cannot do it. MXNetError: a server is gone.
        """
        command = header(Command(self._number, int(head), str(body)))
        self._kv.wait(self._kv.ask_all("kvstore.send_command_to_servers", command))

    _send_command_to_servers = send_command_to_servers

    @property
    def rank(self) -> int:
        """Rank of this worker, from 0; in an elastic job among the members of the current round."""
        return self._worker.rank if self._elastic is None else self._elastic.position

    @property
    def num_workers(self) -> int:
        """Workers of the job; in an elastic job the members of the current round."""
        return self._worker.job.workers if self._elastic is None else len(self._elastic.members)

    @property
    def _elastic(self) -> ElasticWorker | None:
        return self._kv.elastic

    def _sync_before_pull(self) -> None:
        """In an elastic job: end the current round if anything was pushed for it."""
        if self._elastic is not None:
            self._elastic.sync_before_pull()

    @property
    def is_recovery(self) -> bool:
        """Whether this process replaces a worker that died, or joins workers that started before it.

        `init` and `set_optimizer` keep what the servers have then; the script goes on at round `completed_rounds`.
        """
        return self._worker.is_restarted

    @property
    def completed_rounds(self) -> int:
        """Rounds of pushes that this worker had completed when it died; in an elastic job batches that are over."""
        if self._elastic is not None:
            return max(self._elastic.number - 1, 0)
        return self._restored + self._completed

    def barrier(self) -> None:
        """Wait until all workers have called it.

        Raises:
            MXNetError: a worker or the scheduler is gone.
        """
        waitall()
        self._worker.barrier()

    _barrier = barrier

    def num_dead_node(self, timeout: int = 60, node_id: int = 0) -> int:
        """Return how many processes of the job have died.

        Args:
            timeout: accepted; `PS_HEARTBEAT_TIMEOUT` decides when a silent process is dead.
            node_id: a sum of groups: 1 the scheduler, 2 the servers, 4 the workers; 0 for all; or the number of one
                process: 8 + 2 * rank of a server, 9 + 2 * rank of a worker.
        """
        if node_id >= 8:
            return int((("worker" if node_id % 2 else "server"), (node_id - 8) // 2) in self._worker.dead)
        groups = {"scheduler": 1, "server": 2, "worker": 4}
        return sum(bool(groups[role] & (node_id or 7)) for role, _ in self._worker.dead)


_log = logging.getLogger(__name__)
PROFILER = 5  # command of servers' profilers
_numbers = iter(range(1 << 62))


class _StoredSpec(NamedTuple):
    """What is known of a stored value here."""

    shape: tuple[int, ...]
    dtype: Any
    context: Context
    stype: str = "default"


class DistKVStore(MemberStore):
    """Key-value store of a distributed job.

    Synchronous stores sum what all workers push in a round, in the order of ranks, so that all workers see the same
    bits; asynchronous ones update at each push. Every call returns or raises `MXNetError`: a peer that died or left
    is named with the reason and the round that it is missing in.

    All workers make the same calls of `init` and `set_optimizer`, in the same order.

    Args:
        name: contains `dist`; with `async` asynchronous, as `dist_ssp:k` with workers at most k pushes ahead of others.
    """

    def __init__(self, name: str):
        super().__init__(name)
        slack = staleness_of(name)
        self._sync = "async" not in name and slack is None
        self._counts_at_once = not self._sync and slack is None
        self._worker = current_worker(f"kvstore.create: name={name!r}")
        elastic = self._worker.job.elastic
        if elastic and slack is not None:
            raise MXNetError(f"kvstore.create: name={name!r}: not in an elastic job, where workers come and go")
        self._deterministic = self._sync and DETERMINISM.read() == "1" and not elastic
        if not self._worker.job.servers:
            raise MXNetError(
                f"kvstore.create: name={name!r}: the job has no servers (-s 0); start some, or take 'collective'"
            )
        self._kv = self._worker.kv
        self._number = next(_numbers)
        self._specs: dict[Any, _StoredSpec] = {}
        self._stored = self._specs  # type: ignore[assignment]
        self._pending_pushes: dict[Any, PushFuture] = {}
        self._compression: Compression | None = None  # of the sums over this worker's devices
        self._optimizer: Optimizer | None = None
        self._sent_settings: dict[str, Any] = {}
        self._n_attributes = 0  # of the optimizer, when its settings were compared last
        self._sent_schedule: dict[str, Any] | None = None
        self._sent_multipliers: dict[Any, Factor] = {}
        self._push_order: dict[Any, None] = {}  # of the first pushes of keys
        self._reported_order = 0
        self._unsliced = False
        opening = self._kv.open(self._number, self._sync, f"kvstore.create({name!r})", slack)
        self._completed, self._unsliced = opening.wait()
        self._prepared_by: dict[str, int] = {}
        self._restored = 0  # rounds of a snapshot that this job went on from
        set_kvstore_handle(self)

    # -- values

    def init(self, key: Any, value: Any) -> None:
        """Store initial values: those of rank 0, which all workers see when the call returns.

        Args:
            key: an int or str, or a list of them.
            value: an NDArray, or a list of as many.

        Raises:
            ArgumentError: a key is there already, or of the other type, or has several values. MXNetError: a peer is
                gone.
        """
        pairs = self._initial(key, value, self._specs)
        for k, group in pairs:
            a = group[0]
            if 0 in a.shape:
                raise ArgumentError(f"kvstore.init: key {k!r}: an array without elements")
            self._key_type = str if isinstance(k, str) else int
            self._specs[k] = _StoredSpec(a.shape, a.dtype, a.context, a.stype)
            self._kv.register_key(self._number, k, a.shape, np.dtype(a.dtype), self._unsliced)
        if self.rank == 0:
            self._put(pairs)
            if self._optimizer is not None:
                self._send_optimizer_changes([k for k, _ in pairs])
        self._setup_barrier("init", [k for k, _ in pairs])
        if self._replaces_first():
            self._put(pairs)
        if self.is_recovery:
            self._count_rounds([k for k, _ in pairs])

    def _put(self, pairs: Sequence[tuple[Any, Sequence[NDArray]]]) -> None:
        """Send initial values; servers keep what they have already."""
        arrays = {k: group[0].asnumpy() for k, group in pairs}
        tables = [k for k in arrays if self._specs[k].stype == "row_sparse"]
        if self._unsliced and self._worker.is_restarted:
            self._drop_slices(list(arrays))
        self._kv.wait(self._kv.put(self._number, arrays, tables=tables or None))

    def _drop_slices(self, keys: Sequence[Any]) -> None:
        """Make servers drop all slices of complete keys but the first,
        which a worker left that died in `_unslice_keys`."""
        self._know(keys, is_unsliced=False)
        self._kv.wait(self._kv.drop(self._number, keys, first=1))
        self._know(keys, is_unsliced=True)

    def _know(self, keys: Sequence[Any], is_unsliced: bool) -> None:
        for k in keys:
            self._kv.register_key(self._number, k, self._specs[k].shape, np.dtype(self._specs[k].dtype), is_unsliced)

    def _replaces_first(self) -> bool:
        """Whether worker 0 of an elastic job may have died in a preparation for which others did not wait.

        The scheduler tells of a death before it lets others pass the barrier at the end of a preparation. Workers that
        join have not heard of all deaths, but where the first workers prepared nothing, no batch is over.
        """
        worker = self._worker
        missed = self._completed == 0 if worker.is_restarted else ("worker", 0) in worker.dead_peers
        return worker.job.elastic and self.rank != 0 and missed

    def _setup_barrier(self, what: str, keys: Any = ()) -> None:
        """Wait until all workers have made the same preparation; a restarted worker has made it before."""
        count = self._prepared_by[what] = self._prepared_by.get(what, 0) + 1
        more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        which = f"of key {keys[0]!r}{more}" if keys else f"number {count}"
        if what == "init":  # workers that think of other arrays do not meet here
            likes = {k: (np.dtype(self._specs[k].dtype).name, list(self._specs[k].shape)) for k in keys}
            name, shape = likes[keys[0]]
            which += f" {name}{shape}" + (f" ({zlib.crc32(repr(likes).encode()):08x})" if more else "")
        self._worker.barrier(f"after {what} {which} in store {self._number}")

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Send the sums over this worker's devices to the servers, which sum over the workers, and store or update.

        The call does not wait for the other workers, unless this worker's last push of a key still waits for them.

        Args:
            key: an int or str, or a list of them.
            value: an NDArray or one per device; for a list of keys, a list of those.
            priority: while a connection is busy, what has a higher one is sent, and answered, first.

        Raises:
            ArgumentError: an unknown key, an array of another shape or dtype, or an asynchronous store without an
                optimizer; nothing is sent then. MXNetError: a peer is gone.
        """
        if self._compression is None and not self._contributes_zero and self._is_single_dense("push", key, value):
            if self._optimizer is None:
                self._needs_optimizer()
            array = as_numpy_view(value)
            self._begin_round([key])
            self._pending_pushes[key] = self._kv.push_coalesced(self._number, {key: array}, None, 1, priority)
            self._count_rounds([key])
            return
        pairs = self._grouped("push", key, value)
        for k, group in pairs:
            for a in group:
                self._check_array("push", k, a)
        self._needs_optimizer()
        apart = {k: group for k, group in pairs if self._deterministic and len(group) > 1 and not group[0].is_sparse}
        if self._compression is not None:
            apart = {}
        sums = {k: self._sum(k, group) if len(group) > 1 else group[0] for k, group in pairs if k not in apart}
        code = None
        if self._compression is not None and not self._contributes_zero:
            rounds = self._kv.rounds
            sums = {
                k: a if self._sent_as_rows(a, k) else self._compression(k, a, rounds[self._number, k] + 1)
                for k, a in sums.items()
            }
            code = self._compression.code
        rows = {k: rows_of(a) for k, a in sums.items() if self._sent_as_rows(a, k)}
        arrays = {k: as_numpy_view(a) for k, a in sums.items() if k not in rows}
        if self._contributes_zero:
            rows = {k: (ids[:0], found[:0]) for k, (ids, found) in rows.items()}
            arrays = {k: np.zeros_like(a) for k, a in arrays.items()}
        self._begin_round([k for k, _ in pairs])
        for count in {len(group) for group in apart.values()}:
            terms = {k: np.stack([as_numpy_view(a) for a in g]) for k, g in apart.items() if len(g) == count}
            queued = self._kv.push_coalesced(self._number, terms, None, count, priority)
            self._pending_pushes.update(dict.fromkeys(terms, queued))
        if rows:
            queued = push_rows(self._kv, self._number, rows)
            self._pending_pushes.update(dict.fromkeys(rows, queued))
        if arrays:
            queued = self._kv.push_coalesced(self._number, arrays, code, 1, priority)
            self._pending_pushes.update(dict.fromkeys(arrays, queued))
        self._count_rounds([k for k, _ in pairs])

    def _count_rounds(self, keys: Sequence[Any]) -> None:
        """Tell programs how many rounds of a synchronous store this worker, and that before it, has pushed."""
        if self._sync and keys:
            number = self._restored + max([self._kv.rounds[self._number, k] for k in keys])
            if number + 1 < job_rounds.next_change:
                job_rounds.number, job_rounds.thread = max(number, job_rounds.number), get_ident()
            else:
                job_rounds.advance(number, waitall)

    def _is_single_dense(self, what: str, key: Any, a: Any) -> bool:
        """Whether a call is for one dense array of the stored shape: a quick check, others take the slow path."""
        if (type(key) is not str and type(key) is not int) or not isinstance(a, NDArray) or a.is_sparse:
            return False
        like, v = self._specs.get(key), a.aval
        return like is not None and v.shape == like.shape and (what == "pull" or v.dtype.type is like.dtype)

    def _needs_optimizer(self) -> None:
        if self._optimizer is None and (not self._sync or self._elastic is not None):
            kind = "the stores of elastic jobs" if self._sync else "asynchronous stores"
            raise ArgumentError(
                f"kvstore {self._name!r}: {kind} need an optimizer; call set_optimizer (update_on_kvstore=True)"
            )

    def _begin_round(self, keys: list[Any]) -> None:
        """Before a push: wait for the last pushes of its keys, and send changed settings to the servers."""
        if self._pending_pushes:
            self._wait_for_pushes(keys)
        if self._optimizer is not None:
            if isinstance(self._optimizer, Nadam):  # its updates depend on those of the other keys
                self._push_order.update(dict.fromkeys(keys))
            if (self._worker.rank if self._kv.elastic is None else self.rank) == 0:
                self._send_optimizer_changes(keys)
            if self._sync:
                self._count(self._optimizer, keys)

    def _count(self, optimizer: Optimizer, keys: list[Any]) -> None:
        """Count an update, and advance the schedule to the rate that the servers use for it."""
        before = optimizer.num_update
        count_updates(optimizer, keys)
        if optimizer.lr_scheduler is not None and optimizer.num_update > before:
            optimizer.lr_scheduler(optimizer.num_update)
            self._sent_schedule = schedule_of(optimizer)

    def _sent_as_rows(self, array: NDArray, key: Any) -> TypeGuard[RowSparseNDArray]:
        return isinstance(array, RowSparseNDArray) and is_row_sliced(self._kv.keys[self._number, key])

    def _wait_for_pushes(self, keys: Any) -> None:
        """Wait for this worker's last pushes of keys."""
        if len(keys) == 1:
            (key,) = keys
            only = self._pending_pushes.pop(key, None)
            if only is not None:
                self._kv.wait(only.requests if only.requests is not None else only.requests_after_flush())
            return
        queued = {id(q): q for k in keys if (q := self._pending_pushes.pop(k, None)) is not None}
        self._kv.wait([t for q in queued.values() for t in q.requests_after_flush()])

    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Copy the stored values into `out`, cast to their dtype, after the rounds that this worker has pushed.

        A sparse array in `out` is left alone with `ignore_sparse`; else a row_sparse one gets the rows that are stored.

        Raises:
            ArgumentError: an unknown key, no `out`, or an array of another shape. MXNetError: a peer is gone.
        """
        if out is None:
            raise ArgumentError("kvstore.pull: out=None: expected the arrays to write to")
        ahead = self._sync and self._kv.elastic is None
        if ahead and self._is_single_dense("pull", key, out):
            value_of = self._kv.pull_prefetched(self._number, [key], ahead, priority)
            self._wait_for_pushes([key])
            assign_numpy(out, value_of(key))
            return
        pairs = self._grouped("pull", key, out)
        for k, group in pairs:
            for a in group:
                self._check_array("pull", k, a)
        self._sync_before_pull()
        if any(a.is_sparse for _, group in pairs for a in group):
            pairs = self._pull_sparse(pairs, ignore_sparse)
        keys = [k for k, _ in pairs]
        if not keys:
            return
        value_of = self._kv.pull_prefetched(self._number, list(dict.fromkeys(keys)), ahead, priority)
        self._wait_for_pushes(keys)
        values = {k: value_of(k) for k in dict.fromkeys(keys)}
        for k, group in pairs:
            value = array_from_numpy(values[k], group[0].context, copy=None)
            for a in group:
                value.copyto(a)

    def _pull_sparse(self, pairs: list[tuple[Any, list[Any]]], ignore: bool) -> list[tuple[Any, list[Any]]]:
        """Serve the row_sparse arrays that can be, unless they are ignored; returns what is left to be pulled."""
        left, tables = [], {}
        for k, group in pairs:
            served = [a for a in group if ignore and a.is_sparse or self._sent_as_rows(a, k)]
            if ignore and served:
                _log.warning(
                    "kvstore.pull: key %r: a %s array is left alone; use row_sparse_pull or ignore_sparse=False",
                    k,
                    served[0].stype,
                )
            elif served:
                tables[k] = served
            rest = [a for a in group if not any(a is s for s in served)]
            left += [(k, rest)] if rest else []
        if tables:
            received = pull_rows(self._kv, self._number, dict.fromkeys(tables))
            self._wait_for_pushes(tables)
            for k, found in received().items():
                for a in tables[k]:
                    store_rows(a, found, "kvstore.pull")
        return left

    def _values(self, keys: list[Any]) -> dict[Any, np.ndarray]:
        self._sync_before_pull()
        asked = self._kv.pull(self._number, list(dict.fromkeys(keys)))
        self._wait_for_pushes(keys)
        return asked.values()

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """`init` and then `pull`; when it returns, all workers have the values."""
        super().broadcast(key, value, out, priority)
        self._setup_barrier("broadcast", self._keys("broadcast", key)[0])

    def row_sparse_pull(self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None) -> None:
        """As in the local store; only the requested rows are sent, each once.

        Raises:
            ArgumentError: see `KVStore.row_sparse_pull`; or rows that are not there. MXNetError: a peer is gone.
        """
        if out is None or row_ids is None:
            raise ArgumentError("kvstore.row_sparse_pull: expected out and row_ids")
        pairs, id_arrays = self._grouped("row_sparse_pull", key, out), _flat(row_ids)
        self._sync_before_pull()
        what, count = "kvstore.row_sparse_pull", sum(len(group) for _, group in pairs)
        if len(id_arrays) not in (1, count):  # one for all arrays, or one for each
            raise ArgumentError(f"{what}: {len(id_arrays)} arrays of row_ids for {count} arrays in out")
        remaining = iter(id_arrays * count if len(id_arrays) == 1 else id_arrays)
        asked: list[tuple[Any, NDArray, np.ndarray]] = []
        for k, group in pairs:
            for a in group:
                self._check_array("row_sparse_pull", k, a)
                asked.append((k, a, parse_row_ids(next(remaining), a.shape[0], what)))
        ids = {k: union_ids([i for other, _, i in asked if other == k]) for k, _ in pairs}
        unsliced = [k for k in ids if not is_row_sliced(self._kv.keys[self._number, k])]
        received = pull_rows(self._kv, self._number, {k: i for k, i in ids.items() if k not in unsliced})
        values = self._values(unsliced) if unsliced else {}
        self._wait_for_pushes(ids)
        found = received() | {k: (ids[k], values[k][ids[k]]) for k in unsliced}
        for k, a, own in asked:
            store_rows(a, select_rows(found[k], own), what)

    def refresh(self, key: Any, tables: Sequence[NDArray], row_ids: NDArray | None = None) -> None:
        """Bring rows of copies of a stored value up to date: those numbered in `row_ids`, or all.

        Args:
            key: the key.
            tables: dense arrays, or row_sparse ones that hold all their rows.
            row_ids: row numbers, in any order.
        """
        self._sync_before_pull()
        if row_ids is None or not is_row_sliced(self._kv.keys[self._number, key]):
            value = self._values([key])[key]
            for table in tables:
                table[:] = value
            return
        self.write_changed_rows({key: (tables, parse_row_ids(row_ids, tables[0].shape[0], "kvstore.refresh"))})

    def write_changed_rows(self, changed: Mapping[Any, tuple[Sequence[NDArray], np.ndarray]]) -> None:
        """Fetch rows of keys, by ascending numbers, and write them into copies that have all their rows."""
        received = pull_rows(self._kv, self._number, {k: ids for k, (_, ids) in changed.items()})
        self._wait_for_pushes(changed)
        for k, found in received().items():
            for table in changed[k][0]:
                write_rows(table, *found)

    def reset(self, key: Any, value: NDArray) -> None:
        """Replace a stored value by that of rank 0, updating nothing."""
        self._check_array("push", key, value)
        if self.rank == 0:
            self._kv.wait(self._kv.put(self._number, {key: value.asnumpy()}, PutMode.RESET))
        self._kv.drop_prefetched()

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """Send gradients packed, such as `{"type": "2bit", "threshold": 0.5}`; what is lost is added to the next.

        Gradients by rows (row_sparse) travel as they are.

        Args:
            compression_params: type (`"2bit"`, `"1bit"`, `"fp16"`) and threshold; see `compression.Compression`.

        Raises:
            ArgumentError: an unknown type or setting.
        """
        back = self.is_recovery and self._compression is None
        self._compression = make(compression_params)
        job = self._worker.job
        if job.on_worker_death == "wait" and job.journal:
            journal = Journal(job.journal, self.rank, job.durable, f"residuals-{self._number}", job.restart_timeout)
            self._compression.residuals = residuals = Residuals(journal, back)
            self._worker.journals.append(journal)
            if back and self._completed and residuals.empty:
                _log.warning(
                    "kvstore.set_gradient_compression: worker %d goes on without what the one before it had kept back: "
                    "DUALMX_JOURNAL=%r: it is not there; give a folder that all hosts see", self.rank, job.journal
                )  # fmt: skip
        elif job.on_worker_death == "wait":
            _log.warning(
                "kvstore.set_gradient_compression: without DUALMX_JOURNAL, a folder for it, a worker that takes the "
                "place of a dead one goes on without what that one had kept back of its gradients"
            )

    def barrier(self) -> None:
        """Wait until all workers have called it; what they have pushed to an asynchronous store counts by then.

        Raises:
            MXNetError: a worker or the scheduler is gone.
        """
        if self._counts_at_once:
            self._wait_for_pushes(list(self._pending_pushes))
        super().barrier()

    _barrier = barrier

    # -- updates on the servers

    def _set_updater(self, updater: Any) -> None:
        raise MXNetError(
            f"kvstore {self._name!r}: servers run no code of yours, so they call no updater; use set_optimizer, or "
            "pull the sums and update on the workers"
        )

    @staticmethod
    def unsupported_reason(optimizer: Any) -> str:
        """Why the servers cannot apply `optimizer`; empty if they can."""
        return unsupported_reason(optimizer)

    @property
    def optimizer(self) -> Optimizer | None:
        """The optimizer that the servers apply."""
        return self._optimizer

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Update the stored values by `optimizer` on the servers at each push; all workers call it.

        Later changes of its settings, schedule, multipliers and rates on rank 0 reach the servers with the next push.
        Optimizers that look at whole arrays (norms) get keys in one piece.

        Raises:
            ArgumentTypeError: no Optimizer. ArgumentError: one that servers cannot apply. MXNetError: a peer is gone.
        """
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(f"kvstore.set_optimizer: {type(optimizer).__name__}: expected an Optimizer")
        config = to_config(optimizer)
        self._wait_for_pushes(list(self._pending_pushes))
        if not is_elementwise(optimizer):
            self._unslice_keys()
        self._optimizer = optimizer
        if self.rank == 0:
            self._send_optimizer(optimizer, config)
        self._sent_settings, self._sent_schedule = settings(optimizer), schedule_of(optimizer)
        self._reported_order = len(self._push_order)
        self._sent_multipliers = {f[0]: f for f in optimizer.multipliers(list(self._specs))}
        self._setup_barrier(f"set_optimizer({type(optimizer).__name__})")
        if self._replaces_first():
            self._send_optimizer(optimizer, config, default=self.is_recovery)

    def _send_optimizer(self, optimizer: Optimizer, config: Any, default: bool = False) -> None:
        """Hand the servers the optimizer; one that is a `default` only where they have none."""
        sent = optimizer.multipliers(list(self._specs))
        step, order = self._kv.next_setup_step(self._number), list(self._push_order)
        record = SetOptimizer(self._number, config, sent, order, step, default)
        self._kv.wait(self._kv.ask_all("kvstore.set_optimizer", header(record)))

    def _unslice_keys(self) -> None:
        """Move keys that are stored in slices to one server each."""
        if self._unsliced:
            return
        self._unsliced = True
        sliced = [k for k in self._specs if len(self._kv.keys[self._number, k].slices) > 1]
        values = self._values(sliced) if self.rank == 0 else {}
        self._setup_barrier("gathering of slices")
        if self.rank == 0:
            self._kv.wait(self._kv.drop(self._number, sliced))
        self._know(sliced, is_unsliced=True)
        if self.rank == 0:
            self._kv.wait(self._kv.put(self._number, values, PutMode.FRESH))

    def _send_optimizer_changes(self, keys: Any) -> None:
        """Send what has changed in the optimizer since the servers last heard of it, before `keys` are pushed."""
        optimizer, sent = self._optimizer, self._sent_settings
        assert optimizer is not None
        attributes, now = vars(optimizer), sent
        if len(attributes) != self._n_attributes or not sent.items() <= attributes.items():
            now, self._n_attributes = settings(optimizer), len(attributes)
        changed = {k: v for k, v in now.items() if k not in sent or sent[k] != v} if now is not sent else {}
        fresh = [f for f in optimizer.multipliers(keys) if self._sent_multipliers.get(f[0]) != f]
        schedule = schedule_of(optimizer) if optimizer.lr_scheduler is not None else None
        new_schedule = UNCHANGED if schedule == self._sent_schedule else schedule
        order = list(self._push_order) if len(self._push_order) != self._reported_order else None
        if not changed and not fresh and order is None and new_schedule is UNCHANGED:
            return
        self._wait_for_pushes(
            list(self._pending_pushes)
        )  # rounds under way are made with the old settings, whatever is repeated
        record = UpdateOptimizer(self._number, changed, fresh, new_schedule, order)
        self._kv.wait(self._kv.ask_all("change of the optimizer's settings", header(record)))
        self._sent_settings, self._sent_schedule, self._reported_order = now, schedule, len(self._push_order)
        self._sent_multipliers.update((f[0], f) for f in fresh)

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Write the optimizer's states, gathered from all servers, to a file as one process would; any worker can.

        Raises:
            MXNetError: no optimizer is set, or a peer is gone.
        """
        optimizer = self._needed()
        self._sync_before_pull()
        self._wait_for_pushes(list(self._pending_pushes))
        states = self.gather_states(optimizer)
        write_file(fname, dump_states(states, optimizer if dump_optimizer else None))

    def load_optimizer_states(self, fname: str) -> None:
        """Read the optimizer's states from a file of dualmx or MXNet, and give them to the servers; all workers call.

        Raises:
            FormatError: a damaged file. MXNetError: no optimizer is set, the file cannot be read, or a peer is gone.
        """
        current = self._needed()
        states, optimizer = read_states(fname)
        if optimizer is not None:
            optimizer.param_dict = current.param_dict
            self.set_optimizer(optimizer)
        optimizer = self._needed()
        if self.rank == 0:
            self._kv.wait(self.send_states(states, optimizer))
        self._setup_barrier("load_optimizer_states")

    def gather_states(self, optimizer: Optimizer) -> dict[Any, Any]:
        """Return the states of all keys from all servers; the optimizer's counts are brought up to date."""
        found: dict[Any, dict[int, Any]] = {}
        counts: dict[Any, int] = {}
        for reply in self._kv.wait(
            self._kv.ask_all("kvstore.save_optimizer_states", header(StatesRequest(self._number)))
        ):
            reader = StateReader(reply.data())
            for key, number, count, tree in reply.field("states", list):
                found.setdefault(key, {})[number] = reader.unflatten(tree)
                counts[key] = max(count, counts.get(key, 0))
            optimizer.num_update = max(optimizer.num_update, reply.field("num_update", int))
        update_counts(optimizer).update(counts)
        if isinstance(optimizer, Nadam) and self._push_order and counts:
            pushed = len(self._push_order)
            optimizer.m_schedule = optimizer.schedule_product(max(counts.values()), pushed - 1, pushed)
        states = {}
        for key, pieces in found.items():
            known = self._kv.keys[self._number, key]
            sizes = [s.stop - s.start for s in known.slices]
            states[key] = on_device(join_slices([pieces[s.number] for s in known.slices], sizes, known.shape))
        return states

    def send_states(self, states: Mapping[Any, Any], optimizer: Optimizer) -> list[Request]:
        """Send states to the servers that keep their keys; returns what to wait for.

        Raises:
            MXNetError: a key is not in the store.
        """
        parts: dict[int, tuple[list[Any], list[np.ndarray]]] = {}
        for key, state in states.items():
            if key not in self._specs:
                raise MXNetError(f"kvstore.load_optimizer_states: key {key!r} of the file is not in the store")
            known = self._kv.keys[self._number, key]
            for s in known.slices:
                trees, payload = parts.setdefault(s.server, ([], []))
                tree = flatten(slice_state(state, s.start, s.stop, known.slices[-1].stop), payload)
                trees.append([key, s.number, update_counts(optimizer).get(key, 0), tree])
        what = "kvstore.load_optimizer_states"
        step = self._kv.next_setup_step(self._number)
        return [
            self._kv.ask(server, what, header(LoadStates(self._number, trees, optimizer.num_update, step)), payload)
            for server, (trees, payload) in parts.items()
        ]

    def _needed(self) -> Optimizer:
        if self._optimizer is None:
            raise OrderError("kvstore: there are no optimizer states; call set_optimizer first")
        return self._optimizer

    def save_snapshot(self, fname: str, extra: Any = None) -> None:
        """Write values, optimizer and states after the same round, and where random streams are; all workers call it.

        Synchronous workers need not wait for each other: no round ends before rank 0 has written its file. The others
        write their random streams beside it, to `fname.<rank>`.

        Args:
            fname: the file.
            extra: anything that JSON can hold, such as the position in the data.

        Raises:
            ArgumentError: JSON cannot hold `extra`. MXNetError: the file cannot be written, or a peer is gone.
        """
        try:
            extra = json.loads(json.dumps(extra))
        except (TypeError, ValueError) as e:
            raise ArgumentError(f"kvstore.save_snapshot: extra={extra!r}: {e}; expected what JSON can hold") from None
        self._wait_for_pushes(list(self._pending_pushes))
        rounds = self._restored + max((self._kv.rounds[self._number, k] for k in self._specs), default=0)
        if not self._sync:
            self.barrier()  # nobody pushes meanwhile; in synchronous stores no round ends without rank 0
        if self.rank:
            write_random_streams(f"{fname}.{self.rank}", rounds)
        else:
            random, values, optimizer = rng_streams.state(), self._values(list(self._specs)), self._optimizer
            states = None if optimizer is None else (self.gather_states(optimizer), optimizer)
            stypes = {k: spec.stype for k, spec in self._specs.items()}
            Snapshot(rounds, random, extra, values, states).write(fname, stypes)
        if not self._sync:
            self.barrier()

    def restore_snapshot(self, fname: str) -> Any:
        """Restore a snapshot, with any number of servers; replaces `init` and `set_optimizer`, on all workers.

        `completed_rounds` is what it was then; workers of ranks that were there draw the random numbers that followed.

        Returns:
            The `extra` that was saved.

        Raises:
            FormatError: no snapshot. MXNetError: it cannot be read, or a peer is gone.
        """
        snapshot = read_snapshot(fname)
        values = snapshot.values
        fresh = [k for k in values if k not in self._specs]
        if fresh:
            self.init(fresh, [values[k] for k in fresh])
        for key in values.keys() - set(fresh):
            self.reset(key, values[key])
        if snapshot.states is not None:
            states, optimizer = snapshot.states
            if self._optimizer is not None:
                optimizer.param_dict = self._optimizer.param_dict
            self.set_optimizer(optimizer)
            if self.rank == 0:
                self._kv.wait(self.send_states(states, optimizer))
        self._setup_barrier("restore_snapshot")
        self._restored = snapshot.rounds
        self._count_rounds(list(values))
        restore_random_streams(snapshot, f"{fname}.{self.rank}" if self.rank else None)
        return snapshot.extra

    def profile_servers(self, call: str, arguments: Mapping[str, Any]) -> None:
        """Call a function of `dualmx.profiler` on all servers, such as `"set_state"` with `{"state": "run"}`."""
        self._wait_for_pushes(list(self._pending_pushes))
        self.send_command_to_servers(PROFILER, json.dumps({"call": call, "arguments": dict(arguments)}))


__all__ = ["DistKVStore", "MemberStore"]
