"""Compiled programs are dropped after each module, so that a long test run does not keep thousands of them."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(scope="module", autouse=True)
def _forget_programs() -> Iterator[None]:
    yield
    from dualmx.graph.trie import trie

    trie.clear()
    jax.clear_caches()
