"""Programs that are not compiled hold no value longer than they need it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from dualmx import autograd, gluon, nd
from dualmx.graph import interpreter
from dualmx.graph.program import Alias, Gradient, Program
from dualmx.graph.trie import trie

SIZE = 1 << 18  # bytes of an array
LENGTH = 40


@pytest.fixture(autouse=True)
def numpy_tier(monkeypatch):
    trie.clear()
    monkeypatch.setenv("DUALMX_TIER", "numpy")
    yield
    trie.clear()


@pytest.fixture
def programs(monkeypatch) -> list[Program]:
    """What runs during the test."""
    seen: list[Program] = []
    lifetimes_of = interpreter.lifetimes_of
    monkeypatch.setattr(
        "dualmx.compile.cpu.kernels.executor.lifetimes_of", lambda p, wrt: (seen.append(p), lifetimes_of(p, wrt))[1]
    )
    return seen


def forward() -> None:
    x = nd.ones((SIZE // 4,))
    for _ in range(LENGTH):
        x = nd.sin(x)
    x.sum().asnumpy()


def backward() -> None:
    x = nd.ones((SIZE // 4,))
    x.attach_grad()
    with autograd.record():
        y = x
        for _ in range(LENGTH):
            y = y * 2  # which keeps nothing for its gradient
        y = y.sum()
    y.backward()
    x.grad.asnumpy()


def peak(work) -> float:
    """The most memory that a run takes, in arrays."""
    work()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / SIZE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("work", [forward, backward])
def test_memory_does_not_grow_with_the_length_of_a_program(work):
    assert peak(work) < 10


@pytest.mark.parametrize("work", [forward, backward])
def test_without_lifetimes_it_does(work, monkeypatch):
    monkeypatch.setattr("dualmx.compile.cpu.kernels.executor.lifetimes_of", lambda *_: None)
    assert peak(work) > LENGTH


def check(program: Program) -> int:
    """Nothing is read after its end, and everything ends but the outputs; returns how many values end."""
    found = interpreter.lifetimes_of(program)
    ended: set[int] = set()
    pulled: set[int] = set()
    for step, values, vjps in zip(program.steps, found.values, found.vjps, strict=True):
        if isinstance(step, Alias):
            reads = {step.source}
        elif isinstance(step, Gradient):
            seeds = zip(step.heads, step.head_grads, strict=True)
            reads = {head if seed is None else seed for head, seed in seeds}
            reads |= {slot for slot in step.accumulate_into if slot is not None}
            assert pulled.isdisjoint(step.path) and vjps <= set(step.path)
            pulled |= vjps
        else:
            reads = set(step.ins)
        assert ended.isdisjoint(reads) and ended.isdisjoint(values)
        ended |= set(values)
    assert ended.isdisjoint(program.outputs)
    return len(ended)


def test_values_end_after_they_were_read_last(programs):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(5, activation="relu"), gluon.nn.BatchNorm(), gluon.nn.Dropout(0.3), gluon.nn.Dense(2))
    net.initialize()
    for hybrid in (False, True):
        net.hybridize(hybrid)
        trainer = gluon.Trainer(net.collect_params(), "adam")
        for _ in range(2):
            with autograd.record():
                loss = (net(nd.ones((4, 3))) ** 2).sum()
            loss.backward()
            trainer.step(4)
            loss.asnumpy()
    assert any(any(isinstance(s, Gradient) for s in p.steps) for p in programs)
    assert sum(map(check, programs)) > 20


def test_two_backward_passes_through_the_same_steps(programs):
    x = nd.array([1.0, 2.0, 3.0])
    x.attach_grad("add")
    with autograd.record():
        y = (x * x).sum()
        z = y * 3
    y.backward(retain_graph=True)
    z.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 8 * np.array([1.0, 2.0, 3.0]))
    assert max(sum(isinstance(s, Gradient) for s in p.steps) for p in programs) == 2
    assert sum(map(check, programs)) > 0


def test_the_gradient_of_a_value_between():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = x * x
        z = y * y * y
        between, first = autograd.grad(z, [y, x])
    np.testing.assert_allclose(between.asnumpy(), 3 * np.array([1.0, 2.0]) ** 4)
    np.testing.assert_allclose(first.asnumpy(), 6 * np.array([1.0, 2.0]) ** 5)
