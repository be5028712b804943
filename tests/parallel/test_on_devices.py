"""Runs the tests in the folders `devices` in processes that have eight virtual CPU devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
    env = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    env = {k: v for k, v in env.items() if not k.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", tier, "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run([*command, str(TESTS / name)], env=env, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
