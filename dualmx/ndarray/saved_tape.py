"""Recorded steps that outlive the flush that executed them, as entries over immutable values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..graph.gradient import tape_steps, variables_of
from ..graph.trie import REENTER, State, Value, steps_of
from ..op.registry import Call
from .recorder import Handle, Trace


class TapeValue:
    """An immutable value on the tape.

    Attributes:
        aval: shape, dtype, context.
        data: the array, if a step needs it as input.
        entry: the step that computed it, None for a variable or a constant.
        variable, req: the array handle whose gradient it contributes to, and how.
    """

    __slots__ = ("aval", "data", "entry", "variable", "req")

    def __init__(self, aval: Value, data: Any):
        self.aval, self.data = aval, data
        self.entry: TapeEntry | None = None
        self.variable: Handle | None = None
        self.req: str | None = None


class TapeEntry:
    """A recorded step that has been executed: what it read, what it yielded, whether a backward freed it."""

    __slots__ = ("call", "ins", "outs", "keys", "runtime", "freed")

    def __init__(self, call: Call, ins: list[TapeValue], outs: list[TapeValue], keys: list[Any], runtime: list[float]):
        self.call, self.ins, self.outs, self.keys, self.runtime = call, ins, outs, keys, runtime
        self.freed = False
        for o in outs:
            o.entry = self


def live_tape(steps: Sequence[State], live: Sequence[Value]) -> tuple[tuple[State, ...], list[Value]]:
    """Return the recorded steps that values in `live` depend on, and the values that those steps read."""
    wanted = set(live)
    kept = []
    for e in reversed(tape_steps(steps)):
        if any(v in wanted for v in e.outs):
            kept.append(e)
            wanted.update(v for v in e.ins if v.tracked)
    kept.reverse()
    return tuple(kept), [v for e in kept for v in e.ins]


def save_tape(
    saved_steps: Sequence[State], tr: Trace, results: dict[Value, Any], live: list[Handle], wanted: Sequence[Value]
) -> None:
    """Turn the open tape of an executed trace into entries, and link the live arrays to them."""
    steps = steps_of(tr.state)
    variables = variables_of(steps)
    nodes: dict[Value, TapeValue] = {}

    def node_of(v: Value) -> TapeValue:
        n = nodes.get(v)
        if n is None:
            n = tr.tape_value_of_leaf.get(v) or TapeValue(v.aval, results.get(v))
            if v in variables:
                at, _, n.req = variables[v]
                n.variable = tr.variables[at]
            nodes[v] = n
        return n

    for s in saved_steps:
        if s.kind == REENTER:
            continue
        assert s.call is not None
        keys = tr.keys[s.n_keys - s.call.n_keys : s.n_keys]
        runtime = tr.runtime[s.n_runtime - s.call.n_runtime : s.n_runtime]
        TapeEntry(s.call, [node_of(v) for v in s.ins], [node_of(v) for v in s.outs], keys, runtime)
    for h, v in zip(live, wanted, strict=True):
        n = nodes.get(v)
        if n is not None and v not in variables and (h._meta is None or h._meta.grad_req is None):
            h._extra().tape_value = n
