"""Runs of modules that log which hooks are called; `record.py` records them, the tests replay them.

`mx` is the framework module. Each case takes it and returns the calls.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.goldens.hooks_spy import Log, spy

# Left out: _reset_bind and _sync_params_from_devices, inner parts of Module.
MODULE = (
    "backward", "bind", "fit", "forward", "forward_backward", "get_input_grads", "get_outputs", "get_params",
    "get_states", "init_optimizer", "init_params", "install_monitor", "iter_predict", "load_optimizer_states",
    "load_params", "predict", "prepare", "reshape", "save_checkpoint", "save_optimizer_states", "save_params", "score",
    "set_params", "set_states", "update", "update_metric", "borrow_optimizer",
)  # fmt: skip
DATA_ITER = (
    "__iter__", "__next__", "getdata", "getindex", "getlabel", "getpad", "iter_next", "next", "reset",
)  # fmt: skip
METRIC = (
    "get",
    "get_name_value",
    "get_global",
    "get_global_name_value",
    "reset",
    "reset_local",
    "update",
    "update_dict",
)
INITIALIZER = (
    "__call__", "_init_beta", "_init_bias", "_init_default", "_init_gamma", "_init_one", "_init_weight", "_init_zero",
    "_legacy_init", "_verbose_print", "dumps",
)  # fmt: skip
OPTIMIZER = (
    "_get_lr", "_get_lrs", "_get_wd", "_get_wds", "_update_count", "_update_impl", "create_state",
    "create_state_multi_precision", "set_lr_mult", "set_wd_mult", "update", "update_multi_precision",
)  # fmt: skip


def _symbol(mx: Any, norm: bool = False) -> Any:
    x = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    x = mx.sym.BatchNorm(x, name="bn") if norm else x
    return mx.sym.SoftmaxOutput(x, name="softmax")


def _iterator(mx: Any, log: Log, size: int = 4) -> Any:
    rng = np.random.RandomState(0)
    data, label = rng.uniform(size=(size, 3)).astype("float32"), np.arange(size, dtype="float32") % 2
    return spy(mx.io.NDArrayIter, DATA_ITER, log)(data, label, batch_size=2)


def _module(mx: Any, log: Log, norm: bool = False, contexts: int = 1) -> Any:
    return spy(mx.mod.Module, MODULE, log)(_symbol(mx, norm), context=[mx.cpu(k) for k in range(contexts)])


def fitted(mx: Any, contexts: int = 1, epochs: int = 2, validated: bool = True, store: Any = "local") -> Log:
    """A fit with everything of a user's classes."""
    log = Log()
    module = _module(mx, log, contexts=contexts)
    metric = spy(mx.metric.Accuracy, METRIC, log)()
    optimizer = spy(mx.optimizer.SGD, OPTIMIZER, log)(learning_rate=0.1, rescale_grad=0.5)
    module.fit(
        _iterator(mx, log),
        eval_data=_iterator(mx, log) if validated else None,
        eval_metric=metric,
        optimizer=optimizer,
        kvstore=store,
        initializer=spy(mx.init.Uniform, INITIALIZER, log)(),
        num_epoch=epochs,
        batch_end_callback=lambda p: log.note("batch end", p.epoch, p.nbatch),
        epoch_end_callback=lambda e, s, a, x: log.note("epoch end", e, sorted(a), sorted(x)),
        eval_end_callback=lambda p: log.note("eval end", p.epoch),
        eval_batch_end_callback=lambda p: log.note("eval batch end", p.epoch, p.nbatch),
    )
    return log


def used(mx: Any) -> Log:
    """What people do with a module that is fitted, step by step."""
    log = Log()
    module = _module(mx, log, norm=True)
    data = _iterator(mx, log)
    log.note("bind")
    module.bind(data.provide_data, data.provide_label)
    log.note("init_params")
    module.init_params(spy(mx.init.Xavier, INITIALIZER, log)())
    log.note("init_optimizer")
    module.init_optimizer(optimizer_params={"learning_rate": 0.1})
    metric = spy(mx.metric.Accuracy, METRIC, log)()
    for what in ("score", "predict", "iter_predict"):
        log.note(what)
        if what == "score":
            module.score(data, metric, num_batch=1)
        elif what == "predict":
            module.predict(data)
        else:
            for _ in module.iter_predict(data):
                log.note("output")
    log.note("forward_backward")
    data.reset()
    module.forward_backward(data.next())
    module.update()
    with tempfile.TemporaryDirectory() as folder:
        log.note("save_checkpoint")
        module.save_checkpoint(os.path.join(folder, "chk"), 1, save_optimizer_states=True)
        log.note("save_params")
        module.save_params(os.path.join(folder, "p.params"))
        log.note("load_params")
        module.load_params(os.path.join(folder, "p.params"))
    log.note("set_params")
    module.set_params(*module.get_params())
    log.note("reshape")
    module.reshape([("data", (4, 3))], [("softmax_label", (4,))])
    return log


def iterated(mx: Any) -> Log:
    """An iterator of a user's class that defines the four parts, in loops and in the iterators that wrap it."""
    log = Log()

    class Numbers(spy(mx.io.DataIter, DATA_ITER, log, "Numbers")):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(2)
            self.at = -1
            self.provide_data = [mx.io.DataDesc("data", (2, 3))]
            self.provide_label = [mx.io.DataDesc("softmax_label", (2,))]

        def reset(self) -> None:
            super().reset()
            self.at = -1

        def iter_next(self) -> bool:
            log.note("iter_next")
            self.at += 1
            return self.at < 2

        def getdata(self) -> Any:
            log.note("getdata")
            return [mx.nd.full((2, 3), self.at)]

        def getlabel(self) -> Any:
            log.note("getlabel")
            return [mx.nd.full((2,), self.at)]

        def getindex(self) -> Any:
            log.note("getindex")
            return [2 * self.at, 2 * self.at + 1]

        def getpad(self) -> int:
            log.note("getpad")
            return 0

    data = Numbers()
    for _ in data:
        log.note("batch")
    log.note("resized")
    for _ in mx.io.ResizeIter(data, 3):
        log.note("batch")
    log.note("score")
    module = _module(mx, log)
    module.bind(data.provide_data, data.provide_label)
    module.init_params(mx.init.One())
    module.score(data, "acc")
    return log


def image_iterator(mx: Any) -> Log:
    """NDArrayIter in a loop, with a last batch that is filled up."""
    log = Log()
    data = _iterator(mx, log, 3)
    for batch in data:
        log.note("batch", batch.pad)
    data.hard_reset()
    log.note("by hand")
    while data.iter_next():
        log.note("parts", data.getdata(), data.getlabel(), data.getpad())
    return log


def cases() -> Iterator[tuple[str, Callable[[Any], Log]]]:
    """Name and function of each case."""
    yield "fit", fitted
    yield "fit on two contexts", lambda mx: fitted(mx, 2, 1)
    yield "fit without store", lambda mx: fitted(mx, 1, 1, False, None)
    yield "module", used
    yield "iterator", iterated
    yield "NDArrayIter", image_iterator
