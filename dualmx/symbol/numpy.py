"""`mx.sym.np`, under the path of MXNet's module."""

from ..core.module_alias import lazy_reexport

__getattr__, __dir__ = lazy_reexport(__name__, "dualmx.numpy.symbols")
