"""Row_sparse parameters, key-value stores, symbols and modules on sparse arrays, batches from LibSVM files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, gluon, nd, sym
from dualmx.ndarray.recorder import engine

BATCH = np.array([[0, 1, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0]], np.float32)


def parameter(**more: Any) -> Any:
    p = gluon.Parameter("w", shape=(5, 2), stype="row_sparse", grad_stype="row_sparse", **more)
    p.initialize(init="ones", ctx=[mx.cpu(0)])
    return p


def test_parameter() -> None:
    p = parameter()
    for read in (p.data, p.list_data, lambda: p.row_sparse_data(nd.array([1]))):
        with pytest.raises(RuntimeError, match="Parameter 'w': .*(use row_sparse_data|needs a Trainer)"):
            read()
    assert p.grad().stype == "row_sparse" and p.list_grad()[0].indices.shape == (0,)
    assert p.var().attr("__storage_type__") == "1"
    trainer = gluon.Trainer([p], "sgd", {"learning_rate": 0.1})
    found = p.row_sparse_data(nd.array([[3, 1], [1, 3]]))
    assert found.stype == "row_sparse" and found.indices.asnumpy().tolist() == [1, 3]
    assert found.asnumpy()[:, 0].tolist() == [0, 1, 0, 1, 0]
    assert len(p.list_row_sparse_data(nd.array([1]))) == 1
    for wrong in (-1, 5):
        with pytest.raises(mx.MXNetError, match=f"row_sparse_data: row_id={wrong}: expected rows from 0 to 4"):
            p.row_sparse_data(nd.array([wrong]))
    assert p.row_sparse_data(nd.array([0, 4])).indices.asnumpy().tolist() == [0, 4]
    with pytest.raises(TypeError, match=r"row_id=\[1\]: expected an NDArray"):
        p.row_sparse_data([1])
    with autograd.record():
        rows = p.row_sparse_data(nd.array([1, 3]))
        y = nd.Embedding(nd.array([1, 3, 1]), rows, input_dim=5, output_dim=2, sparse_grad=True)
    y.backward()
    assert p.grad().indices.asnumpy().tolist() == [1, 3]
    trainer.step(1)
    after = p.row_sparse_data(nd.arange(5)).asnumpy()[:, 0]
    np.testing.assert_allclose(after, [1, 0.8, 1, 0.9, 1], rtol=1e-6)
    p.zero_grad()
    assert p.grad().indices.shape == (0,)
    p.set_data(nd.ones((5, 2)).tostype("row_sparse"))
    assert p.row_sparse_data(nd.array([2])).asnumpy()[2].tolist() == [1, 1]
    p.reset_ctx([mx.cpu(1), mx.cpu(2)])
    assert p.list_ctx() == [mx.cpu(1), mx.cpu(2)]
    with pytest.raises(RuntimeError, match="parameter 'w' is row_sparse and has a Trainer already"):
        gluon.Trainer([p], "sgd")


@pytest.mark.parametrize(
    "more, error, said",
    [
        ({"kvstore": None}, TypeError, "kvstore=None: row_sparse parameters need a store"),
        ({"update_on_kvstore": False}, ValueError, "update_on_kvstore=False is not possible with row_sparse"),
    ],
)
def test_trainer_refuses(more: Any, error: type[Exception], said: str) -> None:
    p = parameter()
    gluon.Trainer([p], "sgd", **more)
    with pytest.raises(error, match=said):
        p.row_sparse_data(nd.array([1]))


def test_sparse_embedding_block(tmp_path: Path) -> None:
    net = gluon.contrib.nn.SparseEmbedding(10, 3)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "adagrad")
    with autograd.record():
        y = net(nd.array([1, 2, 1]))
    y.backward()
    assert net.weight.grad().indices.asnumpy().tolist() == [1, 2]
    trainer.step(1)
    net.save_parameters(str(tmp_path / "p"))
    assert nd.load(str(tmp_path / "p"))["weight"].stype == "row_sparse"
    other = gluon.contrib.nn.SparseEmbedding(10, 3)
    other.load_parameters(str(tmp_path / "p"))
    np.testing.assert_array_equal(other.weight.arrays()[0].asnumpy(), net.weight.arrays()[0].asnumpy())


def test_sparse_embedding_in_a_store_of_this_process() -> None:
    net = gluon.contrib.nn.SparseEmbedding(6, 2)
    net.initialize("ones")
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1}, kvstore=mx.kv.create("device"))
    for _ in range(2):
        with autograd.record():
            y = net(nd.array([1, 4, 1]))
        y.backward()
        trainer.step(2)
    assert net.weight.row_sparse_data(nd.arange(6)).asnumpy()[:, 0].tolist() == [1, -1, 1, 1, 0, 1]


@pytest.mark.parametrize("update_on_kvstore", [True, False])
def test_two_contexts(update_on_kvstore: bool) -> None:
    contexts = [mx.cpu(0), mx.cpu(1)]
    net = gluon.nn.Embedding(6, 2, sparse_grad=True)
    net.initialize("ones", ctx=contexts)
    trainer = gluon.Trainer(
        net.collect_params(), "sgd", {"learning_rate": 1}, kvstore="device", update_on_kvstore=update_on_kvstore
    )
    with autograd.record():
        losses = [net(nd.array([k, 4], ctx=c)) for k, c in enumerate(contexts)]
    autograd.backward(losses)
    trainer.step(2)
    for c in contexts:
        assert net.weight.data(c).asnumpy()[:, 0].tolist() == [0.5, 0.5, 1, 1, 0, 1]


def test_clipping_and_splitting() -> None:
    values = np.array([[3, 0], [0, 0], [0, 4]], np.float32)
    for kind in ("row_sparse", "csr"):
        a = nd.array(values).tostype(kind)
        assert gluon.utils.clip_global_norm([a, nd.zeros((2,))], 1.0) == pytest.approx(5)
        assert a.stype == kind
        np.testing.assert_allclose(a.asnumpy(), values / 5, rtol=1e-5)
    parts = gluon.utils.split_and_load(nd.array(values).tostype("csr"), [mx.cpu(0), mx.cpu(1)], even_split=False)
    assert [(p.stype, p.shape) for p in parts] == [("csr", (2, 2)), ("csr", (1, 2))]


@pytest.mark.parametrize("naive", [False, True])
def test_dense_layers_take_csr_data(naive: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "naive", naive)
    net = gluon.nn.Dense(2, in_units=4)
    net.initialize()
    x = nd.array(BATCH).tostype("csr")
    wanted = net(nd.array(BATCH)).asnumpy()
    np.testing.assert_allclose(net(x).asnumpy(), wanted, rtol=1e-6)
    net.hybridize()
    with autograd.record():
        y = net(x)
    y.backward()
    np.testing.assert_allclose(y.asnumpy(), wanted, rtol=1e-6)
    np.testing.assert_allclose(net.weight.grad().asnumpy(), np.ones((2, 3)) @ BATCH, rtol=1e-6)


def test_store() -> None:
    kv = mx.kv.create("local")
    kv.init("a", nd.ones((5, 2)).tostype("row_sparse"))
    kv.init("b", nd.ones((5, 2)))
    out = nd.sparse.zeros("row_sparse", (5, 2))
    kv.row_sparse_pull("a", out=out, row_ids=nd.array([3, 1, 3]))
    assert out.indices.asnumpy().tolist() == [1, 3]
    kv.pull("a", out=out)
    assert out.indices.asnumpy().tolist() == [1, 3]
    kv.pull("a", out=out, ignore_sparse=False)
    assert out.indices.shape == (5,)
    pushed = nd.sparse.row_sparse_array(([[1, 2]], [2]), shape=(5, 2))
    kv.push("a", [pushed, pushed])
    kv.row_sparse_pull("a", out=out, row_ids=nd.arange(5))
    assert out.asnumpy()[2].tolist() == [2, 4] and out.asnumpy().sum() == 6
    kv.push("b", pushed)
    dense = nd.zeros((5, 2))
    kv.pull("b", out=dense)
    assert dense.asnumpy()[2].tolist() == [1, 2] and dense.asnumpy().sum() == 3
    kv.row_sparse_pull(["a", "a"], out=[[out], [out.copy()]], row_ids=[[nd.array([1])], [nd.array([2])]])
    assert out.indices.asnumpy().tolist() == [1]
    for wrong in ({}, {"row_ids": [nd.array([1])] * 3}):
        with pytest.raises(
            mx.MXNetError, match="row_sparse_pull: (expected out and row_ids|3 arrays of row_ids for 1)"
        ):
            kv.row_sparse_pull("a", out=out, **wrong)
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    kv.push("b", pushed)
    kv.pull("b", out=dense)
    assert dense.asnumpy()[2].tolist() == [0.5, 1]


def linear() -> Any:
    x = sym.var("data", stype="csr")
    weight = sym.var("w_weight", stype="row_sparse", shape=(4, 2))
    return sym.broadcast_add(sym.sparse.dot(x, weight), sym.var("b_bias", shape=(2,)))


def test_simple_bind() -> None:
    exe = linear().simple_bind(mx.cpu(), data=(3, 4), grad_req={"w_weight": "write", "b_bias": "write"})
    assert {k: v.stype for k, v in exe.arg_dict.items()} == {
        "data": "csr", "w_weight": "row_sparse", "b_bias": "default",
    }  # fmt: skip
    exe.arg_dict["w_weight"][:] = nd.ones((4, 2))
    exe.arg_dict["b_bias"][:] = 1
    (y,) = exe.forward(is_train=True, data=nd.array(BATCH).tostype("csr"))
    assert y.asnumpy().tolist() == [[2, 2], [3, 3], [1, 1]]
    exe.backward(nd.ones((3, 2)))
    grad = exe.grad_dict["w_weight"]
    assert grad.stype == "row_sparse" and grad.indices.asnumpy().tolist() == [0, 1]
    assert grad.asnumpy()[:, 0].tolist() == [2, 1, 0, 0]


def test_storage_types_of_gradients() -> None:
    v = sym.var

    def kinds(symbol: Any, **shapes: Any) -> dict[str, str]:
        return {k: g.stype for k, g in symbol.simple_bind(mx.cpu(), **shapes).grad_dict.items()}

    table = v("t")
    looked = [sym.Embedding(v(n), table, input_dim=6, output_dim=2, sparse_grad=True) for n in "ij"]
    assert kinds(looked[0] + looked[1], i=(3,), j=(3,)) == {"i": "default", "t": "row_sparse", "j": "default"}
    mixed = sym.broadcast_add(looked[0], sym.sum(table, axis=0, keepdims=True))
    assert kinds(mixed, i=(3,))["t"] == "default"
    assert kinds(sym.dot(v("a", stype="csr"), v("w")), a=(3, 4), w=(4, 2)) == {"a": "default", "w": "row_sparse"}
    assert kinds(sym.square(v("a", stype="csr")), a=(3, 4)) == {"a": "csr"}
    assert kinds(sym.exp(v("a", stype="csr")), a=(3, 4)) == {"a": "default"}
    with pytest.raises(mx.MXNetError, match="storage type 'x' of 'a': expected one of default, row_sparse, csr"):
        v("a").simple_bind(mx.cpu(), a=(2, 2), stype_dict={"a": "x"})


def test_symbols_make_sparse_outputs() -> None:
    exe = sym.cast_storage(sym.var("a"), stype="csr").simple_bind(mx.cpu(), a=(3, 4), grad_req="null")
    assert exe.outputs[0].stype == "csr"
    assert exe.forward(a=nd.array(BATCH))[0].stype == "csr"
    kept = sym.sparse.retain(sym.var("a", stype="row_sparse"), sym.var("i"))
    exe = kept.simple_bind(mx.cpu(), a=(3, 4), i=(2,), grad_req="null")
    (y,) = exe.forward(a=nd.array(BATCH).tostype("row_sparse"), i=nd.array([0, 2]))
    assert y.stype == "row_sparse" and y.indices.asnumpy().tolist() == [0, 2]


@pytest.mark.parametrize("kvstore", ["local", None, "store"])
def test_module(kvstore: Any) -> None:
    net = sym.LinearRegressionOutput(linear(), sym.var("label"))
    mod = mx.mod.Module(net, data_names=["data"], label_names=["label"])
    mod.bind([("data", (3, 4))], [("label", (3, 2))])
    mod.init_params(mx.init.One())
    assert mod.get_params()[0]["w_weight"].stype == "row_sparse"
    store = mx.kv.create("local") if kvstore == "store" else kvstore
    mod.init_optimizer(optimizer="sgd", kvstore=store, optimizer_params={"learning_rate": 0.1})
    batch = mx.io.DataBatch([nd.array(BATCH).tostype("csr")], [nd.zeros((3, 2))])
    mod.prepare(batch, sparse_row_id_fn=lambda b: {"w_weight": b.data[0].indices})
    mod.forward_backward(batch)
    assert mod.get_outputs()[0].asnumpy().tolist() == [[1, 1], [2, 2], [0, 0]]
    mod.update()
    expected = np.ones((4, 2)) - 0.1 / 6 * BATCH.T @ np.array([[1, 1], [2, 2], [0, 0]])
    np.testing.assert_allclose(mod.get_params()[0]["w_weight"].asnumpy(), expected, rtol=1e-6)


def test_libsvm(tmp_path: Path) -> None:
    data, labels = tmp_path / "a", tmp_path / "l"
    data.write_text("1 0:1.5 3:2\n0 1:1  # remark\n\n2 2:3 3:4.5\n")
    labels.write_text("0 2:7\n1\n0 0:1\n")
    it = mx.io.LibSVMIter(data_libsvm=str(data), data_shape=(4,), batch_size=2)
    assert it.provide_data[0].shape == (2, 4) and it.provide_label[0].shape == (2,)
    first, second = it
    assert first.data[0].stype == "csr" and (first.pad, second.pad) == (0, 1)
    assert first.data[0].asnumpy().tolist() == [[1.5, 0, 0, 2], [0, 1, 0, 0]]
    assert second.data[0].asnumpy().tolist() == [[0, 0, 3, 4.5], [1.5, 0, 0, 2]]
    assert second.label[0].asnumpy().tolist() == [2, 1]
    it.reset()
    assert [b.label[0].asnumpy().tolist() for b in it] == [[0, 2]]
    it = mx.io.LibSVMIter(str(data), 4, label_libsvm=str(labels), label_shape=(3,), batch_size=3)
    (batch,) = it
    assert batch.label[0].stype == "csr"
    assert batch.label[0].asnumpy().tolist() == [[0, 0, 7], [0, 0, 0], [1, 0, 0]]
    parts = [mx.io.LibSVMIter(str(data), 4, num_parts=3, part_index=k, batch_size=1) for k in range(3)]
    assert [next(p).label[0].asscalar() for p in parts] == [1, 0, 2]


@pytest.mark.parametrize(
    "text, more",
    [
        ("1 4:1\n", {}),
        ("1 -1:1\n", {}),
        ("1 x\n", {}),
        ("", {}),
        ("1 0:1\n", {"data_shape": (2, 2)}),
        ("1 0:1\n", {"batch_size": 0}),
        ("1 0:1\n", {"round_batch": False}),
        ("1 0:1\n", {"part_index": 3}),
        (None, {}),
    ],
)
def test_libsvm_refuses(tmp_path: Path, text: str | None, more: dict[str, Any]) -> None:
    path = tmp_path / "a"
    if text is not None:
        path.write_text(text)
    with pytest.raises(mx.MXNetError, match="LibSVMIter"):
        mx.io.LibSVMIter(str(path), **{"data_shape": (4,), **more})


@pytest.mark.parametrize(
    ("lazy", "want"),
    [
        (True, [0.0, 0.27441406, 0.19330327, 0.4, 0.43611825, 0.6]),
        (False, [-0.11880276, 0.33193636, 0.19330327, 0.4, 0.43611825, 0.6]),
    ],
)
def test_lazy_adam_leaves_rows_alone_that_no_csr_row_uses(lazy, want):
    w = mx.sym.var("w", stype="row_sparse", shape=(6, 1))
    score = mx.sym.broadcast_add(mx.sym.dot(mx.sym.var("data", stype="csr"), w), mx.sym.var("bias", shape=(1,)))
    mod = mx.mod.Module(mx.sym.LogisticRegressionOutput(score, mx.sym.var("softmax_label")))
    mod.bind([("data", (2, 6))], [("softmax_label", (2, 1))])
    weights = {"w": nd.array([[0.1], [0.2], [0.3], [0.4], [0.5], [0.6]]).tostype("row_sparse"), "bias": nd.array([0.1])}
    mod.init_params(arg_params=weights)
    params = {"learning_rate": 0.1, "wd": 0.01, "lazy_update": lazy}
    mod.init_optimizer(kvstore=None, optimizer="adam", optimizer_params=params)
    for k in range(3):
        data = np.zeros((2, 6))
        data[0, k], data[1, 2 * k] = 1, 2
        batch = mx.io.DataBatch([nd.array(data).tostype("csr")], [nd.array([[1], [0]])])
        mod.forward_backward(batch)
        mod.update()
    np.testing.assert_allclose(mod.get_params()[0]["w"].asnumpy().ravel(), want, atol=1e-5)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_lazy_updates_leave_rows_alone_whose_dense_gradient_is_zero(optimizer):
    params = {"learning_rate": 0.1, "wd": 0.1, **({"momentum": 0.9} if optimizer == "sgd" else {})}
    updater = mx.optimizer.get_updater(mx.optimizer.create(optimizer, **params))
    w = nd.ones((4, 2))
    w.attach_grad(stype="row_sparse")
    moved = []
    for row in (0, 2):
        with mx.autograd.record():
            loss = (w * nd.one_hot(nd.array([row]), 4).T).sum()
        loss.backward()
        before = w.asnumpy()
        updater(0, w.grad, w)
        moved.append((w.asnumpy() != before).any(axis=1).tolist())
    assert moved == [[True, False, False, False], [False, False, True, False]]


@pytest.mark.parametrize(("axis", "keepdims"), [(1, True), (1, False), (0, False)])
def test_square_sums_of_sparse_weights_have_gradients_by_row(axis, keepdims):
    w = mx.sym.var("w", stype="row_sparse", shape=(3, 2))
    net = mx.sym.MakeLoss(mx.sym.sum(mx.sym._internal._square_sum(w, axis=axis, keepdims=keepdims)))
    exe = net.simple_bind(mx.cpu())
    exe.arg_dict["w"][:] = nd.array([[1, 2], [3, 4], [5, 6]]).tostype("row_sparse")
    exe.forward(is_train=True)
    exe.backward()
    assert exe.grad_dict["w"].stype == "row_sparse"
    assert exe.grad_dict["w"].asnumpy().tolist() == [[2, 4], [6, 8], [10, 12]]
