"""Timeline of each tensor as a Chrome trace."""

from __future__ import annotations

import json
import threading
import time
from typing import Any, TextIO

from .. import parallel
from ..core.errors import ArgumentError


class Timeline:
    """Events of tensors, one row each. Off until `start`."""

    def __init__(self) -> None:
        self._file: TextIO | None = None
        self._rows: dict[str, int] = {}
        self._open: dict[int, int] = {}
        self._lock = threading.RLock()
        self._began = 0.0
        self.cycles = False

    @property
    def on(self) -> bool:
        """Whether events are written."""
        return self._file is not None

    def start(self, path: str, mark_cycles: bool = False) -> None:
        """Write events to a new file.

        Raises:
            ArgumentError: another file is being written, or this one cannot be.
        """
        with self._lock:
            if self._file is not None:
                raise ArgumentError(f"hvd.start_timeline: {self._file.name!r} is being written; call stop_timeline")
            try:
                self._file = open(path, "w")  # noqa: SIM115
            except OSError as e:
                raise ArgumentError(f"hvd.start_timeline: file_path={path!r}: {e.strerror}") from e
            self._rows, self._open, self.cycles, self._began = {}, {}, mark_cycles, time.monotonic()
            self._file.write("[\n")
            self._put({"name": "process_name", "ph": "M", "pid": 0, "args": {"name": "cycles"}}, first=True)

    def stop(self) -> None:
        """Complete the file."""
        with self._lock:
            if self._file is not None:
                for row, depth in self._open.items():
                    for _ in range(depth):
                        self._put({"ph": "E", "pid": row, "ts": self._now()})
                self._file.write("\n]\n")
                self._file.close()
                self._file = None

    def negotiate(self, tensor: str, kind: str) -> None:
        """Record that a first rank has a tensor ready; later ranks are not recorded."""
        if self._file is None:
            return
        with self._lock:
            if not self._open.get(self._rows.get(tensor, 0)):
                self._event(tensor, "B", name=f"NEGOTIATE_{kind.upper()}")

    def begin(self, tensor: str, what: str, **args: Any) -> None:
        """A tensor enters a state; states nest."""
        self._event(tensor, "B", name=what, **({"args": args} if args else {}))

    def end(self, tensor: str) -> None:
        """It leaves the state that it entered last."""
        self._event(tensor, "E")

    def mark(self, tensor: str, what: str) -> None:
        """Something happens to a tensor."""
        self._event(tensor, "X", name=what, dur=0)

    def cycle(self) -> None:
        """A cycle begins."""
        if self.cycles and self.on:
            with self._lock:
                self._put({"name": "CYCLE_START", "ph": "i", "s": "g", "pid": 0, "ts": self._now()})

    def _now(self) -> int:
        return int((time.monotonic() - self._began) * 1e6)

    def _event(self, tensor: str, kind: str, **more: Any) -> None:
        if self._file is None:
            return
        with self._lock:
            if tensor not in self._rows:
                row = self._rows[tensor] = len(self._rows) + 1
                self._put({"name": "process_name", "ph": "M", "pid": row, "args": {"name": tensor}})
                self._put({"name": "process_sort_index", "ph": "M", "pid": row, "args": {"sort_index": row}})
            row = self._rows[tensor]
            if kind == "E" and not self._open.get(row):
                return  # it began before the file did
            if kind != "X":
                self._open[row] = self._open.get(row, 0) + (1 if kind == "B" else -1)
            self._put({"ph": kind, "pid": row, "ts": self._now(), **more})

    def _put(self, event: dict[str, Any], first: bool = False) -> None:
        if self._file is not None:
            self._file.write(("" if first else ",\n") + json.dumps(event))
            self._file.flush()


timeline = Timeline()


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Write to a file what happens to each tensor from now on: waiting for others, fusing, exchanging.

    All processes may call it, with the same name: process 0, which every exchange goes by, writes the file.

    Args:
        file_path: the file.
        mark_cycles: also write when exchanges are collected.

    Raises:
        ArgumentError: a file is being written already, or this one cannot be.
    """
    if parallel.rank() == 0:
        timeline.start(file_path, mark_cycles)


def stop_timeline() -> None:
    """Complete the file that `start_timeline` or `HOROVOD_TIMELINE` began."""
    timeline.stop()
