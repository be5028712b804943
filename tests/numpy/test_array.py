"""The array itself: indexing against NumPy, views, identity with classic arrays, printing, protocols, errors."""

from __future__ import annotations

import copy
import importlib

import pytest

import dualmx as mx
import numpy as onp
from dualmx.core.errors import MXNetError

np = mx.np
BASE = onp.arange(24.0, dtype="float32").reshape(2, 3, 4)
MASK = onp.array([[True, False, True], [False, True, False]])
KEYS = [
    0, -1, (0, 1), (0, 1, 2), (slice(None), 1), (slice(1, None), slice(None, None, 2)), (..., 0), None, (None, 1),
    (0, None, slice(1, 3)), (slice(None, None, -1),), slice(2, 2), (slice(0, 0), 1), [1, 0], ([0, 1], [2, 0]),
    (0, [1, 2]), (slice(None), [0, 2]), ([0, 1], slice(None), [3, 1]), onp.array([[0, 1], [1, 0]]), (..., [0, 3]),
    MASK, (slice(None), onp.array([True, False, True])), onp.array([False, True]), (1, MASK[0]), [[0, 1]], True, (),
    (0, ..., 1), ([1], [2], [3]), onp.zeros((2, 3, 4), bool), (onp.int64(1), onp.array(2)), ([0, 1], 1, slice(1, 3)),
]  # fmt: skip


def shown(key):
    return str(key).replace("\n", "")[:40]


@pytest.mark.parametrize("key", KEYS, ids=shown)
def test_reading_and_writing(key):
    want = BASE[key]
    got = np.array(BASE)[key]
    assert got.shape == want.shape
    onp.testing.assert_array_equal(got.asnumpy(), want)
    for value in (
        7.0,
        onp.full(want.shape, 5.0, "float32") + onp.arange(want.size, dtype="float32").reshape(want.shape),
    ):
        x, y = np.array(BASE), BASE.copy()
        x[key] = value if isinstance(value, float) else np.array(value)
        y[key] = value
        onp.testing.assert_array_equal(x.asnumpy(), y)


@pytest.mark.parametrize("key", [k for k in KEYS if not isinstance(k, type(None))][:20], ids=shown)
def test_gradient_of_a_window(key):
    x = np.array(BASE)
    x.attach_grad()
    with mx.autograd.record():
        y = (x[key] * 2).sum()
    y.backward()
    want = onp.zeros_like(BASE)
    onp.add.at(want, key, 2.0)
    onp.testing.assert_array_equal(x.grad.asnumpy(), want)
    assert isinstance(x.grad, np.ndarray)


def test_arrays_of_mx_np_as_indices():
    x = np.array(BASE)
    index, mask = np.array([1, 0], dtype="int32"), np.array(MASK)
    onp.testing.assert_array_equal(x[index].asnumpy(), BASE[[1, 0]])
    onp.testing.assert_array_equal(x[mask].asnumpy(), BASE[MASK])
    onp.testing.assert_array_equal(x[x > 20].asnumpy(), BASE[BASE > 20])
    x[x > 20] = 0
    assert x.max() == 20
    x[mask] = np.arange(12).reshape(3, 4)
    assert x[0, 0, 3] == 3
    assert x[1, 1, 0] == 8


def test_windows_are_views():
    x = np.zeros((2, 3))
    row, cell = x[1], x[0, 0]
    row[:] = 7
    cell[...] = 5
    x[0][1:2] = 3
    assert x.tolist() == [[5, 3, 0], [7, 7, 7]]
    x += 1
    assert (row.tolist(), cell.item()) == ([8, 8, 8], 6)
    assert np.shares_memory(x, row)
    assert not np.shares_memory(x, x.copy())


