"""Convert Arrow columns to NumPy: numbers, lists, tensors, Spark vectors, and arrays or images stored as bytes."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import FormatError, MXNetError
from ..core.reader import Content
from . import image_codec

_NPY, _NPZ = b"\x93NUMPY", b"PK\x03\x04"
_IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")
_VECTOR = {"type", "size", "indices", "values"}  # fields of a vector of Spark; `type` is 0 where it is sparse


@functools.cache
def arrow(name: str = "pyarrow") -> Any:
    """Return a module of pyarrow.

    Raises:
        MXNetError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as e:
        raise MXNetError(f"Parquet files are read by pyarrow: pip install 'dualmx[parquet]' ({e})") from None


def to_numpy(name: str, column: Any, decode: bool = True) -> np.ndarray:
    """Return the values of an Arrow column (n, …): (n,) of objects where rows differ in shape, or are no numbers.

    Args:
        name: of the column, for error texts.
        column: a `pyarrow.Array` or `ChunkedArray`; missing numbers are allowed where they can be NaN.
        decode: bytes that are `.npy` files or images become arrays.

    Raises:
        FormatError: missing values, damaged arrays, or a type that is neither of numbers nor of text or bytes.
    """
    pa = arrow()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    kind, types = column.type, pa.types
    if column.null_count and not types.is_floating(kind):
        raise FormatError(
            f"column {name!r} of {kind}: {column.null_count} of {len(column)} values are missing: expected none"
        )
    if isinstance(column, pa.FixedShapeTensorArray):
        return column.to_numpy_ndarray()
    if isinstance(column, pa.ExtensionArray):
        return to_numpy(name, column.storage, decode)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _lists(name, column, decode)
    if types.is_struct(kind) and {f.name for f in kind} == _VECTOR:
        return _vectors(name, column)
    if types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return _decoded(name, column.to_pylist()) if decode else _objects(column.to_pylist())
    elif types.is_string(kind) or types.is_large_string(kind):
        return _objects(column.to_pylist())
    elif types.is_nested(kind) or types.is_null(kind):
        raise FormatError(f"column {name!r} of {kind}: expected numbers, lists of them, text or bytes")
    return column.to_numpy(zero_copy_only=False)


def joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenate rows of several arrays; an object array if their shapes differ."""
    if len({(p.dtype == object, p.shape[1:]) for p in parts}) == 1:
        return np.concatenate(parts)
    return _objects([row for p in parts for row in p])


def _objects(values: Sequence[Any]) -> np.ndarray:
    found = np.empty(len(values), object)
    for i, value in enumerate(values):  # at once, NumPy would look into the values
        found[i] = value
    return found


def _stacked(rows: Sequence[np.ndarray]) -> np.ndarray:
    return np.stack(rows) if len({(r.shape, r.dtype) for r in rows}) == 1 else _objects(rows)


def _lists(name: str, column: Any, decode: bool) -> np.ndarray:
    values = to_numpy(name, column.flatten(), decode)
    lengths = arrow("pyarrow.compute").list_value_length(column).to_numpy(zero_copy_only=False)
    if len(set(lengths.tolist())) <= 1:
        return values.reshape(len(column), int(lengths[0]) if len(lengths) else 0, *values.shape[1:])
    return _objects(np.split(values, np.cumsum(lengths)[:-1]))


def _vectors(name: str, column: Any) -> np.ndarray:
    rows = []
    content = Content(b"", f"column {name!r}", "vectors of Spark", size=column.nbytes)
    for vector in column.to_pylist():
        row = np.array(vector["values"], np.float64)
        if vector["type"] == 0:
            size, at = vector["size"], np.array(vector["indices"], np.int64)
            if not isinstance(size, int) or len(at) != len(row) or (len(at) and not 0 <= at.min() <= at.max() < size):
                raise content.error(f"a sparse vector of {size!r} elements with {len(row)} at {at.tolist()[:8]}")
            content.reserve(8 * size, "a sparse vector")
            row, found = np.zeros(size), row
            row[at] = found
        rows.append(row)
    return _stacked(rows)


def _decoded(name: str, values: list[bytes]) -> np.ndarray:
    """The arrays that are stored in bytes; the bytes if there are none."""
    start = values[0][:8] if values else b""
    if start.startswith((_NPY, _NPZ)):
        return _stacked([_loaded(name, v) for v in values])
    if start.startswith(_IMAGES):
        return _stacked([image_codec.decode(v, -1) for v in values])
    return _objects(values)


def _loaded(name: str, value: bytes) -> np.ndarray:
    what = f"column {name!r}: {len(value)} bytes that are no readable NumPy array"
    content = Content(value, what, "one array of numbers, .npy or .npz")
    if not value.startswith(_NPZ):
        return content.npy()
    found = list(content.npz().values())
    if len(found) != 1:
        raise content.error(f"{len(found)} arrays")
    return found[0]


__all__ = ["arrow", "joined", "to_numpy"]
