"""Encode plain Python data and arrays as bytes, and decode them; never code."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from ..core.dtypes import bfloat16
from ..core.errors import ArgumentTypeError
from ..core.reader import Content
from ..ndarray import NDArray, array

_TYPE = "~"


def _plain(value: Any, what: str, blobs: list[bytes]) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.generic):
        value = np.asarray(value)
        return {_TYPE: "scalar", "d": value.dtype.name, "b": base64.b64encode(value.tobytes()).decode()}
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, complex):
        return {_TYPE: "complex", "v": [value.real, value.imag]}
    if isinstance(value, bytes):
        return {_TYPE: "bytes", "b": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return [_plain(v, what, blobs) for v in value]
    if isinstance(value, (tuple, set, frozenset)):
        return {_TYPE: type(value).__name__, "v": [_plain(v, what, blobs) for v in value]}
    if isinstance(value, dict):
        return {_TYPE: "dict", "v": [[_plain(k, what, blobs), _plain(v, what, blobs)] for k, v in value.items()]}
    if isinstance(value, (np.ndarray, NDArray)):
        data = value.asnumpy() if isinstance(value, NDArray) else value
        if data.dtype.kind not in "OSUMm":
            blobs.append(data.tobytes())
            kind = "ndarray"
            if isinstance(value, NDArray):
                kind = "NDArray" if value.is_sparse or type(value) is NDArray else "np"
            return {_TYPE: kind, "d": data.dtype.name, "s": list(data.shape), "n": len(blobs[-1])}
    raise ArgumentTypeError(
        f"{what}: a {type(value).__name__} cannot be sent; expected None, bool, numbers, str, bytes, arrays, or lists, "
        "tuples, sets and dicts of them"
    )


def encode(value: Any, what: str) -> np.ndarray:
    """Return a value as bytes (n,) of uint8.

    Raises:
        ArgumentTypeError: something in it is neither plain data nor an array.
    """
    blobs: list[bytes] = []
    text = json.dumps(_plain(value, what, blobs)).encode()
    return np.frombuffer(b"".join([len(text).to_bytes(8, "little"), text, *blobs]), np.uint8)


def _dtype(name: str) -> np.dtype:
    if not isinstance(name, str) or not name.isalnum() or len(name) > 16:
        raise ValueError(f"elements of {name!r:.40}")
    dtype = np.dtype(name)
    if dtype.kind not in "biufc" and dtype != bfloat16:
        raise ValueError(f"elements of {dtype}")
    return dtype


def decode(data: np.ndarray) -> Any:
    """Decode the bytes of `encode`.

    Raises:
        FormatError: damaged.

    Example:
        >>> decode(encode({"lr": 0.1, 3: (None, b"x")}, "test"))
        {'lr': 0.1, 3: (None, b'x')}
    """
    raw = data.tobytes()
    content = Content(raw, "object of another process", "what `encode` makes")
    size = int.from_bytes(raw[:8], "little")
    at = [8 + size]

    def value_of(v: Any) -> Any:
        if isinstance(v, list):
            return [value_of(x) for x in v]
        if not isinstance(v, dict):
            return v
        kind = v[_TYPE]
        if kind == "dict":
            return {value_of(k): value_of(x) for k, x in v["v"]}
        if kind in ("tuple", "set", "frozenset"):
            return {"tuple": tuple, "set": set, "frozenset": frozenset}[kind](value_of(x) for x in v["v"])
        if kind == "complex":
            return complex(*v["v"])
        if kind == "bytes":
            return base64.b64decode(v["b"])
        if kind == "scalar":
            return np.frombuffer(base64.b64decode(v["b"]), _dtype(v["d"]))[0]
        if kind not in ("ndarray", "NDArray", "np") or type(v["n"]) is not int or v["n"] < 0:
            raise ValueError(f"{kind!r} of {v['n']!r} bytes")
        found = np.frombuffer(raw[at[0] : at[0] + v["n"]], _dtype(v["d"])).reshape(v["s"])
        at[0] += v["n"]
        if kind == "ndarray":
            return found.copy()
        made = array(found, dtype=found.dtype)
        return made.as_np_ndarray() if kind == "np" else made

    if len(raw) < 8 or size > len(raw) - 8:
        raise content.error(f"text of {size} bytes in {len(raw)}", 0)
    tree = Content(raw[8 : 8 + size], content.source, content.kind, size=len(raw)).json()
    with content.parsing():
        return value_of(tree)


__all__ = ["decode", "encode"]
