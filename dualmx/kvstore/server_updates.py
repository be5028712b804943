"""Optimizers on the servers: updates of the shards kept there, and the profiler commands of workers."""

from __future__ import annotations

import json
import logging
import math
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import accumulate, takewhile
from typing import Any

import jax
import numpy as np

from .. import profiler
from ..compile.job_rounds import job_rounds
from ..core import knobs, process
from ..core.context import Context
from ..core.dtypes import is_float
from ..core.errors import ArgumentError, MXNetError
from ..ndarray import NDArray, array, flush
from ..ndarray.interop import COPY_BELOW_BYTES, array_from_numpy, as_numpy_view
from ..optimizer import Nadam, Optimizer, Updater, get_updater
from ..optimizer.optimizer import update_counts
from ..parallel import jax_distributed
from ..profiler.profiler import control
from ..ps import Job, ServerNode, run_scheduler
from ..ps.protocol import (
    OPTIMIZER_REQUESTS,
    UNCHANGED,
    Command,
    Factor,
    Key,
    LoadStates,
    SetOptimizer,
    UpdateOptimizer,
    header,
)  # fmt: skip
from ..ps.server import Record
from ..ps.sparse_rows import IndexedSlices, MutableTable, Value, dense
from ..ps.store import Shard, Store
from ..ps.van.frame import Message
from ..ps.van.shared_memory import CACHE_LINE, MIN_SHARED_BYTES
from ..sparse import RowSparseNDArray, with_storage
from .compiled_update import CompiledUpdate, can_compile
from .optimizer_config import build_schedule, from_config, to_config, update_settings, updates_rows
from .states import StateReader, flatten, on_device

_log = logging.getLogger("dualmx.dist")
OPTIMIZER, PROFILER = 0, 5
CALLS = ("set_config", "set_state", "pause", "resume", "dump")


def run_command(head: int, body: str) -> None:
    """Run a worker's `send_command_to_servers`.

    Raises:
        ArgumentError: an optimizer as a pickle, or no call of the profiler.
    """
    if head == PROFILER:
        _profile(body)
    elif head == OPTIMIZER:
        raise ArgumentError("command 0: servers take no pickled optimizers; use set_optimizer")
    else:
        _log.warning("server %s: unknown command (%d, %r)", os.environ.get("DMLC_RANK", "?"), head, body[:200])


def _profile(body: str) -> None:
    try:
        asked = json.loads(body)
        call, arguments = asked["call"], asked["arguments"]
    except (ValueError, TypeError, KeyError):
        raise ArgumentError(f"profiler command: {body[:200]!r}: expected JSON with call and arguments") from None
    if call not in CALLS or not isinstance(arguments, dict):
        raise ArgumentError(f"profiler command: call={call!r}: expected one of {', '.join(CALLS)}")
    if isinstance(arguments.get("filename"), str):
        folder, name = os.path.split(arguments["filename"])
        arguments["filename"] = os.path.join(folder, f"rank{os.environ.get('DMLC_RANK', '0')}_{name}")
    if call == "dump" and not control.unsaved:
        return  # another worker has asked for it already
    try:
        getattr(profiler, call)(**arguments)
    except TypeError as e:
        raise ArgumentError(f"profiler command: {e}") from None


_CPU = Context("cpu", 0)
GROUP_BYTES = 1 << 20  # values that lie in one block
FREQUENT_AFTER = 8  # a combination of slices that arrives so often gets a program of its own,
MAX_PROGRAMS = 16  # as long as there are not more of them
LARGE_BYTES = 2 << 20  # values that have programs of their own, which are worth compiling earlier:
COMPILED_AFTER_BYTES = 32 << 20  # when so many bytes were updated
MIN_UPDATES = 4  # that are not compiled, since many jobs take no more
GROUP_SIZE = 8  # small slices of one shape that one program updates
ShardGradient = tuple[Shard, list[np.ndarray]]  # a slice, and the terms of its gradient


def index_of(key: Any, number: int) -> str:
    """Index under which the optimizer knows a slice."""
    return f"{key!r}#{number}"


