"""Optimizer, updater and metric runs that `record.py` records from MXNet and the tests replay.

Every function takes the framework module (`mx`), so that the same code runs in both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

STEPS = 50
KEPT = (1, 2, 5, 20, 50)
SHAPES = {"a_weight": (3,), "b_weight": (2, 4), "c_bias": (4,)}


@dataclass(frozen=True)
class Case:
    """One optimizer run; `schedule` builds a scheduler, `names` tells the optimizer the parameters' names."""

    optimizer: str
    params: dict[str, Any] = field(default_factory=dict)
    schedule: Callable[[Any], Any] | None = None
    names: bool = False
    dtype: str = "float32"
    tag: str = ""

    @property
    def name(self) -> str:
        """A readable identity, unique among the cases."""
        shown = ",".join(f"{k}={v}" for k, v in self.params.items())
        return f"{self.optimizer}({shown}){self.tag}{'' if self.dtype == 'float32' else self.dtype}"


PLAIN = {"learning_rate": 0.05}
FULL = {"learning_rate": 0.05, "wd": 0.03, "clip_gradient": 0.4, "rescale_grad": 0.5}
_NO_RATE = {k: v for k, v in FULL.items() if k != "learning_rate"}


def _factor(mx: Any) -> Any:
    return mx.lr_scheduler.FactorScheduler(step=7, factor=0.7, base_lr=0.1)


def _cosine(mx: Any) -> Any:
    return mx.lr_scheduler.CosineScheduler(max_update=40, base_lr=0.1, final_lr=0.01, warmup_steps=5)


CASES = [
    *(Case(n, PLAIN) for n in ("sgd", "nag", "adam", "rmsprop", "adagrad", "adadelta", "adamax", "nadam", "ftrl")),
    *(Case(n, PLAIN) for n in ("ftml", "signum", "dcasgd", "lamb", "lars", "lbsgd", "test")),
    *(Case(n, FULL) for n in ("sgd", "nag", "adam", "rmsprop", "adagrad", "adadelta", "adamax", "nadam", "ftrl")),
    *(Case(n, FULL) for n in ("ftml", "signum", "dcasgd", "lamb", "lars")),
    Case("sgd", {**FULL, "momentum": 0.9}),
    Case("sgd", {**FULL, "momentum": 0.9}, names=True, tag=" named"),
    Case("nag", {**FULL, "momentum": 0.9}),
    Case("nag", {**PLAIN, "momentum": 0.9}),
    Case("signum", {**FULL, "momentum": 0.0}),
    Case("signum", {**FULL, "wd_lh": 0.1}),
    Case("lars", {**FULL, "momentum": 0.9, "eta": 0.1}),
    Case("lars", {**FULL, "momentum": 0.9, "eta": 0.1, "eps": 0.01}, names=True, tag=" named"),
    Case("rmsprop", {**FULL, "centered": True}),
    Case("rmsprop", {**FULL, "clip_weights": 1.0, "gamma1": 0.8}),
    Case("lamb", {**FULL, "lower_bound": 0.5, "upper_bound": 1.5}),
    Case("lamb", {**FULL, "bias_correction": False}),
    Case("adam", {**FULL, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3}),
    Case("sgd", {**_NO_RATE, "momentum": 0.9}, schedule=_factor, tag=" factor"),
    Case("adam", {**FULL, "begin_num_update": 4}, schedule=_factor, tag=" factor"),
    Case("nag", {**_NO_RATE, "momentum": 0.9}, schedule=_cosine, tag=" cosine"),
    *(
        Case("lbsgd", {"learning_rate": 0.02, "wd": 0.03, "momentum": 0.9, **more})
        for more in (
            {"warmup_strategy": "linear", "batch_scale": 2, "warmup_epochs": 1, "updates_per_epoch": 20},
            {"warmup_strategy": "power2", "batch_scale": 3, "warmup_epochs": 1, "updates_per_epoch": 20},
            {"warmup_strategy": "sqrt", "batch_scale": 2, "warmup_epochs": 2, "updates_per_epoch": 10},
            {"warmup_strategy": "lars", "batch_scale": 2},
        )
    ),
    *(
        Case(n, {**FULL, **more, "multi_precision": True}, dtype="float16")
        for n, more in (
            ("sgd", {}),
            ("sgd", {"momentum": 0.9}),
            ("nag", {"momentum": 0.9}),
            ("adam", {}),
            ("rmsprop", {}),
            ("adagrad", {}),
            ("signum", {}),
            ("ftml", {}),
        )
    ),
]


def run(mx: Any, case: Case) -> np.ndarray:
    """Weights of all parameters after the steps in `KEPT`, one row each."""
    rng = np.random.RandomState(7)
    params = dict(case.params)
    if case.schedule is not None:
        params["lr_scheduler"] = case.schedule(mx)
    if case.names:
        params["param_idx2name"] = dict(enumerate(SHAPES))
    optimizer = mx.optimizer.create(case.optimizer, **params)
    updater = mx.optimizer.get_updater(optimizer)
    weights = [mx.nd.array(rng.uniform(-1.5, 1.5, s), dtype=case.dtype) for s in SHAPES.values()]
    rows = []
    for step in range(1, STEPS + 1):
        # Sizes around the bound of clipping, so that some elements are clipped and others are not.
        grads = [mx.nd.array(rng.normal(0, 0.8, w.shape), dtype=case.dtype) for w in weights]
        if optimizer.aggregate_num:
            updater(list(range(len(weights))), grads, weights)
        else:
            for i, (g, w) in enumerate(zip(grads, weights, strict=True)):
                updater(i, g, w)
        for w in weights:
            w.wait_to_read()
        if step in KEPT:
            rows.append(np.concatenate([w.asnumpy().astype("float32").ravel() for w in weights]))
    return np.stack(rows)


def trained_updater(mx: Any, name: str, **params: Any) -> Any:
    """An updater after three updates of two parameters, for state files."""
    updater = mx.optimizer.get_updater(mx.optimizer.create(name, learning_rate=0.1, wd=0.01, **params))
    rng = np.random.RandomState(3)
    weights = [mx.nd.array(rng.randn(2, 3)), mx.nd.array(rng.randn(3))]
    for _ in range(3):
        for i, w in enumerate(weights):
            updater(i, mx.nd.array(rng.randn(*w.shape)), w)
    return updater


STATE_FILES: dict[str, dict[str, Any]] = {
    "sgd": {"momentum": 0.9},
    "adam": {},
    "rmsprop": {"centered": True},
    "signum": {},
    "ftrl": {},
}


def record(mx: Any) -> Any:
    """Weights of every run, and state files with the optimizer inside, as byte vectors."""
    found = {case.name: run(mx, case) for case in CASES}
    for name, params in STATE_FILES.items():
        updater = trained_updater(mx, name, **params)
        if name == "sgd":
            updater.optimizer.lr_scheduler = mx.lr_scheduler.FactorScheduler(2, 0.5, base_lr=0.1)
        found[f"states:{name}"] = np.frombuffer(updater.get_states(dump_optimizer=True), np.uint8)
    return found
