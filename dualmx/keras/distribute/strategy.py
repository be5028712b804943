"""`Strategy`, and the strategies of one process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ...context import Context, current_context
from ...core.errors import MXNetError
from ...gluon.parallel import devices as listed_devices
from ...gluon.parameter import Parameter
from ...ndarray import NDArray
from . import replica_context

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
                p.set_data(p._reduce())

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
        return replica_context.run(self, fn, args, kwargs or {})

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        """Return one array that is the sum or mean of the values of all replicas.

        Args:
            reduce_op: `ReduceOp.SUM` or `ReduceOp.MEAN`, or their names.
            value: what `run` returned.
            axis: sum, or average, along this axis too.

        Raises:
            ArgumentError: another operation, or an axis that is not there.
        """
        return replica_context.reduce_per_replica(self, reduce_op, value, axis)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Return the values of the replicas of this process."""
        return replica_context.local_values(value)

    def experimental_distribute_dataset(self, dataset: Iterable[Any], options: Any = None) -> Any:
        """Return an iterable of batches for `run`: of each batch every replica of every worker gets its rows.

        Args:
            dataset: batches of all replicas together, the same for all workers: arrays, or tuples, lists and dicts of
                arrays; a `DataLoader`, for example.
            options: accepted.
        """
        return replica_context.DistributedDataset(self, dataset)

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[replica_context.InputContext], Iterable[Any]], options: Any = None
    ) -> Any:
        """Return an iterable of batches for `run`; each replica takes complete ones.

        Args:
            dataset_fn: returns the batches of this worker, given an `InputContext`.
            options: accepted.
        """
        return replica_context.DatasetsOfReplicas(self, dataset_fn)

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
