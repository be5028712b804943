"""Register the FFI handlers that XLA calls for oneDNN."""

from __future__ import annotations

import functools
import logging
from typing import Any

import jax

from ....core import knobs
from .bindings import handlers

CONVOLUTION, PRODUCT, KEEP = "dualmx_onednn_convolution", "dualmx_onednn_product", "dualmx_keep"


_loaded: list[Any] = []  # XLA holds bare addresses


@functools.cache
def _failure() -> str:
    """Load oneDNN and register its targets with XLA, once; why that cannot be done, empty if it can."""
    try:
        compiled = handlers()
    except (ImportError, OSError, AttributeError) as e:
        logging.getLogger("dualmx").info("convolutions and products are left to XLA: %s", e)
        return str(e)
    _loaded.append(compiled)
    for target in (CONVOLUTION, PRODUCT, KEEP):
        jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(compiled[target]), platform="cpu")
    return ""


def library() -> Any:
    """The compiled handlers, which are `available()`."""
    return _loaded[0]


def unavailable() -> str:
    """Why programs on the CPU leave everything to XLA; empty if they can call oneDNN."""
    return _failure() if knobs.ONEDNN.read() == "1" else f"{knobs.ONEDNN.name}=0"


def available() -> bool:
    """True if XLA can call the targets in programs on the CPU, and the user has not switched oneDNN off."""
    return not unavailable()
