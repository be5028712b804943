"""Changes of the code under test in the members of a job: sizes, deaths at a certain line, and faults put back."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dualmx.kvstore import compression, optimizer_config
from dualmx.kvstore.dist import DistKVStore, MemberStore
from dualmx.ps import WorkerNode, journal, member, postoffice, scheduler, server_node, worker_node
from dualmx.ps.postoffice import Postoffice
from dualmx.ps.scheduler import Scheduler
from dualmx.ps.scheduler_state import SchedulerState
from dualmx.ps.server import KVServer
from dualmx.ps.van.frame import REPLY, Message
from dualmx.ps.van.socket_van import SocketVan
from dualmx.ps.worker import KVWorker

from .plan import ROUNDS


def _wrapped(owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Let `around(original, ...)` be called in the place of a method."""
    original = getattr(owner, name)
    setattr(owner, name, lambda *args, **more: around(original, *args, **more))


def _die_once(what: str) -> None:
    """Kill this process, if none has been killed there yet."""
    mark = Path(sys.argv[1]) / f"{what}.died"
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def _is(task: str, role: str = "worker") -> bool:
    return (os.environ["DMLC_ROLE"], os.environ["DMLC_TASK_ID"]) == (role, task)


def small() -> None:
    """Snapshots after a few records, not after many megabytes."""
    journal.MIN_LOG_BYTES, journal.GROWTH_LIMIT = 6000, 1


def whole_arrays() -> None:
    """The optimizers need arrays in one piece, which lie in slices before."""
    os.environ["MXNET_KVSTORE_BIGARRAY_BOUND"] = "50"
    optimizer_config.ELEMENTWISE = frozenset()


# -- deaths at a certain line


def dies_before_barrier() -> None:
    """Worker 1 dies between its last push and a barrier in the midst of training."""

    def barrier(original: Any, self: WorkerNode, name: str = "") -> None:
        if _is("1") and not name and self.kv.position:
            _die_once("barrier")
        original(self, name)

    _wrapped(WorkerNode, "barrier", barrier)


def dies_before_first_barrier() -> None:
    """Worker 1 dies before it has come to any barrier of the script, and has pushed nothing."""

    def barrier(original: Any, self: WorkerNode, name: str = "") -> None:
        if _is("1") and not name and self.kv.idle:
            _die_once("first")
        original(self, name)

    _wrapped(WorkerNode, "barrier", barrier)


def dies_before_init() -> None:
    """Worker 0 dies before its initial values, which count for all, have left."""

    def init(original: Any, self: DistKVStore, *args: Any) -> None:
        if _is("0"):
            _die_once("init")
        original(self, *args)

    _wrapped(DistKVStore, "init", init)


def dies_before_optimizer() -> None:
    """Worker 0 dies before it tells the servers of the optimizer."""

    def set_optimizer(original: Any, self: DistKVStore, *args: Any) -> None:
        if _is("0"):
            _die_once("optimizer")
        original(self, *args)

    _wrapped(DistKVStore, "set_optimizer", set_optimizer)


def _first_ones_die(method: str) -> None:
    """All workers that the job began with die before a call of their store; those that join later do not."""

    def call(original: Any, self: DistKVStore, *args: Any) -> None:
        if not self.is_recovery:
            _die_once(f"first {os.environ['DMLC_TASK_ID']}")
        original(self, *args)

    _wrapped(DistKVStore, method, call)


def dies_before_init_like_all() -> None:
    """None of the first workers sends initial values."""
    _first_ones_die("init")


def dies_before_optimizer_like_all() -> None:
    """The first workers send initial values, and no optimizer."""
    _first_ones_die("set_optimizer")


def _dies_in_gathering(op: str, server: int) -> None:
    """Worker 0 dies as it puts slices together, when a server has served one kind of request."""

    def ask(original: Any, self: KVWorker, at: int, what: str, meta: dict[str, Any], *args: Any, **more: Any) -> Any:
        ticket = original(self, at, what, meta, *args, **more)
        if _is("0") and at == server and meta["op"] == op and meta.get("mode") != "init":
            self.wait([ticket])
            _die_once(f"{op} {server}")
        return ticket

    _wrapped(KVWorker, "ask", ask)


def dies_between_drops() -> None:
    """Worker 0 dies when the first server has dropped its slices, and the last one has not."""
    _dies_in_gathering("drop", 0)


def dies_before_put() -> None:
    """Worker 0 dies when all servers have dropped slices, whose values are nowhere then."""
    _dies_in_gathering("drop", 1)


