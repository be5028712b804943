"""A process that has imported dualmx and forks the members of jobs, so that each saves the time of imports."""

from __future__ import annotations

import gc
import importlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]


class Zygote:
    """The end of the one who asks it for processes.

    Attributes:
        ended: exit status by process id, negative for a signal.
    """

    def __init__(self) -> None:
        self._sock, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        env = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(other.fileno())], env=env, cwd=ROOT, pass_fds=[other.fileno()]
        )
        other.close()
        self.ended: dict[int, int] = {}

    def start(self, env: dict[str, str], out: Path, argv: list[str], patches: list[str]) -> int:
        """Fork a member of a job; returns its process id."""
        self._sock.send(json.dumps({"env": env, "out": str(out), "argv": argv, "patches": patches}).encode())
        while True:
            news = self._receive(self._sock.recv(1 << 16))
            if "started" in news:
                return news["started"]

    def _receive(self, raw: bytes) -> dict[str, Any]:
        if not raw:
            raise RuntimeError("the zygote died")
        news = json.loads(raw)
        if "ended" in news:
            self.ended[news["ended"]] = news["status"]
        return news

    def poll(self) -> None:
        """Learn of the processes that have ended."""
        while True:
            try:
                self._receive(self._sock.recv(1 << 16, socket.MSG_DONTWAIT))
            except BlockingIOError:
                return

    def close(self) -> None:
        """End it."""
        self._sock.close()
        self._process.kill()
        self._process.wait()


def _fork(sock: socket.socket) -> dict[str, Any]:
    """Serve until the other end is closed; returns only in the forked processes, with what they are to be."""
    sock.settimeout(0.005)
    alive: set[int] = set()
    while True:
        try:
            raw = sock.recv(1 << 16)
            if not raw:
                os._exit(0)
        except TimeoutError:
            raw = b""
        if raw:
            pid = os.fork()
            if pid == 0:
                sock.close()
                return json.loads(raw)
            alive.add(pid)
            sock.send(json.dumps({"started": pid}).encode())
        while alive:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            alive.discard(pid)
            sock.send(json.dumps({"ended": pid, "status": os.waitstatus_to_exitcode(status)}).encode())


def _become(order: dict[str, Any]) -> None:
    os.setsid()
    out = os.open(order["out"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.close(out)
    os.environ.clear()
    os.environ.update(order["env"])
    sys.argv = order["argv"]


if __name__ == "__main__":
    import dualmx as mx
    from tests.ps.chaos import job, patches

    for name in ("dist", "server_updates", "mixed"):
        importlib.import_module(f"dualmx.kvstore.{name}")
    asked = socket.socket(fileno=int(sys.argv[1]))
    gc.collect()
    gc.freeze()
    order = _fork(asked)
    _become(order)
    for patch in order["patches"]:
        patches.apply(patch)
    mx.kvstore.kvstore_server.init_kvstore_server_module()
    job.run()
