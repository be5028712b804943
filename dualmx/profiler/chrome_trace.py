"""Recorded events as Chrome trace JSON."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

from ..core.errors import MXNetError
from .recorder import EPOCH, Event, Recorder, microseconds


def trace_events(recorder: Recorder) -> Iterator[dict[str, Any]]:
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
        yield _trace_event(e, pid)


def _trace_event(e: Event, pid: int) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": e.name, "cat": e.category, "pid": pid, "tid": e.thread, "ph": e.kind,
                            "ts": microseconds(e.began)}  # fmt: skip
    if e.kind == "X":
        entry["dur"] = round((e.seconds or 0.0) * 1e6, 3)
    if e.kind == "i":
        entry["s"] = e.details
    elif e.kind in "be":
        entry["id"] = e.details
    elif e.details is not None:
        entry["args"] = e.details
    return entry


def write(recorder: Recorder, filename: str) -> None:
    """Write the trace; the file is complete or not changed.

    Raises:
        MXNetError: it cannot be written.
    """
    folder = os.path.dirname(os.path.abspath(filename))
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, suffix=".part", delete=False) as f:
            f.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
            for k, entry in enumerate(trace_events(recorder)):
                f.write((",\n" if k else "") + json.dumps(entry))
            f.write(f'\n], "otherData": {{"dropped": "{recorder.dropped}", "started": "{EPOCH}"}}}}\n')
        os.replace(f.name, filename)
    except OSError as e:
        raise MXNetError(f"profiler.dump: cannot write {filename!r}: {e.strerror}") from None
