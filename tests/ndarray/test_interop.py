"""NumPy, JAX, DLPack, pickle, copies: what is not shared, and that nobody's writes are seen by others."""

import contextlib
import copy
import io
import operator
import pickle

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, nd

VALUES = np.array([[0.25, 0.5, 0.75], [0.1, 0.2, 0.9]], "float32")
DTYPES = ["float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool"]


@pytest.fixture
def x():
    return nd.array(VALUES)


UFUNCS = """negative absolute fabs sign rint ceil floor trunc exp expm1 log log2 log10 log1p sqrt cbrt square reciprocal
sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arctanh degrees rad2deg radians deg2rad""".split()


@pytest.mark.parametrize("name", UFUNCS)
def test_unary_ufuncs_are_operators(x, name):
    got = getattr(np, name)(x)
    assert isinstance(got, nd.NDArray) and got.dtype == np.float32
    np.testing.assert_allclose(got.asnumpy(), getattr(np, name)(VALUES), rtol=2e-5, atol=1e-6)


BINARY = """add subtract multiply divide remainder power maximum minimum hypot equal not_equal greater greater_equal
less less_equal logical_and logical_or logical_xor""".split()


@pytest.mark.parametrize("name", BINARY)
def test_binary_ufuncs_on_either_side(x, name):
    fn = getattr(np, name)
    other = np.array([[0.25, 2, 0.5], [1, 0.2, 0.9]])
    for args in [(x, nd.array(other)), (x, other), (other, x), (x, 0.5), (0.5, x), (np.float64(0.5), x)]:
        got = fn(*args)
        assert isinstance(got, nd.NDArray) and got.dtype == np.float32
        plain = [np.asarray(a.asnumpy() if isinstance(a, nd.NDArray) else a, "float32") for a in args]
        np.testing.assert_allclose(got.asnumpy(), fn(*plain), rtol=2e-5)


@pytest.mark.parametrize("symbol", ["add", "sub", "mul", "truediv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne"])
def test_operators_with_numpy_on_the_left(x, symbol):
    op = getattr(operator, symbol)
    for left in (np.full((2, 3), 0.5, "float32"), np.float32(0.5), np.float64(0.5), np.int64(2), np.full((3,), 2.0)):
        got = op(left, x)
        assert isinstance(got, nd.NDArray)
        np.testing.assert_allclose(got.asnumpy(), op(np.float32(left), VALUES), rtol=1e-5)


def test_numpy_array_updated_in_place_by_an_ndarray(x):
    a = np.ones((2, 3))
    b = a
    a += x
    assert a is b and isinstance(a, np.ndarray)
    np.testing.assert_allclose(a, 1 + VALUES)


def test_out(x):
    y = nd.zeros((2, 3))
    assert np.exp(x, out=y) is y and np.add(x, 1, out=(y,)) is y
    np.testing.assert_allclose(y.asnumpy(), VALUES + 1)
    assert np.isfinite(x, out=y) is y and y.asnumpy().tolist() == [[1.0] * 3] * 2
    host = np.zeros((2, 3), "float32")
    assert np.exp(x, out=host) is host
    np.testing.assert_allclose(host, np.exp(VALUES))
    total = nd.zeros((3,))
    assert np.sum(x, axis=0, out=total) is total
    np.testing.assert_allclose(total.asnumpy(), VALUES.sum(0), rtol=1e-6)


