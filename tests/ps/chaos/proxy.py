"""A TCP proxy between the members of a job, which severs, resets, delays and corrupts connections on request."""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
import time

_RESET = struct.pack("ii", 1, 0)  # linger for no time: closing resets


class Way:
    """One direction of a connection.

    Attributes:
        source, sink: where bytes come from and go to.
        pending: bytes that are not forwarded yet.
        until: nothing is forwarded before.
        corrupts: the next bytes are damaged.
    """

    def __init__(self, source: socket.socket, sink: socket.socket):
        self.source, self.sink = source, sink
        self.pending = bytearray()
        self.until = 0.0
        self.corrupts = False
        self.ended = False


class Proxy:
    """Listens for members and forwards to where they really listen.

    Args:
        host: address that it listens at. source: address that it connects from, so that no end takes it for a member.
    """

    def __init__(self, host: str, source: str):
        self._host, self._source = host, source
        self._selector = selectors.DefaultSelector()
        self._pairs: dict[str, list[tuple[Way, Way]]] = {}
        self._listeners: list[socket.socket] = []
        self._lock = threading.Lock()
        self._over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def listen(self, name: str, port: int, target: int) -> None:
        """Forward what comes to `port` to the port `target`."""
        listener = socket.create_server((self._host, port), backlog=64)
        listener.setblocking(False)
        with self._lock:
            self._pairs[name] = []
            self._listeners.append(listener)
            self._selector.register(listener, selectors.EVENT_READ, (name, target))

    def harm(self, kind: str, name: str, pick: int, seconds: float) -> bool:
        """Do harm to one of the connections to a member; False if there is none."""
        with self._lock:
            pairs = self._pairs.get(name, [])
            if not pairs:
                return False
            pair = pairs[pick % len(pairs)]
            way = pair[pick // 8 % 2]
            if kind == "delay":
                for one in pair if pick % 3 == 0 else (way,):
                    one.until = time.monotonic() + seconds
            elif kind == "corrupt":
                way.corrupts = True
            else:
                self._cut(name, pair, kind == "reset")
            return True

    def _cut(self, name: str, pair: tuple[Way, Way], reset: bool) -> None:
        if pair in self._pairs[name]:
            self._pairs[name].remove(pair)
        for way in pair:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(way.source)
            if reset:
                with contextlib.suppress(OSError):
                    way.source.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            way.source.close()

    def _accept(self, listener: socket.socket, name: str, target: int) -> None:
        try:
            near, _ = listener.accept()
        except OSError:
            return
        try:
            far = socket.create_connection((self._host, target), 1.0, (self._source, 0))
        except OSError:
            near.close()  # what the system says of a port where nobody listens looks like this through a proxy
            return
        for sock in (near, far):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setblocking(False)
        pair = Way(near, far), Way(far, near)
        self._pairs[name].append(pair)
        for way in pair:
            self._selector.register(way.source, selectors.EVENT_READ, (name, pair, way))

    def _move(self, name: str, pair: tuple[Way, Way], way: Way) -> None:
        """Read what has come, and forward what may be."""
        try:
            if len(way.pending) < 1 << 20 and not way.ended:
                with contextlib.suppress(BlockingIOError):
                    data = way.source.recv(1 << 16)
                    if not data:
                        way.ended = True
                        self._selector.unregister(way.source)
                    way.pending += data
            if way.pending and way.until <= time.monotonic():
                if way.corrupts:
                    way.corrupts = False
                    way.pending[len(way.pending) // 2] ^= 0x10
                with contextlib.suppress(BlockingIOError):
                    del way.pending[: way.sink.send(way.pending)]
            if way.ended and not way.pending:
                way.sink.shutdown(socket.SHUT_WR)
                if all(w.ended and not w.pending for w in pair):
                    self._cut(name, pair, reset=False)
        except OSError:
            self._cut(name, pair, reset=True)

    def _run(self) -> None:
        while not self._over:
            ready = self._selector.select(0.005)
            with self._lock:
                for key, _ in ready:
                    if len(key.data) == 2:
                        self._accept(key.fileobj, *key.data)  # type: ignore[arg-type]
                    elif key.data[1] in self._pairs[key.data[0]]:
                        self._move(*key.data)
                for name, pairs in self._pairs.items():
                    for pair in list(pairs):
                        for way in pair:
                            if (way.pending or way.ended) and pair in self._pairs[name]:
                                self._move(name, pair, way)

    def close(self) -> None:
        """End it with all connections."""
        self._over = True
        self._thread.join()
        for name, pairs in self._pairs.items():
            for pair in list(pairs):
                self._cut(name, pair, reset=True)
        for listener in self._listeners:
            listener.close()
        self._selector.close()


__all__ = ["Proxy"]
