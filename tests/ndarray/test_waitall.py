"""`waitall` returns when the work is done, not when it has been handed over."""

from __future__ import annotations

import time

import dualmx as mx


def chain(a: mx.nd.NDArray) -> mx.nd.NDArray:
    x = a
    for _ in range(20):
        x = mx.nd.dot(x, a) * 0.002
    return x


def test_waitall_waits_for_running_programs() -> None:
    a = mx.nd.ones((800, 800))
    chain(a).wait_to_read()
    arrays = [chain(a + k) for k in range(2)]
    mx.nd.flush()
    more = chain(a + 5)
    start = time.perf_counter()
    mx.nd.waitall()
    waited = time.perf_counter() - start
    start = time.perf_counter()
    for x in [*arrays, more]:
        x.wait_to_read()
    assert time.perf_counter() - start < 0.2 * waited
