"""Operators written in Python inside symbols, modules and hybridized blocks."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import ArgumentError, ArgumentTypeError

sym, nd = mx.sym, mx.nd
CREATED: list = []


class Scale(mx.operator.CustomOp):
    """Two inputs, two outputs, a state that counts, computed with NumPy."""

    def forward(self, is_train, req, in_data, out_data, aux):
        x, w = (a.asnumpy() for a in in_data)
        if x.flat[0] == 13:
            raise KeyError("unlucky")
        self.assign(out_data[0], req[0], nd.array(x * w, dtype=x.dtype))
        self.assign(out_data[1], req[1], in_data[0] + 1)
        aux[0][:] += 1

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * in_data[1] + out_grad[1])
        self.assign(in_grad[1], req[1], out_grad[0] * in_data[0])


@mx.operator.register("test_scale")
class ScaleProp(mx.operator.CustomOpProp):
    def __init__(self, k="1"):
        super().__init__(need_top_grad=True)
        assert isinstance(k, str)

    def list_arguments(self):
        return ["data", "w"]

    def list_outputs(self):
        return ["o", "p"]

    def list_auxiliary_states(self):
        return ["count"]

    def infer_shape(self, in_shape):
        return [in_shape[0], in_shape[0]], [in_shape[0], in_shape[0]], [(1,)]

    def create_operator(self, ctx, in_shapes, in_dtypes):
        CREATED.append((ctx, in_shapes, in_dtypes))
        return Scale()


class Softmax(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        y = np.exp(in_data[0].asnumpy())
        self.assign(out_data[0], req[0], nd.array(y / y.sum(1, keepdims=True)))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_data[0] - nd.one_hot(in_data[1], out_data[0].shape[1]))


@mx.operator.register("test_softmax")
class SoftmaxProp(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__(need_top_grad=False)

    def list_arguments(self):
        return ["data", "label"]

    def infer_shape(self, in_shape):
        return [in_shape[0], (in_shape[0][0],)], [in_shape[0]], []

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Softmax()


def scaled():
    return sym.Custom(sym.var("x") * 2, op_type="test_scale", k=3, name="cu")


def test_names_and_inference():
    y = scaled()
    assert y.list_arguments() == ["x", "cu_w"] and y.list_auxiliary_states() == ["cu_count"]
    assert y.list_outputs() == ["cu_o", "cu_p"]
    assert y.infer_shape(x=(2,)) == ([(2,), (2,)], [(2,), (2,)], [(1,)])
    assert set(y.infer_type(x="float64")[1]) == {np.float64}
    assert y.infer_shape() == (None, None, None)
    assert sym.Custom(data=sym.var("x"), op_type="test_scale").name.startswith("custom")


def test_json_is_that_of_mxnet():
    text = scaled().tojson()
    nodes = json.loads(text)["nodes"]
    assert nodes[-1]["op"] == "Custom" and nodes[-1]["attrs"] == {"k": "3", "op_type": "test_scale"}
    assert [n["name"] for n in nodes] == ["x", nodes[1]["name"], "cu_w", "cu_count", "cu"]
    assert nodes[-1]["inputs"] == [[1, 0, 0], [2, 0, 0], [3, 0, 1]]
    loaded = sym.load_json(text)
    assert loaded.list_outputs() == ["cu_o", "cu_p"] and loaded.tojson() == text
    with pytest.raises(mx.MXNetError, match="test_scal'"):
        sym.load_json(text.replace("test_scale", "test_scal"))


def test_executor():
    y = scaled()
    y = sym.Group([sym.exp(y[0]), y[1]])
    exe = y.simple_bind(mx.cpu(), x=(2,), grad_req="add")
    exe.arg_dict["x"][:] = nd.array([0.5, 1])
    exe.arg_dict["cu_w"][:] = nd.array([1, 2])
    CREATED.clear()
    for count in (1, 2):
        outs = exe.forward(is_train=True)
        np.testing.assert_allclose(outs[0].asnumpy(), np.exp([1, 4]), rtol=1e-6)
        assert outs[1].asnumpy().tolist() == [2, 3]
        exe.backward([nd.ones((2,)), nd.ones((2,))])
        np.testing.assert_allclose(exe.grad_dict["x"].asnumpy(), count * (2 * np.exp([1, 4]) * [1, 2] + 2), rtol=1e-5)
        assert exe.aux_dict["cu_count"].asscalar() == count
    exe.forward()
    assert len(CREATED) == 1  # kept by the executor
    with pytest.raises(mx.MXNetError, match="is not a loss"):
        exe.backward()


def test_exceptions_surface():
    exe = scaled().simple_bind(mx.cpu(), x=(1,))
    exe.arg_dict["x"][:] = 6.5
    with pytest.raises(mx.MXNetError, match="unlucky") as caught:
        exe.forward()
    assert isinstance(caught.value, KeyError) and "test_custom.py" in str(caught.value)
    exe.arg_dict["x"][:] = 1
    assert exe.forward()[1].asscalar() == 3


class Net(mx.gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.first, self.last = mx.gluon.nn.Dense(4), mx.gluon.nn.Dense(2)
            self.w = self.params.get("w", shape=(3, 4), init="ones")
            self.count = self.params.get("count", shape=(1,), init="zeros", grad_req="null")

    def hybrid_forward(self, F, x, w, count):
        hidden, more = F.Custom(self.first(x), w, count, op_type="test_scale")
        return self.last(hidden + more)


def test_hybridized_blocks(tmp_path):
    net, x = Net(), nd.array(np.random.RandomState(0).rand(3, 5))
    net.initialize(mx.init.Normal(0.5))
    seen = []
    for active in (False, True):
        net.hybridize(active)
        with mx.autograd.record():
            y = net(x)
            (y * y).sum().backward()
        seen.append([y.asnumpy(), net.w.grad().asnumpy(), net.first.weight.grad().asnumpy()])
    for a, b in zip(*seen, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    assert net.count.data().asscalar() == 2
    net.export(str(tmp_path / "net"))
    paths = str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params")
    np.testing.assert_allclose(mx.gluon.SymbolBlock.imports(*paths)(x).asnumpy(), seen[0][0], rtol=1e-5)


def test_module_trains_with_a_loss_in_python():
    rng = np.random.RandomState(0)
    x = rng.randn(96, 4).astype("f")
    net = sym.FullyConnected(sym.var("data"), num_hidden=2, name="fc")
    net = sym.Custom(net, sym.var("softmax_label"), op_type="test_softmax", name="softmax")
    feed = mx.io.NDArrayIter(x, (x[:, 0] > 0).astype("f"), batch_size=16)
    module = mx.mod.Module(net)
    module.fit(feed, num_epoch=5, optimizer_params={"learning_rate": 1.0})
    assert module.score(feed, "acc")[0][1] > 0.95


def test_inside_loops_and_branches():
    one = dict(op_type="test_scale", name="cu")
    d, s, n = sym.var("d"), sym.var("s"), sym.var("n")

    def step(x, state):
        return sym.Custom(x, state, n, **one)[0], state + 1

    outs, last = sym.contrib.foreach(step, d, s)
    chosen = sym.contrib.cond(sym.sum(last) > 3, lambda: sym.Custom(last, last, n, **one)[0], lambda: s)
    both = sym.Group([outs, chosen])
    args = {"d": nd.array([[1, 2], [3, 4]]), "s": nd.ones((2,)), "n": nd.zeros((1,))}
    grads = {k: nd.zeros(v.shape) for k, v in args.items()}
    exe = both.bind(mx.cpu(), args, grads) if not both.list_auxiliary_states() else None
    if exe is None:
        args.pop("n"), grads.pop("n")
        exe = both.bind(mx.cpu(), args, grads, aux_states={"n": nd.zeros((1,))})
    first, second = exe.forward(is_train=True)
    assert first.asnumpy().tolist() == [[1, 2], [6, 8]] and second.asnumpy().tolist() == [9, 9]
    exe.backward([nd.ones((2, 2)), nd.ones((2,))])
    assert grads["d"].asnumpy().tolist() == [[1, 1], [2, 2]] and grads["s"].asnumpy().tolist() == [4 + 6, 6 + 6]
    i = sym.var("i")
    outs, _ = sym.contrib.while_loop(lambda i: i < 3, lambda i: (sym.Custom(i, i, n, **one)[0], i + 1), i, 4)
    states = {"aux_states": {"n": nd.zeros((1,))}} if outs.list_auxiliary_states() else {}
    given = {"i": nd.array([1])} if states else {"i": nd.array([1]), "n": nd.zeros((1,))}
    assert outs.bind(mx.cpu(), given, **states).forward()[0].asnumpy().ravel().tolist() == [1, 4, 0, 0]


def test_legacy_operators():
    class Twice(mx.operator.NumpyOp):
        def forward(self, in_data, out_data):
            out_data[0][:] = in_data[0] * 2

        def backward(self, out_grad, in_data, out_data, in_grad):
            in_grad[0][:] = 2

    class Thrice(mx.operator.NDArrayOp):
        def forward(self, in_data, out_data):
            out_data[0][:] = in_data[0] * 3

        def backward(self, out_grad, in_data, out_data, in_grad):
            in_grad[0][:] = out_grad[0] * 3

    exe = Twice(False)(Thrice()(sym.var("x"), name="a"), name="b").simple_bind(mx.cpu(), x=(2,))
    exe.arg_dict["x"][:] = 1
    assert exe.forward(is_train=True)[0].asnumpy().tolist() == [6, 6]
    exe.backward()
    assert exe.grad_dict["x"].asnumpy().tolist() == [6, 6]


def test_bad_arguments():
    x = sym.var("x")
    with pytest.raises(ArgumentError, match="test_scale"):
        sym.Custom(x, op_type="test_scal")
    with pytest.raises(ArgumentError, match="op_type"):
        sym.Custom(x)
    with pytest.raises(ArgumentError, match="5 inputs"):
        sym.Custom(x, x, x, x, x, op_type="test_scale")
    with pytest.raises(ArgumentError, match="unexpected input 'y'"):
        sym.Custom(x, y=x, op_type="test_scale")
    with pytest.raises(ArgumentTypeError, match="positional"):
        sym.Custom(3, op_type="test_scale")
    with pytest.raises(mx.MXNetError, match="infer_shape wants|cu"):
        scaled().infer_shape(x=(2,), cu_w=(3,))
