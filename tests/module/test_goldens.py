"""Module runs against recordings of MXNet 1.9.1."""

from __future__ import annotations

import numpy as np
import pytest

import dualmx as mx
from tests.goldens.module_cases import CASES
from tests.goldens.store import load

GOLDEN = load("module")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:learning rate from")
def test_run_equals_the_recording(name):
    got = CASES[name](mx)
    want = {k.split(":")[1]: v for k, v in GOLDEN.items() if k.split(":")[0] == name}
    assert set(got) == set(want)
    for key, value in want.items():
        np.testing.assert_allclose(got[key], value, rtol=2e-4, atol=2e-5, err_msg=key)
