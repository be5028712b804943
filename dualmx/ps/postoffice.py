"""Base of worker and server nodes: registration, reconnection, dead peers."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from ..core.errors import FormatError, MXNetError
from . import protocol
from .customer import Customer, Peer
from .job import Job
from .member import with_remedy
from .protocol import MemberEvent, header, notice, parse
from .van.debug_van import enable_logging
from .van.frame import ERROR, REPLY, Message
from .van.van import NO_HEARTBEAT, ConnectionRefused

_log = logging.getLogger("dualmx.dist")
LEAVE_SECONDS = 10.0  # seconds that a process waits for a scheduler that is started again, before it ends


class Postoffice:
    """Base of worker and server nodes: a van, the scheduler, and the dead peers.

    Attributes:
        incarnation: tells this process from others that have or had its place.
        is_restarted: this process takes the place of one that died, or joins workers that began before.
        live_workers: ranks of the workers when it joined.
    """

    def __init__(self, job: Job):
        enable_logging()
        self.job = job
        self._van = job.van()
        self._customer = Customer(self._van, job.timeout)
        self.dead_peers: dict[tuple[str, int], str] = {}
        self.dead: set[tuple[str, int]] = set()
        self.rank = -1
        self.incarnation = int.from_bytes(os.urandom(6), "big")
        self.is_restarted = False
        self.live_workers: set[int] = set()
        self._barriers = 0
        self._hello: dict[str, Any] = {}  # by which the scheduler knows this process, whatever connection it comes by
        self._scheduler = Peer("the scheduler", {"host": job.uri, "port": job.port})
        self._moved = threading.Condition()  # notified when a peer has another address, or this process leaves
        self._closed = False

    def _join(self, address: dict[str, Any]) -> list[dict[str, Any]]:
        """Register with the scheduler; returns the servers' addresses.

        Raises:
            MXNetError: there is no scheduler, or no place in its job.
            SystemExit: the process before this one had finished, so that there is nothing to do.
        """
        job = self.job
        self._hello = header(
            protocol.Register(job.role, job.task, self.incarnation, job.workers, job.servers, address, job.policy)
        )
        ticket = self._customer.send_request(self._scheduler, f"joining the job as {job.role}", self._hello)
        resumed = False
        while not resumed:
            link = self._van.connect(self._scheduler.address, job.start)
            resumed = self._customer.reconnect(self._scheduler, link, self._hello)
        reply = self._customer.wait([ticket], job.start + 10)[0]
        if reply.meta.get("over") is True:
            _log.warning("%s: the job, or its part in it, is finished; there is nothing left to do", job.role)
            raise SystemExit(0)
        self.rank = reply.field("rank", int)
        self._hello = header(protocol.Rejoin(job.role, self.rank, self.incarnation))
        self.is_restarted, self._barriers = reply.field("back", bool), reply.field("barriers", int)
        servers, _, workers = parse(protocol.MemberList, reply.meta)
        self.live_workers = set(workers)
        os.environ["DMLC_RANK"] = str(self.rank)
        if len(servers) != job.servers:
            raise FormatError("the scheduler sent no list of the servers")
        known = ", ".join(f"server {i} at {s.get('host')}:{s.get('port')}" for i, s in enumerate(servers))
        _log.info(
            "%s %d: joined the job of the scheduler at %s:%d, with %s", job.role, self.rank, job.uri, job.port, known
        )
        return servers

    def _scheduler_said(self, message: Message) -> None:
        if message.kind in (REPLY, ERROR):
            if "gone" in message.meta:
                self._reconcile(parse(protocol.MemberList, message.meta))
            if message.meta.get("excluded") is True:
                self._excluded(message.field("text", str))
            self._customer.on_message(message)
            return
        news = protocol.MEMBER_NOTICES.read(message)
        if isinstance(news, protocol.WaitNotice):
            _log.warning("%s %d waits: %s", self.job.role, self.rank, self._customer.set_blocked_on(message))
            return
        event, role, rank, text, address, dead = news
        if event == MemberEvent.GONE:
            self.on_member_dead(role, rank, text, bool(dead))
        elif event == MemberEvent.LOST:
            self.on_member_unreachable(role, rank)
        elif event == MemberEvent.NEW:
            self.on_member_joined(rank)
        elif event == MemberEvent.ASKS:
            self.on_join_request(rank)
        elif event == MemberEvent.WAITS:
            _log.warning("%s %d waits for %s", self.job.role, self.rank, text)
        elif event == MemberEvent.BACK:
            self.dead.discard((role, rank))
            self.dead_peers.pop((role, rank), None)
            self.on_member_back(role, rank, address or {})

    def _reconcile(self, members: protocol.MemberList) -> None:
        """Take over the scheduler's view of the members, as notes of changes may have been lost with a connection."""
        for rank, address in enumerate(members.servers):
            self.on_member_back("server", rank, address)
        for rank in members.workers:
            self.on_member_joined(rank)
        absent = {(role, rank): (text, dead) for role, rank, text, dead in members.gone}
        for role, rank in [k for k in self.dead_peers if k[0] != "scheduler" and k not in absent]:
            self.dead.discard((role, rank))
            del self.dead_peers[role, rank]
            if role == "worker":
                self.on_member_back(role, rank, {})
        for (role, rank), (text, dead) in absent.items():
            if (role, rank) not in self.dead_peers:
                self.on_member_dead(role, rank, text, dead)

    def on_member_dead(self, role: str, rank: int, text: str, dead: bool) -> None:
        """A member is lost, for good if `dead`; `text` says why."""
        self.dead_peers.setdefault((role, rank), text)
        if dead:
            self.dead.add((role, rank))

    def _excluded(self, text: str) -> None:
        """The job continues without this process."""

    def on_member_joined(self, rank: int) -> None:
        """One more worker joins the job."""

    def on_join_request(self, rank: int) -> None:
        """A worker asks to join the collectives of the others."""

    def on_member_unreachable(self, role: str, rank: int) -> None:
        """The scheduler's connection to a member broke."""

    def on_member_back(self, role: str, rank: int, address: dict[str, Any]) -> None:
        """A member is back."""

    # -- connections that break

    @property
    def reconnect_seconds(self) -> float:
        """For how long a member tries to connect to another one again, and is waited for if it lives."""
        return max(self.job.heartbeat_timeout, 1.0)

    def reconnect_or_fail(
        self, peer: Peer, link: int, reason: str, waits: bool, hello: dict[str, Any], lost: Callable[[str], None]
    ) -> None:
        """Reconnect to `peer` on a thread, or call `lost` with the reason if that fails."""
        with peer.lock:
            if peer.link != link:
                return  # another thread has connected meanwhile
            peer.link = -1
        if reason.startswith(NO_HEARTBEAT) and not waits:
            lost(reason)
            return
        work = threading.Thread(target=self._reconnect_loop, args=(peer, reason, waits, hello, lost), daemon=True)
        work.start()

    def _reconnect_loop(
        self, peer: Peer, reason: str, waits: bool, hello: dict[str, Any], lost: Callable[[str], None]
    ) -> None:
        until = time.monotonic() + (self.job.restart_timeout if waits else self.reconnect_seconds)
        while not self._closed and not peer.failure:
            try:
                link = self._van.connect(peer.address, 0.2, patient=False)
                if peer.link >= 0:  # by another thread
                    self._van.drop(link)
                    return
                if self._customer.reconnect(peer, link, hello or self._hello):
                    _log.warning("%s %d: connected to %s again, after: %s", self.job.role, self.rank, peer.name, reason)
                    return
            except ConnectionRefused:
                if not waits:
                    break
            except (MXNetError, OSError):
                pass
            if time.monotonic() > until:
                break
            with self._moved:
                self._moved.wait(0.1)
        if not self._closed:
            lost(reason + (f"; it did not come back within {self.job.restart_timeout:g} s" if waits else ""))

    def _scheduler_broke(self, link: int, reason: str) -> None:
        waits = self.job.on_server_death == "wait"
        self.reconnect_or_fail(self._scheduler, link, reason, waits, {}, self._scheduler_died)

    def _scheduler_died(self, reason: str) -> None:
        text = with_remedy(f"the scheduler died: {reason}", "scheduler", self.job.on_server_death)
        self.on_member_dead("scheduler", 0, text, True)
        self._customer.fail_peer(self._scheduler, text)

    def _send_leave(self, timeout: float, newest: int | None = None) -> Message | None:
        """Say goodbye to the scheduler, which has logged it when this returns, unless it is gone for good.

        Args:
            timeout: seconds for a scheduler that is started again at this moment.
            newest: the greatest rank of a worker that a server knows.

        Returns:
            its answer, if there was one.
        """
        ticket = self._customer.send_request(self._scheduler, "leaving the job", header(protocol.Leave(newest)))
        try:
            reply = self._customer.wait([ticket], timeout)[0]
        except MXNetError as e:
            _log.info("%s %d: %s", self.job.role, self.rank, e)
            return None
        if "workers" not in reply.meta:
            self._van.send(self._scheduler.link, notice(protocol.LeaveAck()))
        return reply

    def _leave(self) -> None:
        self._closed = True
        with self._moved:
            self._moved.notify_all()


__all__ = ["Postoffice"]
