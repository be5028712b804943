"""What is more urgent leaves first: small arrays in one message, and whole messages on a connection that is busy."""

from __future__ import annotations

import socket
from typing import Any

import numpy as np
import pytest

from dualmx.ps.customer import Customer, Peer
from dualmx.ps.server import KVServer
from dualmx.ps.van.certificate import contexts
from dualmx.ps.van.encryption import CHUNK, Tls
from dualmx.ps.van.frame import NOTICE, REPLY, REQUEST, Decoder, Message, encode_for_link
from dualmx.ps.van.handshake import HandshakeResult
from dualmx.ps.van.simulator import SimNetwork, SimVan
from dualmx.ps.van.socket_van import MAX_COMMITTED, Link
from dualmx.ps.worker import KVWorker


class Wire:
    """A worker and a server; `said` has what the worker sent, `told` what it was answered, in their order."""

    def __init__(self) -> None:
        self.net = SimNetwork()
        self.said: list[Message] = []
        self.told: list[Message] = []
        server, own = self.net.van(), Spying(self.net, self.said)
        kv = KVServer(Answering(server, self.told), 1)
        server.on_message = kv.on_message
        self.net._vans[own.port] = own
        customer = Customer(own, timeout=1.0)
        own.on_message = lambda link, message: customer.on_message(message)
        self.worker = KVWorker(customer, [Peer("server 0", link=own.connect(server.listen("", 0), 1.0))], 1 << 20)
        self.settle(self.worker.ask_all("hello", self.worker.introduction))
        self.settle(self.worker.open(0, True, "open")._tickets)

    def settle(self, tickets: Any) -> None:
        self.net.run()
        self.worker.wait(tickets)

    def know(self, arrays: dict[str, np.ndarray]) -> None:
        for key, array in arrays.items():
            self.worker.register_key(0, key, array.shape, array.dtype)
        self.settle(self.worker.put(0, arrays))
        self.said.clear()
        self.told.clear()


class Spying(SimVan):
    def __init__(self, network: SimNetwork, said: list[Message]):
        super().__init__(network)
        self._said = said

    def send(self, link: int, message: Message) -> bool:
        self._said.append(message)
        return super().send(link, message)


class Answering(SimVan):
    def __init__(self, van: SimVan, told: list[Message]):
        super().__init__(van.network)
        self._told = told

    def send(self, link: int, message: Message) -> bool:
        self._told.append(message)
        return super().send(link, message)


def test_small_arrays_leave_in_the_order_of_their_priorities() -> None:
    wire = Wire()
    arrays = {key: np.zeros(3, np.float32) for key in "abcd"}
    wire.know(arrays)
    for key, priority in (("a", -3), ("b", 0), ("c", -1), ("d", 0)):
        wire.worker.push_coalesced(0, {key: arrays[key]}, priority=priority)
    wire.worker.flush()
    (message,) = wire.said
    assert [part[0] for part in message.meta["parts"]] == ["b", "d", "c", "a"]


def test_messages_and_their_answers_have_the_priority_of_what_is_first_in_them() -> None:
    wire = Wire()
    arrays = {key: np.zeros((1 << 20) - 1, np.float32) for key in "ab"}  # too large to share a message
    wire.know(arrays)
    for key, priority in (("a", 1), ("b", 7)):
        wire.worker.push_coalesced(0, {key: arrays[key]}, priority=priority)
    wire.worker.flush()
    assert [(m.meta["parts"][0][0], m.priority) for m in wire.said] == [("b", 7), ("a", 1)]
    wire.net.run()
    assert [(m.kind, m.priority) for m in wire.told] == [(REPLY, 7), (REPLY, 1)]
    wire.said.clear()
    value = wire.worker.pull_prefetched(0, ["a"], ahead=True, priority=5)
    assert [(m.meta["op"], m.priority) for m in wire.said] == [("pull", 5)]
    wire.net.run()
    assert value("a").shape == ((1 << 20) - 1,)


def order(priorities: list[int | None], encrypted: bool = False, late: bool = False) -> list[int]:
    """The numbers of frames as they arrive, when all but the first are queued while the first is on its way."""
    near, far = socket.socketpair()
    for end in (near, far):
        end.setblocking(False)
    here, there = shaken(near, far) if encrypted else (None, None)
    link, decoder, found = Link(1, near, HandshakeResult(True, here), None, Decoder()), Decoder(), []
    payload, scratch = np.zeros(max(MAX_COMMITTED, 1 << 20), np.uint8), memoryview(bytearray(CHUNK))
    with near, far:
        for number, priority in enumerate(priorities):
            kind = NOTICE if priority is None else REQUEST
            link.enqueue(encode_for_link(Message(kind, number, {}, (payload,)), True, late=late), priority)
            if not number:
                assert not link.flush()  # the socket takes no more of it now
        while True:
            if link.has_output and link.flush():
                near.shutdown(socket.SHUT_WR)
            try:
                n = far.recv_into(decoder.buffer()) if there is None else there.recv_into(decoder.buffer(), scratch)
            except BlockingIOError:
                continue
            if not n:
                return found
            found += fed(decoder, n)


def shaken(near: socket.socket, far: socket.socket) -> tuple[Tls, Tls]:
    """Both ends of a connection under TLS."""
    connecting, accepting = contexts(b"s" * 32)
    ends = Tls(near, connecting, False), Tls(far, accepting, True)
    while not all([end.shake() for end in ends]):
        for sock, end in zip((near, far), ends, strict=True):
            try:
                end.feed(sock.recv(1 << 16))
            except BlockingIOError:
                pass
    return ends


def fed(decoder: Decoder, n: int) -> list[int]:
    message = decoder.advance(n)
    return [] if message is None else [message.request]


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_on_a_busy_connection_frames_overtake_less_urgent_ones(encrypted: bool, late: bool) -> None:
    assert order([0, -2, -1, 3, -1], encrypted, late) == [0, 3, 2, 4, 1]
    assert order([0, 0, 0, 0], encrypted, late) == [0, 1, 2, 3]


@pytest.mark.parametrize("late", [False, True])
def test_nothing_overtakes_what_keeps_its_place(late: bool) -> None:
    assert order([0, -5, None, 9, 1, None, 2], late=late) == [0, 1, 2, 3, 4, 5, 6]
    assert order([0, -5, None, 1, 9, 2], late=late) == [0, 1, 2, 4, 5, 3]
