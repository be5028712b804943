"""The public helpers for tests, and the small rooms util, runtime and log."""

import logging
import os

import numpy as np
import pytest

import dualmx as mx
from dualmx import gluon, nd, sym
from dualmx import test_utils as t

ONES = np.ones((2, 3), "float32")


def test_tolerances_by_type():
    assert t.default_rtols()[np.dtype("float16")] == 1e-2 and t.default_atols()[np.dtype("float32")] == 1e-3
    assert t.default_rtols()[np.dtype("int32")] == 0 and t.default_numeric_eps()[np.dtype("float32")] == 2**-9
    assert t.get_tols(ONES, ONES.astype("float16"), None, None) == (1e-2, 1e-1)
    assert t.get_tols(ONES, ONES, 0.5, {"float32": 0.25}) == (0.5, 0.25)
    assert t.get_tolerance(ONES, None, t.default_rtols()) == 1e-4
    assert (t.get_rtol(), t.get_atol(), t.get_etol()) == (1e-5, 1e-20, 0.0)
    assert t.get_rtol(3.0) == 3.0 and t.effective_dtype(nd.ones((1,), dtype="int8")) == np.int8


def test_almost_equal():
    a = np.array([1.0, 2.0, 3.0])
    assert t.almost_equal(a, a + 1e-9) and not t.almost_equal(a, a + 1e-3)
    assert t.almost_equal(nd.array(a), a.astype("float32") + 1e-4)
    nan = np.array([1.0, np.nan])
    assert not t.almost_equal(nan, nan) and t.almost_equal(nan, nan, equal_nan=True)
    assert t.almost_equal(ONES, np.ones((3,), "float32")) and not t.almost_equal(ONES, ONES[0], use_broadcast=False)
    assert t.same(nd.array(a), a.astype("float32")) and not t.same(a, a[:2])
    brain = nd.array(a, dtype="bfloat16")
    t.assert_almost_equal(brain, a)


def test_assert_almost_equal_says_where():
    a, b = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.1, 3.0])
    with pytest.raises(AssertionError) as e:
        t.assert_almost_equal(a, b, names=("got", "want"))
    text = str(e.value)
    # The error that MXNet reports for the same arrays.
    assert "Error 4761.904762 exceeds tolerance rtol=1.000000e-05, atol=1.000000e-20 (mismatch 33.333333%)" in text
    assert "at (1,): got=2.00000000, want=2.10000000" in text
    t.assert_almost_equal(a, b, rtol=0.1)
    t.assert_almost_equal_with_err(a, b, etol=0.4)
    with pytest.raises(AssertionError, match="allowed 10"):
        t.assert_almost_equal_with_err(a, b, etol=0.1)
    t.assert_almost_equal_ignore_nan(np.array([1, np.nan]), np.array([1, 5.0]))
    with pytest.raises(AssertionError, match="Items are not equal"):
        t.assert_allclose(a, b)
    with pytest.raises(AssertionError, match="shapes differ"):
        t.assert_almost_equal(ONES, ONES[0], use_broadcast=False)
    with pytest.raises(AssertionError, match="inf"):
        t.assert_almost_equal(np.array([np.nan]), np.array([1.0]))


def test_assert_exception():
    t.assert_exception(int, ValueError, "x")
    with pytest.raises(AssertionError, match="did not raise ValueError"):
        t.assert_exception(int, ValueError, "3")


