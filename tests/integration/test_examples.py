"""The examples of parallel training run."""

from __future__ import annotations

import pytest

from tests import jobs

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
    script, *rest = command.split()
    assert CASES[command] in jobs.run(jobs.PYTHON, jobs.ROOT / "examples" / "parallel" / script, *rest).stdout
