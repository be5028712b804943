"""Batch normalization and masks of the interpreter, by the compiled handlers and without them."""

from __future__ import annotations

import multiprocessing
import os

import jax
import numpy as np
import pytest
import scipy.special

import dualmx as mx
from dualmx import autograd, nd
from dualmx.compile.cpu.kernels import primitives, threefry
from dualmx.compile.cpu.kernels.codegen import SourceWriter
from dualmx.compile.cpu.kernels.kernel import work_of
from dualmx.compile.cpu.onednn import numpy_calls
from dualmx.compile.cpu.onednn.ffi_handlers import available
from dualmx.ndarray import handle
from dualmx.op.symbolic_sizes import define

FORMS = {
    "in one piece": lambda a: a.copy(),
    "channels last": lambda a: np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1),
    "every other": lambda a: np.repeat(a, 2, 0)[::2],
    "reversed": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "repeated": lambda a: np.broadcast_to(a[:1], a.shape),
    "not aligned": lambda a: np.frombuffer(b"x" + a.tobytes(), a.dtype, offset=1).reshape(a.shape),
}
# (N, C, *S) around the sizes of the blocks of rows and of channels that the handlers take at a time.
SHAPES = [(1, 1), (2, 3), (16, 2, 1), (17, 255), (3, 256, 5), (2, 257, 9, 1), (4, 513), (50, 7, 9, 11)]


@pytest.fixture(params=["handlers", "numpy"])
def how(request, monkeypatch):
    """Whether the handlers compute, or NumPy does."""
    if request.param == "handlers":
        if not available():
            pytest.skip("without oneDNN")
    else:
        for module in (primitives, threefry):
            monkeypatch.setattr(module, "available", lambda: False)
    return request.param


def normalized(x, gamma, beta, eps, dy):
    """All results and gradients for data (N, C, *S) in float64."""
    x, gamma, beta, dy = (np.moveaxis(a, 1, -1) if a.ndim > 1 else a for a in map(np.float64, (x, gamma, beta, dy)))
    over = tuple(range(x.ndim - 1))
    mean, var = x.mean(over), x.var(over)
    inv = 1 / np.sqrt(var + eps)
    unit = (x - mean) * inv
    dbeta, dgamma = dy.sum(over), (dy * unit).sum(over)
    dx = gamma * inv * (dy - dy.mean(over) - unit * (dy * unit).mean(over))
    back = [np.moveaxis(a, -1, 1) for a in (unit * gamma + beta, dx)]
    return [back[0], mean, var, inv], [back[1], dgamma, dbeta]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_normalization_is_that_of_the_formula(how, form, shape):
    draw = np.random.RandomState(0)
    x, dy = (FORMS[form](draw.randn(*shape).astype("f") + 2) for _ in range(2))
    gamma, beta = draw.rand(2, shape[1]).astype("f")
    results, gradients = normalized(x, gamma, beta, 1e-3, dy)
    found = primitives.normalize_batch(x, gamma, beta, np.float32(1e-3), 1)
    for a, b in zip(found, results, strict=True):
        assert a.dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=3e-5, atol=3e-5)
    found = primitives.normalize_batch_vjp(x, gamma, found[1], found[3], dy, 1)
    for a, b in zip(found, gradients, strict=True):
        assert a.dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5 * max(1.0, np.abs(b).max(), x.size / shape[1]))


def test_statistics_of_many_rows_far_from_zero(how):
    x = np.float32(1000) + np.random.RandomState(0).rand(100_000, 3).astype("f")
    _, mean, var, _ = primitives.normalize_batch(x, np.ones(3, "f"), np.zeros(3, "f"), np.float32(0), 1)
    np.testing.assert_allclose(mean, x.mean(0, dtype="d"), rtol=1e-7)
    np.testing.assert_allclose(var, x.var(0, dtype="d"), rtol=1e-5)


def test_equal_rows_have_no_variance_and_nan_stays_in_its_channel(how):
    x = np.full((40, 3), 7, "f")
    x[5, 1] = np.nan
    y, mean, var, inv = primitives.normalize_batch(x, np.ones(3, "f"), np.arange(3, dtype="f"), np.float32(0.25), 1)
    np.testing.assert_array_equal(var[[0, 2]], 0)
    np.testing.assert_array_equal(inv[[0, 2]], 2)
    np.testing.assert_array_equal(y[:, [0, 2]], np.full((40, 2), [0, 2]))
    assert all(np.isnan(a[..., 1]).all() for a in (y, mean, var, inv))


