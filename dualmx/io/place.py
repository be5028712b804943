"""Where data is prepared: in a `DataLoader`'s worker processes items stay NumPy arrays, elsewhere they are NDArrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ndarray import NDArray, array


class _Role:
    """What this process is for."""

    worker = False


role = _Role()


def on_host(x: Any) -> np.ndarray:
    """Return `x` as a NumPy array."""
    return x.asnumpy() if isinstance(x, NDArray) else np.asarray(x)


def like(result: np.ndarray, source: Any) -> Any:
    """Return `result` as what `source` is: a NumPy array for one, else an NDArray (NumPy in worker processes)."""
    if isinstance(source, np.ndarray) or role.worker:
        return result
    return array(result, dtype=result.dtype)


__all__ = ["like", "on_host", "role"]
