"""Job status as a web page, and as Prometheus text."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8884; padding: .25rem .5rem; text-align: right; }
th:first-child, td:first-child, th:last-child, td:last-child { text-align: left; }
.dead, .late, .problem { color: #d33; font-weight: bold; }
.lost, .left { color: #888; }
"""
COLUMNS = ("member", "state", "rounds", "rounds/s", "in", "out", "behind", "others wait", "")
_METRICS = (
    ("up", "Whether the scheduler answers."),
    ("members", "Members of the job by role and state."),
    ("rounds_total", "Rounds, or exchanges without servers, that the first worker has begun."),
    ("rounds_per_second", "Rounds per second."),
    ("received_bytes_per_second", "Bytes that all servers, or without servers all workers, receive."),
    ("sent_bytes_per_second", "Bytes that all servers, or without servers all workers, send."),
    ("straggler_seconds", "Since when other workers wait for a worker."),
    ("behind_rounds", "Rounds that a worker has pushed fewer than the first."),
    ("worker_exchanges_total", "Exchanges with other workers that a worker has begun."),
    ("worker_sent_bytes_total", "Bytes that a worker has sent to other workers."),
    ("worker_received_bytes_total", "Bytes that a worker has received from other workers."),
    ("worker_figure", "What a worker has reported last, such as its loss."),
    ("server_keys", "Keys that a server holds."),
    ("server_memory_bytes", "Memory of the values that a server holds."),
)


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
    """Return the data rates of a job."""
    if not state["wanted"]["server"]:
        return f"{size(state['sent_per_s'])}/s between the workers"
    return f"{size(state['received_per_s'])}/s to the servers, {size(state['sent_per_s'])}/s from them"


def missing(state: dict[str, Any]) -> str:
    """Describe which members of a job have joined, if not all have."""
    here = {role: sum(m["role"] == role for m in state["members"]) for role in state["wanted"]}
    return "coming together: " + ", ".join(f"{n} of {state['wanted'][r]} {r}s" for r, n in here.items())


def figures_of(pulse: dict[str, Any]) -> list[str]:
    """What a worker has reported, in words.

    Example:
        >>> figures_of({"figures": {"loss": 0.25, "norm": None}})
        ['loss=0.25', 'norm=not finite']
    """
    found = pulse.get("figures", {}).items()
    return [f"{name}={'not finite' if value is None else format(value, '.4g')}" for name, value in found]


def awaited(pulse: dict[str, Any], least: float) -> str:
    """What a worker waits for since `least` seconds or longer, in words."""
    wait = pulse.get("wait")
    if not wait or wait["seconds"] <= least:
        return ""
    return f"waits in {wait['in']} for {', '.join(map(str, wait['for']))} since {wait['seconds']:.1f} s"


# -- the page


def _row(state: dict[str, Any], member: dict[str, Any], least: float) -> str:
    role, rank = member["role"], str(member["rank"])
    status: dict[str, Any] = (state["servers"] if role == "server" else state["workers"]).get(rank, {})
    rounds = state["pushed"].get(rank, status.get("rounds", "")) if role == "worker" else status.get("rounds", "")
    waited_for = state["stragglers"].get(rank) if role == "worker" else None
    notes = [f"for {member['since']:g} s: {member['end']}"] if member["end"] else []
    if role == "server" and status:
        notes.append(f"{status['keys']} keys, {size(status['memory'])}")
    if role == "worker":
        notes += [*filter(None, [awaited(status, least)]), *figures_of(status)]
    moves = status if role == "server" or status.get("rounds") else {}  # else a worker deals with servers alone
    rates = [f"{size(moves[name])}/s" if moves else "" for name in ("received_per_s", "sent_per_s")]
    where = f" ({member['host']})" if member["host"] else ""
    cells = [
        ("", f"{role} {rank}{where}"), (member["state"], member["state"]), ("", rounds),
        ("", f"{moves['rounds_per_s']:g}" if moves else ""), ("", rates[0]), ("", rates[1]),
        ("", state["behind"].get(rank, "") if role == "worker" else ""),
        ("late" if waited_for else "", f"{waited_for:.1f} s" if waited_for else ""), ("", ", ".join(notes)),
    ]  # fmt: skip
    return "<tr>" + "".join(f"<td{_class(kind)}>{html.escape(str(text))}</td>" for kind, text in cells) + "</tr>"


