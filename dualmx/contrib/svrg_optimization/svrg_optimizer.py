"""MXNet's import path of the optimizers of `SVRGModule`."""

from ...core.module_alias import lazy_reexport

__getattr__, __dir__ = lazy_reexport(__name__, "dualmx.contrib.svrg_optimization")