MAPPED = {
    "sum": lambda a: np.sum(a, axis=1),
    "sum all": lambda a: np.sum(a, keepdims=True),
    "mean": lambda a: np.mean(a, axis=0, keepdims=True),
    "prod": lambda a: np.prod(a, axis=(0, 1), keepdims=True),
    "max": lambda a: np.max(a, axis=1),
    "amin": lambda a: np.amin(a, 0),
    "argmax": lambda a: np.argmax(a, axis=1),
    "concatenate": lambda a: np.concatenate([a, a], axis=1),
    "concatenate mixed": lambda a: np.concatenate([np.zeros((1, 3), "float32"), a]),
    "stack": lambda a: np.stack([a, a], 1),
    "vstack": lambda a: np.vstack([a, a]),
    "transpose": lambda a: np.transpose(a),
    "transpose axes": lambda a: np.transpose(a, (1, 0)),
    "reshape": lambda a: np.reshape(a, (3, -1)),
    "ravel": lambda a: np.ravel(a),
    "expand_dims": lambda a: np.expand_dims(a, 1),
    "squeeze": lambda a: np.squeeze(np.expand_dims(a, 1), 1),
    "swapaxes": lambda a: np.swapaxes(a, 0, 1),
    "moveaxis": lambda a: np.moveaxis(a, 0, 1),
    "broadcast_to": lambda a: np.broadcast_to(a, (4, 2, 3)),
    "tile": lambda a: np.tile(a, (2, 1)),
    "flip": lambda a: np.flip(a, 1),
    "clip": lambda a: np.clip(a, 0.2, 0.6),
    "where": lambda a: np.where(a > 0.4, a, a * 2),
    "dot": lambda a: np.dot(a, np.transpose(a)),
    "matmul": lambda a: np.matmul(a, np.transpose(a)),
    "split": lambda a: np.split(a, 3, axis=1)[1],
    "split in one": lambda a: np.split(a, 1)[0],
    "split by default": lambda a: np.split(a, 2)[1],
    "split at": lambda a: np.split(a, [1])[0],
    "concatenate by default": lambda a: np.concatenate([a, a * 2]),
    "stack by default": lambda a: np.stack([a, a * 2]),
    "squeeze by default": lambda a: np.squeeze(np.expand_dims(a, 0)),
    "diag above": lambda a: np.diag(a, 1),
    "diag": lambda a: np.diag(a),
    "copy": lambda a: np.copy(a),
    "zeros_like": lambda a: np.zeros_like(a),
    "full_like": lambda a: np.full_like(a, 3),
}


@pytest.mark.parametrize("name", MAPPED)
def test_mapped_functions(x, name):
    got, want = MAPPED[name](x), MAPPED[name](VALUES)
    if name != "vstack":
        assert isinstance(got, nd.NDArray)
    assert got.shape == want.shape
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5)


HOST = {
    "isnan": lambda a: np.isnan(a),
    "cumsum": lambda a: np.cumsum(a, axis=1),
    "std": lambda a: np.std(a, 0),
    "mean float64": lambda a: np.mean(a, dtype="float64"),
    "multiply.reduce": lambda a: np.multiply.reduce(a, axis=1),
    "add.outer": lambda a: np.add.outer(a, a),
    "percentile": lambda a: np.percentile(a, 30),
    "unique": lambda a: np.unique(a),
    "linalg.svd": lambda a: np.linalg.svd(a)[1],
    "einsum": lambda a: np.einsum("ij,kj->ik", a, a),
}


@pytest.mark.parametrize("name", HOST)
def test_other_functions_are_numpys(x, name):
    got, want = HOST[name](x), HOST[name](VALUES)
    assert isinstance(got, (np.ndarray, np.generic)) and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_full_reductions_have_the_operators_shape(x):
    assert np.sum(x).shape == np.mean(x).shape == np.linalg.norm(x).shape == (1,)
    assert np.shape(x) == (2, 3) and np.ndim(x) == 2 and np.size(x) == 6
    assert np.allclose(x, VALUES) and np.array_equal(x, VALUES) and not np.array_equal(x, VALUES + 1)


def test_mapped_functions_have_gradients_and_others_refuse(x):
    x.attach_grad()
    with autograd.record():
        y = np.sum(np.sin(x) * np.float32(2))
        with pytest.raises(mx.MXNetError, match="np.cumsum.*gradient"):
            np.cumsum(x)
        with pytest.raises(mx.MXNetError, match="np.isnan"):
            np.isnan(x)
        assert np.isnan(x.detach()).sum() == 0
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * np.cos(VALUES), rtol=1e-5)
    assert not autograd.is_recording()


