"""Small programs whose inputs come in sizes never met before: milliseconds of CPU time for each new one.

python benchmarks/shapes.py dualmx      # also with DUALMX_TIER=numpy
python benchmarks/shapes.py mxnet       # by an interpreter that has it
python benchmarks/shapes.py jax
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable

SIZES = range(3, 23)


def arrays(name: str) -> tuple[Callable[[int], object], Callable[[int], object]]:
    """A program of MXNet's on arrays of n rows, and one with its gradient."""
    if name == "mxnet":
        import mxnet as mx  # type: ignore[import-not-found]
    else:
        import dualmx as mx
    weight = mx.nd.ones((8, 4))
    weight.attach_grad()

    def gradient(n: int) -> object:
        with mx.autograd.record():
            loss = mx.nd.relu(mx.nd.dot(mx.nd.ones((n, 8)), weight)).sum()
        loss.backward()
        return weight.grad.asnumpy()

    return lambda n: (mx.nd.ones((n, 3)) * 2 + 1).sum(axis=0).asnumpy(), gradient


def functions() -> tuple[Callable[[int], object], Callable[[int], object]]:
    """The same, jitted by hand."""
    import jax
    import jax.numpy as jnp

    weight = jnp.ones((8, 4))
    forward = jax.jit(lambda x: (x * 2 + 1).sum(0))
    gradient = jax.jit(jax.grad(lambda w, x: jnp.maximum(x @ w, 0).sum()))
    return lambda n: forward(jnp.ones((n, 3))).tolist(), lambda n: gradient(weight, jnp.ones((n, 8))).tolist()


def main(name: str) -> None:
    """Print the medians as JSON."""
    medians = {}
    for label, program in zip(("forward", "gradient"), functions() if name == "jax" else arrays(name), strict=True):
        program(2)
        times = []
        for n in SIZES:
            began = time.process_time()
            program(n)
            times.append(time.process_time() - began)
        medians[label] = statistics.median(times) * 1e3
    print(json.dumps(medians))


if __name__ == "__main__":
    main(sys.argv[1])
