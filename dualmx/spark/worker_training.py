"""Training in each process of an estimator: one model, each process with its own rows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import parallel, random
from ..context import gpu, num_gpus
from ..core.errors import ArgumentError, FormatError
from ..gluon.block import Block
from ..gluon.trainer import Trainer
from ..io import ParquetReader
from ..keras import Model
from ..keras.callbacks import Callback, History
from ..keras.distribute import MultiWorkerMirroredStrategy
from ..lightning import checkpoint
from .store import Store

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Inputs:
    """How columns become the inputs of a network.

    Attributes:
        names: of the columns, each of which is an input.
        shapes: of the inputs, the first axis (-1) counts the rows; None for those of the columns.
    """

    names: Sequence[str]
    shapes: Sequence[Sequence[int]] | None

    def of(self, columns: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Return the inputs.

        Raises:
            FormatError: a column without numbers. ArgumentError: rows that do not have such a shape.
        """
        shapes = self.shapes or [None] * len(self.names)
        return [reshape_column(name, columns[name], shape) for name, shape in zip(self.names, shapes, strict=True)]


def reshape_column(name: str, values: np.ndarray, shape: Sequence[int] | None = None) -> np.ndarray:
    """Return the values of a column, each in a shape.

    Raises:
        FormatError: no numbers. ArgumentError: rows that do not have such a shape.
    """
    if values.dtype.kind not in "biuf":
        what = "text, bytes or rows of different shapes" if values.dtype == object else str(values.dtype)
        raise FormatError(f"column {name!r}: {what}: expected numbers")
    if shape is None:
        return values
    if values[:1].size != np.prod(shape[1:], dtype=int) and len(values):
        row, wanted = values.shape[1:], tuple(shape)
        raise ArgumentError(f"column {name!r}: rows of shape {row}: input_shapes has {wanted} for it")
    return values.reshape((len(values), *shape[1:]))


@dataclass(frozen=True)
class TrainingSpec:
    """A training, as all of its processes know it.

    Attributes:
        network: a gluon Block, or a model of `dualmx.keras`.
        optimizer, loss, metrics, callbacks, verbose: see `dualmx.keras.Model`.
        store, run_id: where checkpoints are.
        train, val: paths of Parquet data, val None without validation.
        inputs, label, weight: the columns; weight None without weights.
        batch_size, val_batch_size: rows of a batch of each process.
        end: number of the last epoch.
        shuffle, seed, transform: see `ParquetReader`.
    """

    network: Block
    optimizer: Any
    loss: Any
    metrics: Sequence[Any]
    callbacks: Sequence[Callback]
    verbose: int
    store: Store
    run_id: str
    train: str
    val: str | None
    inputs: Inputs
    label: str
    weight: str | None
    batch_size: int
    val_batch_size: int
    end: int
    shuffle: bool
    seed: int
    transform: Callable[[Columns], Columns] | None

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return [*self.inputs.names, self.label, *([self.weight] if self.weight else [])]

    def reader(self, path: str, parts: int = 1, part: int = 0, shuffle: bool = False) -> ParquetReader:
        """Return a reader of a part of the rows.

        Raises:
            ArgumentError: an unknown column, or no rows. FormatError: no Parquet files.
        """
        transform = None if self.transform is None else self._transformed
        return ParquetReader(
            self.store.readable(path), list(dict.fromkeys(self.columns)), None, shuffle, self.seed,
            num_parts=parts, part_index=part, transform=transform,
        )  # fmt: skip

    def batch(self, columns: Columns) -> tuple[Any, ...]:
        """Return rows as `fit` takes them: inputs, labels, and weights if there are some."""
        named = [self.label, *([self.weight] if self.weight else [])]
        return (self.inputs.of(columns), *[reshape_column(name, columns[name]) for name in named])

    def _transformed(self, columns: Columns) -> Columns:
        """What the user's function makes of some rows, of which none may get lost: all processes count them."""
        assert self.transform is not None
        rows, found = len(columns[self.label]), self.transform(columns)
        missing = [c for c in self.columns if not isinstance(found, Mapping) or c not in found]
        if missing:
            raise ArgumentError(f"transformation_fn: no column {missing[0]!r} in what it returned")
        if any(len(found[c]) != rows for c in self.columns):
            raise ArgumentError(f"transformation_fn: {rows} rows became another number: expected as many back")
        return found


class _PerProcessStrategy(MultiWorkerMirroredStrategy):
    """Strategy in which each process has its own batches and all make one update.

    Args:
        counts: how many rows each process has in an epoch.
        batch_size: rows of a batch of one process.
    """

    def __init__(self, counts: Sequence[int], batch_size: int):
        count = num_gpus()
        super().__init__(devices=[gpu(parallel.local_rank() % count)] if count else None)
        self._counts, self._size = counts, batch_size

    def share(self, number: int, rows: int) -> tuple[int, int, int]:
        """All rows that this process has, and how many all have together."""
        return 0, rows, sum(min(max(n - number * self._size, 0), self._size) for n in self._counts)

    def part(self, rows: int) -> tuple[int, int]:
        """All rows that this process has."""
        return 0, rows


