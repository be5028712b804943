"""`Strategy`, and the strategies of one process."""

from __future__ import annotations

import contextlib
import enum
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...context import Context, current_context
from ...core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ...gluon.data.batchify import map_leaves
from ...gluon.parallel import devices as listed_devices
from ...gluon.parameter import Parameter
from ...namespace import nd
from ...ndarray import NDArray


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


_entered: list[Strategy] = []


class Strategy:
    """Where a model is trained: on the current context, by this process alone; base of the others.

    Attributes:
        contexts: devices of this process.
        store: name of the key-value store of the Trainer, None for none.
        rank, workers: number of this worker, and of all.
    """

    store: str | None = None
    rank = 0
    workers = 1

    def __init__(self, contexts: list[Context] | None = None):
        self.contexts = contexts or [current_context()]

    @property
    def num_replicas_in_sync(self) -> int:
        """How many devices compute each update together."""
        return len(self.contexts) * self.workers

    @contextlib.contextmanager
    def scope(self) -> Iterator[Strategy]:
        """Return a scope in which models are created and compiled for this strategy.

        Raises:
            MXNetError: another strategy's scope is open.
        """
        if _entered and _entered[-1] is not self:
            raise MXNetError(f"{self!r}.scope(): the scope of {_entered[-1]!r} is open; strategies cannot be nested")
        _entered.append(self)
        try:
            yield self
        finally:
            _entered.pop()

    def share(self, number: int, rows: int) -> tuple[int, int, int]:
        """Return what this worker does with a batch for training.

        Args:
            number: of the batch in its epoch.
            rows: of the batch.

        Returns:
            Begin and end of the rows it takes, and how many rows the update counts: 0 if it makes none.
        """
        return 0, rows, rows

    def part(self, rows: int) -> tuple[int, int]:
        """Return begin and end of the rows of a batch that this worker evaluates."""
        return 0, rows

    def added_up(self, values: list[float]) -> list[float]:
        """Return sums of numbers over workers."""
        return values

    def sum_of_workers(self, value: NDArray) -> NDArray:
        """Return the sum of an array over workers."""
        return value

    def agreed(self, number: int) -> int:
        """Return the number of the first worker."""
        return number

    def average(self, params: Sequence[Parameter]) -> None:
        """Give all replicas the mean of their values, such as moving averages."""
        for p in params:
            if len(self.contexts) > 1:
                p.set_data(p.reduce())

    # -- training loops of one's own

    def run(self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Call a function once for each replica of this process, on its device.

        Gradients that it gives to `optimizer.apply_gradients` are added up over all replicas, and weights change when
        all have run.

        Args:
            fn: the function, such as a training step.
            args, kwargs: its arguments; of a `PerReplica` (what distributed data sets have) each replica gets its own.

        Returns:
            What the function returns, with a `PerReplica` in the place of each value; of one replica the value itself.

        Raises:
            MXNetError: called inside of a replica; or replicas that do different things.

        Example:
            >>> from dualmx import keras
            >>> keras.distribute.OneDeviceStrategy("cpu:0").run(lambda a, b: a + b, (1, 2))
            3
        """
        if _running.replica is not None:
            raise MXNetError(f"{self!r}.run: a replica runs already; call it outside of the function that replicas run")
        replicas = [ReplicaContext(self, i) for i in range(len(self.contexts))]
        results = []
        for replica in replicas:
            part = lambda value, i=replica.number: value.values[i] if isinstance(value, PerReplica) else value  # noqa: E731
            _running.replica = replica
            try:
                with replica.context, self.scope():
                    results.append(fn(*map_leaves(part, tuple(args)), **map_leaves(part, kwargs or {})))
            finally:
                _running.replica = None
        asked = [[what for what, _ in r.merges] for r in replicas]
        if any(a != asked[0] for a in asked):
            counts = ", ".join(str(len(a)) for a in asked)
            raise MXNetError(
                f"{self!r}.run: the replicas applied gradients {counts} times, or of other optimizers; each must "
                "apply the same"
            )
        for steps in zip(*[r.merges for r in replicas], strict=True):
            steps[-1][1]()
        return gather_per_replica(results)

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        """Return one array that is the sum or mean of the values of all replicas.

        Args:
            reduce_op: `ReduceOp.SUM` or `ReduceOp.MEAN`, or their names.
            value: what `run` returned.
            axis: sum, or average, along this axis too.

        Raises:
            ArgumentError: another operation, or an axis that is not there.
        """
        kind, ctx = ReduceOp.of(reduce_op), self.contexts[0]
        total, count = None, 0
        for one in self.experimental_local_results(value):
            a = one if isinstance(one, NDArray) else nd.array(np.asarray(one), ctx=ctx)
            if axis is not None and not -a.ndim <= axis < a.ndim:
                raise ArgumentError(f"{self!r}.reduce: axis={axis}: the values have {a.ndim} axes")
            count += 1 if axis is None else a.shape[axis]
            a = (a if axis is None else nd.sum(a, axis=axis)).as_in_context(ctx)
            total = a if total is None else total + a
        assert total is not None
        if self.num_replicas_in_sync > len(self.contexts):
            total, count = self.sum_of_workers(total), int(self.added_up([float(count)])[0])
        return total / count if kind is ReduceOp.MEAN else total

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Return the values of the replicas of this process."""
        return value.values if isinstance(value, PerReplica) else (value,)

    def experimental_distribute_dataset(self, dataset: Iterable[Any], options: Any = None) -> Any:
        """Return an iterable of batches for `run`: of each batch every replica of every worker gets its rows.

        Args:
            dataset: batches of all replicas together, the same for all workers: arrays, or tuples, lists and dicts of
                arrays; a `DataLoader`, for example.
            options: accepted.
        """
        return DistributedDataset(self, dataset)

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Iterable[Any]], options: Any = None
    ) -> Any:
        """Return an iterable of batches for `run`; each replica takes complete ones.

        Args:
            dataset_fn: returns the batches of this worker, given an `InputContext`.
            options: accepted.
        """
        return DatasetsOfReplicas(self, dataset_fn)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(str, self.contexts))})"


class MirroredStrategy(Strategy):
    """Train on several devices of this process: each takes its part of every batch, and all make the same update.

    Args:
        devices: contexts, numbers or names such as `"gpu:0"`, `"/cpu:1"`; all accelerators by default, or all devices
            that the CPU is split into if there are none.

    Raises:
        ArgumentError: a device that is not there; the text tells what there is.

    Example:
        >>> MirroredStrategy(["cpu:0"]).num_replicas_in_sync
        1
    """

    store = "device"

    def __init__(self, devices: Any = None):
        super().__init__(listed_devices(devices, f"{type(self).__name__}: devices"))


class OneDeviceStrategy(Strategy):
    """Train on one device.

    Args:
        device: context, number or name such as `"gpu:0"`.

    Raises:
        ArgumentError: a device that is not there.
    """

    def __init__(self, device: Any):
        super().__init__(listed_devices([device], "OneDeviceStrategy: device"))


def has_strategy() -> bool:
    """Return whether the scope of a strategy is open."""
    return bool(_entered)


def get_strategy() -> Strategy:
    """Return the strategy whose scope is open, one for the current context without."""
    return _entered[-1] if _entered else Strategy()


def in_scope() -> Strategy | None:
    """Return the strategy whose scope is open."""
    return _entered[-1] if _entered else None


__all__ = [
    "InputContext", "MirroredStrategy", "OneDeviceStrategy", "PerReplica", "ReduceOp", "ReplicaContext", "Strategy",
    "get_replica_context", "get_strategy", "has_strategy",
]  # fmt: skip
