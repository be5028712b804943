"""Gradient codecs: 2 bits, 1 bit or 16 bits per element."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from ..core.errors import FormatError

CODECS = ("2bit", "1bit", "fp16")


@functools.lru_cache
def _byte_table(threshold: float) -> np.ndarray:
    """The four values of each byte of `"2bit"`."""
    codes = np.arange(256)[:, None] >> np.array([6, 4, 2, 0]) & 3
    return np.array([0.0, 0.0, -threshold, threshold], np.float32)[codes]


class Codec(NamedTuple):
    """A packing of float32 values.

    `"2bit"` holds +t, 0 and -t, 4 per byte, the first in the two highest bits, 11 for +t and 10 for -t; `"1bit"` holds
    +1 and -1, 8 per byte, 1 for +1; both in whole words of 4 bytes. `"fp16"` holds 16-bit floats.

    Attributes:
        kind: the packing.
        threshold: t of `"2bit"`.

    Example:
        >>> code = Codec("2bit", 0.5)
        >>> packed = code.pack(np.array([0.5, -0.5, 0.0], np.float32))
        >>> packed.tolist(), code.unpack(packed, 3).tolist()
        ([224, 0, 0, 0], [0.5, -0.5, 0.0])
    """

    kind: str
    threshold: float

    @classmethod
    def from_meta(cls, meta: tuple[str, float] | None) -> Codec | None:
        """Return the codec that a message names, None if it names none.

        Raises:
            FormatError: something else.
        """
        if meta is None:
            return None
        if meta[0] not in CODECS:
            raise FormatError(f"code={meta!r}: expected one of {', '.join(CODECS)} and a threshold")
        if meta[0] == "2bit" and not meta[1] > 0:
            raise FormatError(f"code={meta!r}: expected a threshold above 0")
        return cls(*meta)

    def size(self, n: int) -> int:
        """Bytes of `n` packed values."""
        return 2 * n if self.kind == "fp16" else -(-n // (16 if self.kind == "2bit" else 32)) * 4

    def pack(self, values: np.ndarray) -> np.ndarray:
        """Pack values (n,) into bytes (size(n),)."""
        if self.kind == "fp16":
            return np.ascontiguousarray(values, np.float16).view(np.uint8)
        if self.kind == "1bit":
            bits = np.packbits(values > 0)
            return np.concatenate([bits, np.zeros(self.size(values.size) - bits.size, np.uint8)])
        bits = np.zeros((self.size(values.size) * 4, 2), np.bool_)
        np.not_equal(values, 0, out=bits[: values.size, 0])
        np.greater(values, 0, out=bits[: values.size, 1])
        return np.packbits(bits)

    def unpack(self, packed: np.ndarray, n: int) -> np.ndarray:
        """Return the float32 values (n,) of packed bytes."""
        if self.kind == "fp16":
            return packed.view(np.float16).astype(np.float32)
        if self.kind == "1bit":
            return np.unpackbits(packed, count=n).astype(np.float32) * 2 - 1
        return _byte_table(self.threshold).take(packed, axis=0).reshape(-1)[:n]


__all__ = ["CODECS", "Codec"]
