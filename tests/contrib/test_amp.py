"""Mixed precision: symbols as MXNet converts them, blocks, and casts around operators."""

from __future__ import annotations

import numpy as np
import pytest

import dualmx as mx
from dualmx import gluon, nd, sym
from dualmx.contrib import amp
from tests import jobs


def network() -> mx.Symbol:
    x = sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc")
    x = sym.exp(sym.Activation(x, act_type="relu", name="r"), name="e")
    return sym.SoftmaxOutput(x, name="softmax")


PARAMS = {"fc_weight": nd.ones((3, 4)), "fc_bias": nd.ones((3,))}


def test_casts_stand_where_mxnet_puts_them() -> None:
    found = amp.convert_symbol(network())
    assert found.get_internals().list_outputs() == [
        "data", "data_amp_cast_float16_output", "fc_weight", "fc_weight_amp_cast_float16_output", "fc_bias",
        "fc_bias_amp_cast_float16_output", "fc_output", "r_output", "r_output_amp_cast_float32_output", "e_output",
        "softmax_label", "softmax_output",
    ]  # fmt: skip
    (out,) = found.eval(data=nd.ones((2, 4)), softmax_label=nd.zeros((2,)), **PARAMS)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out.asnumpy(), np.full((2, 3), 1 / 3), rtol=1e-3)


def test_excluded_nodes_stay_wide() -> None:
    found = amp.convert_symbol(network(), excluded_sym_names=["fc"])
    assert not any("amp_cast" in name for name in found.get_internals().list_outputs())
    with pytest.raises(ValueError, match="'foo' is no operator here"):
        amp.convert_symbol(network(), excluded_sym_names=["foo"])


def test_branches_meet_in_one_precision_and_outputs_are_wide() -> None:
    x = sym.var("data")
    y = sym.elemwise_add(sym.FullyConnected(x, num_hidden=4, name="fc"), x, name="add")
    assert amp.convert_symbol(y, "bfloat16").list_outputs() == ["add_output_amp_cast_float32_output"]
    z = sym.elemwise_add(sym.FullyConnected(x, num_hidden=4, name="fc"), sym.exp(x, name="e"), name="add")
    assert amp.convert_symbol(z).list_outputs() == ["add_output"]


def test_model_parameters_may_be_stored_narrow() -> None:
    _, args, aux = amp.convert_model(network(), PARAMS, {}, cast_optional_params=True)
    assert {a.dtype for a in args.values()} == {np.float16} and aux == {}
    _, args, _ = amp.convert_model(network(), PARAMS, {})
    assert {a.dtype for a in args.values()} == {np.float32}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("narrow", [False, True])
def test_blocks_compute_nearly_the_same(dtype: str, narrow: bool) -> None:
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(3, in_units=4), gluon.nn.BatchNorm(in_channels=3), gluon.nn.Dense(2, in_units=3))
    net.initialize(mx.init.One())
    x = nd.random.uniform(shape=(5, 4))
    with pytest.raises(mx.MXNetError, match="hybridize"):
        amp.convert_hybrid_block(net, dtype)
    net.hybridize()
    expected = net(x).asnumpy()
    converted = amp.convert_hybrid_block(net, dtype, cast_optional_params=narrow)
    np.testing.assert_allclose(converted(x).asnumpy(), expected, rtol=3e-2)
    kinds = {p.name: np.dtype(p.dtype).name for p in converted.collect_params().values()}
    assert kinds["dense0_weight" if "dense0_weight" in kinds else next(iter(kinds))] == (dtype if narrow else "float32")


def test_wrong_type() -> None:
    for call in (amp.init, amp.list_fp32_ops, lambda t: amp.convert_symbol(network(), t)):
        with pytest.raises(ValueError, match="expected 'float16' or 'bfloat16'"):
            call("float64")
    with pytest.raises(mx.MXNetError, match=r"amp.init\(\) first"):
        amp.init_trainer(None)


def test_scale_falls_at_overflow_and_grows_after_a_while() -> None:
    scaler = amp.loss_scaler.LossScaler(4.0)
    good, bad = gluon.Parameter("a", shape=(2,)), gluon.Parameter("b", shape=(2,))
    for p in (good, bad):
        p.initialize()
    bad.grad()[:] = float("nan")
    assert scaler.has_overflow([good, bad]) and scaler.loss_scale == 2.0
    scaler._unskipped = 1999
    assert not scaler.has_overflow([good]) and scaler.loss_scale == 4.0


