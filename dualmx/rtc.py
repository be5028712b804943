"""`mx.rtc`, CUDA source compiled at run time, which XLA does not support; the classes name the replacement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from .core.errors import MXNetError


def _refuse(what: str) -> NoReturn:
    raise MXNetError(
        f"{what}: dualmx does not compile CUDA source; write the kernel with jax.experimental.pallas (or bind compiled "
        f"code with jax.ffi) in the body of an operator made with dualmx.op.registry.op, or in Python with mx.operator"
    )


class CudaModule:
    """A module of CUDA source.

    Args:
        source: CUDA source.
        options: of the compiler.
        exports: names of kernels.

    Raises:
        MXNetError: always.
    """

    def __init__(self, source: str, options: Sequence[str] = (), exports: Sequence[str] = ()):
        _refuse("rtc.CudaModule")

    def get_kernel(self, name: str, signature: str) -> Any:
        """Raise `MXNetError`: there are no kernels."""
        _refuse("rtc.CudaModule.get_kernel")


class CudaKernel:
    """A kernel of a `CudaModule`.

    Args:
        handle, name, is_ndarray, dtypes: what a module hands over.

    Raises:
        MXNetError: always.
    """

    def __init__(self, handle: Any, name: str, is_ndarray: Any, dtypes: Any):
        _refuse("rtc.CudaKernel")

    def launch(self, args: Any, ctx: Any, grid_dims: Any, block_dims: Any, shared_mem: int = 0) -> Any:
        """Raise `MXNetError`: there are no kernels."""
        _refuse("rtc.CudaKernel.launch")


__all__ = ["CudaKernel", "CudaModule"]
