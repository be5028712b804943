"""Pipelines: gradients equal those of the whole batch, stages are where they should be, schedules wait as they must."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest

import dualmx as mx
from dualmx.compile.events import Listener, listeners
from dualmx.gluon import nn, parallel

RNG = np.random.RandomState(0)
X, Y = RNG.randn(12, 6), RNG.randn(12, 3)
TEXTS = RNG.randn(8, 3, 4)


def stages() -> list[Any]:
    net = nn.HybridSequential()
    net.add(nn.Dense(8, activation="tanh", in_units=6), nn.LayerNorm(in_channels=8))
    return [net, nn.Dense(7, activation="relu", in_units=8), nn.Dense(3, in_units=7)]


def fill(params) -> None:
    values = np.random.RandomState(4)
    for p in params:
        p.set_data(mx.nd.array(values.randn(*p.shape) * 0.3, dtype="float64"))


@pytest.mark.parametrize("kind", ["gpipe", "1f1b"])
@pytest.mark.parametrize("hybridize", [True, False])
def test_gradients_equal_those_of_the_whole_batch(kind: str, hybridize: bool) -> None:
    pipe = parallel.Pipeline(stages(), [mx.cpu(1), mx.cpu(2), mx.cpu(3)], 4, kind)
    plain = nn.Sequential()
    plain.add(*stages())
    for net in (pipe, plain):
        net.cast("float64")
        net.initialize()
        net.hybridize(hybridize)
        fill([p for s in (net.stages if net is pipe else plain) for p in s.collect_params().values()])
    x, y = mx.nd.array(X, dtype="float64"), mx.nd.array(Y, dtype="float64")
    loss_of, trainers = mx.gluon.loss.L2Loss(), pipe.trainers("sgd", {"learning_rate": 0.1, "momentum": 0.9})
    trainer = mx.gluon.Trainer(plain.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    for _ in range(2):
        losses = pipe.forward_backward(x, y, loss_of)
        for t in trainers:
            t.step(12)
        with mx.autograd.record():
            want = loss_of(plain(x), y)
        want.backward()
        trainer.step(12)
        np.testing.assert_allclose(losses.asnumpy(), want.asnumpy(), rtol=1e-12, atol=1e-14)
    for stage, other, ctx in zip(pipe.stages, plain, pipe.contexts, strict=True):
        for a, b in zip(stage.collect_params().values(), other.collect_params().values(), strict=True):
            assert a.list_ctx() == [ctx]
            np.testing.assert_allclose(a.grad().asnumpy(), b.grad().asnumpy(), rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(a.data().asnumpy(), b.data().asnumpy(), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(pipe(x).asnumpy(), plain(x).asnumpy(), rtol=1e-12, atol=1e-14)
    assert pipe(x).context == mx.cpu(3)
    before = pipe.stages[0][0].weight.grad().asnumpy()
    pipe.forward_backward(x, y, loss_of)
    once = pipe.stages[0][0].weight.grad().asnumpy()
    pipe.forward_backward(x, y, loss_of, accumulate=True)
    np.testing.assert_allclose(pipe.stages[0][0].weight.grad().asnumpy(), 2 * once, rtol=1e-12, atol=1e-14)
    assert before.shape == once.shape


@pytest.mark.usefixtures("xla_tier")  # whose results tell their devices
def test_passes_run_on_the_devices_of_their_stages() -> None:
    seen: list[tuple[int, int]] = []

    class Note(Listener):
        def executed(self, state, began, started, results, how) -> None:
            seen.extend((d.id, len(results)) for r in results if isinstance(r, jax.Array) for d in r.devices())

    pipe = parallel.Pipeline(stages(), [mx.cpu(1), mx.cpu(2), mx.cpu(3)], 3)
    pipe.initialize()
    note = Note()
    listeners.append(note)
    try:
        pipe.forward_backward(mx.nd.array(X), mx.nd.array(Y), mx.gluon.loss.L2Loss())
    finally:
        listeners.remove(note)
    assert {d for d, _ in seen} <= {0, 1, 2, 3} and {1, 2, 3} <= {d for d, _ in seen}
    found = pipe.measure(mx.nd.array(X), mx.nd.array(Y), mx.gluon.loss.L2Loss(), repeats=1)
    assert 0 < found["bubble"] < 1 and len(found["utilisation"]) == 3 and found["in_flight"] == [3, 2, 1]


def test_schedules() -> None:
    for kind in ("gpipe", "1f1b"):
        for s, m in ((1, 1), (2, 4), (4, 4), (4, 8), (3, 2)):
            found = mx.parallel.Schedule(s, m, kind)
            assert found.bubble() == pytest.approx((s - 1) / (m + s - 1)), (kind, s, m)
            assert all(sorted(o) == sorted([(k, b) for k in range(m) for b in (False, True)]) for o in found.orders)
            most = [m] * s if kind == "gpipe" else [min(m, s - k) for k in range(s)]
            assert found.in_flight() == most
    assert mx.parallel.Schedule(2, 4).bubble([1, 3], [1, 3]) > mx.parallel.Schedule(2, 4).bubble()
    assert str(mx.parallel.Schedule(2, 2, "gpipe")).splitlines()[1] == "1 |.  F0 F1 B0 B1 ."
    with pytest.raises(mx.base.MXNetError, match="kind='1f2b'.*1f1b"):
        mx.parallel.Schedule(2, 2, "1f2b")
    with pytest.raises(mx.base.MXNetError, match="2 durations for 3 stages"):
        mx.parallel.Schedule(3, 1).bubble([1, 2])


class Texts(Listener):
    """Collects the HLO of what is compiled."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def compiled(self, event) -> None:
        self.texts.append(event.compiled.as_text())

    def count(self, what: str) -> int:
        return max((len(re.findall(rf" {what}(?:-start)?\(", t)) for t in self.texts), default=0)


