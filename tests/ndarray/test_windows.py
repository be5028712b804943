"""Windows whose place changes from turn to turn: one program serves for all places."""

from __future__ import annotations

import numpy as np
import pytest

import dualmx as mx
from dualmx.compile.events import counters


def _read(x, i):
    return float(x[i].sum().asscalar())


def _column(x, i):
    return float(x[:, i % 4].sum().asscalar())


def _element(x, i):
    return float(x[i, 2].asscalar())


def _batch(x, i):
    with mx.autograd.record():
        y = (x[i : i + 2] * 2).sum()
    return float(y.asscalar())


def _number(x, i):
    x[i] = i + 0.5
    return float(x.asnumpy().sum())


def _row(x, i):
    x[i] = mx.nd.full((4,), i)
    return float(x.asnumpy().sum())


def _added(x, i):
    x[i] += 1
    return float(x.asnumpy().sum())


def _into_column(x, i):
    x[1:4, i % 4] = i
    return float(x.asnumpy().sum())


WAYS = [_read, _column, _element, _batch, _number, _row, _added, _into_column]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [mx.nd.array, mx.np.array])
def test_a_loop_over_places_compiles_for_the_first_ones_only(make, way):
    values = np.arange(32, dtype="float32").reshape(8, 4)
    x, y, compiles = make(values), values.copy(), 0
    if make is mx.np.array:
        x = x.as_nd_ndarray() if way is _row else x
    for i in range(6):
        if i == 2:
            compiles = counters.compiles
        assert way(x, i) == pytest.approx(_expected(way, y, i))
    assert counters.compiles == compiles


def _expected(way, y, i):
    """What `way` does, by NumPy."""
    if way in (_read, _column, _element):
        return {_read: y[i].sum(), _column: y[:, i % 4].sum(), _element: y[i, 2]}[way]
    if way is _batch:
        return 2 * y[i : i + 2].sum()
    if way is _into_column:
        y[1:4, i % 4] = i
    elif way is _added:
        y[i] += 1
    else:
        y[i] = i + 0.5 if way is _number else i
    return y.sum()


def test_elements_of_an_array_are_read_without_programs():
    x = mx.nd.arange(1000)
    x.wait_to_read()
    before = counters.flushes
    assert [float(v) for v in x] == list(range(1000))
    assert counters.flushes == before


def test_a_view_made_before_recording_carries_no_gradient():
    x = mx.nd.ones((4,))
    x.attach_grad()
    view = x[0:2]
    for value in (1, 5):
        x[:] = value
        with mx.autograd.record():
            y = (view * view).sum() + (x * 3).sum()
        y.backward()
        assert x.grad.asnumpy().tolist() == [3, 3, 3, 3]
        assert view.asnumpy().tolist() == [value, value]


def test_views_that_are_gone_are_forgotten():
    x = mx.nd.zeros((4,))
    for _ in range(1000):
        x[1].asscalar()
    assert len(x._meta.views) < 200


@pytest.mark.parametrize(
    "turn, want",
    [
        (lambda x, i: mx.nd.slice(x, begin=(i, 1), end=(i + 2, 3)), lambda y, i: y[i : i + 2, 1:3]),
        (lambda x, i: mx.nd.slice_axis(x, axis=-2, begin=i, end=i + 2), lambda y, i: y[i : i + 2]),
        (lambda x, i: mx.nd.cast(x, "int32") * i, lambda y, i: y * i),
        (lambda x, i: mx.nd.cast(x, "int64") + i, lambda y, i: y + i),
        (lambda x, i: mx.nd.cast(x, "float64") - i, lambda y, i: y - i),
        (lambda x, i: mx.nd.cast(x, "uint8") * (100 * i), lambda y, i: (y * (100 * i)) % 256),
        (lambda x, i: mx.nd.cast(x, "float64") * (i + 0.1), lambda y, i: y * (i + 0.1)),
        (lambda x, i: mx.nd.cast(x, "int64") * (2**40 + i), lambda y, i: y * (2**40 + i)),
    ],
)
def test_numbers_that_change_from_turn_to_turn_are_exact(turn, want):
    values = np.arange(40, dtype="int64").reshape(10, 4)
    x = mx.nd.array(values)
    for i in range(8):
        np.testing.assert_array_equal(turn(x, i).asnumpy(), want(values, i))


@pytest.mark.parametrize(
    "turn",
    [
        lambda x, i: mx.nd.slice(x, begin=(i, 1), end=(i + 2, 3)),
        lambda x, i: mx.nd.slice_axis(x, axis=0, begin=i, end=i + 2),
        lambda x, i: mx.nd.cast(x, "int32") - i,
        lambda x, i: mx.nd.cast(x, "float64") - i,
    ],
)
def test_numbers_that_change_from_turn_to_turn_compile_for_the_first_ones_only(turn):
    x, before = mx.nd.zeros((11, 4)), 0
    for i in range(8):
        if i == 4:
            before = counters.compiles
        turn(x, i).asnumpy()
    assert counters.compiles == before
