"""Calls drawn at random from the schemas: valid ones agree with NumPy, wrong ones raise and leave everything usable."""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dualmx as mx
from dualmx import MXNetError
from dualmx.op.registry import OPS
from dualmx.op.schema import ParamField
from tests.op.fronts import call, is_random, symbol_of
from tests.op.samples import Sample, chosen

CLEAN = (MXNetError, TypeError, ValueError)
SAMPLES = [s for s in chosen(2) if not is_random(s) and not OPS[s.op].dynamic]


def drawing(count: int) -> settings:
    """The same `count` examples in every run."""
    checks = list(HealthCheck)
    return settings(max_examples=count, derandomize=True, deadline=None, database=None, suppress_health_check=checks)


numbers = st.one_of(st.integers(-3, 5), st.sampled_from((-(2**40), 2**40, 100)))
floats = st.one_of(st.floats(-4, 4), st.sampled_from((0.0, -0.0, float("nan"), float("inf"), -1e300)))
tuples = st.lists(st.one_of(numbers, st.none()), max_size=5).map(tuple)
anything = st.one_of(
    numbers, floats, tuples, st.booleans(), st.none(), st.sampled_from(("", "(1, 2", "nonsense", b"x"))
)


def choices(kind: Any) -> list[Any]:
    """The values of the literals in a parameter's type."""
    if typing.get_origin(kind) is typing.Literal:
        return list(typing.get_args(kind))
    inner = [a for a in typing.get_args(kind) if typing.get_origin(a) is not None or isinstance(a, type)]
    return [c for a in inner for c in choices(a)]


def values_of(field: ParamField) -> st.SearchStrategy[Any]:
    """Values for a parameter: of its kind most of the time."""
    named = choices(field.type)
    if named:
        return st.one_of(st.sampled_from(named), anything)
    if field.name in ("ctx", "spec"):
        return st.just(field.default)
    if field.name == "dtype":
        return st.sampled_from(("float32", "float16", "int32", "bool", None, "nonsense", 3, -7))
    return anything


@st.composite
def changed(draw: Callable[..., Any]) -> Sample:
    """A sample with some parameters, one input's shape or one dtype replaced."""
    sample = draw(st.sampled_from(SAMPLES))
    params = dict(sample.params)
    fields = [f for f in OPS[sample.op].params.values() if f.name != "num_args"]
    for field in draw(st.lists(st.sampled_from(fields), max_size=2)) if fields else ():
        params[field.name] = draw(values_of(field))
    arrays = list(sample.arrays)
    if arrays and draw(st.booleans()):
        at = draw(st.integers(0, len(arrays) - 1))
        shape = tuple(draw(st.lists(st.integers(0, 4), max_size=5)))
        kind = draw(st.sampled_from((arrays[at].dtype, np.dtype("int32"), np.dtype("float16"))))
        arrays[at] = np.resize(np.asarray([1, 2, 3], kind), shape).astype(kind)
    return Sample(sample.op, tuple(arrays), params, train=sample.train)


def attempt(sample: Sample) -> list[Any] | None:
    """The outputs of a call; None if it raised what it may raise."""
    arrays = [mx.nd.array(a, dtype=a.dtype) for a in sample.arrays]
    try:
        with mx.autograd.train_mode() if sample.train else mx.autograd.predict_mode():
            return call(mx.nd, sample, arrays)
    except CLEAN:
        return None


@drawing(300)
@given(changed())
def test_any_call_computes_or_raises_cleanly(sample):
    mx.nd.waitall()  # forgets the calls before, whose results nobody holds
    outs = attempt(sample)
    if outs is None:
        return
    assert all(n >= 0 for o in outs for n in o.shape)
    if any(0 in a.shape or not a.shape for a in sample.arrays):
        return  # in a symbol, 0 stands for an unknown length
    try:
        symbol, names, _ = symbol_of([sample])
        found = symbol.infer_shape(**{n: a.shape for n, a in zip(names[0], sample.arrays, strict=True)})[1]
    except CLEAN:
        found = None
    if found is not None and not any(0 in s for s in found):
        assert found == [o.shape for o in outs], sample


