"""Rendezvous stores of `torch.distributed`: tables of keys and bytes by which ranks meet.

`TCPStore` keeps its table in one process; the others reach it over the van, with the job's secret.
"""

from __future__ import annotations

import atexit
import base64
import fcntl
import json
import os
import threading
import time
import weakref
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ..core.reader import Content
from ..ps import Job
from ..ps.customer import Customer, Peer
from ..ps.protocol import Messages, Natural, header
from ..ps.van.frame import ERROR, REPLY, REQUEST, Message
from ..ps.van.van import Van

TIMEOUT = timedelta(seconds=300)
POLL_SECONDS = 0.01  # seconds between looks at a file


def apply_op(table: dict[str, bytes], op: str, key: str, value: bytes, expected: bytes) -> bytes:
    """Change the value of a key; returns what it is then, or of a key that is not there, what was expected.

    Args:
        table: all keys.
        op: `"set"`, `"append"`, `"add"` (of integers as decimal numbers), `"swap"` (if the value is the expected one,
            or nothing was expected and there is none) or `"delete"`, which returns whether it was there.
        key, value, expected: the arguments.

    Raises:
        ArgumentError: an unknown `op`. MXNetError: the value is no integer.
    """
    before = table.get(key)
    if op == "set":
        table[key] = value
    elif op == "append":
        table[key] = (before or b"") + value
    elif op == "add":
        try:
            table[key] = str(int(before or b"0") + int(value)).encode()
        except ValueError:
            raise MXNetError(f"add: key {key!r} holds {(before or b'')[:40]!r}: expected an integer") from None
    elif op == "swap":
        if before == expected or (before is None and not expected):
            table[key] = value
    elif op == "delete":
        return b"1" if table.pop(key, None) is not None else b""
    else:
        raise ArgumentError(f"store: op={op!r}: expected set, append, add, swap or delete")
    return table.get(key, expected)


def seconds_of(what: str, timeout: Any) -> float:
    """Return a `timedelta`, or a number of seconds, as a number.

    Raises:
        ArgumentTypeError: something else. ArgumentError: not more than 0.
    """
    found = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    if not isinstance(found, (int, float)) or isinstance(found, bool):
        raise ArgumentTypeError(f"{what}: timeout={timeout!r}: expected a timedelta or seconds")
    if not found > 0:
        raise ArgumentError(f"{what}: timeout={timeout!r}: expected more than 0 seconds")
    return float(found)


