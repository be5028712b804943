"""ctypes bindings of oneDNN's library and of our compiled handlers."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import re
from pathlib import Path
from typing import Any

import jax

from . import build

WHEEL = "onednn-cpu-gomp"
_INTERFACE = (0, 3)  # of XLA, that the handlers are written for

# Idle OpenMP threads give the core back soon: XLA computes between two convolutions.
_SPIN = {"GOMP_SPINCOUNT": "2000"}


def _find() -> str:
    from importlib import metadata  # slow to import

    for file in metadata.files(WHEEL) or ():
        if file.name == "libdnnl.so.3":
            return os.path.realpath(str(file.locate()))
    raise OSError(f"{WHEEL} has no libdnnl.so.3")


def _load(path: str) -> ctypes.CDLL:
    fresh = {} if {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys() else _SPIN
    os.environ.update(fresh)
    try:
        return ctypes.CDLL(path)
    finally:
        for name in fresh:
            os.environ.pop(name, None)


def _interface() -> tuple[int, ...]:
    """The version of XLA's foreign function interface; XLA refuses to start with a handler of another one."""
    header = Path(jax.ffi.include_dir(), "xla/ffi/api/c_api.h").read_text()
    return tuple(int(n) for n in re.findall(r"#define XLA_FFI_API_(?:MAJOR|MINOR) (\d+)", header))


@functools.cache
def library() -> ctypes.CDLL:
    """Return oneDNN; `ImportError` or `OSError` if it is not installed, cannot be loaded, or is not its version 3."""
    found = _load(_find())
    found.dnnl_version.restype = ctypes.POINTER(ctypes.c_int)
    if found.dnnl_version()[0] != 3:
        raise OSError(f"oneDNN {found.dnnl_version()[0]} found, 3 expected")
    return found


def handlers(path: Path | None = None) -> Any:
    """Return the compiled handlers.

    Raises `ImportError` if oneDNN is not installed, `OSError` if it or the handlers cannot be loaded or do not fit.
    """
    path = path or build.target()
    if not path.exists():
        raise OSError(f"{path.name} was not built: python {build.__file__}")
    version = _interface()
    if version[:1] != _INTERFACE[:1] or version < _INTERFACE:
        raise OSError(f"XLA's interface {version} found, {_INTERFACE} expected")
    functions = library()
    compiled = ctypes.CDLL(str(path))
    compiled.dualmx_onednn_name.restype = ctypes.c_char_p
    names = (compiled.dualmx_onednn_name(i) for i in itertools.count())
    found = [ctypes.cast(functions[n.decode()], ctypes.c_void_p) for n in itertools.takewhile(bool, names)]
    if compiled.dualmx_onednn_start((ctypes.c_void_p * len(found))(*found)):
        raise OSError("oneDNN has no engine for this processor")
    return compiled
