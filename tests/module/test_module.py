"""Module: the loop and its log, checkpoints, shapes, errors, and how much is compiled."""

from __future__ import annotations

import logging
import re
import warnings
from collections import namedtuple

import numpy as np
import pytest

import dualmx as mx
from dualmx.compile.events import counters
from dualmx.core.errors import MXNetError
from dualmx.core.knobs import ENGINE
from tests.goldens.module_cases import (
    PARAMS,
    PLAIN,
    STATES,
    X,
    Y,
    arrays,
    batch,
    bound,
    bucket,
    bucket_batch,
    data,
    features,
    network,
)  # noqa: E402

lazy = pytest.mark.skipif(ENGINE.read() == "NaiveEngine", reason="counts the programs of the lazy engine")


def messages(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "root"]


def trained(epochs=1, **kwargs):
    mod = mx.mod.Module(network(mx))
    mod.fit(data(mx), num_epoch=epochs, arg_params=arrays(mx, PARAMS), aux_params=arrays(mx, STATES), **kwargs)
    return mod


# ---- the loop


def test_log_lines(caplog, tmp_path):
    caplog.set_level(logging.INFO)
    trained(
        2,
        eval_data=data(mx, 6),
        batch_end_callback=mx.callback.Speedometer(4, 2),
        epoch_end_callback=mx.callback.do_checkpoint(str(tmp_path / "chk")),
    )
    lines = messages(caplog)
    assert len(lines) == 12
    for epoch in (0, 1):
        expected = [
            rf"Epoch\[{epoch}\] Batch \[0-2\]\tSpeed: \d+\.\d\d samples/sec\taccuracy=\d\.\d{{6}}",
            rf"Epoch\[{epoch}\] Batch \[2-4\]\tSpeed: \d+\.\d\d samples/sec\taccuracy=\d\.\d{{6}}",
            rf"Epoch\[{epoch}\] Train-accuracy=\d\.\d{{6}}",
            rf"Epoch\[{epoch}\] Time cost=\d+\.\d{{3}}",
            rf'Saved checkpoint to "{re.escape(str(tmp_path))}/chk-000{epoch + 1}\.params"',
            rf"Epoch\[{epoch}\] Validation-accuracy=\d\.\d{{6}}",
        ]
        for pattern, line in zip(expected, lines[6 * epoch :], strict=False):
            assert re.fullmatch(pattern, line), line


def test_train_metric_covers_the_epoch_although_the_speedometer_resets_it(caplog):
    caplog.set_level(logging.INFO)
    mod = trained(1, optimizer_params={"learning_rate": 0.0}, batch_end_callback=mx.callback.Speedometer(4, 2))
    line = next(m for m in messages(caplog) if "Train-" in m)
    # The rate is 0, so the epoch's metric is that of the same forward passes.
    mod2 = mx.mod.Module(network(mx))
    mod2.bind(*(s for s in (data(mx).provide_data, data(mx).provide_label)))
    mod2.set_params(arrays(mx, PARAMS), arrays(mx, STATES))
    metric = mx.metric.create("acc")
    for b in data(mx):
        mod2.forward(b, is_train=True)
        mod2.update_metric(metric, b.label)
    assert line == f"Epoch[0] Train-accuracy={metric.get()[1]:f}"
    assert mod.params_initialized


def test_callbacks_receive_what_mxnet_gives():
    seen = []
    trained(
        1,
        eval_data=data(mx, 6),
        batch_end_callback=[lambda p: seen.append(("batch", p.epoch, p.nbatch, "self" in p.locals))],
        epoch_end_callback=lambda e, sym, arg, aux: seen.append(("epoch", e, sorted(arg), sorted(aux))),
        eval_batch_end_callback=lambda p: seen.append(("eval", p.epoch, p.nbatch)),
        eval_end_callback=lambda p: seen.append(("end", p.epoch, p.nbatch)),
    )
    assert [s for s in seen if s[0] == "batch"] == [("batch", 0, i, True) for i in range(5)]
    assert [s for s in seen if s[0] == "eval"] == [("eval", 0, i) for i in range(4)]
    assert seen[-1] == ("end", 0, 4)
    assert ("epoch", 0, sorted(PARAMS), sorted(STATES)) in seen


