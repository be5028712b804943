"""Convolutions that oneDNN computes: the results of XLA's, in every form that derivatives give them."""

from __future__ import annotations

import subprocess
import sys

import jax
import numpy as np
import pytest

import dualmx as mx
from dualmx.compile.cpu.onednn import ffi_handlers, primitives
from dualmx.op.lowering_context import MIN_LIBRARY_FLOPS

pytestmark = [
    pytest.mark.skipif(not ffi_handlers.available(), reason=f"left to XLA: {ffi_handlers.unavailable()}"),
    pytest.mark.usefixtures("xla_tier"),
]


@pytest.fixture
def texts(monkeypatch):
    """What the programs compiled during the test leave to oneDNN."""
    seen: list[str] = []
    made = jax.ffi.ffi_call

    def noted(target, *shapes, **more):
        call = made(target, *shapes, **more)
        return lambda *values, text="kept": (
            seen.append(text),
            call(*values, **({} if target == ffi_handlers.KEEP else {"text": text})),
        )[1]

    monkeypatch.setattr(jax.ffi, "ffi_call", noted)
    return seen


@pytest.fixture
def kinds(texts):
    """The kinds of the convolutions among them, when called."""
    return lambda: [primitives.ConvSpec.parse(t).kind for t in texts]


def step(operator, shape, weight, dtype, **params):
    """Result and gradients of a sum of squares."""
    draw = np.random.RandomState(0)
    x, w = (mx.nd.array(draw.randn(*s) * 0.3, dtype=dtype) for s in (shape, weight))
    for a in (x, w):
        a.attach_grad()
    filters = params.pop("filters", weight[0])
    with mx.autograd.record():
        y = operator(x, w, kernel=weight[2:], num_filter=filters, no_bias=True, **params)
        total = (y * y).sum()
    total.backward()
    return [a.asnumpy() for a in (y, x.grad, w.grad)]


def compare(operator, shape, weight, **params):
    for got, want in zip(
        step(operator, shape, weight, "float32", **params),
        step(operator, shape, weight, "float64", **params),  # oneDNN has no float64: this is XLA
        strict=True,
    ):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, atol=3e-6 * np.abs(want).max())


@pytest.mark.parametrize(
    "shape, weight, params",
    [
        ((4, 16, 20, 20), (32, 16, 3, 3), {"pad": (1, 1)}),
        ((4, 16, 21, 20), (32, 16, 3, 3), {"pad": (1, 1), "stride": (2, 2)}),
        ((4, 3, 40, 40), (16, 3, 7, 7), {"pad": (3, 3), "stride": (2, 2)}),
        ((4, 16, 40, 40), (32, 16, 1, 1), {}),
        ((4, 32, 40, 40), (64, 32, 1, 1), {"stride": (2, 2)}),
        ((4, 16, 20, 22), (32, 16, 3, 3), {"pad": (2, 2), "stride": (2, 1), "dilate": (2, 2)}),
        ((8, 16, 50, 50), (32, 16, 2, 3), {"stride": (3, 4), "pad": (0, 2)}),
        ((2, 8, 12, 12, 12), (16, 8, 3, 3, 3), {"pad": (1, 1, 1)}),
        ((4, 16, 900), (32, 16, 3), {"pad": (1,), "stride": (2,)}),
        ((4, 192, 4, 4), (208, 192, 3, 3), {"pad": (1, 1)}),  # so short that data and result are re-arranged
        ((4, 192, 8, 7), (208, 192, 3, 3), {"pad": (1, 1), "stride": (2, 2)}),
        ((4, 256, 2, 2), (256, 256, 3, 3), {"pad": (1, 1), "stride": (2, 2)}),  # filters larger than the result
        ((4, 256, 2, 2), (256, 256, 3, 3), {"pad": (1, 1)}),
    ],
)
def test_convolution_and_its_gradients(kinds, shape, weight, params):
    compare(mx.nd.Convolution, shape, weight, **params)
    assert set(kinds()) == {primitives.FORWARD, primitives.DATA, primitives.FILTERS}


def test_forward_passes_are_not_taken_for_gradients(kinds):
    """As which oneDNN would compute those of filters larger than the result by slow kernels."""
    x, w = mx.nd.ones((4, 512, 1, 1)), mx.nd.ones((512, 512, 3, 3))
    y = mx.nd.Convolution(x, w, kernel=(3, 3), pad=(1, 1), num_filter=512, no_bias=True)
    assert (y.asnumpy() == 512).all() and set(kinds()) == {primitives.FORWARD}


def test_gradients_of_padded_filters_of_one_point(kinds):
    compare(mx.nd.Convolution, (16, 64, 20, 20), (64, 64, 1, 1), pad=(1, 1))
    assert set(kinds()) == {primitives.FORWARD, primitives.DATA, primitives.FILTERS}


