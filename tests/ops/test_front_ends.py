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
from tests.ops.fronts import Result, groups, is_random, named, run_block, run_nd, run_sym
from tests.ops.samples import Sample, all_samples, chosen, registered

# Operators without a sample, and why.
WITHOUT: dict[str, str] = {}
# Recorded gradients that are wrong in MXNet 1.9.1: keywords by operator.
WRONG_IN_MXNET = {"LeakyReLU": {"act_type": "selu"}}
# dtypes that an operator does not take: `{op: (dtype, ...)}`.
UNSUPPORTED: dict[str, tuple[str, ...]] = {}
# Operators without outputs, which no graph can hold; MXNet 1.9.1 crashes.
EAGER_ONLY = {"reset_arrays"}

FIXED = [s for s in chosen(2) if not is_random(s)]
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
    problems += [f"hybridized: {p}" for p in same(samples, run_block(samples), imperative)]
    executed = run_sym(samples)
    if not samples[0].train:
        for result, other in zip(executed, imperative, strict=True):
            result.grads = other.grads
    problems += [f"symbol: {p}" for p in same(samples, executed, imperative)]
    assert not problems, "\n".join(problems)


@named(groups(FIXED))
def test_front_ends_agree(samples):
    check(samples)


@pytest.mark.slow
@named(groups(EVERYTHING))
def test_front_ends_agree_on_all_samples(samples):
    check(samples)


@named(groups([s for s in chosen(1) if not is_random(s)]))
def test_the_naive_engine_computes_the_same(samples):
    lazy = run_nd(samples)
    with mx.engine.naive():
        problems = same(samples, run_nd(samples), lazy)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(("dtype", "tol"), [("float64", 3e-4), ("float16", 5e-2)])
@named(groups([s for s in chosen(1) if not is_random(s)], 48))
def test_other_precisions(samples, dtype, tol):
    samples = [s for s in samples if dtype not in UNSUPPORTED.get(s.op, {})]
    problems: list[str] = []
    for sample, got, want in zip(samples, run_nd(samples, np.dtype(dtype)), run_nd(samples), strict=True):
        for i, (a, b) in enumerate(zip(got.outs, want.outs, strict=True)):
            compare(f"{sample}: output {i}", a, b, tol, tol, problems)
        for i, g in got.grads.items():
            compare(f"{sample}: gradient of input {i}", g, want.grads[i], tol, tol, problems)
    assert not problems, "\n".join(problems)


def seeded(run: Callable[..., list[Result]], seed: int = 11) -> list[Result]:
    """Run the random operators after seeding."""
    mx.random.seed(seed)
    return run(DRAWN)


def test_random_operators():
    first, again, other = seeded(run_nd), seeded(run_nd), seeded(run_nd, 12)
    for sample, one, two, three in zip(DRAWN, first, again, other, strict=True):
        for a, b in zip(one.outs, two.outs, strict=True):
            np.testing.assert_array_equal(a, b, str(sample))
        if "flip" not in sample.op:
            assert any((a != b).any() for a, b in zip(one.outs, three.outs, strict=True)), sample
    for run in (run_sym, run_block):
        for sample, want, found, more in zip(DRAWN, first, seeded(run), seeded(run), strict=True):
            assert [(o.shape, o.dtype) for o in found.outs] == [(o.shape, o.dtype) for o in want.outs], sample
            for a, b in zip(found.outs, more.outs, strict=True):
                np.testing.assert_array_equal(a, b, str(sample))
            assert found.grads.keys() == want.grads.keys()
