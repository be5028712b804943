"""Numbers that change from step to step: a program is compiled for the first ones only, and computes the same."""

from __future__ import annotations

import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, nd
from dualmx.compile.cpu.kernels import executor, kernel
from dualmx.compile.events import counters
from dualmx.op.registry import OPS

VALUES = 8
DTYPES = ("float32", "float16")


def loop(turn, places):
    """What `turn` gives for each value, and how many programs were compiled for them."""
    nd.waitall()
    before, found = counters.compiles, []
    for i in places:
        mx.random.seed(5 + i)
        found.append([a.asnumpy() for a in turn(i)])
    return found, counters.compiles - before


def check(monkeypatch, turn, rtol=0.0):
    """Few compilations, and the values of programs that have the numbers in them."""
    moving, compiled = loop(turn, range(VALUES))
    assert compiled <= 4  # two or three, depending on what was recorded before, and that of moving numbers
    for op in OPS.values():
        monkeypatch.setattr(op, "runtime_form", None)
    some = (3, 6)
    fixed, _ = loop(turn, some)
    for i, want_all in zip(some, fixed, strict=True):
        for got, want in zip(moving[i], want_all, strict=True):
            assert got.dtype == want.dtype
            if rtol:
                np.testing.assert_allclose(
                    got.astype("f8"), want.astype("f8"), rtol, atol=1e-6 * np.abs(want.astype("f8")).max()
                )
            else:
                np.testing.assert_array_equal(got, want)
    return moving


def differentiated(function, values, dtype="float32", make=nd.array):
    """A turn: `function(x, i)` and its gradient."""
    x = make(np.asarray(values, "float32")).astype(dtype)
    x.attach_grad()

    def turn(i):
        with autograd.record():
            y = function(x, i)
        y.backward()
        return y, x.grad

    return turn


SPREAD, ABOVE = np.linspace(-3, 3, 23), np.linspace(0.1, 3, 23)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bounds_of_clip(monkeypatch, dtype):
    turn = differentiated(lambda x, i: nd.clip(x, -0.3 * i, 0.3 + 0.2 * i), SPREAD, dtype)
    values = check(monkeypatch, turn)
    if dtype == "float32":
        x = SPREAD.astype("float32")
        for i, (y, g) in enumerate(values):
            low, high = np.float32(-0.3 * i), np.float32(0.3 + 0.2 * i)
            np.testing.assert_array_equal(y, np.clip(x, low, high))
            np.testing.assert_array_equal(g, (x >= low) & (x <= high))


@pytest.mark.parametrize("dtype", ["uint8", "int64"])
def test_bounds_of_clip_on_integers(monkeypatch, dtype):
    x = nd.arange(100).astype(dtype) - 3
    bounds = lambda i: (i - 2.5, 300.0 if i % 2 else 60.0 + i)  # noqa: E731
    values = check(monkeypatch, lambda i: [nd.clip(x, *bounds(i))])
    whole = x.asnumpy().astype("int64")
    for i, (y,) in enumerate(values):
        low, high = np.trunc(bounds(i)).astype("int64")
        least = np.iinfo(dtype).min
        np.testing.assert_array_equal(y, np.clip(whole, max(low, least), high).astype(dtype))


def test_one_bound_of_clip(monkeypatch):
    x = mx.np.array(np.arange(40), dtype="int32")
    for i, (y,) in enumerate(check(monkeypatch, lambda i: [mx.np.clip(x, None, 7 + i)])):
        np.testing.assert_array_equal(y, np.clip(np.arange(40), None, 7 + i))


@pytest.mark.parametrize("dtype", DTYPES)
def test_probability_of_dropout(monkeypatch, dtype):
    turn = differentiated(lambda x, i: nd.Dropout(x, p=0.1 * i + 0.1), np.ones((50, 40)), dtype)
    for i, (y, _) in enumerate(check(monkeypatch, turn)):
        assert abs((y == 0).mean() - 0.1 * i - 0.1) < 0.05


def test_dropout_with_nothing_or_all_dropped_and_outside_of_training():
    x = nd.ones((40, 50))
    for i in range(VALUES):
        p = i / (VALUES - 1)
        with autograd.record():
            y = nd.Dropout(x, p=p)
        kept = y.asnumpy() != 0
        assert kept.all() if p == 0 else not kept.any() if p == 1 else abs(kept.mean() - 1 + p) < 0.08
        np.testing.assert_array_equal(nd.Dropout(x, p=p).asnumpy(), 1)
    with pytest.raises(mx.MXNetError, match=r"Dropout: p=1.5"):
        nd.Dropout(x, p=1.5)


