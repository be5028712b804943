"""Functions of `mx.np` against official NumPy, values and gradients; the calls of a group are one program."""

from __future__ import annotations

from typing import Any

import pytest

import dualmx as mx
import numpy as onp
from tests.numpy.cases import CASES, Case

np = mx.np
npx: Any = mx.npx
SIZE = 20
GROUPS = [CASES[i : i + SIZE] for i in range(0, len(CASES), SIZE)]


def here(value: Any) -> Any:
    """The argument with NumPy arrays as arrays of `mx.np`."""
    if isinstance(value, onp.ndarray):
        return np.array(value)
    return [here(v) for v in value] if isinstance(value, list) and not isinstance(value[0], (int, list)) else value


def parts(value: Any) -> list[Any]:
    """The results of a function as a list."""
    return [v for part in value for v in parts(part)] if isinstance(value, (list, tuple)) else [value]


def host(value: Any) -> onp.ndarray:
    return value.asnumpy() if isinstance(value, np.ndarray) else onp.asarray(value)


def weights(shape: tuple[int, ...]) -> onp.ndarray:
    """Numbers by which every element of a result changes a sum."""
    return onp.cos(onp.arange(int(onp.prod(shape)))).reshape(shape) + 1.5


def floats(value: Any) -> list[Any]:
    """The floating-point arrays of an argument."""
    if isinstance(value, (list, tuple)):
        return [v for part in value for v in floats(part)]
    return [value] if isinstance(value, (np.ndarray, onp.ndarray)) and value.dtype.kind == "f" else []


class Run:
    """One call of `mx.np`, recorded; nothing is computed yet."""

    def __init__(self, case: Case):
        self.case = case
        args, kwargs = [here(a) for a in case.args], {k: here(v) for k, v in case.kwargs.items()}
        self.given = floats(args) + floats(list(kwargs.values())) if case.smooth else []
        for x in self.given:
            x.attach_grad()
        self.loss = None
        with mx.autograd.record():
            self.outs = parts(getattr(np, case.name)(*args, **kwargs))
            if case.smooth:
                losses = [(o * np.array(weights(o.shape))).sum() for o in self.outs if o.dtype.kind == "f"]
                self.loss = sum(losses[1:], losses[0])

    def expected(self, shift: float = 0.0) -> list[onp.ndarray]:
        """What NumPy gives, its smooth arguments moved along a direction."""
        rng = onp.random.RandomState(5)

        def moved(value: Any) -> Any:
            if isinstance(value, onp.ndarray) and value.dtype.kind == "f":
                return value + shift * rng.uniform(0.5, 1.0, value.shape)
            if isinstance(value, list):
                return [moved(v) for v in value]
            return value

        args, kwargs = [moved(a) for a in self.case.args], {k: moved(v) for k, v in self.case.kwargs.items()}
        found = parts((self.case.numpy or getattr(onp, self.case.name))(*args, **kwargs))
        return [onp.asarray(f) for f in found]

    def check_values(self) -> None:
        got, want = [host(o) for o in self.outs], self.expected()
        assert [a.shape for a in got] == [b.shape for b in want]
        for a, b in zip(got, want, strict=True):
            assert a.dtype.kind == b.dtype.kind or {a.dtype.kind, b.dtype.kind} <= set("iu")
            onp.testing.assert_allclose(a.astype("float64"), b.astype("float64"), rtol=1e-6, atol=1e-9)

    def check_slope(self) -> None:
        """Along a direction, autograd gives what differences of NumPy's function give."""
        rng = onp.random.RandomState(5)
        slope = sum(float((x.grad.asnumpy() * rng.uniform(0.5, 1.0, x.shape)).sum()) for x in self.given)
        step = 1e-6
        sums = [
            sum(float((o * weights(o.shape)).sum()) for o in self.expected(s) if o.dtype.kind == "f")
            for s in (step, -step)
        ]
        onp.testing.assert_allclose(slope, (sums[0] - sums[1]) / (2 * step), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS, ids=lambda g: f"{g[0].name}..{g[-1].name}")
