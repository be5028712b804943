"""Runs of optimizers that log which of their hooks are called; `record.py` records them, the tests replay them.

`mx` is the framework module. Each case takes it and the hooks to log, and returns the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tests.goldens.hooks_spy import Log, spy

NAMES = (
    "adadelta", "adagrad", "adam", "adamax", "dcasgd", "ftml", "ftrl", "groupadagrad", "lamb", "lars", "lbsgd",
    "nadam", "nag", "rmsprop", "sgd", "sgld", "signum", "test",
)  # fmt: skip
MOMENTUM = ("lars", "lbsgd", "nag", "sgd")
AGGREGATING = ("lamb", "lars", "sgd")
# The methods of Optimizer that people override. Left out: _l2norm, _get_lars, _get_lbmult and the gathering of
# gradients, inner parts of LARS and LBSGD; __getstate__ and __setstate__, which belong to files of states.
HOOKS = (
    "_get_lr", "_get_lrs", "_get_wd", "_get_wds", "_set_current_context", "_update_count", "_update_impl",
    "create_state", "create_state_multi_precision", "set_lr_mult", "set_wd_mult", "update", "update_multi_precision",
)  # fmt: skip


def _made(mx: Any, name: str, hooks: Sequence[str], log: Log, **settings: Any) -> Any:
    kind = spy(mx.optimizer.Optimizer.opt_registry[name], hooks, log, results=True)
    if name in MOMENTUM:
        settings.setdefault("momentum", 0.9)
    return kind(**{"learning_rate": 0.1, **settings})


def _values(mx: Any, n: int, dtype: str, context: Any = None) -> tuple[list[Any], list[Any]]:
    rng = np.random.RandomState(n)
    pairs = [(rng.uniform(0.5, 1, (2, k % 3 + 1)), rng.uniform(-1, 1, (2, k % 3 + 1))) for k in range(n)]
    weights, grads = ([mx.nd.array(p[i], ctx=context, dtype=dtype) for p in pairs] for i in (0, 1))
    return weights, grads


def by_lists(mx: Any, hooks: Sequence[str], name: str, n: int = 5, dtype: str = "float32", **settings: Any) -> Log:
    """Two updates of `n` parameters at once by an Updater."""
    log = Log()
    optimizer = _made(mx, name, hooks, log, **settings)
    updater = mx.optimizer.get_updater(optimizer)
    weights, grads = _values(mx, n, dtype)
    for _ in range(2):
        log.note("round")
        if updater.aggregate_updates:
            updater(list(range(n)), grads, weights)
        else:
            for i in range(n):
                updater(i, grads[i], weights[i])
    return log


def directly(mx: Any, hooks: Sequence[str], name: str, dtype: str = "float32", **settings: Any) -> Log:
    """An update of one parameter by the optimizer itself, the way that test loops make it."""
    log = Log()
    optimizer = _made(mx, name, hooks, log, **settings)
    weights, grads = _values(mx, 1, dtype)
    state = optimizer.create_state_multi_precision(0, weights[0])
    log.note("update")
    optimizer.update_multi_precision(0, weights[0], grads[0], state)
    if dtype == "float32":
        log.note("update alone")
        optimizer.update(0, weights[0], grads[0], state)
    return log


def scheduled(mx: Any, hooks: Sequence[str], name: str) -> Log:
    """Updates under a schedule, which is asked too."""
    log = Log()
    schedule = spy(mx.lr_scheduler.FactorScheduler, ("__call__",), log, results=True)(step=2, factor=0.5, base_lr=0.1)
    optimizer = _made(mx, name, hooks, log, lr_scheduler=schedule)
    updater = mx.optimizer.get_updater(optimizer)
    weights, grads = _values(mx, 6, "float32")
    for _ in range(2):
        log.note("round")
        if updater.aggregate_updates:
            updater(list(range(6)), grads, weights)
        else:
            for i in range(6):
                updater(i, grads[i], weights[i])
    return log


def multiplied(mx: Any, hooks: Sequence[str], name: str) -> Log:
    """Updates with factors of rates and decays by name."""
    log = Log()
    named = {0: "a_weight", 1: "a_bias", 2: "b_gamma"}
    optimizer = _made(mx, name, hooks, log, wd=0.01, param_idx2name=named)
    optimizer.set_lr_mult({"a_bias": 2.0})
    optimizer.set_wd_mult({0: 0.5})
    updater = mx.optimizer.get_updater(optimizer)
    weights, grads = _values(mx, 3, "float32")
    for i in range(3):
        updater(i, grads[i], weights[i])
    return log


def trained(
    mx: Any, hooks: Sequence[str], name: str, n: int = 3, contexts: int = 1, store: bool | None = None, **settings: Any
) -> Log:
    """Two steps of a Trainer with `n` parameters."""
    log = Log()
    places = [mx.cpu(k) for k in range(contexts)]
    params = [mx.gluon.Parameter(f"p{k}", shape=(2, k % 3 + 1), init="ones") for k in range(n)]
    params[1].lr_mult, params[2].wd_mult = 2.0, 0.5
    for p in params:
        p.initialize(ctx=places)
    optimizer = _made(mx, name, hooks, log, wd=0.01, **settings)
    trainer = mx.gluon.Trainer(params, optimizer, update_on_kvstore=store)
    for k in range(2):
        log.note("step", k)
        with mx.autograd.record():
            losses = [sum((p.data(c) ** 2).sum() for p in params) for c in places]
        mx.autograd.backward(losses)
        trainer.step(2)
    return log


def cases() -> Iterator[tuple[str, Callable[[Any, Sequence[str]], Log]]]:
    """Name and function of each case."""

    def bind(function: Any, *args: Any, **kwargs: Any) -> Callable[[Any, Sequence[str]], Log]:
        return lambda mx, hooks=HOOKS: function(mx, hooks, *args, **kwargs)

    for name in NAMES:
        several = 10 if name in AGGREGATING else 3
        yield f"{name} updater", bind(by_lists, name, several)
        if name not in ("groupadagrad", "test", "lbsgd", "lars"):
            yield f"{name} half", bind(by_lists, name, 3, "float16", multi_precision=True)
            if name not in ("adadelta", "adagrad", "ftrl", "rmsprop"):  # MXNet fails: the states are float32
                yield f"{name} half alone", bind(by_lists, name, 3, "float16")
        yield f"{name} directly", bind(directly, name)
        yield f"{name} scheduled", bind(scheduled, name)
        if name != "groupadagrad":
            yield f"{name} multiplied", bind(multiplied, name)
            yield f"{name} trainer", bind(trained, name, several)
            yield f"{name} trainer, two contexts", bind(trained, name, several, 2)
            yield f"{name} trainer, two contexts, no store", bind(trained, name, several, 2, False)
