"""Collate samples on the host: nested tuples, lists and dicts of NumPy arrays become batches.

Workers and batch assembly use NumPy only; a batch moves to the device once, in the process that uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.errors import ArgumentError
from ...io.worker_mode import worker_mode
from ...ndarray import NDArray, array
from ..hybrid import HybridBlock
from ..pytree import with_default_class

_CALLED = frozenset({"__call__", "forward", "hybrid_forward"})


def map_leaves(fn: Callable[[Any], Any], item: Any) -> Any:
    """Return `item` with `fn` applied to everything that is not a list, tuple or dict."""
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return type(item)(*(map_leaves(fn, x) for x in item))
    if isinstance(item, (list, tuple)):
        return type(item)(map_leaves(fn, x) for x in item)
    if isinstance(item, dict):
        return {k: map_leaves(fn, v) for k, v in item.items()}
    return fn(item)


def to_host(item: Any) -> Any:
    """Return `item` with every NDArray as `numpy.ndarray`."""
    return map_leaves(lambda x: x.asnumpy() if isinstance(x, NDArray) else x, item)


def to_device(item: Any) -> Any:
    """Return `item` with every `numpy.ndarray` as array of the same dtype, a `mx.np.ndarray` after `npx.set_np()`."""
    return map_leaves(lambda x: with_default_class(array(x, dtype=x.dtype)) if isinstance(x, np.ndarray) else x, item)


def numpy_form(transform: Any) -> Callable[..., Any] | None:
    """The NumPy twin `host` of a transformation of the library, if it computes what a call of the transformation does.

    A subclass that defines `__call__`, `forward` or `hybrid_forward` without `host` has none, nor has a block with
    hooks.
    """
    if not hasattr(transform, "host") or isinstance(transform, type):
        return None
    for kind in type(transform).__mro__:
        if "host" in vars(kind):
            break
        if not _CALLED.isdisjoint(vars(kind)):
            return None
    hooked = getattr(transform, "_forward_hooks", None) or getattr(transform, "_forward_pre_hooks", None)
    return None if hooked else transform.host


def as_argument(transform: Any, item: Any) -> Any:
    """What a transformation without a NumPy form is called with: in workers, NumPy arrays if it can take them."""
    return item if worker_mode.worker and not isinstance(transform, HybridBlock) else to_device(item)


def stack(samples: Sequence[Any]) -> Any:
    """Return the NumPy batch of `samples`: arrays and numbers are stacked, tuples become lists of batches.

    Dtypes are kept: Python ints become int64, Python floats float64.

    Raises:
        ArgumentError: arrays of different shapes, or tuples of different lengths.
    """
    first = samples[0]
    if isinstance(first, NDArray):
        return _stacked([s.asnumpy() for s in samples])
    if isinstance(first, np.ndarray):
        return _stacked(samples)
    if isinstance(first, tuple):
        lengths = {*map(len, samples)}
        if len(lengths) > 1:
            raise ArgumentError(f"batchify: samples are tuples of {sorted(lengths)} items: expected one length")
        return [stack(column) for column in zip(*samples, strict=True)]
    return np.asarray(samples)


def _stacked(arrays: Sequence[Any]) -> np.ndarray:
    try:
        return np.stack(arrays)
    except ValueError as e:
        shapes = sorted({np.shape(a) for a in arrays})
        raise ArgumentError(
            f"batchify: samples have the shapes {shapes}: expected one; pad them, or give the DataLoader a batchify_fn"
        ) from e


def default_batchify_fn(data: Sequence[Any]) -> Any:
    """Collate samples into a batch: stacks arrays and numbers, and makes a list of batches out of tuples.

    In a worker process the result has NumPy leaves, in all other places NDArrays.

    Example:
        >>> x, y = default_batchify_fn([(np.zeros(3), 0), (np.ones(3), 1)])
        >>> x.shape, y.dtype
        ((2, 3), <class 'numpy.int64'>)
    """
    batch = stack(data)
    return batch if worker_mode.worker else to_device(batch)


def default_mp_batchify_fn(data: Sequence[Any]) -> Any:
    """The same as `default_batchify_fn`; worker processes hand batches over through shared memory in any case."""
    return default_batchify_fn(data)
