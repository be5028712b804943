"""A worker's and a server's place in a job: they register with the scheduler, meet each other, and end together."""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable
from typing import Any

from ..core import knobs
from ..core.errors import FormatError, MXNetError
from .customer import Customer
from .frame import ERROR, NOTE, REPLY, Message
from .job import Job
from .postoffice import Scheduler
from .server import Control, KVServer
from .worker import KVWorker

_log = logging.getLogger("dualmx.dist")


class _Registered:
    """What workers and servers have in common: a van, a link to the scheduler, and who is gone."""

    def __init__(self, job: Job):
        self.job = job
        self._van = job.van()
        self._customer = Customer(self._van, job.timeout)
        self.gone: dict[tuple[str, int], str] = {}
        self.dead: set[tuple[str, int]] = set()
        self.rank = -1
        self._scheduler = -1

    def _join(self, address: dict[str, Any]) -> list[dict[str, Any]]:
        """Register with the scheduler; returns the servers' addresses."""
        job = self.job
        self._scheduler = self._van.connect({"host": job.uri, "port": job.port}, job.start)
        meta = {
            "op": "register",
            "role": job.role,
            "wish": job.task,
            "workers": job.workers,
            "servers": job.servers,
            "address": address,
        }
        ticket = self._customer.ask(self._scheduler, "the scheduler", f"joining the job as {job.role}", meta)
        reply = self._customer.wait([ticket], job.start + 10)[0]
        self.rank = reply.take("rank", int)
        os.environ["DMLC_RANK"] = str(self.rank)
        servers = reply.take("servers", list)
        if len(servers) != job.servers or not all(isinstance(s, dict) for s in servers):
            raise FormatError("the scheduler sent no list of the servers")
        return servers

    def _scheduler_said(self, message: Message) -> None:
        if message.kind in (REPLY, ERROR):
            self._customer.on_message(message)
        elif message.kind == NOTE and message.meta.get("op") == "gone":
            role, rank = message.take("role", str), message.take("rank", int)
            self._lost(role, rank, message.take("text", str), message.take("dead", bool))

    def _lost(self, role: str, rank: int, text: str, dead: bool) -> None:
        self.gone.setdefault((role, rank), text)
        if dead:
            self.dead.add((role, rank))

    def _lost_scheduler(self, reason: str) -> None:
        text = f"the scheduler died: {reason}"
        self._lost("scheduler", 0, text, True)
        self._customer.fail(lambda t: t.link == self._scheduler, text)


class Worker(_Registered):
    """A worker of a job; makes all connections when it is created.

    Args:
        job: the job.

    Attributes:
        rank: of this worker.
        kv: sends arrays to the servers.
    """

    def __init__(self, job: Job):
        super().__init__(job)
        self._servers: dict[int, int] = {}
        self._van.on_message, self._van.on_down = self._on_message, self._on_down
        self._van.start()
        self._barriers = 0
        self._closed = False
        try:
            addresses = self._join({})
            links = []
            for rank, address in enumerate(addresses):
                link = self._van.connect(address, job.start)
                self._servers[link] = rank
                links.append(link)
            bound = knobs.BIGARRAY_BOUND.integer(1)
            self.kv = KVWorker(self._customer, links, bound, lambda rank: self.gone.get(("server", rank), ""))
            self.kv.wait(self.kv.ask_all("joining the job", {"op": "hello", "rank": self.rank}))
        except BaseException:
            self._van.close()
            raise

    def _on_message(self, link: int, message: Message) -> None:
        try:
            if link == self._scheduler:
                self._scheduler_said(message)
            elif message.kind == NOTE:
                _log.warning("worker %d waits: %s", self.rank, message.meta.get("text"))
            else:
                self._customer.on_message(message)
        except FormatError as e:
            _log.error("worker %d: %s", self.rank, e)

    def _on_down(self, link: int, reason: str) -> None:
        if link == self._scheduler:
            self._lost_scheduler(reason)
        elif link in self._servers:
            rank = self._servers[link]
            self._lost("server", rank, f"server {rank} died: {reason}", True)

    def _lost(self, role: str, rank: int, text: str, dead: bool) -> None:
        super()._lost(role, rank, text, dead)
        if role == "server":
            self._customer.fail(lambda t: self._servers.get(t.link) == rank, self.gone[role, rank])

    def barrier(self) -> None:
        """Wait until all workers are here.

        Raises:
            MXNetError: a worker or the scheduler is gone.
        """
        self._barriers += 1
        what = f"barrier {self._barriers}"
        note = self.gone.get(("scheduler", 0), "")
        meta = {"op": "barrier", "number": self._barriers}
        self._customer.wait([self._customer.ask(self._scheduler, "the scheduler", what, meta, note=note)])

    def crash(self, reason: str) -> None:
        """Tell the others why this process is about to end; it counts as dead when it does."""
        for link in (*self._servers, self._scheduler):
            self._van.send(link, Message(NOTE, 0, {"op": "crash", "text": reason[:500]}))

    def close(self, wait: bool = True) -> None:
        """Take leave of the job, when what was pushed has arrived (`wait`)."""
        if not self._closed:
            self._closed = True
            if wait:
                try:
                    self._customer.wait(self._customer.open())
                except MXNetError as e:
                    _log.error("worker %d: %s", self.rank, e)
            for link in (*self._servers, self._scheduler):
                self._van.send(link, Message(NOTE, 0, {"op": "bye"}))
            self._van.close()
            self._customer.fail(lambda t: True, "this worker has left the job")