def test_fit_needs_a_number_of_epochs():
    with pytest.raises(ValueError, match="num_epoch"):
        mx.mod.Module(network(mx)).fit(data(mx))


@lazy
def test_one_program_per_step():
    mod = bound(mx)
    for _ in range(3):
        mod.forward_backward(batch(mx))
        mod.update()
    compiles, flushes = counters.compiles, counters.flushes
    for _ in range(5):
        mod.forward_backward(batch(mx))
        mod.update()
    assert (counters.compiles - compiles, counters.flushes - flushes) == (0, 5)


@lazy
def test_one_program_per_step_with_metric_in_fit():
    mod = bound(mx)
    mod.fit(data(mx), num_epoch=1)
    compiles, flushes = counters.compiles, counters.flushes
    mod.train_epoch(0, data(mx), mx.metric.create("acc"), None, None)
    assert counters.compiles - compiles <= 1
    assert counters.flushes - flushes <= 6


def test_predict_shapes_and_padding():
    mod = trained()
    assert mod.predict(data(mx, 6)).shape == (20, 2)
    parts = mod.predict(data(mx, 6), merge_batches=False)
    assert [p[0].shape for p in parts] == [(6, 2), (6, 2), (6, 2), (2, 2)]
    assert isinstance(mod.predict(data(mx, 6), always_output_list=True), list)
    assert mod.predict(data(mx, 6), num_batch=2).shape == (12, 2)
    assert [(o[0].shape[0], i, b.pad) for o, i, b in mod.iter_predict(data(mx, 6))][-1] == (2, 3, 4)
    whole = mod.predict(data(mx, 6)).asnumpy()
    np.testing.assert_allclose(mod.predict(X).asnumpy(), whole, rtol=1e-5)
    np.testing.assert_allclose(mod.predict(mx.nd.array(X[:3])).asnumpy(), whole[:3], rtol=1e-5)
    # Training goes on after predictions without labels.
    mod.forward_backward(batch(mx))
    mod.update()


def test_score_counts_padding_like_mxnet():
    mod = trained()
    ((name, value),) = mod.score(data(mx, 6), "acc")
    assert name == "accuracy" and (value * 24) == pytest.approx(round(value * 24))
    assert [n for n, _ in mod.score(data(mx, 6), ["acc", "mse"], num_batch=2)] == ["accuracy", "mse"]


# ---- checkpoints


