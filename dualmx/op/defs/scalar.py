"""Operators between an array and a Python scalar.

The scalar is converted to the dtype of the array before the operation. The runtime form of each computes the same with
a scalar that is not part of the compiled program, so that a varying value compiles nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtypes import is_float
from ..registry import op
from ..schema import Tensor
from . import broadcast as pair
from .rules import typed_scalar
from .varying import define_runtime_form, scalar_fits, typed

Pair = Callable[[jax.Array, jax.Array], jax.Array]


def _operands(name: str, data: jax.Array, scalar: float, is_int: bool) -> tuple[jax.Array, jax.Array]:
    """Array and scalar in one dtype: the array's, but float64 or int64 where that could not hold the scalar's kind."""
    if not is_float(np.dtype(data.dtype)):
        if not is_int:
            data = data.astype(jnp.float64)
        elif data.dtype == jnp.bool_:
            data = data.astype(jnp.int64)
    return data, jnp.asarray(typed_scalar(name, data, scalar))


def with_scalar(name: str, alias: str, fn: Pair, doc: str, runtime: bool = True, more: tuple[str, ...] = ()) -> None:
    """Register `name`: `fn(data, scalar)` on every element, and unless `runtime` is false its runtime form."""

    def body(data: Tensor, *, scalar: float = 1.0, is_int: bool = True) -> jax.Array:
        return fn(*_operands(name, data, scalar, is_int))

    shapes = "data: any shape and dtype; the result has the same (float64 for integers with is_int=False)."
    body.__doc__ = f"{doc}\n\n    {shapes} `scalar` is converted to that dtype first."
    made = op(name=name, aliases=((alias, *more) if alias else more))(body)
    if runtime:
        define_runtime_form(made, "scalar", fits=scalar_fits(), body=at_runtime(fn))


def at_runtime(fn: Pair) -> Callable[..., jax.Array]:
    """The body of a runtime form: `fn(data, scalar)`, the scalar in the dtype of the data."""
    return lambda data, scalar, is_int: fn(data, typed(scalar, data.dtype))


def _swapped(fn: Pair) -> Pair:
    return lambda x, s: fn(s, x)


# name, MXNet's further name, function of array and scalar, formula
TABLE: tuple[tuple[str, str, Pair, str], ...] = (
    ("_plus_scalar", "_PlusScalar", jnp.add, "data + scalar."),
    ("_minus_scalar", "_MinusScalar", jnp.subtract, "data - scalar."),
    ("_rminus_scalar", "_RMinusScalar", _swapped(jnp.subtract), "scalar - data."),
    ("_mul_scalar", "_MulScalar", jnp.multiply, "data * scalar."),
    ("_div_scalar", "_DivScalar", pair.divide, "data / scalar; integers truncate toward zero."),
    ("_rdiv_scalar", "_RDivScalar", _swapped(pair.divide), "scalar / data; integers truncate toward zero."),
    ("_mod_scalar", "_ModScalar", pair.modulo, "data modulo scalar, with the sign of scalar; 0 if scalar is 0."),
    (
        "_rmod_scalar",
        "_RModScalar",
        _swapped(pair.modulo),
        "scalar modulo data, with the sign of data; 0 where it is 0.",
    ),
    ("_hypot_scalar", "_HypotScalar", pair.hypot, "sqrt(data**2 + scalar**2)."),
    ("_maximum_scalar", "_MaximumScalar", pair.maximum, "The larger of data and scalar; derivative 1 at ties."),
    ("_minimum_scalar", "_MinimumScalar", pair.minimum, "The smaller of data and scalar; derivative 1 at ties."),
    ("_equal_scalar", "_EqualScalar", pair.equal, "1 where data == scalar, else 0."),
    ("_not_equal_scalar", "_NotEqualScalar", pair.not_equal, "1 where data != scalar, else 0."),
    ("_greater_scalar", "_GreaterScalar", pair.greater, "1 where data > scalar, else 0."),
    ("_greater_equal_scalar", "_GreaterEqualScalar", pair.greater_equal, "1 where data >= scalar, else 0."),
    ("_lesser_scalar", "_LesserScalar", pair.lesser, "1 where data < scalar, else 0."),
    ("_lesser_equal_scalar", "_LesserEqualScalar", pair.lesser_equal, "1 where data <= scalar, else 0."),
)
NUMPY_ALIASES = {
    "_hypot_scalar": ("_npi_hypot_scalar",),
    "_maximum_scalar": ("_npi_maximum_scalar",),
    "_minimum_scalar": ("_npi_minimum_scalar",),
    "_plus_scalar": ("_npi_add_scalar",),
    "_minus_scalar": ("_npi_subtract_scalar",),
    "_rminus_scalar": ("_npi_rsubtract_scalar",),
    "_mul_scalar": ("_npi_multiply_scalar",),
    "_mod_scalar": ("_npi_mod_scalar",),
    "_rmod_scalar": ("_npi_rmod_scalar",),
}
LOGIC: tuple[tuple[str, str, Pair, str], ...] = (
    ("_logical_and_scalar", "_LogicalAndScalar", pair.logical_and, "1 where data and scalar are other than 0, else 0."),
    ("_logical_or_scalar", "_LogicalOrScalar", pair.logical_or, "1 where data or scalar is other than 0, else 0."),
    ("_logical_xor_scalar", "_LogicalXorScalar", pair.logical_xor, "1 where one of data, scalar is 0, else 0."),
    ("_scatter_plus_scalar", "", jnp.add, "data + scalar, on the stored elements of sparse data."),
    ("_scatter_minus_scalar", "", jnp.subtract, "data - scalar, on the stored elements of sparse data."),
)

for _name, _alias, _fn, _doc in TABLE:
    with_scalar(_name, _alias, _fn, _doc, more=NUMPY_ALIASES.get(_name, ()))
for _name, _alias, _fn, _doc in LOGIC:
    with_scalar(_name, _alias, _fn, _doc, runtime=not _name.startswith("_scatter"))

SMALL_POWER = 8  # up to here repeated multiplication is as exact as the general power, and faster


@op(name="_power_scalar", aliases=("_PowerScalar", "_npi_power_scalar"))
def power_scalar(data: Tensor, *, scalar: float = 1.0, is_int: bool = True) -> jax.Array:
    """data ** scalar.

    data: any shape and dtype; the result has the same (float64 for integers with is_int=False).
    """
    x, exponent = _operands("_power_scalar", data, scalar, is_int)
    if is_float(np.dtype(x.dtype)) and abs(scalar) <= SMALL_POWER and float(scalar).is_integer():
        return lax.integer_pow(x, int(scalar))
    return pair.power(x, exponent)


@op(name="_rpower_scalar", aliases=("_RPowerScalar", "_npi_rpower_scalar"))
def rpower_scalar(data: Tensor, *, scalar: float = 1.0, is_int: bool = True) -> jax.Array:
    """scalar ** data.

    data: any shape and dtype; the result has the same (float64 for integers with is_int=False).
    """
    x, base = _operands("_rpower_scalar", data, scalar, is_int)
    return pair.power(base, x)


define_runtime_form(power_scalar, "scalar", fits=scalar_fits(), body=at_runtime(pair.power))
define_runtime_form(rpower_scalar, "scalar", fits=scalar_fits(), body=at_runtime(_swapped(pair.power)))
