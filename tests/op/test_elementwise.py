"""Unary, binary and scalar operators: recorded MXNet results, NumPy and SciPy, numeric derivatives, special points."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import dualmx as mx
from dualmx.core.errors import MXNetError
from dualmx.op.registry import OPS
from tests.goldens.elementwise_cases import RANGES, Case, binary, unary, with_scalar
from tests.op.replay import apply, check_numeric, check_recorded, defined_in, gradients, run

CASES = [*unary(), *binary(), *with_scalar()]
FIRST = {c.op: c for c in reversed(CASES)}  # one case of each operator is enough for second derivatives
INF, NAN = np.inf, np.nan


def named(cases: list[Case]) -> pytest.MarkDecorator:
    """Parametrise over cases, which show up by name."""
    return pytest.mark.parametrize("case", cases, ids=lambda c: c.name)


def test_every_operator_has_a_case():
    elsewhere = {"Activation", "LeakyReLU", "_contrib_sharding_constraint"}
    assert not set(defined_in("elementwise", "binary")) - {c.op for c in CASES} - elsewhere


NUMPY_PAIRS = {
    "arctan2": np.arctan2,
    "copysign": np.copysign,
    "floor_divide": np.floor_divide,
    "ldexp": lambda x, y: x * 2.0**y,
}


@pytest.mark.parametrize("scalar", [1.5, -2.0])
@pytest.mark.parametrize("name", NUMPY_PAIRS)
def test_scalar_forms_of_numpy_only_functions(name, scalar):
    x, want = np.array([[-1.7, 0.4, 2.5], [0.3, -2.2, 1.1]]), NUMPY_PAIRS[name]
    np.testing.assert_allclose(run(f"_npi_{name}_scalar", x, scalar=scalar), want(x, scalar), rtol=1e-12)
    np.testing.assert_allclose(run(f"_npi_r{name}_scalar", x, scalar=scalar), want(scalar, x), rtol=1e-12)


@named([c for c in CASES if c.recorded])
def test_agrees_with_mxnet(case):
    check_recorded(case)


@named([c for c in CASES if c.numeric])
def test_derivatives_agree_with_differences(case):
    check_numeric(case, order=2 if case is FIRST[case.op] else 1)


NUMPY = {
    **{n: getattr(np, n) for n in ("abs", "sign", "negative", "square", "trunc", "ceil", "floor", "sqrt", "cbrt")},
    **{n: getattr(np, n) for n in ("exp", "expm1", "log", "log10", "log2", "log1p", "sin", "cos", "tan", "arcsin")},
    **{n: getattr(np, n) for n in ("arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh")},
    **{n: getattr(np, n) for n in ("degrees", "radians", "reciprocal", "zeros_like", "ones_like", "logical_not")},
    **{n: getattr(scipy.special, n) for n in ("erf", "erfinv", "gamma", "gammaln")},
    "fix": np.trunc,
    "relu": lambda x: np.maximum(x, 0),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "sigmoid": scipy.special.expit,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "round": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
    "rint": lambda x: np.ceil(x - 0.5),
    **dict.fromkeys(("_copy", "_copyto", "_CrossDeviceCopy", "BlockGrad", "make_loss"), lambda x: x),
}


@pytest.mark.parametrize("name", sorted(NUMPY))
def test_agrees_with_numpy_in_float64(name):
    low, high = RANGES.get(name, (-2, 2))
    x = np.linspace(low, high, 37)
    np.testing.assert_allclose(run(name, x), NUMPY[name](x).astype(np.float64), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", sorted(RANGES))
def test_half_precision_keeps_its_dtype(name, dtype):
    low, high = RANGES[name]
    x = np.linspace(low * 0.9, high * 0.9, 11).astype(jnp.dtype(dtype))
    if low > 0:
        x = np.linspace(low, high, 11).astype(jnp.dtype(dtype))
    got, want = run(name, x), run(name, x.astype(np.float32))
    assert got.dtype == jnp.dtype(dtype)
    np.testing.assert_allclose(got.astype(np.float32), want, *((2e-3, 1e-3) if dtype == "float16" else (3e-2, 1e-2)))


@pytest.mark.parametrize(
    ("name", "x", "y", "slope"),
    [
        ("round", [0.5, -0.5, 2.5, -1.5], [1, -1, 3, -2], 0),
        ("rint", [1.5, 2.5, -1.5, 0.5, -0.5, 8388609.0, 0.49999997], [1, 2, -2, 0, -1, 8388609.0, 0], 0),
        ("fix", [1.7, -1.7], [1, -1], 0),
        ("relu", [0.0, -1.0], [0, 0], 0),
        ("abs", [0.0, -0.0], [0, 0], 0),
        ("sign", [0.0, NAN, INF], [0, 0, 1], 0),
        ("sqrt", [0.0], [0], INF),
        ("cbrt", [0.0], [0], INF),
        ("log", [0.0], [-INF], INF),
        ("rsqrt", [0.0], [INF], -INF),
        ("gamma", [0.0, -2.0], [INF, NAN], None),
        ("arctanh", [1.0, -1.0], [INF, -INF], INF),
        ("erfinv", [1.0, -1.0, 2.0], [INF, -INF, NAN], None),
        ("logical_not", [0.0, 2.0, NAN], [1, 0, 0], 0),
    ],
)
def test_special_points(name, x, y, slope):
    x = np.array(x, np.float32)
    np.testing.assert_array_equal(run(name, x), np.array(y, np.float32))
    if slope is not None:
        np.testing.assert_array_equal(gradients(name, x)[0], np.full_like(x, slope))


def test_clip_keeps_the_gradient_at_its_bounds():
    x = np.array([-2, -1, 0, 0.5, 1], np.float32)
    np.testing.assert_array_equal(gradients("clip", x, a_min=-1, a_max=0.5)[0], [0, 1, 1, 1, 0])
    np.testing.assert_array_equal(run("clip", np.array([-9, 1, 9]), a_min=-INF, a_max=2.9), [-9, 1, 2])
    assert np.isnan(run("clip", np.array([NAN]), a_min=0, a_max=1))


def test_hard_sigmoid_has_no_gradient_at_its_ends():
    x = np.array([-2.5, -1, 0, 2.5, 3], np.float32)
    np.testing.assert_allclose(gradients("hard_sigmoid", x)[0], [0, 0.2, 0.2, 0, 0])
    with pytest.raises(MXNetError, match=r"hard_sigmoid: data is int32.*astype"):
        run("hard_sigmoid", np.array([1], np.int32))


def test_ties_of_maximum_and_minimum():
    x = np.array([0, 1, 2], np.float32)
    for name in ("_maximum", "broadcast_maximum", "_minimum", "broadcast_minimum"):
        left, right = gradients(name, x, x)
        np.testing.assert_array_equal([left, right], [[1, 1, 1], [0, 0, 0]])
    np.testing.assert_array_equal(gradients("_maximum_scalar", x, scalar=1)[0], [0, 1, 1])
    np.testing.assert_array_equal(gradients("_minimum_scalar", x, scalar=1)[0], [1, 1, 0])
    np.testing.assert_array_equal(run("_maximum", np.array([NAN, 1]), np.array([1, NAN])), [NAN, NAN])


@pytest.mark.parametrize("head", [1.0, 3.0])
def test_make_loss_ignores_the_head_gradient_and_others_do_not(head):
    x = np.array([1.0, 2.0], np.float32)
    np.testing.assert_array_equal(gradients("make_loss", x, head=head)[0], [1, 1])
    np.testing.assert_array_equal(gradients("BlockGrad", x, head=head)[0], [0, 0])
    for name in ("_contrib_round_ste", "_contrib_sign_ste", "_copy"):
        np.testing.assert_array_equal(gradients(name, x, head=head)[0], [head, head])
    np.testing.assert_array_equal(gradients("_contrib_gradientmultiplier", x, head=head, scalar=-2)[0], [-2 * head] * 2)


def test_division_and_modulo():
    def ints(*v):
        return np.array(v, np.int32)

    np.testing.assert_array_equal(run("broadcast_div", ints(-7, 7, -7), ints(2, -2, -2)), [-3, -3, 3])
    np.testing.assert_array_equal(run("broadcast_mod", ints(-7, 7, 5, -6), ints(2, -2, 0, 3)), [1, -1, 0, 0])
    np.testing.assert_array_equal(run("_mod_scalar", ints(-5, 5), scalar=3), [1, 2])
    np.testing.assert_array_equal(run("_rmod_scalar", ints(2, -2, 0), scalar=-7), [1, -1, 0])
    a = np.array([-7, 7, 5, -5.5, 3, -7, 7, 7, INF], np.float32)
    b = np.array([2, -2, 0, 3, 3, INF, -INF, INF, 3], np.float32)
    np.testing.assert_array_equal(run("broadcast_mod", a, b), [1, -1, 0, 0.5, 0, INF, -INF, 7, NAN])
    np.testing.assert_array_equal(run("_mod_scalar", np.array([250], np.uint8), scalar=7), [5])


@pytest.mark.parametrize(
    ("name", "x", "scalar", "want"),
    [
        ("_mul_scalar", [3, -3], 2.5, [6, -6]),
        ("_plus_scalar", [1, 2], -1.9, [0, 1]),
        ("_rminus_scalar", [1, 2], 2.7, [1, 0]),
        ("_div_scalar", [-7, 7, 5], 2.0, [-3, 3, 2]),
        ("_power_scalar", [1, 2, 3], 2.5, [1, 4, 9]),
        ("_power_scalar", [2, 3], -1, [0, 0]),
        ("_rpower_scalar", [1, 2, 3], 2.5, [2, 4, 8]),
        ("_maximum_scalar", [1, 2, 3], 2.7, [2, 2, 3]),
        ("_equal_scalar", [1, 2, 3], 2.7, [0, 1, 0]),
        ("_greater_scalar", [1, 2, 3], 2.7, [0, 0, 1]),
    ],
)
def test_the_scalar_is_converted_before_the_operation(name, x, scalar, want):
    got = run(name, np.array(x, np.int32), scalar=scalar)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, want)


def test_scalars_and_dtypes():
    small = np.array([250], np.uint8)
    for name, scalar, want in (("_plus_scalar", 10, 4), ("_plus_scalar", 300, 38), ("_mul_scalar", -1, 6)):
        got = run(name, small, scalar=scalar)
        assert (got.dtype, got[0]) == (np.uint8, want)
    assert run("_plus_scalar", np.array([1.0], np.float16), scalar=1.5).dtype == np.float16
    exact = run("_plus_scalar", np.array([1], np.int32), scalar=1.5, is_int=False)
    assert (exact.dtype, exact[0]) == (np.float64, 2.5)
    assert run("_mul_scalar", np.array([True, False]), scalar=2).dtype == np.int64
    with pytest.raises(MXNetError, match=r"_plus_scalar: scalar=inf: no int32"):
        run("_plus_scalar", np.array([1], np.int32), scalar=INF)


FLOATING_SCALARS = sorted(
    o.name for o in set(OPS.values())
    if o.runtime_form and o.name.endswith("_scalar") and "bitwise" not in o.name and "lcm" not in o.name
)  # fmt: skip


@pytest.mark.parametrize("name", FLOATING_SCALARS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_runtime_twins_compute_the_same(name, dtype):
    x = np.linspace(-2, 2, 9).astype(jnp.dtype(dtype))
    fixed = OPS[name].call(scalar=0.5)
    free, numbers = OPS[name].runtime_form({**fixed.params, "scalar": 0.1}, x.shape, x.dtype)
    assert free.n_runtime == 1 and numbers == (0.1,)
    assert OPS[name].runtime_form({**fixed.params, "scalar": 0.7}, x.shape, x.dtype)[0] is free
    (want,) = apply(fixed, x)
    with jax.enable_x64(True):
        (got,) = free.apply([jnp.asarray(x)], None, [jnp.float32(0.5)])
    assert got.dtype == want.dtype
    if "power" in name:  # whole exponents are multiplied out where they are known
        np.testing.assert_allclose(np.asarray(got, "f4"), want.astype("f4"), {4: 1e-6, 2: 1e-2}[x.dtype.itemsize])
    else:
        np.testing.assert_array_equal(np.asarray(got), want)


def test_integers_stay_integers():
    x = np.array([4, 0, 2], np.int32)
    for name, want in (("sqrt", [2, 0, 1]), ("exp", [54, 1, 7]), ("round", [4, 0, 2]), ("square", [16, 0, 4])):
        got = run(name, x)
        assert got.dtype == np.int32
        np.testing.assert_array_equal(got, want)
    assert run("broadcast_equal", x, x).dtype == np.int32
    np.testing.assert_array_equal(run("_power", np.array([2, -2]), np.array([3, 3])), [8, -8])
    np.testing.assert_array_equal(run("broadcast_hypot", np.array([3, 1]), np.array([4, 1])), [5, 1])
    assert run("negative", np.array([True])).dtype == np.bool_
    # Computed in double precision: erf(4) is a bit less than 1, whatever the type of the 4.
    np.testing.assert_array_equal(run("erf", np.array([4, 0], np.int8)), [0, 0])
    np.testing.assert_array_equal(run("gamma", np.array([4, 0], np.int64)), [6, -(2**63)])


@pytest.mark.parametrize(
    ("values", "dtype", "want"),
    [
        ([1.7, -1.7], "int32", [1, -1]),
        ([300.0, -1.0], "uint8", [44, 255]),
        ([0.5, 0.0, -1.0], "bool", [True, False, True]),
        ([1.5], "bfloat16", [1.5]),
    ],
)
def test_cast(values, dtype, want):
    got = run("Cast", np.array(values, np.float32), dtype=dtype)
    assert got.dtype == jnp.dtype(dtype)
    np.testing.assert_array_equal(got, np.array(want, got.dtype))


def test_shapes():
    a, b = np.ones((2, 3), np.float32), np.ones((3,), np.float32)
    assert run("broadcast_add", a, b).shape == run("broadcast_add", b, a).shape == (2, 3)
    assert run("broadcast_add", np.ones((2, 1, 3)), np.ones((4, 1))).shape == (2, 4, 3)
    with pytest.raises(MXNetError, match=r"elemwise_add: .*different shapes.*\[2, 3\].*\[3\].*broadcast_"):
        run("elemwise_add", a, b)
    with pytest.raises(MXNetError, match=r"broadcast_add: shapes \[2, 3\] and \[2\] do not broadcast"):
        run("broadcast_add", a, np.ones((2,), np.float32))
    with pytest.raises(MXNetError, match=r"add_n: .*different shapes"):
        run("add_n", a, b)
    with pytest.raises(MXNetError, match="different dtypes"):
        run("broadcast_add", a, b.astype(np.int32))
    with pytest.raises(MXNetError, match="no arithmetic on bool"):
        run("elemwise_add", a > 0, a > 0)


def test_unknown_shapes_are_deduced_from_the_other_input():
    for name in ("elemwise_add", "_maximum", "_equal", "_identity_with_attr_like_rhs"):
        complete = OPS[name].complete
        assert complete is not None
        assert complete(None, {"lhs": (2, 3)}) == {"lhs": (2, 3), "rhs": (2, 3)}
        assert complete(None, {"lhs": (0, 3), "rhs": (2, 0)})["rhs"] == (2, 3)
        assert complete(None, {}) == {}
        with pytest.raises(MXNetError, match=f"{name}: .*different shapes"):
            complete(None, {"lhs": (2, 3), "rhs": (3,)})


def test_amp_multicast_takes_the_widest_or_narrowest():
    arrays = [np.ones(2, np.float32), np.ones(2, np.float16), np.ones(2, np.int32)]
    wide = run("amp_multicast", *arrays, num_outputs=3)
    narrow = run("amp_multicast", *arrays, num_outputs=3, cast_narrow=True)
    assert [x.dtype.name for x in wide] == ["float32", "float32", "int32"]
    assert [x.dtype.name for x in narrow] == ["float16", "float16", "int32"]


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8", "int64", "float16", "float32"])
def test_gamma_of_whole_numbers_is_a_factorial(dtype):
    assert mx.nd.gamma(mx.nd.array([1, 2, 3, 4, 5, 6], dtype=dtype)).asnumpy().tolist() == [1, 1, 2, 6, 24, 120]


@pytest.mark.parametrize("dtype", ["int32", "int64", "int8", "uint8"])
def test_whole_numbers_divided_by_zero_are_as_the_reciprocal_of_zero(dtype):
    x = mx.nd.array([0, 1, 2], dtype=dtype)
    infinite = mx.nd.reciprocal(x).asnumpy()[0]
    least = np.iinfo(dtype).min if dtype in ("int32", "int64") else 0
    assert infinite == least
    for scalar in (2, 3, 4, 0):
        assert (scalar / x).asnumpy().tolist() == [least, scalar, scalar // 2]
    assert (x / 0).asnumpy().tolist() == [least] * 3
    assert (x / mx.nd.array([0, 1, 0], dtype=dtype)).asnumpy().tolist() == [least, 1, least]
