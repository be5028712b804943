"""`dualmx status`: the members of a running job, its rounds and speed, and which workers let the others wait."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from ..core import knobs
from ..core.errors import MXNetError
from ..core.running import jobs
from ..ps.secret import find_secret
from ..ps.status import LATE, ask


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(
        prog="dualmx status",
        description="Show members, rounds, bytes per second and stragglers of running jobs.",
        epilog="Without --uri: the job of the environment (DMLC_PS_ROOT_URI), else those that dualmx-launch runs here.",
    )
    p.add_argument("--uri", default="", help="address of the scheduler")
    p.add_argument("--port", type=int, default=0, help="port of the scheduler")
    p.add_argument("--json", action="store_true", help="one line of JSON for each job")
    p.add_argument("--interval", type=float, default=1.0, help="seconds over which speeds are measured")
    p.add_argument("--watch", action="store_true", help="go on until interrupted, or until the job is over")
    return p


def targets(o: argparse.Namespace) -> list[tuple[str, int, bytes, str]]:
    """Return (address, port, secret, command) of the jobs to show.

    Raises:
        MXNetError: there are none, or a job's secret is not known.
    """
    uri, port = o.uri or knobs.ROOT_URI.read(), o.port
    if uri:
        return [(uri, port or knobs.ROOT_PORT.port(1), find_secret(uri), "")]
    found = jobs()
    if not found:
        raise MXNetError("no job of yours runs on this host; name one by --uri, --port and DUALMX_SECRET")
    return [(str(j["uri"]), int(j["port"]), str(j["secret"]).encode(), str(j["command"])) for j in found]


def size(number: float) -> str:
    """Bytes in a unit in which they can be read.

    Example:
        >>> size(0), size(3026), size(4096000), size(2.5e9)
        ('0 B', '3.0 KB', '4.1 MB', '2.5 GB')
    """
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if number >= scale:
            return f"{number / scale:.1f} {unit}"
    return f"{number:.0f} B"


def speeds(state: dict[str, Any]) -> str:
    """How fast bytes travel in a job."""
    if not state["wanted"]["server"]:
        return f"{size(state['sent_per_s'])}/s between the workers"
    return f"{size(state['received_per_s'])}/s to the servers, {size(state['sent_per_s'])}/s from them"


def doing(state: dict[str, Any], member: dict[str, Any]) -> str:
    """What a member of a job is doing, in words."""
    rank = str(member["rank"])
    what = member["state"] + (f" for {member['since']:g} s: {member['end']}" if member["end"] else "")
    if member["role"] == "server" and rank in state["servers"]:
        s = state["servers"][rank]
        return what + f", {s['keys']} keys, {size(s['memory'])}"
    if member["role"] != "worker":
        return what
    pulse = state["workers"].get(rank, {})
    if rank in state["pushed"]:
        behind = state["behind"][rank]
        what += f", round {state['pushed'][rank]}" + (f" ({behind} behind)" if behind else "")
    if pulse.get("rounds"):
        what += f", {pulse['rounds']} exchanges, {pulse['rounds_per_s']:g}/s, {size(pulse['sent_per_s'])}/s sent"
    if rank in state["stragglers"]:
        what += f", others wait for it since {state['stragglers'][rank]:.1f} s"
    wait = pulse.get("wait")
    if wait and wait["seconds"] > LATE:
        what += f", waits in {wait['in']} for {', '.join(map(str, wait['for']))} since {wait['seconds']:.1f} s"
    figures = pulse.get("figures", {}).items()
    return what + "".join(f", {name}={'not finite' if v is None else format(v, '.4g')}" for name, v in figures)


def page(state: dict[str, Any], command: str) -> str:
    """The state of a job for people."""
    out = [f"job at {state['scheduler']}" + (f": {command}" if command else "")]
    if not state["complete"]:
        here = {role: sum(m["role"] == role for m in state["members"]) for role in state["wanted"]}
        return (
            out[0] + "\n  coming together: " + ", ".join(f"{n} of {state['wanted'][r]} {r}s" for r, n in here.items())
        )
    out.append(f"  round {state['rounds']}, {state['rounds_per_s']:g} rounds/s, {speeds(state)}")
    if "batch" in state:
        members = ", ".join(map(str, state["batch"]["members"]))
        out.append(f"  elastic: workers {members} take part in batch {state['batch']['number']}")
    for m in state["members"]:
        name = f"{m['role']} {m['rank']}"
        out.append(f"  {name:10} {doing(state, m)}" + (f" ({m['host']})" if m["host"] else ""))
    out += [f"  barrier {b['barrier']}: workers {b['ranks']} are there" for b in state["barriers"]]
    return "\n".join(out)


def show(o: argparse.Namespace) -> tuple[bool, list[str]]:
    """Print the states of the jobs; returns whether one answered, and why others did not.

    Raises:
        MXNetError: there are none, or a job's secret is not known.
    """
    found, failed = False, []
    for uri, port, secret, command in targets(o):
        try:
            state = ask(uri, port, secret, o.interval)
        except MXNetError as e:
            failed.append(str(e))
            continue
        print(json.dumps(state) if o.json else page(state, command), flush=True)
        found = True
    return found, failed


def main(argv: Sequence[str]) -> int:
    """Run the command line; returns 2 if no job answers."""
    p = parser()
    o = p.parse_args(argv)
    if not 0 <= o.interval < float("inf"):
        p.error(f"--interval {o.interval:g}: expected seconds of 0 or more")
    if not 0 <= o.port < 65536 or o.uri and not o.port and not knobs.ROOT_PORT.read():
        p.error(f"--port {o.port}: expected 1 to 65535, the port of the scheduler at --uri")
    seen = False
    while True:
        try:
            found, failed = show(o)
        except MXNetError as e:
            found, failed = False, [str(e)]
        except KeyboardInterrupt:
            return 130
        if not found and seen and o.watch:
            return 0
        for text in failed:
            print(f"dualmx status: {text}", file=sys.stderr)
        if not found or not o.watch:
            return 0 if found else 2
        seen = True
        time.sleep(0.1)