def test_dropout_along_axes(monkeypatch):
    turn = differentiated(lambda x, i: nd.Dropout(x, p=0.1 + 0.1 * i, axes=(1,)), np.ones((30, 4)))
    for y, _ in check(monkeypatch, turn):
        assert (y == y[:, :1]).all()
    x = nd.ones((2, 2))
    for i in range(5):
        with autograd.train_mode(), pytest.raises(mx.MXNetError, match=r"Dropout: axes=\(3,\)"):
            nd.Dropout(x, p=0.1 + 0.1 * i, axes=(3,))


SAMPLERS = {
    "uniform": (lambda r, i: r.uniform(-i, i + 1.3, shape=(9,)), 1e-6),
    "normal": (lambda r, i: r.normal(i, 0.3 * i, shape=(9,)), 1e-6),
    "randint": (lambda r, i: r.randint(-i, 40 + i, shape=(9,)), 0),
    "randint64": (lambda r, i: r.randint(-i, 40 + i, shape=(9,), dtype="int64"), 0),
    "gamma": (lambda r, i: r.gamma(0.4 * i + 0.5, i + 1, shape=(9,)), 1e-5),
    "exponential": (lambda r, i: r.exponential(i + 1, shape=(9,)), 1e-6),
    "poisson": (lambda r, i: r.poisson(3 * i, shape=(9,)), 0),
    "negative_binomial": (lambda r, i: r.negative_binomial(i + 1, 0.1 * i + 0.1, shape=(9,)), 0),
    "generalized": (lambda r, i: r.generalized_negative_binomial(i, 0.1 * i, shape=(9,)), 0),
    "half": (lambda r, i: r.normal(i, 0.3 * i, shape=(9,), dtype="float16"), 0),
    "like": (lambda r, i: r.uniform_like(nd.array([[0] * 5] * 2), low=-i, high=0.3 * i), 1e-6),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
def test_parameters_of_distributions(monkeypatch, name):
    draw, rtol = SAMPLERS[name]
    check(monkeypatch, lambda i: [draw(nd.random, i)], rtol)


def test_integers_of_numpy_between_moving_bounds(monkeypatch):
    check(monkeypatch, lambda i: [mx.np.random.randint(-i, 9 * i + 1, size=(5,))])


def test_a_draw_into_an_array(monkeypatch):
    x = nd.zeros((3, 4))

    def turn(i):
        nd.random.uniform(i, i + 1, out=x)
        return [x]

    for i, (y,) in enumerate(check(monkeypatch, turn, 1e-6)):
        assert y.min() >= i and y.max() <= i + 1


@pytest.mark.parametrize(
    "draw, text",
    [
        (lambda i: nd.random.uniform(2 + i, 1), "low <= high"),
        (lambda i: nd.random.gamma(-1 - i, 1), "above 0"),
        (lambda i: nd.random.normal(0, -1 - i), "scale"),
        (lambda i: nd.random.randint(3 + i, 3), "low < high"),
        (lambda i: nd.softmax(nd.ones((2, 2)), temperature=0 * i), "temperature=0"),
        (lambda i: nd.clip(nd.array([1], dtype="int32"), float("nan"), i), "nan"),
    ],
)
def test_what_is_wrong_with_a_number_is_said_at_the_call(draw, text):
    for i in range(5):
        with pytest.raises(mx.MXNetError, match=text):
            draw(i)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", [lambda i: i - 3, lambda i: 0.7 * i + 0.25])
def test_exponents(monkeypatch, dtype, exponent):
    turn = differentiated(lambda x, i: x ** exponent(i), ABOVE, dtype)
    rtol = {"float32": 2e-6, "float16": 4e-3}[dtype]
    for i, (y, g) in enumerate(check(monkeypatch, turn, rtol)):
        if dtype == "float32":
            x, s = ABOVE.astype("float32").astype("f8"), exponent(i)
            np.testing.assert_allclose(y, x**s, 2e-6)
            np.testing.assert_allclose(g, s * x ** (s - 1), 2e-6, atol=1e-30)


def test_whole_exponents_of_negative_numbers_and_zero(monkeypatch):
    turn = differentiated(lambda x, i: x**i, [-3, -1.5, -1, 0, 1, 2])
    x = np.float64([-3, -1.5, -1, 0, 1, 2])
    for i, (y, g) in enumerate(check(monkeypatch, turn, 1e-6)):
        np.testing.assert_allclose(y, x**i, 1e-6)
        np.testing.assert_allclose(g, i * x ** max(i - 1, 0), 1e-6)


def test_powers_of_integers_are_exact(monkeypatch):
    x = nd.array(np.arange(-6, 9), dtype="int64")
    for i, (y,) in enumerate(check(monkeypatch, lambda i: [x**i])):
        np.testing.assert_array_equal(y, np.arange(-6, 9) ** i)
    x = nd.array(np.arange(9), dtype="int32")
    for i in range(VALUES):
        np.testing.assert_array_equal(((i + 2) ** x).asnumpy(), (i + 2) ** np.arange(9))


def test_bases(monkeypatch):
    turn = differentiated(lambda x, i: (0.4 * i) ** x, ABOVE)
    for i, (y, _) in enumerate(check(monkeypatch, turn, 2e-6)):
        np.testing.assert_allclose(y, np.float64(np.float32(0.4 * i)) ** np.float32(ABOVE), 2e-6)


FUNCTIONS = {
    "leaky": (lambda x, i: nd.LeakyReLU(x, slope=0.07 * i), 0),
    "elu": (lambda x, i: nd.LeakyReLU(x, act_type="elu", slope=0.07 * i), 1e-6),
    "softmax": (lambda x, i: nd.softmax(x, temperature=0.3 * i + 0.2) * nd.arange(23).astype(x.dtype), 1e-5),
    "log_softmax": (lambda x, i: nd.log_softmax(x, temperature=0.3 * i + 0.2) * nd.arange(23).astype(x.dtype), 1e-5),
    "softmin": (lambda x, i: nd.softmin(x, temperature=0.3 * i + 0.2) * nd.arange(23).astype(x.dtype), 1e-5),
    "smooth_l1": (lambda x, i: nd.smooth_l1(x, scalar=0.3 * i), 1e-6),
    "hard_sigmoid": (lambda x, i: nd.hard_sigmoid(x, alpha=0.1 + 0.1 * i, beta=0.05 * i), 1e-6),
    "gradient_multiplier": (lambda x, i: nd.contrib.gradientmultiplier(x, scalar=-0.3 * i), 0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_slopes_temperatures_and_the_like(monkeypatch, name, dtype):
    function, rtol = FUNCTIONS[name]
    check(monkeypatch, differentiated(function, SPREAD, dtype), rtol if dtype == "float32" else rtol and 2e-2)


def test_closed_forms():
    x = SPREAD.astype("float32")
    for i in range(VALUES):
        s, t = 0.3 * i, 0.3 * i + 0.2
        y = nd.LeakyReLU(nd.array(x), slope=s).asnumpy()
        np.testing.assert_allclose(y, np.where(x > 0, x, s * x), 1e-6)
        y = nd.softmax(nd.array(x), temperature=t).asnumpy()
        np.testing.assert_allclose(y, np.exp(x / t) / np.exp(x / t).sum(), 1e-5)
        edge = 1 / s**2 if s else np.inf
        want = np.where(np.abs(x) < edge, s * s * x * x / 2, np.abs(x) - (0.5 * edge if s else 0))
        np.testing.assert_allclose(nd.smooth_l1(nd.array(x), scalar=s).asnumpy(), want, 1e-5, 1e-7)


@pytest.mark.parametrize("axis", [None, 1, (0, 1)])
def test_rolls(monkeypatch, axis):
    x = np.arange(24, dtype="float32").reshape(4, 6)
    turn = differentiated(lambda a, i: mx.np.roll(a, 3 * i - 9, axis=axis) * a, x, make=mx.np.array)
    for i, (y, g) in enumerate(check(monkeypatch, turn)):
        np.testing.assert_array_equal(y, np.roll(x, 3 * i - 9, axis) * x)
        np.testing.assert_array_equal(g, np.roll(x, 3 * i - 9, axis) + np.roll(x, 9 - 3 * i, axis))


PAIRS = {
    "less": lambda x, s: x < s,
    "greater_equal": lambda x, s: x >= s,
    "equal": lambda x, s: x == s,
    "not_equal": lambda x, s: x != s,
    "floor_divide": lambda x, s: x // (s + 1),
    "floor_divide_of": lambda x, s: s // (x + 1),
    "modulo": lambda x, s: x % (s + 1),
    "logical_and": lambda x, s: mx.np.logical_and(x, s) if isinstance(x, mx.np.ndarray) else np.logical_and(x, s),
    "arctan2": lambda x, s: mx.np.arctan2(x, s) if isinstance(x, mx.np.ndarray) else np.arctan2(x, s),
    "copysign": lambda x, s: mx.np.copysign(s, x) if isinstance(x, mx.np.ndarray) else np.copysign(s, x),
}


@pytest.mark.usefixtures("one_tier")
@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_numpy(monkeypatch, name):
    x = np.arange(24, dtype="float32")
    a = mx.np.array(x)
    for i, (y,) in enumerate(check(monkeypatch, lambda i: [PAIRS[name](a, i + 1)])):
        np.testing.assert_allclose(y, PAIRS[name](x, np.float32(i + 1)), 1e-6)


@pytest.mark.parametrize("pair", [lambda x, s: x & s, lambda x, s: x | s, lambda x, s: x ^ s, lambda x, s: x < s])
def test_integers_of_numpy(monkeypatch, pair):
    x = np.arange(24, dtype="int32")
    a = mx.np.array(x)
    for i, (y,) in enumerate(check(monkeypatch, lambda i: [pair(a, i + 1)])):
        np.testing.assert_array_equal(y, pair(x, i + 1))


def test_doubles_are_exact():
    x = np.linspace(0.1, 3, 7)
    a = nd.array(x, dtype="float64")
    for i in range(VALUES):
        np.testing.assert_array_equal(nd.clip(a, 0.1 * i, 2.1).asnumpy(), x.clip(0.1 * i, 2.1))
        np.testing.assert_allclose((a ** (0.1 * i)).asnumpy(), x ** (0.1 * i), 1e-15, atol=1e-15)


def test_the_symbol_of_a_step_with_moving_numbers():
    x = nd.array([[1.0, -2.0]])
    x.attach_grad()
    for i in range(5):
        with autograd.record():
            y = nd.clip(nd.LeakyReLU(x * (i + 1), slope=0.1 * i), -0.5 * i, 2.5)
        assert [n for n in autograd.get_symbol(y).get_internals().list_outputs() if "dyn" in n] == []
        net = mx.sym.load_json(autograd.get_symbol(y).tojson())
        np.testing.assert_array_equal(net.eval(var0=x)[0].asnumpy(), y.asnumpy())


def test_a_numbers_gradient_of_second_order():
    x = nd.array([0.5, 2.0])
    x.attach_grad()
    for i in range(5):
        with autograd.record():
            (g,) = autograd.grad(x ** (i + 0.5), [x], create_graph=True)
        g.backward()
        s = i + 0.5
        np.testing.assert_allclose(x.grad.asnumpy(), s * (s - 1) * np.array([0.5, 2.0]) ** (s - 2), 1e-5)


def add_numbers():
    x = nd.ones((7,))
    for i in range(200):
        x = x * 0.5 + i
    return x


def walk_through_cells():
    x = nd.zeros((15, 13))
    for i in range(1, 195):
        x[i // 13, i % 13] = x[(i - 1) // 13, (i - 1) % 13] + 1
    return x


def add_to_rows():
    x = nd.zeros((150, 3))
    for i in range(150):
        x[i : i + 1] += i
    return x


def halves(n):
    return sum(i * 0.5 ** (n - 1 - i) for i in range(n)) + 0.5**n


@pytest.mark.parametrize(
    ("loop_in_one_program", "want"),
    [
        (add_numbers, np.full(7, halves(200))),
        (walk_through_cells, np.arange(195.0).reshape(15, 13)),
        (add_to_rows, np.arange(150.0).repeat(3).reshape(150, 3)),
    ],
    ids=["numbers", "cells", "rows"],
)
def test_turns_of_a_loop_in_one_program_need_no_kernel_each(monkeypatch, numpy_tier, loop_in_one_program, want):
    asked = set()

    def kernel_for(call, wrt, avals):
        asked.add(call)
        return kernel.kernel_for(call, wrt, avals)

    monkeypatch.setattr(executor, "kernel_for", kernel_for)
    for _ in range(2):
        np.testing.assert_allclose(loop_in_one_program().asnumpy(), want, 1e-6)
    assert len(asked) < 40


@pytest.mark.slow
def test_annealing_a_training_step():
    net = mx.gluon.nn.Dense(3)
    net.initialize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    x, before = nd.ones((4, 5)), 0
    for step in range(12):
        if step == 8:
            before = counters.compiles
        with autograd.record():
            h = nd.Dropout(net(x), p=0.5 - 0.03 * step)
            y = nd.softmax(nd.LeakyReLU(h, slope=0.3 - 0.02 * step), temperature=2 - 0.1 * step).sum()
        y.backward()
        trainer.step(4)
    nd.waitall()
    assert counters.compiles == before
