"""Horovod's engine: what is collected, fused and ordered, timelines, missing processes, tuning."""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import dualmx as mx
import dualmx.horovod as hvd
from dualmx.horovod.autotune import BayesianSearch, ParameterManager, TunableParams
from dualmx.horovod.controller import Controller, Request
from dualmx.ndarray.deferred import set_deferred
from tests import jobs


def ask(name: str, text: str = "float32 (2,)", nbytes: int = 8, kind: str = "allreduce") -> Request:
    return Request(name, kind, text, nbytes, text if kind == "allreduce" else "")


def test_orders_hold_what_all_are_ready_for_and_what_fits() -> None:
    three = Controller([0, 1, 2])
    names = [ask("a"), ask("h", "float16 (2,)", 4), ask("b"), ask("c"), ask("g", kind="allgather")]
    for member in range(3):
        assert three.pop_responses(16) == []
        three.add_ready(member, names[:: -1 if member else 1], 0.0)
    # 16 bytes have room for two; float16 between them does not part them.
    assert [o.names for o in three.pop_responses(16)] == [["g"], ["c", "b"], ["h"], ["a"]]
    three.add_ready(0, names[:3], 0.0)
    three.add_ready(1, names[:3], 0.0)
    three.add_ready(2, names[:3], 0.0)
    assert [o.names for o in three.pop_responses(0)] == [["a"], ["h"], ["b"]]
    assert not three.busy


def test_disagreements_and_stalls_name_processes() -> None:
    two = Controller([3, 5])
    two.add_ready(0, [ask("a"), ask("b")], 1.0)
    two.add_ready(1, [ask("a", "float32 (3,)")], 2.0)
    (order,) = two.pop_responses(64)
    assert "process 3 calls allreduce of float32 (2,), process 5 allreduce of float32 (3,)" in order.error
    assert two.stalled(1.5, 1.0) == [] and two.stalled(3.0, 1.0) == [("b", [5], 2.0)]
    assert two.stalled(9.0, 1.0) == [] and two.overdue(9.0, 5.0) == [("b", [5], 8.0)]
    assert two.give_up("b", "too late").error == "too late" and not two.busy


def test_joined_processes_are_not_waited_for() -> None:
    two = Controller([0, 1])
    two.add_ready(0, [ask("a"), ask("g", kind="allgather")], 0.0)
    assert two.join(1) is None
    a, g = two.pop_responses(64)
    assert (a.names, a.active, a.error) == (["a"], [0], "") and "process 1 has joined" in g.error
    assert two.join(0) == 0 and two.joined == []


def test_search_finds_the_top() -> None:
    draw = np.random.RandomState(1)
    search = BayesianSearch(2, 0.1)

    def height(x: float, y: float) -> float:
        return -((x - 0.7) ** 2) - (y - 0.2) ** 2

    for _ in range(25):
        x = search.propose()
        search.add_sample(x, height(*x) + draw.randn() * 0.01)
    assert height(*search.best()) > -0.03


def test_tuner_keeps_what_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in (
        ("CYCLE_TIME", "7"), ("AUTOTUNE_LOG", str(tmp_path / "log.csv")), ("AUTOTUNE_WARMUP_SAMPLES", "2"),
        ("AUTOTUNE_BAYES_OPT_MAX_SAMPLES", "15"), ("AUTOTUNE_GAUSSIAN_PROCESS_NOISE", "0.05"),
    ):  # fmt: skip
        monkeypatch.setenv(f"HOROVOD_{name}", value)
    monkeypatch.delenv("HOROVOD_FUSION_THRESHOLD", raising=False)
    tuner = ParameterManager(TunableParams(64 << 20, 7.0, False), False)
    samples = 0
    while not tuner.over:
        tuner.sample(100 - abs((tuner.settings.threshold >> 20) - 20))
        samples += 1
    assert samples == 17 and tuner.settings.cycle == 7.0 and not tuner.settings.hierarchical
    assert abs((tuner.settings.threshold >> 20) - 20) <= 8
    rows = list(csv.DictReader((tmp_path / "log.csv").read_text().splitlines()))
    assert len(rows) == 16 and rows[-1]["sample"] == "best" and {r["cycle_time_ms"] for r in rows} == {"7.0"}
    monkeypatch.setenv("HOROVOD_FUSION_THRESHOLD", "1000")
    assert ParameterManager(TunableParams(1000, 7.0, False), False).over


