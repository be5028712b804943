"""`dualmx status`: members, rounds, speed and stragglers of a running job."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

from ..core import knobs
from ..core.errors import MXNetError
from ..core.job_status import running_jobs
from ..core.reader import Content
from ..ps.status import MIN_LATE_SECONDS, query_status
from ..ps.van.handshake import load_secret
from .status_page import awaited, figures_of, missing, size, speeds

CLEAR = "\x1b[H\x1b[2J"  # empties a terminal


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
    p.add_argument("--serve", type=int, metavar="PORT", help="a web page, /status.json and /metrics; 0 for any port")
    p.add_argument(
        "--host", default="127.0.0.1", help="address that --serve listens on; others than this host's are not checked"
    )
    return p


def targets(o: argparse.Namespace) -> list[tuple[str, int, bytes, str, str]]:
    """Return (address, port, secret, command, what it encrypts) of the jobs to show.

    Raises:
        MXNetError: there are none, or a job's secret is not known.
    """
    uri, port = o.uri or knobs.ROOT_URI.read(), o.port
    if uri:
        return [(uri, port or knobs.ROOT_PORT.port(1), load_secret(uri), "", knobs.ENCRYPT.read())]
    found = running_jobs()
    if not found:
        raise MXNetError("no job of yours runs on this host; name one by --uri, --port and DUALMX_SECRET")
    return [
        (str(j["uri"]), int(j["port"]), str(j["secret"]).encode(), str(j["command"]), str(j.get("encrypt", "auto")))
        for j in found
    ]


def doing(state: dict[str, Any], member: dict[str, Any]) -> str:
    """What a member of a job is doing, in words."""
    rank = str(member["rank"])
    what = [member["state"] + (f" for {member['since']:g} s: {member['end']}" if member["end"] else "")]
    if member["role"] == "server" and rank in state["servers"]:
        s = state["servers"][rank]
        what.append(f"{s['keys']} keys, {size(s['memory'])}")
    if member["role"] == "worker":
        status = state["workers"].get(rank, {})
        if rank in state["pushed"]:
            behind = state["behind"][rank]
            what.append(f"round {state['pushed'][rank]}" + (f" ({behind} behind)" if behind else ""))
        if status.get("rounds"):
            speed = f"{status['rounds_per_s']:g}/s, {size(status['sent_per_s'])}/s sent"
            what.append(f"{status['rounds']} exchanges, {speed}")
        if rank in state["stragglers"]:
            what.append(f"others wait for it since {state['stragglers'][rank]:.1f} s")
        what += [*filter(None, [awaited(status, MIN_LATE_SECONDS)]), *figures_of(status)]
    return ", ".join(what)


def page(state: dict[str, Any], command: str) -> str:
    """The state of a job for people.

    Raises:
        FormatError: the scheduler told something else.
    """
    with Content(b"", f"scheduler at {state['scheduler']}", "the state of a job").parsing():
        return _page(state, command)


def _page(state: dict[str, Any], command: str) -> str:
    out = [f"job at {state['scheduler']}" + (f": {command}" if command else "")]
    if not state["complete"]:
        return f"{out[0]}\n  {missing(state)}"
    out.append(f"  round {state['rounds']}, {state['rounds_per_s']:g} rounds/s, {speeds(state)}")
    if "batch" in state:
        members = ", ".join(map(str, state["batch"]["members"]))
        out.append(f"  elastic: workers {members} take part in batch {state['batch']['number']}")
    for m in state["members"]:
        name = f"{m['role']} {m['rank']}"
        out.append(f"  {name:10} {doing(state, m)}" + (f" ({m['host']})" if m["host"] else ""))
    out += [f"  barrier {b['barrier']}: workers {b['ranks']} are there" for b in state["barriers"]]
    return "\n".join(out)


def look(o: argparse.Namespace) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the states of the jobs that answer, with the `command` of each, and why others do not."""
    found, failed = [], []
    try:
        for uri, port, secret, command, encrypt in targets(o):
            try:
                state = {**query_status(uri, port, secret, o.interval, encrypt), "command": command}
                page(state, command)  # whatever shows it later can rely on what it holds
                found.append(state)
            except MXNetError as e:
                failed.append(str(e))
    except MXNetError as e:
        failed.append(str(e))
    return found, failed


def show(o: argparse.Namespace) -> int:
    """Print the status of the jobs, repeatedly with `--watch`; return 2 if no job answers."""
    seen = False
    while True:
        start = time.monotonic()
        found, failed = look(o)
        if not found and seen:
            return 0
        if o.watch and found and sys.stdout.isatty():
            print(CLEAR, end="")
        for state in found:
            print(json.dumps(state) if o.json else page(state, state["command"]), flush=True)
        for text in failed:
            print(f"dualmx status: {text}", file=sys.stderr)
        if not found or not o.watch:
            return 0 if found else 2
        seen = True
        time.sleep(max(0.1, start + o.interval - time.monotonic()))


def serve(o: argparse.Namespace) -> int:
    """Serve the status of the jobs over HTTP until interrupted; return 2 if the address cannot be bound."""
    from .status_server import Server

    try:
        server = Server((o.host, o.serve), lambda: look(o), o.interval)
    except OSError as e:
        print(f"dualmx status: cannot listen on {o.host}:{o.serve}: {e.strerror or e}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(f"status on http://{server.server_address[0]}:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    finally:
        server.server_close()
    return 0


def main(argv: Sequence[str]) -> int:
    """Run the command line; returns 2 if no job answers."""
    p = parser()
    o = p.parse_args(argv)
    if not 0 <= o.interval < float("inf"):
        p.error(f"--interval {o.interval:g}: expected seconds of 0 or more")
    if not 0 <= o.port < 65536 or o.uri and not o.port and not knobs.ROOT_PORT.read():
        p.error(f"--port {o.port}: expected 1 to 65535, the port of the scheduler at --uri")
    if o.serve is not None and not 0 <= o.serve < 65536:
        p.error(f"--serve {o.serve}: expected a port, 1 to 65535, or 0 for any")
    if o.serve is not None and (o.watch or o.json):
        p.error("--serve: expected neither --watch nor --json; the page refreshes itself, and has /status.json")
    try:
        return show(o) if o.serve is None else serve(o)
    except KeyboardInterrupt:
        return 130
