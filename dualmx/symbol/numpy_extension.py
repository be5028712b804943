"""MXNet's import path of `mx.sym.npx`."""

from ..core.module_alias import lazy_reexport

__getattr__, __dir__ = lazy_reexport(__name__, "dualmx.numpy_extension.symbols")
