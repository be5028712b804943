"""Conditions on values that an operator states when it is recorded and that the next sync point checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.errors import MXNetError
from ..graph.trie import Value, chain
from ..op.registry import OPS, Call
from .handle import Handle, invoke1, invoke2
from .trace import Trace, local


def expect(flag: Handle, outs: Sequence[Handle], text: str) -> None:
    """Demand that `flag`, of one element, is not 0; otherwise the program that computes it raises `text` as MXNetError.

    What depends on `outs` within that program raises the same error whenever it is read.
    """
    if flag._tr is not None and flag._data is None:
        flag._tr.expected.append((flag, [o._v for o in outs], text))
    elif not _holds(flag):
        error = MXNetError(text)
        for o in outs:
            _poison(o, error)
        raise error


def check(tr: Trace, live: Sequence[Handle], values: Sequence[Value]) -> None:
    """Check what an executed trace expected; `live` held `values` in it. What nothing alive depends on is ignored."""
    expected, tr.expected = tr.expected, []
    flags = {id(flag) for flag, _, _ in expected}
    failed = None
    for flag, outs, text in expected:
        if _holds(flag):
            continue
        error, reached = MXNetError(text), set(outs)
        for step in chain(tr.state):
            if any(v in reached for v in step.ins):
                reached.update(step.outs)
        for h, v in zip(live, values, strict=True):
            if v in reached and id(h) not in flags:
                _poison(h, error)
                failed = error
    if failed is not None:
        raise failed


def _holds(flag: Handle) -> bool:
    return bool(np.asarray(flag._data).item())


def _poison(h: Handle, error: MXNetError) -> None:
    h._tr = h._data = None
    h._extra().error = error


def _positive_definite(call: Call, ins: Sequence[Handle], outs: Sequence[Handle]) -> tuple[Handle, str]:
    text = "expected symmetric positive-definite matrices; this one has no finite Cholesky factor"
    return invoke1(OPS["all_finite"].call(), outs[0]), f"_linalg_potrf: {text}"


def _in_bounds(call: Call, ins: Sequence[Handle], outs: Sequence[Handle]) -> tuple[Handle, str] | None:
    if call.params["mode"] != "raise":
        return None
    data, indices = ins
    length = data._v.shape[call.params["axis"]]
    # Floats are cut toward zero, so -0.9 is index 0; float64 holds every index.
    at = invoke1(OPS["Cast"].call(dtype="float64"), indices)
    above, below = OPS["_greater_scalar"].call(scalar=-1.0), OPS["_lesser_scalar"].call(scalar=float(length))
    inside = invoke2(OPS["elemwise_mul"].call(), invoke1(above, at), invoke1(below, at))
    return invoke1(OPS["min"].call(), inside), f"take: an index is outside [0, {length}), and mode='raise'"


Condition = Callable[[Call, Sequence[Handle], Sequence[Handle]], tuple[Handle, str] | None]
CONDITIONS: dict[str, Condition] = {"_linalg_potrf": _positive_definite, "take": _in_bounds}


def state(condition: Condition, call: Call, ins: Sequence[Any], outs: Sequence[Any]) -> None:
    """Record the condition of an operator that was just called; it is no part of the tape."""
    before, local.recording = local.recording, False
    local.tr.set_mode(False)
    try:
        found = condition(call, ins, outs)
    finally:
        local.recording = before
        local.tr.set_mode(before)
    if found is not None:
        expect(found[0], outs, found[1])