@pytest.mark.usefixtures("xla_tier")  # bits of programs that ran a different number of times
def test_checkpoint_round_trip_with_optimizer_states(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    settings = {"optimizer_params": {"learning_rate": 0.1, "momentum": 0.9}}
    mod = trained(1, **settings)
    prefix = str(tmp_path / "m")
    mod.save_checkpoint(prefix, 3, save_optimizer_states=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m-0003.params", "m-0003.states", "m-symbol.json"]
    assert messages(caplog)[-2:] == [
        f'Saved checkpoint to "{prefix}-0003.params"',
        f'Saved optimizer state to "{prefix}-0003.states"',
    ]
    again = mx.mod.Module.load(prefix, 3, load_optimizer_states=True)
    again.bind(data(mx).provide_data, data(mx).provide_label)
    again.init_optimizer(**settings)
    for m in (mod, again):
        for b in data(mx):
            m.forward_backward(b)
            m.update()
    for a, b in zip(mod.get_params(), again.get_params(), strict=True):
        assert a.keys() == b.keys()
        for k in a:
            assert np.array_equal(a[k].asnumpy(), b[k].asnumpy())


@pytest.mark.usefixtures("xla_tier")  # bits of programs that ran a different number of times
def test_params_files(tmp_path):
    mod = trained()
    f = str(tmp_path / "p.params")
    mod.save_params(f)
    assert set(mx.nd.load(f)) == {f"arg:{k}" for k in PARAMS} | {f"aux:{k}" for k in STATES}
    other = mx.mod.Module(network(mx))
    other.bind(data(mx).provide_data)
    other.load_params(f)
    assert np.array_equal(other.predict(X).asnumpy(), mod.predict(X).asnumpy())
    symbol, args, states = mx.model.load_checkpoint(*_saved(mod, tmp_path))
    assert (
        symbol.list_arguments() == network(mx).list_arguments()
        and set(args) == set(PARAMS)
        and set(states) == set(STATES)
    )


def _saved(mod, tmp_path):
    mod.save_checkpoint(str(tmp_path / "x"), 1)
    return str(tmp_path / "x"), 1


def test_module_checkpoint_callback(tmp_path):
    mod = mx.mod.Module(network(mx))
    mod.fit(data(mx), num_epoch=2, epoch_end_callback=mx.callback.module_checkpoint(mod, str(tmp_path / "c"), 2, True))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c-0002.params", "c-0002.states", "c-symbol.json"]


@pytest.mark.usefixtures("xla_tier")  # bits of programs that ran a different number of times
def test_bucketing_checkpoint(tmp_path):
    def make(key):
        return bucket(mx, key)

    mod = mx.mod.BucketingModule(make, default_bucket_key=6)
    mod.bind([("data", (4, 6))], [("softmax_label", (4,))])
    mod.init_params()
    mod.init_optimizer()
    for i, key in enumerate((6, 3, 4)):
        mod.forward_backward(bucket_batch(mx, i, key))
        mod.update()
    mod.save_checkpoint(str(tmp_path / "b"), 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "b-0001.params", "b-3-symbol.json", "b-4-symbol.json", "b-6-symbol.json", "b.buckets",
    ]  # fmt: skip
    again = mx.mod.BucketingModule.load(str(tmp_path / "b"), 1, make, 6)
    again.bind([("data", (4, 6))], [("softmax_label", (4,))])
    for m in (mod, again):
        m.forward(bucket_batch(mx, 3, 3), is_train=False)
    assert np.array_equal(mod.get_outputs()[0].asnumpy(), again.get_outputs()[0].asnumpy())


def test_buckets_compile_once_each():
    mod = mx.mod.BucketingModule(lambda key: bucket(mx, key), default_bucket_key=6)
    mod.bind([("data", (4, 6))], [("softmax_label", (4,))])
    mod.init_params()
    mod.init_optimizer(optimizer_params={"learning_rate": 0.1, "momentum": 0.9})

    def round_trip():
        for i, key in enumerate((6, 3, 4, 3, 6)):
            mod.forward_backward(bucket_batch(mx, i, key))
            mod.update()

    round_trip()
    round_trip()
    compiles = counters.compiles
    round_trip()
    assert counters.compiles == compiles


# ---- descriptions, parameters and errors


def test_descriptions():
    mod = mx.mod.Module(network(mx, False))
    assert (mod.data_names, mod.label_names, mod.output_names) == (["data"], ["softmax_label"], ["softmax_output"])
    assert not mod.binded and not mod.params_initialized and not mod.optimizer_initialized
    mod.bind([("data", (4, 3))], [("softmax_label", (4,))])
    assert mod.data_shapes == [("data", (4, 3))] and mod.label_shapes == [("softmax_label", (4,))]
    assert mod.output_shapes == [("softmax_output", (4, 2))] and mod.for_training and not mod.inputs_need_grad


def test_without_labels_there_are_no_shapes_of_labels():
    mod = mx.mod.Module(network(mx, False))
    mod.bind([("data", (4, 3))], for_training=False)
    assert mod.label_shapes is None and mod.output_shapes == [("softmax_output", (4, 2))]
    assert mx.mod.PythonLossModule().label_shapes is None


def test_a_batch_may_be_a_named_tuple_of_data():
    mod = trained()
    other = mx.mod.Module(network(mx))
    other.bind([("data", (1, 3))], for_training=False)
    other.set_params(*mod.get_params())
    for n in (1, 2):
        other.forward(namedtuple("Batch", ["data"])([mx.nd.array(X[:n])]))
        want = mod.predict(mx.nd.array(X[:n])).asnumpy()
        np.testing.assert_allclose(other.get_outputs()[0].asnumpy(), want, rtol=1e-5)


def test_a_loaded_module_has_parameters_before_it_is_bound(tmp_path):
    mod = trained()
    mod.save_checkpoint(str(tmp_path / "a"), 1)
    loaded = mx.mod.Module.load(str(tmp_path / "a"), 1)
    loaded.save_params(str(tmp_path / "b.params"))
    saved = mx.nd.load(str(tmp_path / "b.params"))
    for name, value in mod.get_params()[0].items():
        assert np.array_equal(loaded.get_params()[0][name].asnumpy(), value.asnumpy())
        assert np.array_equal(saved[f"arg:{name}"].asnumpy(), value.asnumpy())


@pytest.mark.parametrize("data", [[X], None, 3])
def test_predictions_need_an_iterator_or_an_array(data):
    mod = trained()
    for method in (mod.predict, lambda data: list(mod.iter_predict(data))):
        with pytest.raises(ValueError, match="eval_data of type") as error:
            method(data)
        assert isinstance(error.value, MXNetError)


def test_optimizer_settings():
    mod = bound(mx)
    assert mod._optimizer.rescale_grad == 0.25
    assert mod._optimizer.wd_mult == {"fc1_bias": 0.0, "fc2_bias": 0.0}
    assert mod._optimizer.idx2name == dict(enumerate(PLAIN))
    with pytest.warns(UserWarning, match="rescale_grad"):
        mod.init_optimizer(optimizer=mx.optimizer.SGD(), force_init=True)


def test_multipliers_of_variables():
    w = mx.sym.var("fc_weight", lr_mult=0.0)
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), w, num_hidden=2, name="fc"), name="softmax")
    mod = bound(mx, net, {"fc_weight": np.ones((2, 3)), "fc_bias": np.ones(2)})
    mod.forward_backward(batch(mx))
    mod.update()
    args = mod.get_params()[0]
    assert (args["fc_weight"].asnumpy() == 1).all() and (args["fc_bias"].asnumpy() != 1).all()


