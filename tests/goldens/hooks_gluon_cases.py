"""Runs of Gluon that log which hooks of its classes are called; `record.py` records them, the tests replay them.

`mx` is the framework module. Each case takes it and returns the calls.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.goldens.hooks_spy import Log, spy

TRAINER = (
    "_allreduce_grads", "_check_and_rescale_grad", "_check_contexts", "_init_kvstore", "_init_optimizer",
    "_init_params", "_reset_kvstore", "_row_sparse_pull", "_update", "allreduce_grads", "learning_rate", "load_states",
    "optimizer", "save_states", "set_learning_rate", "step", "update",
)  # fmt: skip
BLOCK = (
    "__call__", "__repr__", "__setattr__", "_alias", "_collect_params_with_prefix", "apply", "cast", "collect_params",
    "export", "forward", "hybrid_forward", "hybridize", "infer_shape", "infer_type", "initialize", "load_parameters",
    "name_scope", "optimize_for", "register_child", "register_forward_hook", "register_forward_pre_hook",
    "save_parameters", "summary", "_build_cache", "_call_cached_op", "_clear_cached_op", "_deferred_infer_shape",
    "_get_graph", "_infer_attrs", "load_params", "save_params",
)  # fmt: skip
# Left out: _check_and_get, _init_grad and _init_impl, which reach for arrays that dualmx holds in another way;
# _set_trainer, by which a Trainer makes itself known.
PARAMETER = (
    "_finish_deferred_init", "_get_row_sparse", "_load_init", "_reduce", "cast", "data", "grad", "initialize",
    "list_ctx", "list_data", "list_grad", "reset_ctx", "row_sparse_data", "set_data", "var", "zero_grad",
)  # fmt: skip
INITIALIZER = (
    "__call__", "_init_beta", "_init_bias", "_init_default", "_init_gamma", "_init_one", "_init_weight", "_init_zero",
    "_legacy_init", "_verbose_print", "dumps", "set_verbosity", "_init_loc_bias", "_init_bilinear",
)  # fmt: skip
METRIC = (
    "__str__", "get", "get_config", "get_global", "get_global_name_value", "get_name_value", "reset", "reset_local",
    "update", "update_dict",
)  # fmt: skip


def _net(mx: Any, log: Log, hybrid: bool = True, deferred: bool = True) -> Any:
    """A block of two layers, all of whose classes log."""
    nn = mx.gluon.nn
    width = 0 if deferred else 3
    base = spy(mx.gluon.HybridBlock if hybrid else mx.gluon.Block, BLOCK, log, "Base")

    class Net(base):  # type: ignore[misc, valid-type]
        def __init__(self, **kwargs: Any):
            super().__init__(**kwargs)
            with self.name_scope():
                self.body = spy(nn.HybridSequential, BLOCK, log)()
                self.body.add(spy(nn.Dense, BLOCK, log)(2, in_units=width))
                self.out = spy(nn.Dense, BLOCK, log)(1, in_units=0 if deferred else 2)

        if hybrid:

            def hybrid_forward(self, F: Any, x: Any) -> Any:  # noqa: N803
                log.note("Net.hybrid_forward", "F", F.__name__.rpartition(".")[2])
                return self.out(self.body(x))

        else:

            def forward(self, x: Any) -> Any:
                log.note("Net.forward", x)
                return self.out(self.body(x))

    return Net()


def life_of_a_block(mx: Any, hybrid: bool, active: bool, deferred: bool) -> Log:
    """What people do with a network, step by step."""
    log = Log()
    log.note("make")
    net = _net(mx, log, hybrid, deferred)
    log.note("initialize")
    net.initialize()
    if active:
        log.note("hybridize")
        net.hybridize()
    net.register_forward_hook(lambda block, inputs, output: log.note("forward hook", inputs, output))
    net.register_forward_pre_hook(lambda block, inputs: log.note("forward pre-hook", inputs))
    x = mx.nd.ones((4, 3))
    for k in range(2):
        log.note("call", k)
        net(x)
    log.note("record")
    with mx.autograd.record():
        loss = net(x).sum()
    loss.backward()
    log.note("parameters")
    net.collect_params()
    net.collect_params(".*weight")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.params")
        log.note("save")
        net.save_parameters(path)
        log.note("load")
        net.load_parameters(path)
        if hybrid and active:
            log.note("export")
            net.export(os.path.join(folder, "net"))
    log.note("cast")
    net.cast("float64")
    log.note("call")
    net(x.astype("float64"))
    log.note("apply")
    net.apply(lambda block: log.note("visit", block))
    log.note("replace")
    net.out = type(net.out)(3)
    log.note("initialize again")
    net.initialize(force_reinit=True)
    return log


def symbol_of_a_block(mx: Any) -> Log:
    """A hybrid block on a symbol, and its shapes."""
    log = Log()
    net = _net(mx, log)
    net.initialize()
    log.note("symbol")
    net(mx.sym.var("data"))
    log.note("infer_shape")
    net.infer_shape(mx.nd.ones((2, 3)))
    log.note("infer_type")
    net.infer_type(mx.nd.ones((2, 3)))
    log.note("hybridize")
    net.hybridize(static_alloc=True)
    net(mx.nd.ones((2, 3)))
    log.note("another shape")
    net(mx.nd.ones((5, 3)))
    log.note("off")
    net.hybridize(False)
    net(mx.nd.ones((5, 3)))
    return log


def steps_of_a_trainer(mx: Any, contexts: int, store: Any, in_store: bool | None, separate: bool) -> Log:
    """Steps of a Trainer, its rate, and its states."""
    log = Log()
    places = [mx.cpu(k) for k in range(contexts)]
    params = [mx.gluon.Parameter(f"p{k}", shape=(2, k + 1), init="ones") for k in range(2)]
    for p in params:
        p.initialize(ctx=places)
    log.note("make")
    trainer = spy(mx.gluon.Trainer, TRAINER, log)(
        params, "sgd", {"learning_rate": 0.1}, kvstore=store, update_on_kvstore=in_store
    )
    for k in range(2):
        with mx.autograd.record():
            losses = [sum((p.data(c) ** 2).sum() for p in params) for c in places]
        mx.autograd.backward(losses)
        log.note("step", k)
        if separate:
            trainer.allreduce_grads()
            trainer.update(2)
        else:
            trainer.step(2)
    log.note("rate")
    trainer.set_learning_rate(trainer.learning_rate / 2)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "states")
        log.note("save")
        trainer.save_states(path)
        log.note("load")
        trainer.load_states(path)
    return log


def life_of_a_parameter(mx: Any, contexts: int, deferred: bool) -> Log:
    """What a layer, a Trainer and files do with a parameter of a user's class."""
    log = Log()
    places = [mx.cpu(k) for k in range(contexts)]
    made = spy(mx.gluon.Parameter, PARAMETER, log)(
        "layer_weight", shape=(2, 0 if deferred else 3), allow_deferred_init=True
    )

    class Layer(mx.gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__(prefix="layer_")
            self.params.update({"layer_weight": made})
            self.weight = made

        def hybrid_forward(self, F: Any, x: Any, weight: Any) -> Any:  # noqa: N803
            return F.FullyConnected(x, weight, num_hidden=2, no_bias=True)

    layer = Layer()
    log.note("initialize")
    layer.initialize(ctx=places)
    x = [mx.nd.ones((2, 3), ctx=c) for c in places]
    log.note("call")
    with mx.autograd.record():
        losses = [layer(v).sum() for v in x]
    log.note("backward")
    mx.autograd.backward(losses)
    log.note("trainer")
    trainer = mx.gluon.Trainer([layer.weight], "sgd")
    seen = len(log.calls)
    trainer.step(1)
    del log.calls[seen:]  # MXNet makes its store in the first step, and asks parameters for it
    with mx.autograd.record():
        losses = [layer(v).sum() for v in x]
    mx.autograd.backward(losses)
    log.note("step")
    trainer.step(1)
    log.note("set_data")
    layer.weight.set_data(mx.nd.zeros((2, 3)))
    log.note("zero_grad")
    layer.collect_params().zero_grad()
    log.note("cast")
    layer.cast("float64")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "layer.params")
        log.note("save")
        layer.save_parameters(path)
        log.note("load")
        layer.load_parameters(path, ctx=places)
    log.note("reset_ctx")
    layer.collect_params().reset_ctx(mx.cpu(1))
    log.note("symbol")
    layer(mx.sym.var("data"))
    return log


