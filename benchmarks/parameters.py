"""Training steps of many small layers, beside a step that is jitted by hand and computes the same.

python benchmarks/parameters.py LAYERS hybrid|imperative|jax|all

`all` lets them take turns in one process. Printed are, as JSON, seconds of the first step, the memory that the process
took in MB, and milliseconds of a warm step: medians of wall and CPU time.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

UNITS, BATCH, RATE, MOMENTUM = 16, 16, 0.01, 0.9
TURNS, STEPS = 15, 10


def data() -> tuple[np.ndarray, np.ndarray]:
    """A batch and its targets."""
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal((BATCH, UNITS)).astype(np.float32) for _ in range(2))  # type: ignore[return-value]


def gluon_step(layers: int, is_hybrid: bool) -> Callable[[], Any]:
    """The step of a `gluon.Trainer`; returns the loss."""
    import dualmx as mx

    net = mx.gluon.nn.HybridSequential()
    for _ in range(layers):
        net.add(mx.gluon.nn.Dense(UNITS, activation="relu", in_units=UNITS))
    net.initialize(mx.init.Xavier())
    if is_hybrid:
        net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": RATE, "momentum": MOMENTUM})
    loss_of = mx.gluon.loss.L2Loss()
    x, y = map(mx.nd.array, data())

    def step() -> Any:
        with mx.autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(BATCH)
        return loss

    return lambda: step().buffer


def jax_step(layers: int) -> Callable[[], Any]:
    """The same with `jax.jit`, parameters and momenta donated; returns the loss."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    bound = (6 / (2 * UNITS)) ** 0.5
    params = [
        (jnp.array(rng.uniform(-bound, bound, (UNITS, UNITS)).astype(np.float32)), jnp.zeros(UNITS))
        for _ in range(layers)
    ]
    momenta = jax.tree.map(jnp.zeros_like, params)
    x, y = map(jnp.array, data())

    def loss_of(params: Any, x: Any, y: Any) -> tuple[Any, Any]:
        for weight, bias in params:
            x = jax.nn.relu(x @ weight.T + bias)
        loss = ((x - y) ** 2).mean(1) / 2
        return loss.sum(), loss

    def update(params: Any, momenta: Any, x: Any, y: Any, rate: Any) -> tuple[Any, Any, Any]:
        grads, loss = jax.grad(loss_of, has_aux=True)(params, x, y)
        momenta = jax.tree.map(lambda m, g: MOMENTUM * m - rate * g / BATCH, momenta, grads)
        return jax.tree.map(lambda p, m: p + m, params, momenta), momenta, loss

    jitted = jax.jit(update, donate_argnums=(0, 1))

    def step() -> Any:
        nonlocal params, momenta
        params, momenta, loss = jitted(params, momenta, x, y, RATE)
        return loss

    return step


def times_of(step: Callable[[], Any], steps: int) -> tuple[float, float]:
    """Milliseconds of one step, wall and CPU."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(steps - 1):
        step()
    np.asarray(step())
    return (time.perf_counter() - wall) / steps * 1e3, (time.process_time() - cpu) / steps * 1e3


def main(layers: int, kind: str) -> None:
    """Print the figures as JSON."""
    makers: dict[str, Callable[[], Callable[[], Any]]] = {
        "hybrid": lambda: gluon_step(layers, True),
        "imperative": lambda: gluon_step(layers, False),
        "jax": lambda: jax_step(layers),
    }
    names = list(makers) if kind == "all" else [kind]
    found: dict[str, dict[str, float]] = {}
    steps = {}
    for name in names:
        step = steps[name] = makers[name]()
        wall, cpu = time.perf_counter(), time.process_time()
        np.asarray(step())
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        found[name] = {"first_step": wall, "first_step_cpu": cpu}
        times_of(step, 5)
        found[name]["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    turns: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for _ in range(TURNS):
        for name in names:
            turns[name].append(times_of(steps[name], STEPS))
    for name, pairs in turns.items():
        found[name]["step"], found[name]["step_cpu"] = (statistics.median(t) for t in zip(*pairs, strict=True))
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
