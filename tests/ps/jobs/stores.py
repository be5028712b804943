"""Run by every worker of a job (2 workers, 2 servers, MXNET_KVSTORE_BIGARRAY_BOUND=8): one line per check that held."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dualmx as mx
from dualmx.core.errors import ArgumentError, ArgumentTypeError, MXNetError

FOLDER = Path(sys.argv[1])
kv = mx.kv.create("dist_sync")
RANK, WORKERS = kv.rank, kv.num_workers
CHECKS: list[Callable[[], Any]] = []


def check(f: Callable[[], Any]) -> Callable[[], Any]:
    CHECKS.append(f)
    return f


def pulled(store: Any, key: Any, like: Any) -> np.ndarray:
    out = mx.nd.zeros(like.shape, dtype=like.dtype)
    store.pull(key, out=out)
    return out.asnumpy()


def raises(kind: type[Exception], text: str, f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    try:
        f(*args, **kwargs)
    except kind as e:
        assert text in str(e), f"expected {text!r} in {e}"
        return
    raise AssertionError(f"expected {kind.__name__}: {text}")


@check
def described() -> None:
    assert WORKERS == 2 and kv.type == "dist_sync" and os.environ["DMLC_RANK"] == str(RANK)
    assert kv.num_dead_node() == kv.num_dead_node(60) == kv.num_dead_node(node_id=4) == kv.get_num_dead_node(9) == 0
    assert kv.is_capable("optimizer")


@check
def values() -> None:
    small, big = mx.nd.ones((2, 3)) * (RANK + 1), mx.nd.arange(100).reshape((10, 10)) + RANK
    kv.init(["small", "big"], [small, big])
    assert (pulled(kv, "small", small) == 1).all() and (pulled(kv, "big", big) == np.arange(100).reshape(10, 10)).all()
    for turn in range(1, 4):
        kv.push(["small", "big"], [[small * turn, small], big])
        assert (pulled(kv, "small", small) == 3 * turn + 3).all()
        assert (pulled(kv, "big", big) == 2 * np.arange(100).reshape(10, 10) + 1).all()
    out = [mx.nd.zeros((2, 3)), mx.nd.zeros((2, 3), dtype="float64")]
    kv.pushpull("small", small, out=out)
    assert all((o.asnumpy() == 3).all() for o in out) and out[1].dtype == np.float64
    placed = kv._kv.keys[kv._number, "big"].slices
    assert [s.server for s in placed] == [0, 1] and len(kv._kv.keys[kv._number, "small"].slices) == 1
    rows = mx.nd.zeros((10, 10))
    kv.row_sparse_pull("big", out=rows, row_ids=mx.nd.array([1, 4]))
    assert np.flatnonzero(rows.asnumpy().any(axis=1)).tolist() == [1, 4]


@check
def types() -> None:
    for i, dtype in enumerate(("float16", "float64", "int32", "int64", "uint8", "bfloat16")):
        store = f"t{dtype}"
        x = mx.nd.arange(20).astype(dtype)
        kv.init(store, x)
        kv.push(store, x)
        assert (pulled(kv, store, x).astype("float64") == 2 * np.arange(20)).all(), (i, dtype)


@check
def repeated_keys_and_commands() -> None:
    one = mx.nd.ones(3)
    kv.init(["r", "s"], [one, one])
    kv.push(["r", "s", "r"], [one * 2, one * 3, one * 5])
    assert (pulled(kv, "r", one) == 14).all() and (pulled(kv, "s", one) == 6).all()
    raises(ArgumentError, "there twice", kv.init, ["t", "t"], [one, one])
    kv.send_command_to_servers(77, "hello")
    raises(MXNetError, "no pickled optimizers", kv._send_command_to_servers, 0, "x")
    file = str(FOLDER / "servers.json")
    store = mx.kv.create("dist_sync")
    store.init([0, 1], [one, one])
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
    mx.profiler.set_config(profile_all=True, filename=file, profile_process="server")
    mx.profiler.set_state("run", profile_process="server")
    store.push([0, 1], [one, one])
    assert (pulled(store, 0, one) == -1).all() and (pulled(store, 1, one) == -1).all()
    kv.barrier()
    mx.profiler.set_state("stop", profile_process="server")
    mx.profiler.dump(profile_process="server")
    for rank in range(2):
        assert "sgd" in (FOLDER / f"rank{rank}_servers.json").read_text(), rank


@check
def broadcast() -> None:
    out = [mx.nd.zeros(4), mx.nd.zeros(4)]
    kv.broadcast("b", mx.nd.full(4, RANK + 5), out=out)
    assert all((o.asnumpy() == 5).all() for o in out)
    kv.reset("b", mx.nd.full(4, 9))
    kv.barrier()
    assert (pulled(kv, "b", out[0]) == 9).all()


@check
def errors() -> None:
    x = mx.nd.ones((2, 3))
    raises(ArgumentError, "initialized before", kv.init, "small", x)
    raises(ArgumentError, "has not been initialized", kv.push, "absent", x)
    raises(ArgumentError, "has not been initialized", kv.pull, "absent", out=x)
    raises(ArgumentError, "float32[3, 2], expected float32[2, 3]", kv.push, "small", mx.nd.ones((3, 2)))
    raises(ArgumentError, "float64[2, 3], expected float32[2, 3]", kv.push, "small", x.astype("float64"))
    raises(ArgumentError, "cannot be mixed", kv.init, 3, x)
    raises(ArgumentTypeError, "expected an Optimizer", kv.set_optimizer, "sgd")
    raises(MXNetError, "servers run no code of yours", kv._set_updater, lambda k, g, w: None)
    raises(ArgumentError, "did you mean 'dist_sync'", mx.kv.create, "dist_synk")

    class Mine(mx.optimizer.SGD):
        pass

    raises(ArgumentError, "the optimizer Mine", kv.set_optimizer, Mine())
    kv.push("small", x)  # the store works as before
    assert (pulled(kv, "small", x) == 2).all()


# -- training: the same as one process with the whole batch


def batch(rank: int, turn: int) -> tuple[Any, Any]:
    draw = np.random.default_rng([rank, turn])
    return mx.nd.array(draw.standard_normal((8, 6))), mx.nd.array(draw.standard_normal((8, 4)))


def network() -> Any:
    net = mx.gluon.nn.HybridSequential(prefix="")
    with net.name_scope():
        net.add(mx.gluon.nn.Dense(5, in_units=6, activation="tanh"), mx.gluon.nn.Dense(4, in_units=5))
    net.initialize(mx.init.Xavier())
    draw = np.random.default_rng(RANK + 100)  # the initial weights differ between workers; those of rank 0 count
    for p in net.collect_params().values():
        p.set_data(mx.nd.array(draw.standard_normal(p.shape) * 0.3))
    return net


def train(net: Any, trainer: Any, turns: range, ranks: range, rows: int) -> None:
    for turn in turns:
        parts = [batch(r, turn) for r in ranks]
        x, y = (mx.nd.concat(*[p[i] for p in parts], dim=0) for i in (0, 1))
        with mx.autograd.record():
            loss = ((net(x) - y) ** 2).sum()
        loss.backward()
        trainer.step(rows)


def weights(net: Any) -> list[np.ndarray]:
    return [p.data().asnumpy() for p in net.collect_params().values()]


def close(a: list[np.ndarray], b: list[np.ndarray], what: str) -> None:
    for x, y in zip(a, b, strict=True):
        assert np.allclose(x, y, rtol=2e-6, atol=2e-6), (what, np.abs(x - y).max())


def alone(name: str, settings: dict[str, Any], turns: int, first: list[np.ndarray], change: Any = None) -> Any:
    """One process with the batches of all workers."""
    net = network()
    for p, w in zip(net.collect_params().values(), first, strict=True):
        p.set_data(mx.nd.array(w))
    trainer = mx.gluon.Trainer(net.collect_params(), name, dict(settings), kvstore=None)
    for turn in range(turns):
        if change is not None:
            change(turn, net, trainer)
        train(net, trainer, range(turn, turn + 1), range(WORKERS), 16)
    return net


def first_weights() -> list[np.ndarray]:
    draw = np.random.default_rng(100)
    return [(draw.standard_normal(p.shape) * 0.3).astype("float32") for p in network().collect_params().values()]


OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01}),
    ("nadam", {"learning_rate": 0.02}),
    ("adam", {"learning_rate": 0.05}),
    ("lamb", {"learning_rate": 0.05, "wd": 0.01}),
]


@check
def training() -> None:
    for name, settings in OPTIMIZERS:
        expected = weights(alone(name, settings, 3, first_weights()))
        for in_store in (True, False) if name == "sgd" else (True,):
            net = network()
            params = net.collect_params()
            trainer = mx.gluon.Trainer(params, name, dict(settings), kvstore="dist_sync", update_on_kvstore=in_store)
            train(net, trainer, range(3), range(RANK, RANK + 1), 16)
            close(weights(net), expected, f"{name} {in_store}")
            np.savez(FOLDER / f"{name}-{in_store}-{RANK}.npz", *weights(net))
            grads = [p.grad().asnumpy() for p in params.values()]
            assert not any((g == p.data().asnumpy()).all() for g, p in zip(grads, params.values(), strict=True))


def changes(turn: int, net: Any, trainer: Any) -> None:
    parameters = list(net.collect_params().values())
    if turn == 1:
        trainer.set_learning_rate(0.3)
        parameters[0].lr_mult, parameters[1].wd_mult = 0.0, 3.0
    if turn == 2:
        parameters[0].lr_mult = 0.5


@check
def changes_reach_the_servers() -> None:
    settings = {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.1}
    expected = weights(alone("sgd", settings, 4, first_weights(), changes))
    net = network()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", settings, kvstore="dist_sync")
    for turn in range(4):
        changes(turn, net, trainer)
        train(net, trainer, range(turn, turn + 1), range(RANK, RANK + 1), 16)
    close(weights(net), expected, "changes")
    schedule = mx.lr_scheduler.FactorScheduler(step=1, factor=0.5, base_lr=0.2)
    expected = weights(alone("sgd", {"lr_scheduler": schedule}, 3, first_weights()))
    net, schedule = network(), mx.lr_scheduler.FactorScheduler(step=1, factor=0.5, base_lr=0.2)
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"lr_scheduler": schedule}, kvstore="dist_sync")
    train(net, trainer, range(3), range(RANK, RANK + 1), 16)
    close(weights(net), expected, "schedule")
    assert trainer.learning_rate == 0.05


def rates(turn: int, trainer: Any) -> None:
    """Schedules change, come and go, also after they have lowered the rate."""
    opt = trainer.optimizer
    if turn == 2:
        opt.lr_scheduler.base_lr = 0.4
    if turn == 4:
        opt.lr_scheduler = mx.lr_scheduler.PolyScheduler(8, 0.2)
    if turn == 6:
        opt.lr_scheduler, opt.lr = None, 0.05


@check
def changes_of_schedules_reach_the_servers() -> None:
    def settings() -> dict[str, Any]:
        return {"lr_scheduler": mx.lr_scheduler.FactorScheduler(step=1, factor=0.5, base_lr=0.2), "momentum": 0.9}

    expected = weights(alone("sgd", settings(), 7, first_weights(), lambda turn, net, trainer: rates(turn, trainer)))
    net = network()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", settings(), kvstore="dist_sync")
    for turn in range(7):
        rates(turn, trainer)
        train(net, trainer, range(turn, turn + 1), range(RANK, RANK + 1), 16)
    close(weights(net), expected, "schedules")
    trainer.optimizer.lr_scheduler = lambda n: 0.1
    raises(ArgumentError, "the schedule function is your own", train, net, trainer, range(1), range(1), 16)


@check
def states() -> None:
    for name, settings in OPTIMIZERS[1:]:
        expected = weights(alone(name, settings, 5, first_weights()))
        net = network()
        trainer = mx.gluon.Trainer(net.collect_params(), name, dict(settings), kvstore="dist_sync")
        train(net, trainer, range(3), range(RANK, RANK + 1), 16)
        file = str(FOLDER / f"{name}-{RANK}.states")
        trainer.save_states(file)
        saved = weights(net)
        fresh = network()
        for p, w in zip(fresh.collect_params().values(), saved, strict=True):
            p.set_data(mx.nd.array(w))
        other = mx.gluon.Trainer(fresh.collect_params(), name, {"learning_rate": 9.0}, kvstore="dist_sync")
        other.load_states(file)
        train(fresh, other, range(3, 5), range(RANK, RANK + 1), 16)
        close(weights(fresh), expected, f"{name} resumed")
        lone = network()  # the same file continues in one process
        for p, w in zip(lone.collect_params().values(), saved, strict=True):
            p.set_data(mx.nd.array(w))
        single = mx.gluon.Trainer(lone.collect_params(), name, dict(settings), kvstore=None)
        single.load_states(file)
        train(lone, single, range(3, 5), range(WORKERS), 16)
        close(weights(lone), expected, f"{name} resumed alone")


@check
def compression() -> None:
    store = mx.kv.create("dist_sync")
    store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    x = mx.nd.array([0.3, 0.6, -0.7, 0.0] * 5)
    store.init("x", x)
    store.push("x", x)
    assert pulled(store, "x", x)[:4].tolist() == [0, 1, -1, 0]
    store.push("x", x)
    assert pulled(store, "x", x)[:4].tolist() == [1, 1, -1, 0]
    for kind, first, second in (("1bit", [2, 2, -2, -2], [-2, 2, -2, 2]), ("fp16", [0.6, 1.2, -1.4, 0], None)):
        store = mx.kv.create("dist_sync")
        store.set_gradient_compression({"type": kind})
        store.init("x", x)
        store.push("x", x)
        assert np.allclose(pulled(store, "x", x)[:4], first, atol=1e-3), kind
        store.push("x", x)
        assert np.allclose(pulled(store, "x", x)[:4], second or first, atol=1e-3), kind
    table = mx.nd.array([[0.25, 0], [0, 0], [0.125, 3]])
    store = mx.kv.create("dist_sync")
    store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    store.init(["x", "table"], [x, table])
    store.push(["x", "table"], [x, table.tostype("row_sparse")])  # rows travel as they are
    assert (
        pulled(store, "x", x)[:3].tolist() == [0, 1, -1]
        and (pulled(store, "table", table) == 2 * table.asnumpy()).all()
    )
    store.init("half", x.astype("float16"))
    raises(ArgumentError, "expected dense float32", store.push, "half", x.astype("float16"))
    raises(ArgumentError, "expected one of 2bit, 1bit, fp16", store.set_gradient_compression, {"type": "3bit"})
    net = network()
    compress = {"type": "2bit", "threshold": 0.05}
    trainer = mx.gluon.Trainer(
        net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore="dist_sync", compression_params=compress
    )
    train(net, trainer, range(3), range(RANK, RANK + 1), 16)
    assert all(np.isfinite(w).all() for w in weights(net))


@check
def module() -> None:
    x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc")
    symbol = mx.sym.LinearRegressionOutput(x, mx.sym.Variable("label"), name="out")
    results = []
    for kind, ranks in (("dist_sync", range(RANK, RANK + 1)), (None, range(WORKERS))):
        parts = [[batch(r, t)[i].asnumpy() for t in range(3) for r in ranks] for i in (0, 1)]
        rows = 8 * len(ranks)
        data = mx.io.NDArrayIter(np.concatenate(parts[0]), np.concatenate(parts[1]), rows, label_name="label")
        mod = mx.mod.Module(symbol, label_names=("label",))
        start = {"fc_weight": mx.nd.ones((4, 6)) * 0.1, "fc_bias": mx.nd.zeros(4)}
        mod.fit(data, kvstore=kind, num_epoch=2, arg_params=start, eval_metric="mse",
                optimizer_params={"learning_rate": 0.1, "momentum": 0.9, "wd": 0.1})  # fmt: skip
        results.append([v.asnumpy() for _, v in sorted(mod.get_params()[0].items())])
    close(results[0], results[1], "module")
    np.savez(FOLDER / f"module-None-{RANK}.npz", *results[0])


@check
def asynchronous() -> None:
    store = mx.kv.create("dist_device_async")
    x = mx.nd.ones(10)
    store.init(3, x)
    raises(ArgumentError, "need an optimizer", store.push, 3, x)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
    for _ in range(RANK + 1):  # workers need not push equally often
        store.push(3, x)
    pulled(store, 3, x)
    kv.barrier()
    assert (pulled(store, 3, x) == 1 - 3).all()
    params = network().collect_params()
    wrong = {"kvstore": "dist_async", "update_on_kvstore": False}
    raises(ArgumentError, "needs update_on_kvstore=True", mx.gluon.Trainer, params, "sgd", **wrong)


for one in CHECKS:
    one()
    kv.barrier()
    print("held:", one.__name__, flush=True)