def _class(kind: str) -> str:
    return f' class="{html.escape(kind)}"' if kind else ""


def _job(state: dict[str, Any], least: float) -> Iterable[str]:
    name = f": {state['command']}" if state["command"] else ""
    yield f"<h2>job at {html.escape(state['scheduler'] + name)}</h2>"
    if not state["complete"]:
        yield f"<p>{missing(state)}</p>"
        return
    yield f"<p>round {state['rounds']}, {state['rounds_per_s']:g} rounds/s, {speeds(state)}</p>"
    if "batch" in state:
        members = ", ".join(map(str, state["batch"]["members"]))
        yield f"<p>elastic: workers {members} take part in batch {state['batch']['number']}</p>"
    yield "<table>"
    yield "<tr>" + "".join(f"<th>{name}</th>" for name in COLUMNS) + "</tr>"
    yield from (_row(state, member, least) for member in state["members"])
    yield "</table>"
    for barrier in state["barriers"]:
        ranks = ", ".join(map(str, barrier["ranks"]))
        yield f"<p>barrier {html.escape(barrier['barrier'])}: workers {ranks} are there</p>"


def web_page(states: Sequence[dict[str, Any]], problems: Sequence[str], refresh: float, least: float) -> str:
    """Return a self-reloading page without scripts and external resources.

    Args:
        states: of jobs, as `ps.status.ask` returns them, and the `command` of each.
        problems: why others are not shown.
        refresh: seconds until the page is loaded again.
        least: seconds from which on it is told that a worker waits.
    """
    lines = [
        "<!doctype html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
        f'<meta http-equiv="refresh" content="{max(1, round(refresh))}">', "<title>dualmx status</title>",
        f"<style>{STYLE}</style>", "</head>", "<body>", "<h1>dualmx status</h1>",
        *(line for state in states for line in _job(state, least)),
        *(f'<p class="problem">{html.escape(text)}</p>' for text in problems),
        '<p><a href="status.json">status.json</a> <a href="metrics">metrics</a></p>', "</body>", "</html>",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


# -- Prometheus


def _samples(state: dict[str, Any]) -> Iterable[tuple[str, dict[str, Any], float | None]]:
    yield "up", {}, 1
    kinds = [(m["role"], m["state"]) for m in state["members"]]
    for role, how in sorted(set(kinds)):
        yield "members", {"role": role, "state": how}, kinds.count((role, how))
    yield "rounds_total", {}, state["rounds"]
    yield "rounds_per_second", {}, state["rounds_per_s"]
    yield "received_bytes_per_second", {}, state["received_per_s"]
    yield "sent_bytes_per_second", {}, state["sent_per_s"]
    for rank, seconds in state["stragglers"].items():
        yield "straggler_seconds", {"worker": rank}, seconds
    for rank, rounds in state["behind"].items():
        yield "behind_rounds", {"worker": rank}, rounds
    for rank, status in state["workers"].items():
        yield "worker_exchanges_total", {"worker": rank}, status["rounds"]
        yield "worker_sent_bytes_total", {"worker": rank}, status["sent"]
        yield "worker_received_bytes_total", {"worker": rank}, status["received"]
        for name, value in status["figures"].items():
            yield "worker_figure", {"worker": rank, "name": name}, value
    for rank, server in state["servers"].items():
        yield "server_keys", {"server": rank}, server["keys"]
        yield "server_memory_bytes", {"server": rank}, server["memory"]


def metrics_text(states: Sequence[dict[str, Any]]) -> str:
    """Return the states of jobs in the text format of Prometheus."""
    lines: dict[str, list[str]] = {name: [] for name, _ in _METRICS}
    for state in states:
        for name, labels, value in _samples(state):
            labels_text = ",".join(f'{k}="{_quoted(v)}"' for k, v in {"job": state["scheduler"], **labels}.items())
            lines[name].append(f"dualmx_{name}{{{labels_text}}} {'NaN' if value is None else f'{value:.17g}'}")
    out = []
    for name, doc in _METRICS:
        kind = "counter" if name.endswith("_total") else "gauge"
        if lines[name]:
            out += [f"# HELP dualmx_{name} {doc}", f"# TYPE dualmx_{name} {kind}", *lines[name]]
    return "".join(f"{line}\n" for line in out)


def _quoted(value: Any) -> str:
    return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


__all__ = ["awaited", "figures_of", "metrics_text", "missing", "size", "speeds", "web_page"]
