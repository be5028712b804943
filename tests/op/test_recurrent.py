"""RNN, CTCLoss and UpSampling against MXNet's record, brute force and numeric gradients."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import ArgumentError
from dualmx.op.registry import OPS
from tests.goldens.nn_cases import GROUPS, Case
from tests.op.nn_replay import gradients, numeric_gradients, replay

CASES = [c for g in ("recurrent", "ctc", "upsampling") for c in GROUPS[g]]
F4 = np.dtype("float32")


def run(op: str, *arrays, train: bool = False, key=None, **params):
    with jax.enable_x64(True):
        return OPS[op].call(train, **params).apply([jnp.asarray(a) for a in arrays], key)


def complete(op: str, shapes, **params):
    call = OPS[op].call(**params)
    return OPS[op].complete(type("P", (), call.params), shapes)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_matches_record(case: Case):
    replay(case)


def rnn_inputs(mode, layers=1, both=False, time=5, batch=3):
    params = {"mode": mode, "state_size": 4, "num_layers": layers, "bidirectional": both}
    shapes = complete("RNN", {"data": (time, batch, 2)}, **params)
    rng = np.random.default_rng(0)
    return params, [rng.normal(size=s) for s in ((time, batch, 2), *shapes.values())]


@pytest.mark.parametrize("mode", ["rnn_tanh", "lstm", "gru"])
def test_rnn_gradients(mode):
    params, arrays = rnn_inputs(mode, time=2, batch=1)
    gradients("RNN", [a.shape for a in arrays], order=1, **params)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["lstm", "gru"])
@pytest.mark.parametrize("both", [False, True])
def test_sequence_lengths_equal_shorter_runs(mode, both):
    params, (data, weights, *states) = rnn_inputs(mode, 2, both)
    lengths = np.array([2, 5, 3])
    got = run("RNN", data, weights, *states, lengths, use_sequence_length=True, state_outputs=True, **params)
    for n, length in enumerate(lengths):
        one = [s[:, n : n + 1] for s in states]
        want = run("RNN", data[:length, n : n + 1], weights, *one, state_outputs=True, **params)
        np.testing.assert_allclose(got[0][:length, n], want[0][:, 0], 1e-10)
        np.testing.assert_array_equal(got[0][length:, n], 0)
        for g, w in zip(got[1:], want[1:], strict=True):
            np.testing.assert_allclose(g[:, n], w[:, 0], 1e-10)


def test_lstm_states_are_clipped():
    params, arrays = rnn_inputs("lstm")
    clip = {"lstm_state_clip_min": -0.1, "lstm_state_clip_max": 0.2}
    cell = np.asarray(run("RNN", *arrays, state_outputs=True, **clip, **params)[2])
    assert float(cell.min()) >= -0.1 and float(cell.max()) <= 0.2


@pytest.mark.slow
def test_rnn_dropout_acts_between_layers_when_training():
    params, arrays = rnn_inputs("gru", 2)
    still = run("RNN", *arrays, p=0.5, **params)[0]
    np.testing.assert_allclose(run("RNN", *arrays, **params)[0], still)
    moved = [run("RNN", *arrays, train=True, key=jax.random.key(k), p=0.5, **params)[0] for k in (0, 0, 1)]
    np.testing.assert_array_equal(moved[0], moved[1])
    assert np.abs(moved[0] - still).max() > 1e-3 < np.abs(moved[0] - moved[2]).max()
    params, arrays = rnn_inputs("gru", 1)
    np.testing.assert_array_equal(
        run("RNN", *arrays, train=True, key=jax.random.key(0), p=0.5, **params)[0], run("RNN", *arrays, **params)[0]
    )


def test_rnn_completes_inputs():
    shapes = complete("RNN", {"data": (0, 2, 3)}, mode="lstm", state_size=5, num_layers=1)
    assert shapes == {"parameters": (200,), "state": (1, 2, 5), "state_cell": (1, 2, 5)}
    shapes = complete("RNN", {"data": (4, 0, 3)}, mode="gru", state_size=5, num_layers=2, bidirectional=True)
    assert shapes == {"parameters": (810,)}
    with pytest.raises(ArgumentError, match=r"RNN: parameters has shape \(7,\): expected \(200,\)"):
        call = OPS["RNN"].call(mode="lstm", state_size=5, num_layers=1)
        call.infer(tuple((s, F4) for s in ((4, 2, 3), (7,), (1, 2, 5), (1, 2, 5))))


def brute_force_ctc(scores, label, blank):
    """Sum the probabilities of all paths that collapse to the label."""
    logp = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    total = 0.0
    for path in itertools.product(range(scores.shape[1]), repeat=len(scores)):
        collapsed = [k for k, _ in itertools.groupby(path) if k != blank]
        if collapsed == list(label):
            total += np.exp(sum(logp[t, k] for t, k in enumerate(path)))
    return -np.log(total)


@pytest.mark.parametrize("label", [[1, 2], [1, 1], [2], []])
def test_ctc_sums_over_all_alignments(label):
    scores = np.random.default_rng(0).normal(size=(4, 1, 3))
    padded = np.array([label + [0] * (2 - len(label))], np.float64)
    np.testing.assert_allclose(run("CTCLoss", scores, padded)[0], [brute_force_ctc(scores[:, 0], label, 0)], 1e-10)
    shifted = np.array([[k - 1 for k in label] + [-1] * (2 - len(label))], np.float64)
    want = brute_force_ctc(scores[:, 0], [k - 1 for k in label], 2)
    np.testing.assert_allclose(run("CTCLoss", scores, shifted, blank_label="last")[0], [want], 1e-10)


def test_ctc_gradients():
    scores = np.random.default_rng(0).normal(size=(4, 2, 3))
    label = jnp.array([[1, 2], [2, 0]])
    call = OPS["CTCLoss"].call()
    numeric_gradients(lambda x: jnp.sum(call.apply([x, label])[0]), [scores])


def test_samples_without_alignment_do_not_count():
    data = mx.nd.array(np.random.default_rng(0).normal(size=(7, 4, 5)))
    label, counts = mx.nd.array([[1, 2, 3], [2, 2, 2], [1, 1, 3], [3, 0, 0]]), mx.nd.array([3, 3, 3, 1])
    data.attach_grad()
    for steps, counted in [([3, 3, 3, 3], [1, 0, 0, 1]), ([3, 5, 4, 0], [1, 1, 1, 0])]:
        with mx.autograd.record():
            loss = mx.nd.ctc_loss(
                data, label, mx.nd.array(steps), counts, use_data_lengths=True, use_label_lengths=True
            )
        loss.backward()
        np.testing.assert_array_equal(loss.asnumpy() > 0, counted)
        np.testing.assert_array_equal(np.abs(data.grad.asnumpy()).sum((0, 2)) > 0, counted)


def test_inputs_by_position_are_those_that_the_parameters_ask_for():
    data, label, counts = mx.nd.ones((4, 2, 3)), mx.nd.array([[1, 2], [2, 1]]), mx.nd.array([1, 2])
    got = mx.nd.ctc_loss(data, label, counts, use_label_lengths=True)
    want = mx.nd.ctc_loss(data, label, label_lengths=counts, use_label_lengths=True)
    np.testing.assert_array_equal(got.asnumpy(), want.asnumpy())
    with pytest.raises(mx.MXNetError, match="'data_lengths' is given, but use_data_lengths=False"):
        mx.nd.ctc_loss(data, label, counts, counts, use_label_lengths=True)
    with pytest.raises(mx.MXNetError, match="'data_lengths' is given"):
        mx.nd.ctc_loss(data, label, counts)


def test_ctc_errors():
    with pytest.raises(ArgumentError, match="CTCLoss: label has shape .*: more labels than the 2 time steps"):
        OPS["CTCLoss"].call().infer((((2, 1, 5), F4), ((1, 3), F4)))
    with pytest.raises(ArgumentError, match="CTCLoss: label_lengths has shape"):
        OPS["CTCLoss"].call(use_label_lengths=True).infer((((4, 2, 5), F4), ((2, 3), F4), ((3,), F4)))


@pytest.mark.slow
@pytest.mark.parametrize("both", [False, True])
def test_quantized_rnn_is_close_to_rnn(both):
    params, arrays = rnn_inputs("lstm", layers=2, both=both)
    data, *rest = (a.astype(np.float32) for a in arrays)
    quantized, scale, shift = run("_contrib_quantize_asym", data)
    given = (quantized, *rest, scale, shift)
    got = run("_contrib_quantized_rnn", *given, state_outputs=True, **params)
    for small, real in zip(got, run("RNN", data, *rest, state_outputs=True, **params), strict=True):
        assert small.shape == real.shape and small.dtype == np.float32
        assert np.abs(np.asarray(small) - np.asarray(real)).max() < 0.1
    with pytest.raises(ArgumentError, match="lstm"):
        run("_contrib_quantized_rnn", *given, **{**params, "mode": "gru"})
    with pytest.raises(ArgumentError, match="uint8"):
        run("_contrib_quantized_rnn", data, *given[1:], **params)
