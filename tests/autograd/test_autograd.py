"""Autograd semantics, each case lazily, at once (naive engine) and with values forced amid the recording."""

import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, nd


@pytest.fixture(params=["lazy", "naive", "forced"])
def look(request):
    """A function to call on intermediate arrays; it forces them in the `forced` form."""
    if request.param == "naive":
        with mx.engine.naive():
            yield lambda *arrays: None
    elif request.param == "forced":
        yield lambda *arrays: [a.asnumpy() for a in arrays]
    else:
        yield lambda *arrays: None


def variable(values, req="write", dtype="float32"):
    a = nd.array(values, dtype=dtype)
    a.attach_grad(req)
    return a


def test_write_overwrites_and_old_content_stays_until_a_backward(look):
    x = variable([1.0, 2.0])
    assert x.grad.asnumpy().tolist() == [0.0, 0.0]
    for k in (2.0, 3.0):
        with autograd.record():
            y = x * k
            look(y)
        y.backward()
        assert x.grad.asnumpy().tolist() == [k, k]


def test_add_accumulates(look):
    x = variable([1.0, 2.0], "add")
    for k in (2.0, 3.0):
        with autograd.record():
            y = x * k
            look(y)
        y.backward()
    assert x.grad.asnumpy().tolist() == [5.0, 5.0]
    x.grad[:] = 0
    with autograd.record():
        y = x * 7
    y.backward()
    assert x.grad.asnumpy().tolist() == [7.0, 7.0]


def test_null_takes_no_part(look):
    x, w = variable([1.0]), variable([2.0], "null")
    with autograd.record():
        y = x * w
        look(y)
    y.backward()
    assert x.grad.asscalar() == 2.0 and w.grad.asscalar() == 0.0


def test_flags():
    assert (autograd.is_recording(), autograd.is_training()) == (False, False)
    with autograd.record():
        assert (autograd.is_recording(), autograd.is_training()) == (True, True)
        with autograd.pause():
            assert (autograd.is_recording(), autograd.is_training()) == (False, False)
        with autograd.predict_mode():
            assert (autograd.is_recording(), autograd.is_training()) == (True, False)
    with autograd.record(train_mode=False):
        assert (autograd.is_recording(), autograd.is_training()) == (True, False)
    with autograd.train_mode():
        assert (autograd.is_recording(), autograd.is_training()) == (False, True)
    assert (autograd.is_recording(), autograd.is_training()) == (False, False)


def test_head_gradients(look):
    x = variable([1.0, 2.0, 3.0])
    with autograd.record():
        y = x * x
        look(y)
    y.backward(nd.array([1.0, 10.0, 100.0]))
    assert x.grad.asnumpy().tolist() == [2.0, 40.0, 600.0]


def test_several_heads(look):
    x = variable([1.0, 2.0])
    with autograd.record():
        y, z = x * 2, x * x
        look(y)
    autograd.backward([y, z], [nd.array([1.0, 1.0]), None])
    assert x.grad.asnumpy().tolist() == [4.0, 6.0]


def test_backward_frees_the_graph_unless_retained(look):
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * x
        look(y)
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(mx.MXNetError, match="retain_graph"):
        y.backward()


def test_independent_graphs_of_one_recording_are_freed_apart(look):
    x = variable([2.0])
    with autograd.record():
        y = x * x
        z = x * 5
        look(y)
    y.backward()
    assert x.grad.asscalar() == 4.0
    z.backward()
    assert x.grad.asscalar() == 5.0


def test_backward_outside_any_graph_raises(look):
    x = variable([1.0])
    y = x * 2
    with pytest.raises(mx.MXNetError, match="record"):
        y.backward()
    with autograd.record():
        z = nd.array([1.0]) * 2
    with pytest.raises(mx.MXNetError, match="attach_grad"):
        z.backward()


@pytest.mark.parametrize("write", ["y[:] = 1", "y += 1", "x += 1", "x[0] = 3", "nd.exp(y, out=x)", "y[0:1] = 2"])
def test_writes_to_recorded_arrays_raise(look, write):
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * 2
        look(y)
        with pytest.raises(mx.MXNetError, match="record"):
            exec(write, {"nd": nd, "x": x, "y": y})
    y.backward()
    assert x.grad.asnumpy().tolist() == [2.0, 2.0]


def test_writes_to_other_arrays_are_allowed_while_recording(look):
    x = variable([1.0, 2.0])
    with autograd.record():
        z = nd.zeros((2,))
        z += 3
        y = x * z
        look(y)
    y.backward()
    assert x.grad.asnumpy().tolist() == [3.0, 3.0]