@pytest.mark.parametrize("axis", [1, 2, -1])
@pytest.mark.parametrize("tier", ["numpy", "xla"])
def test_layer_in_a_step(monkeypatch, tier, axis):
    monkeypatch.setenv("DUALMX_TIER", tier)
    draw = np.random.RandomState(0)
    shape = (5, 4, 6, 3)
    data, cotangent = (draw.randn(*shape).astype("f") for _ in range(2))
    scale, shift = draw.rand(2, shape[axis]).astype("f")
    x, gamma, beta, mean, var = (nd.array(a) for a in (data, scale, shift, shift * 0, shift * 0 + 1))
    for a in (x, gamma, beta):
        a.attach_grad()
    with autograd.record():
        y = nd.BatchNorm(x, gamma, beta, mean, var, fix_gamma=False, axis=axis, eps=1e-3, momentum=0.5)
        loss = (y * nd.array(cotangent)).sum()
    loss.backward()
    first = (np.moveaxis(a, axis, 1) for a in (data, cotangent))
    results, gradients = normalized(next(first), scale, shift, 1e-3, next(first))
    wanted = [np.moveaxis(results[0], 1, axis), np.moveaxis(gradients[0], 1, axis), *gradients[1:]]
    found = (y, x.grad, gamma.grad, beta.grad, mean, var)
    for a, b in zip(found, (*wanted, 0.5 * results[1], 0.5 + 0.5 * results[2]), strict=True):
        np.testing.assert_allclose(a.asnumpy(), b, rtol=1e-4, atol=1e-5)


def test_second_gradient_in_both_tiers(monkeypatch):
    draw = np.random.RandomState(0)
    data, scale = draw.randn(4, 3, 5).astype("f"), 3 + draw.rand(3).astype("f")
    found = []
    for tier in ("numpy", "xla"):
        monkeypatch.setenv("DUALMX_TIER", tier)
        x, gamma, zeros, ones = nd.array(data), nd.array(scale), nd.zeros(3), nd.ones(3)
        x.attach_grad()
        with autograd.record():
            y = nd.BatchNorm(x, gamma, zeros, zeros.copy(), ones, fix_gamma=False)
            first = autograd.grad((y**3).sum(), x, create_graph=True, retain_graph=True)[0]
            total = (first**2).sum()
        total.backward()
        found.append(x.grad.asnumpy())
    assert np.abs(found[1]).max() > 1
    np.testing.assert_allclose(found[0], found[1], rtol=1e-3, atol=1e-4 * np.abs(found[1]).max())


def test_empty_channels(monkeypatch):
    monkeypatch.setenv("DUALMX_TIER", "numpy")
    x, vectors = mx.np.zeros((2, 0, 3)), [mx.np.zeros((0,)) for _ in range(4)]
    x.attach_grad()
    with autograd.record():
        y = mx.npx.batch_norm(x, *vectors, fix_gamma=False)
    y.backward()
    assert y.shape == x.grad.shape == (2, 0, 3)
    assert x.grad.asnumpy().size == 0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float32", "int32", "float64", "float16"])
def test_masks_keep_bits(how, form, dtype):
    draw = np.random.RandomState(0)
    plain = draw.randn(3, 40, 41, 2).astype("f")
    plain.flat[:4] = np.nan, -0.0, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        x = FORMS[form](plain.astype(dtype))
    for mask in (draw.rand(*x.shape) > 0.5, FORMS[form](draw.rand(*x.shape) > 0.5)):
        np.testing.assert_array_equal(primitives.keep(mask, x), np.where(mask, x, 0), strict=True)
        np.testing.assert_array_equal(primitives.drop(mask, x), np.where(mask, 0, x), strict=True)


@pytest.mark.skipif(not available(), reason="without oneDNN")
def test_masks_that_lie_otherwise_are_left_to_numpy():
    x, mask = np.ones((64, 65), "f"), np.ones((64, 65), bool)
    assert numpy_calls.keep_masked(mask, x) is not None
    assert numpy_calls.keep_masked(np.asfortranarray(mask), x) is None
    assert numpy_calls.keep_masked(mask[:, ::-1], x[:, ::-1]) is None


def erf_of(x, found):
    found.put(primitives.erf(x))


@pytest.mark.skipif(not available(), reason="without oneDNN")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_handlers_in_a_fork():
    """OpenMP's threads are not there; without care it waits for them."""
    x = np.linspace(-5, 5, 1 << 20, dtype="f")
    wanted = primitives.erf(x)  # starts them
    context = multiprocessing.get_context("fork")
    found = context.Queue()
    child = context.Process(target=erf_of, args=(x, found))
    child.start()
    try:
        np.testing.assert_array_equal(found.get(timeout=60), wanted)
    finally:
        child.kill()
        child.join(60)