@pytest.mark.parametrize(
    ("key", "error"), [(2, IndexError), ((0, 0, 0, 0), IndexError), ([5], IndexError), (MASK.T, IndexError),
                       (1.5, ValueError), ("a", ValueError), ((..., ...), IndexError)], ids=shown,
)  # fmt: skip
def test_wrong_indices(key, error):
    with pytest.raises(error) as e:
        np.array(BASE)[key]
    assert isinstance(e.value, MXNetError)


def test_wrong_values():
    x = np.zeros((2, 3))
    with pytest.raises(MXNetError, match="broadcast"):
        x[0] = np.ones(4)
    with pytest.raises(TypeError, match="value of type NoneType: expected numbers"):
        x[0] = None
    with pytest.raises(TypeError, match="unsized object: the array has no axis"):
        len(np.array(1.0))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)
    with pytest.raises(MXNetError, match="take: an index is out of bounds for axis 0 with size 3"):
        np.take(np.arange(3), np.array([5])).asnumpy()


def test_classic_arrays_share_value_and_gradient():
    x = np.array([1.0, 2.0])
    old = x.as_nd_ndarray()
    assert type(old) is mx.nd.NDArray
    assert type(old.as_np_ndarray()) is np.ndarray
    old[:] = 3
    assert x.tolist() == [3, 3]
    x[0] = 1
    assert old.asnumpy().tolist() == [1, 3]
    x.attach_grad()
    with mx.autograd.record():
        y = (x * x).sum() + (x.as_nd_ndarray() * 5).sum().as_np_ndarray()[0] + old.sum().as_np_ndarray()[0]
    y.backward()
    assert x.grad.tolist() == [8, 12]
    assert old.grad.asnumpy().tolist() == [8, 12]
    with pytest.raises(TypeError, match="do not mix"):
        _ = x + old
    with pytest.raises(TypeError, match="do not mix"):
        _ = old + x
    assert type(mx.nd.array(x)) is mx.nd.NDArray


def test_a_second_handle_sees_pending_values():
    x = np.ones(3)
    y = x * 2
    z = y.as_nd_ndarray()
    y += 1
    assert z.asnumpy().tolist() == [3, 3, 3]
    w = mx.nd.ones((2,)).as_np_ndarray()
    w *= 4
    assert w.as_nd_ndarray().asnumpy().tolist() == [4, 4]


def test_gradients_through_operators():
    x = np.array([0.5, 2.0])
    x.attach_grad(grad_req="add")
    for _ in range(2):
        with mx.autograd.record():
            y = 2 / x + x**2 - (3 - x) * x + x.mean() + (x > 1) * x
        y.backward()
    onp.testing.assert_allclose(x.grad.asnumpy(), 2 * (-2 / x.asnumpy() ** 2 + 4 * x.asnumpy() - 3 + 1 + [0, 1]))
    with mx.autograd.record():
        z = (x.detach() * x).sum()
    (g,) = mx.autograd.grad(z, [x])
    assert g.tolist() == [0.5, 2]
    assert isinstance(g, np.ndarray)


def test_printing():
    assert repr(np.array([[1, 2], [3, 4]])) == "array([[1., 2.],\n       [3., 4.]])"
    assert repr(np.array([1, 2], dtype="int64")) == "array([1, 2], dtype=int64)"
    assert repr(np.array(1.0, dtype="float64")) == "array(1., dtype=float64)"
    assert repr(np.array([True], dtype=bool)) == "array([ True])"
    assert repr(np.zeros((0, 2))) == "array([], shape=(0, 2))"
    assert str(np.array(2.0)) == "2.0"
    assert f"{np.array(2.0):.2f}" == "2.00"


def test_scalars():
    x = np.array(3, dtype="int32")
    assert (int(x), float(x), x.item(), [0, 1, 2, 3][x], bool(x)) == (3, 3.0, 3, 3, True)
    assert np.add(1, 2) == 3
    assert isinstance(np.sin(1.0), onp.floating)
    assert np.array([[1.0, 2.0]]).item(1) == 2
    assert (np.ones((2,)).size, np.ones((2, 1)).ndim, np.float32, np.newaxis) == (2, 2, onp.float32, None)


