"""The front ends `nd` and `sym`, generated from the operator registry."""

from .. import ndarray as nd
from .. import symbol as sym
from ..ndarray.ndarray import NDArray
from . import contrib, contrib_updates, control, generate, lazy_module, methods, nd_functions, random, table
from .generate import array_function

lazy_module.populate_np(nd, lazy_module.ND_SUBMODULES)
lazy_module.populate_np(sym, lazy_module.SYM_SUBMODULES)
lazy_module.populate(nd, "Array operators", array_function)
table.populate(nd)
random.populate(nd)
nd_functions.populate(nd)
contrib_updates.populate(nd.contrib)
control.populate(nd.contrib)
nd_functions.populate_custom(nd)
nd_functions.populate_image(nd)
methods.install(NDArray, nd)
generate.populate(sym)
contrib.populate(nd, sym)

__all__ = ["nd", "sym"]