def test_variables_with_their_own_initializer():
    w = mx.sym.var("odd_name", init=mx.init.Constant(3))
    net = mx.sym.FullyConnected(mx.sym.var("data"), w, num_hidden=2, name="fc")
    mod = mx.mod.Module(net, label_names=None)
    mod.bind([("data", (4, 3))])
    mod.init_params()
    assert (mod.get_params()[0]["odd_name"].asnumpy() == 3).all()


def test_steps_in_the_wrong_order():
    mod = mx.mod.Module(network(mx, False))
    for call in (
        lambda: mod.data_shapes, mod.get_params, mod.init_params, mod.init_optimizer, mod.update, mod.get_outputs,
        lambda: mod.forward(batch(mx)),
    ):  # fmt: skip
        with pytest.raises(MXNetError, match=r"call \w+\(\) first"):
            call()
    mod.bind([("data", (4, 3))], [("softmax_label", (4,))], for_training=False)
    mod.init_params()
    with pytest.raises(MXNetError, match="for_training"):
        mod.backward()
    with pytest.raises(MXNetError, match="inputs_need_grad"):
        mod.get_input_grads()


def test_states_and_a_value_exclude_each_other():
    mod = bound(mx)
    for given in ({}, {"states": [], "value": 1}):
        with pytest.raises(AssertionError, match="set_states: expected states or value"):
            mod.set_states(**given)


