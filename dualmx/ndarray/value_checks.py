"""Conditions on values that an operator states when it is recorded, and the next synchronization checks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..core.errors import MXNetError, RangeError
from ..op.registry import OPS, Call
from ..op.traits import Traits
from .execute import is_satisfied, poison
from .handle import invoke_binary, invoke_unary
from .recorder import Handle, local, user_line


def check_later(flag: Handle, outs: Sequence[Handle], error: MXNetError) -> None:
    """Demand that `flag`, of one element, is not 0; otherwise the program that computes it raises `error`.

    What depends on `outs` within that program raises the same error whenever it is read.
    """
    if flag._trace is not None and flag._data is None:
        # The steps of a program know the line that recorded them first, which may be another one.
        flag._trace.value_checks.append((flag, [o._value for o in outs], error, user_line()))
    elif not is_satisfied(flag):
        for o in outs:
            poison(o, error)
        raise error


ValueCheck = Callable[[Call, Sequence[Handle], Sequence[Handle]], tuple[Handle, MXNetError] | None]


def stays_finite(text: str) -> ValueCheck:
    """The condition that finite numbers give finite numbers; `text` says what others do not satisfy."""

    def condition(call: Call, ins: Sequence[Handle], outs: Sequence[Handle]) -> tuple[Handle, MXNetError]:
        good, *given = (invoke_unary(OPS["all_finite"].call(), h) for h in (outs[0], *ins))
        excused = invoke_unary(OPS["_rminus_scalar"].call(scalar=1.0), _all_of(given))
        return invoke_binary(OPS["_maximum"].call(), good, excused), MXNetError(text)

    return condition


def _in_range_flag(index: Handle, length: int, negative: bool) -> Handle:
    """A flag: every element of `index` lies in [0, length), or in [-length, length) if `negative`."""
    # Floats are cut toward zero, so -0.9 is index 0; float64 holds every index.
    at = invoke_unary(OPS["Cast"].call(dtype="float64"), index)
    above = OPS["_greater_scalar"].call(scalar=-1.0 - (length if negative else 0))
    below = OPS["_lesser_scalar"].call(scalar=float(length))
    inside = invoke_binary(OPS["elemwise_mul"].call(), invoke_unary(above, at), invoke_unary(below, at))
    return invoke_unary(OPS["min"].call(), inside)


def _all_of(flags: list[Handle]) -> Handle:
    return functools.reduce(lambda a, b: invoke_binary(OPS["elemwise_mul"].call(), a, b), flags)


def _indices_in_bounds(call: Call, ins: Sequence[Handle], outs: Sequence[Handle]) -> tuple[Handle, MXNetError] | None:
    find, indices = call.op.traits.index_bounds, ins[1]
    found = find and find(call.params, [h._value.shape for h in ins])
    if not found or (found.by_processor and not _checked_on_host(outs[0], indices)):
        return None
    lengths, error = found.lengths, RangeError(found.text)
    if not found.by_row:
        return _in_range_flag(indices, lengths[0], found.negative), error
    rows = (OPS["slice_axis"].call(axis=0, begin=k, end=k + 1) for k in range(len(lengths)))
    flags = [
        _in_range_flag(invoke_unary(row, indices), n, found.negative) for row, n in zip(rows, lengths, strict=True)
    ]
    return _all_of(flags), error


def check_advanced_index(call: Call, ins: Sequence[Handle], outs: Sequence[Handle]) -> tuple[Handle, MXNetError] | None:
    """The condition of `x[index arrays]`: all of them lie within their axes."""
    data, *arrays = ins
    if not all(_checked_on_host(outs[0], index) for index in arrays):
        return None
    axes = [axis for axis, word in enumerate(w for w in call.params["spec"].split(",") if w != "n") if word == "a"]
    lengths = [data._value.shape[axis] for axis in axes]
    flags = [_in_range_flag(index, n, negative=True) for index, n in zip(arrays, lengths, strict=True)]
    return _all_of(flags), RangeError(f"an index is out of bounds for axes {axes} of {data._value.shape}")


def _checked_on_host(out: Handle, index: Handle) -> bool:
    """MXNet looks at these indices on processors only: elsewhere it would have to wait for the device."""
    return out._value.ctx.device_type == "cpu" and 0 not in index._value.shape


def condition_of(traits: Traits) -> ValueCheck | None:
    """The condition that an operator with these traits states, None if it states none."""
    if traits.not_finite:
        return stays_finite(traits.not_finite)
    return _indices_in_bounds if traits.index_bounds else None


def record_check(condition: ValueCheck, call: Call, ins: Sequence[Any], outs: Sequence[Any]) -> None:
    """Record the condition of an operator that was just called; it is no part of the tape."""
    before, local.recording = local.recording, False
    local.trace.set_recording(False)
    try:
        found = condition(call, ins, outs)
    finally:
        local.recording = before
        local.trace.set_recording(before)
    if found is not None:
        check_later(found[0], outs, found[1])