def test_values_and_gradients(group):
    runs = [Run(case) for case in group]
    smooth = [r for r in runs if r.loss is not None]
    if smooth:
        mx.autograd.backward([r.loss for r in smooth])
    wrong = []
    for run in runs:
        try:
            run.check_values()
            if run.loss is not None:
                run.check_slope()
        except AssertionError as e:
            wrong.append(f"{run.case}: {e}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_reductions_of_a_single_number_may_be_asked_for_an_axis():
    x = mx.np.array(2.5)
    for axis in (0, -1):
        found = [f(x, axis=axis) for f in (mx.np.sum, mx.np.mean, mx.np.max, mx.np.std, mx.np.argmax, mx.np.any)]
        assert [a.shape for a in found] == [()] * 6 and [a.item() for a in found] == [2.5, 2.5, 2.5, 0, 0, True]
    for f in (mx.np.sum, mx.np.argmin):
        with pytest.raises(ValueError, match="axis"):
            f(x, axis=1)
    assert [a.asnumpy().tolist() for a in (*mx.np.nonzero(x), *mx.np.nonzero(x * 0))] == [[0], []]


def test_positions_along_an_axis_with_elements_need_no_others():
    empty = mx.np.zeros((0, 3))
    assert mx.np.argmax(empty, axis=1).shape == mx.np.argmin(empty, axis=-1).shape == (0,)
    for axis in (0, None):
        with pytest.raises(ValueError, match="no element"):
            mx.np.argmax(empty, axis=axis)


def test_types_of_results_are_asked_of_arrays():
    a, i = mx.np.ones(2), mx.np.ones(2, dtype="int64")
    assert mx.np.result_type(a, i) == onp.result_type(a, i) == onp.float64
    assert mx.np.result_type(i, 3) == onp.int64


def test_functions_along_the_axis_of_a_0d_array() -> None:
    x = np.array(2.0)
    for axis in (0, -1):
        assert npx.softmax(x, axis=axis).item() == 1 and npx.log_softmax(x, axis=axis).item() == 0
        assert np.squeeze(x, axis=axis).shape == ()
    for wrong in (1, -2):
        with pytest.raises(mx.MXNetError, match=rf"softmax: axis={wrong}: expected a value in \[-1, 1\)"):
            npx.softmax(x, axis=wrong)
        with pytest.raises(mx.MXNetError, match=rf"squeeze: axis={wrong}: expected a value in \[-1, 0\]"):
            np.squeeze(x, axis=wrong)
    assert np.squeeze(np.ones((1, 2)), (0, -2)).shape == (2,)
    assert npx.nonzero(x).asnumpy().tolist() == [[0]] and npx.nonzero(np.array(0.0)).shape == (0, 1)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_totals_in_an_integer_type_pass_gradients_of_floats(dtype: str) -> None:
    def slope(function: Any) -> list[float]:
        x = np.array([1.5, 2.0, 3.9])
        x.attach_grad()
        with mx.autograd.record():
            y = function(x, dtype=dtype)
        y.backward()
        assert y.dtype == dtype
        return x.grad.asnumpy().tolist()

    assert slope(np.sum) == [1, 1, 1]
    assert slope(np.cumsum) == [3, 2, 1]
    onp.testing.assert_allclose(slope(np.mean), [1 / 3] * 3, rtol=1e-6)
    onp.testing.assert_allclose(slope(np.prod), [7.8, 5.85, 3], rtol=1e-6)


def test_numbers_of_several_elements() -> None:
    for convert in (float, int):
        with pytest.raises(TypeError, match=r"only an array of one element is a number in Python; this one is \(2,\)"):
            convert(np.ones(2))
        assert convert(np.ones((1, 1))) == 1
    assert np.ones(2, dtype="int32").astype(None).dtype == "float32"


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.sin(x, casting="safe"), lambda x: np.ravel(x, order="F"), lambda x: np.zeros(2, order="F"),
        lambda x: x.reshape(1, 2, order="F"), lambda x: x.flatten("F"), lambda x: np.histogram(x, 2, (0, 1), True),
        lambda x: np.histogram(x, "auto"), lambda x: np.percentile(x, 50, overwrite_input=True),
        lambda x: np.unravel_index(x.astype("int32"), (2, 3), order="F"),
    ],
)  # fmt: skip
def test_choices_that_mxnet_does_not_make(call: Any) -> None:
    with pytest.raises(NotImplementedError, match="expected|only 'C' is supported|are not supported; use NumPy's"):
        call(np.ones(2))


def test_backward_from_arrays_like_a_variable() -> None:
    x = np.array([1.0, 2.0])
    x.attach_grad()
    for make in (np.zeros_like, np.ones_like, lambda a: np.full_like(a, 3)):
        x.grad[:] = 7
        with mx.autograd.record():
            y = make(x)
        y.backward()
        assert x.grad.asnumpy().tolist() == [0, 0] and y.dtype == x.dtype


def test_the_svd_of_numpy_gives_full_matrices() -> None:
    x = np.array([[3.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    assert [a.shape for a in onp.linalg.svd(x)] == [(2, 2), (2,), (3, 3)]
    assert [a.shape for a in onp.linalg.svd(x, full_matrices=False)] == [(2, 2), (2,), (2, 3)]
    assert [a.shape for a in np.linalg.svd(x)] == [(2, 2), (2,), (2, 3)]
    assert all(isinstance(a, np.ndarray) for a in onp.linalg.svd(x))
