"""Jobs that are only written down: the texts are read back, and run here piece by piece."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dualmx.core.knobs import CLUSTER
from dualmx.launch.cli import main
from dualmx.launch.job_scripts import SCRIPT_FORMATS
from dualmx.launch.supervisor import LAUNCHERS
from tests import jobs
from tests.jobs import ROOT

SAYS = (
    "import os\n"
    "e = os.environ\n"
    "print(*(e.get(k) for k in ('DMLC_ROLE', 'DMLC_TASK_ID', 'DMLC_NUM_WORKER', 'DMLC_NUM_SERVER', 'A', 'B')),"
    " len(e['DUALMX_SECRET']))\n"
)
OPTIONS = ["-n", "2", "-s", "2", "--env", "A:x 'y", "--env-server", "B:1", "--dry-run"]
SAID = [
    "scheduler 0 2 2 x 'y None 64", "server 0 2 2 x 'y 1 64", "server 1 2 2 x 'y 1 64", "worker 0 2 2 x 'y None 64",
    "worker 1 2 2 x 'y None 64",
]  # fmt: skip


def written(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def tasks_of(script: Path, folder: Path, job: str, count: int, **env: str) -> list[str]:
    """Run the tasks of an array of Grid Engine, as it would."""
    processes = [
        jobs.start("/bin/sh", script, cwd=folder, env={**env, "SGE_TASK_ID": str(i + 1), "JOB_ID": job})
        for i in range(count)
    ]
    try:
        out = [jobs.finish(p, 90)[0] for p in processes]
    finally:
        jobs.end(*processes)
    assert [p.returncode for p in processes] == [0] * count
    return out


@pytest.mark.slow
def test_tasks_of_grid_engine_find_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = written(
        capsys, "--launcher", "sge", *OPTIONS, sys.executable, "-S", "-c", SAYS + "import time; time.sleep(2)"
    )
    (tmp_path / "job.sh").write_text(text)
    assert "#$ -S /bin/sh -cwd -j y -N dualmx -t 1-5\n" in text
    assert [out.strip() for out in tasks_of(tmp_path / "job.sh", tmp_path, "7", 5)] == SAID
    assert not list(tmp_path.glob(".dualmx-*")), "the scheduler's address and the secret are removed"


@pytest.mark.slow
def test_a_job_of_grid_engine_trains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = (
        "import dualmx as mx\n"
        "kv = mx.kv.create('dist_sync')\n"
        "kv.init('w', mx.nd.zeros(2)); kv.push('w', mx.nd.ones(2) * (kv.rank + 1)); out = mx.nd.zeros(2)\n"
        "kv.pull('w', out); print(kv.rank, out.asnumpy())\n"
    )
    (tmp_path / "job.sh").write_text(
        written(capsys, "--launcher", "sge", "-n", "2", "-s", "1", "--dry-run", sys.executable, "-c", code)
    )
    env = {"DMLC_NODE_HOST": "127.0.0.1", "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    out = tasks_of(tmp_path / "job.sh", tmp_path, "8", 4, **env)
    assert [o.splitlines()[-1] for o in out[2:]] == ["0 [3. 3.]", "1 [3. 3.]"], out


def container(env: list[dict[str, Any]], index: int) -> dict[str, str]:
    known = {"metadata.annotations['batch.kubernetes.io/job-completion-index']": str(index)}
    out = {}
    for one in env:
        source = one.get("valueFrom", {})
        if "secretKeyRef" in source:
            assert source["secretKeyRef"] == {"name": "dualmx", "key": "secret"}
            out[one["name"]] = "s" * 64
        else:
            out[one["name"]] = known[source["fieldRef"]["fieldPath"]] if source else one["value"]
    return out


def test_a_manifest_for_kubernetes(capsys: pytest.CaptureFixture[str]) -> None:
    text = written(
        capsys, "--launcher", "k8s", "--image", "registry/train:1", *OPTIONS, sys.executable, "-S", "-c", SAYS
    )
    service, *jobs = json.loads(text)["items"]
    said = []
    for job in jobs:
        spec = job["spec"]
        assert spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"]
        (one,) = spec["template"]["spec"]["containers"]
        assert one["image"] == "registry/train:1"
        for index in range(spec["completions"]):
            env = container(one["env"], index)
            assert env["DMLC_PS_ROOT_URI"] == service["metadata"]["name"] and env["DMLC_USE_KUBERNETES"] == "1"
            said.append(subprocess.run(one["command"], env=env, capture_output=True, text=True).stdout.strip())
    assert said == SAID
    labels = jobs[0]["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items() and service["spec"]["clusterIP"] == "None"


def test_a_specification_for_yarn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = written(capsys, "--launcher", "yarn", *OPTIONS, sys.executable, "-S", "-c", SAYS)
    (tmp_path / "secret").write_text("s" * 64 + "\n")
    said = []
    for part in json.loads(text)["components"]:
        env = part["configuration"]["env"]
        assert env["DMLC_PS_ROOT_URI"].startswith("scheduler-0.${SERVICE_NAME}.")
        for index in range(part["number_of_containers"]):
            command = part["launch_command"].replace("${COMPONENT_ID}", str(index))
            done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True)
            said.append(done.stdout.strip())
    assert said == SAID


def test_what_would_be_run_is_shown_without_the_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUALMX_SECRET", "a-secret-that-nobody-may-see")
    (tmp_path / "hosts").write_text("one slots=2\ntwo:23\n")
    hosts = ["--launcher", "ssh", "-H", str(tmp_path / "hosts"), "--host-ip", "127.0.0.1"]
    for how, count in (([], 5), (hosts, 5)):
        text = written(capsys, *how, *OPTIONS, "python", "train.py")
        assert "nobody-may-see" not in text
        assert sum(line.startswith("# ") and not line.startswith("#  ") for line in text.splitlines()) == count
        assert text.count("DMLC_ROLE=worker") == 2 and text.count("python train.py") == 5
    assert f"-p 23 two {shlex.quote('exec AGENT agent stdin')}" in text


def test_the_system_may_be_chosen_by_a_variable(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(CLUSTER.choices) == {*LAUNCHERS, *SCRIPT_FORMATS}
    monkeypatch.setenv("DMLC_SUBMIT_CLUSTER", "yarn")
    assert json.loads(written(capsys, "-n", "1", "--dry-run", "true"))["components"]
    monkeypatch.setenv("DMLC_SUBMIT_CLUSTER", "mesos")
    with pytest.raises(SystemExit):
        main(["-n", "1", "true"])
    assert "DMLC_SUBMIT_CLUSTER='mesos': expected one of local, ssh" in capsys.readouterr().err


def test_what_is_only_written_is_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["-n", "1", "--launcher", "sge", "true"])
    assert "--dry-run > JOB, then qsub" in capsys.readouterr().err
    assert main(["-n", "1", "--launcher", "kubernetes", "--dry-run", "true"]) == 2
    assert "expected --image" in capsys.readouterr().err