class _WorkerBatches:
    """Batches of this process; a process that has read all its rows continues with empty batches."""

    def __init__(self, job: TrainingSpec, reader: ParquetReader | None, batch_size: int, steps: int):
        self._job, self._reader, self._size, self._steps = job, reader, batch_size, steps

    def __len__(self) -> int:
        return self._steps

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        left, block = self._steps, {}
        for block in self._reader.batches(self._size) if self._reader is not None else ():
            left -= 1
            yield self._job.batch(block)
        for _ in range(left):
            yield self._job.batch({name: values[:0] for name, values in block.items()})


class _CheckpointCallback(History):
    """Callback that keeps the logs of all epochs, earlier runs included, and writes what resuming needs."""

    def __init__(self, job: TrainingSpec, before: Mapping[str, Sequence[float]]):
        self._job, self._before = job, before

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        super().on_train_begin(logs)
        self.history = {name: list(values) for name, values in self._before.items()}

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        super().on_epoch_end(epoch, logs)
        if epoch + 1 < self._job.end:  # after the last one other callbacks may still choose weights
            self.write(epoch + 1)

    def write(self, epoch: int) -> None:
        """Write a checkpoint; the first process does."""
        if parallel.rank():
            return
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "checkpoint")
            progress = {"epoch": epoch, "history": self.history}
            checkpoint.write(path, self._job.network, self.model.gluon_trainer, progress)
            with open(path, "rb") as f:
                self._job.store.write(self._job.store.get_checkpoint_path(self._job.run_id), f.read())


def last_checkpoint(store: Store, run_id: str) -> tuple[dict[str, Any], int, dict[str, list[float]]]:
    """Return the arrays of a run's checkpoint, its number of epochs and their numbers; nothing if there is none.

    Raises:
        MXNetError: it cannot be read. FormatError: it is damaged.
    """
    path = store.get_checkpoint_path(run_id)
    if not store.exists(path):
        return {}, 0, {}
    with tempfile.TemporaryDirectory() as scratch:
        local = os.path.join(scratch, "checkpoint.ckpt")
        with open(local, "wb") as f:
            f.write(store.read(path))
        found = checkpoint.read(local)
    progress = checkpoint.progress_of(found)
    return found, int(progress["epoch"]), progress["history"]


def train(job: TrainingSpec) -> tuple[dict[str, list[float]], list[list[int]], list[int]]:
    """Train, from the run's last checkpoint on.

    Returns:
        The numbers of all epochs by name, the shapes of the inputs, and the shape of a row of the outputs.
    """
    parallel.init()
    rank, size = parallel.rank(), parallel.size()
    reader = job.reader(job.train, size, rank, job.shuffle)
    counts = parallel.all_gather_object(reader.num_rows)
    rows = _WorkerBatches(job, reader, job.batch_size, -(-max(counts) // job.batch_size))
    found, begin, before = last_checkpoint(job.store, job.run_id)
    for source in (random.seed, np.random.seed):
        source(job.seed)  # of weights, which all draw alike
    strategy = _PerProcessStrategy(counts, job.batch_size)
    with strategy.scope():
        model = job.network if isinstance(job.network, Model) else Model(job.network)
        model.distribute_strategy = strategy
        model.compile(job.optimizer, job.loss, list(job.metrics))
        first, *_ = job.batch(next(job.reader(job.train, size, rank).batches(1)))
        outputs = model.predict_on_batch(first)  # makes the weights
        kept = _CheckpointCallback(job, before)
        if found:
            checkpoint.restore(job.network, found)
            trainer = Trainer(model.collect_params(), model.optimizer, kvstore=strategy.store)
            model.gluon_trainer = trainer
            checkpoint.restore_optimizer(trainer, found)
        reader.epoch = begin
        for source in (random.seed, np.random.seed):
            source((job.seed + 7919 * begin + rank + 1) % 2**32)  # of dropout, which differs between the processes
        model.fit(
            rows, epochs=job.end, initial_epoch=begin, validation_data=_validation(job, rank, size),
            callbacks=[*job.callbacks, kept], verbose=job.verbose,
        )  # fmt: skip
    kept.write(begin + len(kept.epoch))
    return kept.history, [[-1, *x.shape[1:]] for x in first], list(np.shape(outputs)[1:])


def _validation(job: TrainingSpec, rank: int, size: int) -> _WorkerBatches | None:
    if job.val is None:
        return None
    total = job.reader(job.val).num_rows
    parts = min(size, total)
    reader = job.reader(job.val, parts, rank) if rank < parts else None
    count = reader.num_rows if reader is not None else 0
    return _WorkerBatches(job, reader, job.val_batch_size, -(-count // job.val_batch_size))


__all__ = ["Inputs", "TrainingSpec", "last_checkpoint", "reshape_column", "train"]
