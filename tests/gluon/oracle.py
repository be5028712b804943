"""Runs a script with the real MXNet 1.9.1 that `DUALMX_ORACLE` (a virtual environment) names."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest


def ask(script: str, *args: str) -> Any:
    """Run `script`, in which `mx` is MXNet and `sys.argv[1:]` are `args`, and return its last line as JSON."""
    python = Path(os.environ.get("DUALMX_ORACLE", "")) / "bin" / "python"
    if not os.environ.get("DUALMX_ORACLE") or not python.exists():
        pytest.skip("DUALMX_ORACLE names no MXNet")
    head = "import json, sys\nimport mxnet as mx\n"
    done = subprocess.run([str(python), "-c", head + script, *args], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
