"""MXNet's import path of functions that create, save and load arrays of any storage type."""

from ..core.module_alias import lazy_reexport

__getattr__, __dir__ = lazy_reexport(__name__, "dualmx.ndarray")
