"""Run by every worker of a job (2 workers, 2 servers): dense parameters between the workers, tables on the servers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dualmx as mx
from dualmx.core.errors import ArgumentError, ArgumentTypeError, MXNetError, OrderError
from dualmx.parallel.group import Group

FOLDER = Path(sys.argv[1])
kv = mx.kv.create("dist_mixed")
RANK, WORKERS = kv.rank, kv.num_workers
CHECKS: list[Callable[[], Any]] = []
ROWS, WIDTH, UNITS, BATCH = 400, 4, 24, 6


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
_reduce, _gather = Group.all_reduce, Group.all_gather


def _count(f: Callable[..., Any]) -> Callable[..., Any]:
    def counted(self: Group, x: np.ndarray, *args: Any) -> Any:
        exchanged[0] += x.nbytes
        return f(self, x, *args)

    return counted


Group.all_reduce, Group.all_gather = _count(_reduce), _count(_gather)  # type: ignore[method-assign]


def moved() -> int:
    """Bytes of arrays that all servers have received and sent so far."""
    kv.barrier()
    found = [r.meta for r in kv._kv.wait(kv._kv.ask_all("status", {"op": "status"}))]
    kv.barrier()
    return sum(m["received"] + m["sent"] for m in found)


class Net(mx.gluon.Block):
    """A table, and dense layers behind it."""

    def __init__(self, kind: str):
        super().__init__(prefix="")
        with self.name_scope():
            if kind == "rows":
                self.table = mx.gluon.contrib.nn.SparseEmbedding(ROWS, WIDTH)
            else:
                self.table = mx.gluon.nn.Embedding(ROWS, WIDTH, sparse_grad=kind == "sparse gradient")
            self.hidden = mx.gluon.nn.Dense(UNITS, activation="tanh", in_units=WIDTH)
            self.out = mx.gluon.nn.Dense(1, in_units=UNITS)

    def forward(self, x: Any) -> Any:
        return self.out(self.hidden(self.table(x)))


def network(kind: str, rank: int = 0) -> Net:
    net = Net(kind)
    net.initialize()
    draw = np.random.default_rng(9 + rank)  # those of rank 0 are everybody's
    for name, p in sorted(net.collect_params().items()):
        p.set_data(mx.nd.array(draw.standard_normal(p.shape) * 0.3))
    return net


def batch(rank: int, turn: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng([rank, turn, 7])
    return draw.integers(0, ROWS, (BATCH,)), draw.standard_normal((BATCH, 1)).astype("float32")


def train(net: Any, trainer: Any, turns: range, ranks: range, between: Any = None) -> None:
    for turn in turns:
        if between is not None:
            between(turn, net, trainer)
        x, y = (np.concatenate(parts) for parts in zip(*(batch(r, turn) for r in ranks), strict=True))
        with mx.autograd.record():
            loss = ((net(mx.nd.array(x)) - mx.nd.array(y)) ** 2).sum()
        loss.backward()
        trainer.step(BATCH * WORKERS)


def weights(net: Any) -> dict[str, np.ndarray]:
    file = str(FOLDER / f"weights-{RANK}.params")
    net.save_parameters(file)
    held: Any = mx.nd.load(file)
    return {name: held[name].asnumpy() for name in sorted(held)}


def trained(
    store: str | None, kind: str, name: str, settings: dict[str, Any], turns: int = 4, between: Any = None, **more: Any
) -> dict[str, np.ndarray]:
    net = network(kind, RANK if store else 0)
    trainer = mx.gluon.Trainer(net.collect_params(), name, dict(settings), kvstore=store or "device", **more)
    train(net, trainer, range(turns), range(RANK, RANK + 1) if store else range(WORKERS), between)
    return weights(net)


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray], what: Any, bound: float = 0.0) -> None:
    assert list(a) == list(b), what
    for name in a:
        worst = np.abs(a[name] - b[name]).max()
        assert worst <= bound, (what, name, worst)


MINE = range(RANK, RANK + 1)
OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("sgd", {"learning_rate": 0.1, "wd": 0.01}),
    ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01}),
    ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01, "lazy_update": False}),
    ("adam", {"learning_rate": 0.05}),
    ("adagrad", {"learning_rate": 0.1}),
    ("rmsprop", {"learning_rate": 0.01}),
    ("ftrl", {"learning_rate": 0.1}),
]


@check
def trainers() -> None:
    """The weights are those of `dist_sync`, and of one process with the whole batch."""
    for kind in ("rows", "sparse gradient", "dense"):
        for name, settings in OPTIMIZERS:
            found = trained("dist_mixed", kind, name, settings)
            pure = trained("dist_sync", kind, name, settings)
            alone = trained(None, kind, name, settings)
            d = {n: float(np.abs(found[n]-pure[n]).max()) for n in found}
            e = {n: float(np.abs(found[n]-alone[n]).max()) for n in found}
            print(kind, name, settings, d, e, flush=True)


for one in CHECKS:
    one()
    kv.barrier()
    print("held:", one.__name__, flush=True)
