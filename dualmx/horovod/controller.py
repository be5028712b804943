"""Controller on rank 0: which tensors all ranks have ready, and how they are fused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

REDUCTION = "allreduce"


@dataclass
class Request:
    """A rank's description of a tensor that it has ready.

    Attributes:
        name: tells exchanges apart.
        kind: `"allreduce"` and so on.
        signature: what all processes must say alike: types, shapes, operation.
        nbytes: how much it is.
        fuse: exchanges with the same text here may travel together; empty for those that travel alone.
    """

    name: str
    kind: str
    signature: str
    nbytes: int = 0
    fuse: str = ""


@dataclass
class Response:
    """What all processes do next: the exchanges of some names, or an error of theirs.

    Attributes:
        names: of the exchanges.
        active: numbers of the processes that take part.
        error: why they cannot be made.
        failed: the error is that of an argument.
    """

    names: list[str]
    active: list[int]
    error: str = ""
    failed: bool = True
    nbytes: int = 0


@dataclass
class _Pending:
    ask: Request
    since: float
    texts: dict[int, str] = field(default_factory=dict)
    is_announced: bool = False


class Controller:
    """Collects the tensors that ranks have ready.

    Args:
        ranks: the processes' numbers in the job.

    Example:
        >>> both = Controller([0, 1])
        >>> ask = [Request(name, "allreduce", "float32 (2,)", 8, "sum") for name in "ab"]
        >>> both.add_ready(0, ask, 0.0)
        >>> both.pop_responses(64)
        []
        >>> both.add_ready(1, ask[::-1], 0.0)
        >>> [order.names for order in both.pop_responses(64)]
        [['b', 'a']]
    """

    def __init__(self, ranks: Sequence[int]):
        self._ranks = list(ranks)
        self._pending: dict[str, _Pending] = {}
        self._complete: list[str] = []
        self.joined: list[int] = []

    def add_ready(self, member: int, asks: Iterable[Request], now: float) -> None:
        """Record the tensors that member `member` (a position in `ranks`) has ready."""
        for ask in asks:
            one = self._pending.setdefault(ask.name, _Pending(ask, now))
            one.texts[member] = f"{ask.kind} of {ask.signature}"
            self._check_complete(ask.name)

    def join(self, member: int) -> int | None:
        """Record that a member has no more data; return it if it is the last one, and reset."""
        self.joined.append(member)
        for name in list(self._pending):
            self._check_complete(name)
        if len(self.joined) < len(self._ranks):
            return None
        self.joined = []
        return member

    def _active(self) -> list[int]:
        return [i for i in range(len(self._ranks)) if i not in self.joined]

    def _check_complete(self, name: str) -> None:
        # Those who joined after they asked take part still.
        if name not in self._complete and all(i in self._pending[name].texts for i in self._active()):
            self._complete.append(name)

    def pop_responses(self, threshold: int) -> list[Response]:
        """Return complete tensors and forget them; equal reductions are fused up to `threshold` bytes."""
        made: list[Response] = []
        open_at: dict[tuple[str, tuple[int, ...]], Response] = {}
        for name in self._complete:
            one = self._pending.pop(name)
            active = sorted(one.texts)
            problem = self._problem(one, active)
            if problem:
                made.append(Response([name], active, problem))
                continue
            key = (one.ask.fuse, tuple(active))
            order = open_at.get(key) if one.ask.fuse else None
            if order is None or order.nbytes + one.ask.nbytes > threshold:
                order = open_at[key] = Response([], active)
                made.append(order)
            order.names.append(name)
            order.nbytes += one.ask.nbytes
        self._complete = []
        return made

    def _problem(self, one: _Pending, active: Sequence[int]) -> str:
        first = active[0]
        for i in active[1:]:
            if one.texts[i] != one.texts[first]:
                a, b = self._ranks[first], self._ranks[i]
                return (
                    f"{one.ask.name}: the processes disagree: process {a} calls {one.texts[first]}, "
                    f"process {b} {one.texts[i]}"
                )
        if len(active) < len(self._ranks) and one.ask.kind != REDUCTION:
            gone = self._ranks[next(i for i in range(len(self._ranks)) if i not in active)]
            return f"{one.ask.name}: {one.ask.kind}: process {gone} has joined, and takes part in reductions only"
        return ""

    def stalled(self, now: float, least: float) -> list[tuple[str, list[int], float]]:
        """Return once the exchanges that have waited for `least` seconds: name, processes that are missing, seconds."""
        found = self.overdue(now, least)
        fresh = [one for one in found if not self._pending[one[0]].is_announced]
        for name, _, _ in fresh:
            self._pending[name].is_announced = True
        return fresh

    def overdue(self, now: float, most: float) -> list[tuple[str, list[int], float]]:
        """Return all exchanges that have waited for `most` seconds."""
        found = []
        for name, one in self._pending.items():
            if now - one.since >= most:
                missing = [self._ranks[i] for i in self._active() if i not in one.texts]
                found.append((name, missing, now - one.since))
        return found

    def give_up(self, name: str, error: str) -> Response:
        """Forget a tensor, and return the response that fails it for those who wait."""
        one = self._pending.pop(name)
        return Response([name], sorted(one.texts), error, failed=False)

    @property
    def busy(self) -> bool:
        """Whether any rank waits."""
        return bool(self._pending)


def encode_response(order: Response) -> dict[str, Any]:
    """Encode a response as it is sent."""
    return {"n": order.names, "a": order.active, "e": order.error, "w": order.failed}


def decode_response(meta: dict[str, Any]) -> Response:
    """Return an order that was sent."""
    return Response(list(meta["n"]), list(meta["a"]), str(meta["e"]), bool(meta["w"]))
