"""What is in a worker's request, as the server reads it: each word is checked before anything is changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.dtypes import NAMES, as_dtype
from ..core.errors import ArgumentTypeError, FormatError
from .codes import Codec
from .frame import Message
from .row_messages import parse_row_push
from .store import Key, Store

MAX_PARTS = 1 << 20
MAX_TERMS = 4096  # terms of one worker in a sum
MODES = ("init", "fresh", "reset")


def parse_parts(message: Message, *kinds: Any) -> list[Any]:
    """Return the parts of a request as tuples, whose values are of `kinds`.

    Raises:
        FormatError: other parts, or too many.
    """
    parts = message.field("parts", list)
    if len(parts) > MAX_PARTS:
        raise FormatError(f"{len(parts)} parts in a message")
    found = []
    for part in parts:
        good = isinstance(part, list) and len(part) == len(kinds) and all(map(isinstance, part, kinds))
        if not good or [value for value in part if value is True or value is False]:
            raise FormatError(f"message {message.meta.get('op')!r}: part {part!r}: not as expected")
        found.append(tuple(part))
    return found


def serve_put(store: Store, message: Message, take: Callable[[int], np.ndarray]) -> None:
    """Store the slices of a `put`, in memory of their own, which `take` returns.

    Raises:
        FormatError: no arrays, or other numbers than announced; nothing is stored then.
    """
    data = message.pieces()
    made: list[tuple[Key, int, np.ndarray, tuple[int, ...]]] = []
    for key, number, name, size, shape in parse_parts(message, (str, int), int, str, int, list):
        if name not in NAMES or not all(type(n) is int and n >= 0 for n in shape) or size < 0:
            raise FormatError(f"key {key!r}: {name}{shape}: no array")
        try:
            dtype = as_dtype(name)
        except ArgumentTypeError as e:
            raise FormatError(str(e)) from None
        piece = data.read(size * dtype.itemsize)
        if piece.nbytes != size * dtype.itemsize:
            raise FormatError(f"key {key!r}: the numbers are missing")
        value = take(piece.nbytes).view(dtype)
        value[:] = np.frombuffer(piece, dtype)
        made.append((key, number, value, tuple(shape)))
    if data.left:
        raise FormatError("more numbers than announced")
    mode = message.meta.get("mode", "init")
    if mode not in MODES:
        raise FormatError(f"put: mode={mode!r}: expected one of {', '.join(MODES)}")
    tables = message.meta.get("tables", [])
    if not isinstance(tables, list):
        raise FormatError(f"put: tables={tables!r}: expected keys")
    for one in made:
        store.put(*one, mode=mode, table=one[0] in tables)


def parse_pushes(store: Store, message: Message) -> list[Any]:
    """Return the slices, rounds and numbers of a push, of arrays or rows; `FormatError` as `parse_dense_pushes`."""
    if message.meta.get("op") == "push rows":
        return parse_row_push(store, message, parse_parts(message, (str, int), int, int, int))
    return parse_dense_pushes(store, message)


def parse_dense_pushes(store: Store, message: Message) -> list[tuple[Key, int, int, np.ndarray]]:
    """Return the slices, rounds and numbers of a push of arrays.

    Raises:
        FormatError: slices that are not here, or other numbers than theirs.
    """
    data = message.pieces()
    told, apart = message.meta.get("code"), message.meta.get("apart", 1)
    code = None if told is None else Codec.from_meta(told)
    if type(apart) is not int or not 1 <= apart <= MAX_TERMS or (apart > 1 and (code or not store.sync)):
        raise FormatError(f"push: apart={apart!r}: expected up to {MAX_TERMS} terms for a synchronous store")
    parts = []
    for key, number, turn in parse_parts(message, (str, int), int, int):
        value = store.shard(key, number).value
        size = value.nbytes * apart if code is None else code.size(value.size)
        piece = data.read(size)
        if piece.nbytes != size:
            raise FormatError(f"push of key {key!r}: {piece.nbytes} bytes, expected {size}")
        if code is None:
            numbers = np.frombuffer(piece, value.dtype)
            numbers = numbers.reshape(apart, -1) if apart > 1 else numbers
        else:
            numbers = code.unpack(np.frombuffer(piece, np.uint8), value.size)
        parts.append((key, number, turn, numbers))
    if data.left:
        raise FormatError(f"push: {data.left} bytes more than expected; was an array pushed as another type?")
    return parts


__all__ = ["parse_dense_pushes", "parse_parts", "parse_pushes", "serve_put"]