def test_wrong_names():
    for what in ("data_names", "fixed_param_names", "state_names"):
        with pytest.raises(ValueError, match=f"{what}.*'fc1_weigt'.*did you mean 'fc1_weight'"):
            mx.mod.Module(network(mx), **{what: ["fc1_weigt"]})
    with pytest.warns(UserWarning, match="label_names"):
        mx.mod.Module(network(mx), label_names=["bar"])
    mod = mx.mod.Module(network(mx))
    for shapes in ([("dat", (4, 3))], [("data", (4, 3)), ("x", (1,))]):
        with pytest.raises(ValueError, match="data_shapes"):
            mod.bind(shapes)


def test_wrong_parameters():
    mod = bound(mx)
    args = arrays(mx, PLAIN)
    with pytest.raises(MXNetError, match="'fc1_bias' is missing"):
        mod.set_params({}, {})
    mod.set_params({}, {}, allow_missing=True)
    mod.set_params({**args, "foo": mx.nd.ones(1)}, {})
    with pytest.raises(ValueError, match="'foo'"):
        mod.set_params({"foo": mx.nd.ones(1)}, {}, allow_missing=True)
    with pytest.raises(ValueError, match=r"fc1_bias.*\(7,\).*\(4,\)"):
        mod.set_params({**args, "fc1_bias": mx.nd.ones(7)}, {})
    with pytest.warns(UserWarning, match="already initialized"):
        mod.init_params()


def test_wrong_inputs():
    mod = bound(mx)
    with pytest.raises(MXNetError, match="fc1_weight.*must not depend"):
        mod.forward(mx.io.DataBatch([mx.nd.ones((4, 5))], [mx.nd.ones(4)]))
    mod.forward(batch(mx), is_train=True)
    with pytest.raises(MXNetError, match="2 data arrays: expected those of data"):
        mod.forward(mx.io.DataBatch([mx.nd.ones((4, 3))] * 2, [mx.nd.ones(4)]))
    with pytest.raises(ValueError, match="split over 3 contexts"):
        mx.mod.Module(network(mx), context=[mx.cpu(i) for i in range(3)]).bind([("data", (2, 3))])


def test_already_bound_and_optimizer_twice(caplog):
    mod = bound(mx)
    mod.bind([("data", (8, 3))])
    mod.init_optimizer()
    assert messages(caplog) == ["Already bound, ignoring bind()", "optimizer already initialized, ignoring..."]
    mod.bind([("data", (8, 3))], [("softmax_label", (8,))], force_rebind=True)
    assert mod.data_shapes == [("data", (8, 3))]
    assert np.allclose(mod.get_params()[0]["fc1_weight"].asnumpy(), PLAIN["fc1_weight"])


def test_workload_and_slices():
    mod = mx.mod.Module(network(mx), context=[mx.cpu(0), mx.cpu(1)], work_load_list=[1, 3])
    mod.bind([("data", (8, 3))], [("softmax_label", (8,))])
    mod.init_params()
    b = mx.io.DataBatch([mx.nd.array(X[:8])], [mx.nd.array(Y[:8])])
    mod.forward(b)
    (parts,) = mod.get_outputs(merge_multi_context=False)
    assert [p.shape for p in parts] == [(2, 2), (6, 2)]
    assert [p.context for p in parts] == [mx.cpu(0), mx.cpu(1)]
    with pytest.raises(ValueError, match="work_load_list"):
        mx.mod.Module(network(mx), context=[mx.cpu(0)], work_load_list=[1, 3])


