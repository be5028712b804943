"""Binary operators: `broadcast_*`, `elemwise_*`, scalar forms, and NumPy's functions of two arrays.

`broadcast_*` stretches axes of length 1, `elemwise_*` and `_name` demand equal shapes. A scalar is converted to the
array's dtype before the operation; its runtime form takes it as an input, so that a varying value compiles nothing.
NumPy's functions accept mixed dtypes as MXNet does: a float operand wins whatever its width, integers widen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtypes import is_float
from ...core.errors import ArgumentError, DtypeError
from ..registry import op
from ..runtime_scalars import define_runtime_form, scalar_fits, typed
from ..schema import Tensor, UntypedTensor
from ..shape_rules import convert, merge_shapes, same_shape, typed_scalar
from ..traits import CONSTANT, NO_TRAITS, Quantized, StorageRule, Traits, stored

Pair = Callable[[jax.Array, jax.Array], jax.Array]

KEEPS_ZEROS = stored(StorageRule.KEEPS_ZEROS)
SAME, EAGER = stored(StorageRule.SAME_STORAGE), stored(StorageRule.SAME_STORAGE_EAGER)
SUM = stored(StorageRule.SAME_STORAGE, quantized=Quantized("_contrib_quantized_elemwise_add", is_wide=True))
PRODUCT = stored(
    StorageRule.PRODUCT, quantized=Quantized("_contrib_quantized_elemwise_mul", is_wide=True, is_calibrated=True)
)


def _is_integer(x: jax.Array) -> bool:
    return not is_float(np.dtype(x.dtype))


def divide(a: jax.Array, b: jax.Array) -> jax.Array:
    """a / b; integers truncate toward zero, and over 0 are what an infinite result becomes."""
    a, b = jnp.broadcast_arrays(a, b)
    if not _is_integer(b):
        return lax.div(a, b)
    infinite = convert(jnp.asarray(jnp.inf), b.dtype)
    return jnp.where(b == 0, infinite, lax.div(a, jnp.where(b == 0, jnp.ones_like(b), b)))


@jax.custom_jvp
def _modulo(a: jax.Array, b: jax.Array) -> jax.Array:
    zero = jnp.zeros((), b.dtype)
    rest = lax.rem(a, jnp.where(b == 0, jnp.ones_like(b), b))
    if not jnp.issubdtype(a.dtype, jnp.unsignedinteger):
        rest = jnp.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
    return jnp.where(b == 0, zero, rest)


_modulo.defjvps(lambda t, y, a, b: t, lambda t, y, a, b: -t * jnp.floor(a / b))


def modulo(a: jax.Array, b: jax.Array) -> jax.Array:
    """a - b * floor(a / b), with the sign of b; 0 where b is 0."""
    return _modulo(*jnp.broadcast_arrays(a, b))


def power(a: jax.Array, b: jax.Array) -> jax.Array:
    """a ** b; integers go through float64 and truncate."""
    if _is_integer(a):
        return convert(jnp.power(a.astype(jnp.float64), b.astype(jnp.float64)), a.dtype)
    return jnp.power(a, b)


@jax.custom_jvp
def _hypot(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.hypot(a, b)


_hypot.defjvps(lambda t, y, a, b: t * (a / y), lambda t, y, a, b: t * (b / y))


def hypot(a: jax.Array, b: jax.Array) -> jax.Array:
    """sqrt(a**2 + b**2) without overflow; integers truncate."""
    a, b = jnp.broadcast_arrays(a, b)
    if _is_integer(a):
        return convert(jnp.hypot(a.astype(jnp.float64), b.astype(jnp.float64)), a.dtype)
    return _hypot(a, b)


def _chosen(pick: Pair, left: Pair) -> Pair:
    """An extremum whose whole derivative goes to the left operand where `left` holds, else to the right one."""
    chosen = jax.custom_jvp(pick)
    chosen.defjvps(
        lambda t, y, a, b: jnp.where(left(a, b), t, jnp.zeros_like(t)),
        lambda t, y, a, b: jnp.where(left(a, b), jnp.zeros_like(t), t),
    )
    return lambda a, b: chosen(*jnp.broadcast_arrays(a, b))


maximum = _chosen(jnp.maximum, lambda a, b: a >= b)
minimum = _chosen(jnp.minimum, lambda a, b: a <= b)


def _truth(test: Pair) -> Pair:
    """A test that answers 0 or 1 in the dtype of its operands."""
    return lambda a, b: test(a, b).astype(a.dtype)


equal = _truth(lambda a, b: a == b)
not_equal = _truth(lambda a, b: a != b)
greater = _truth(lambda a, b: a > b)
greater_equal = _truth(lambda a, b: a >= b)
lesser = _truth(lambda a, b: a < b)
lesser_equal = _truth(lambda a, b: a <= b)
logical_and = _truth(lambda a, b: (a != 0) & (b != 0))
logical_or = _truth(lambda a, b: (a != 0) | (b != 0))
logical_xor = _truth(lambda a, b: (a != 0) ^ (b != 0))


def _no_bool(name: str, x: jax.Array) -> None:
    if x.dtype == jnp.bool_:
        raise ArgumentError(f"{name}: no arithmetic on bool; cast with .astype('int32')")


def broadcasting(
    name: str, fn: Pair, doc: str, aliases: tuple[str, ...] = (), traits: Traits = NO_TRAITS, of_bool: bool = False
) -> None:
    """Register `name`: `fn` on two arrays stretched to a common shape."""

    def body(lhs: Tensor, rhs: Tensor) -> jax.Array:
        if not of_bool:
            _no_bool(name, lhs)
        try:
            jnp.broadcast_shapes(lhs.shape, rhs.shape)
        except ValueError:
            raise ArgumentError(
                f"{name}: shapes {list(lhs.shape)} and {list(rhs.shape)} do not broadcast: "
                "expected equal lengths, or 1, on each axis from the last"
            ) from None
        return fn(lhs, rhs)

    body.__doc__ = f"""{doc}

    lhs, rhs: one dtype, which the result has; axes of length 1 and missing leading axes are stretched.

    Raises:
        ArgumentError: shapes that do not broadcast, different dtypes.
    """
    op(name=name, aliases=aliases, traits=traits)(body)


def elementwise(
    name: str, fn: Pair, doc: str, aliases: tuple[str, ...] = (), traits: Traits = NO_TRAITS, of_bool: bool = False
) -> None:
    """Register `name`: `fn` on two arrays of one shape; the shape of one is deduced from the other."""

    def body(lhs: Tensor, rhs: Tensor) -> jax.Array:
        if not of_bool:
            _no_bool(name, lhs)
        merge_shapes(name, {"lhs": lhs.shape, "rhs": rhs.shape})
        return fn(lhs, rhs)

    body.__doc__ = f"""{doc}

    lhs, rhs: one shape and dtype, which the result has.

    Raises:
        ArgumentError: different shapes (use the broadcast_* operator), different dtypes.
    """
    op(name=name, aliases=aliases, complete=same_shape(name, "lhs", "rhs"), traits=traits)(body)


TIES = "The {} of lhs and rhs; ties give the derivative to lhs."
# stem, function, formula, name of the elementwise operator, its further names and traits
ARITHMETIC: tuple[tuple[str, Pair, str, str, tuple[str, ...], Traits], ...] = (
    ("add", jnp.add, "lhs + rhs.", "elemwise_add", ("_plus", "_Plus", "_add", "_sparse_elemwise_add"), SUM),
    ("sub", jnp.subtract, "lhs - rhs.", "elemwise_sub", ("_minus", "_Minus", "_sub", "_sparse_elemwise_sub"), SAME),
    ("mul", jnp.multiply, "lhs * rhs.", "elemwise_mul", ("_mul", "_Mul", "_sparse_elemwise_mul"), PRODUCT),
    ("div", divide, f"{divide.__doc__}", "elemwise_div", ("_div", "_Div", "_sparse_elemwise_div"), NO_TRAITS),
    ("mod", modulo, f"{modulo.__doc__}", "_mod", ("_Mod",), NO_TRAITS),
    ("power", power, f"{power.__doc__}", "_power", ("_Power",), NO_TRAITS),
    ("hypot", hypot, f"{hypot.__doc__}", "_hypot", ("_Hypot",), EAGER),
    ("maximum", maximum, TIES.format("larger"), "_maximum", ("_Maximum",), EAGER),
    ("minimum", minimum, TIES.format("smaller"), "_minimum", ("_Minimum",), EAGER),
)  # fmt: skip
COMPARISONS: tuple[tuple[str, Pair, str, str], ...] = (
    ("equal", equal, "lhs == rhs", "_Equal"),
    ("not_equal", not_equal, "lhs != rhs", "_Not_Equal"),
    ("greater", greater, "lhs > rhs", "_Greater"),
    ("greater_equal", greater_equal, "lhs >= rhs", "_Greater_Equal"),
    ("lesser", lesser, "lhs < rhs", "_Lesser"),
    ("lesser_equal", lesser_equal, "lhs <= rhs", "_Lesser_Equal"),
)
LOGIC: tuple[tuple[str, Pair, str, str], ...] = (
    ("logical_and", logical_and, "lhs and rhs are both other than 0", "_Logical_And"),
    ("logical_or", logical_or, "lhs or rhs is other than 0", "_Logical_Or"),
    ("logical_xor", logical_xor, "exactly one of lhs and rhs is other than 0", "_Logical_Xor"),
)
# Further names and traits of the broadcasting operator, by stem.
BROADCAST: dict[str, tuple[tuple[str, ...], Traits]] = {
    "add": (("broadcast_plus", "_sparse_broadcast_add", "_sparse_broadcast_plus"), NO_TRAITS),
    "sub": (("broadcast_minus", "_sparse_broadcast_sub", "_sparse_broadcast_minus"), NO_TRAITS),
    "mul": (("_sparse_broadcast_mul",), stored(StorageRule.SCALE_BY_BROADCAST)),
    "div": (("_sparse_broadcast_div",), stored(StorageRule.SCALE_BY_BROADCAST)),
}

for _stem, _fn, _doc, _name, _aliases, _traits in ARITHMETIC:
    broadcasting(f"broadcast_{_stem}", _fn, _doc, *BROADCAST.get(_stem, ((), NO_TRAITS)))
    elementwise(_name, _fn, _doc, _aliases, _traits)
for _rows, _traits in (COMPARISONS, CONSTANT), (LOGIC, NO_TRAITS):
    for _stem, _fn, _doc, _alias in _rows:
        _doc = f"1 where {_doc}, 0 elsewhere, in the dtype of the operands; derivative 0."
        broadcasting(f"broadcast_{_stem}", _fn, _doc, (), _traits, of_bool=True)
        elementwise(f"_{_stem}", _fn, _doc, (_alias,), _traits, of_bool=True)
elementwise("_grad_add", jnp.add, "lhs + rhs, the sum of two gradients of one value.")
elementwise(
    "_scatter_elemwise_div", divide, "lhs / rhs, on the stored elements of a sparse lhs.",
    traits=stored(StorageRule.DIVIDE_STORED),
)  # fmt: skip


def _operands(name: str, data: jax.Array, scalar: float, is_int: bool) -> tuple[jax.Array, jax.Array]:
    """Array and scalar in one dtype: the array's, but float64 or int64 where that could not hold the scalar's kind."""
    if not is_float(np.dtype(data.dtype)):
        if not is_int:
            data = data.astype(jnp.float64)
        elif data.dtype == jnp.bool_:
            data = data.astype(jnp.int64)
    return data, jnp.asarray(typed_scalar(name, data, scalar))


def zero_stays(test: Callable[[float], bool], is_constant: bool = False) -> Traits:
    """The traits of an operator that makes 0 of 0 and a number for which `test` holds."""
    return stored(StorageRule.SCALAR, zero_stays=test, is_constant=is_constant)


def with_scalar(
    name: str, alias: str, fn: Pair, doc: str, traits: Traits = NO_TRAITS, *, runtime: bool = True,
    more: tuple[str, ...] = (),
) -> None:  # fmt: skip
    """Register `name`: `fn(data, scalar)` on every element, and unless `runtime` is false its runtime form."""

    def body(data: Tensor, *, scalar: float = 1.0, is_int: bool = True) -> jax.Array:
        return fn(*_operands(name, data, scalar, is_int))

    shapes = "data: any shape and dtype; the result has the same (float64 for integers with is_int=False)."
    body.__doc__ = f"{doc}\n\n    {shapes} `scalar` is converted to that dtype first."
    made = op(name=name, aliases=((alias, *more) if alias else more), traits=traits)(body)
    if runtime:
        define_runtime_form(made, "scalar", fits=scalar_fits(), body=at_runtime(fn))


def at_runtime(fn: Pair) -> Callable[..., jax.Array]:
    """The body of a runtime form: `fn(data, scalar)`, the scalar in the dtype of the data."""
    return lambda data, scalar, is_int: fn(data, typed(scalar, data.dtype))


def _swapped(fn: Pair) -> Pair:
    return lambda x, s: fn(s, x)


# name, MXNet's further name, function of array and scalar, formula, traits if it has any
TABLE: tuple[tuple[Any, ...], ...] = (
    ("_plus_scalar", "_PlusScalar", jnp.add, "data + scalar.", zero_stays(lambda s: s == 0)),
    ("_minus_scalar", "_MinusScalar", jnp.subtract, "data - scalar.", zero_stays(lambda s: s == 0)),
    ("_rminus_scalar", "_RMinusScalar", _swapped(jnp.subtract), "scalar - data."),
    ("_mul_scalar", "_MulScalar", jnp.multiply, "data * scalar.", KEEPS_ZEROS),
    ("_div_scalar", "_DivScalar", divide, "data / scalar; integers truncate toward zero.", KEEPS_ZEROS),
    ("_rdiv_scalar", "_RDivScalar", _swapped(divide), "scalar / data; integers truncate toward zero."),
    ("_mod_scalar", "_ModScalar", modulo, "data modulo scalar, with the sign of scalar; 0 if scalar is 0."),
    ("_rmod_scalar", "_RModScalar", _swapped(modulo), "scalar modulo data, with the sign of data; 0 where it is 0."),
    ("_hypot_scalar", "_HypotScalar", hypot, "sqrt(data**2 + scalar**2)."),
    ("_maximum_scalar", "_MaximumScalar", maximum, "The larger of data and scalar; derivative 1 at ties."),
    ("_minimum_scalar", "_MinimumScalar", minimum, "The smaller of data and scalar; derivative 1 at ties."),
    ("_logical_and_scalar", "_LogicalAndScalar", logical_and, "1 where data and scalar are other than 0, else 0."),
    ("_logical_or_scalar", "_LogicalOrScalar", logical_or, "1 where data or scalar is other than 0, else 0."),
    ("_logical_xor_scalar", "_LogicalXorScalar", logical_xor, "1 where one of data, scalar is 0, else 0."),
)
# name, MXNet's further name, function, sign, for which scalars 0 gives 0
TESTS: tuple[tuple[str, str, Pair, str, Callable[[float], bool]], ...] = (
    ("_equal_scalar", "_EqualScalar", equal, "==", lambda s: s != 0),
    ("_not_equal_scalar", "_NotEqualScalar", not_equal, "!=", lambda s: s == 0),
    ("_greater_scalar", "_GreaterScalar", greater, ">", lambda s: s >= 0),
    ("_greater_equal_scalar", "_GreaterEqualScalar", greater_equal, ">=", lambda s: s > 0),
    ("_lesser_scalar", "_LesserScalar", lesser, "<", lambda s: s <= 0),
    ("_lesser_equal_scalar", "_LesserEqualScalar", lesser_equal, "<=", lambda s: s < 0),
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

for _name, _alias, _fn, _doc, *_traits in TABLE:
    with_scalar(_name, _alias, _fn, _doc, *_traits, more=NUMPY_ALIASES.get(_name, ()))
for _name, _alias, _fn, _sign, _keeps in TESTS:
    with_scalar(_name, _alias, _fn, f"1 where data {_sign} scalar, else 0.", zero_stays(_keeps, is_constant=True))
for _stem, _fn, _sign in ("plus", jnp.add, "+"), ("minus", jnp.subtract, "-"):
    _doc = f"data {_sign} scalar, on the stored elements of sparse data."
    with_scalar(f"_scatter_{_stem}_scalar", "", _fn, _doc, KEEPS_ZEROS, runtime=False)

SMALL_POWER = 8  # up to here repeated multiplication is as exact as the general power, and faster


@op(name="_power_scalar", aliases=("_PowerScalar", "_npi_power_scalar"))
def power_scalar(data: Tensor, *, scalar: float = 1.0, is_int: bool = True) -> jax.Array:
    """data ** scalar.

    data: any shape and dtype; the result has the same (float64 for integers with is_int=False).
    """
    x, exponent = _operands("_power_scalar", data, scalar, is_int)
    if is_float(np.dtype(x.dtype)) and abs(scalar) <= SMALL_POWER and float(scalar).is_integer():
        return lax.integer_pow(x, int(scalar))
    return power(x, exponent)


@op(name="_rpower_scalar", aliases=("_RPowerScalar", "_npi_rpower_scalar"))
def rpower_scalar(data: Tensor, *, scalar: float = 1.0, is_int: bool = True) -> jax.Array:
    """scalar ** data.

    data: any shape and dtype; the result has the same (float64 for integers with is_int=False).
    """
    x, base = _operands("_rpower_scalar", data, scalar, is_int)
    return power(base, x)


define_runtime_form(power_scalar, "scalar", fits=scalar_fits(), body=at_runtime(power))
define_runtime_form(rpower_scalar, "scalar", fits=scalar_fits(), body=at_runtime(_swapped(power)))


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


def true_divide(x: jax.Array, y: jax.Array) -> jax.Array:
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
    return x | ~y if x.dtype == jnp.bool_ else power(x, y)


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


def _integers_only(name: str, fn: Pair) -> Pair:
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
    "true_divide": (true_divide, "x1 / x2; integers become float32."),
    "mod": (_not_bool("_npi_mod", modulo), "x1 - x2 * floor(x1 / x2), with the sign of x2; 0 where x2 is 0."),
    "floor_divide": (_not_bool("_npi_floor_divide", _floor_divide), "floor(x1 / x2)."),
    "power": (_power, "x1 ** x2."),
    "maximum": (maximum, "The larger one; ties give the derivative to x1."),
    "minimum": (minimum, "The smaller one; ties give the derivative to x1."),
    "hypot": (hypot, "sqrt(x1**2 + x2**2)."),
    "arctan2": (_through_float(jnp.arctan2), "Angle in radians, within [-pi, pi], of the point (x2, x1)."),
    "copysign": (_through_float(_broadcast(_copysign)), "|x1| with the sign of x2."),
    "ldexp": (_through_float(_ldexp), "x1 * 2**x2."),
    "lcm": (_integers_only("_npi_lcm", _lcm), "Least common multiple of integers."),
    "bitwise_and": (_integers_only("_npi_bitwise_and", jnp.bitwise_and), "Bits set in both integers."),
    "bitwise_or": (_integers_only("_npi_bitwise_or", jnp.bitwise_or), "Bits set in either integer."),
    "bitwise_xor": (_integers_only("_npi_bitwise_xor", jnp.bitwise_xor), "Bits set in one of the integers."),
}
NP_COMPARISONS: dict[str, tuple[Pair, str]] = {
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


for _name, (_fn, _doc) in {**PAIRS, **NP_COMPARISONS}.items():
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


for _name in (*ONE_WAY, *NP_COMPARISONS):
    _in_dtype_of_data(f"_npi_{_name}_scalar", {**PAIRS, **NP_COMPARISONS}[_name][0])


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


_real = scalar_fits(integers=False)
define_runtime_form(_npi_true_divide_scalar, "scalar", fits=_real, body=at_runtime(divide))
define_runtime_form(_npi_rtrue_divide_scalar, "scalar", fits=_real, body=at_runtime(_swapped(divide)))
