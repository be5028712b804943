"""Data adapters: batches from arrays, datasets, loaders and iterators."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.argcheck import integer
from ..core.errors import ArgumentError, ArgumentTypeError
from ..gluon.data import DataLoader, Dataset
from ..io import DataBatch, DataIter
from ..ndarray import NDArray

Batch = tuple[Sequence[Any], Any]


class ArrayAdapter:
    """Batches of arrays in memory.

    Args:
        xs: inputs, with equally many rows.
        y: labels, or None.
        batch_size: rows of a batch; the last one may be smaller.
        shuffle: draw another order in each epoch.
    """

    def __init__(self, xs: tuple[np.ndarray, ...], y: np.ndarray | None, batch_size: int, shuffle: bool):
        self._xs, self._y, self._size, self._shuffle = xs, y, batch_size, shuffle
        self.steps: int | None = -(-len(xs[0]) // batch_size)

    def epoch(self, seed: int) -> Iterator[Batch]:
        """Return the batches of an epoch, in an order drawn from `seed`."""
        rows = len(self._xs[0])
        order = np.random.RandomState(seed).permutation(rows) if self._shuffle else None
        for begin in range(0, rows, self._size):
            chosen: Any = slice(begin, begin + self._size) if order is None else order[begin : begin + self._size]
            yield tuple(x[chosen] for x in self._xs), None if self._y is None else self._y[chosen]


class DatasetAdapter:
    """Batches of a `gluon.data.Dataset` of pairs."""

    def __init__(self, data: Dataset, batch_size: int, shuffle: bool):
        self._data, self._size, self._shuffle = data, batch_size, shuffle
        self.steps: int | None = -(-len(data) // batch_size)

    def epoch(self, seed: int) -> Iterator[Batch]:
        """Return the batches of an epoch, in an order drawn from `seed`."""
        rows = len(self._data)
        order = np.random.RandomState(seed).permutation(rows) if self._shuffle else np.arange(rows)
        groups: Any = [order[i : i + self._size].tolist() for i in range(0, rows, self._size)]
        for batch in DataLoader(self._data, batch_sampler=groups):
            yield _pair(batch)


class IterableAdapter:
    """Batches as an iterable has them: a `DataLoader`, an iterator of `mx.io`, a list or generator of pairs."""

    def __init__(self, batches: Iterable[Any], steps: int | None):
        self._batches = batches
        self._lasting: Iterator[Any] | None = None
        length = len(batches) if hasattr(batches, "__len__") else None  # type: ignore[arg-type]
        self.steps = steps if steps is not None else length
        self._wanted = steps

    def epoch(self, seed: int) -> Iterator[Batch]:
        """Return the batches of an epoch."""
        if self._wanted is None:
            return map(_pair, self._fresh())
        return self._some(self._wanted)

    def _fresh(self) -> Iterator[Any]:
        if isinstance(self._batches, DataIter):
            self._batches.reset()
        return iter(self._batches)

    def _some(self, steps: int) -> Iterator[Batch]:
        """Return the next batches of an iteration that continues across epochs."""
        for _ in range(steps):
            if self._lasting is None:
                self._lasting = self._fresh()
            batch = next(self._lasting, None)
            if batch is None:
                self._lasting = self._fresh()
                batch = next(self._lasting, None)
            if batch is None:
                raise ArgumentError(f"fit: the data has ended; steps_per_epoch={steps} asks for more batches")
            yield _pair(batch)


def _pair(batch: Any) -> Batch:
    """Return inputs and labels of a batch."""
    if isinstance(batch, DataBatch):
        kept = slice(0, batch.data[0].shape[0] - (batch.pad or 0))
        label = batch.label[0][kept] if batch.label else None
        return tuple(a[kept] for a in batch.data), label
    if isinstance(batch, (list, tuple)) and len(batch) == 2:
        return as_inputs(batch[0]), batch[1]
    if isinstance(batch, (list, tuple)) and len(batch) == 3:
        return as_inputs(batch[0]), WeightedLabels(batch[1], batch[2])
    if isinstance(batch, (NDArray, np.ndarray)):
        return (batch,), None
    raise ArgumentTypeError(
        f"fit: a batch of type {type(batch).__name__}: expected pairs of inputs and labels, or with weights"
    )


class WeightedLabels:
    """Labels with factors of the losses of their rows."""

    def __init__(self, labels: Any, weights: Any):
        if len(labels) != len(weights):
            raise ArgumentError(f"sample_weight: {len(weights)} weights for {len(labels)} rows")
        self.labels, self.weights = labels, weights

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, chosen: Any) -> WeightedLabels:
        return WeightedLabels(self.labels[chosen], self.weights[chosen])


def by_class(labels: Any, factors: Mapping[int, float]) -> WeightedLabels:
    """Return labels (numbers, or one column per class) with factors by their class, times those that they have."""
    before = labels.weights if isinstance(labels, WeightedLabels) else 1.0
    labels = labels.labels if isinstance(labels, WeightedLabels) else labels
    numbers = host(labels)
    numbers = numbers.argmax(-1) if numbers.ndim > 1 and numbers.shape[-1] > 1 else numbers.reshape(len(numbers))
    weights = np.array([factors.get(int(n), 1.0) for n in numbers], np.float32)
    return WeightedLabels(labels, weights * host(before))


def as_inputs(x: Any) -> tuple[Any, ...]:
    """Return inputs as a tuple, one element for a single array."""
    return tuple(x) if isinstance(x, (list, tuple)) and x and hasattr(x[0], "shape") else (x,)


def host(a: Any) -> np.ndarray:
    """Return an array in the host's memory; labels with weights as they are."""
    if isinstance(a, WeightedLabels):
        return a  # type: ignore[return-value]
    return a.asnumpy() if isinstance(a, NDArray) else np.asarray(a)


