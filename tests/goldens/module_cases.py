"""Module runs that `record.py` records from MXNet and the tests replay.

Every case takes the framework module (`mx`), and returns arrays by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]
CASES: dict[str, Callable[[Any], Arrays]] = {}

_rng = np.random.RandomState(0)
X = _rng.randn(20, 3).astype("float32")
Y = (X[:, 0] > 0).astype("float32")
PARAMS = {
    "fc1_weight": _rng.randn(4, 3),
    "fc1_bias": _rng.randn(4),
    "bn_gamma": _rng.rand(4) + 0.5,
    "bn_beta": _rng.randn(4),
    "fc2_weight": _rng.randn(2, 4),
    "fc2_bias": _rng.randn(2),
}
STATES = {"bn_moving_mean": np.zeros(4), "bn_moving_var": np.ones(4)}
PLAIN = {k: v for k, v in PARAMS.items() if not k.startswith("bn")}
IDS = _rng.randint(0, 5, (5, 4, 6))
BUCKETS = {"emb_weight": _rng.randn(5, 3), "fc_weight": _rng.randn(2, 3), "fc_bias": _rng.randn(2)}


def case(fn: Callable[[Any], Arrays]) -> Callable[[Any], Arrays]:
    """Add a function to the cases."""
    CASES[fn.__name__] = fn
    return fn


def network(mx: Any, norm: bool = True) -> Any:
    """A small classifier."""
    n = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="fc1")
    if norm:
        n = mx.sym.BatchNorm(n, name="bn", fix_gamma=False)
    n = mx.sym.Activation(n, act_type="tanh", name="act")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(n, num_hidden=2, name="fc2"), name="softmax")


def arrays(mx: Any, values: Arrays) -> dict[str, Any]:
    """NDArrays of NumPy arrays, by name."""
    return {k: mx.nd.array(v) for k, v in values.items()}


def params_of(mod: Any) -> Arrays:
    """Parameters and auxiliary states."""
    args, states = mod.get_params()
    return {k: v.asnumpy() for k, v in {**args, **states}.items()}


def data(mx: Any, size: int = 4) -> Any:
    """The samples in batches."""
    return mx.io.NDArrayIter(X, Y, batch_size=size)


def batch(mx: Any, rows: int = 4) -> Any:
    """The first samples."""
    return mx.io.DataBatch([mx.nd.array(X[:rows])], [mx.nd.array(Y[:rows])])


def bound(mx: Any, symbol: Any = None, values: Arrays = PLAIN, label: bool = True, **kwargs: Any) -> Any:
    """A module bound for four samples, with parameters and SGD."""
    mod = mx.mod.Module(
        network(mx, False) if symbol is None else symbol,
        label_names=["softmax_label"] if label else None,
        state_names=kwargs.pop("state_names", None),
    )
    mod.bind([("data", (4, 3))], [("softmax_label", (4,))] if label else None, **kwargs)
    mod.init_params(arg_params=arrays(mx, values), aux_params={})
    mod.init_optimizer(optimizer_params={"learning_rate": 0.1})
    return mod


def _fit(mx: Any, norm: bool, **kwargs: Any) -> Arrays:
    mod = mx.mod.Module(network(mx, norm))
    values = {"arg_params": arrays(mx, PARAMS if norm else PLAIN), "aux_params": arrays(mx, STATES if norm else {})}
    mod.fit(data(mx), num_epoch=2, **values, **kwargs)
    score = np.array([v for _, v in mod.score(data(mx, 6), ["acc", "ce"])])
    return {**params_of(mod), "score": score, "predicted": mod.predict(data(mx, 6)).asnumpy()}


@case
def fit_momentum_and_decay(mx: Any) -> Arrays:
    """Weight decay leaves biases alone."""
    return _fit(mx, True, optimizer_params={"learning_rate": 0.1, "momentum": 0.9, "wd": 0.1})


@case
def fit_adam(mx: Any) -> Arrays:
    """No BatchNorm: the vanishing gradient of the bias before it would amplify rounding."""
    return _fit(mx, False, optimizer="adam", optimizer_params={"learning_rate": 0.05, "wd": 0.01})


@case
def fit_scheduler(mx: Any) -> Arrays:
    """The schedule counts batches."""
    schedule = mx.lr_scheduler.FactorScheduler(3, 0.5, base_lr=0.5)
    return _fit(mx, True, optimizer_params={"lr_scheduler": schedule})


@case
def fit_optimizer_object(mx: Any) -> Arrays:
    """An optimizer object keeps its own rescale_grad."""
    return _fit(mx, True, optimizer=mx.optimizer.NAG(learning_rate=0.1, momentum=0.9, rescale_grad=0.25))


@case
def fixed_parameters(mx: Any) -> Arrays:
    """Fixed parameters do not move."""
    mod = mx.mod.Module(network(mx), fixed_param_names=["fc1_weight", "bn_gamma"])
    mod.fit(data(mx), num_epoch=1, arg_params=arrays(mx, PARAMS), aux_params=arrays(mx, STATES))
    return params_of(mod)


@case
def two_contexts(mx: Any) -> Arrays:
    """An uneven batch over two contexts."""
    mod = mx.mod.Module(network(mx, False), context=[mx.cpu(0), mx.cpu(1)])
    settings = {"learning_rate": 0.1, "momentum": 0.9}
    mod.fit(data(mx, 5), num_epoch=2, arg_params=arrays(mx, PLAIN), optimizer_params=settings)
    return {**params_of(mod), "predicted": mod.predict(data(mx, 5)).asnumpy()}


@case
def input_gradients(mx: Any) -> Arrays:
    """Gradients of the inputs."""
    mod = bound(mx, inputs_need_grad=True)
    mod.forward_backward(batch(mx))
    return {"gradient": mod.get_input_grads()[0].asnumpy()}


@case
def accumulated_gradients(mx: Any) -> Arrays:
    """Three backward passes before an update."""
    mod = bound(mx, grad_req="add")
    for _ in range(3):
        mod.forward_backward(batch(mx))
    mod.update()
    return params_of(mod)


@case
def changing_batch_sizes(mx: Any) -> Arrays:
    """Batches of other sizes than bound."""
    mod = bound(mx)
    for rows in (4, 2, 7, 4):
        mod.forward_backward(batch(mx, rows))
        mod.update()
    return params_of(mod)


@case
def head_gradients(mx: Any) -> Arrays:
    """A network that does not end in a loss."""
    mod = bound(mx, network(mx, False).get_internals()["fc2_output"], label=False)
    mod.forward(mx.io.DataBatch([mx.nd.array(X[:4])]), is_train=True)
    mod.backward([mx.nd.array(X[:4, :2])])
    mod.update()
    return params_of(mod)


def bucket(mx: Any, key: int) -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
    """A bag of `key` words."""
    e = mx.sym.Embedding(mx.sym.var("data"), input_dim=5, output_dim=3, name="emb")
    f = mx.sym.FullyConnected(mx.sym.sum(e, axis=1), num_hidden=2, name="fc")
    return mx.sym.SoftmaxOutput(f, name="softmax"), ("data",), ("softmax_label",)


def bucket_batch(mx: Any, number: int, key: int) -> Any:
    """A batch of a bucket."""
    return mx.io.DataBatch(
        [mx.nd.array(IDS[number, :, :key])],
        [mx.nd.ones(4)],
        bucket_key=key,
        provide_data=[("data", (4, key))],
        provide_label=[("softmax_label", (4,))],
    )


@case
def buckets(mx: Any) -> Arrays:
    """Buckets share parameters and optimizer."""
    mod = mx.mod.BucketingModule(lambda key: bucket(mx, key), default_bucket_key=6)
    mod.bind([("data", (4, 6))], [("softmax_label", (4,))])
    mod.init_params(arg_params=arrays(mx, BUCKETS), aux_params={})
    mod.init_optimizer(optimizer="adam", optimizer_params={"learning_rate": 0.1})
    found = {}
    for i, key in enumerate((6, 3, 4, 3, 6)):
        mod.forward_backward(bucket_batch(mx, i, key))
        mod.update()
        found[f"outputs{i}"] = mod.get_outputs()[0].asnumpy()
    return {**found, **params_of(mod)}


def features(mx: Any, name: str = "a") -> Any:
    """First half of a network."""
    fc = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name=name)
    return mx.mod.Module(mx.sym.Activation(fc, act_type="tanh"), label_names=None)


@case
def chain_of_modules(mx: Any) -> Arrays:
    """Two networks in a chain."""
    fc = mx.sym.FullyConnected(mx.sym.var("data2"), num_hidden=2, name="b")
    head = mx.mod.Module(mx.sym.SoftmaxOutput(fc, name="softmax"), data_names=["data2"])
    mod = mx.mod.SequentialModule().add(features(mx)).add(head, take_labels=True, auto_wiring=True)
    values = {"a_weight": PLAIN["fc1_weight"], "a_bias": PLAIN["fc1_bias"]}
    values |= {"b_weight": PLAIN["fc2_weight"], "b_bias": PLAIN["fc2_bias"]}
    settings = {"learning_rate": 0.1, "momentum": 0.9}
    mod.fit(data(mx), num_epoch=2, arg_params=arrays(mx, values), optimizer_params=settings)
    score = np.array([v for _, v in mod.score(data(mx), "ce")])
    return {**params_of(mod), "score": score, "predicted": mod.predict(data(mx)).asnumpy()}


@case
def loss_in_python(mx: Any) -> Arrays:
    """A chain that ends in a Python function."""
    fc = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="a")
    loss = mx.mod.PythonLossModule(grad_func=lambda scores, labels: scores - labels.reshape((-1, 1)))
    mod = mx.mod.SequentialModule().add(mx.mod.Module(fc, label_names=None))
    mod.add(loss, take_labels=True, auto_wiring=True)
    values = arrays(mx, {"a_weight": PLAIN["fc1_weight"][:1], "a_bias": PLAIN["fc1_bias"][:1]})
    mod.fit(data(mx), num_epoch=2, eval_metric="mse", arg_params=values, optimizer_params={"learning_rate": 0.1})
    return {**params_of(mod), "score": np.array([v for _, v in mod.score(data(mx), "mse")])}


@case
def carried_states(mx: Any) -> Arrays:
    """A state is fed from an output."""
    h = mx.sym.var("h")
    product = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc") * h
    net = mx.sym.Group([mx.sym.MakeLoss(mx.sym.sum(product)), mx.sym.BlockGrad(h + 1)])
    values = {"fc_weight": PARAMS["fc1_weight"][:2], "fc_bias": PARAMS["fc1_bias"][:2]}
    mod = bound(mx, net, values, label=False, state_names=["h"])
    mod.set_states(value=2)
    for _ in range(2):
        mod.forward_backward(mx.io.DataBatch([mx.nd.array(X[:4])]))
        mod.update()
        mod.set_states(states=mod.get_outputs(merge_multi_context=False)[1:])
    return {"state": mod.get_states(merge_multi_context=False)[0][0].asnumpy(), **params_of(mod)}


def record(mx: Any) -> Any:
    """Arrays of every run."""
    return {f"{name}:{k}": v for name, run in CASES.items() for k, v in run(mx).items()}
