"""Processes that Spark runs on its executors."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dualmx as mx
from dualmx import spark

ROOT = Path(__file__).parents[2]
HERE = shutil.which("java") is not None and importlib.util.find_spec("pyspark") is not None


@pytest.mark.slow
@pytest.mark.skipif(not HERE, reason="pyspark and Java are not installed")
def test_functions_run_in_a_barrier_stage(tmp_path) -> None:
    env = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    env |= {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    program = [sys.executable, str(ROOT / "tests/spark/jobs/processes.py"), str(tmp_path)]
    done = subprocess.run(program, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "finished" in done.stdout, done.stdout + done.stderr
    raised, killed = re.findall(r"^(?:raise|kill) after (\d+) s: (spark.run: process 1 of 2 .*)", done.stdout, re.M)
    assert "ValueError: no such digit" in done.stdout and "was killed by SIGKILL" in killed[1]
    assert int(raised[0]) < 30 and int(killed[0]) < 30


def test_wrong_input(monkeypatch) -> None:
    with pytest.raises(mx.MXNetError, match="fn=3: expected a function"):
        spark.run(3)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(mx.MXNetError, match=r"needs the package pyspark: pip install 'dualmx\[spark\]'"):
        spark.run(len)
