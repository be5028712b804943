"""Views as variables: a window that was not read yet, or whose array was written, is a variable all the same."""

import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, nd

VIEWS = {
    "reshaped": lambda whole: whole.reshape((2, 2)),
    "rows": lambda whole: whole[1:3],
    "row": lambda whole: whole.reshape((2, 2))[1],
}


def gradient_of_square(x):
    """The gradient of the sum of squares, computed in one recording."""
    with autograd.record():
        y = x * x
    y.backward()
    return x.grad.asnumpy()


@pytest.mark.parametrize("look", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("kept", [True, False])
def test_a_view_that_was_never_read(look, kept):
    whole = nd.array([1, 2, 3, 4])
    x = look(whole)
    if not kept:
        del whole
    x.attach_grad()
    np.testing.assert_array_equal(gradient_of_square(x), 2 * x.asnumpy())


def test_a_view_whose_array_was_written():
    whole = nd.array([1, 2, 3, 4])
    x = whole[1:3]
    x.attach_grad()
    assert gradient_of_square(x).tolist() == [4, 6]
    whole[:] = 5
    assert gradient_of_square(x).tolist() == [10, 10]
    x[:] = 7
    x += 1
    assert gradient_of_square(x).tolist() == [16, 16] and whole.asnumpy().tolist() == [5, 8, 8, 5]
    with autograd.record():
        with autograd.pause():
            whole[:] = 3
            assert x.asnumpy().tolist() == [3, 3]
        y = x * x
    y.backward()
    assert x.grad.asnumpy().tolist() == [6, 6]


def test_a_view_that_is_marked():
    x, g = nd.arange(4).reshape((2, 2)), nd.zeros((2, 2))
    autograd.mark_variables([x], [g])
    with autograd.record():
        y = x * 3
    y.backward()
    assert g.asnumpy().tolist() == [[3, 3], [3, 3]]


def test_a_view_made_before_the_recording_of_its_array_is_not_in_the_graph():
    whole = nd.array([1, 2, 3, 4])
    x = whole[1:3]
    whole.attach_grad()
    with autograd.record():
        y = x * 2
    with pytest.raises(mx.MXNetError, match="do not depend on any variable"):
        y.backward()


def test_set_recording_follows_variables_that_were_just_written():
    x = nd.array([1, 2])
    x.attach_grad()
    x += 1
    before = autograd.set_recording(True)
    y = x * x
    with autograd.pause():
        x += 1
    z = x * y
    autograd.set_recording(before)
    z.backward()
    assert x.grad.asnumpy().tolist() == [2 * 2 * 3 + 4, 2 * 3 * 4 + 9]
