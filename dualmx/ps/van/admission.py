"""Handshakes of accepted connections, all on one thread, none waiting for another.

A member says hello at once. When there are too many unfinished handshakes, the oldest silent connection is closed, then
the oldest of those that stopped in the middle. While all are quick, the listeners pause instead, and new connections
stay in the system's backlog. A member whose connection was closed tries again.
"""

from __future__ import annotations

import errno
import logging
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from ...core.errors import MXNetError
from ...core.open_files import limit, remedy
from .handshake import Steps

SECONDS = 5.0  # that a connection may be silent, and that its handshake may take
TIMEOUT_SECONDS = 0.25  # seconds that a handshake may take while others wait for theirs
MOST = 1024  # connections that may wait
BACKLOG = 4096
BATCH = 64  # connections that are accepted in a row
PAUSE = 0.05  # seconds
QUIET = 60.0  # seconds between two lines in the log about connections that were refused
_SCARCE = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_log = logging.getLogger("dualmx.dist")


class Pending:
    """A connection in its handshake.

    Attributes:
        sock: the connection.
        origin: who has connected, for people.
        steps: what is left of the handshake.
        since: when it was accepted, or has spoken first.
    """

    __slots__ = ("origin", "since", "sock", "steps")

    def __init__(self, sock: socket.socket, origin: str, steps: Steps[object]):
        self.sock, self.origin, self.steps, self.since = sock, origin, steps, time.monotonic()


class Admission:
    """Accepts connections and runs their handshakes on its own thread.

    Args:
        begin: returns the handshake of a socket; when it returns, the socket belongs to others.

    Attributes:
        refused: the last reasons for which handshakes have failed.
    """

    def __init__(self, begin: Callable[[socket.socket], Steps[object]]):
        self._begin = begin
        self.refused: list[str] = []
        self._selector = selectors.DefaultSelector()
        self._listeners: list[socket.socket] = []
        self._ends: tuple[socket.socket, ...] = ()
        self._silent: dict[Pending, None] = {}  # the oldest first
        self._speaking: dict[Pending, None] = {}  # likewise
        self._most = MOST
        self._resume = 0.0  # when paused listeners go on
        self._thread: threading.Thread | None = None
        self._closing = self._said_limit = False
        self._said, self._unsaid = -QUIET, 0

    def listen(self, sock: socket.socket) -> None:
        """Accept what connects to a socket that listens."""
        sock.setblocking(False)
        self._listeners.append(sock)
        self._selector.register(sock, selectors.EVENT_READ, self._accept)
        if self._thread is None:
            self._most = min(MOST, max(limit() // 4, 16))  # others of this process need files, too
            self._ends = socket.socketpair()
            self._selector.register(self._ends[0], selectors.EVENT_READ, lambda end: None)
            self._thread = threading.Thread(target=self._run, name="dualmx-admission", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Close the listeners, and all connections in their handshake."""
        self._closing = True
        if self._thread is not None:
            self._ends[1].send(b"!")
            self._thread.join(5.0)
        self.release()

    def release(self) -> None:
        """Close the sockets alone, for a child process, which has no such thread."""
        for sock in (*self._listeners, *self._ends, *(p.sock for p in (*self._silent, *self._speaking))):
            sock.close()
        self._selector.close()

    def _run(self) -> None:
        while not self._closing:
            for key, _ in self._selector.select(self._wait()):
                if isinstance(key.data, Pending):
                    self._go_on(key.data)
                else:
                    key.data(key.fileobj)
            self._watch(time.monotonic())

    def _wait(self) -> float | None:
        """Return the seconds until the next deadline."""
        ends = [next(iter(some)).since + SECONDS for some in (self._silent, self._speaking) if some]
        ends += [self._resume] if self._resume else []
        return max(min(ends) - time.monotonic(), 0.0) + 0.001 if ends else None

    def _accept(self, listener: socket.socket) -> None:
        """Accept some of the pending connections."""
        for _ in range(BATCH):
            if len(self._silent) + len(self._speaking) >= self._most and not self._evict():
                self._pause()
                return
            try:
                sock, address = listener.accept()
            except OSError as e:
                if e.errno in _SCARCE:
                    self._say_limit(e)
                    if not self._evict():
                        self._pause()
                return
            sock.setblocking(False)
            origin = f"{address[0]}:{address[1]}" if isinstance(address, tuple) else "a process of this host"
            pending = Pending(sock, origin, self._begin(sock))
            self._silent[pending] = None
            self._selector.register(sock, selectors.EVENT_READ, pending)

    def _go_on(self, pending: Pending) -> None:
        """One has spoken, or closed."""
        if pending in self._silent:
            self._has_spoken(pending)
        elif pending not in self._speaking:
            return  # it was closed since the selector told of it
        try:
            next(pending.steps)
        except StopIteration:
            self._forget(pending)
        except (MXNetError, OSError) as e:
            self._end(pending, e.strerror or str(e) if isinstance(e, OSError) else str(e), isinstance(e, MXNetError))
        except Exception as e:  # this thread must go on, as nobody gets in without it
            _log.exception("a handshake could not be done")
            self._end(pending, f"{type(e).__name__}: {e}")

    def _has_spoken(self, pending: Pending) -> None:
        del self._silent[pending]
        self._speaking[pending] = None
        pending.since = time.monotonic()

    def _forget(self, pending: Pending) -> None:
        self._silent.pop(pending, None)
        self._speaking.pop(pending, None)
        with suppress(KeyError, ValueError):  # its new owner has closed it
            self._selector.unregister(pending.sock)

    def _end(self, pending: Pending, reason: str, wrong: bool = False) -> None:
        """Refuse a connection; `wrong`: it has failed to prove itself."""
        self._forget(pending)
        pending.sock.close()
        if wrong:
            self._warn(f"{pending.origin}: {reason}")
        self.refused = [*self.refused[-99:], f"{pending.origin}: {reason}"]

    def _warn(self, text: str) -> None:
        """Log a refused connection, at intervals."""
        now = time.monotonic()
        if now - self._said < QUIET:
            self._unsaid += 1
            return
        others = f" (and {self._unsaid} others before)" if self._unsaid else ""
        _log.warning("refused a connection of %s%s", text, others)
        self._said, self._unsaid = now, 0

    def _evict(self) -> bool:
        """Make room for another one; False if all are quick."""
        while self._silent:
            oldest = next(iter(self._silent))
            with suppress(OSError):
                if oldest.sock.recv(1, socket.MSG_PEEK):
                    self._has_spoken(oldest)
                    continue
            self._end(oldest, "said nothing, and others wait")
            return True
        oldest = next(iter(self._speaking), None)
        if oldest is None or time.monotonic() - oldest.since < TIMEOUT_SECONDS:
            return False
        self._end(oldest, "did not finish its handshake, and others wait")
        return True

    def _watch(self, now: float) -> None:
        """Close connections that take too long; resume accepting after a pause."""
        for some in (self._silent, self._speaking):
            while some and (oldest := next(iter(some))).since + SECONDS < now:
                self._end(oldest, f"did not finish its handshake within {SECONDS:g} s")
        if self._resume and now >= self._resume:
            self._resume = 0.0
            for listener in self._listeners:
                with suppress(KeyError):  # it was not paused
                    self._selector.register(listener, selectors.EVENT_READ, self._accept)

    def _pause(self) -> None:
        """Stop accepting: new connections stay in the backlog, which a selector would report without end."""
        self._resume = time.monotonic() + PAUSE
        for listener in self._listeners:
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


__all__ = ["BACKLOG", "SECONDS", "Admission"]
