"""What a test begins with and leaves behind.

Every test draws the same random numbers, alone or after others, so that what fails once fails again. Pending work is
done before the next test, so that it is no part of its programs.

Compiled programs are dropped now and then: a long test run would keep thousands, each with memory maps of its own,
and a process may only have so many.

What tests compute with JAX itself is compiled without optimization, in a fifth of the time. The programs of dualmx are
compiled as they are for users, and where all are (`DUALMX_TIER=xla`), so is everything else. Tracebacks of errors keep
JAX's own files: to leave them out it asks the system for each file, which takes longer than most tests.

Tests in folders `devices` need eight devices, which a process must ask for before it starts: `test_on_devices` does.
"""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Iterator

import jax
import numpy as np
import pytest

import dualmx as mx
from dualmx.compile import executable
from dualmx.core import knobs
from dualmx.core.errors import MXNetError
from dualmx.graph import spec
from dualmx.graph.trie import trie
from dualmx.ndarray.recorder import local
from dualmx.ndarray.save_load import waitall

collect_ignore_glob = [] if "device_count=8" in os.environ.get("XLA_FLAGS", "") else ["*/devices"]

_OPTIMIZED = {"xla_backend_optimization_level": 3, "xla_cpu_use_fusion_emitters": True}

if knobs.TIER.read() != "xla":  # XLA reads its flags when it compiles for the first time
    quick = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
    os.environ["XLA_FLAGS"] = f"{quick} {os.environ.get('XLA_FLAGS', '')}"
    executable._OPTIONS["cpu"] |= _OPTIMIZED

jax.config.update("jax_traceback_filtering", "off")
spec.switch(True)
_EVERY = 200
_tests_run = 0


def pytest_collection_finish() -> None:
    """Let collections of garbage pass over what lives until the end, all modules and tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _seeded() -> None:
    random.seed(0)
    mx.random.seed(0)
    np.random.seed(0)


@pytest.fixture(autouse=True)
def _forget_programs() -> Iterator[None]:
    global _tests_run
    try:
        waitall()
    except MXNetError:
        pass  # what failed belongs to an earlier test, which may have wanted it so
    yield
    _tests_run += 1
    if _tests_run % _EVERY == 0:
        forget_programs()
        jax.clear_caches()


def forget_programs() -> None:
    """Begin as a new process does: no program is known."""
    trie.clear()
    for ctx, tr in list(local.traces.items()):
        if tr.state.depth == 0:  # else its first program would not be known to the next one
            local.new_trace(ctx)


def _in_tier(monkeypatch: pytest.MonkeyPatch, **knobs: str) -> Iterator[None]:
    for name, value in knobs.items():
        monkeypatch.setenv(name, value)
    forget_programs()
    yield
    forget_programs()


@pytest.fixture
def xla_tier(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compile every program at its first run, for tests of what XLA is given and makes."""
    yield from _in_tier(monkeypatch, DUALMX_TIER="xla")


@pytest.fixture
def unoptimized(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile dualmx's programs as what tests compute with JAX itself, for tests of what they compute."""
    options = executable._OPTIONS["cpu"] or {}
    monkeypatch.setitem(executable._OPTIONS, "cpu", {k: v for k, v in options.items() if k not in _OPTIMIZED})


@pytest.fixture
def numpy_tier(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compile nothing."""
    yield from _in_tier(monkeypatch, DUALMX_TIER="numpy")


@pytest.fixture
def one_tier(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compile nothing where programs are compiled at an early run, for tests that compare bits of several runs."""
    if knobs.PROMOTE_AT.is_set() and not knobs.TIER.is_set():
        yield from _in_tier(monkeypatch, DUALMX_TIER="numpy")
    else:
        yield


@pytest.fixture
def operators_tier(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run every program by executables of its operators."""
    yield from _in_tier(monkeypatch, DUALMX_TIER="operators")


@pytest.fixture
def promotion_at_3(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use every program compiled from its third run on."""
    yield from _in_tier(monkeypatch, DUALMX_TIER="auto", DUALMX_PROMOTE_AT="3")
