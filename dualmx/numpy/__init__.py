"""`mx.np`: arrays and functions with NumPy's semantics.

`mx.np.ndarray` is the same lazy handle as `mx.nd.NDArray`, under NumPy's rules: shapes without axes or elements, bool
comparisons and masks, int64 indices, promotion of mixed dtypes.

Example:
    >>> import dualmx as mx
    >>> mx.np.arange(6).reshape(2, 3).mean(axis=1)
    array([1., 4.])
"""

from __future__ import annotations

import builtins
import sys
from typing import Any

import numpy as onp

from . import fallback, indexing, linalg, methods, operators, protocol, random, submodules, symbols  # noqa: F401
from .creation import *
from .elementwise import FUNCTIONS, around, nan_to_num, round, round_  # noqa: F401
from .fallback import set_printoptions  # noqa: F401
from .financial import *
from .linalg import *
from .manipulation import *
from .np_ndarray import as_np, ndarray, second_handle  # noqa: F401
from .reductions import *
from .searching import *

pi, e, inf, nan, newaxis = onp.pi, onp.e, onp.inf, onp.nan, None
NAN = NaN = nan
PINF, NINF, PZERO, NZERO = inf, -inf, 0.0, -0.0
bool, bool_ = builtins.bool, onp.bool_
float16, float32, float64 = onp.float16, onp.float32, onp.float64
int8, int32, int64, uint8 = onp.int8, onp.int32, onp.int64, onp.uint8
finfo, iinfo, dtype = onp.finfo, onp.iinfo, onp.dtype

globals().update(FUNCTIONS)
submodules.make_submodules(sys.modules[__name__])


def __getattr__(name: str) -> Any:
    found = fallback.find(name)
    if found is None:
        raise AttributeError(f"module 'dualmx.numpy' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *fallback.HOST_FUNCTIONS, *fallback.TYPES})
