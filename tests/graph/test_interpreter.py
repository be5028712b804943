"""One program, executed in two ways: operator by operator on arrays, and as one XLA program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import dualmx as mx
from dualmx.graph.interpreter import JaxExecutor, run
from dualmx.graph.program import Checkpoint, Instr, program_of_prefix, with_checkpoints
from dualmx.graph.trie import steps_of
from dualmx.ndarray.recorder import local


def both_ways(arrays: list[Any]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Values of pending arrays: those of their program run at once, and those of the compiled one."""
    tr = local.trace
    program = program_of_prefix(steps_of(tr.state), [a._value for a in arrays])
    keys = np.array(tr.keys, np.uint32)
    executor = JaxExecutor(lambda n: jax.random.wrap_key_data(keys[n]), np.array(tr.runtime, np.float32))
    with jax.enable_x64(True):
        at_once = run(program, [jax.numpy.asarray(x) for x in tr.leaves], executor)
    return [np.asarray(x) for x in at_once], [a.asnumpy() for a in arrays]


def _gradients() -> list[Any]:
    x = mx.nd.array([[1.0, -2.0], [3.0, 0.5]])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.tanh(x * x).sum() + x[0].sum()
    y.backward()
    return [y, x.grad]


def _second_order() -> list[Any]:
    x = mx.nd.array([0.3, -0.7])
    x.attach_grad()
    with mx.autograd.record():
        (first,) = mx.autograd.grad(mx.nd.sin(x), [x], create_graph=True)
        z = (first * first).sum()
    z.backward()
    return [z, x.grad]


def _accumulated() -> list[Any]:
    x = mx.nd.array([2.0, 3.0])
    x.attach_grad("add")
    for _ in range(2):
        with mx.autograd.record():
            y = mx.nd.Dropout(x * x, p=0.5)
        y.backward()
    return [y, x.grad]


def _integers() -> list[Any]:
    x = mx.nd.array([1, 2, 3], dtype="int32")
    x.attach_grad()
    with mx.autograd.record():
        y = (x * x).sum()
    y.backward()
    return [y, x.grad]


def _runtime_scalars() -> list[Any]:
    x = mx.nd.ones((3,))
    for lr in (0.1, 0.2, 0.3, 0.4):
        x = x - lr * x
    return [x]


@pytest.mark.usefixtures("xla_tier", "unoptimized")
@pytest.mark.parametrize("record", [_gradients, _second_order, _accumulated, _integers, _runtime_scalars])
def test_at_once_and_compiled_agree(record: Callable[[], list[Any]]) -> None:
    mx.nd.waitall()
    for at_once, compiled in zip(*both_ways(record()), strict=True):
        assert at_once.dtype == compiled.dtype
        np.testing.assert_allclose(at_once, compiled, rtol=2e-6, atol=1e-7)


def test_reentered_steps_are_differentiated_without_being_run_again() -> None:
    x = mx.nd.array([0.5, 2.0])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.exp(x)
    saved = y.asnumpy()  # executes; the recorded step outlives its program
    y.backward()
    program = program_of_prefix(steps_of(local.trace.state), [x.grad._value])
    instr = next(s for s in program.steps if isinstance(s, Instr))
    assert instr.wrt == (0,) and all(slot < program.n_inputs for slot in instr.outs)
    np.testing.assert_allclose(x.grad.asnumpy(), saved, rtol=1e-6)


def test_rematerialized_steps_become_checkpoints_with_the_same_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", "1")
    x = mx.sym.var("x")
    net = mx.sym.Dropout(mx.sym.FullyConnected(mx.sym.tanh(mx.sym.sin(x)), num_hidden=3, name="fc"), p=0.5)
    call, _, _ = mx.sym.graph_call(net, True)
    program = with_checkpoints(call.program)
    assert any(isinstance(s, Checkpoint) for s in program.steps)
    inputs = [np.float32(np.random.rand(*s)) for s in ((2, 4), (3, 4), (3,))]
    results = [
        run(p, inputs, JaxExecutor(lambda n: jax.random.fold_in(jax.random.key(7), n)))[0]
        for p in (call.program, program)
    ]
    np.testing.assert_array_equal(*map(np.asarray, results))