@pytest.mark.parametrize("axes", [{"pipe": 4}, {"data": 2, "pipe": 4}])
def test_equal_stages_are_one_program(axes: dict[str, int]) -> None:
    mesh = mx.parallel.Mesh(axes)

    def run(ctx) -> tuple[list[np.ndarray], Any]:
        stage = nn.HybridSequential()
        stage.add(nn.Dense(6, activation="tanh", in_units=6), nn.LayerNorm(in_channels=6))
        net = nn.Sequential()
        net.add(nn.Dense(6, in_units=6), parallel.StackedPipeline(stage, 4, 3), nn.Dense(3, in_units=6))
        net.cast("float64")
        net.initialize(ctx=ctx)
        fill([p for block in net for p in block.collect_params().values()])
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
        losses = []
        for _ in range(2):
            x, y = (mx.nd.array(v, dtype="float64") for v in (X, Y))
            if ctx is mesh:
                x, y = (mx.parallel.shard(v, ("data",) if "data" in axes else (), mesh) for v in (x, y))
            with mx.autograd.record():
                loss = mx.gluon.loss.L2Loss()(net(x), y)
            loss.backward()
            trainer.step(12)
            losses.append(loss.asnumpy())
        return [*losses, *(p.data().asnumpy() for b in net for p in b.collect_params().values())], net

    texts = Texts()
    listeners.append(texts)
    try:
        got, net = run(mesh)
    finally:
        listeners.remove(texts)
    for a, b in zip(got, run(mx.cpu(0))[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    assert texts.count("collective-permute") >= 2 and texts.count("all-gather") == 0
    held = [p.data() for p in net[1].collect_params().values()]
    assert all(a.sharding[0] == "pipe" for a in held)
    assert set(mx.parallel.device_bytes(held).values()) == {sum(a.size for a in held) * 8 // 4}


def test_stages_may_be_divided_themselves() -> None:
    mesh = mx.parallel.Mesh({"data": 2, "pipe": 2, "model": 2})

    def run(ctx) -> list[np.ndarray]:
        net = parallel.StackedPipeline(parallel.ParallelTransformerCell(4, 8, heads=2, causal=True), 2, 2)
        net.cast("float64")
        net.initialize(ctx=ctx)
        fill(net.collect_params().values())
        x = mx.nd.array(TEXTS, dtype="float64")
        x = mx.parallel.shard(x, ("data",), mesh) if ctx is mesh else x
        with mx.autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        if ctx is mesh:
            assert ("pipe", "model", None) in [p.grad().sharding for p in net.collect_params().values()]
        return [loss.asnumpy(), *(p.grad().asnumpy() for p in net.collect_params().values())]

    for a, b in zip(run(mesh), run(mx.cpu(0)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def test_random_stages_and_stages_of_unknown_shape() -> None:
    mesh = mx.parallel.Mesh({"pipe": 4})
    stage = nn.HybridSequential()
    stage.add(nn.Dense(6), nn.Dropout(0.5))
    net = parallel.StackedPipeline(stage, 4, 2)
    net.initialize(mx.init.Xavier(), ctx=mesh)
    x = mx.nd.ones((4, 6), ctx=mesh)
    with mx.autograd.record():
        y = net(x)
    y.backward()
    weight = next(iter(net.collect_params().values()))
    assert weight.shape == (4, 6, 6) and float(mx.nd.abs(weight.grad()).sum().asscalar()) > 0
    first, second = weight.data().asnumpy()[:2]
    assert abs(first).max() <= 0.7072 and (first != second).any()  # Xavier's bound for 6 inputs and outputs
    y.wait_to_read()
    assert (net(x).asnumpy() == net(x).asnumpy()).all()


def test_wrong_pipelines() -> None:
    with pytest.raises(mx.base.MXNetError, match="3 stages on 2 contexts"):
        parallel.Pipeline(stages(), [mx.cpu(0), mx.cpu(1)], 2)
    pipe = parallel.Pipeline(stages(), [mx.cpu(0)] * 3, 5)
    pipe.initialize()
    with pytest.raises(mx.base.MXNetError, match="cannot be cut evenly into 5"):
        pipe.forward_backward(mx.nd.array(X), mx.nd.array(Y), mx.gluon.loss.L2Loss())
    with pytest.raises(mx.base.MXNetError, match="have contexts already"):
        pipe.initialize(ctx=mx.cpu(0))
    mesh = mx.parallel.Mesh({"pipe": 4})
    x = mx.nd.ones((4, 6), ctx=mesh)
    cases: list[tuple[Any, int, int, str]] = [
        (nn.Dense(6, in_units=6), 8, 2, "8 stages over 'pipe'"),
        (nn.Dense(5, in_units=6), 4, 2, "expected the same"),
        (nn.BatchNorm(in_channels=6), 4, 2, "must not have states"),
        (nn.Dense(6, in_units=6), 4, 3, "cannot be cut into 3"),
    ]
    for stage, count, micro, text in cases:
        net = parallel.StackedPipeline(stage, count, micro)
        with pytest.raises(mx.base.MXNetError, match=text):
            net.initialize(ctx=mesh)
            net(x)
