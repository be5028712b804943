"""What the system tells of the process at the other end of a connection, if it is on this host and of this user."""

from __future__ import annotations

import os
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path


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


def cpu_ticks(pid: int) -> int:
    """What a process of this host has used of processors, in ticks of the system; 0 where that is not known."""
    if not pid:
        return 0
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


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


__all__ = ["cpu_ticks", "peer_pid"]