def test_gradients_of_outputs_are_cut_as_their_layout_says():
    x = mx.sym.var("data")
    net = mx.sym.Group([mx.sym.square(x, name="y", attr={"__layout__": "TNC"}), mx.sym.sum(x, axis=(0, 2))])
    mod = mx.mod.Module(net, ["data"], None, context=[mx.cpu(0), mx.cpu(1)])
    mod.bind([mx.io.DataDesc("data", (3, 4, 2), layout="TNC")], inputs_need_grad=True)
    mod.init_params()
    data, grad, rows = np.arange(24.0).reshape(3, 4, 2), np.arange(24.0).reshape(3, 4, 2) / 10, np.arange(4.0)
    mod.forward(mx.io.DataBatch([mx.nd.array(data)]), is_train=True)
    mod.backward([mx.nd.array(grad), mx.nd.array(rows)])
    np.testing.assert_allclose(mod.get_input_grads()[0].asnumpy(), 2 * data * grad + rows[None, :, None], rtol=1e-6)
    for wrong, text in (([], "gradient is required"), ([mx.nd.ones(4)] * 3, "3 out_grads for 2"), ([1, 2], "NDArray")):
        with pytest.raises(MXNetError, match=text):
            mod.backward(wrong)


def test_joined_outputs_are_where_the_first_part_is():
    with mx.AttrScope(ctx_group="last"):
        net = mx.sym.exp(mx.sym.var("data"))
    groups = {"last": [mx.cpu(2), mx.cpu(3)]}
    mod = mx.mod.Module(net, ["data"], None, context=[mx.cpu(0), mx.cpu(1)], group2ctxs=groups)
    mod.bind([("data", (4, 3))], for_training=False)
    mod.init_params()
    mod.forward(mx.io.DataBatch([mx.nd.zeros((4, 3))]))
    assert mod.get_outputs()[0].context == mx.cpu(2)
    assert mod.get_outputs()[0].asnumpy().tolist() == [[1.0] * 3] * 4


@pytest.mark.usefixtures("xla_tier")  # bits of programs that ran a different number of times
def test_initial_values_do_not_depend_on_groups():
    def drawn(**groups):
        with mx.AttrScope(ctx_group="first"):
            hidden = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=8, name="a")
        with mx.AttrScope(ctx_group="second"):
            net = mx.sym.FullyConnected(hidden, num_hidden=2, name="b")
        mx.random.seed(1)
        mod = mx.mod.Module(net, ["data"], None, **groups)
        mod.bind([("data", (4, 3))], for_training=False)
        mod.init_params(mx.init.Xavier())
        return mod.get_params()[0]

    plain, grouped = drawn(), drawn(group2ctxs={"first": mx.cpu(1), "second": mx.cpu(2)})
    for name, value in plain.items():
        np.testing.assert_array_equal(grouped[name].asnumpy(), value.asnumpy(), err_msg=name)


def test_several_contexts_average_batch_statistics():
    mod = mx.mod.Module(network(mx), context=[mx.cpu(0), mx.cpu(1)])
    mod.bind([("data", (4, 3))], [("softmax_label", (4,))])
    mod.init_params(arg_params=arrays(mx, PARAMS), aux_params=arrays(mx, STATES))
    mod.forward(batch(mx), is_train=True)
    mod.backward()
    means = [d.aux["bn_moving_mean"].asnumpy() for d in mod.devices]
    assert not np.allclose(*means)
    np.testing.assert_allclose(mod.get_params()[1]["bn_moving_mean"].asnumpy(), np.mean(means, 0), rtol=1e-6)


