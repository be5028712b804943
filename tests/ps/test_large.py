"""Arrays in slices of several servers: workers get them without copies, and whatever happens the right numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from dualmx.core.errors import MXNetError
from dualmx.ps import ServerNode
from dualmx.ps.customer import Customer, Peer
from dualmx.ps.sharding import slice_key
from dualmx.ps.van import shared_memory
from dualmx.ps.van.frame import REPLY, Message
from dualmx.ps.van.shared_memory import ContiguousMapper
from dualmx.ps.van.simulator import SimNetwork
from tests.ps.test_members import Running

PAGE = shared_memory.PAGE


@pytest.fixture(params=["tcp", "one host"])
def job(request: pytest.FixtureRequest) -> Iterator[Running]:
    running = Running(2, 2)
    running.job = replace(running.job, tcp=request.param == "tcp")
    running.whole()
    assert not running.errors
    yield running
    running.end()


@pytest.mark.parametrize("shape", [(1001, 1000), (2048, 640), (3_000_000,), (512, 300, 3, 3)])
def test_arrays_of_many_shapes_arrive_whole(job: Running, shape: tuple[int, ...]) -> None:
    a, b = job.workers[0].kv, job.workers[1].kv
    big = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    for kv in (a, b):
        kv.wait(kv.ask_all("open", {"op": "open", "store": 0, "sync": True}))
        kv.register_key(0, "big", big.shape, big.dtype)
        kv.register_key(0, "small", (3,), big.dtype)
    a.wait(a.put(0, {"big": big, "small": np.ones(3, np.float32)}))
    kept = []
    for turn in range(1, 6):
        for kv in (a, b):
            kv.push_coalesced(0, {"big": big * turn})
            kv.push_coalesced(0, {"small": np.ones(3, np.float32)})
        for kv in (a, b):
            values = {key: kv.pull_prefetched(0, [key], True)(key) for key in ("big", "small")}
            assert (values["big"] == big * turn + big * turn).all() and values["big"].shape == shape
            assert (values["small"] == 2).all()
            kept.append((turn, values["big"]))
    for turn, value in kept:  # what was given stays as it was, whatever came later
        assert (value == big * turn + big * turn).all()


def test_where_slices_are_received(job: Running) -> None:
    a, b = job.workers[0].kv, job.workers[1].kv
    big = np.arange(2_000_000, dtype=np.float32)
    for kv in (a, b):
        kv.wait(kv.ask_all("open", {"op": "open", "store": 0, "sync": True}))
        kv.register_key(0, "big", big.shape, big.dtype)
    a.wait(a.put(0, {"big": big}))
    pulled = a.pull(0, ["big"])
    into = [t.receive_buffer for t in pulled.tickets]
    value = pulled.value("big")
    if job.job.tcp:
        assert all(i is not None and np.shares_memory(i, value) for i in into)
    else:
        assert into == [None, None] and not value.flags.writeable  # pages of the servers' memory
    assert (value == big).all()


def test_memory_of_an_answer_is_that_of_its_own_request_and_connection() -> None:
    van = SimNetwork().van()
    customer = Customer(van)
    memory = np.zeros(64, np.uint8)
    ticket = customer.send_request(Peer("server 0", link=-1), "a pull", {}, into=memory)
    ticket.peer.link = 7
    assert van.receive_buffer_for is not None
    assert van.receive_buffer_for(7, ticket.number, 64) is memory
    assert van.receive_buffer_for(8, ticket.number, 64) is None  # a connection that was given up
    assert (
        van.receive_buffer_for(7, ticket.number, 63) is None
        and van.receive_buffer_for(7, ticket.number + 1, 64) is None
    )
    customer.on_message(Message(REPLY, ticket.number))
    assert van.receive_buffer_for(7, ticket.number, 64) is None  # answered: what comes again goes elsewhere


def lender(limit: int = 8 << 20) -> tuple[shared_memory.Arena, int, shared_memory.RemoteArena]:
    arena = shared_memory.Arena(limit)
    reader = arena.reader()
    return arena, reader, shared_memory.RemoteArena(os.dup(arena.fd), reader)


def lent(one: tuple[shared_memory.Arena, int, shared_memory.RemoteArena], values: np.ndarray) -> memoryview:
    arena, reader, loans = one
    block = arena.alloc(values.nbytes)
    assert block is not None
    block[:] = values
    return loans.view(list(*arena.share([block.data], reader))).data


@pytest.mark.skipif(not shared_memory.available(), reason="this system has no memory files")
def test_pieces_of_several_lenders_are_one_array_without_a_copy() -> None:
    one, two = lender(), lender()
    draw = np.random.default_rng(1)
    parts = [draw.integers(0, 256, n).astype(np.uint8) for n in (16 * PAGE, 40 * PAGE, 10 * PAGE + 100)]
    pieces = [lent(w, p) for w, p in zip((one, two, one), parts, strict=True)]
    windows = ContiguousMapper()
    whole = windows.map(pieces, [one[2], two[2]])
    assert whole is not None and not whole.flags.writeable
    assert whole.tobytes() == b"".join(p.tobytes() for p in parts)
    again = windows.map(pieces, [two[2], one[2]])
    assert again is not None and again.ctypes.data == whole.ctypes.data
    np.frombuffer(one[0]._map, np.uint8)[shared_memory.TABLE] ^= 255  # it is the lender's own memory
    assert whole[0] == parts[0][0] ^ 255


@pytest.mark.skipif(not shared_memory.available(), reason="this system has no memory files")
def test_loans_come_back_when_the_joined_array_is_dropped() -> None:
    one = lender()
    pieces = [lent(one, np.full(16 * PAGE, i, np.uint8)) for i in (1, 2)]
    windows = ContiguousMapper()
    whole = windows.map(pieces, [one[2]])
    assert whole is not None
    part = whole[PAGE : 20 * PAGE]
    lies = np.frombuffer(one[0]._map, np.uint8).ctypes.data + shared_memory.TABLE  # the first block

    def free(blocks: int) -> bool:
        taken = [t for _ in range(blocks) if (t := one[0].alloc(16 * PAGE)) is not None]
        return lies in [t.ctypes.data for t in taken]

    del pieces, whole
    seen = (part[0].item(), part[-1].item(), free(4))  # a part keeps all
    assert seen == (1, 2, False)
    del part
    assert free(6)  # the four and these two


@pytest.mark.skipif(not shared_memory.available(), reason="this system has no memory files")
def test_what_cannot_be_seen_as_one_is_left_to_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    one = lender()
    whole, odd = lent(one, np.ones(16 * PAGE, np.uint8)), lent(one, np.ones(16 * PAGE + 64, np.uint8))
    windows = ContiguousMapper()
    assert windows.map([odd, whole], [one[2]]) is None  # the first does not fill its pages
    assert windows.map([whole, odd[64:]], [one[2]]) is None  # the second does not begin with one
    assert windows.map([whole, np.ones(PAGE, np.uint8).data], [one[2]]) is None  # nobody has lent it
    assert windows.map([whole, odd], []) is None
    assert windows.map([whole, odd], [one[2]]) is not None


@pytest.mark.skipif(not shared_memory.available(), reason="this system has no memory files")
def test_windows_are_bounded_and_forgotten_with_their_lender(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dualmx.ps.van.shared_memory.WINDOWS", 2)
    one = lender()
    pieces = [lent(one, np.full(2 * PAGE, i, np.uint8)) for i in range(4)]
    windows = ContiguousMapper()
    found = [windows.map([pieces[i], pieces[(i + 1) % 4]], [one[2]]) for i in range(4)]
    assert len(windows._windows) == 2
    windows.forget(one[2])
    assert not windows._windows
    for i, array in enumerate(found):  # those in use stay
        assert array is not None and array[0] == i and array[-1] == (i + 1) % 4


@pytest.mark.parametrize("servers", [2, 3, 4])
@pytest.mark.parametrize("shape", [(2048, 640), (512, 512, 3, 3), (3_000_000,)])
def test_slices_of_large_arrays_fill_pages(shape: tuple[int, ...], servers: int) -> None:
    size, width = int(np.prod(shape)), int(np.prod(shape[1:]))
    slices = slice_key("w", size, 4, servers, bound=1_000_000, width=width)
    assert all(s.stop * 4 % PAGE == 0 and s.stop % width == 0 for s in slices[:-1])
    sizes = [s.stop - s.start for s in slices]
    assert max(sizes) - min(sizes) <= max(sizes) // 8


def test_a_server_that_dies_while_slices_travel_is_named() -> None:
    running = Running(1, 2, silence=2.0)
    running.job = replace(running.job, tcp=True)
    servers: list[ServerNode] = []

    def serve(rank: int) -> None:
        servers.append(made := ServerNode(replace(running.job, role="server", task=rank)))
        made.run()

    running.scheduler()
    for rank in range(2):
        running.go(f"server {rank}", lambda rank=rank: serve(rank))  # type: ignore[misc]
    running.worker(0)
    running.join("worker 0")
    kv = running.workers[0].kv
    kv.wait(kv.ask_all("open", {"op": "open", "store": 0, "sync": True}))
    kv.register_key(0, "big", (2_000_000,), np.dtype(np.float32))
    kv.wait(kv.put(0, {"big": np.ones(2_000_000, np.float32)}))
    kv.rounds[0, "big"] = 1  # of a round that is never over
    pulled = kv.pull(0, ["big"])
    for server in servers:
        server._van.close()
    with pytest.raises(MXNetError, match=r"pull of key 'big', round 1, at server [01]: "):
        pulled.value("big")
    running.workers[0].close(wait=False)
