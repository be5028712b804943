"""What workers tell with their signs of life, and what the scheduler and `dualmx status` make of it."""

from __future__ import annotations

import logging
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx.core import job_status
from dualmx.core.errors import ArgumentTypeError, FormatError
from dualmx.core.net import free_port
from dualmx.gluon.contrib.estimator import LoggingHandler
from dualmx.ps.heartbeat import ExchangeCounters, WorkerStatus
from dualmx.ps.scheduler import Scheduler
from dualmx.ps.status import _stragglers, query_status
from dualmx.ps.van.frame import PING, Message
from dualmx.ps.van.socket_van import SocketVan


def told(at: float, rounds: int = 0, **more: Any) -> Message:
    return Message(PING, 0, {"op": "pulse", "at": at, "rounds": rounds, "sent": 8 * rounds, "received": rounds, **more})


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_status, "_latest", {})


def test_speeds_are_those_of_the_last_seconds() -> None:
    pulse = WorkerStatus()
    assert pulse.as_dict(0.0) == {}
    for second in range(21):
        pulse.update(told(float(second), 10 * min(second, 18)))
    found = pulse.as_dict(time.monotonic())
    assert (found["rounds"], found["sent"], found["received"]) == (180, 1440, 180)
    assert found["rounds_per_s"] == 6.0 and found["sent_per_s"] == 48.0  # (180 - 150) rounds of 5 s
    pulse.update(told(3.0, 2))  # another process in the place of that one
    assert pulse.as_dict(time.monotonic())["rounds_per_s"] == 0.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": "3"}, {"rounds": None}, {"at": True and "now"}, {"figures": [1]}, {"figures": {"loss": "low"}},
        {"figures": {"loss": True}}, {"figures": {str(i): i for i in range(17)}}, {"wait": 3}, {"wait": {"for": [1]}},
        {"wait": {"for": ["a"], "seconds": 1.0, "in": "x"}}, {"wait": {"for": [1] * 65, "seconds": 1.0, "in": "x"}},
        {"rounds": -1}, {"sent": 1 << 70}, {"at": float("nan")},
    ],
)  # fmt: skip
def test_signs_of_life_that_say_something_else_are_refused(wrong: dict[str, Any]) -> None:
    pulse = WorkerStatus()
    with pytest.raises(FormatError, match=rf"\b({'|'.join(wrong)}|seconds|for)\b"):
        pulse.update(Message(PING, 0, {**told(1.0).meta, **wrong}))
    assert pulse.as_dict(0.0) == {}


def test_numbers_that_are_not_finite_are_none() -> None:
    pulse = WorkerStatus()
    pulse.update(told(1.0, figures={"loss": float("nan"), "norm": float("inf"), "a\x1b[2J" + "b" * 80: 0.5}))
    assert pulse.as_dict(0.0)["figures"] == {"loss": None, "norm": None, "a [2J" + "b" * 59: 0.5}


def test_the_longest_wait_is_told(no_figures: None) -> None:
    traffic = ExchangeCounters()
    assert "wait" not in traffic.heartbeat_payload() and "figures" not in traffic.heartbeat_payload()
    now = time.monotonic()
    traffic.begin_wait([2], "parallel.recv", now - 3)
    other = threading.Thread(target=lambda: traffic.begin_wait([1], "parallel.barrier", now - 9))
    other.start()
    other.join()
    assert traffic.heartbeat_payload()["wait"] == {
        "seconds": pytest.approx(9, abs=1),
        "in": "parallel.barrier",
        "for": [1],
    }
    traffic.end_wait()
    assert traffic.heartbeat_payload()["wait"]["for"] == [1]


def test_figures_are_few_and_the_latest(no_figures: None) -> None:
    for i in range(20):
        mx.callback.report(f"figure {i}", i)
    mx.callback.report("figure 5", mx.nd.array([0.25]))
    assert job_status.latest_metrics() == {
        **{f"figure {i}": float(i) for i in range(6, 20)},
        "figure 4": 4.0,
        "figure 5": 0.25,
    }
    mx.callback.report("n" * 100, 1)
    assert "n" * 64 in job_status.latest_metrics() and "figure 4" not in job_status.latest_metrics()
    for wrong in ("low", None, mx.nd.ones((2,))):
        with pytest.raises(
            (ArgumentTypeError, mx.MXNetError),
            match=r"report\('loss'\): .*; expected a number, or an array of one element",
        ):
            mx.callback.report("loss", wrong)  # type: ignore[arg-type]


