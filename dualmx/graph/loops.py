"""Loops found again: equal stretches of a program that follow each other become one `lax.scan`.

A recurrent network that Python unrolled is a program whose length, and so the time to compile it, grows with the number
of time steps. As a loop its body is compiled once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..op.registry import Call, Op, key_aval
from ..op.schema import UNTYPED, Input
from ..op.shape_functions import Results
from .program import Alias, Gradient, Instr, Program, Step

_LOOP = Op("_loop", lambda *data: data, (Input("data", UNTYPED, variadic=True),), {})
MIN_ROUNDS, MIN_STEPS = 4, 40  # a loop of fewer saves too little of the compilation
_MAX_PERIOD, _MAX_CANDIDATES = 400, 8  # which bound the search
# What differs between rounds is stacked before the loop or cut apart after it, and each piece costs about as much to
# compile as two steps. Arrays that the program is given are weights as a rule: they are copied together in every run,
# and so are their gradients. A stack of layers is therefore faster and sooner compiled as it is.
_STEPS_PER_STACKED, _STEPS_PER_STACKED_ARGUMENT = 2, 8

Aval = tuple[tuple[int, ...], np.dtype]
AvalsOf = Callable[[], Mapping[int, Aval]]


class LoopLocal(NamedTuple):
    """A value of the same round: result `result` of the step `step` of the body."""

    step: int
    result: int


class LoopConstant(NamedTuple):
    """A value made before the loop, the same in all rounds."""

    slot: int


class LoopCarry(NamedTuple):
    """A value of the round before; `slot` holds that of the first round."""

    slot: int
    step: int
    result: int


class LoopSlice(NamedTuple):
    """A value made before the loop, another one in each round."""

    slots: tuple[int, ...]


Source = LoopLocal | LoopConstant | LoopCarry | LoopSlice


class _LoopPlan(NamedTuple):
    """Equal stretches of steps.

    Attributes:
        start, period, rounds: number of the first step, steps of a round, count of rounds.
        hoisted: steps of a round that depend on no other one and differ, such as slices: they run before the loop.
        sources: of the inputs of all other steps of a round.
        results: `(step, result)` of the values that are read after the loop, to the rounds whose values are.
    """

    start: int
    period: int
    rounds: int
    hoisted: frozenset[int]
    sources: dict[int, list[Source]]
    results: dict[tuple[int, int], list[int]]

    @property
    def body(self) -> list[int]:
        return [q for q in range(self.period) if q not in self.hoisted]


class LoopCall(Call):
    """A body of steps as one call that runs it several times.

    Inputs are the constants, the first values of the carries, and for each slice its value in every round.

    Args:
        steps: those of a round, whose `wrt` tell where gradients pass.
        sources: of the inputs of each step, by its position in a round.
        results: values returned and the rounds they are returned of.
        avals: shape and dtype by slot.
        slot_of: the slot of a result of a step in a round.
    """

    __slots__ = ("steps", "sources", "constants", "carries", "slices", "rounds", "results", "_shapes", "_types")

    def __init__(
        self,
        steps: dict[int, Instr],
        sources: dict[int, list[Source]],
        results: dict[tuple[int, int], list[int]],
        rounds: int,
        avals: Mapping[int, Aval],
        slot_of: Callable[[int, int, int], int],
    ):
        super().__init__(_LOOP, {}, False)
        every = [source for found in sources.values() for source in found]
        self.steps, self.sources, self.results, self.rounds = steps, sources, results, rounds
        self.constants = list(dict.fromkeys(s for s in every if isinstance(s, LoopConstant)))
        self.carries = list(dict.fromkeys(s for s in every if isinstance(s, LoopCarry)))
        self.slices = list(dict.fromkeys(s for s in every if isinstance(s, LoopSlice)))
        self.n_keys = rounds * sum(step.call.n_keys for step in steps.values())
        self.n_runtime = rounds * sum(step.call.n_runtime for step in steps.values())
        self.has_key, self.is_simple = self.n_keys > 0, False
        self._types = {s.slot: avals[s.slot] for s in (*self.constants, *self.carries)}
        self._types.update((s.slots[0], avals[s.slots[0]]) for s in self.slices)
        self._shapes = tuple(avals[slot_of(t, q, o)] for (q, o), read in results.items() for t in read)
        self.n_outputs = self.n_visible = self.n_results = len(self._shapes)

    def __repr__(self) -> str:
        return f"loop of {self.rounds} times {len(self.steps)} steps"

    @property
    def input_slots(self) -> tuple[int, ...]:
        """The slots it reads, in the order of its inputs."""
        first = [s.slot for s in (*self.constants, *self.carries)]
        return (*first, *(slot for s in self.slices for slot in s.slots))

    def differentiated_inputs(self) -> tuple[int, ...]:
        """Return the positions of the inputs that gradients reach."""
        reached = {
            source for q, step in self.steps.items() for k, source in enumerate(self.sources[q]) if k in step.wrt
        }
        flags = [s in reached for s in (*self.constants, *self.carries)]
        flags += [s in reached for s in self.slices for _ in s.slots]
        return tuple(k for k, is_reached in enumerate(flags) if is_reached)

    def infer(self, avals: tuple[Any, ...]) -> Results:
        """Results have the shapes they had before the loop was found."""
        return self._shapes

    def body_jaxpr(self) -> Any:
        """Return the trace of one round."""
        spec = {slot: jax.ShapeDtypeStruct(*aval) for slot, aval in self._types.items()}
        keys = [key_aval()] * (self.n_keys // self.rounds)
        scalars = [jax.ShapeDtypeStruct((), np.float32)] * (self.n_runtime // self.rounds)
        return jax.make_jaxpr(self._round)(
            [spec[s.slot] for s in self.constants],
            [spec[s.slot] for s in self.carries],
            [spec[s.slots[0]] for s in self.slices],
            keys,
            scalars,
        )

    def _round(
        self, constants: Any, carries: Any, slices: Any, keys: Sequence[Any], scalars: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Run the body; returns what is carried on and what is returned."""
        given: dict[Source, Any] = dict(zip(self.constants, constants, strict=True))
        given.update(zip(self.carries, carries, strict=True))
        given.update(zip(self.slices, slices, strict=True))
        is_differentiated = any(step.wrt for step in self.steps.values())
        made: dict[int, tuple[Any, ...]] = {}
        key = scalar = 0
        for q, step in self.steps.items():
            ins = [made[s.step][s.result] if isinstance(s, LoopLocal) else given[s] for s in self.sources[q]]
            if is_differentiated:
                ins = [x if k in step.wrt else lax.stop_gradient(x) for k, x in enumerate(ins)]
            n_keys, n_scalars = step.call.n_keys, step.call.n_runtime
            made[q] = step.call.apply_keys(ins, keys[key : key + n_keys], scalars[scalar : scalar + n_scalars])
            key, scalar = key + n_keys, scalar + n_scalars
        # Types that JAX calls weak would change from round to round.
        on = [lax.convert_element_type(made[s.step][s.result], self._types[s.slot][1]) for s in self.carries]
        return on, [made[q][o] for q, o in self.results]

    def apply_keys(self, inputs: Sequence[Any], keys: Sequence[Any], runtime: Sequence[Any]) -> tuple[Any, ...]:
        """Run all rounds."""
        n, m = len(self.constants), len(self.constants) + len(self.carries)
        constants = list(inputs[:n])
        first = [
            lax.convert_element_type(x, self._types[s.slot][1]) for s, x in zip(self.carries, inputs[n:m], strict=True)
        ]
        slices = [jnp.stack(inputs[k : k + self.rounds]) for k in range(m, len(inputs), self.rounds)]
        of_round = (slices, self._by_round(keys), self._by_round(runtime))

        def body(carries: list[Any], xs: Any) -> tuple[list[Any], list[Any]]:
            return self._round(constants, carries, *xs)

        _, stacked = lax.scan(body, first, of_round, length=self.rounds)
        return tuple(values[t] for values, read in zip(stacked, self.results.values(), strict=True) for t in read)

    def _by_round(self, values: Sequence[Any]) -> list[Any]:
        """Stack what the rounds take in turn; empty if each call holds its own."""
        period = len(values) // self.rounds
        return [jnp.stack(values[k::period]) for k in range(period)]


