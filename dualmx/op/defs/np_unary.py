"""NumPy's element-wise functions of one array that the classic operators do not have."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtypes import is_float
from ...core.errors import DtypeError
from ..registry import op
from ..schema import Tensor

Test = Callable[[jax.Array], jax.Array]


def _of_floats(test: Test, whole: bool) -> Test:
    """A test of floating-point values; integers all answer `whole`."""
    return lambda x: test(x) if is_float(np.dtype(x.dtype)) else jnp.full(x.shape, whole)


TESTS: tuple[tuple[str, Test, str], ...] = (
    ("logical_not", lambda x: x == 0, "True where x is 0."),
    ("isnan", _of_floats(jnp.isnan, False), "True where x is not a number."),
    ("isinf", _of_floats(jnp.isinf, False), "True where x is infinite."),
    ("isfinite", _of_floats(jnp.isfinite, True), "True where x is neither infinite nor nan."),
    ("isposinf", _of_floats(lambda x: x == jnp.inf, False), "True where x is positive infinity."),
    ("isneginf", _of_floats(lambda x: x == -jnp.inf, False), "True where x is negative infinity."),
)


def _register(name: str, test: Test, doc: str) -> None:
    def body(x: Tensor) -> jax.Array:
        return test(x)

    body.__doc__ = f"{doc}\n\n    x: any shape and dtype; the result is bool, of the same shape."
    op(name=name)(body)


for _name, _test, _doc in TESTS:
    _register(f"_npi_{_name}", _test, _doc)


@op()
def _npi_bitwise_not(x: Tensor) -> jax.Array:
    """Every bit of integers flipped; `not` of bools.

    x: any shape, integers or bool; the result has the same.

    Raises:
        ArgumentError: floating-point data.
    """
    if is_float(np.dtype(x.dtype)):
        raise DtypeError(f"_npi_bitwise_not: dtype {x.dtype}: expected integers or bool")
    return ~x


@op()
def _npi_around(x: Tensor, *, decimals: int = 0) -> jax.Array:
    """Round to `decimals` places, halves to the even neighbour; negative `decimals` round tens, hundreds and so on.

    x: any shape and dtype; the result has the same. The derivative is 0.
    """
    x = lax.stop_gradient(x)
    if is_float(np.dtype(x.dtype)):
        return jnp.round(x, decimals)
    return x if decimals >= 0 else jnp.round(x.astype(jnp.float64), decimals).astype(x.dtype)


@op()
def _npi_nan_to_num(
    data: Tensor, *, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> jax.Array:
    """Replace nan by `nan` and infinities by `posinf` and `neginf`, by default the largest finite values.

    data: any shape and dtype; the result has the same. The derivative of replaced elements is 0.
    """
    if not is_float(np.dtype(data.dtype)):
        return data
    largest = float(jnp.finfo(data.dtype).max)
    high = jnp.asarray(largest if posinf is None else posinf, data.dtype)
    low = jnp.asarray(-largest if neginf is None else neginf, data.dtype)
    safe = jnp.where(jnp.isnan(data), jnp.asarray(nan, data.dtype), data)
    return jnp.where(data == jnp.inf, high, jnp.where(data == -jnp.inf, low, safe))
