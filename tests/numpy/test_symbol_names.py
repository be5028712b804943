"""Names, operators and JSON of the nodes of `mx.sym.np` and `mx.sym.npx`, as MXNet 1.9.1 makes them."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

import dualmx as mx
import numpy as onp

np: Any = mx.np
snp: Any = mx.sym.np
npx: Any = mx.sym.npx
M, N, V = (mx.sym.var(name).as_np_ndarray() for name in "mnv")

# expression: its names and the operators of its graph in MXNet
MADE = {
    "m + 2": ("add_scalar0", "_npi_add_scalar"),
    "2 - m": ("rsubtract_scalar0", "_npi_rsubtract_scalar"),
    "m ** 2": ("power_scalar0", "_npi_power_scalar"),
    "-m": ("multiply_scalar0", "_npi_multiply_scalar"),
    "m[0]": ("reshape0", "slice _npx_reshape"),
    "m[0:1]": ("slice0", "slice"),
    "m.flatten()": ("reshape0", "_np_reshape"),
    "np.add(m, 2)": ("add_scalar0", "_npi_add_scalar"),
    "np.multiply(m, 2)": ("multiply_scalar0", "_npi_multiply_scalar"),
    "np.negative(m)": ("negative0", "_npi_negative"),
    "np.absolute(m)": ("absolute0", "_npi_absolute"),
    "np.fabs(m)": ("abs0", "_npi_absolute"),
    "np.sin(m)": ("sin0", "_npi_sin"),
    "np.amax(m, axis=1)": ("amax0", "_np_max"),
    "np.sometrue(m)": ("sometrue0", "_np_any"),
    "np.product(m)": ("product0", "_np_prod"),
    "np.maximum(m, n)": ("maximum0", "broadcast_maximum"),
    "np.copy(m)": ("copy0", "_np_copy"),
    "np.delete(m, 1, axis=0)": ("delete0", "_npi_delete"),
    "np.delete(m, n)": ("delete0", "_npi_delete"),
    "np.insert(m, 1, 5.0)": ("insert_scalar0", "_npi_insert_scalar"),
    "np.insert(m, slice(0, 2), n)": ("insert_slice0", "_npi_insert_slice"),
    "np.insert(m, v, n)": ("insert_tensor0", "_npi_insert_tensor"),
    "np.inner(m, n)": ("tensordot0", "_npi_tensordot"),
    "np.vdot(m, n)": ("tensordot_int_axes0", "_np_reshape _np_reshape _npi_tensordot_int_axes"),
    "np.pad(m, ((1, 1), (0, 2)))": ("pad1", "_npi_pad"),
    "np.pad(m, ((1, 1), (0, 2)), mode='edge')": ("pad0", "_npi_pad"),
    "np.percentile(m, n)": ("percentile0", "_npi_percentile"),
    "np.quantile(m, n)": ("percentile0", "_npi_multiply_scalar _npi_percentile"),
    "np.ravel(m)": ("reshape0", "_npx_reshape"),
    "np.repeat(m, 2)": ("repeat0", "repeat"),
    "np.diag_indices_from(m)": ("diag_indices_from0", "_npi_diag_indices_from"),
    "np.shares_memory(m, n)": ("share_memory0", "_npi_share_memory"),
    "np.resize(m, (2, 3))": ("custom0", "Custom"),
    "np.unravel_index(m, (2, 3))": ("custom0", "Custom"),
    "np.empty_like(m)": ("custom0", "Custom"),
    "np.take(m, n)": ("take0", "_npx_reshape take"),
    "npx.relu(m)": ("relu0", "_npx_relu"),
    "npx.sigmoid(m)": ("sigmoid0", "_npx_sigmoid"),
}


def made(text: str) -> Any:
    with mx.name.NameManager():
        return eval(text, {"np": snp, "npx": npx, "m": M, "n": N, "v": V})


def operators(symbol: Any) -> str:
    return " ".join(n["op"] for n in json.loads(symbol.tojson())["nodes"] if n["op"] != "null")


@pytest.mark.parametrize("text", MADE)
def test_nodes_are_called_as_in_mxnet(text: str) -> None:
    symbol = made(text)
    assert (symbol.name, operators(symbol)) == MADE[text]
    assert mx.sym.load_json(symbol.tojson()).tojson() == symbol.tojson()
    assert operators(copy.copy(symbol)) == MADE[text][1]


def run(text: str, **values: Any) -> Any:
    symbol = mx.sym.load_json(made(text).tojson())
    with mx.util.np_shape(True):
        bound = symbol.bind(mx.cpu(), {k: np.array(v).as_nd_ndarray() for k, v in values.items()})
        return [out.asnumpy() for out in bound.forward()]


GRID = onp.arange(6.0, dtype="float32").reshape(2, 3)
WHOLE = onp.array([1, 5], "int32")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "values", "want"),
    [
        ("m[0]", {"m": GRID}, GRID[0]),
        ("m[-1]", {"m": GRID}, GRID[-1]),
        ("m[0:1, 1]", {"m": GRID}, GRID[0:1, 1]),
        ("m.flatten()", {"m": GRID}, GRID.ravel()),
        ("np.delete(m, 1, axis=1)", {"m": GRID}, onp.delete(GRID, 1, axis=1)),
        ("np.insert(m, 1, 5.0)", {"m": GRID}, onp.insert(GRID, 1, 5.0)),
        ("np.insert(m, v, n)", {"m": GRID[0], "n": GRID[1, :2], "v": [0, 2]}, [3, 0, 1, 4, 2]),
        ("np.percentile(m, n)", {"m": GRID, "n": onp.float32(50)}, 2.5),
        ("np.percentile(m, 50, axis=0)", {"m": GRID}, [1.5, 2.5, 3.5]),
        ("np.histogram(m, n)[0]", {"m": GRID, "n": onp.array([0, 2, 9], "float32")}, [2, 4]),
        ("np.histogram(m, 2, range=(0, 4))[1]", {"m": GRID}, [0, 2, 4]),
        ("np.unravel_index(m, (2, 3))", {"m": WHOLE}, [[0, 1], [1, 2]]),
        ("np.resize(m, (2, 2))", {"m": WHOLE}, [[1, 5], [1, 5]]),
        ("np.inner(m, n)", {"m": GRID, "n": GRID}, GRID @ GRID.T),
        ("np.vdot(m, n)", {"m": GRID, "n": GRID}, 55),
        ("np.copy(m)", {"m": GRID}, GRID),
        ("np.repeat(m, 2)", {"m": WHOLE}, [1, 1, 5, 5]),
        ("np.shares_memory(m, m)", {"m": WHOLE}, True),
        ("np.nan_to_num(m, copy=False)", {"m": onp.array([onp.nan], "float32")}, [0]),
        ("np.amin(m, axis=1)", {"m": GRID}, [0, 3]),
    ],
)
def test_what_the_nodes_compute(text: str, values: dict[str, Any], want: Any) -> None:
    (got,) = run(text, **values)
    onp.testing.assert_allclose(got, want)
    assert got.shape == onp.shape(want)


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("m + 2", "int32"), ("m + 2.5", "float64"), ("m * 2.0", "float64"), ("2 + m", "int32"), ("2 - m", "float64"),
        ("-m", "float64"), ("m / 2", "float32"), ("np.add(m, 2)", "int32"), ("np.add(2, m)", "float64"),
        ("np.maximum(m, 0.5)", "float64"), ("np.negative(m)", "int32"),
    ],
)  # fmt: skip
def test_whole_numbers_beside_numbers(text: str, dtype: str) -> None:
    (got,) = run(text, m=WHOLE)
    assert got.dtype == dtype


def test_custom_nodes_have_what_mxnet_reads() -> None:
    node = json.loads(made("np.empty_like(m, dtype='int32')").tojson())["nodes"][-1]
    want = {"dtype": "int32", "op_type": "empty_like_fallback", "order": "C", "shape": "None", "subok": "False"}
    assert node["attrs"] == want
    node = json.loads(made("np.resize(m, (2, 3))").tojson())["nodes"][-1]
    assert node["attrs"] == {"new_shape": "(2, 3)", "op_type": "resize_fallback"}


def test_several_outputs_are_a_list() -> None:
    assert isinstance(made("np.histogram(m, 2, range=(0, 4))"), list)
    assert isinstance(made("np.linalg.svd(m)"), list) and isinstance(made("np.linalg.eigh(m)"), list)
    assert isinstance(made("npx.topk(m, k=2, ret_typ='both')"), list)
    assert [s.list_outputs() for s in made("npx.multibox_target(m, n, v)")] == [
        ["multibox_target0_loc_target"], ["multibox_target0_loc_mask"], ["multibox_target0_cls_target"],
    ]  # fmt: skip
    assert isinstance(np.histogram(np.ones(3), 2, (0, 4)), list) and isinstance(np.linalg.slogdet(np.eye(2)), list)


def test_what_needs_values_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="histogram: range=None: a symbol has no values"):
        snp.histogram(M)
    with pytest.raises(TypeError, match="pad: pad_width=1: expected a tuple"):
        snp.pad(M, 1)
    with pytest.raises(IndexError, match="a symbol takes integers and slices as indices"):
        _ = M[N]
    for wrong in (lambda: M + onp.ones(2), lambda: onp.ones(2) + M, lambda: snp.linalg.matrix_rank(M)):
        with pytest.raises(TypeError, match="ufuncs|not implemented for NumPy arrays|a symbol has none"):
            wrong()
    assert operators(onp.float32(2) * M) == "_npi_multiply_scalar"


def test_copies_and_compositions_keep_their_kind() -> None:
    assert type(copy.copy(M + 1)) is type((M + 1)(m=N)) is type(M.astype("int32")) is type(M)


def test_composing_in_place() -> None:
    first = mx.sym.FullyConnected(mx.sym.var("data"), name="fc1", num_hidden=3)
    second = mx.sym.FullyConnected(mx.sym.var("data2"), name="fc2", num_hidden=4)
    whole = copy.copy(second)
    assert whole._compose(data2=first, name="whole") is None
    assert whole.list_arguments() == ["data", "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"]
    assert whole.name == "whole" and second.list_arguments() == ["data2", "fc2_weight", "fc2_bias"]
    with pytest.raises(TypeError, match="composition: expected symbols as inputs, got 3"):
        whole._compose(data=3)
    with pytest.raises(mx.MXNetError, match="no variable 'foo' in the graph; known: data, fc1_bias"):
        whole._compose(foo=first)
