"""Simulated network in one thread, for tests: deterministic by seed, with duplicates, reordering and faults."""

from __future__ import annotations

import random
from typing import Any

from ...core.errors import MXNetError
from .frame import Decoder, Message, encode
from .van import Van


class SimNetwork:
    """Carries frames between `SimVan`s when `run` is called.

    Args:
        seed: of the order of delivery and of the faults.
        duplicate: share of frames that are delivered twice.
        reorder: deliver frames of a link in any order, too; frames of different links always are.
    """

    def __init__(self, seed: int = 0, duplicate: float = 0.0, reorder: bool = False):
        self._random = random.Random(seed)
        self.duplicate, self.reorder = duplicate, reorder
        self._vans: dict[int, SimVan] = {}
        self._numbers = iter(range(1, 1 << 62))
        self._ends: dict[int, tuple[SimVan, int]] = {}
        self._decoders: dict[int, Decoder] = {}  # of each end
        self._flying: list[tuple[int, bytes]] = []
        self.delivered = 0

    def van(self) -> SimVan:
        """Return a new van on this network."""
        made = SimVan(self)
        self._vans[made.port] = made
        return made

    def run(self, limit: int = 100_000) -> None:
        """Deliver until nothing is left; `MXNetError` after `limit` frames."""
        for _ in range(limit):
            if not self.step():
                return
        raise MXNetError(f"the network did not come to rest within {limit} frames")

    def step(self) -> bool:
        """Deliver one frame; False if there is none that can be."""
        first: dict[int, int] = {}
        for i, (to, _) in enumerate(self._flying):
            if to not in self._ends or not self._ends[to][0].stopped:
                first.setdefault(to, i)
        if not first:
            return False
        which = self._random.randrange(len(self._flying)) if self.reorder else self._random.choice(list(first.values()))
        to, raw = self._flying.pop(which)
        if self._random.random() < self.duplicate:
            self._flying.append((to, raw))
        if to in self._ends:
            self.delivered += 1
            message, _ = self._decoders.setdefault(to, Decoder()).decode_complete(memoryview(raw))
            assert message is not None
            self._ends[to][0].on_message(to, message)
        return True

    def links(self) -> list[int]:
        """Ends of all connections."""
        return list(self._ends)

    def sever(self, here: int, reason: str = "severed") -> None:
        """Break a connection: what is on its way is lost, and both ends see it."""
        van = self._ends[here][0]
        self._cut(here, reason)
        van.on_down(here, reason)

    def _send(self, link: int, message: Message) -> bool:
        if link not in self._ends:
            return False
        self._flying.append((self._ends[link][1], b"".join(encode(message))))
        return True

    def _connect(self, van: SimVan, port: int) -> int:
        if port not in self._vans:
            raise MXNetError(f"cannot connect to simulated port {port}")
        here, there = next(self._numbers), next(self._numbers)
        self._ends[here] = (van, there)
        self._ends[there] = (self._vans[port], here)
        return here

    def kill(self, van: SimVan) -> None:
        """End a van at once: what it sent and did not arrive is lost, and its peers see the links break."""
        self._vans.pop(van.port, None)
        for here in [k for k, (v, _) in self._ends.items() if v is van]:
            self._cut(here, "killed")

    def _cut(self, here: int, reason: str) -> None:
        if here not in self._ends:
            return
        there = self._ends.pop(here)[1]
        self._flying = [f for f in self._flying if f[0] not in (here, there)]
        if there in self._ends:
            peer = self._ends.pop(there)[0]
            peer.on_down(there, reason)


class SimVan(Van):
    """A van of a `SimNetwork`."""

    _ports = iter(range(1, 1 << 62))

    def __init__(self, network: SimNetwork):
        self.network = network
        self.port = next(self._ports)
        self.stopped = False  # sends, but receives nothing

    def listen(self, host: str, port: int) -> dict[str, Any]:
        return {"host": "sim", "port": self.port}

    def connect(self, address: dict[str, Any], timeout: float, patient: bool = True) -> int:
        return self.network._connect(self, address["port"])

    def send(self, link: int, message: Message) -> bool:
        return self.network._send(link, message)

    def drop(self, link: int) -> None:
        self.network._cut(link, "dropped")

    def close(self) -> None:
        self.network.kill(self)


__all__ = ["SimNetwork", "SimVan"]
