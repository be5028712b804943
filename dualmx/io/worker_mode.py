"""Worker mode: items stay NumPy arrays in `DataLoader` workers and are NDArrays elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ndarray import NDArray, array
from ..ndarray.interop import with_mode_class


class _WorkerMode:
    """What this process is for."""

    worker = False


worker_mode = _WorkerMode()


def to_numpy(x: Any) -> np.ndarray:
    """Return `x` as a NumPy array."""
    return x.asnumpy() if isinstance(x, NDArray) else np.asarray(x)


def wrap_like(result: np.ndarray, source: Any) -> Any:
    """Return `result` as what `source` is: a NumPy array, or an NDArray or `mx.np.ndarray` (NumPy in worker processes).

    With `source` None the result is of the kind that `npx.set_np()` chooses.
    """
    if isinstance(source, np.ndarray) or worker_mode.worker:
        return result
    made = array(result, dtype=result.dtype)
    if source is None:
        return with_mode_class(made)
    return source.wrap_array(made) if isinstance(source, NDArray) else made


__all__ = ["to_numpy", "worker_mode", "wrap_like"]
