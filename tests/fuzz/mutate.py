"""Damage to good files: odd numbers in the place of lengths, counts and offsets; parts that are missing or repeated."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence
from random import Random
from typing import Any

ODD = (
    0, 1, 2, 3, 4, 5, 7, 8, 16, 63, 64, 127, 128, 255, 256, 1000, 32767, 32768, 65535, 65536, 1 << 20, 1 << 24, 1 << 28,
    (1 << 29) - 1, 1 << 29, 1 << 30, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 40, 1 << 53, 1 << 60, 1 << 62,
    (1 << 63) - 1, 1 << 63, (1 << 64) - 1, -1, -2, -128, -(1 << 31), -(1 << 63),
)  # fmt: skip
TEXTS = (
    "", " ", "\t", "\n", "\r", "\0", "-", "+", ".", ",", ":", ";", "#", "nan", "inf", "-inf", "1e999", "-1e999", "1e-999",
    "0x10", "1_0", "٣", "½", "\ud800", "é", "𐍈", "\u2028", "\x1c", "\x85", "None", "True", "()", "(,)", "(1,", "1L", "[]",
    "{}", "null", "true", "a", "a" * 300, "1" * 30, "9" * 5000, "(" * 120, "[" * 3000, "1.5", "1,2", "\\", "'", '"', "/", "..",
    "%s", "{0}", "__class__", "data", "int64", "float32", "cpu(0)", "cpu(99999999999999999999)", "\ufeff",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 1 << 31, 1 << 40, 1 << 63, 1 << 64, -(1 << 63), 10**30, 10**400, 0.5, -0.5, 1e308,
    float("nan"), float("inf"), "", "a", "0", "-1", "(2, 2)", "float32", "\ud800", "é" * 50, [], [0], [1, 2], [[]], [None],
    [-1], [1 << 40, 1 << 40], ["a"], {}, {"a": 1}, {"": None}, {"op": "push"},
)  # fmt: skip
GROWN = 1 << 18  # bytes that a file is made larger than, now and then


def damaged(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Bytes with one to four faults of any kind."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        out = rng.choice(_BYTES)(rng, out, others)
    return bytes(out)


def _place(rng: Random, size: int) -> int:
    """A place in bytes; headers, footers and places that numbers are aligned at come more often."""
    kind = rng.random()
    if kind < 0.35:
        return rng.randrange(min(size, 64) + 1)
    if kind < 0.5:
        return max(size - 1 - rng.randrange(min(size, 256) + 1), 0)
    at = rng.randrange(size + 1)
    return at - at % rng.choice((1, 1, 4, 8))


def _number(rng: Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    at, width = _place(rng, len(data)), rng.choice((1, 1, 2, 4, 4, 8, 8))
    order = rng.choice(("little", "little", "big"))
    if rng.random() < 0.5:
        value = rng.choice(ODD) if rng.random() < 0.8 else len(data) + rng.randrange(-9, 9)
    else:
        value = int.from_bytes(data[at : at + width], order) + rng.choice((-8, -4, -2, -1, 1, 2, 4, 8, 256, 1 << 16))
    data[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, order)
    return data


def _flip(rng: Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    for _ in range(rng.choice((1, 1, 2, 8))):
        if data:
            data[min(_place(rng, len(data)), len(data) - 1)] ^= 1 << rng.randrange(8)
    return data


def _cut(rng: Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    at = _place(rng, len(data))
    return data[:at] if rng.random() < 0.7 else data[at:]


def _remove(rng: Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    at = _place(rng, len(data))
    del data[at : at + rng.choice((1, 2, 4, 8, rng.randrange(64) + 1))]
    return data


def _repeat(rng: Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    at, size = _place(rng, len(data)), rng.choice((1, 4, 8, 16, rng.randrange(200) + 1))
    data[at:at] = data[at : at + size] * rng.choice((1, 1, 2, 5))
    return data


def _insert(rng: Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    at = _place(rng, len(data))
    data[at:at] = (
        rng.randbytes(rng.choice((1, 2, 4, 8, 32))) if rng.random() < 0.5 else bytes(rng.choice((1, 4, 8, 64)))
    )
    return data


def _splice(rng: Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    other = rng.choice(others)
    return data[: _place(rng, len(data))] + other[_place(rng, len(other)) :]


def _move(rng: Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    a, b, size = _place(rng, len(data)), _place(rng, len(data)), rng.choice((4, 8, 12, 32))
    one, other = data[a : a + size], data[b : b + size]
    if len(one) == len(other):
        data[a : a + size], data[b : b + size] = other, one
    return data


def _fill(rng: Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    at, size = _place(rng, len(data)), rng.choice((4, 8, 32, 200))
    size = len(data[at : at + size])
    data[at : at + size] = bytes([rng.choice((0, 255, 0x20, 0x80))]) * size
    return data


def _grow(rng: Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    if rng.random() < 0.9 or not data:
        return _number(rng, data, others)
    at, size = _place(rng, len(data)), rng.choice((1, 2, 4, 8, 32, rng.randrange(300) + 1))
    piece = bytes(data[at : at + size]) or b"\0"
    data[at:at] = piece * (GROWN // len(piece))
    return data


_BYTES = (_number, _number, _number, _flip, _flip, _cut, _remove, _repeat, _insert, _splice, _move, _fill, _grow)

_TOKEN = re.compile(r"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\w+|\s|[^\w\s]")


def reworded(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Text of which some words, numbers, signs or lines are others, missing or repeated; or bytes that are damaged."""
    if rng.random() < 0.25:
        return damaged(rng, data, others)
    tokens = _TOKEN.findall(data.decode("utf-8", "replace"))
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        if not tokens:
            break
        at = rng.randrange(len(tokens))
        kind = rng.randrange(7)
        if kind < 3:
            tokens[at] = str(rng.choice(ODD)) if rng.random() < 0.5 else rng.choice(TEXTS)
        elif kind == 3:
            del tokens[at : at + rng.choice((1, 1, 2, 9))]
        elif kind == 4:
            tokens[at:at] = tokens[at : at + rng.choice((1, 2, 9))] * rng.choice((1, 2))
        elif kind == 5:
            other = rng.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif rng.random() < 0.05:
            tokens[at:at] = tokens[max(at - 3, 0) : at + 1] * (GROWN // 8)
        else:
            tokens.insert(at, rng.choice(TEXTS))
    return "".join(tokens).encode("utf-8", "surrogatepass" if rng.random() < 0.1 else "replace")


def restructured(rng: Random, value: Any, times: int | None = None) -> Any:
    """A JSON value of which some parts are others, missing, repeated or in each other's place."""
    value = copy.deepcopy(value)
    for _ in range(times or rng.choice((1, 1, 1, 2, 3))):
        places = _places(value)
        if not places:
            return copy.deepcopy(rng.choice(VALUES))
        holder, key = rng.choice(places)
        kind = rng.randrange(8)
        if kind < 3:
            holder[key] = copy.deepcopy(rng.choice(VALUES))
        elif kind == 3:
            holder[key] = _near(rng, holder[key])
        elif kind == 4:
            del holder[key]
        elif kind == 5:
            other, at = rng.choice(places)
            holder[key] = copy.deepcopy(other[at]) if _has(other, at) else None
        elif isinstance(holder, list):
            holder[key:key] = [copy.deepcopy(holder[key])] * rng.choice((1, 2, 50))
        else:
            holder[rng.choice(TEXTS)] = copy.deepcopy(rng.choice(VALUES))
    return value


def _has(holder: Any, key: Any) -> bool:
    return key in holder if isinstance(holder, dict) else key < len(holder)


def _near(rng: Random, value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + rng.choice((-1, 1, 2, -value, 1 << 32, 1 << 62))
    if isinstance(value, float):
        return value * rng.choice((-1, 1e300, 0, float("nan")))
    if isinstance(value, str):
        return reworded(rng, value.encode("utf-8", "replace"), [b"x"]).decode("utf-8", "replace")
    return [value] if rng.random() < 0.5 else {"": value}


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Where the parts of a value are: in what, and under which key."""
    found: list[tuple[Any, Any]] = []
    rest = [value]
    while rest and len(found) < 5000:
        one = rest.pop()
        if isinstance(one, (list, dict)):
            keys = list(one) if isinstance(one, dict) else list(range(len(one)))
            found += [(one, key) for key in keys]
            rest += [one[key] for key in keys]
    return found


def rejsoned(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """JSON text of another value, or text that is reworded or damaged."""
    kind = rng.random()
    if kind < 0.25:
        return reworded(rng, data, others)
    try:
        value = json.loads(data)
    except ValueError:
        return damaged(rng, data, others)
    if kind > 0.995:
        return b"[" * 100_000 if kind > 0.997 else data.replace(b"[", b"[" + b"[[1,2]," * 20_000, 1)
    return json.dumps(restructured(rng, value)).encode()