def _first_compiled_update(n_bytes: int) -> int:
    """The number of a shard's first update by a compiled program."""
    if knobs.PROMOTE_AT.is_set() or n_bytes < LARGE_BYTES:
        return job_rounds.change
    return max(MIN_UPDATES, min(job_rounds.change, COMPILED_AFTER_BYTES // n_bytes))


def _same_shape_groups(batch: list[ShardGradient]) -> Iterator[list[ShardGradient]]:
    """Divide a batch into groups that few programs serve: single shards, or `GROUP_SIZE` of one shape."""
    if len(batch) == 1:
        yield batch
        return
    small: dict[Any, list[ShardGradient]] = {}
    for one in batch:
        value = one[0].value
        if value.nbytes > COPY_BELOW_BYTES:
            yield [one]
        else:
            small.setdefault((one[0].shape, value.size, value.dtype), []).append(one)
    for same_shape in small.values():
        full = len(same_shape) - len(same_shape) % GROUP_SIZE
        yield from (same_shape[i : i + GROUP_SIZE] for i in range(0, full, GROUP_SIZE))
        yield from ([one] for one in same_shape[full:])


class StoreUpdater:
    """Applies an optimizer to the slices of one store.

    Args:
        optimizer: the optimizer.
        store: whose slices it updates.
    """

    def __init__(self, optimizer: Optimizer, store: Store):
        self.optimizer, self._store = optimizer, store
        self.updater: Updater = get_updater(optimizer)
        self._weights: dict[tuple[Any, int], tuple[Value, NDArray]] = {}
        self._multipliers: dict[Key, Factor] = {}
        self._order: list[Any] = []
        self._uncounted: dict[str, int] = {}  # updates that were recorded, for optimizers that count none
        self._group_counts: dict[tuple[int, ...], int] = {}  # how often slices came together
        self._frequent_groups: set[tuple[int, ...]] = set()
        self._compiled: dict[
            tuple[int, ...], tuple[list[Shard], CompiledUpdate | None]
        ] = {}  # until the settings change

    def apply(self, batch: list[tuple[Shard, Any]]) -> list[Value]:
        """Return the values of shards after an update by their gradients."""
        values: dict[int, Value] = {}
        others: list[ShardGradient] = []
        for shard, total in batch:
            if type(total) is list:
                others.append((shard, total))
            elif isinstance(total, IndexedSlices) and updates_rows(self.optimizer, shard.is_row_sparse):
                values[id(shard)] = self._update_rows(shard, total)
            else:
                others.append((shard, [dense(total)]))
        shared = self._store.has_shm_readers()
        if shared and (len(others) > 1 or (others and others[0][0].value.nbytes >= MIN_SHARED_BYTES)):
            values.update(self._allocate([shard for shard, _ in others]))
        for group in self._groups(others):
            if not (shared or self._store.log_rounds or self._store.keep_previous):
                self._release_values(shard for shard, _ in group)
            self._update(group, values, keeps=shared)
        return [values[id(shard)] for shard, _ in batch]

    def _groups(self, batch: list[ShardGradient]) -> Iterable[list[ShardGradient]]:
        """Divide a batch into groups, each of which one program updates, compiled or not.

        It follows from the number of each shard's own updates, so that its bits do not depend on what arrives with it.
        """
        if self._compiled.get(tuple([id(shard) for shard, _ in batch]), (None, None))[1] is not None:
            return [batch]
        groups: list[list[ShardGradient]] = []
        parts: dict[bool, list[ShardGradient]] = {False: [], True: []}
        change = _first_compiled_update(0)
        for one in batch:
            if one[0].value.nbytes >= LARGE_BYTES:
                groups.append([one])
            else:
                parts[self._update_number(one[0]) >= change].append(one)
        for part in parts.values():
            alone = len(part) == 1 or (part and self._is_frequent(part))
            groups += [part] if alone else _same_shape_groups(part)
        return groups

    def _update_number(self, shard: Shard) -> int:
        """The number of a shard's next update, from 1 on: that of the optimizer, kept with the states, if it counts."""
        index = index_of(shard.key, shard.number)
        return update_counts(self.optimizer).get(index, self._uncounted.get(index, 0)) + 1

    def _is_frequent(self, batch: list[ShardGradient]) -> bool:
        """Whether these shards often come together, so that one program for all of them pays."""
        which = tuple([id(shard) for shard, _ in batch])
        if which in self._frequent_groups:
            return True
        if len(self._group_counts) > 4096:
            self._group_counts.clear()
        self._group_counts[which] = self._group_counts.get(which, 0) + 1
        if self._group_counts[which] < FREQUENT_AFTER or len(self._frequent_groups) >= MAX_PROGRAMS:
            return False
        self._frequent_groups.add(which)
        return True

    def _allocate(self, batch: list[Shard]) -> dict[int, np.ndarray]:
        """Allocate memory for the next values; small ones are contiguous, so that they are shared as one block."""
        values: dict[int, np.ndarray] = {}
        sizes = [h.value.nbytes + -h.value.nbytes % CACHE_LINE for h in batch]
        block, at = np.empty(0, np.uint8), 0
        for i, shard in enumerate(batch):
            if at + sizes[i] > block.size:
                together = takewhile(GROUP_BYTES.__ge__, accumulate(sizes[i:]))
                block, at = self._store.alloc(max([sizes[i], *together])), 0
            values[id(shard)] = block[at : at + shard.value.nbytes].view(shard.value.dtype)
            at += sizes[i]
        return values

    def _update_rows(self, shard: Shard, total: IndexedSlices) -> MutableTable:
        """Update some rows in place."""
        where, index = (shard.key, shard.number), index_of(shard.key, shard.number)
        weight = self._weight(shard)
        self._make_state(index, weight)
        table = shard.value
        if not isinstance(table, MutableTable):
            table = MutableTable(
                lambda: as_numpy_view(_dense_storage(weight)), shard.value.size, shard.value.dtype, shard.width
            )
            self._weights[where] = (table, weight)
        table.begin_update(total.ids, self._store.keep_previous)
        values = total.values.reshape(-1, *weight.shape[1:])
        # Compiled from the start, since what is not compiled would copy the table.
        self.updater([index], [RowSparseNDArray.from_numpy_parts(weight.shape, values, total.ids, _CPU)], [weight])
        flush()  # each slice has its own number of rows: together they would make ever other programs
        return table

    def _make_state(self, index: str, weight: NDArray) -> None:
        """Create the missing state of a table, with all rows."""
        if index not in self.updater.states:
            made = self.optimizer.create_state_multi_precision(index, _dense_storage(weight))
            self.updater.states[index], self.updater.states_synced[index] = made, True

    def _update(self, batch: list[ShardGradient], into: dict[int, Any], keeps: bool) -> None:
        """Update shards, and write their values to the memory in `into`; to new memory if `keeps` requires it."""
        kept, weights, terms, ids = [], [], [], []
        for shard, some in batch:
            value, weight = self._weights.get((shard.key, shard.number), (None, None))
            keep = weight if weight is not None and value is shard.value else self._array_of(shard)
            kept.append(keep)
            weights.append(_dense_storage(keep) if keep.is_sparse else keep)
            terms.append(some)
            ids.append(id(shard))
        which = tuple(ids)
        _, update = self._compiled.get(which, (None, None))
        if update is None or not update.matches(weights, terms) or not update.run(terms):
            self._record(which, [h for h, _ in batch], weights, terms)
        for (shard, _), weight, keep in zip(batch, weights, kept, strict=True):
            updated = as_numpy_view(weight).reshape(-1)
            value = into.get(id(shard))
            if value is not None:
                value[:] = updated  # the weight's own memory is updated in place by the next round
            else:
                value = into[id(shard)] = updated.copy() if keeps else updated
            self._weights[shard.key, shard.number] = (value, keep)

    def _release_values(self, slices: Iterable[Shard]) -> None:
        """Before an update: release the old values, which share the weights' memory, so that it can be written.

        As long as somebody looks at a value, such as an answer that is not sent yet, XLA makes the next one elsewhere.
        """
        for shard in slices:
            where = (shard.key, shard.number)
            value, weight = self._weights.get(where, (None, None))
            if value is shard.value and weight is not None:
                shard.value = np.empty(0, shard.value.dtype)
                self._weights[where] = (shard.value, weight)

    def _record(
        self, which: tuple[int, ...], slices: list[Shard], weights: list[NDArray], terms: list[list[np.ndarray]]
    ) -> None:
        """Record an update, and compile it if it is likely to be repeated."""
        indices = [index_of(h.key, h.number) for h in slices]
        lying = [
            [array_from_numpy(t.reshape(w.shape), _CPU, copy=False) for t in ts]
            for ts, w in zip(terms, weights, strict=True)
        ]
        number = min(self._update_number(h) for h in slices)
        # The same for all of them, since a large one is alone.
        change = _first_compiled_update(weights[0].size * np.dtype(weights[0].dtype).itemsize)
        is_changed = number >= change or knobs.TIER.read() != "auto"
        for index in indices:
            self._uncounted[index] = self._uncounted.get(index, 0) + 1
        update = None
        with job_rounds.of_update(number, change):
            if is_changed and can_compile(self.optimizer) and self._worth_compiling(which, slices, indices):
                update = CompiledUpdate(self.updater, indices, weights, lying)
            grads = [_sum_terms(ts) for ts in lying]
            self.updater(indices, grads, weights)
            del grads  # sums that somebody holds would be results of the program
            if update is not None:
                self._compiled[which] = (slices, update if update.compile() else None)
            flush()

    def _worth_compiling(self, which: tuple[int, ...], slices: list[Shard], indices: list[str]) -> bool:
        """Whether an update is likely to be repeated, and can be compiled."""
        often = len(which) == 1 or which in self._frequent_groups
        failed = which in self._compiled and self._compiled[which][1] is None
        states = self.updater.states
        return (
            often and not failed and all([i in states for i in indices]) and not any([h.is_row_sparse for h in slices])
        )

    def _weight(self, shard: Shard) -> NDArray:
        value, weight = self._weights.get((shard.key, shard.number), (None, None))
        return weight if weight is not None and value is shard.value else self._array_of(shard)

    def _array_of(self, shard: Shard) -> NDArray:
        """An array of a slice's value."""
        made = array(dense(shard.value).reshape(_shape(shard)), ctx=_CPU, dtype=shard.value.dtype)
        return with_storage(made, "row_sparse") if shard.is_row_sparse else made

    def set_factors(self, factors: list[Factor]) -> None:
        """Take over multipliers of keys."""
        self._compiled.clear()
        numbers: dict[Any, list[int]] = {}
        for key, number in self._store.shards:
            numbers.setdefault(key, []).append(number)
        opt = self.optimizer
        for key, rate, decay, name in factors:
            self._multipliers[key] = key, rate, decay, name
            for number in numbers.get(key, ()):
                index = index_of(key, number)
                opt.lr_mult[index], opt.wd_mult[index] = rate, decay
                opt.idx2name[index] = name  # type: ignore[index]

    def set_order(self, order: list[Key]) -> None:
        """Take over the order in which keys are updated, where one process would update one after the other."""
        self._compiled.clear()
        self._order = order
        turns = {key: (i, len(order)) for i, key in enumerate(order)}
        if isinstance(self.optimizer, Nadam):
            known = self._store.shards
            self.optimizer.set_update_positions(
                {index_of(key, number): turns[key] for key, number in known if key in turns}
            )

    # -- states

    def dump(self) -> tuple[list[Any], list[Any]]:
        """States and update counts of all slices here."""
        payload: list[np.ndarray] = []
        counts = update_counts(self.optimizer)
        trees = []
        for shard in self._store.shards.values():
            index = index_of(shard.key, shard.number)
            if index in self.updater.states:
                tree = flatten(self.updater.states[index], payload)
                trees.append([shard.key, shard.number, counts.get(index, 0), tree])
        return trees, [p for p in payload if p.size]

    def log_records(self, number: int) -> Iterator[Record]:
        """Requests that make an equal updater."""
        factors = list(self._multipliers.values())
        yield header(SetOptimizer(number, to_config(self.optimizer), factors, self._order)), []
        states, payload = self.dump()
        yield header(LoadStates(number, states, self.optimizer.num_update)), payload

    def load(self, states: LoadStates, data: memoryview) -> None:
        """Take over states and counts of slices.

        Raises:
            FormatError: not what `dump` makes.
        """
        reader, opt = StateReader(data), self.optimizer
        self._compiled.clear()
        for key, number, count, tree in states.states:
            target = self._store.shard(key, number)
            index = index_of(key, number)
            self.updater.states[index] = on_device(_fitted(reader.unflatten(tree), target))
            self.updater.states_synced[index] = True
            update_counts(opt)[index] = count
        opt.num_update = max(opt.num_update, states.num_update)


def _sum_terms(terms: list[NDArray]) -> NDArray:
    """The sum of terms, in their order; 16-bit floats in float32."""
    dtype = np.dtype(terms[0].dtype)
    wide = len(terms) > 1 and is_float(dtype) and dtype.itemsize == 2
    total, *rest = terms
    total = total.astype(np.float32) if wide else total
    for one in rest:
        total = total + (one.astype(np.float32) if wide else one)
    return total.astype(dtype) if wide else total


def _shape(shard: Shard) -> tuple[int, ...]:
    """The shape that a slice is updated in: that of the array, or some rows of it, or one axis."""
    size = shard.value.size
    if size == math.prod(shard.shape):
        return shard.shape
    return (size // shard.width, *shard.shape[1:]) if shard.width > 0 and size % shard.width == 0 else (size,)


def _fitted(state: Any, shard: Shard) -> Any:
    """A state, with the slice's shape for what has as many elements."""
    if isinstance(state, tuple):
        return tuple(_fitted(s, shard) for s in state)
    return state.reshape(_shape(shard)) if state is not None and state.size == shard.value.size else state


def _dense_storage(weight: NDArray) -> NDArray:
    """Return the dense array that stores a weight."""
    return weight.to_dense() if isinstance(weight, RowSparseNDArray) else weight


class OptimizerRequests:
    """Requests that concern optimizers: `optimizer`, `set`, `states`, `load`."""

    def __init__(self) -> None:
        self._updaters: dict[int, StoreUpdater] = {}

    def records(self, number: int) -> Iterator[Record]:
        """Requests that make an equal optimizer for store `number`."""
        if number in self._updaters:
            yield from self._updaters[number].log_records(number)

    def __call__(self, op: str, store: Store, number: int, message: Message) -> tuple[dict[str, Any], list[Any]]:
        record, updater = OPTIMIZER_REQUESTS.read(message), self._updaters.get(number)
        if isinstance(record, Command):
            run_command(record.head, record.body)
        elif isinstance(record, SetOptimizer):
            if updater is None or not record.default:
                made = self._updaters[number] = StoreUpdater(from_config(record.config), store)
                made.set_factors(record.factors)
                made.set_order(record.order)
                store.apply, store.updater_sums = made.apply, True
        elif updater is None:
            raise ArgumentError("the store has no optimizer; call set_optimizer first")
        elif isinstance(record, UpdateOptimizer):
            update_settings(updater.optimizer, record.settings)
            if record.schedule is not UNCHANGED:
                updater.optimizer.lr_scheduler = build_schedule(record.schedule)
            updater.set_factors(record.factors)
            if record.order is not None:
                updater.set_order(record.order)
        elif isinstance(record, LoadStates):
            updater.load(record, message.data())
        else:
            states, payload = updater.dump()
            return {"states": states, "num_update": updater.optimizer.num_update}, payload
        return {}, []


def serve(role: str) -> None:
    """Be a server or the scheduler of the job that the environment describes, until it is over.

    Raises:
        ArgumentError: the environment lacks something. MXNetError: the job does not come together.
    """
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    job = Job.from_env()
    if role == "scheduler":
        host = job.bind_host(job.uri)
        run_scheduler(job, lambda count: jax_distributed.start_service(host, job.uri, count))
        return
    process.retain_freed()
    sys.setswitchinterval(0.0005)  # the thread that moves bytes is not to wait for updates
    if "JAX_PLATFORMS" not in os.environ:
        jax.config.update("jax_platforms", "cpu")  # a server leaves accelerators to the workers
    # Each update is waited for, and takes as long as its memory does: other threads would be woken for nothing.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    os.environ.setdefault("NPROC", "1")
    ServerNode(job, OptimizerRequests()).run()


def serve_and_exit(role: str) -> None:
    """`serve`, and end the process: nothing of the script that imports dualmx runs in it."""
    try:
        serve(role)
    except MXNetError as e:
        sys.exit(f"dualmx {role}: {e}")
    if role == "scheduler":  # it has deleted its journal: killed from here on, it would be started again as another one
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    sys.exit(0)


__all__ = ["OptimizerRequests", "StoreUpdater", "run_command", "serve", "serve_and_exit"]
