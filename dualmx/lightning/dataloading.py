"""Divide batches among processes and their devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..context import Context
from ..core.dtypes import as_dtype, is_float
from ..core.errors import ArgumentError
from ..gluon.batch_split import split_and_load
from ..gluon.data import DataLoader
from ..io import DataBatch, DataIter
from ..namespace import nd
from ..ndarray import NDArray


def rows_of(batch: Any) -> int:
    """Return how many rows a batch has: the length of the first array in it.

    Raises:
        ArgumentError: there is no array.
    """
    if isinstance(batch, (NDArray, np.ndarray)) and batch.ndim:
        return batch.shape[0]
    inside = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else ()
    for one in inside:
        try:
            return rows_of(one)
        except ArgumentError:
            continue
    raise ArgumentError(f"Trainer: a batch of type {type(batch).__name__}: expected arrays, or lists or dicts of them")


def split_over_devices(batch: Any, contexts: Sequence[Context], dtype: str = "float32") -> list[Any]:
    """Return the parts of a batch on some contexts, floats with a dtype; what is no array goes to all."""
    if isinstance(batch, np.ndarray):
        batch = nd.array(batch, dtype=batch.dtype)
    if isinstance(batch, NDArray):
        if is_float(as_dtype(batch.dtype)):
            batch = batch.astype(dtype, copy=False)
        return split_and_load(batch, list(contexts), even_split=False)
    if isinstance(batch, dict):
        split = {key: split_over_devices(value, contexts, dtype) for key, value in batch.items()}
        return [{key: value[k] for key, value in split.items()} for k in range(len(contexts))]
    if isinstance(batch, (list, tuple)):
        columns = [split_over_devices(value, contexts, dtype) for value in batch]
        return [type(batch)(column[k] for column in columns) for k in range(len(contexts))]
    return [batch] * len(contexts)


def batches_of(loader: Any, rank: int, size: int, seed: int, even: bool = True) -> Iterator[Any]:
    """Return the batches of this process: dealt out in turn.

    Args:
        loader: a `DataLoader`, whose order is drawn from `seed` in all processes alike; or another iterable, which has
            the same batches in all processes.
        rank, size: of the processes.
        seed: of the order, with more than one process.
        even: leave out the last ones, so that all processes have equally many.
    """
    if isinstance(loader, DataIter):
        loader.reset()
    if size > 1 and isinstance(loader, DataLoader):
        yield from _shard_loader(loader, rank, size, seed, even)
        return
    group: list[Any] = []
    for batch in loader:
        group.append(_plain(batch))
        if len(group) == size:
            yield group[rank]
            group = []
    if not even and rank < len(group):
        yield group[rank]


def _shard_loader(loader: DataLoader, rank: int, size: int, seed: int, even: bool) -> Iterator[Any]:
    """Return a loader of this process's batches only."""
    before, sampler = np.random.get_state(), loader.batch_sampler
    np.random.seed(seed)
    try:
        drawn = list(sampler)
    finally:
        np.random.set_state(before)
    end = len(drawn) // size * size if even else len(drawn)
    loader.batch_sampler = drawn[rank:end:size]
    try:
        yield from loader
    finally:
        loader.batch_sampler = sampler


def _plain(batch: Any) -> Any:
    if not isinstance(batch, DataBatch):
        return batch
    arrays = [*batch.data, *(batch.label or ())]
    kept = slice(0, batch.data[0].shape[0] - (batch.pad or 0))
    return [a[kept] for a in arrays]