def test_a_store_object_updates():
    class Store:
        type, num_workers, rank = "local", 1, 0

        def __init__(self):
            self.values, self.updater = {}, None

        def init(self, keys, values):
            self.values.update((k, v.copy()) for k, v in zip(keys, values, strict=True))

        def set_optimizer(self, optimizer):
            self.updater = mx.optimizer.get_updater(optimizer)

        def push(self, keys, values, priority=0):
            for k, v in zip(keys, values, strict=True):
                self.updater(k, sum(v[1:], v[0]), self.values[k])

        def pull(self, keys, out, priority=0):
            for k, targets in zip(keys, out, strict=True):
                for t in targets:
                    self.values[k].copyto(t)

    results = []
    for store in (Store(), None):
        mod = bound(mx)
        mod.init_optimizer(store, optimizer_params={"learning_rate": 0.1, "wd": 0.1}, force_init=True)
        mod.forward_backward(batch(mx))
        mod.update()
        results.append(mod.get_params()[0])
    for k, v in results[0].items():
        np.testing.assert_allclose(v.asnumpy(), results[1][k].asnumpy(), rtol=1e-6)


def test_parameters_in_half_precision():
    net = mx.sym.FullyConnected(mx.sym.cast(mx.sym.var("data"), dtype="float16"), num_hidden=2, name="fc")
    net = mx.sym.SoftmaxOutput(mx.sym.cast(net, dtype="float32"), name="softmax")
    mod = mx.mod.Module(net)
    mod.bind([("data", (4, 3))], [("softmax_label", (4,))])
    mod.init_params(mx.init.Xavier())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mod.init_optimizer(optimizer_params={"learning_rate": 0.1, "momentum": 0.9, "multi_precision": True})
    mod.forward_backward(batch(mx))
    mod.update()
    assert mod.get_params()[0]["fc_weight"].dtype is np.float16


def test_chain_errors():
    chain = mx.mod.SequentialModule()
    with pytest.raises(MXNetError, match=r"add\(\) first"):
        chain.bind([("data", (4, 3))])
    with pytest.raises(ValueError, match="did you mean 'take_labels'"):
        chain.add(features(mx), take_label=True)
    chain.add(features(mx)).add(features(mx), auto_wiring=True)
    chain.bind([("data", (4, 3))])
    with pytest.raises(MXNetError, match="'a_weight'"):
        chain.init_params()


def test_python_module_without_parameters():
    class Scale(mx.mod.PythonModule):
        def _compute_output_shapes(self):
            return [("scaled", self.data_shapes[0].shape)]

        def forward(self, data_batch, is_train=None):
            self.out = data_batch.data[0] * 2

        def get_outputs(self, merge_multi_context=True):
            return [self.out]

    mod = Scale(["data"], None, ["scaled"])
    mod.bind([("data", (4, 3))], for_training=False)
    mod.init_params()
    assert mod.output_shapes == [("scaled", (4, 3))] and mod.get_params() == ({}, {})
    np.testing.assert_allclose(mod.predict(mx.io.NDArrayIter(X[:6], batch_size=4)).asnumpy(), X[:6] * 2)
    with pytest.raises(ValueError, match="expected"):
        Scale(["x"], None, ["y"]).bind([("data", (4, 3))])


def test_a_consumed_iterator_starts_again():
    it = data(mx)
    list(it)
    mod = mx.mod.Module(network(mx))
    seen = []
    mod.fit(it, num_epoch=1, batch_end_callback=lambda p: seen.append(p.nbatch))
    assert seen == list(range(5))
    with pytest.raises(MXNetError, match="no batches"):
        mod.fit(mx.io.NDArrayIter(X, Y, batch_size=40, last_batch_handle="discard"), num_epoch=1)


def test_states_are_read_beside_a_backward_that_follows_a_flush():
    gamma, beta, mean, var = mx.nd.ones(4), mx.nd.ones(4), mx.nd.zeros(4), mx.nd.ones(4)
    gamma.attach_grad()
    with mx.autograd.record():
        y = mx.nd.BatchNorm(mx.nd.ones((2, 4)), gamma, beta, mean, var, fix_gamma=False)
    y.wait_to_read()
    y.backward()
    copy = mean.copy()
    np.testing.assert_allclose(copy.asnumpy(), 0.1, rtol=1e-6)
    assert gamma.grad.asnumpy().tolist() == [0, 0, 0, 0]
