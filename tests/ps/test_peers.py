"""What workers that are linked to each other tell of those that are gone."""

from __future__ import annotations

from typing import Any

import pytest

from dualmx.ps.peer_links import PeerLinks, PeerLost
from dualmx.ps.van.frame import NOTICE, Message


class Wire:
    """A van that keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, dict[str, Any]]] = []

    def send(self, link: int, message: Message) -> bool:
        self.sent.append((link, message.meta))
        return True


def linked() -> tuple[PeerLinks, Wire]:
    """Process 0 of three; process k is at the end of link 10 + k."""
    wire = Wire()
    peers = PeerLinks(wire, 0, 3, 0)  # type: ignore[arg-type]
    for rank in (1, 2):
        assert peers.on_message(10 + rank, Message(NOTICE, 0, {"op": "peer", "rank": rank}))
    return peers, wire


def said(peers: PeerLinks) -> str:
    with pytest.raises(PeerLost, match="(died|left the job)") as raised:
        peers.receive("c", [1], "all_reduce")
    return str(raised.value)


def test_a_leave_that_follows_a_death_tells_who_died() -> None:
    peers, wire = linked()
    peers.on_down(12, "closed the connection")
    peers.leave("bye")
    assert [(link, meta["text"]) for link, meta in wire.sent] == [
        (link, "process 2 died: closed the connection") for link in (11, 12)
    ]


@pytest.mark.parametrize("noticed", ["by the one that left", "here", "by nobody"])
def test_the_error_names_the_process_that_died_before_the_one_that_left(noticed: str) -> None:
    peers, _ = linked()
    if noticed == "here":
        peers.on_down(12, "closed the connection")
    text = "process 2 died: closed the connection" if noticed == "by the one that left" else ""
    peers.on_message(11, Message(NOTICE, 0, {"op": "bye", "text": text}))
    assert "process 1 has left the job" in said(peers)
    assert ("process 2 died" in said(peers)) == (noticed != "by nobody")


def test_a_process_that_left_before_did_not_die_of_it() -> None:
    peers, wire = linked()
    peers.on_message(12, Message(NOTICE, 0, {"op": "bye", "text": ""}))
    peers.on_down(12, "closed the connection")
    peers.leave("bye")
    assert {meta["text"] for _, meta in wire.sent} == {""}
