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


def test_on_eight_devices() -> None:
    run("not slow", *(n for n in NAMES if n not in LONG))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LONG))
def test_long_files_on_eight_devices(name: str) -> None:
    run("not slow", name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in NAMES if "mark.slow" in (TESTS / n).read_text(encoding="utf-8")])
def test_second_tier_on_eight_devices(name: str) -> None:
    run("slow", name)


def run(tier: str, *names: str) -> None:
    env = dict.fromkeys(k for k in os.environ if k.startswith("PYTEST_"))
    command = [jobs.PYTHON, "-m", "pytest", "-q", "-m", tier, "-p", "no:cacheprovider", "-p", "no:xdist"]
    env["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    jobs.run(*command, *(TESTS / n for n in names), env=env, seconds=280)
