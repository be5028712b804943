"""Replicas in custom training loops: per-replica values, and functions that run on each replica.

The replicas of a process run one after another, so that their records become one program. Updates that a replica
applies take effect when all have run.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...context import Context
from ...core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ...gluon.data.batchify import map_leaves
from ...namespace import nd
from ...ndarray import NDArray

if TYPE_CHECKING:
    from .strategy import Strategy


class ReduceOp(enum.Enum):
    """How values of replicas become one."""

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def of(value: Any) -> ReduceOp:
        """Return the operation of a member or its name.

        Raises:
            ArgumentError: another name.
        """
        name = value.name if isinstance(value, enum.Enum) else str(value).upper()
        if name not in ReduceOp.__members__:
            raise ArgumentError(f"reduce_op={value!r}: expected ReduceOp.SUM or ReduceOp.MEAN")
        return ReduceOp[name]


@dataclass(frozen=True)
class PerReplica:
    """A value of each replica of this process.

    Attributes:
        values: in the order of the replicas.
    """

    values: tuple[Any, ...]


class ReplicaContext:
    """The replica that runs.

    Attributes:
        strategy: whose replica it is.
        number: among those of this process.
        context: its device.
        merges: what is to be done when all replicas have run.
        changed: ids of parameters that are about to change.
    """

    def __init__(self, strategy: Strategy, number: int):
        self.strategy, self.number = strategy, number
        self.context = strategy.contexts[number]
        self.merges: list[tuple[Any, Callable[[], None]]] = []
        self.changed: set[int] = set()

    @property
    def replica_id_in_sync_group(self) -> int:
        """Number of the replica among all that compute an update together."""
        workers = self.num_replicas_in_sync // len(self.strategy.contexts)
        return self.number + (self.strategy.rank * len(self.strategy.contexts) if workers > 1 else 0)

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas compute an update together."""
        return self.strategy.num_replicas_in_sync

    @property
    def devices(self) -> tuple[str, ...]:
        """The device of the replica."""
        return (str(self.context),)


@dataclass(frozen=True)
class InputContext:
    """Which part of the data a worker reads.

    Attributes:
        num_input_pipelines, input_pipeline_id: how many workers read, and the number of this one.
        num_replicas_in_sync: how many replicas compute an update together.
    """

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Return the rows of each replica.

        Raises:
            ArgumentError: the replicas do not divide the batch.
        """
        if global_batch_size % self.num_replicas_in_sync:
            raise ArgumentError(
                f"get_per_replica_batch_size: global_batch_size={global_batch_size}: expected a multiple of the "
                f"{self.num_replicas_in_sync} replicas"
            )
        return global_batch_size // self.num_replicas_in_sync


class _CurrentReplica(threading.local):
    replica: ReplicaContext | None = None


_running = _CurrentReplica()


def get_replica_context() -> ReplicaContext | None:
    """Return the replica that runs, None outside of `Strategy.run`."""
    return _running.replica


def replica_context(contexts: Sequence[Context]) -> Context:
    """The device of the replica that runs; outside of one the first of `contexts`."""
    replica = _running.replica
    return replica.context if replica is not None and replica.context in contexts else contexts[0]


def run(strategy: Strategy, fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call `fn` once for each replica, with its parts of the arguments; see `Strategy.run`."""
    if _running.replica is not None:
        raise MXNetError(f"{strategy!r}.run: a replica runs already; call it outside of the function that replicas run")
    replicas = [ReplicaContext(strategy, i) for i in range(len(strategy.contexts))]
    results = []
    for replica in replicas:
        part = lambda value, i=replica.number: value.values[i] if isinstance(value, PerReplica) else value  # noqa: E731
        _running.replica = replica
        try:
            with replica.context, strategy.scope():
                results.append(fn(*map_leaves(part, tuple(args)), **map_leaves(part, kwargs)))
        finally:
            _running.replica = None
    asked = [[what for what, _ in r.merges] for r in replicas]
    if any(a != asked[0] for a in asked):
        counts = ", ".join(str(len(a)) for a in asked)
        raise MXNetError(
            f"{strategy!r}.run: the replicas applied gradients {counts} times, or of other optimizers; each must "
            "apply the same"
        )
    for steps in zip(*[r.merges for r in replicas], strict=True):
        steps[-1][1]()
    return gather_per_replica(results)


def gather_per_replica(values: list[Any]) -> Any:
    """One structure with what each replica returned: a `PerReplica` in each place; the value itself of one replica.

    Raises:
        MXNetError: the replicas returned different structures.
    """
    if len(values) == 1:
        return values[0]
    columns = []
    for value in values:
        found: list[Any] = []
        map_leaves(found.append, value)
        columns.append(found)
    if len({len(c) for c in columns}) > 1:
        raise MXNetError("Strategy.run: the replicas returned different structures; each must return the same")
    each = iter([PerReplica(found) for found in zip(*columns, strict=True)])
    return map_leaves(lambda _: next(each), values[0])