def test_attach_grad_in_the_middle_cuts_the_graph(look):
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * x
        look(y)
        y.attach_grad()
        z = y * 3
        look(z)
    z.backward()
    assert x.grad.asnumpy().tolist() == [0.0, 0.0]
    assert y.grad.asnumpy().tolist() == [3.0, 3.0]


def test_detach_and_block_grad_stop_gradients(look):
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * x.detach() + nd.BlockGrad(x) * 10
        look(y)
    y.backward()
    assert x.grad.asnumpy().tolist() == [1.0, 2.0]


def test_pause_hides_operations(look):
    x = variable([3.0])
    with autograd.record():
        y = x * x
        with autograd.pause():
            w = y * 100
            look(w)
        z = y + w
    z.backward()
    assert x.grad.asscalar() == 6.0


def test_gradients_use_the_values_at_recording_time(look):
    x, w = variable([2.0]), variable([5.0])
    with autograd.record():
        y = x * w
        look(y)
    w[:] = 100
    x += 7
    y.backward()
    assert (x.grad.asscalar(), w.grad.asscalar()) == (5.0, 2.0)


def test_a_variable_written_under_pause_counts_with_both_values(look):
    x = variable([2.0])
    with autograd.record():
        y = x * x
        look(y)
        with autograd.pause():
            x += 1
        z = x * x * x
        look(z)
        total = y + z
    total.backward()
    assert x.grad.asscalar() == 2 * 2.0 + 3 * 9.0


def test_sync_twice_in_one_recording(look):
    x = variable([0.5, 1.5])
    with autograd.record():
        a = nd.sin(x)
        a.asnumpy()
        b = nd.exp(a)
        look(b)
        b.asnumpy()
        c = (b * a).sum()
    c.backward()
    s = np.sin([0.5, 1.5])
    np.testing.assert_allclose(x.grad.asnumpy(), np.cos([0.5, 1.5]) * np.exp(s) * (1 + s), rtol=1e-6)


def test_sync_between_record_and_backward(look):
    x = variable([[1.0, 2.0], [3.0, 4.0]])
    with autograd.record():
        loss = (x * x).sum()
    loss.asnumpy()
    look(loss)
    loss.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), 2 * x.asnumpy())


def test_grad_returns_instead_of_storing(look):
    x, w = variable([2.0]), variable([3.0])
    with autograd.record():
        y = x * x * w
        look(y)
    gx, gw = autograd.grad(y, [x, w])
    assert (gx.asscalar(), gw.asscalar()) == (12.0, 4.0)
    assert x.grad.asscalar() == 0.0


def test_grad_of_an_unreached_variable_raises(look):
    x, w = variable([2.0]), variable([3.0])
    with autograd.record():
        y = x * x
        look(y)
    with pytest.raises(mx.MXNetError, match="variable 1"):
        autograd.grad(y, [x, w])


def test_second_and_third_order(look):
    x = variable([1.5, -0.5])
    with autograd.record():
        y = x**4
        look(y)
        (first,) = autograd.grad(y, x, create_graph=True)
        look(first)
        (second,) = autograd.grad(first, x, create_graph=True)
        look(second)
    second.backward()
    v = x.asnumpy()
    np.testing.assert_allclose(first.asnumpy(), 4 * v**3, rtol=1e-5)
    np.testing.assert_allclose(second.asnumpy(), 12 * v**2, rtol=1e-5)
    np.testing.assert_allclose(x.grad.asnumpy(), 24 * v, rtol=1e-5)


def test_gradient_penalty(look):
    x, w = nd.array([[1.0, 2.0]]), variable([[0.5, -1.0]])
    x.attach_grad()
    with autograd.record():
        y = nd.tanh((x * w).sum())
        (gx,) = autograd.grad(y, x, create_graph=True)
        look(gx)
        penalty = (gx * gx).sum()
    penalty.backward()

    def f(wv):
        t = np.tanh((np.array([1.0, 2.0]) * wv).sum())
        return (((1 - t * t) * wv) ** 2).sum()

    wv = np.array([0.5, -1.0])
    want = [(f(wv + d) - f(wv - d)) / 2e-6 for d in np.eye(2) * 1e-6]
    np.testing.assert_allclose(w.grad.asnumpy()[0], want, rtol=1e-4)


def test_mark_variables_uses_the_given_buffers(look):
    x, g = nd.array([1.0, 2.0]), nd.array([9.0, 9.0])
    autograd.mark_variables([x], [g])
    with autograd.record():
        y = x * 4
        look(y)
    y.backward()
    assert g.asnumpy().tolist() == [4.0, 4.0]
    assert x.grad is g


