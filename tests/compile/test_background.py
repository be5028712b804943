"""The thread that compiles: who waits for it, what a failure does, and how a process ends in its midst."""

from __future__ import annotations

import logging
import threading

import pytest

from dualmx import nd
from dualmx.compile import executable
from dualmx.compile.background import Compilation, submit
from dualmx.compile.events import counters
from dualmx.compile.executable import Executable
from tests import jobs


def test_what_the_thread_has_not_begun_is_compiled_by_who_waits():
    begun, go = threading.Event(), threading.Event()

    def block() -> int:
        begun.set()
        assert go.wait(60)
        return 1

    first = Compilation(block, "the first")
    second = Compilation(threading.get_ident, "the second")
    submit(first)
    submit(second)
    assert begun.wait(60)
    assert second.result() == threading.get_ident()
    go.set()
    assert first.result() == 1 == first.result()


def test_a_long_wait_is_told_once(caplog, monkeypatch):
    monkeypatch.setattr(executable, "LONG_SECONDS", 0.01)
    told = threading.Event()
    monkeypatch.setattr(caplog.handler, "emit", lambda record: (caplog.records.append(record), told.set()))
    slow = Compilation(lambda: told.wait(60), "a program of 7 operations")
    assert slow.result() and slow.result()
    assert [r.getMessage() for r in caplog.records] == [
        "compiling a program of 7 operations takes more than 0.01 s; it is kept for later runs, and on disk for later "
        "processes"
    ]


def test_a_compilation_without_anybody_waiting_tells_nothing(caplog, monkeypatch):
    monkeypatch.setattr(executable, "LONG_SECONDS", 0.0)
    done = Compilation(lambda: 5, "a program")
    thread = threading.Thread(target=done.run)
    thread.start()
    thread.join(60)
    assert not caplog.records


@pytest.mark.usefixtures("promotion_at_3")
def test_a_program_that_cannot_be_compiled_goes_on_without(caplog, monkeypatch):
    monkeypatch.setattr(Executable, "_compile", lambda *_: (_ for _ in ()).throw(MemoryError("no memory left")))
    before = counters.numpy_runs
    for _ in range(6):
        assert (nd.array([1.0, 2.0]) * 3 + 1).asnumpy().tolist() == [4.0, 7.0]
    assert counters.numpy_runs == before + 6
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("a program of 2 operations, the last at ")
    assert record.getMessage().endswith("could not be compiled, and goes on without: no memory left")


ENDS = """
import sys, threading, time
import dualmx as mx
from dualmx import nd
from dualmx.compile import background, executable

inside, compiled = threading.Event(), executable.compile_lowered
def announced(*args):
    inside.set()
    return compiled(*args)
if sys.argv[1] == "xla":
    executable.compile_lowered = announced
else:
    plan = executable.lower
    executable.lower = lambda *args: (inside.set(), plan(*args))[1]
weights = [nd.ones((8, 8)) * 0.01 for _ in range(60)]
for w in weights:
    w.attach_grad()
for _ in range(4):
    with mx.autograd.record():
        y = nd.ones((8, 8))
        for w in weights:
            y = nd.tanh(nd.dot(y, w)) + nd.sin(y) * w.sum()
    y.backward()
    weights[0].grad.asnumpy()
assert inside.wait(100)
if sys.argv[1] == "xla":
    time.sleep(0.5)  # until it is in XLA's own code, which takes seconds
assert background.worker.is_busy
print("the last words")
sys.exit(int(sys.argv[2]))
"""


@pytest.mark.parametrize("phase", ["python", "xla"])
def test_a_process_ends_in_the_midst_of_a_compilation_with_its_status(tmp_path, phase):
    script = tmp_path / "ends.py"
    script.write_text(ENDS)
    environment = {"DUALMX_TIER": "auto", "DUALMX_PROMOTE_AT": "8", "DUALMX_CACHE_DIR": ""}
    ended = jobs.run(jobs.PYTHON, script, phase, 7, status=7, env=environment)
    assert (ended.stdout, ended.stderr) == ("the last words\n", "")
