"""What `MXNET_BACKWARD_DO_MIRROR=1` saves, and what it costs: a training step of ResNet-18 with it and without.

python -m benchmarks.mirrored

Prints the memory of what lies between the operations of the compiled step, and the median time of steps in turns.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

import numpy as np

import dualmx as mx
from dualmx.compile.events import CompileEvent, Listener, listeners

ROWS, SIDE = 16, 160
TURNS = 12


class Largest(Listener):
    """Notes the most bytes that a compiled program needs for what lies between its operations."""

    bytes = 0

    def compiled(self, compilation: CompileEvent) -> None:
        self.bytes = max(self.bytes, compilation.compiled.memory_analysis().temp_size_in_bytes)


def made() -> Callable[[], None]:
    """Return a training step of a new network."""
    mx.random.seed(0)
    net = mx.gluon.model_zoo.vision.resnet18_v1(classes=10)
    net.initialize()
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.001})
    x = mx.nd.array(np.random.RandomState(0).rand(ROWS, 3, SIDE, SIDE))

    def step() -> None:
        with mx.autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        trainer.step(ROWS)
        loss.wait_to_read()

    return step


def main() -> None:
    """Measure and print."""
    os.environ["DUALMX_TIER"] = "xla"
    steps, sizes = [], []
    for mirror in "01":
        os.environ["MXNET_BACKWARD_DO_MIRROR"] = mirror
        step, largest = made(), Largest()
        listeners.append(largest)
        for _ in range(3):
            step()
        listeners.remove(largest)
        steps.append(step)
        sizes.append(largest.bytes / 1e6)
    times: list[list[float]] = [[], []]
    for _ in range(TURNS):
        for step, own in zip(steps, times, strict=True):
            began = time.perf_counter()
            step()
            own.append(time.perf_counter() - began)
    for mirror, size, own in zip("01", sizes, times, strict=True):
        print(f"MXNET_BACKWARD_DO_MIRROR={mirror}: {size:.0f} MB, {1e3 * statistics.median(own):.0f} ms")


if __name__ == "__main__":
    main()