def test_random_arrays_and_shapes():
    assert t.rand_ndarray((3, 4)).shape == (3, 4) and t.rand_ndarray((2,), dtype="float64").dtype == np.float64
    assert t.rand_ndarray((50,), modifier_func=abs).asnumpy().min() >= 0
    for _ in range(20):
        shape = t.rand_shape_nd(4, dim=3)
        assert len(shape) == 4 and all(1 <= n <= 3 for n in shape)
    assert len(t.rand_shape_2d()) == 2 and len(t.rand_shape_3d(2, 2, 2)) == 3
    x, y = t.rand_coord_2d(0, 3, 5, 7)
    assert 0 <= x < 3 and 5 <= y < 7
    assert t.random_arrays((2, 2)).dtype == np.float32 and t.random_arrays(()).shape == ()
    assert [a.shape for a in t.random_arrays((2,), (3,))] == [(2,), (3,)]
    (u,) = t.random_uniform_arrays((100,), low=2, high=3)
    assert 2 <= u.min() <= u.max() < 3
    assert sorted(t.random_sample([3, 1, 2], 3)) == [1, 2, 3]
    assert t.create_2d_tensor(3, 2).asnumpy().tolist() == [[0, 0], [1, 1], [2, 2]]
    assert t.create_vector(3).asnumpy().tolist() == [0, 1, 2]
    with pytest.raises(mx.MXNetError, match="stype='coo'"):
        t.rand_ndarray((2, 2), "coo")


def test_contexts():
    assert t.default_context() == mx.cpu() and t.default_dtype() is np.float32
    with mx.cpu(1):
        assert t.default_context() == mx.cpu(1)
    assert list(t.list_gpus()) == list(range(mx.num_gpus()))


def test_small_tools():
    a = np.arange(6.0).reshape(2, 3)
    assert t.np_reduce(a, (0, 1), True, np.sum).tolist() == [[15.0]]
    assert t.np_reduce(a, 1, False, np.max).tolist() == [2.0, 5.0]
    assert t.np_reduce(a, None, False, np.sum) == 15.0
    assert t.collapse_sum_like(a, (3,)).tolist() == [3.0, 5.0, 7.0] and t.collapse_sum_like(a, (2, 1)).shape == (2, 1)
    assert t.assign_each(a, lambda v: v * 2).tolist() == (a * 2).tolist()
    assert t.assign_each2(a, a, lambda u, v: u + v).tolist() == (a * 2).tolist()
    x = nd.array(a)
    assert t.same_array(x, x[:]) and not t.same_array(x, x.copy()) and x.asnumpy().tolist() == a.tolist()
    t.compare_ndarray_tuple((x, None, (x,)), (x.copy(), None, (x,)))
    with pytest.raises(AssertionError, match="Items are not equal"):
        t.compare_ndarray_tuple((x,), (x + 1,))
    with t.environment("DUALMX_TEST_ENV", "7"), t.environment({"DUALMX_TEST_ENV2": None}):
        assert os.environ["DUALMX_TEST_ENV"] == "7"
    assert "DUALMX_TEST_ENV" not in os.environ


def test_retry():
    tries = []

    @t.retry(3)
    def sometimes():
        tries.append(1)
        assert len(tries) == 3

    sometimes()
    assert len(tries) == 3
    with pytest.raises(AssertionError):
        t.retry(2)(_never)()


def _never():
    raise AssertionError


def test_dummy_iter():
    it = t.DummyIter(mx.io.NDArrayIter(nd.array([[1], [2]]), batch_size=1))
    assert [next(it).data[0].asscalar() for _ in range(3)] == [1, 1, 1]


def product():
    return sym.var("a") * sym.var("b")


def test_simple_forward():
    assert t.simple_forward(product(), a=ONES * 2, b=ONES * 3).tolist() == (ONES * 6).tolist()
    a = sym.var("a")
    both = t.simple_forward(sym.Group([a * sym.var("b"), a + 1]), a=ONES, b=ONES)
    assert [o[0, 0] for o in both] == [1, 2]


def test_check_symbolic_forward():
    (out,) = t.check_symbolic_forward(product(), [ONES, ONES * 2], [ONES * 2])
    assert out.shape == (2, 3)
    named = product()
    t.check_symbolic_forward(named, {"a": ONES, "b": ONES}, {named.list_outputs()[0]: ONES})
    with pytest.raises(AssertionError, match="FORWARD_"):
        t.check_symbolic_forward(product(), [ONES, ONES], [ONES * 2])
    with pytest.raises(mx.MXNetError, match="expected 2: a, b"):
        t.check_symbolic_forward(product(), [ONES], [ONES])
    with pytest.raises(mx.MXNetError, match="'c'"):
        t.check_symbolic_forward(product(), {"a": ONES, "c": ONES}, [ONES])


