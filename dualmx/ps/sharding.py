"""Sharding of keys: small arrays on one server, large ones in slices over all."""

from __future__ import annotations

import math
import zlib
from typing import NamedTuple

from .van.shared_memory import PAGE

MAX_SLICE = 4 << 20  # bytes; larger slices are split: one is updated while the next is on its way


class Slice(NamedTuple):
    """A range of the flattened array.

    Attributes:
        number: counts the slices of the key.
        server: rank of the server that keeps it.
        start, stop: elements.
    """

    number: int
    server: int
    start: int
    stop: int


def home_server(key: int | str, servers: int) -> int:
    """Return the rank of the server of an unsliced key, equal in every process."""
    number = key if isinstance(key, int) else zlib.crc32(key.encode())
    return number * 9973 % servers


def slice_key(
    key: int | str, size: int, itemsize: int, servers: int, bound: int, unsliced: bool = False, width: int = 1
) -> list[Slice]:
    """Return the slices of a key.

    Args:
        key: the key.
        size: elements of the array, and `itemsize` bytes of each.
        servers: number of servers.
        bound: arrays of as many elements or more are split over all servers.
        whole: keep it in one piece, for optimizers that look at the whole array.
        width: elements of a row; slices of arrays with many rows consist of whole rows.

    Example:
        >>> slice_key("w", 10, 4, servers=2, bound=5)
        [Slice(number=0, server=0, start=0, stop=5), Slice(number=1, server=1, start=5, stop=10)]
    """
    first = home_server(key, servers)
    if unsliced or size < max(bound, 2):
        return [Slice(0, first, 0, size)]
    rounds = -(-size * itemsize // (servers * MAX_SLICE))
    pieces = min(servers * rounds, size)
    if pieces == 1:
        return [Slice(0, first, 0, size)]
    if width < 1 or size // width < 2 * pieces:
        width = 1
    unit = width * (16 if size // (pieces * width) >= 1024 else 1)  # equal pieces are updated by the same program
    pages = math.lcm(width, PAGE // itemsize)
    unit = pages if size // (pieces * pages) >= 32 else unit  # workers see slices that fill pages without a copy
    edges = [min(-(-size * i // (pieces * unit)) * unit, size) for i in range(pieces + 1)]
    return [Slice(i, i % servers, a, b) for i, (a, b) in enumerate(zip(edges, edges[1:], strict=False))]


__all__ = ["Slice", "home_server", "slice_key"]
