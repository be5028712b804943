"""Runs the tests in the folders `devices` in processes that have eight virtual CPU devices."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import jobs

TESTS = Path(__file__).parents[1]

# Files that compile for more than some seconds.
LONG = {"parallel/devices/test_layers.py", "parallel/devices/test_pipelines.py"}
NAMES = sorted(str(p.relative_to(TESTS)) for p in TESTS.glob("*/devices/test_*.py"))


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in NAMES])
def test_on_eight_devices(name: str) -> None:
    run(name, "not slow")


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in NAMES if "mark.slow" in (TESTS / n).read_text(encoding="utf-8")])
def test_second_tier_on_eight_devices(name: str) -> None:
    run(name, "slow")


def run(name: str, tier: str) -> None:
    env = dict.fromkeys(k for k in os.environ if k.startswith("PYTEST_"))
    command = [jobs.PYTHON, "-m", "pytest", "-q", "-x", "-m", tier, "-p", "no:cacheprovider", "-p", "no:xdist"]
    jobs.run(*command, TESTS / name, env={**env, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}, seconds=280)
