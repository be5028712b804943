"""`dist_mixed` in whole jobs: dense parameters between the workers, tables on the servers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests import jobs

CHECKS = (
    "values", "errors", "trainers", "changes_reach_both_halves", "each_half_counts_for_itself", "sums_only", "states",
    "copies", "idle_workers_add_nothing", "few_bytes_travel", "modules",
)  # fmt: skip


@pytest.mark.slow
def test_both_halves_do_what_one_store_does(tmp_path: Path) -> None:
    """All checks of `jobs/mixed.py` hold on both workers, which end with the same bits."""
    command = [jobs.PYTHON, "-W", "error", Path(__file__).parent / "jobs" / "mixed.py", tmp_path]
    # Servers and workers would change to compiled programs at different times.
    done = jobs.run(*jobs.launcher(2, 2), *command, env={"MXNET_KVSTORE_BIGARRAY_BOUND": "16", "DUALMX_TIER": "xla"})
    said = done.stdout.splitlines()
    assert not {f"[worker {rank}] held: {name}" for rank in (0, 1) for name in CHECKS} - set(said)
    names = sorted(p.name[:-6] for p in tmp_path.glob("*-0.npz"))
    for name in names:
        with np.load(tmp_path / f"{name}-0.npz") as one, np.load(tmp_path / f"{name}-1.npz") as two:
            assert len(one.files) and all(one[k].tobytes() == two[k].tobytes() for k in one.files), name
    assert len(names) == 11


@pytest.mark.slow
def test_the_example_learns() -> None:
    script = ["examples/parallel/mixed.py", "--users", 2000, "--items", 500, "--steps", 40]
    said = jobs.run(*jobs.launcher(2, 2), jobs.PYTHON, *script).stdout
    losses = [float(text) for text in re.findall(r"step \d+: loss ([\d.]+)", said)]
    assert len(losses) == 8 and max(losses[-2:]) < 0.6 * max(losses[:2]), said


CREATE = ("import dualmx as mx", "kv = mx.kv.create('dist_mixed')")
ONE_WORKER = (
    *CREATE, "x = mx.nd.ones((4, 2))", "kv.init([0, 1], [x, x.tostype('row_sparse')])",
    "kv.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))", "kv.push([0, 1], [x, x.tostype('row_sparse')])",
    "out = [x.copy(), x.copy()]", "kv.pull([0, 1], out=out)", "assert not sum(out).asnumpy().any()",
    "print(kv.rank, kv.num_workers)",
)  # fmt: skip


@pytest.mark.slow
def test_one_worker_needs_no_other() -> None:
    done = jobs.run(*jobs.launcher(1, 1), jobs.PYTHON, "-W", "error", "-c", "; ".join(ONE_WORKER))
    assert "[worker 0] 0 1" in done.stdout


@pytest.mark.slow
def test_a_job_without_servers_is_refused() -> None:
    done = jobs.run(*jobs.launcher(1), jobs.PYTHON, "-c", "; ".join(CREATE), status=1)
    said = done.stdout + done.stderr
    assert "name='dist_mixed': the job has no servers (-s 0); start some, or take 'collective'" in said


@pytest.mark.slow
def test_a_job_that_waits_for_workers_is_refused() -> None:
    code = [*CREATE[:1], "try: mx.kv.create('dist_mixed')", "except mx.MXNetError as e: print(e)"]
    done = jobs.run(*jobs.launcher(1, 1, "--on-worker-death", "wait"), jobs.PYTHON, "-c", "\n".join(code))
    said = done.stdout + done.stderr
    assert "the sums need all workers, but the job has --on-worker-death wait; take 'dist_sync'" in said


@pytest.mark.slow
def test_it_needs_a_job() -> None:
    done = jobs.run(jobs.PYTHON, "-c", "; ".join(CREATE), status=1)
    assert "name='dist_mixed': this process is in no distributed job" in done.stderr
