"""One of two processes that average weights now and then, and watch that copies stay equal."""

from __future__ import annotations

import numpy as np

import dualmx as mx
from dualmx.gluon.parallel import AccumulatingTrainer, DivergenceCheck

mx.parallel.init()
r = mx.parallel.rank()
draw = np.random.RandomState(0)
X, Y = draw.randn(32, 5), draw.randn(32, 1)


def network(seed: int) -> mx.gluon.nn.Dense:
    mx.random.seed(seed)
    net = mx.gluon.nn.Dense(1, in_units=5, prefix="net_")
    net.cast("float64")
    net.initialize(mx.init.Normal(1))
    return net


def train(net: mx.gluon.Block, trainer: mx.gluon.Trainer, rows: slice) -> None:
    with mx.autograd.record():
        x, y = (mx.nd.array(a[rows], dtype="float64") for a in (X, Y))
        loss = mx.gluon.loss.L2Loss()(net(x), y)
    loss.backward()
    trainer.step(len(X[rows]))


def weights(net: mx.gluon.Block) -> np.ndarray:
    return np.concatenate([p.data().asnumpy().ravel() for p in net.collect_params().values()])


def of_all(net: mx.gluon.Block) -> list[np.ndarray]:
    return mx.parallel.all_gather_object(weights(net))


settings = {"learning_rate": 0.1}
net, one = network(r), network(0)
trainer = AccumulatingTrainer(net.collect_params(), "sgd", settings, accumulate=2, average_every=3)
assert np.array_equal(*of_all(net))
alone = mx.gluon.Trainer(one.collect_params(), "sgd", settings)
copies = [network(0) for _ in range(2)]
trainers = [mx.gluon.Trainer(c.collect_params(), "sgd", settings) for c in copies]
for step in range(6):
    for half in range(2):
        train(net, trainer, slice(16 * r + 8 * half, 16 * r + 8 * half + 8))
    for k, (c, t) in enumerate(zip(copies, trainers, strict=True)):
        train(c, t, slice(16 * k, 16 * k + 16))  # two halves at once are the same update
    if step % 3 == 2:
        mean = sum(weights(c) for c in copies) / 2
        for c in copies:
            at = 0
            for p in c.collect_params().values():
                p.set_data(mx.nd.array(mean[at : at + p.data().size].reshape(p.shape), dtype="float64"))
                at += p.data().size
    found = of_all(net)
    assert np.array_equal(*found) == (step % 3 == 2), step
    np.testing.assert_allclose(weights(net), weights(copies[r]), rtol=1e-12, atol=1e-14)
assert trainer.updates == 6

# -- averaging after every update is the mean gradient, for plain SGD
net, one = network(r), network(0)
trainer = AccumulatingTrainer(net.collect_params(), "sgd", settings, average_every=1)
alone = mx.gluon.Trainer(one.collect_params(), "sgd", settings)
for _ in range(3):
    train(net, trainer, slice(16 * r, 16 * r + 16))
    train(one, alone, slice(0, 32))
np.testing.assert_allclose(weights(net), weights(one), rtol=1e-12, atol=1e-14)
# -- accumulating before gradients are exchanged
net, one = network(r), network(0)
trainer = AccumulatingTrainer(net.collect_params(), "sgd", settings, accumulate=2, kvstore="collective")
alone = mx.gluon.Trainer(one.collect_params(), "sgd", settings)
for _ in range(2):
    for half in range(2):
        with mx.autograd.record():
            rows = slice(16 * r + 8 * half, 16 * r + 8 * half + 8)
            x, y = (mx.nd.array(a[rows], dtype="float64") for a in (X, Y))
            loss = mx.gluon.loss.L2Loss()(net(x), y)
        loss.backward()
        trainer.step(16)  # the rows of both processes
    train(one, alone, slice(0, 32))
np.testing.assert_allclose(weights(net), weights(one), rtol=1e-12, atol=1e-14)

# -- the watch
sentinel = DivergenceCheck(net, every=2)
sentinel.step()
if r == 1:
    net.bias.data()[:] = net.bias.data() + 1e-12
said = ""
try:
    sentinel.step()
except mx.base.MXNetError as e:
    said = str(e)
assert said == "DivergenceSentinel: step 2: parameter 'net_bias' differs in process 1 from process 0", said
net.bias.set_data(mx.parallel.broadcast(net.bias.data()))
sentinel.check()
print("finished", flush=True)
