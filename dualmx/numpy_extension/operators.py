"""Network operators with NumPy semantics."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ..namespace.generate import array_function, symbol_function
from ..ndarray.handle import invoke
from ..ndarray.ndarray import NDArray
from ..ndarray.value_checks import check_later
from ..numpy.call import as_array, call_op
from ..numpy.np_ndarray import as_np_class, ndarray
from ..numpy.np_symbol import as_np, split_outputs
from ..op.numpy_names import WRITTEN
from ..op.registry import OPS

_OWN = ("constraint_check", "nonzero", "reshape")  # functions that are written here
# Public name: operator, whose further name `_npx_…` says so, but for two.
NAMES = {"group_norm": "GroupNorm", "instance_norm": "InstanceNorm"}
for _name, _op in OPS.items():
    _public = _name.removeprefix("_npx_")
    # Functions of images are in `npx.image`.
    if _public != _name and _public not in _OWN and not _public.startswith("_image_"):
        NAMES[_public] = _op.name


def np_function(operator: str, name: str) -> Callable[..., Any]:
    """Return the function of `mx.np.ndarray` called `name` that runs an operator; classic arrays are refused."""
    op = OPS[operator]
    inner = array_function(op, name)

    def function(*args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()):
            if isinstance(value, NDArray) and not isinstance(value, ndarray):
                raise ArgumentTypeError(
                    f"npx.{name}: got a classic NDArray: expected a mx.np.ndarray; use .as_np_ndarray(), or the "
                    f"function of mx.nd"
                )
        found = inner(*args, **kwargs)
        return [as_np_class(a) for a in found] if isinstance(found, (list, tuple)) else as_np_class(found)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = inner.__doc__
    function.__signature__ = inner.__signature__  # type: ignore[attr-defined]
    function.__module__ = "dualmx.numpy_extension"
    return function


def np_symbol_function(operator: str, name: str) -> Callable[..., Any]:
    """Return the function called `name` that makes nodes of an operator with NumPy semantics."""
    # Nodes without a name are called after the public one.
    made = symbol_function(OPS[operator], name)
    alias = WRITTEN.get(operator)

    @functools.wraps(made)
    def function(*args: Any, **kwargs: Any) -> Any:
        found = as_np(made(*args, **kwargs))
        if alias is not None:
            found.entries[0][0].alias = alias
        return found if len(found.entries) == 1 else split_outputs(found)

    return function


FUNCTIONS = {name: np_function(operator, name) for name, operator in NAMES.items()}


def nonzero(a: Any) -> ndarray:
    """Return the coordinates of the elements that are not 0 as rows, int64, shape (n, ndim).

    Example:
        >>> import dualmx as mx
        >>> mx.npx.nonzero(mx.np.array([[0.0, 3.0], [4.0, 0.0]]))
        array([[0, 1],
               [1, 0]], dtype=int64)
    """
    return call_op("_npx_nonzero", as_array(a, "nonzero"))


def reshape(a: Any, newshape: Any, reverse: bool = False, order: str = "C") -> ndarray:
    """Return a copy of `a` in another shape, which may contain codes.

    Args:
        a: array.
        newshape: lengths, or codes: -1 infer; -2 keep the next axis; -3 drop it if its length is 1; -4 keep all
            remaining axes; -5 merge the next two; -6 split the next one into the two lengths that follow.
        reverse: read axes and codes from the right.
        order: "C".

    Raises:
        ArgumentError: the number of elements changes, or a code does not apply.

    Example:
        >>> import dualmx as mx
        >>> mx.npx.reshape(mx.np.ones((2, 3, 4)), (-5, -6, 2, -1)).shape
        (6, 2, 2)
    """
    shape = (newshape,) if isinstance(newshape, int) else tuple(newshape)
    return call_op("_npx_reshape", as_array(a, "reshape"), newshape=shape, reverse=bool(reverse), order=order)


def constraint_check(x: Any, msg: str = "Constraint violated!") -> ndarray:
    """Return True, of shape (), if all elements of the bool array `x` are.

    Raises:
        ArgumentError: another dtype. MXNetError: at the next sync point, with the text `msg`, an element is False.
    """
    given = as_array(x, "constraint_check", "x")
    if given.dtype != bool:
        raise ArgumentError(f"constraint_check: x has dtype {given.dtype}: expected bool")
    (flag,) = invoke(OPS["_npx_constraint_check"].call(msg=msg), (given,))
    (found,) = invoke(OPS["_copy"].call(), (flag,))
    check_later(flag, [found], MXNetError(msg))
    return as_np_class(found)
