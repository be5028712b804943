"""Functions for training loops, and losses against closed forms."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, gluon, nd
from dualmx.gluon import loss, utils

CPUS = [mx.cpu(0), mx.cpu(1)]


def test_split_data() -> None:
    x = nd.arange(14).reshape((7, 2))
    assert [p.shape for p in utils.split_data(x, 3, even_split=False)] == [(3, 2), (2, 2), (2, 2)]
    assert [p.shape for p in utils.split_data(x, 2, batch_axis=1)] == [(7, 1), (7, 1)]
    with pytest.raises(ValueError, match="multiple of 3, or even_split=False"):
        utils.split_data(x, 3)
    whole = np.concatenate([p.asnumpy() for p in utils.split_data(x, 4, even_split=False)])
    np.testing.assert_array_equal(whole, x.asnumpy())


def test_split_and_load() -> None:
    parts = utils.split_and_load(np.arange(4), CPUS)
    assert [(p.context, p.asnumpy().tolist()) for p in parts] == [(CPUS[0], [0, 1]), (CPUS[1], [2, 3])]
    assert {p.dtype for p in parts} == {np.float32}  # as `nd.array` of anything but an NDArray
    (only,) = utils.split_and_load([1, 2], [mx.cpu(0)])
    assert only.dtype == np.float32 and only.asnumpy().tolist() == [1, 2]
    whole = utils.split_and_load(nd.arange(4, dtype="int32"), CPUS)
    assert [(p.dtype, p.asnumpy().tolist()) for p in whole] == [(np.int32, [0, 1]), (np.int32, [2, 3])]
    wrong: Any = mx.cpu(0)
    with pytest.raises(TypeError, match="ctx_list=cpu.0.: expected a list"):
        utils.split_and_load([1, 2], wrong)


def test_clip_global_norm() -> None:
    arrays = [nd.ones((2, 2)), nd.ones((3,)) * 2]
    assert utils.clip_global_norm(arrays, 1.0) == 4.0
    np.testing.assert_allclose(arrays[0].asnumpy(), np.full((2, 2), 0.25), rtol=1e-6)
    np.testing.assert_allclose(arrays[1].asnumpy(), np.full(3, 0.5), rtol=1e-6)
    lazy = utils.clip_global_norm(arrays, 5.0, check_isfinite=False)
    assert lazy.shape == (1,)
    np.testing.assert_allclose(arrays[1].asnumpy(), np.full(3, 0.5), rtol=1e-6)
    with pytest.warns(UserWarning, match="nan or inf"):
        utils.clip_global_norm([nd.array([math.nan])], 1.0)
    with pytest.raises(ValueError, match="no arrays"):
        utils.clip_global_norm([], 1.0)
    wrong: Any = [nd.ones(2), None]
    with pytest.raises(TypeError, match=r"arrays\[1\]=None: expected an NDArray"):
        utils.clip_global_norm(wrong, 1.0)
    rows = nd.array([[3.0], [4.0]])
    assert utils.clip_global_norm(rows, 2.5) == 5.0
    np.testing.assert_allclose(rows.asnumpy(), [[1.5], [2.0]], rtol=1e-6)


def test_clip_gradients_of_replicas() -> None:
    net = gluon.nn.Dense(1, in_units=2)
    net.initialize(mx.init.One(), ctx=CPUS)
    with autograd.record():
        losses = [net(nd.ones((1, 2), ctx=c)) for c in CPUS]
    autograd.backward(losses)
    norm = utils.clip_global_norm([g for p in net.collect_params().values() for g in p.list_grad()], 1.0)
    assert norm == pytest.approx(math.sqrt(6))


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"dualmx")
    digest = "ff38b1f6a1ac43a8bb54bdb5b9e1e68ea6a5ee47"
    assert not utils.check_sha1(str(path), digest)
    assert utils.download("https://example.org/file.bin", path=str(tmp_path)) == str(path)
    there = tmp_path / "there" / "copy.bin"
    assert utils.download(f"file://{path}", path=str(there)) == str(there) and there.read_bytes() == b"dualmx"
    path.write_bytes(b"other")
    assert Path(utils.download(f"file://{path}", path=str(there))).read_bytes() == b"dualmx"
    assert Path(utils.download(f"file://{path}", path=str(there), overwrite=True)).read_bytes() == b"other"
    with pytest.raises(mx.MXNetError, match="absent.bin"):
        utils.download(f"file://{tmp_path}/absent.bin", path=str(tmp_path / "x"))
    path.write_bytes(b"dualmx")
    utils.replace_file(str(path), str(tmp_path / "new.bin"))
    assert (tmp_path / "new.bin").read_bytes() == b"dualmx"


def test_shape_is_known() -> None:
    assert utils.shape_is_known((2, 3))
    assert not utils.shape_is_known((2, 0))
    assert not utils.shape_is_known(None)


P = nd.array([[0.5, -1.0], [2.0, 0.25]])


def test_losses_return_one_value_per_sample() -> None:
    label = nd.ones((2, 2))
    for name in ("L1Loss", "L2Loss", "HuberLoss", "HingeLoss", "LogisticLoss", "SigmoidBCELoss", "KLDivLoss"):
        assert getattr(loss, name)()(P, label).shape == (2,)
    assert loss.PoissonNLLLoss()(P, label).shape == (1,)
    assert loss.CosineEmbeddingLoss()(P, label, nd.array([1, -1])).shape == (2, 1)


def test_closed_forms() -> None:
    label = nd.array([[1.0, 0.0], [0.0, 1.0]])
    p, t = P.asnumpy(), label.asnumpy()
    sigmoid = 1 / (1 + np.exp(-p))
    bce = -(t * np.log(sigmoid) + (1 - t) * np.log(1 - sigmoid)).mean(1)
    np.testing.assert_allclose(loss.SigmoidBCELoss()(P, label).asnumpy(), bce, rtol=1e-5)
    np.testing.assert_allclose(loss.L2Loss()(P, label).asnumpy(), ((p - t) ** 2 / 2).mean(1), rtol=1e-6)
    logits = p - np.log(np.exp(p).sum(1, keepdims=True))
    ce = -logits[[0, 1], [1, 0]]
    np.testing.assert_allclose(loss.SoftmaxCELoss()(P, nd.array([1, 0])).asnumpy(), ce, rtol=1e-5)
    weighted = loss.SoftmaxCELoss(weight=2)(P, nd.array([1, 0]), nd.array([[1], [0]])).asnumpy()
    np.testing.assert_allclose(weighted, ce * [2, 0], rtol=1e-5)


def test_poisson_with_stirling_term_is_finite_at_zero() -> None:
    target = nd.array([[0.0, 1.0], [3.0, 5.0]])
    p, t = P.asnumpy(), target.asnumpy()
    safe = np.maximum(t, 1)
    stirling = np.where(t > 1, safe * np.log(safe) - safe + 0.5 * np.log(2 * np.pi * safe), 0)
    expected = (np.exp(p) - t * p + stirling).mean()
    fn = loss.PoissonNLLLoss(compute_full=True)
    np.testing.assert_allclose(fn(P, target).asnumpy(), [expected], rtol=1e-6)
    x = P.copy()
    x.attach_grad()
    with autograd.record():
        value = fn(x, target)
    value.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), (np.exp(p) - t) / 4, rtol=1e-5)


def test_own_loss_runs_step_by_step() -> None:
    shapes: list[tuple[int, ...]] = []

    class Mean(loss.L2Loss):
        def hybrid_forward(self, F, pred, label, sample_weight=None):  # noqa: ANN001, ANN202
            shapes.append(pred.shape)
            return F.mean(pred - label, axis=0, exclude=True)

    assert Mean()(P, P).asnumpy().tolist() == [0, 0]
    assert shapes == [(2, 2)]


def test_changed_settings_are_respected() -> None:
    fn = loss.HingeLoss(margin=1)
    before = fn(P, nd.ones((2, 2))).asnumpy()
    fn._margin = 2
    assert (fn(P, nd.ones((2, 2))).asnumpy() > before).all()


def test_losses_of_users_call_the_functions_of_the_module() -> None:
    from dualmx.gluon.loss import Loss, _apply_weighting, _reshape_like

    class Distance(Loss):
        def hybrid_forward(self, F, pred, label, sample_weight=None):
            off = F.abs(_reshape_like(F, label, pred) - pred)
            return F.mean(_apply_weighting(F, off, self._weight, sample_weight), axis=self._batch_axis, exclude=True)

    loss = Distance(2.0, 0)
    args = nd.array([[1.0, 2.0], [3.0, 4.0]]), nd.array([0.0, 0.0, 0.0, 0.0]), nd.array([[1.0], [0.5]])
    for active in (False, True):
        loss.hybridize(active)
        np.testing.assert_allclose(loss(*args).asnumpy(), [3.0, 3.5])
    with pytest.raises(TypeError, match="weight"):
        _apply_weighting(nd, args[0], "2")


def test_layers_of_a_kind_are_told_by_the_names_of_mxnet() -> None:
    nn, rnn = mx.gluon.nn, mx.gluon.rnn
    assert isinstance(nn.Conv2DTranspose(1, 1), nn.conv_layers._Conv)
    assert isinstance(nn.GlobalAvgPool2D(), nn.conv_layers._Pooling)
    assert isinstance(mx.gluon.contrib.nn.SyncBatchNorm(), nn.basic_layers._BatchNorm)
    assert isinstance(rnn.GRU(2), rnn.rnn_layer._RNNLayer)
