"""`foreach`, `while_loop` and `cond`: results as MXNet gives them, gradients through the steps, bad arguments."""

from __future__ import annotations

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import ArgumentError, ArgumentTypeError

nd = mx.nd


def values(x):
    return [values(v) for v in x] if isinstance(x, (list, tuple)) else x.asnumpy().tolist()


def test_foreach_nests_as_its_arguments():
    outs, last = nd.contrib.foreach(lambda x, s: (x + s, x + s), nd.arange(3), nd.zeros((1,)))
    assert values([outs, last]) == [[[0], [1], [3]], [3]]
    outs, last = nd.contrib.foreach(lambda x, s: ([x + s[0], x], [x + s[0]]), nd.ones((2, 2)), [nd.zeros((2,))])
    assert values([outs, last]) == [[[[1, 1], [2, 2]], [[1, 1], [1, 1]]], [[2, 2]]]
    outs, last = nd.contrib.foreach(lambda x, s: ([x[0] + x[1]], []), [nd.ones((2, 1)), nd.ones((2, 1))], [])
    assert values([outs, last]) == [[[[2], [2]]], []]


def test_the_only_loop_variable_may_come_back_without_its_list():
    outs, last = nd.contrib.while_loop(lambda a: a < 10, lambda a: (a, a * 2), [nd.ones((1,))], max_iterations=5)
    assert outs.asnumpy().ravel().tolist() == [1, 2, 4, 8, 0]
    assert [v.asscalar() for v in last] == [16]


def test_while_loop_pads_to_its_bound():
    def step(i, s):
        return [i + s], [i + 1, s + i]

    start = (nd.array([0.0]), nd.array([1.0]))
    outs, last = nd.contrib.while_loop(lambda i, s: i <= 3, step, start, max_iterations=6)
    assert values([outs, last]) == [[[[1], [2], [4], [7], [0], [0]]], [[4], [7]]]
    outs, last = nd.contrib.while_loop(lambda i, s: i <= 3, step, start, max_iterations=2)
    assert values([outs, last]) == [[[[1], [2]]], [[2], [2]]]
    outs, last = nd.contrib.while_loop(lambda i: i < 0, lambda i: (i, i), nd.array([0.0]), max_iterations=3)
    assert outs == [] and values(last) == [0]
    outs, last = nd.contrib.while_loop(lambda i: i < 3, lambda i: (None, i + 1), nd.array([0.0]), max_iterations=5)
    assert outs == [] and values(last) == [3]


def test_cond_runs_one_branch():
    assert values(nd.contrib.cond(nd.array([1.0]), lambda: nd.array([1.0]), lambda: 1 / 0)) == [1]
    assert values(nd.contrib.cond(nd.array([0.0]), lambda: 1 / 0, lambda: [nd.array([2.0])])) == [[2]]


def test_gradients_pass_through_the_steps():
    x, w = nd.array([[1.0, 2], [3, 4], [5, 6]]), nd.array([0.5, 2])
    for a in (x, w):
        a.attach_grad()
    with mx.autograd.record():
        outs, last = nd.contrib.foreach(lambda d, s: (s * d, s * w + d), x, nd.ones((2,)))
        (outs.sum() + last.sum()).backward()
    s = [np.ones(2)]
    for row in x.asnumpy():
        s.append(s[-1] * w.asnumpy() + row)
    ds, dx, dw = np.ones(2), np.zeros((3, 2)), np.zeros(2)
    for i in (2, 1, 0):
        dw += ds * s[i]
        dx[i] = ds + s[i]
        ds = ds * w.asnumpy() + x.asnumpy()[i]
    np.testing.assert_allclose(x.grad.asnumpy(), dx, 1e-6)
    np.testing.assert_allclose(w.grad.asnumpy(), dw, 1e-6)


def test_loops_nest():
    def outer(row, s):
        inner, _ = nd.contrib.foreach(lambda x, t: (x * 2, t), row, nd.zeros((1,)))
        return nd.contrib.cond(row.sum() > 3, lambda: inner, lambda: -inner), s

    outs, _ = nd.contrib.foreach(outer, nd.array([[1, 1], [2, 3]]), [])
    assert outs.asnumpy().reshape(2, 2).tolist() == [[-2, -2], [4, 6]]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nd.contrib.foreach(lambda x, s: (x, s), 3, []), ArgumentTypeError, "data is a int"),
        (lambda: nd.contrib.foreach(lambda x, s: (x, 3), nd.ones((2,)), []), ArgumentTypeError, "a state of body"),
        (lambda: nd.contrib.foreach(lambda x, s: x, nd.ones((2,)), []), ArgumentError, "body returned"),
        (lambda: nd.contrib.foreach(lambda x, s: (x, [x]), nd.ones((2,)), []), ArgumentError, "structure"),
        (lambda: nd.contrib.foreach(lambda x, s: (x, s), [nd.ones((2,)), nd.ones((3,))], []), ArgumentError, "length"),
        (lambda: nd.contrib.while_loop(lambda i: i, lambda i: (i, i), nd.ones((1,))), ArgumentError, "max_iterations"),
        (lambda: nd.contrib.while_loop(lambda: 1, lambda: 1, [], 3), ArgumentError, "at least one"),
        (lambda: nd.contrib.while_loop(lambda i: 1, lambda i: (i, [i, i]), nd.ones((1,)), 3), ArgumentError, "struct"),
        (lambda: nd.contrib.while_loop(lambda i: 1, lambda i: (i, []), nd.ones((1,)), 3), ArgumentError, "struct"),
        (lambda: nd.contrib.while_loop(lambda i: 1, lambda i: (i, []), [nd.ones((1,))], 3), ArgumentError, "struct"),
        (lambda: nd.contrib.cond(nd.ones((2,)), list, list), ArgumentError, "one number"),
    ],
)
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()
