"""One of the processes that share a mesh; argv: a folder for results, and what to do."""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path

import numpy as np

import dualmx as mx
from dualmx.gluon import nn, parallel

folder, what = Path(sys.argv[1]), sys.argv[2]
if what != "alone":
    mx.parallel.init(backend="xla")
rank, size = mx.parallel.rank(), mx.parallel.size()


def small() -> None:
    """The same numbers as in one process; different seeds here must not matter."""
    mesh = mx.parallel.Mesh({"model": size})
    mx.random.seed(rank)
    net = nn.HybridSequential()
    net.add(parallel.ColumnParallelDense(8, activation="tanh", in_units=5), parallel.RowParallelDense(2, in_units=8))
    net.cast("float64")
    net.initialize(ctx=mesh)
    net.hybridize()
    first = net[0].weight.data().asnumpy()
    values = np.random.RandomState(1)
    for p in net.collect_params().values():
        p.set_data(mx.nd.array(values.randn(*p.shape), dtype="float64"))
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    data = np.random.RandomState(0)
    x, y = (mx.nd.array(data.randn(8, n), dtype="float64", ctx=mesh) for n in (5, 2))
    for _ in range(3):
        with mx.autograd.record():
            loss = ((net(x) - y) ** 2).sum()
        loss.backward()
        trainer.step(8)
    assert set(mx.parallel.device_bytes(net[0].weight.data()).values()) == {8 * 5 * 8 // size}
    net.save_parameters(str(folder / f"{rank}.params"))
    with mesh:
        drawn = mx.nd.random.uniform(shape=(4,)).asnumpy()
    rows = mx.parallel.shard(np.full((2, 3), rank, "f"), ("model",), mesh, local=True)
    assert rows.shape == (2 * size, 3) and rows.asnumpy()[:, 0].tolist() == [0.0, 0.0, 1.0, 1.0]
    moved = mx.parallel.shard(rows.T.copy(), (None, "model"))
    assert moved.as_in_context(mx.cpu(0)).asnumpy()[0].tolist() == [0.0, 0.0, 1.0, 1.0]
    weights = [p.data().asnumpy() for p in net.collect_params().values()]
    np.savez(folder / f"{rank}.npz", *weights, first=first, drawn=drawn)


LIMIT = 900 << 20


def taken() -> int:
    """Bytes of memory that count for the limit."""
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmData")) * 1024


def large() -> None:
    """Parameters, gradients and momenta of 576 MiB, which with what a step needs are more than the limit."""
    mesh = mx.parallel.Mesh({"model": size})
    mx.nd.ones((1,), ctx=mesh).asnumpy()
    used = taken()
    if what != "alone":
        resource.setrlimit(resource.RLIMIT_DATA, (used + LIMIT, resource.RLIM_INFINITY))
    net = nn.HybridSequential()
    for _ in range(12):
        net.add(parallel.ColumnParallelDense(2048, in_units=1024, activation="relu", use_bias=False))
        net.add(parallel.RowParallelDense(1024, in_units=2048, use_bias=False))
    net.initialize(mx.init.Xavier(), ctx=mesh)
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01, "momentum": 0.9})
    x = mx.nd.ones((4, 1024), ctx=mesh)
    for _ in range(2):
        with mx.autograd.record():
            loss = (net(x) ** 2).mean()
        loss.backward()
        trainer.step(1)
    assert np.isfinite(loss.asscalar())
    held = [(p.data(), p.grad()) for p in net.collect_params().values()], trainer.updaters[0].states
    (bytes_here,) = mx.parallel.device_bytes(held).values()
    assert bytes_here == (576 << 20) // size
    print(f"above the limit: {taken() - used > LIMIT}", flush=True)


def lost() -> None:
    """The second process dies; the first one is told."""
    mesh = mx.parallel.Mesh({"model": size})
    x = mx.parallel.shard(np.ones((size, 4), "f"), ("model",), mesh)
    for step in range(10**6):
        if rank == 1 and step == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            assert (x * step).sum().asscalar() == 4 * size * step
        except mx.base.MXNetError as e:
            print(f"told: {e}", flush=True)
            os._exit(7)


{"small": small, "large": large, "alone": large, "lost": lost}[what]()
print("finished", rank, flush=True)
