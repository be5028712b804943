"""The front ends `nd` and `sym`, generated from the operator registry."""

from __future__ import annotations

from .. import ndarray as nd
from .. import symbol as sym
from ..ndarray.array import NDArray
from ..ndarray.trace import engine
from ..op.defs.varying import RUNTIME_FORMS
from . import (
    composed,
    contrib_functions,
    contrib_updates,
    control,
    custom,
    methods,
    np_rooms,
    pairs,
    pictures,
    random_functions,
    rooms,
    symbol_functions,
)
from .array_functions import array_function

engine.runtime_scalar_form.update(RUNTIME_FORMS)
np_rooms.populate(nd, np_rooms.ND_SUBMODULES)
np_rooms.populate(sym, np_rooms.SYM_SUBMODULES)
rooms.populate(nd, "Array operators", array_function)
pairs.populate(nd)
random_functions.populate(nd)
composed.populate(nd)
contrib_updates.populate(nd.contrib)
control.populate(nd.contrib)
custom.populate(nd)
pictures.populate(nd)
methods.install(NDArray, nd)
symbol_functions.populate(sym)
contrib_functions.populate(nd, sym)

__all__ = ["nd", "sym"]
