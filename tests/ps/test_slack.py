"""Stores whose workers may be a few pushes ahead of the slowest (`dist_ssp:k`), and no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import FormatError, MXNetError
from dualmx.kvstore import is_asynchronous, known
from dualmx.ps.sparse_rows import dense
from dualmx.ps.store import PendingRequest, Store


class Bench:
    """One slice of a store, and what it has answered."""

    def __init__(self, slack: int | None, workers: int = 3):
        self.failures: list[str] = []
        self.store = Store(range(workers), False, lambda who: None, lambda who, why: self.failures.append(why), slack)
        self.store.apply = lambda batch: [dense(held.value) + total for held, total in batch]
        self.store.put("w", 0, np.zeros(2, np.float32), (2,))
        self.turns = dict.fromkeys(range(workers), 0)

    def step(self, rank: int) -> PendingRequest:
        """Push and pull; the request, which is over once it is answered."""
        turn = self.turns[rank] = self.turns[rank] + 1
        pull = PendingRequest(rank, turn, 1, "pull")
        self.store.push(rank, [("w", 0, turn, np.ones(2, np.float32))], PendingRequest(rank, turn, 1, "push"))
        self.store.pull([("w", 0, turn)], pull)
        return pull


@pytest.mark.parametrize("slack", [0, 1, 3])
def test_a_worker_is_as_many_steps_ahead_as_it_may_be(slack: int) -> None:
    bench = Bench(slack)
    bench.step(1)
    bench.step(2)
    steps = [bench.step(0) for _ in range(slack + 1)]
    assert all(s.finished for s in steps) and steps[-1].values[0].tolist() == [slack + 3.0] * 2
    waiting = bench.step(0)
    assert not waiting.finished
    assert bench.store.describe_wait(waiting) == "round 2 of key 'w' still lacks the push of worker 1, 2"
    late = bench.step(1)
    assert late.finished == (slack > 0) and not waiting.finished
    bench.step(2)
    assert waiting.finished and late.finished and waiting.values[0].tolist() == [slack + 6.0] * 2


def test_control_without_a_bound_nobody_waits() -> None:
    bench = Bench(None)
    assert all(bench.step(0).finished for _ in range(50))


def test_who_waits_for_a_dead_worker_is_told_and_one_that_is_left_behind_holds_nobody() -> None:
    bench = Bench(1)
    for rank in range(3):
        bench.step(rank)
    bench.step(0)
    waiting = bench.step(0)
    assert not waiting.finished
    bench.store.fail_worker(2, "worker 2 died: killed")
    assert set(bench.failures) == {"round 2 of key 'w' cannot be completed: worker 2 died: killed"}
    other = Bench(1)
    for rank in range(3):
        other.step(rank)
    for rank in (0, 1):
        other.step(rank)
    waiting = other.step(0)
    assert not waiting.finished
    other.store.remove_worker(2)
    assert waiting.finished and other.failures == []


def test_names() -> None:
    assert known("DIST_SSP:2") == "dist_ssp:2" and is_asynchronous("dist_ssp:2") and not is_asynchronous("dist_sync")
    for wrong in ("dist_ssp", "dist_ssp:", "dist_ssp:-1", "dist_ssp:x"):
        with pytest.raises(MXNetError, match="unknown store"):
            known(wrong)
    with pytest.raises(MXNetError, match="in no distributed job"):
        mx.kv.create("dist_ssp:1")


def test_an_update_sees_each_push_once() -> None:
    bench = Bench(2)
    for turn in (1, 1, 2, 1, 2):  # repeated requests
        who: Any = PendingRequest(0, turn, 1, "push")
        bench.store.push(0, [("w", 0, turn, np.ones(2, np.float32))], who)
    assert dense(bench.store.shard("w", 0).value).tolist() == [2.0, 2.0]


def test_a_push_lets_others_go_on_whatever_it_waits_for_itself() -> None:
    bench = Bench(0, workers=3)
    waiting = bench.step(0)
    bench.step(1)
    assert not waiting.finished
    ahead = PendingRequest(2, 5, 1, "push")  # it has come back, and the pushes before were lost with it
    bench.store.push(2, [("w", 0, 5, np.ones(2, np.float32))], ahead)
    assert waiting.finished and not ahead.finished


def test_pushes_that_do_not_fit_change_nothing() -> None:
    bench = Bench(None)
    for wrong in (
        np.ones(2),
        np.ones(2, np.float16),
        np.ones(2, np.int32),
        np.ones(3, np.float32),
        np.ones(1, np.float32),
    ):
        with pytest.raises(FormatError, match=r"push of key 'w': .*expected float32\[2\]"):
            bench.store.push(0, [("w", 0, 1, wrong)], PendingRequest(0, 1, 1, "push"))
    assert bench.store.shard("w", 0).value.tolist() == [0, 0] and bench.step(0).finished
    assert bench.store.shard("w", 0).value.tolist() == [1, 1]


def test_values_are_put_once_anew_or_again() -> None:
    store = Bench(None).store
    store.keep_previous = True
    first = store.shard("w", 0)
    first.previous_value, first.completed_round = np.full(2, 9, np.float32), 4
    store.put("w", 0, np.ones(2, np.float32), (2,))
    assert store.shard("w", 0) is first and first.value.tolist() == [0, 0] and first.previous_value is not None
    store.put("w", 0, np.ones(2, np.float32), (2,), "reset")  # its rounds go on, but nobody is to see the former value
    assert store.shard("w", 0) is first and first.value.tolist() == [1, 1]
    assert first.previous_value is None and first.completed_round == 4
    store.put("w", 0, np.full(2, 3, np.float32), (2,), "fresh")
    assert store.shard("w", 0) is not first and store.shard("w", 0).completed_round == 0
    store.put("w", 0, np.ones(1, np.float32), (2,))  # a part of what was kept in one piece
    assert store.shard("w", 0).value.tolist() == [1]
