"""Memory that other libraries see as well: whoever writes to it, all later reads see that, and no other array does."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, nd
from dualmx.compile.devices import device_put_small
from dualmx.ndarray import exposed

START = np.arange(12, dtype=np.float32).reshape(3, 4)


class Numpy:
    """Writes through NumPy's view of a capsule or array."""

    def __init__(self, source):
        self.seen = np.from_dlpack(source)

    def write(self, at, value):
        self.seen[at] = value

    def values(self):
        return np.array(self.seen)


class Pointer:
    """Writes as a C library does, through a pointer to elements that lie one after the other."""

    def __init__(self, source):
        self.view = np.from_dlpack(source)
        assert self.view.flags.c_contiguous
        self.memory = (ctypes.c_float * self.view.size).from_address(self.view.ctypes.data)

    def write(self, at, value):
        for i in np.arange(self.view.size).reshape(self.view.shape)[at].ravel():
            self.memory[int(i)] = value

    def values(self):
        return np.array(list(self.memory), np.float32).reshape(self.view.shape)


class Torch:
    """Writes through a tensor."""

    def __init__(self, source):
        torch = pytest.importorskip("torch")
        self.seen = torch.utils.dlpack.from_dlpack(source)

    def write(self, at, value):
        self.seen[at] = value

    def values(self):
        return self.seen.numpy().copy()


class Ours:
    """Writes through another array of dualmx."""

    def __init__(self, source):
        self.seen = nd.from_dlpack(source)

    def write(self, at, value):
        self.seen[at] = value

    def values(self):
        return self.seen.asnumpy()


WRITERS = [Numpy, Pointer, Torch, Ours]


