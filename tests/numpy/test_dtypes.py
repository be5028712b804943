"""Dtypes, shapes and values of `mx.np` as the real MXNet gave them."""

from __future__ import annotations

import pytest

import dualmx as mx
import numpy as onp
from tests.goldens import np_cases
from tests.goldens.store import load

RECORDED = load("np")


@pytest.mark.slow
def test_as_mxnet():
    """All calls are recorded before the first one is computed, so that they are few programs."""
    found = {name: np_cases.evaluate(np_cases.EXPRESSIONS[name], mx.np, onp) for name in RECORDED}
    wrong = []
    for name, (dtype, shape, values) in RECORDED.items():
        got = found[name].asnumpy()
        want = onp.array([float(v) for v in values], "float32").reshape(shape)
        near = {"rtol": 2e-3 if dtype == "float16" else 1e-5, "atol": 1e-6, "equal_nan": True}
        if str(got.dtype) != dtype or got.shape != want.shape or not onp.allclose(got.astype("float32"), want, **near):
            wrong.append(f"{name}: {got!r}, expected {dtype} {want!r}")
    assert not wrong, f"{len(wrong)} of {len(RECORDED)}:\n" + "\n".join(wrong)


def test_floats_are_summed_before_they_become_integers():
    x = mx.np.array([[1.7, 0.6, 0.9], [-1.7, -0.6, 2.3]])
    assert mx.np.sum(x, dtype="int32").asnumpy() == 3
    assert mx.np.sum(x, axis=1, dtype="int8").asnumpy().tolist() == [3, 0]
    assert mx.np.prod(x, axis=1, dtype="int64").asnumpy().tolist() == [0, 2]


def test_ranges_of_integers_go_on_by_whole_numbers():
    for made in (
        mx.nd.arange(0.5, 6, 1.5, dtype="int64"), mx.np.arange(0, 6, 1.5, dtype="int64"),
        mx.sym.arange(0, 6, 1.5, dtype="int64").eval()[0], mx.sym.np.arange(0.5, 6, 1.5, dtype="int64").eval()[0],
    ):  # fmt: skip
        assert made.dtype == onp.int64 and made.asnumpy().tolist() == [0, 1, 2, 3]
    assert mx.nd.arange(0, 1.5, 0.5, repeat=2, dtype="int32").asnumpy().tolist() == [0] * 6
    assert mx.np.arange(0.5, 5, 1.5).asnumpy().tolist() == [0.5, 2, 3.5]


@pytest.mark.parametrize("dtype", ["int32", "int64", "int8", "uint8"])
def test_floor_division_by_zero_is_zero_for_integers(dtype):
    x, y = onp.array([5, 0, 7], dtype), onp.array([0, 0, 2], dtype)
    assert (mx.np.array(x) // mx.np.array(y)).asnumpy().tolist() == [0, 0, 3]
    assert (mx.np.array(x) // 0).asnumpy().tolist() == [0, 0, 0]
    assert (7 // mx.np.array(y)).asnumpy().tolist() == [0, 0, 3]


@pytest.mark.parametrize("made", [mx.np.arange, mx.nd.arange, lambda *a: mx.sym.arange(*a).eval()[0]])
def test_float32_is_counted_in_float32(made):
    """The bits that MXNet gives; 0 is met."""
    x = made(-8, 8, 0.1).asnumpy()
    assert x.dtype == onp.float32 and x[80] == 0 and len(x) == 160
    onp.testing.assert_array_equal(x, onp.float32(-8) + onp.arange(160, dtype="float32") * onp.float32(0.1))
    assert made(1, 0, -0.1).asnumpy()[[6, 8, 9]].tolist() == [
        0.3999999761581421, 0.19999998807907104, 0.09999996423721313,
    ]  # fmt: skip
