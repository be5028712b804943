"""`waitall` returns when the work is done, not when it has been handed over."""

from __future__ import annotations

import pytest

import dualmx as mx


def chain(a: mx.nd.NDArray) -> mx.nd.NDArray:
    x = a
    for _ in range(20):
        x = mx.nd.dot(x, a) * 0.002
    return x


@pytest.mark.usefixtures("xla_tier")
def test_waitall_waits_for_running_programs() -> None:
    a = mx.nd.ones((800, 800))
    chain(a).wait_to_read()  # compiled, so that the others are handed over at once
    running = [chain(a + k).as_jax() for k in range(3)]
    mx.nd.waitall()
    assert all(x.is_ready() for x in running)
