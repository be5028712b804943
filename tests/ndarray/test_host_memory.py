"""Arrays whose values lie in NumPy's memory until something else is made of them behave as all others."""

from __future__ import annotations

import threading

import jax
import numpy as np
import pytest

import dualmx as mx
from dualmx.compile.devices import aligned_copy
from dualmx.compile.events import Listener, listeners
from dualmx.ndarray.interop import array_from_numpy, as_numpy_view

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (2, 3), (300, 1000)])
@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "bfloat16", "int8", "uint8", "int32", "bool", "float64", "int64"]
)
def test_what_comes_in_comes_out(shape, dtype) -> None:
    values = (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(mx.nd.zeros((1,), dtype=dtype).dtype)
    source = np.array(values)
    x = mx.nd.array(source, dtype=dtype)
    if source.size:
        source[...] = 1
    for found in (x.asnumpy(), np.asarray(x.as_jax()), np.asarray(x), mx.nd.stack(x, x).asnumpy()[0]):
        assert found.dtype == values.dtype and found.shape == shape
        assert np.array_equal(found.astype("f"), values.astype("f"))
    assert isinstance(x.as_jax(), jax.Array) and x.as_jax() is x.as_jax()
    assert x.copy().asnumpy().flags.writeable


def test_writes_reach_nobody_else() -> None:
    memory = aligned_copy(np.ones((512, 1024), np.float32))
    x = array_from_numpy(memory, mx.cpu(), copy=None)
    other, before, shown = x.detach(), x.as_jax(), mx.nd.zeros(x.shape)
    x.copyto(shown)
    for step in (1, 2):
        x += step
        x[0, :2] = 7
        assert x[0, 1].asscalar() == 7 and x[1, 1].asscalar() == 1 + sum(range(step + 1))
    assert (memory == 1).all() and (np.asarray(before) == 1).all() and (shown.asnumpy() == 1).all()
    assert other.shape == x.shape and x.asnumpy() is not x.asnumpy()


def test_optimizers_take_no_memory_over() -> None:
    memory = aligned_copy(np.ones((512, 1024), np.float32))
    weight, state = array_from_numpy(memory, mx.cpu(), copy=None), array_from_numpy(memory, mx.cpu(), copy=None)
    optimizer = mx.optimizer.SGD(learning_rate=0.5, momentum=0.5)
    for _ in range(2):
        optimizer.update(0, weight, mx.nd.ones(weight.shape), state)
    assert weight[0, 0].asscalar() == 1 + 0.0 - 0.5 and (memory == 1).all()


@pytest.mark.parametrize("reads", ["nothing", "as_jax", "asnumpy", "loss", "norm", "loss and norm"])
def test_gradients_of_variables_that_are_read_meanwhile(reads) -> None:
    w, x = array_from_numpy(X.copy(), mx.cpu(), copy=None), mx.nd.array(X)
    w.attach_grad()
    for _ in range(2):
        with mx.autograd.record():
            y = (w * w * x).sum()
            if reads == "as_jax":
                assert np.array_equal(w.as_jax(), X)
            elif reads == "asnumpy":
                assert np.array_equal(w.asnumpy(), X)
            elif reads.startswith("loss"):
                assert y.asscalar() == (X**3).sum()
                w.as_jax()
            z = y + (w * x).sum()
        if reads.endswith("norm"):
            for _ in range(2):
                assert w.norm().asscalar() == np.float32(np.sqrt((X**2).sum()))
        z.backward()
        assert np.array_equal(w.grad.asnumpy(), 2 * X * X + X)


def test_what_is_read_again_becomes_a_jax_array() -> None:
    x = mx.nd.array(np.ones((300, 1000), np.float32))
    kinds = [type(x.buffer)]
    for k in range(3):  # programs of their own
        (x * k + k).wait_to_read()
        kinds.append(np.ndarray if isinstance(x.buffer, np.ndarray) else jax.Array)
    assert kinds == [np.ndarray, np.ndarray, jax.Array, jax.Array]


def test_views_see_and_make_changes() -> None:
    x = mx.nd.array(X)
    row = x[1]
    assert row.asnumpy().tolist() == [3, 4, 5] and x.reshape((3, 2))[2].asnumpy().tolist() == [4, 5]
    row[:] = 9
    assert x.asnumpy()[1].tolist() == [9, 9, 9] and X[1, 0] == 3


def test_other_threads_and_contexts_read_it() -> None:
    x = mx.nd.array(X)
    y = x * 2
    found = []
    threads = [threading.Thread(target=lambda a=a: found.append(a.asnumpy())) for a in (x, y)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(f.sum() for f in found) == [X.sum(), 2 * X.sum()]
    assert np.array_equal((x.as_in_context(mx.cpu(1)) + y.as_in_context(mx.cpu(1))).asnumpy(), 3 * X)
    assert np.array_equal(np.from_dlpack(x), X) and np.array_equal(jax.numpy.asarray(x), X)
    pinned = mx.nd.array(X, ctx=mx.cpu_pinned())
    assert pinned.context == mx.cpu_pinned() and np.array_equal((pinned + 1).asnumpy(), X + 1)


@pytest.mark.usefixtures("xla_tier")
def test_one_program_serves_all_kinds_of_memory() -> None:
    class Programs(Listener):
        count = 0

        def compiled(self, event) -> None:
            self.count += 1

    seen = Programs()
    listeners.append(seen)
    try:
        for x in (mx.nd.array(X), array_from_numpy(X.copy(), mx.cpu(), copy=None), mx.nd.array(X) * 1):
            x.wait_to_read()
            assert np.array_equal((mx.nd.tanh(x) - 3).asnumpy(), mx.nd.tanh(mx.nd.array(X)).asnumpy() - 3)
    finally:
        listeners.remove(seen)
    assert seen.count == 3  # `* 1`, and two more


def test_it_is_looked_at_without_a_copy() -> None:
    memory = aligned_copy(np.ones((512, 1024), np.float32))
    assert as_numpy_view(array_from_numpy(memory, mx.cpu(), copy=None)) is memory
    small = np.ones(3, np.float32)
    assert not np.shares_memory(as_numpy_view(array_from_numpy(small, mx.cpu(), copy=None)), small)