@pytest.mark.parametrize("n", [1 << 12, (1 << 16) + 1, 1 << 20])
def test_error_function(how, n):
    x = np.concatenate([np.linspace(-6, 6, n - 5), [np.nan, np.inf, -np.inf, 1e-30, -0.0]]).astype("f")
    found, wanted = primitives.erf(x), scipy.special.erf(x.astype("d"))
    assert found.dtype == np.float32
    unit = np.spacing(np.abs(wanted).astype("f"))
    assert np.nanmax(np.abs(found - wanted) / unit) <= 8
    assert np.isnan(found[-5]) and found[-4] == 1 and found[-3] == -1 and np.signbit(found[-1])
    for lay in (lambda a: a[::2], lambda a: a[::-1], lambda a: np.broadcast_to(a, (2, n))):
        np.testing.assert_array_equal(primitives.erf(lay(x)), lay(found))


@pytest.mark.parametrize("n", [1 << 12, (1 << 16) + 1, 1 << 20])
def test_inverse_error_function(how, n):
    ends = 1 - np.logspace(-7.2, -1, 1000)
    x = np.concatenate([np.linspace(-1, 1, n - 2005), ends, -ends, [np.nan, 1.5, 1e-30, -1e-3, -0.0]]).astype("f")
    found, wanted = primitives.erf_inv(x), scipy.special.erfinv(x.astype("d"))
    assert found.dtype == np.float32 and found[0] == -np.inf and found[n - 2006] == np.inf
    inside = np.abs(x) < 1
    unit = np.spacing(np.abs(wanted[inside]).astype("f"))
    assert np.max(np.abs(found[inside] - wanted[inside]) / unit) <= 8
    assert np.isnan(found[-5:-3]).all()
    for lay in (lambda a: a[::2], lambda a: a[::-1], lambda a: np.broadcast_to(a, (2, n))):
        np.testing.assert_array_equal(primitives.erf_inv(lay(x)), lay(found))
    memory = x.copy()
    np.testing.assert_array_equal(primitives.erf_inv(memory, out=memory), found)
    apart = np.zeros((n, 2), "f")[:, 0]  # memory that the handlers cannot write to
    np.testing.assert_array_equal(primitives.erf_inv(x, out=apart), found)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (1 << 14,), (65537,), (3, 5, 30011)])
def test_random_bits_are_those_of_jax(how, width, shape):
    key = np.array([123456789, 0xFFFFFFFE], np.uint32)
    with jax.enable_x64(True):
        wanted = np.asarray(jax.random.bits(jax.random.wrap_key_data(key), shape, f"u{width // 8}"))
    found = primitives.random_bits(key, width, shape)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("ends", [(0, 1), (-1, 1), (-0.07, 0.07), (5, 2e5)])
@pytest.mark.parametrize("shape", [(), (3,), (65537,), (3, 5, 30011)])
def test_uniform_numbers_are_those_of_jax(how, ends, shape):
    key = np.array([7, 8], np.uint32)
    wanted = np.asarray(jax.random.uniform(jax.random.wrap_key_data(key), shape, np.float32, *ends))
    found = primitives.random_uniform(key, *ends, shape)
    assert found.dtype == np.float32 and found.shape == shape and (found >= ends[0]).all()
    # A product and a sum are rounded once by some processors.
    np.testing.assert_allclose(found, wanted, rtol=0, atol=np.spacing(np.float32(max(map(abs, ends)))))


def draw(name):
    mx.random.seed(3)
    return getattr(nd.random, name)(1, 2, shape=(300, 500)).asnumpy()


@pytest.mark.parametrize("draw", [jax.random.uniform, jax.random.normal, jax.random.gumbel, jax.random.laplace,
                                  lambda key, shape: jax.random.uniform(key, shape, np.float32, 3, -1)])  # fmt: skip
def test_draws_with_bounds_in_any_order_are_those_of_jax(draw):
    def formula(words):
        return draw(jax.random.wrap_key_data(words), (50, 100))

    writer, words = SourceWriter(), np.array([7, 8], np.uint32)
    writer.add_function("run", jax.make_jaxpr(formula)(words), [])
    assert "K.random_uniform(" in writer.source
    run = define(f"{writer.source}\nfunctions = run", "functions", {"np": np, "K": primitives, **writer.constants})
    np.testing.assert_allclose(run((), words)[0], formula(words), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["uniform", "normal", "gamma"])
def test_draws_of_all_tiers_agree(how, monkeypatch, name):
    monkeypatch.setenv("DUALMX_TIER", "numpy")
    found = draw(name)
    monkeypatch.setenv("DUALMX_TIER", "xla")
    np.testing.assert_allclose(found, draw(name), rtol=2e-6, atol=2e-6)


