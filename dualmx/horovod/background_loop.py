"""Background thread that runs collectives: collects tensors, negotiates their order and fuses small ones."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np

from ..core import knobs
from ..core.errors import ArgumentError, MXNetError
from ..parallel import ProcessGroup
from ..ps import PeerLost
from .autotune import ParameterManager, TunableParams
from .controller import REDUCTION, Controller, Request, Response, decode_response, encode_response
from .hierarchical import HierarchicalAllReduce, is_hierarchical
from .timeline import timeline

_log = logging.getLogger("dualmx.horovod")
MAX_FUSED_BYTES = (
    1 << 20
)  # bytes from which an array is worth a message of its own: copying it together would cost more
MAX_REQUESTS = 500  # names of one message


class TensorEntry:
    """An exchange of this process.

    Args:
        ask: what the others are told.
        arrays: values of a reduction, which are fused with those of others.
        op, scale: of the reduction.
        run: any other exchange; called with the group of those that take part.
        kept: what must not be reused while this lives.
    """

    def __init__(
        self, ask: Request, arrays: Sequence[np.ndarray] = (), op: str = "sum", scale: float = 1.0,
        run: Callable[[ProcessGroup], Any] | None = None, kept: Any = None,
    ):  # fmt: skip
        self.request, self.arrays, self.op, self.scale, self.run, self.keep_alive = (
            ask,
            list(arrays),
            op,
            scale,
            run,
            kept,
        )
        self.future: Future[Any] = Future()


def settings() -> TunableParams:
    """Return what the environment says, `hierarchical` for "auto" too."""
    return TunableParams(
        knobs.FUSION_THRESHOLD.integer(), knobs.CYCLE_TIME.number(), knobs.HIERARCHICAL.read() in ("auto", "1")
    )


class BackgroundLoop:
    """Runs the collectives of a process set on its own thread.

    Args:
        group: the processes; no others use it.

    Attributes:
        exchanges: how many were made over the wire.
    """

    def __init__(self, group: ProcessGroup):
        assert group.peers is not None
        self.group, self._peers = group, group.peers
        self._changed = group.peers.changed
        self._settings = settings()
        levels = is_hierarchical(group)
        self._hierarchical = self._settings.hierarchical and (levels or knobs.HIERARCHICAL.read() == "1")
        self._settings = replace(self._settings, hierarchical=self._hierarchical)
        self._queue: deque[TensorEntry] = deque()
        self._oldest = 0.0
        self._tensor_table: dict[str, TensorEntry] = {}
        self._responses: deque[Response] = deque()
        self._joins: deque[Future[int]] = deque()
        self._joining: Future[int] | None = None
        self._hurried = 0
        self._over = False
        self._numbers = itertools.count(1)
        self._groups: dict[tuple[Any, ...], Any] = {}
        self.exchanges = 0
        self._controller = Controller(group.ranks) if group.rank == 0 else None
        tune = group.rank == 0 and knobs.AUTOTUNE.read() == "1"
        self._tuner = ParameterManager(self._settings, levels) if tune else None
        self._stall = 0.0 if knobs.STALL_DISABLE.read() == "1" else knobs.STALL_TIME.number()
        self._timeout = knobs.STALL_SHUTDOWN.number() or knobs.DIST_TIMEOUT.number()
        self._thread = threading.Thread(target=self._run, name="dualmx-horovod", daemon=True)
        self._thread.start()

    # -- from other threads

    def submit(self, request: TensorEntry) -> TensorEntry:
        """Begin an exchange.

        Raises:
            MXNetError: one of that name is under way, or the engine has ended.
        """
        if not request.request.name:
            request.request.name = f"noname.{next(self._numbers)}"
        name = request.request.name
        with self._changed:
            if self._over:
                raise MXNetError(f"hvd: {name}: Horovod has been shut down")
            if name in self._tensor_table:
                raise MXNetError(f"hvd: an exchange named {name!r} is under way; wait for it, or use another name")
            timeline.negotiate(name, request.request.kind)
            self._tensor_table[name] = request
            if not self._queue:
                self._oldest = time.monotonic()
            self._queue.append(request)
            self._changed.notify_all()
        return request

    def wait(self, request: TensorEntry) -> Any:
        """Wait for an exchange, and return its result.

        Raises:
            MXNetError: it failed.
        """
        return self._wake_early(request.future)

    def join(self) -> int:
        """Say that this process has no more data; returns the one that joined last."""
        future: Future[int] = Future()
        with self._changed:
            if self._over:
                raise MXNetError("hvd.join: Horovod has been shut down")
            self._joins.append(future)
            self._changed.notify_all()
        return self._wake_early(future)

    def _wake_early(self, future: Future[Any]) -> Any:
        if not future.done():
            with self._changed:
                self._hurried += 1
                self._changed.notify_all()
            try:
                return future.result()
            finally:
                with self._changed:
                    self._hurried -= 1
        return future.result()

    def stop(self, timeout: float = 10.0) -> None:
        """End when what was begun is done, or after some seconds."""
        until = time.monotonic() + timeout
        with self._changed:
            while self._tensor_table and self._thread.is_alive() and time.monotonic() < until:
                self._hurried += 1
                self._changed.notify_all()
                self._changed.wait(0.05)
                self._hurried -= 1
            self._over = True
            self._changed.notify_all()
        self._thread.join(timeout)
        if self._tuner is not None:
            self._tuner.close()

    # -- on the engine's own thread

    def _run(self) -> None:
        try:
            while self._await():
                timeline.cycle()
                self._send_requests()
                self._listen()
                nbytes = 0
                while self._responses:
                    nbytes += self._execute_response(self._responses.popleft())
                self._tune(nbytes)
                self._check_stalls()
            self._fail(MXNetError("hvd: Horovod has been shut down"))
        except BaseException as e:
            with self._changed:
                self._over = True
            self._fail(e if isinstance(e, MXNetError) else MXNetError(f"hvd: {type(e).__name__}: {e}"))

    def _await(self) -> bool:
        """Wait until there is something to do; False if it is over."""
        with self._changed:
            while not self._over:
                until = self._oldest + self._settings.cycle / 1000
                now = time.monotonic()
                full = sum(r.request.nbytes for r in self._queue) >= max(self._settings.threshold, 1)
                if self._joins or self._received() or (self._queue and (self._hurried or full or now >= until)):
                    return True
                if (
                    not self._queue
                    and self._tensor_table
                    and any(r in self._peers.lost_ranks for r in self.group.ranks)
                ):
                    return True
                self._changed.wait(until - now if self._queue else 1.0 if self._tensor_table or self._busy() else None)
                if not self._queue and (self._tensor_table or self._busy()):
                    return not self._over
        return False

    def _busy(self) -> bool:
        return self._controller is not None and self._controller.busy

    def _others(self) -> Sequence[int]:
        return self.group.ranks[1:] if self.group.rank == 0 else self.group.ranks[:1]

    def _received(self) -> bool:
        return self._peers.waiting(self._channel, self._others())

    @property
    def _channel(self) -> str:
        return f"{self.group.name}:{'ask' if self.group.rank == 0 else 'tell'}"

    def _send_requests(self) -> None:
        """Send the controller the tensors that are ready here."""
        with self._changed:
            asks = [r.request for r in self._queue]
            self._queue.clear()
            joins = [self._joins.popleft()] if self._joins and self._joining is None else []
        if joins:
            self._joining = joins[0]
        for at in range(0, len(asks), MAX_REQUESTS):
            self._ask({"asks": [[a.name, a.kind, a.signature, a.nbytes, a.fuse] for a in asks[at : at + MAX_REQUESTS]]})
        if joins:
            self._ask({"join": True})

    def _ask(self, meta: dict[str, Any]) -> None:
        if self._controller is not None:
            self._on_requests(0, meta)
            return
        try:
            self._peers.send(self.group.ranks[0], f"{self.group.name}:ask", meta)
        except MXNetError as e:
            self._fail(PeerLost(f"hvd: {e}"))

    def _listen(self) -> None:
        """Take what others say."""
        while self._received():
            rank, message = self._peers.receive(self._channel, self._ranks_with_messages(), "hvd")
            if self._controller is not None:
                self._on_requests(self.group.ranks.index(rank), message.meta)
            else:
                self._on_responses(message.meta)
        if self._controller is not None:
            orders = self._controller.pop_responses(self._settings.threshold)
            for at in range(0, len(orders), MAX_REQUESTS):
                self._broadcast_responses({"orders": [encode_response(o) for o in orders[at : at + MAX_REQUESTS]]})

    def _ranks_with_messages(self) -> list[int]:
        return [r for r in self._others() if self._peers.waiting(self._channel, [r])]

    def _on_requests(self, member: int, meta: dict[str, Any]) -> None:
        """On the controller: receive another rank's ready tensors."""
        assert self._controller is not None
        asks = [Request(*map(_typed, a, (str, str, str, int, str))) for a in meta.get("asks", ())]
        if timeline.on:
            for a in asks:
                timeline.negotiate(a.name, a.kind)
                timeline.mark(a.name, str(self.group.ranks[member]))
        self._controller.add_ready(member, asks, time.monotonic())
        if meta.get("join"):
            last = self._controller.join(member)
            if last is not None:
                self._broadcast_responses({"last": last})

    def _broadcast_responses(self, meta: dict[str, Any]) -> None:
        meta = {**meta, "cycle": self._settings.cycle, "levels": self._settings.hierarchical}
        for rank in self._others():
            if rank not in self._peers.lost_ranks:
                try:
                    self._peers.send(rank, f"{self.group.name}:tell", meta)
                except MXNetError as e:
                    _log.debug("hvd: %s", e)  # whoever needs that process finds out
        self._on_responses(meta)

    def _on_responses(self, meta: dict[str, Any]) -> None:
        self._settings = replace(self._settings, cycle=float(meta["cycle"]), hierarchical=bool(meta["levels"]))
        self._responses.extend(decode_response(o) for o in meta.get("orders", ()))
        if "last" in meta and self._joining is not None:
            joining, self._joining = self._joining, None
            joining.set_result(self.group.ranks[int(meta["last"])])

    def _check_stalls(self) -> None:
        """Warn about missing ranks, and fail if they are gone."""
        now = time.monotonic()
        if self._controller is not None:
            for name, missing, waited in self._controller.stalled(now, self._stall) if self._stall else ():
                _log.warning(
                    f"stalled for {waited:.0f} s: {name}: ready here, missing: process {', '.join(map(str, missing))}"
                )
            names = self._controller.overdue(now, self._timeout) if self._timeout else []
            for name, missing, waited in names:
                text = f"{name}: process {', '.join(map(str, missing))} did not take part within {waited:.0f} s"
                self._broadcast_responses({"orders": [encode_response(self._controller.give_up(name, text))]})
        gone = [self._peers.lost_ranks[r] for r in self.group.ranks if r in self._peers.lost_ranks]
        if gone and not self._received() and not self._responses:
            self._fail(PeerLost(f"hvd: process {self._peers.rank} of {self._peers.size} lost another one: {gone[0]}"))

    def _fail(self, error: MXNetError) -> None:
        """Fail all pending tensors with an error."""
        with self._changed:
            failed = list(self._tensor_table.values())
            self._tensor_table.clear()
            self._queue.clear()
            futures = [r.future for r in failed] + list(self._joins)
            self._joins.clear()
        if self._joining is not None:
            futures.append(self._joining)
            self._joining = None
        for future in futures:
            future.set_exception(error)

    def _tune(self, nbytes: int) -> None:
        if self._tuner is not None and nbytes:
            found = self._tuner.cycle(nbytes)
            if found is not None:
                self._settings = found
                self._broadcast_responses({})

    # -- exchanges

    def _execute_response(self, order: Response) -> int:
        """Make the exchanges of an order; returns how many bytes they were."""
        for name in order.names:
            timeline.end(name)
        if self.group.rank not in order.active:
            return 0
        with self._changed:
            requests = [r for r in (self._tensor_table.pop(n, None) for n in order.names) if r is not None]
            self._changed.notify_all()
        for r in requests:
            timeline.begin(r.request.name, r.request.kind.upper(), bytes=r.request.nbytes)
        try:
            if order.error:
                raise (ArgumentError if order.failed else MXNetError)(f"hvd: {order.error}")
            group = self._group(order.active)
            if requests[0].run is not None:
                self.exchanges += 1
                results = [requests[0].run(group)]
            else:
                results = self._reduce(requests, group)
        except Exception as e:
            for r in requests:
                timeline.end(r.request.name)
                r.future.set_exception(e)
            return 0
        for r, found in zip(requests, results, strict=True):
            timeline.end(r.request.name)
            r.future.set_result((found, len(order.active)))
        return sum(r.request.nbytes for r in requests)

    def _group(self, active: Sequence[int]) -> ProcessGroup:
        """The group of those that take part, which is another one while some have joined."""
        if len(active) == self.group.size:
            return self.group
        key = tuple(active)
        if key not in self._groups:
            ranks = [self.group.ranks[i] for i in active]
            self._groups[key] = ProcessGroup(ranks, self._peers, f"{self.group.name}/{ranks}", self._peers.rank)
        return self._groups[key]

    def _reduce(self, requests: Sequence[TensorEntry], group: ProcessGroup) -> list[list[np.ndarray]]:
        """Reduce the arrays of several requests, small ones of a type together."""
        results = [list(r.arrays) for r in requests]
        first = requests[0]
        places = [(i, k) for i, r in enumerate(requests) for k in range(len(r.arrays))]
        alone = [p for p in places if self._settings.threshold == 0 or results[p[0]][p[1]].nbytes >= MAX_FUSED_BYTES]
        apart = set(alone)
        together: dict[np.dtype, list[tuple[int, int]]] = {}
        for i, k in places:
            if (i, k) not in apart:
                together.setdefault(results[i][k].dtype, []).append((i, k))
        for at in [[p] for p in alone] + list(together.values()):
            parts = [results[i][k] for i, k in at]
            names = list(dict.fromkeys(requests[i].request.name for i, _ in at))
            _each(names, timeline.begin, "MEMCPY_IN_FUSION_BUFFER")
            flat = parts[0] if len(parts) == 1 else np.concatenate([p.reshape(-1) for p in parts])
            _each(names, timeline.end)
            _each(names, timeline.begin, "HOST_ALLREDUCE")
            total = self._all_reduce(flat, first.op, first.scale, group, names[0])
            _each(names, timeline.end)
            _each(names, timeline.begin, "MEMCPY_OUT_FUSION_BUFFER")
            begin = 0
            for (i, k), p in zip(at, parts, strict=True):
                # A copy lies where devices can use it as it is.
                piece = total if len(parts) == 1 else total[begin : begin + p.size].reshape(p.shape).copy()
                results[i][k] = piece
                begin += p.size
            _each(names, timeline.end)
        return results

    def _all_reduce(self, x: np.ndarray, op: str, scale: float, group: ProcessGroup, name: str) -> np.ndarray:
        self.exchanges += 1
        if not self._settings.hierarchical:
            return group.all_reduce(x, op, scale, f"hvd: {name}")
        key = ("levels", group.ranks)
        if key not in self._groups:
            self._groups[key] = HierarchicalAllReduce(group)
        return self._groups[key].all_reduce(x, op, scale, f"hvd: {name}")


def _each(names: Sequence[str], event: Callable[..., None], *what: str) -> None:
    if timeline.on:
        for name in names:
            event(name, *what)


def _typed(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise MXNetError(f"hvd: another process said {value!r}: expected a {kind.__name__}")
    return value


__all__ = ["REDUCTION", "BackgroundLoop", "TensorEntry"]
