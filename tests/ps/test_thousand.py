"""A job of 1,000 workers on one host: a real scheduler and server, and workers that are connections alone.

Start, rounds, one straggler, one death, and all take their leave.
"""

from __future__ import annotations

import time

import pytest

from benchmarks.light_peers import LightJob

WORKERS, KEYS, ELEMENTS = 1000, 5, 256

pytestmark = pytest.mark.slow


def test_a_thousand_workers_start_go_on_and_leave() -> None:
    job = LightJob(WORKERS, env={"DUALMX_ON_WORKER_DEATH": "continue"})
    last = WORKERS - 1
    try:
        job.start()  # all connect at the same time
        job.put(KEYS, ELEMENTS)
        job.barrier(1)
        for turn in (1, 2):
            job.round(turn, KEYS, ELEMENTS)
        assert not job.notes and not job.down

        # One straggler: the others are told for whom they wait, and the server goes on answering meanwhile.
        asked = [one for rank in range(last) for one in job.push(rank, 3, range(KEYS), ELEMENTS)]
        until = time.monotonic() + job.seconds
        while len(job.notes) < last and time.monotonic() < until:
            job.answers([job.ask(job.links[last][1], {"op": "status"})])
            time.sleep(0.5)
        texts = {meta["text"] for _, meta in job.notes if meta["op"] == "waiting"}
        assert len(job.notes) >= last
        assert texts <= {f"round 3 of key '0.{key}' still lacks the push of worker {last}" for key in range(KEYS)}
        asked += job.push(last, 3, range(KEYS), ELEMENTS)
        job.check(job.answers(asked), 3, range(WORKERS))

        # One death: the others hear of it, and their round is over without it.
        job.notes.clear()
        asked = [one for rank in range(last) for one in job.push(rank, 4, range(KEYS), ELEMENTS)]
        job.die(last)
        job.check(job.answers(asked), 4, range(last))
        job.barrier(2)
        assert sum(meta["op"] == "gone" and meta["rank"] == last and meta["dead"] for _, meta in job.notes) == last

        assert job.leave() == {"scheduler": 0, "server 0": 0}
        assert job.said("scheduler") == f"scheduler: worker {last} died: closed the connection\n"
        assert "died" not in job.said("server 0")
    finally:
        job.close()
