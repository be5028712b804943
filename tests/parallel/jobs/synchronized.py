"""One of two processes with two devices each, which normalize by the statistics of all; argv: folder for results."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")

import numpy as np

import dualmx as mx

SIZES = [3, 3, 4, 4]  # rows of the batches of all devices, in order


def network(ctx: list[mx.Context]) -> tuple[mx.gluon.Block, mx.gluon.Trainer]:
    net = mx.gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        for channels in (4, 3):
            net.add(mx.gluon.nn.Dense(channels, in_units=5 if channels == 4 else 4, flatten=False))
            net.add(mx.gluon.contrib.nn.SyncBatchNorm(in_channels=channels))
    net.cast("float64")
    net.initialize(ctx=ctx)
    draw = np.random.RandomState(3)
    for p in net.collect_params().values():
        if p.grad_req != "null":
            p.set_data(mx.nd.array(draw.randn(*p.shape), dtype="float64"))
    settings = {"learning_rate": 0.1, "momentum": 0.9}
    return net, mx.gluon.Trainer(net.collect_params(), "sgd", settings, kvstore="collective" if len(ctx) > 1 else None)


def train(ctx: list[mx.Context], mine: list[slice], hybridize: bool) -> list[np.ndarray]:
    net, trainer = network(ctx)
    if hybridize:
        net.hybridize()
    draw = np.random.RandomState(0)
    for _ in range(3):
        x, y = draw.randn(sum(SIZES), 5), draw.randn(sum(SIZES), 3)
        parts = [
            tuple(mx.nd.array(v[s], ctx=c, dtype="float64") for v in (x, y)) for c, s in zip(ctx, mine, strict=True)
        ]
        with mx.autograd.record():
            losses = [((net(a) - b) ** 2).sum() for a, b in parts]
        mx.autograd.backward(losses)
        trainer.step(sum(SIZES))
    return [p.data(ctx[0]).asnumpy() for p in net.collect_params().values()]


if __name__ == "__main__":
    mx.parallel.init()
    rank = mx.parallel.rank()
    ends = np.cumsum([0, *SIZES])
    own = [slice(*ends[k : k + 2]) for k in (2 * rank, 2 * rank + 1)]
    for hybridize in (False, True):
        found = train([mx.cpu(0), mx.cpu(1)], own, hybridize)
        np.savez(f"{sys.argv[1]}/{hybridize}-{rank}.npz", *found)
    print("finished", rank, flush=True)
