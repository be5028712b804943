"""Updates on servers: what arrives together changes no bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx.kvstore.server import OFTEN, TOGETHER, StoreUpdater
from dualmx.ps.store import Parked, Store

ROUNDS = OFTEN + 2


def failed(who: Parked, reason: str) -> None:
    raise AssertionError(reason)


def trained(
    name: str,
    sizes: dict[str, int],
    workers: int,
    cut: int,
    adds: bool = True,
    dtype: Any = np.float32,
    **settings: Any,
) -> dict[Any, bytes]:  # fmt: skip
    """Values after some rounds whose pushes arrive in messages of `cut` keys; with `adds` the program adds them up."""
    store = Store(range(workers), True, lambda who: None, failed)
    updater = StoreUpdater(mx.optimizer.create(name, **settings), store)
    store.apply, store.adds = updater.apply, adds
    draw = np.random.default_rng(3)
    for key, n in sizes.items():
        store.put(key, 0, draw.standard_normal(n).astype(dtype), (n,))
    keys = list(sizes)
    for turn in range(1, ROUNDS + 1):
        pushed = {
            (r, k): (draw.standard_normal(sizes[k]) * 10.0 ** draw.integers(-4, 4)).astype(dtype)
            for r in range(workers)
            for k in keys
        }
        for rank in reversed(range(workers)):
            for at in range(0, len(keys), cut):
                parts: list[Any] = [(k, 0, turn, pushed[rank, k]) for k in keys[at : at + cut]]
                store.push(rank, parts, Parked(0, 0, len(parts), "push"))
    return {key: held.value.tobytes() for key, held in store.held.items()}


def test_what_arrives_together_changes_no_bit() -> None:
    sizes = {**{f"b{i}": 64 for i in range(TOGETHER + 3)}, "w": 9_000, "v": 1_000}
    alone = trained("sgd", sizes, 2, 1, momentum=0.9)
    for cut in (2, 5, len(sizes)):
        assert trained("sgd", sizes, 2, cut, momentum=0.9) == alone


def test_few_programs_suffice_for_whatever_arrives_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dualmx.kvstore.server.OFTEN", 100)
    sizes = {f"c{i}": 96 for i in range(3 * TOGETHER)}
    trained("sgd", sizes, 2, len(sizes), momentum=0.9)
    trained("sgd", sizes, 2, 1, momentum=0.9)
    with mx.debug.assert_compiles(0):
        for cut in (3, 7, TOGETHER + 1, 2 * TOGETHER + 5):
            trained("sgd", sizes, 2, cut, momentum=0.9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(
    "name, settings",
    [
        ("sgd", {"momentum": 0.9, "wd": 0.1, "multi_precision": True}),
        ("adam", {"clip_gradient": 0.5, "multi_precision": True}),
    ],
)
def test_who_adds_up_the_pushes_changes_no_bit(name: str, settings: dict[str, Any], dtype: Any) -> None:
    sizes = {"a": 700, "b": 700, "c": 90_000}
    apart = trained(name, sizes, 4, 3, False, dtype, **settings)
    assert trained(name, sizes, 4, 3, True, dtype, **settings) == apart
    assert trained(name, sizes, 4, 1, True, dtype, **settings) == apart
