"""Random operators: moments and distributions against SciPy, shapes, dtypes, errors, gradients, reproducibility."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy

from dualmx.core.errors import MXNetError
from dualmx.op.registry import OPS
from tests.op.replay import apply, defined_in

N = 20000
KEY = jax.random.key(7)


def draw(name: str, *arrays: Any, key: Any = KEY, **params: Any) -> Any:
    """Run a sampler with a key; returns one array, or the list of several."""
    outs = apply(OPS[name].call(**params), *(np.asarray(x) for x in arrays), key=key)
    return outs[0] if len(outs) == 1 else outs


# stem, scalar parameters, the same for arrays (normal has other names), SciPy's distribution (slow to import)
FAMILIES: list[tuple[str, dict[str, float], Any]] = [
    ("uniform", {"low": -1.0, "high": 3.0}, lambda: scipy.stats.uniform(-1, 4)),
    ("normal", {"loc": 2.0, "scale": 3.0}, lambda: scipy.stats.norm(2, 3)),
    ("exponential", {"lam": 4.0}, lambda: scipy.stats.expon(scale=0.25)),
    ("gamma", {"alpha": 3.0, "beta": 2.0}, lambda: scipy.stats.gamma(3, scale=2)),
    ("poisson", {"lam": 3.0}, lambda: scipy.stats.poisson(3)),
    ("negative_binomial", {"k": 3, "p": 0.25}, lambda: scipy.stats.nbinom(3, 0.25)),
    ("generalized_negative_binomial", {"mu": 3.0, "alpha": 0.5}, lambda: scipy.stats.nbinom(2, 1 / 2.5)),
    ("generalized_negative_binomial", {"mu": 3.0, "alpha": 0.0}, lambda: scipy.stats.poisson(3)),
]
family = pytest.mark.parametrize(("stem", "params", "law"), FAMILIES, ids=[f"{s}-{p}" for s, p, _ in FAMILIES])


def check_law(x: np.ndarray, law: Any) -> None:
    """The sample has the law's moments, and its shape by Kolmogorov and Smirnov's or Pearson's test."""
    assert abs(x.mean() - law.mean()) < 5 * law.std() / np.sqrt(x.size)
    assert abs(x.var() / law.var() - 1) < 0.12
    if hasattr(law.dist, "pmf"):
        top = int(law.ppf(0.995))
        seen = np.bincount(np.minimum(x, top).astype(int), minlength=top + 1)
        want = np.append(law.pmf(np.arange(top)), law.sf(top - 1)) * x.size
        assert scipy.stats.chisquare(seen, want).pvalue > 1e-4
    else:
        assert scipy.stats.kstest(x, law.cdf).pvalue > 1e-4


def test_every_operator_is_covered():
    stems = {s for s, _, _ in FAMILIES}
    known = {f.format(s) for s in stems for f in ("_random_{}", "_random_{}_like", "_sample_{}")}
    others = {"_random_randint", "_sample_multinomial", "_sample_unique_zipfian", "_shuffle"}
    assert set(defined_in("random")) == known | others


