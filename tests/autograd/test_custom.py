"""Operators written in Python: what they are handed, their gradients and states, and their errors."""

from __future__ import annotations

import traceback

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import ArgumentError, ArgumentTypeError

SEEN: list = []


class SquareAdd(mx.operator.CustomOp):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, is_train, req, in_data, out_data, aux):
        SEEN.append((bool(is_train), req, mx.autograd.is_recording()))
        self.assign(out_data[0], req[0], in_data[0] ** 2 + self.k * in_data[1])
        self.assign(out_data[1], req[1], mx.nd.array(in_data[0].asnumpy() * 2))
        aux[0][:] = aux[0] + 1

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0] + 2 * out_grad[1])
        self.assign(in_grad[1], req[1], self.k * out_grad[0])


@mx.operator.register("square_add")
class SquareAddProp(mx.operator.CustomOpProp):
    def __init__(self, k="1"):
        super().__init__(need_top_grad=True)
        SEEN.append(k)
        self.k = float(k)

    def list_arguments(self):
        return ["a", "b"]

    def list_outputs(self):
        return ["o", "p"]

    def list_auxiliary_states(self):
        return ["count"]

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0], in_shape[0]], [(1,)]

    def create_operator(self, ctx, in_shapes, in_dtypes):
        SEEN.append((ctx, in_shapes, in_dtypes))
        return SquareAdd(self.k)


def arrays():
    return mx.nd.array([1, 2]), mx.nd.array([3, 4]), mx.nd.zeros((1,))


def test_values_states_and_what_it_is_handed():
    a, b, count = arrays()
    SEEN.clear()
    o, p = mx.nd.Custom(a, b, count, op_type="square_add", k=3)
    assert o.asnumpy().tolist() == [10, 16] and p.asnumpy().tolist() == [2, 4] and count.asscalar() == 1
    assert SEEN[0] == "3" and SEEN[1][1:] == ([[2], [2], [1]], [np.float32] * 3)
    assert SEEN[2] == (False, ["write", "write"], False)
    o, _ = mx.nd.Custom(b=b, a=a, count=count, op_type="square_add")
    assert o.asnumpy().tolist() == [4, 8] and count.asscalar() == 2


def test_gradients_go_on():
    a, b, count = arrays()
    a.attach_grad()
    b.attach_grad("add")
    with mx.autograd.record():
        o, p = mx.nd.Custom(a * 2, b, count, op_type="square_add", k=3)
        loss = (o * 2 + p).sum()
    assert SEEN[-1][0]
    loss.backward(retain_graph=True)
    assert b.grad.asnumpy().tolist() == [6, 6]
    loss.backward()
    assert a.grad.asnumpy().tolist() == [2 * (2 * 2 * 2 + 2), 2 * (2 * 4 * 2 + 2)]
    assert b.grad.asnumpy().tolist() == [12, 12]


