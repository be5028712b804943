"""Routes: what a backward pass from some heads reaches, and which tables need the gradients of a few rows only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compile.lower import backward_path, tape_steps
from ..graph.trie import LEAF, VARIABLE, State, Value, steps_of
from .trace import Trace

# Operators that look up rows of a table: where their inputs have the ids and the table.
LOOKUPS = {"Embedding": (0, 1), "_contrib_SparseEmbedding": (0, 1), "_rows_gather": (0, 1)}
ROW_SPARSE_REQS = ("rows", "rows_add")


def variables_of(steps: Sequence[State]) -> dict[Value, tuple[int, int, str]]:
    """Map each variable value of a chain to (position of its handle, variable number, grad_req)."""
    found = {}
    for s in steps:
        if s.kind in (LEAF, VARIABLE) and s.payload:
            req, number = s.payload
            found[s.out] = (s.n_vars - 1, number, req)
    return found


def row_sparse_lookups(
    entries: Sequence[State], heads: Sequence[Value], variables: dict[Value, tuple[int, int, str]]
) -> dict[int, list[State]]:
    """Return, by variable number, the lookups in the variables that want row gradients and are used in no other way."""
    numbers = {v: number for v, (_, number, req) in variables.items() if req in ROW_SPARSE_REQS}
    found: dict[int, list[State]] = {}
    if not numbers:
        return found
    otherwise = {numbers[h] for h in heads if h in numbers}
    wanted = set(heads)
    for e in reversed(entries):
        if not any(v in wanted for v in e.outs):
            continue
        wanted.update(e.ins)
        assert e.call is not None
        places = LOOKUPS.get(e.call.op.name)
        for k, v in enumerate(e.ins):
            if v in numbers:
                if places is not None and k == places[1]:
                    found.setdefault(numbers[v], []).append(e)
                else:
                    otherwise.add(numbers[v])
    return {n: lookups for n, lookups in found.items() if n not in otherwise}


class GradTargets:
    """What a backward from given heads reaches: per variable its values and how its gradient is stored.

    The gradient of a table of which only rows are looked up is the gradients of what was looked up, beside the ids: the
    lookups' results stand in the place of the table, and nothing of its size is computed. `row_ids` has, for these
    groups, the ids; None for the others.
    """

    __slots__ = ("groups", "handles", "grad_reqs", "path", "needed_values", "row_ids")

    def __init__(self, steps: Sequence[State], heads: Sequence[Value], row_sparse: bool = True):
        variables = variables_of(steps)
        entries = tape_steps(steps)
        lookups = row_sparse_lookups(entries, heads, variables) if row_sparse else {}
        cut = {e.outs[0] for found in lookups.values() for e in found}
        targets = [v for v, (_, number, _) in variables.items() if number not in lookups]
        self.path, self.needed_values, reached = backward_path(entries, heads, [*targets, *cut])
        by_number: dict[int, list[Value]] = {}
        self.handles: list[int] = []
        self.grad_reqs: list[str] = []
        self.row_ids: list[Value | None] = []
        whole: dict[int, tuple[int, str]] = {}
        for v, (at, number, req) in variables.items():
            whole.setdefault(number, (at, req))
            if v in reached:
                if number not in by_number:
                    self.handles.append(at)
                    self.grad_reqs.append(req)
                    self.row_ids.append(None)
                by_number.setdefault(number, []).append(v)
        groups = [tuple(g) for g in by_number.values()]
        for number, found in lookups.items():
            for e in found:
                if e.outs[0] in reached:
                    assert e.call is not None
                    groups.append((e.outs[0],))
                    self.handles.append(whole[number][0])
                    self.grad_reqs.append(whole[number][1])
                    self.row_ids.append(e.ins[LOOKUPS[e.call.op.name][0]])
        self.groups = tuple(groups)


def grad_targets_of(tr: Trace, hv: tuple[Value, ...], by_row: bool = True) -> GradTargets:
    """Return what a backward from the values `hv` of a trace reaches; found once for each state of it."""
    st = tr.state
    key = ("route", hv, by_row)
    route: Any = st.next.get(key)
    if route is None:
        route = st.next[key] = GradTargets(steps_of(st), hv, by_row)
    return route
