"""`mx.npx`: what networks need beyond NumPy, on `mx.np.ndarray`.

Example:
    >>> import dualmx as mx
    >>> mx.npx.relu(mx.np.array([-1.0, 2.0]))
    array([0., 2.])
"""

from __future__ import annotations

from typing import Any

from ..context import Context, cpu, cpu_pinned, current_context, gpu, gpu_memory_info, num_gpus, tpu
from ..ndarray import waitall
from ..util import (
    get_cuda_compute_capability,
    is_np_array,
    is_np_shape,
    np_array,
    np_shape,
    reset_np,
    set_np,
    use_np,
    use_np_array,
    use_np_shape,
)
from . import image, random, utils
from .operators import FUNCTIONS, constraint_check, nonzero, reshape
from .random import seed
from .utils import load, save, savez

globals().update(FUNCTIONS)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'dualmx.numpy_extension' has no attribute {name!r}")


__all__ = [
    "Context", "constraint_check", "cpu", "cpu_pinned", "current_context", "get_cuda_compute_capability", "gpu",
    "gpu_memory_info", "image", "is_np_array", "is_np_shape", "load", "nonzero", "np_array", "np_shape", "num_gpus",
    "random", "reset_np", "reshape", "save", "savez", "seed", "set_np", "tpu", "use_np", "use_np_array",
    "use_np_shape", "utils", "waitall",
]  # fmt: skip
__all__ += sorted(FUNCTIONS)  # pyright: ignore[reportUnsupportedDunderAll]
