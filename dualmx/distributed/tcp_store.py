"""A store that one process keeps, and others reach by the links of parameter servers: who has the job's secret."""

from __future__ import annotations

import atexit
import time
import weakref
from collections.abc import Sequence
from typing import Any

from ..core.errors import ArgumentError, MXNetError
from ..ps import Job
from ..ps.customer import Customer, Peer
from ..ps.frame import ERROR, REPLY, REQUEST, Message
from ..ps.van import Van
from .stores import TIMEOUT, Store, apply_op, seconds_of

LOCAL = "init/"  # the key that counts those who have come
_vans: weakref.WeakSet[Van] = weakref.WeakSet()  # of stores in use


@atexit.register
def _close_vans() -> None:
    for van in list(_vans):
        van.close()


def _close_with(store: TCPStore, van: Van) -> None:
    """Close `van` when `store` is dropped, or at the exit of the process, which waits until all is sent."""
    _vans.add(van)
    weakref.finalize(store, van.begin_to_close)


class _StoreServer:
    """Keeps the table; everything happens on the van's thread.

    Args:
        van: carries the messages.
    """

    def __init__(self, van: Van):
        self._van = van
        self._table: dict[str, bytes] = {}
        self._waiting: list[tuple[int, int, list[str], float]] = []  # link, request, keys, until when
        van.on_message, van.on_down = self._on_message, self._on_down

    def _on_message(self, link: int, message: Message) -> None:
        if message.kind != REQUEST:
            return
        try:
            self._serve(link, message)
        except MXNetError as e:
            self._van.send(link, Message(ERROR, message.request, {"text": str(e)}))

    def _serve(self, link: int, message: Message) -> None:
        op = message.field("op", str)
        if op == "keys":
            self._van.send(link, Message(REPLY, message.request, {"keys": list(self._table)}))
        elif op == "values":
            keys = [str(k) for k in message.field("keys", list)]
            self._waiting.append(
                (link, message.request, keys, time.monotonic() + message.field("seconds", (int, float)))
            )
            self._answer()
        else:
            data, n = bytes(message.data()), message.field("n", int)
            found = apply_op(self._table, op, message.field("key", str), data[:n], data[n:])
            self._van.send(link, Message(REPLY, message.request, {}, [found] if found else ()))
            self._answer()

    def _answer(self) -> None:
        """Tell those who wait for keys that are there, and forget those who wait no more."""
        now, left = time.monotonic(), []
        for link, request, keys, until in self._waiting:
            if all(k in self._table for k in keys):
                found = [self._table[k] for k in keys]
                whole = b"".join(found)
                meta = {"sizes": [len(v) for v in found]}
                self._van.send(link, Message(REPLY, request, meta, [whole] if whole else ()))
            elif now < until:
                left.append((link, request, keys, until))
        self._waiting = left

    def _on_down(self, link: int, reason: str) -> None:
        self._waiting = [w for w in self._waiting if w[0] != link]


class TCPStore(Store):
    """A store that one process keeps as long as it has this object; the others connect to it.

    All prove that they know the job's secret, as everywhere: on the loopback address that is a file of the user,
    otherwise `DUALMX_SECRET`.

    Args:
        host_name, port: where the process that keeps it listens; port 0 is any that is free.
        world_size: how many processes come; unknown by default.
        is_master: this process keeps it.
        timeout: a `timedelta` or seconds; for connecting, and for `get` and `wait`.
        wait_for_workers: the process that keeps it waits here until `world_size` have come.
        use_libuv: accepted.

    Attributes:
        host, port: where it is.

    Raises:
        ArgumentError: a wrong number. MXNetError: the port is taken, nobody listens there, who listens has another
            secret, there is none, or not all came.

    Example:
        >>> store = TCPStore("127.0.0.1", 0, is_master=True)
        >>> other = TCPStore("127.0.0.1", store.port)
        >>> other.set("name", "value")
        >>> store.get("name")
        b'value'
    """

    def __init__(
        self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
        timeout: Any = TIMEOUT, wait_for_workers: bool = True, use_libuv: bool = True,
    ):  # fmt: skip
        super().__init__(timeout)
        if not isinstance(port, int) or not (0 if is_master else 1) <= port < 65536:
            raise ArgumentError(f"TCPStore: port={port!r}: expected a number from {int(not is_master)} to 65535")
        if world_size is not None and world_size == 0:
            raise ArgumentError("TCPStore: world_size=0: expected the number of processes, or None")
        self.host, self.port = host_name, port
        job = Job.with_scheduler(host_name, port, 1)
        if is_master:
            van = job.van()
            _StoreServer(van)
            van.start()
            _close_with(self, van)
            self.port = van.listen(job.bind_host(host_name), port)["port"]
        van = job.van()
        self._customer = Customer(van)
        name = f"the store at {host_name}:{self.port}"
        self._peer = peer = Peer(name, {"host": host_name, "port": self.port})
        give_up = self._customer.fail_peer
        van.on_message = lambda link, message, customer=self._customer: customer.on_message(message)
        van.on_down = lambda link, reason: give_up(peer, f"{name} is gone: {reason}")
        van.start()
        _close_with(self, van)
        peer.link = van.connect(peer.address, self.timeout.total_seconds())
        if world_size is not None and world_size > 0:
            self.add(LOCAL, 1)
            if is_master and wait_for_workers:
                self._gather(world_size)

    def _gather(self, count: int) -> None:
        until = time.monotonic() + self.timeout.total_seconds()
        while (here := int(self.get(LOCAL))) < count:
            if time.monotonic() > until:
                seconds = self.timeout.total_seconds()
                raise MXNetError(f"TCPStore: {here} of {count} processes came within {seconds:g} s")
            time.sleep(0.01)

    def _ask(self, what: str, meta: dict[str, Any], data: bytes = b"", seconds: float | None = None) -> Message | None:
        """Return the answer, None if the time is over."""
        ticket = self._customer.send_request(self._peer, f"TCPStore: {what}", meta, [data] if data else ())
        limit = seconds_of("TCPStore", self.timeout) if seconds is None else seconds
        try:
            return self._customer.wait([ticket], limit)[0]
        except MXNetError:
            if ticket.done:
                raise
            return None

    def _request(self, what: str, meta: dict[str, Any], data: bytes = b"") -> Message:
        found = self._ask(what, meta, data)
        if found is None:
            raise MXNetError(f"TCPStore: {what}: {self._peer.name} did not answer within {self.timeout}")
        return found

    def _change(self, op: str, key: str, value: bytes = b"", expected: bytes = b"") -> bytes:
        meta = {"op": op, "key": key, "n": len(value)}
        return bytes(self._request(f"{op} of key {key!r}", meta, value + expected).data())

    def _values(self, keys: Sequence[str], seconds: float) -> list[bytes] | None:
        meta = {"op": "values", "keys": list(keys), "seconds": seconds}
        found = self._ask(f"waiting for {list(keys)}", meta, seconds=seconds)
        if found is None:
            return None
        whole, values, at = bytes(found.data()), [], 0
        for size in found.field("sizes", list):
            values.append(whole[at : at + size])
            at += size
        return values

    def _keys(self) -> list[str]:
        return self._request("the keys", {"op": "keys"}).field("keys", list)


__all__ = ["TCPStore"]
