"""`mx.np.random` and `mx.npx.random`: shapes and dtypes as MXNet's, moments, gradients, errors."""

from __future__ import annotations

from typing import Any

import pytest

import dualmx as mx
import numpy as onp

np, npx = mx.np, mx.npx
R: Any = mx.np.random

# name: parameters, mean, variance
DISTRIBUTIONS: dict[str, tuple[tuple[float, ...], float, float]] = {
    "uniform": ((1.0, 3.0), 2.0, 4 / 12),
    "normal": ((1.0, 2.0), 1.0, 4.0),
    "lognormal": ((0.0, 0.5), onp.exp(0.125), (onp.exp(0.25) - 1) * onp.exp(0.25)),
    "logistic": ((1.0, 0.5), 1.0, 0.25 * onp.pi**2 / 3),
    "gumbel": ((1.0, 0.5), 1 + 0.5 * 0.5772157, 0.25 * onp.pi**2 / 6),
    "exponential": ((2.0,), 2.0, 4.0),
    "rayleigh": ((2.0,), 2 * onp.sqrt(onp.pi / 2), (4 - onp.pi) / 2 * 4),
    "weibull": ((2.0,), 0.8862269, 1 - 0.7853982),
    "pareto": ((5.0,), 0.25, 5 / (16 * 3)),
    "power": ((3.0,), 0.75, 3 / (16 * 5)),
    "gamma": ((3.0, 2.0), 6.0, 12.0),
    "chisquare": ((4.0,), 4.0, 8.0),
    "beta": ((2.0, 3.0), 0.4, 0.04),
}


@pytest.mark.slow
def test_moments() -> None:
    mx.random.seed(11)
    drawn = {name: getattr(R, name)(*params, size=(20000,)) for name, (params, _, _) in DISTRIBUTIONS.items()}
    for name, (_, mean, variance) in DISTRIBUTIONS.items():
        x = drawn[name].asnumpy().astype("float64")
        assert abs(x.mean() - mean) < 5 * onp.sqrt(variance / x.size), name
        assert abs(x.var() / variance - 1) < 0.25, name


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_shapes_and_types(name: str) -> None:
    draw, (params, _, _) = getattr(R, name), DISTRIBUTIONS[name]
    arrays = np.array([1.0, 2.0])
    for made, shape in (
        (draw(*params), ()),
        (draw(*params, size=3), (3,)),
        (draw(*params, size=(0, 2)), (0, 2)),
        (draw(arrays, *params[1:]), (2,)),
        (draw(arrays, *params[1:], size=(4, 2)), (4, 2)),
        (draw(np.ones((3, 1)), *[arrays for _ in params[1:]]), (3, 2) if params[1:] else (3, 1)),
    ):
        assert isinstance(made, np.ndarray) and made.shape == shape and made.dtype == onp.float32
    with pytest.raises(mx.MXNetError, match="broadcast"):
        draw(arrays, *params[1:], size=(4, 3))


@pytest.mark.parametrize("name", ["uniform", "normal", "lognormal", "gamma", "chisquare", "beta"])
def test_dtype(name: str) -> None:
    for dtype in ("float16", "float64"):
        assert getattr(R, name)(*DISTRIBUTIONS[name][0], size=2, dtype=dtype).dtype == dtype
    with pytest.raises(mx.MXNetError, match="float16, float32 or float64"):
        getattr(R, name)(*DISTRIBUTIONS[name][0], size=2, dtype="int32")


def test_seeds_and_out() -> None:
    npx.random.seed(3)
    first = R.normal(size=4).asnumpy()
    mx.random.seed(3)
    into = np.zeros(4)
    assert R.normal(size=4, out=into) is into
    onp.testing.assert_array_equal(first, into.asnumpy())
    assert (R.normal(size=4).asnumpy() != first).all()


def test_integers() -> None:
    x = R.randint(2, 5, size=(50,))
    assert x.dtype == onp.int64 and set(x.asnumpy().tolist()) == {2, 3, 4}
    assert R.randint(3).shape == () and R.randint(5, size=2, dtype="int32").dtype == onp.int32
    assert int(R.randint(2**40, 2**40 + 1, size=(1,))[0]) == 2**40
    assert R.rand(2, 3).shape == (2, 3) and R.rand().shape == () and R.randn(2, dtype="float64").dtype == onp.float64