def test_the_process_stays_usable():
    with pytest.raises(MXNetError, match=r"Convolution: kernel=\(3, 3\).*larger than the data"):
        mx.nd.Convolution(mx.nd.ones((1, 1, 2, 2)), mx.nd.ones((1, 1, 3, 3)), kernel=(3, 3), num_filter=1, no_bias=True)
    for wrong in ({"axis": 7}, {"axis": "x"}, {"nonsense": 1}):
        with pytest.raises(CLEAN, match="sum: (axis=|unknown parameter 'nonsense')"):
            mx.nd.sum(mx.nd.ones((2, 2)), **wrong)
    assert (mx.nd.ones((2, 2)) * 2).sum().asscalar() == 8


REDUCED: dict[str, Callable[..., Any]] = {
    "sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod, "nansum": np.nansum,
    "nanprod": np.nanprod,
}  # fmt: skip
PAIRS: dict[str, Callable[..., Any]] = {
    "broadcast_add": np.add, "broadcast_mul": np.multiply, "broadcast_maximum": np.maximum,
    "broadcast_sub": np.subtract, "broadcast_greater": np.greater, "broadcast_hypot": np.hypot,
}  # fmt: skip
SINGLE: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "exp": np.exp, "sin": np.sin, "floor": np.floor, "log1p": np.log1p, "sqrt": np.sqrt, "cbrt": np.cbrt,
    "arctan": np.arctan, "square": np.square, "expm1": np.expm1, "sign": np.sign, "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip
shapes = st.lists(st.integers(1, 3), min_size=1, max_size=4).map(tuple)


def filled(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Float32 values in (0.1, 1.1)."""
    return np.random.RandomState(seed).uniform(0.1, 1.1, shape).astype(np.float32)


def agree(got: Any, want: Any) -> None:
    """Equal to float32's precision; a full reduction has shape (1,)."""
    want = np.asarray(want, np.float32)
    np.testing.assert_allclose(got.asnumpy(), want.reshape(got.shape), 1e-5, 1e-5)
    assert want.ndim == 0 or got.shape == want.shape


@drawing(20)
@given(st.data(), shapes, st.sampled_from(sorted(REDUCED)), st.booleans())
def test_reductions(data, shape, name, keepdims):
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True).map(tuple))
    signed = tuple(a - len(shape) if data.draw(st.booleans()) else a for a in axes)
    x = filled(shape, 1)
    got = getattr(mx.nd, name)(mx.nd.array(x), axis=signed, keepdims=keepdims)
    agree(got, REDUCED[name](x, axis=axes or None, keepdims=keepdims))


@drawing(20)
@given(st.data(), shapes, st.sampled_from(sorted(PAIRS)))
def test_broadcast_pairs(data, shape, name):
    masks = [[data.draw(st.booleans()) for _ in shape] for _ in range(2)]
    x, y = (filled(tuple(1 if m else n for m, n in zip(mask, shape, strict=True)), k) for k, mask in enumerate(masks))
    agree(getattr(mx.nd, name)(mx.nd.array(x), mx.nd.array(y)), PAIRS[name](x, y))


@drawing(20)
@given(shapes, st.sampled_from(sorted(SINGLE)))
def test_functions_of_one_array(shape, name):
    x = filled(shape, 2)
    agree(getattr(mx.nd, name)(mx.nd.array(x)), SINGLE[name](x))


@drawing(20)
@given(st.data(), shapes)
def test_movements(data, shape):
    x = filled(shape, 3)
    array, rank = mx.nd.array(x), len(shape)
    axes = tuple(data.draw(st.permutations(range(rank))))
    axis = data.draw(st.integers(-rank, rank - 1))
    begin = data.draw(st.integers(0, shape[axis] - 1))
    moved = mx.nd.flip(mx.nd.transpose(array, axes=axes), axis=0)
    agree(moved, np.flip(np.transpose(x, axes), 0))
    agree(mx.nd.slice_axis(array, axis=axis, begin=begin, end=None), np.take(x, range(begin, shape[axis]), axis))
    agree(mx.nd.concat(array, array, dim=axis), np.concatenate([x, x], axis))
    agree(mx.nd.expand_dims(array, axis=axis), np.expand_dims(x, axis))
