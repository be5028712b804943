"""Names with an underscore of modules, executors and monitors, as loops written for MXNet use them."""

from types import SimpleNamespace

import numpy as np
import pytest

import dualmx as mx
from dualmx import nd

SHAPES = [("data", (4, 3))], [("softmax_label", (4,))]


def network():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    return mx.sym.SoftmaxOutput(mx.sym.BatchNorm(net, name="bn"), name="softmax")


def batch(rows=4):
    return mx.io.DataBatch([nd.array(np.arange(rows * 3).reshape(rows, 3))], [nd.array(np.arange(rows) == rows - 1)])


def module(contexts=None, **kwargs):
    mod = mx.mod.Module(network(), context=contexts, fixed_param_names=["bn_gamma"])
    mod.bind(*SHAPES, **kwargs)
    mod.init_params(mx.init.One())
    return mod


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.usefixtures("xla_tier")  # bits of programs that ran a different number of times
def test_a_module_shows_its_executors(devices: int) -> None:
    contexts = [mx.cpu(i) for i in range(devices)]
    mod = module(contexts)
    group = mod._exec_group
    assert group is mod._exec_group and len(group.execs) == devices and group.contexts == mod._context == contexts
    assert group.param_names == mod._param_names == ["fc_weight", "fc_bias", "bn_gamma", "bn_beta"]
    assert group.aux_names == ["bn_moving_mean", "bn_moving_var"] and group.output_names == ["softmax_output"]
    assert group.batch_size == 4 and group.slices == [
        slice(i * 4 // devices, (i + 1) * 4 // devices) for i in range(devices)
    ]
    assert group.grad_req["bn_gamma"] == group.grad_req["data"] == "null" and group.grad_req["fc_bias"] == "write"
    mod.forward_backward(batch())
    assert [[a.shape for a in arrays] for arrays in group.param_arrays] == [
        [s] * devices for s in [(2, 3), (2,), (2,), (2,)]
    ]
    assert group.grad_arrays[2] == [None] * devices and group.grad_arrays[0][0].shape == (2, 3)
    assert [len(a) for a in group.aux_arrays] == [devices] * 2
    (rows, first), *_ = group.data_arrays[0]
    np.testing.assert_array_equal(first.asnumpy(), batch().data[0].asnumpy()[rows])
    assert group.label_arrays[0][-1][1].asnumpy().tolist() == [0, 0, 0, 1][-4 // devices :]
    assert group.input_grad_arrays is None and group.state_arrays == []
    np.testing.assert_array_equal(group.get_outputs()[0].asnumpy(), mod.get_outputs()[0].asnumpy())
    assert len(group.get_outputs(merge_multi_context=False)[0]) == devices
    # What is written there, is used.
    for array in group.param_arrays[3]:
        array[:] = 7
    assert mod.get_params()[0]["bn_beta"].asnumpy().tolist() == [7, 7]
    group.set_params({"bn_beta": nd.array([1, 2])}, {})
    assert group.execs[-1].arg_dict["bn_beta"].asnumpy().tolist() == [1, 2]


def test_executors_follow_the_shapes() -> None:
    mod = module()
    group = mod._exec_group
    mod.reshape([("data", (6, 3))], [("softmax_label", (6,))])
    assert mod._exec_group is group and group.batch_size == 6
    mod.forward(batch(2), is_train=False)
    assert group.batch_size == 2 and group.get_outputs()[0].shape == (2, 2)
    assert [d.shape for d in mod._data_shapes] == [(2, 3)] and [d.shape for d in mod._label_shapes] == [(2,)]
    mod._reset_bind()
    assert not mod.binded and mod._exec_group is mod._data_shapes is mod._label_shapes is None
    mod.bind(*SHAPES)
    assert mod._exec_group.batch_size == 4 and mod.get_params()[0]["fc_weight"].asnumpy().all()


def test_input_gradients_of_the_executors() -> None:
    mod = module(inputs_need_grad=True)
    mod.forward_backward(batch())
    np.testing.assert_array_equal(mod._exec_group.input_grad_arrays[0][0].asnumpy(), mod.get_input_grads()[0].asnumpy())


def test_a_module_tells_its_state() -> None:
    mod = mx.mod.Module(network(), fixed_param_names=["bn_gamma"])
    assert mod._exec_group is mod._arg_params is mod._aux_params is mod._data_shapes is None
    assert mod._kvstore is mod._updater is mod._update_on_kvstore is mod._group2ctxs is mod._compression_params is None
    assert mod._output_names == ["softmax_output"] and mod._fixed_param_names == ["bn_gamma"]
    assert mod._context == [mx.cpu()] and mod._work_load_list == [1] and not mod._params_dirty
    mod.bind(SHAPES[0], None, for_training=False)
    assert mod._label_shapes is None and mod._arg_params["fc_weight"].shape == (2, 3)
    assert not mod.params_initialized


@pytest.mark.parametrize("store", [False, True])
def test_parameters_on_the_host_follow_when_asked(store: bool) -> None:
    mod = module()
    mod.init_optimizer(kvstore=mx.kv.create("local") if store else "local", optimizer_params={"learning_rate": 0.5})
    assert (mod._kvstore is not None) is mod._update_on_kvstore is store and (mod._updater is None) is store
    held = mod._arg_params
    before = held["bn_beta"].asnumpy()
    mod.forward_backward(batch())
    assert not mod._params_dirty
    mod.update()
    assert mod._params_dirty
    np.testing.assert_array_equal(mod._arg_params["bn_beta"].asnumpy(), before)
    mod._sync_params_from_devices()
    assert not mod._params_dirty and mod._arg_params is held
    now = mod._exec_group.execs[0]
    assert (held["bn_beta"].asnumpy() != before).any()
    np.testing.assert_array_equal(held["bn_beta"].asnumpy(), now.arg_dict["bn_beta"].asnumpy())
    np.testing.assert_array_equal(mod._aux_params["bn_moving_mean"].asnumpy(), now.aux_dict["bn_moving_mean"].asnumpy())


def test_an_update_made_of_the_parts_of_a_module() -> None:
    class Own(mx.mod.Module):
        def update(self):
            self._params_dirty = True
            group = self._exec_group
            for i, (arrays, grads) in enumerate(zip(group.param_arrays, group.grad_arrays, strict=True)):
                if grads[0] is not None:
                    self._updater(i, grads[0], arrays[0])

    found = []
    for kind in (mx.mod.Module, Own):
        mod = kind(network(), fixed_param_names=["bn_gamma"])
        mod.bind(*SHAPES)
        mod.init_params(mx.init.One())
        mod.init_optimizer(optimizer_params={"learning_rate": 0.5, "momentum": 0.9})
        for _ in range(3):
            mod.forward_backward(batch())
            mod.update()
        found.append({k: v.asnumpy() for k, v in mod.get_params()[0].items()})
    for name, value in found[0].items():
        np.testing.assert_allclose(found[1][name], value, rtol=1e-5, atol=1e-6)


def test_parameters_can_be_put_into_a_module_before_it_is_bound() -> None:
    args, aux = module().get_params()
    args = {name: value * 3 for name, value in args.items()}
    mod = mx.mod.Module(network())
    mod._arg_params, mod._aux_params, mod.params_initialized = args, aux, True
    assert mod._arg_params is args
    mod.bind(*SHAPES)
    assert mod.get_params()[0]["fc_weight"].asnumpy().tolist() == [[3] * 3] * 2


def test_buckets_tell_their_state() -> None:
    mod = mx.mod.BucketingModule(
        lambda key: (network(), ("data",), ("softmax_label",)), default_bucket_key=4, fixed_param_names=["bn_gamma"]
    )
    assert mod._buckets == {} and not mod._params_dirty and mod._context == mx.cpu()
    assert mod._fixed_param_names == ["bn_gamma"] and mod._state_names == []
    assert mod._call_sym_gen(4)[1:] == (("data",), ("softmax_label",))
    mod.bind(*SHAPES)
    mod.init_params()
    mod.init_optimizer()
    small = batch(2)
    small.bucket_key, small.provide_data, small.provide_label = 2, [("data", (2, 3))], [("softmax_label", (2,))]
    mod.forward_backward(small)
    assert not mod._params_dirty
    mod.update()
    assert mod._params_dirty and mod._curr_bucket_key == 2 and mod._curr_module is mod._buckets[2]
    assert mod._buckets[2]._updater is mod._buckets[4]._updater is not None
    assert mod._buckets[2]._arg_params is mod._buckets[4]._arg_params
    mod.get_params()
    assert not mod._params_dirty


def test_executors_and_monitors() -> None:
    exe = network().simple_bind(mx.cpu(), data=(4, 3))
    assert exe._monitor_callback is exe._monitor_all is exe._output_dict is None
    assert exe._get_dict(["a", "b"], [1, 2]) == {"a": 1, "b": 2}
    with pytest.raises(ValueError, match="'a'"):
        exe._get_dict(["a", "a"], [1, 2])
    mon = mx.mon.Monitor(1, pattern="bn.*|own")
    exe.set_monitor_callback(mon.stat_helper)
    assert exe._monitor_callback == mon.stat_helper and exe._monitor_all is False
    mon.stat_helper("own", nd.ones(3))
    assert mon.queue == []
    mon.tic()
    mon.stat_helper("own", nd.ones(3) * 2)
    exe.forward()
    assert list(exe._output_dict) == ["softmax_output"]
    assert [(step, name) for step, name, _ in mon.toc()] == [(1, "own"), (1, "bn_output")]


def executors_of_own(contexts):
    """Executors of a regression over some contexts, their parameters and gradients by parameter."""
    net = mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc"), name="out")
    bound = [net.simple_bind(ctx, data=(4, 3), out_label=(4, 1)) for ctx in contexts]
    names = ["fc_weight", "fc_bias"]
    params = [[e.arg_dict[n] for e in bound] for n in names]
    grads = [[e.grad_dict[n] for e in bound] for n in names]
    return bound, names, params, grads


@pytest.mark.parametrize("kind", ["local", "device", None])
@pytest.mark.parametrize("in_store", [True, False])
def test_loops_of_ones_own_over_a_store(kind, in_store):
    contexts = [mx.cpu(0), mx.cpu(0)]
    draw = np.random.RandomState(0)
    x, w = draw.randn(8, 3), np.array([[1.0, -2.0, 0.5]])
    bound, names, params, grads = executors_of_own(contexts)
    store, _ = mx.model._create_kvstore(kind, len(contexts), dict.fromkeys(names, params[0][0]))
    first = {n: mx.nd.zeros(p[0].shape) for n, p in zip(names, params, strict=True)}
    optimizer = mx.optimizer.SGD(learning_rate=0.03)
    updater = mx.optimizer.get_updater(optimizer)
    in_store = in_store and store is not None
    if store is not None:
        mx.model._initialize_kvstore(store, params, first, names, in_store)
        if in_store:
            store.set_optimizer(optimizer)
    for _ in range(400):
        for k, e in enumerate(bound):
            part = x[4 * k : 4 * k + 4]
            e.forward(is_train=True, data=part, out_label=part @ w.T)
            e.backward()
        if in_store:
            mx.model._update_params_on_kvstore(params, grads, store, names)
        else:
            mx.model._update_params(params, grads, updater, len(contexts), store, names)
    for k in range(2):
        got = params[0][k].asnumpy()
        if store is not None:
            np.testing.assert_allclose(got, w, atol=0.02)
            np.testing.assert_array_equal(got, params[0][0].asnumpy())
    if store is None:  # each copy has learned from its own part
        assert not np.array_equal(params[0][0].asnumpy(), params[0][1].asnumpy())


def test_which_store_a_loop_of_ones_own_gets(monkeypatch):
    params = {"w": mx.nd.zeros((2,))}
    for kind, count, found in (("local", 1, None), ("local", 2, True), ("device", 2, True), (None, 2, None)):
        store, in_store = mx.model._create_kvstore(kind, count, params)
        assert (store is None, in_store) == (found is None, found is True)
    large = {"w": SimpleNamespace(shape=(4096, 4097))}
    assert mx.model._create_kvstore("local", 2, large)[1] is False
    assert mx.model._create_kvstore("device", 2, large)[1] is True
    given = mx.kv.create("local")
    assert mx.model._create_kvstore(given, 1, params) == (given, True)
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", "0")
    assert mx.model._create_kvstore("device", 2, params)[1] is False
    assert mx.model._create_sparse_kvstore("local")[1] is True
    for make, args in ((mx.model._create_kvstore, (3, 1, params)), (mx.model._create_sparse_kvstore, (None,))):
        with pytest.raises(TypeError, match="kvstore"):
            make(*args)
