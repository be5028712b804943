"""Reductions and densities: recorded MXNet results, NumPy and SciPy, numeric derivatives, shapes, dtypes, ties."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import scipy

from dualmx.core.errors import MXNetError
from tests.goldens.elementwise_cases import Case, densities, reductions
from tests.op.replay import check_numeric, check_recorded, defined_in, gradients, run

CASES = [*reductions(), *densities()]
FIRST = {c.op: c for c in reversed(CASES)}  # one case of each operator is enough for second derivatives
NAN = np.nan


def named(cases: list[Case]) -> pytest.MarkDecorator:
    """Parametrise over cases, which show up by name."""
    return pytest.mark.parametrize("case", cases, ids=lambda c: c.name)


def test_every_operator_has_a_case():
    assert not set(defined_in("reduce", "pdf")) - {c.op for c in CASES}


@named([c for c in CASES if c.recorded])
def test_agrees_with_mxnet(case):
    check_recorded(case)


@named([c for c in CASES if c.numeric])
def test_derivatives_agree_with_differences(case):
    check_numeric(case, order=2 if case is FIRST[case.op] else 1)


NUMPY = {
    **{n: getattr(np, n) for n in ("sum", "mean", "prod", "max", "min", "nansum", "nanprod")},
    "_square_sum": lambda x, axis, keepdims: np.sum(x * x, axis, keepdims=keepdims),
    "norm": lambda x, axis, keepdims: np.sqrt(np.sum(x * x, axis, keepdims=keepdims)),
}


@pytest.mark.parametrize("name", sorted(NUMPY))
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (2, 0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_agrees_with_numpy_in_float64(name, axis, keepdims):
    x = np.random.RandomState(0).uniform(-2, 2, (2, 3, 4))
    if name.startswith("nan"):
        x[1, 1, 1] = NAN
    want = NUMPY[name](x, axis=axis, keepdims=keepdims)
    np.testing.assert_allclose(run(name, x, axis=axis, keepdims=keepdims), np.reshape(want, want.shape or (1,)), 1e-12)


def test_shapes():
    x = np.ones((2, 3), np.float32)
    for name in ("sum", "max", "norm", "argmax"):
        assert run(name, x).shape == (1,)
        assert run(name, x, keepdims=True).shape == (1, 1)
        assert run(name, x, axis=1).shape == (2,)
        assert run(name, np.ones(3), axis=0).shape == (1,)
    assert run("sum", x, axis=()).shape == run("sum", x, axis=(), exclude=True).shape == (1,)
    assert run("sum", x, exclude=True).shape == (1,)
    assert run("sum", x, axis=(0, 1), exclude=True).shape == (2, 3)
    assert run("sum", x, axis=-1, exclude=True).shape == (3,)
    assert run("argmax_channel", np.ones((2, 3, 4))).shape == (2, 4)
    assert [y.shape for y in run("moments", np.ones((2, 3, 4)), axes=(0, 2))] == [(3,), (3,)]
    assert [y.shape for y in run("moments", np.ones((2, 3)))] == [(1,), (1,)]
    assert run("cumsum", x).shape == (6,)
    assert run("sum", x, axis="(0, 1)", keepdims="True").shape == (1, 1)


@pytest.mark.parametrize(
    ("name", "params", "text"),
    [
        ("sum", {"axis": 2}, r"sum: axis=2: .*2 dimensions"),
        ("sum", {"axis": (0, -2)}, r"sum: axis=.*every axis at most once"),
        ("norm", {"ord": 3}, r"norm: ord=3: expected 1 or 2"),
        ("argmax", {"axis": -3}, r"argmax: axis=-3"),
        ("cumsum", {"axis": 5}, r"_np_cumsum: axis=5"),
        ("sum", {"axes": 1}, r"sum: unknown parameter 'axes'.*axis"),
    ],
)
def test_errors(name, params, text):
    with pytest.raises(MXNetError, match=text):
        run(name, np.ones((2, 3), np.float32), **params)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "nansum", "nanprod", "max", "min"])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "int8", "int64", "bool", "float16", "bfloat16"])
def test_dtype_of_the_data_is_kept(name, dtype):
    assert run(name, np.array([[1, 2, 3], [4, 5, 6]]).astype(jnp.dtype(dtype)), axis=1).dtype == jnp.dtype(dtype)


def test_integers_wrap_and_truncate():
    assert run("sum", np.array([250, 10], np.uint8)) == [4]
    assert run("prod", np.array([1, 2, 3, 4, 5, 6], np.int8)) == [-48]
    assert run("mean", np.array([-3, 0], np.int32)) == [-1]
    assert run("mean", np.array([200, 200], np.uint8)) == [200]
    assert run("norm", np.array([3, 4], np.int32)) == [5]
    assert run("sum", np.array([True, True])) == [True]
    assert run("prod", np.array([True, False])) == [False]


def test_half_precision_adds_up_in_float32():
    ones = np.full(5000, 1, np.float16)
    assert run("sum", ones) == [5000]
    assert run("mean", np.full(70000, 2, np.float16)) == [2]
    assert run("norm", np.full(10000, 3, np.float16)) == [300]
    assert run("cumsum", ones)[-1] == 5000
    assert run("_square_sum", ones) == [5000]
    mean, var = run("moments", np.full((70000,), 2, np.float16), axes=(0,))
    assert (mean, var) == ([2], [0])


def test_every_tie_of_max_and_min_gets_the_gradient():
    x = np.array([[1, 2, 2], [0, -1, 2]], np.float32)
    np.testing.assert_array_equal(gradients("max", x, head=3.0)[0], [[0, 3, 3], [0, 0, 3]])
    np.testing.assert_array_equal(gradients("min", -x, axis=1)[0], [[0, 1, 1], [0, 0, 1]])


def test_positions():
    x = np.array([[3, 1, 3], [1, 1, 2]], np.float32)
    got = run("argmax", x, axis=1)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, [0, 2])
    np.testing.assert_array_equal(run("argmin", x, axis=1), [1, 0])
    np.testing.assert_array_equal(run("argmax", x), [0])
    np.testing.assert_array_equal(run("argmax", np.array([1, NAN, 3])), [1])
    np.testing.assert_array_equal(run("argmin", np.array([-np.inf, NAN, NAN])), [1])
    np.testing.assert_array_equal(run("argmax", np.array([[False, True]]), axis=1), [True])
    np.testing.assert_array_equal(run("argmax", np.array([-np.inf, -np.inf])), [0])
    np.testing.assert_array_equal(gradients("argmax", x)[0], np.zeros_like(x))


def test_allclose():
    a = np.array([1, NAN], np.float32)
    assert run("_contrib_allclose", a, a + 1e-6) == run("_contrib_allclose", a, a) == 1
    assert run("_contrib_allclose", a, a, equal_nan=False) == run("_contrib_allclose", a, a + 1) == 0
    with pytest.raises(MXNetError, match="_contrib_allclose: .*different shapes"):
        run("_contrib_allclose", a, np.ones(1, np.float32))


def test_nan_and_zero():
    x = np.array([1, NAN, 2], np.float32)
    for name in ("sum", "mean", "prod", "max", "min", "norm"):
        assert np.isnan(run(name, x))
    np.testing.assert_array_equal(gradients("nansum", x)[0], [1, 0, 1])
    np.testing.assert_array_equal(gradients("nanprod", x)[0], [2, 0, 1])
    np.testing.assert_array_equal(gradients("prod", np.array([2.0, 0.0, 3.0]))[0], [0, 6, 0])
    assert np.isnan(gradients("norm", np.zeros(2, np.float32))[0]).all()
    np.testing.assert_array_equal(gradients("norm", np.array([0.0, 1.0, -2.0]), ord=1)[0], [0, 1, -1])


def test_norm_and_cumsum_dtypes():
    x = np.array([[3, 4]], np.float32)
    assert run("norm", x, out_dtype="float64").dtype == np.float64
    assert run("norm", x, out_dtype="float16").dtype == np.float16
    assert run("cumsum", x, axis=1, dtype="int32").dtype == np.int32
    np.testing.assert_array_equal(run("cumsum", np.array([True, True])), np.array([1, 2], np.int64))


@pytest.mark.parametrize(
    ("name", "x", "params", "want"),
    [
        ("uniform", [0.5, 1], (0, 2), lambda x: scipy.stats.uniform.pdf(x, 0, 2)),
        ("normal", [0.5, 1], (1, 2), lambda x: scipy.stats.norm.pdf(x, 1, 2)),
        ("exponential", [0.5, 1], (3,), lambda x: scipy.stats.expon.pdf(x, scale=1 / 3)),
        ("gamma", [0.5, 1], (3, 2), lambda x: scipy.stats.gamma.pdf(x, 3, scale=1 / 2)),
        ("poisson", [0, 3], (3,), lambda x: scipy.stats.poisson.pmf(x, 3)),
        ("negative_binomial", [0, 3], (3, 0.25), lambda x: scipy.stats.nbinom.pmf(x, 3, 0.25)),
        ("generalized_negative_binomial", [0, 3], (3, 0.25), lambda x: scipy.stats.nbinom.pmf(x, 4, 1 / 1.75)),
    ],
)
def test_densities_agree_with_scipy(name, x, params, want):
    x = np.array([x], np.float64)
    arrays = [np.array([p], np.float64) for p in params]
    np.testing.assert_allclose(run(f"_random_pdf_{name}", x, *arrays), want(x), rtol=1e-9)
    np.testing.assert_allclose(run(f"_random_pdf_{name}", x, *arrays, is_log=True), np.log(want(x)), rtol=1e-9)
    with pytest.raises(MXNetError, match="expected the leading axes of sample"):
        run(f"_random_pdf_{name}", x, *(np.ones(5) for _ in params))