class Server(_Registered):
    """A server of a job.

    Args:
        job: the job.
        control: see `KVServer`; called with what concerns optimizers.
    """

    def __init__(self, job: Job, control: Control | None = None):
        super().__init__(job)
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._crashes: dict[int, str] = {}
        self.kv = KVServer(self._van, job.workers, control)
        self._van.on_message, self._van.on_down = self._on_message, self._on_down
        self._van.start()
        self._ready = threading.Event()
        try:
            own = job.own_host()
            address = self._van.listen(job.bind_host(own), knobs.NODE_PORT.integer())
            self._join({**address, "host": own})
        except BaseException:
            self._van.close()
            raise

    def _on_message(self, link: int, message: Message) -> None:
        if link == self._scheduler:
            try:
                self._scheduler_said(message)
            except FormatError as e:
                _log.error("server %d: %s", self.rank, e)
        elif message.kind == NOTE and message.meta.get("op") == "bye":
            self._work.put(lambda: self._end_of(link, "has left the job"))
        elif message.kind == NOTE and message.meta.get("op") == "crash":
            self._crashes[link] = str(message.meta.get("text"))[:500]
        else:
            self._work.put(lambda: self.kv.on_message(link, message))

    def _on_down(self, link: int, reason: str) -> None:
        if link == self._scheduler:
            self._lost_scheduler(reason)
            self._work.put(lambda: None)
        else:
            why = self._crashes.pop(link, reason)
            self._work.put(lambda: self._end_of(link, f"died: {why}"))

    def _end_of(self, link: int, how: str) -> None:
        rank = self.kv.ranks.get(link)
        if rank is not None:
            self.kv.lose(rank, f"worker {rank} {how}")

    def _lost(self, role: str, rank: int, text: str, dead: bool) -> None:
        super()._lost(role, rank, text, dead)
        if role == "worker" and dead:
            self._work.put(lambda: self.kv.lose(rank, text))
        elif role == "worker":
            self._work.put(lambda: self._maybe_unmet(rank, text))

    def _maybe_unmet(self, rank: int, text: str) -> None:
        """A worker that never came here cannot say goodbye here; one that did has its own link for that."""
        if rank not in self.kv.ranks.values():
            self.kv.lose(rank, text)

    def run(self) -> None:
        """Serve, on this thread, until all workers have left or died."""
        try:
            while len(self.kv.gone) < self.job.workers:
                try:
                    self._work.get(timeout=1.0)()
                except queue.Empty:
                    pass
                self.kv.tick()
                if ("scheduler", 0) in self.gone and set(range(self.job.workers)) - set(self.kv.ranks.values()):
                    raise MXNetError(self.gone["scheduler", 0])  # before all workers came: nobody can join any more
            self._van.send(self._scheduler, Message(NOTE, 0, {"op": "bye"}))
        finally:
            self._van.close()


def run_scheduler(job: Job) -> None:
    """Be the scheduler of a job until it is over.

    Raises:
        MXNetError: the port is taken, or the job does not come together in time.
    """
    van = job.van()
    scheduler = Scheduler(van, job.workers, job.servers)
    van.on_message, van.on_down = scheduler.on_message, scheduler.on_down
    van.start()
    try:
        van.listen(job.bind_host(job.uri), job.port)
        scheduler.run(job.start)
    finally:
        van.close()


__all__ = ["Server", "Worker", "run_scheduler"]
