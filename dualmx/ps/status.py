"""Query the status of a running job; needs its secret."""

from __future__ import annotations

import time
from typing import Any

from ..core.reader import Content
from .customer import Customer, Peer
from .heartbeat import COUNTS
from .protocol import StatusRequest, header
from .van.socket_van import SocketVan

SECONDS = 5.0
MIN_LATE_SECONDS = 0.5  # seconds that others wait until a worker is called a straggler


def query_status(uri: str, port: int, secret: bytes, seconds: float = 1.0, encrypt: str = "auto") -> dict[str, Any]:
    """Return the state of the job whose scheduler is at `uri`:`port`.

    Args:
        uri, port: of the scheduler.
        secret: of the job.
        seconds: between the two looks at the servers from which speeds are computed.
        encrypt: what the job encrypts, see `DUALMX_ENCRYPT`.

    Returns:
        `members` with role, rank, state, host; `rounds` and `rounds_per_s`; `received_per_s` and `sent_per_s` in
        bytes by all servers, or without servers by all workers; `stragglers`: workers for which others wait, with the
        seconds they have waited; `pushed`: rounds of each worker at the servers, and `behind`: how many fewer these
        are than those of the first; `workers`: what each tells of itself, about every second; `batch` of an elastic
        job, with its number and its members.

    Raises:
        MXNetError: nobody answers there, or the secret is wrong.
    """
    van = SocketVan(secret, timeout=0, memory=0, encrypt=encrypt)
    customer = Customer(van, SECONDS)
    peers: dict[int, Peer] = {}
    asked = header(StatusRequest())
    van.on_message = lambda link, message: customer.on_message(message)

    def down(link: int, reason: str) -> None:
        if link in peers:
            customer.fail_peer(peers[link], f"the connection broke: {reason}")

    van.on_down = down
    van.start()

    def connect(name: str, address: dict[str, Any]) -> Peer:
        peer = Peer(name, address, van.connect(address, SECONDS, patient=False))
        peers[peer.link] = peer
        return peer

    def look(servers: dict[int, Peer]) -> tuple[float, dict[int, dict[str, Any]]]:
        tickets = [customer.send_request(p, f"the state of server {rank}", asked) for rank, p in servers.items()]
        replies = customer.wait(tickets) if tickets else []
        return time.monotonic(), {rank: m.meta for rank, m in zip(servers, replies, strict=True)}

    try:
        scheduler = connect("the scheduler", {"host": uri, "port": port})
        job = customer.wait([customer.send_request(scheduler, "the state of the job", asked)])[0].meta
        with _answered(f"{uri}:{port}").parsing():
            alive = [m for m in job["members"] if m["role"] == "server" and m["state"] == "alive" and job["complete"]]
            addresses = {int(m["rank"]): dict(m["address"]) for m in alive}
        servers = {rank: connect(f"server {rank}", address) for rank, address in addresses.items()}
        then, first = look(servers)
        if servers:
            time.sleep(seconds)
        now, last = look(servers)
    finally:
        van.close()
    return summary(f"{uri}:{port}", job, first, last, max(now - then, 1e-9))


def _answered(place: str) -> Content:
    return Content(b"", f"scheduler at {place}", "the state of a job", "is it of the same version as this program?")


def summary(
    place: str, job: dict[str, Any], first: dict[int, Any], last: dict[int, Any], seconds: float
) -> dict[str, Any]:
    """Return the result of `ask` from the replies of the scheduler at `place` and the servers.

    Args:
        place: address and port.
        job: what the scheduler told.
        first, last: what each server told, `seconds` apart.
        seconds: see there.

    Raises:
        FormatError: they told something else.
    """
    with _answered(place).parsing():
        return {"scheduler": place, **_summary(job, first, last, seconds)}


def _summary(job: dict[str, Any], first: dict[int, Any], last: dict[int, Any], seconds: float) -> dict[str, Any]:
    for rank, s in last.items():
        s |= {f"{what}_per_s": round((s[what] - first[rank][what]) / seconds, 3) for what in COUNTS}
    rounds = max((s["rounds"] for s in last.values()), default=0)
    before = max((s["rounds"] for s in first.values()), default=0)
    totals = {"rounds": rounds, "rounds_per_s": round((rounds - before) / seconds, 3)}
    totals |= {what: round(sum(s[what] for s in last.values())) for what in ("received_per_s", "sent_per_s")}
    workers = {str(m["rank"]): m["pulse"] for m in job["members"] if m["role"] == "worker" and m.get("pulse")}
    here = {str(m["rank"]) for m in job["members"] if m["role"] == "worker" and m["state"] == "alive"}
    pulses = [pulse for rank, pulse in workers.items() if rank in here]
    if not job["wanted"]["server"] and pulses:
        totals = {what: max(pulse[what] for pulse in pulses) for what in ("rounds", "rounds_per_s")}
        totals |= {f"{what}_per_s": round(sum(p[f"{what}_per_s"] for p in pulses)) for what in ("received", "sent")}
    stragglers = _stragglers({rank: pulse["wait"] for rank, pulse in workers.items() if rank in here and pulse["wait"]})
    pushed: dict[str, int] = {}
    for s in last.values():
        for rank, waited in s["late"].items():
            stragglers[rank] = max(stragglers.get(rank, 0.0), waited)
        for rank, turn in s["pushed"].items():
            pushed[rank] = max(pushed.get(rank, 0), turn)
    for rank, waited in job.get("late", {}).items():
        stragglers[rank] = max(stragglers.get(rank, 0.0), waited)
    more = {"batch": job["batch"]} if "batch" in job else {}
    members = []
    for m in job["members"]:
        kept = {k: v for k, v in m.items() if k not in ("address", "pulse")}
        members.append({**kept, "host": m["address"].get("host", "")})
    return {
        "complete": job["complete"], "wanted": job["wanted"], "members": members, "barriers": job["barriers"],
        **totals, "pushed": pushed, "behind": {rank: max(pushed.values()) - turn for rank, turn in pushed.items()},
        "stragglers": {rank: waited for rank, waited in sorted(stragglers.items()) if waited > MIN_LATE_SECONDS},
        "servers": {str(rank): s for rank, s in last.items()}, "workers": workers, **more,
    }  # fmt: skip


def _stragglers(waits: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Return workers that others wait for, with the time; a worker that waits itself is no cause."""
    found: dict[str, float] = {}
    stuck = {rank for rank, wait in waits.items() if wait["seconds"] > MIN_LATE_SECONDS}
    for wait in waits.values():
        for rank in {str(rank) for rank in wait["for"]} - stuck:
            found[rank] = max(found.get(rank, 0.0), wait["seconds"])
    return found


__all__ = ["query_status", "summary"]
