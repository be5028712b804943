"""`mx.npx` and `mx.np.linalg` against records of MXNet 1.9.1; files, conditions, errors; Gluon with NumPy semantics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import dualmx as mx
from dualmx import autograd, gluon
from dualmx.gluon import nn
from tests.goldens import npx_cases
from tests.goldens.store import load

np, npx = mx.np, mx.npx


@pytest.fixture
def np_mode():
    npx.set_np()
    yield
    npx.reset_np()


# Functions whose single-precision algorithms differ in the last digits.
LOOSE = {"pinv": 2e-4, "inv": 2e-4, "det": 2e-4, "solve_batch": 2e-4, "gamma": 2e-4, "erfinv": 2e-4, "gammaln": 2e-4}


@pytest.mark.parametrize("name", npx_cases.CASES)
def test_case(name: str) -> None:
    found = npx_cases.run(mx, name)
    expected = {k.split("|")[1]: v for k, v in load("npx").items() if k.split("|")[0] == name}
    assert set(found) == set(expected)
    for key, want in expected.items():
        assert (found[key].shape, found[key].dtype) == (want.shape, want.dtype), key
        onp.testing.assert_allclose(found[key], want, rtol=LOOSE.get(name, 2e-5), atol=LOOSE.get(name, 2e-5))


def test_factors_multiply_to_the_matrix() -> None:
    a = np.random.normal(size=(2, 3, 4))
    ut, values, v = np.linalg.svd(a)
    onp.testing.assert_allclose(((ut * values[:, None]) @ v).asnumpy(), a.asnumpy(), atol=1e-5)
    s = a @ a.swapaxes(1, 2)
    w, q = np.linalg.eigh(s)
    onp.testing.assert_allclose((q * w[:, None] @ q.swapaxes(1, 2)).asnumpy(), s.asnumpy(), atol=1e-4)


def test_what_numpy_computes_on_the_host() -> None:
    m = np.array([[4.0, 1.0], [1.0, 3.0]])
    assert np.linalg.matrix_rank(m) == 2
    onp.testing.assert_allclose(np.linalg.matrix_power(m, 2).asnumpy(), (m @ m).asnumpy())
    q, r = np.linalg.qr(m)
    onp.testing.assert_allclose((q @ r).asnumpy(), m.asnumpy(), rtol=1e-5)
    assert abs(float(np.linalg.cond(m)) - 1.9387487) < 1e-5


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: np.linalg.det(np.ones((2, 3))), "square"),
        (lambda: np.linalg.inv(np.ones(3)), "two axes"),
        (lambda: np.linalg.det(np.ones((2, 2), dtype="float16")), "float16"),
        (lambda: np.linalg.svd(np.ones((3, 2))), "rows"),
        (lambda: np.linalg.solve(np.eye(2), np.ones(3)), "2 rows"),
        (lambda: np.linalg.eigvals(np.array([[0.0, -1.0], [1.0, 0.0]])), "complex"),
        (lambda: np.linalg.norm(np.ones((2, 2)), "foo"), "ord='foo'"),
        (lambda: np.linalg.norm(np.ones((2, 2, 2)), axis=(0, 1, 2)), "one or two axes"),
        (lambda: np.linalg.norm(np.ones(2), "nuc"), "two axes"),
        (lambda: np.linalg.norm(np.ones((2, 2)), axis=[0, 1]), "tuple"),
        (lambda: np.linalg.eigh(np.eye(2), UPLO="X"), "UPLO"),
        (lambda: np.linalg.tensorinv(np.ones((2, 3))), "ind"),
        (lambda: np.linalg.cholesky(-np.eye(2)).asnumpy(), "positive-definite"),
        (lambda: np.linalg.inv(np.zeros((2, 2))).asnumpy(), "singular"),
        (lambda: np.linalg.solve(np.zeros((2, 2)), np.ones(2)).asnumpy(), "singular"),
        (lambda: npx.relu(mx.nd.ones(2)), "classic"),
        (lambda: npx.relu([1, 2]), "NDArray"),
        (lambda: npx.reshape(np.ones((2, 3)), (-3, 6)), "-3 drops"),
        (lambda: npx.reshape(np.ones((2, 3)), (-1, -1)), "at most one -1"),
        (lambda: npx.reshape(np.ones((2, 3)), (-6, 4, -1, 3)), "multiply"),
        (lambda: npx.reshape(np.ones((2, 3)), (7, -1)), "inferred"),
        (lambda: npx.constraint_check(np.array([True, False], dtype=bool), "too bad").asnumpy(), "too bad"),
        (lambda: npx.constraint_check(np.ones(2)), "bool"),
        (lambda: npx.save("x", [mx.nd.ones(2)]), "npx.save"),
    ],
)
def test_errors(call: Any, says: str) -> None:
    with pytest.raises(mx.MXNetError, match=says):
        call()


def test_constraint_that_holds() -> None:
    assert bool(npx.constraint_check(np.array([True, True], dtype=bool), "too bad"))


def test_files(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    npx.save(path, {"a": np.array(1.5), "b": np.zeros((0, 2))})
    found = npx.load(path)
    assert found["a"].shape == () and found["b"].shape == (0, 2) and isinstance(found["a"], np.ndarray)
    npx.save(path, np.ones(2))
    assert [type(a) for a in npx.load(path)] == [np.ndarray]
    npx.savez(path, np.ones(2), b=np.zeros(3))
    assert sorted(npx.load(path)) == ["arr_0", "b"]


class Mixed(gluon.HybridBlock):
    """A user's block: F.np, F.npx, a parameter and a layer."""

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.dense = nn.Dense(4, activation="relu")
            self.table = self.params.get("table", shape=(4, 3), init="xavier")

    def hybrid_forward(self, F: Any, x: Any, table: Any) -> Any:
        assert hasattr(x, "as_nd_ndarray") and type(x) not in (mx.nd.NDArray, mx.sym.Symbol)
        assert isinstance(table, np.ndarray) == (F is mx.nd)
        return F.npx.softmax(F.np.dot(self.dense(x), table))


