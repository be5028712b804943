"""`mx.sym.np`: nodes give what the functions of arrays give, survive JSON and differentiate."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest

import dualmx as mx
import numpy as onp
from tests.numpy.cases import ROW, M, N, T, V

np = mx.np
nd: Any = mx.nd
sym: Any = mx.sym
snp = sym.np
INPUTS = {"m": M, "n": N, "row": ROW, "t": T, "v": V}
SYMBOLS = {name: mx.sym.var(name).as_np_ndarray() for name in INPUTS}
ARRAYS = {name: np.array(value) for name, value in INPUTS.items()}

EXPRESSIONS = {
    "arithmetic": lambda F, m, row: (m + row) * 2 - 1 / m + row**2 - (3 - m) % row + 2**m,
    "comparison": lambda F, m, row: F.where(m > row, m, 1.5) + (m <= 0.5) * row,
    "unary": lambda F, m: F.sin(m) + F.log(F.abs(-m)) + F.sqrt(m) + F.around(m, 1),
    "binary": lambda F, m, row: F.add(F.maximum(m, row), F.power(m, 2)) + F.arctan2(m, 0.3) + F.hypot(0.4, m),
    "reductions": lambda F, t: F.sum(t, axis=1) + F.mean(t, axis=(1,), keepdims=False) * F.max(t) - t.min() + t.var(),
    "shapes": lambda F, m: F.reshape(F.expand_dims(m, 0), (-1, 2)) + m.T + F.swapaxes(m, 0, 1) + F.transpose(m, (1, 0)),
    "more shapes": lambda F, t: F.moveaxis(F.flip(F.roll(t, 1, axis=0), 1), 0, -1) + F.squeeze(t[0:1, :, :]).sum(),
    "joining": lambda F, m: F.concatenate([m, m * 2], axis=0) + F.vstack([m, m]) + F.stack([m, m]).reshape(4, 3),
    "splitting": lambda F, m: F.split(m, 3, axis=1)[1] * F.array_split(m, 3, axis=1)[0],
    "products": lambda F, m, n: F.dot(m, n) + m @ n + F.matmul(m, n) + F.einsum("ij,jk", m, n) + F.outer(m, n)[0, 0],
    "tensordot": lambda F, t, m: F.tensordot(t, m, axes=((0, 1), (0, 1))),
    "order": lambda F, v: F.sort(v) + F.argsort(v).astype("float64") + F.clip(v, 0.3, 0.6) + F.cumsum(v),
    "diagonals": lambda F, m: F.tril(m) + F.diag(F.diagonal(m)).sum() + F.trace(m),
    "made": lambda F, row: F.arange(3, dtype="float64") * row + F.ones((2, 3), "float64") + F.zeros_like(row)
    + F.full_like(row, 2.5) + F.eye(3, dtype="float64")[0] + F.linspace(0, 1, 3, dtype="float64"),
    "windows": lambda F, t: t[0, 1:, 0] + t[1, :-1, 1],
    "means": lambda F, m, row: F.average(m, axis=1, weights=row) + m.mean(axis=1) + F.std(m, axis=1),
    "take": lambda F, m: F.take(m, F.arange(2, dtype="int64"), axis=1) + F.repeat(m, 2, 0)[1, 1] + F.tile(m, 2)[0, 0],
}  # fmt: skip


def names(expression) -> list[str]:
    return list(expression.__code__.co_varnames[1 : expression.__code__.co_argcount])


def build(name: str, F, given):
    expression = EXPRESSIONS[name]
    return expression(F, *(given[n] for n in names(expression)))


@pytest.mark.slow
def test_nodes_give_what_arrays_give():
    made = [build(name, snp, SYMBOLS) for name in EXPRESSIONS]
    assert all(isinstance(s, type(SYMBOLS["m"])) for s in made)
    whole = mx.sym.Group(made)
    read = mx.sym.load_json(whole.tojson())
    assert read.tojson() == whole.tojson()
    arguments = {n: mx.nd.array(INPUTS[n], dtype="float64") for n in read.list_arguments()}
    got = read.bind(mx.cpu(), arguments).forward()
    shapes = {n: a.shape for n, a in arguments.items()}
    for name, out, shape in zip(EXPRESSIONS, got, whole.infer_shape(**shapes)[1] or [], strict=True):
        want = build(name, np, ARRAYS).asnumpy()
        assert shape == want.shape, name
        onp.testing.assert_allclose(out.asnumpy(), want, rtol=1e-12, err_msg=name)


def test_gradients_of_nodes():
    loss = (snp.dot(SYMBOLS["m"], SYMBOLS["n"]) * 2).sum() + snp.mean(SYMBOLS["m"] ** 2)
    arguments = {n: mx.nd.array(INPUTS[n], dtype="float64") for n in loss.list_arguments()}
    executor = loss.bind(mx.cpu(), arguments, {n: mx.nd.zeros(a.shape, dtype="float64") for n, a in arguments.items()})
    executor.forward(is_train=True)
    executor.backward(mx.nd.array(onp.ones(()), dtype="float64"))
    x = np.array(M)
    x.attach_grad()
    with mx.autograd.record():
        y = (np.dot(x, np.array(N)) * 2).sum() + np.mean(x**2)
    y.backward()
    onp.testing.assert_allclose(executor.grad_dict["m"].asnumpy(), x.grad.asnumpy(), rtol=1e-12)


def test_kinds_of_symbols():
    x = mx.sym.var("x")
    y = x.as_np_ndarray()
    assert y.as_np_ndarray() is y
    assert snp.sum(y, axis=0, name="total").list_outputs() == ["total_output"]
    assert type(y.as_nd_ndarray()) is mx.sym.Symbol
    assert (y + 1).infer_type(x="int32")[1] == [onp.int32]
    assert (y > 1).infer_type(x="float32")[1] == [onp.bool_]
    assert sym.npx.relu(y).infer_shape(x=(2,))[1] == [(2,)]
    assert sym.npx.fully_connected(y, num_hidden=3, flatten=False).infer_shape(x=(2, 4))[1] == [(2, 3)]
    assert nd.np is np
    assert nd.npx is importlib.import_module("dualmx.numpy_extension")
    with pytest.raises(AttributeError, match="module 'mx.sym.np' has no attribute 'array'"):
        _ = snp.array
    with pytest.raises(TypeError, match="mix"):
        snp.dot(y, np.ones(2))
    with pytest.raises(TypeError, match="out="):
        snp.sum(y, out=np.ones(()))


def test_nodes_of_the_extension_take_names_and_attributes():
    x = mx.sym.var("x").as_np_ndarray()
    made = mx.sym.npx.reshape(x, (-2, 6), name="flat", attr={"__note__": "1"})
    assert made.name == "flat" and made.attr("__note__") == "1"
    assert mx.sym.npx.nonzero(x, name="at").name == "at"
    assert mx.sym.npx.constraint_check(x, msg="no", name="check").name == "check"
    with pytest.raises(mx.MXNetError, match="out="):
        mx.sym.npx.nonzero(x, out=x)


def read_back(made: Any) -> list[tuple[str, dict[str, str]]]:
    """Operators of a graph and the parameters that its JSON has."""
    return [(n["op"], n.get("attrs", {})) for n in json.loads(made.tojson())["nodes"] if n["op"] != "null"]


def test_norms_are_written_as_mxnet_writes_them():
    m, x = SYMBOLS["m"], np.array(M)
    written = {
        (None, None): ("-2", None), (None, 0): ("1", "(0,)"), ("fro", None): ("1", None),
        ("nuc", (0, 1)): ("2", "(0, 1)"),
        (2, (0, 1)): ("0", "(0, 1)"), (3, 1): ("-1", "(1,)"), (2, None): ("-1", None),
    }  # fmt: skip
    for (order, axis), (flag, axes) in written.items():
        made = snp.linalg.norm(m, order, axis)
        ((name, params),) = read_back(made)
        assert (name, params["flag"], params.get("axis")) == ("_npi_norm", flag, axes)
    for order, axis in [*written, (1, (0, 1)), (onp.inf, (1, 0)), (-onp.inf, 1), (-1, (-1, 0))]:
        made = mx.sym.load_json(snp.linalg.norm(m, order, axis, True).tojson())
        got = made.bind(mx.cpu(), {"m": mx.nd.array(M, dtype="float64")}).forward()[0]
        want = np.linalg.norm(x, order, axis, True).asnumpy()
        assert got.shape == want.shape
        onp.testing.assert_allclose(got.asnumpy(), want, rtol=1e-6, err_msg=f"{order} {axis}")


def test_draws_are_written_as_mxnet_writes_them():
    (randint,), (choice,) = (read_back(s) for s in (snp.random.randint(5, size=(2, 3)), snp.random.choice(5, 3)))
    assert randint == (
        "_random_randint",
        {"ctx": "cpu(0)", "dtype": "int64", "high": "5", "low": "0", "shape": "(2, 3)"},
    )
    assert choice[0] == "_npi_choice" and choice[1]["a"] == "5" and choice[1]["weighted"] == "False"
    v = SYMBOLS["v"]
    drawn = mx.sym.Group(
        [snp.random.choice(v, 3, p=v), snp.random.choice(5, 3, False), snp.random.choice(5), snp.random.randint(4)]
    )
    values = mx.nd.array([0.5, 0.25, 0.25])
    taken, places, one, number = mx.sym.load_json(drawn.tojson()).bind(mx.cpu(), {"v": values}).forward()
    assert set(taken.asnumpy().tolist()) <= {0.5, 0.25}
    assert len(set(places.asnumpy().tolist())) == 3 and places.dtype == onp.int64
    assert one.shape == number.shape == () and 0 <= int(number.asnumpy()) < 4


def test_automatic_names_are_those_of_mxnet():
    with mx.name.NameManager():
        m, npx = SYMBOLS["m"], sym.npx
        made = npx.fully_connected(m, num_hidden=4)
        assert made.list_arguments() == ["m", "fully_connected0_weight", "fully_connected0_bias"]
        symbols = (
            npx.reshape(m, (-4,)), npx.image.to_tensor(m), npx.arange_like(m), snp.swapaxes(m, 0, 1), snp.std(m),
            m.var(), snp.concatenate([m, m]), snp.hstack([m, m]), snp.matmul(m, m), snp.linalg.det(m),
            snp.random.normal(),
        )  # fmt: skip
        assert [s.list_outputs()[0] for s in symbols] == [
            "reshape0_output", "to_tensor0_output", "arange_like0_output", "swapaxes0_output", "std0_std", "var0_var",
            "concatenate0_out", "hstack0_out", "matmul0_out", "det0_output0", "normal0_output0",
        ]  # fmt: skip
        assert [s.name for s in (snp.hsplit(m, 3)[1], snp.dsplit(SYMBOLS["t"], 2)[0])] == ["hsplit0", "dsplit0"]


def test_integer_operators_bind():
    i = mx.sym.var("i").as_np_ndarray()
    made = mx.sym.Group([snp.bitwise_and(i, 3), snp.bitwise_not(i), snp.lcm(i, i)])
    assert made.infer_shape(i=(2,))[1] == [(2,)] * 3
    out = made.bind(mx.cpu(), {"i": mx.nd.array([5, 6], dtype="int32")}).forward()
    assert [o.asnumpy().tolist() for o in out] == [[1, 2], [-6, -7], [5, 6]]
