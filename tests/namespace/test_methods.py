"""Methods of arrays that take other arguments than the operators of their names."""

import pytest

import dualmx as mx
from dualmx import nd


@pytest.mark.parametrize(
    ("own", "method", "args", "shape"),
    [
        ((2, 3), "expand_dims", (0,), (1, 2, 3)),
        ((2, 3), "expand_dims", (-1,), (2, 3, 1)),
        ((2, 3, 2), "flatten", (), (2, 6)),
        ((3,), "flatten", (), (3, 1)),
        ((1, 3, 1), "squeeze", (None,), (3,)),
        ((1, 3, 1), "squeeze", ((-1, -3),), (3,)),
        ((1, 3, 1), "squeeze", (0,), (3, 1)),
        ((1, 1), "squeeze", (None,), (1,)),
    ],
)
def test_inplace_is_a_view(own, method, args, shape):
    x = nd.zeros(own)
    for given in [((*args, True), {}), (args, {"inplace": True})]:
        view = getattr(x, method)(*given[0], **given[1])
        view += 1
        assert view.shape == shape
    copy = getattr(x, method)(*args, inplace=False)
    copy[:] = 7
    assert copy.shape == shape and (x.asnumpy() == 2).all()


def test_views_by_inplace_have_gradients():
    x = nd.ones((2, 3))
    x.attach_grad()
    with mx.autograd.record():
        y = (x.expand_dims(0, inplace=True) * 2).sum() + (x.flatten(inplace=True) * 3).sum()
        y = y + x.expand_dims(0).squeeze(0, inplace=True).sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [[6.0] * 3] * 2


@pytest.mark.parametrize("axis", [1, 5, (0, 0)])
def test_squeeze_refuses_axes_that_cannot_go(axis):
    with pytest.raises(mx.MXNetError, match="axis"):
        nd.zeros((1, 3, 1)).squeeze(axis, inplace=True)


def test_broadcast_like_adds_axes_in_front():
    x = nd.array([1, 2])
    assert x.broadcast_like(nd.zeros((3, 2))).asnumpy().tolist() == [[1, 2]] * 3
    assert x.reshape((1, 2)).broadcast_like(other=nd.zeros((2, 2))).asnumpy().tolist() == [[1, 2]] * 2
    with pytest.raises(ValueError, match="broadcast_like"):
        x.broadcast_like(nd.zeros((3, 4)))
