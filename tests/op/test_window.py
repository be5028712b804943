"""Reads and writes behind `x[...]`: random windows and index expressions against NumPy, gradients, lowering."""

from __future__ import annotations

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dualmx.core.errors import MXNetError
from dualmx.op.defs.index import to_spec
from dualmx.op.lowering_context import lowering_on_platform
from dualmx.op.registry import OPS
from tests.goldens.shape_cases import CUBE, floats, ints, ramp
from tests.op.replay import run

FOUR = ramp(2, 3, 4, 5)
A, B = ints([1, 0, 1]), ints([2, -1, 1])
COLUMN = ints([[2], [0]])
EXPRESSIONS = [
    (["a"], (A,)),
    (["a", "a"], (A, COLUMN)),
    (["a", slice(0, 3, 2), "a"], (A, B)),
    ([slice(1, -1, -1), "a", "a"], (A, B)),
    ([slice(0, 2, 1), None, "a", 2], (A,)),
    ([1, "a", slice(3, -1, -2), 0], (A,)),
    ([None, "a", None], (A,)),
]


def open_end(item: object) -> object:
    """A normalised slice as Python writes it: an end of -1 that means "before 0" becomes None."""
    if isinstance(item, slice):
        return slice(item.start, None if item.stop < 0 else item.stop, item.step)
    return item


def window(rng: random.Random, shape: tuple[int, ...]) -> tuple[tuple, dict[str, list[int]]]:
    """A NumPy index expression and the same window as normalised parameters."""
    index, params = [], {"begin": [], "end": [], "step": [], "squeeze": []}
    for axis, n in enumerate(shape[: rng.randint(0, len(shape))]):
        if rng.random() < 0.3:
            i = rng.randrange(n)
            index.append(i)
            params["squeeze"].append(axis)
            bounds = (i, i + 1, 1)
        else:
            ends = [rng.choice([None, rng.randrange(n)]) for _ in range(2)]
            index.append(slice(*ends, rng.choice([1, 1, 2, 3, -1, -2])))
            bounds = index[-1].indices(n)
        for key, value in zip(("begin", "end", "step"), bounds, strict=True):
            params[key].append(value)
    return tuple(index), params


@pytest.mark.parametrize("seed", range(40))
def test_basic_windows_agree_with_numpy(seed):
    rng = random.Random(seed)
    x = ramp(*(rng.randint(1, 5) for _ in range(rng.randint(1, 4))))
    index, params = window(rng, x.shape)
    want = np.asarray(x[index])
    np.testing.assert_array_equal(run("_basic_slice", x, zero_dim=True, **params), want)
    assert run("_basic_slice", x, **params).shape == (want.shape or (1,))
    value = np.arange(want.size, dtype=np.float64).reshape(want.shape) + 0.5
    y = x.copy()
    y[index] = value
    np.testing.assert_array_equal(run("_basic_slice_assign", x, value, **params), y)


def test_assigned_values_are_broadcast_and_cast():
    x = ints([[1, 2, 3], [4, 5, 6]])
    whole = {"begin": (), "end": (), "step": ()}
    np.testing.assert_array_equal(run("_basic_slice_assign", x, floats([1.9, -1.9, 0]), **whole), [[1, -1, 0]] * 2)
    row = {"begin": (0,), "end": (1,), "step": (1,), "squeeze": (0,)}
    np.testing.assert_array_equal(run("_basic_slice_assign", x, ints([[7, 8, 9]]), **row), [[7, 8, 9], [4, 5, 6]])


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
@pytest.mark.parametrize(("items", "arrays"), EXPRESSIONS, ids=[to_spec(e[0]) for e in EXPRESSIONS])
def test_advanced_indexing_agrees_with_numpy(items, arrays, platform):
    rest = iter(arrays)
    index = tuple(next(rest) if item == "a" else open_end(item) for item in items)
    spec = to_spec(items)
    with lowering_on_platform(platform):
        got = run("_advanced_get", FOUR, *arrays, spec=spec)
        np.testing.assert_array_equal(got, FOUR[index])
        value = np.arange(got.size, dtype=np.float32).reshape(got.shape)
        want = FOUR.copy()
        want[index] = value
        np.testing.assert_array_equal(run("_advanced_set", FOUR, value, *arrays, spec=spec), want)
        want[index] = 7
        np.testing.assert_array_equal(run("_advanced_set", FOUR, floats([7]), *arrays, spec=spec), want)


@pytest.mark.slow
def test_gradients():
    def pull(name, arrays, head, **params):
        call = OPS[name].call(**params)
        out, back = jax.vjp(lambda *x: call.apply(x)[0], *map(jnp.asarray, arrays))
        return [np.asarray(g) for g in back(jnp.asarray(head, out.dtype))]

    odd = {"begin": (0,), "end": (3,), "step": (2,)}
    data, value = pull("_basic_slice_assign", (floats([1, 2, 3]), floats([4, 5])), [1, 2, 4], **odd)
    np.testing.assert_array_equal(data, [0, 2, 0])
    np.testing.assert_array_equal(value, [1, 4])
    data, _ = pull("_advanced_get", (floats([1, 2, 3]), ints([1, 1, 0])), [1, 2, 4], spec="a")
    np.testing.assert_array_equal(data, [4, 3, 0])
    data, value, _ = pull("_advanced_set", (floats([1, 2, 3]), floats([4, 5, 6]), ints([1, 0, 1])), [1, 2, 4], spec="a")
    np.testing.assert_array_equal(data, [0, 0, 4])
    np.testing.assert_array_equal(value, [0, 1, 2])


@pytest.mark.parametrize("step", [1, 2])
def test_assignment_updates_in_place(step):
    call = OPS["_basic_slice_assign"].call(begin=(2,), end=(2 + 3 * step,), step=(step,))
    jitted = jax.jit(lambda x, v: call.apply([x, v])[0], donate_argnums=0)
    text = jitted.lower(jnp.zeros(10000), jnp.ones(3)).compile().as_text()
    assert "dynamic-update-slice" in text and "scatter" not in text and "f32[10000]{0} copy" not in text


@pytest.mark.parametrize(
    ("name", "arrays", "params"),
    [
        ("_basic_slice", (CUBE,), {"begin": (5,), "end": (6,), "step": (1,)}),
        ("_basic_slice", (CUBE,), {"begin": (0,), "end": (2,), "step": (1,), "squeeze": (0,)}),
        ("_basic_slice_assign", (CUBE, floats([1, 2])), {"begin": (0,), "end": (1,), "step": (1,)}),
        ("_window", (CUBE,), {"size": (1, 9, 1), "start": (0.0, 0.0, 0.0)}),
        ("_window_assign", (CUBE, floats([1])), {"size": (1,), "start": (0.0,)}),
        ("_advanced_get", (CUBE, A), {"spec": "a,a"}),
        ("_advanced_get", (CUBE, A, A), {"spec": "a"}),
        ("_advanced_get", (CUBE, A), {"spec": "a,0:3:1,0:4:1,0:1:1"}),
        ("_advanced_set", (CUBE, floats([1, 2]), A), {"spec": "a"}),
    ],
)
def test_impossible_windows_raise(name, arrays, params):
    with pytest.raises(MXNetError, match=f"^{name}"):
        run(name, *arrays, **params)