def test_ufunc_at_is_refused(x):
    with pytest.raises(mx.MXNetError, match="np.add.at"):
        np.add.at(x, 0, 1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_conversion_to_numpy(dtype):
    x = nd.array([[0, 1], [1, 0]], dtype=dtype)
    a = np.asarray(x)
    assert a.dtype == dtype and a.flags.writeable
    a[:] = 1
    assert x.asnumpy().tolist() == np.array([[0, 1], [1, 0]], dtype).tolist()
    assert np.asarray(x, dtype="int16").dtype == np.int16
    assert np.array([x, x]).shape == (2, 2, 2)
    view = np.asarray(x, copy=False)
    assert view.dtype == dtype and not view.flags.writeable
    with pytest.raises(ValueError, match="copy=False"):
        np.asarray(x, dtype="complex64", copy=False)


def test_jax_arrays_both_ways(x):
    assert isinstance(x.as_jax(), jax.Array)
    assert jnp.asarray(x).tolist() == jnp.array(x).tolist() == x.tolist()
    assert jnp.stack([x, x]).shape == (2, 2, 3) and jnp.concatenate([x, jnp.ones((1, 3))]).shape == (3, 3)
    assert isinstance(x + jnp.ones((2, 3)), nd.NDArray) and isinstance(jnp.ones((2, 3)) + x, jax.Array)
    j = jnp.arange(4, dtype="int32")
    y = nd.from_jax(j)
    assert y.dtype == np.int32 and y.context == mx.cpu()
    for _ in range(3):
        y += 1
        y.wait_to_read()
    assert j.tolist() == [0, 1, 2, 3] and y.asnumpy().tolist() == [3, 4, 5, 6]
    assert nd.array(j).dtype == np.int32
    shared = nd.from_jax(j)
    shared.wait_to_read()
    assert shared.as_jax().unsafe_buffer_pointer() == j.unsafe_buffer_pointer()
    assert nd.array(j).as_jax().unsafe_buffer_pointer() != j.unsafe_buffer_pointer()


def exports():
    return {
        "as_jax": lambda x: x.as_jax(),
        "numpy view": lambda x: np.asarray(x, copy=False),
        "numpy of jax": lambda x: np.asarray(x.as_jax()),
        "jax dlpack": lambda x: jax.dlpack.from_dlpack(x),
        "nd dlpack copy": lambda x: nd.from_dlpack(x, copy=True),
        "numpy dlpack copy": lambda x: np.from_dlpack(x, copy=True),
        "asnumpy": lambda x: x.asnumpy(),
        "copy": lambda x: x.copy(),
        "deepcopy": lambda x: copy.deepcopy(x),
        "detach": lambda x: x.detach(),
    }


@pytest.mark.parametrize("how", exports())
@pytest.mark.parametrize("naive", [False, True])
def test_writes_are_not_seen_through_an_export(how, naive):
    with mx.engine.naive() if naive else contextlib.nullcontext():
        x = nd.array(np.arange(500.0))
        x += 1
        x.wait_to_read()
        out = exports()[how](x)
        for k in range(4):
            # Updates in place take over the old buffer where nobody else holds it.
            x += 1
            x[3] = 100 + k
            x.wait_to_read()
        x[:] = 7
        nd.waitall()
        assert np.array_equal(np.asarray(out), np.arange(1, 501.0))
        assert x.asnumpy().tolist() == [7.0] * 500


IMPORTS = {
    "array": nd.array,
    "from_numpy": lambda a: nd.from_numpy(a, zero_copy=False),
    "from_dlpack": lambda a: nd.from_dlpack(a, copy=True),
    "assigned": lambda a: _assigned(a),
}


def _assigned(a):
    x = nd.zeros(a.shape)
    x[:] = a
    return x


@pytest.mark.parametrize("how", IMPORTS)
def test_the_sources_later_writes_are_not_seen(how):
    # Large and aligned, so that sharing would be possible.
    a = np.zeros(1 << 14, "float32")
    x = IMPORTS[how](a)
    y = x * 1
    a[:] = 5
    assert x.asnumpy().max() == 0 and y.asnumpy().max() == 0
    x += 1
    x.wait_to_read()
    assert a.min() == 5


@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_dtypes(dtype):
    a = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    x = nd.from_dlpack(a)
    assert x.dtype == a.dtype and np.array_equal(x.asnumpy(), a)
    assert np.array_equal(np.from_dlpack(x), a) and np.from_dlpack(x).dtype == a.dtype
    # Without 64-bit types JAX itself would shorten what it is given.
    with jax.enable_x64(True):
        y = nd.from_dlpack(jax.dlpack.from_dlpack(x))
    assert y.dtype == a.dtype and np.array_equal(y.asnumpy(), a)
    assert x.__dlpack_device__() == (1, 0)


def test_dlpack_with_torch():
    torch = pytest.importorskip("torch")
    t = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    x = nd.from_dlpack(t)
    t += 1
    assert x.asnumpy().tolist() == [[1, 2, 3], [4, 5, 6]]
    back = torch.utils.dlpack.from_dlpack(x)
    x += 10
    assert back.tolist() == t.tolist() == [[11, 12, 13], [14, 15, 16]]
    assert np.asarray(torch.from_numpy(x.asnumpy())).tolist() == x.asnumpy().tolist()


@pytest.mark.parametrize("value", [3, "abc", None, [1, 2], object()])
def test_what_is_not_dlpack_is_refused(value):
    with pytest.raises(mx.MXNetError, match="from_dlpack"):
        nd.from_dlpack(value)


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_pickle(dtype, protocol):
    x = nd.array([[0, 1], [1, 1]], dtype=dtype, ctx=mx.cpu(1))
    y = pickle.loads(pickle.dumps(x, protocol))
    assert y.dtype == x.dtype and y.context == mx.cpu(1) and y.tolist() == x.tolist()
    y += nd.ones((2, 2), dtype=dtype, ctx=mx.cpu(1)) if dtype != "bool" else 0
    assert x.asnumpy().astype("float32").tolist() == [[0, 1], [1, 1]]


def test_pickle_of_pending_arrays_and_variables():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    y = pickle.loads(pickle.dumps({"w": x, "z": x * 2}))
    assert y["z"].asnumpy().tolist() == [2.0, 4.0] and y["w"].grad is None
    assert (y["w"] + y["z"]).asnumpy().tolist() == [3.0, 6.0]


def test_a_pickle_names_only_numpy_and_dualmx():
    found = set()

    class Watching(pickle.Unpickler):
        def find_class(self, module, name):
            found.add(module.split(".")[0])
            return super().find_class(module, name)

    assert Watching(io.BytesIO(pickle.dumps(nd.ones((2,))))).load().tolist() == [1.0, 1.0]
    assert found == {"dualmx", "numpy"}


def test_copies_are_independent():
    x = nd.array([1.0, 2.0, 3.0])
    made = [copy.copy(x), copy.deepcopy(x), copy.deepcopy({"a": [x]})["a"][0], x.copy(), nd.array(x), x[1:2].copy()]
    x[:] = 0
    assert [m.asnumpy().tolist() for m in made] == [[1.0, 2.0, 3.0]] * 5 + [[2.0]]
    made[0][:] = 9
    assert x.asnumpy().tolist() == [0.0] * 3


def test_bfloat16_crosses():
    x = nd.array([1.5, 2.5], dtype="bfloat16")
    assert x.asnumpy().dtype == ml_dtypes.bfloat16
    assert nd.from_numpy(x.asnumpy()).dtype == x.dtype
    assert jax.dlpack.from_dlpack(x).dtype == jnp.bfloat16


@pytest.mark.parametrize("axis", [0, 1])
def test_positions_in_arrays_end_before_the_length(axis):
    host = np.arange(12.0).reshape(3, 4)
    x, size = nd.array(host), host.shape[axis]
    at = (slice(None),) * axis
    for position in (size - 1, -size):
        want = host[(*at, [position])]
        for index in (np.array([position]), [position], nd.array([position], dtype="int32")):
            np.testing.assert_array_equal(x[(*at, index)].asnumpy(), want)
    for position in (size, -size - 1):
        text = f"index {position} is out of bounds for axis {axis} with size {size}"
        for index in (np.array([0, position]), [position], np.array([[position]])):
            with pytest.raises(IndexError, match=text):
                x[(*at, index)]
            with pytest.raises(IndexError, match=text):
                x[(*at, index)] = 1


@pytest.mark.parametrize(
    "look", [lambda x: x, lambda x: x[0], lambda x: x[1:], lambda x: x.reshape((4, 3)), lambda x: x[1, 2]]
)
def test_values_handed_out_are_the_callers(look):
    x = nd.array(np.arange(12.0).reshape(3, 4))
    for _ in range(2):  # the second time from a view that was read before
        shown = look(x).asnumpy()
        assert shown.flags.writeable and shown.flags.owndata
        shown[...] = -1
    np.testing.assert_array_equal(x.asnumpy(), np.arange(12.0).reshape(3, 4))