def batches_of(
    what: str, x: Any, y: Any = None, batch_size: Any = None, shuffle: bool = False, steps: int | None = None
) -> ArrayAdapter | DatasetAdapter | IterableAdapter:
    """Return the batches of what `fit`, `evaluate` and `predict` take.

    Args:
        what: function that errors name.
        x, y: arrays (several inputs in a list); or in `x` alone something that has both.
        batch_size: for arrays and data sets; 32 by default.
        shuffle: draw the order of arrays and data sets.
        steps: batches of an epoch, for iterables.

    Raises:
        ArgumentError: arguments that do not belong together, or different numbers of rows. ArgumentTypeError: no data.
    """
    size = 32 if batch_size is None else integer(what, "batch_size", batch_size, 1)
    own = isinstance(x, (Dataset, DataLoader, DataIter)) or not (hasattr(x, "shape") or isinstance(x, (list, tuple)))
    if own or (isinstance(x, (list, tuple)) and x and isinstance(x[0], (list, tuple, DataBatch)) and y is None):
        if y is not None:
            raise ArgumentError(f"{what}: y was given, but x is a {type(x).__name__}, which has the labels itself")
        if isinstance(x, Dataset):
            return DatasetAdapter(x, size, shuffle)
        if not isinstance(x, Iterable):
            raise ArgumentTypeError(f"{what}: x of type {type(x).__name__}: expected arrays, a data set or a loader")
        if batch_size is not None:
            raise ArgumentError(f"{what}: batch_size={batch_size}: a {type(x).__name__} has batches already")
        return IterableAdapter(x, steps)
    xs: tuple[Any, ...] = tuple(host(a) for a in as_inputs(x))
    labels = None if y is None else host(y)
    rows = [len(a) for a in ([*xs] if labels is None else [*xs, labels])]
    if len(set(rows)) > 1 or not rows[0]:
        raise ArgumentError(f"{what}: arrays of {', '.join(map(str, rows))} rows; expected equally many, at least 1")
    if steps is None:
        return ArrayAdapter(xs, labels, size, shuffle)
    return IterableAdapter(_RepeatAdapter(ArrayAdapter(xs, labels, size, shuffle)), steps)


class _RepeatAdapter:
    """Batches of arrays, shuffled again in each epoch."""

    def __init__(self, arrays: ArrayAdapter):
        self._arrays, self._times = arrays, itertools.count()

    def __iter__(self) -> Iterator[Any]:
        return ((xs if len(xs) > 1 else xs[0], y) for xs, y in self._arrays.epoch(next(self._times)))
