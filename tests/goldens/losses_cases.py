"""The losses of 20 training steps, in the three ways of MXNet."""

from __future__ import annotations

from typing import Any

from benchmarks.loops import GluonLoop, ModuleLoop
from benchmarks.networks import batches

# Images are scaled down so that training is smooth: a chaotic start would amplify rounding beyond any comparison.
STEPS, SIZE, SCALE = 20, 32, 0.25


def losses(loop):
    """Mean loss of each step."""
    found = []
    for _ in range(STEPS):
        loop.step()
        found.append(loop.loss())
    return found


def record(mx: Any) -> Any:
    """All networks in MXNet's three ways of running them."""
    recorded = {"mxnet": mx.__version__, "steps": STEPS, "batch": SIZE, "scale": SCALE}
    for network in ("mlp", "lenet"):
        data = [(SCALE * x, y) for x, y in batches(network, SIZE)[:4]]
        recorded[network] = {
            "imperative": losses(GluonLoop(mx, network, data, hybrid=False)),
            "hybrid": losses(GluonLoop(mx, network, data, hybrid=True)),
            "symbolic": losses(ModuleLoop(mx, network, data)),
        }
    return recorded
