"""Imperative arrays, `mx.nd`: operations are recorded, and compiled when a value is needed."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # What `namespace` adds; first, so that what is written by hand and imported below hides it. Stubs may be missing.
    from . import _internal, contrib, fluent, image, linalg, op, random, sparse  # noqa: F401  # pyright: ignore
    from .fluent import *

from ..core.context import Context, cpu, cpu_pinned, current_context, gpu, tpu
from . import execute_joint, indexing, numpy_protocol, operators, sharding  # noqa: F401
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
from .execute import flush
from .handle import invoke, invoke_out
from .ndarray import NDArray
from .save_load import load, load_frombuffer, save, save_tobuffer, waitall

__all__ = [
    "Context", "NDArray", "arange", "array", "concatenate", "cpu", "cpu_pinned", "current_context", "empty", "eye",
    "flush", "from_dlpack", "from_jax", "from_numpy", "full", "gpu", "invoke", "invoke_out", "linspace", "load",
    "load_frombuffer", "moveaxis", "onehot_encode", "ones", "save", "save_tobuffer", "to_dlpack_for_read",
    "to_dlpack_for_write", "tpu", "waitall", "zeros",
]  # fmt: skip

if TYPE_CHECKING:
    __all__ += fluent.__all__