def gluon_initializer(mx: Any, name: str) -> Log:
    """An initializer of a user's class, for layers with parameters of every kind."""
    log = Log()
    init = spy(getattr(mx.init, name), INITIALIZER, log)(*([0.5] if name == "Constant" else []))
    net = mx.gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(mx.gluon.nn.Dense(2, in_units=3), mx.gluon.nn.BatchNorm(in_channels=2), mx.gluon.nn.Dense(2))
    net[2].weight.init = init
    net.initialize(init)
    log.note("deferred")
    net(mx.nd.ones((2, 3)))
    log.note("own parameter")
    mx.gluon.Parameter("odd_name", shape=(2, 2)).initialize(init=init)
    return log


def called_initializer(mx: Any, name: str) -> Log:
    """An initializer of a user's class, called with names of every kind."""
    log = Log()
    init = spy(getattr(mx.init, name), INITIALIZER, log)(*([0.5] if name == "Constant" else []))
    for what in ("a_weight", "a_bias", "a_gamma", "a_beta", "a_moving_mean", "a_min", "a_max", "odd"):
        log.note("name", what)
        try:
            init(mx.init.InitDesc(what), mx.nd.zeros((2, 2)))
        except ValueError:
            log.note("ValueError")
    log.note("description")
    init(mx.init.InitDesc("odd", {"__init__": mx.init.One().dumps()}), mx.nd.zeros((2, 2)))
    log.note("text")
    init("b_weight", mx.nd.zeros((2, 2)))
    return log


