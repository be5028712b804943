"""Runtime forms of operators: calls whose scalars change from step to step without a new program.

`Op.runtime_form` makes of a call the form that takes its scalars as float32 inputs. A call keeps its usual
form where float32 would not be exact, or where a parameter is wrong: then the usual form raises the error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..core.dtypes import is_float
from .registry import Call, Op
from .schema import FLOAT32_EXACT_INTS, REQUIRED, ParamField, to_float

RuntimeCall = tuple[Call, tuple[float, ...]]
Params = Mapping[str, Any]
IsExact = Callable[[Params, tuple[int, ...], np.dtype], bool]


def define_runtime_form(
    plain: Op,
    *names: str,
    fits: IsExact,
    body: Callable[..., Any] | None = None,
    derived: Callable[[Params], Mapping[str, float]] | None = None,
) -> None:
    """Give `plain` a runtime form in which the parameters `names` are runtime inputs.

    Args:
        plain: the operator as users call it.
        names: its parameters that become inputs; those that are None stay parameters.
        fits: whether parameters are valid and can travel as float32, for data of some shape and dtype.
        body: what computes the runtime form, with float32 scalars in place of the numbers; that of `plain` by default.
        derived: numbers made of the parameters in Python, which `body` takes as further keywords.
    """
    forms: dict[tuple[str, ...], Op] = {}

    def form(active: tuple[str, ...], params: Params) -> Op:
        made = forms.get(active)
        if made is None:
            fields = {n: replace(f, runtime=n in active) for n, f in plain.params.items()}
            fields.update(
                (n, ParamField(n, float, to_float, REQUIRED, runtime=True)) for n in params if n not in fields
            )
            vectors = {n for n in active if isinstance(params[n], tuple)}
            fields.update((n, replace(fields[n], vector=True)) for n in vectors)
            made = forms[active] = Op(
                f"{plain.name}_dyn", body or plain.fn, plain.inputs, fields, outputs=plain.outputs,
                visible=plain.visible, key_name=plain.key_name, train_name=plain.train_name,
            )  # fmt: skip
            made.variant_of = plain.name
        return made

    def varied(params: Params, shape: tuple[int, ...], dtype: np.dtype) -> RuntimeCall | None:
        if not fits(params, shape, dtype):
            return None
        every = {**params, **derived(params)} if derived else params
        made = form(tuple(n for n in names if params[n] is not None), every)
        return made.bind(every), made.runtime_values(every)

    plain.runtime_form = varied


_MOST = float(np.finfo(np.float32).max)


def faithful(number: float, dtype: np.dtype) -> bool:
    """True if a number becomes the same floating-point number of `dtype` directly and by way of float32."""
    if abs(number) > _MOST and not math.isinf(number):
        return False
    if dtype == np.float32:
        return number == number
    with np.errstate(over="ignore"):  # what is beyond the type is infinite in it
        return bool(np.float32(number).astype(dtype) == np.asarray(number, np.float64).astype(dtype))


def survives_float32(number: float, dtype: np.dtype) -> bool:
    """True if a number is cut to the same integer of `dtype`, which holds it, directly and by way of float32."""
    limits = np.iinfo(dtype)
    inside = limits.min <= number <= limits.max and abs(number) < FLOAT32_EXACT_INTS
    return inside and int(np.float32(number)) == int(number)


def scalar_fits(whole_numbers: bool = True) -> IsExact:
    """Return what says whether the parameter `scalar`, cast to the dtype of the data, can travel.

    Args:
        whole_numbers: whether it can on integers.
    """

    def fits(params: Params, shape: tuple[int, ...], dtype: np.dtype) -> bool:
        scalar = params["scalar"]
        if dtype.kind in "iu":
            return whole_numbers and params.get("is_int", True) and survives_float32(scalar, dtype)
        return is_float(dtype) and faithful(scalar, dtype)

    return fits


def typed(number: jax.Array, dtype: Any) -> jax.Array:
    """A runtime scalar in the dtype of an array; what an integer type cannot hold becomes its nearest end."""
    number = jnp.asarray(number)
    if is_float(np.dtype(dtype)):
        return number.astype(dtype)
    least, most = jnp.iinfo(dtype).min, jnp.iinfo(dtype).max
    inside = jnp.clip(number, -FLOAT32_EXACT_INTS, FLOAT32_EXACT_INTS).astype(jnp.int64).astype(dtype)
    ends = jnp.where(number <= least, jnp.asarray(least, dtype), inside)
    return jnp.where(number >= most, jnp.asarray(most, dtype), ends)