def test_dropout_backward_uses_the_mask_of_forward(look):
    x = variable(np.ones((200,)))
    with autograd.record():
        y = nd.Dropout(x, p=0.5)
        look(y)
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), y.asnumpy())
    assert 0 < (y.asnumpy() == 0).sum() < 200


def test_integer_operations_inside_a_recording(look):
    x = variable([[1.0, 3.0, 2.0]])
    with autograd.record():
        y = x * 2
        hits = (y.argmax(axis=1) == nd.array([1.0])).sum()
        look(hits)
        loss = y.sum()
    loss.backward()
    assert hits.asscalar() == 1.0
    assert x.grad.asnumpy().tolist() == [[2.0, 2.0, 2.0]]


class Sigmoid(autograd.Function):
    def forward(self, x):
        y = 1 / (1 + nd.exp(-x))
        self.save_for_backward(y)
        return y

    def backward(self, dy):
        (y,) = self.saved_tensors
        return dy * y * (1 - y)


class TwoInTwoOut(autograd.Function):
    def forward(self, a, b):
        return nd.array(a.asnumpy() * b.asnumpy()), a + b

    def backward(self, dp, ds):
        return dp * 100 + ds, dp * 1000


def test_function(look):
    x = variable([0.3, -0.7])
    with autograd.record():
        y = Sigmoid()(x * 2) * 3
        look(y)
    y.backward()
    s = 1 / (1 + np.exp(-2 * np.array([0.3, -0.7])))
    np.testing.assert_allclose(x.grad.asnumpy(), 6 * s * (1 - s), rtol=1e-5)


def test_function_with_several_inputs_and_outputs_next_to_other_paths(look):
    a, b = variable([2.0]), variable([3.0])
    with autograd.record():
        p, s = TwoInTwoOut()(a, b)
        look(p)
        q = p * 2 + s + a * 7
    q.backward()
    assert a.grad.asscalar() == 2 * 100 + 1 + 7
    assert b.grad.asscalar() == 2 * 1000


def test_chained_functions(look):
    x = variable([0.5])
    with autograd.record():
        y = Sigmoid()(Sigmoid()(x) * 2)
        look(y)
    y.backward()
    s = 1 / (1 + np.exp(-0.5))
    t = 1 / (1 + np.exp(-2 * s))
    np.testing.assert_allclose(x.grad.asscalar(), t * (1 - t) * 2 * s * (1 - s), rtol=1e-5)


def test_function_errors():
    class Wrong(autograd.Function):
        def forward(self, x):
            return x * 2

        def backward(self, dy):
            return dy, dy

    x = variable([1.0])
    with autograd.record():
        y = Wrong()(x)
    with pytest.raises(mx.MXNetError, match="2 gradients for 1 inputs"):
        y.backward()


def test_views_inside_a_recording_are_differentiable(look):
    x = variable(np.arange(6.0).reshape(2, 3))
    with autograd.record():
        y = (x[1] * x[0]).sum() + x.reshape((3, 2))[2, 1] * 10 + x[:, 1].sum()
        look(y)
    y.backward()
    want = np.array([[3.0, 4, 5], [0, 1, 2]])
    want[1, 2] += 10
    want[:, 1] += 1
    np.testing.assert_array_equal(x.grad.asnumpy(), want)


def test_assignment_of_a_recorded_value_into_a_plain_array(look):
    x = variable([1.0, 2.0])
    with autograd.record():
        buffer = nd.zeros((2, 2))
        buffer[0] = x * 3
        y = (buffer * buffer).sum()
        look(y)
    y.backward()
    assert x.grad.asnumpy().tolist() == [18.0, 36.0]


def test_half_precision(look):
    x = variable([1.0, 2.0], dtype="float16")
    with autograd.record():
        y = x * x
        look(y)
    y.backward()
    assert x.grad.dtype is np.float16
    assert x.grad.asnumpy().tolist() == [2.0, 4.0]


def test_a_detached_array_is_outside_the_graph(look):
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = x.detach()
        y += 1
        z = (x * y).sum()
    look(y)
    z.backward()
    assert x.grad.asnumpy().tolist() == [2.0, 3.0]
    with autograd.record():
        w = x.detach() * 2
    with pytest.raises(mx.MXNetError, match="do not depend"):
        w.backward()


