"""Sockets of links: connecting, options, memory that both ends share, and the process at the other end."""

from __future__ import annotations

import os
import socket
import struct
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from .frame import ShareFn
from .handshake import HandshakeError, Steps
from .shared_memory import Arena, RemoteArena

BUFFER = 4 << 20  # bytes that the system may hold, each way
TICK = 1 / os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 0.01


def host_identity() -> str:
    """Identify this host: processes with equal identities can try a unix socket."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def connect_socket(address: dict[str, Any], timeout: float, tcp: bool = False) -> socket.socket:
    """Return a socket connected to the listener at `address`; with `tcp` never a unix socket.

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
    """Exchange arenas with the other end of a unix socket; returns how to share, and the remote arena.

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
        remote = RemoteArena(os.dup(fds[0]), struct.unpack("<i", answer)[0]) if fds else None
    finally:
        for fd in fds:
            os.close(fd)
    return None if arena is None or reader < 0 else partial(arena.share, reader=reader), remote


def set_socket_options(sock: socket.socket, timeout: float) -> None:
    """Set a connection's options: its buffers, small frames at once, and seconds until the system gives it up."""
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, BUFFER)
    if sock.family == socket.AF_UNIX:
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if timeout and hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(timeout * 1000))
    if hasattr(socket, "TCP_CONGESTION") and sock.getpeername()[0] == sock.getsockname()[0]:
        with suppress(OSError):  # on one host there is no path whose speed BBR could estimate: it halves the speed
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")


def peer_pid(sock: socket.socket) -> int:
    """Number of the other process at the end of a connection within this host; 0 where that is not known."""
    try:
        if sock.family == socket.AF_UNIX:
            found = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        else:
            found = _owner(_inode(sock))
    except (OSError, AttributeError, ValueError):  # it is gone, or this is not Linux
        return 0
    return 0 if found == os.getpid() else found


def thread_seconds(pid: int) -> dict[str, float]:
    """What each thread of a process of this host has used of a processor, in seconds; {} where that is not known.

    The system counts in ticks, `TICK` seconds each.
    """
    seconds: dict[str, float] = {}
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task") if pid else ():
            with suppress(OSError):  # it has ended
                fields = Path(f"/proc/{pid}/task/{thread}/stat").read_text().rpartition(")")[2].split()
                seconds[thread] = (int(fields[11]) + int(fields[12])) * TICK
    return seconds


def _inode(sock: socket.socket) -> str:
    """What the system calls the other end of a TCP connection; "" if that is not on this host."""
    own, peer = sock.getsockname(), sock.getpeername()
    if own[0] != peer[0]:
        return ""
    ends = [f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}" for host, port in (peer, own)]
    with open("/proc/net/tcp") as table:
        return next((fields[9] for fields in map(str.split, table) if fields[1:3] == ends), "")


def _owner(inode: str) -> int:
    """The first process that has a socket open; 0 for none that this user sees."""
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()) if inode else ():
        with suppress(OSError):  # it has ended, or is another user's
            for file in os.listdir(f"/proc/{pid}/fd"):
                with suppress(FileNotFoundError):
                    if os.readlink(f"/proc/{pid}/fd/{file}") == f"socket:[{inode}]":
                        return pid
    return 0


__all__ = [
    "TICK", "connect_socket", "exchange_shared_memory", "host_identity", "peer_pid", "set_socket_options",
    "thread_seconds",
]  # fmt: skip
