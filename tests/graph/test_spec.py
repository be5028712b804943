"""The verifier accepts what recording and lowering make, and refuses programs that are wrong in one place each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx.graph import spec
from dualmx.graph.interpreter import JaxExecutor, run
from dualmx.graph.program import Alias, Checkpoint, Gradient, Instr, Program, program_of_prefix
from dualmx.graph.trie import aval, steps_of
from dualmx.ndarray.recorder import local
from dualmx.op.registry import get_op

ADD = get_op("elemwise_add").call()
SAMPLE = get_op("_random_uniform").call(shape=(2,))


def training_step() -> Program:
    """The program of a pending training step: a variable made of a computed value, two passes, random numbers."""
    w, v = mx.nd.ones((2,)), mx.nd.ones((2,))
    w.attach_grad()
    v.attach_grad("add")
    with mx.autograd.record():
        with mx.autograd.pause():
            v += w  # a variable of a computed value
        y = mx.nd.Dropout(w * v * w)
    y.backward(retain_graph=True)
    y.backward(mx.nd.ones((2,)) * 3)
    program = program_of_prefix(steps_of(local.trace.state), [w.grad._value, v.grad._value, y._value])
    mx.nd.waitall()
    return program


def changed(program: Program, kind: type, **fields: Any) -> Program:
    """The program with fields of its last step of a kind replaced."""
    at = max(i for i, s in enumerate(program.steps) if type(s) is kind)
    steps = list(program.steps)
    steps[at] = steps[at]._replace(**fields)
    return program._replace(steps=tuple(steps))


def test_recorded_programs_hold() -> None:
    program = training_step()
    kinds = {type(s) for s in program.steps}
    assert kinds == {Instr, Alias, Gradient}
    spec.verify(program)


WRONG: dict[str, tuple[Program, str]] = {
    "reads nothing": (Program((Instr(ADD, (0, 2), (3,)),), 2, (3,)), "slot 2 is read and has no value"),
    "writes twice": (Program((Alias(0, 1), Alias(0, 1)), 1, (1,)), "slot 1 is written twice"),
    "too few results": (Program((Instr(ADD, (0, 0), ()),), 1, (0,)), "0 slots for 1 results"),
    "one slot for two results": (Program((Instr(ADD, (0, 0), (1, 1)),), 1, (1,)), "2 slots for 1 results"),
    "yields nothing": (Program((), 1, (1,)), "the outputs: slot 1"),
    "writes no input": (Program((Alias(0, 1),), 1, (1,), (1,)), "writes to"),
    "a key twice": (
        Program((Instr(SAMPLE, (), (0,)), Instr(SAMPLE, (), (1,))), 0, (1,)),
        "random key 0 was used by an earlier step",
    ),
    "differentiates no input": (Program((Instr(ADD, (0, 0), (1,), wrt=(2,)),), 1, (1,)), "of 2"),
    "inside a checkpoint": (
        Program((Checkpoint((Alias(1, 2),), (0,), (2,)),), 2, (2,)),
        "slot 1 is read and has no value",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_programs_are_refused(name: str) -> None:
    program, text = WRONG[name]
    with pytest.raises(spec.ProgramError, match=text):
        spec.verify(program)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"path": (99,)}, "step 99 of its path is no earlier step"),
        ({"heads": (99,)}, "slot 99 is read"),
        ({"head_grads": ()}, "not as many"),
        ({"targets": ()}, "not as many"),
    ],
)
def test_a_wrong_backward_pass_is_refused(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(spec.ProgramError, match=text):
        spec.verify(changed(training_step(), Gradient, **fields))


def test_a_path_must_lead_back() -> None:
    program = training_step()
    last = next(s for s in reversed(program.steps) if isinstance(s, Gradient))
    assert len(last.path) > 1
    with pytest.raises(spec.ProgramError, match="after what that reads"):
        spec.verify(changed(program, Gradient, path=last.path[::-1]))


def test_types_of_slots_must_be_those_of_the_operators() -> None:
    program = training_step()
    assert program.avals is not None
    wide = [v if i < program.n_inputs else aval((3,), v.dtype, v.ctx) for i, v in enumerate(program.avals)]
    with pytest.raises(spec.ProgramError, match="its results are"):
        spec.verify(program._replace(avals=tuple(wide)))


def test_the_interpreter_verifies_when_it_is_told() -> None:
    wrong = Program((Alias(0, 1), Alias(0, 1)), 1, (1,))
    executor = JaxExecutor(lambda n: n)
    with pytest.raises(spec.ProgramError, match="step 1, Alias: slot 1 is written twice"):
        run(wrong, [np.ones(2)], executor)
    spec.switch(False)
    try:
        assert run(wrong, [np.ones(2)], executor)[0].tolist() == [1, 1]
    finally:
        spec.switch(True)
