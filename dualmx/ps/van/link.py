"""A link: one connection of the van, with frames queued by priority and a decoder; liveness of a local peer process."""

from __future__ import annotations

import os
import selectors
import socket
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from .encryption import OVERHEAD, RECORD
from .frame import MOST_BUFFERS, Decoder, ShareFn, StreamedFrame, consume
from .handshake import HandshakeResult


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


MAX_COMMITTED = 256 << 10  # bytes of frames that are sent in their order, whatever comes
BUFFER = 4 << 20  # bytes that the system may hold, each way
WAKE_BYTES = 1 << 20  # bytes that are worth waking for, where more are to come


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


class Link:
    """A socket with what waits to be sent by it, and a decoder of what is received.

    Attributes:
        share: see `Arena.lend`, for this link's peer; None without shared memory.
        xxh3, tls: what both ends have agreed on.
        last_received, last_sent: when bytes came and were sent last. pulsed: when a sign of life was.
        low_watermark: bytes that the system waits for before it wakes this process.
        poll_events: events that the selector waits for.
        broken: why nothing can be sent any more.
    """

    def __init__(self, number: int, sock: socket.socket, met: HandshakeResult, lend: ShareFn | None, decoder: Decoder):
        self.number, self.sock, self.share, self.decoder = number, sock, lend, decoder
        self.xxh3, self.tls = met
        self._out: deque[memoryview] = deque()  # of frames that are begun
        self._late: StreamedFrame | None = None  # that is begun
        self._frames: deque[tuple[int | None, Sequence[memoryview] | StreamedFrame]] = deque()  # with their priorities
        self.lock = threading.Lock()
        self.low_watermark = 1
        self.last_received = self.last_sent = self.last_heartbeat = time.monotonic()
        self.poll_events = selectors.EVENT_READ
        self.broken = ""
        self._silent_process: tuple[int, int] | None = (
            None  # the process that is silent, and what it had computed by then
        )

    def seconds_dead(self, now: float, timeout: float) -> float:
        """For how long the other end was silent if it is dead or stopped, else 0.

        A process of this host that computes is alive: one long call holds Python's lock, so that it cannot send.
        """
        silence = now - self.last_received
        if silence <= timeout / 2:
            self._silent_process = None
        elif self._silent_process is None:
            process = peer_pid(self.sock)
            self._silent_process = process, cpu_ticks(process)
        elif silence > timeout:
            process, before = self._silent_process
            self._silent_process = process, cpu_ticks(process)
            if self._silent_process[1] <= before:
                return silence
            self.last_received = now - timeout / 2
        return 0.0

    def set_low_watermark(self, nbytes: int) -> None:
        """Wake when so many bytes have arrived, or `WAKE_BYTES`: each wake costs a thread switch.

        Unix sockets do not know this.
        """
        if self.tls is not None:
            nbytes -= RECORD + OVERHEAD  # so much of it may have come, of a record whose end is missing
        nbytes = max(1, min(nbytes, WAKE_BYTES))
        if nbytes != self.low_watermark and self.sock.family != socket.AF_UNIX:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, nbytes)
            self.low_watermark = nbytes

    @property
    def has_output(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._out or self._late or self._frames or (self.tls is not None and self.tls.unsent))

    def send_or_queue(self, frame: Sequence[memoryview] | StreamedFrame, priority: int | None) -> bool:
        """Send a frame, or what the socket accepts of it now; True when nothing is left. Lock held."""
        if self._out or self._late or self._frames:
            self.enqueue(frame, priority)
            return False
        if isinstance(frame, StreamedFrame) or self.tls is not None or len(frame) > 1:
            self.enqueue(frame, priority)
            return self.flush()
        (only,) = frame
        try:
            n = self.sock.send(only)
        except (BlockingIOError, InterruptedError):
            n = 0
        if n == only.nbytes:
            return True
        self._out.append(only[n:])
        return False

    def enqueue(self, frame: Sequence[memoryview] | StreamedFrame, priority: int | None) -> None:
        """Queue a frame before those at the end of lower priority that may be overtaken. Lock held."""
        frames = self._frames
        at = len(frames)
        while priority is not None and at and (before := frames[at - 1][0]) is not None and before < priority:
            at -= 1
        frames.insert(at, (priority, frame))

    def _begin(self) -> None:
        size = sum(b.nbytes for b in self._out)
        while self._frames and size < MAX_COMMITTED and self._late is None:
            _, frame = self._frames.popleft()
            if isinstance(frame, StreamedFrame):
                self._late = frame
                break
            self._out.extend(frame)
            size += sum(b.nbytes for b in frame)

    def flush(self) -> bool:
        """Send what the socket accepts; True when nothing is left. Lock held."""
        while self.has_output:
            if self._frames:
                self._begin()
            late = None if self._out else self._late
            some = late.next() if late else [self._out[i] for i in range(min(len(self._out), MOST_BUFFERS))]
            try:
                n = self.sock.sendmsg(some) if self.tls is None else self.tls.sendmsg(some)
            except (BlockingIOError, InterruptedError):
                return False
            if late is None:
                consume(self._out, n)
            elif late.sent(n):
                self._late = None
        return True


__all__ = ["Link", "cpu_ticks", "peer_pid", "set_socket_options"]