def with_loops(program: Program, avals_of: AvalsOf | None = None) -> Program:
    """Return a program in which equal stretches are loops, `program` itself if there are none.

    Args:
        avals_of: makes shape and dtype by slot, for programs without avals.
    """
    steps = program.steps
    if len(steps) < MIN_STEPS:
        return program
    known = program.avals or ()
    finder = _LoopFinder(program, avals_of or (lambda: {slot: (v.shape, v.dtype) for slot, v in enumerate(known)}))
    out: list[Step] = []
    numbers: dict[int, int] = {}  # of a step in the new program
    at, found_any = 0, False
    while at < len(steps):
        found = finder.loop_at(at)
        if found is None:
            numbers[at] = len(out)
            out.append(steps[at])
            at += 1
            continue
        plan, loop = found
        found_any = True
        hoisted, inside = [], []
        for number in range(at, at + plan.period * plan.rounds):
            (hoisted if (number - at) % plan.period in plan.hoisted else inside).append(number)
        for number in hoisted:
            numbers[number] = len(out)
            out.append(steps[number])
        numbers.update(dict.fromkeys(inside, len(out)))
        out.append(loop)
        at += plan.period * plan.rounds
    if not found_any:
        return program
    for number, step in enumerate(out):
        if isinstance(step, Gradient):
            path = sorted({numbers[n] for n in step.path}, reverse=True)
            out[number] = step._replace(path=tuple(path))
    return program._replace(steps=tuple(out))


