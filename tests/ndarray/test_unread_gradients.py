"""Gradients that a trainer has used are results of the step only if somebody reads them; their values are the same."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, nd
from dualmx.compile.events import listeners
from dualmx.gluon import Trainer, nn

RATE = 2.0**-6


class Results:
    """Counts the results of programs with a backward pass."""

    measures = False

    def __init__(self):
        self.counts = []

    def compiled(self, event):
        if any(s.kind == "backward" for s in event.steps):
            self.counts.append(event.results)

    def __getattr__(self, name):
        return lambda *_: None


@pytest.fixture
def results():
    listener = Results()
    listeners.append(listener)
    yield listener.counts
    listeners.remove(listener)


def net_of(*layers, units=5):
    net = nn.HybridSequential()
    net.add(*layers, nn.Dense(units))
    net.initialize(mx.init.Xavier())
    net(nd.ones((4, 3)))
    return net


def trainer_of(net):
    return Trainer(net.collect_params(), "sgd", {"learning_rate": RATE})


def step(net, trainer, x):
    """One step; returns the weights before it and what they have lost, over the rate."""
    before = [p.data().asnumpy() for p in trainer._params if p.grad_req != "null"]
    with autograd.record():
        loss = (net(x) ** 2).sum()
    loss.backward()
    trainer.step(1)
    after = [p.data().asnumpy() for p in trainer._params if p.grad_req != "null"]
    return [(b - a) / RATE for b, a in zip(before, after, strict=True)]


def gradients(trainer):
    return [p.grad() for p in trainer._params if p.grad_req != "null"]


def batch(seed=0):
    return nd.array(np.random.default_rng(seed).standard_normal((4, 3)).astype(np.float32) * 0.1)


def same(found, wanted):
    for f, w in zip(found, wanted, strict=True):
        np.testing.assert_allclose(f.asnumpy() if isinstance(f, nd.NDArray) else f, w, rtol=1e-3, atol=1e-4)


@pytest.mark.usefixtures("xla_tier")
def test_the_program_of_a_step_has_no_gradients_until_one_is_read(results):
    net = net_of(nn.Dense(7, activation="tanh"))
    trainer = trainer_of(net)
    for i in range(3):
        lost = step(net, trainer, batch(i))
    assert results == [5]
    same(gradients(trainer), lost)
    assert results == [5, 4]
    for i in range(3):
        same(gradients(trainer), step(net, trainer, batch(i)))
    assert results == [5, 4, 9]


@pytest.mark.parametrize("is_hybrid", [False, True])
def test_a_gradient_read_late_is_that_of_its_step(is_hybrid):
    net = net_of(nn.Dense(6, activation="relu"), nn.BatchNorm(), nn.Dropout(0.5))
    if is_hybrid:
        net.hybridize()
    trainer = trainer_of(net)
    x = batch()
    for _ in range(2):
        lost = step(net, trainer, x)
    x[:] = 100
    for p in trainer._params:
        p.set_data(nd.zeros(p.shape))
    held = gradients(trainer)
    del net
    same(held, lost)
    same(held, lost)


def test_a_gradient_can_be_read_by_another_thread():
    net = net_of()
    trainer = trainer_of(net)
    lost = step(net, trainer, batch())
    found = []
    readers = [threading.Thread(target=lambda: found.append([g.asnumpy() for g in gradients(trainer)])) for _ in "ab"]
    for t in readers:
        t.start()
    for t in readers:
        t.join()
    for one in found:
        same(one, lost)


def test_gradients_can_be_used_and_overwritten_after_a_step():
    net = net_of()
    trainer = trainer_of(net)
    lost = step(net, trainer, batch())
    bias, weight = gradients(trainer)
    doubled = weight * 2
    view = bias[1:3]
    bias[:] = 0
    assert bias.asnumpy().tolist() == [0] * 5
    same([doubled, view], [lost[1] * 2, np.zeros(2)])
    lost = step(net, trainer, batch(1))
    weight += 1
    same([weight, bias], [lost[1] + 1, lost[0]])
    step(net, trainer, batch(2))
    net.collect_params().zero_grad()
    assert not any(g.asnumpy().any() for g in gradients(trainer))


def test_gradients_that_add_up_are_kept():
    net = net_of()
    for p in net.collect_params().values():
        p.grad_req = "add"
    trainer = trainer_of(net)
    first = step(net, trainer, batch())
    total = step(net, trainer, batch(1))
    same(gradients(trainer), total)
    assert not np.allclose(first[0], total[0])


def test_a_gradient_under_two_names_is_read_under_both():
    net = net_of()
    trainer = trainer_of(net)
    copy, held = nd.zeros((5, 3)), net[0].weight.data().copy()
    with autograd.record():
        loss = (net(batch()) ** 2).sum()
    loss.backward()
    weight = net[0].weight
    copy[:] = weight.grad()
    before = held.asnumpy()
    trainer.step(1)
    lost = (before - weight.data().asnumpy()) / RATE
    same([copy, weight.grad()], [lost, lost])


@pytest.mark.usefixtures("xla_tier")
def test_large_weights_take_the_place_of_those_before_the_last():
    net = net_of(units=500)
    trainer = trainer_of(net)
    places = []
    for i in range(8):
        step(net, trainer, batch(i))
        places.append(np.asarray(net[0].weight.data(), copy=False).ctypes.data)
    assert len(set(places[2:])) == 2


@pytest.mark.parametrize("tier", ["xla_tier", "numpy_tier", "promotion_at_3"])
def test_what_else_is_alive_may_change_from_step_to_step(tier, request):
    request.getfixturevalue(tier)
    net = net_of(nn.Dense(4, activation="tanh"))
    trainer = trainer_of(net)
    held, losts = [], []
    for i in range(9):
        if i % 3 == 2:
            trainer._params[0].data().attach_grad()  # the gradient before it stays
        with autograd.record():
            out = net(batch(i)) ** 2
            loss = out.sum()
        held = [out] if i % 4 > 1 else []
        del out
        before = [p.data().asnumpy() for p in trainer._params] if i == 8 else []
        loss.backward()
        trainer.step(1)
        losts = [(b - p.data().asnumpy()) / RATE for b, p in zip(before, trainer._params, strict=False)]
    assert not held
    same(gradients(trainer), losts)