def test_in_place_operators_keep_the_dtype():
    x = np.array([3, 4], dtype="int32")
    held = x
    x += 1.5
    x *= np.array([2, 3], dtype="int64")
    assert (x.tolist(), x.dtype, held is x) == ([8, 15], onp.dtype("int32"), True)
    with pytest.raises(TypeError, match="cannot be written"):
        x /= 2
    y = np.ones(2)
    y @= np.array([[1.0, 2.0], [3.0, 4.0]])
    assert y.tolist() == [4, 6]


def test_out_where_and_dtype():
    x, out = np.array([1.0, 4.0]), np.zeros(2)
    assert np.sqrt(x, out=out) is out
    assert out.tolist() == [1, 2]
    assert np.add(x, 1, out=out, where=np.array([True, False])) is out
    assert out.tolist() == [2, 2]
    assert np.add(x, x, dtype="float64").dtype == onp.float64
    assert np.sum(x, out=np.zeros(())).item() == 5
    assert np.concatenate([x, x], out=np.zeros(4)).shape == (4,)
    with pytest.raises(TypeError, match="sqrt: out of type ndarray: expected a mx.np.ndarray"):
        np.sqrt(x, out=onp.zeros(2))
    with pytest.raises(TypeError, match="unexpected"):
        np.sqrt(x, nonsense=1)


def test_numpy_calls_us():
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    for found in (onp.sin(x), onp.add(x, onp.ones(2, "float32")), onp.mean(x, axis=0), onp.concatenate([x, x]),
                  onp.median(x), onp.where(x > 1, x, 0), onp.ones(2, "float32") * x, onp.add.reduce(x),
                  onp.linspace(x[0], x[1], 3)):  # fmt: skip
        assert isinstance(found, np.ndarray)
    assert onp.shape(x) == (2, 2)
    assert isinstance(onp.asarray(x), onp.ndarray)
    out = onp.zeros((2, 2))
    assert onp.exp(x, out=out) is out
    assert onp.exp(x, out=x) is x
    x.attach_grad()
    with mx.autograd.record():
        y = onp.sum(onp.tanh(x))
        with pytest.raises(MXNetError, match="gradient"):
            onp.cov(x)
    y.backward()
    assert abs(x.grad).sum() > 0


def test_methods_and_copies():
    x = np.array([[3.0, 1.0], [2.0, 4.0]])
    x.sort()
    assert x.tolist() == [[1, 3], [2, 4]]
    assert x.clip(2, 3).tolist() == [[2, 3], [2, 3]]
    assert x.max(axis=0, keepdims=True).shape == (1, 2)
    assert x.transpose(1, 0).tolist() == x.T.tolist() == x.swapaxes(0, 1).tolist()
    assert x.flatten().shape == x.ravel().shape == (4,)
    assert x.nansum().shape == x.norm().shape == ()
    assert [type(v) for v in (x.relu(), x.exp(), x.softmax(), x.copyto(mx.cpu(1)), copy.deepcopy(x))] == [
        np.ndarray
    ] * 5
    assert x.astype("int32").dtype == onp.int32
    assert x.astype("float32", copy=False) is x
    assert x.as_in_ctx(mx.cpu(1)).context == mx.cpu(1)
    assert np.array(x).tolist() == x.tolist()
    assert np.array([x, x]).shape == (2, 2, 2)
    with pytest.raises(ValueError, match="order"):
        x.reshape(4, order="F")
    with pytest.raises(ValueError, match="reshape"):
        x.reshape(3)


def test_comparison_with_other_objects():
    for other in (None, "text"):
        with pytest.raises(TypeError, match="equal: other of type .*: expected an array or a number"):
            _ = np.ones(2) == other
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+: 'ndarray' and 'list'"):
        _ = np.ones(2) + [1, 2]


