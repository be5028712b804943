"""Programs that start on NumPy arrays are compiled after a number of runs that follows from counts."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, nd
from dualmx.compile import promotion
from dualmx.compile.background import Compilation
from dualmx.compile.events import DebugPrinter, counters, listeners
from dualmx.compile.numpy_executable import NumpyExecutable
from dualmx.compile.promotion import ProgramSizes, promotion_run
from dualmx.graph.trie import trie
from tests.conftest import forget_programs

pytestmark = pytest.mark.usefixtures("promotion_at_3")


def train(steps: int) -> list[tuple[bytes, int]]:
    """Weights after every step of a small regression, and how many programs ran without compiling until then."""
    trie.clear()
    mx.random.seed(1)
    x, w = nd.array(np.sin(np.arange(40)).reshape(8, 5)), nd.random.normal(shape=(5, 3))
    velocity = nd.zeros((5, 3))
    w.attach_grad()
    before, found = counters.numpy_runs, []
    for _ in range(steps):
        with autograd.record():
            loss = (nd.tanh(nd.dot(x, w)) ** 2).sum()
        loss.backward()
        velocity[:] = 0.9 * velocity - 0.1 * w.grad
        w[:] = w + velocity
        found.append((w.asnumpy().tobytes(), counters.numpy_runs - before))
    return found


def test_a_step_is_compiled_at_its_third_run():
    before = counters.compiles
    runs = [n for _, n in train(6)]
    assert runs[0] < runs[1] and runs[3] == runs[-1]
    assert counters.compiles > before


def test_results_agree_and_the_same_script_gives_the_same_bits(monkeypatch):
    found = [train(6) for _ in range(3)]
    assert found[0] == found[1] == found[2]
    monkeypatch.setenv("DUALMX_TIER", "xla")
    for (mine, _), (compiled, _) in zip(found[0], train(6), strict=True):
        np.testing.assert_allclose(np.frombuffer(mine, "f4"), np.frombuffer(compiled, "f4"), rtol=1e-5, atol=1e-6)


def test_gradients_pass_through_values_read_before_and_after():
    for _ in range(5):
        x = nd.array([1.0, 2.0, 3.0])
        x.attach_grad()
        with autograd.record():
            y = x * x
            assert y.asnumpy().tolist() == [1.0, 4.0, 9.0]
            z = (y * 3).sum()
        z.backward()
        assert x.grad.asnumpy().tolist() == [6.0, 12.0, 18.0]


def test_fewer_results_are_read_than_at_first():
    for attempt in range(6):
        x = nd.array([1.0, 2.0])
        a, b = x + 1, x * 2
        if attempt % 2:
            del a
        else:
            assert a.asnumpy().tolist() == [2.0, 3.0]
        assert b.asnumpy().tolist() == [2.0, 4.0]


def test_arrays_that_were_overwritten_are_right_before_and_after():
    w, seen = nd.ones((64, 64)), []
    for _ in range(6):
        view = w[1]
        w += 1
        seen.append((float(w[0, 0].asscalar()), float(view[0].asscalar())))
    assert seen == [(n, n) for n in (2.0, 3.0, 4.0, 5.0, 6.0, 7.0)]


def test_threads_count_together():
    x = nd.array(np.arange(4.0))
    found: list[list[float]] = []

    def work():
        found.extend((nd.exp(x * 0) + x).asnumpy().tolist() for _ in range(4))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert found == [[1.0, 2.0, 3.0, 4.0]] * 16


def runs_of(build) -> int:
    """The run from which the largest program that `build()` needs is used compiled."""
    forget_programs()
    seen = []
    build().wait_to_read()
    states = list(trie)
    while states:
        state = states.pop()
        states.extend(state.next.values())
        seen += [promotion_run(exe.cost()) for exe in state.programs.values() if isinstance(exe, NumpyExecutable)]
    return min(seen)


def gradients(net, *shape) -> nd.NDArray:
    """What a training step of a network computes."""
    net.initialize()
    x = nd.ones(shape)
    with autograd.record():
        loss = net(x).sum()
    loss.backward()
    return next(iter(net.collect_params().values())).grad()


def test_the_run_follows_from_the_work(monkeypatch):
    monkeypatch.delenv("DUALMX_PROMOTE_AT")
    small, large, square = nd.ones((2, 2)), nd.ones((4000, 500)), nd.ones((300, 300))
    tiny = runs_of(lambda: nd.tanh(small * 2))
    heavy = runs_of(lambda: nd.tanh(large * 2))
    assert 6 <= heavy < 300 < 1_000 < tiny
    assert runs_of(lambda: nd.tanh(small * 2)) == tiny
    # What a library computes alike gains little, and takes long to compile.
    assert runs_of(lambda: nd.dot(nd.dot(square, square), square)) > runs_of(lambda: nd.tanh(square * 2 + 1) * 3)
    dense = runs_of(lambda: gradients(mx.gluon.nn.Dense(3), 4, 5))
    images = runs_of(lambda: gradients(mx.gluon.nn.Conv2D(3, 3), 4, 2, 8, 8))
    assert dense < images


@pytest.mark.parametrize(("run_s", "compile_s", "begins"), [(0.125, 2.0, 84), (0.125, 0.5, 96), (0.001, 2.0, 50)])
def test_compiling_begins_as_late_as_it_will_be_ready_in_time(run_s, compile_s, begins, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(promotion, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    counted = promotion.Promotion(100, compile_s * 1e6, ProgramSizes())
    began, found = [], []

    def compile_later() -> Compilation:
        began.append(counted.n_runs)
        return Compilation(lambda: "compiled", "a program")

    for _ in range(101):
        found.append(counted.next_run(compile_later))
        now[0] += run_s
    assert began == [begins]
    assert found == [None] * 99 + ["compiled"] * 2


def test_explanations_and_messages_tell_how_a_program_runs(capsys):
    listeners.append(DebugPrinter(1))
    explained = []
    try:
        for _ in range(5):
            y = nd.array([1.0, 2.0]) * 2 + 1
            explained.append(mx.debug.explain(y).splitlines()[0].partition("last flush, ")[2])
            y.wait_to_read()
    finally:
        listeners.pop()
    runs = [f"on NumPy arrays, run {n}; compiled from run 3 on" for n in (1, 2)]
    assert explained == ["a new program", *runs, "compiled", "compiled"]
    said = [
        line for line in capsys.readouterr().err.splitlines() if "flush of 3 steps" in line or " operations, " in line
    ]
    assert [line.partition(" at ")[0] for line in said if "flush" in line] == [
        "[dualmx] flush of 3 steps, 1 results"
    ] * 5
    assert [line.rpartition(" (")[2] for line in said if "flush" in line] == [
        f"{r})" for r in (*runs, *["compiled"] * 3)
    ]
    prepared, compiled = [line for line in said if "flush" not in line]
    assert prepared.startswith("[dualmx] prepared 2 operations, 1 results without compiling in ")
    assert compiled.startswith("[dualmx] compiled 2 operations, ")
    assert compiled.endswith("reason: run 3 is the first that uses it compiled")
