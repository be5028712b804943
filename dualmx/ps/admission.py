"""Connections whose handshake is not over: they wait without a thread until they speak, and few shake hands at once.

A member of the job says its hello at once, proves itself at once, and tries again when it was not answered. So the
newest are answered first, and when too many wait, the oldest is closed: of those that said nothing, if there are any.
However many there are that never finish their handshake, one that does has its turn soon.
"""

from __future__ import annotations

import errno
import logging
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from ..core.open_files import limit, remedy

SECONDS = 5.0  # that a connection may be silent, and that its handshake may take
SHORT = 1.5  # seconds that a handshake may take while others wait for theirs
HANDSHAKES = 128  # at once, each on a thread
MOST = 1024  # connections that may wait
BACKLOG = 4096  # connections that the system keeps until they are accepted
BATCH = 64  # connections that are accepted in a row
PAUSE = 0.25  # seconds
_SCARCE = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_log = logging.getLogger("dualmx.dist")


class Pending:
    """A connection that has not spoken yet; it is closed at the monotonic time `until`."""

    __slots__ = ("sock", "until")

    def __init__(self, sock: socket.socket, until: float):
        self.sock, self.until = sock, until


class Admission:
    """Accepts connections and lets them shake hands, for a van; its methods are called on the van's thread.

    Args:
        selector: that the van waits by; listeners are registered with themselves as data, and `Pending` likewise.
        shake: does the handshake of a socket within `SECONDS`, raises nothing; called on other threads.

    Attributes:
        listeners: sockets that listen.
    """

    def __init__(self, selector: selectors.BaseSelector, shake: Callable[[socket.socket], None]):
        self._selector, self._shake = selector, shake
        self.listeners: list[socket.socket] = []
        self._silent: dict[Pending, None] = {}  # the oldest first
        self._spoke: deque[socket.socket] = deque()
        self._shaking: dict[socket.socket, float] = {}  # since when
        self._threads = 0
        self._lock = threading.Lock()
        self._resume = 0.0  # when paused listeners go on
        self._said_limit = False

    def listen(self, sock: socket.socket) -> None:
        """Accept what connects to a socket that listens."""
        sock.setblocking(False)
        self.listeners.append(sock)
        self._selector.register(sock, selectors.EVENT_READ, sock)

    def accept(self, listener: socket.socket) -> None:
        """Accept some of those who have connected."""
        for _ in range(BATCH):
            if len(self._silent) + len(self._spoke) >= MOST:
                self._close_oldest()
            try:
                sock, _ = listener.accept()
            except OSError as e:
                if e.errno in _SCARCE:
                    self._say_limit(e)
                    if not self._close_oldest():
                        self._pause()
                return
            sock.setblocking(False)
            pending = Pending(sock, time.monotonic() + SECONDS)
            self._silent[pending] = None
            self._selector.register(sock, selectors.EVENT_READ, pending)

    def hear(self, pending: Pending) -> None:
        """One that was silent has spoken, or closed."""
        if pending in self._silent:  # else it was closed since the selector told of it
            self._forget(pending)
            self._hear(pending.sock)
            self._work()

    def _hear(self, sock: socket.socket) -> bool:
        """Whether a connection has spoken, which then waits for its handshake; else it is closed."""
        try:
            if sock.recv(1, socket.MSG_PEEK):
                self._spoke.append(sock)
                return True
        except OSError:
            pass
        sock.close()
        return False

    def watch(self, now: float) -> None:
        """Close those who are silent for too long; go on accepting after a pause."""
        while self._silent and (oldest := next(iter(self._silent))).until < now:
            self._forget(oldest)
            oldest.sock.close()
        self._work()
        if self._spoke:
            self._end_slow(now - SHORT)
        if self._resume and now >= self._resume:
            self._resume = 0.0
            for listener in self.listeners:
                with suppress(KeyError):  # it was not paused
                    self._selector.register(listener, selectors.EVENT_READ, listener)

    def close(self) -> None:
        """Close the listeners, and all that wait."""
        for sock in (*self.listeners, *(p.sock for p in self._silent), *list(self._spoke)):
            sock.close()
        self._silent.clear()
        self._spoke.clear()

    def _forget(self, pending: Pending) -> None:
        del self._silent[pending]
        self._selector.unregister(pending.sock)

    def _close_oldest(self) -> bool:
        """Make room for another one; False if none waits."""
        while self._silent:
            oldest = next(iter(self._silent))
            self._forget(oldest)
            if not self._hear(oldest.sock):
                return True
        with self._lock:
            sock = self._spoke.popleft() if self._spoke else None
        if sock is not None:
            sock.close()
        return sock is not None

    def _end_slow(self, before: float) -> None:
        """End handshakes that began too long ago, for those that wait."""
        with self._lock:
            for sock in [sock for sock, since in self._shaking.items() if since < before]:
                with suppress(OSError):  # it has just ended by itself
                    sock.shutdown(socket.SHUT_RDWR)

    def _pause(self) -> None:
        """Leave in the backlog what comes: a selector would tell of it without end."""
        self._resume = time.monotonic() + PAUSE
        for listener in self.listeners:
            with suppress(KeyError):  # it is paused already
                self._selector.unregister(listener)

    def _say_limit(self, e: OSError) -> None:
        if not self._said_limit:
            self._said_limit = True
            _log.error(
                "cannot accept connections: %s; at most %d files can be open in this process, and each member of the "
                "job that connects to it needs up to two of them. %s; until then others wait to be accepted",
                e.strerror, limit(), remedy(),
            )  # fmt: skip

    def _work(self) -> None:
        """Let another thread shake hands, if there are any to be shaken."""
        with self._lock:
            if not self._spoke or self._threads >= HANDSHAKES:
                return
            self._threads += 1
        try:
            threading.Thread(target=self._shake_all, name="dualmx-handshake", daemon=True).start()
        except RuntimeError:  # there are too many threads; `watch` tries later
            with self._lock:
                self._threads -= 1

    def _shake_all(self) -> None:
        while True:
            with self._lock:
                if not self._spoke:
                    self._threads -= 1
                    return
                sock = self._spoke.pop()
                self._shaking[sock] = time.monotonic()
            self._shake(sock)
            with self._lock:
                del self._shaking[sock]


__all__ = ["BACKLOG", "SECONDS", "Admission", "Pending"]
