"""Random programs over views: NumPy's views are the model for what a write is seen through."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualmx as mx
from dualmx import nd

SHAPES = [(6,), (3, 4), (2, 3, 2)]
VIEWS = ("index", "slice", "reshape", "new axis", "whole", "ellipsis")
WRITES = ("fill", "assign", "window", "add", "multiply", "from another", "out", "copyto")
READS = ("read", "sum", "keep", "drop")


def view_of(data, shown):
    """Draw a view and return its key or shape, for NumPy and NDArray alike."""
    kind = data.draw(st.sampled_from(VIEWS))
    if kind == "reshape":
        shapes = [
            (shown.size,),
            (1, shown.size),
            (shown.size, 1),
            (*shown.shape, 1),
            (2, -1) if not shown.size % 2 else (-1,),
        ]
        shape = data.draw(st.sampled_from(shapes))
        return lambda a: a.reshape(shape)
    if kind == "new axis":
        return lambda a: a[None]
    if kind == "whole":
        return lambda a: a[:]
    if kind == "ellipsis":
        return lambda a: a[...]
    n = shown.shape[0]
    if kind == "index" and shown.ndim > 1:
        at = data.draw(st.integers(-n, n - 1))
        return lambda a: a[at]
    begin = data.draw(st.integers(0, n - 1))
    end = data.draw(st.integers(begin + 1, n))
    return lambda a: a[begin:end]


def write(data, arrays, models, at):
    kind = data.draw(st.sampled_from(WRITES))
    a, m = arrays[at], models[at]
    value = float(data.draw(st.integers(-3, 3)))
    if kind == "fill":
        a[:] = value
        m[:] = value
    elif kind == "assign":
        values = np.full(m.shape, value, "float32") + np.arange(m.size, dtype="float32").reshape(m.shape)
        a[:] = nd.array(values)
        m[:] = values
    elif kind == "window":
        k = data.draw(st.integers(0, m.shape[0] - 1))
        a[k] = value
        m[k] = value
    elif kind == "add":
        a += value
        m += np.float32(value)
    elif kind == "multiply":
        a *= a
        m *= m
    elif kind == "out":
        nd.negative(a, out=a)
        np.negative(m, out=m)
    else:
        same = [k for k, o in enumerate(models) if o.shape == m.shape and k != at]
        if not same:
            return
        k = data.draw(st.sampled_from(same))
        # NumPy copies overlapping memory as if it were read first.
        if kind == "copyto":
            arrays[k].copyto(a)
        else:
            a[:] = arrays[k]
        m[:] = models[k].copy()
    np.clip(m, -1e3, 1e3, out=m)
    nd.clip(a, -1e3, 1e3, out=a)


def play(data, steps):
    shape = data.draw(st.sampled_from(SHAPES))
    start = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    arrays, models = [nd.array(start)], [start.copy()]
    kept = []
    for _ in range(steps):
        kind = data.draw(st.sampled_from(("view", "view", "write", "write", "write", *READS)))
        at = data.draw(st.integers(0, len(arrays) - 1))
        if kind == "view":
            if len(arrays) < 8 and models[at].ndim < 6:
                look = view_of(data, models[at])
                shown = look(models[at])
                assert np.shares_memory(shown, models[at])
                arrays.append(look(arrays[at]))
                models.append(shown)
                assert arrays[-1].shape == shown.shape
        elif kind == "write":
            write(data, arrays, models, at)
        elif kind == "read":
            assert np.array_equal(arrays[at].asnumpy(), models[at])
        elif kind == "sum":
            assert abs(arrays[at].sum().asscalar() - models[at].sum(dtype="float64")) <= 0.05
        elif kind == "keep":
            # A result is a value: later writes do not change it.
            kept.append((arrays[at] + 1, models[at] + 1))
        elif len(arrays) > 1:
            # The base may go; its views still work.
            del arrays[at], models[at]
    for a, m in zip(arrays, models, strict=True):
        assert np.array_equal(a.asnumpy(), m)
    for a, m in kept:
        assert np.array_equal(a.asnumpy(), m)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["lazy", "naive"])
def test_views_behave_as_numpys(mode):
    @settings(max_examples=60 if mode == "lazy" else 30, deadline=None)
    @given(st.data())
    def run(data):
        with mx.engine.naive() if mode == "naive" else contextlib.nullcontext():
            play(data, data.draw(st.integers(3, 14)))

    run()


def test_views_of_views_see_writes_in_every_order():
    base = nd.array(np.arange(24.0)).reshape((2, 3, 4))
    model = np.arange(24, dtype="float32").reshape(2, 3, 4)
    a, b, c = base[1], base[1][0:2], base[1][0:2].reshape((8,))
    ma, mb, mc = model[1], model[1][0:2], model[1][0:2].reshape(8)
    for k, (x, m) in enumerate([(c, mc), (b, mb), (base, model), (a, ma), (c, mc)]):
        x += k + 1
        m += k + 1
        x[1] = -k
        m[1] = -k
    for x, m in ((base, model), (a, ma), (b, mb), (c, mc)):
        assert np.array_equal(x.asnumpy(), m)


@pytest.mark.parametrize("mode", ["lazy", "naive", "bulk"])
def test_many_stale_views_in_one_operation(mode):
    scopes = {"lazy": contextlib.nullcontext, "naive": mx.engine.naive, "bulk": lambda: mx.engine.bulk(3)}
    with scopes[mode]():
        base = nd.array(np.arange(24.0)).reshape((12, 2))
        views = [base[i : i + 1] for i in range(12)]
        base += 1
        joined = nd.concat(*views, dim=0)
        for v in views:
            v *= 2
        assert np.array_equal(joined.asnumpy(), np.arange(24.0).reshape(12, 2) + 1)
        assert np.array_equal(base.asnumpy(), 2 * (np.arange(24.0).reshape(12, 2) + 1))


@pytest.mark.parametrize("mode", ["lazy", "naive", "bulk"])
def test_gradients_into_stale_views(mode):
    scopes = {"lazy": contextlib.nullcontext, "naive": mx.engine.naive, "bulk": lambda: mx.engine.bulk(4)}
    with scopes[mode]():
        store = nd.zeros((3, 2))
        xs = [nd.array([1.0, k]) for k in range(3)]
        mx.autograd.mark_variables(xs, [store[k] for k in range(3)], "add")
        for _ in range(2):
            store += 1
            with mx.autograd.record():
                y = sum((x * x).sum() for x in xs)
            y.backward()
        assert store.asnumpy().tolist() == [[2 + 4.0, 2 + 4.0 * k] for k in range(3)]
        store[:] = 0
        total = nd.zeros((2,))
        total[:] = store[1]
        assert total.asnumpy().tolist() == [0, 0]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(
    "key",
    [
        (0, 1, 2), (-1,), (slice(1, None),), (slice(None), 2), (slice(None, None, -1),), (1, slice(2, None, -2)),
        (..., slice(None, None, 3)), (slice(None), slice(2, 0, -1), slice(1, 4, 2)), (slice(5, 5), 1),
    ],
    ids=str,
)  # fmt: skip
def test_gradients_of_windows(key, dtype):
    values = np.arange(60, dtype=dtype).reshape(3, 4, 5)
    x = nd.array(values, dtype=dtype)
    x.attach_grad()
    with mx.autograd.record():
        pending = x * 1
        shown = pending[key]
        y = shown * shown
    y.backward()
    want = np.zeros_like(values)
    want[key] = 2 * values[key]
    np.testing.assert_array_equal(shown.asnumpy().reshape(values[key].shape), values[key])
    np.testing.assert_array_equal(x.grad.asnumpy(), want)
