"""Tests whose connections leave the loopback address: a thread, and all it starts, in a network of its own."""

from __future__ import annotations

import ctypes
import functools
import shutil
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

ADDRESS = "10.78.0.1"
_NEWNET = 0x40000000  # CLONE_NEWNET
_IP = shutil.which("ip", path="/usr/sbin:/sbin:/usr/bin:/bin")


def _enter() -> None:
    """Take this thread into a new network, where `ADDRESS` is an address of this host."""
    if not sys.platform.startswith("linux") or _IP is None:
        raise OSError("needs Linux and the program ip")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEWNET):
        raise OSError(ctypes.get_errno(), "cannot make a network namespace")
    for line in ("link set lo up", f"addr add {ADDRESS}/24 dev lo"):
        done = subprocess.run([_IP, *line.split()], capture_output=True, text=True)
        if done.returncode:
            raise OSError(f"ip {line}: {done.stderr.strip()}")


def _in_thread(work: Callable[[], Any]) -> Any:
    result: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as e:
            errors.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return result[0]


@functools.cache
def why_not() -> str:
    """Why there is no such network here; empty if there is."""
    try:
        _in_thread(_enter)
        return ""
    except OSError as e:
        return str(e)


def outside(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test in a network of its own."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        if why_not():
            pytest.skip(why_not())

        def work() -> None:
            _enter()
            test(**fixtures)

        _in_thread(work)

    return run


class Wire:
    """Passes a connection on to `port` of `ADDRESS`, and keeps what it sees.

    Args:
        port: where the connection goes.
        change: of a byte: called with the direction, `"there"` or `"back"`, and what came; returns what is passed on.

    Attributes:
        seen: bytes by direction.
        port: where to connect to.
    """

    def __init__(self, port: int, change: Callable[[str, bytes], bytes] = lambda way, data: data):
        self._target, self._change = port, change
        self.seen = {"there": b"", "back": b""}
        self._listener = socket.create_server((ADDRESS, 0))
        self.port = self._listener.getsockname()[1]
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near = self._listener.accept()[0]
            except OSError:
                return
            far = socket.create_connection((ADDRESS, self._target))
            self._ends += [near, far]
            for way, source, sink in (("there", near, far), ("back", far, near)):
                threading.Thread(target=self._pass, args=(way, source, sink), daemon=True).start()

    def _pass(self, way: str, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                self.seen[way] += data
                sink.sendall(self._change(way, data))
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self) -> None:
        """End all connections."""
        for sock in (self._listener, *self._ends):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()


def records(data: bytes) -> list[int]:
    """The types of the TLS records that `data` consists of; AssertionError if it is anything else."""
    found = []
    while data:
        kind, version, size = struct.unpack(">BHH", data[:5])
        assert kind in (20, 21, 22, 23) and version in (0x0301, 0x0303) and size <= (16 << 10) + 256, data[:16]
        assert len(data) >= 5 + size, "a part of a record"
        found.append(kind)
        data = data[5 + size :]
    return found


__all__ = ["ADDRESS", "Wire", "outside", "records", "why_not"]
