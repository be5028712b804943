"""topk, sort and argsort: recorded MXNet results, NumPy, derivatives, stability."""

from __future__ import annotations

import numpy as np
import pytest

from dualmx.core.errors import MXNetError
from tests.goldens.shape_cases import ORDER, TIES, Case, floats, ramp
from tests.op.array_replay import check_numeric, check_recorded
from tests.op.replay import defined_in, gradients, run


def named(cases: list[Case]) -> pytest.MarkDecorator:
    """Parametrise over cases, which show up by name."""
    return pytest.mark.parametrize("case", cases, ids=lambda c: c.name)


def test_every_operator_has_a_case():
    assert not set(defined_in("search")) - {c.op for c in ORDER} - {"_contrib_boolean_mask"}


@named(ORDER)
def test_agrees_with_mxnet(case):
    check_recorded(case)


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_derivatives_of_values_agree_with_differences(axis, ascending):
    x = (ramp(3, 4),)
    check_numeric(Case("topk", x, {"k": 2, "axis": axis, "ret_typ": "value", "is_ascend": ascending}), order=1)
    check_numeric(Case("sort", x, {"axis": axis, "is_ascend": ascending}), order=1)


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int64"])
def test_equal_elements_keep_their_order(dtype, ascending):
    x = np.random.RandomState(2).randint(0, 4, (3, 20)).astype(dtype)
    key = x.astype(float) if ascending else -x.astype(float)
    want = np.argsort(key, -1, kind="stable")
    np.testing.assert_array_equal(run("argsort", x, is_ascend=ascending), want)
    for k in (1, 5, 20):
        np.testing.assert_array_equal(run("topk", x, k=k, is_ascend=ascending, dtype="int64"), want[:, :k])


def test_extreme_integers():
    x = np.array([-128, 127, 0], np.int8)
    np.testing.assert_array_equal(run("topk", x, k=2, ret_typ="value", is_ascend=True), [-128, 0])
    np.testing.assert_array_equal(run("sort", x, is_ascend=False), [127, 0, -128])


def test_gradient_of_both_goes_to_the_values():
    np.testing.assert_array_equal(gradients("topk", TIES, k=1, ret_typ="both")[0], [[1, 0, 0, 0], [0, 1, 0, 0]])


def test_indices_have_no_gradient():
    np.testing.assert_array_equal(gradients("topk", TIES)[0], np.zeros((2, 4)))
    np.testing.assert_array_equal(gradients("argsort", TIES)[0], np.zeros((2, 4)))


def test_all_elements_when_k_is_not_positive():
    np.testing.assert_array_equal(run("topk", floats([1, 3, 2]), k=-1), [1, 2, 0])


def test_unknown_result_kind_raises():
    with pytest.raises(MXNetError, match="topk: ret_typ='values'"):
        run("topk", TIES, ret_typ="values")
