"""The runner of the tests' processes: failures are seen, and nothing is left."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests import jobs

SLEEPER = """
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
pathlib.Path(sys.argv[1]).write_text(str(child.pid))
print("asleep", flush=True)
time.sleep(600)
"""


def test_a_status_that_was_not_expected_is_an_error_with_what_was_said(capsys: pytest.CaptureFixture[str]) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    with pytest.raises(AssertionError, match="ended with status 3, expected 0"):
        jobs.run(jobs.PYTHON, "-S", "-c", code)
    assert "out\nerr\n[3]\n" in capsys.readouterr().out
    done = jobs.run(jobs.PYTHON, "-S", "-c", code, status=3)
    assert (done.stdout, done.stderr) == ("out\n", "err\n")
    with pytest.raises(AssertionError, match=r"\[0, 3\]"):
        jobs.run_together([[jobs.PYTHON, "-S", "-c", "0"], [jobs.PYTHON, "-S", "-c", code]])


def test_what_takes_too_long_is_an_error_with_what_was_said(capsys: pytest.CaptureFixture[str]) -> None:
    process = jobs.start(jobs.PYTHON, "-S", "-c", "import time; print('asleep', flush=True); time.sleep(600)")
    assert process.stdout is not None and process.stdout.readline() == "asleep\n"
    with pytest.raises(AssertionError, match=r"not over after 0\.1 s"):
        jobs.finish(process, 0.1)
    assert f"[{-signal.SIGKILL}]" in capsys.readouterr().out
    jobs.end(process)


def test_children_of_a_process_end_with_it(tmp_path: Path) -> None:
    with jobs.running(jobs.PYTHON, "-S", "-c", SLEEPER, tmp_path / "pid") as process:
        assert process.stdout is not None and process.stdout.readline() == "asleep\n"
        child = int((tmp_path / "pid").read_text())
        assert jobs.alive(child)
    assert process.returncode == -signal.SIGKILL
    jobs.wait_for(lambda: not jobs.alive(child), 10)
    with pytest.raises(AssertionError, match="said so"):
        jobs.wait_for(lambda: False, 0.01, lambda: "said so")
