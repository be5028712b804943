"""Learning-rate schedules against MXNet 1.9.1's values."""

from __future__ import annotations

import pytest

from dualmx.core.errors import ArgumentError
from dualmx.lr_scheduler import CosineScheduler, FactorScheduler, LRScheduler, MultiFactorScheduler, PolyScheduler

# Rates of updates 1..13, recorded from MXNet 1.9.1.
RECORDED = [
    (
        lambda w: FactorScheduler(3, 0.5, stop_factor_lr=0.1, base_lr=1, warmup_steps=w),
        [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.1],
        [0.25, 0.5, 0.75, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.1],
    ),
    (
        lambda w: MultiFactorScheduler([3, 5], 0.5, base_lr=1, warmup_steps=w, warmup_begin_lr=0.1),
        [1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25],
        [0.325, 0.55, 0.775, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25],
    ),
    (
        lambda w: PolyScheduler(10, base_lr=1, final_lr=0.1, warmup_steps=w),
        [0.829, 0.676, 0.541, 0.424, 0.325, 0.244, 0.181, 0.136, 0.109, 0.1, 0.1, 0.1, 0.1],
        [0.25, 0.5, 0.75, 1.0, 0.725, 0.5, 0.325, 0.2, 0.125, 0.1, 0.1, 0.1, 0.1],
    ),
    (
        lambda w: CosineScheduler(10, base_lr=1, final_lr=0.1, warmup_steps=w),
        [0.97798, 0.91406, 0.8145, 0.68906, 0.55, 0.41094, 0.2855, 0.18594, 0.12202, 0.1, 0.1, 0.1, 0.1],
        [0.25, 0.5, 0.75, 1.0, 0.93971, 0.775, 0.55, 0.325, 0.16029, 0.1, 0.1, 0.1, 0.1],
    ),
]


@pytest.mark.parametrize("make, plain, warmed", RECORDED)
def test_rates_equal_recorded(make, plain, warmed):
    for warmup, want in ((0, plain), (4, warmed)):
        schedule = make(warmup)
        assert [schedule(n) for n in range(1, 14)] == pytest.approx(want, abs=1e-5)


def test_constant_warmup_holds_the_first_rate():
    schedule = FactorScheduler(3, 0.5, base_lr=1, warmup_steps=4, warmup_begin_lr=0.2, warmup_mode="constant")
    assert [schedule(n) for n in (1, 2, 3, 4)] == [0.2, 0.2, 0.2, 0.5]


@pytest.mark.parametrize("kind", [PolyScheduler, CosineScheduler])
def test_after_the_end_the_rate_of_the_call_before_stays(kind):
    schedule = kind(10, base_lr=1, final_lr=0.1)
    assert schedule(25) == 1
    assert schedule(25) != schedule(9) == schedule(25)
    assert schedule(10) == schedule(25) == pytest.approx(0.1)


def test_a_warmup_that_is_over_has_no_rate():
    with pytest.raises(AssertionError, match="the warm-up has 4 steps"):
        FactorScheduler(3, warmup_steps=4).get_warmup_lr(4)


@pytest.mark.parametrize(
    "make, names",
    [
        (lambda: FactorScheduler(0), "step=0"),
        (lambda: FactorScheduler(3, 2), "factor=2"),
        (lambda: MultiFactorScheduler([3, 2]), "increasing"),
        (lambda: MultiFactorScheduler([0, 2]), "from 1"),
        (lambda: MultiFactorScheduler([1, 2], 2), "factor=2"),
        (lambda: MultiFactorScheduler(3), "list of update numbers"),
        (lambda: MultiFactorScheduler([]), "list of update numbers"),
        (lambda: MultiFactorScheduler([2, 2]), "increasing"),
        (lambda: MultiFactorScheduler([0]), "from 1"),
        (lambda: LRScheduler(warmup_steps=1.5), "warmup_steps=1.5"),
        (lambda: PolyScheduler(0), "max_update=0"),
        (lambda: CosineScheduler(3.5), "max_update=3.5"),
        (lambda: LRScheduler(warmup_steps=-1), "warmup_steps=-1"),
        (lambda: LRScheduler(warmup_mode="x"), "warmup_mode='x'"),
        (lambda: LRScheduler(base_lr=0.1, warmup_begin_lr=0.2), "exceeds base_lr"),
    ],
)
def test_bad_arguments_are_named(make, names):
    with pytest.raises(ArgumentError, match=names.replace("(", r"\(")) as e:
        make()
    assert isinstance(e.value, ValueError)


def test_the_base_class_is_abstract():
    with pytest.raises(NotImplementedError, match=r"LRScheduler must define __call__\(num_update\)"):
        LRScheduler()(3)


def test_changes_are_logged_in_the_words_of_mxnet(caplog):
    caplog.set_level("INFO")
    schedule = FactorScheduler(step=2, factor=0.1, stop_factor_lr=0.05, base_lr=1.0)
    assert [schedule(n) for n in (2, 3, 5)] == [1.0, 0.1, 0.05]
    assert caplog.messages == [
        "Update[3]: Change learning rate to 1.00000e-01",
        "Update[5]: now learning rate arrived at 5.00000e-02, will not change in the future",
    ]


def test_the_smallest_and_largest_arguments_are_accepted():
    assert [FactorScheduler(1, 1.0, base_lr=1.0)(n) for n in (0, 1, 5)] == [1.0, 1.0, 1.0]
    assert [FactorScheduler(1, 0.5, base_lr=1.0)(n) for n in (1, 2, 3)] == [1.0, 0.5, 0.25]
    assert [MultiFactorScheduler([1], 0.5, base_lr=1.0)(n) for n in (0, 1, 2, 9)] == [1.0, 1.0, 0.5, 0.5]
    assert MultiFactorScheduler((1, 2), 1, base_lr=1.0)(5) == 1.0
    assert LRScheduler(base_lr=0.1, warmup_begin_lr=0.1).warmup_begin_lr == 0.1
    for kind in (PolyScheduler, CosineScheduler):
        schedule = kind(1, base_lr=1.0, final_lr=0.5)
        assert [schedule(n) for n in (0, 1, 2)] == pytest.approx([1.0, 0.5, 0.5])
    with pytest.raises(ArgumentError, match="max_update"):
        CosineScheduler(0)


def test_a_floor_is_reached_and_kept():
    schedule = FactorScheduler(1, 0.5, stop_factor_lr=0.25, base_lr=1.0)
    assert [schedule(n) for n in (1, 2, 3, 4, 5)] == [1.0, 0.5, 0.25, 0.25, 0.25]
