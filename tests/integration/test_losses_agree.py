"""The three ways of training are one: equal losses from equal weights, and the losses MXNet 1.9.1 gives."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import dualmx as mx
from benchmarks.loops import GluonLoop, ModuleLoop
from benchmarks.networks import batches
from tests.goldens.store import load

GOLDEN = load("losses")
MODES = ("imperative", "hybrid", "symbolic")


@cache
def losses(network: str, mode: str) -> np.ndarray:
    data = [(GOLDEN["scale"] * x, y) for x, y in batches(network, GOLDEN["batch"])[:4]]
    loop = ModuleLoop(mx, network, data) if mode == "symbolic" else GluonLoop(mx, network, data, mode == "hybrid")
    found = []
    for _ in range(GOLDEN["steps"]):
        loop.step()
        found.append(loop.loss())
    return np.array(found)


@pytest.mark.parametrize("network", ("mlp", "lenet"))
@pytest.mark.parametrize("mode", MODES[1:])
def test_modes_agree(network: str, mode: str) -> None:
    np.testing.assert_allclose(losses(network, mode), losses(network, "imperative"), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("network", ("mlp", "lenet"))
@pytest.mark.parametrize("mode", MODES)
def test_losses_are_mxnets(network: str, mode: str) -> None:
    np.testing.assert_allclose(losses(network, mode), GOLDEN[network][mode], rtol=1e-4, atol=1e-4)


def test_training_lowers_the_loss() -> None:
    found = losses("lenet", "imperative")
    assert found[-4:].mean() < 0.9 * found[:4].mean()
