"""A server's node in the job: serves requests, and follows workers that join and leave."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ..core import knobs
from ..core.errors import FormatError, MXNetError
from .job import Job
from .journal import Journal
from .member import with_remedy
from .postoffice import LEAVE_SECONDS, Postoffice
from .protocol import OP, ROUND_OPS, SERVER_NOTICES, Crash, Leave, notice
from .server import KVServer, RequestHandler
from .van.debug_van import repeat, with_message_drops
from .van.frame import NOTICE, Message
from .van.van import NO_HEARTBEAT, RECONNECT_SECONDS, AddressInUse

_log = logging.getLogger("dualmx.dist")
SMALL = 64 << 10  # bytes of a request that may be served on the thread that received it
HOUSEKEEPING = 0.25  # seconds between two looks at what waits for long, however many requests there are
QUICK = 16  # quick requests in turn before that


class ServerNode(Postoffice):
    """A server of a job.

    Args:
        job: the job.
        control: see `KVServer`; called with what concerns optimizers.
    """

    def __init__(self, job: Job, control: RequestHandler | None = None):
        super().__init__(job)
        self._tasks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._serve_lock, self._counting = threading.Lock(), threading.Lock()  # whoever serves has the turn
        self._n_tasks = 0  # things in `_tasks` that are not done
        self._fast_streak = 0  # small requests that were served quickly, one after another
        self._crashes: dict[int, str] = {}
        self._suspected: dict[int, float] = {}  # workers whose connection to the scheduler broke, and when
        self._unreachable: dict[int, tuple[float, str]] = {}  # workers without a connection: until when, and why
        self._kept = 0.0  # when housekeeping was done last
        self._departed: dict[int, str] = {}  # workers that have left the job, as the scheduler knows
        self._van.on_message, self._van.on_down = self._on_message, self._on_down
        self._van.start()
        self._journal: Journal | None = None
        try:
            own = job.own_host()
            address = {**self._listen(job.bind_host(own)), "host": own}
            self._join({**address, "port": knobs.ADVERTISED_PORT.port() or address["port"]})
            if job.drop_percent:
                self._van.on_message = with_message_drops(self._on_message, job.drop_percent, f"server {self.rank}")
                repeat(self._customer, job.resend, lambda: self._closed)
            if job.journal and job.on_server_death == "wait":
                self._journal = Journal(
                    job.journal, self.rank, job.durable, "server", job.restart_timeout, self._van.send_heartbeats
                )
            returns = job.on_worker_death == "wait"
            self.kv = KVServer(self._van, job.workers, control, self._journal, returns, job.elastic)
            if job.elastic:
                self.kv.workers = self.live_workers
        except BaseException:
            self._van.close()
            raise

    def _listen(self, host: str) -> dict[str, Any]:
        """Listen at the requested port, or at another one if it is in use."""
        port = knobs.NODE_PORT.port()
        try:
            return self._van.listen(host, port)
        except AddressInUse as e:
            if not port:
                raise
            _log.warning("server: PORT=%d: %s; taking another port", port, e)
            return self._van.listen(host, 0)

    def _on_message(self, link: int, message: Message) -> None:
        if link == self._scheduler.link:
            try:
                self._scheduler_said(message)
            except FormatError as e:
                _log.error("server %d: %s", self.rank, e)
        elif message.kind == NOTICE:
            match SERVER_NOTICES.read(message):
                case Leave():
                    self._post(lambda: self._bye(link))
                case Crash(text):
                    self._crashes[link] = text[:500]
        elif not self._serve_inline(link, message):
            self._post(lambda: self._serve(link, message))

    def _post(self, work: Callable[[], None]) -> None:
        """Let the server's own thread do something, after all that it was handed before."""
        with self._counting:
            self._n_tasks += 1
        self._tasks.put(work)

    def _serve_inline(self, link: int, message: Message) -> bool:
        """Serve a small request on the thread that received it, which saves waking another one.

        Only where others like it were quick, so that the van is not kept from its connections.
        """
        if self._fast_streak < QUICK or self._n_tasks or message.size > SMALL:
            return False
        if not self._serve_lock.acquire(blocking=False):
            return False
        try:
            if self._n_tasks:
                return False
            self._serve(link, message)
        except Exception as e:
            self._post(partial(_raise, e))
        finally:
            self._serve_lock.release()
        return True

    def _serve(self, link: int, message: Message) -> None:
        began = time.monotonic()
        self.kv.on_message(link, message)
        quick = message.meta.get(OP) in ROUND_OPS and time.monotonic() - began < 0.01
        self._fast_streak = self._fast_streak + 1 if quick and self._journal is None else 0

    def _on_down(self, link: int, reason: str) -> None:
        if link == self._scheduler.link:
            self._scheduler_broke(link, reason)
            return
        crash = self._crashes.pop(link, "")
        self._post(lambda: self._down(link, crash or reason, bool(crash)))

    # -- workers that come and go; on the server's own thread

    def _bye(self, link: int) -> None:
        rank = self.kv.ranks.get(link)
        if rank is not None:
            self.kv.fail_worker(rank, f"worker {rank} has left the job", left=True)

    def _down(self, link: int, reason: str, sure: bool) -> None:
        rank = self.kv.ranks.pop(link, None)
        if rank is not None and self.kv.clients[rank].link == link:
            self._unreachable.pop(rank, None)  # it was here until now, however often it had gone before
            sure = sure or reason.startswith(NO_HEARTBEAT) or time.monotonic() - self._suspected.get(rank, -9.0) < 2.0
            self._mark_unreachable(rank, f"worker {rank} died: {reason}", sure)

    def _mark_unreachable(self, rank: int, reason: str, sure: bool) -> None:
        """Worker `rank` has no connection; `sure` if it is dead."""
        if rank in self.kv.lost_workers or rank in self.kv.removed_workers:
            return
        if rank in self._departed:
            self.kv.fail_worker(rank, self._departed[rank], left=True)
            return
        waits = self.job.on_worker_death == "wait"
        if sure and not waits:
            self._give_up(rank, reason)
        elif rank not in self._unreachable:
            timeout = self.job.restart_timeout if waits else self.reconnect_seconds
            if not waits and ("scheduler", 0) in self.dead_peers:  # which would tell if it saw the worker go as well
                timeout = RECONNECT_SECONDS
            self._unreachable[rank] = (time.monotonic() + timeout, reason)
            if waits:
                _log.warning("server %d: %s; waiting for its return", self.rank, reason)

    def _give_up(self, rank: int, reason: str) -> None:
        self._unreachable.pop(rank, None)
        if self.job.on_worker_death == "continue":
            self.kv.exclude(rank, reason)
        elif self.job.on_worker_death == "wait":
            self.kv.fail_worker(rank, f"{reason}; it did not come back within {self.job.restart_timeout:g} s")
        else:
            self.kv.fail_worker(rank, with_remedy(reason, "worker", self.job.on_worker_death))

    def on_member_unreachable(self, role: str, rank: int) -> None:
        if role == "worker":
            self._post(lambda: self._mark_suspect(rank))

    def _clear_suspect(self, rank: int) -> None:
        self._suspected.pop(rank, None)

    def _mark_suspect(self, rank: int) -> None:
        self._suspected[rank] = time.monotonic()
        if rank in self._unreachable and not self._connected(rank):
            self._mark_unreachable(rank, self._unreachable[rank][1], True)

    def on_member_back(self, role: str, rank: int, address: dict[str, Any]) -> None:
        if role == "worker":
            self._post(lambda: self._clear_suspect(rank))

    def on_member_dead(self, role: str, rank: int, text: str, dead: bool) -> None:
        """See `Postoffice`."""
        super().on_member_dead(role, rank, text, dead)
        if role == "worker" and dead:
            self._post(lambda: self._mark_unreachable(rank, text, True))
        elif role == "worker":
            self._post(lambda: self._maybe_unmet(rank, text))
        self._post(lambda: None)

    def _maybe_unmet(self, rank: int, text: str) -> None:
        """A worker that is not connected cannot say goodbye here; one that is has its own link for that."""
        self._departed[rank] = text
        if not self._connected(rank):
            self.kv.fail_worker(rank, text, left=True)

    def _connected(self, rank: int) -> bool:
        client = self.kv.clients.get(rank)
        return client is not None and client.link in self.kv.ranks

    def on_member_joined(self, rank: int) -> None:
        self._post(lambda: self.kv.add_worker(rank))

    def _check(self) -> None:
        """Forget that returned members were missing, and give up those that did not return in time."""
        now = time.monotonic()
        for rank, (until, reason) in list(self._unreachable.items()):
            if self._connected(rank):
                del self._unreachable[rank]
            elif now > until:
                self._give_up(rank, reason)

    def run(self) -> None:
        """Serve, on this thread, until all workers have left or died."""
        try:
            if self.kv.restore():
                if not self.is_restarted:
                    raise MXNetError(
                        f"DUALMX_JOURNAL={self.job.journal!r}: the folder holds the journal of another job; "
                        "give an empty folder"
                    )
                _log.warning("server %d: took over from the journal in %s", self.rank, self.job.journal)
            if self.is_restarted:
                self._expect_all()
            while True:
                while self.kv.workers - self.kv.lost_workers.keys() - self.kv.removed_workers.keys():
                    self._run_task()
                    if ("scheduler", 0) in self.dead_peers and self.kv.workers - self.kv.clients.keys():
                        raise MXNetError(
                            self.dead_peers["scheduler", 0]
                        )  # before all workers came: nobody can join any more
                reply = self._send_leave(LEAVE_SECONDS, newest=max(self.kv.workers, default=-1))
                if reply is None or "workers" not in reply.meta:
                    break
                for rank in reply.field("workers", list):  # which joined meanwhile
                    self.kv.add_worker(rank)
                self._run_task()  # the job waits for others, as the last worker has died
            if self._journal is not None and self.kv.left_workers >= self.kv.workers:
                self._journal.remove()
        except MXNetError as e:
            self._van.send(self._scheduler.link, notice(Crash(str(e)[:500])))
            raise
        finally:
            self._leave()
            self._van.close()
            if self._journal is not None:
                self._journal.close()

    def _expect_all(self) -> None:
        """After a restart, expect all workers to reconnect, except those that have left meanwhile."""
        timeout = (
            self.job.restart_timeout if self.job.on_worker_death == "wait" else max(self.job.heartbeat_timeout, 2.0)
        )
        for rank in sorted(self.kv.workers):
            if rank in self.live_workers:
                why = f"worker {rank} did not connect to server {self.rank} after its restart"
                self._unreachable[rank] = (time.monotonic() + timeout, why)
            else:
                self.kv.fail_worker(rank, f"worker {rank} has left the job", left=True)

    def _run_task(self) -> None:
        """Run the next task, and check what waits long."""
        try:
            work = self._tasks.get(timeout=0.1 if self._unreachable else 1.0)
        except queue.Empty:
            work = None
        while not self._serve_lock.acquire(timeout=0.5):
            self._van.send_heartbeats()  # a request that was to be quick is not
        try:
            if work is not None:
                work()
            if time.monotonic() - self._kept >= HOUSEKEEPING:
                self._van.send_heartbeats()  # the thread that does so may not get its turn on a busy host
                if self._unreachable:
                    self._check()
                self.kv.send_wait_notices()
                self._kept = time.monotonic()
        finally:
            self._serve_lock.release()
            if work is not None:
                with self._counting:
                    self._n_tasks -= 1


def _raise(error: Exception) -> None:
    raise error


__all__ = ["ServerNode"]
