"""Job plan: the processes of a job, and the environment of each."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..core.errors import ArgumentError
from ..core.knobs import INTERFACE, KNOBS
from ..core.net import address_of, free_port, is_loopback, route_to
from .guard import defaults, rank_env
from .hostfile import Host

# The launcher decides these, or they belong to one host.
_OWN = {
    "DMLC_ROLE", "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "DMLC_NUM_WORKER", "DMLC_NUM_SERVER", "DMLC_TASK_ID",
    "DMLC_NODE_HOST", "DMLC_NUM_ATTEMPT", "DMLC_SUBMIT_CLUSTER", "DUALMX_SECRET", "PORT",
}  # fmt: skip
_ALSO_FORWARDED = ("OMP_NUM_THREADS", "KMP_AFFINITY", "LD_LIBRARY_PATH", "GLIBC_TUNABLES")


@dataclass
class JobPlan:
    """What is started.

    Attributes:
        command: the program and its arguments.
        workers, servers: how many of each.
        env: added to the environment of all, `role_env` to those of a role.
        launcher: its name.
        hosts: where processes are started; empty: this host, or wherever the launcher's system puts them.
        folder: where the command runs on other hosts; empty: in the same folder as here.
        program: called instead of `ssh`, `mpirun` or `srun`.
        uri, port: of the scheduler; empty and 0: found out.
        policy: what happens when a worker or a server dies: fail, wait, continue.
        restarts: how many processes that died are started again, where the policy is to wait.
        image: of the containers, where there are any.
    """

    command: Sequence[str]
    workers: int
    servers: int
    env: Mapping[str, str] = field(default_factory=dict)
    role_env: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    launcher: str = "local"
    hosts: Sequence[Host] = ()
    folder: str = ""
    program: Sequence[str] = ()
    uri: str = ""
    port: int = 0
    policy: Mapping[str, str] = field(default_factory=dict)
    restarts: int = 0
    image: str = ""

    @property
    def members(self) -> list[tuple[str, int]]:
        """(role, rank) of all servers and workers."""
        return [("server", i) for i in range(self.servers)] + [("worker", i) for i in range(self.workers)]

    def job_env(self) -> dict[str, str]:
        """Return the environment that all processes of the job share."""
        return {
            "DMLC_PS_ROOT_URI": self.uri,
            "DMLC_PS_ROOT_PORT": str(self.port),
            "DMLC_NUM_WORKER": str(self.workers),
            "DMLC_NUM_SERVER": str(self.servers),
            "DMLC_JOB_CLUSTER": self.launcher,
            "PYTHONUNBUFFERED": "1",
            **self.env,
        }

    def env_here(self, role: str, rank: int) -> dict[str, str]:
        """Return the complete environment of a process on this host."""
        inherited = {k: v for k, v in os.environ.items() if k != "PORT"}  # one port would not do for all servers
        inherited = {**defaults(), **inherited}
        host = {"DMLC_NODE_HOST": self.uri} if is_loopback(self.uri) else {}
        return {**inherited, **host, **self.job_env(), **rank_env(role, rank), **self.role_env.get(role, {})}

    @staticmethod
    def forwarded() -> list[str]:
        """Variables that other hosts get if they are set here."""
        return [k.name for k in KNOBS if k.name not in _OWN] + list(_ALSO_FORWARDED)

    def tasks(self, ranks: Sequence[tuple[str, int]]) -> str:
        """Description of processes, as one line of JSON, for the agents that start them on other hosts."""
        own = {name: os.environ[name] for name in self.forwarded() if name in os.environ}
        return json.dumps(
            {
                "command": list(self.command),
                "folder": self.folder or os.getcwd(),
                "env": {**own, **self.job_env()},
                "roles": {role: dict(env) for role, env in self.role_env.items()},
                "ranks": [list(rank) for rank in ranks],
            }
        )


def _own_address(plan: JobPlan) -> str:
    """Address of this host for the others."""
    local = plan.launcher == "local"
    interface = plan.env.get(INTERFACE.name) or ("" if local else INTERFACE.read())
    if interface:
        return address_of(interface)
    if local:
        return "127.0.0.1"
    routes = [r for r in (route_to(h.address) for h in plan.hosts) if r] or [route_to()]
    others = [h.address for h in plan.hosts if not is_loopback(h.address)]
    found = next((r for r in routes if r and not is_loopback(r)), "")
    if others and not found:
        raise ArgumentError(f"no address of this host is known by which {others[0]} reaches it; give it by --host-ip")
    return found or "127.0.0.1"


def place_scheduler(plan: JobPlan) -> None:
    """Fill in the address and port of the scheduler, which runs on this host.

    Raises:
        ArgumentError: the port is taken, the address is none of this host's, or none is found.
    """
    plan.uri = plan.uri or _own_address(plan)
    try:
        if not plan.port:
            plan.port = free_port(plan.uri)
            return
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind((plan.uri, plan.port))
    except OSError as e:
        raise ArgumentError(
            f"the scheduler cannot listen on {plan.uri}:{plan.port or 'any port'}: {e.strerror or e}; "
            + ("take another --port, or none" if plan.port else "give an address of this host by --host-ip")
        ) from None


__all__ = ["JobPlan", "place_scheduler"]
