"""What was recorded for an array, read from the tape."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..compile.lower import backward_path, tape_steps
from ..core.errors import MXNetError
from ..graph.trie import Value, steps_of
from ..op.registry import OPS, Op
from .handle import Handle, is_tracked
from .route import variables_of
from .tape import heads_in_one_trace, reenter_saved


class RecordedOp(NamedTuple):
    """One recorded application of an operator."""

    op: Op
    params: dict[str, Any]
    ins: list[Any]
    outs: tuple[Value, ...]


def recorded_ops(x: Handle) -> tuple[list[RecordedOp], Value]:
    """Return the steps that `x` was computed by, in order, and the value that stands for `x`.

    Raises:
        MXNetError: `x` was not recorded, or with an operator that only this program knows.
    """
    if not is_tracked(x):
        raise MXNetError(
            "get_symbol: the array was not computed inside autograd.record() from arrays with attach_grad()"
        )
    tr, (head,), _ = heads_in_one_trace([x], [None])
    if tr.tape_value_of_leaf:
        reenter_saved(tr)
    steps = steps_of(tr.state)
    entries = tape_steps(steps)
    # A variable that entered several times, after each execution once, is one argument.
    first: dict[int, Value] = {}
    same = {v: first.setdefault(number, v) for v, (_, number, _) in variables_of(steps).items()}
    computed = {v for s in entries for v in s.outs}
    leaves = [v for s in entries for v in s.ins if v not in computed]
    path, _, _ = backward_path(entries, [head], leaves)
    found: list[RecordedOp] = []
    for s in reversed(path):
        call = s.call
        assert call is not None
        given = tr.runtime[s.n_runtime - call.n_runtime : s.n_runtime]
        params = {**call.params, **_runtime_values(call.op, call.params, given)}
        op = OPS.get(call.op.variant_of or call.op.name)
        if op is None:
            raise MXNetError(f"get_symbol: {call!r} has no symbol: it is a hybridized block or your own function")
        known = {k: v for k, v in params.items() if k in op.params}
        found.append(RecordedOp(op, known, [same.get(v, v) for v in s.ins], s.outs))
    return found, same.get(head, head)


def _runtime_values(op: Op, params: dict[str, Any], given: list[float]) -> dict[str, Any]:
    """The values of the runtime parameters of a call."""
    values, found = iter(given), {}
    for name in op.runtime:
        found[name] = tuple(next(values) for _ in params[name]) if op.params[name].vector else next(values)
    return found