class _LoopFinder:
    """What finds stretches: who makes and who reads each slot."""

    def __init__(self, program: Program, avals_of: AvalsOf):
        self._steps, self._avals_of = program.steps, avals_of
        self._avals: Mapping[int, Aval] | None = None
        self._makers: dict[int, tuple[int, int]] = {}
        self._readers: defaultdict[int, list[int]] = defaultdict(list)
        self._positions: defaultdict[Any, list[int]] = defaultdict(list)
        self._kinds: list[Any] = []
        self._refused_until: defaultdict[int, int] = defaultdict(int)  # by period
        self._paths = [frozenset(s.path) for s in self._steps if isinstance(s, Gradient)]
        rewritten: set[int] = set()
        for number, step in enumerate(self._steps):
            for result, slot in enumerate(_writes(step)):
                if slot in self._makers or slot < program.n_inputs:
                    rewritten.add(number)  # it runs for its gradient only
                self._makers.setdefault(slot, (number, result))
            for slot in _reads(step):
                self._readers[slot].append(number)
        for slot in program.outputs:
            self._readers[slot].append(len(self._steps))
        for number, step in enumerate(self._steps):
            kind: Any = number
            if isinstance(step, Instr) and number not in rewritten and not step.rematerialize:
                kind = (id(step.call.op), step.wrt, len(step.ins))
            self._kinds.append(kind)
            self._positions[kind].append(number)

    def _shapes(self) -> Mapping[int, Aval]:
        if self._avals is None:
            self._avals = self._avals_of()
        return self._avals

    def loop_at(self, start: int) -> tuple[_LoopPlan, Instr] | None:
        """Return the loop that begins with a step, if one does."""
        kinds = self._kinds
        later = self._positions[kinds[start]]
        first = bisect_right(later, start)
        for number in later[first : first + _MAX_CANDIDATES]:
            period = number - start
            if period > _MAX_PERIOD:
                break
            if kinds[start:number] == kinds[number : number + period] and not self._differs_too_much(start, period):
                plan = self._plan(start, period)
                if plan is None:
                    continue
                loop = self._loop(plan)
                if loop is not None:
                    return plan, loop
                self._refuse(start, period, plan.rounds)
        return None

    def _refuse(self, start: int, period: int, rounds: int) -> None:
        """Note that equal rounds are no loop, so that they are not looked at again from each of their steps."""
        self._refused_until[period] = start + period * (rounds - 1)

    def _source(self, slot: int, start: int, period: int, round_: int) -> Source | None:
        """Return where a round finds a value; a `LoopCarry` of the round before has no slot yet."""
        if self._made_before(slot, start):
            return LoopConstant(slot)
        maker = self._makers[slot]
        age = round_ - (maker[0] - start) // period
        at = (maker[0] - start) % period
        return LoopLocal(at, maker[1]) if age == 0 else LoopCarry(-1, at, maker[1]) if age == 1 else None

    def _plan(self, start: int, period: int) -> _LoopPlan | None:
        """Return the longest loop of this period, None if it is short or too much differs between its rounds."""
        table: dict[tuple[int, int], list[Source]] = {}
        hoisted: set[int] = set()
        rounds = 0
        kinds = self._kinds[start : start + period]
        while self._kinds[start + rounds * period : start + (rounds + 1) * period] == kinds:
            new = self._sources_of_round(start, period, rounds)
            if rounds == 1:
                for q in range(period):
                    if self._instr(start + q).call is not self._instr(start + period + q).call:
                        hoisted.add(q)
            if new is None or not self._continues(table, new, start, period, rounds, hoisted):
                break
            for place, source in new.items():
                table.setdefault(place, []).append(source)
            rounds += 1
        n_inside = period - len(hoisted)
        if rounds < MIN_ROUNDS or rounds * n_inside < MIN_STEPS:
            return None
        plan = self._wired(start, period, rounds, frozenset(hoisted), table)
        if plan is None:
            self._refuse(start, period, rounds)
        return plan

    def _sources_of_round(self, start: int, period: int, round_: int) -> dict[tuple[int, int], Source] | None:
        new: dict[tuple[int, int], Source] = {}
        for q in range(period):
            for a, slot in enumerate(_reads(self._steps[start + round_ * period + q])):
                source = self._source(slot, start, period, round_)
                if source is None:
                    return None
                new[q, a] = source
        return new

    def _continues(
        self,
        table: dict[tuple[int, int], list[Source]],
        new: dict[tuple[int, int], Source],
        start: int,
        period: int,
        round_: int,
        hoisted: set[int],
    ) -> bool:
        """Whether a round reads what those before it read."""
        if round_ == 0:
            return True
        for (q, a), source in new.items():
            before = table[q, a][-1]
            if q in hoisted:
                if not (isinstance(source, LoopConstant) or (isinstance(source, LoopLocal) and source.step in hoisted)):
                    return False
            elif isinstance(source, LoopConstant):
                if not isinstance(before, LoopConstant):
                    return False
            elif source != before and not (
                round_ == 1 and isinstance(source, LoopCarry) and isinstance(before, LoopConstant)
            ):
                return False
            if isinstance(source, LoopCarry) and source.step in hoisted:
                return False
        for q in range(period):
            same_call = self._instr(start + round_ * period + q).call is self._instr(start + q).call
            if q not in hoisted and not same_call:
                return False
        return True

    def _differs_too_much(self, start: int, period: int) -> bool:
        """Whether the second round reads so many other values than the first that no loop of this period is near."""
        if start < self._refused_until[period]:
            return True
        n_slices = 0
        for number in range(start, start + period):
            for a, b in zip(_reads(self._steps[number]), _reads(self._steps[number + period]), strict=True):
                n_slices += a != b and self._made_before(a, start) and self._made_before(b, start)
        if n_slices * _STEPS_PER_STACKED <= period:
            return False
        self._refused_until[period] = start + period
        return True

    def _made_before(self, slot: int, number: int) -> bool:
        maker = self._makers.get(slot)
        return maker is None or maker[0] < number

    def _wired(
        self,
        start: int,
        period: int,
        rounds: int,
        hoisted: frozenset[int],
        table: dict[tuple[int, int], list[Source]],
    ) -> _LoopPlan | None:
        sources: dict[int, list[Source]] = {}
        for (q, _), found in table.items():
            if q in hoisted:
                continue
            first, second = found[0], found[1]
            source: Source = first
            if isinstance(second, LoopCarry):
                assert isinstance(first, LoopConstant)
                source = second._replace(slot=first.slot)
            elif isinstance(first, LoopLocal) and first.step in hoisted:
                source = LoopSlice(tuple(self._slot(start, period, t, first) for t in range(rounds)))
            elif isinstance(first, LoopConstant) and len(set(found)) > 1:
                source = LoopSlice(tuple(s.slot for s in found if isinstance(s, LoopConstant)))
            sources.setdefault(q, []).append(source)
        end = start + period * rounds
        results: dict[tuple[int, int], list[int]] = {}
        for q in range(period):
            for t in range(rounds) if q not in hoisted else ():
                for o, slot in enumerate(_writes(self._steps[start + t * period + q])):
                    if any(reader >= end for reader in self._readers[slot]):
                        results.setdefault((q, o), []).append(t)
        slices = {s for found in sources.values() for s in found if isinstance(s, LoopSlice)}
        n_arguments = sum(not any(slot in self._makers for slot in s.slots) for s in slices)
        n_stacked = len(slices) - n_arguments + sum(len(read) > 1 for read in results.values())
        cost = n_stacked * _STEPS_PER_STACKED + n_arguments * _STEPS_PER_STACKED_ARGUMENT
        if not results or cost > period - len(hoisted):
            return None
        return _LoopPlan(
            start, period, rounds, hoisted, {q: sources.get(q, []) for q in range(period) if q not in hoisted}, results
        )

    def _slot(self, start: int, period: int, round_: int, source: LoopLocal) -> int:
        return _writes(self._steps[start + round_ * period + source.step])[source.result]

    def _loop(self, plan: _LoopPlan) -> Instr | None:
        """Return the loop of a plan, None if it cannot or should not be one."""
        start, period, rounds = plan.start, plan.period, plan.rounds
        of_round = [[self._instr(start + t * period + q) for q in plan.body] for t in range(rounds)]
        if any(step.call.joint or step.call.op.dynamic for step in of_round[0]):
            return None
        if any(self._instr(start + q).call.n_keys + self._instr(start + q).call.n_runtime for q in plan.hoisted):
            return None
        inside = [step for steps in of_round for step in steps]
        first_key, first_runtime = inside[0].first_key, inside[0].first_runtime
        key, runtime = first_key, first_runtime
        for step in inside:
            if (step.call.n_keys and step.first_key != key) or (step.call.n_runtime and step.first_runtime != runtime):
                return None
            key, runtime = key + step.call.n_keys, runtime + step.call.n_runtime
        with_gradient = [q for q in plan.body if self._instr(start + q).wrt]
        differentiated = {start + t * period + q for t in range(rounds) for q in with_gradient}
        if any(not (differentiated <= path or differentiated.isdisjoint(path)) for path in self._paths):
            return None
        avals = self._shapes()

        def slot_of(t: int, q: int, o: int) -> int:
            return self._slot(start, period, t, LoopLocal(q, o))

        call = LoopCall(
            {q: self._instr(start + q) for q in plan.body}, plan.sources, plan.results, rounds, avals, slot_of
        )
        if any(avals[s.slot] != avals[slot_of(0, s.step, s.result)] for s in call.carries):
            return None
        if any(avals[slot] != avals[s.slots[0]] for s in call.slices for slot in s.slots):
            return None
        outs = tuple(slot_of(t, q, o) for (q, o), read in plan.results.items() for t in read)
        touched = {slot for step in inside if step.wrt for slot in (*step.outs, *(step.ins[k] for k in step.wrt))}
        touched.update(outs if with_gradient else ())
        if any(not jnp.issubdtype(avals[slot][1], jnp.inexact) for slot in touched):
            return None  # integers are differentiated step by step
        if not _is_worth_a_loop(call.body_jaxpr().jaxpr):
            return None
        wrt = call.differentiated_inputs()
        return Instr(call, call.input_slots, outs, False, first_key, first_runtime, wrt)

    def _instr(self, number: int) -> Instr:
        step = self._steps[number]
        assert isinstance(step, Instr)
        return step


def _is_worth_a_loop(jaxpr: Any) -> bool:
    """Whether a round has a matrix product and no convolution.

    XLA fuses elementwise steps of many rounds into few passes over memory, and a loop would prevent it. The layouts of
    convolutions are chosen outside of loops only.
    """
    names = set(_primitive_names(jaxpr))
    return "dot_general" in names and "conv_general_dilated" not in names


def _primitive_names(jaxpr: Any) -> Iterator[str]:
    for eqn in jaxpr.eqns:
        yield eqn.primitive.name
        for value in eqn.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from _primitive_names(inner)


def _reads(step: Step) -> Sequence[int]:
    if isinstance(step, Instr):
        return step.ins
    if isinstance(step, Gradient):
        optional = [s for s in (*step.head_grads, *step.accumulate_into) if s is not None]
        return [*step.heads, *optional, *(slot for group in step.targets for slot in group)]
    return (step.source,) if isinstance(step, Alias) else step.ins


def _writes(step: Step) -> Sequence[int]:
    return (step.out,) if isinstance(step, Alias) else step.outs


__all__ = ["MIN_ROUNDS", "MIN_STEPS", "Aval", "LoopCall", "with_loops"]
