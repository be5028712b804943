"""Processes that Spark runs on its executors."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys

import pytest

import dualmx as mx
from dualmx import spark
from tests import jobs

HERE = shutil.which("java") is not None and importlib.util.find_spec("pyspark") is not None


@pytest.mark.slow
@pytest.mark.skipif(not HERE, reason="pyspark and Java are not installed")
def test_functions_run_in_a_barrier_stage(tmp_path) -> None:
    env = {"PYSPARK_PYTHON": jobs.PYTHON, "SPARK_LOCAL_IP": jobs.HOST}
    done = jobs.run(jobs.PYTHON, jobs.ROOT / "tests/spark/jobs/processes.py", tmp_path, env=env, cwd=tmp_path)
    assert "finished" in done.stdout
    _, killed = re.findall(r"^(?:raise|kill): (spark.run: process 1 of 2 .*)", done.stdout, re.M)
    assert "ValueError: no such digit" in done.stdout and "was killed by SIGKILL" in killed


def test_wrong_input(monkeypatch) -> None:
    with pytest.raises(mx.MXNetError, match="fn=3: expected a function"):
        spark.run(3)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(mx.MXNetError, match=r"needs the package pyspark: pip install 'dualmx\[spark\]'"):
        spark.run(len)
