"""Imperative arrays: `mx.nd`. Operations are recorded and compiled when a value is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # What `namespace` adds; first, so that what is written by hand and imported below hides it.
    from . import _internal, contrib, image, linalg, op, random, sparse  # noqa: F401
    from .op import *  # noqa: F403

from ..core.context import Context, cpu, cpu_pinned, current_context, gpu, tpu
from . import (
    indexing,  # noqa: F401
    joint,  # noqa: F401
    numpy_protocol,  # noqa: F401
    operators,  # noqa: F401
    placement,  # noqa: F401
)
from .array import NDArray
from .creation import (
    arange,
    array,
    concatenate,
    empty,
    eye,
    from_jax,
    from_numpy,
    full,
    linspace,
    moveaxis,
    onehot_encode,
    ones,
    to_dlpack_for_read,
    to_dlpack_for_write,
    zeros,
)
from .exchange import from_dlpack
from .flush import flush
from .handle import invoke, invoke_out
from .storage import load, load_frombuffer, save, save_tobuffer, waitall

__all__ = [
    "Context", "NDArray", "arange", "array", "concatenate", "cpu", "cpu_pinned", "current_context", "empty", "eye",
    "flush", "from_dlpack", "from_jax", "from_numpy", "full", "gpu", "invoke", "invoke_out", "linspace", "load",
    "load_frombuffer", "moveaxis", "onehot_encode", "ones", "save", "save_tobuffer", "to_dlpack_for_read",
    "to_dlpack_for_write", "tpu", "waitall", "zeros",
]  # fmt: skip

if TYPE_CHECKING:
    __all__ += op.__all__
