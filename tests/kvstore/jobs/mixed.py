"""Run by every worker of a job (2 workers, 2 servers): dense parameters between the workers, tables on the servers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dualmx as mx
from dualmx.core.errors import ArgumentError, ArgumentTypeError, MXNetError, OrderError
from dualmx.parallel.process_group import ProcessGroup

FOLDER = Path(sys.argv[1])
kv = mx.kv.create("dist_mixed")
RANK, WORKERS = kv.rank, kv.num_workers
CHECKS: list[Callable[[], Any]] = []
ROWS, WIDTH, UNITS, BATCH = 60, 4, 24, 6


def check(f: Callable[[], Any]) -> Callable[[], Any]:
    CHECKS.append(f)
    return f


def raises(kind: type[Exception], text: str, f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    try:
        f(*args, **kwargs)
    except kind as e:
        assert text in str(e), f"expected {text!r} in {e}"
        return
    raise AssertionError(f"expected {kind.__name__}: {text}")


exchanged = [0]  # bytes of arrays that this worker has given to the sums of the workers
_reduce, _gather = ProcessGroup.all_reduce, ProcessGroup.all_gather


def _count(f: Callable[..., Any]) -> Callable[..., Any]:
    def counted(self: ProcessGroup, x: np.ndarray, *args: Any) -> Any:
        exchanged[0] += x.nbytes
        return f(self, x, *args)

    return counted


ProcessGroup.all_reduce, ProcessGroup.all_gather = _count(_reduce), _count(_gather)  # type: ignore[method-assign]


def moved() -> int:
    """Bytes of arrays that all servers have received and sent so far."""
    kv.barrier()
    found = [r.meta for r in kv._kv.wait(kv._kv.ask_all("status", {"op": "status"}))]
    kv.barrier()
    return sum(m["received"] + m["sent"] for m in found)


class Net(mx.gluon.Block):
    """A table, and dense layers behind it."""

    def __init__(self, kind: str, rows: int):
        super().__init__(prefix="")
        with self.name_scope():
            if kind == "rows":
                self.table = mx.gluon.contrib.nn.SparseEmbedding(rows, WIDTH)
            else:
                self.table = mx.gluon.nn.Embedding(rows, WIDTH, sparse_grad=kind == "sparse gradient")
            self.hidden = mx.gluon.nn.Dense(UNITS, activation="tanh", in_units=WIDTH)
            self.out = mx.gluon.nn.Dense(1, in_units=UNITS)

    def forward(self, x: Any) -> Any:
        return self.out(self.hidden(self.table(x)))


def network(kind: str, rank: int = 0, rows: int = ROWS) -> Net:
    net = Net(kind, rows)
    net.initialize()
    draw = np.random.default_rng(9 + rank)  # those of rank 0 are everybody's
    for _, p in sorted(net.collect_params_with_prefix().items()):
        p.set_data(mx.nd.array(draw.standard_normal(p.shape) * 0.3))
    return net


def batch(rank: int, turn: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng([rank, turn, 7])
    return draw.integers(0, ROWS, (BATCH,)), draw.standard_normal((BATCH, 1)).astype("float32")


def backward(net: Any, turn: int, ranks: range) -> None:
    x, y = (np.concatenate(parts) for parts in zip(*(batch(r, turn) for r in ranks), strict=True))
    with mx.autograd.record():
        loss = ((net(mx.nd.array(x)) - mx.nd.array(y)) ** 2).sum()
    loss.backward()


def train(net: Any, trainer: Any, turns: range, ranks: range, between: Any = None) -> None:
    for turn in turns:
        if between is not None:
            between(turn, net, trainer)
        backward(net, turn, ranks)
        trainer.step(BATCH * WORKERS)


def weights(net: Any) -> dict[str, np.ndarray]:
    file = str(FOLDER / f"weights-{RANK}.params")
    net.save_parameters(file)
    held: Any = mx.nd.load(file)
    return {name: held[name].asnumpy() for name in sorted(held)}


def trained(
    store: str | None, kind: str, name: str, settings: dict[str, Any], turns: int = 4, between: Any = None
) -> dict[str, np.ndarray]:
    net = network(kind, RANK if store else 0)
    trainer = mx.gluon.Trainer(net.collect_params(), name, dict(settings), kvstore=store or "device")
    train(net, trainer, range(turns), MINE if store else range(WORKERS), between)
    return weights(net)


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray], what: Any, bound: float = 0.0) -> None:
    assert list(a) == list(b), what
    for name in a:
        worst = np.abs(a[name] - b[name]).max()
        assert worst <= bound, (what, name, worst)


MINE = range(RANK, RANK + 1)
KINDS = ("rows", "sparse gradient", "dense")
OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01}),
    ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01, "lazy_update": False}),
    ("adam", {"learning_rate": 0.05}),
    ("ftrl", {"learning_rate": 0.1}),
    ("lamb", {"learning_rate": 0.05, "wd": 0.01}),
]


@check
def values() -> None:
    """The halves are chosen by the values and by what is expected, and both work as one store."""
    assert kv.type == "dist_mixed" and kv.is_capable("optimizer") and kv.num_dead_node() == 0
    shape = (ROWS, WIDTH)
    kv.expect_rows(["expected"])
    start = mx.nd.array(np.random.default_rng(RANK).standard_normal(shape))
    kv.init(["dense", "table", "expected"], [start, start.tostype("row_sparse"), start])
    assert [kv.is_table(k) for k in ("dense", "table", "expected")] == [False, True, True]
    first = np.random.default_rng(0).standard_normal(shape).astype("float32")
    keys = ["expected", "dense", "table"]
    out = [mx.nd.zeros(shape) for _ in keys]
    kv.pull(keys, out=out)
    assert all((a.asnumpy() == first).all() for a in out)
    few = mx.nd.sparse.zeros("row_sparse", shape)
    rows = [mx.nd.sparse.zeros("row_sparse", shape), mx.nd.zeros(shape)]
    kv.row_sparse_pull(["table", "dense"], out=[[few, rows[0]], rows[1]],
                       row_ids=[mx.nd.array([3, 1]), mx.nd.array([7]), mx.nd.array([5, 5])])  # fmt: skip
    assert few.indices.asnumpy().tolist() == [1, 3] and (few.data.asnumpy() == first[[1, 3]]).all()
    assert (rows[0].data.asnumpy() == first[[7]]).all() and np.flatnonzero(rows[1].asnumpy().any(1)).tolist() == [5]
    one = mx.nd.sparse.row_sparse_array((mx.nd.full((2, WIDTH), RANK + 1), [RANK, 30]), shape=shape)
    kv.push(keys, [one, [mx.nd.full(shape, RANK), mx.nd.ones(shape)], one])
    kv.pull(keys, out=out)
    assert (out[1].asnumpy() == 3).all()
    for a in (out[0], out[2]):
        assert [a.asnumpy()[i, 0] for i in (0, 1, 2, 30)] == [1, 2, 0, 3]
    together = mx.nd.full(shape, RANK + 1)
    kv.pushpull("dense", together)
    assert (together.asnumpy() == 3).all()
    kv.broadcast("later", mx.nd.full((3,), RANK + 5), out=(late := mx.nd.zeros(3)))
    assert (late.asnumpy() == 5).all()
    for key in ("dense", "table"):
        kv.reset(key, mx.nd.ones(shape))
        kv.barrier()
        kv.pull(key, out=out[0])
        assert (out[0].asnumpy() == 1).all()
        kv.refresh(key, out[:1], mx.nd.array([1]))
    compressed = mx.kv.create("dist_mixed")
    compressed.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    compressed.init([0, 1], [mx.nd.zeros(shape), mx.nd.zeros(shape).tostype("row_sparse")])
    compressed.push([0, 1], [mx.nd.full(shape, 0.7), one])
    compressed.pull([0, 1], out=out[:2])
    assert (out[0].asnumpy() == 1).all() and out[1].asnumpy()[30, 0] == 3


@check
def errors() -> None:
    x = mx.nd.ones((ROWS, WIDTH))
    raises(ArgumentError, "initialized before", kv.init, "dense", x)
    raises(ArgumentError, "expect_rows: key 'dense' was initialized before", kv.expect_rows, "dense")
    raises(ArgumentError, "push: key 'absent' has not been initialized", kv.push, ["table", "absent"], [x, x])
    raises(ArgumentError, "has not been initialized", kv.pull, "absent", out=x)
    raises(ArgumentError, "out=None", kv.pull, "dense")
    raises(ArgumentError, "expected float32[60, 4]", kv.push, ["table", "dense"], [x, mx.nd.ones((2, 2))])
    raises(ArgumentError, "cannot be mixed", kv.init, 3, x)
    raises(ArgumentError, "1 arrays in out", kv.row_sparse_pull, "table", out=x, row_ids=[x, x])
    raises(ArgumentTypeError, "expected an Optimizer", kv.set_optimizer, "sgd")
    raises(MXNetError, "servers run no code of yours", kv._set_updater, lambda k, g, w: None)
    raises(OrderError, "call set_optimizer first", kv.save_optimizer_states, str(FOLDER / "none"))
    raises(ArgumentError, "did you mean 'dist_mixed'", mx.kv.create, "dist_mixd")
    store = mx.kv.create("dist_mixed")
    if RANK:
        store.expect_rows("x")
    raises(MXNetError, "wait for each other at different places", store.init, "x", x)
    store = mx.kv.create("dist_mixed")
    store.expect_rows(["a", "b"])
    store.init(["a", "b"], [x, x])
    store.set_optimizer(mx.optimizer.SGD())
    rows = mx.nd.sparse.row_sparse_array((mx.nd.ones((1, WIDTH)), [2]), shape=x.shape)
    for key in ("ab", "ba")[RANK]:
        raises(ArgumentError, "the workers push different tables", store.push, key, rows)
    kv.push("dense", x)  # the store works as before
    kv.pull("dense", out=x)
    assert (x.asnumpy() == WORKERS).all()
    trainer = mx.gluon.Trainer(network("sparse gradient").collect_params(), "sgd", kvstore="dist_mixed")
    for call in (trainer.allreduce_grads, lambda: trainer.update(1)):
        raises(MXNetError, "update_on_kvstore=False", call)
    apart = {"kvstore": "dist_mixed", "update_on_kvstore": False}
    raises(ArgumentError, "row_sparse parameters", mx.gluon.Trainer, network("rows").collect_params(), "sgd", **apart)


@check
def trainers() -> None:
    """The bits of `dist_sync`, and the weights of one process with the whole batch."""
    for kind in KINDS:
        for name, settings in OPTIMIZERS[:1] if kind == "dense" else OPTIMIZERS:
            found = trained("dist_mixed", kind, name, settings)
            same(found, trained("dist_sync", kind, name, settings), (kind, name, settings))
            same(found, trained(None, kind, name, settings), (kind, name, settings, "alone"), 1e-6)
            np.savez(FOLDER / f"{kind}-{name}-{len(settings)}-{RANK}.npz", **found)


def changes(turn: int, net: Any, trainer: Any) -> None:
    if turn == 1:
        trainer.set_learning_rate(0.3)
        net.table.weight.lr_mult, net.out.weight.lr_mult = 0.5, 0.0
        net.hidden.weight.wd_mult = 3.0
    if turn == 2:
        net.table.weight.lr_mult, net.table.weight.wd_mult = 2.0, 5.0
        for p in (net.table.weight, net.hidden.bias):
            p.set_data(mx.nd.ones(p.shape) * 0.1)
        kv.barrier()  # a lookup of the other worker must not come before rank 0 has told the servers


@check
def changes_reach_both_halves() -> None:
    for kind in KINDS:
        settings = {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.1}
        found = trained("dist_mixed", kind, "sgd", settings, 5, changes)
        same(found, trained("dist_sync", kind, "sgd", settings, 5, changes), kind)
        same(found, trained(None, kind, "sgd", settings, 5, changes), kind, 1e-6)
        results = []
        for store in ("dist_mixed", None):
            schedule = mx.lr_scheduler.FactorScheduler(step=1, factor=0.5, base_lr=0.2)
            results.append(trained(store, kind, "adam", {"lr_scheduler": schedule}))
        same(results[0], results[1], (kind, "schedule"), 1e-6)


@check
def each_half_counts_for_itself() -> None:
    """What updates of the workers change in the optimizer is nothing that servers are told."""
    shape, stores = (ROWS, WIDTH), [mx.kv.create("dist_mixed"), mx.kv.create("dist_sync")]
    pulled = []
    for store, keys in zip(stores, ([0, 1], [0]), strict=True):
        store.init(keys, [mx.nd.ones(shape).tostype("row_sparse"), mx.nd.ones(shape)][: len(keys)])
        store.set_optimizer(mx.optimizer.Nadam(learning_rate=0.1))
        for turn in range(4):
            rows = mx.nd.sparse.row_sparse_array((mx.nd.full((2, WIDTH), turn + 1), [RANK, 5]), shape=shape)
            store.push(keys, [rows, mx.nd.ones(shape)][: len(keys)])
        store.pull(0, out=(out := mx.nd.zeros(shape)))
        pulled.append(out.asnumpy())
    assert stores[0].optimizer.m_schedule < 1 and (pulled[0] == pulled[1]).all()


@check
def sums_only() -> None:
    """Without an optimizer in the store the gradients are what `allreduce_grads` leaves them for."""
    settings = {"learning_rate": 0.05}
    for kind in KINDS[1:]:
        net = network(kind, RANK)
        trainer = mx.gluon.Trainer(
            net.collect_params(), "adam", settings, kvstore="dist_mixed", update_on_kvstore=False
        )
        for turn in range(4):
            backward(net, turn, MINE)
            trainer.allreduce_grads()
            if turn == 0:
                assert net.table.weight.grad().stype == ("default" if kind == "dense" else "row_sparse")
            trainer.update(BATCH * WORKERS)
        same(weights(net), trained("dist_mixed", kind, "adam", settings), kind, 1e-6)

    class Mine(mx.optimizer.SGD):
        """Servers get no code, so the workers update."""

    net = network("sparse gradient")
    trainer = mx.gluon.Trainer(net.collect_params(), Mine(learning_rate=0.1), kvstore="dist_mixed")
    train(net, trainer, range(4), MINE)
    same(weights(net), trained(None, "sparse gradient", "sgd", {"learning_rate": 0.1}), "my own", 1e-6)


@check
def states() -> None:
    for kind in KINDS:
        settings = {"learning_rate": 0.05, "wd": 0.01}
        expected = trained(None, kind, "adam", settings, 6)
        net = network(kind)
        trainer = mx.gluon.Trainer(net.collect_params(), "adam", dict(settings), kvstore="dist_mixed")
        train(net, trainer, range(3), MINE)
        file = str(FOLDER / f"{kind}-{RANK}.states")
        trainer.save_states(file)
        saved = weights(net)
        for store, ranks in (("dist_mixed", MINE), ("dist_sync", MINE), ("device", range(WORKERS))):
            fresh = network(kind)
            for name, p in fresh.collect_params_with_prefix().items():
                p.set_data(mx.nd.array(saved[name]))
            other = mx.gluon.Trainer(fresh.collect_params(), "adam", {"learning_rate": 9.0}, kvstore=store)
            other.load_states(file)
            assert other.learning_rate == 0.05
            train(fresh, other, range(3, 6), ranks)
            same(weights(fresh), expected, (kind, store), 1e-6)
    one = mx.gluon.Parameter("p", shape=(2,))
    one.initialize()
    small = mx.gluon.Trainer([one], "adam", kvstore="dist_mixed")
    raises(MXNetError, "key 1 of the file is not in the store", small.load_states, file)
    raises(MXNetError, "cannot read", small.load_states, str(FOLDER / "nowhere"))


@check
def copies() -> None:
    """Arrays that had all rows get those that changed; others get all, and so do all after an update of all rows."""
    shape, store = (ROWS, WIDTH), mx.kv.create("dist_mixed")
    store.expect_rows(["x", "y"])
    store.init(["x", "y", "z"], [mx.nd.ones(shape)] * 3)
    optimizer = mx.optimizer.SGD(learning_rate=1.0, momentum=0.5)
    store.set_optimizer(optimizer)
    keys = ["z", "y", "x"]
    held = [[mx.nd.zeros(shape), mx.nd.zeros(shape)] for _ in keys]
    for turn in range(5):
        rows = [mx.nd.sparse.row_sparse_array((mx.nd.ones((2, WIDTH)), [7 + RANK, i]), shape=shape) for i in (3, 50)]
        if turn == 2:
            optimizer.lazy_update = False
        if turn == 4:
            held[1] = [mx.nd.zeros(shape) for _ in held[1]]
        dense = rows[1].tostype("default") if RANK and turn == 3 else rows[1]
        store.push(keys, [mx.nd.ones(shape), [rows[0], rows[1]], dense])
        before = moved()
        store.pull_changed(keys, held)
        if turn == 1:
            assert moved() - before == WORKERS * (4 + 3) * (8 + 4 * WIDTH)
        out = [mx.nd.zeros(shape) for _ in keys]
        store.pull(keys, out=out)
        assert all((a.asnumpy() == b.asnumpy()).all() for group, b in zip(held, out, strict=True) for a in group), turn
    store.pull_changed("z", held[0][0])
    store.pull_changed("x", held[2][0])


@check
def idle_workers_add_nothing() -> None:
    results = []
    for store in ("dist_mixed", "dist_sync"):
        net, mine = network("sparse gradient", RANK), mx.kv.create(store)
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore=mine)
        sampler = mx.kv.ElasticSampler(5, 2, mine, shuffle=False)  # the last batch has one sample for two workers
        for rows in sampler:
            with mx.autograd.record():
                loss = (net(mx.nd.array(rows)) ** 2).sum()
            loss.backward()
            trainer.step(sampler.total)
        results.append(weights(net))
    same(results[0], results[1], "idle")


@check
def few_bytes_travel() -> None:
    """Servers get and send rows only, workers sum dense gradients only; each pure mode moves more."""
    rows, steps, found = 20_000, 3, {}
    for store, kind in (
        ("dist_mixed", "rows"), ("dist_mixed", "sparse gradient"), ("dist_sync", "rows"),
        ("dist_sync", "sparse gradient"), ("collective", "dense"),
    ):  # fmt: skip
        net = network(kind, 0, rows)
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore=store)
        train(net, trainer, range(1), MINE)
        before, given = moved(), exchanged[0]
        train(net, trainer, range(1, 1 + steps), MINE)
        net.table.weight.row_sparse_data(mx.nd.array([0])) if kind == "rows" else net.table.weight.data().wait_to_read()
        found[store, kind] = (moved() - before) / steps, (exchanged[0] - given) / steps
    for case, (servers, workers) in found.items():
        print("bytes of a step:", *case, round(servers), round(workers), flush=True)
    dense = 4 * (UNITS * WIDTH + UNITS + UNITS + 1)
    table, row = 4 * rows * WIDTH, 8 + 4 * WIDTH
    assert found["dist_mixed", "rows"][1] == dense
    assert found["dist_sync", "rows"][0] - found["dist_mixed", "rows"][0] == 2 * WORKERS * dense
    # A push of the rows of a batch, and the rows of the batches of all workers that have changed.
    assert found["dist_mixed", "sparse gradient"][0] <= WORKERS * BATCH * row * (1 + WORKERS)
    assert found["dist_mixed", "sparse gradient"][1] <= dense + 8 * (BATCH + 1)
    assert found["dist_sync", "sparse gradient"][0] >= WORKERS * table
    assert found["collective", "dense"] == (0, dense + table)


@check
def modules() -> None:
    results = []
    for store, wanted in (("dist_mixed", True), ("dist_mixed", False), ("dist_sync", True), (None, False)):
        for stype in ("row_sparse", "default"):
            ids, table = mx.sym.Variable("data"), mx.sym.Variable("table", stype=stype, shape=(ROWS, WIDTH))
            found = mx.sym.Embedding(ids, table, input_dim=ROWS, output_dim=WIDTH, sparse_grad=True)
            symbol = mx.sym.FullyConnected(mx.sym.sum(found, axis=1), num_hidden=1, name="fc")
            symbol = mx.sym.LinearRegressionOutput(symbol, mx.sym.Variable("label"), name="out")
            ranks = range(WORKERS) if store is None else MINE
            x = np.concatenate([batch(r, t)[0] for t in range(3) for r in ranks])[:, None]
            data = mx.io.NDArrayIter(x, np.ones(len(x)), BATCH * len(ranks), label_name="label")
            start = network("dense")
            by_rows = (lambda b: {"table": b.data[0]}) if wanted and stype != "default" else None
            first = {"table": start.table.weight.data(), "fc_weight": start.out.weight.data()[:, :WIDTH],
                     "fc_bias": mx.nd.zeros(1)}  # fmt: skip
            mod = mx.mod.Module(symbol, label_names=("label",))
            mod.fit(data, kvstore=store and mx.kv.create(store), num_epoch=2, arg_params=first, eval_metric="mse",
                    optimizer_params={"learning_rate": 0.1, "momentum": 0.9},
                    sparse_row_id_fn=by_rows)  # fmt: skip
            results.append({n: v.asnumpy() for n, v in sorted(mod.get_params()[0].items())})
            if store:
                mod.save_optimizer_states(str(FOLDER / f"module-{RANK}.states"))
                mod.load_optimizer_states(str(FOLDER / f"module-{RANK}.states"))
    for i, result in enumerate(results):
        same(result, results[4 + i % 2], ("module", i), 1e-6)
    same(results[0], results[2], "module with fetched rows")


for one in CHECKS:
    one()
    kv.barrier()
    print("held:", one.__name__, flush=True)
