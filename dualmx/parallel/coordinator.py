"""Starting the service by which XLA's processes meet, and staying in touch with it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from ..core.errors import MXNetError
from ..core.knobs import HEARTBEAT_TIMEOUT

SCRIPT = Path(__file__).with_name("meeting_place.py")
_started: list[subprocess.Popen[str]] = []
_connections: list[socket.socket] = []


def heartbeat_seconds() -> int:
    """Seconds without a sign of life after which XLA gives a process up; dualmx is quicker."""
    return max(10, 2 * HEARTBEAT_TIMEOUT.integer())


def start_service(host: str, seen: str, count: int) -> str:
    """Start the service for `count` processes in a process of its own; returns `seen:port:control`.

    Args:
        host: address to listen on.
        seen: address of this host as the others reach it.
        count: of processes.

    Raises:
        MXNetError: it does not start.
    """
    with socket.socket() as s:
        s.bind((host, 0))
        port = s.getsockname()[1]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("DMLC_", "JAX_"))}
    command = [sys.executable, str(SCRIPT), host, str(port), str(count), str(heartbeat_seconds())]
    # What ends this process must not end the service, which the others may still need.
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env,
        start_new_session=True,
    )  # fmt: skip
    assert child.stdout is not None
    control = child.stdout.readline().strip()
    if not control.isdigit():
        raise MXNetError(f"the service by which XLA's processes meet did not start on {host}:{port}")
    _started.append(child)
    return f"{seen}:{port}:{control}"


def keep_connection(address: str) -> str:
    """Connect to a service for as long as this process lives; returns `host:port` for XLA.

    Raises:
        MXNetError: it cannot be reached.
    """
    host, port, control = address.rsplit(":", 2)
    try:
        _connections.append(socket.create_connection((host, int(control)), 10.0))
    except (OSError, ValueError) as e:
        raise MXNetError(f"parallel.init: the coordinator at {address} cannot be reached: {e}") from None
    return f"{host}:{port}"


__all__ = ["heartbeat_seconds", "keep_connection", "start_service"]
