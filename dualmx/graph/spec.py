"""The verifier of programs: what every program must satisfy, checked before it runs in tests and in debug mode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..core import knobs
from ..core.errors import MXNetError
from ..op.registry import Call
from .program import Alias, Gradient, Instr, Program, Step
from .trie import Value

is_on = knobs.DEBUG.read() != "0"


def switch(on: bool) -> None:
    """Switch the verification of programs on or off."""
    global is_on
    is_on = on


class ProgramError(MXNetError):
    """A program that no correct recording or lowering makes."""


def verify(program: Program) -> None:
    """Raise `ProgramError` unless every step reads what is there, writes what is new, and fits its operator.

    Example:
        >>> from dualmx.graph.program import Alias
        >>> verify(Program((Alias(0, 1),), n_inputs=1, outputs=(1,)))
        >>> verify(Program((Alias(1, 2),), n_inputs=1, outputs=(2,)))
        Traceback (most recent call last):
        ...
        dualmx.graph.spec.ProgramError: step 0, Alias: slot 1 is read and has no value
    """
    known = set(range(program.n_inputs))
    _verify_steps(program.steps, known, program.n_inputs, program.avals)
    _require(program.outputs, known, "the outputs")
    if len(program.writes) > len(program.outputs) or any(not 0 <= i < program.n_inputs for i in program.writes):
        raise ProgramError(f"the program writes to {program.writes} of {program.n_inputs} inputs")


def verify_results(call: Call, results: Sequence[Any], avals: Sequence[tuple[tuple[int, ...], Any]]) -> None:
    """Raise `ProgramError` unless the results of a call have the shapes and dtypes that were inferred."""
    found = [(x.shape, x.dtype) for x in results]
    if found != list(avals):
        raise ProgramError(f"{call!r}: results {found} were inferred to be {list(avals)}")


def _verify_steps(
    steps: Sequence[Step], known: set[int], n_inputs: int, avals: Sequence[Value] | None, n_keys: int = 0
) -> int:
    """Check steps that follow the slots in `known`, to which theirs are added; returns the number of keys used."""
    for number, step in enumerate(steps):
        where = f"step {number}, {step.call!r}" if isinstance(step, Instr) else f"step {number}, {type(step).__name__}"
        if isinstance(step, Instr):
            _require(step.ins, known, where)
            _verify_instr(step, avals, where)
            if step.call.n_keys and step.first_key < n_keys:
                raise ProgramError(f"{where}: random key {step.first_key} was used by an earlier step")
            n_keys = max(n_keys, step.first_key + step.call.n_keys)
            # Of recorded steps that were executed earlier, inputs hold the saved results.
            _define([s for s in step.outs if avals is None or s >= n_inputs], known, where)
        elif isinstance(step, Alias):
            _require([step.source], known, where)
            _define([step.out], known, where)
            _equal_avals([(step.source, step.out)], avals, where)
        elif isinstance(step, Gradient):
            _verify_gradient(step, steps[:number], known, avals, where)
            _define(step.outs, known, where)
        else:
            _require(step.ins, known, where)
            inside = set(step.ins)
            n_keys = _verify_steps(step.steps, inside, 0, None, n_keys)
            _require(step.outs, inside, where)
            _define(step.outs, known, where)
    return n_keys


def _verify_instr(step: Instr, avals: Sequence[Value] | None, where: str) -> None:
    call = step.call
    if len(step.outs) != call.n_results or len(set(step.outs)) < len(step.outs):
        raise ProgramError(f"{where}: {len(step.outs)} slots for {call.n_results} results")
    if any(not 0 <= k < len(step.ins) for k in step.wrt):
        raise ProgramError(f"{where}: differentiated in inputs {step.wrt} of {len(step.ins)}")
    if avals is not None:
        results = call.infer(tuple([(avals[s].shape, avals[s].dtype) for s in step.ins]))
        outs = tuple([(avals[s].shape, avals[s].dtype) for s in step.outs])
        if results != outs:
            raise ProgramError(f"{where}: its results are {results}, their slots {outs}")


def _verify_gradient(
    step: Gradient, earlier: Sequence[Step], known: set[int], avals: Sequence[Value] | None, where: str
) -> None:
    optional = [s for s in (*step.head_grads, *step.accumulate_into) if s is not None]
    _require([*step.heads, *optional, *(s for group in step.targets for s in group)], known, where)
    if len(step.heads) != len(step.head_grads) or not (
        len(step.outs) == len(step.targets) == len(step.accumulate_into)
    ):
        raise ProgramError(f"{where}: heads and head gradients, or targets and results, are not as many")
    passed: set[int] = set()
    for number in step.path:
        before = earlier[number] if 0 <= number < len(earlier) else None
        if not isinstance(before, Instr) or not before.wrt:
            raise ProgramError(f"{where}: step {number} of its path is no earlier step that is differentiated")
        if passed.intersection(before.ins):
            raise ProgramError(f"{where}: its path {step.path} reaches step {number} after what that reads")
        passed.update(before.outs)
    seeds = zip(step.heads, step.head_grads, strict=True)
    sums = zip(step.targets, step.accumulate_into, step.outs, strict=True)
    _equal_avals([(h, g) for h, g in seeds if g is not None], avals, where)
    for group, old, out in sums:
        _equal_avals([(out, s) for s in (*group, *([] if old is None else [old]))], avals, where)


def _require(slots: Iterable[int], known: set[int], where: str) -> None:
    for slot in slots:
        if slot not in known:
            raise ProgramError(f"{where}: slot {slot} is read and has no value")


def _define(slots: Iterable[int], known: set[int], where: str) -> None:
    for slot in slots:
        if slot in known:
            raise ProgramError(f"{where}: slot {slot} is written twice")
        known.add(slot)


def _equal_avals(pairs: Iterable[tuple[int, int]], avals: Sequence[Value] | None, where: str) -> None:
    if avals is None:
        return
    for a, b in pairs:
        if avals[a] is not avals[b]:
            raise ProgramError(f"{where}: slot {a} is {avals[a]!r}, slot {b} is {avals[b]!r}")


__all__ = ["ProgramError", "switch", "verify"]
