"""A worker's node in the job: connects to servers, and to other workers for direct exchange."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import Any

from ..core import knobs
from ..core.errors import FormatError, MXNetError
from . import protocol
from .customer import Peer
from .elastic_worker import ElasticWorker
from .heartbeat import ExchangeCounters
from .job import Job
from .journal import Journal
from .member import with_remedy
from .peer_links import PeerLinks
from .postoffice import LEAVE_SECONDS, Postoffice
from .protocol import header, notice, parse
from .van.debug_van import repeat, with_message_drops
from .van.frame import NOTICE, Message
from .van.van import ConnectionRefused
from .worker import KVWorker

_log = logging.getLogger("dualmx.dist")
FORK_ERROR = "a forked process cannot use its parent's place in the job"


class WorkerNode(Postoffice):
    """A worker of a job; makes all connections when it is created.

    Args:
        job: the job.

    Attributes:
        rank: of this worker.
        kv: sends arrays to the servers.
        counters: counts exchanges with other workers.
        journals: what this worker writes down, to be removed when it leaves.
        waiting_workers: numbers of workers that want to take part in the exchanges of an elastic job.
    """

    def __init__(self, job: Job):
        super().__init__(job)
        self._servers: list[Peer] = []
        self._addresses: dict[int, dict[str, Any]] = {}  # of servers that took the place of others
        self._peers: PeerLinks | None = None
        self._previous_group: PeerLinks | None = None  # those of the group before, until all have left it
        self._listen_address: dict[str, Any] = {}
        self.waiting_workers: set[int] = set()
        self.journals: list[Journal] = []
        self._at, self._met = 0, False  # where the last barrier without a name was, and whether there was one
        self._skips = False  # barriers are counted from the first push on: how many were before it is not known here
        self.counters = ExchangeCounters()
        self._van.heartbeat_payload = self._sign
        receive = self._customer.receiver(self._scheduler, self._on_message)
        self._van.on_message, self._van.on_down = receive, self._on_down
        self._van.start()
        try:
            addresses = self._join({"host": job.own_host()})
            self._servers = [Peer(f"server {rank}", address) for rank, address in enumerate(addresses)]
            for rank, address in list(self._addresses.items()):
                self._servers[rank].address = address
            bound = knobs.BIGARRAY_BOUND.integer(1)
            self.kv = KVWorker(self._customer, self._servers, bound, self.rank, self.incarnation)
            self.kv.is_restarted = self.is_restarted
            if self.is_restarted and not job.elastic:
                self.kv.on_first_push = self._began
            if job.elastic:
                calls = self._next_batch, self._history, self._end_batch
                self.kv.elastic = ElasticWorker(self.rank, job.workers, self.is_restarted, *calls)
            first = self.rank % max(len(self._servers), 1)  # each begins at another one, so that none has all at once
            for peer in (*self._servers[first:], *self._servers[:first]):
                while not self._customer.reconnect(peer, self._connect_server(peer), self.kv.introduction):
                    pass
            self.kv.wait([t for t in self._customer.open() if t.peer in self._servers])
            if job.drop_percent:
                self._van.on_message = with_message_drops(receive, job.drop_percent, f"worker {self.rank}")
                repeat(self._customer, job.resend, lambda: self._closed)
        except BaseException:
            self._closed = True
            self._van.close()
            raise

    def _connect_server(self, peer: Peer) -> int:
        """Connect to a server, or to the one that takes its place meanwhile."""
        until = time.monotonic() + self.job.start
        while True:
            if peer.failure:
                raise MXNetError(f"joining {peer.name}: {peer.failure}")
            try:
                return self._van.connect(peer.address, self.job.start, self.job.on_server_death != "wait")
            except ConnectionRefused:
                if time.monotonic() > until:
                    raise
                with self._moved:
                    self._moved.wait(0.1)

    def _on_message(self, link: int, message: Message) -> None:
        try:
            if link == self._scheduler.link:
                self._scheduler_said(message)
            elif any(peers.on_message(link, message) for peers in self._linked()):
                pass
            elif message.kind == NOTICE:
                _log.warning("worker %d waits: %s", self.rank, self._customer.set_blocked_on(message))
        except FormatError as e:
            _log.error("worker %d: %s", self.rank, e)

    def _sign(self, link: int) -> dict[str, Any]:
        return self.counters.heartbeat_payload() if link == self._scheduler.link and self.rank >= 0 else {}

    def _linked(self) -> list[PeerLinks]:
        return [peers for peers in (self._peers, self._previous_group) if peers is not None]

    def _on_down(self, link: int, reason: str) -> None:
        if self._closed:
            return
        if link == self._scheduler.link:
            self._scheduler_broke(link, reason)
        for peers in self._linked():
            peers.on_down(link, reason)
        for rank, peer in enumerate(self._servers):
            if link == peer.link:
                waits = self.job.on_server_death == "wait"
                lost = partial(self._server_died, rank)
                self.reconnect_or_fail(peer, link, reason, waits, self.kv.introduction, lost)

    def _server_died(self, rank: int, reason: str) -> None:
        text = with_remedy(f"server {rank} died: {reason}", "server", self.job.on_server_death)
        self.on_member_dead("server", rank, text, True)
        self._customer.fail_peer(self._servers[rank], text)

    def on_member_dead(self, role: str, rank: int, text: str, dead: bool) -> None:
        """See `Postoffice`."""
        super().on_member_dead(role, rank, text, dead)
        if role == "worker":
            self.waiting_workers.discard(rank)
            if dead and self._peers is not None:
                self._peers.lost_worker(rank, text)
        if role == "server" and rank < len(self._servers) and self.job.on_server_death != "wait":
            self._customer.fail_peer(self._servers[rank], text)

    def _excluded(self, text: str) -> None:
        for peer in self._servers:  # which serve it no more, and may have ended
            self._customer.fail_peer(peer, text)

    def on_member_back(self, role: str, rank: int, address: dict[str, Any]) -> None:
        if role == "server":
            self._addresses[rank] = address
            if rank < len(self._servers):
                self._servers[rank].address = address
            with self._moved:
                self._moved.notify_all()

    def peers(self) -> PeerLinks:
        """Link this worker directly to all others, which do the same; once.

        Raises:
            MXNetError: a worker or the scheduler is gone, or cannot be reached.
        """
        if self._peers is None:
            own = self.job.own_host()
            self._peers = PeerLinks(self._van, self.rank, self.job.workers, self.job.timeout, traffic=self.counters)
            address = self._peers.listen(self.job.bind_host(own), own)
            reply = self._asked("meeting the other workers", protocol.AddressRequest(address), self.job.start + 10)
            found = reply.field("addresses", list)
            if len(found) != self.job.workers or not all(isinstance(a, dict) for a in found):
                raise FormatError("the scheduler sent no list of the workers")
            self._peers.connect(found, self.job.start)
        return self._peers

    def on_join_request(self, rank: int) -> None:
        self.waiting_workers.add(rank)

    def regroup(self) -> PeerLinks:
        """Link this worker of an elastic job directly to all others that take part now, which do the same.

        Raises:
            MXNetError: the scheduler is gone, or a worker did not come or cannot be reached in time.
            SystemExit: the others have finished, so that there is nothing to do for this worker any more.
        """
        own, timeout = self.job.own_host(), self.job.timeout
        former = self._peers
        if former is not None:
            former.leave_group()
        peers = PeerLinks(self._van, -1, 0, timeout, former.group if former is not None else 0, self.counters)
        self._previous_group, self._peers = former, peers
        self._listen_address = self._listen_address or peers.listen(self.job.bind_host(own), own)
        asked = protocol.GroupRequest(peers.group, self._listen_address, timeout)
        reply = self._asked("forming a group of the workers", asked, timeout + 10 if timeout else 0)
        if reply.meta.get("over") is True:
            _log.warning("worker %d: the others have finished; there is nothing left to do", self.rank)
            raise SystemExit(0)
        group, workers, addresses = parse(protocol.GroupReply, reply.meta)
        if self.rank not in workers or len(addresses) != len(workers):
            raise FormatError("the scheduler sent no list of the workers")
        peers.set_ranks(group, workers.index(self.rank), workers)
        self.waiting_workers.difference_update(workers)
        for role, rank in list(self.dead_peers):  # what was told of before the group was known here
            if role == "worker":
                peers.lost_worker(rank, self.dead_peers[role, rank])
        if former is not None:
            former.close()  # all have asked for this group, so that nobody reads there any more
        self._previous_group = None
        peers.connect(addresses, self.job.start)
        return peers

    def coordinator(self) -> str:
        """Return `host:port` of XLA's coordination service, which the scheduler starts on the first request.

        Raises:
            MXNetError: the scheduler is gone, or starts none.
        """
        return self._asked("starting XLA's coordinator", protocol.CoordinatorRequest(), self.job.start + 10).field(
            "address", str
        )

    def _asked(self, what: str, record: Any, timeout: float | None = None) -> Message:
        """Send the scheduler a request, and return the reply."""
        ticket = self._customer.send_request(self._scheduler, what, header(record))
        return self._customer.wait([ticket], timeout)[0]

    def _next_batch(self, ended: int, marks: list[Any]) -> Message:
        """Tell the scheduler that this worker has ended a round; returns its reply about the next."""
        what = f"batch {ended + 1}" if ended >= 0 else "joining the batches of the others"
        if ended > 0:
            self.kv.flush()
            self._customer.wait(self._customer.open())  # the servers have all that was pushed
        return self._asked(what, protocol.BatchRequest(ended, marks))

    def _history(self, start: int) -> Message:
        """Request the history before this worker joined."""
        return self._asked("the batches before this one", protocol.HistoryRequest(start))

    def _end_batch(self, batch: int, used: list[int], stores: list[int]) -> None:
        """Tell the servers whose pushes count; all workers send the same."""
        for store in stores:
            self.kv.ask_all(f"end of batch {batch}", header(protocol.BatchEnd(store, batch, used)))

    def barrier(self, name: str = "") -> None:
        """Wait until all workers are here.

        Args:
            name: of a barrier that is passed once; a worker that comes back passes it again without waiting.

        Raises:
            MXNetError: a worker or the scheduler is gone.
        """
        self.kv.flush()
        self.kv.drop_prefetched()
        at = self.kv.position if self.job.on_worker_death == "wait" else 0
        if not name:
            if at != self._at:
                self._at, self._barriers = at, 0
            elif self.is_restarted and self.kv.lockstep and not self._met:
                self._barriers = 0  # those of the process before it are passed without waiting
            self._met = True
            self._barriers += 1
        what = f"barrier {name or self._barriers}"
        asked = protocol.BarrierRequest(name, self._barriers, at, self.kv.idle, self._skips and not name)
        self._asked(what, asked)

    def _began(self, at: int, idle: bool) -> None:
        """A worker that came back pushes: it skips the barriers before, at which others may wait for it.

        Args:
            at: its position before.
            idle: whether the process before it had pushed nothing.
        """
        lockstep = self.kv.lockstep
        if lockstep or idle:
            if not lockstep:
                self._barriers, self._skips = 0, True
            notice = header(protocol.BarrierSkip(at if lockstep else -1, not lockstep))
            self._customer.send_request(self._scheduler, "telling where this worker is", notice)

    def forked(self) -> None:
        """In a forked child: the place is the parent's, and every call that needs it is an error."""
        self._closed = True
        self.kv.forked()
        self._customer.reset_after_fork([*self._servers, self._scheduler], FORK_ERROR)
        for peers in self._linked():
            peers.forked(FORK_ERROR)

    def crash(self, reason: str) -> None:
        """Announce why this process is about to end; it counts as dead when it does."""
        self._leave()
        if self._peers is not None:
            self._peers.leave(protocol.Departure.CRASH, reason)
        for peer in (*self._servers, self._scheduler):
            self._van.send(peer.link, notice(protocol.Crash(reason[:500])))

    def close(self, wait: bool = True) -> None:
        """Take leave of the job, when what was pushed has arrived (`wait`)."""
        if not self._closed:
            if wait:
                try:
                    self.kv.flush()
                    self._customer.wait(self._customer.open())
                except MXNetError as e:
                    _log.error("worker %d: %s", self.rank, e)
            self._send_leave(self.job.restart_timeout if self.job.on_server_death == "wait" else LEAVE_SECONDS)
            for journal in self.journals:
                journal.remove()
            self._leave()
            if self._peers is not None:
                self._peers.leave(protocol.Departure.LEAVE)
            for peer in self._servers:
                self._van.send(peer.link, notice(protocol.Leave()))
            self._van.close()
            for peer in (*self._servers, self._scheduler):
                self._customer.fail_peer(peer, "this worker has left the job")


__all__ = ["WorkerNode"]