def test_modules_under_which_functions_are_found():
    multiarray = importlib.import_module("dualmx.numpy.multiarray")

    assert multiarray.ndarray is np.ndarray
    assert np.utils.pi == np.pi == onp.pi
    assert np.fallback.modf(np.array([1.5]))[0].tolist() == [0.5]
    assert {"sum", "cov", "trapz", "ndarray"} <= set(dir(np))
    assert np.trapz(np.array([1.0, 2.0])).item() == 1.5
    with pytest.raises(AttributeError, match="module 'dualmx.numpy' has no attribute 'no_such_function'"):
        _ = np.no_such_function


def test_annuities():
    assert np.npv(0.5, [-100, 75, 90]) == pytest.approx(-10)
    assert np.pv(0.05 / 12, 120, -100, 15692.93) == pytest.approx(-100.00067, abs=1e-4)
    assert np.rate(10, 0, -3500, 10000) == pytest.approx(0.1106908)
    assert np.mirr([-100, 39, 59, 55, 20], 0.1, 0.12) == pytest.approx(0.2043768)
    assert np.ppmt(0.1 / 12, 1, 24, 2000) == pytest.approx(-75.6231861)


def test_small_operations_as_in_mxnet():
    x = np.array([1.0, 2.0])
    before = x
    x **= 2
    assert x is not before and before.tolist() == [1.0, 2.0]
    assert round(np.array(2.5)).item() == 2.0 and round(np.array([1.26]), 1).item() == pytest.approx(1.3)
    assert f"{np.array(1.234):.2f}" == "1.23" and f"{x}" == "[1. 4.]"
    with pytest.raises(TypeError, match="format"):
        f"{x:.2f}"
    negative = -np.array([True, False], dtype="bool")
    assert negative.dtype == onp.int64 and negative.tolist() == [-1, 0]


def test_other_shapes_are_copies():
    x = np.arange(6).reshape(2, 3)
    for other in (x.reshape(-1), x.reshape(2, 3), x[0].reshape(3, 1), np.reshape(x, (3, 2)), x.ravel()):
        other += 10
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and not np.shares_memory(x, x.reshape(-1))
    shown = x.reshape_view(-1)
    shown[0] = 7
    assert x[0, 0].item() == 7


def test_a_slice_without_step_is_a_wrong_value():
    with pytest.raises(ValueError, match="zero"):
        np.arange(3)[::0]


@pytest.mark.parametrize("room", [mx.np, mx.nd])
@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("key", ["::-1", "::-2", "::-3", "0::-1", "1:2:-1", "::-2, 1:", "::-2, 0", "::-2, ::-3"])
def test_windows_read_backwards_may_have_one_row(room, rows, key):
    key = eval(f"onp.s_[{key}]")
    base = onp.arange(rows * 6, dtype="float32").reshape(rows, 2, 3)
    shown = room.array(base)[key] if base[key].size or room is mx.np else None
    if shown is not None:
        onp.testing.assert_array_equal(shown.asnumpy(), base[key])
    x = room.array(base)
    x[key] = -5
    base[key] = -5
    onp.testing.assert_array_equal(x.asnumpy(), base)


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
@pytest.mark.parametrize(
    "no", [False, onp.False_, onp.array(False), np.array(False, dtype="bool")], ids=["bool", "bool_", "numpy", "np"]
)
def test_a_mask_of_no_axis_may_be_false(shape, no):
    x = np.ones(shape)
    x.attach_grad()
    with mx.autograd.record():
        nothing = x[no]
        total = nothing.sum()
    total.backward()
    assert nothing.shape == (0, *shape) and x.grad.asnumpy().sum() == 0
    x[no] = 7
    x[no] += 1
    assert x.asnumpy().tolist() == onp.ones(shape).tolist()
    with pytest.raises(mx.MXNetError, match="False among other indices"):
        np.ones((2, 3))[False, 0]
