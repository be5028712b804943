"""Small arrays of one dtype travel together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

UNFUSED_ABOVE = 1 << 20  # bytes from which an array is worth a message of its own
BUCKET = 16 << 20  # most bytes that travel together


def fusion_buckets(arrays: Sequence[np.ndarray]) -> list[list[int]]:
    """Return which arrays travel together: by dtype, whatever comes in between, in the order of the first of each.

    Example:
        >>> buckets([np.ones(2, np.float16), np.ones(2, np.float32), np.ones(3, np.float16), np.ones(4, np.float32)])
        [[0, 2], [1, 3]]
    """
    made: list[list[int]] = []
    open_at: dict[np.dtype, tuple[list[int], int]] = {}
    for i, a in enumerate(arrays):
        if a.nbytes >= UNFUSED_ABOVE:
            made.append([i])
            continue
        held, size = open_at.get(a.dtype, ([], BUCKET))
        if size + a.nbytes > BUCKET:
            held, size = [], 0
            made.append(held)
        held.append(i)
        open_at[a.dtype] = (held, size + a.nbytes)
    return made


def with_fusion(arrays: Sequence[np.ndarray], exchange: Callable[[np.ndarray], np.ndarray]) -> list[np.ndarray]:
    """Return what an exchange that keeps shapes makes of each array."""
    out: list[np.ndarray] = list(arrays)
    for at in fusion_buckets(arrays):
        if len(at) == 1:
            out[at[0]] = exchange(arrays[at[0]])
            continue
        whole = exchange(np.concatenate([arrays[i].reshape(-1) for i in at]))
        begin = 0
        for i in at:
            # A copy lies where devices can use it as it is.
            out[i] = whole[begin : begin + arrays[i].size].reshape(arrays[i].shape).copy()
            begin += arrays[i].size
    return out


__all__ = ["fusion_buckets", "with_fusion"]