def _bytes(what: str, value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise ArgumentTypeError(f"{what}: a value of type {type(value).__name__}: expected str or bytes")
    return bytes(value)


class Store:
    """Base of stores. Keys are str, values str or bytes, and returned as bytes.

    Attributes:
        timeout: how long `get` and `wait` wait for keys.
    """

    def __init__(self, timeout: Any = TIMEOUT) -> None:
        self.set_timeout(timeout)

    # -- what each store defines

    def _change(self, op: str, key: str, value: bytes = b"", expected: bytes = b"") -> bytes:
        """Do what `apply_op` does."""
        raise NotImplementedError

    def _values(self, keys: Sequence[str], seconds: float) -> list[bytes] | None:
        """Wait until all keys are there; returns their values, None if the time is over."""
        raise NotImplementedError

    def _keys(self) -> list[str]:
        """All keys."""
        raise NotImplementedError

    # -- the same for all

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait for keys."""
        return self._timeout

    def set_timeout(self, timeout: Any) -> None:
        """Set how long `get` and `wait` wait for keys: a `timedelta`, or seconds.

        Raises:
            ArgumentTypeError: something else. ArgumentError: not more than 0.
        """
        self._timeout = timedelta(seconds=seconds_of(f"{type(self).__name__}.set_timeout", timeout))

    def _key(self, call: str, key: Any) -> str:
        if not isinstance(key, str):
            raise ArgumentTypeError(f"{type(self).__name__}.{call}: key={key!r}: expected a str")
        return key

    def _wait_for(self, call: str, keys: Sequence[Any], timeout: Any = None) -> list[bytes]:
        what = f"{type(self).__name__}.{call}"
        if isinstance(keys, str):
            raise ArgumentTypeError(f"{what}: keys={keys!r}: expected a list of str")
        names = [self._key(call, k) for k in keys]
        seconds = seconds_of(what, self.timeout if timeout is None else timeout)
        found = self._values(names, seconds)
        if found is None:
            missing = ", ".join(map(repr, sorted(set(names) - set(self._keys())))) or "the last of them just came"
            raise MXNetError(f"{what}: nobody set all of {names} within {seconds:g} s; missing: {missing}")
        return found

    def set(self, key: str, value: str | bytes) -> None:
        """Set the value of a key."""
        self._change("set", self._key("set", key), _bytes(f"{type(self).__name__}.set", value))

    def get(self, key: str) -> bytes:
        """Return the value of a key; waits until there is one.

        Raises:
            MXNetError: there was none within the time-out.
        """
        return self._wait_for("get", [key])[0]

    def add(self, key: str, amount: int) -> int:
        """Add to the integer of a key, which is 0 at first; returns the sum.

        Raises:
            ArgumentTypeError: `amount` is no int. MXNetError: the value is no integer.
        """
        if not isinstance(amount, int) or isinstance(amount, bool):
            raise ArgumentTypeError(f"{type(self).__name__}.add: amount={amount!r}: expected an int")
        return int(self._change("add", self._key("add", key), str(amount).encode()))

    def append(self, key: str, value: str | bytes) -> None:
        """Add to the end of a key's value."""
        self._change("append", self._key("append", key), _bytes(f"{type(self).__name__}.append", value))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set a key if its value is the expected one, or if nothing is expected and there is none.

        Returns:
            The value that the key has then; of a key that is not there, `expected_value`.
        """
        what = f"{type(self).__name__}.compare_set"
        return self._change(
            "swap", self._key("compare_set", key), _bytes(what, desired_value), _bytes(what, expected_value)
        )

    def wait(self, keys: Sequence[str], timeout: Any = None) -> None:
        """Wait until all keys have values.

        Raises:
            MXNetError: not all had one within `timeout`, or that of the store; names those that are missing.
        """
        self._wait_for("wait", keys, timeout)

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all keys have values."""
        return {self._key("check", k) for k in keys} <= set(self._keys())

    def delete_key(self, key: str) -> bool:
        """Remove a key; returns whether it was there."""
        return bool(self._change("delete", self._key("delete_key", key)))

    def num_keys(self) -> int:
        """Return how many keys there are, those that a store has for itself included."""
        return len(self._keys())

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return the values of several keys; waits until there are all.

        Raises:
            MXNetError: not all came within the time-out.
        """
        return self._wait_for("multi_get", keys)

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set several keys.

        Raises:
            ArgumentError: not as many values as keys.
        """
        if len(keys) != len(values):
            raise ArgumentError(f"{type(self).__name__}.multi_set: {len(values)} values for {len(keys)} keys")
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Return True: there are `append`, `multi_get` and `multi_set`."""
        return True


class HashStore(Store):
    """A store within a process, for its threads.

    Example:
        >>> store = HashStore()
        >>> store.set("name", "value")
        >>> store.get("name"), store.add("count", 2), store.add("count", 3)
        (b'value', 2, 5)
    """

    def __init__(self) -> None:
        super().__init__()
        self._table: dict[str, bytes] = {}
        self._changed = threading.Condition()

    def _change(self, op: str, key: str, value: bytes = b"", expected: bytes = b"") -> bytes:
        with self._changed:
            found = apply_op(self._table, op, key, value, expected)
            self._changed.notify_all()
            return found

    def _values(self, keys: Sequence[str], seconds: float) -> list[bytes] | None:
        with self._changed:
            there = self._changed.wait_for(lambda: all(k in self._table for k in keys), seconds)
            return [self._table[k] for k in keys] if there else None

    def _keys(self) -> list[str]:
        with self._changed:
            return list(self._table)


class FileStore(Store):
    """A store in a file that all processes see; missing or empty before the first one opens it.

    Args:
        file_name: the file; one line for each change.
        world_size: accepted.

    Attributes:
        path: the file.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "store")
        >>> FileStore(path, 2).set("name", "value")
        >>> FileStore(path, 2).get("name")
        b'value'
    """

    def __init__(self, file_name: str, world_size: int = -1):
        super().__init__()
        self.path = os.fspath(file_name)
        self._table: dict[str, bytes] = {}
        self._at = 0  # what of the file is in the table
        self._lock = threading.Lock()

    def _change(self, op: str, key: str, value: bytes = b"", expected: bytes = b"") -> bytes:
        with self._lock, self._opened() as file:
            self._read(file)
            found = apply_op(self._table, op, key, value, expected)
            now = self._table.get(key)
            line = json.dumps([key, None if now is None else base64.b64encode(now).decode()]).encode() + b"\n"
            file.seek(self._at)
            file.truncate()  # what a process that died was writing
            file.write(line)
            self._at += len(line)
            return found

    def _opened(self) -> Any:
        """Open the file exclusively until it is closed."""
        try:
            file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        except OSError as e:
            raise ArgumentError(f"FileStore: file_name={self.path!r}: {e.strerror}") from e
        fcntl.flock(file, fcntl.LOCK_EX)
        return file

    def _read(self, file: Any) -> None:
        file.seek(self._at)
        for line in file:
            if not line.endswith(b"\n"):
                break
            content = Content(line, f"FileStore: {self.path!r}, record at byte {self._at}", "written by a store")
            with content.parsing():
                key, value = content.json()
                found = None if value is None else base64.b64decode(value)
            if not isinstance(key, str):
                raise content.error(f"a key {key!r}", self._at)
            self._at += len(line)
            if found is None:
                self._table.pop(key, None)
            else:
                self._table[key] = found

    def _values(self, keys: Sequence[str], seconds: float) -> list[bytes] | None:
        until = time.monotonic() + seconds
        while not set(keys) <= set(self._keys()):
            if time.monotonic() > until:
                return None
            time.sleep(POLL_SECONDS)
        return [self._table[k] for k in keys]

    def _keys(self) -> list[str]:
        with self._lock, self._opened() as file:
            self._read(file)
            return list(self._table)


class PrefixStore(Store):
    """The keys of another store that begin with a prefix and a slash.

    Args:
        prefix: of all keys.
        store: has them.

    Attributes:
        underlying_store: the other store.

    Example:
        >>> store = HashStore()
        >>> PrefixStore("epoch1", store).set("name", "value")
        >>> store.get("epoch1/name")
        b'value'
    """

    def __init__(self, prefix: str, store: Store):
        if not isinstance(store, Store):
            raise ArgumentTypeError(f"PrefixStore: store={store!r}: expected a store")
        self._prefix = f"{prefix}/"
        self.underlying_store = store

    @property
    def timeout(self) -> timedelta:
        """That of the other store."""
        return self.underlying_store.timeout

    def set_timeout(self, timeout: Any) -> None:
        """Set that of the other store."""
        self.underlying_store.set_timeout(timeout)

    def _change(self, op: str, key: str, value: bytes = b"", expected: bytes = b"") -> bytes:
        return self.underlying_store._change(op, self._prefix + key, value, expected)

    def _values(self, keys: Sequence[str], seconds: float) -> list[bytes] | None:
        return self.underlying_store._values([self._prefix + k for k in keys], seconds)

    def _keys(self) -> list[str]:
        n = len(self._prefix)
        return [k[n:] for k in self.underlying_store._keys() if k.startswith(self._prefix)]

    def num_keys(self) -> int:
        """Return how many keys the other store has."""
        return self.underlying_store.num_keys()


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


class KeysRequest(NamedTuple):
    """Ask for all keys."""


class ValuesRequest(NamedTuple):
    """Ask for the values of keys, within so many seconds."""

    keys: list[str]
    seconds: int | float


class UpdateRequest(NamedTuple):
    """Change the value of a key: the first `n` bytes sent are the value, the others what it is expected to be."""

    op: str
    key: str
    n: Natural


STORE_REQUESTS = Messages(
    {"keys": KeysRequest, "values": ValuesRequest}
    | dict.fromkeys(("set", "append", "add", "swap", "delete"), UpdateRequest)
)


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
        record = STORE_REQUESTS.read(message)
        if isinstance(record, KeysRequest):
            self._van.send(link, Message(REPLY, message.request, {"keys": list(self._table)}))
        elif isinstance(record, ValuesRequest):
            self._waiting.append((link, message.request, record.keys, time.monotonic() + record.seconds))
            self._answer()
        else:
            data, n = bytes(message.data()), record.n
            found = apply_op(self._table, record.op, record.key, data[:n], data[n:])
            self._van.send(link, Message(REPLY, message.request, {}, [found] if found else ()))
            self._answer()

    def _answer(self) -> None:
        """Answer waiters whose keys are there, and drop those that gave up."""
        now, left = time.monotonic(), []
        for link, request, keys, until in self._waiting:
            if all(k in self._table for k in keys):
                found = [self._table[k] for k in keys]
                payload = b"".join(found)
                meta = {"sizes": [len(v) for v in found]}
                self._van.send(link, Message(REPLY, request, meta, [payload] if payload else ()))
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
        record = UpdateRequest(op, key, len(value))
        return bytes(self._request(f"{op} of key {key!r}", header(record), value + expected).data())

    def _values(self, keys: Sequence[str], seconds: float) -> list[bytes] | None:
        record = ValuesRequest(list(keys), seconds)
        found = self._ask(f"waiting for {list(keys)}", header(record), seconds=seconds)
        if found is None:
            return None
        payload, values, at = bytes(found.data()), [], 0
        for size in found.field("sizes", list):
            values.append(payload[at : at + size])
            at += size
        return values

    def _keys(self) -> list[str]:
        return self._request("the keys", header(KeysRequest())).field("keys", list)


__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]
