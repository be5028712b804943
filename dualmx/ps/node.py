"""A worker's and a server's place in a job: they register with the scheduler, meet each other, and end together."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ..core import knobs
from ..core.errors import FormatError, MXNetError
from .customer import Customer, Peer
from .drops import dropping, repeat
from .frame import ERROR, NOTE, REPLY, Message
from .job import Job
from .journal import Journal
from .peers import Peers
from .server import Control, KVServer
from .talking import talk
from .van import GRACE, SILENCE, Refused
from .worker import ROUNDED, KVWorker

_log = logging.getLogger("dualmx.dist")
SMALL = 64 << 10  # bytes of a request that may be served on the thread that received it
QUICK = 16  # quick requests in turn before that


class _Registered:
    """What workers and servers have in common: a van, the scheduler, and who is gone.

    Attributes:
        life: tells this process from others that have or had its place.
        back: this process takes the place of one that died.
    """

    def __init__(self, job: Job):
        talk()
        self.job = job
        self._van = job.van()
        self._customer = Customer(self._van, job.timeout)
        self.gone: dict[tuple[str, int], str] = {}
        self.dead: set[tuple[str, int]] = set()
        self.rank = -1
        self.life = int.from_bytes(os.urandom(6), "big")
        self.back = False
        self._barriers = 0
        self._scheduler = Peer("the scheduler", {"host": job.uri, "port": job.port})
        self._moved = threading.Condition()  # notified when a peer has another address, or this process leaves
        self._closed = False

    def _join(self, address: dict[str, Any]) -> list[dict[str, Any]]:
        """Register with the scheduler; returns the servers' addresses."""
        job = self.job
        self._scheduler.link = self._van.connect(self._scheduler.address, job.start)
        meta = {
            "op": "register",
            "role": job.role,
            "wish": job.task,
            "life": self.life,
            "workers": job.workers,
            "servers": job.servers,
            "address": address,
        }
        ticket = self._customer.ask(self._scheduler, f"joining the job as {job.role}", meta)
        reply = self._customer.wait([ticket], job.start + 10)[0]
        self.rank = reply.take("rank", int)
        self.back, self._barriers = reply.take("back", bool), reply.take("barriers", int)
        os.environ["DMLC_RANK"] = str(self.rank)
        servers = reply.take("servers", list)
        if len(servers) != job.servers or not all(isinstance(s, dict) for s in servers):
            raise FormatError("the scheduler sent no list of the servers")
        known = ", ".join(f"server {i} at {s.get('host')}:{s.get('port')}" for i, s in enumerate(servers))
        _log.info(
            "%s %d: joined the job of the scheduler at %s:%d, with %s", job.role, self.rank, job.uri, job.port, known
        )
        return servers

    def _scheduler_said(self, message: Message) -> None:
        if message.kind in (REPLY, ERROR):
            self._customer.on_message(message)
            return
        op, role, rank = message.take("op", str), message.take("role", str), message.take("rank", int)
        if op == "gone":
            self._lost(role, rank, message.take("text", str), message.take("dead", bool))
        elif op == "lost":
            self._shaky(role, rank)
        elif op == "back":
            self.dead.discard((role, rank))
            self.gone.pop((role, rank), None)
            self._returned(role, rank, message.take("address", dict))

    def _lost(self, role: str, rank: int, text: str, dead: bool) -> None:
        self.gone.setdefault((role, rank), text)
        if dead:
            self.dead.add((role, rank))

    def _shaky(self, role: str, rank: int) -> None:
        """The scheduler's connection to a member broke."""

    def _returned(self, role: str, rank: int, address: dict[str, Any]) -> None:
        """A member is there again."""

    # -- connections that break

    def _broke(self, peer: Peer, reason: str, waits: bool, hello: dict[str, Any], lost: Callable[[str], None]) -> None:
        """Connect to `peer` again, on a thread, or call `lost` with the reason that it cannot be."""
        with peer.lock:
            peer.link = -1
        if reason.startswith(SILENCE) and not waits:
            lost(reason)
            return
        work = threading.Thread(target=self._again, args=(peer, reason, waits, hello, lost), daemon=True)
        work.start()

    def _again(self, peer: Peer, reason: str, waits: bool, hello: dict[str, Any], lost: Callable[[str], None]) -> None:
        until = time.monotonic() + (self.job.comeback if waits else max(self.job.silence, 1.0))
        while not self._closed and not peer.gone:
            try:
                link = self._van.connect(peer.address, 0.2, patient=False)
                if self._customer.resume(peer, link, hello):
                    _log.warning("%s %d: connected to %s again, after: %s", self.job.role, self.rank, peer.name, reason)
                    return
            except Refused:
                if not waits:
                    break
            except (MXNetError, OSError):
                pass
            if time.monotonic() > until:
                break
            with self._moved:
                self._moved.wait(0.1)
        if not self._closed:
            lost(reason + (f"; it did not come back within {self.job.comeback:g} s" if waits else ""))

    def _scheduler_broke(self, reason: str) -> None:
        meta = {"op": "rejoin", "role": self.job.role, "rank": self.rank, "life": self.life}
        self._broke(self._scheduler, reason, False, meta, self._scheduler_died)

    def _scheduler_died(self, reason: str) -> None:
        text = f"the scheduler died: {reason}"
        self._lost("scheduler", 0, text, True)
        self._customer.give_up(self._scheduler, text)

    def _leave(self) -> None:
        self._closed = True
        with self._moved:
            self._moved.notify_all()


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
        self._servers: list[Peer] = []
        self._peers: Peers | None = None
        self._van.on_message, self._van.on_down = self._on_message, self._on_down
        self._van.start()
        try:
            addresses = self._join({"host": job.own_host()})
            self._servers = [Peer(f"server {rank}", address) for rank, address in enumerate(addresses)]
            bound = knobs.BIGARRAY_BOUND.integer(1)
            self.kv = KVWorker(self._customer, self._servers, bound, self.rank, self.life)
            self.kv.back = self.back
            for peer in self._servers:
                peer.link = self._van.connect(peer.address, job.start)
            self.kv.wait(self.kv.ask_all("joining the job", self.kv.hello))
            if job.drop:
                self._van.on_message = dropping(self._on_message, job.drop, f"worker {self.rank}")
                repeat(self._customer, job.resend, lambda: self._closed)
        except BaseException:
            self._closed = True
            self._van.close()
            raise

    def _on_message(self, link: int, message: Message) -> None:
        try:
            if link == self._scheduler.link:
                self._scheduler_said(message)
            elif self._peers is not None and self._peers.on_message(link, message):
                pass
            elif message.kind == NOTE:
                _log.warning("worker %d waits: %s", self.rank, message.meta.get("text"))
            else:
                self._customer.on_message(message)
        except FormatError as e:
            _log.error("worker %d: %s", self.rank, e)

    def _on_down(self, link: int, reason: str) -> None:
        if self._closed:
            return
        if link == self._scheduler.link:
            self._scheduler_broke(reason)
        if self._peers is not None:
            self._peers.on_down(link, reason)
        for rank, peer in enumerate(self._servers):
            if link == peer.link:
                waits = self.job.on_server_death == "wait"
                self._broke(peer, reason, waits, self.kv.hello, lambda why, rank=rank: self._server_died(rank, why))

    def _server_died(self, rank: int, reason: str) -> None:
        text = f"server {rank} died: {reason}"
        self._lost("server", rank, text, True)
        self._customer.give_up(self._servers[rank], text)

    def _lost(self, role: str, rank: int, text: str, dead: bool) -> None:
        super()._lost(role, rank, text, dead)
        if role == "worker" and dead and self._peers is not None:
            self._peers.lost(rank, text)
        if role == "server" and rank < len(self._servers) and self.job.on_server_death != "wait":
            self._customer.give_up(self._servers[rank], text)

    def _returned(self, role: str, rank: int, address: dict[str, Any]) -> None:
        if role == "server" and rank < len(self._servers):
            self._servers[rank].address = address
            with self._moved:
                self._moved.notify_all()

    def peers(self) -> Peers:
        """Link this worker directly to all others, which do the same; once.

        Raises:
            MXNetError: a worker or the scheduler is gone, or cannot be reached.
        """
        if self._peers is None:
            own = self.job.own_host()
            self._peers = Peers(self._van, self.rank, self.job.workers, self.job.timeout)
            address = self._peers.listen(self.job.bind_host(own), own)
            found = self._asked("meet", "meeting the other workers", address=address).take("addresses", list)
            if len(found) != self.job.workers or not all(isinstance(a, dict) for a in found):
                raise FormatError("the scheduler sent no list of the workers")
            self._peers.connect(found, self.job.start)
        return self._peers

    def coordinator(self) -> str:
        """Return `host:port` of what XLA's processes meet by, which the scheduler starts when it is first asked.

        Raises:
            MXNetError: the scheduler is gone, or starts none.
        """
        return self._asked("coordinator", "starting XLA's coordinator").take("address", str)

    def _asked(self, op: str, what: str, **more: Any) -> Message:
        ticket = self._customer.ask(self._scheduler, what, {"op": op, **more})
        return self._customer.wait([ticket], self.job.start + 10)[0]

    def barrier(self, name: str = "") -> None:
        """Wait until all workers are here.

        Args:
            name: of a barrier that is passed once; a worker that comes back passes it again without waiting.

        Raises:
            MXNetError: a worker or the scheduler is gone.
        """
        self.kv.flush()
        self.kv.forget()
        if not name:
            self._barriers += 1
        what = f"barrier {name or self._barriers}"
        meta = {"op": "barrier", "name": name, "number": self._barriers}
        self._customer.wait([self._customer.ask(self._scheduler, what, meta)])

    def crash(self, reason: str) -> None:
        """Tell the others why this process is about to end; it counts as dead when it does."""
        self._leave()
        if self._peers is not None:
            self._peers.leave("crash", reason)
        for peer in (*self._servers, self._scheduler):
            self._van.send(peer.link, Message(NOTE, 0, {"op": "crash", "text": reason[:500]}))

    def close(self, wait: bool = True) -> None:
        """Take leave of the job, when what was pushed has arrived (`wait`)."""
        if not self._closed:
            if wait:
                try:
                    self.kv.flush()
                    self._customer.wait(self._customer.open())
                except MXNetError as e:
                    _log.error("worker %d: %s", self.rank, e)
            self._leave()
            if self._peers is not None:
                self._peers.leave("bye")
            for peer in (*self._servers, self._scheduler):
                self._van.send(peer.link, Message(NOTE, 0, {"op": "bye"}))
            self._van.close()
            for peer in (*self._servers, self._scheduler):
                self._customer.give_up(peer, "this worker has left the job")


