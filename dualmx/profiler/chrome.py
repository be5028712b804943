"""Events as a Chrome trace: the JSON that chrome://tracing and Perfetto load."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

from ..core.errors import MXNetError
from .recorder import STARTED, Event, Recorder, microseconds


def entries(recorder: Recorder) -> Iterator[dict[str, Any]]:
    """Yield the trace's entries."""
    pid = os.getpid()
    yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "dualmx"}}
    names = {t.ident: t.name for t in threading.enumerate()}
    with recorder.lock:
        events = list(recorder.events)
    for thread in sorted({e.thread for e in events}):
        name = names.get(thread, f"thread {thread}")
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": thread, "args": {"name": name}}
    for e in events:
        yield from _written(e, pid)


def _written(e: Event, pid: int) -> Iterator[dict[str, Any]]:
    base = {"name": e.name, "cat": e.category, "pid": pid, "tid": e.thread}
    if e.category == "flush":
        yield from _flush(e, base)
        return
    made: dict[str, Any] = {**base, "ph": e.kind, "ts": microseconds(e.began)}
    if e.kind == "X":
        made["dur"] = round((e.seconds or 0.0) * 1e6, 3)
    elif e.kind == "i":
        made["s"] = e.details
        yield made
        return
    elif e.kind in "be":
        made["id"] = e.details
        yield made
        return
    if e.details is not None:
        made["args"] = e.details
    yield made


def _flush(e: Event, base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a flush, its execution, and its operations in order.

    XLA runs a program as a whole, so the time of one operation is not known: each gets an equal share of the
    execution, marked `"measured": false`.
    """
    program, dispatched, seconds = e.details["program"], e.details["dispatched"], e.seconds or 0.0
    args = {"operations": len(program.operations), "results": e.details["results"], "where": program.where,
            "context": program.context}  # fmt: skip
    yield {**base, "ph": "X", "ts": microseconds(e.began), "dur": round(seconds * 1e6, 3), "args": args}
    ended = e.began + seconds
    # From the hand-over to the device on, it only executes; before, the program was looked up, perhaps compiled.
    wait = {**base, "name": "execute", "cat": "execute", "ph": "X"}
    yield {**wait, "ts": microseconds(dispatched), "dur": round((ended - dispatched) * 1e6, 3)}
    share = (ended - dispatched) / max(len(program.operations), 1)
    for k, (name, where, yields) in enumerate(program.operations):
        yield {
            "name": name, "cat": "operator", "ph": "X", "pid": base["pid"], "tid": base["tid"],
            "ts": microseconds(dispatched + k * share), "dur": max(round(share * 1e6 - 0.001, 3), 0.0),
            "args": {"where": where, "yields": yields, "measured": False},
        }  # fmt: skip


def write(recorder: Recorder, filename: str) -> None:
    """Write the trace; the file is complete or not changed.

    Raises:
        MXNetError: it cannot be written.
    """
    folder = os.path.dirname(os.path.abspath(filename))
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, suffix=".part", delete=False) as f:
            f.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
            for k, entry in enumerate(entries(recorder)):
                f.write((",\n" if k else "") + json.dumps(entry))
            f.write(f'\n], "otherData": {{"dropped": "{recorder.dropped}", "started": "{STARTED}"}}}}\n')
        os.replace(f.name, filename)
    except OSError as e:
        raise MXNetError(f"profiler.dump: cannot write {filename!r}: {e.strerror}") from None
