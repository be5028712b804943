"""Runtime forms of operators: calls whose scalars change from step to step without a new program.

`Op.runtime_form` makes of a call the form that takes its scalars as float32 inputs. A call keeps its usual
form where float32 would not be exact, or where a parameter is wrong: then the usual form raises the error.

`SharedScalars` makes of a call that takes a scalar for each of many arrays the form that takes each number once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..core.dtypes import is_float
from .registry import Call, Op, Part
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


def scalar_fits(integers: bool = True) -> IsExact:
    """Return what says whether the parameter `scalar`, cast to the dtype of the data, can travel.

    Args:
        whole_numbers: whether it can on integers.
    """

    def fits(params: Params, shape: tuple[int, ...], dtype: np.dtype) -> bool:
        scalar = params["scalar"]
        if dtype.kind in "iu":
            return integers and params.get("is_int", True) and survives_float32(scalar, dtype)
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


class _SharedCall(NamedTuple):
    """A form of a call.

    Attributes:
        call: it, with each distinct number once.
        which: for each list, which of its distinct numbers every element is.
        firsts: for each list, where the distinct numbers come first.
    """

    call: Call
    which: Mapping[str, Sequence[int]]
    firsts: Mapping[str, Sequence[int]]


class SharedScalars:
    """The form of a call in which equal numbers of its lists of runtime scalars are one input.

    XLA compiles formulas that read the same number once, and those that read numbers of their own one by one. Numbers
    that once differed stay apart, so that a call has few forms.

    Args:
        call: a call with lists of runtime scalars.
    """

    _forms: ClassVar[dict[Op, Op]] = {}

    def __init__(self, call: Call):
        self._plain = call
        self._lists = [n for n in call.op.runtime if call.op.params[n].vector]
        self._current = self._share({n: (0,) * len(call.params[n]) for n in self._lists})

    def _share(self, which: Mapping[str, tuple[int, ...]]) -> _SharedCall:
        params = dict(self._plain.params)
        firsts = {n: [at.index(k) for k in range(max(at) + 1)] for n, at in which.items()}
        for n in self._lists:
            params[n] = tuple([params[n][i] for i in firsts[n]])
            params[f"{n}_which"] = which[n]
        return _SharedCall(self._form(self._plain.op).bind(params), which, firsts)

    def _form(self, plain: Op) -> Op:
        made = self._forms.get(plain)
        if made is None:
            lists = tuple(self._lists)

            def body(*data: Any, **given: Any) -> Any:
                for n in lists:
                    numbers = given[n]
                    given[n] = tuple([numbers[i] for i in given.pop(f"{n}_which")])
                return plain.fn(*data, **given)

            body.__module__ = plain.fn.__module__  # it computes what comes from there
            fields = dict(plain.params)
            fields.update((f"{n}_which", ParamField(f"{n}_which", tuple, tuple, REQUIRED)) for n in lists)
            made = Op(
                f"{plain.name}_shared", body, plain.inputs, fields, outputs=plain.outputs, mutates=plain.mutates,
                parts=None if plain.parts is None else lambda call: list(self._parts(plain, lists, call)),
            )  # fmt: skip
            made.variant_of = plain.name
            made = self._forms.setdefault(plain, made)
        return made

    @staticmethod
    def _parts(plain: Op, lists: Sequence[str], call: Call) -> Iterator[Part]:
        """Yield the parts of the call of `plain` that a form stands for, whose scalars are the distinct ones."""
        params = dict(call.params)
        places: list[int] = []  # for each scalar of that call
        at = 0
        for n in plain.runtime:
            which = params.pop(f"{n}_which") if n in lists else (0,)
            places += [at + k for k in which]
            at += max(which) + 1
            if n in lists:
                params[n] = tuple([params[n][k] for k in which])
        for part in plain.bind(params).parts:
            yield part._replace(scalars=tuple([places[k] for k in part.scalars]))

    def __call__(self, scalars: Mapping[str, Any]) -> RuntimeCall:
        """Return the form for runtime scalars by name, and those that it takes."""
        form = self._current  # other threads may replace it
        for n in self._lists:
            numbers, which, firsts = scalars[n], form.which[n], form.firsts[n]
            if len(firsts) == 1:
                is_same = numbers.count(numbers[0]) == len(numbers)
            else:
                is_same = all(numbers[firsts[k]] == x for k, x in zip(which, numbers, strict=True))
            if not is_same:
                known: dict[Any, int] = {}
                apart = tuple([known.setdefault(key, len(known)) for key in zip(which, numbers, strict=True)])
                form = self._current = self._share({**form.which, n: apart})
        taken: list[float] = []
        for n in self._plain.op.runtime:
            taken += [scalars[n][i] for i in form.firsts[n]] if n in form.firsts else (scalars[n],)
        return form.call, tuple(taken)
