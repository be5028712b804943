"""The class that type checkers find the operators and methods of `ndarray` in; other files attach them.

They read `fluent.pyi` instead once `python -m dualmx.tools.stubs` has written it. Without it, every name may be one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ndarray.ndarray import NDArray

if TYPE_CHECKING:
    Fluent: Any = NDArray
else:

    class Fluent(NDArray):
        """A classic array with the functions of `mx.np` as methods: `x.sum(axis=1)` is `np.sum(x, axis=1)`."""

        __slots__ = ()
