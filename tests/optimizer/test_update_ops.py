"""The update operators: closed forms, states written in place, many weights per call, errors, recompilation."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dualmx as mx
from dualmx import nd

W = np.array([1.0, 2.0, -3.0], "float32")
G = np.array([0.5, -4.0, 2.0], "float32")
M = np.array([0.1, 0.2, 0.3], "float32")


def arrays(*values, dtype="float32"):
    return [nd.array(v, dtype=dtype) for v in values]


def close(got, want, tolerance=1e-6):
    np.testing.assert_allclose(got.asnumpy() if isinstance(got, nd.NDArray) else got, want, rtol=tolerance, atol=1e-6)


def test_sgd_closed_form():
    w, g = arrays(W, G)
    out = nd.sgd_update(w, g, lr=0.1, wd=0.5, rescale_grad=0.5, clip_gradient=1.0)
    close(out, W - 0.1 * (np.clip(0.5 * G, -1, 1) + 0.5 * W))
    close(w, W)
    nd.sgd_update(w, g, lr=0.1, out=w)
    close(w, W - 0.1 * G)


def test_momentum_is_written_and_holds_the_rate():
    w, g, m = arrays(W, G, M)
    nd.sgd_mom_update(w, g, m, out=w, lr=0.1, momentum=0.9, wd=0.5)
    want = 0.9 * M - 0.1 * (G + 0.5 * W)
    close(m, want)
    close(w, W + want)


def test_adam_closed_form():
    w, g, m, v = arrays(W, G, 0 * W, 0 * W)
    nd.adam_update(w, g, m, v, out=w, lr=0.1, wd=0.5, clip_gradient=1.0)
    gg = np.clip(G + 0.5 * W, -1, 1)
    close(m, 0.1 * gg)
    close(v, 0.001 * gg**2, 2e-5)
    close(w, W - 0.1 * 0.1 * gg / (np.sqrt(0.001) * abs(gg) + 1e-8), 2e-5)


# Results of MXNet 1.9.1 on the arrays above.
RECORDED = [
    (
        "nag_mom_update",
        [M],
        dict(lr=0.1, momentum=0.9, wd=0.5),
        [[0.89100003, 2.732, -2.852], [-0.00455001, 0.44339997, 0.21260001]],
    ),
    (
        "signum_update",
        [M],
        dict(lr=0.1, momentum=0.9, wd=0.5, wd_lh=0.3, rescale_grad=0.5, clip_gradient=1),
        [[1.07, 2.04, -2.8100002], [0.01499998, 0.17999999, 0.32000002]],
    ),
    ("signsgd_update", [], dict(lr=0.1, wd=0.5, rescale_grad=0.5, clip_gradient=1), [[0.85, 2.0, -2.95]]),
    (
        "ftml_update",
        [0 * W] * 3,
        dict(lr=0.1, t=1, wd=0.5, clip_grad=1),
        [[0.9, 2.1, -3.1], [4, 4, 2], [0.00099999, 0.00099999, 0.00025], [-3.6, -8.4, 6.1999993]],
    ),
    (
        "lamb_update_phase1",
        [0 * W] * 2,
        dict(t=1, wd=0.5, clip_gradient=1),
        [[1.499998, 9.5367432e-07, -0.50000095], [0.05000001, -0.1, 0.1], [0.00025, 0.00099999, 0.00099999]],
    ),
    (
        "rmspropalex_update",
        [0 * W + 1, 0 * W, 0 * W],
        dict(lr=0.1, wd=0.5, clip_gradient=1, clip_weights=1.5),
        [[0.89987475, 1.5, -1.5], [1, 1, 0.9625], [0.05, -0.05, 0.025], [-0.10012524, 0.10012524, -0.05098128]],
    ),
]


@pytest.mark.parametrize("name, states, params, want", RECORDED, ids=lambda v: v if isinstance(v, str) else "")
def test_recorded_values(name, states, params, want):
    w, g, *s = arrays(W, G, *states)
    close(getattr(nd, name)(w, g, *s, **params), want[0], 2e-6)
    for got, value in zip(s, want[1:], strict=True):
        close(got, value, 2e-6)


def test_lamb_phase2_bounds_and_zero_norms():
    w, g, two, five, zero = arrays(W, G, [2.0], [5.0], [0.0])
    close(nd.lamb_update_phase2(w, g, five, two, lr=0.1, lower_bound=1, upper_bound=3), [0.925, 2.6, -3.3])
    close(nd.lamb_update_phase2(w, g, zero, two, lr=0.1, lower_bound=1, upper_bound=3), [0.975, 2.2, -3.1])
    close(nd.lamb_update_phase2(w, g, zero, two, lr=0.1), W - 0.1 * G)


def test_many_weights_at_once():
    w0, g0, m0, w1, g1, m1 = arrays(W, G, M, 2 * W, G, 0 * M)
    out = nd.multi_sgd_mom_update(
        w0, g0, m0, w1, g1, m1, out=[w0, w1], lrs=[0.1, 0.2], wds=[0, 0.5], momentum=0.9, num_weights=2
    )
    next0, next1 = 0.9 * M - 0.1 * G, -0.2 * (G + 0.5 * 2 * W)
    close(m0, next0)
    close(m1, next1)
    close(w0, W + next0)
    close(w1, 2 * W + next1)
    assert out[0] is w0 and out[1] is w1


def test_many_weights_without_out_return_new_weights():
    w0, g0, w1, g1 = arrays(W, G, 2 * W, G)
    a, b = nd.multi_sgd_update(w0, g0, w1, g1, lrs=(0.1, 0.2), wds=(0, 0), num_weights=2)
    close(a, W - 0.1 * G)
    close(b, 2 * W - 0.2 * G)
    close(w0, W)


def test_preloaded_rates_and_decays():
    w0, g0, m0, w1, g1, m1, lrs, wds = arrays(W, G, M, 2 * W, G, M, [0.1, 0.2], [0.0, 0.5])
    nd.preloaded_multi_sgd_mom_update(w0, g0, m0, w1, g1, m1, lrs, wds, out=[w0, w1], momentum=0.9, num_weights=2)
    close(m1, 0.9 * M - 0.2 * (G + 0.5 * 2 * W))
    close(w1, 2 * W + m1.asnumpy())


@pytest.mark.parametrize("many", [False, True])
def test_master_copies(many):
    w, g = arrays(W, G, dtype="float16")
    m, w32 = arrays(M, W)
    if many:
        nd.multi_mp_sgd_mom_update(w, g, m, w32, out=[w], lrs=[1e-4], wds=[0], momentum=0.9, num_weights=1)
    else:
        nd.mp_sgd_mom_update(w, g, m, w32, out=w, lr=1e-4, momentum=0.9)
    close(m, 0.9 * M - 1e-4 * G)
    close(w32, W + 0.9 * M - 1e-4 * G)
    assert w.dtype == np.float16
    close(w, w32.asnumpy().astype("float16"))


def test_half_precision_weights_compute_in_single():
    w, g = arrays([1.0], [2048.0], dtype="float16")
    close(nd.sgd_update(w, g, lr=1.0, rescale_grad=1e-6), np.array([1 - 2048e-6]).astype("float16"))


def test_norms_rates_and_finiteness():
    w, g = arrays(W, G)
    close(nd.multi_sum_sq(w, g, num_arrays=2), [14.0, 20.25])
    close(nd.all_finite(w), [1.0])
    close(nd.multi_all_finite(w, w * float("nan"), num_arrays=2), [0.0])
    rates = arrays([0.1, 0.2], [4.0, 0.0], [9.0, 1.0], [0.1, 0.2])
    close(nd.multi_lars(*rates, eta=0.01, eps=0.001, rescale_grad=0.5), [0.00117578, 0.2], 1e-5)


def test_reset_arrays_fills_zeros_in_place():
    w, g = arrays(W, G)
    nd.reset_arrays(w, g, num_arrays=2)
    close(w, 0 * W)
    close(g, 0 * G)


@pytest.mark.parametrize("scale, moves", [(0.5, True), (0.0, False), (float("nan"), False)])
def test_adamw_skips_unusable_scales(scale, moves):
    w, g, m, v, s = arrays(W, G, 0 * W, 0 * W, [scale])
    out = nd.contrib.adamw_update(w, g, m, v, s, lr=0.1, eta=0.7, wd=0.5, clip_gradient=1)
    close(out, [0.4286394, 1.5213609, -2.171361] if moves else W, 2e-6)
    assert bool(m.asnumpy().any()) == moves


def test_many_adamw_and_master_copies():
    w, g, m, v, w2 = arrays(W, G, 0 * W, 0 * W, W)
    rates = dict(lrs=[0.1], wds=[0.5], etas=[0.7], clip_gradient=1)
    want = [0.4286394, 1.5213609, -2.171361]
    close(nd.contrib.multi_adamw_update([w], [g], [m], [v], 0.5, **rates), want, 2e-6)
    close(m, [0.02500001, -0.10000002, 0.10000002], 2e-6)
    half, ghalf, m, v = (*arrays(W, G, dtype="float16"), *arrays(0 * W, 0 * W))
    nd.contrib.multi_mp_adamw_update([half], [ghalf], [m], [v], [w2], 0.5, out=[half], **rates)
    close(w2, want, 2e-6)
    close(half, w2.asnumpy().astype("float16"))
    with pytest.raises(mx.MXNetError, match="equal lengths"):
        nd.contrib.multi_adamw_update([w], [], [m], [v], 0.5, **rates)


def test_many_lamb_equals_the_two_phases():
    w, g, m, v = arrays(W, G, 0 * W, 0 * W)
    want = [0.6850528, 1.9352282, -2.808655]
    nd.contrib.multi_lamb_update([w], [g], [m], [v], out=[w], lrs=[0.1], wds=[0.5], step_count=[2], clip_gradient=1)
    close(w, want, 2e-6)


@pytest.mark.parametrize(
    "act, words",
    [
        (lambda w, g: nd.sgd_update(w, g), "missing required parameter 'lr'"),
        (lambda w, g: nd.sgd_update(w, g[:1], lr=1), "grad has shape (1,)"),
        (lambda w, g: nd.sgd_mom_update(w, g, g[:1], lr=1), "mom has shape (1,)"),
        (lambda w, g: nd.sgd_update(w, g.astype("float16"), lr=1), "different dtypes"),
        (lambda w, g: nd.multi_sgd_update(w, g, lrs=[1, 2], wds=[0, 0], num_weights=2), "got 2 arrays"),
        (lambda w, g: nd.multi_sgd_update(w, g, lrs=[1, 2], wds=[0], num_weights=1), "got 2 rates"),
        (lambda w, g: nd.sgd_update(w, g, lr=1, momentun=2), "momentun"),
    ],
)
def test_errors_name_the_argument(act, words):
    with pytest.raises(mx.MXNetError, match=re.escape(words)):
        act(*arrays(W, G))


def test_a_bound_of_zero_clips_to_nothing():
    w, g = arrays(W, G)
    assert nd.sgd_update(w, g, lr=1, clip_gradient=0).asnumpy().tolist() == w.asnumpy().tolist()
    assert nd.sgd_update(w, g, lr=1).asnumpy().tolist() != w.asnumpy().tolist()


def test_rates_and_steps_compile_nothing():
    w, g, m, v = arrays(W, G, M, 0 * W)
    d, z = arrays(0 * W, 0 * W)

    def step(t):
        nd.sgd_mom_update(w, g, m, out=w, lr=0.1 / t, rescale_grad=1.0 / t)
        nd.multi_sgd_update(w, g, out=[w], lrs=[0.1 / t], wds=[0], num_weights=1)
        nd.ftml_update(w, g, d, v, z, out=w, lr=0.1 / t, t=t)
        mx.nd.waitall()

    step(1)
    step(2)
    with mx.debug.assert_compiles(0):
        for t in range(3, 6):
            step(t)
