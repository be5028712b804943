"""A training step of an unrolled LSTM: the first one and later ones, in seconds of CPU time.

python benchmarks/unrolled.py dualmx STEPS   # also with DUALMX_TIER=xla
python benchmarks/unrolled.py mxnet STEPS    # by an interpreter that has it
python benchmarks/unrolled.py jax STEPS      # unrolled by hand
python benchmarks/unrolled.py scan STEPS     # written with lax.scan
python benchmarks/unrolled.py layers LAYERS  # dense layers as they are, and as a scan over their stacked weights
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

BATCH, SIZE, WARM = 32, 64, 15


def arrays(name: str, n_steps: int) -> Callable[[], object]:
    """A hybridized cell of MXNet's, unrolled, with SGD."""
    if name == "mxnet":
        import mxnet as mx  # type: ignore[import-not-found]
    else:
        import dualmx as mx

    class Net(mx.gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope():
                self.cell = mx.gluon.rnn.LSTMCell(SIZE, input_size=SIZE)

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return self.cell.unroll(n_steps, x, layout="NTC", merge_outputs=True)[0]

    net = Net()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    x = mx.nd.array(np.random.rand(BATCH, n_steps, SIZE))

    def step() -> None:
        with mx.autograd.record():
            loss = (net(x) ** 2).mean()
        loss.backward()
        trainer.step(1)
        mx.nd.waitall()

    return step


def by_hand(n_steps: int, scanned: bool) -> Callable[[], object]:
    """The same as a jitted JAX function."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    shapes = [(SIZE, 4 * SIZE), (SIZE, 4 * SIZE), (4 * SIZE,)]
    weights: Any = [jnp.asarray(rng.normal(size=s) * 0.1, jnp.float32) for s in shapes]
    x = jnp.asarray(rng.random((BATCH, n_steps, SIZE)), jnp.float32)

    def cell(weights: Any, state: Any, x: Any) -> Any:
        w, u, b = weights
        h, c = state
        i, f, g, o = jnp.split(x @ w + h @ u + b, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    def loss(weights: Any, x: Any) -> Any:
        state = (jnp.zeros((BATCH, SIZE)), jnp.zeros((BATCH, SIZE)))
        if scanned:
            _, out = jax.lax.scan(lambda s, x: cell(weights, s, x), state, x.swapaxes(0, 1))
            return (out**2).mean()
        outs = []
        for t in range(n_steps):
            state, h = cell(weights, state, x[:, t])
            outs.append(h)
        return (jnp.stack(outs, 1) ** 2).mean()

    @jax.jit
    def update(weights: Any, x: Any) -> Any:
        return [w - 0.1 * g for w, g in zip(weights, jax.grad(loss)(weights, x), strict=True)]

    def step() -> None:
        nonlocal weights
        weights = jax.block_until_ready(update(weights, x))

    return step


def layers(n_layers: int, stacked: bool) -> Callable[[], object]:
    """Dense layers of one size with their updates, as they are or as a scan over weights that are stacked first."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    weights: Any = [jnp.asarray(rng.normal(size=(SIZE, SIZE)) / 8, jnp.float32) for _ in range(n_layers)]
    biases: Any = [jnp.zeros(SIZE) for _ in range(n_layers)]
    x = jnp.asarray(rng.random((BATCH, SIZE)), jnp.float32)

    def layer(x: Any, parameters: Any) -> Any:
        return jax.nn.relu(x @ parameters[0] + parameters[1]), None

    def loss(weights: Any, biases: Any) -> Any:
        if stacked:
            return (jax.lax.scan(layer, x, (jnp.stack(weights), jnp.stack(biases)))[0] ** 2).mean()
        h = x
        for parameters in zip(weights, biases, strict=True):
            h, _ = layer(h, parameters)
        return (h**2).mean()

    def update(weights: Any, biases: Any) -> Any:
        return jax.tree.map(lambda p, g: p - 0.1 * g, (weights, biases), jax.grad(loss, (0, 1))(weights, biases))

    jitted = jax.jit(update, donate_argnums=(0, 1))

    def step() -> None:
        nonlocal weights, biases
        weights, biases = jax.block_until_ready(jitted(weights, biases))

    return step


def measure(step: Callable[[], object]) -> dict[str, float]:
    """Return the seconds of the first step, and the median of later ones."""
    times = []
    for _ in range(WARM + 2):
        began = time.process_time()
        step()
        times.append(time.process_time() - began)
    return {"first": times[0], "later": statistics.median(times[2:])}


def main(name: str, count: int) -> None:
    """Print the times as JSON."""
    if name == "layers":
        steps = {"as they are": layers(count, False), "scan": layers(count, True)}
        print(json.dumps({label: measure(step) for label, step in steps.items()}))
    else:
        print(json.dumps(measure(by_hand(count, name == "scan") if name in ("jax", "scan") else arrays(name, count))))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