def test_a_computed_array_is_waited_for_and_copied_where_it_lies(monkeypatch):
    monkeypatch.setenv("DUALMX_TIER", "numpy")
    made = []
    monkeypatch.setattr(handle, "jax_from_numpy_nocopy", lambda *a: made.append(a))
    for read in (nd.NDArray.wait_to_read, nd.NDArray.asnumpy):
        read(nd.ones((3, 5)) + 1)
    assert not made


def test_work_counts_layers_and_no_views():
    source = "def run(sizes, x0):\n v1 = x0.transpose(1,0)\n v2 = np.reshape(v1,(6,))\n v3 = v2+v2\n return (v3,)"
    assert work_of(source).statements == 1
    source = source.replace("v2+v2", "K.normalize_batch(v2,c0,c1,c2,1)")
    assert (work_of(source).statements, work_of(source).layers) == (0, 1)


def passed_to_first_maxima(x, dy, kernel, stride, low):
    """The gradient of images (N, H, W, C) by loops over windows, in float64, and the maxima."""
    out = np.zeros(x.shape)
    y = np.empty(dy.shape, x.dtype)
    padding = np.finfo(x.dtype).min
    for n, r, c, k in np.ndindex(*dy.shape):
        places = [(r * stride[0] + i - low[0], c * stride[1] + j - low[1]) for i, j in np.ndindex(*kernel)]
        inside = [0 <= a < x.shape[1] and 0 <= b < x.shape[2] for a, b in places]
        values = [x[n, a, b, k] if is_in else padding for (a, b), is_in in zip(places, inside, strict=True)]
        y[n, r, c, k] = np.max(values)  # NaN if one is
        winners = [p for p, v, is_in in zip(places, values, inside, strict=True) if v == y[n, r, c, k] and is_in]
        if winners and y[n, r, c, k] != padding:
            out[n, winners[0][0], winners[0][1], k] += dy[n, r, c, k]
    return y, out


WINDOWS = [
    ((2, 2), (2, 2), (0, 0), (4, 3)),
    ((3, 3), (2, 2), (1, 1), (4, 4)),
    ((3, 2), (1, 3), (0, 1), (6, 3)),
    ((1, 1), (2, 2), (0, 0), (4, 4)),
    ((2, 3), (3, 2), (1, 2), (3, 4)),  # the last windows reach beyond the image
]


@pytest.mark.parametrize("channels", [1, 5, 300])
@pytest.mark.parametrize(("kernel", "stride", "low", "out"), WINDOWS)
def test_maxima_and_where_their_gradients_pass(how, kernel, stride, low, out, channels):
    draw = np.random.RandomState(0)
    x = draw.randint(-2, 3, (2, 8, 7, channels)).astype("f")  # many are equal
    x.flat[3], x.flat[50], x.flat[-1] = np.nan, np.inf, -np.inf
    dy = draw.randn(2, *out, channels).astype("f")
    y, wanted = passed_to_first_maxima(x, dy, kernel, stride, low)
    for lay in (np.copy, lambda a: np.ascontiguousarray(a.transpose(3, 0, 1, 2)).transpose(1, 2, 3, 0)):
        np.testing.assert_array_equal(primitives.max_pool(lay(x), 1, kernel, stride, low, out), y)
        found = primitives.max_pool_vjp(lay(x), lay(y), lay(dy), 1, kernel, stride, low)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("tier", ["numpy", "xla"])
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((2, 3, 8, 7), {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)}),
        ((2, 3, 9, 9), {"kernel": (2, 2), "stride": (2, 2), "pooling_convention": "full"}),
        ((2, 3, 8, 8), {"kernel": (3, 3), "global_pool": True}),
        ((2, 8, 7, 3), {"kernel": (2, 3), "layout": "NHWC"}),
        ((2, 3, 9), {"kernel": (3,), "stride": (2,)}),
        ((2, 3, 4, 5, 6), {"kernel": (2, 2, 2), "stride": (1, 2, 2)}),
    ],
)
def test_maxima_in_a_step(monkeypatch, tier, shape, options):
    monkeypatch.setenv("DUALMX_TIER", tier)
    values = np.random.RandomState(0).permutation(int(np.prod(shape))).reshape(shape).astype("f")
    x = nd.array(values)
    x.attach_grad()
    with autograd.record():
        y = nd.Pooling(x, pool_type="max", **options)
        loss = (y * y).sum()
    loss.backward()
    maxima, counts = np.unique(y.asnumpy(), return_counts=True)
    wanted = np.zeros(values.size, "f")
    wanted[maxima.astype(int)] = 2 * maxima * counts
    np.testing.assert_allclose(x.grad.asnumpy(), wanted[values.astype(int)], rtol=1e-6)