def dies_in_last_barrier() -> None:
    """Worker 1 dies when all have passed the last barrier, as others close."""

    def barrier(original: Any, self: WorkerNode, name: str = "") -> None:
        original(self, name)
        if _is("1") and (Path(sys.argv[1]) / "1.npz").exists():
            _die_once("last")

    _wrapped(WorkerNode, "barrier", barrier)


def dies_after_leaving() -> None:
    """Worker 1 dies when the scheduler knows that it has left."""

    def farewell(original: Any, self: Postoffice, timeout: float) -> None:
        original(self, timeout)
        if _is("1"):
            _die_once("left")

    _wrapped(Postoffice, "_send_leave", farewell)


def dies_in_round() -> None:
    """Worker 1 dies when the pushes of round 9 are under way, and server 0 when its successor has asked for rounds."""

    def open_(original: Any, self: KVServer, rank: int, number: int, message: Any) -> Any:
        answer = original(self, rank, number, message)
        if _is("0", "server") and message.meta.get("back") is True:
            self._van.send(self.clients[rank].link, _reply(message, answer))
            _die_once("server")
        return answer

    def settle(original: Any, self: Any, keys: Any) -> None:
        if _is("1") and max(self._kv.rounds.values(), default=0) == 9:
            self._kv.flush()
            time.sleep(0.1)
            _die_once("round")
        original(self, keys)

    _wrapped(KVServer, "_resume_info", open_)
    _wrapped(DistKVStore, "_wait_for_pushes", settle)


def _reply(message: Any, answer: Any) -> Any:
    return Message(REPLY, message.request, answer)


def dies_in_replacement() -> None:
    """The scheduler dies when it has written down who came back, and before it tells anybody."""

    def enter(original: Any, self: SchedulerState, member: Any) -> None:
        original(self, member)
        if member.back and member.state == "alive":
            _die_once("scheduler")

    _wrapped(SchedulerState, "log_member", enter)


# -- slow networks


def last_round_is_late() -> None:
    """Worker 2 begins its last round 1 s late, while others come to the barrier behind it."""

    def push(original: Any, self: DistKVStore, *args: Any) -> None:
        if _is("2") and max(self._kv.rounds.values(), default=0) == ROUNDS - 1:
            time.sleep(1.0)
        original(self, *args)

    _wrapped(DistKVStore, "push", push)


def last_pushes_are_late() -> None:
    """What worker 0 pushes in its last round arrives 0.3 s later than what it sends then."""

    def send(original: Any, self: SocketVan, link: int, message: Message) -> bool:
        parts = message.meta.get("parts") or [[]]
        if not _is("0") or not str(message.meta.get("op")).startswith("push") or ROUNDS not in parts[0]:
            return original(self, link, message)
        threading.Timer(0.3, original, (self, link, message)).start()
        return True

    _wrapped(SocketVan, "send", send)


# -- faults put back


def without_residuals() -> None:
    """What compression keeps back dies with the worker."""
    _wrapped(compression.Compression, "_written", lambda original, self, residuals, slot, gradient, turn: (
        gradient if slot not in self._residual else self._residual[slot] + gradient
    ))  # fmt: skip


def without_journal() -> None:
    """Nothing is written down of rounds."""
    setattr(KVServer, "_write_closed", lambda self, number, closed: None)  # noqa: B010


def without_settled_barriers() -> None:
    """A barrier of an asynchronous store waits for no pushes."""
    DistKVStore.barrier = MemberStore.barrier  # type: ignore[method-assign]


def without_remedy() -> None:
    """Errors do not say what can be done."""
    for module in (member, postoffice, scheduler, server_node, worker_node):
        module.with_remedy = lambda text, role, policy: text


def without_positions() -> None:
    """The scheduler takes no notice of where a worker goes on."""

    def pass_(original: Any, self: Scheduler, link: int, *_: Any) -> None:
        self._members[link].past = -1

    _wrapped(Scheduler, "_pass", pass_)


PATCHES = {
    f.__name__: f
    for f in (
        small, whole_arrays, dies_before_init, dies_before_optimizer, dies_before_init_like_all,
        dies_before_optimizer_like_all, dies_before_first_barrier, dies_before_barrier, dies_between_drops,
        dies_before_put, dies_in_last_barrier, dies_after_leaving, dies_in_round, dies_in_replacement,
        without_residuals, without_journal, without_remedy, without_positions, last_pushes_are_late,
        last_round_is_late, without_settled_barriers,
    )
}  # fmt: skip


def apply(name: str) -> None:
    """Make a change in this process; that of the name `""` only lets it tell where it is when it gets SIGUSR1."""
    if name:
        PATCHES[name]()
    faulthandler.register(signal.SIGUSR1, sys.stderr)
