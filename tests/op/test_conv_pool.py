"""Convolution, deconvolution and pooling against MXNet's record, plain NumPy and numeric gradients."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dualmx.core.errors import ArgumentError
from dualmx.op.lowering_context import lowering_on_platform
from dualmx.op.registry import OPS
from tests.goldens.nn_cases import GROUPS, Case
from tests.op.nn_replay import gradients, replay

CASES = [c for g in ("convolution", "deconvolution", "pool") for c in GROUPS[g]]
F4 = np.dtype("float32")


def run(op: str, *arrays, **params):
    with jax.enable_x64(True):
        return OPS[op].call(**params).apply([jnp.asarray(a) for a in arrays])[0]


def complete(op: str, shapes, **params):
    call = OPS[op].call(**params)
    return OPS[op].complete(type("P", (), call.params), shapes)


def overhangs(case: Case) -> bool:
    """MXNet 1.9.1 divides by the whole window in backward, but by its inner part in forward."""
    p = case.params
    return p.get("pooling_convention") == "full" and p.get("pool_type") == "avg" and "count_include_pad" not in p


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_matches_record(case: Case, platform: str):
    """Both formulations, channels-last for XLA:CPU and as given for others, run here on the CPU."""
    with lowering_on_platform(platform):
        replay(case, skip=("data",) if overhangs(case) else ())


@pytest.mark.parametrize(
    ("op", "shapes", "params"),
    [
        ("Convolution", [(1, 2, 5), (3, 2, 3), (3,)], {"kernel": (3,), "num_filter": 3, "pad": (1,)}),
        ("Convolution", [(1, 4, 5, 4), (2, 2, 3, 2)],
         {"kernel": (3, 2), "num_filter": 2, "num_group": 2, "stride": (2, 1), "no_bias": True}),
        ("Convolution", [(1, 3, 3, 3), (2, 3, 1, 1), (2,)], {"kernel": (1, 1), "num_filter": 2, "stride": (2, 2)}),
        ("Deconvolution", [(1, 2, 3, 3), (2, 3, 3, 3)], {"kernel": (3, 3), "num_filter": 3, "stride": (2, 2)}),
        ("Pooling", [(1, 2, 4, 5)], {"kernel": (2, 2), "stride": (2, 2)}),
        ("Pooling", [(1, 2, 5, 5)], {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)}),
        ("Pooling", [(1, 1, 8, 8)], {"kernel": (6, 6), "stride": (2, 2)}),
        ("Pooling", [(1, 1, 6, 6)],
         {"kernel": (3, 3), "stride": (2, 2), "pool_type": "avg", "pooling_convention": "full"}),
        ("Pooling", [(1, 1, 5, 5)], {"kernel": (2, 2), "pool_type": "lp", "p_value": 3}),
        ("Pooling", [(1, 2, 3, 3)], {"global_pool": True}),
        ("_contrib_AdaptiveAvgPooling2D", [(1, 1, 5, 4)], {"output_size": (3, 2)}),
    ],
)  # fmt: skip
def test_gradients(op, shapes, params):
    gradients(op, shapes, **params)


@pytest.mark.parametrize(("layout", "n"), [("NWC", 1), ("NHWC", 2), ("NDHWC", 3)])
@pytest.mark.parametrize("op", ["Convolution", "Deconvolution"])
@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_channels_last_is_the_same_function(op, layout, n, platform):
    rng = np.random.default_rng(0)
    kernel = (3, 2, 2)[:n]
    params = {"kernel": kernel, "num_filter": 6, "num_group": 2, "stride": (2, 1, 2)[:n], "no_bias": False}
    x = rng.normal(size=(2, 4, 5, 6, 5)[: n + 2]).astype(np.float32)
    w = rng.normal(size=((6, 2) if op == "Convolution" else (4, 3)) + kernel).astype(np.float32)
    b = rng.normal(size=6).astype(np.float32)
    with lowering_on_platform(platform):
        first = run(op, x, w, b, **params)
        last = run(op, np.moveaxis(x, 1, -1), np.moveaxis(w, 1, -1), b, layout=layout, **params)
    np.testing.assert_allclose(np.moveaxis(last, -1, 1), first, 1e-5, 1e-5)


@pytest.mark.slow
def test_max_gradient_goes_to_the_first_maximum():
    for kernel, stride in (((2, 2), (2, 2)), ((3, 3), (1, 1)), ((6, 6), (1, 1))):
        x = jnp.ones((1, 1, 6, 6))
        call = OPS["Pooling"].call(kernel=kernel, stride=stride)
        y, back = jax.vjp(lambda x, call=call: call.apply([x])[0], x)
        (dx,) = back(jnp.ones_like(y))
        want = np.zeros((6, 6))
        for i in range(0, 6 - kernel[0] + 1, stride[0]):
            for j in range(0, 6 - kernel[1] + 1, stride[1]):
                want[i, j] += 1
        np.testing.assert_array_equal(dx[0, 0], want)


def test_average_divisor():
    ones = np.ones((1, 1, 2, 2), np.float32)
    params = {"kernel": (2, 2), "pad": (1, 1), "stride": (2, 2), "pool_type": "avg"}
    np.testing.assert_allclose(run("Pooling", ones, **params), 0.25)
    np.testing.assert_allclose(run("Pooling", ones, count_include_pad=False, **params), 1)


def test_same_convention():
    x = np.arange(5, dtype=np.float32).reshape(1, 1, 5)
    y = run("Pooling", x, kernel=(3,), stride=(2,), pooling_convention="same")
    np.testing.assert_array_equal(y[0, 0], [2, 4, 4])


def test_half_precision_sums_in_float32():
    x = np.ones((1, 4096, 1, 1), np.float16)
    w = np.full((1, 4096, 1, 1), 0.3333, np.float16)
    y = run("Convolution", x, w, kernel=(1, 1), num_filter=1, no_bias=True)
    assert y.dtype == np.float16
    np.testing.assert_allclose(y, 4096 * float(w[0, 0, 0, 0]), 1e-3)
    y = run("Pooling", np.full((1, 1, 100, 100), 3, np.float16), pool_type="avg", global_pool=True)
    assert y.dtype == np.float16 and float(y[0, 0, 0, 0]) == 3


@pytest.mark.slow
def test_deconvolution_is_the_adjoint_of_convolution():
    rng = np.random.default_rng(0)
    p = {"kernel": (3, 2), "stride": (2, 1), "pad": (1, 0), "num_group": 2, "no_bias": True}
    x, w = rng.normal(size=(2, 4, 7, 6)), rng.normal(size=(6, 2, 3, 2))
    y = np.asarray(run("Convolution", x, w, num_filter=6, **p))
    v = rng.normal(size=y.shape)
    back = run("Deconvolution", v, w, num_filter=4, **p)
    np.testing.assert_allclose(np.sum(y * v), np.sum(np.asarray(back) * x), 1e-10)


def test_completes_weights():
    conv = {"kernel": (3, 3), "num_filter": 6}
    assert complete("Convolution", {"data": (0, 4, 0, 0)}, **conv) == {"weight": (6, 4, 3, 3), "bias": (6,)}
    assert complete("Convolution", {"data": (2, 0, 8, 8)}, **conv) == {"bias": (6,)}
    assert complete("Convolution", {"data": (0, 4, 0, 0)}, num_group=2, **conv)["weight"] == (6, 2, 3, 3)
    assert complete("Convolution", {"data": (0, 0, 0, 4)}, layout="NHWC", **conv)["weight"] == (6, 3, 3, 4)
    assert complete("Deconvolution", {"data": (0, 4, 0, 0)}, num_group=2, **conv) == {"weight": (4, 3, 3, 3)}


@pytest.mark.parametrize(
    ("op", "shapes", "params", "words"),
    [
        ("Convolution", [(3, 5, 5), (4, 3, 3, 3), (4,)], {}, "kernel=(3, 3) needs 4-d data, got shape (3, 5, 5)"),
        ("Convolution", [(1, 3, 5, 5), (4, 2, 3, 3), (4,)], {}, "weight has shape (4, 2, 3, 3): expected (4, 3, 3, 3)"),
        ("Convolution", [(1, 3, 5, 5), (4, 3, 3, 3), (3,)], {}, "bias has shape (3,): expected (4,)"),
        ("Convolution", [(1, 3, 5, 5), (4, 3, 3, 3), (4,)], {"num_group": 2}, "num_group=2: expected a divisor"),
        ("Convolution", [(1, 3, 5, 5), (4, 3, 3, 3), (4,)], {"stride": (2,)}, "stride=(2,): expected 2 integers >= 1"),
        ("Convolution", [(1, 3, 5, 5), (4, 3, 3, 3), (4,)], {"stride": (0, 1)}, "stride=(0, 1)"),
        ("Convolution", [(1, 3, 2, 5), (4, 3, 3, 3), (4,)], {}, "larger than the data"),
        ("Convolution", [(1, 3, 5, 5), (4, 3, 3, 3), (4,)], {"layout": "NCW"}, "layout='NCW': expected NCHW or NHWC"),
        ("Deconvolution", [(1, 3, 5, 5), (3, 4, 3, 3)], {"adj": (1, 1)}, "adj=(1, 1): expected values below stride"),
        ("Deconvolution", [(1, 3, 5, 5), (3, 4, 3, 3)], {"target_shape": (9, 9)}, "expected at most (7, 7)"),
    ],
)
def test_convolution_errors(op, shapes, params, words):
    with pytest.raises(ArgumentError, match=f"^{op}.*{re.escape(words)}"):
        OPS[op].call(kernel=(3, 3), num_filter=4, **params).infer(tuple((s, F4) for s in shapes))


@pytest.mark.parametrize(
    ("shape", "params", "words"),
    [
        ((2, 3), {"kernel": (2,)}, "data has shape (2, 3)"),
        ((1, 1, 4, 4), {}, "kernel=() needs 2-d data"),
        ((1, 1, 4, 4), {"kernel": (2, 2), "pad": (2, 2)}, "pad=(2, 2): expected values below kernel=(2, 2)"),
        ((1, 1, 4, 4), {"kernel": (5, 5)}, "kernel=(5, 5): larger than"),
        ((1, 1, 4, 4), {"kernel": (2, 2), "pool_type": "lp"}, "p_value=None"),
        ((1, 1, 4, 4), {"kernel": (2, 2), "layout": "NCW"}, "layout='NCW'"),
    ],
)
def test_pooling_errors(shape, params, words):
    with pytest.raises(ArgumentError, match=f"^Pooling.*{re.escape(words)}"):
        OPS["Pooling"].call(**params).infer(((shape, F4),))
