"""NumPy's element-wise functions of two arrays: inputs may have different dtypes, comparisons give bool.

Mixed dtypes follow MXNet: a floating-point operand wins whatever its width, two integers widen as in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...core.dtypes import is_float
from ...core.errors import ArgumentError, DtypeError
from ..registry import op
from ..schema import Tensor, UntypedTensor
from . import broadcast as pair
from .rules import convert, typed_scalar
from .scalar import at_runtime, with_scalar
from .varying import define_runtime_form, scalar_fits

Pair = Callable[[jax.Array, jax.Array], jax.Array]


def common(*dtypes: Any) -> np.dtype:
    """Return the dtype in which operands of these dtypes meet: the widest floating-point one if there is any."""
    kinds = [np.dtype(d) for d in dtypes]
    floats = [d for d in kinds if is_float(d)]
    if not floats:
        found = np.result_type(*kinds)
        return found if found.kind != "f" else np.dtype("float32")
    wide = max(floats, key=lambda d: d.itemsize)
    # Neither half-precision format holds the other.
    return np.dtype("float32") if any(d != wide and d.itemsize == wide.itemsize for d in floats) else wide


def joined(name: str, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the operands in their common dtype; `ArgumentError` if their shapes do not broadcast."""
    try:
        jnp.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        raise ArgumentError(
            f"{name}: shapes {x.shape} and {y.shape} do not broadcast: expected equal lengths, or 1, on each axis from "
            f"the last"
        ) from None
    dtype = common(x.dtype, y.dtype)
    return x.astype(dtype), y.astype(dtype)


def _float_of(x: jax.Array) -> jax.Array:
    return x if is_float(np.dtype(x.dtype)) else x.astype(jnp.float32)


def divide(x: jax.Array, y: jax.Array) -> jax.Array:
    """x / y; integers become float32."""
    return jnp.divide(_float_of(x), _float_of(y))


def _not_bool(name: str, fn: Pair) -> Pair:
    def run(x: jax.Array, y: jax.Array) -> jax.Array:
        if x.dtype == jnp.bool_:
            raise ArgumentError(f"{name}: not defined for two bool arrays; use logical_xor, or .astype('int32')")
        return fn(x, y)

    return run


def _add(x: jax.Array, y: jax.Array) -> jax.Array:
    return x | y if x.dtype == jnp.bool_ else x + y


def _multiply(x: jax.Array, y: jax.Array) -> jax.Array:
    return x & y if x.dtype == jnp.bool_ else x * y


def _power(x: jax.Array, y: jax.Array) -> jax.Array:
    return x | ~y if x.dtype == jnp.bool_ else pair.power(x, y)


def _through_float(fn: Pair) -> Pair:
    """A floating-point function whose integer operands go through float64 and come back truncated."""

    def run(x: jax.Array, y: jax.Array) -> jax.Array:
        if is_float(np.dtype(x.dtype)):
            return fn(x, y)
        return convert(fn(x.astype(jnp.float64), y.astype(jnp.float64)), x.dtype)

    return run


