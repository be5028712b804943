"""Hooks of subclasses of Gluon's classes are called as often, with what, and in the order that MXNet calls them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import nd
from dualmx.gluon.data.vision import transforms
from tests.goldens.hooks_gluon_cases import cases
from tests.goldens.hooks_spy import unpack
from tests.goldens.store import load

GOLDEN = unpack(load("hooks")["gluon"])
CASES = dict(cases())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:.*is hybridized while it has forward hooks")
def test_each_hook_is_called_as_in_mxnet(case: str) -> None:
    assert CASES[case](mx).calls == GOLDEN[case]


@pytest.mark.parametrize("contexts", [1, 2])
def test_a_step_uses_the_gradients_that_a_parameter_lists(contexts: int) -> None:
    class Halved(mx.gluon.Parameter):
        def list_grad(self) -> list[Any]:
            return [g * 0.5 for g in super().list_grad()]

    places = [mx.cpu(k) for k in range(contexts)]
    param = Halved("p", shape=(2,), init="ones")
    param.initialize(ctx=places)
    trainer = mx.gluon.Trainer([param], "sgd", {"learning_rate": 1.0})
    with mx.autograd.record():
        losses = [param.data(c).sum() for c in places]
    mx.autograd.backward(losses)
    trainer.step(contexts)
    assert all(a.asnumpy().tolist() == [0.5, 0.5] for a in param.list_data())


def test_places_of_a_parameters_arrays() -> None:
    param = mx.gluon.Parameter("p", shape=(2,))
    assert param._ctx_map is None
    param.initialize(ctx=[mx.cpu(0), mx.cpu(2)])
    assert param._ctx_map == [[], [0, None, 1]]


def test_a_parameter_that_was_cast_can_be_set() -> None:
    param = mx.gluon.Parameter("p", shape=(2,), init="ones")
    param.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    trainer = mx.gluon.Trainer([param], "sgd", {"learning_rate": 1.0})

    def step() -> None:
        with mx.autograd.record():
            losses = [param.data(c).sum() for c in param.list_ctx()]
        mx.autograd.backward(losses)
        trainer.step(2)

    step()
    param.cast("float64")
    param.set_data(nd.array([5, 6], dtype="float64"))
    step()
    assert param.data(mx.cpu(1)).asnumpy().tolist() == [4, 5]


class Twice(transforms.ToTensor):
    def hybrid_forward(self, F: Any, x: Any) -> Any:  # noqa: N803
        return super().hybrid_forward(F, x) * 2


class TwiceByForward(transforms.ToTensor):
    def forward(self, x: Any) -> Any:
        return super().forward(x) * 2


class TwiceByCall(transforms.Compose):
    def __call__(self, x: Any) -> Any:
        return super().__call__(x) * 2


@pytest.mark.parametrize("make", [
    Twice, TwiceByForward, lambda: TwiceByCall([transforms.ToTensor()]), lambda: transforms.Compose([Twice()]),
    lambda: transforms.RandomApply(TwiceByForward(), 1.0),
])  # fmt: skip
def test_a_users_transformation_is_not_passed_over(make: Any) -> None:
    images = mx.gluon.data.ArrayDataset(nd.full((2, 3, 3, 1), 255, dtype="uint8"), [0, 1])
    chosen = make()
    for batch, _ in mx.gluon.data.DataLoader(images.transform_first(chosen), 2):
        assert batch.asnumpy().tolist() == np.full((2, 1, 3, 3), 2.0).tolist()
    assert (chosen(np.full((3, 3, 1), 255, np.uint8)) == 2).all()


@pytest.mark.filterwarnings("ignore:DataLoader. the dataset or the collation computes with NDArrays")
def test_a_users_transformation_is_not_passed_over_in_workers() -> None:
    images = mx.gluon.data.ArrayDataset(nd.full((2, 3, 3, 1), 255, dtype="uint8"), [0, 1])
    for batch, _ in mx.gluon.data.DataLoader(images.transform_first(Twice()), 2, num_workers=1):
        assert (batch.asnumpy() == 2).all()


def test_hooks_of_a_transformation_run() -> None:
    seen, chosen = [], transforms.ToTensor()
    chosen.register_forward_hook(lambda block, inputs, out: seen.append(out.shape))
    images = mx.gluon.data.SimpleDataset([nd.ones((3, 3, 1), dtype="uint8")])
    assert len(list(mx.gluon.data.DataLoader(images.transform(chosen), 1))) == 1
    assert seen == [(1, 3, 3)]
