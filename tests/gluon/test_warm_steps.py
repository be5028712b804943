"""Steps of a trainer that update the same arrays as the step before: whatever changes between two of them counts."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, gluon, lr_scheduler, nd
from dualmx.gluon import nn
from dualmx.optimizer.rule_optimizer import UpdateReplay

OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("sgd", {"learning_rate": 0.1, "wd": 0.01}),
    "momentum": ("sgd", {"learning_rate": 0.1, "momentum": 0.9}),
    "adam": ("adam", {"learning_rate": 0.1, "wd": 0.01}),
}
Trained = tuple[nn.HybridSequential, gluon.Trainer]


def make(optimizer: Any, options: dict[str, Any] | None) -> Trained:
    """A hybridized network and its trainer, always the same."""
    mx.random.seed(1)
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(3, in_units=2), nn.Dense(2, in_units=3))
    net.initialize(mx.init.Uniform(0.5))
    net.hybridize()
    return net, gluon.Trainer(net.collect_params(), optimizer, options)


def backward(net: Any) -> None:
    with autograd.record():
        loss = (net(nd.array([[1, 2], [3, 4]])) ** 2).sum()
    loss.backward()


def steps(trained: Trained, count: int, batch_size: int = 2) -> None:
    net, trainer = trained
    for _ in range(count):
        backward(net)
        trainer.step(batch_size)


def values(trained: Trained) -> dict[str, np.ndarray]:
    return {name: p.data().asnumpy() for name, p in trained[0].collect_params().items()}


def first(trained: Trained) -> gluon.Parameter:
    return trained[0][0].weight


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of updates that were replayed, as the length of a list."""
    seen: list[int] = []
    run = UpdateReplay.run
    monkeypatch.setattr(UpdateReplay, "run", lambda self: seen.append(1) or run(self))
    return seen


def put(name: str, value: Any) -> Callable[[Trained], None]:
    """A change of an attribute of the optimizer."""
    return lambda t: setattr(t[1].optimizer, name, value)


def of_first(name: str, value: Any) -> Callable[[Trained], None]:
    """A change of an attribute of the first parameter."""
    return lambda t: setattr(first(t), name, value)


def replace_gradient(t: Trained) -> None:
    first(t).data().attach_grad()
    backward(t[0])
    first(t).data().grad[:] = 3


def reload(t: Trained) -> None:
    updater = t[1].updaters[0]
    updater.set_states(updater.get_states())


def reload_with_optimizer(t: Trained) -> None:
    updater = t[1].updaters[0]
    updater.set_states(updater.get_states(dump_optimizer=True))
    updater.optimizer.param_dict = dict(enumerate(t[0].collect_params().values()))
    updater.optimizer.set_learning_rate(0.3)


def other_states(t: Trained) -> None:
    updater = t[1].updaters[0]
    updater.states[0] = copy.deepcopy(updater.states[0])


def no_states(t: Trained) -> None:
    t[1].updaters[0].states.clear()


def unsynced(t: Trained) -> None:
    t[1].updaters[0].states_synced[0] = False


def other_parameter(t: Trained) -> None:
    other = gluon.Parameter("other", shape=(1,), lr_mult=5, wd_mult=3)
    t[1].optimizer.param_dict[1] = other


def other_counts(t: Trained) -> None:
    counts = t[1].optimizer._index_update_count
    counts[0] += 7


def own_rate(t: Trained) -> None:
    optimizer = t[1].optimizer
    optimizer._get_lr = lambda index: 0.5
    optimizer._get_lrs = lambda indices: [0.5] * len(indices)


def moved(t: Trained) -> None:
    t[0].collect_params().reset_ctx(mx.cpu(1))
    t[0].collect_params().reset_ctx(mx.cpu(0))


def set_again(t: Trained) -> None:
    t[0].initialize(mx.init.One(), force_reinit=True)


def not_trained(t: Trained) -> None:
    first(t).grad_req = "null"


def trained_again(t: Trained) -> None:
    first(t).grad_req = "null"
    steps(t, 2)
    first(t).grad_req = "write"


def accumulated(t: Trained) -> None:
    first(t).grad_req = "add"
    backward(t[0])
    backward(t[0])


def scheduled(t: Trained) -> None:
    t[1].optimizer.lr_scheduler = lr_scheduler.FactorScheduler(1, 0.5, base_lr=0.2)


CHANGES: dict[str, Callable[[Trained], None]] = {
    "nothing": lambda t: None,
    "rate": lambda t: t[1].set_learning_rate(0.3),
    "rate by its attribute": put("lr", 0.3),
    "scheduler": scheduled,
    "decay": put("wd", 0.2),
    "bound": put("clip_gradient", 0.1),
    "momentum": put("momentum", 0.5),
    "beta1": put("beta1", 0.5),
    "master copies": put("multi_precision", True),
    "factor of the rate": of_first("lr_mult", 3.0),
    "factor of the decay": of_first("wd_mult", 30.0),
    "factors of all": lambda t: t[0].collect_params().setattr("lr_mult", 2.0),
    "another parameter": other_parameter,
    "gradient of another size": lambda t: steps(t, 1, batch_size=5),
    "gradient in another array": replace_gradient,
    "value": lambda t: first(t).set_data(nd.ones((3, 2))),
    "value in place": lambda t: first(t).data().__setitem__(slice(None), 2),
    "values of another initializer": set_again,
    "no gradient": not_trained,
    "a gradient again": trained_again,
    "gradients that add up": accumulated,
    "another context": moved,
    "states in a file": reload,
    "states and optimizer": reload_with_optimizer,
    "another state": other_states,
    "no states": no_states,
    "states of another context": unsynced,
    "counts": other_counts,
    "a method": own_rate,
}


