"""Hybrid store: dense gradients by all-reduce, embedding tables on parameter servers."""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import parallel
from ..core.errors import ArgumentError, MXNetError, OrderError
from ..core.knobs import COLLECTIVES
from ..ndarray import NDArray, zeros_like
from ..ndarray.serialize import write_file
from ..optimizer import Optimizer, Updater
from ..optimizer.state_file import dump_states
from ..parallel.world import group_of
from ..ps import current_worker
from ..ps.row_requests import is_row_sliced
from ..sparse import RowSparseNDArray
from .collective import CollectiveKVStore
from .dist import DistKVStore, MemberStore
from .local import KVStore, _flat
from .optimizer_config import schedule_of, settings, updates_rows
from .states import read_states


class _TrackedCopies:
    """Copies of a table's rows, with the rows that changed since.

    Args:
        arrays: which have them all now.
    """

    def __init__(self, arrays: Sequence[NDArray]):
        self._arrays = [weakref.ref(a) for a in arrays]
        self.changed = np.empty(0, np.int64)

    def same_arrays(self, arrays: Sequence[NDArray]) -> bool:
        return len(arrays) == len(self._arrays) and all(a is r() for a, r in zip(arrays, self._arrays, strict=True))


class MixedKVStore(MemberStore):
    """Key-value store of a job in which the servers keep the tables, and the workers everything else.

    A key is a table if its first value is row_sparse, or if `expect_rows` has said that its gradients will be; a
    `gluon.Trainer` says so of its parameters. Tables lie on the servers as in `"dist_sync"`: rows travel, and servers
    update them. Other values are summed by exchanges between the workers as in `"collective"`, and updated by every
    worker alike. There is one optimizer for both, and one file of its states.

    All workers make the same calls in the same order. Every call returns or raises `MXNetError`, which names a process
    that is gone.

    Args:
        name: what the store is called.

    Raises:
        MXNetError: no job, a job without servers or one that goes on without a worker; or the processes cannot meet.

    Example:
        >>> import dualmx as mx
        >>> mx.kv.create("dist_mixed")  # doctest: +SKIP
        >>> trainer = mx.gluon.Trainer(net.collect_params(), "adam", kvstore="dist_mixed")  # doctest: +SKIP
    """

    def __init__(self, name: str):
        super().__init__(name)
        what = f"kvstore.create: name={name!r}"
        policy = current_worker(what).job.on_worker_death
        if policy != "fail":
            raise MXNetError(
                f"{what}: the sums need all workers, but the job has --on-worker-death {policy}; take 'dist_sync'"
            )
        self._servers = DistKVStore(name)
        # XLA must be told before there are arrays, which a script that only names a store does not do.
        backend = COLLECTIVES.read()
        parallel.init(backend="host" if backend == "auto" else backend)
        self._workers = CollectiveKVStore(name)
        self._worker, self._kv, self._number = self._servers._worker, self._servers._kv, self._servers._number
        self._store_of: dict[Any, KVStore] = {}
        self._expected: set[Any] = set()
        self._optimizer: Optimizer | None = None
        self._copies: dict[Any, _TrackedCopies] = {}

    # -- keys

    def expect_rows(self, key: Any) -> None:
        """Declare before `init` that the gradients of keys will be row_sparse: servers store these keys.

        Args:
            key: a key or a list of keys.

        Raises:
            ArgumentError: a key is there already.
        """
        keys, _ = self._keys("expect_rows", key)
        for k in keys:
            if k in self._store_of:
                raise ArgumentError(f"kvstore.expect_rows: key {k!r} was initialized before")
        self._expected.update(keys)

    def is_table(self, key: Any) -> bool:
        """Whether the servers keep a key.

        Raises:
            ArgumentError: an unknown key.
        """
        return self._store_for("is_table", key) is self._servers

    def _store_for(self, what: str, key: Any) -> KVStore:
        if key not in self._store_of:
            raise ArgumentError(f"kvstore.{what}: key {key!r} has not been initialized; call init first")
        return self._store_of[key]

    def _split_call(self, what: str, key: Any, values: Any) -> list[tuple[KVStore, list[Any], list[list[NDArray]]]]:
        """What each half gets of a call, the servers first: keys, and their arrays. All of them fit what is stored."""
        pairs = self._grouped(what, key, values)
        for k, group in pairs:
            for a in group:
                self._store_for(what, k)._check_array(what, k, a)
        return self._parts(pairs, self._store_of)

    def _parts(
        self, pairs: list[tuple[Any, list[NDArray]]], half: Mapping[Any, KVStore]
    ) -> list[tuple[KVStore, list[Any], list[list[NDArray]]]]:
        found: list[tuple[KVStore, list[Any], list[list[NDArray]]]] = []
        for one in (self._servers, self._workers):
            own = [(k, group) for k, group in pairs if half[k] is one]
            if own:
                found.append((one, [k for k, _ in own], [group for _, group in own]))
        return found

    # -- values

    def init(self, key: Any, value: Any) -> None:
        """Store initial values: those of rank 0, which all workers see when the call returns.

        Raises:
            ArgumentError: a key is there already, or of the other type. MXNetError: a peer is gone, or the workers do
                not agree which keys are tables.
        """
        pairs = self._initial(key, value, self._store_of)
        half: dict[Any, KVStore] = {}
        for k, group in pairs:
            table = k in self._expected or group[0].stype == "row_sparse"
            half[k] = self._servers if table else self._workers
        # Workers that divide the keys in another way would wait for each other at different places.
        tables = [k for k in half if half[k] is self._servers]
        digest = zlib.crc32(repr((list(half), tables)).encode())
        self._servers._setup_barrier(f"division of {len(half)} keys, {len(tables)} of them tables ({digest:08x}),")
        for one, keys, groups in self._parts(pairs, half):
            one.init(keys, [group[0] for group in groups])
            self._store_of.update(dict.fromkeys(keys, one))
            self._key_type = one._key_type

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Send the gradients of tables to the servers, and sum the others over devices and workers.

        Args:
            key: an int or str, or a list of them.
            value: an NDArray or one per device; for a list of keys, a list of those.
            priority: see `DistKVStore.push`.

        Raises:
            ArgumentError: an unknown key, or an array of another shape or dtype; nothing is sent then.
            MXNetError: a peer is gone.
        """
        self._servers._contributes_zero = self._contributes_zero
        for half, keys, groups in self._split_call("push", key, value):  # the servers work while the workers sum
            if half is self._servers:
                half.push(keys, groups, priority)
                self._track_changed_rows(keys, groups)
                continue
            if self._contributes_zero:
                groups = [[zeros_like(a) for a in group] for group in groups]
            if self._optimizer is None:
                half.push(keys, groups, priority)
                continue
            before, schedule = settings(self._optimizer), schedule_of(self._optimizer)
            half.push(keys, groups, priority)
            # What an update here changes in the optimizer, an update there changes as well.
            after = settings(self._optimizer)
            self._servers._sent_settings.update((k, v) for k, v in after.items() if before.get(k) != v)
            if self._servers._sent_schedule == schedule:
                self._servers._sent_schedule = schedule_of(self._optimizer)

    def _track_changed_rows(self, keys: list[Any], groups: list[list[NDArray]]) -> None:
        """Note which rows of tables with dense values the pushes of all workers change."""
        chosen: dict[Any, np.ndarray] = {}
        for k, group in zip(keys, groups, strict=True):
            if k in self._expected and self._servers._specs[k].stype == "default" and self._updates_rows_only(k):
                chosen[k] = _rows(group, self._contributes_zero)
            else:
                self._copies.pop(k, None)
        if not chosen:
            return
        ends = np.cumsum([0, *(self._servers._specs[k].shape[0] for k in chosen)])
        mark = zlib.crc32(repr(list(chosen)).encode())
        what, group = "kvstore.push", group_of(None, "kvstore.push")
        mine = np.concatenate([[mark], *(ids + at for ids, at in zip(chosen.values(), ends, strict=False))])
        found = [mine]
        if group.size > 1:
            found = group.run_in_order(lambda: group.all_gather(mine.astype(np.int64), False, what))
        if any(int(ids[0]) != mark for ids in found):
            raise ArgumentError(f"{what}: the workers push different tables; this one pushes {list(chosen)!r}")
        ids = np.unique(np.concatenate([ids[1:] for ids in found]))
        cuts = np.searchsorted(ids, ends)
        for k, at, a, b in zip(chosen, ends, cuts, cuts[1:], strict=False):
            if k in self._copies:
                self._copies[k].changed = np.union1d(self._copies[k].changed, ids[a:b] - at)

    def _updates_rows_only(self, key: Any) -> bool:
        """Whether a gradient of some rows changes these rows of a table on the servers, and no others."""
        known = self._kv.keys[self._number, key]
        return self._optimizer is not None and updates_rows(self._optimizer, table=False) and is_row_sliced(known)

    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Copy the stored values into `out`, cast to their dtype, after the rounds that this worker has pushed.

        A sparse array in `out` is left alone with `ignore_sparse`; else a row_sparse one gets the rows that are stored.

        Raises:
            ArgumentError: an unknown key, no `out`, or an array of another shape. MXNetError: a peer is gone.
        """
        if out is None:
            raise ArgumentError("kvstore.pull: out=None: expected the arrays to write to")
        for half, keys, groups in self._split_call("pull", key, out):
            half.pull(keys, groups, priority, ignore_sparse)

    def pull_changed(self, key: Any, out: Any) -> None:
        """As `pull`, into arrays that nothing else writes to.

        Of tables that `expect_rows` told of, whose values are dense, arrays that got all rows before get only those
        that pushes of any worker have changed since, where the optimizer leaves the other rows alone.

        Args:
            key: a key or a list of keys.
            out: an array or a list of arrays; for a list of keys, a list of those.

        Raises:
            ArgumentError: an unknown key, or an array of another shape. MXNetError: a peer is gone.
        """
        few: dict[Any, tuple[list[NDArray], np.ndarray]] = {}
        for half, keys, groups in self._split_call("pull_changed", key, out):
            arrays = dict(zip(keys, groups, strict=True))
            if half is self._servers:
                known = [k for k in keys if k in self._copies and self._copies[k].same_arrays(arrays[k])]
                few = {k: (arrays.pop(k), self._copies[k].changed) for k in known}
                followed = [k for k in keys if k in self._expected and self._servers._specs[k].stype == "default"]
                self._copies.update((k, _TrackedCopies(g)) for k, g in zip(keys, groups, strict=True) if k in followed)
            if arrays:
                half.pull(list(arrays), list(arrays.values()), ignore_sparse=False)
        if few:
            self._servers.write_changed_rows(few)

    def row_sparse_pull(self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None) -> None:
        """As in the local store; only the requested rows of tables are sent, each once.

        Raises:
            ArgumentError: see `KVStore.row_sparse_pull`; or rows that are not there. MXNetError: a peer is gone.
        """
        what = "row_sparse_pull"
        if out is None or row_ids is None:
            raise ArgumentError(f"kvstore.{what}: expected out and row_ids")
        ids, pairs = _flat(row_ids), self._grouped(what, key, out)
        count = sum(len(group) for _, group in pairs)
        if len(ids) not in (1, count):
            raise ArgumentError(f"kvstore.{what}: {len(ids)} arrays of row_ids for {count} arrays in out")
        remaining = iter(ids * count if len(ids) == 1 else ids)
        for k, group in pairs:
            self._store_for(what, k).row_sparse_pull(k, group, priority, [next(remaining) for _ in group])

    def refresh(self, key: Any, tables: Sequence[NDArray], row_ids: NDArray | None = None) -> None:
        """Bring rows of copies of a stored value up to date; see `DistKVStore.refresh`."""
        half = self._store_for("refresh", key)
        if isinstance(half, DistKVStore):
            half.refresh(key, tables, row_ids)
        else:
            half.pull(key, list(tables), ignore_sparse=False)

    def reset(self, key: Any, value: NDArray) -> None:
        """Replace a stored value, a table's by that of rank 0; all workers call it with the same value."""
        self._store_for("reset", key).reset(key, value)
        self._copies.pop(key, None)

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """Compress what the workers sum, as a `"device"` store does; rows of tables are sent uncompressed.

        Raises:
            ArgumentError: an unknown type or setting.
        """
        self._workers.set_gradient_compression(compression_params)

    # -- updates

    def _set_updater(self, updater: Any) -> None:
        self._servers._set_updater(updater)

    unsupported_reason = staticmethod(DistKVStore.unsupported_reason)

    @property
    def optimizer(self) -> Optimizer | None:
        """The optimizer, of the servers and the workers."""
        return self._optimizer

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Update tables on the servers, and other values on each worker, by `optimizer` at each push; all call it.

        Later changes of its settings, multipliers and rates act with the next push; servers hear of those on rank 0.

        Raises:
            ArgumentTypeError: no Optimizer. ArgumentError: one that servers cannot apply. MXNetError: a peer is gone.
        """
        self._servers.set_optimizer(optimizer)
        self._workers.set_optimizer(optimizer)
        self._optimizer = optimizer

    def _needed(self) -> tuple[Optimizer, Updater]:
        updater = self._workers._updater
        if self._optimizer is None or not isinstance(updater, Updater):
            raise OrderError("kvstore: there are no optimizer states; call set_optimizer first")
        return self._optimizer, updater

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Write the states of both halves to a file as one process would; any worker can.

        Raises:
            MXNetError: no optimizer is set, or a peer is gone.
        """
        optimizer, updater = self._needed()
        self._servers._wait_for_pushes(list(self._servers._pending_pushes))
        states = {**self._servers.gather_states(optimizer), **updater.states}
        states = {k: states[k] for k in self._store_of if k in states}
        write_file(fname, dump_states(states, optimizer if dump_optimizer else None))

    def load_optimizer_states(self, fname: str) -> None:
        """Read the states of both halves from a file of dualmx or MXNet; all workers call it.

        Raises:
            FormatError: a damaged file. MXNetError: no optimizer is set, the file cannot be read or has other keys, or
                a peer is gone.
        """
        current, _ = self._needed()
        states, optimizer = read_states(fname)
        for k in states:
            if k not in self._store_of:
                raise MXNetError(f"kvstore.load_optimizer_states: key {k!r} of the file is not in the store")
        if optimizer is not None:
            optimizer.param_dict = current.param_dict
            self.set_optimizer(optimizer)
        optimizer, updater = self._needed()
        if self.rank == 0:
            self._kv.wait(self._servers.send_states({k: s for k, s in states.items() if self.is_table(k)}, optimizer))
        updater.set_states(dump_states({k: s for k, s in states.items() if not self.is_table(k)}))
        self._servers._setup_barrier("load_optimizer_states")


def _rows(group: list[NDArray], idle: bool) -> np.ndarray:
    """Return the row ids that arrays store, in any order; all of them if one is dense."""
    if idle:
        return np.empty(0, np.int64)
    found = [
        a.indices.asnumpy() if isinstance(a, RowSparseNDArray) else np.arange(a.shape[0], dtype=np.int64) for a in group
    ]
    return np.concatenate(found)


__all__ = ["MixedKVStore"]
