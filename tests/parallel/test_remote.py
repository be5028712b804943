"""Calls of functions in other processes, and networks whose parts live there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from tests import jobs

COMMAND = [*jobs.launcher(3), jobs.PYTHON, Path(__file__).parent / "jobs" / "remote.py"]
rpc = mx.parallel.rpc


@pytest.mark.slow
def test_networks_over_three_processes_train_as_in_one() -> None:
    assert jobs.run(*COMMAND).stdout.count("finished") == 3


@pytest.mark.slow
def test_a_process_that_dies_during_a_call() -> None:
    assert "told" in jobs.run(*COMMAND, "die", status=None).stdout


def layer(units: int = 3) -> Any:
    net = mx.gluon.nn.Dense(units, in_units=4)
    net.initialize()
    return net


def test_a_process_alone_calls_itself() -> None:
    rpc.register("tests.layer", layer)
    rpc.register("tests.sum", lambda *args, **named: sum(args) + named.get("more", 0))
    assert rpc.call(0, "tests.sum", 1, 2, more=3) == 6
    assert rpc.call_async(0, "tests.sum", mx.nd.ones((2,)), 1).wait().asnumpy().tolist() == [2.0, 2.0]
    net = mx.gluon.parallel.RemoteBlock(0, "tests.layer")
    x = mx.nd.ones((2, 4))
    x.attach_grad()
    with mx.autograd.record():
        loss = (net(x) * 2).sum()
    loss.backward()
    weight = net.parameters()["weight"].asnumpy()
    np.testing.assert_allclose(x.grad.asnumpy(), np.tile(2 * weight.sum(0), (2, 1)), rtol=1e-6)
    np.testing.assert_allclose(net(x).asnumpy(), x.asnumpy() @ weight.T, rtol=1e-6)
    with pytest.raises(mx.base.MXNetError, match="train_with"):
        net.step(1)
    net.release()
    with pytest.raises(mx.base.MXNetError, match="was released"):
        net(x)


def test_wrong_calls() -> None:
    with pytest.raises(mx.base.MXNetError, match="number of a process below 1"):
        rpc.call(1, "tests.sum")
    with pytest.raises(ValueError, match="'nothing' is registered"):
        rpc.call(0, "nothing")
    with pytest.raises(TypeError, match="a function cannot be sent"):
        rpc.call(0, "rpc.value", layer)
    rpc.register("tests.one", layer)
    with pytest.raises(mx.base.MXNetError, match="another function"):
        rpc.register("tests.one", test_wrong_calls)
    rpc.register("tests.bad", lambda: layer)
    with pytest.raises(mx.base.MXNetError, match="result of 'tests.bad': a function cannot be sent"):
        rpc.call(0, "tests.bad")
    with pytest.raises(TypeError, match="expected an initialized Block"):
        mx.gluon.parallel.RemoteBlock(0, "tests.sum", 1)
    with pytest.raises(mx.base.MXNetError, match="belongs to another process"):
        rpc.call(0, "rpc.value", rpc.Reference(1, 0))
