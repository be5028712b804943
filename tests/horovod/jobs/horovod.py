"""One of two processes that exchange and train in the words of Horovod."""

from __future__ import annotations

import numpy as np

import dualmx as mx
import dualmx.horovod as hvd

try:
    hvd.rank()
except mx.base.MXNetError as e:
    assert "hvd.init()" in str(e)
else:
    raise AssertionError("not initialized")
hvd.init(process_sets=[hvd.ProcessSet([1])])
r, n = hvd.rank(), hvd.size()
assert (n, hvd.local_size(), hvd.local_rank(), hvd.cross_size()) == (2, 2, r, 1) and hvd.is_homogeneous()

# -- exchanges
x = mx.nd.array([1.0 + r, 2.0 + r])
assert hvd.allreduce(x).asnumpy().tolist() == [1.5, 2.5]
assert hvd.allreduce(x, average=False, name="x", priority=-1).asnumpy().tolist() == [3.0, 5.0]
assert hvd.allreduce(x, op=hvd.Max, prescale_factor=2.0).asnumpy().tolist() == [4.0, 6.0]
assert hvd.allreduce(x, op=hvd.Product, postscale_factor=0.5).asnumpy().tolist() == [1.0, 3.0]
assert hvd.allreduce(mx.nd.array([3], dtype="int32"), op=hvd.Sum).asnumpy().tolist() == [6]
a, b = np.array([1.0, 2.0]), np.array([2.0, 3.0])
dot = a @ b
expected = (1 - dot / (2 * a @ a)) * a + (1 - dot / (2 * b @ b)) * b
np.testing.assert_allclose(hvd.allreduce(x, op=hvd.Adasum).asnumpy(), expected, rtol=1e-6)
y = x.copy()
assert hvd.allreduce_(y) is y and y.asnumpy().tolist() == [1.5, 2.5]
many = [mx.nd.full((3,), k + r, dtype=("float32", "float16")[k % 2]) for k in range(4)]
assert [g.asnumpy()[0] for g in hvd.grouped_allreduce(many)] == [0.5, 1.5, 2.5, 3.5]
hvd.grouped_allreduce_(many, op=hvd.Sum)
assert [g.asnumpy()[0] for g in many] == [1.0, 3.0, 5.0, 7.0]
assert hvd.allgather(mx.nd.full((r + 1, 1), r)).asnumpy().ravel().tolist() == [0.0, 1.0, 1.0]
assert [g.shape for g in hvd.grouped_allgather([x, mx.nd.ones((r + 1, 2))])] == [(4,), (3, 2)]
uneven = mx.nd.full((r + 1, 2), r)
uneven.attach_grad()
with mx.autograd.record():
    z = (hvd.allgather(uneven) * mx.nd.array([[1], [10], [100]]) * (r + 1)).sum()
z.backward()
assert uneven.grad.asnumpy().tolist() == ([[3, 3]], [[30, 30], [300, 300]])[r]
assert hvd.broadcast(x, root_rank=1).asnumpy().tolist() == [2.0, 3.0]
hvd.broadcast_(y, 0, name="y")
got, counts = hvd.alltoall(
    mx.nd.array([10.0 * r, 10.0 * r + 1, 10.0 * r + 2]), splits=mx.nd.array([1, 2], dtype="int32")
)
assert got.asnumpy().tolist() == ([0.0, 10.0] if r == 0 else [1.0, 2.0, 11.0, 12.0])
assert counts.asnumpy().tolist() == [r + 1, r + 1] and counts.dtype == np.int32
assert hvd.alltoall(mx.nd.array([r, r])).asnumpy().tolist() == [0.0, 1.0]
assert hvd.reducescatter(x).asnumpy().tolist() == [1.5 + r]
assert [g.asscalar() for g in hvd.grouped_reducescatter([x, x], op=hvd.Sum)] == [3 + 2 * r] * 2
here = mx.np.ones((2,))
for f in (hvd.allreduce, hvd.allgather, hvd.alltoall, hvd.reducescatter, lambda a: hvd.broadcast(a, 0)):
    assert type(f(here)) is mx.np.ndarray
assert hvd.broadcast_object({"rank": r}, root_rank=1) == {"rank": 1} and hvd.allgather_object(r) == [0, 1]
pair = hvd.add_process_set([0, 1])
assert (pair.process_set_id, pair.rank(), pair.size(), pair.included()) == (2, r, 2, True)
assert hvd.allreduce(x, process_set=pair).asnumpy().tolist() == [1.5, 2.5]
assert hvd.remove_process_set(pair) and not hvd.remove_process_set(hvd.global_process_set)
for call, said in (
    (lambda: hvd.allreduce(x, process_set=pair), "was not added"),
    (lambda: hvd.allreduce(x, average=True, op=hvd.Sum), "expected one of them"),
    (lambda: hvd.allreduce(x, op="mean"), "op='mean'"),
    (lambda: hvd.broadcast(x, root_rank=2), "root_rank=2"),
    (lambda: hvd.alltoall(x, splits=[0.5, 1.5]), "expected integers"),
):
    try:
        call()
    except ValueError as e:
        assert said in str(e), e
    else:
        raise AssertionError(said)