@pytest.mark.parametrize("req", ["write", "add", "null", {"a": "add", "b": "write"}])
def test_check_symbolic_backward(req):
    a, b, g = (np.random.randn(2, 3).astype("float32") for _ in range(3))
    found = t.check_symbolic_backward(product(), [a, b], [g], [g * b, g * a], grad_req=req)
    assert set(found) == {"a", "b"}
    if req == "write":
        with pytest.raises(AssertionError, match="BACKWARD_a"):
            t.check_symbolic_backward(product(), [a, b], [g], {"a": g * b + 1})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_check_numeric_gradient(dtype):
    x = {"a": np.random.uniform(0.5, 1, (2, 3)), "b": np.random.uniform(0.5, 1, (2, 3))}
    loose = {"rtol": 1e-2, "atol": 1e-2} if dtype == "float32" else {"rtol": 1e-4, "atol": 1e-6}
    t.check_numeric_gradient(sym.tanh(product()), x, dtype=dtype, **loose)
    a = sym.var("a")
    t.check_numeric_gradient(sym.Group([a * sym.var("b"), sym.exp(a)]), x, dtype=dtype, grad_nodes=["a"], **loose)
    wrong = sym.BlockGrad(sym.var("a")) * sym.var("b")
    with pytest.raises(AssertionError, match="NUMERICAL_a"):
        t.check_numeric_gradient(wrong, x, dtype=dtype, **loose)


def test_check_numeric_gradient_with_states():
    net = sym.BatchNorm(sym.var("data"), name="bn", fix_gamma=False)
    data = {"data": np.random.randn(8, 3), "bn_gamma": np.ones(3), "bn_beta": np.zeros(3)}
    states = {"bn_moving_mean": np.zeros(3), "bn_moving_var": np.ones(3)}
    t.check_numeric_gradient(net, data, states, dtype="float64", rtol=1e-3, atol=1e-4)


def test_check_consistency():
    net = sym.FullyConnected(sym.var("data"), num_hidden=4, name="fc")
    runs = [
        {"ctx": mx.cpu(0), "data": (2, 3), "type_dict": {"data": np.float64}},
        {"ctx": mx.cpu(1), "data": (2, 3), "type_dict": {"data": np.float32}},
    ]
    truth = t.check_consistency(net, runs)
    assert set(truth) == {"fc_output", "data_grad", "fc_weight_grad", "fc_bias_grad"}
    assert truth["fc_output"].dtype == np.float64
    with pytest.raises(AssertionError, match="truth"):
        t.check_consistency(net, runs, grad_req="null", ground_truth={"fc_output": truth["fc_output"] + 1})


def test_check_gluon_hybridize_consistency():
    def build():
        net = gluon.nn.HybridSequential()
        net.add(gluon.nn.Dense(4, activation="tanh"), gluon.nn.BatchNorm(), gluon.nn.Dense(2))
        return net

    t.check_gluon_hybridize_consistency(build, [nd.array(np.random.randn(4, 3))])
    t.check_gluon_hybridize_consistency(
        lambda: gluon.nn.HybridLambda("tanh"), [nd.array(ONES)], numpy_func=np.tanh, test_grad=False
    )


def test_check_speed_and_structure():
    assert t.check_speed(product(), {"a": ONES, "b": ONES}, N=2) > 0
    assert t.check_speed(product(), N=2, typ="forward", a=(2, 3), b=(2, 3)) > 0
    assert t.same_symbol_structure(product(), sym.var("u") * sym.var("v"))
    assert not t.same_symbol_structure(product(), sym.var("u") + sym.var("v"))


