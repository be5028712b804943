"""Run by every worker of a job (2 workers, 2 servers, MXNET_KVSTORE_BIGARRAY_BOUND=8): tables by rows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dualmx as mx
from dualmx.core.errors import ArgumentError

FOLDER = Path(sys.argv[1])
kv = mx.kv.create("dist_sync")
RANK, WORKERS = kv.rank, kv.num_workers
CHECKS: list[Callable[[], Any]] = []
ROWS, WIDTH = 64, 4


def check(f: Callable[[], Any]) -> Callable[[], Any]:
    CHECKS.append(f)
    return f


def moved(store: Any) -> tuple[int, int]:
    """Bytes of arrays that all servers have received and sent so far."""
    found = [r.meta for r in store._kv.wait(store._kv.ask_all("status", {"op": "status"}))]
    return sum(m["received"] for m in found), sum(m["sent"] for m in found)


def gradient(rank: int, turn: int, rows: int = ROWS) -> Any:
    draw = np.random.default_rng([rank, turn])
    ids = np.unique(draw.integers(0, rows, 5))
    values = draw.standard_normal((len(ids), WIDTH)).astype("float32")
    return mx.nd.sparse.row_sparse_array((values, ids), shape=(rows, WIDTH))


def dense(store: Any, key: Any, rows: int = ROWS) -> np.ndarray:
    out = mx.nd.zeros((rows, WIDTH))
    store.pull(key, out=out)
    return out.asnumpy()


def initial(rows: int = ROWS) -> Any:
    return mx.nd.array(np.random.default_rng(5).standard_normal((rows, WIDTH)))


@check
def values() -> None:
    kv.init(["rsp", "dense", "few"], [initial().tostype("row_sparse"), initial(), initial(3)])
    placed = kv._kv.keys[kv._number, "rsp"].slices
    assert {s.server for s in placed} == {0, 1} and all(s.start % WIDTH == 0 for s in placed)
    for key, rows in (("rsp", ROWS), ("dense", ROWS), ("few", 3)):
        ids = [2, 0, 2] if rows == 3 else [40, 7, 40, 0]
        out = mx.nd.sparse.zeros("row_sparse", (rows, WIDTH))
        kv.row_sparse_pull(key, out=out, row_ids=mx.nd.array(ids))
        assert out.indices.asnumpy().tolist() == sorted(set(ids))
        assert (out.data.asnumpy() == initial(rows).asnumpy()[sorted(set(ids))]).all()
        kv.push(key, gradient(RANK, 1, rows))
        total = gradient(0, 1, rows).asnumpy() + gradient(1, 1, rows).asnumpy()
        assert (dense(kv, key, rows) == total).all(), key  # without an optimizer the sum takes the value's place
        kv.pull(key, out=out, ignore_sparse=False)
        assert (out.asnumpy() == total).all()
        if rows > 3:
            assert out.indices.asnumpy().tolist() == np.flatnonzero(total.any(axis=1)).tolist()
    several = [mx.nd.sparse.zeros("row_sparse", (ROWS, WIDTH)), mx.nd.zeros((ROWS, WIDTH))]
    kv.row_sparse_pull("rsp", out=several, row_ids=[mx.nd.array([1, 2]), mx.nd.array([2, 63])])
    kv.push("rsp", gradient(RANK, 2).tostype("default"))  # a dense array is good as well
    kv.push("dense", [gradient(RANK, 2), gradient(RANK, 3)])
    assert (dense(kv, "rsp") == sum(gradient(r, 2).asnumpy() for r in range(WORKERS))).all()
    total = sum((gradient(r, 2) + gradient(r, 3)).asnumpy() for r in range(WORKERS))
    assert np.allclose(dense(kv, "dense"), total)
    mixed = gradient(RANK, 4) if RANK else gradient(RANK, 4).tostype("default")
    kv.push("dense", mixed)
    assert (dense(kv, "dense") == sum(gradient(r, 4).asnumpy() for r in range(WORKERS))).all()
    untouched = mx.nd.sparse.zeros("row_sparse", (ROWS, WIDTH))
    kv.pull("rsp", out=untouched)  # ignored with a warning, as in MXNet
    assert untouched.indices.shape == (0,)
    empty = mx.nd.sparse.zeros("row_sparse", (ROWS, WIDTH))
    kv.push("rsp", empty if RANK else gradient(0, 9))
    assert (dense(kv, "rsp") == gradient(0, 9).asnumpy()).all()
    try:
        kv.row_sparse_pull("rsp", out=several[0], row_ids=mx.nd.array([ROWS]))
    except ArgumentError as e:
        assert "expected rows in [0, 64)" in str(e)
    else:
        raise AssertionError("a row that is not there")


@check
def few_bytes_travel() -> None:
    store = mx.kv.create("dist_sync")
    store.init("table", mx.nd.zeros((20000, WIDTH)).tostype("row_sparse"))
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
    out = mx.nd.sparse.zeros("row_sparse", (20000, WIDTH))
    store.barrier()
    before = moved(store)
    store.barrier()
    for turn in range(3):
        ids = [turn, 10000 + turn, 19999]
        rows = mx.nd.sparse.row_sparse_array((mx.nd.ones((3, WIDTH)), ids), shape=(20000, WIDTH))
        store.push("table", rows)
        store.row_sparse_pull("table", out=out, row_ids=mx.nd.array(ids))
        assert (out.data.asnumpy() == [[-2], [-2], [-2 * (turn + 1)]]).all()
    store.barrier()
    after = moved(store)
    row = 8 + 4 * WIDTH
    assert after[0] - before[0] == WORKERS * 3 * 3 * (row + 8), (before, after)  # a push, and the ids of a pull
    assert after[1] - before[1] == WORKERS * 3 * 3 * 4 * WIDTH


OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("sgd", {"learning_rate": 0.1, "wd": 0.1}),
    ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.1}),
    ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.1, "lazy_update": False}),
    ("adam", {"learning_rate": 0.1, "wd": 0.01}),
    ("adagrad", {"learning_rate": 0.1, "wd": 0.01}),
    ("ftrl", {"learning_rate": 0.1, "lamda1": 0.2}),
    ("rmsprop", {"learning_rate": 0.01}),
    ("groupadagrad", {"learning_rate": 0.1}),
]


@check
def updates() -> None:
    """The same as the local store with the sums: bit by bit, for tables and for dense weights."""
    for name, settings in OPTIMIZERS:
        for stype in ("row_sparse", "default"):
            stores = [mx.kv.create("dist_sync"), mx.kv.create("local")]
            for store in stores:
                store.init(0, initial().tostype(stype))
                store.set_optimizer(mx.optimizer.create(name, **settings))
            for turn in range(4):
                stores[0].push(0, gradient(RANK, turn))
                total = gradient(0, turn) + gradient(1, turn)
                stores[1].push(0, total)
            found, expected = (dense(s, 0) for s in stores)
            assert np.allclose(found, expected, rtol=1e-6, atol=1e-7), (name, settings, stype)
            np.savez(FOLDER / f"{name}-{stype}-{RANK}.npz", found)


class Net(mx.gluon.Block):
    def __init__(self, by_rows: bool):
        super().__init__(prefix="")
        with self.name_scope():
            if by_rows:
                self.table = mx.gluon.contrib.nn.SparseEmbedding(ROWS, WIDTH)
            else:
                self.table = mx.gluon.nn.Embedding(ROWS, WIDTH, sparse_grad=True)
            self.out = mx.gluon.nn.Dense(1, in_units=WIDTH)

    def forward(self, x: Any) -> Any:
        return self.out(self.table(x))


def ids_of(rank: int, turn: int) -> np.ndarray:
    return np.random.default_rng([rank, turn, 7]).integers(0, ROWS, (6,))


def network(by_rows: bool) -> Any:
    net = Net(by_rows)
    net.initialize()
    net.table.weight.set_data(initial())
    net.out.weight.set_data(mx.nd.ones((1, WIDTH)))
    return net


def train(net: Any, trainer: Any, ranks: range) -> None:
    for turn in range(4):
        x = mx.nd.array(np.concatenate([ids_of(r, turn) for r in ranks]))
        with mx.autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        trainer.step(12)


def weights(net: Any) -> list[np.ndarray]:
    file = str(FOLDER / f"weights-{RANK}.params")
    net.save_parameters(file)
    held: Any = mx.nd.load(file)
    return [held[name].asnumpy() for name in sorted(held)]


@check
def trainers() -> None:
    for by_rows in (True, False):
        for name in ("sgd", "adam"):
            alone = network(by_rows)
            train(alone, mx.gluon.Trainer(alone.collect_params(), name), range(WORKERS))
            for kind, in_store in (("dist_sync", True), ("dist_sync", False)):
                if by_rows and not in_store:
                    continue
                net = network(by_rows)
                settings = {"kvstore": kind, "update_on_kvstore": in_store}
                train(net, mx.gluon.Trainer(net.collect_params(), name, **settings), range(RANK, RANK + 1))
                for got, want in zip(weights(net), weights(alone), strict=True):
                    assert np.allclose(got, want, rtol=2e-6, atol=2e-6), (by_rows, name, in_store)
        net = network(by_rows)
        train(net, mx.gluon.Trainer(net.collect_params(), "sgd", kvstore="dist_async"), range(RANK, RANK + 1))
        assert all(np.isfinite(w).all() for w in weights(net))


@check
def modules() -> None:
    ids = mx.sym.Variable("data")
    results = []
    for kind, wanted in (("dist_sync", True), ("dist_sync", False), (None, False)):
        table = mx.sym.Variable("table", stype="row_sparse", shape=(ROWS, WIDTH))
        found = mx.sym.Embedding(ids, table, input_dim=ROWS, output_dim=WIDTH, sparse_grad=True, name="embed")
        symbol = mx.sym.LinearRegressionOutput(mx.sym.sum(found, axis=1), mx.sym.Variable("label"), name="out")
        ranks = range(WORKERS) if kind is None else range(RANK, RANK + 1)
        x = np.concatenate([ids_of(r, t) for t in range(3) for r in ranks])
        data = mx.io.NDArrayIter(x, np.ones(len(x)), 6 * len(ranks), label_name="label")
        mod = mx.mod.Module(symbol, label_names=("label",))
        mod.fit(data, kvstore=kind, num_epoch=2, arg_params={"table": initial()}, eval_metric="mse",
                optimizer_params={"learning_rate": 0.1, "momentum": 0.9},
                sparse_row_id_fn=(lambda batch: {"table": batch.data[0]}) if wanted else None)  # fmt: skip
        results.append(mod.get_params()[0]["table"].asnumpy())
    assert np.allclose(results[0], results[2], rtol=2e-6, atol=2e-6)
    assert (results[0] == results[1]).all()


for one in CHECKS:
    one()
    kv.barrier()
    print("held:", one.__name__, flush=True)
