"""Groups of workers that exchange arrays with each other, formed anew: on paper, and by links between threads."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from dualmx.core.errors import MXNetError
from dualmx.ps import WorkerNode
from dualmx.ps.elastic_rounds import GroupFormation
from dualmx.ps.peer_links import PeerLinks, PeerLost
from dualmx.ps.van.frame import NOTICE, Message
from tests.ps.test_members import Running


def formed(assembly: GroupFormation, present: set[int], left: set[int] = frozenset()) -> list[Any]:  # type: ignore[assignment]
    assembly.try_form(present, left)
    return [told for _, told in assembly.pop_replies()]


def asking(assembly: GroupFormation, *ranks: int, number: int = 0) -> None:
    for rank in ranks:
        assembly.request_group(rank, number, {"port": rank}, (rank, 1))


def test_a_group_waits_for_those_of_the_one_before_and_takes_others_along() -> None:
    a = GroupFormation()
    asking(a, 1, 0)
    assert formed(a, {0, 1, 2}) == [] and a.missing({0, 1, 2}) == [2]
    asking(a, 2)
    first = formed(a, {0, 1, 2})
    assert first == [{"group": 1, "workers": [0, 1, 2], "addresses": [{"port": k} for k in range(3)]}] * 3
    assert a.request_group(7, 0, {}, (7, 1)) and not a.request_group(2, 1, {}, (2, 2))
    assert formed(a, {0, 1, 2, 7, 8}) == []
    asking(a, 1, number=1)
    assert [told["workers"] for told in formed(a, {1, 2, 7, 8})] == [[1, 2, 7]] * 3  # 0 is gone, 8 has not asked
    asking(a, 0, 1, 2, 7, number=2)
    assert formed(a, {0, 1, 2, 7, 8})[0]["workers"] == [1, 2, 7, 0]  # 0 was not gone, but knows less than the others


def test_who_comes_after_the_last_one_has_left_is_told_but_goes_on_after_deaths() -> None:
    a = GroupFormation()
    asking(a, 0, 1)
    formed(a, {0, 1})
    asking(a, 2)
    assert formed(a, {1, 2}, {0}) == []
    assert formed(a, {2}, {0}) == [{"over": True}]
    b = GroupFormation()
    asking(b, 0)
    formed(b, {0})
    asking(b, 1)
    assert [told["workers"] for told in formed(b, {1})] == [[1]]


def test_a_scheduler_that_was_started_again_goes_on_with_higher_numbers() -> None:
    a = GroupFormation()
    asking(a, 0, 1, number=5)
    assert formed(a, {0, 1})[0]["group"] == 6


def test_those_who_wait_too_long_are_told_for_whom(monkeypatch: pytest.MonkeyPatch) -> None:
    a = GroupFormation()
    a.request_group(0, 0, {}, (10, 1), 5.0)
    formed(a, {0, 1})
    now = time.monotonic()
    both = {0, 1}
    assert a.pop_expired(now + 4, both) == [] and a.wait_notices(now + 4, both) == []
    told = [(10, "worker 1")]
    assert (
        a.wait_notices(now + 11, both) == told
        and a.wait_notices(now + 12, both) == []
        and a.wait_notices(now + 22, both) == told
    )
    ((request, text),) = a.pop_expired(now + 6, both)
    assert request == (10, 1) and text == "worker 1 did not come to the next group within 5 s (DUALMX_DIST_TIMEOUT)"
    assert a.pop_expired(now + 6, both) == []


def test_a_group_has_a_least_and_a_greatest_number() -> None:
    a = GroupFormation(2, 3)
    asking(a, 0, 1, 2)
    assert formed(a, {0, 1, 2})[0]["workers"] == [0, 1, 2]
    for spare in (3, 4):
        assert not a.request_group(spare, 0, {"port": spare}, (spare, 1), 5.0)  # nobody is to make room for them
    late = time.monotonic() + 60
    assert (
        formed(a, {0, 1, 2, 3, 4})
        == []
        == a.pop_expired(late, {0, 1, 2, 3, 4})
        == a.wait_notices(late, {0, 1, 2, 3, 4})
    )
    asking(a, 0, 2, number=1)
    assert [told["workers"] for told in formed(a, {0, 2, 3, 4})] == [[0, 2, 3]] * 3
    a.request_group(3, 2, {"port": 3}, (3, 2), 5.0)
    assert [told["workers"] for told in formed(a, {3, 4})] == [[3, 4]] * 2  # two are enough
    a.request_group(4, 3, {"port": 4}, (4, 2), 5.0)
    assert formed(a, {4}) == []
    lacks = "1 more of the 2 that a group needs"
    assert a.wait_notices(late, {4}) == [(4, lacks)] and a.pop_expired(late, {4})[0][1].startswith(
        f"{lacks} did not come"
    )
    asking(a, 4, 9, number=3)
    assert formed(a, {4, 9})[0]["workers"] == [4, 9]
    asking(a, 5, 6)
    assert list(formed(a, {5, 6}, {4, 9})) == [{"over": True}] * 2


def test_whatever_happens_everybody_who_is_there_is_in_the_same_group_in_the_end() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        assembly, alive, knows = GroupFormation(), {0, 1, 2}, dict.fromkeys(range(3), 0)
        asked: set[int] = set()
        for _ in range(60):
            event = rng.random()
            if event < 0.1 and len(alive) > 1:
                gone = rng.choice(sorted(alive))
                alive.discard(gone)
                asked.discard(gone)
            elif event < 0.2:
                alive.add(len(knows))
                knows[len(knows)] = 0
            elif alive - asked:
                rank = rng.choice(sorted(alive - asked))
                asked.add(rank)
                assembly.request_group(rank, knows[rank], {"port": rank}, (rank, 1))
            assembly.try_form(alive)
            for (rank, _), told in assembly.pop_replies():
                assert told["group"] > knows[rank] and rank in told["workers"]
                knows[rank] = told["group"]
                asked.discard(rank)
            assert {knows[r] for r in assembly.members if r in alive - asked} <= {assembly.number}


class Wire:
    """A van that keeps which links were dropped."""

    def __init__(self) -> None:
        self.dropped: list[int] = []

    def drop(self, link: int) -> None:
        self.dropped.append(link)


def told(peers: PeerLinks, link: int, **meta: Any) -> bool:
    return peers.on_message(link, Message(NOTICE, 0, meta))


def test_what_comes_before_a_process_knows_its_group_is_kept_in_order() -> None:
    peers = PeerLinks(Wire(), -1, 0, 0, group=4)  # type: ignore[arg-type]
    assert told(peers, 9, op="peer", rank=1, group=5)
    for number in range(3):
        assert told(peers, 9, op="to", c="x", n=number)
    assert not told(peers, 8, op="to", c="x")
    peers.set_ranks(5, 0, [3, 6])
    assert [peers.receive("x", [1], "test")[1].meta["n"] for _ in range(3)] == [0, 1, 2]
    peers.lost_worker(6, "worker 6 died")
    peers.lost_worker(99, "of another group")
    with pytest.raises(PeerLost, match="worker 6 died"):
        peers.receive("x", [1], "test")


@pytest.mark.parametrize("number", [3, 4])
def test_links_of_former_groups_are_dropped(number: int) -> None:
    wire = Wire()
    peers = PeerLinks(wire, -1, 0, 0, group=4)  # type: ignore[arg-type]
    assert told(peers, 9, op="peer", rank=1, group=number) and wire.dropped == [9]
    peers.set_ranks(5, 0, [0, 1])
    assert told(peers, 8, op="peer", rank=1, group=number) and wire.dropped == [9, 8]


@pytest.fixture
def running() -> Iterator[Running]:
    made = Running(3, 0)
    made.job = replace(made.job, on_worker_death="elastic", timeout=8.0)
    made.whole()
    yield made
    for worker in made.workers.values():
        worker.close(wait=False)


def regroup(running: Running, *ranks: int) -> dict[int, PeerLinks]:
    """Let some workers form a group."""
    found: dict[int, PeerLinks] = {}
    for rank in ranks:
        running.go(f"group {rank}", lambda rank=rank: found.__setitem__(rank, running.workers[rank].regroup()))
    running.join(*(f"group {rank}" for rank in ranks))
    return found


def all_say(peers: dict[int, PeerLinks]) -> None:
    """Each process gets a word from each other one."""
    for one in peers.values():
        for other in range(one.size):
            if other != one.rank:
                one.send(other, "word", {"from": one.rank})
    for one in peers.values():
        for other in range(one.size):
            if other != one.rank:
                assert one.receive("word", [other], "test")[1].meta["from"] == other


def test_workers_regroup_without_the_dead_and_with_newcomers(running: Running) -> None:
    first = regroup(running, 0, 1, 2)
    all_say(first)
    running.workers[1].crash("of the test")
    running.workers[1]._van.close()
    with pytest.raises(PeerLost, match="process 1 died: of the test"):
        first[0].receive("word", [1], "test")
    second = regroup(running, 0, 2)
    assert {r: (p.rank, p.size) for r, p in second.items()} == {0: (0, 2), 2: (1, 2)}
    all_say(second)
    del running.workers[1]
    running.go("newcomer", lambda: running.workers.__setitem__(3, WorkerNode(running.job)))
    running.join("newcomer")
    running.go("joins", lambda: second.__setitem__(3, running.workers[3].regroup()))
    until = time.monotonic() + 10
    while not all(running.workers[rank].waiting_workers for rank in (0, 2)):
        assert time.monotonic() < until
        time.sleep(0.02)
    third = regroup(running, 0, 2)
    running.join("joins")
    third[3] = second[3]
    assert {r: (p.rank, p.size) for r, p in third.items()} == {0: (0, 3), 2: (1, 3), 3: (2, 3)}
    assert not any(running.workers[rank].waiting_workers for rank in (0, 2))
    all_say(third)
    assert not running.errors


def test_who_waits_for_a_worker_that_has_left_the_group_is_told(running: Running) -> None:
    first = regroup(running, 0, 1, 2)
    first[1].leave_group()
    with pytest.raises(PeerLost, match="process 1 has left the group"):
        first[0].receive("word", [1], "test")
    with pytest.raises(PeerLost, match="process 1 has left the group itself"):
        first[1].receive("word", [0], "test")


def test_a_worker_that_does_not_come_is_named(running: Running) -> None:
    running.workers[0].job = replace(running.job, timeout=0.5)
    with pytest.raises(MXNetError, match=r"worker 1, worker 2 did not come to the next group within 0.5 s"):
        running.workers[0].regroup()


def test_a_worker_that_comes_too_late_ends(running: Running) -> None:
    regroup(running, 0, 1, 2)
    running.go("newcomer", lambda: running.workers.__setitem__(3, WorkerNode(running.job)))
    running.join("newcomer")
    for rank in (0, 1, 2):
        running.workers[rank].close(wait=False)
    with pytest.raises(SystemExit) as ended:
        running.workers[3].regroup()
    assert ended.value.code == 0
