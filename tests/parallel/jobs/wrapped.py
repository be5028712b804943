"""One of two processes with a `DistributedDataParallel`; argv: coordinator, rank."""

from __future__ import annotations

import sys

import numpy as np

import dualmx as mx
from dualmx.gluon import nn
from dualmx.gluon.parallel import DistributedDataParallel

mx.parallel.init(sys.argv[1], 2, int(sys.argv[2]))
rank = mx.parallel.rank()
draw = np.random.RandomState(0)
X, Y = draw.randn(12, 5), draw.randn(12, 2)


def float64(a: np.ndarray) -> mx.nd.NDArray:
    return mx.nd.array(a, dtype="float64")


def network(seed: int, grad_req: str = "write") -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="tanh", in_units=5), nn.BatchNorm(in_channels=4), nn.Dense(2, in_units=4))
    net.cast("float64")
    net.initialize()
    net.collect_params().setattr("grad_req", grad_req)
    values = np.random.RandomState(seed)
    for p in net.collect_params().values():
        if "weight" in p.name:
            p.set_data(float64(values.randn(*p.shape)))
    for p in net.collect_params(".*running").values():
        p.grad_req = "null"
    return net


def trainer_of(net: mx.gluon.Block, kvstore: str | None = None) -> mx.gluon.Trainer:
    return mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9}, kvstore=kvstore)


def mean_loss(net: mx.gluon.Block, rows: slice) -> mx.nd.NDArray:
    return ((net(float64(X[rows])) - float64(Y[rows])) ** 2).mean()


def weights(net: mx.gluon.Block) -> list[np.ndarray]:
    return [p.data().asnumpy() for p in net.collect_params().values()]


def alike(net: mx.gluon.Block) -> None:
    for p in net.collect_params().values():
        both = mx.parallel.all_gather(p.data()).asnumpy()
        assert both[0].tobytes() == both[1].tobytes(), p.name


def without_statistics(net: nn.HybridSequential) -> nn.HybridSequential:
    """The same network with normalization by fixed statistics, so that batches may be cut."""
    net[1]._kwargs["use_global_stats"] = True
    return net


mine, all_rows = slice(6 * rank, 6 * rank + 6), slice(0, 12)

# -- as one process with the rows of both; small buckets
one, net = without_statistics(network(1)), without_statistics(network(1 + rank))
ddp = DistributedDataParallel(net, bucket_cap_mb=1e-4)
alike(net)
ours, whole = trainer_of(ddp), trainer_of(one)
for _ in range(3):
    for model, trainer, rows in ((ddp, ours, mine), (one, whole, all_rows)):
        with mx.autograd.record():
            loss = mean_loss(model, rows)
        loss.backward()
        trainer.step(1)
for a, b in zip(weights(net), weights(one), strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)

# -- moving averages are those of process 0
net = network(1)
ddp = DistributedDataParallel(net)
with mx.autograd.record():
    loss = mean_loss(ddp, mine)
loss.backward()
alike(net)

# -- gradients that are added up in no_sync
one, net = without_statistics(network(1)), without_statistics(network(1, "add"))
ddp = DistributedDataParallel(net)
ours, whole = trainer_of(ddp), trainer_of(one)
for _ in range(2):
    with ddp.no_sync(), mx.autograd.record():
        loss = mean_loss(ddp, slice(6 * rank, 6 * rank + 3)) / 2
    loss.backward()
    with mx.autograd.record():
        loss = mean_loss(ddp, slice(6 * rank + 3, 6 * rank + 6)) / 2
    loss.backward()
    ours.step(1)
    net.collect_params().zero_grad()
    with mx.autograd.record():
        loss = mean_loss(one, all_rows)
    loss.backward()
    whole.step(1)
for a, b in zip(weights(net), weights(one), strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)

# -- loops of different lengths
net = without_statistics(network(1 + rank))
ddp = DistributedDataParallel(net)
trainer = trainer_of(ddp)
with ddp.join(divide_by_initial_world_size=False):
    for _ in range(2 + 3 * rank):
        with mx.autograd.record():
            loss = mean_loss(ddp, mine)
        loss.backward()
        trainer.step(1)
alike(net)
try:
    with ddp.join(throw_on_early_termination=True):
        for _ in range(1 + rank):
            with mx.autograd.record():
                loss = mean_loss(ddp, mine)
            loss.backward()
except mx.base.MXNetError as e:
    assert "process 0 has no more batches" in str(e)
else:
    raise AssertionError("nobody was told")

# -- what would exchange twice, or not at all
net = network(1)
ddp = DistributedDataParallel(net)
trainer = trainer_of(ddp, "collective")
with mx.autograd.record():
    loss = mean_loss(ddp, mine)
try:
    loss.backward()
except mx.base.MXNetError as e:
    assert "kvstore=None" in str(e)
else:
    raise AssertionError("nobody was told")
net = network(1)
ddp = DistributedDataParallel(net)
with mx.autograd.record():
    loss = net[0](float64(X)).sum() + 0 * ddp(float64(X)).detach().sum()
try:
    loss.backward()
except mx.base.MXNetError as e:
    assert "find_unused_parameters" in str(e)
else:
    raise AssertionError("nobody was told")
ddp = DistributedDataParallel(net, find_unused_parameters=True)
with mx.autograd.record():
    y = ddp(float64(X))
    loss = (net[0](float64(X)) if rank else y).sum()
loss.backward()
alike(net)

# -- one process has ended its loop, and nobody said that this may happen
ddp = DistributedDataParallel(without_statistics(network(1)))
print("finished", rank, flush=True)
if rank == 0:
    with mx.autograd.record():
        loss = mean_loss(ddp, mine)
    try:
        loss.backward()
    except mx.base.MXNetError as e:
        print(e, flush=True)
