"""Job scripts for SGE, Kubernetes and YARN, and dry-run output."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import ArgumentError
from .guard import rank_env
from .plan import JobPlan, place_scheduler
from .process import JobMember, script_free
from .supervisor import LAUNCHERS, process_specs

_START_S = 600  # seconds that a task waits for the scheduler's start
_FOR_OTHERS = ("DUALMX_SECRET", "DMLC_NUM_ATTEMPT", "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT")
_PORT = 9091  # of the scheduler, where it has an address of its own


def _env(plan: JobPlan, role: str = "") -> dict[str, str]:
    """Variables of all processes or of a role, less those that are known when the job runs."""
    own = {name: os.environ[name] for name in plan.forwarded() if name in os.environ}
    env = {**own, **plan.job_env()} if not role else plan.role_env.get(role, {})
    return {k: v for k, v in env.items() if k not in _FOR_OTHERS}


def _exports(env: Mapping[str, str]) -> str:
    return "export " + " ".join(f"{k}={shlex.quote(v)}" for k, v in env.items()) if env else ":"


def _counts(plan: JobPlan) -> tuple[tuple[str, int], ...]:
    return ("scheduler", 1), ("server", plan.servers), ("worker", plan.workers)


def sge(plan: JobPlan) -> str:
    """A script for `qsub`: an array of tasks in a shared folder, the first of which is the scheduler."""
    total = 1 + plan.servers + plan.workers
    return f"""#!/bin/sh
#$ -S /bin/sh -cwd -j y -N dualmx -t 1-{total}
# Submit it by qsub, in a folder that all hosts share. All {total} tasks have to run at the same time.
set -eu
umask 077
cd {shlex.quote(plan.folder or os.getcwd())}
meet=.dualmx-$JOB_ID
{_exports(_env(plan))}
if [ "$SGE_TASK_ID" -eq 1 ]; then
    trap 'rm -f "$meet"' EXIT
    python3 > "$meet.new" <<'END'
import os, secrets, socket
with socket.socket() as s:
    s.bind(("", 0))
    port = s.getsockname()[1]
host = os.environ.get("DMLC_NODE_HOST") or socket.gethostname()
print(f"export DMLC_PS_ROOT_URI={{host}} DMLC_PS_ROOT_PORT={{port}} DUALMX_SECRET={{secrets.token_hex(32)}}")
END
    mv "$meet.new" "$meet"
    export DMLC_ROLE=scheduler DMLC_TASK_ID=0 DMLC_USE_KUBERNETES=1  # listens on all addresses
elif [ "$SGE_TASK_ID" -le {1 + plan.servers} ]; then
    export DMLC_ROLE=server DMLC_TASK_ID=$((SGE_TASK_ID - 2))
    {_exports(_env(plan, "server"))}
else
    export DMLC_ROLE=worker DMLC_TASK_ID=$((SGE_TASK_ID - {2 + plan.servers}))
    {_exports(_env(plan, "worker"))}
fi
waited=0
while [ ! -s "$meet" ]; do
    [ "$waited" -lt {_START_S} ] || {{ echo "task 1, the scheduler, did not start within {_START_S} s" >&2; exit 1; }}
    sleep 1
    waited=$((waited + 1))
