"""Every registered operator through `mx.nd`, `mx.sym` and a hybridized block: the same results, and those of MXNet.

The samples of a group run as one program per front end, so that the whole registry costs few compilations. A failure
names the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from tests.ops.fronts import Result, call, groups, is_random, named, run_block, run_nd, run_sym, symbol_of
from tests.ops.samples import Sample, all_samples, chosen, registered

# Operators without a sample, and why.
WITHOUT: dict[str, str] = {}
# Recorded gradients that are wrong in MXNet 1.9.1: keywords by operator.
WRONG_IN_MXNET = {
    "LeakyReLU": {"act_type": "selu"},
    "Pooling": {"pool_type": "avg", "pooling_convention": "full"},
}
# dtypes that an operator does not take: `{op: (dtype, ...)}`.
FACTORED = ("potrf", "potri", "trsm", "inverse", "det", "slogdet", "gelqf", "syevd")
UNSUPPORTED = {f"_linalg_{name}": ("float16",) for name in FACTORED}
# The gradient by sampling positions jumps at pixel borders, over which rounding to 16 bits moves some of them.
JUMPING = {"BilinearSampler", "SpatialTransformer", "GridGenerator", "_contrib_ROIAlign"}
# Operators without outputs, which no graph can hold; MXNet 1.9.1 crashes.
EAGER_ONLY = {"reset_arrays"}

ONE_EACH = [s for s in chosen(1) if not is_random(s)]
DRAWN = [s for cases in all_samples().values() for s in cases if is_random(s)]
EVERYTHING = [s for cases in all_samples().values() for s in cases if not is_random(s)]


def test_every_operator_has_a_sample():
    missing = [op.name for op in registered() if op.name not in all_samples() and op.name not in WITHOUT]
    assert not missing
    assert not set(WITHOUT) & set(all_samples())


def compare(what: str, got: Any, want: Any, rtol: float, atol: float, problems: list[str]) -> None:
    """Note a difference of shape or value."""
    try:
        assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
        np.testing.assert_allclose(np.asarray(got, np.float64), np.asarray(want, np.float64), rtol, atol)
    except AssertionError as e:
        problems.append(f"{what}: " + " ".join(str(e).split())[:300])


def same(
    samples: Sequence[Sample], found: Sequence[Result], wanted: Sequence[Result], rtol: float = 1e-5, atol: float = 2e-6
) -> list[str]:
    """Differences between two front ends: outputs with their dtypes, gradients, inputs after the call."""
    problems: list[str] = []
    for sample, got, want in zip(samples, found, wanted, strict=True):
        for what in ("outs", "after"):
            one, other = getattr(got, what), getattr(want, what)
            if [a.dtype for a in one] != [a.dtype for a in other]:
                problems.append(f"{sample}: {what}: {[a.dtype for a in one]}, expected {[a.dtype for a in other]}")
                continue
            for i, (a, b) in enumerate(zip(one, other, strict=True)):
                compare(f"{sample}: {what}[{i}]", a, b, rtol, atol, problems)
        for i in got.grads:
            compare(f"{sample}: gradient of input {i}", got.grads[i], want.grads[i], rtol, atol, problems)
    return problems


def recorded(samples: Sequence[Sample], found: Sequence[Result]) -> list[str]:
    """Differences from what MXNet gave."""
    problems: list[str] = []
    for sample, got in zip(samples, found, strict=True):
        want = sample.recorded()
        if WRONG_IN_MXNET.get(sample.op, {"": 0}).items() <= dict(sample.params).items():
            want = {k: v for k, v in want.items() if k.startswith("out")}
        values = {f"out{i}": o for i, o in enumerate(got.outs)}
        values |= {f"grad{i}": g for i, g in got.grads.items()} | {f"next{i}": a for i, a in enumerate(got.after)}
        for key, value in want.items():
            if key in values:
                compare(f"{sample}: {key} of MXNet", values[key], value, 3e-5, 2e-5, problems)
    return problems


def check(samples: Sequence[Sample]) -> None:
    """All front ends agree with each other and with the record."""
    samples = [s for s in samples if s.op not in EAGER_ONLY]
    imperative = run_nd(samples)
    problems = recorded(samples, imperative)
    hybrid, executed = run_block(samples), run_sym(samples)
    if not samples[0].train:
        for result, other, block in zip(executed, imperative, hybrid, strict=True):
            # Executors have gradients in training mode only; in inference a hybridized block leaves its inputs alone.
            result.grads, block.after = other.grads, other.after
    problems += [f"hybridized: {p}" for p in same(samples, hybrid, imperative)]
    problems += [f"symbol: {p}" for p in same(samples, executed, imperative)]
    assert not problems, "\n".join(problems)


@named(groups(ONE_EACH))
def test_front_ends_agree(samples):
    check(samples)


@pytest.mark.slow
@named(groups(EVERYTHING))
def test_front_ends_agree_on_all_samples(samples):
    check(samples)


def check_naive(samples: Sequence[Sample], gradients: bool) -> None:
    """Executed at once or together, operators compute the same."""
    lazy = run_nd(samples, gradients=gradients)
    with mx.engine.naive():
        problems = same(samples, run_nd(samples, gradients=gradients), lazy)
    assert not problems, "\n".join(problems)


@named(groups(ONE_EACH, 60))
def test_the_naive_engine_computes_the_same(samples):
    check_naive(samples, gradients=False)


@pytest.mark.slow
@named(groups(ONE_EACH, 60))
def test_the_naive_engine_computes_the_same_gradients(samples):
    check_naive(samples, gradients=True)


def check_precision(samples: Sequence[Sample], dtype: str, tol: float, gradients: bool) -> None:
    """Results in another precision are near those in float32."""
    jumping = JUMPING if gradients and dtype == "float16" else ()
    samples = [s for s in samples if dtype not in UNSUPPORTED.get(s.op, ()) and s.op not in jumping]
    problems: list[str] = []
    other, single = run_nd(samples, np.dtype(dtype), gradients), run_nd(samples, np.float32, gradients)
    for sample, got, want in zip(samples, other, single, strict=True):
        for i, (a, b) in enumerate(zip(got.outs, want.outs, strict=True)):
            compare(f"{sample}: output {i}", a, b, tol, tol, problems)
        for i, g in got.grads.items():
            compare(f"{sample}: gradient of input {i}", g, want.grads[i], tol, tol, problems)
    assert not problems, "\n".join(problems)


PRECISIONS = pytest.mark.parametrize(("dtype", "tol"), [("float64", 3e-4), ("float16", 5e-2)])


@PRECISIONS
@named(groups(ONE_EACH, 60))
def test_other_precisions(samples, dtype, tol):
    check_precision(samples, dtype, tol, gradients=False)


@pytest.mark.slow
@PRECISIONS
@named(groups(ONE_EACH, 60))
def test_gradients_in_other_precisions(samples, dtype, tol):
    check_precision(samples, dtype, tol, gradients=True)


def seeded(run: Callable[..., list[Result]], samples: Sequence[Sample], seed: int = 11) -> list[Result]:
    """Run random operators after seeding."""
    mx.random.seed(seed)
    return run(samples)


@pytest.mark.parametrize("size", ["short", pytest.param("all", marks=pytest.mark.slow)])
def test_random_operators(size):
    # Samplers of the gamma family are loops of rejection, which take long to compile.
    long = ("gamma", "poisson", "binomial")
    drawn = [s for s in DRAWN if size == "all" or not s.op.endswith(long) and "_like" not in s.op]
    first, again = seeded(run_nd, drawn), seeded(run_nd, drawn)
    other = seeded(run_nd, drawn, 12)
    for sample, one, two, three in zip(drawn, first, again, other, strict=True):
        for a, b in zip(one.outs, two.outs, strict=True):
            np.testing.assert_array_equal(a, b, str(sample))
        if "flip" not in sample.op:
            assert any((a != b).any() for a, b in zip(one.outs, three.outs, strict=True)), sample
    for run in (run_sym, run_block):
        for sample, want, found, more in zip(drawn, first, seeded(run, drawn), seeded(run, drawn), strict=True):
            assert [(o.shape, o.dtype) for o in found.outs] == [(o.shape, o.dtype) for o in want.outs], sample
            for a, b in zip(found.outs, more.outs, strict=True):
                np.testing.assert_array_equal(a, b, str(sample))
            assert found.grads.keys() == want.grads.keys()


def test_random_operators_of_numbers_and_arrays_have_the_right_shapes():
    for sample in DRAWN:
        (result,) = [call(mx.nd, sample, [mx.nd.array(a, dtype=a.dtype) for a in sample.arrays])]
        symbol, names, _ = symbol_of([sample])
        shapes = {n: a.shape for n, a in zip(names[0], sample.arrays, strict=True)}
        assert symbol.infer_shape(**shapes)[1] == [o.shape for o in result], sample
