"""Hooks of custom functions and operators are called as in MXNet."""

from __future__ import annotations

from typing import Any

import pytest

import dualmx as mx
from dualmx import nd
from tests.goldens.hooks_custom_cases import cases
from tests.goldens.hooks_spy import unpack
from tests.goldens.store import load

GOLDEN = unpack(load("hooks")["custom"])
CASES = dict(cases())


@pytest.mark.parametrize("case", CASES)
def test_each_hook_is_called_as_in_mxnet(case: str) -> None:
    assert CASES[case](mx).calls == GOLDEN[case]


def test_saved_tensors_can_be_set() -> None:
    class Square(mx.autograd.Function):
        def forward(self, x: Any) -> Any:
            self.saved_tensors = (2 * x,)
            return x * x

        def backward(self, dy: Any) -> Any:
            return self.saved_tensors[0] * dy

    assert Square().saved_tensors == ()
    x = nd.array([3.0])
    x.attach_grad()
    with mx.autograd.record():
        y = Square()(x)
    y.backward()
    assert x.grad.asscalar() == 6


def test_an_operator_in_a_graph_infers_once_for_equal_inputs() -> None:
    asked = []

    class Plain(mx.operator.CustomOp):
        def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            self.assign(out_data[0], req[0], in_data[0] + 1)

    @mx.operator.register("plain_hooked")
    class Prop(mx.operator.CustomOpProp):
        def infer_shape(self, in_shape: Any) -> Any:
            asked.append(in_shape)
            return super().infer_shape(in_shape)

        def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> Any:
            return Plain()

    bound = mx.sym.Custom(mx.sym.var("x"), op_type="plain_hooked").simple_bind(mx.cpu(), x=(2,))
    bound.forward()[0].wait_to_read()
    before = len(asked)
    assert bound.forward()[0].asnumpy().tolist() == [1, 1]
    assert len(asked) == before
