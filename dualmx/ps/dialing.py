"""How a connection begins, before anything is said: by which kind of socket, and what memory its ends share."""

from __future__ import annotations

import os
import socket
import struct
from functools import partial
from pathlib import Path
from typing import Any

from .frame import ShareFn
from .secret import HandshakeError, Steps
from .shared import Arena, RemoteArena


def host_identity() -> str:
    """Tells hosts apart: processes with the same one can try a unix socket."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def connect_socket(address: dict[str, Any], timeout: float, tcp: bool = False) -> socket.socket:
    """Return a socket that is connected to whoever listens at `address`; with `tcp` no unix socket.

    Raises:
        OSError: there is no way, or nobody listens.
    """
    if address.get("unix") and not tcp and address.get("boot") == host_identity():
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.settimeout(timeout)
            sock.connect("\0" + str(address["unix"]))
            return sock
        except BlockingIOError:
            sock.close()
            raise  # it has too many connections to accept at the moment
        except OSError:
            sock.close()  # the same machine in another network namespace: TCP still reaches it
    sock = socket.create_connection((str(address["host"]), int(address["port"])), min(timeout, 5.0))
    if sock.getsockname() == sock.getpeername():
        sock.close()  # where nobody listens, the system may choose that very port for this end: it has met itself
        raise ConnectionRefusedError("nobody listens there")
    return sock


def exchange_shared_memory(
    sock: socket.socket, arena: Arena | None
) -> Steps[tuple[ShareFn | None, RemoteArena | None]]:
    """Exchange memory with the other end of a unix socket; returns how to lend, and what is lent.

    Args:
        sock: the connection, which does not block.
        arena: what this end shares, None for nothing.

    Raises:
        HandshakeError: the other end says something else. OSError: the connection broke.
    """
    if sock.family != socket.AF_UNIX:
        return None, None
    reader = arena.reader() if arena is not None else -1
    offer = struct.pack("<i", reader)
    if arena is not None and reader >= 0:
        socket.send_fds(sock, [offer], [arena.fd])
    else:
        sock.sendall(offer)
    while True:
        try:
            answer, fds, _, _ = socket.recv_fds(sock, 4, 1)
            break
        except (BlockingIOError, InterruptedError):
            yield
    try:
        if len(answer) != 4 or (struct.unpack("<i", answer)[0] >= 0) != (len(fds) == 1):
            raise HandshakeError("the other end did not say what memory it shares")
        loans = RemoteArena(os.dup(fds[0]), struct.unpack("<i", answer)[0]) if fds else None
    finally:
        for fd in fds:
            os.close(fd)
    return None if arena is None or reader < 0 else partial(arena.share, reader=reader), loans


__all__ = ["connect_socket", "exchange_shared_memory", "host_identity"]
