"""The functions of oneDNN 3 that convolutions and products need, by ctypes.

Source: the oneDNN C API, https://oneapi-src.github.io/oneDNN/v3/. Its numbers for element types, primitive kinds and
arguments are part of its binary interface and do not change within a major version.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any

WHEEL = "onednn-cpu-gomp"
FLOAT32, ANY, DIRECT, TRAINING = 3, 1, 1, 64
SRC, DST, WEIGHTS, SCRATCHPAD, DIFF_SRC, DIFF_DST, DIFF_WEIGHTS = 1, 17, 33, 80, 129, 145, 161
# Queries for the memory descriptors of a primitive, by role.
ASKED = {SRC: 129, DIFF_SRC: 130, WEIGHTS: 131, DIFF_WEIGHTS: 132, DST: 133, DIFF_DST: 134, SCRATCHPAD: 136}
_CALLER = 1  # whose the memory is that a primitive computes in

# Idle OpenMP threads give the core back soon: XLA computes between two convolutions.
_SPIN = {"GOMP_SPINCOUNT": "2000"}

Handle = ctypes.c_void_p


class Argument(ctypes.Structure):
    """An argument of a primitive: its role and the memory."""

    _fields_ = [("role", ctypes.c_int), ("memory", Handle)]


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


class Library:
    """oneDNN with one engine and one stream on the CPU.

    Attributes:
        engine, stream: handles of those.
        attributes: of all primitives: the caller hands over the memory that they compute in, since oneDNN's own belongs
            to the thread that creates a primitive, and XLA calls from many.

    Raises `OSError` if the library cannot be loaded, `ImportError` if it is not installed.
    """

    def __init__(self) -> None:
        self._c = _load(_find())
        version = ctypes.c_int.from_address(self._function("dnnl_version", Handle)())
        if version.value != 3:
            raise OSError(f"oneDNN {version.value} found, 3 expected")
        self._c.dnnl_primitive_desc_query_md.restype = Handle
        self.engine = self._make("dnnl_engine_create", 1, ctypes.c_size_t(0))
        self.stream = self._make("dnnl_stream_create", self.engine, 1)
        self.attributes = self._make("dnnl_primitive_attr_create")
        self.call("dnnl_primitive_attr_set_scratchpad_mode", self.attributes, _CALLER)

    def _function(self, name: str, result: Any) -> Any:
        found = self._c[name]
        found.restype = result
        return found

    def call(self, name: str, *args: Any) -> None:
        """Call a function by name; `RuntimeError` if it reports a failure."""
        status = self._c[name](*args)
        if status:
            raise RuntimeError(f"oneDNN: {name} failed with status {status}")

    def address(self, name: str) -> Handle:
        """Where a function of the library lies in memory."""
        return ctypes.cast(self._c[name], Handle)

    def product(self, m: int, n: int, k: int, a: int, b: int, out: int) -> None:
        """Write `aᵀ b` to `out`: float32 buffers (k, m), (k, n) and (m, n) at these addresses."""
        sizes = (ctypes.c_int64(s) for s in (m, n, k))
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        left, right, result = ((Handle(at), ctypes.c_int64(row)) for at, row in ((a, m), (b, n), (out, n)))
        self.call("dnnl_sgemm", ctypes.c_char(b"T"), ctypes.c_char(b"N"), *sizes, one, *left, *right, zero, *result)

    def _make(self, name: str, *args: Any) -> Handle:
        out = Handle()
        self.call(name, ctypes.byref(out), *args)
        return out

    def strided(self, sizes: Sequence[int], strides: Sequence[int]) -> Handle:
        """Descriptor of float32 memory with these strides, in elements."""
        n = len(sizes)
        return self._make("dnnl_memory_desc_create_with_strides", n, dims(sizes), FLOAT32, dims(strides))

    def free(self, sizes: Sequence[int]) -> Handle:
        """Descriptor of float32 memory whose arrangement the primitive chooses."""
        return self._make("dnnl_memory_desc_create_with_tag", len(sizes), dims(sizes), FLOAT32, ANY)

    def described(self, kind: str, *args: Any) -> Handle:
        """A primitive's description, e.g. of kind `convolution_forward`."""
        return self._make(f"dnnl_{kind}_primitive_desc_create", *args)

    def primitive(self, description: Handle) -> Handle:
        """The primitive of a description."""
        return self._make("dnnl_primitive_create", description)

    def asked(self, description: Handle, what: int) -> Handle:
        """The memory descriptor that a primitive chose; it belongs to the description."""
        return Handle(self._c.dnnl_primitive_desc_query_md(description, what, 0))

    def same(self, a: Handle, b: Handle) -> bool:
        """True if two descriptors arrange memory alike."""
        return bool(self._c.dnnl_memory_desc_equal(a, b))

    def size(self, descriptor: Handle) -> int:
        """Bytes of memory that a descriptor takes."""
        return self._function("dnnl_memory_desc_get_size", ctypes.c_size_t)(descriptor)

    def memory(self, descriptor: Handle) -> Handle:
        """Memory without a buffer yet."""
        return self._make("dnnl_memory_create", descriptor, self.engine, Handle())


def dims(values: Sequence[int]) -> Any:
    """Sizes, strides or paddings as oneDNN takes them."""
    return (ctypes.c_int64 * 12)(*values)
