"""Arrays of no axis and of no element where Python wants a sequence, a truth value or a number."""

from __future__ import annotations

import math
from typing import Any

import pytest

import numpy as onp
from dualmx import MXNetError, np


@pytest.mark.parametrize("value", [3.7, 3, True])
def test_iteration_over_an_array_of_no_axis_ends_at_once(value: Any) -> None:
    """As in MXNet, whose arrays Python iterates by index until an IndexError."""
    scalar = np.array(value, dtype=type(value) if value is True else "float32" if value == 3.7 else "int32")
    assert list(scalar) == [] and tuple(zip(scalar, scalar, strict=True)) == () and sum(scalar) == 0
    assert [*enumerate(scalar)] == []
    with pytest.raises(ValueError, match="empty"):
        max(scalar)
    with pytest.raises(TypeError, match="unsized"):
        len(scalar)
    with pytest.raises(TypeError, match="unsized"):
        reversed(scalar)
    with pytest.raises(IndexError, match="too many indices for array: array is 0-dimensional, but 1 were indexed"):
        scalar[0]
    assert bool(scalar) and int(scalar) == int(value) and float(scalar) == pytest.approx(float(value))
    assert scalar[()].item() == scalar.item()


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_arrays_of_no_element(shape: tuple[int, ...]) -> None:
    empty = np.zeros(shape)
    assert len(empty) == len(list(empty)) == shape[0]
    for number in (int, float):
        with pytest.raises(TypeError, match="only an array of one element is a number in Python; this one is"):
            number(empty)
    with pytest.raises(ValueError, match="size 1"):
        empty.item()


def test_a_truth_value_of_no_axis_as_index() -> None:
    assert np.arange(3)[np.array(True, dtype="bool")].tolist() == [[0, 1, 2]]


@pytest.mark.parametrize(("function", "whole"), [(math.floor, -4), (math.ceil, -3), (math.trunc, -3), (round, -4)])
def test_rounded_arrays_are_arrays(function: Any, whole: int) -> None:
    for found, want in ((function(np.array(-3.7)), [whole]), (function(np.array([-3.7, 2.0])), [whole, 2])):
        assert isinstance(found, np.ndarray) and found.dtype == onp.float32 and found.reshape(-1).tolist() == want


def test_a_number_is_limited_by_numpy() -> None:
    assert np.clip(5, 1, 3) == 3 and np.clip(0.5, None, 0.25) == 0.25


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (lambda x, k: np.zeros(k), (1,)), (lambda x, k: x.sum(k), (2,)), (lambda x, k: np.max(x, axis=k), (2,)),
        (lambda x, k: np.tile(x, k), (2, 3)), (lambda x, k: np.expand_dims(x, k), (2, 1, 3)),
        (lambda x, k: np.squeeze(x[:, None], k), (2, 3)), (lambda x, k: np.rot90(x, k), (3, 2)),
        (lambda x, k: np.moveaxis(x, k, 0), (3, 2)), (lambda x, k: np.random.uniform(size=k), (1,)),
        (lambda x, k: np.reshape(x[:1, :1], k), (1,)), (lambda x, k: np.split(x, k)[0], (2, 3)),
    ],
)  # fmt: skip
def test_a_whole_number_of_no_axis_is_an_integer(call: Any, shape: tuple[int, ...]) -> None:
    assert call(np.arange(6).reshape(2, 3), np.array(1, dtype="int32")).shape == shape


@pytest.mark.parametrize(
    "call",
    [
        np.zeros, lambda size: np.random.uniform(size=size),
        lambda size: np.random.normal(size=size), lambda n: np.ones(2).tile(n),
        lambda axis: np.ones((2, 2)).sum(axis), lambda axis: np.flip(np.ones(2), axis), lambda n: np.ones(1).reshape(n),
        lambda axis: np.squeeze(np.ones((1, 1)), axis), lambda n: np.reshape(np.ones(1), n),
    ],
)  # fmt: skip
def test_a_float_of_no_axis_is_no_shape_and_no_axis(call: Any) -> None:
    with pytest.raises(MXNetError, match="expected"):
        call(np.array(1.0))