class OtherWorkerOverflows:
    """A store that adds what another worker sends: gradients that overflowed."""

    type = "custom"

    def is_capable(self, capability):
        return False

    def broadcast(self, key, value, out, priority=0):
        pass

    def pushpull(self, key, value, out=None, priority=0):
        for g in out:
            g[:] = float("inf")


class Servers:
    """A store of several workers that updates the weights itself."""

    num_workers = 2


def scaled_trainer(**options):
    net = gluon.nn.Dense(1, in_units=2, use_bias=False)
    net.initialize(mx.init.One())
    trainer = gluon.Trainer(net.collect_params(), "sgd", **options)
    trainer.loss_scaler = amp.loss_scaler.LossScaler(4.0)
    with mx.autograd.record():
        loss = net(nd.ones((1, 2)))
    loss.backward()
    return net, trainer


def test_all_workers_skip_a_step_in_which_one_overflows() -> None:
    net, trainer = scaled_trainer(kvstore=OtherWorkerOverflows())
    trainer.step(1)
    assert net.weight.data().asnumpy().tolist() == [[1, 1]] and trainer.loss_scaler.loss_scale == 2.0


def test_servers_cannot_be_left_waiting() -> None:
    _, trainer = scaled_trainer(kvstore=None)
    trainer._init_store()
    trainer._kvstore, trainer._update_on_kvstore = Servers(), True
    with pytest.raises(mx.MXNetError, match="update_on_kvstore=False"):
        trainer.step(1)


SCRIPT = """
import dualmx as mx
from dualmx import autograd, gluon, nd
from dualmx.contrib import amp
amp.init("float16")
assert nd.FullyConnected(nd.ones((1, 4)), nd.ones((3, 4)), no_bias=True, num_hidden=3).dtype.__name__ == "float16"
assert nd.exp(nd.ones(2, dtype="float16")).dtype.__name__ == "float32"
assert (nd.ones(2, dtype="float16") + nd.ones(2)).dtype.__name__ == "float32"
outputs = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=3, name="f").get_internals().list_outputs()
assert outputs == ["x", "amp_cast0_output", "f_weight", "amp_cast1_output", "f_bias", "amp_cast2_output", "f_output"]
for hybrid in (False, True):
    chain = gluon.nn.HybridSequential()
    net = gluon.nn.Dense(3, in_units=4)
    chain.add(net)
    net.initialize(mx.init.One())
    if hybrid:
        net.hybridize()
        chain.hybridize()
    assert chain(nd.ones((1, 4))).dtype.__name__ == "float16"
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    amp.init_trainer(trainer)
    scales = []
    for factor in (1, float("inf"), 1):
        with autograd.record():
            loss = (net(nd.ones((2, 4)) * 0.125) * factor).sum()
            with amp.scale_loss(loss, trainer) as scaled:
                scaled.backward()
        trainer.step(2)
        scales.append((trainer.loss_scaler.loss_scale, round(float(net.weight.data()[0, 0].asscalar()), 3)))
    assert scales == [(32768.0, 1.0), (16384.0, 1.0), (16384.0, 0.988)], scales
    with autograd.record():
        loss = net(nd.ones((2, 4)) * 0.125).sum()
        with amp.scale_loss(loss, trainer) as scaled:
            scaled.backward()
    amp.unscale(trainer)
    assert net.weight.grad()[0, 0].asscalar() == 0.25
print("ok")
"""


@pytest.mark.slow
def test_casts_around_operators_and_scaled_losses() -> None:
    assert jobs.run(jobs.PYTHON, "-c", SCRIPT).stdout == "ok\n"


def test_lists_have_the_names_of_mxnet() -> None:
    lists = mx.contrib.amp.lists
    assert lists.symbol_fp16.FP16_FUNCS == mx.contrib.amp.list_lp16_ops("float16")
    assert lists.symbol_bf16.BF16_FUNCS == mx.contrib.amp.list_lp16_ops("bfloat16")
    assert "softmax" in lists.symbol_fp16.FP32_FUNCS and "dot" in lists.symbol_bf16.WIDEST_TYPE_CASTS
    assert ("Activation", "act_type", ["softrelu"]) in lists.symbol_fp16.CONDITIONAL_FP32_FUNCS
    assert lists.symbol_bf16.BF16_USE_FP32_PARAMS == mx.contrib.amp.list_lp16_use_fp32_params("bfloat16")