class Forwarded(gluon.HybridBlock):
    """A user's block that overrides `forward`."""

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.dense = nn.Dense(2)

    def forward(self, x: Any) -> Any:
        return np.tanh(self.dense(x)).sum()


@pytest.mark.parametrize("hybridize", [False, True])
def test_blocks_of_users(np_mode: None, hybridize: bool, tmp_path: Path) -> None:
    net = nn.HybridSequential()
    net.add(nn.LayerNorm(), Mixed())
    net.initialize()
    if hybridize:
        net.hybridize()
    x = np.random.normal(size=(2, 5))
    with autograd.record():
        loss = (net(x) ** 2).mean()
    assert isinstance(loss, np.ndarray) and loss.shape == ()
    loss.backward()
    before = net[1].table.data().asnumpy()
    trainer = gluon.Trainer(net.collect_params(), "adam")
    trainer.step(1)
    for param in net.collect_params().values():
        assert isinstance(param.data(), np.ndarray) and isinstance(param.grad(), np.ndarray)
    assert (net[1].table.data().asnumpy() != before).any()
    if hybridize:
        net.export(str(tmp_path / "net"))
        block = gluon.SymbolBlock.imports(
            str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params")
        )
        onp.testing.assert_allclose(block(x.as_nd_ndarray()).asnumpy(), net(x).asnumpy(), rtol=1e-5)
    whole = Forwarded()
    whole.initialize()
    with autograd.record():
        out = whole(x)
    out.backward()
    assert out.shape == () and float(abs(whole.dense.weight.grad()).sum()) > 0


def test_results_equal_those_of_classic_arrays() -> None:
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(3, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(), nn.Flatten(), nn.Dense(2)
    )
    net.initialize()
    x = mx.nd.random.uniform(shape=(2, 1, 4, 4))
    label = mx.nd.array([0, 1])
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    classic = net(x).asnumpy()
    lost = loss(net(x), label).asnumpy()
    npx.set_np()
    try:
        for hybridize in (False, True):
            net.hybridize(hybridize)
            out = net(x.as_np_ndarray())
            assert isinstance(out, np.ndarray)
            onp.testing.assert_allclose(out.asnumpy(), classic, rtol=1e-5)
            value = loss(out, label.as_np_ndarray())
            assert isinstance(value, np.ndarray)
            onp.testing.assert_allclose(value.asnumpy(), lost, rtol=1e-5)
    finally:
        npx.reset_np()


def test_recurrent_blocks(np_mode: None) -> None:
    layer = gluon.rnn.LSTM(3)
    layer.initialize()
    out, states = layer(np.ones((2, 1, 4)), layer.begin_state(1))
    assert {type(a) for a in (out, *states)} == {np.ndarray}
    cells = gluon.rnn.SequentialRNNCell()
    cells.add(gluon.rnn.BidirectionalCell(gluon.rnn.GRUCell(2), gluon.rnn.GRUCell(2)))
    cells.add(gluon.rnn.ResidualCell(gluon.rnn.RNNCell(4)))
    cells.initialize()
    for merge in (True, False):
        outputs, states = cells.unroll(2, np.ones((3, 2, 4)), merge_outputs=merge, valid_length=np.array([1, 2, 1]))
        assert {type(a) for a in (*([outputs] if merge else outputs), *states)} == {np.ndarray}


def test_data_and_metrics(np_mode: None) -> None:
    data = gluon.data.DataLoader(gluon.data.ArrayDataset(onp.ones((4, 2), "float32"), onp.arange(4)), batch_size=2)
    x, y = next(iter(data))
    assert type(x) is type(y) is np.ndarray and y.dtype == onp.int64
    assert [type(a) for a in gluon.utils.split_and_load(x, [mx.cpu(0), mx.cpu(1)])] == [np.ndarray] * 2
    metric = mx.metric.Accuracy()
    metric.update([np.array([0, 1])], [np.array([[0.9, 0.1], [0.2, 0.8]])])
    assert metric.get() == ("accuracy", 1.0)
    arrays = [np.ones(4) * 2]
    assert abs(gluon.utils.clip_global_norm(arrays, 1.0) - 4.0) < 1e-5
    assert nn.Lambda("tanh")(x).shape == (2, 2) and isinstance(nn.HybridLambda(lambda F, x: F.np.exp(x))(x), np.ndarray)


def test_parameters(np_mode: None, tmp_path: Path) -> None:
    net = nn.Dense(2, in_units=3)
    net.initialize(mx.init.Xavier())
    net.save_parameters(str(tmp_path / "p"))
    net.weight.set_data(np.zeros((2, 3)))
    net.weight.zero_grad()
    net.load_parameters(str(tmp_path / "p"))
    net.cast("float64")
    assert isinstance(net.weight.data(), np.ndarray) and net.weight.data().dtype == onp.float64
    assert isinstance(net.weight.list_grad()[0], np.ndarray)
    constant = gluon.Constant("c", np.ones(2))
    constant.initialize()
    assert isinstance(constant.data(), np.ndarray)
