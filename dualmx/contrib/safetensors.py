"""Arrays in `.safetensors` files, as PyTorch and Flax use them; needs the package `safetensors`."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.context import Context
from ..core.dtypes import as_dtype
from ..core.errors import ArgumentTypeError, MXNetError
from ..core.reader import Content
from ..gluon import Block
from ..ndarray import NDArray, array
from ..ndarray.serialize import write_file

_TYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "I32": "int32", "U32": "uint32",
    "I64": "int64", "U64": "uint64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
}  # fmt: skip
_OBJECT_BYTES = 1024  # bytes of an array in Python, beside its values


def save(fname: str | os.PathLike[str], data: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Write arrays by name, or the parameters of a block by their structural names, as `save_parameters` does.

    Args:
        fname: the file.
        data: a dict of name to NDArray, or a Block.
        metadata: texts that are stored with them.

    Raises:
        ArgumentTypeError: something else. MXNetError: the file cannot be written, or safetensors is not installed.

    Example:
        >>> from dualmx.contrib import safetensors
        >>> safetensors.save("w.safetensors", {"w": mx.nd.ones((2, 3))})
        >>> safetensors.load("w.safetensors")["w"].shape
        (2, 3)
    """
    if isinstance(data, Block):
        data = {name: p.reduce() for name, p in data.collect_params_with_prefix().items()}
    if not isinstance(data, Mapping) or not all(isinstance(v, NDArray) for v in data.values()):
        raise ArgumentTypeError("safetensors.save: expected a dict of NDArrays, or a Block")
    values = {str(name): np.asarray(value.asnumpy(), order="C") for name, value in data.items()}
    write_file(fname, _package("safetensors.numpy").save(values, dict(metadata) if metadata else None))


def load(fname: str | os.PathLike[str], ctx: Context | None = None) -> dict[str, NDArray]:
    """Read the arrays of a file, for `net.load_dict(...)` or anything else.

    Args:
        fname: the file.
        ctx: where the arrays are made.

    Raises:
        MXNetError: the file cannot be read, or safetensors is not installed. FormatError: it is damaged, or has a type
            that MXNet lacks.
    """
    content = Content.of_file(fname, "a .safetensors file")
    package = _package("safetensors")
    with content.parsing(package.SafetensorError, UnicodeError):
        found = package.deserialize(content.data)
    content.reserve(_OBJECT_BYTES * len(found), "its arrays")
    arrays = {}
    for name, one in sorted(found, key=lambda pair: pair[0]):
        if one["dtype"] not in _TYPES:
            raise content.error(f"array {name!r} of {one['dtype']}: no type of NDArrays")
        dtype = as_dtype(_TYPES[one["dtype"]])
        with content.parsing():  # a shape of more axes than NumPy has
            values = np.frombuffer(one["data"], dtype).reshape(one["shape"])
        arrays[name] = array(values, ctx=ctx, dtype=dtype)
    return arrays


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as e:
        raise MXNetError(
            f"contrib.safetensors needs the package safetensors: pip install 'dualmx[safetensors]' ({e})"
        ) from None


__all__ = ["load", "save"]