def test_choices() -> None:
    assert sorted(R.choice(5, 5, replace=False).asnumpy().tolist()) == [0, 1, 2, 3, 4]
    assert R.choice(5).shape == () and R.choice(5, (2, 3)).dtype == onp.int64
    assert set(R.choice(3, 20, p=np.array([0.0, 0.5, 0.5])).asnumpy().tolist()) <= {1, 2}
    assert R.choice(np.array([7.0, 8.0]), 4).dtype == onp.float32
    assert R.choice(np.ones((2, 3)), 4).shape == (4, 3)
    x = np.arange(6).reshape(3, 2)
    R.shuffle(x)
    assert sorted(map(tuple, x.asnumpy().tolist())) == [(0, 1), (2, 3), (4, 5)]
    assert sorted(R.permutation(4).asnumpy().tolist()) == [0, 1, 2, 3]


def test_counts_and_vectors() -> None:
    x = R.multinomial(10, [0.2, 0.8], size=(2, 3))
    assert x.shape == (2, 3, 2) and x.dtype == onp.int64 and (x.sum(axis=-1).asnumpy() == 10).all()
    assert R.multinomial(3, np.array([1.0, 0.0])).asnumpy().tolist() == [3, 0]
    cov = np.array([[2.0, 0.6], [0.6, 1.0]])
    drawn = R.multivariate_normal(np.array([1.0, -1.0]), cov, size=20000).asnumpy()
    onp.testing.assert_allclose(drawn.mean(0), [1, -1], atol=0.05)
    onp.testing.assert_allclose(onp.cov(drawn.T), cov.asnumpy(), atol=0.1)
    assert R.multivariate_normal(np.zeros((4, 2)), np.eye(2), size=3).shape == (3, 4, 2)


def test_npx() -> None:
    assert npx.random.bernoulli(prob=0.5, size=(3,), dtype="int32").dtype == onp.int32
    assert npx.random.bernoulli(logit=np.array([-100.0, 100.0])).asnumpy().tolist() == [0.0, 1.0]
    assert npx.random.uniform_n(np.zeros(2), np.ones(2), batch_shape=(3,)).shape == (3, 2)
    assert npx.random.normal_n(0.0, np.ones(2), batch_shape=3).shape == (3, 2)
    assert npx.random.normal_n().shape == ()


def test_gradients_of_parameters() -> None:
    loc, scale = np.array([1.0, 2.0]), np.array([0.5, 1.0])
    loc.attach_grad()
    scale.attach_grad()
    with mx.autograd.record():
        x = R.normal(loc, scale, size=(3, 2))
    x.backward()
    onp.testing.assert_allclose(loc.grad.asnumpy(), [3, 3])
    onp.testing.assert_allclose(scale.grad.asnumpy(), ((x - loc) / scale).sum(axis=0).asnumpy(), rtol=1e-4)
    with mx.autograd.record():
        y = R.gamma(loc, scale)
    y.backward()
    onp.testing.assert_allclose(scale.grad.asnumpy(), (y / scale).asnumpy(), rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: R.normal(0, -1), "scale=-1"),
        (lambda: R.gamma(0.0), "shape=0.0"),
        (lambda: R.exponential(-1.0), "scale=-1"),
        (lambda: R.uniform(size=(-1,)), "size"),
        (lambda: R.uniform(size="a"), "size='a'"),
        (lambda: R.randint(5, 2), "low=5, high=2"),
        (lambda: R.randint(5, dtype="int8"), "int8"),
        (lambda: R.choice(3, 4, replace=False), "3 elements"),
        (lambda: R.choice(3, 4, p=np.ones(2)), r"expected \(3,\)"),
        (lambda: R.choice([1, 2]), "list"),
        (lambda: R.multinomial(10, [0.9, 0.8]), "more than 1"),
        (lambda: R.multinomial(10, onp.ones(2)), "numpy.ndarray"),
        (lambda: R.multivariate_normal(np.zeros(2), np.eye(3)), r"\(\.\.\., d, d\)"),
        (lambda: npx.random.bernoulli(), "expected one of them"),
        (lambda: npx.random.bernoulli(prob=2.0), "prob=2.0"),
    ],
)
def test_errors(call: Any, says: str) -> None:
    with pytest.raises(mx.MXNetError, match=says):
        call()
