"""Module runs against recordings of MXNet 1.9.1."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import dualmx as mx

GOLDENS = Path(__file__).resolve().parents[1] / "goldens"
sys.path.insert(0, str(GOLDENS))

from module_cases import CASES  # noqa: E402

GOLDEN = np.load(GOLDENS / "module.npz")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:learning rate from")
def test_run_equals_the_recording(name):
    got = CASES[name](mx)
    want = {k.split(":")[1]: v for k, v in GOLDEN.items() if k.split(":")[0] == name}
    assert set(got) == set(want)
    for key, value in want.items():
        np.testing.assert_allclose(got[key], value, rtol=2e-4, atol=2e-5, err_msg=key)