def test_promised_values() -> None:
    x, kept = mx.nd.zeros((2,)), mx.nd.zeros((2,))
    after = x + 1
    set_deferred(x, lambda: mx.nd.array([5.0, 6.0]))
    doubled, view = x * 2, x[1:]
    assert doubled.asnumpy().tolist() == [10.0, 12.0] and after.asnumpy().tolist() == [1.0, 1.0]
    assert x.asnumpy().tolist() == [5.0, 6.0] and view.asnumpy().tolist() == [6.0]

    def broken() -> mx.nd.NDArray:
        raise mx.base.MXNetError("a process is gone")

    set_deferred(kept, broken)
    for read in (lambda: (kept + 1).asnumpy(), kept.asnumpy):
        with pytest.raises(mx.base.MXNetError, match="a process is gone"):
            read()
    kept[:] = 3
    assert kept.asnumpy().tolist() == [3.0, 3.0]
    set_deferred(kept, broken)
    kept[:] = 4  # what is written wins; nobody asks for the value
    assert kept.asnumpy().tolist() == [4.0, 4.0]
    w = mx.nd.ones((2,))
    w.attach_grad()
    with mx.autograd.record():
        y = (w * 3).sum()
    y.backward()
    set_deferred(w.grad, lambda: mx.nd.array([1.0, 2.0]))
    mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=1.0))(0, w.grad, w)
    assert w.asnumpy().tolist() == [0.0, -1.0]


def test_timeline_of_one_process(tmp_path: Path) -> None:
    hvd.init()
    try:
        path = tmp_path / "t.json"
        hvd.start_timeline(str(path), mark_cycles=True)
        with pytest.raises(ValueError, match="is being written"):
            hvd.start_timeline(str(path))
        hvd.allreduce(mx.nd.ones((2,)), name="one")
        hvd.stop_timeline()
        events = json.loads(path.read_text())
        assert {"NEGOTIATE_ALLREDUCE", "ALLREDUCE"} <= {e.get("name") for e in events}
        assert any(e.get("args") == {"name": "one"} for e in events)
        with pytest.raises(ValueError, match="No such file"):
            hvd.start_timeline(str(tmp_path / "none" / "t.json"))
        handle = hvd.allreduce_async_(mx.nd.ones((2,)))
        assert hvd.poll(handle) and hvd.synchronize(handle).shape == (2,)
        with pytest.raises(TypeError, match="an _async function"):
            hvd.synchronize(3)  # type: ignore[arg-type]
    finally:
        hvd.shutdown()


def launched(count: int, script: str, **env: str) -> jobs.Done:
    """Run a script in so many processes, each of which finishes."""
    done = jobs.run(*jobs.launcher(count), jobs.PYTHON, script, env=env)
    assert done.stdout.count("finished") == count
    return done


@pytest.mark.slow
def test_three_processes(tmp_path: Path) -> None:
    path = tmp_path / "timeline.json"
    done = launched(
        3, "tests/horovod/jobs/eager.py", HOROVOD_TIMELINE=str(path), HOROVOD_CYCLE_TIME="50",
        HOROVOD_STALL_CHECK_TIME_SECONDS="0.5", HOROVOD_STALL_SHUTDOWN_TIME_SECONDS="5",
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert re.search(r"stalled for \d+ s: lonely: ready here, missing: process 1\b", said)
    events = json.loads(path.read_text())
    rows = {e["args"]["name"]: e["pid"] for e in events if e.get("name") == "process_name"}
    own = [e for e in events if e["pid"] == rows["t3"]]
    names = [e.get("name") for e in own if e["ph"] in "BX"]
    assert names[0] == "NEGOTIATE_ALLREDUCE" and {"0", "1", "2"} <= set(names)
    assert names[-4:] == ["ALLREDUCE", "MEMCPY_IN_FUSION_BUFFER", "HOST_ALLREDUCE", "MEMCPY_OUT_FUSION_BUFFER"]
    assert sum(e["ph"] == "B" for e in own) == sum(e["ph"] == "E" for e in own) == 5
    late = [e["name"] for e in events if e["pid"] == rows["twice"] and e["ph"] in "BX"]  # this process comes last
    assert late[0] == "NEGOTIATE_ALLREDUCE" and set(late[1:3]) == {"1", "2"} and late[3:5] == ["0", "ALLREDUCE"]
    for row in rows.values():
        assert sum({"B": 1, "E": -1}.get(e["ph"], 0) for e in events if e["pid"] == row) == 0


@pytest.mark.slow
def test_nothing_is_fused_on_demand() -> None:
    launched(3, "tests/horovod/jobs/eager.py", HOROVOD_FUSION_THRESHOLD="0")


@pytest.mark.slow
def test_settings_are_tried_out(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    launched(
        2, "tests/horovod/jobs/tuned.py", HOROVOD_AUTOTUNE="1", HOROVOD_AUTOTUNE_LOG=str(log),
        HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE="3", HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES="6",
    )  # fmt: skip
    rows = list(csv.DictReader(log.read_text().splitlines()))
    assert [r["sample"] for r in rows] == ["1", "2", "3", "4", "5", "6", "best"]
    assert len({r["tensor_fusion_threshold"] for r in rows}) > 2 and all(float(r["score"]) > 0 for r in rows[:-1])


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="pretended hosts need root")
def test_hosts_add_up_first(tmp_path: Path) -> None:
    for levels in ("0", ""):
        env = {"HOSTS": str(tmp_path), "DUALMX_TCP": "1"} | (
            {"HOROVOD_HIERARCHICAL_ALLREDUCE": levels} if levels else {}
        )
        launched(4, "tests/horovod/jobs/hosts.py", **env)
