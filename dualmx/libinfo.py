"""MXNet's `mx.libinfo`; there is no C library here, and the functions say so."""

from __future__ import annotations

import os
from typing import NoReturn

from .core.errors import MXNetError


def _absent(what: str, instead: str) -> NoReturn:
    raise MXNetError(f"libinfo: dualmx is written in Python on JAX and has no {what}; {instead}")


def find_lib_path(prefix: str = "libmxnet") -> list[str]:
    """Return the files of the library: those of the package `dualmx` for the default prefix.

    Raises:
        MXNetError: another prefix.

    Example:
        >>> import dualmx as mx
        >>> mx.libinfo.find_lib_path()[0].endswith("__init__.py")
        True
    """
    if prefix != "libmxnet":
        _absent(f"library {prefix!r}", "extensions are Python modules")
    return [os.path.join(os.path.dirname(os.path.abspath(__file__)), "__init__.py")]


def find_include_path() -> str:
    """Raise: there are no C headers.

    Raises:
        MXNetError: always.
    """
    _absent("C headers", "write operators in Python (`mx.operator`), or with `jax.ffi` in C++")


def find_conf_path(prefix: str = "tvmop") -> str:
    """Raise: there are no operators compiled by TVM.

    Raises:
        MXNetError: always.
    """
    _absent("configuration of TVM operators", "XLA compiles all of them")


__all__ = ["find_conf_path", "find_include_path", "find_lib_path"]
