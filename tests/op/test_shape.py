"""Shape, join and slice operators: recorded MXNet results, errors, NumPy, numeric derivatives, inference."""

from __future__ import annotations

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import MXNetError
from dualmx.op.arrangements import reshaped
from dualmx.op.registry import OPS
from tests.goldens.shape_cases import CASES, CUBE, PATCHES, SHAPE, SLICES, STRICTER, WRONG, Case, ints, ramp
from tests.op.array_replay import check_numeric, check_recorded, count
from tests.op.replay import apply, defined_in, run

MINE = [*SHAPE, *PATCHES, *SLICES]


def named(cases: list[Case]) -> pytest.MarkDecorator:
    """Parametrise over cases, which show up by name."""
    return pytest.mark.parametrize("case", cases, ids=lambda c: c.name)


def test_every_operator_has_a_case():
    here = {*defined_in("shape"), "im2col", "col2im", "slice", "slice_axis", "slice_like"}
    assert not here - {c.op for c in MINE} - {"_rnn_param_concat"}


@named(MINE)
def test_agrees_with_mxnet(case):
    check_recorded(case)


@named([c for c in MINE if c.smooth])
def test_derivatives_agree_with_differences(case):
    check_numeric(case, order=1)


@named([*WRONG, *STRICTER])
def test_wrong_arguments_raise_at_the_call(case):
    with pytest.raises(MXNetError, match=f"^{OPS[case.op].name}"):
        apply(OPS[case.op].call(**count(case)), *case.arrays)


def test_aliases_name_the_same_operator():
    pairs = {"reshape": "Reshape", "split": "SliceChannel", "concat": "Concat", "pad": "Pad", "flip": "reverse"}
    pairs |= {"flatten": "Flatten", "swapaxes": "SwapAxis", "broadcast_axes": "broadcast_axis", "crop": "slice"}
    assert all(OPS[a] is OPS[b] for a, b in pairs.items())


@pytest.mark.parametrize(
    ("codes", "reverse", "result"),
    [
        ((0, -1), False, (2, 12)),
        ((-3, 4), False, (6, 4)),
        ((-4, -1, 2, -2), False, (1, 2, 3, 4)),
        ((-1, 0), True, (6, 4)),
        ((2, 3, 2, 2, -4), True, (2, 3, 2, 2)),
    ],
)
def test_reshape_codes(codes, reverse, result):
    assert reshaped((2, 3, 4), codes, reverse) == result


def test_reshape_keeps_the_order_of_elements():
    np.testing.assert_array_equal(run("Reshape", CUBE, shape=(-4, 1, 2, -3)), CUBE.reshape(1, 2, 12))


def test_text_parameters_are_accepted():
    assert run("Reshape", CUBE, shape="(0, -1)", reverse="False").shape == (2, 12)
    assert run("slice", CUBE, begin="(0, None)", end="(1, None)").shape == (1, 3, 4)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "int64", "uint8", "bool"])
def test_dtype_is_kept(dtype):
    x = ramp(2, 2).astype(dtype)
    for name, params in [
        ("tile", {"reps": (2,)}),
        ("repeat", {"repeats": 2}),
        ("Pad", {"mode": "constant", "pad_width": (1, 1, 0, 0), "constant_value": 1}),
        ("_slice_assign_scalar", {"begin": (0,), "end": (1,), "scalar": 1}),
    ]:
        assert run(name, x, **params).dtype == x.dtype


def test_negative_axes_count_from_the_end():
    np.testing.assert_array_equal(run("transpose", CUBE, axes=(-1, 0, 1)), CUBE.transpose(2, 0, 1))
    np.testing.assert_array_equal(run("reverse", CUBE, axis=-1), CUBE[:, :, ::-1])
    assert run("broadcast_axis", ramp(2, 1), axis=-1, size=3).shape == (2, 3)


def test_a_single_element_keeps_one_axis():
    assert run("squeeze", ramp(1, 1), axis=(0, 1)).shape == (1,)
    assert [o.shape for o in run("SliceChannel", ramp(2), num_outputs=2, axis=0, squeeze_axis=True)] == [(1,), (1,)]


def test_padding_any_number_of_axes():
    x = ramp(3, 4)
    for mode in ("edge", "reflect"):
        np.testing.assert_array_equal(
            run("Pad", x, mode=mode, pad_width=(1, 2, 0, 3)), np.pad(x, ((1, 2), (0, 3)), mode)
        )


def test_broadcast_like_heeds_axes_only_where_both_are_given():
    a, b = mx.nd.ones((2, 1)), mx.nd.ones((2, 4))
    assert mx.nd.broadcast_like(a, b, lhs_axes=(1,)).shape == (2, 4)
    assert mx.nd.broadcast_like(a, b, rhs_axes=(0,)).shape == (2, 4)
    assert mx.nd.broadcast_like(a, b, lhs_axes=(1,), rhs_axes=(0,)).shape == (2, 2)


def test_slice_may_be_empty():
    assert run("slice", CUBE, begin=(1,), end=(1,)).shape == (0, 3, 4)
    kept = run("_slice_assign_scalar", ints([1, 2]), begin=(1,), end=(1,), scalar=5)
    np.testing.assert_array_equal(kept, [1, 2])


def test_completion_deduces_inputs():
    p = type("P", (), {"begin": (1,), "end": (3,), "step": ()})
    assert OPS["_slice_assign"].complete(p, {"lhs": (5, 2)}) == {"rhs": (2, 2)}
    p = type("P", (), {"dim": 1, "num_args": 2})
    assert OPS["Concat"].complete(p, {"arg0": (2, 5)}) == {"arg0": (2, 0), "arg1": (2, 0)}
    assert OPS["stack"].complete(p, {"arg0": (0, 3), "arg1": (2, 3)})["arg0"] == (2, 3)


def test_all_cases_have_different_names():
    assert len({c.name for c in CASES}) == len(CASES)
