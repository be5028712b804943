"""Hooks of subclasses of optimizers are called as often, with what, and in the order that MXNet calls them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import nd
from dualmx.optimizer.updater import in_one_call
from tests.goldens.hooks_optimizer_cases import AGGREGATING, HOOKS, NAMES, cases
from tests.goldens.hooks_spy import unpack
from tests.goldens.store import load

GOLDEN = unpack(load("hooks")["optimizer"])
CASES = dict(cases())


def run(case: str, hooks: Any = HOOKS) -> list[str]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*loses accuracy")
        return CASES[case](mx, hooks).calls


@pytest.mark.parametrize("name", NAMES)
def test_each_hook_of_an_optimizer_is_called_as_in_mxnet(name: str) -> None:
    for case in (f"{name} updater", f"{name} half"):
        if case in CASES:
            assert run(case) == GOLDEN[case], case


@pytest.mark.parametrize("case", [f"{n} {c}" for n in ("sgd", "adam") for c in ("scheduled", "trainer")])
def test_a_trainer_calls_the_hooks_of_its_optimizer_as_in_mxnet(case: str) -> None:
    assert run(case) == GOLDEN[case]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_hook_of_an_optimizer_is_called_as_in_mxnet_in_all_cases(name: str) -> None:
    for case in (c for c in CASES if c.startswith(name + " ")):
        assert run(case) == GOLDEN[case], case


@pytest.mark.parametrize("name", ["sgd", "adam", "lamb"])
def test_a_hook_that_is_defined_alone_is_called_as_in_mxnet(name: str) -> None:
    calls = GOLDEN[f"{name} updater"]
    for hook in HOOKS:
        if hook == "update" and name in (*AGGREGATING, "nag"):
            continue  # see the next test
        expected = [c.lstrip() for c in calls if f".{hook}(" in c or c.startswith("round")]
        found = [c.lstrip() for c in run(f"{name} updater", (hook,))]
        assert found == expected, hook


@pytest.mark.parametrize("name", [*AGGREGATING, "nag"])
def test_an_update_that_is_defined_alone_is_not_passed_over(name: str) -> None:
    """MXNet calls `_update_impl` from `update_multi_precision`, and does not ask `update`."""
    found = run(f"{name} updater", ("update",))
    assert [c.partition(", ")[0].split(".")[-1] for c in found if ".update(" in c] == [
        f"update({i}" for _ in range(2) for i in range(3 if name == "nag" else 10)
    ]


def test_rates_of_a_users_adam_are_used() -> None:
    """The rates of the hook, not only its calls."""

    class Slower(mx.optimizer.Adam):
        def _get_lr(self, index: int) -> float:
            return super()._get_lr(index) * (0.5 if index else 1)

    weights = [nd.ones((2,)) for _ in range(2)]
    mx.optimizer.get_updater(Slower(learning_rate=0.2))([0, 1], [nd.ones((2,)) for _ in weights], weights)
    np.testing.assert_allclose([w.asnumpy()[0] for w in weights], [0.8, 0.9], rtol=1e-5)


def test_a_hook_set_on_the_instance_is_called() -> None:
    optimizer = mx.optimizer.Adam(learning_rate=0.2)
    assert in_one_call(optimizer)
    optimizer._get_lr = lambda index: 0.1  # type: ignore[method-assign]
    weight = nd.ones((2,))
    mx.optimizer.get_updater(optimizer)([0], [nd.ones((2,))], [weight])
    np.testing.assert_allclose(weight.asnumpy(), 0.9, rtol=1e-5)


@pytest.mark.parametrize(
    "size, parts", [(4, [4, 2, 2, 1]), (3, [3, 3, 2, 1]), (1, [1] * 9), (0, [1] * 9), (100, [6, 2, 1])]
)
def test_as_many_parameters_of_a_dtype_as_the_optimizer_says_are_updated_together(size: int, parts: list[int]) -> None:
    """MXNet 1.9.1: groups by dtype in the order in which dtypes come, cut at `aggregate_num`."""
    sizes = []

    class Parts(mx.optimizer.SGD):
        def _get_lrs(self, indices: Any) -> list[float]:
            sizes.append(len(indices))
            return super()._get_lrs(indices)

    kinds = ["float32", "float32", "float16", "float32", "float16", "float32", "float32", "float64", "float32"]
    weights = [nd.ones((2,), dtype=k) for k in kinds]
    optimizer = Parts(learning_rate=0.5)
    optimizer.aggregate_num = size
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*loses accuracy")
        mx.optimizer.get_updater(optimizer)(list(range(9)), [w.copy() for w in weights], weights)
    assert sizes == parts
    assert all((w.asnumpy() == 0.5).all() for w in weights)


def test_a_class_that_takes_lists_gets_as_many_as_it_says() -> None:
    seen = []

    class Pairs(mx.optimizer.Optimizer):
        def __init__(self, **kwargs: Any):
            super().__init__(**kwargs)
            self.aggregate_num = 2

        def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
            seen.append(index)

    arrays = [nd.ones((2,)) for _ in range(3)]
    mx.optimizer.get_updater(Pairs())([0, 1, 2], arrays, arrays)
    assert seen == [(0, 1), (2,)]


def test_classes_without_hooks_are_updated_in_one_call() -> None:
    class Renamed(mx.optimizer.Adam):
        def create_state(self, index: Any, weight: Any) -> Any:
            return super().create_state(index, weight)

    assert all(in_one_call(kind()) for kind in (mx.optimizer.SGD, mx.optimizer.LAMB, mx.optimizer.Adam, Renamed))
