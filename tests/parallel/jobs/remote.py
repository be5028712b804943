"""One of three processes: the first trains a network whose halves live in the second and the third."""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np

import dualmx as mx

p = mx.parallel
rpc = p.rpc


def block(seed: int, units: int, in_units: int, activation: str | None = None) -> mx.gluon.Block:
    """A layer with the values of a seed; made in the process that holds it, and here for comparison."""
    net = mx.gluon.nn.Dense(units, activation=activation, in_units=in_units)
    net.cast("float64")
    net.initialize()
    values = np.random.RandomState(seed)
    for param in net.collect_params().values():
        param.set_data(mx.nd.array(values.randn(*param.shape), dtype="float64"))
    return net


rpc.register("block", block)
rpc.register("rank", p.rank)
rpc.register("table", lambda n: {"rows": list(range(n)), "values": mx.nd.arange(n)})
rpc.register("rows", lambda table: len(table["rows"]))
rpc.register("ask_back", lambda: rpc.call(0, "rank"))


@rpc.register("fail")
def fail(text: str) -> None:
    """A function that raises."""
    raise ValueError(text)


@rpc.register("die")
def die() -> None:
    """A process that is gone."""
    os.kill(os.getpid(), signal.SIGKILL)


def expect(kind: type[Exception], text: str, name: str, *args) -> None:
    try:
        rpc.call(1, name, *args)
    except kind as e:
        assert text in str(e), e
    else:
        raise AssertionError(f"{name} raised nothing")


p.init()
rpc.start()
if p.rank() == 0:
    assert [rpc.call(k, "rank") for k in range(3)] == [0, 1, 2] and rpc.call(2, "ask_back") == 0
    kept = rpc.call_remote(1, "table", 4)
    assert rpc.call(1, "rows", kept) == 4 and kept.get()["values"].asnumpy().tolist() == [0, 1, 2, 3]
    kept.release()
    expect(mx.base.MXNetError, "it was released", "rows", kept)
    expect(mx.base.MXNetError, "ValueError: 7 is wrong", "fail", "7 is wrong")
    expect(ValueError, "did you mean 'table'?", "tabel")
    expect(TypeError, "cannot be sent", "rows", expect)
    begun = [rpc.call_async(1 + k % 2, "rank") for k in range(8)]
    assert [h.wait() for h in begun] == [1, 2] * 4

    halves = [
        mx.gluon.parallel.RemoteBlock(1, "block", 3, 6, 5, activation="tanh"),
        mx.gluon.parallel.RemoteBlock(2, "block", 4, 2, 6),
    ]
    whole = [block(3, 6, 5, "tanh"), block(4, 2, 6)]
    own, same = block(5, 5, 4), block(5, 5, 4)  # a layer before them, here
    settings = {"learning_rate": 0.05, "momentum": 0.9}
    for half in halves:
        half.train_with("sgd", **settings)
    trainers = [mx.gluon.Trainer(b.collect_params(), "sgd", dict(settings)) for b in (own, same, *whole)]
    data = np.random.RandomState(0)
    x, y = (mx.nd.array(data.randn(8, n), dtype="float64") for n in (4, 2))
    for _ in range(3):
        with mx.autograd.record():
            loss = ((halves[1](halves[0](own(x))) - y) ** 2).sum()
            want = ((whole[1](whole[0](same(x))) - y) ** 2).sum()
        mx.autograd.backward([loss])
        mx.autograd.backward([want])
        np.testing.assert_allclose(loss.asnumpy(), want.asnumpy(), rtol=1e-12, atol=1e-14)
        for half in halves:
            half.step(8)
        for trainer in trainers:
            trainer.step(8)
    for a, b in zip(halves, whole, strict=True):
        found = a.parameters()
        for name, param in b.collect_params_with_prefix().items():
            np.testing.assert_allclose(found[name].asnumpy(), param.data().asnumpy(), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(own.weight.data().asnumpy(), same.weight.data().asnumpy(), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(halves[0](same(x)).asnumpy(), whole[0](same(x)).asnumpy(), rtol=1e-12, atol=1e-14)
if len(sys.argv) < 2:
    rpc.stop()
    print("finished", p.rank(), flush=True)
elif p.rank() == 0:
    expect(mx.base.MXNetError, "process 1", "die")
    print("told", flush=True)
    os._exit(7)
else:
    time.sleep(60)