@pytest.mark.parametrize(
    "shape, weight, params",
    [
        ((8, 8, 64, 64), (64, 8, 1, 1), {"stride": (2, 2)}),
        ((2, 16, 64), (320, 16, 9), {"stride": (2,), "dilate": (7,), "pad": (28,)}),
        ((4, 24, 6, 8, 6), (16, 24, 7, 4, 3), {"stride": (4, 2, 1), "pad": (5, 0, 2)}),
    ],
)
def test_gradients_of_filters_that_onednn_gets_wrong_are_left_to_xla(kinds, shape, weight, params):
    compare(mx.nd.Convolution, shape, weight, **params)
    assert primitives.FORWARD in kinds() and primitives.FILTERS not in kinds()


@pytest.mark.parametrize("groups", [4, 32])
def test_groups(kinds, groups):
    compare(mx.nd.Convolution, (4, 32, 50, 50), (64, 32 // groups, 3, 3), num_group=groups, pad=(1, 1))
    assert primitives.FORWARD in kinds()


@pytest.mark.parametrize("params", [{"stride": (2, 2), "pad": (1, 1), "adj": (1, 1)}, {"pad": (1, 1)}])
def test_transposed(kinds, params):
    compare(mx.nd.Deconvolution, (4, 16, 16, 16), (16, 32, 3, 3), filters=32, **params)
    assert kinds()[0] == primitives.DATA and len(kinds()) > 1


def test_gradients_of_gradients(kinds):
    def second(dtype):
        draw = np.random.RandomState(1)
        x = mx.nd.array(draw.randn(4, 16, 20, 20), dtype=dtype)
        w = mx.nd.array(draw.randn(16, 16, 3, 3) * 0.1, dtype=dtype)
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.tanh(mx.nd.Convolution(x, w, kernel=(3, 3), num_filter=16, no_bias=True)).sum()
            (g,) = mx.autograd.grad(y, [x], create_graph=True)
            z = (g * g).sum()
        z.backward()
        return x.grad.asnumpy()

    want = second("float64")
    np.testing.assert_allclose(second("float32"), want, atol=1e-5 * np.abs(want).max())
    assert primitives.DATA in kinds()


def test_a_hybridized_network_that_keeps_channels_first(kinds):
    def losses(dtype):
        mx.random.seed(0)
        net = mx.gluon.nn.HybridSequential()
        net.add(mx.gluon.nn.Conv2D(16, 3, padding=1, in_channels=3), mx.gluon.nn.BatchNorm(in_channels=16))
        net.add(mx.gluon.nn.Activation("relu"), mx.gluon.nn.MaxPool2D())
        net.add(mx.gluon.nn.Conv2D(64, 3, strides=2, in_channels=16), mx.gluon.nn.GlobalAvgPool2D())
        draw = np.random.RandomState(2)
        net.initialize()
        for p in net.collect_params().values():
            if p.name.endswith("weight"):
                p.set_data(mx.nd.array(draw.randn(*p.shape) * 0.2))
        net.cast(dtype)
        net.hybridize()
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        x, found = mx.nd.array(draw.randn(8, 3, 32, 32), dtype=dtype), []
        for _ in range(3):
            with mx.autograd.record():
                loss = (net(x) ** 2).mean()
            loss.backward()
            trainer.step(1)
            found.append(float(loss.asscalar()))
        return found

    np.testing.assert_allclose(losses("float32"), losses("float64"), rtol=1e-5)
    assert kinds().count(primitives.FILTERS) >= 2


@pytest.mark.parametrize("rows", [(1024,), (32, 32)])
def test_gradients_of_weights(texts, rows):
    def gradient(dtype):
        draw = np.random.RandomState(4)
        x, w, g = (mx.nd.array(draw.randn(*s), dtype=dtype) for s in ((*rows, 400), (500, 400), (*rows, 500)))
        w.attach_grad()
        with mx.autograd.record():
            y = mx.nd.FullyConnected(x, w, num_hidden=500, no_bias=True, flatten=False)
        y.backward(g)
        return w.grad.asnumpy()

    want = gradient("float64")
    np.testing.assert_allclose(gradient("float32"), want, atol=1e-5 * np.abs(want).max())
    assert texts == ["500,400,1024"]


def test_small_convolutions_stay_with_xla(kinds):
    compare(mx.nd.Convolution, (1, 4, 8, 8), (4, 4, 3, 3))
    assert not kinds()


@pytest.mark.slow
def test_switched_off():
    code = (
        "import dualmx as mx\nfrom dualmx.compile.cpu.onednn import ffi_handlers\nffi_handlers.handlers = None\n"
        "print(mx.nd.Convolution(mx.nd.ones((4, 16, 20, 20)), mx.nd.ones((32, 16, 3, 3)), kernel=(3, 3), "
        "num_filter=32, no_bias=True).sum().asscalar())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PATH": "", "MXNET_MKLDNN_ENABLED": "0"}
    )
    assert float(done.stdout) == 4 * 32 * 18 * 18 * 144, done.stderr


def test_a_failure_inside_the_library_is_an_error_with_a_remedy():
    wrong = primitives.ConvSpec(
        primitives.FORWARD, 1, (1, 2, 5), (3, 2, 3), (1, 3, 4), (1,), (1,), (0,), (0,), (0, 1, 2)
    )
    call = jax.ffi.ffi_call(ffi_handlers.CONVOLUTION, jax.ShapeDtypeStruct((1, 4, 3), np.float32))
    with pytest.raises(Exception, match="MXNET_MKLDNN_ENABLED=0"):
        call(np.zeros((1, 5, 2), "f"), np.zeros((3, 2, 3), "f"), text=wrong.text()).block_until_ready()


def test_threshold_counts_operations():
    c = primitives.ConvSpec(primitives.FORWARD, 1, (1, 2, 5), (3, 2, 3), (1, 3, 3), (1,), (1,), (0,), (0,), (0, 1, 2))
    assert c.flops() == 2 * 9 * 6 < MIN_LIBRARY_FLOPS


@pytest.mark.slow
def test_plans_make_room_under_several_threads():
    done = subprocess.run([sys.executable, "-c", _MANY], capture_output=True, text=True)
    assert done.stdout.split() == ["3", "True"], done.stderr


_MANY = """
from concurrent.futures import ThreadPoolExecutor
import ctypes
import jax
import numpy as np
from dualmx.compile.cpu.onednn import ffi_handlers, primitives
assert ffi_handlers.available()
most, plans = (ctypes.c_int64.in_dll(ffi_handlers._loaded[0], f"dualmx_onednn_{n}") for n in ("most", "plans"))
most.value = 3

def right(width):
    draw = np.random.RandomState(width)
    data, filters = draw.randn(1, width, 3).astype("f"), draw.randn(5, 3, 3).astype("f")
    one = (1,)
    c = primitives.ConvSpec(0, 1, (1, 3, width), (5, 3, 3), (1, 5, width - 2), one, one, (0,), (0,), (0, 1, 2))
    call = jax.ffi.ffi_call(ffi_handlers.CONVOLUTION, jax.ShapeDtypeStruct((1, width - 2, 5), np.float32))
    windows = np.lib.stride_tricks.sliding_window_view(data[0], 3, axis=0)
    return np.allclose(call(data, filters, text=c.text())[0], np.einsum("tck,ock->to", windows, filters), atol=1e-5)

with ThreadPoolExecutor(4) as pool:
    results = list(pool.map(right, [4, 5, 6, 7, 8, 4, 5, 6, 6, 9, 4, 8] * 2))
print(plans.value, all(results))
"""


def test_short_rows_of_many_channels_are_rearranged():
    def of(n, channels, side):
        one, image = (1, 1), (n, channels, side, side)
        filters = (channels, channels, 3, 3)
        return primitives.ConvSpec(primitives.FORWARD, 1, image, filters, image, one, one, one, one, (0, 1, 2, 3))

    assert primitives.short(of(32, 512, 4)) and primitives.short(of(4, 512, 7))
    assert not primitives.short(of(4, 256, 14)) and not primitives.short(of(32, 128, 8))


@pytest.mark.parametrize("hybrid", [False, True])
def test_sums_of_cotangents_are_computed_once(texts, hybrid):
    net = mx.gluon.nn.HybridSequential()
    for _ in range(4):
        branch = mx.gluon.nn.HybridSequential()
        branch.add(mx.gluon.nn.LayerNorm(in_channels=512), mx.gluon.nn.Dense(512, in_units=512, flatten=False))
        net.add(Residual(branch))
    net.initialize(mx.init.Xavier())
    if hybrid:
        net.hybridize()
    draw = np.random.RandomState(0).randn(4, 64, 512)
    found = {}
    for dtype in ("float64", "float32"):
        net.cast(dtype)
        x = mx.nd.array(draw, dtype=dtype)
        x.attach_grad()
        with mx.autograd.record():
            y = net(x)
        y.backward()
        found[dtype] = [x.grad.asnumpy(), *(p.grad().asnumpy() for p in net.collect_params().values())]
        assert texts.count("kept") >= 3 * len(found)
    for got, want in zip(found["float32"], found["float64"], strict=True):
        np.testing.assert_allclose(got, want, 1e-3, 1e-4 * np.abs(want).max())


class Residual(mx.gluon.HybridBlock):
    def __init__(self, branch):
        super().__init__()
        self.branch = branch

    def hybrid_forward(self, F, x):
        return x + self.branch(x)