def local_values(value: Any) -> tuple[Any, ...]:
    """The values of the replicas of this process."""
    return value.values if isinstance(value, PerReplica) else (value,)


def reduce_per_replica(strategy: Strategy, op: Any, value: Any, axis: int | None) -> Any:
    """Make one array of the values of all replicas; see `Strategy.reduce`."""
    kind, ctx = ReduceOp.of(op), strategy.contexts[0]
    total, count = None, 0
    for one in local_values(value):
        a = one if isinstance(one, NDArray) else nd.array(np.asarray(one), ctx=ctx)
        if axis is not None and not -a.ndim <= axis < a.ndim:
            raise ArgumentError(f"{strategy!r}.reduce: axis={axis}: the values have {a.ndim} axes")
        count += 1 if axis is None else a.shape[axis]
        a = (a if axis is None else nd.sum(a, axis=axis)).as_in_context(ctx)
        total = a if total is None else total + a
    assert total is not None
    if strategy.num_replicas_in_sync > len(strategy.contexts):
        total, count = strategy.sum_of_workers(total), int(strategy.added_up([float(count)])[0])
    return total / count if kind is ReduceOp.MEAN else total


class DistributedDataset:
    """Batches whose rows are divided among the workers and replicas of a strategy.

    Args:
        strategy: the strategy.
        batches: batches of all replicas together: arrays, or nested tuples, lists and dicts of arrays of equally many
            rows; read again for each epoch.
    """

    def __init__(self, strategy: Strategy, batches: Iterable[Any]):
        self._strategy, self._batches = strategy, batches

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        strategy = self._strategy
        for number, batch in enumerate(self._batches):
            rows = _rows(batch)
            begin, end, counted = strategy.share(number, rows)
            if counted:
                cuts = zip(_cuts(strategy, begin, end), strategy.contexts, strict=True)
                yield gather_per_replica([_taken(batch, a, b, ctx) for (a, b), ctx in cuts])


class DatasetsOfReplicas:
    """Batches that are those of one replica: each replica takes the next one.

    Args:
        strategy: the strategy.
        make: returns the batches of this worker, given an `InputContext`; called for each epoch.
    """

    def __init__(self, strategy: Strategy, make: Callable[[InputContext], Iterable[Any]]):
        self._strategy, self._make = strategy, make

    def __iter__(self) -> Iterator[Any]:
        strategy = self._strategy
        group: list[Any] = []
        context = InputContext(strategy.workers, strategy.rank, strategy.num_replicas_in_sync)
        for batch in self._make(context):
            group.append(batch)
            if len(group) == len(strategy.contexts):
                yield self._joined(group)
                group = []
        if group:  # the others get no rows
            yield self._joined(group + [map_leaves(lambda a: a[:0], group[0])] * (len(strategy.contexts) - len(group)))

    def _joined(self, group: list[Any]) -> Any:
        return gather_per_replica(
            [_taken(b, 0, _rows(b), c) for b, c in zip(group, self._strategy.contexts, strict=True)]
        )


def _rows(batch: Any) -> int:
    found: list[Any] = []
    map_leaves(found.append, batch)
    for one in found:
        if not hasattr(one, "shape") or not one.shape:
            raise ArgumentTypeError(f"a distributed batch holds a {type(one).__name__}: expected arrays with rows")
    counts = sorted({one.shape[0] for one in found})
    if len(counts) != 1:
        raise ArgumentError(f"a distributed batch holds arrays of {counts} rows: expected equally many")
    return counts[0]


def _cuts(strategy: Strategy, begin: int, end: int) -> list[tuple[int, int]]:
    count, rows = len(strategy.contexts), end - begin
    return [(begin + rows * i // count, begin + rows * (i + 1) // count) for i in range(count)]


def _taken(batch: Any, begin: int, end: int, ctx: Context) -> Any:
    """Rows of a batch on a device; NumPy's float64 becomes float32."""

    def take(a: Any) -> NDArray:
        part = a[begin:end]
        if isinstance(part, NDArray):
            return part.as_in_context(ctx)
        return nd.array(part, ctx=ctx, dtype="float32" if part.dtype == np.float64 else part.dtype)

    return map_leaves(take, batch)


__all__ = [
    "DatasetsOfReplicas", "DistributedDataset", "InputContext", "PerReplica", "ReduceOp", "ReplicaContext",
    "gather_per_replica", "get_replica_context", "local_values", "reduce_per_replica", "replica_context", "run",
]  # fmt: skip
