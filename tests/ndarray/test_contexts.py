"""Arrays on several contexts of one process."""

import os

import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, nd
from tests import jobs


def test_contexts_are_kept_and_the_first_input_decides():
    a, b = nd.ones((2,), ctx=mx.cpu(0)), nd.ones((2,), ctx=mx.cpu(1))
    assert (a.context, b.context) == (mx.cpu(0), mx.cpu(1))
    assert (a + b).context == mx.cpu(0)
    assert (b + a).context == mx.cpu(1)
    assert (b * 2).asnumpy().tolist() == [2.0, 2.0]
    with mx.cpu(3):
        assert nd.zeros((1,)).context == mx.cpu(3)
        assert nd.random.uniform(shape=(2,)).context == mx.cpu(3)
    assert nd.zeros((1,)).context == mx.cpu(0)


@pytest.mark.parametrize("kind", ["gpu", "tpu"])
def test_a_missing_device_is_an_error_that_names_it(kind):
    ctx = getattr(mx, kind)(7)
    with pytest.raises(mx.MXNetError, match=rf"{kind}\(7\).*no such device"):
        nd.zeros((2,), ctx=ctx)
    with pytest.raises(mx.MXNetError, match=rf"{kind}\(7\)"):
        nd.ones((2,)).as_in_context(ctx)
    assert (nd.ones((2,)) + 1).asnumpy().tolist() == [2.0, 2.0]


def test_gradients_cross_contexts():
    x = nd.array([1.0, 2.0], ctx=mx.cpu(0))
    w = nd.array([3.0, 5.0], ctx=mx.cpu(1))
    x.attach_grad()
    w.attach_grad()
    with autograd.record():
        y = nd.exp(x * 2)
        z = y.as_in_context(mx.cpu(1)) * w
        loss = z.as_in_context(mx.cpu(2)) * 10
    loss.backward()
    want = np.exp(2 * np.array([1.0, 2.0]))
    np.testing.assert_allclose(w.grad.asnumpy(), 10 * want, rtol=1e-6)
    np.testing.assert_allclose(x.grad.asnumpy(), 20 * want * np.array([3.0, 5.0]), rtol=1e-6)
    assert (x.grad.context, w.grad.context) == (mx.cpu(0), mx.cpu(1))


def test_replicas_in_turn_record_separate_programs():
    parts = [nd.full((2, 2), float(i + 1), ctx=mx.cpu(i)) for i in range(3)]
    weights = [nd.full((2, 2), 2.0, ctx=mx.cpu(i)) for i in range(3)]
    for w in weights:
        w.attach_grad()
    for _ in range(2):
        with autograd.record():
            losses = [((p * w) ** 2).sum() for p, w in zip(parts, weights, strict=True)]
        for loss in losses:
            loss.backward()
        got = [w.grad.asnumpy()[0, 0] for w in weights]
        assert got == [2 * (i + 1) ** 2 * 2.0 for i in range(3)]


def test_each_device_has_its_own_random_stream():
    mx.random.seed(5)
    a = nd.random.uniform(shape=(4,), ctx=mx.cpu(0)).asnumpy()
    b = nd.random.uniform(shape=(4,), ctx=mx.cpu(1)).asnumpy()
    assert not np.array_equal(a, b)
    mx.random.seed(5)
    np.testing.assert_array_equal(nd.random.uniform(shape=(4,), ctx=mx.cpu(1)).asnumpy(), b)
    np.testing.assert_array_equal(nd.random.uniform(shape=(4,), ctx=mx.cpu(0)).asnumpy(), a)
    mx.random.seed(9, ctx=mx.cpu(1))
    c = nd.random.uniform(shape=(4,), ctx=mx.cpu(1)).asnumpy()
    mx.random.seed(9, ctx=mx.cpu(1))
    np.testing.assert_array_equal(nd.random.uniform(shape=(4,), ctx=mx.cpu(1)).asnumpy(), c)


@pytest.mark.slow
def test_on_several_devices():
    """The same on eight real (virtual) devices, in a process that has them."""
    if os.environ.get("DUALMX_TEST_DEVICES"):
        a = nd.ones((2,), ctx=mx.cpu(5))
        assert next(iter((a * 2).as_jax().devices())).id == 5
        return
    env = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "DUALMX_TEST_DEVICES": "1"}
    jobs.run(jobs.PYTHON, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__, env=env)


def test_the_context_where_none_is_given():
    assert mx.Context.default_ctx == mx.cpu(0)
    try:
        mx.Context.default_ctx = mx.cpu(2)
        assert mx.nd.zeros((1,)).context == mx.cpu(2) == mx.current_context()
        with mx.cpu(1):
            assert mx.Context.default_ctx == mx.cpu(1)
    finally:
        mx.Context.default_ctx = mx.cpu(0)
    with pytest.raises(mx.MXNetError, match="default_ctx"):
        mx.Context.default_ctx = "cpu"


def test_arrays_made_from_arrays_are_on_the_current_context():
    there = mx.nd.ones((2, 2), ctx=mx.cpu(1))
    assert mx.nd.array(there).context == mx.cpu(0)
    assert mx.nd.array(there, ctx=mx.cpu(2)).context == mx.cpu(2)
    rows = there.tostype("row_sparse")
    with mx.cpu(3):
        assert mx.nd.array(there, dtype="int32").context == mx.cpu(3)
        assert mx.nd.array(rows).context == mx.nd.sparse.array(rows).context == mx.cpu(3)
        assert mx.nd.from_dlpack(there).context == there.copy().context == mx.cpu(1)
