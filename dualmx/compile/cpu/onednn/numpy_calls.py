"""Layers of NumPy arrays by oneDNN and our compiled handlers, without XLA."""

from __future__ import annotations

import ctypes
import functools
import logging
from typing import Any

import numpy as np

from . import bindings
from .ffi_handlers import library

_MESSAGE_BYTES = 512  # of `handlers.c`


@functools.cache
def _compute() -> Any:
    compute = library().dualmx_onednn_compute
    compute.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p]
    compute.restype = None
    return compute


@functools.cache
def _openmp() -> Any:
    return bindings.library()  # which is linked to it


def dense(x: Any) -> Any:
    """The same array in one piece of aligned memory, as oneDNN and the handlers read it."""
    return x if x.flags.c_contiguous and x.flags.aligned else np.array(x, order="C")


def convolve(text: bytes, first: Any, second: Any, out: Any, is_small: bool) -> bool:
    """Compute what the text of a `ConvSpec` describes into `out`; False if oneDNN has no way to.

    The arrays are contiguous, aligned float32 of the sizes in the text. Other threads of Python run meanwhile. What is
    small is computed by one thread: on a busy machine others may come late.
    """
    message = ctypes.create_string_buffer(_MESSAGE_BYTES)
    addresses = (ctypes.c_void_p * 3)(first.ctypes.data, second.ctypes.data, out.ctypes.data)
    if is_small:  # the number is that of this thread
        openmp = _openmp()
        threads = openmp.omp_get_max_threads()
        openmp.omp_set_num_threads(1)
        _compute()(text, len(text), addresses, message)
        openmp.omp_set_num_threads(threads)
    else:
        _compute()(text, len(text), addresses, message)
    if message.value:
        logging.getLogger("dualmx").info("%s: %s", text.decode(), message.value.decode(errors="replace"))
    return not message.value


def _checked(function: Any) -> Any:
    """A function of the handlers that returns 0, or another number without memory."""

    def errcheck(result: int, *_: Any) -> None:
        if result:
            raise MemoryError(f"{function.__name__}: no memory for sums")

    function.restype, function.errcheck = ctypes.c_int, errcheck
    return function


@functools.cache
def _normalize() -> tuple[Any, Any]:
    run, pull = library().dualmx_normalize_batch, library().dualmx_normalize_batch_vjp
    run.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_float, *[ctypes.c_void_p] * 7]
    pull.argtypes = [ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * 8]
    return _checked(run), _checked(pull)


def normalize_batch(x: Any, gamma: Any, beta: Any, eps: Any) -> tuple[Any, ...]:
    """Normalized rows (N, C), mean, biased variance and 1 / sqrt(variance + eps) per channel; all float32."""
    ins = [dense(a) for a in (x, gamma, beta)]
    outs = [np.empty_like(ins[0]), *[np.empty_like(ins[1]) for _ in range(3)]]
    _normalize()[0](*x.shape, eps, *[a.ctypes.data for a in (*ins, *outs)])
    return tuple(outs)


def normalize_batch_vjp(x: Any, gamma: Any, mean: Any, inv: Any, dy: Any) -> tuple[Any, ...]:
    """The gradients of rows, gamma and beta from that of the normalized rows (N, C)."""
    ins = [dense(a) for a in (x, gamma, mean, inv, dy)]
    outs = [np.empty_like(ins[0]), np.empty_like(ins[1]), np.empty_like(ins[1])]
    _normalize()[1](*x.shape, *[a.ctypes.data for a in (*ins, *outs)])
    return tuple(outs)


@functools.cache
def _maxima() -> tuple[Any, Any]:
    run, pull = library().dualmx_max_pool, library().dualmx_max_pool_vjp
    run.argtypes, pull.argtypes = [ctypes.c_void_p] * 3, [ctypes.c_void_p] * 5
    run.restype = pull.restype = None
    return run, pull


def max_pool(x: Any, count: tuple[int, ...], window: tuple[int, ...]) -> Any:
    """The maxima (N, *count, C) of windows of images (N, H, W, C); NaN where one is in it.

    `window` holds two sizes, two strides and two paddings in front, which count as the least finite number.
    """
    x = dense(x)
    out, sizes = np.empty((x.shape[0], *count, x.shape[3]), x.dtype), np.array([*x.shape, *count, *window], np.int64)
    _maxima()[0](*[a.ctypes.data for a in (sizes, x, out)])
    return out


def max_pool_vjp(x: Any, y: Any, dy: Any, window: tuple[int, ...]) -> Any:
    """The gradient of images (N, H, W, C) from that of the maxima y of their windows, as of `max_pool`."""
    x, y, dy = dense(x), dense(y), dense(dy)
    out, sizes = np.empty_like(x), np.array([*x.shape, *y.shape[1:3], *window], np.int64)
    _maxima()[1](*[a.ctypes.data for a in (sizes, x, y, dy, out)])
    return out


@functools.cache
def _keep() -> Any:
    keep = library().dualmx_keep_masked
    keep.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]
    keep.restype = None
    return keep


def keep_masked(mask: Any, x: Any) -> Any:
    """x of 4-byte elements where a mask of its shape holds, 0 elsewhere; None if they lie differently in memory."""
    out = np.empty_like(x)  # as x, if that is in one piece
    if not x.flags.aligned or out.strides != x.strides or tuple([4 * s for s in mask.strides]) != x.strides:
        return None
    _keep()(mask.ctypes.data, x.ctypes.data, x.size, out.ctypes.data)
    return out


@functools.cache
def _elementwise(name: str) -> Any:
    function = getattr(library(), name)
    function.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]
    function.restype = None
    return function


def _apply(function: Any, x: Any, out: Any) -> Any:
    if out is None or not (out.flags.c_contiguous and x.flags.c_contiguous and out.flags.aligned):
        out = np.empty_like(x)  # as x, if that is in one piece
    if not x.flags.aligned or out.strides != x.strides:
        x, out = dense(x), np.empty(x.shape, x.dtype)
    function(x.ctypes.data, x.size, out.ctypes.data)
    return out


def erf(x: Any, out: Any) -> Any:
    """The error function of float32, whose relative error is below 8 units of the last place.

    `out`, if not None, is memory that may hold the result.
    """
    return _apply(_elementwise("dualmx_erf"), x, out)


def erf_inv(x: Any, out: Any) -> Any:
    """The inverse of the error function of float32, as exact as `erf`; `out` as there."""
    return _apply(_elementwise("dualmx_erf_inv"), x, out)


@functools.cache
def _draws() -> tuple[Any, Any]:
    bits, uniform = library().dualmx_random_bits, library().dualmx_random_uniform
    bits.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_void_p]
    uniform.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_float, ctypes.c_float, ctypes.c_void_p]
    bits.restype = uniform.restype = None
    return bits, uniform


def random_bits(key: Any, out: Any) -> None:
    """Fill an array of uint32 or uint16 with random bits of a key, two words of uint32."""
    _draws()[0](key.ctypes.data, out.size, out.dtype.itemsize, out.ctypes.data)


def random_uniform(key: Any, low: float, high: float, out: Any) -> None:
    """Fill an array of float32 with numbers from `low` to `high`, from random bits of a key, two words of uint32."""
    _draws()[1](key.ctypes.data, out.size, low, high, out.ctypes.data)
