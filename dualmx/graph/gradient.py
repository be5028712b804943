"""Gradients of recorded steps: which steps lie between heads and variables, and what a backward pass computes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .trie import BACKWARD, LEAF, OP, REENTER, VARIABLE, State, Value, steps_of

# The inputs of an operator that looks up rows.
IDS, TABLE = 0, 1
ROW_SPARSE_REQS = ("rows", "rows_add")


@dataclass
class BackwardPlan:
    """What one backward step computes.

    Attributes:
        heads: values differentiated, `head_grads` their head gradients (None for ones).
        targets: groups of values; each group's gradients are summed into one result.
        accumulate_into: per group, the value to add the gradient to, or None.
        path: recorded steps between targets and heads, last first.
        needed_values: values that depend on a target.
        retain_graph: whether the steps stay on the tape.
    """

    heads: tuple[Value, ...]
    head_grads: tuple[Value | None, ...]
    targets: tuple[tuple[Value, ...], ...]
    accumulate_into: tuple[Value | None, ...]
    retain_graph: bool
    path: list[State] = field(default_factory=list)
    needed_values: set[Value] = field(default_factory=set)


def backward_path(
    entries: Sequence[State], heads: Iterable[Value], targets: Iterable[Value]
) -> tuple[list[State], set[Value], set[Value]]:
    """Return the steps between `targets` and `heads` (last first), the values that depend on targets, those reached."""
    targets = set(targets)
    need = set(targets)
    for e in entries:
        if any(v in need for v in e.ins):
            need.update(v for v in e.outs if v.tracked)
    wanted = {h for h in heads if h in need}
    path = []
    for e in reversed(entries):
        if any(v in wanted for v in e.outs) and any(v in need for v in e.ins):
            path.append(e)
            wanted.update(v for v in e.ins if v in need)
    return path, need, wanted & targets


def tape_steps(steps: Sequence[State]) -> list[State]:
    """Return the recorded steps of a chain that no backward has freed, in order of computation."""
    freed: set[State] = set()
    for s in steps:
        if s.kind == BACKWARD and not s.payload.retain_graph:
            freed.update(s.payload.path)
    reentered = [s for s in steps if s.kind == REENTER and s not in freed]
    return reentered + [
        s for s in steps if s.kind == OP and s.recording and s not in freed and any(v.tracked for v in s.outs)
    ]


def differentiated_inputs(plans: Iterable[BackwardPlan]) -> dict[State, set[int]]:
    """Return the input positions that each step is differentiated in."""
    found: dict[State, set[int]] = {}
    for plan in plans:
        for step in plan.path:
            places = found.setdefault(step, set())
            places.update(k for k, v in enumerate(step.ins) if v in plan.needed_values)
    return found


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
        for k, v in enumerate(e.ins):
            if v in numbers:
                if e.call.op.traits.is_lookup and k == TABLE:
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
        entry_of: dict[int, tuple[int, str]] = {}
        for v, (at, number, req) in variables.items():
            entry_of.setdefault(number, (at, req))
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
                    groups.append((e.outs[0],))
                    self.handles.append(entry_of[number][0])
                    self.grad_reqs.append(entry_of[number][1])
                    self.row_ids.append(e.ins[IDS])
        self.groups = tuple(groups)


def grad_targets_of(st: State, heads: tuple[Value, ...], row_sparse: bool = True) -> GradTargets:
    """Return what a backward from values of a prefix reaches; found once for each."""
    targets = st.memo.get((GradTargets, heads, row_sparse))
    if targets is None:
        targets = st.memo[GradTargets, heads, row_sparse] = GradTargets(steps_of(st), heads, row_sparse)
    return targets