def test_generators():
    mx.random.seed(7)
    n = 20_000
    assert t.mean_check(lambda k: nd.random.normal(2, 3, shape=(k,)), 2, 3, n)
    assert not t.mean_check(lambda k: nd.random.normal(2, 3, shape=(k,)), 3, 3, n)
    assert t.var_check(lambda k: nd.random.normal(2, 3, shape=(k,)), 3, n)
    buckets, probs = t.gen_buckets_probs_with_ppf(lambda q: q * 2 - 1, 5)
    t.verify_generator(lambda k: nd.random.uniform(-1, 1, shape=(k,)), buckets, probs, n, nrepeat=3)
    t.verify_generator(lambda k: nd.random.randint(0, 4, shape=(k,)), [0, 1, 2, 3], [0.25] * 4, n, nrepeat=3)
    with pytest.raises(AssertionError, match="0 of 2"):
        t.verify_generator(lambda k: nd.random.uniform(-1, 0.5, shape=(k,)), buckets, probs, n, nrepeat=2)


def test_numpy_semantics_are_switched_and_scoped():
    util = mx.util

    def found() -> tuple[bool, bool]:
        return util.is_np_shape(), util.is_np_array()

    try:
        for shape, array in ((True, True), (True, False), (False, False)):
            util.set_np(shape, array)
            assert found() == (shape, array)
        util.set_np()
        assert found() == (True, True)
        with util.np_shape(False), util.np_array(False):
            assert found() == (False, False)
        assert found() == (True, True)
        with pytest.raises(mx.MXNetError, match="shape=False, array=True"):
            util.set_np(shape=False)
        assert found() == (True, True)
        util.reset_np()
        assert found() == (False, False)
        assert not util.set_np_shape(True) and util.set_np_shape(False)
    finally:
        util.reset_np()
    for decorate, want in (
        (util.use_np, (True, True)),
        (util.use_np_shape, (True, False)),
        (util.use_np_array, (False, True)),
    ):
        assert decorate(found)() == want
        assert found() == (False, False)


def test_util():
    util = mx.util
    assert not util.is_np_array() and not util.is_np_shape()
    util.setenv("DUALMX_TEST_UTIL", "3")
    assert util.getenv("DUALMX_TEST_UTIL") == "3"
    util.setenv("DUALMX_TEST_UTIL", None)
    assert util.getenv("DUALMX_TEST_UTIL") is None
    assert util.get_gpu_count() == mx.num_gpus()
    with pytest.raises(mx.MXNetError, match=r"gpu\(63\)"):
        util.get_gpu_memory(63)
    with pytest.raises(mx.MXNetError, match="expected a GPU"):
        util.get_cuda_compute_capability(mx.cpu())

    @util.set_module("somewhere")
    def f():
        pass

    assert f.__module__ == "somewhere"


def test_runtime():
    features = mx.runtime.Features()
    assert features.is_enabled("jax") and features.is_enabled("CPU") and features.is_enabled("OPENCV")
    assert features.is_enabled("CUDA") == (mx.num_gpus() > 0) or features.is_enabled("ROCM")
    assert "✔ JAX" in repr(features) and "✖ CUDNN" in repr(features)
    assert {f.name for f in mx.runtime.feature_list()} == set(features)
    with pytest.raises(RuntimeError, match="'foo' is unknown"):
        features.is_enabled("foo")


def test_log(tmp_path):
    file = str(tmp_path / "x.log")
    logger = mx.log.get_logger("dualmx-test-log", file, level=logging.INFO)
    assert mx.log.get_logger("dualmx-test-log") is logger and len(logger.handlers) == 1
    logger.info("hello %d", 3)
    logger.debug("not shown")
    with open(file, encoding="utf-8") as f:
        text = f.read()
    assert text.startswith("I") and f"{os.getpid()} {__file__}:test_log:" in text and text.endswith("] hello 3\n")
    assert mx.log.get_logger() is logging.getLogger()
    with pytest.warns(DeprecationWarning):
        mx.log.getLogger("dualmx-test-log")
    for h in logger.handlers:
        h.close()
