"""`dualmx status` and `dualmx bandwidth` on running jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from dualmx.core.errors import ArgumentError
from dualmx.core.job_status import registered_job, running_jobs
from dualmx.tools.bandwidth import resnet50, sizes_of
from dualmx.tools.diagnose import differences
from dualmx.tools.diagnose import page as diagnosis
from dualmx.tools.status import main, page
from tests import jobs

JOB = """
import os, pathlib, time
import dualmx as mx
kv = mx.kv.create("dist_sync")
kv.init("w", mx.nd.zeros((1000,)))
out = mx.nd.zeros((1000,))
for i in range(5):
    kv.push("w", mx.nd.ones((1000,)))
    kv.pull("w", out)
    out.wait_to_read()
if kv.rank == 1:
    pathlib.Path(os.environ["READY"]).touch()
    time.sleep(120)
kv.push("w", mx.nd.ones((1000,)))
kv.pull("w", out)
out.wait_to_read()
"""


GONE = {"uri": "127.0.0.1", "port": 1, "secret": "x" * 32, "command": "a job that does not answer"}


def dualmx(*arguments: object, status: int | None = None, **env: str) -> jobs.Done:
    return jobs.run(jobs.PYTHON, "-m", "dualmx.cli", *arguments, env=env, status=status, seconds=90)


@pytest.mark.slow
def test_status_of_a_running_job(tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path), "READY": str(tmp_path / "ready")}
    command = [*jobs.launcher(2, 1), jobs.PYTHON, "-c", JOB]
    with jobs.running(*command, env=env, stdout=subprocess.DEVNULL) as job:

        def ready() -> bool:
            assert job.poll() is None
            return (tmp_path / "ready").exists()

        jobs.wait_for(ready)
        (tmp_path / "dualmx" / "jobs" / f"{os.getpid()}.json").write_text(json.dumps(GONE))
        (tmp_path / "dualmx" / "jobs" / f"{os.getpid()}.json").chmod(0o600)
        state: dict[str, Any] = {"stragglers": {}}
        until = time.monotonic() + 60
        while not state["stragglers"]:  # until worker 0 has waited for half a second
            assert time.monotonic() < until
            found = dualmx("status", "--json", "--interval", "0.2", **env)
            assert found.returncode == 0 and "nobody listens at 127.0.0.1:1 " in found.stderr, found.stderr
            state = json.loads(found.stdout)
        (tmp_path / "dualmx" / "jobs" / f"{os.getpid()}.json").unlink()
        assert [(m["role"], m["rank"], m["state"]) for m in state["members"]] == [
            ("server", 0, "alive"), ("worker", 0, "alive"), ("worker", 1, "alive"),
        ]  # fmt: skip
        assert state["rounds"] == 5 and state["pushed"] == {"0": 6, "1": 5}
        assert list(state["stragglers"]) == ["1"] and state["stragglers"]["1"] > 0.5
        file = next((tmp_path / "dualmx" / "jobs").iterdir())
        assert file.stat().st_mode & 0o077 == 0
        uri, port = state["scheduler"].split(":")
        wrong = dualmx("status", "--uri", uri, "--port", port, DUALMX_SECRET="another-secret-of-the-job", **env)
        assert wrong.returncode == 2 and "secret" in wrong.stderr
        assert json.loads(file.read_text())["secret"] not in found.stdout
        job.send_signal(signal.SIGTERM)
        jobs.finish(job)
    assert not list((tmp_path / "dualmx" / "jobs").iterdir())
    nobody = dualmx("status", **env)
    assert nobody.returncode == 2 and "no job of yours runs on this host" in nobody.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--interval", "-1"], "--interval -1: expected seconds of 0 or more"),
        (["--uri", "127.0.0.1"], "--port 0: expected 1 to 65535"),
        (["--uri", "127.0.0.1", "--port", "70000"], "--port 70000: expected 1 to 65535"),
    ],
)
def test_wrong_options_of_status_are_named(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DMLC_PS_ROOT_PORT", raising=False)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2 and text in capsys.readouterr().err


def test_pages() -> None:
    state = {
        "scheduler": "h:1", "complete": True, "wanted": {"worker": 1, "server": 1}, "rounds": 7, "rounds_per_s": 2.5,
        "received_per_s": 3_000_000, "sent_per_s": 0, "pushed": {"0": 7}, "stragglers": {"0": 1.25},
        "servers": {"0": {"keys": 3, "memory": 5_000_000}}, "workers": {}, "behind": {"0": 0},
        "barriers": [{"barrier": "1", "ranks": [0]}],
        "members": [
            {"role": "server", "rank": 0, "state": "dead", "since": 2.0, "end": "killed", "host": "a"},
            {"role": "worker", "rank": 0, "state": "alive", "since": 0.0, "end": "", "host": ""},
        ],
    }  # fmt: skip
    assert page(state, "train.py").splitlines() == [
        "job at h:1: train.py",
        "  round 7, 2.5 rounds/s, 3.0 MB/s to the servers, 0 B/s from them",
        "  server 0   dead for 2 s: killed, 3 keys, 5.0 MB (a)",
        "  worker 0   alive, round 7, others wait for it since 1.2 s",
        "  barrier 1: workers [0] are there",
    ]
    elastic = page({**state, "batch": {"number": 8, "members": [0, 2]}}, "").splitlines()
    assert elastic[2] == "  elastic: workers 0, 2 take part in batch 8"
    assert "0 of 1 workers" in page({**state, "complete": False, "members": []}, "")


def test_jobs_are_noted_while_they_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "dualmx" / "jobs").mkdir(parents=True)
    (tmp_path / "dualmx" / "jobs" / "999999999.json").write_text("{}")
    with registered_job("h", 1, "s", "c"):
        assert [(j["uri"], j["port"], j["secret"]) for j in running_jobs()] == [("h", 1, "s")]
        (tmp_path / "dualmx" / "jobs" / f"{os.getpid()}.json").chmod(0o644)
        assert running_jobs() == []  # others could have read or written it
    assert running_jobs() == [] and not list((tmp_path / "dualmx" / "jobs").glob("*"))


@pytest.mark.slow
def test_bandwidth_of_local_and_distributed_stores() -> None:
    local = dualmx("bandwidth", "--kv-store", "device", "--devices", "2", "--sizes", "4KB", "--rounds", "2")
    assert local.returncode == 0 and "4KB" in local.stdout, local.stderr
    done = dualmx(
        "bandwidth", "-n", "2", "-s", "1", "--kv-store", "dist_sync", "--sizes", "4KB,1MB", "--rounds", "2", "--json"
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line.split("] ", 1)[1]) for line in done.stdout.splitlines()]
    assert [(f["size"], f["workers"], f["error"]) for f in lines] == [("4KB", 2, 0.0), ("1MB", 2, 0.0)]
    assert all(f["gb_per_s"] > 0 for f in lines)
    sums = dualmx("bandwidth", "--kv-store", "horovod", "--devices", "2", "--sizes", "4KB", "--rounds", "2", "--json")
    assert sums.returncode == 0 and json.loads(sums.stdout)["error"] == 0.0, sums.stderr
    wrong = dualmx("bandwidth", "--kv-store", "byteps", "--sizes", "4KB", "--optimizer", "sgd")
    assert wrong.returncode == 2 and "it only sums" in wrong.stderr


def test_hosts_that_disagree() -> None:
    here: dict[str, object] = {
        "packages": {"dualmx": "1", "jax": "2"}, "host": "h", "user": "u", "python": "3", "cores": 2, "env": {},
    }  # fmt: skip
    late = {**here, "skew": (-3.0, 0.1), "packages": {"dualmx": "-", "jax": "3"}}
    vague = {**here, "skew": (3.0, 2.5), "env": {"PS_VERBOSE": "1"}}
    hosts = {"here": here, "late": late, "vague": vague}
    matrix = {"here": {"late": 1.25, "vague": "refused"}, "late": {"here": 1.0}}
    problems = differences(hosts, matrix)
    assert problems == {
        "here": "cannot connect to vague (refused)",
        "late": "its clock is 3.0 s behind; dualmx is not installed, here 1; jax is 3, here 2",
    }
    text = diagnosis({"hosts": hosts, "matrix": matrix, "problems": problems})
    assert "-3000.0 ± 100.0 ms" in text and "a firewall between them?" in text
    assert "variables that a login finds on vague:\n  PS_VERBOSE=1\n" in text


def test_diagnosis_without_hosts_is_that_of_doctor(tmp_path: Path) -> None:
    done = jobs.run(jobs.PYTHON, "-m", "dualmx.diagnose")
    assert "environment (dualmx):" in done.stdout
    wrong = dualmx("diagnose", "--hosts", str(tmp_path / "absent"))
    assert wrong.returncode == 2 and "cannot be read" in wrong.stderr


def test_sizes() -> None:
    assert sizes_of("4KB, 10,2m") == [("4KB", [4096]), ("10", [8]), ("2m", [2 << 20])]
    assert sizes_of("4KB+10+1m,8") == [("3 arrays", [4096, 8, 1 << 20]), ("8", [8])]
    assert len(resnet50()) == 161 and sum(resnet50()) == 25_557_032
    for wrong in ("", "4XB", "0", "-4", "4KB+", "4KB+0"):
        with pytest.raises(ArgumentError, match="--sizes"):
            sizes_of(wrong)