@pytest.mark.slow
@family
def test_law_of_one_distribution(stem, params, law):
    x = draw(f"_random_{stem}", shape=(N // 4, 4), **params)
    assert (x.shape, x.dtype) == ((N // 4, 4), np.float32)
    check_law(x.ravel().astype(np.float64), law())


@pytest.mark.slow
@family
def test_law_of_samples_like_an_array(stem, params, law):
    x = draw(f"_random_{stem}_like", np.zeros((N // 4, 4), np.float64), **params)
    assert (x.shape, x.dtype) == ((N // 4, 4), np.float64)
    check_law(x.ravel(), law())
    assert draw(f"_random_{stem}_like", np.zeros((2, 3), np.int32), **params).dtype == np.int32


@pytest.mark.slow
@family
def test_law_of_each_element(stem, params, law):
    arrays = [np.full((2, 2), v, np.float32) for v in params.values()]
    x = draw(f"_sample_{stem}", *arrays, shape=(N // 4,))
    assert (x.shape, x.dtype) == ((2, 2, N // 4), np.float32)
    check_law(x.ravel().astype(np.float64), law())
    assert draw(f"_sample_{stem}", *arrays).shape == (2, 2)


@pytest.mark.slow
def test_each_element_has_its_own_parameters():
    x = draw("_sample_normal", np.array([0, 100], np.float32), np.array([1, 5], np.float32), shape=5000)
    np.testing.assert_allclose(x.mean(1), [0, 100], atol=0.4)
    np.testing.assert_allclose(x.std(1), [1, 5], rtol=0.05)
    low = np.array([1 + 2**-40], np.float64)
    assert draw("_sample_uniform", low, low, dtype="float64") == low
    x = draw("_sample_generalized_negative_binomial", np.full(2, 3, np.float32), np.array([0, 1], np.float32), shape=N)
    np.testing.assert_allclose(x.var(1), [3, 12], rtol=0.15)


@family
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtype(stem, params, law, dtype):
    x = draw(f"_random_{stem}", shape=(3,), dtype=dtype, **params)
    assert x.dtype == jnp.dtype(dtype)
    assert np.isfinite(x.astype(np.float32)).all()


def test_shape_and_dtype_defaults():
    x = draw("_random_uniform")
    assert (x.shape, x.dtype) == ((1,), np.float32)
    assert draw("_random_normal", shape="(2, 3)", dtype="None", ctx="cpu(0)").shape == (2, 3)
    assert OPS["uniform"] is OPS["random_uniform"] is OPS["_random_uniform"]


def test_a_key_decides_the_sample():
    a, b = draw("_random_normal", shape=9), draw("_random_normal", shape=9)
    c = draw("_random_normal", shape=9, key=jax.random.key(8))
    np.testing.assert_array_equal(a, b)
    assert (a != c).all()


@pytest.mark.parametrize(
    ("name", "params", "text"),
    [
        ("_random_uniform", {"low": 2, "high": 1}, "_random_uniform: low=2.0, high=1.0: expected low <= high"),
        ("_random_normal", {"scale": -1}, "_random_normal: scale=-1"),
        ("_random_exponential", {"lam": 0}, "_random_exponential: lam=0.0: expected a value above 0"),
        ("_random_gamma", {"alpha": -1}, "_random_gamma: alpha=-1.0"),
        ("_random_poisson", {"lam": -1}, "_random_poisson: lam=-1"),
        ("_random_negative_binomial", {"p": 2}, "_random_negative_binomial: p=2.0: expected a probability"),
        ("_random_normal", {"dtype": "int32"}, "_random_normal: dtype='int32': expected one of float16"),
        ("_random_randint", {"low": 3, "high": 3}, "_random_randint: low=3, high=3: expected low < high"),
        ("_random_randint", {"low": 0, "high": 2**40}, "within int32"),
        ("_random_randint", {"low": 0, "high": 1, "dtype": "float32"}, "expected int32 or int64"),
        ("_random_randint", {"low": 0}, "missing required parameter 'high'"),
    ],
)
def test_errors(name, params, text):
    with pytest.raises(MXNetError, match=text):
        draw(name, **params)


def test_parameter_arrays_must_agree():
    with pytest.raises(MXNetError, match="_sample_uniform: .*different shapes"):
        draw("_sample_uniform", np.zeros((2, 1), np.float32), np.ones((2, 2), np.float32))
    complete = OPS["_sample_normal"].complete
    assert complete is not None
    assert complete(None, {"mu": (2, 3)})["sigma"] == (2, 3)


def test_randint():
    for dtype in (None, "int32", "int64"):
        x = draw("_random_randint", low=-2, high=3, shape=2000, dtype=dtype)
        assert x.dtype == np.dtype(dtype or "int32")
        assert set(x.tolist()) == {-2, -1, 0, 1, 2}
    assert draw("_random_randint", low=2**40, high=2**40 + 1, dtype="int64") == [2**40]


P = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]], np.float32)


@pytest.mark.slow
def test_multinomial_frequencies_and_shapes():
    x = draw("_sample_multinomial", P * 3, shape=N)
    assert (x.shape, x.dtype) == ((2, N), np.int32)
    seen = np.stack([np.bincount(r, minlength=3) / N for r in x])
    np.testing.assert_allclose(seen, P, atol=0.02)
    assert seen[1, 2] == 0
    assert draw("_sample_multinomial", P).shape == (2,)
    assert draw("_sample_multinomial", P[0]).shape == (1,)
    assert draw("_sample_multinomial", P[0], shape=(2, 3), dtype="float32").shape == (2, 3)
    assert draw("_sample_multinomial", P, shape=(4, 5), dtype="uint8").shape == (2, 4, 5)


def test_multinomial_probabilities_carry_gradients():
    call = OPS["_sample_multinomial"].call(shape=3, get_prob=True)
    with jax.enable_x64(True):
        (index, logs), pull = jax.vjp(lambda p: call.apply([p], KEY), jnp.asarray(P))
        head = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
        (got,) = pull((np.zeros(index.shape, jax.dtypes.float0), jnp.asarray(head)))
    index = np.asarray(index)
    np.testing.assert_allclose(logs, np.log(np.take_along_axis(P, index, 1)), rtol=1e-6)
    want = np.zeros_like(P)
    for row in range(2):
        np.add.at(want[row], index[row], head[row] / P[row, index[row]])
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_parameters_get_no_gradient():
    call = OPS["_sample_normal"].call()
    with jax.enable_x64(True):
        out, pull = jax.vjp(lambda m, s: call.apply([m, s], KEY)[0], jnp.ones(3), jnp.ones(3))
        for g in pull(jnp.ones_like(out)):
            np.testing.assert_array_equal(g, np.zeros(3))


def test_shuffle_permutes_the_first_axis():
    x = np.arange(60.0, dtype=np.float32).reshape(20, 3)
    y = draw("_shuffle", x)
    assert (y != x).any()
    np.testing.assert_array_equal(y[np.argsort(y[:, 0])], x)
    call = OPS["_shuffle"].call()
    with jax.enable_x64(True):
        _, pull = jax.vjp(lambda v: call.apply([v], KEY)[0], jnp.asarray(x))
        np.testing.assert_array_equal(pull(jnp.asarray(y))[0], x)
