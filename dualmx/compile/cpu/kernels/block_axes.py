"""Axes along which a function computes each part by itself, from its jaxpr, so that it may be run part by part."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ....op.symbolic_sizes import size_source
from .codegen import ELEMENTWISE
from .jaxprs import CALLED_JAXPRS, IDENTITIES, is_literal, live_equations

ABSENT, SUM, INPUT = -1, -2, -3  # in place of an axis; INPUT - i stands for input i itself
_MIN_PASSES = 3  # over the elements of such arrays; less is not worth that results are copied

# As how many passes a function counts that takes longer than memory does; all the others are one.
_PASSES = dict.fromkeys(
    "exp exp2 log log1p expm1 tanh sin cos tan asin acos atan sinh cosh asinh acosh atanh cbrt erf erfc erf_inv lgamma "
    "digamma logistic pow atan2".split(),
    4,
)


class BlockAxis(NamedTuple):
    """An axis that a function can be run along in parts.

    Attributes:
        size: which of the function's sizes is that of the axis.
        ins: for each input where the axis is, ABSENT if it has none.
        outs: for each result where it is, ABSENT if it is the same for all parts, SUM if it is the sum over them, or
            INPUT - i if it is input i.
        passes: how often elements of arrays with the axis are computed, about.
    """

    size: int
    ins: list[int]
    outs: list[int]
    passes: int


class _Dependent(Exception):
    """Parts depend on each other, or nobody knows."""


class _Value(NamedTuple):
    """What is known of a variable: where its axis is, which input it is if any, and whether it is a view of one."""

    axis: int
    source: int = -1
    is_view: bool = False


def block_axes(jaxpr: Any, names: Sequence[str]) -> list[BlockAxis]:
    """Return the axes that the function of a closed jaxpr can be run along in parts.

    Args:
        names: of its symbolic sizes.
    """
    found = []
    for number, name in enumerate(names):
        analysis = _Analysis(name)
        try:
            axis = analysis.run(jaxpr, number)
        except _Dependent:
            continue
        if axis is not None:
            found.append(axis)
    return found


class _Analysis:
    """Follows the axes of one symbolic size through a jaxpr."""

    def __init__(self, name: str):
        self._name, self._pattern = name, re.compile(rf"\b{name}\b")
        self._passes = 0

    def run(self, jaxpr: Any, number: int) -> BlockAxis | None:
        """Return the axis of this size; None if running in parts is worth nothing.

        Raises:
            _Dependent: parts depend on each other.
        """
        ins = []
        for i, v in enumerate(jaxpr.jaxpr.invars):
            axis = self._axis_of(v.aval.shape)
            ins.append(_Value(axis, i, axis >= 0))
        outs = self._follow(jaxpr, ins)
        if all(v.axis < 0 for v in ins) or self._passes < _MIN_PASSES:
            return None
        places = []
        for v in outs:
            if v.source >= 0:
                places.append(INPUT - v.source)
            elif v.is_view:
                return None  # which costs nothing, but would be copied
            else:
                places.append(v.axis)
        return BlockAxis(number, [int(v.axis) for v in ins], [int(i) for i in places], self._passes)

    def _axis_of(self, shape: Sequence[Any]) -> int:
        """Where the axis of the size is; ABSENT if no size depends on it."""
        places = [i for i, n in enumerate(shape) if self.depends(n)]
        if not places:
            return ABSENT
        if len(places) > 1 or size_source(shape[places[0]]) != self._name:
            raise _Dependent
        return places[0]

    def _follow(self, jaxpr: Any, args: Sequence[_Value]) -> list[_Value]:
        """Return what is known of the results of a jaxpr."""
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        known: dict[Any, _Value] = dict(zip(inner.invars, args, strict=True))
        known.update((v, _Value(ABSENT)) for v in inner.constvars)

        def value_of(v: Any) -> _Value:
            return _Value(ABSENT) if is_literal(v) else known[v]

        for eqn in live_equations(inner):
            ins, name = [value_of(v) for v in eqn.invars], eqn.primitive.name
            if name in CALLED_JAXPRS:
                outs = self._follow(CALLED_JAXPRS[name](eqn.params), ins)
            elif name in IDENTITIES:
                outs = ins
            else:
                outs = [self._checked(_result(self, eqn, ins), v.aval.shape) for v in eqn.outvars]
                if not outs[0].is_view and any(v.axis >= 0 for v in ins):
                    self._passes += _PASSES.get(name, 1)
            known.update(zip(eqn.outvars, outs, strict=True))
        return [value_of(v) for v in inner.outvars]

    def _checked(self, value: _Value, shape: Sequence[Any]) -> _Value:
        if self._axis_of(shape) != (value.axis if value.axis >= 0 else ABSENT):
            raise _Dependent
        return value

    def depends(self, *sizes: Any) -> bool:
        """Whether sizes depend on that of the axis."""
        return any(not isinstance(n, int) and self._pattern.search(size_source(n)) for n in sizes)


def _result(analysis: _Analysis, eqn: Any, ins: Sequence[_Value]) -> _Value:
    """Return what is known of the results of an equation, which are all alike.

    Raises:
        _Dependent: its parts depend on each other.
    """
    name = eqn.primitive.name
    if name == "convert_element_type" and eqn.invars[0].aval.dtype == eqn.params["new_dtype"]:
        return ins[0]
    if name in ELEMENTWISE:
        return _Value(_common_axis(ins))
    rule = _RULES.get(name)
    if rule is None:
        raise _Dependent
    return rule(analysis, eqn, ins)


def _common_axis(ins: Iterable[_Value]) -> int:
    axes = {v.axis for v in ins if v.axis != ABSENT}
    if len(axes) > 1 or SUM in axes:
        raise _Dependent
    return axes.pop() if axes else ABSENT


_Rule = Callable[[_Analysis, Any, Sequence[_Value]], _Value]
_RULES: dict[str, _Rule] = {}


def _rule(*primitives: str) -> Callable[[_Rule], _Rule]:
    def register(fn: _Rule) -> _Rule:
        _RULES.update(dict.fromkeys(primitives, fn))
        return fn

    return register


def _require(condition: bool) -> None:
    if not condition:
        raise _Dependent


@_rule("broadcast_in_dim")
def _(a: _Analysis, eqn: Any, ins: Sequence[_Value]) -> _Value:
    _require(len(ins) == 1 and ins[0].axis != SUM)
    shape, axes, old = eqn.params["shape"], eqn.params["broadcast_dimensions"], eqn.invars[0].aval.shape
    if ins[0].axis >= 0:
        return _Value(axes[ins[0].axis], is_view=ins[0].is_view)
    if not a.depends(*shape):
        return ins[0]._replace(source=-1)
    new = next(i for i, n in enumerate(shape) if a.depends(n))
    _require(new not in axes or size_source(old[axes.index(new)]) == "1")
    return _Value(new)  # no memory is needed for it, however long the axis is


@_rule("reshape", "squeeze", "expand_dims")
def _(a: _Analysis, eqn: Any, ins: Sequence[_Value]) -> _Value:
    _require(eqn.params.get("dimensions") is None or eqn.primitive.name != "reshape")
    value = ins[0]._replace(source=-1)
    if value.axis < 0:
        return value
    old, new = ([size_source(n) for n in v.aval.shape] for v in (eqn.invars[0], eqn.outvars[0]))
    name = old[value.axis]
    _require(name in new)
    place = new.index(name)
    before = [[n for n in part if n != "1"] for part in (old[: value.axis], new[:place])]
    _require(before[0] == before[1])
    return value._replace(axis=place)


@_rule("transpose")
def _(a: _Analysis, eqn: Any, ins: Sequence[_Value]) -> _Value:
    value = ins[0]._replace(source=-1)
    _require(value.axis != SUM)
    return value._replace(axis=list(eqn.params["permutation"]).index(value.axis)) if value.axis >= 0 else value


@_rule("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_xor", "argmax",
       "argmin")  # fmt: skip
def _(a: _Analysis, eqn: Any, ins: Sequence[_Value]) -> _Value:
    axis, axes = _common_axis(ins), eqn.params["axes"]
    if axis in axes:
        # In wide types, so that it does not matter how many parts there are.
        _require(eqn.primitive.name == "reduce_sum" and eqn.outvars[0].aval.dtype.itemsize >= 4)
        return _Value(SUM)
    return _Value(axis - sum(other < axis for other in axes) if axis >= 0 else axis)


@_rule("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
def _(a: _Analysis, eqn: Any, ins: Sequence[_Value]) -> _Value:
    axis = _common_axis(ins)
    _require(axis != eqn.params["axis"])
    return _Value(axis)


@_rule("sort", "concatenate")
def _(a: _Analysis, eqn: Any, ins: Sequence[_Value]) -> _Value:
    axis = _common_axis(ins)
    _require(axis != eqn.params["dimension"])
    return _Value(axis)


@_rule("slice")
def _(a: _Analysis, eqn: Any, ins: Sequence[_Value]) -> _Value:
    value, p = ins[0]._replace(source=-1), eqn.params
    _require(value.axis != SUM and not a.depends(*p["start_indices"]))
    if value.axis >= 0:
        steps = p["strides"] or (1,) * len(p["start_indices"])
        _require((size_source(p["start_indices"][value.axis]), size_source(steps[value.axis])) == ("0", "1"))
    return value


@_rule("pad")
def _(a: _Analysis, eqn: Any, ins: Sequence[_Value]) -> _Value:
    axis, config = _common_axis(ins), eqn.params["padding_config"]
    _require(not any(a.depends(*c) for c in config))
    _require(axis < 0 or all(size_source(n) == "0" for n in config[axis]))
    return _Value(axis)


@_rule("iota")
def _(a: _Analysis, eqn: Any, ins: Sequence[_Value]) -> _Value:
    shape = eqn.params["shape"]
    axis = next((i for i, n in enumerate(shape) if a.depends(n)), ABSENT)
    _require(axis != eqn.params["dimension"])
    return _Value(axis)


@_rule("dim_as_value")
def _(a: _Analysis, eqn: Any, ins: Sequence[_Value]) -> _Value:
    _require(not a.depends(eqn.params["dim"]))
    return _Value(ABSENT)


__all__ = ["INPUT", "SUM", "ABSENT", "BlockAxis", "block_axes"]
