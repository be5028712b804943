"""Programs as single calls: a hybridized block or an executor is one recorded operator, and so is a gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from ..core.errors import MXNetError
from ..op.lowering_context import REMAT_NAME
from ..op.registry import Call, Op
from ..op.schema import UNTYPED, Input
from ..op.shape_functions import Results
from .interpreter import JaxExecutor, run
from .loops import Aval, with_loops
from .program import Checkpoint, Instr, Program, program_of_states, with_checkpoints
from .trie import OP, State, Value

_INPUTS = (Input("data", UNTYPED, variadic=True),)
_GRADIENT = Op("_gradient", lambda *data: data, _INPUTS, {})

# Returns a program whose steps know the shapes that follow from those of its inputs.
Completion = Callable[[Sequence[Any]], Program]


class ProgramCall(Call):
    """A whole program as one call.

    Args:
        name: shown in profiles and error messages.
        program: inputs that it writes get their next values after the call.
        train: the mode the program was lowered for.
        complete: finishes the program when its inputs are known; None if that is not needed.
    """

    __slots__ = ("program", "complete")

    def __init__(self, name: str, program: Program, train: bool = False, complete: Completion | None = None):
        self.program, self.complete = program, complete
        calls = [step.call for step in program.steps if isinstance(step, Instr)]
        is_unsaved = train and any(c.params.get("saved") is False for c in calls)
        op = Op(
            name,
            _with_remat_policy(self._run) if is_unsaved else self._run,
            _INPUTS,
            {},
            outputs=len(program.outputs) - len(program.writes),
            key_name="key" if any(c.has_key for c in calls) else "",
        )
        super().__init__(op, {}, train)
        self.n_aux, self.n_results = len(program.writes), len(program.outputs)
        self.aux_offsets = tuple(i - program.n_inputs for i in program.writes)
        self.is_simple = self.n_results == 1 and not self.n_keys
        self.joint = any(c.joint for c in calls)

    def __repr__(self) -> str:
        return self.op.name

    def in_mode(self, train: bool) -> Call:
        """A program was lowered for one mode and stays in it."""
        return self

    def program_for(self, inputs: Sequence[Any]) -> Program:
        """Return the program for inputs of these shapes."""
        return self.program if self.complete is None else self.complete(inputs)

    def infer(self, avals: tuple[Any, ...]) -> Results:
        """Infer step by step, so that what is known of each operator serves."""
        got = self.avals.get(avals)
        if got is not None:
            return got
        program = self.program_for([jax.ShapeDtypeStruct(s, d) for s, d in avals])
        try:
            known = _avals_by_slot(program, avals)
        except MXNetError:
            return super().infer(avals)  # whose errors name the program
        got = tuple([known[slot] for slot in program.outputs])
        self._check_states(avals, got)
        self.avals[avals] = got
        return got

    def _run(self, *data: Any, key: Any = None) -> tuple[Any, ...]:
        """Run the program on JAX values; the n-th random step draws from fold_in(key, n)."""
        program = with_checkpoints(self.program_for(data))
        if not any(isinstance(step, Checkpoint) for step in program.steps):
            avals = [(x.shape, np.dtype(x.dtype)) for x in data]
            program = with_loops(program, lambda: _avals_by_slot(program, avals))
        return tuple(run(program, data, JaxExecutor(lambda n: jax.random.fold_in(key, n))))


def _avals_by_slot(program: Program, avals: Sequence[Aval]) -> Mapping[int, Aval]:
    """Infer shapes and dtypes of all slots of a program of instructions, from those of its inputs."""
    known = dict(enumerate(avals))
    for step in program.steps:
        assert isinstance(step, Instr)
        known.update(zip(step.outs, step.call.infer(tuple([known[slot] for slot in step.ins])), strict=True))
    return known


def _with_remat_policy(body: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
    """Return `body` with a backward pass that makes the values named UNSAVED again."""
    policy = jax.checkpoint_policies.save_anything_except_these_names(REMAT_NAME)

    def recompute(*data: Any, key: Any = None) -> tuple[Any, ...]:
        # A new function each time: what JAX remembers of one would carry the mesh it was traced for to another.
        return jax.checkpoint(lambda *given: body(*given, key=key), policy=policy)(*data)

    return recompute


class GradCall(Call):
    """A backward pass as a call on the values that enter its steps; being pure, it has a gradient itself.

    Args:
        backward: the step that would compute the gradients, which is no part of the prefix.

    Attributes:
        input_values: inputs of the call: what the steps read and do not compute, and the head gradients.
        key_positions, runtime_positions: which random keys and runtime scalars of the trace the steps use.
    """

    __slots__ = ("program", "input_values", "key_positions", "runtime_positions")

    def __init__(self, backward: State):
        super().__init__(_GRADIENT, {}, False)
        plan = backward.payload
        steps: list[State] = list(reversed(plan.path))
        computed = {v for s in steps if s.kind == OP for v in s.outs}
        outside = [v for s in steps for v in s.ins if v not in computed]
        outside += [h for h in plan.heads if h not in computed] + [s for s in plan.head_grads if s is not None]
        outside += [v for g in plan.targets for v in g if v not in computed]
        self.input_values: tuple[Value, ...] = tuple(dict.fromkeys(outside))
        self.program = program_of_states([*steps, backward], self.input_values, backward.outs)
        self.key_positions = [k for s in steps if s.call for k in range(s.n_keys - s.call.n_keys, s.n_keys)]
        self.runtime_positions = [
            k for s in steps if s.call for k in range(s.n_runtime - s.call.n_runtime, s.n_runtime)
        ]
        self.n_keys, self.n_runtime = len(self.key_positions), len(self.runtime_positions)
        self.has_key, self.is_simple = self.n_keys > 0, False
        self.joint = any(s.call is not None and s.call.joint for s in steps)
        self.n_outputs = self.n_visible = self.n_results = len(plan.targets)

    def __repr__(self) -> str:
        return f"gradient of {len(self.program.steps) - 1} steps"

    def apply_keys(self, inputs: Sequence[Any], keys: Sequence[Any], runtime: Sequence[Any]) -> tuple[Any, ...]:
        """Run the steps forward from the input values, then backward."""
        return tuple(run(self.program, inputs, JaxExecutor(keys.__getitem__, runtime)))

    def infer(self, avals: tuple[Any, ...]) -> Results:
        """Gradients have the shapes and dtypes of what they are taken with respect to."""
        assert self.program.avals is not None
        return tuple((v.shape, v.dtype) for v in map(self.program.avals.__getitem__, self.program.outputs))