def test_exceptions_come_through_with_their_traceback():
    class Broken(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            raise ZeroDivisionError("inside forward")

    @mx.operator.register("broken")
    class BrokenProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Broken()

    with pytest.raises(ZeroDivisionError, match="inside forward") as caught:
        mx.nd.Custom(mx.nd.ones((2,)), op_type="broken")
    assert any(frame.name == "forward" and "test_custom" in frame.filename for frame in traceback.extract_tb(caught.tb))


def test_assign_follows_the_request():
    op, x = mx.operator.CustomOp(), mx.nd.ones((2,))
    op.assign(x, "null", mx.nd.zeros((2,)))
    op.assign(x, "add", mx.nd.ones((2,)))
    assert x.asnumpy().tolist() == [2, 2]
    with pytest.raises(ArgumentError, match="req='twice'"):
        op.assign(x, "twice", x)


def test_bad_arguments():
    a, b, count = arrays()
    with pytest.raises(ArgumentError, match="square_add"):
        mx.nd.Custom(a, op_type="square_ad")
    with pytest.raises(ArgumentError, match="expected \\['a', 'b', 'count'\\]"):
        mx.nd.Custom(a, op_type="square_add")
    with pytest.raises(ArgumentTypeError, match="b is a int"):
        mx.nd.Custom(a, 3, count, op_type="square_add")
    with pytest.raises(ArgumentTypeError, match="CustomOpProp"):
        mx.operator.register("x")(SquareAdd)  # type: ignore[arg-type]
    assert "square_add" in mx.operator.get_all_registered_operators()


def test_rooms_of_operators_have_custom():
    a, b, count = arrays()
    assert mx.nd.op.Custom(a, b, count, op_type="square_add", k=3)[0].asnumpy().tolist() == [10, 16]
    node = mx.sym.op.Custom(mx.sym.var("a"), mx.sym.var("b"), op_type="square_add", name="sq", k=3)
    assert node.list_arguments() == ["a", "b"] and node.name == "sq"


def test_arguments_of_operators():
    names = mx.operator.get_all_registered_operators()
    assert {"Activation", "Convolution", "Custom", "_plus_scalar"} <= set(names) and names == sorted(names)
    got = mx.operator.get_operator_arguments("FullyConnected")
    assert type(got).__name__ == "OperatorArguments" and got._fields == ("narg", "names", "types")
    assert got.narg == 6 and got.names == ["data", "weight", "bias", "num_hidden", "no_bias", "flatten"]
    assert got.types[3:] == ["int, required", "boolean, optional, default=0", "boolean, optional, default=1"]

    def types(name):
        found = mx.operator.get_operator_arguments(name)
        return dict(zip(found.names, found.types, strict=True))

    assert types("Dropout")["mode"] == "{'always', 'training'},optional, default='training'"
    assert types("Dropout")["p"] == "float, optional, default=0.5"
    assert types("Convolution")["kernel"] == "Shape(tuple), required"
    assert types("Convolution")["pad"] == "Shape(tuple), optional, default=[]"
    assert types("sum")["axis"] == "Shape or None, optional, default=None"
    assert types("topk")["axis"] == "int or None, optional, default='-1'"
    assert types("adam_update")["epsilon"] == "float, optional, default=9.99999994e-09"
    assert types("add_n")["args"] == "NDArray-or-Symbol[]"
    assert types("Custom") == {"data": "NDArray-or-Symbol", "op_type": "string, required"}
    with pytest.raises(mx.MXNetError, match="FullyConnectd"):
        mx.operator.get_operator_arguments("FullyConnectd")


def test_out_is_written_and_returned():
    a, b, count = arrays()
    a.attach_grad()
    outs = [mx.nd.zeros((2,)), mx.nd.zeros((2,), dtype="float64")]
    with mx.autograd.record():
        assert mx.nd.Custom(a, b, count, op_type="square_add", k=3, out=outs) is outs
        loss = (outs[0] * 2).sum()
    loss.backward()
    assert outs[0].asnumpy().tolist() == [10, 16] and outs[1].asnumpy().tolist() == [2, 4]
    assert a.grad.asnumpy().tolist() == [4, 8]
    with pytest.raises(ArgumentError, match="expected 2 array"):
        mx.nd.Custom(a, b, count, op_type="square_add", out=outs[0])


def test_inputs_have_the_shapes_that_infer_shape_says():
    @mx.operator.register("one_label_each")
    class Prop(mx.operator.CustomOpProp):
        def list_arguments(self):
            return ["data", "label"]

        def infer_shape(self, in_shape):
            return [in_shape[0], (in_shape[0][0],)], [in_shape[0]], []

        def create_operator(self, ctx, in_shapes, in_dtypes):
            return mx.operator.CustomOp()

    with pytest.raises(ArgumentError, match=r"label has shape \(3,\): infer_shape expects \(2,\)"):
        mx.nd.Custom(mx.nd.ones((2, 3)), mx.nd.ones((3,)), op_type="one_label_each")


@pytest.mark.parametrize("kind", [list, tuple])
def test_several_outputs_come_as_forward_returns_them(kind):
    class Both(mx.autograd.Function):
        def forward(self, x):
            return kind((x + 1, x + 2))

        def backward(self, dy, dz):
            return dy + dz

    x = mx.nd.ones((2,))
    assert type(Both()(x)) is kind
    x.attach_grad()
    with mx.autograd.record():
        got = Both()(x)
    assert type(got) is kind and got[1].asnumpy().tolist() == [3, 3]