def test_callbacks_report_what_they_write(no_figures: None) -> None:
    metric = mx.metric.create("acc")
    metric.update([mx.nd.array([0, 1])], [mx.nd.array([[1, 0], [1, 0]])])
    param = mx.model.BatchEndParam(epoch=0, nbatch=0, eval_metric=metric, locals=None)
    mx.callback.log_train_metric(1)(param)
    mx.callback.LogValidationMetricsCallback()(param)
    assert job_status.latest_metrics() == {"accuracy": 0.5, "validation accuracy": 0.5}
    meter = mx.callback.Speedometer(2, frequent=1)
    meter(param)
    metric.update([mx.nd.array([0, 0])], [mx.nd.array([[1, 0], [1, 0]])])
    meter(param._replace(nbatch=1))
    assert job_status.latest_metrics()["accuracy"] == 0.75


def test_the_estimator_and_keras_report_what_they_write(no_figures: None) -> None:
    metric = mx.metric.Loss("training loss")
    metric.update(None, [mx.nd.array([0.25, 0.75])])
    handler = LoggingHandler(metrics=[metric])
    handler.epoch_end(SimpleNamespace(logger=logging.getLogger("estimator")))
    assert job_status.latest_metrics() == {"training loss": 0.5}
    model = mx.keras.Sequential([mx.keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["mae"])
    x = np.ones((8, 2), np.float32)
    history = model.fit(x, x[:, :1], epochs=2, batch_size=4, verbose=0, validation_data=(x, x[:, :1])).history
    wanted = {"training loss": 0.5, **{name: values[-1] for name, values in history.items()}}
    assert job_status.latest_metrics() == wanted and {"loss", "mae", "val_loss"} <= wanted.keys()


def test_who_waits_as_well_does_not_hold_up_the_others() -> None:
    def wait(seconds: float, *ranks: int) -> dict[str, Any]:
        return {"seconds": seconds, "in": "parallel.recv", "for": list(ranks)}

    assert _stragglers({"0": wait(3.0, 1), "1": wait(5.0, 2)}) == {"2": 5.0}
    assert _stragglers({"0": wait(3.0, 1, 2), "1": wait(2.0, 0, 2)}) == {"2": 3.0}
    assert _stragglers({"0": wait(9.0, 1), "1": wait(0.01, 0)}) == {"1": 9.0}
    assert _stragglers({}) == {}


def test_a_van_tells_with_every_sign_of_life_although_it_sends_other_things() -> None:
    """What has something to tell is told every interval; others give no sign while they talk."""
    secret = b"s" * 32
    here, there = (SocketVan(secret, interval=0.2, timeout=0, memory=0) for _ in range(2))
    heard: list[Message] = []
    there.on_message, there.on_down = lambda link, message: heard.append(message), lambda link, why: None
    here.on_message, here.on_down = lambda link, message: None, lambda link, why: None
    counts = iter(range(1000))
    here.heartbeat_payload = lambda link: {"op": "pulse", "number": next(counts)}  # type: ignore[method-assign]
    try:
        there.start()
        here.start()
        link = here.connect(there.listen("127.0.0.1", 0), 5.0)
        until = time.monotonic() + 20
        while sum(m.kind == PING for m in heard) < 3:
            assert time.monotonic() < until
            here.send(link, Message(4, 0, {"op": "chat"}))
            time.sleep(0.02)
        numbers = [m.meta["number"] for m in heard if m.kind == PING]
        assert numbers == sorted(numbers)
    finally:
        here.close()
        there.close()


def test_the_scheduler_takes_pulses_of_its_members_only() -> None:
    secret, port = b"s" * 32, free_port("127.0.0.1")
    van = SocketVan(secret)
    scheduler = Scheduler(van, 1, 0)
    van.on_message, van.on_down = scheduler.on_message, scheduler.on_down
    worker = SocketVan(secret)
    worker.on_message, worker.on_down = lambda link, message: None, lambda link, why: None
    try:
        van.start()
        worker.start()
        link = worker.connect(van.listen("127.0.0.1", port), 5.0)
        worker.send(link, told(0.0, 5))
        address = {"op": "register", "role": "worker", "wanted_rank": 0, "life": 1, "workers": 1, "servers": 0}
        worker.send(link, Message(1, 1, {**address, "address": {"host": "h"}}))
        worker.send(link, told(1.0, 10, figures={"loss": 0.5}))
        worker.send(link, told(3.0, 20, figures={"loss": 0.25}, wait={"seconds": 2.0, "in": "x", "for": [7]}))
        until = time.monotonic() + 20
        while (state := query_status("127.0.0.1", port, secret)).get("rounds") != 20:
            assert time.monotonic() < until
        assert state["rounds_per_s"] == 5.0 and state["sent_per_s"] == 40 and state["stragglers"] == {"7": 2.0}
        assert state["workers"]["0"]["figures"] == {"loss": 0.25} and "pulse" not in state["members"][0]
    finally:
        worker.close()
        van.close()
