"""Operators of `contrib`: recorded cases, closed forms, bad arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import MXNetError
from tests.goldens.contrib_cases import GROUPS
from tests.goldens.nn_cases import Case
from tests.op.nn_replay import replay

CASES = [case for cases in GROUPS.values() for case in cases]
nd, contrib = mx.nd, mx.nd.contrib


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_matches_record(case: Case):
    replay(case, rtol=1e-4, atol=1e-4)


def test_fourier_transform_and_its_inverse():
    x = np.random.RandomState(0).randn(3, 5).astype(np.float32)
    there = contrib.fft(nd.array(x))
    want = np.fft.fft(x)
    np.testing.assert_allclose(there.asnumpy()[:, ::2], want.real, 1e-5, 1e-5)
    np.testing.assert_allclose(there.asnumpy()[:, 1::2], want.imag, 1e-5, 1e-5)
    np.testing.assert_allclose(contrib.ifft(there).asnumpy() / 5, x, 1e-5, 1e-5)


def test_count_sketch_adds_signed_columns():
    x = nd.array([[1, 2, 3, 4]])
    out = contrib.count_sketch(x, nd.array([[0, 1, 1, 0]]), nd.array([[1, -1, 1, 1]]), out_dim=3)
    assert out.asnumpy().tolist() == [[5, 1, 0]]


def test_sparseness_penalty_moves_its_average_in_training_only():
    data, state = nd.array([[0.2, 0.6], [0.4, 0.8]]), nd.array([0.3, 0.4])
    data.attach_grad()
    with mx.autograd.record():
        out = nd.IdentityAttachKLSparseReg(data, state, momentum=0.5, penalty=0.1, sparseness_target=0.2)
    out.backward()
    average = np.float32([0.3, 0.55])
    np.testing.assert_allclose(state.asnumpy(), average, 1e-6)
    np.testing.assert_allclose(data.grad.asnumpy()[0], 1 + 0.1 * (-0.2 / average + 0.8 / (1 - average)), 1e-5)
    nd.IdentityAttachKLSparseReg(data, state)
    np.testing.assert_allclose(state.asnumpy(), average, 1e-6)


def test_modules_train_with_a_sparseness_penalty():
    net = mx.sym.IdentityAttachKLSparseReg(mx.sym.var("data"), name="penalty", momentum=0.5)
    assert net.infer_type(data="float32")[2] == [np.float32]
    mod = mx.mod.Module(mx.sym.LinearRegressionOutput(net, mx.sym.var("label")), label_names=["label"])
    mod.bind([("data", (2, 3))], [("label", (2, 3))])
    mod.init_params(mx.init.Zero())
    mod.forward_backward(mx.io.DataBatch([nd.ones((2, 3)) / 4], [nd.ones((2, 3))]))
    assert mod.get_params()[1]["penalty_moving_avg"].asnumpy().tolist() == [0.125] * 3


def test_quantized_product_means_the_real_product():
    rng = np.random.RandomState(0)
    x, w, b = (rng.uniform(-1, 1, s).astype(np.float32) for s in ((1, 2, 5, 5), (3, 2, 2, 2), (3,)))
    (qx, lx, hx), (qw, lw, hw), (qb, lb, hb) = (
        contrib.quantize(nd.array(a), *_ends(a), out_type="int8") for a in (x, w, b)
    )
    ends = (lx, hx, lw, hw, lb, hb)
    sums, low, high = contrib.quantized_conv(qx, qw, qb, *ends, kernel=(2, 2), num_filter=3)
    assert low.asscalar() == -high.asscalar()
    real = sums.asnumpy() * (high.asscalar() / 2**31)
    want = nd.Convolution(nd.array(x), nd.array(w), nd.array(b), kernel=(2, 2), num_filter=3).asnumpy()
    np.testing.assert_allclose(real, want, atol=0.05)


def _ends(a: np.ndarray) -> tuple[Any, Any]:
    return nd.array([a.min()]), nd.array([a.max()])


def test_float_tests():
    x = nd.array([1, np.nan, np.inf, -np.inf])
    assert contrib.isnan(x).asnumpy().tolist() == [0, 1, 0, 0]
    assert contrib.isinf(x).asnumpy().tolist() == [0, 0, 1, 1]
    assert contrib.isfinite(x).asnumpy().tolist() == [1, 0, 0, 0]
    assert contrib.isfinite(nd.array([1, 2], dtype="int32")).dtype == np.int32


def test_zipfian_samples():
    drawn, true, sampled = contrib.rand_zipfian(nd.array([3]), 4, 5)
    assert drawn.dtype == np.int64 and true.dtype == np.float64
    assert ((drawn.asnumpy() >= 0) & (drawn.asnumpy() < 5)).all()
    np.testing.assert_allclose(true.asscalar(), np.log(5 / 4) / np.log(6) * 4)
    np.testing.assert_allclose(sampled.asnumpy(), np.log1p(1 / (drawn.asnumpy() + 1)) / np.log(6) * 4)
    mx.random.seed(1)
    classes, tries = nd._internal._sample_unique_zipfian(range_max=40, shape=(200, 8))
    assert all(len(set(row)) == 8 for row in classes.asnumpy().tolist())
    assert tries.asnumpy().min() >= 8
    first = (classes.asnumpy()[:, 0] == 0).mean()
    assert abs(first - np.log(2) / np.log(41)) < 0.1


def test_writes_to_windows():
    x = nd.zeros((3, 4))
    assert x.slice_assign(nd.ones((2, 2)), (0, 1), (2, 3), (1, 1)) is x
    x.slice_assign_scalar(5, (2, None), (3, None), (None, 2))
    assert x.asnumpy().tolist() == [[0, 1, 1, 0], [0, 1, 1, 0], [5, 0, 5, 0]]
    assert nd._internal._set_value(src=2.5, out=x) is x
    assert (x.asnumpy() == 2.5).all()


def test_symbolic_adamw_takes_a_number_as_scale():
    names = ("weight", "grad", "mean", "var")
    node = mx.sym.contrib.adamw_update(*map(mx.sym.var, names), 0.5, lr=0.1, eta=1.0)
    arrays = {n: nd.array([v]) for n, v in zip(names, (1, 0.4, 0.1, 0.2), strict=True)}
    want = contrib.adamw_update(*(a.copy() for a in arrays.values()), 0.5, lr=0.1, eta=1.0)
    np.testing.assert_allclose(node.eval(**arrays)[0].asnumpy(), want.asnumpy(), 1e-6)


def test_quantized_concat_has_variables_for_missing_ranges():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    joined = mx.sym.contrib.quantized_concat(a, b, num_args=2, dim=0, name="q")
    ends = ["q_arg0_min", "q_arg0_max", "q_arg1_min", "q_arg1_max"]
    assert joined.list_arguments() == ["a", "b", *ends]
    assert joined.list_outputs() == ["q_output", "q_min_output", "q_max_output"]
    assert joined.infer_shape(a=(2, 3), b=(1, 3)) == ([(2, 3), (1, 3), *[(1,)] * 4], [(3, 3), (1,), (1,)], [])
    assert mx.sym.load_json(joined.tojson()).list_arguments() == joined.list_arguments()
    with pytest.raises(MXNetError, match="num_args=1: expected 3 inputs, got 4"):
        mx.sym.contrib.quantized_concat(a, a, a, a, num_args=1)


BOX = nd.array([[0, 1, 1, 4, 4]])


@pytest.mark.parametrize(
    ("op", "arrays", "params", "text"),
    [
        (
            "PSROIPooling",
            (nd.ones((1, 7, 4, 4)), BOX),
            {"output_dim": 2, "pooled_size": 2, "spatial_scale": 1},
            "channels",
        ),
        ("RROIAlign", (nd.ones((1, 7, 4, 4)), BOX), {"pooled_size": (2, 2), "spatial_scale": 1}, "rois"),
        ("quantize", (nd.ones(3, dtype="int32"), BOX[0, 0], BOX[0, 0]), {}, "dtype"),
        ("quantize_v2", (nd.ones(3),), {"min_calib_range": 1.0}, "thresholds"),
        ("quantized_act", (nd.ones(3, dtype="int8"), BOX[0, 0], BOX[0, 0]), {"act_type": "tanh"}, "relu"),
        ("quantized_concat", (nd.ones(3, dtype="int8"),), {"num_args": 2}, "expected 6 inputs"),
        ("Proposal", (nd.ones((2, 24, 2, 2)), nd.ones((2, 48, 2, 2)), nd.ones((2, 3))), {}, "MultiProposal"),
        ("count_sketch", (nd.ones((1, 4)), nd.ones(3), nd.ones(4)), {"out_dim": 3}, "h has shape"),
        ("ifft", (nd.ones((1, 3)),), {}, "pairs"),
    ],
)
def test_bad_arguments(op, arrays, params, text):
    with pytest.raises(MXNetError, match=text):
        getattr(contrib, op)(*arrays, **params)
