"""One of two processes that train by collectives; writes what it ends with to the folder in argv[1]."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import dualmx as mx
from dualmx.kvstore import collective

kv = mx.kv.create("collective")
joint: list[Any] = []  # steps that were one program of both processes
run = collective._XlaProcesses.run
collective._XlaProcesses.run = lambda self, work: (joint.append(work), run(self, work))[1]  # type: ignore[method-assign]
rank, workers = kv.rank, kv.num_workers
assert workers == 2 and kv.type == "collective"
assert mx.parallel.rank() == rank and mx.parallel.size() == 2

# -- plain exchanges
total = mx.parallel.all_reduce([mx.nd.full((2,), rank + 1.0), mx.nd.array([rank], dtype="int32")])
assert [a.asnumpy().tolist() for a in total] == [[3.0, 3.0], [1]]
assert mx.parallel.all_gather(mx.nd.array([rank, 5.0])).asnumpy().tolist() == [[0.0, 5.0], [1.0, 5.0]]
assert mx.parallel.broadcast(mx.nd.full((2, 2), rank), root=1).asnumpy().tolist() == [[1.0, 1.0]] * 2

# -- the store
kv.init([1, 2], [mx.nd.full((2,), 10.0 + rank), mx.nd.full((3,), rank, dtype="float64")])
out = [mx.nd.zeros((2,)), mx.nd.zeros((3,), dtype="float64")]
kv.pull([1, 2], out=out)
assert [a.asnumpy()[0] for a in out] == [10.0, 0.0]
kv.push([1, 2], [[mx.nd.ones((2,)), mx.nd.ones((2,))], mx.nd.full((3,), rank + 1.0, dtype="float64")])
kv.pull([1, 2], out=out)
assert [a.asnumpy()[0] for a in out] == [4.0, 3.0]

# -- processes that mean other keys: all are told, nothing is stored, and the store works as before
one = mx.nd.ones((2,))
dense, rows = mx.nd.ones((3, 2)), mx.nd.ones((3, 2)).tostype("row_sparse")
kv.init([3, 4, 5], [one, dense, dense])
summing = mx.kv.create("horovod")
for call in (
    lambda: kv.push([1, 3][rank], one),
    lambda: kv.push([4, 5][rank], rows),
    lambda: kv.init([6, 7][rank], one),
    lambda: kv.init(6, [one, dense][rank]),
    lambda: kv.set_optimizer([mx.optimizer.SGD(), mx.optimizer.Adam()][rank]),
    lambda: summing.pushpull("ab"[rank], one),
):
    try:
        call()
    except mx.MXNetError as e:
        assert "the processes disagree: process " in str(e), e
    else:
        raise AssertionError("not told")
kv.init(6, one)
kv.push([1, 6], [one, one])
kv.pull([1, 6], out=[one, out[0]])
assert one.asnumpy().tolist() == out[0].asnumpy().tolist() == [2.0, 2.0]
kv.init(8, mx.nd.full((3, 2), rank + 1.0).tostype("row_sparse"))
into = mx.nd.sparse.zeros("row_sparse", (3, 2))
kv.row_sparse_pull(8, out=into, row_ids=mx.nd.array([0, 2]))
assert into.asnumpy().tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]
device = mx.kv.create("dist_sync_device")
assert device.type == "dist_sync_device" and type(device) is type(kv)


def train(update_on_kvstore: bool) -> list[np.ndarray]:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(4, activation="tanh", in_units=5), mx.gluon.nn.Dense(2, in_units=4))
    net.cast("float64")
    net.initialize()
    values = np.random.RandomState(1 + rank)  # the values of rank 0 win
    for p in net.collect_params().values():
        p.set_data(mx.nd.array(values.randn(*p.shape), dtype="float64"))
    net.hybridize()
    settings = {"learning_rate": 0.1, "momentum": 0.9}
    trainer = mx.gluon.Trainer(
        net.collect_params(), "sgd", settings, kvstore="collective", update_on_kvstore=update_on_kvstore
    )
    data = np.random.RandomState(0)
    x, y = data.randn(8, 5), data.randn(8, 2)
    mine = slice(4 * rank, 4 * rank + 4)
    for step in range(4):
        with mx.autograd.record():
            error = net(mx.nd.array(x[mine], dtype="float64")) - mx.nd.array(y[mine], dtype="float64")
            loss = (error * error).sum()
        loss.backward()
        if rank == 0 and step == 1:
            loss.asscalar()  # what one process reads does not disturb the others
        trainer.step(8)
    return [p.data().asnumpy() for p in net.collect_params().values()]


folder = Path(sys.argv[1])
for in_store in (True, False):
    np.savez(folder / f"gluon-{in_store}-{rank}.npz", *train(in_store))


def module() -> list[np.ndarray]:
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    mod = mx.mod.Module(mx.sym.LinearRegressionOutput(net, mx.sym.var("label")), label_names=["label"])
    mod.bind([("data", (4, 5))], [("label", (4, 2))])
    values = np.random.RandomState(3)
    shapes = {"fc_weight": (2, 5), "fc_bias": (2,)}
    mod.init_params(arg_params={n: mx.nd.array(values.randn(*s) + rank) for n, s in shapes.items()})
    mod.init_optimizer("collective", "sgd", {"learning_rate": 0.1})
    data = np.random.RandomState(0)
    batch = mx.io.DataBatch([mx.nd.array(data.randn(8, 5)[4 * rank :][:4])], [mx.nd.array(data.randn(8, 2)[:4])])
    for _ in range(3):
        mod.forward_backward(batch)
        mod.update()
    return [a.asnumpy() for a in mod.get_params()[0].values()]


np.savez(folder / f"module-{rank}.npz", *module())


def embedded(store: str | None) -> list[np.ndarray]:
    """Train an embedding with row_sparse gradients; alone by the batches of both processes."""
    net = mx.gluon.nn.Embedding(50, 3, sparse_grad=True)
    net.initialize()
    net.weight.set_data(mx.nd.array(np.random.RandomState(7).randn(50, 3) + (rank if store else 0)))
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, kvstore=store)
    data = np.random.RandomState(1).randint(0, 50, (3, 8))
    for step in range(3):
        x = mx.nd.array(data[step, 4 * rank :][:4] if store else data[step])
        with mx.autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        assert net.weight.grad().stype == "row_sparse"
        trainer.step(8)
    return [net.weight.data().asnumpy()]


for a, b in zip(embedded("collective"), embedded(None), strict=True):
    if rank == 0:
        np.testing.assert_allclose(a, b, rtol=1e-5)
# Where one process has read its loss before the step, and the other has not, there are several programs.
assert len(joint) == (9 if kv.xla_processes is not None else 0), len(joint)
kv.barrier()
print("finished", rank, flush=True)