@pytest.mark.usefixtures("numpy_tier")  # where both networks compute the same bits, however often they have run
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("change", CHANGES)
def test_changes_between_steps(
    change: str, optimizer: str, replays: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    warm = make(*OPTIMIZERS[optimizer])
    steps(warm, 4)
    assert len(replays) == 3
    CHANGES[change](warm)
    steps(warm, 3)
    assert len(replays) > 3 or change in ("master copies", "a method", "another parameter")
    monkeypatch.setattr(UpdateReplay, "of", lambda *a: None)
    cold = make(*OPTIMIZERS[optimizer])
    steps(cold, 4)
    unchanged = values(cold)
    CHANGES[change](cold)
    steps(cold, 3)
    for name, value in values(warm).items():
        assert np.array_equal(value, values(cold)[name]), name
    assert not all(np.array_equal(value, unchanged[name]) for name, value in values(cold).items())
    assert warm[1].optimizer.num_update == cold[1].optimizer.num_update
    assert warm[1].optimizer._all_index_update_counts == cold[1].optimizer._all_index_update_counts


def test_replays_in_warm_steps(replays: list[int]) -> None:
    trained = make(*OPTIMIZERS["momentum"])
    steps(trained, 1)
    assert not replays
    steps(trained, 5)
    assert len(replays) == 5
    trained[1].set_learning_rate(0.5)  # is read each time
    steps(trained, 1)
    assert len(replays) == 6
    first(trained).lr_mult = 2.0
    steps(trained, 1)
    assert len(replays) == 6
    steps(trained, 1)
    assert len(replays) == 7


def test_stale_gradients_of_warm_steps() -> None:
    trained = make(*OPTIMIZERS["momentum"])
    steps(trained, 4)
    before = values(trained)
    with pytest.raises(UserWarning, match="was not computed by a backward pass"):
        trained[1].step(2)
    trained[1].step(2, ignore_stale_grad=True)
    assert all(np.array_equal(before[name], value) for name, value in values(trained).items())
    steps(trained, 1)
    assert not np.array_equal(before[first(trained).name], first(trained).data().asnumpy())


@pytest.mark.parametrize("method", ["_get_lrs", "_update_count", "update", "update_multi_precision", "_update_impl"])
def test_optimizers_of_users_are_asked_each_time(method: str, replays: list[int]) -> None:
    calls: list[Any] = []

    def hook(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(args[0])
        return getattr(mx.optimizer.SGD, method)(self, *args, **kwargs)

    own = type("Own", (mx.optimizer.SGD,), {method: hook, "__module__": "elsewhere"})
    trained = make(own(learning_rate=0.1, momentum=0.9), None)
    steps(trained, 2)
    n = len(calls)
    assert n
    steps(trained, 3)
    assert len(calls) == n // 2 * 5 and not replays


@pytest.mark.usefixtures("numpy_tier")
def test_states_of_warm_steps_are_saved_and_loaded(tmp_path: Path, replays: list[int]) -> None:
    trained = make(*OPTIMIZERS["adam"])
    steps(trained, 4)
    trained[1].save_states(str(tmp_path / "states"))
    saved = values(trained)
    steps(trained, 3)
    wanted = values(trained)
    for name, p in trained[0].collect_params().items():
        p.set_data(nd.array(saved[name]))
    trained[1].load_states(str(tmp_path / "states"))
    steps(trained, 3)
    assert all(np.array_equal(wanted[name], value) for name, value in values(trained).items())
    assert len(replays) == 8


def test_copies_of_warm_updaters() -> None:
    trained = make(*OPTIMIZERS["momentum"])
    steps(trained, 3)
    updater = trained[1].updaters[0]
    made = pickle.loads(pickle.dumps(updater))
    assert np.array_equal(made.states[0].asnumpy(), updater.states[0].asnumpy())
    other = copy.deepcopy(updater)
    weight = nd.ones(updater.states[0].shape)
    other(0, nd.ones_like(weight), weight)
    assert (weight.asnumpy() != 1).all()


def test_factors_of_parameters() -> None:
    p = gluon.Parameter("p", shape=(1,), lr_mult=2.0)
    assert (p.lr_mult, p.wd_mult, vars(p)["lr_mult"]) == (2.0, 1.0, 2.0)
    p.wd_mult = 0.5
    made = copy.deepcopy(p)
    assert (made.lr_mult, made.wd_mult) == (2.0, 0.5)
    del p.lr_mult
    with pytest.raises(AttributeError, match="lr_mult"):
        p.lr_mult  # noqa: B018