done
. "./$meet"
{shlex.join(plan.command)}
"""


def kubernetes(plan: JobPlan, name: str = "dualmx") -> str:
    """A manifest for `kubectl create -f -`: a job for each role, and a name for the scheduler.

    Raises:
        ArgumentError: no image.
    """
    if not plan.image:
        raise ArgumentError(
            "--launcher kubernetes: expected --image NAME, in which the program and dualmx are installed"
        )

    def variable(key: str, value: str) -> dict[str, Any]:
        return {"name": key, "value": value}

    def job(role: str, count: int) -> dict[str, Any]:
        index = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
        env = {**_env(plan), **_env(plan, role), "DMLC_ROLE": role, "DMLC_USE_KUBERNETES": "1"}
        env |= {"DMLC_PS_ROOT_URI": f"{name}-scheduler", "DMLC_PS_ROOT_PORT": str(plan.port or _PORT)}
        rest: list[dict[str, Any]] = [
            {"name": "DMLC_TASK_ID", "valueFrom": {"fieldRef": {"fieldPath": index}}},
            {"name": "DUALMX_SECRET", "valueFrom": {"secretKeyRef": {"name": name, "key": "secret"}}},
        ]
        container = {
            "name": role, "image": plan.image, "command": list(plan.command),
            "env": [*(variable(k, v) for k, v in env.items()), *rest],
            **({"workingDir": plan.folder} if plan.folder else {}),
        }  # fmt: skip
        labels = {"app": name, "role": role}
        retries = plan.restarts if plan.policy.get(role) == "wait" else 0
        return {
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"{name}-{role}", "labels": labels},
            "spec": {
                "completions": count, "parallelism": count, "completionMode": "Indexed", "backoffLimit": retries,
                "template": {
                    "metadata": {"labels": labels}, "spec": {"restartPolicy": "Never", "containers": [container]},
                },
            },
        }  # fmt: skip

    service = {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": f"{name}-scheduler", "labels": {"app": name}},
        "spec": {"clusterIP": "None", "selector": {"app": name, "role": "scheduler"}},
    }  # fmt: skip
    jobs = [job(role, count) for role, count in _counts(plan) if count]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [service, *jobs]}, indent=2) + "\n"


def yarn(plan: JobPlan, name: str = "dualmx") -> str:
    """A specification for `yarn app -launch`: a service with a component for each role."""

    def component(role: str, count: int) -> dict[str, Any]:
        env = {**_env(plan), **_env(plan, role), "DMLC_ROLE": role, "DMLC_USE_KUBERNETES": "1"}
        env |= {"DMLC_PS_ROOT_URI": "scheduler-0.${SERVICE_NAME}.${USER}.${DOMAIN}"}
        env |= {"DMLC_PS_ROOT_PORT": str(plan.port or _PORT)}
        command = f"DMLC_TASK_ID=${{COMPONENT_ID}} DUALMX_SECRET=$(cat secret) {shlex.join(plan.command)}"
        secret = {"type": "STATIC", "dest_file": "secret", "src_file": f"hdfs:///user/${{USER}}/{name}-secret"}
        restart = "ON_FAILURE" if plan.policy.get(role) == "wait" else "NEVER"
        return {
            "name": role, "number_of_containers": count, "launch_command": command, "restart_policy": restart,
            "dependencies": [] if role == "scheduler" else ["scheduler"], "resource": {"cpus": 1, "memory": "4096"},
            "configuration": {"env": env, "files": [secret]},
        }  # fmt: skip

    components = [component(role, count) for role, count in _counts(plan) if count]
    return json.dumps({"name": name, "version": "1", "components": components}, indent=2) + "\n"


NEXT_STEPS = {
    "sge": "qsub JOB.sh",
    "kubernetes": (
        "kubectl create secret generic dualmx --from-literal=secret=$(openssl rand -hex 32) && "
        "kubectl create -f JOB.json"
    ),
    "yarn": (
        "(umask 077; openssl rand -hex 32 > dualmx-secret) && hdfs dfs -put dualmx-secret && "
        "yarn app -launch dualmx JOB.json"
    ),
}
NEXT_STEPS["k8s"] = NEXT_STEPS["kubernetes"]
SCRIPT_FORMATS = {"sge": sge, "kubernetes": kubernetes, "k8s": kubernetes, "yarn": yarn}


def commands(plan: JobPlan) -> str:
    """The commands that the launcher would run, one a line, with the variables that it sets; the secret is left out."""
    place_scheduler(plan)
    members: Sequence[JobMember] = [JobMember("scheduler", 0), *(JobMember(role, rank) for role, rank in plan.members)]
    lines = []
    for start in process_specs(plan, LAUNCHERS[plan.launcher], members):
        lines.append(f"# {', '.join(m.name for m in start.members)}")
        command = shlex.join(script_free(start.command))
        if not start.framed:
            new = {k: v for k, v in start.env.items() if os.environ.get(k) != v}
            lines.append(f"{_assignments(new)}{command}")
            continue
        lines += [command, f"#   there, in {plan.folder or os.getcwd()}:"]
        for m in start.members:
            own = {**plan.job_env(), **rank_env(m.role, m.rank), **plan.role_env.get(m.role, {})}
            lines.append(f"#   {_assignments(own)}{shlex.join(plan.command)}")
    return "\n".join(lines) + "\n"


def _assignments(env: Mapping[str, str]) -> str:
    return "".join(f"{k}={'…' if k == 'DUALMX_SECRET' else shlex.quote(v)} " for k, v in env.items())


__all__ = ["NEXT_STEPS", "SCRIPT_FORMATS", "commands", "kubernetes", "sge", "yarn"]
