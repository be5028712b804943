"""What the module of variance reduction is made of, under the path of MXNet's module."""

from ...core.module_alias import lazy_reexport

__getattr__, __dir__ = lazy_reexport(__name__, "dualmx.contrib.svrg_optimization")
