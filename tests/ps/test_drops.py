"""Messages that are lost: whoever waits for an answer asks again, and each push counts once all the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dualmx.core.errors import MXNetError
from dualmx.ps.customer import Customer, Peer
from dualmx.ps.server import KVServer
from dualmx.ps.sparse_rows import dense
from dualmx.ps.store import Store
from dualmx.ps.van.debug_van import with_message_drops
from dualmx.ps.van.frame import NOTICE, REQUEST, Message
from dualmx.ps.van.simulator import SimNetwork
from dualmx.ps.worker import KVWorker
from tests import jobs

WORKERS, ROUNDS = 3, 12


class Cluster:
    """Workers and one server on a network that loses messages; the stored value counts pushes."""

    def __init__(self, seed: int, sync: bool, percent: int):
        self.net = SimNetwork(seed, duplicate=0.1)
        van = self.net.van()
        kv = KVServer(van, WORKERS)
        van.on_message = with_message_drops(kv.on_message, percent, f"server {seed}")
        van.on_down = lambda link, reason: None
        self.workers: list[tuple[KVWorker, Customer]] = []
        for rank in range(WORKERS):
            own = self.net.van()
            customer = Customer(own, timeout=1.0)
            take = lambda link, message, customer=customer: customer.on_message(message)  # noqa: E731
            own.on_message = with_message_drops(take, percent, f"worker {seed} {rank}")
            own.on_down = lambda link, reason: None
            worker = KVWorker(customer, [Peer("server 0", link=own.connect(van.listen("", 0), 1.0))], 10, rank)
            self.workers.append((worker, customer))
            self.wait(worker, worker.ask_all("hello", worker.introduction))
            self.wait(worker, worker.open(0, sync, "open")._tickets)
            worker.register_key(0, "n", (4,), np.dtype(np.float32))
        first = self.workers[0][0]
        self.wait(first, first.put(0, {"n": np.zeros(4, np.float32)}))
        kv.stores[0].apply = lambda batch: [dense(held.value) + total for held, total in batch]

    def wait(self, worker: KVWorker, tickets: Any) -> list[Message]:
        for _ in range(100):
            self.net.run()
            if all(t.done for t in tickets):
                return worker.wait(tickets)
            for _, customer in self.workers:
                customer.resend_overdue(0.0, 0.0)
        raise MXNetError("no answer, however often it was asked for")

    def count(self) -> list[float]:
        for turn in range(ROUNDS):
            sent = [(w, w.push(0, {"n": np.full(4, 1 + r, np.float32)})) for r, (w, _) in enumerate(self.workers)]
            for worker, tickets in sent if turn % 2 else sent[::-1]:
                self.wait(worker, tickets)
        pulls = [(w, w.pull(0, ["n"])) for w, _ in self.workers]
        for worker, pulled in pulls:
            self.wait(worker, pulled.tickets)
        return [float(pulled.value("n")[0]) for _, pulled in pulls]


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("percent", [10, 30, 60])
def test_each_push_counts_once_however_many_messages_are_lost(sync: bool, percent: int) -> None:
    for seed in range(5):
        assert Cluster(seed, sync, percent).count() == [ROUNDS * 6.0] * WORKERS


def test_control_a_server_that_does_not_tell_pushes_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Store.push

    def forgetful(self: Store, rank: int, parts: Any, who: Any, pulls: bool = False) -> None:
        for key, number, _, _ in parts:
            self.shard(key, number).last_push_of.clear()
        before(self, rank, parts, who, pulls)

    monkeypatch.setattr(Store, "push", forgetful)
    assert Cluster(0, False, 30).count() != [ROUNDS * 6.0] * WORKERS


def test_control_nobody_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Customer, "resend_overdue", lambda self, after, longest: None)
    with pytest.raises(MXNetError, match="no answer"):
        Cluster(0, True, 30).count()


def test_what_introduces_processes_and_notes_are_not_lost() -> None:
    seen: list[Any] = []
    take = with_message_drops(lambda link, message: seen.append(message.meta.get("op")), 100, "x")
    for kind, op in ((REQUEST, "hello"), (REQUEST, "push"), (NOTICE, "bye"), (REQUEST, "register")):
        take(0, Message(kind, 1, {"op": op}))
    assert seen == ["hello", "bye", "register"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dist_sync", "dist_async"])
def test_a_job_that_loses_a_third_of_its_messages(kind: str) -> None:
    script = f"""
import dualmx as mx
kv = mx.kv.create({kind!r})
kv.init("n", mx.nd.zeros(4))
kv.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
out = mx.nd.zeros(4)
for turn in range(20):
    kv.push("n", -mx.nd.ones(4))
    kv.pull("n", out=out)
kv.barrier()
kv.pull("n", out=out)
print("counted", out.asnumpy().tolist())
"""
    env = {"PS_DROP_MSG": "30", "PS_RESEND_TIMEOUT": "50"}
    done = jobs.run(*jobs.launcher(2, 2), jobs.PYTHON, "-c", script, env=env)
    assert done.stdout.count("counted [40.0, 40.0, 40.0, 40.0]") == 2, done.stdout
