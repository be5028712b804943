"""Products and linear algebra: recorded MXNet results, NumPy on stacks of matrices, numeric derivatives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import MXNetError
from dualmx.op.registry import OPS
from tests.goldens.shape_cases import MATRIX, SPD, Case, ramp
from tests.op.array_replay import check_numeric, check_recorded
from tests.op.replay import apply, defined_in, run

# The gradient of the Cholesky factor is symmetric by definition, not a limit of differences.
OTHER_GRADIENT = {"_linalg_potrf"}


def named(cases: list[Case]) -> pytest.MarkDecorator:
    """Parametrise over cases, which show up by name."""
    return pytest.mark.parametrize("case", cases, ids=lambda c: c.name)


def stack(*shape: int) -> np.ndarray:
    """Random float64 matrices."""
    return np.random.RandomState(3).randn(*shape)


def positive(*shape: int) -> np.ndarray:
    """Random symmetric positive-definite float64 matrices."""
    a = stack(*shape)
    return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])


def test_every_operator_has_a_case():
    assert not set(defined_in("linalg")) - {c.op for c in MATRIX}


@named(MATRIX)
def test_agrees_with_mxnet(case):
    check_recorded(case)


@pytest.mark.slow
@named([c for c in MATRIX if c.smooth and c.op not in OTHER_GRADIENT])
def test_derivatives_agree_with_differences(case):
    check_numeric(case)


@pytest.mark.parametrize("a", [False, True])
@pytest.mark.parametrize("b", [False, True])
def test_dot_contracts_one_axis(a, b):
    x, y = stack(3, 2, 3), stack(3, 4, 3)
    want = np.tensordot(x, y, (0 if a else 2, 2 if b else 0))
    np.testing.assert_allclose(run("dot", x, y, transpose_a=a, transpose_b=b), want)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_are_summed_in_float32(dtype):
    ones = jnp.ones((1, 4096), dtype)
    out = apply(OPS["dot"].call(transpose_b=True), np.asarray(ones), np.asarray(ones))[0]
    assert out.dtype.name == dtype and float(out[0, 0]) == 4096


def test_integer_products():
    x = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(run("dot", x, x.T), x @ x.T)


def test_cholesky_gradient_is_symmetric_and_consistent():
    a, direction = positive(2, 4, 4), stack(2, 4, 4)
    direction = direction + np.swapaxes(direction, -1, -2)
    head = stack(2, 4, 4)
    call = OPS["_linalg_potrf"].call()
    with jax.enable_x64(True):
        grad = np.asarray(jax.grad(lambda x: (call.apply([x])[0] * head).sum())(jnp.asarray(a)))
    np.testing.assert_allclose(grad, np.swapaxes(grad, -1, -2))
    h = 1e-6
    up, down = (np.sum(np.linalg.cholesky(a + s * h * direction) * head) for s in (1, -1))
    np.testing.assert_allclose(np.sum(grad * direction), (up - down) / (2 * h), rtol=1e-6)


@pytest.mark.slow
def test_factorisations_of_stacks():
    a, wide = positive(2, 3, 4, 4), stack(2, 3, 5)
    low = run("_linalg_potrf", a)
    np.testing.assert_allclose(low @ np.swapaxes(low, -1, -2), a)
    np.testing.assert_allclose(run("_linalg_potri", low) @ a, np.broadcast_to(np.eye(4), a.shape), atol=1e-9)
    q, lower = run("_linalg_gelqf", wide)
    np.testing.assert_allclose(lower @ q, wide)
    np.testing.assert_allclose(q @ np.swapaxes(q, -1, -2), np.broadcast_to(np.eye(3), (2, 3, 3)), atol=1e-12)
    u, values = run("_linalg_syevd", a)
    np.testing.assert_allclose(np.swapaxes(u, -1, -2) @ (values[..., None] * u), a, atol=1e-9)
    assert np.all(np.diff(values) >= 0)


def test_numbers_per_matrix():
    a = stack(2, 3, 4, 4)
    np.testing.assert_allclose(run("_linalg_det", a), np.linalg.det(a))
    np.testing.assert_allclose(run("_linalg_inverse", a), np.linalg.inv(a))
    for got, want in zip(run("_linalg_slogdet", a), np.linalg.slogdet(a), strict=True):
        np.testing.assert_allclose(got, want)
    assert run("_linalg_sumlogdiag", SPD).shape == (1,)


@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 2])
@pytest.mark.parametrize("lower", [True, False])
def test_triangles_pack_and_unpack(offset, lower):
    a = ramp(2, 4, 4)
    packed = run("_linalg_extracttrian", a, offset=offset, lower=lower)
    keep_lower = offset < 0 or (offset == 0 and lower)
    want = np.tril(a, offset) if keep_lower else np.triu(a, offset)
    np.testing.assert_array_equal(run("_linalg_maketrian", packed, offset=offset, lower=lower), want)


def test_front_end_names():
    assert OPS["linalg_gemm2"] is OPS["_linalg_gemm2"] and OPS["linalg_inverse"] is OPS["_linalg_inverse"]


def test_a_matrix_that_is_not_positive_definite_is_reported_when_waited_for():
    bad = mx.nd.array([[1, 2], [2, 1]])
    factor, other = mx.nd.linalg.potrf(bad), mx.nd.ones(2) + 1
    after = factor + 1
    for x in (after, factor, after):
        with pytest.raises(MXNetError, match="_linalg_potrf: expected symmetric positive-definite"):
            x.asnumpy()
    np.testing.assert_array_equal(other.asnumpy(), [2, 2])
    mx.nd.linalg.potrf(bad)
    np.testing.assert_array_equal((other + 1).asnumpy(), [3, 3])
    with mx.engine.naive(), pytest.raises(MXNetError, match="_linalg_potrf"):
        mx.nd.linalg.potrf(bad)


@pytest.mark.parametrize(
    "call",
    [
        lambda a: mx.nd.linalg.inverse(mx.nd.array(a)),
        lambda a: mx.nd.linalg.potri(mx.nd.array(a)),
        lambda a: mx.np.linalg.inv(mx.np.array(a)),
        lambda a: mx.np.linalg.solve(mx.np.array(a), mx.np.ones(2)),
    ],
    ids=["inverse", "potri", "inv", "solve"],
)
@pytest.mark.parametrize("value", [0.0, np.nan])
def test_singular_matrices_are_reported_and_numbers_that_are_none_are_not(call, value):
    result = call([[value, 0], [0, 0]])
    if np.isnan(value):
        assert np.isnan(result.asnumpy()).any()
    else:
        with pytest.raises(MXNetError, match="singular"):
            result.asnumpy()


@pytest.mark.parametrize("name", ["potrf", "potri", "inverse", "det", "slogdet", "gelqf", "syevd"])
def test_factorisations_take_single_and_double_precision(name):
    with pytest.raises(MXNetError, match=f"_linalg_{name}: A is float16: expected float32 or float64"):
        getattr(mx.nd.linalg, name)(mx.nd.ones((2, 2), dtype="float16"))


def test_cholesky_factors_may_be_upper_triangular():
    a = mx.nd.array([[4.0, 2.0], [2.0, 3.0]])
    low, up = mx.nd.linalg.potrf(a), mx.nd.linalg.potrf(a, lower=False)
    np.testing.assert_allclose(up.asnumpy(), low.asnumpy().T, rtol=1e-6)
    inverse = np.linalg.inv(a.asnumpy())
    for factor, lower in ((low, True), (up, False)):
        np.testing.assert_allclose(mx.nd.linalg.potri(factor, lower=lower).asnumpy(), inverse, rtol=1e-5)
    a.attach_grad()
    with mx.autograd.record():
        up = mx.nd.linalg.potrf(a, lower=False)
    up.backward(mx.nd.array([[1, 2], [3, 4]]))
    # What MXNet 1.9.1 gives.
    np.testing.assert_allclose(a.grad.asnumpy(), [[0.35355335, -0.20710674], [-0.20710674, 1.4142134]], rtol=1e-5)


def test_eigenvectors_read_one_triangle_and_their_gradient_is_symmetric():
    values = np.array([[4, 1, 0.5], [1, 3, 0.2], [0.5, 0.2, 1]])
    head = mx.nd.array(np.arange(9).reshape(3, 3), dtype="float64")
    found = []
    for above in (0, 9):
        a = mx.nd.array(values + above * np.triu(np.ones((3, 3)), 1), dtype="float64")
        a.attach_grad()
        with mx.autograd.record():
            rows, sizes = mx.nd.linalg.syevd(a)
        mx.autograd.backward([rows, sizes], [head, mx.nd.array([1, 2, 3], dtype="float64")])
        found.append([x.asnumpy() for x in (rows, sizes, a.grad)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, 1e-10)
    want = [[3.21868, -0.08176, 0.38031], [-0.08176, 1.65209, 1.49806], [0.38031, 1.49806, 1.12924]]  # MXNet's
    np.testing.assert_allclose(found[0][2], want, atol=1e-5)


def test_numpy_factorisations_have_the_signs_and_gradients_of_classic_ones():
    a = mx.np.array([[4, 1, 0.5], [1, 3, 0.2], [0.5, 0.2, 1]], dtype="float64")
    rows, sizes = mx.nd.linalg.syevd(a.as_nd_ndarray())
    values, vectors = mx.np.linalg.eigh(a)
    np.testing.assert_allclose(values.asnumpy(), sizes.asnumpy())
    np.testing.assert_allclose(vectors.asnumpy().T, rows.asnumpy(), atol=1e-12)
    a.attach_grad()
    with mx.autograd.record():
        low = mx.np.linalg.cholesky(a)
    low.backward(mx.np.arange(9).reshape(3, 3).astype("float64") + 1)
    want = [[0.0871, 0.35304, 0.59712], [0.35304, 1.44523, 2.2852], [0.59712, 2.2852, 4.65266]]  # MXNet's
    np.testing.assert_allclose(a.grad.asnumpy(), want, atol=1e-5)
