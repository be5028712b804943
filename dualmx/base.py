"""Names that MXNet users import from `mx.base`."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .core.errors import MXNetError
from .core.module_alias import lazy_reexport

string_types = (str,)
numeric_types = (float, int, np.generic)
integer_types = (int, np.int32, np.int64)
mx_uint, mx_float, mx_int, mx_int64, mx_real_t = ctypes.c_uint, ctypes.c_float, ctypes.c_int, ctypes.c_int64, np.float32


class InternalError(MXNetError):
    """A defect of the library itself.

    Args:
        msg: what is wrong.
    """

    def __init__(self, msg: str):
        super().__init__(msg)


# Errors by the names under which they may be raised.
error_types: dict[str, type] = {
    "InternalError": InternalError,
    **{e.__name__: e for e in (ValueError, TypeError, AttributeError, IndexError, NotImplementedError)},
}


def register_error(func_name: Any = None, cls: type | None = None) -> Any:
    """Add an error class to `error_types`, under its own name or another; a decorator, also with a name.

    Example:
        >>> import dualmx as mx
        >>> @mx.error.register
        ... class Broken(mx.error.MXNetError):
        ...     pass
        >>> mx.base.error_types["Broken"] is Broken
        True
    """
    if callable(func_name):
        error_types[func_name.__name__] = func_name  # type: ignore[assignment]
        return func_name

    def register(found: type) -> type:
        error_types[func_name or found.__name__] = found
        return found

    return register if cls is None else register(cls)


class classproperty:
    """A property of a class; a decorator of a function of the class."""

    def __init__(self, fget: Callable[[Any], Any], fset: Callable[[Any, Any], None] | None = None):
        self.fget, self.fset = fget, fset

    def __get__(self, obj: Any, owner: type | None = None) -> Any:
        return self.fget(owner if owner is not None else type(obj))


def with_metaclass(meta: type, *bases: type) -> type:
    """Return a base class for classes with a metaclass."""
    return meta("temporary", bases, {})


NDArrayHandle = ctypes.c_void_p  # what `NDArray(handle)` takes


def py_str(x: bytes) -> str:
    """Return bytes as text."""
    return x.decode("utf-8")


def c_str(string: str) -> ctypes.c_char_p:
    """Return text as a C string."""
    return ctypes.c_char_p(string.encode("utf-8"))


def c_array(ctype: Any, values: Sequence[Any]) -> Any:
    """Return a C array of values."""
    return (ctype * len(values))(*values)


def c_str_array(strings: Sequence[str]) -> Any:
    """Return a C array of C strings."""
    return c_array(ctypes.c_char_p, [s.encode("utf-8") for s in strings])


def data_dir_default() -> str:
    """Return the directory of downloaded data unless `MXNET_HOME` says another."""
    if os.name == "nt":
        return os.path.join(os.environ.get("APPDATA", ""), "mxnet")
    return os.path.join(os.path.expanduser("~"), ".mxnet")


def data_dir() -> str:
    """Return the directory of downloaded data: `MXNET_HOME`, by default `~/.mxnet`."""
    return os.getenv("MXNET_HOME", data_dir_default())


def build_param_doc(
    arg_names: Sequence[str], arg_types: Sequence[str], arg_descs: Sequence[str], remove_dup: bool = True
) -> str:
    """Return the section of a docstring that lists parameters.

    Args:
        arg_names, arg_types, arg_descs: names, types and descriptions.
        remove_dup: list a name only once.
    """
    lines, seen = ["Parameters", "----------"], set()
    for name, kind, text in zip(arg_names, arg_types, arg_descs, strict=True):
        if (name in seen and remove_dup) or name == "num_args":
            continue
        seen.add(name)
        lines.append(f"{name} : {kind}" + (f"\n    {text}" if text else ""))
    return "\n".join(lines) + "\n"


_find, _ = lazy_reexport(__name__, "dualmx.symbol.arithmetic", "dualmx.sparse")


def __getattr__(name: str) -> Any:
    if name in ("NotImplementedForSymbol", "NotSupportedForSparseNDArray"):
        return _find(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


__all__ = [
    "InternalError", "MXNetError", "NDArrayHandle", "build_param_doc",
    "c_array", "c_str", "c_str_array", "classproperty", "data_dir", "data_dir_default", "error_types", "integer_types",
    "mx_float", "mx_int", "mx_int64", "mx_real_t", "mx_uint", "numeric_types", "py_str", "register_error",
    "string_types", "with_metaclass",
]  # fmt: skip