def mixed_initializer(mx: Any) -> Log:
    """Mixed and Load, with initializers of a user's classes."""
    log = Log()
    kinds = [spy(getattr(mx.init, n), INITIALIZER, log) for n in ("One", "Uniform")]
    mixed = mx.init.Mixed([".*bias", ".*"], [k() for k in kinds])
    for what in ("a_weight", "a_bias"):
        mixed(mx.init.InitDesc(what), mx.nd.zeros((2, 2)))
    log.note("load")
    load = mx.init.Load({"a_weight": mx.nd.ones((2, 2))}, default_init=kinds[1]())
    for what in ("a_weight", "b_weight"):
        load(what, mx.nd.zeros((2, 2)))
    return log


def metrics(mx: Any) -> Log:
    """A metric of a user's class, alone and in a composite."""
    log = Log()
    kind = spy(mx.metric.Accuracy, METRIC, log)
    made = kind()
    label, pred = mx.nd.array([0, 1]), mx.nd.array([[0.9, 0.1], [0.8, 0.2]])
    made.update([label], [pred])
    log.note("update_dict")
    made.update_dict({"label": label}, {"pred": pred})
    for what in ("get", "get_name_value", "get_global", "get_global_name_value", "get_config", "reset_local", "reset"):
        log.note(what)
        getattr(made, what)()
    log.note("str")
    str(made)
    log.note("composite")
    both = spy(mx.metric.CompositeEvalMetric, METRIC, log)([kind(), spy(mx.metric.MSE, METRIC, log)()])
    both.add(spy(mx.metric.Loss, METRIC, log)())
    log.note("update")
    both.update([label], [pred[:, 0]])
    log.note("update_dict")
    both.update_dict({"label": label}, {"pred": pred[:, 0]})
    for what in ("get", "get_name_value", "get_global", "get_global_name_value", "get_config", "reset_local", "reset"):
        log.note(what)
        getattr(both, what)()
    log.note("create")
    mx.metric.create([made, "mse"]).update([label], [pred[:, 0]])
    return log


def loaders(mx: Any) -> Log:
    """A data set, a sampler and transforms of a user's classes in a DataLoader."""
    log = Log()
    data = mx.gluon.data
    dataset = spy(data.ArrayDataset, ("__getitem__", "__len__", "transform", "transform_first", "filter", "take"), log)
    made = dataset(np.arange(6, dtype="float32").reshape(3, 2), np.arange(3))
    sampler = spy(data.SequentialSampler, ("__iter__", "__len__"), log)
    batches = spy(data.BatchSampler, ("__iter__", "__len__"), log)
    transform = spy(data.vision.transforms.Compose, ("__call__", "forward"), log)([])
    log.note("make")
    loader = spy(data.DataLoader, ("__iter__", "__len__"), log)(
        made.transform_first(transform), batch_sampler=batches(sampler(3), 2, "keep")
    )
    log.note("len")
    len(loader)
    log.note("iterate")
    for _ in loader:
        log.note("batch")
    return log


def cases() -> Iterator[tuple[str, Callable[[Any], Log]]]:
    """Name and function of each case."""

    def bind(function: Any, *args: Any) -> Callable[[Any], Log]:
        return lambda mx: function(mx, *args)

    for hybrid, active in ((False, False), (True, False), (True, True)):
        for deferred in (False, True):
            kind = f"{'hybrid' if hybrid else 'plain'} block{', active' if active else ''}"
            yield f"{kind}{', deferred' if deferred else ''}", bind(life_of_a_block, hybrid, active, deferred)
    yield "hybrid block on symbols", symbol_of_a_block
    for contexts, store, in_store, separate in (
        (1, "device", None, False), (1, None, None, False), (1, "device", False, True), (2, "device", None, False),
        (2, "device", False, False), (2, "device", False, True), (2, None, None, False),
    ):  # fmt: skip
        name = f"trainer on {contexts}, store {store}, in store {in_store}{', apart' if separate else ''}"
        yield name, bind(steps_of_a_trainer, contexts, store, in_store, separate)
    for contexts in (1, 2):
        for deferred in (False, True):
            name = f"parameter on {contexts}{', deferred' if deferred else ''}"
            yield name, bind(life_of_a_parameter, contexts, deferred)
    for name in ("Uniform", "One", "Constant", "Xavier", "Normal", "Orthogonal"):
        yield f"initializer {name} in gluon", bind(gluon_initializer, name)
        yield f"initializer {name} called", bind(called_initializer, name)
    yield "mixed initializers", mixed_initializer
    yield "metrics", metrics
    yield "loaders", loaders
