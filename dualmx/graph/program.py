"""Programs: the one form that recorded traces, Symbols and hybridized blocks take before they are executed.

A program is a list of steps over numbered slots; its inputs come first. `graph/interpreter` runs it, `graph/spec` says
what is a program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from ..op.registry import Call
from .gradient import BackwardPlan, differentiated_inputs
from .trie import BACKWARD, LEAF, OP, REENTER, VARIABLE, State, Value


class Instr(NamedTuple):
    """One application of a call: slots read, slots written (outputs, then next auxiliary values).

    An output that has a value already keeps it: recorded steps that were executed earlier run once more for their
    gradients only, beside the values that were saved.

    Attributes:
        rematerialize: the backward pass makes the outputs again instead of keeping them.
        first_key, first_runtime: numbers of its first random key and of its first runtime scalar.
        wrt: positions of the inputs that a later `Gradient` differentiates it in.
    """

    call: Call
    ins: tuple[int, ...]
    outs: tuple[int, ...]
    rematerialize: bool = False
    first_key: int = 0
    first_runtime: int = 0
    wrt: tuple[int, ...] = ()


class Alias(NamedTuple):
    """A slot under a second number, at which gradients stop: a variable that is made of a computed value."""

    source: int
    out: int


class Gradient(NamedTuple):
    """One backward pass.

    Attributes:
        heads: slots differentiated, `head_grads` their head gradients (None for ones).
        targets: groups of slots; each group's gradients are summed into one of `outs`.
        accumulate_into: per group, the slot to add the gradient to, or None.
        path: numbers of the steps between targets and heads, last first.
    """

    heads: tuple[int, ...]
    head_grads: tuple[int | None, ...]
    targets: tuple[tuple[int, ...], ...]
    accumulate_into: tuple[int | None, ...]
    path: tuple[int, ...]
    outs: tuple[int, ...]


class Checkpoint(NamedTuple):
    """Steps of which the backward pass keeps what they read, and makes the rest again."""

    steps: tuple[Step, ...]
    ins: tuple[int, ...]
    outs: tuple[int, ...]


Step: TypeAlias = Instr | Alias | Gradient | Checkpoint


class Program(NamedTuple):
    """Steps in the order of computation; slots 0..n_inputs-1 are the inputs.

    Attributes:
        outputs: slots returned.
        writes: inputs whose next values the last outputs are.
        avals: shape, dtype and context by slot; None for programs that serve for all shapes.
    """

    steps: tuple[Step, ...]
    n_inputs: int
    outputs: tuple[int, ...]
    writes: tuple[int, ...] = ()
    avals: tuple[Value, ...] | None = None


def program_of_prefix(steps: Sequence[State], results: Sequence[Value]) -> Program:
    """Return the program of a recorded prefix; its inputs are the leaves, in order."""
    return program_of_states(steps, [s.out for s in steps if s.kind == LEAF], results)


def program_of_states(states: Sequence[State], inputs: Sequence[Value], results: Sequence[Value]) -> Program:
    """Return the program of recorded steps from the values `inputs` to the values `results`."""
    slots: dict[Value, int] = {v: i for i, v in enumerate(inputs)}
    numbers: dict[State, int] = {}
    differentiated = differentiated_inputs([s.payload for s in states if s.kind == BACKWARD])
    read = {v for s in states for v in s.ins}
    steps: list[Step] = []
    n_keys = n_runtime = 0

    def slots_of(values: Sequence[Value]) -> tuple[int, ...]:
        return tuple([slots.setdefault(v, len(slots)) for v in values])

    for s in states:
        if s.kind == VARIABLE:
            steps.append(Alias(slots[s.ins[0]], *slots_of(s.outs)))
        elif s.kind == BACKWARD:
            steps.append(_gradient_step(s.payload, slots, numbers, slots_of(s.outs)))
        elif s.kind in (OP, REENTER):
            assert s.call is not None
            wrt = tuple(sorted(differentiated.get(s, ())))
            # Results of a step that was executed earlier are mostly leaves with their saved values.
            if wrt or s.kind == OP or any(v in read and v not in slots for v in s.outs):
                numbers[s] = len(steps)
                ins = tuple(slots[v] for v in s.ins)
                steps.append(Instr(s.call, ins, slots_of(s.outs), False, n_keys, n_runtime, wrt))
            n_keys, n_runtime = n_keys + s.call.n_keys, n_runtime + s.call.n_runtime
    return Program(tuple(steps), len(inputs), tuple(slots[v] for v in results), (), tuple(v.aval for v in slots))


def _gradient_step(
    plan: BackwardPlan, slots: dict[Value, int], numbers: dict[State, int], outs: tuple[int, ...]
) -> Gradient:
    return Gradient(
        tuple(slots[v] for v in plan.heads),
        tuple(None if v is None else slots[v] for v in plan.head_grads),
        tuple(tuple(slots[v] for v in group) for group in plan.targets),
        tuple(None if v is None else slots[v] for v in plan.accumulate_into),
        tuple(numbers[s] for s in plan.path),
        outs,
    )


def differentiate(program: Program, wrt: Sequence[int]) -> Program:
    """Return a program of instructions whose steps say in which inputs they are differentiated, given `wrt` of its own.

    Only what the outputs depend on is.
    """
    varying = set(wrt)
    positions: list[tuple[int, ...]] = []
    for step in program.steps:
        assert isinstance(step, Instr)
        positions.append(tuple(k for k, slot in enumerate(step.ins) if slot in varying))
        if positions[-1]:
            varying.update(step.outs)
    needed = set(program.outputs)
    steps: list[Step] = []
    for step, at in zip(reversed(program.steps), reversed(positions), strict=True):
        assert isinstance(step, Instr)
        is_needed = not needed.isdisjoint(step.outs)
        needed.update(step.ins if is_needed else ())
        steps.append(step._replace(wrt=at if is_needed else ()))
    return program._replace(steps=tuple(reversed(steps)))


def with_checkpoints(program: Program) -> Program:
    """Join the steps whose results are to be made again into `Checkpoint`s.

    See "Training Deep Nets with Sublinear Memory Cost" (Chen et al., 2016).
    """
    if not any(_is_rematerialized(s) for s in program.steps):
        return program
    segments = _remat_segments(program.steps)
    steps: list[Step] = []
    for at, segment in enumerate(segments):
        if not any(map(_is_rematerialized, segment)):
            steps.extend(segment)
            continue
        later = {slot for s in segments[at + 1 :] for i in s for slot in i.ins}.union(program.outputs)
        made = {slot for i in segment for slot in i.outs}
        reads = dict.fromkeys(slot for i in segment for slot in i.ins if slot not in made)
        steps.append(Checkpoint(tuple(segment), tuple(reads), tuple(sorted(made & later))))
    return program._replace(steps=tuple(steps))


def _is_rematerialized(step: Step) -> bool:
    return isinstance(step, Instr) and step.rematerialize


def _remat_segments(steps: Sequence[Any]) -> list[list[Instr]]:
    """Cut a program before all that reads what is kept: gradients of that need nothing of what was made before."""
    segments: list[list[Instr]] = [[]]
    kept: set[int] = set()
    for step in steps:
        if kept.intersection(step.ins):
            segments.append([])
            kept.clear()
        segments[-1].append(step)
        if not step.rematerialize:
            kept.update(step.outs)
    return segments
