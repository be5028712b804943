"""The first step of a network in a fresh process: seconds of CPU and of wall time.

    python -m benchmarks.first_steps LIBRARY NETWORK

LIBRARY is dualmx, jax, or mxnet by an interpreter that has it. Networks are made and initialized before; the step is
the first thing that runs, so that sizes that follow from the data are found in it too.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .networks import batches, unsettled_block
from .parameters import BATCH, UNITS, jax_step
from .workloads import WORKLOADS, WorkloadLoop

Step = Callable[[], Any]
# What each is called, and how many seconds of CPU time it may take; None where nothing is asked.
FIRST_STEPS: dict[str, tuple[str, float | None]] = {
    "lenet": ("LeNet b64", 0.15),
    "words1000": ("language model of 1,000 words, LSTM 2x200", 0.15),
    "resnet18": ("ResNet-18 b16 112x112", 1.2),
    "resnet50": ("ResNet-50 b4", 2.5),
    "densenet40": ("DenseNet-40 b8 32x32, forward", 0.5),
    "dense10": ("Dense x10", 0.1),
    "dense100": ("Dense x100", 0.3),
    "dense500": ("Dense x500", 1.2),
    "lstm": ("language model of 10,000 words, LSTM 2x200", None),
    "transformer": ("transformer", None),
    "widedeep": ("wide table of embeddings", None),
}


def training(
    mx: Any, net: Any, data: Any, labels: Any, optimizer: str, loss: str = "SoftmaxCrossEntropyLoss", **options: Any
) -> Step:
    """A step of `gluon.Trainer` on a network that is made but has not run."""
    net.initialize(mx.init.Xavier())
    loss_of = getattr(mx.gluon.loss, loss)()
    x, y = mx.nd.array(data), mx.nd.array(labels)
    trainer = mx.gluon.Trainer(net.collect_params(), optimizer, options)

    def step() -> None:
        with mx.autograd.record():
            value = loss_of(net(x), y)
        value.backward()
        trainer.step(len(data))

    return step


def lenet(mx: Any) -> Step:
    """LeNet on images of 28x28."""
    images, labels = batches("lenet", 64)[0]
    return training(mx, unsettled_block(mx, "lenet"), images, labels, "sgd", learning_rate=2e-3, momentum=0.9)


def resnet18(mx: Any) -> Step:
    """ResNet-18 of the model zoo."""
    draw = np.random.RandomState(0)
    images, labels = draw.rand(16, 3, 112, 112).astype("float32"), draw.randint(0, 10, 16)
    net = mx.gluon.model_zoo.vision.resnet18_v1(classes=10)
    return training(mx, net, images, labels, "adam", learning_rate=1e-3)


def words1000(mx: Any) -> Step:
    """A language model whose layer of words is small."""
    nn, words, width = mx.gluon.nn, 1000, 200

    class Model(mx.gluon.Block):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(words, width)
            self.cells = mx.gluon.rnn.LSTM(width, 2, input_size=width)
            self.out = nn.Dense(words, in_units=width)
            self.state = [mx.nd.zeros((2, 20, width)) for _ in range(2)]

        def forward(self, x: Any) -> Any:
            y, _ = self.cells(self.words(x), self.state)
            return self.out(y.reshape((-1, width)))

    draw = np.random.RandomState(0)
    text, labels = draw.randint(0, words, (35, 20)), draw.randint(0, words, 700)
    return training(mx, Model(), text, labels, "adam", learning_rate=1e-3)


def densenet40(mx: Any) -> Step:
    """A prediction of a densely connected network: three blocks of twelve convolutions, whose results are joined."""
    nn, growth = mx.gluon.nn, 12

    class Joined(mx.gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.HybridSequential()
            self.body.add(nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(growth, 3, padding=1, use_bias=False))

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return F.concat(x, self.body(x), dim=1)

    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3, padding=1, use_bias=False))
    channels = 16
    for number in range(3):
        net.add(*[Joined() for _ in range(12)], nn.BatchNorm(), nn.Activation("relu"))
        channels += 12 * growth
        if number < 2:
            net.add(nn.Conv2D(channels, 1, use_bias=False), nn.AvgPool2D(2, 2))
    net.add(nn.GlobalAvgPool2D(), nn.Dense(10))
    net.initialize(mx.init.Xavier())
    x = mx.nd.array(np.random.RandomState(0).rand(8, 3, 32, 32))
    return lambda: net(x)


def dense(mx: Any, layers: int) -> Step:
    """Many small layers, hybridized, as in `benchmarks.parameters`."""
    net = mx.gluon.nn.HybridSequential()
    net.add(*[mx.gluon.nn.Dense(UNITS, activation="relu", in_units=UNITS) for _ in range(layers)])
    net.hybridize()
    x, y = np.random.RandomState(0).randn(2, BATCH, UNITS)
    return training(mx, net, x, y, "sgd", "L2Loss", learning_rate=0.01, momentum=0.9)


def hand_written(network: str) -> Step:
    """The step in JAX, for networks that have one."""
    import jax

    if network == "lenet":
        from .hand import Hand

        hand = Hand(network, batches(network, 64))
        return lambda: (hand.step(), hand.sync())
    step = jax_step(_layers(network))
    return lambda: jax.block_until_ready(step())


def has_hand_written(network: str) -> bool:
    """Whether there is a step in JAX."""
    return network == "lenet" or _layers(network) > 0


def _layers(network: str) -> int:
    """How many dense layers a stack of them has, 0 for other networks."""
    count = network.removeprefix("dense")
    return int(count) if count.isdecimal() else 0


def build(library: str, network: str) -> Step:
    """The step, to be followed by waiting for what it computes."""
    if library == "jax":
        return hand_written(network)
    mx = __import__(library)
    mx.random.seed(0)
    if network in WORKLOADS:
        step: Step = WorkloadLoop(mx, network, hybrid=False, is_settled=False).step
    elif _layers(network):
        step = dense(mx, _layers(network))
    else:
        step = {"lenet": lenet, "words1000": words1000, "resnet18": resnet18, "densenet40": densenet40}[network](mx)
    mx.nd.waitall()
    return lambda: (step(), mx.nd.waitall())


def main(library: str, network: str) -> None:
    """Print the times as JSON."""
    step = build(library, network)
    wall, cpu = time.perf_counter(), time.process_time()
    step()
    print(json.dumps({"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}))


if __name__ == "__main__":
    main(*sys.argv[1:])
