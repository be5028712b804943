"""Words of 2-bit gradient compression: 4 values per byte, the first in the two highest bits; 11 is +t, 10 is -t."""

from __future__ import annotations

import numpy as np

_SHIFTS = np.array([6, 4, 2, 0], np.uint8)


def packed_size(n: int) -> int:
    """Bytes of `n` packed values: whole words of 16 values."""
    return -(-n // 16) * 4


def pack(values: np.ndarray) -> np.ndarray:
    """Pack an array of +t, 0 and -t (n,) into bytes (packed_size(n),)."""
    codes = np.zeros(packed_size(values.size) * 4, np.uint8)
    codes[: values.size] = np.where(values > 0, 3, np.where(values < 0, 2, 0))
    return np.bitwise_or.reduce(codes.reshape(-1, 4) << _SHIFTS, axis=1).astype(np.uint8)


def unpack(words: np.ndarray, n: int, threshold: float) -> np.ndarray:
    """Return the float32 values (n,) of packed bytes."""
    codes = ((words[:, None] >> _SHIFTS) & 3).reshape(-1)[:n]
    table = np.array([0.0, 0.0, -threshold, threshold], np.float32)
    return table[codes]


__all__ = ["pack", "packed_size", "unpack"]
