"""Optimizers as data: what servers get is what workers have, and nothing else is accepted."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import ArgumentError, FormatError
from dualmx.kvstore.optimizer_config import (
    ELEMENTWISE,
    build_schedule,
    from_config,
    is_elementwise,
    schedule_of,
    to_config,
    unsupported_reason,
    update_settings,
)
from dualmx.kvstore.states import StateReader, flatten, join_slices, slice_state
from dualmx.optimizer.optimizer import OPTIMIZERS

OURS = [n for n in OPTIMIZERS if OPTIMIZERS.get(n).__module__.startswith("dualmx.optimizer.")]
APART = {"lr_scheduler", "param_dict"}


@pytest.mark.parametrize("name", OURS)
def test_every_optimizer_survives_the_wire(name: str) -> None:
    made = mx.optimizer.create(name, learning_rate=0.125, wd=0.5, rescale_grad=0.25, clip_gradient=3.0)
    again = from_config(json.loads(json.dumps(to_config(made))))
    assert type(again) is type(made)
    ours, theirs = vars(made), vars(again)
    assert {k: v for k, v in ours.items() if k not in APART} == {k: v for k, v in theirs.items() if k not in APART}


@pytest.mark.parametrize(
    "schedule",
    [
        mx.lr_scheduler.FactorScheduler(3, 0.5, base_lr=0.4),
        mx.lr_scheduler.MultiFactorScheduler([2, 5], 0.1),
        mx.lr_scheduler.PolyScheduler(9, 0.3, warmup_steps=2),
        mx.lr_scheduler.CosineScheduler(9, 0.3, final_lr=0.1),
    ],
)
def test_schedules_travel_too(schedule: Any) -> None:
    again = from_config(json.loads(json.dumps(to_config(mx.optimizer.SGD(lr_scheduler=schedule))))).lr_scheduler
    assert type(again) is type(schedule) and [again(n) for n in range(1, 12)] == [schedule(n) for n in range(1, 12)]


@pytest.mark.parametrize(
    "config",
    [
        None,
        {"name": "sgd"},
        {"name": "os.system", "settings": {}, "schedule": None},
        {"name": ["sgd"], "settings": {}, "schedule": None},
        {"name": "sgd", "settings": {"momentun": 0.9}, "schedule": None},
        {"name": "sgd", "settings": {"__class__": "x"}, "schedule": None},
        {"name": "sgd", "settings": {"update": 1}, "schedule": None},
        {"name": "sgd", "settings": {"momentum": "0.9"}, "schedule": None},
        {"name": "sgd", "settings": {"momentum": [1]}, "schedule": None},
        {"name": "sgd", "settings": {"lr": float("nan")}, "schedule": None},
        {"name": "sgd", "settings": {"param_dict": {}}, "schedule": None},
        {"name": "sgd", "settings": [], "schedule": None},
        {"name": "sgd", "settings": {}, "schedule": {"name": "LRScheduler", "settings": {}}},
        {"name": "sgd", "settings": {}, "schedule": {"name": "PolyScheduler", "settings": {"power": "2"}}},
        {"name": "sgd", "settings": {}, "schedule": {"name": "MultiFactorScheduler", "settings": {"step": [1, "x"]}}},
    ],
)
def test_what_is_not_an_optimizer_is_refused(config: Any) -> None:
    with pytest.raises(ArgumentError, match="unknown (name|setting) |expected (name|names and|a value like)"):
        from_config(config)


def test_what_is_no_setting_is_not_suggested() -> None:
    with pytest.raises(
        ArgumentError, match="SGD: unknown setting 'param_dict'; (known: |did you mean '(?!param_dict))"
    ):
        from_config({"name": "sgd", "settings": {"param_dict": {}}, "schedule": None})


def test_changes_of_schedules_are_seen() -> None:
    steps = [2, 5]
    opt = mx.optimizer.SGD(lr_scheduler=mx.lr_scheduler.MultiFactorScheduler(steps, 0.1))
    before = schedule_of(opt)
    steps[1] = 4
    assert schedule_of(opt) != before == schedule_of(mx.optimizer.SGD(lr_scheduler=build_schedule(before)))
    opt.lr_scheduler = None
    assert schedule_of(opt) is build_schedule(None) is None
    opt.lr_scheduler = lambda n: 0.1
    with pytest.raises(ArgumentError, match="the schedule function is your own"):
        schedule_of(opt)


def test_only_known_settings_change() -> None:
    opt = mx.optimizer.Adam()
    update_settings(opt, {"lr": 0.5, "clip_gradient": 1})
    assert opt.lr == 0.5
    with pytest.raises(ArgumentError, match="did you mean 'beta"):
        update_settings(opt, {"beta": 0.5})


def test_what_servers_cannot_apply_is_said() -> None:
    class Own(mx.optimizer.SGD):
        pass

    class OwnSchedule(mx.lr_scheduler.LRScheduler):
        def __call__(self, num_update: int) -> float:
            return 1.0

    assert unsupported_reason(mx.optimizer.SGD()) == ""
    assert "Own" in unsupported_reason(Own()) and "OwnSchedule" in unsupported_reason(
        mx.optimizer.SGD(lr_scheduler=OwnSchedule())
    )
    with pytest.raises(ArgumentError, match="update_on_kvstore=False"):
        to_config(Own())
    odd = mx.optimizer.SGD()
    odd.extra = {"not": "plain"}  # type: ignore[attr-defined]
    assert "'extra'" in unsupported_reason(odd)


def test_norm_based_optimizers_get_whole_arrays() -> None:
    assert {n for n in OURS if not is_elementwise(mx.optimizer.create(n))} == {"lamb", "lars", "lbsgd", "groupadagrad"}
    assert set(ELEMENTWISE) <= set(OURS)


@pytest.mark.parametrize("name", [n for n in ELEMENTWISE if n not in ("sgld", "nadam")])
def test_elementwise_means_that_slices_can_be_updated_apart(name: str) -> None:
    draw = np.random.default_rng(0)
    w0, grads = draw.standard_normal(10).astype("f"), draw.standard_normal((3, 10)).astype("f")
    results = []
    for pieces in ([slice(0, 10)], [slice(0, 5), slice(5, 10)]):
        updater = mx.optimizer.get_updater(mx.optimizer.create(name))
        parts = [mx.nd.array(w0[s]) for s in pieces]
        for g in grads:
            for i, (s, w) in enumerate(zip(pieces, parts, strict=True)):
                updater(f"w#{i}", mx.nd.array(g[s]), w)
        results.append(np.concatenate([w.asnumpy() for w in parts]))
    assert np.allclose(results[0], results[1], rtol=1e-6, atol=1e-7)


def test_factors_follow_parameters_and_names() -> None:
    opt = mx.optimizer.SGD(param_idx2name={0: "fc_weight", 1: "fc_bias"})
    opt.set_lr_mult({"fc_bias": 2.0})
    assert opt.multipliers([0, 1]) == [(0, 1.0, 1.0, "fc_weight"), (1, 2.0, 0.0, "fc_bias")]


def test_states_are_cut_joined_and_read_back() -> None:
    state = (mx.nd.arange(6).reshape((2, 3)), None, (mx.nd.ones((2, 3)),))
    pieces = []
    for start, stop in ((0, 4), (4, 6)):
        payload: list[Any] = []
        tree = json.loads(json.dumps(flatten(slice_state(state, start, stop, 6), payload)))
        pieces.append(StateReader(memoryview(b"".join(p.tobytes() for p in payload))).unflatten(tree))
    whole = join_slices(pieces, [4, 2], (2, 3))
    assert (whole[0] == np.arange(6).reshape(2, 3)).all() and whole[1] is None and (whole[2][0] == 1).all()


@pytest.mark.parametrize(
    "tree",
    [3, "x", {"dtype": "object", "shape": [1]}, {"dtype": "float32", "shape": [99]}, {"dtype": "float32", "shape": -1},
     {"shape": [1]}, {"dtype": "float32", "shape": [-1]}, [[[[[[[[[[None]]]]]]]]]]],
)  # fmt: skip
def test_bad_states_are_refused(tree: Any) -> None:
    said = "neither an array nor a list of states|dtype=.*: not a supported element type|the numbers are missing"
    with pytest.raises(FormatError, match=f"optimizer state: ({said})"):
        StateReader(memoryview(bytes(8))).unflatten(tree)
