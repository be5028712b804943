"""Controls: what `docs/collectives.md` promises does not hold when the mechanism behind it is switched off."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dualmx.parallel import reduce_ops as arithmetic
from dualmx.parallel.process_group import ProcessGroup
from dualmx.parallel.reduce_ops import reduce_values
from dualmx.ps import PeerLinks, peer_links
from dualmx.ps.van.socket_van import SocketVan
from tests.ps.test_members import Running

SIZE = 3


class Together:
    """Processes of a job, played by threads, and the group of all of them."""

    def __init__(self, silence: float = 30.0, timeout: float = 20.0):
        self.running = Running(SIZE, 0, silence=silence)
        self.running.job = self.running.job.__class__(**{**vars(self.running.job), "timeout": timeout})
        self.running.whole()
        for rank, worker in self.running.workers.items():
            self.running.go(f"meets {rank}", worker.peers)
        self.running.join(*(f"meets {rank}" for rank in range(SIZE)))
        assert not self.running.errors
        self.groups = [ProcessGroup(range(SIZE), self.running.workers[r].peers(), "g", r) for r in range(SIZE)]
        self.found: dict[int, Any] = {}

    def start(self, rank: int, call: Any) -> None:
        self.running.go(f"calls {rank}", lambda: self.found.__setitem__(rank, call(self.groups[rank])))

    def ends(self, rank: int, seconds: float = 1.5) -> bool:
        """Whether the call of a process returns or raises within some time."""
        self.running.threads[f"calls {rank}"].join(seconds)
        return not self.running.threads[f"calls {rank}"].is_alive()

    def error(self, rank: int) -> str:
        return str(self.running.errors.get(f"calls {rank}", ""))


@pytest.fixture
def three() -> Iterator[Together]:
    made = Together()
    yield made
    for worker in made.running.workers.values():
        worker.close(wait=False)


def reduced(group: ProcessGroup, x: np.ndarray) -> np.ndarray:
    return group.all_reduce(x, "sum", 1.0, "all_reduce")


def terms() -> list[np.ndarray]:
    return [(np.random.default_rng(r).standard_normal(500) * 10.0**r).astype(np.float32) for r in range(SIZE)]


@pytest.mark.parametrize("by_rank", [True, False])
def test_sums_have_the_same_bits_everywhere(by_rank: bool, three: Together, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control adds each process's own part first."""
    if not by_rank:
        own = {id(group): r for r, group in enumerate(three.groups)}
        here = threading.local()

        def other_order(parts: Any, *rest: Any) -> None:
            reduce_values([*parts[here.rank :], *parts[: here.rank]], *rest)

        monkeypatch.setattr("dualmx.parallel.process_group.reduce_values", other_order)
    x = terms()
    for rank in range(SIZE):

        def call(group: ProcessGroup, rank: int = rank) -> np.ndarray:
            if not by_rank:
                here.rank = own[id(group)]
            return reduced(group, x[rank])

        three.start(rank, call)
    assert all(three.ends(rank, 20) for rank in range(SIZE)), three.running.errors
    bits = {three.found[rank].tobytes() for rank in range(SIZE)}
    assert (bits == {((x[0] + x[1]) + x[2]).tobytes()}) is by_rank


@pytest.mark.parametrize("widened", [True, False])
def test_16_bit_floats_are_added_in_32_bits(widened: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not widened:
        monkeypatch.setattr(arithmetic, "accumulation_dtype", lambda dtype: dtype)
    out = np.empty(1, np.float16)
    reduce_values([np.full(1, v, np.float16) for v in (2048, 1, 1)], "sum", 1.0, out)
    assert bool(out[0] == 2050) is widened


@pytest.mark.parametrize("compared", [True, False])
def test_processes_that_disagree_are_told(compared: bool, three: Together, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process multiplies where the others add. The control gives different results without a word."""
    if not compared:
        monkeypatch.setattr(ProcessGroup, "_agree", lambda *args: None)
    for rank, op in enumerate(("sum", "product", "sum")):
        three.start(rank, lambda g, op=op: g.all_reduce(np.full(4, 2.0, np.float32), op, 1.0, "all_reduce"))
    assert all(three.ends(rank, 20) for rank in range(SIZE))
    told = [rank for rank in range(SIZE) if "the processes disagree" in three.error(rank)]
    assert (1 in told and len(told) >= 2) if compared else not told
    if compared:  # they can go on
        for rank in range(SIZE):
            three.start(rank, lambda g: reduced(g, np.ones(2, np.float32)))
        assert all(three.ends(rank, 20) for rank in range(SIZE)) and three.found[0].tolist() == [3, 3]
    else:
        assert {three.found[rank][0] for rank in range(SIZE)} == {6, 8}


@pytest.mark.slow
@pytest.mark.parametrize("noticed", [True, False])
def test_a_process_that_ends_ends_the_exchange_of_the_others(noticed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not noticed:
        monkeypatch.setattr(PeerLinks, "fail_rank", lambda self, rank, reason: None)
    three = Together()
    for rank in (0, 1):
        three.start(rank, lambda g: reduced(g, np.ones(2, np.float32)))
    assert not three.ends(0, 0.3)
    three.running.workers[2]._van.close()
    for rank in (0, 1):
        assert three.ends(rank, 10.0 if noticed else 1.5) is noticed
        assert not noticed or f"process {rank} of 3 lost another one: process 2 died: " in three.error(rank)
    for rank in (0, 1):
        three.running.workers[rank].close(wait=False)


@pytest.mark.slow
@pytest.mark.parametrize("silence", [1.0, 0.0])
def test_a_process_that_is_stopped_ends_the_exchange_of_the_others(silence: float) -> None:
    """Its connections stay open; the control listens for no signs of life."""
    three = Together(silence)
    hold = threading.Event()
    stopped = three.running.workers[2]._van
    assert isinstance(stopped, SocketVan)
    stopped._check_timeouts = lambda now, slept: hold.wait(8)  # type: ignore[method-assign, assignment]
    for rank in (0, 1):
        three.start(rank, lambda g: reduced(g, np.ones(2, np.float32)))
    for rank in (0, 1):
        assert three.ends(rank, 7.0 if silence else 2.0) is bool(silence)
        assert not silence or "no sign of life" in three.error(rank)
    hold.set()
    for worker in three.running.workers.values():
        worker.close(wait=False)


@pytest.mark.parametrize("timeout", [0.5, 0.0])
def test_a_process_that_does_not_call_is_an_error_in_the_end(
    timeout: float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The control has no limit, and only says for whom it waits."""
    monkeypatch.setattr(peer_links, "WAIT_LOG_SECONDS", 0.1)
    three = Together(timeout=timeout)
    three.start(0, lambda g: reduced(g, np.ones(2, np.float32)))
    assert three.ends(0, 10.0 if timeout else 2.0) is bool(timeout)
    assert not timeout or "did not take part within 0.5 s (DUALMX_DIST_TIMEOUT)" in three.error(0)
    assert bool(timeout) or "process 0 waits in all_reduce for" in caplog.text
    for worker in three.running.workers.values():
        worker.close(wait=False)
    time.sleep(0.1)
