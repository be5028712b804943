"""Executors: binding, gradients, states, reshaping, monitors, and their place in the lazy engine."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import dualmx as mx
from dualmx.ndarray.recorder import engine


def fc(**kwargs):
    return mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=3, name="fc", **kwargs)


def bound(**kwargs):
    return fc().simple_bind(mx.cpu(), x=(2, 4), **kwargs)


def test_the_introductory_example():
    x, y = mx.sym.Variable("X"), mx.sym.Variable("Y")
    m = (x + y) / 100
    assert m.list_arguments() == ["X", "Y"]
    exe = m.bind(mx.cpu(), {"X": mx.nd.ones(10), "Y": mx.nd.ones(10)})
    np.testing.assert_allclose(exe.forward()[0].asnumpy(), np.full(10, 0.02), rtol=1e-6)


def test_simple_bind_gives_every_argument_a_gradient():
    exe = bound()
    assert [a.shape for a in exe.arg_arrays] == [(2, 4), (3, 4), (3,)]
    assert all(g is not None for g in exe.grad_arrays)
    assert exe.aux_arrays == []


@pytest.mark.parametrize(
    ("grad_req", "kept"),
    [
        ("null", []),
        ({"fc_weight": "write"}, ["fc_weight"]),
        (["write", "null", "add"], ["x", "fc_bias"]),
    ],
)
def test_gradient_requests(grad_req, kept):
    assert [n for n, g in bound(grad_req=grad_req).grad_dict.items() if g is not None] == kept


@pytest.mark.parametrize("grad_req", ["foo", ["write"], 3])
def test_wrong_gradient_requests_raise(grad_req):
    with pytest.raises(mx.MXNetError, match="grad_req"):
        bound(grad_req=grad_req)


def test_types_follow():
    exe = bound(type_dict={"x": "float16"})
    assert exe.arg_dict["fc_weight"].dtype == np.float16
    assert exe.grad_dict["fc_bias"].dtype == np.float16
    assert exe.outputs[0].dtype == np.float16


def test_missing_shapes_are_listed():
    with pytest.raises(mx.MXNetError, match="fc_weight"):
        fc().simple_bind(mx.cpu())
    # The bias alone would be known, but as in MXNet nothing is said before the data is.
    assert fc().infer_shape_partial()[0] == [(), (), ()]


def test_backward_follows_an_inference_or_no_forward():
    for ran in (False, True):
        exe = bound()
        if ran:
            exe.forward()
        exe.backward(mx.nd.ones((2, 3)))
        np.testing.assert_allclose(exe.grad_dict["fc_bias"].asnumpy(), [2, 2, 2])
    bound(grad_req="null").backward()


@pytest.mark.usefixtures("one_tier")
@pytest.mark.parametrize("naive", [False, True])
@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("passes", [2, 3])
def test_backward_follows_the_last_forward_only(passes: int, fixed: bool, naive: bool, monkeypatch: pytest.MonkeyPatch):
    """Statistics that earlier passes have updated lead to no gradient of these passes."""
    monkeypatch.setattr(engine, "naive", naive)
    draw = np.random.default_rng(0)
    symbol = mx.sym.BatchNorm(mx.sym.Variable("data"), fix_gamma=fixed, name="norm")
    given = {n: draw.standard_normal(s).astype("f") for n, s in (("data", (4, 3)), ("norm_gamma", 3), ("norm_beta", 3))}
    seed = mx.nd.array(draw.standard_normal((4, 3)))
    found = []
    for n in (1, passes):
        exe = symbol.simple_bind(mx.cpu(), data=(4, 3))
        exe.copy_params_from({k: mx.nd.array(v) for k, v in given.items()})
        for _ in range(n):
            exe.forward(is_train=True)
        exe.backward(seed)
        found.append({k: g.asnumpy() for k, g in exe.grad_dict.items()})
    assert all(np.array_equal(found[1][k], g) for k, g in found[0].items())
    assert all(g.any() != (fixed and k == "norm_gamma") for k, g in found[0].items())


@pytest.mark.parametrize("training", [False, True])
def test_a_pass_within_a_recording_leaves_it_as_it_was(training):
    x = mx.nd.array([3.0])
    x.attach_grad()
    exe = bound()
    with mx.autograd.record(train_mode=training):
        exe.forward()
        assert (mx.autograd.is_recording(), mx.autograd.is_training()) == (True, training)
        y = x * x
    y.backward()
    assert x.grad.asscalar() == 6
    with mx.autograd.train_mode():
        exe.forward()
        assert (mx.autograd.is_recording(), mx.autograd.is_training()) == (False, True)
        z = x * 2
    with pytest.raises(mx.MXNetError, match="the heads do not depend on any variable"):
        z.backward()


def test_backward_needs_a_head_gradient():
    exe = bound()
    exe.forward(is_train=True)
    with pytest.raises(mx.MXNetError, match="out_grads"):
        exe.backward()
    with pytest.raises(TypeError, match=r"out_grads\[0\]=1: expected an NDArray"):
        exe.backward([1])
    with pytest.raises(mx.MXNetError, match="shape"):
        exe.backward(mx.nd.ones((2, 2)))
    exe.backward(mx.nd.ones((2, 3)))
    np.testing.assert_allclose(exe.grad_dict["fc_bias"].asnumpy(), [2, 2, 2])
    exe.forward(is_train=True)
    exe.backward({"fc_output": mx.nd.ones((2, 3)) * 2})
    np.testing.assert_allclose(exe.grad_dict["fc_bias"].asnumpy(), [4, 4, 4])


def test_write_overwrites_and_add_adds():
    x = mx.sym.var("x")
    for req, want in (("write", [2.0, 2.0]), ("add", [6.0, 6.0])):
        exe = mx.sym.MakeLoss(x * 2).simple_bind(mx.cpu(), grad_req=req, x=(2,))
        for _ in range(2):
            exe.forward(is_train=True)
            exe.backward()
        exe.backward()
        assert exe.grad_dict["x"].asnumpy().tolist() == want


@pytest.mark.parametrize("op", ["BlockGrad", "zeros_like", "argmax", "round", "shape_array"])
def test_constant_heads_need_no_gradient(op):
    x = mx.sym.var("x")
    net = mx.sym.Group([mx.sym.MakeLoss(x), getattr(mx.sym, op)(x)])
    exe = net.simple_bind(mx.cpu(), x=(2,))
    exe.forward(is_train=True)
    exe.backward()
    assert exe.grad_dict["x"].asnumpy().tolist() == [1.0, 1.0]


X, LABEL = mx.sym.var("x"), mx.sym.var("label")


@pytest.mark.parametrize(
    ("net", "want"),
    [
        (mx.sym.Reshape(mx.sym.SoftmaxOutput(X, LABEL), shape=(1, -1)), [[0.5, -0.5], [-0.5, 0.5]]),
        (mx.sym.slice_axis(mx.sym.SoftmaxOutput(X, LABEL), axis=1, begin=0, end=1), [[0.5, -0.5], [-0.5, 0.5]]),
        (mx.sym.exp(mx.sym.MakeLoss(X * X)) * 3, [[2.0, 2.0], [4.0, 4.0]]),
        (mx.sym.MakeLoss(X * X) + mx.sym.BlockGrad(X), [[2.0, 2.0], [4.0, 4.0]]),
        (mx.sym.sum(mx.sym.BlockGrad(X)), [[0.0, 0.0], [0.0, 0.0]]),
        (mx.sym.broadcast_add(mx.sym.MakeLoss(X * X), mx.sym.sum(LABEL)), [[2.0, 2.0], [4.0, 4.0]]),
    ],
    ids=["reshape", "slice", "exp", "constant", "blocked", "no_gradient_of_label"],
)
def test_heads_whose_gradient_reaches_no_variable_need_none(net, want):
    shapes = {name: (2, 2) if name == "x" else (2,) for name in net.list_arguments()}
    req = {"x": "write", "label": "null"}
    exe = net.simple_bind(mx.cpu(), grad_req={name: req[name] for name in shapes}, **shapes)
    exe.forward(is_train=True, **{n: mx.nd.array([[1, 1], [2, 2]] if n == "x" else [1, 0]) for n in shapes})
    exe.backward()
    np.testing.assert_allclose(exe.grad_dict["x"].asnumpy(), want, rtol=1e-6)


def test_a_head_whose_gradient_reaches_a_variable_needs_it():
    exe = (mx.sym.MakeLoss(X * X) * mx.sym.var("scale")).simple_bind(mx.cpu(), x=(2,), scale=(2,))
    exe.forward(is_train=True)
    with pytest.raises(mx.MXNetError, match="_mul.*_output.* is not a loss"):
        exe.backward()


def test_a_group_with_another_head_needs_its_gradient():
    x = mx.sym.var("x")
    exe = mx.sym.Group([mx.sym.MakeLoss(x), x * 3]).simple_bind(mx.cpu(), x=(2,))
    exe.forward(is_train=True)
    with pytest.raises(mx.MXNetError, match="_mulscalar"):
        exe.backward()
    exe.backward([None, mx.nd.array([1, 2])])
    assert exe.grad_dict["x"].asnumpy().tolist() == [4.0, 7.0]


def test_forward_takes_new_values_and_checks_them():
    exe = bound()
    exe.copy_params_from({"fc_weight": mx.nd.ones((3, 4)), "fc_bias": mx.nd.zeros(3)})
    assert exe.forward(x=np.ones((2, 4)))[0].asnumpy().tolist() == [[4.0] * 3] * 2
    assert exe.forward(x=mx.nd.ones((2, 4)) * 2)[0].asnumpy().tolist() == [[8.0] * 3] * 2
    with pytest.raises(TypeError, match="nope"):
        exe.forward(nope=mx.nd.ones(2))
    with pytest.raises(ValueError, match="shape"):
        exe.forward(x=mx.nd.ones((3, 4)))
    with pytest.raises(ValueError, match="forward: x=1: expected an NDArray or a NumPy array"):
        exe.forward(x=1)


def test_copy_params_from_checks_names_and_shapes():
    exe = bound()
    with pytest.raises(ValueError, match="nope"):
        exe.copy_params_from({"nope": mx.nd.ones((3, 4))})
    exe.copy_params_from({"nope": mx.nd.ones((3, 4))}, allow_extra_params=True)
    with pytest.raises(ValueError, match="nope"):
        exe.copy_params_from({}, {"nope": mx.nd.ones(1)})
    with pytest.raises(mx.MXNetError, match="shape"):
        exe.copy_params_from({"fc_weight": mx.nd.ones((3, 5))})


def test_bind_checks_its_arrays():
    x, w, b = mx.nd.ones((2, 4)), mx.nd.ones((3, 4)), mx.nd.zeros(3)
    names = dict(zip(["x", "fc_weight", "fc_bias"], [x, w, b], strict=True))
    assert fc().bind(mx.cpu(), names).forward()[0].asnumpy()[0, 0] == 4
    assert fc().bind(mx.cpu(), [x, w, b]).grad_dict == {"x": None, "fc_weight": None, "fc_bias": None}
    for args, error, said in (
        ({"x": x, "fc_weight": w}, ValueError, "key 'fc_bias' is missing in args"),
        ([x, w], ValueError, "args has 2 arrays for 3 names"),
        ([x, w, 1], TypeError, "args 'fc_bias' is 1: expected an NDArray"),
        (3, TypeError, "args of type int: expected a list or a dict"),
        ([x, w, mx.nd.zeros(4)], mx.MXNetError, "input 'bias' has shape .4,., but .3,. follows"),
    ):
        with pytest.raises(error, match=said):
            fc().bind(mx.cpu(), args)
    with pytest.raises(TypeError, match="ctx"):
        fc().bind("cpu", [x, w, b])
    with pytest.raises(ValueError, match="args_grad"):
        fc().bind(mx.cpu(), [x, w, b], args_grad=[mx.nd.zeros((2, 4))])


def test_two_variables_of_one_name_cannot_be_bound():
    with pytest.raises(mx.MXNetError, match="'w'"):
        (mx.sym.var("w") + mx.sym.var("w")).simple_bind(mx.cpu(), w=(2,))


def test_eval():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    assert (a * b).eval(a=mx.nd.ones(2) * 3, b=mx.nd.ones(2) * 2)[0].asnumpy().tolist() == [6.0, 6.0]
    with pytest.raises(ValueError, match="'b'"):
        (a * b).eval(a=mx.nd.ones(2))


def test_bound_arrays_are_seen_live():
    exe = fc().bind(mx.cpu(), [mx.nd.ones((2, 4)), weight := mx.nd.ones((3, 4)), mx.nd.zeros(3)])
    exe.forward()
    weight[:] = 2
    assert exe.forward()[0].asnumpy()[0, 0] == 8


def test_reshape_shares_what_keeps_its_shape():
    exe = bound()
    other = exe.reshape(x=(1, 4))
    assert other.outputs[0].shape == (1, 3)
    exe.arg_dict["fc_weight"][:] = 7
    assert other.arg_dict["fc_weight"].asnumpy()[0, 0] == 7
    with pytest.raises(mx.MXNetError, match="allow_up_sizing"):
        exe.reshape(x=(5, 4))
    assert exe.reshape(x=(5, 4), allow_up_sizing=True).forward()[0].shape == (5, 3)
    with pytest.raises(mx.MXNetError, match="partial_shaping"):
        exe.reshape(x=(1, 5))
    wide = exe.reshape(partial_shaping=True, allow_up_sizing=True, x=(1, 5))
    assert wide.arg_dict["fc_weight"].shape == (3, 5)
    with pytest.raises(TypeError, match="nope"):
        exe.reshape(nope=(1, 2))


def test_shared_arguments():
    big = bound()
    small = fc().simple_bind(mx.cpu(), x=(1, 4), shared_arg_names=["fc_weight", "fc_bias"], shared_exec=big)
    big.arg_dict["fc_weight"][:] = 3
    assert small.arg_dict["fc_weight"].asnumpy()[0, 0] == 3


def test_monitor_sees_every_output():
    seen = []
    exe = mx.sym.relu(fc(), name="act").simple_bind(mx.cpu(), x=(2, 4))
    exe.set_monitor_callback(lambda name, array: seen.append((name, array.shape)))
    exe.forward(is_train=True)
    assert seen == [("fc_output", (2, 3)), ("act_output", (2, 3))]
    seen.clear()
    exe.set_monitor_callback(lambda name, array: seen.append(name), monitor_all=True)
    exe.forward()
    assert seen == ["x", "fc_weight", "fc_bias", "fc_output", "act_output"]


def test_monitors_written_for_handles():
    seen = {}

    def callback(name, handle):
        array = mx.nd.NDArray(ctypes.cast(handle, mx.base.NDArrayHandle), writable=False)
        seen[mx.base.py_str(name)] = array.asnumpy().tolist()

    exe = mx.sym.exp(mx.sym.var("x"), name="e").simple_bind(mx.cpu(), x=(2,))
    exe.set_monitor_callback(callback)
    exe.forward()
    assert seen == {"e_output": [1, 1]}
    x = exe.arg_dict["x"]
    assert mx.nd.NDArray(x.handle) is x
    for wrong in (3, None, ctypes.c_void_p(8)):
        with pytest.raises(
            AssertionError, match="NDArray: handle=(3|None): expected a base.NDArrayHandle|no array has this address"
        ):
            mx.nd.NDArray(wrong)


def test_states_move_in_training_only():
    exe = mx.sym.BatchNorm(mx.sym.var("x"), name="bn", fix_gamma=False).simple_bind(mx.cpu(), x=(2, 3))
    exe.arg_dict["x"][:] = mx.nd.array([[1, 2, 3], [3, 4, 5]])
    exe.forward()
    assert exe.aux_dict["bn_moving_mean"].asnumpy().tolist() == [0, 0, 0]
    exe.forward(is_train=True)
    np.testing.assert_allclose(exe.aux_dict["bn_moving_mean"].asnumpy(), [0.2, 0.3, 0.4], rtol=1e-5)
    exe.backward(mx.nd.ones((2, 3)))
    exe.backward(mx.nd.ones((2, 3)))
    np.testing.assert_allclose(exe.aux_dict["bn_moving_mean"].asnumpy(), [0.2, 0.3, 0.4], rtol=1e-5)


def test_dropout_is_on_in_training_only():
    exe = mx.sym.Dropout(mx.sym.var("x"), p=0.5).simple_bind(mx.cpu(), x=(100,))
    exe.arg_dict["x"][:] = 1
    assert exe.forward()[0].asnumpy().min() == 1
    first, second = (exe.forward(is_train=True)[0].asnumpy() for _ in range(2))
    assert set(np.unique(first)) == {0, 2}
    assert (first != second).any()
    exe.forward(is_train=True)
    exe.backward(mx.nd.ones(100))
    np.testing.assert_array_equal(exe.grad_dict["x"].asnumpy(), exe.outputs[0].asnumpy())


def test_the_users_own_gradients_are_left_alone():
    w = mx.nd.array([1.0, 2.0])
    w.attach_grad()
    with mx.autograd.record():
        y = w * 3
    exe = mx.sym.MakeLoss(mx.sym.var("w") * 5).bind(mx.cpu(), {"w": w}, args_grad={"w": mx.nd.zeros(2)})
    exe.forward(is_train=True)
    exe.backward()
    y.backward()
    assert exe.grad_dict["w"].asnumpy().tolist() == [5, 5]
    assert w.grad.asnumpy().tolist() == [3, 3]


def test_integer_arguments_get_no_gradient():
    net = mx.sym.MakeLoss(mx.sym.take(mx.sym.var("a"), mx.sym.var("i")))
    exe = net.simple_bind(mx.cpu(), a=(3, 2), i=(2,), type_dict={"i": "int32"})
    exe.arg_dict["i"][:] = mx.nd.array([2, 2], dtype="int32")
    exe.forward(is_train=True)
    exe.backward()
    assert exe.grad_dict["a"].asnumpy().tolist() == [[0, 0], [0, 0], [2, 2]]


def test_zeros_take_their_batch_size_from_the_graph():
    x = mx.sym.var("x")
    state = mx.sym.zeros((0, 3), name="begin")
    step = mx.sym.FullyConnected(x, num_hidden=3, name="i2h") + mx.sym.FullyConnected(state, num_hidden=3, name="h2h")
    assert step.infer_shape(x=(5, 2))[1] == [(5, 3)]
    exe = mx.sym.Activation(step, act_type="tanh").simple_bind(mx.cpu(), x=(5, 2))
    assert exe.forward()[0].shape == (5, 3)
    with pytest.raises(mx.MXNetError, match="begin"):
        mx.sym.zeros((0, 3), name="begin").eval()


def test_a_symbol_without_variables_runs():
    assert (mx.sym.ones((2, 2)) * 3).eval()[0].asnumpy().tolist() == [[3, 3], [3, 3]]


def test_a_training_step_compiles_once():
    net = mx.sym.SoftmaxOutput(fc(), name="softmax")

    def steps(exe, n):
        for _ in range(n):
            exe.forward(is_train=True)
            exe.backward()
            for name in ("fc_weight", "fc_bias"):
                weight = exe.arg_dict[name]
                mx.nd.sgd_update(weight, exe.grad_dict[name], out=weight, lr=0.1)
            exe.outputs[0].asnumpy()

    steps(net.simple_bind(mx.cpu(), x=(2, 4)), 3)
    before = counters().compiles
    steps(net.simple_bind(mx.cpu(), x=(2, 4)), 3)
    assert counters().compiles == before


def counters():
    from dualmx.compile.events import counters

    return counters


def test_scalars_of_two_graphs_stay_apart():
    x = mx.sym.var("x")
    found = [(x * k).eval(x=mx.nd.ones(2))[0].asnumpy()[0] for k in (2, 3, 4, 5)]
    assert found == [2, 3, 4, 5]


def test_a_deep_chain_runs():
    net = mx.sym.var("x")
    for _ in range(1500):
        net = net + 1
    exe = mx.sym.MakeLoss(net).simple_bind(mx.cpu(), x=(2,))
    exe.forward(is_train=True)
    exe.backward()
    assert exe.outputs[0].asnumpy().tolist() == [1500, 1500]
    assert exe.grad_dict["x"].asnumpy().tolist() == [1, 1]


def test_groups_of_contexts_hold_their_arrays_and_the_program_runs_on_one():
    with mx.AttrScope(ctx_group="far"):
        w = mx.sym.var("w")
    net = mx.sym.MakeLoss(mx.sym.var("x") * w)
    exe = net.simple_bind(mx.cpu(0), group2ctx={"far": mx.cpu(1)}, x=(2,), w=(2,))
    assert exe.arg_dict["w"].context == mx.cpu(1) and exe.arg_dict["x"].context == mx.cpu(0)
    exe.arg_dict["w"][:] = mx.nd.array([3, 4], ctx=mx.cpu(1))
    exe.forward(is_train=True, x=mx.nd.array([1, 2]))
    exe.backward()
    assert exe.outputs[0].asnumpy().tolist() == [3, 8]
    assert exe.grad_dict["w"].context == mx.cpu(1)
    assert exe.grad_dict["w"].asnumpy().tolist() == [1, 2]
    assert exe.grad_dict["x"].asnumpy().tolist() == [3, 4]


def test_numpy_scalars_are_parameters():
    net = mx.sym.clip(mx.sym.var("x"), np.float32(0.5), np.int64(3))
    assert net.list_attr() == {"a_min": "0.5", "a_max": "3"}
    assert net.eval(x=mx.nd.array([0, 1, 9]))[0].asnumpy().tolist() == [0.5, 1, 3]


def test_threads_run_their_own_executors():
    import threading

    found = {}

    def work(k):
        exe = mx.sym.MakeLoss(mx.sym.var("x") * k).simple_bind(mx.cpu(), x=(2,))
        for _ in range(3):
            exe.forward(is_train=True, x=np.ones(2))
            exe.backward()
        found[k] = (exe.outputs[0].asnumpy().tolist(), exe.grad_dict["x"].asnumpy().tolist())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == {k: ([k, k], [k, k]) for k in range(1, 5)}


def test_outputs_are_taken_once_and_read_after_every_pass():
    x = mx.sym.var("x")
    exe = mx.sym.Group([x * 2, mx.sym.MakeLoss(x * x)]).simple_bind(mx.cpu(), x=(2,))
    double, square = exe.outputs  # before the first pass, as scripts of style transfer do
    for train in (True, False, True):
        for value in (1, 2):
            exe.forward(is_train=train, x=mx.nd.array([value, value + 1]))
            if train:
                exe.backward([mx.nd.ones(2), mx.nd.ones(2)])
                assert exe.grad_dict["x"].asnumpy().tolist() == [2 + 2 * value, 4 + 2 * value]
            assert double.asnumpy().tolist() == [2 * value, 2 * value + 2]
            assert square.asnumpy().tolist() == [value**2, (value + 1) ** 2]
    assert exe.outputs[0] is double