class Server(_Registered):
    """A server of a job.

    Args:
        job: the job.
        control: see `KVServer`; called with what concerns optimizers.
    """

    def __init__(self, job: Job, control: Control | None = None):
        super().__init__(job)
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._turn, self._counting = threading.Lock(), threading.Lock()  # whoever serves has the turn
        self._waiting = 0  # things in `_work` that are not done
        self._quick = 0  # small requests that were served quickly, one after another
        self._crashes: dict[int, str] = {}
        self._suspected: dict[int, float] = {}  # workers whose connection to the scheduler broke, and when
        self._missing: dict[int, tuple[float, str]] = {}  # workers without a connection: until when, and why
        self._van.on_message, self._van.on_down = self._on_message, self._on_down
        self._van.start()
        self._journal: Journal | None = None
        try:
            own = job.own_host()
            address = self._van.listen(job.bind_host(own), knobs.NODE_PORT.integer())
            self._join({**address, "host": own})
            self._van.on_message = dropping(self._on_message, job.drop, f"server {self.rank}")
            if job.journal:
                self._journal = Journal(job.journal, self.rank, job.durable)
            returns = job.on_worker_death == "wait"
            self.kv = KVServer(self._van, job.workers, control, self._journal, returns)
        except BaseException:
            self._van.close()
            raise

    def _on_message(self, link: int, message: Message) -> None:
        if link == self._scheduler.link:
            try:
                self._scheduler_said(message)
            except FormatError as e:
                _log.error("server %d: %s", self.rank, e)
        elif message.kind == NOTE and message.meta.get("op") == "bye":
            self._hand(lambda: self._bye(link))
        elif message.kind == NOTE and message.meta.get("op") == "crash":
            self._crashes[link] = str(message.meta.get("text"))[:500]
        elif not self._serve_at_once(link, message):
            self._hand(lambda: self._serve(link, message))

    def _hand(self, work: Callable[[], None]) -> None:
        """Let the server's own thread do something, after all that it was handed before."""
        with self._counting:
            self._waiting += 1
        self._work.put(work)

    def _serve_at_once(self, link: int, message: Message) -> bool:
        """Serve a small request on the thread that received it, which saves waking another one.

        Only where others like it were quick, so that the van is not kept from its connections.
        """
        if self._quick < QUICK or self._waiting or sum(len(p) for p in message.payload) > SMALL:
            return False
        if not self._turn.acquire(blocking=False):
            return False
        try:
            if self._waiting:
                return False
            self._serve(link, message)
        except Exception as e:
            self._hand(partial(_raise, e))
        finally:
            self._turn.release()
        return True

    def _serve(self, link: int, message: Message) -> None:
        began = time.monotonic()
        self.kv.on_message(link, message)
        quick = message.meta.get("op") in ROUNDED and time.monotonic() - began < 0.01
        self._quick = self._quick + 1 if quick and self._journal is None else 0

    def _on_down(self, link: int, reason: str) -> None:
        if link == self._scheduler.link:
            self._scheduler_broke(reason)
            return
        crash = self._crashes.pop(link, "")
        self._hand(lambda: self._down(link, crash or reason, bool(crash)))

    # -- workers that come and go; on the server's own thread

    def _bye(self, link: int) -> None:
        rank = self.kv.ranks.get(link)
        if rank is not None:
            self.kv.lose(rank, f"worker {rank} has left the job", left=True)

    def _down(self, link: int, reason: str, sure: bool) -> None:
        rank = self.kv.ranks.pop(link, None)
        if rank is not None and self.kv.clients[rank].link == link:
            sure = sure or reason.startswith(SILENCE) or time.monotonic() - self._suspected.get(rank, -9.0) < 2.0
            self._miss(rank, f"worker {rank} died: {reason}", sure)

    def _miss(self, rank: int, reason: str, sure: bool) -> None:
        """Worker `rank` has no connection; `sure` if it is dead."""
        if rank in self.kv.gone or rank in self.kv.excluded:
            return
        waits = self.job.on_worker_death == "wait"
        if sure and not waits:
            self._give_up(rank, reason)
        elif rank not in self._missing:
            patience = self.job.comeback if waits else GRACE
            self._missing[rank] = (time.monotonic() + patience, reason)
            if waits:
                _log.warning("server %d: %s; waiting for its return", self.rank, reason)

    def _give_up(self, rank: int, reason: str) -> None:
        self._missing.pop(rank, None)
        if self.job.on_worker_death == "continue":
            self.kv.exclude(rank, reason)
        elif self.job.on_worker_death == "wait":
            self.kv.lose(rank, f"{reason}; it did not come back within {self.job.comeback:g} s")
        else:
            self.kv.lose(rank, reason)

    def _shaky(self, role: str, rank: int) -> None:
        if role == "worker":
            self._hand(lambda: self._suspect(rank))

    def _trust(self, rank: int) -> None:
        self._suspected.pop(rank, None)

    def _suspect(self, rank: int) -> None:
        self._suspected[rank] = time.monotonic()
        if rank in self._missing:
            self._miss(rank, self._missing[rank][1], True)

    def _returned(self, role: str, rank: int, address: dict[str, Any]) -> None:
        if role == "worker":
            self._hand(lambda: self._trust(rank))

    def _lost(self, role: str, rank: int, text: str, dead: bool) -> None:
        super()._lost(role, rank, text, dead)
        if role == "worker" and dead:
            self._hand(lambda: self._miss(rank, text, True))
        elif role == "worker":
            self._hand(lambda: self._maybe_unmet(rank, text))
        self._hand(lambda: None)

    def _maybe_unmet(self, rank: int, text: str) -> None:
        """A worker that never came here cannot say goodbye here; one that did has its own link for that."""
        if rank not in self.kv.clients:
            self.kv.lose(rank, text)

    def _check(self) -> None:
        """Those who came back are not missed; those who did not in time are given up."""
        now = time.monotonic()
        for rank, (until, reason) in list(self._missing.items()):
            client = self.kv.clients.get(rank)
            if client is not None and client.link in self.kv.ranks:
                del self._missing[rank]
            elif now > until:
                self._give_up(rank, reason)

    def run(self) -> None:
        """Serve, on this thread, until all workers have left or died."""
        try:
            if self.kv.restore():
                _log.warning("server %d: took over from the journal in %s", self.rank, self.job.journal)
            if self.back:
                patience = self.job.comeback if self.job.on_worker_death == "wait" else max(self.job.silence, 2.0)
                for rank in range(self.job.workers):
                    why = f"worker {rank} did not connect to server {self.rank} after its restart"
                    self._missing[rank] = (time.monotonic() + patience, why)
            while len(self.kv.gone.keys() | self.kv.excluded.keys()) < self.job.workers:
                self._next()
                if ("scheduler", 0) in self.gone and set(range(self.job.workers)) - self.kv.clients.keys():
                    raise MXNetError(self.gone["scheduler", 0])  # before all workers came: nobody can join any more
            self._van.send(self._scheduler.link, Message(NOTE, 0, {"op": "bye"}))
        finally:
            self._leave()
            self._van.close()
            if self._journal is not None:
                self._journal.close()

    def _next(self) -> None:
        """Do what comes next, and look after what waits for long."""
        try:
            work = self._work.get(timeout=0.1 if self._missing else 1.0)
        except queue.Empty:
            work = None
        while not self._turn.acquire(timeout=0.5):
            self._van.pulse()  # a request that was to be quick is not
        try:
            if work is not None:
                work()
            if self._missing:
                self._check()
            self.kv.tick()
        finally:
            self._turn.release()
            if work is not None:
                with self._counting:
                    self._waiting -= 1


def _raise(error: Exception) -> None:
    raise error


__all__ = ["Server", "Worker"]
