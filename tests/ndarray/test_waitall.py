"""`waitall` returns when the work is done, not when it has been handed over, and so does the end of a process."""

from __future__ import annotations

import pytest

import dualmx as mx
from tests import jobs


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


ENDS = """
import atexit, sys
import jax
running = []
atexit.register(lambda: print(running[0].is_ready()))  # called after what dualmx registers
import dualmx as mx
from dualmx.ndarray import execute
execute.EXIT_SECONDS = float(sys.argv[1])
a = mx.nd.ones((800, 800))
mx.nd.waitall()
def chain():
    x = a
    for _ in range(60):
        x = mx.nd.dot(x, a) * 0.002
    return x
chain().wait_to_read()  # compiled
running.append(chain().as_jax())
sys.exit(7)
"""


@pytest.mark.parametrize(("seconds", "ended"), [(60, True), (0, False)])
def test_a_process_ends_with_its_status_when_programs_have_ended_or_take_too_long(tmp_path, seconds, ended) -> None:
    script = tmp_path / "ends.py"
    script.write_text(ENDS)
    done = jobs.run(jobs.PYTHON, script, seconds, status=7, env={"DUALMX_TIER": "xla"})
    assert (done.stdout, done.stderr) == (f"{ended}\n", "")
