"""Signs of life: a process that is busy is not taken for dead."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dualmx.ps.van.frame import NOTICE, Message
from dualmx.ps.van.socket_van import SocketVan
from dualmx.ps.van.sockets import set_socket_options

SECRET = b"a secret of the tests, long enough"


@pytest.fixture
def vans() -> Iterator[list[SocketVan]]:
    made = [SocketVan(SECRET, 0.1, 1.0, memory=0) for _ in range(3)]
    yield made
    for van in made:
        van.close()


def test_who_reads_much_from_one_is_not_silent_to_the_others(vans: list[SocketVan]) -> None:
    busy, talker, quiet = vans
    heard: list[int] = []
    down: list[str] = []

    def slowly(link: int, message: Message) -> None:
        time.sleep(0.08)
        heard.append(message.request)

    busy.on_message = slowly
    for van in (talker, quiet):
        van.on_message = lambda link, message: None
    for van in vans:
        van.on_down = lambda link, reason: down.append(reason)
        van.start()
    address = busy.listen("127.0.0.1", 0)
    link = talker.connect(address, 5.0)
    quiet.connect(address, 5.0)
    payload = np.zeros(100 << 10, np.uint8)
    for number in range(25):  # two seconds, in a buffer of the socket that is read in one go
        talker.send(link, Message(NOTICE, number, {}, (payload,)))
    until = time.monotonic() + 20
    while len(heard) < 25 and time.monotonic() < until:
        time.sleep(0.05)
    assert heard == list(range(25)) and not down


def test_a_message_that_cannot_be_received_breaks_its_link_alone(
    vans: list[SocketVan], caplog: pytest.LogCaptureFixture
) -> None:
    receiver, bad, good = vans
    heard: list[int] = []
    down: list[str] = []

    def hear(link: int, message: Message) -> None:
        heard.append(10 // message.request)

    receiver.on_message, receiver.on_down = hear, lambda link, reason: down.append(reason)
    ended = threading.Event()
    for van in (bad, good):
        van.on_message = lambda link, message: None
    bad.on_down, good.on_down = lambda link, reason: ended.set(), lambda link, reason: down.append(reason)
    for van in vans:
        van.start()
    address = receiver.listen("127.0.0.1", 0)
    bad.send(bad.connect(address, 5.0), Message(NOTICE, 0))
    assert ended.wait(10)
    link = good.connect(address, 5.0)
    assert good.send(link, Message(NOTICE, 5))
    until = time.monotonic() + 10
    while not heard and time.monotonic() < until:
        time.sleep(0.01)
    assert heard == [2] and [d for d in down if "ZeroDivisionError" in d] == down != []
    assert "hear" in caplog.text  # the traceback


class Elsewhere(socket.socket):
    """A connection whose other end is on another host."""

    def getpeername(self) -> tuple[str, int]:
        return "192.0.2.1", 4


@pytest.mark.parametrize("kind", [socket.socket, Elsewhere])
def test_only_connections_within_a_host_leave_its_congestion_control(kind: type[socket.socket]) -> None:
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
    others = [name for name in allowed.read_text().split() if name != "reno"] if allowed.exists() else []
    if not others:
        pytest.skip("this host has no congestion control besides Reno")
    with socket.create_server(("127.0.0.1", 0)) as listener, kind(socket.AF_INET) as sock:
        sock.connect(listener.getsockname())
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, others[0].encode())
        set_socket_options(sock, 4.0)
        used = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
        assert used == ("reno" if kind is socket.socket else others[0])
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def trickle(port: int, nbytes: int, pause: float) -> int:
    """Relay connections to `port`, a few bytes at a time; returns the port to connect to."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)  # what is sent gets off the sender's host at once

    def forward(source: socket.socket, target: socket.socket, nbytes: int, pause: float) -> None:
        try:
            while data := source.recv(nbytes):
                target.sendall(data)
                time.sleep(pause)
        except OSError:
            pass
        target.close()

    def relay() -> None:
        near = listener.accept()[0]
        far = socket.create_connection(("127.0.0.1", port))
        threading.Thread(target=forward, args=(far, near, 65536, 0.0), daemon=True).start()
        forward(near, far, nbytes, pause)
        listener.close()

    threading.Thread(target=relay, daemon=True).start()
    return listener.getsockname()[1]


@pytest.mark.slow
def test_who_sends_slowly_is_not_silent() -> None:
    reader, writer = (SocketVan(SECRET, 0.2, 1.0, memory=0, tcp=True) for _ in range(2))
    heard: list[int] = []
    down: list[str] = []
    try:
        reader.on_message = lambda link, message: heard.append(sum(memoryview(p).nbytes for p in message.payload))
        writer.on_message = lambda link, message: None
        for van in (reader, writer):
            van.on_down = lambda link, reason: down.append(reason)
            van.start()
        address = reader.listen("127.0.0.1", 0)
        address = {**address, "port": trickle(address["port"], 4096, 0.05)}  # 3 seconds for what is sent
        writer.send(writer.connect(address, 5.0), Message(NOTICE, 1, {}, (np.zeros(240 << 10, np.uint8),)))
        until = time.monotonic() + 20
        while not heard and not down and time.monotonic() < until:
            time.sleep(0.05)
        assert (heard, down) == ([240 << 10], [])
    finally:
        reader.close()
        writer.close()
