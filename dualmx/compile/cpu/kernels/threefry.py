"""Random numbers: threefry2x32, as JAX uses it.

Source: Salmon et al., 2011, Parallel Random Numbers: As Easy as 1, 2, 3.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..onednn import numpy_calls
from ..onednn.ffi_handlers import available

Sizes = tuple[int, ...]
_MIN_HANDLER_SIZE = 4096  # elements, from which a call of a handler costs little
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


def _threefry(key: tuple[Any, Any], x: Any, y: Any) -> tuple[Any, Any]:
    keys = (*key, key[0] ^ key[1] ^ _PARITY)
    x, y = x + keys[0], y + keys[1]
    for number in range(5):
        for r in _ROTATIONS[number % 2]:
            x = x + y
            y = (y << np.uint32(r) | y >> np.uint32(32 - r)) ^ x
        x, y = x + keys[(number + 1) % 3], y + keys[(number + 2) % 3] + np.uint32(number + 1)
    return x, y


_COUNTERS = 1 << 14  # at a time, whose words stay in a cache


def _counted(key: Any, first: int, end: int) -> tuple[Any, Any]:
    """Two words for each of some counters."""
    at = np.arange(first, end, dtype=np.uint64)
    return _threefry((key[0], key[1]), (at >> np.uint64(32)).astype(np.uint32), at.astype(np.uint32))


def random_bits(key: Any, width: int, shape: Sizes) -> Any:
    """Random bits of a key, or of each of an array of keys, in unsigned integers of `width` bits."""
    if np.ndim(key) > 1:
        return np.stack([random_bits(one, width, shape[1:]) for one in key])
    key, bits = np.ascontiguousarray(key), np.empty(math.prod(shape), f"u{width // 8}")
    if width in (16, 32) and bits.size >= _MIN_HANDLER_SIZE and available():
        numpy_calls.random_bits(key, bits)
        return bits.reshape(shape)
    for first in range(0, bits.size, _COUNTERS):
        high, low = _counted(key, first, min(first + _COUNTERS, bits.size))
        bits[first : first + _COUNTERS] = high.astype(np.uint64) << np.uint64(32) | low if width == 64 else high ^ low
    return bits.reshape(shape)


def random_uniform(key: Any, low: Any, high: Any, shape: Sizes) -> Any:
    """Numbers of float32 from `low` to `high`: random bits as mantissas of numbers from 1 to 2."""
    low, high = np.float32(low), np.float32(high)
    if math.prod(shape) >= _MIN_HANDLER_SIZE and available():
        result = np.empty(shape, np.float32)
        numpy_calls.random_uniform(np.ascontiguousarray(key), low, high, result)
        return result
    result = random_bits(key, 32, shape)
    result >>= np.uint32(9)
    result |= np.uint32(0x3F800000)
    result = result.view(np.float32)
    result -= np.float32(1)
    result *= high - low
    result += low
    return np.maximum(result, low, out=result)


def fold_in(key: Any, number: Any) -> Any:
    """The key of a number."""
    key = np.asarray(key)
    return np.stack(_threefry((key[..., 0], key[..., 1]), np.uint32(0), np.uint32(int(number) & 0xFFFFFFFF)), -1)


def random_split(key: Any, shape: Sizes) -> Any:
    """Several keys of one."""
    return np.stack(_counted(key, 0, math.prod(shape)), -1).reshape(*shape, 2)


def random_seed(seed: Any) -> Any:
    """The key of a seed."""
    number = int(seed) & 0xFFFFFFFFFFFFFFFF
    return np.array([number >> 32, number & 0xFFFFFFFF], np.uint32)


__all__ = ["fold_in", "random_bits", "random_seed", "random_split", "random_uniform"]
