"""Binary operators: `broadcast_*` stretches axes of length 1, `elemwise_*` and `_name` demand equal shapes."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtypes import is_float
from ...core.errors import ArgumentError
from ..registry import op
from ..schema import Tensor
from .rules import alike, convert, merge_shapes

Pair = Callable[[jax.Array, jax.Array], jax.Array]


def _whole(x: jax.Array) -> bool:
    return not is_float(np.dtype(x.dtype))


def divide(a: jax.Array, b: jax.Array) -> jax.Array:
    """a / b; integers truncate toward zero, and over 0 are what an infinite result becomes."""
    a, b = jnp.broadcast_arrays(a, b)
    if not _whole(b):
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
    if _whole(a):
        return convert(jnp.power(a.astype(jnp.float64), b.astype(jnp.float64)), a.dtype)
    return jnp.power(a, b)


@jax.custom_jvp
def _hypot(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.hypot(a, b)


_hypot.defjvps(lambda t, y, a, b: t * (a / y), lambda t, y, a, b: t * (b / y))


def hypot(a: jax.Array, b: jax.Array) -> jax.Array:
    """sqrt(a**2 + b**2) without overflow; integers truncate."""
    a, b = jnp.broadcast_arrays(a, b)
    if _whole(a):
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


def broadcasting(name: str, fn: Pair, doc: str, aliases: tuple[str, ...] = (), of_bool: bool = False) -> None:
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
    op(name=name, aliases=aliases)(body)


def elementwise(name: str, fn: Pair, doc: str, aliases: tuple[str, ...] = (), of_bool: bool = False) -> None:
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
    op(name=name, aliases=aliases, complete=alike(name, "lhs", "rhs"))(body)


# stem, function, formula, elementwise name, its further names; broadcast_<stem> is the broadcasting name
ARITHMETIC: tuple[tuple[str, Pair, str, str, tuple[str, ...]], ...] = (
    ("add", jnp.add, "lhs + rhs.", "elemwise_add", ("_plus", "_Plus", "_add", "_sparse_elemwise_add")),
    ("sub", jnp.subtract, "lhs - rhs.", "elemwise_sub", ("_minus", "_Minus", "_sub", "_sparse_elemwise_sub")),
    ("mul", jnp.multiply, "lhs * rhs.", "elemwise_mul", ("_mul", "_Mul", "_sparse_elemwise_mul")),
    ("div", divide, f"{divide.__doc__}", "elemwise_div", ("_div", "_Div", "_sparse_elemwise_div")),
    ("mod", modulo, f"{modulo.__doc__}", "_mod", ("_Mod",)),
    ("power", power, f"{power.__doc__}", "_power", ("_Power",)),
    ("hypot", hypot, f"{hypot.__doc__}", "_hypot", ("_Hypot",)),
    ("maximum", maximum, "The larger of lhs and rhs; ties give the derivative to lhs.", "_maximum", ("_Maximum",)),
    ("minimum", minimum, "The smaller of lhs and rhs; ties give the derivative to lhs.", "_minimum", ("_Minimum",)),
)
TESTS: tuple[tuple[str, Pair, str, str], ...] = (
    ("equal", equal, "lhs == rhs", "_Equal"),
    ("not_equal", not_equal, "lhs != rhs", "_Not_Equal"),
    ("greater", greater, "lhs > rhs", "_Greater"),
    ("greater_equal", greater_equal, "lhs >= rhs", "_Greater_Equal"),
    ("lesser", lesser, "lhs < rhs", "_Lesser"),
    ("lesser_equal", lesser_equal, "lhs <= rhs", "_Lesser_Equal"),
    ("logical_and", logical_and, "lhs and rhs are both other than 0", "_Logical_And"),
    ("logical_or", logical_or, "lhs or rhs is other than 0", "_Logical_Or"),
    ("logical_xor", logical_xor, "exactly one of lhs and rhs is other than 0", "_Logical_Xor"),
)
BROADCAST_ALIASES: dict[str, tuple[str, ...]] = {
    "add": ("broadcast_plus", "_sparse_broadcast_add", "_sparse_broadcast_plus"),
    "sub": ("broadcast_minus", "_sparse_broadcast_sub", "_sparse_broadcast_minus"),
    "mul": ("_sparse_broadcast_mul",),
    "div": ("_sparse_broadcast_div",),
}

for _stem, _fn, _doc, _name, _aliases in ARITHMETIC:
    broadcasting(f"broadcast_{_stem}", _fn, _doc, BROADCAST_ALIASES.get(_stem, ()))
    elementwise(_name, _fn, _doc, _aliases)
for _stem, _fn, _doc, _alias in TESTS:
    _doc = f"1 where {_doc}, 0 elsewhere, in the dtype of the operands; derivative 0."
    broadcasting(f"broadcast_{_stem}", _fn, _doc, of_bool=True)
    elementwise(f"_{_stem}", _fn, _doc, (_alias,), of_bool=True)
elementwise("_grad_add", jnp.add, "lhs + rhs, the sum of two gradients of one value.")
elementwise("_scatter_elemwise_div", divide, "lhs / rhs, on the stored elements of a sparse lhs.")
