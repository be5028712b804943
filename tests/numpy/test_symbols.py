"""`mx.sym.np`: nodes give what the functions of arrays give, survive JSON and differentiate."""

from __future__ import annotations

import importlib
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
    with pytest.raises(AttributeError):
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