@jax.custom_jvp
def _copysign(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.copysign(x, y)


def _same_sign(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.where((x >= 0) == (jnp.copysign(jnp.ones_like(y), y) > 0), jnp.ones_like(x), -jnp.ones_like(x))


_copysign.defjvps(lambda t, r, x, y: t * _same_sign(x, y), lambda t, r, x, y: jnp.zeros_like(t))


def _ldexp(x: jax.Array, y: jax.Array) -> jax.Array:
    # exp2 misses whole numbers by a bit, and integers are cut.
    return x * jnp.power(jnp.asarray(2, y.dtype), y)


def _whole(name: str, fn: Pair) -> Pair:
    def run(x: jax.Array, y: jax.Array) -> jax.Array:
        if is_float(np.dtype(x.dtype)):
            raise DtypeError(f"{name}: dtype {x.dtype}: expected integers; cast with .astype('int64')")
        return fn(x, y)

    return run


def _lcm(x: jax.Array, y: jax.Array) -> jax.Array:
    return x & y if x.dtype == jnp.bool_ else jnp.lcm(x, y)


def _floor_divide(x: jax.Array, y: jax.Array) -> jax.Array:
    if jnp.issubdtype(x.dtype, jnp.integer):
        return jnp.where(y == 0, jnp.zeros_like(y), jnp.floor_divide(x, jnp.where(y == 0, jnp.ones_like(y), y)))
    return jnp.floor_divide(x, y)


def _logic(fn: Pair) -> Pair:
    return lambda x, y: fn(x != 0, y != 0)


def _broadcast(fn: Pair) -> Pair:
    return lambda x, y: fn(*jnp.broadcast_arrays(x, y))


# name: function of two arrays of one dtype, formula
PAIRS: dict[str, tuple[Pair, str]] = {
    "add": (_add, "x1 + x2; `or` of two bools."),
    "subtract": (_not_bool("_npi_subtract", jnp.subtract), "x1 - x2."),
    "multiply": (_multiply, "x1 * x2; `and` of two bools."),
    "true_divide": (divide, "x1 / x2; integers become float32."),
    "mod": (_not_bool("_npi_mod", pair.modulo), "x1 - x2 * floor(x1 / x2), with the sign of x2; 0 where x2 is 0."),
    "floor_divide": (_not_bool("_npi_floor_divide", _floor_divide), "floor(x1 / x2)."),
    "power": (_power, "x1 ** x2."),
    "maximum": (pair.maximum, "The larger one; ties give the derivative to x1."),
    "minimum": (pair.minimum, "The smaller one; ties give the derivative to x1."),
    "hypot": (pair.hypot, "sqrt(x1**2 + x2**2)."),
    "arctan2": (_through_float(jnp.arctan2), "Angle in radians, within [-pi, pi], of the point (x2, x1)."),
    "copysign": (_through_float(_broadcast(_copysign)), "|x1| with the sign of x2."),
    "ldexp": (_through_float(_ldexp), "x1 * 2**x2."),
    "lcm": (_whole("_npi_lcm", _lcm), "Least common multiple of integers."),
    "bitwise_and": (_whole("_npi_bitwise_and", jnp.bitwise_and), "Bits set in both integers."),
    "bitwise_or": (_whole("_npi_bitwise_or", jnp.bitwise_or), "Bits set in either integer."),
    "bitwise_xor": (_whole("_npi_bitwise_xor", jnp.bitwise_xor), "Bits set in one of the integers."),
}
TESTS: dict[str, tuple[Pair, str]] = {
    "equal": (lambda x, y: x == y, "x1 == x2, as bool."),
    "not_equal": (lambda x, y: x != y, "x1 != x2, as bool."),
    "less": (lambda x, y: x < y, "x1 < x2, as bool."),
    "less_equal": (lambda x, y: x <= y, "x1 <= x2, as bool."),
    "greater": (lambda x, y: x > y, "x1 > x2, as bool."),
    "greater_equal": (lambda x, y: x >= y, "x1 >= x2, as bool."),
    "logical_and": (_logic(jnp.logical_and), "Both are other than 0, as bool."),
    "logical_or": (_logic(jnp.logical_or), "Either is other than 0, as bool."),
    "logical_xor": (_logic(jnp.logical_xor), "Exactly one is other than 0, as bool."),
}


def _register(name: str, fn: Pair, doc: str) -> None:
    def body(lhs: UntypedTensor, rhs: UntypedTensor) -> jax.Array:
        return fn(*joined(name, lhs, rhs))

    body.__doc__ = f"""{doc}

    lhs, rhs: any dtypes, brought to a common one (a floating-point operand wins); the shapes broadcast.

    Raises:
        ArgumentError: shapes that do not broadcast, or a dtype for which this is not defined.
    """
    op(name=name)(body)


def _swapped(fn: Pair) -> Pair:
    return lambda x, s: fn(s, x)


for _name, (_fn, _doc) in {**PAIRS, **TESTS}.items():
    _register(f"_npi_{_name}", _fn, _doc)

# The scalar forms that the classic operators do not have; the others are aliases of those.
ONE_WAY = ("lcm", "bitwise_and", "bitwise_or", "bitwise_xor")
TWO_WAYS = ("arctan2", "copysign", "ldexp", "floor_divide")
for _name in TWO_WAYS:
    with_scalar(f"_npi_{_name}_scalar", "", PAIRS[_name][0], f"{_name} of data and a scalar.")
for _name in TWO_WAYS:
    with_scalar(f"_npi_r{_name}_scalar", "", _swapped(PAIRS[_name][0]), f"{_name} of a scalar and data.")


def _in_dtype_of_data(name: str, fn: Pair) -> None:
    def body(data: Tensor, *, scalar: float = 1.0, is_int: bool = True) -> jax.Array:
        return fn(data, jnp.asarray(typed_scalar(name, data, scalar)))

    body.__doc__ = f"{name[5:-7]} of data and a scalar, which is cast to the dtype of the data (bool as well) first."
    define_runtime_form(op(name=name)(body), "scalar", fits=scalar_fits(), body=at_runtime(fn))


for _name in (*ONE_WAY, *TESTS):
    _in_dtype_of_data(f"_npi_{_name}_scalar", {**PAIRS, **TESTS}[_name][0])


@op()
def _npi_true_divide_scalar(data: Tensor, *, scalar: float = 1.0, is_int: bool = True) -> jax.Array:
    """data / scalar; integers become float32 first.

    data: any shape and dtype; the result has the same, float32 for integers.
    """
    x = _float_of(data)
    return x / jnp.asarray(typed_scalar("_npi_true_divide_scalar", x, scalar))


@op()
def _npi_rtrue_divide_scalar(data: Tensor, *, scalar: float = 1.0, is_int: bool = True) -> jax.Array:
    """scalar / data; integers become float32 first.

    data: any shape and dtype; the result has the same, float32 for integers.
    """
    x = _float_of(data)
    return jnp.asarray(typed_scalar("_npi_rtrue_divide_scalar", x, scalar)) / x


_real = scalar_fits(whole_numbers=False)
define_runtime_form(_npi_true_divide_scalar, "scalar", fits=_real, body=at_runtime(pair.divide))
define_runtime_form(_npi_rtrue_divide_scalar, "scalar", fits=_real, body=at_runtime(_swapped(pair.divide)))
