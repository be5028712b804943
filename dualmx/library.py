"""`mx.library`: load extensions, Python modules that register operators."""

from __future__ import annotations

import importlib.util
import os
import sys

from .core.errors import MXNetError


def load(path: str, verbose: bool = True) -> None:
    """Run a Python file that registers operators, with `mx.operator.register` or `dualmx.op.registry.op`.

    Args:
        path: the file. Only load files you trust: they run.
        verbose: say what was loaded.

    Raises:
        MXNetError: there is no such file, or it is a shared library, made for MXNet's binary interface.
    """
    if not os.path.exists(path):
        raise MXNetError(f"library.load: path {path!r} does not exist")
    full = os.path.abspath(path)
    if not full.endswith(".py"):
        raise MXNetError(
            f"library.load: {full}: a shared library for MXNet's binary interface cannot be loaded; write the "
            f"operators in Python, or bind the library with jax.ffi, and load that .py file"
        )
    name = f"dualmx_extension_{os.path.splitext(os.path.basename(full))[0]}"
    spec = importlib.util.spec_from_file_location(name, full)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if verbose:
        print(f"loaded extension {full}")


__all__ = ["load"]
