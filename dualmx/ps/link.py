"""One connection of the van: bytes that wait to be sent, and a decoder for those that are received."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections import deque

from .frame import Decoder, Lend
from .secret import Met


class Link:
    """A socket with what waits to be sent by it, and a decoder of what is received.

    Attributes:
        lend: see `Arena.lend`, for this link's peer; None without shared memory.
        fast, sealed: what both ends have agreed on.
        heard, spoke: when bytes came and were sent last.
        watched: events that the selector waits for.
        broken: why nothing can be sent any more.
    """

    def __init__(self, number: int, sock: socket.socket, met: Met, lend: Lend | None, decoder: Decoder):
        self.number, self.sock, self.lend, self.decoder = number, sock, lend, decoder
        self.fast, self.sealed = met
        self.out: deque[memoryview] = deque()
        self.lock = threading.Lock()
        self.heard = self.spoke = time.monotonic()
        self.watched = selectors.EVENT_READ
        self.broken = ""

    def push(self) -> bool:
        """Send what the socket takes; True when nothing is left. Called with the lock held."""
        while self.out:
            some = [self.out[i] for i in range(min(len(self.out), 64))]
            try:
                n = self.sock.sendmsg(some)
            except (BlockingIOError, InterruptedError):
                return False
            while n:
                first = self.out[0]
                if n < first.nbytes:
                    self.out[0] = first[n:]
                    break
                n -= first.nbytes
                self.out.popleft()
        return True


__all__ = ["Link"]
