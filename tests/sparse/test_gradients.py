"""Gradients stored by rows: of tables that are looked up, of weights of csr data, of sparse variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, gluon, nd
from dualmx.compile.events import Listener, listeners

IDS = ([[1, 3], [1, 0]], [[4, 4], [3, 9]])


def table(req: str = "write", stype: str | None = "row_sparse") -> Any:
    w = nd.array(np.linspace(-1, 1, 12).reshape(6, 2))
    w.attach_grad(grad_req=req, stype=stype)
    return w


def look(w: Any, ids: Any) -> Any:
    return nd.Embedding(nd.array(ids), w, input_dim=6, output_dim=2, sparse_grad=True)


def once(w: Any) -> Any:
    return look(w, IDS[0]).square()


def twice(w: Any) -> Any:
    return look(w, IDS[0]) * look(w, IDS[1])


def beside_dense(w: Any) -> Any:
    return look(w, IDS[0]).sum() + (w * w).sum()


def nested(w: Any) -> Any:
    return look(w, look(w, IDS[0]).sum(axis=2).abs() * 3)


def by_head(w: Any) -> Any:
    return w


USES: dict[str, Callable[[Any], Any]] = {
    "once": once, "twice": twice, "beside dense": beside_dense, "nested": nested, "itself": by_head,
}  # fmt: skip


@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("use", USES)
def test_equal_to_dense(use: str, req: str) -> None:
    found, wanted = table(req), table(req, None)
    for w in (found, wanted):
        for times in (1, 2):
            with autograd.record():
                y = USES[use](w) * times
            y.backward()
    assert found.grad.stype == "row_sparse" and wanted.grad.stype == "default"
    np.testing.assert_allclose(found.grad.asnumpy(), wanted.grad.asnumpy(), rtol=1e-6)
    if use in ("once", "twice"):
        rows = np.unique(np.clip([IDS[0], IDS[1]] if use == "twice" else IDS[0], 0, 5))
        assert found.grad.indices.asnumpy().tolist() == rows.tolist()
        assert found.grad.data.shape == (len(rows), 2)


def test_backward_after_a_flush_and_retained_graph() -> None:
    w = table("add")
    with autograd.record():
        y = once(w)
    y.asnumpy()
    y.backward(retain_graph=True)
    first = w.grad.asnumpy()
    y.backward()
    np.testing.assert_allclose(w.grad.asnumpy(), 2 * first)
    with pytest.raises(mx.MXNetError, match="the heads do not depend on any variable.*retain_graph=True"):
        y.backward()


def test_many_additions_stay_small() -> None:
    w = table("add")
    for _ in range(12):
        with autograd.record():
            y = once(w)
        y.backward()
    assert w.grad.rows.shape[0] <= 24
    np.testing.assert_allclose(w.grad.asnumpy()[1], 12 * 2 * 2 * w.asnumpy()[1], rtol=1e-5)
    w.grad[:] = 0
    assert w.grad.indices.shape == (0,)


def test_gradient_to_an_intermediate_and_by_grad() -> None:
    w = table()
    with autograd.record():
        e = look(w, IDS[0])
        y = e * e
        (dense,) = autograd.grad(y, [w], retain_graph=True)
    assert dense.stype == "default"
    y.backward()
    np.testing.assert_allclose(w.grad.asnumpy(), dense.asnumpy())


def test_through_a_python_function() -> None:
    class Double(autograd.Function):
        def forward(self, x: Any) -> Any:
            return x * 2

        def backward(self, dy: Any) -> Any:
            return dy * 2

    w = table()
    with autograd.record():
        y = Double()(look(w, IDS[0]))
    y.backward()
    assert w.grad.stype == "row_sparse"
    assert w.grad.asnumpy()[:, 0].tolist() == [2, 4, 0, 2, 0, 0]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("grad_stype", [None, "default", "row_sparse"])
@pytest.mark.parametrize("kind", ["default", "row_sparse"])
def test_weights_of_csr_data(kind: str, grad_stype: str | None, turned: bool) -> None:
    data = np.array([[0, 1, 0], [2, 0, 3]], np.float32)
    x = nd.array(data).tostype("csr")
    w = nd.ones((2 if turned else 3, 2)).tostype(kind)
    w.attach_grad(stype=grad_stype)
    with autograd.record():
        y = nd.sparse.dot(x, w, transpose_a=turned)
    assert y.stype == ("row_sparse" if turned else "default")
    y.backward()
    assert w.grad.stype == (grad_stype or kind)
    np.testing.assert_allclose(w.grad.asnumpy(), (data if turned else data.T) @ np.ones((3 if turned else 2, 2)))


@pytest.mark.parametrize("kind", ["csr", "row_sparse"])
def test_sparse_variables(kind: str) -> None:
    cases = {
        "square": (lambda x: x.square(), kind, [[0, 2, 0], [4, 0, 6]]),
        "times": (lambda x: x * 3, kind, [[3] * 3] * 2),
        "sum of two": (lambda x: x + x, kind, [[2] * 3] * 2),
        "dense": (lambda x: x.tostype("default") * 2, "default", [[2] * 3] * 2),
        "sum": (lambda x: x.sum(), "default", [[1] * 3] * 2),
        "exp": (lambda x: x.exp(), "default", np.exp([[0, 1, 0], [2, 0, 3]])),
    }
    for name, (f, stype, wanted) in cases.items():
        x = nd.array([[0, 1, 0], [2, 0, 3]]).tostype(kind)
        x.attach_grad()
        with autograd.record():
            y = f(x)
        assert y.stype == stype, name
        y.backward()
        assert x.grad.stype == kind
        np.testing.assert_allclose(x.grad.asnumpy(), wanted, rtol=1e-5, err_msg=name)


def test_cast_is_differentiable() -> None:
    x = nd.array([[0, 1], [2, 0]])
    x.attach_grad()
    with autograd.record():
        y = nd.sparse.square(x.tostype("csr")).tostype("default") * 3
    y.backward()
    assert x.grad.asnumpy().tolist() == [[0, 6], [12, 0]]


class Net(gluon.HybridBlock):
    """A table and a layer behind it, with state and randomness."""

    def __init__(self, sparse_grad: bool) -> None:
        super().__init__(prefix="net_")
        with self.name_scope():
            self.table = gluon.nn.Embedding(50, 4, sparse_grad=sparse_grad)
            self.norm = gluon.nn.BatchNorm(in_channels=4)
            self.last = gluon.nn.Dense(1, in_units=4)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.last(self.norm(F.Dropout(self.table(x), p=0.0).sum(axis=1)))


@pytest.mark.usefixtures("one_tier")
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_training_equals_dense_training(optimizer: str) -> None:
    """Eager and hybridized; from the second step on nothing is compiled."""
    rng = np.random.RandomState(0)
    batches = [nd.array(rng.randint(0, 50, (8, 3))) for _ in range(4)]
    results = []
    for sparse_grad, hybrid in ((False, False), (True, False), (True, True)):
        net = Net(sparse_grad)
        mx.random.seed(3)
        net.initialize(mx.init.Xavier())
        if hybrid:
            net.hybridize()
        # Without decay, lazy and standard descent are the same; adam is compared with itself.
        trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.1})

        def step(x: Any, net: Any = net, trainer: Any = trainer) -> None:
            with autograd.record():
                loss = net(x).square()
            loss.backward()
            trainer.step(8)

        for x in batches[:2]:
            step(x)
        nd.waitall()
        with mx.debug.assert_compiles(0):
            for x in batches[2:]:
                step(x)
            nd.waitall()
        weight = net.table.weight
        assert weight.grad().stype == ("row_sparse" if sparse_grad else "default")
        assert net.norm.running_mean.data().asnumpy().any()
        results.append(weight.data().asnumpy())
    if optimizer == "sgd":
        np.testing.assert_allclose(results[1], results[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(results[2], results[1], rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("xla_tier")
def test_nothing_of_the_size_of_the_table_is_computed() -> None:
    """The program of a step, compiled, has no temporary array as large as the table."""
    net = gluon.nn.Embedding(100_000, 8, sparse_grad=True)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    sizes = []

    class Watcher(Listener):
        def compiled(self, event: Any) -> None:
            found = event.compiled.memory_analysis()
            sizes.append((found.temp_size_in_bytes, found.output_size_in_bytes))

    watcher = Watcher()
    net(nd.array([1, 2]))
    nd.waitall()
    listeners.append(watcher)
    try:
        for _ in range(2):
            with autograd.record():
                y = net(nd.array([[1, 2], [7, 1]]))
            y.backward()
            trainer.step(1)
        nd.waitall()
    finally:
        listeners.remove(watcher)
    table_bytes = 100_000 * 8 * 4
    assert sizes and all(temp < table_bytes / 4 for temp, _ in sizes)
    assert net.weight.grad().indices.asnumpy().tolist() == [1, 2, 7]


def test_naive_engine_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from dualmx.ndarray.recorder import engine

    found = []
    for naive in (False, True):
        monkeypatch.setattr(engine, "naive", naive)
        w = table("add")
        for _ in range(2):
            with autograd.record():
                y = twice(w)
            y.backward()
        found.append(w.grad.asnumpy())
    np.testing.assert_allclose(*found)


def test_a_variable_in_several_storage_types_has_one_gradient() -> None:
    table = nd.ones((4, 2))
    table.attach_grad()
    batch = nd.sparse.csr_matrix(nd.array([[0, 1, 0, 2]]))
    with autograd.record():
        rows = table.tostype("row_sparse")
        loss = nd.sparse.dot(batch, table).sum() + rows.sum() + nd.cast_storage(table, "csr").sum() + (table * 2).sum()
    table[:] = 7
    assert (rows.asnumpy() == 1).all()
    loss.backward()
    assert table.grad.asnumpy().tolist() == [[4, 4], [5, 5], [4, 4], [6, 6]]


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_zeros_like_passes_a_gradient_of_zeros(stype: str) -> None:
    x = nd.ones((3, 2)).tostype(stype)
    x.attach_grad()
    x.grad[:] = x
    with autograd.record():
        y = nd.zeros_like(x)
    y.backward()
    assert y.stype == x.grad.stype == stype
    assert not x.grad.asnumpy().any()