@pytest.mark.parametrize("dtype", ["int32", "int64", "int8", "uint8"])
@pytest.mark.parametrize(
    ("function", "want"),
    [
        (lambda x: x * x, [2, 4, 6, 8]),
        (lambda x: nd.relu(x) + 1, [1, 1, 1, 1]),
        (lambda x: x.sum(), [1, 1, 1, 1]),
        (lambda x: x / 2, [0, 0, 0, 0]),
        (lambda x: x.astype("float32") * 2.5, [2, 2, 2, 2]),
        (lambda x: nd.concat(x, x, dim=0), [2, 2, 2, 2]),
        (lambda x: nd.take(x, nd.array([1, 1])), [0, 0, 2, 2]),
        (lambda x: nd.argmax(x), [0, 0, 0, 0]),
        (lambda x: x > 1, [0, 0, 0, 0]),
        (lambda x: nd.shape_array(x), [0, 0, 0, 0]),
    ],
)
def test_integers_have_the_gradient_of_the_numbers_they_stand_for_cut_to_their_type(look, dtype, function, want):
    x = variable([[1, 2], [3, 4]], dtype=dtype)
    with autograd.record():
        y = function(x)
        look(y)
    y.backward()
    assert x.grad.dtype == np.dtype(dtype)
    assert x.grad.asnumpy().ravel().tolist() == want


def test_gradients_pass_through_casts_to_integers_and_wrap_in_small_types(look):
    x, u = variable([1.5, -2.5]), variable([1, 2], dtype="uint8")
    with autograd.record():
        y, z = x.astype("int64") * 3, -u
        look(y)
    autograd.backward([y, z])
    assert x.grad.asnumpy().tolist() == [3.0, 3.0]
    assert u.grad.asnumpy().tolist() == [255, 255]


def test_an_integer_gradient_is_added_and_ids_get_none(look):
    x, ids = variable([1, 2], req="add", dtype="int32"), variable([0, 1], dtype="int32")
    table = variable([[1.0, 2.0], [3.0, 4.0]])
    for _ in range(2):
        with autograd.record():
            y = x * 3
            rows = nd.take(table, ids)
        autograd.backward([y, rows])
    assert x.grad.asnumpy().tolist() == [6, 6]
    assert ids.grad.asnumpy().tolist() == [0, 0]
    assert table.grad.asnumpy().tolist() == [[1, 1], [1, 1]]


def test_of_an_array_that_is_a_head_twice_the_last_gradient_counts(look):
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * 2
        look(y)
    autograd.backward([y, y], [nd.array([1.0, 1.0]), nd.array([3.0, 4.0])])
    assert x.grad.asnumpy().tolist() == [6.0, 8.0]


def test_the_symbol_of_what_was_recorded(look):
    x, w = variable([[1.0, 2.0]]), variable([[3.0, 4.0]])
    with autograd.record():
        y = nd.FullyConnected(x, w, num_hidden=1, no_bias=True)
        look(y)
        z = nd.split(w, 2, axis=1)[1] + y * 0.5
    net = mx.sym.load_json(autograd.get_symbol(z).tojson())
    assert net.list_arguments() == ["var0", "var1"]
    assert net.infer_shape(var0=(1, 2), var1=(1, 2))[1] == [(1, 1)]
    # Arguments are numbered in the order in which the graph reads them: the split array first.
    assert net.eval(var0=w, var1=x)[0].asscalar() == z.asscalar() == 4.0 + 5.5
    assert autograd.get_symbol(x).list_arguments() == ["var0"]
    with pytest.raises(mx.MXNetError, match="not computed inside"):
        autograd.get_symbol(nd.ones((2,)))


def test_an_unknown_gradient_request_is_a_key_error_too():
    with pytest.raises(KeyError, match="grad_req='bogus': expected"):
        nd.ones((2,)).attach_grad("bogus")
    with pytest.raises(mx.MXNetError, match="grad_req='bogus': expected 'write', 'add' or 'null'"):
        nd.ones((2,)).attach_grad("bogus")


def test_every_head_must_have_been_recorded():
    x = nd.ones((2,))
    x.attach_grad()
    with autograd.record():
        y, constant, stopped = x * 2, nd.ones((2,)) * 3, nd.BlockGrad(x * 2)
    with pytest.raises(mx.MXNetError, match=r"heads\[1\] was not recorded"):
        autograd.backward([y, constant])
    nd.waitall()
    with pytest.raises(mx.MXNetError, match=r"heads\[0\] was not recorded"):
        autograd.backward([constant, y])
    autograd.backward([y, stopped, x])
    assert x.grad.asnumpy().tolist() == [3, 3]