class Source:
    """A bare capsule for consumers that ask for an object."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **kwargs):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


def _for_write(x, writer):
    if writer in (Torch, Ours):
        return x.to_dlpack_for_write()
    assert type(x.to_dlpack_for_write()).__name__ == "PyCapsule"
    return x  # NumPy takes capsules without a version for read-only, so it asks the array


@pytest.fixture(params=[False, True], ids=["lazy", "naive"])
def x(request):
    with mx.engine.naive() if request.param else contextlib.nullcontext():
        yield nd.array(START)


@pytest.mark.parametrize("writer", WRITERS)
def test_writes_from_outside_are_seen_by_every_later_read(x, writer):
    other, before = x.detach(), x * 1
    view, row = x.reshape((4, 3)), x[1]
    for read in (view, row):
        read.asnumpy()
        (read + 0).wait_to_read()
    w = writer(_for_write(x, writer))
    recorded = x + 1
    expected = START.copy()
    for step in range(3):
        w.write((slice(1, 2), slice(None)), 100.0 + step)
        expected[1] = 100 + step
        assert np.array_equal(x.asnumpy(), expected) and np.array_equal(np.asarray(x), expected)
        assert np.array_equal((x * 2).asnumpy(), 2 * expected)
        assert np.array_equal(x.as_jax(), expected) and np.array_equal(jnp.asarray(x), expected)
        assert np.array_equal(view.asnumpy(), expected.reshape(4, 3))
        assert np.array_equal((view * 2).asnumpy(), 2 * expected.reshape(4, 3))
        assert np.array_equal(row.asnumpy(), expected[1]) and np.array_equal((row - 1).asnumpy(), expected[1] - 1)
        assert np.array_equal(x[1:, 2].asnumpy(), expected[1:, 2])
        assert np.array_equal(x.copy().asnumpy(), expected)
        assert np.array_equal(nd.concat(x, x, dim=0).asnumpy(), np.concatenate([expected] * 2))
        assert float(x.sum().asscalar()) == expected.sum()
        assert np.array_equal(nd.load_frombuffer(nd.save_tobuffer([x]))[0].asnumpy(), expected)
        assert np.array_equal(x.as_np_ndarray().asnumpy(), expected)
        assert np.array_equal(x.as_in_context(mx.cpu(1)).asnumpy(), expected)
    assert np.array_equal(other.asnumpy(), START) and np.array_equal(before.asnumpy(), START)
    assert np.array_equal(recorded.asnumpy(), START + 1)


def _add(x):
    x += 10


def _assign(x):
    x[:] = 7


def _assign_array(x):
    x[:] = nd.array(START * 3)


def _assign_numpy(x):
    x[:] = START * 3


def _row(x):
    x[1] = 5


def _view(x):
    x[1:][:, 2] += 4


def _reshaped(x):
    x.reshape((-1,))[3:7] = 9


def _out(x):
    nd.exp(x, out=x)


def _copyto(x):
    nd.array(START - 1).copyto(x)


def _update(x):
    nd.sgd_mom_update(x, nd.ones(x.shape), nd.zeros(x.shape), lr=0.5, momentum=0.9, out=x)


def _state(x):
    nd.sgd_mom_update(nd.zeros(x.shape), nd.ones(x.shape), x, lr=0.5, momentum=0.9, out=nd.zeros(x.shape))


def _numpy(x):
    x.as_np_ndarray()[0] = 3


WRITES = [
    _add, _assign, _assign_array, _assign_numpy, _row, _view, _reshaped, _out, _copyto, _update, _state, _numpy,
]  # fmt: skip


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("writer", WRITERS)
def test_writes_here_are_seen_outside(x, writer, write):
    plain = nd.array(START)
    write(plain)
    w = writer(_for_write(x, writer))
    other = x.copy()
    write(x)
    nd.waitall()
    assert np.array_equal(w.values(), plain.asnumpy()) and not np.array_equal(w.values(), START)
    assert np.array_equal(x.asnumpy(), plain.asnumpy()) and np.array_equal(other.asnumpy(), START)
    w.write((0, 0), -5.0)
    assert x[0, 0].asscalar() == -5 and x.asnumpy()[0, 0] == -5
    write(x)
    assert np.array_equal(w.values(), x.asnumpy())


@pytest.mark.parametrize("window", [np.s_[1], np.s_[1:], np.s_[1:2, 1:3], np.s_[1, 2:], np.s_[1, 2]])
def test_views_share_the_memory_of_their_array(x, window):
    view = x.as_np_ndarray()[window]
    shown = np.from_dlpack(view)
    expected = START.copy()
    shown += 50
    expected[window] += 50
    assert np.array_equal(x.asnumpy(), expected) and np.array_equal((x + 0).asnumpy(), expected)
    x *= 2
    assert np.array_equal(shown, 2 * expected[window])


def test_what_a_view_cannot_show_is_refused():
    memory = np.asfortranarray(START)
    x = nd.from_dlpack(memory)
    flat = x.reshape((-1,))
    with pytest.raises(mx.MXNetError, match="to_dlpack_for_write: a view of shape .*copy"):
        flat.to_dlpack_for_write()
    flat[:4] = 9
    assert (memory[0] == 9).all() and np.array_equal(memory[1:], START[1:]) and flat[1].asscalar() == 9


def test_the_array_is_its_own_again_when_nobody_holds_the_memory(x):
    shown = np.from_dlpack(x)
    part = shown[1:2]
    shown[1] = 8
    del shown
    part += 1
    assert x[1, 0].asscalar() == 9
    last = part.ctypes.data
    del part
    gc.collect()
    x += 1
    (ctypes.c_float * 1).from_address(last)  # only to have named it: nobody may write there any more
    assert x[1, 0].asscalar() == 10
    y = x * 1
    x += 1
    assert y[1, 0].asscalar() == 10 and x[1, 0].asscalar() == 11


def test_jax_copies_what_others_may_write_to(x):
    j = jax.dlpack.from_dlpack(x)
    x += 1
    large = nd.zeros((1024, 1024))
    shown = np.from_dlpack(large)
    taken = [jax.dlpack.from_dlpack(large), jnp.asarray(large), jnp.from_dlpack(large), jnp.array(shown)]
    shown += 1
    large += 1
    assert np.array_equal(j, START) and not any(np.asarray(k).any() for k in taken) and large.asnumpy().min() == 2


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool"])
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3)])
def test_types_and_shapes(dtype, shape):
    x = mx.np.ones(shape, dtype=dtype)
    shown = np.from_dlpack(x)
    assert shown.dtype == np.dtype(dtype) and shown.shape == shape
    shown[...] = 0
    assert not x.asnumpy().any() and x.asnumpy().shape == shape and not (x + x).asnumpy().any()
    y = nd.from_dlpack(shown)
    y[...] = 1
    assert y.dtype == np.dtype(dtype) and x.asnumpy().all()


def test_bfloat16_is_shared_too():
    x = nd.array([1, 2, 3], dtype="bfloat16")
    y = nd.from_dlpack(x.to_dlpack_for_write())
    y[:] = 5
    assert y.dtype == x.dtype and x.asnumpy().astype("f").tolist() == [5, 5, 5]
    torch = pytest.importorskip("torch")
    t = torch.from_dlpack(x)
    t += 1
    assert t.dtype == torch.bfloat16 and x.asnumpy().astype("f").tolist() == [6, 6, 6]
    z = nd.from_dlpack(t)
    t += 1
    assert z.asnumpy().astype("f").tolist() == [7, 7, 7]


# -- memory of others


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_made_of_memory_of_others_share_it(order):
    memory = np.array(START, order=order)
    x = nd.from_dlpack(memory)
    before = x + 0
    memory[2] = 4
    expected = START.copy()
    expected[2] = 4
    assert np.array_equal(x.asnumpy(), expected) and np.array_equal((x * 2).asnumpy(), 2 * expected)
    assert np.array_equal(before.asnumpy(), START)
    x[0] = 1
    x += 1
    expected[0] = 1
    assert np.array_equal(memory, expected + 1)


def test_from_dlpack_with_and_without_copy():
    memory = START.copy()
    x = nd.from_dlpack(memory, copy=True)
    memory += 1
    assert np.array_equal(x.asnumpy(), START)
    with pytest.raises(mx.MXNetError, match="copy=False"):
        nd.from_dlpack(jnp.ones(3), copy=False)
    assert nd.from_dlpack(jnp.ones(3)).asnumpy().tolist() == [1, 1, 1]
    capsule = x.to_dlpack_for_read()
    nd.from_dlpack(capsule)
    with pytest.raises(mx.MXNetError, match="read before"):
        nd.from_dlpack(capsule)


def test_read_only_memory_is_left_alone():
    memory = START.copy()
    memory.flags.writeable = False
    x = nd.from_dlpack(memory)
    with pytest.raises(mx.MXNetError, match="read-only"):
        x.to_dlpack_for_write()
    x += 1
    assert np.array_equal(memory, START) and np.array_equal(x.asnumpy(), START + 1)
    np.from_dlpack(x)[:] = 0
    assert np.array_equal(memory, START) and not x.asnumpy().any()


def test_from_numpy_without_a_copy_is_mxnets():
    memory = START.copy()
    earlier = memory[:]
    x = nd.from_numpy(memory, zero_copy=True)
    assert not memory.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        memory[0] = 1
    earlier[0, 0] = 9
    assert x[0, 0].asscalar() == 9 and (x + 1)[0, 0].asscalar() == 10
    x[:] = 5
    assert (memory == 5).all()
    with pytest.raises(mx.MXNetError, match="zero_copy=True expects elements in C order"):
        nd.from_numpy(np.asfortranarray(START))
    with pytest.raises(mx.MXNetError, match="dtype"):
        nd.from_numpy(np.ones(2, np.complex64))
    memory = START.copy()
    y = nd.from_numpy(memory, zero_copy=False)
    memory[:] = 0
    assert memory.flags.writeable and np.array_equal(y.asnumpy(), START)


@pytest.mark.skipif(not exposed.COUNTS, reason="nothing tells who holds an object")
def test_memory_that_nobody_else_holds_becomes_the_arrays_own():
    x = nd.from_numpy(START.copy())
    (x + 1).wait_to_read()
    assert not x.is_exposed
    memory = START.copy()
    y = nd.from_numpy(memory)
    (y + 1).wait_to_read()
    assert y.is_exposed


PRIVATE = {
    "asnumpy": lambda x: x.asnumpy(),
    "asarray": lambda x: np.asarray(x),
    "view": lambda x: x.reshape((-1,)).asnumpy(),
    "slice": lambda x: x[1].asnumpy(),
    "box": lambda x: x[1:2, 1:2].asnumpy(),
    "numpy front end": lambda x: x.as_np_ndarray().asnumpy(),
}


@pytest.mark.parametrize("kind", PRIVATE)
def test_asnumpy_is_private(kind):
    x = nd.array(START)
    for _ in range(2):  # in NumPy's memory, then in XLA's
        got = PRIVATE[kind](x)
        assert got.flags.writeable
        before, expected = x * 1, x.asnumpy()
        got[...] = -1
        with contextlib.suppress(ImportError):
            import torch

            torch.from_numpy(got).fill_(-2)
        ctypes.memset(got.ctypes.data, 1, got.nbytes)
        assert np.array_equal(x.asnumpy(), expected) and np.array_equal(before.asnumpy(), expected)
        x += 1


def test_what_is_shown_without_a_copy_is_read_only():
    x = nd.array(START)
    for _ in range(2):
        shown, expected = np.asarray(x, copy=False), x.asnumpy()
        with pytest.raises(ValueError, match="read-only"):
            shown[0] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            shown.flags.writeable = True
        x += 1
        x.wait_to_read()
        assert np.array_equal(shown, expected)
    writer = np.from_dlpack(x)
    shown = np.asarray(x, copy=False)
    writer[:] = 3
    assert (shown == 3).all() and not shown.flags.writeable


def _mesh(a, **how):
    return mx.parallel.shard(a, (), mx.parallel.Mesh({"data": 1}), **how)


def _filled(a):
    x = nd.zeros(a.shape, dtype=a.dtype)
    x[:] = a
    return x


COPIES = {
    "nd.array": lambda a: nd.array(a, dtype=a.dtype),
    "nd.array on cpu(1)": lambda a: nd.array(a, dtype=a.dtype, ctx=mx.cpu(1)),
    "np.array": lambda a: mx.np.array(a, dtype=a.dtype),
    "from_numpy": lambda a: nd.from_numpy(a, zero_copy=False),
    "from_dlpack": lambda a: nd.from_dlpack(a, copy=True),
    "assignment": _filled,
    "operator": lambda a: nd.zeros(a.shape, dtype=a.dtype) + a,
    "shard": _mesh,
    "shard of a process": lambda a: _mesh(a, local=True),
    "copied": lambda a: nd.from_jax(device_put_small(a, mx.cpu())),
}


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("offset", [0, 32])
def test_copies_of_foreign_arrays_are_made_at_once(name, dtype, offset):
    for _ in range(10):  # JAX copies large arrays that are not aligned after it has returned
        room = np.zeros((1 << 20) + 128, np.uint8)
        start = -room.ctypes.data % 64 + offset
        a = room[start : start + (1 << 20)].view(dtype)
        x = COPIES[name](a)
        a += 1
        assert not x.asnumpy().any()


# -- JAX arrays

ALIASES = {
    "itself": lambda a: a,
    "device_put": lambda a: jax.device_put(a, a.devices().copy().pop()),
    "shard": lambda a: a.addressable_data(0),
    "joined": lambda a: jax.make_array_from_single_device_arrays(a.shape, a.sharding, [a]),
    "dlpack": lambda a: jax.dlpack.from_dlpack(a),
    "numpy": lambda a: np.asarray(a),
}


@pytest.mark.parametrize("name", ALIASES)
@pytest.mark.parametrize("way", ["from_jax", "as_jax", "jnp"])
def test_buffers_that_users_see_are_not_taken_over(name, way):
    if way == "from_jax":
        j = jnp.arange(4096.0) * 1
        x = nd.from_jax(j)
    else:
        x = nd.arange(4096.0)
        x *= 1
        x.wait_to_read()
        j = x.as_jax() if way == "as_jax" else jnp.asarray(x)
    alias = ALIASES[name](j)
    expected = np.array(j)
    del j
    for _ in range(3):
        x += 1
        x.wait_to_read()
    assert np.array_equal(alias, expected) and np.array_equal(x.asnumpy(), expected + 3)


def test_what_a_user_donates_is_told_when_it_is_missed():
    x = nd.ones((64, 64))
    x += 1
    jax.jit(lambda a: a + 1, donate_argnums=0)(x.as_jax())
    for read in (lambda: x.asnumpy(), lambda: (x + 1).asnumpy()):
        with pytest.raises(mx.MXNetError, match="deleted"):
            read()
    x[:] = 3
    assert x.asnumpy().min() == 3


# -- what trains


def test_an_optimizer_leaves_what_others_see():
    net = mx.gluon.nn.Dense(3, in_units=4)
    net.initialize(mx.init.One())
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})
    weight = net.weight.data()
    seen = {}
    for step in range(4):
        seen[step] = weight.asnumpy(), np.asarray(weight, copy=False), weight.as_jax(), weight[1], weight.detach()
        with autograd.record():
            loss = (net(nd.array(START)) ** 2).sum()
        loss.backward()
        trainer.step(3)
    for copy, shown, jax_array, view, detached in seen.values():
        assert (
            np.array_equal(copy, shown) and np.array_equal(copy, jax_array) and np.array_equal(copy, detached.asnumpy())
        )
        assert np.array_equal(view.asnumpy(), weight.asnumpy()[1])
    assert not np.array_equal(seen[0][0], seen[3][0])


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("what", ["weight", "grad", "both"])
def test_training_with_weights_and_gradients_that_others_see(hybrid, what):
    def train(shared):
        mx.random.seed(3)
        net = mx.gluon.nn.Dense(3, in_units=4)
        net.initialize(mx.init.Normal(0.5))
        if hybrid:
            net.hybridize()
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01, "momentum": 0.9})
        weight, grad = net.weight.data(), net.weight.grad()
        w = np.from_dlpack(weight) if shared and what != "grad" else None
        g = np.from_dlpack(grad) if shared and what != "weight" else None
        for _ in range(4):
            with autograd.record():
                loss = (net(nd.array(START)) ** 2).sum()
            loss.backward()
            if g is not None:
                np.clip(g, -0.5, 0.5, out=g)
            elif what != "weight":
                grad[:] = nd.clip(grad, -0.5, 0.5)
            trainer.step(3)
            if w is not None:
                w *= 0.75
                assert np.array_equal(w, weight.asnumpy())
            elif what != "grad":
                weight *= 0.75
        return weight.asnumpy()

    np.testing.assert_array_equal(train(True), train(False))


def test_gradients_flow_through_arrays_that_others_see():
    x = nd.array(START)
    x.attach_grad()
    with autograd.record():
        y = x * x
    shown = np.from_dlpack(y)
    with autograd.record():
        z = (y * 3).sum() + y.sum()
    shown[:] = 0
    z.backward()
    assert np.array_equal(x.grad.asnumpy(), 8 * START)
    assert not y.asnumpy().any()
    with autograd.record():
        z = (y + x).sum()  # y was overwritten, so it no longer leads back to x
    z.backward()
    assert (x.grad.asnumpy() == 1).all()
    variable = np.from_dlpack(x)
    variable[:] = 2
    with autograd.record():
        z = (x * x).sum() + x.sum()
    z.backward()
    assert (x.grad.asnumpy() == 5).all()


def test_writing_to_a_recorded_array_is_refused():
    x = nd.array(START)
    x.attach_grad()
    with autograd.record():
        y = x * 2
        for a in (x, y):
            with pytest.raises(mx.MXNetError, match="to_dlpack_for_write: in-place"):
                a.to_dlpack_for_write()
        assert np.array_equal(np.from_dlpack(y), 2 * START)
        with autograd.pause():
            nd.zeros((2,)).to_dlpack_for_write()
        y.sum().backward()
    assert (x.grad.asnumpy() == 2).all()


class Kernel(autograd.Function):
    """Forward and backward by a foreign kernel that fills memory which it is given, as those of DGL do."""

    def forward(self, x):
        out = nd.empty(x.shape)
        Numpy(out).seen[...] = Numpy(x).seen ** 2
        self.save_for_backward(x)
        return out

    def backward(self, dy):
        (x,) = self.saved_tensors
        grad = nd.empty(x.shape)
        np.multiply(2 * Numpy(x).seen, Numpy(dy).seen, out=np.from_dlpack(grad))
        return grad


@pytest.mark.parametrize("naive", [False, True])
def test_foreign_kernels_inside_a_function(naive):
    with mx.engine.naive() if naive else contextlib.nullcontext():
        x = nd.array(START)
        x.attach_grad()
        with autograd.record():
            y = x + 1
            z = Kernel()(y) * 3
        z.backward()
        assert np.array_equal(z.asnumpy(), 3 * (START + 1) ** 2)
        assert np.array_equal(x.grad.asnumpy(), 6 * (START + 1))


class Writing(mx.operator.CustomOp):
    """Writes its results through DLPack, and spoils its inputs in the ways that NumPy offers."""

    def forward(self, is_train, req, in_data, out_data, aux):
        np.from_dlpack(out_data[0])[...] = in_data[0].asnumpy() * 2
        in_data[0].asnumpy()[...] = -7
        if aux:
            np.from_dlpack(aux[0])[...] += 1

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        shown = nd.from_dlpack(in_grad[0].to_dlpack_for_write())
        self.assign(shown, req[0], out_grad[0] * 2)
        self.assign(in_grad[0], "add", out_data[0] * 0)
        self.assign(in_grad[0], "null", out_data[0] * 100)


@mx.operator.register("writing_through_dlpack")
class WritingProp(mx.operator.CustomOpProp):
    """One input, one output, one state."""

    def list_auxiliary_states(self):
        return ["count"]

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0]], [(1,)]

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Writing()


@pytest.mark.parametrize("grad_req", ["write", "add"])
def test_custom_operators_that_write_through_dlpack(grad_req):
    x, count = nd.array(START), nd.zeros((1,))
    x.attach_grad(grad_req)
    for step in (1, 2):
        with autograd.record():
            y = nd.Custom(x, count, op_type="writing_through_dlpack") * 5
        y.backward()
        assert np.array_equal(y.asnumpy(), 10 * START) and np.array_equal(x.asnumpy(), START)
        assert (x.grad.asnumpy() == 10 * (step if grad_req == "add" else 1)).all()
        assert count.asscalar() == step


def test_custom_operators_in_executors_that_write_through_dlpack():
    s = mx.sym.Custom(mx.sym.Variable("x"), op_type="writing_through_dlpack", name="c") * 5
    args = {"x": nd.array(START)}
    grads, states = {"x": nd.zeros(START.shape)}, {"c_count": nd.zeros((1,))}
    exe = s.bind(mx.cpu(), args, args_grad=grads, aux_states=states)
    for step in (1, 2):
        (y,) = exe.forward(is_train=True)
        exe.backward(nd.ones(START.shape))
        assert np.array_equal(y.asnumpy(), 10 * START) and (grads["x"].asnumpy() == 10).all()
        assert states["c_count"].asscalar() == step and np.array_equal(args["x"].asnumpy(), START)


def test_arguments_of_an_executor_that_others_write_to():
    a = mx.sym.Variable("a")
    exe = ((a * a).sum() * mx.sym.Variable("b")).simple_bind(mx.cpu(), a=(3,), b=(1,))
    seen = {name: np.from_dlpack(exe.arg_dict[name]) for name in "ab"}
    for step in (1.0, 2.0):
        seen["a"][:], seen["b"][:] = step, 10 * step
        (y,) = exe.forward(is_train=True)
        exe.backward(nd.ones((1,)))
        assert y.asscalar() == 3 * step * step * 10 * step
        assert exe.grad_dict["a"].asnumpy().tolist() == [20 * step * step] * 3
        shown = np.from_dlpack(exe.grad_dict["a"])
        shown[:] = 0
        assert not exe.grad_dict["a"].asnumpy().any()
    exe.copy_params_from({"a": nd.array([4, 4, 4])})
    assert seen["a"].tolist() == [4, 4, 4]


def test_stores_read_and_write_what_others_see():
    kv = mx.kv.create("local")
    value, out = nd.array(START), nd.zeros(START.shape)
    v, o = np.from_dlpack(value), np.from_dlpack(out)
    v[:] = 2
    kv.init(0, value)
    v[:] = 3
    kv.push(0, value)
    v[:] = 100
    kv.pull(0, out=out)
    assert (o == 3).all() and (out.asnumpy() == 3).all()
    o[:] = 1
    kv.push(0, out)
    kv.pull(0, out=value)
    assert (v == 1).all()


def test_batches_of_data_workers_are_private():
    data = mx.gluon.data.ArrayDataset(np.tile(START, (4, 1)), np.arange(12, dtype=np.float32))
    loader = mx.gluon.data.DataLoader(data, batch_size=3, num_workers=1)
    for _ in range(2):
        batches = [(x, x.asnumpy(), x * 1) for x, _ in loader]
        for x, copy, before in batches:
            np.from_dlpack(x)[...] = -1
            assert (x.asnumpy() == -1).all() and np.array_equal(before.asnumpy(), copy)
            assert np.array_equal(copy, START)


def test_a_failure_reaches_the_array_and_goes_away_with_the_next_write():
    x = nd.ones((3, 3))
    shown = np.from_dlpack(x)

    row = x[0]
    with pytest.raises(mx.MXNetError, match="_linalg_potrf: expected symmetric positive-definite matrices"):
        x[:] = nd.linalg.potrf(-x)
    for read in (x.asnumpy, x.wait_to_read, x.to_dlpack_for_read, row.asnumpy, lambda: (row + 1).wait_to_read()):
        with pytest.raises(mx.MXNetError, match="positive-definite"):
            read()
    x[:] = 4
    assert (shown == 4).all() and (x.asnumpy() == 4).all()


def test_other_threads_see_what_is_written():
    x = nd.array(START)
    shown = np.from_dlpack(x)
    assert "other libraries" in mx.debug.explain(x)

    def read(expected):
        seen = []
        t = threading.Thread(target=lambda: seen.extend([(x + 1).asnumpy(), x.asnumpy()]))
        t.start()
        t.join()
        assert (seen[0] == expected + 1).all() and (seen[1] == expected).all()

    for step in range(3):
        shown[:] = step
        read(step)
        x += 10
        read(step + 10)
        assert (shown == step + 10).all()


def test_sparse_arrays_and_meshes_refuse():
    for stype in ("row_sparse", "csr"):
        s = nd.array(np.eye(3)).tostype(stype)
        for call in (s.to_dlpack_for_read, s.to_dlpack_for_write, s.__dlpack__):
            with pytest.raises(mx.MXNetError, match="dlpack.*tostype"):
                call()
    x = mx.parallel.shard(nd.ones((4, 2)), ("data", None), mx.parallel.Mesh({"data": 1}))
    with pytest.raises(mx.MXNetError, match="immutable"):
        x.to_dlpack_for_write()
