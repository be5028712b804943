"""Fifty steps of every optimizer, and state files, against recordings of MXNet 1.9.1."""

from __future__ import annotations

import numpy as np
import pytest

import dualmx as mx
from tests.goldens.optimizer_cases import CASES, STATE_FILES, run, trained_updater
from tests.goldens.store import load

GOLDEN = load("optimizer")


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_fifty_steps_equal_the_recording(case):
    want, got = GOLDEN[case.name], run(mx, case)
    tolerance = 1e-5 if case.dtype == "float32" else 2e-3
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def flat(state):
    """Arrays of a state in order."""
    if state is None:
        return []
    return [state.asnumpy()] if isinstance(state, mx.nd.NDArray) else [a for s in state for a in flat(s)]


@pytest.mark.parametrize("name", STATE_FILES)
def test_recorded_state_files_load(name):
    updater = trained_updater(mx, name, **STATE_FILES[name])
    loaded = mx.optimizer.get_updater(mx.optimizer.create("test"))
    loaded.set_states(GOLDEN[f"states:{name}"].tobytes())
    assert type(loaded.optimizer) is type(updater.optimizer)
    assert loaded.optimizer.num_update == 3 and loaded.optimizer.wd == 0.01
    assert loaded.optimizer._index_update_count is loaded.optimizer._all_index_update_counts[0]
    assert set(loaded.states) == {0, 1}
    for i in (0, 1):
        for a, b in zip(flat(updater.states[i]), flat(loaded.states[i]), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    if name == "sgd":
        assert isinstance(loaded.optimizer.lr_scheduler, mx.lr_scheduler.FactorScheduler)
        assert loaded.optimizer.lr_scheduler.step == 2