# -- training: as one process with the rows of both
draw = np.random.RandomState(0)
X, Y = draw.randn(12, 5), draw.randn(12, 1)


def float64(a: np.ndarray) -> mx.nd.NDArray:
    return mx.nd.array(a, dtype="float64")


def network(deferred: bool = False) -> mx.gluon.nn.HybridSequential:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(4, activation="tanh", in_units=0 if deferred else 5))
    net.add(mx.gluon.nn.Dense(1, in_units=0 if deferred else 4))
    net.cast("float64")
    net.initialize(mx.init.Xavier())
    net.hybridize()
    return net


def train(net: mx.gluon.Block, trainer: mx.gluon.Trainer, rows: slice) -> None:
    for _ in range(3):
        with mx.autograd.record():
            loss = mx.gluon.loss.L2Loss()(net(float64(X[rows])), float64(Y[rows]))
        loss.backward()
        trainer.step(len(X[rows]))


def values(net: mx.gluon.Block) -> list[np.ndarray]:
    return [p.data().asnumpy() for p in net.collect_params().values()]


settings = {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01}
mine = slice(6 * r, 6 * r + 6)
for deferred in (False, True):
    mx.random.seed(7 + r)
    net = network(deferred)
    hvd.broadcast_parameters(net.collect_params(), root_rank=0)
    net(float64(X[:1]))
    start = values(net)
    assert all(np.array_equal(*pair) for pair in zip(*hvd.allgather_object(start), strict=True))
    one = network()
    for p, v in zip(one.collect_params().values(), start, strict=True):
        p.set_data(float64(v))
    train(net, hvd.DistributedTrainer(net.collect_params(), "sgd", settings, gradient_predivide_factor=2.0), mine)
    train(one, mx.gluon.Trainer(one.collect_params(), "sgd", settings), slice(0, 12))
    for p, q in zip(values(net), values(one), strict=True):
        np.testing.assert_allclose(p, q, rtol=1e-11, atol=1e-12)

for name in ("sgd", "adam", "lamb", "signum"):
    optimizer = hvd.DistributedOptimizer(mx.optimizer.create(name, learning_rate=0.1))
    assert isinstance(optimizer, type(mx.optimizer.create(name)))
    updater, alone = mx.optimizer.get_updater(optimizer), mx.optimizer.get_updater(mx.optimizer.create(name))
    alone.optimizer.lr = 0.1
    grads = [float64(draw.randn(3)) for _ in range(2)]
    both = [g * (1 + r) for g in grads]
    w, v = [float64(np.ones(3)) for _ in grads], [float64(np.ones(3)) for _ in grads]
    for _ in range(2):
        updater([0, 1], [g.copy() for g in both], w)
        alone([0, 1], [g * 1.5 for g in grads], v)
    for p, q in zip(w, v, strict=True):
        np.testing.assert_allclose(p.asnumpy(), q.asnumpy(), rtol=1e-10)

symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
mod = mx.mod.Module(mx.sym.LinearRegressionOutput(symbol, mx.sym.var("y")), label_names=["y"])
mod.bind([("data", (6, 5))], [("y", (6, 2))])
mx.random.seed(3 + r)
mod.init_params(mx.init.Xavier())
arg, aux = mod.get_params()
hvd.broadcast_parameters(arg, root_rank=0)
hvd.broadcast_parameters(aux, root_rank=0)
mod.set_params(arg, aux)
mod.init_optimizer(kvstore=None, optimizer=hvd.DistributedOptimizer(mx.optimizer.SGD(learning_rate=0.1)))
for _ in range(2):
    mod.forward_backward(mx.io.DataBatch([mx.nd.array(X[mine])], [mx.nd.array(X[mine, :2])]))
    mod.update()
found = hvd.allgather_object({k: v.asnumpy() for k, v in mod.get_params()[0].items()})
assert all(np.array_equal(found[0][k], found[1][k]) for k in found[0])

small, kind = hvd.Compression.fp16.compress(mx.np.ones((2,)))
assert small.dtype == "float16" and hvd.Compression.fp16.decompress(small, kind).dtype == "float32"
half = network()
trainer = hvd.DistributedTrainer(half.collect_params(), "sgd", compression=hvd.Compression.fp16)
with mx.autograd.record():
    loss = (half(float64(X[mine])) ** 2).mean()
loss.backward()
own = [p.grad().asnumpy() for p in half.collect_params().values()]
trainer.allreduce_grads()
for p, parts in zip(half.collect_params().values(), zip(*hvd.allgather_object(own), strict=True), strict=True):
    np.testing.assert_allclose(p.grad().asnumpy(), sum(parts), rtol=2e-3, atol=1e-3)
hvd.shutdown()
assert not hvd.is_initialized()
print("finished", flush=True)
