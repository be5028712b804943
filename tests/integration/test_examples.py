"""The examples of parallel training run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES = {
    "data_parallel.py --rows 256 --epochs 1 --devices 2 --sync-bn": "epoch 0",
    "lstm_groups.py --steps 4 --batches 40": "accuracy",
    "sharded.py --steps 5": "on each device",
    "transformer.py --steps 3": "on each device",
    "pipeline.py --steps 3": "stages work",
    "remote.py --steps 3": "step 2: loss",
}


@pytest.mark.slow
@pytest.mark.parametrize("command", CASES, ids=lambda c: c.split()[0])
def test_example_runs(command: str) -> None:
    env = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"} | {"PYTHONPATH": str(ROOT)}
    script, *rest = command.split()
    program = [sys.executable, str(ROOT / "examples" / "parallel" / script), *rest]
    done = subprocess.run(program, env=env, cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0 and CASES[command] in done.stdout, done.stdout + done.stderr
