"""Operators on index arrays, creation operators: recorded MXNet results, NumPy, numeric derivatives, edge cases."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import MXNetError
from dualmx.op.lowering_context import lowering_on_platform
from dualmx.op.registry import OPS
from tests.goldens.shape_cases import CREATE, CUBE, INDEX, PAIR, Case, floats, ints, ramp
from tests.op.array_replay import check_numeric, check_recorded
from tests.op.replay import defined_in, gradients, run

MINE = [*INDEX, *CREATE]


def named(cases: list[Case]) -> pytest.MarkDecorator:
    """Parametrise over cases, which show up by name."""
    return pytest.mark.parametrize("case", cases, ids=lambda c: c.name)


def test_every_operator_has_a_case():
    others = {"_scatter_set_nd", "_contrib_SparseEmbedding", "_zeros_without_dtype"}
    slices = {"slice", "slice_axis", "slice_like"}  # see test_shape
    views = {
        "_basic_slice",
        "_basic_slice_assign",
        "_slice_assign",
        "_slice_assign_scalar",
        "_window",
        "_window_assign",
    }
    views |= {"_advanced_get", "_advanced_set"}  # see test_window
    assert not set(defined_in("index", "creation")) - {c.op for c in MINE} - others - slices - views


@named(MINE)
def test_agrees_with_mxnet(case):
    check_recorded(case)


@named([c for c in MINE if c.smooth])
def test_derivatives_agree_with_differences(case):
    check_numeric(case, order=1)


@pytest.mark.parametrize("mode", ["clip", "wrap"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_take_agrees_with_numpy(mode, axis):
    index = ints([[5, -7, 1], [0, 2, -1]])
    np.testing.assert_array_equal(run("take", CUBE, index, axis=axis, mode=mode), np.take(CUBE, index, axis, mode=mode))


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "int64", "uint8"])
def test_indices_of_any_dtype(dtype):
    np.testing.assert_array_equal(run("take", PAIR, np.array([1, 0], dtype)), PAIR[[1, 0]])
    np.testing.assert_array_equal(run("pick", PAIR, np.array([1, 0], dtype)), [2, 3])
    np.testing.assert_array_equal(run("one_hot", np.array([1, 0], dtype), depth=2), np.eye(2)[[1, 0]])


def test_gradient_adds_up_over_repeated_indices():
    call = OPS["take"].call()
    index = jnp.asarray([1, 1, 0])
    grad = jax.grad(lambda a: (call.apply([a, index])[0] * jnp.asarray([1.0, 2.0, 4.0])).sum())(jnp.zeros(3))
    np.testing.assert_array_equal(grad, [4, 3, 0])


def test_embedding_gradient_reaches_the_clipped_row():
    grad = gradients("Embedding", floats([9, 0, -3]), ramp(3, 2), input_dim=3, output_dim=2)[1]
    np.testing.assert_array_equal(grad, [[2, 2], [0, 0], [1, 1]])


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_of_several_writes_the_last_wins(platform):
    index = np.random.RandomState(0).randint(0, 7, 300)
    want = np.zeros(7, np.float32)
    want[index] = np.arange(300)
    data = np.arange(300, dtype=np.float32)
    with lowering_on_platform(platform):
        np.testing.assert_array_equal(run("scatter_nd", data, index[None], shape=(7,)), want)
        rows = run("_contrib_index_copy", np.zeros((7, 1), np.float32), index, data[:, None])
        np.testing.assert_array_equal(rows[:, 0], want)
        into = run("_scatter_set_nd", np.zeros(7, np.float32), data, index[None], shape=(7,))
        np.testing.assert_array_equal(into, want)


def test_gather_and_scatter_are_inverse():
    points = ints(np.stack(np.meshgrid(range(2), range(3), indexing="ij")))
    np.testing.assert_array_equal(run("scatter_nd", run("gather_nd", CUBE, points), points, shape=(2, 3, 4)), CUBE)


def test_ravel_and_unravel_agree_with_numpy():
    flat = ints([[0, 5], [23, 11]], "int64")
    coordinates = run("_unravel_index", flat, shape=(2, 3, 4))
    np.testing.assert_array_equal(coordinates, np.unravel_index(flat, (2, 3, 4)))
    np.testing.assert_array_equal(run("_ravel_multi_index", coordinates, shape=(2, 3, 4)), flat)


def test_where_with_a_condition_of_another_dtype():
    x = ints([[1, 2], [3, 4]], "int64")
    np.testing.assert_array_equal(run("where", floats([1, 0]), x, -x), [[1, 2], [-3, -4]])


def test_completion_deduces_inputs():
    p = type("P", (), {"input_dim": 4, "output_dim": 5, "axis": -1, "keepdims": False, "dtype": "float16"})
    assert OPS["Embedding"].complete(p, {"data": (2, 3)}) == {"weight": (4, 5)}
    assert OPS["Embedding"].complete_dtype(p, {}) == {"weight": "float16"}
    assert OPS["pick"].complete(p, {"data": (2, 3)}) == {"index": (2,)}
    assert OPS["where"].complete(p, {"y": (2, 3)}) == {"x": (2, 3)}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "int64", "bool"])
def test_created_dtypes(dtype):
    for name, params in [("_zeros", {}), ("_ones", {}), ("_full", {"value": 1})]:
        assert run(name, shape=(2, 3), dtype=dtype, ctx="cpu(0)", **params).dtype.name == dtype


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "int64", "bool"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_zeros_and_ones_of_a_new_shape_need_no_trace(shape, dtype, monkeypatch):
    for name, params in [("_zeros", {}), ("_ones", {}), ("_full", {"value": 1})]:
        call = OPS[name].call(shape=shape, dtype=dtype, **params)
        call.avals.clear()
        with jax.enable_x64(True):
            ((traced,),) = [jax.eval_shape(lambda call=call: call.apply([], None, ()))]
        with monkeypatch.context() as m:
            m.delattr(jax, "eval_shape")
            ((inferred, kind),) = call.infer(())
        assert (inferred, kind) == (traced.shape, traced.dtype) == (shape, np.dtype(dtype))
    with pytest.raises(MXNetError, match="expected lengths of 0 or more"):
        OPS["_ones"].call(shape=(-1, 2), dtype=dtype).infer(())


def test_whole_numbers_are_exact_in_arange():
    big = 2**40
    np.testing.assert_array_equal(run("_arange", start=big, stop=big + 3, dtype="int64"), big + np.arange(3))


def test_histogram_agrees_with_numpy():
    x = np.random.RandomState(1).uniform(-1, 11, 500).astype(np.float32)
    for given in [{"bin_cnt": 7, "range": (0, 10)}, {"bin_cnt": 1, "range": (2, 3)}]:
        counts, edges = run("_histogram", x, **given)
        want, at = np.histogram(x, given["bin_cnt"], given["range"])
        np.testing.assert_array_equal(counts, want)
        np.testing.assert_allclose(edges, at, rtol=1e-6)


def test_boolean_mask_selects_slices_and_carries_gradients():
    data, index = mx.nd.array([[1, 2], [3, 4], [5, 6]]), mx.nd.array([0, -1, 0.5])
    data.attach_grad()
    with mx.autograd.record():
        chosen = mx.nd.contrib.boolean_mask(data * 2, index)
    chosen.backward()
    np.testing.assert_array_equal(chosen.asnumpy(), [[6, 8], [10, 12]])
    np.testing.assert_array_equal(data.grad.asnumpy(), [[0, 0], [2, 2], [2, 2]])
    assert mx.nd.contrib.boolean_mask(data, mx.nd.zeros(3)).shape == (0, 2)
    np.testing.assert_array_equal(
        mx.nd.contrib.boolean_mask(data, mx.nd.array([0, 1]), axis=1).asnumpy()[:, 0], [2, 4, 6]
    )
    with pytest.raises(MXNetError, match=r"boolean_mask: index has shape \(2,\): expected \(3,\)"):
        mx.nd.contrib.boolean_mask(data, mx.nd.array([0, 1]))


def test_take_reports_bad_indices_when_the_result_is_waited_for():
    late = mx.nd.take(mx.nd.ones((2, 3)), mx.nd.array([0, 2]), mode="raise")
    for _ in range(2):
        with pytest.raises(MXNetError, match=r"take: an index is outside \[0, 2\)"):
            late.asnumpy()
    kept = mx.nd.take(mx.nd.array([4, 7]), mx.nd.array([1, -0.5]), mode="raise")
    np.testing.assert_array_equal(kept.asnumpy(), [7, 4])
    with mx.engine.naive(), pytest.raises(MXNetError, match="take"):
        mx.nd.take(mx.nd.ones(2), mx.nd.array([-1]), mode="raise")


def test_a_bad_value_is_reported_with_the_line_that_called_the_operator():
    def late(indices):  # each with the same operations from other lines
        if indices[0] < 3:
            return mx.nd.take(mx.nd.arange(3), mx.nd.array(indices), mode="raise") + 1
        return mx.nd.take(mx.nd.arange(3), mx.nd.array(indices), mode="raise") + 1

    first = late.__code__.co_firstlineno
    assert late([2]).asscalar() == 3
    with pytest.raises(MXNetError, match=rf"\(recorded at {__file__}:{first + 3}\)"):
        late([7]).asnumpy()
    matrix = mx.nd.linalg.potrf(mx.nd.array([[1.0, 2.0], [2.0, 1.0]]))
    here = first + 9
    for result in (matrix * 2, matrix):
        with pytest.raises(MXNetError, match=rf"\(recorded at {__file__}:{here}\)"):
            result.asnumpy()


def test_zeros_without_dtype_are_float32():
    for dtype in (-1, None, "None"):
        assert run("_zeros_without_dtype", shape=(2,), dtype=dtype).dtype == np.float32
    assert run("_zeros_without_dtype", shape=(2,), dtype="int32").dtype == np.int32
