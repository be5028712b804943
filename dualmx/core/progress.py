"""Progress of a transfer: one line on a terminal or in a notebook, nothing elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

_INTERVAL_SECONDS = 0.2  # seconds between two changes of the line


class Progress:
    """Shows name, size and speed on the standard error stream while it is entered.

    Args:
        name: what is transferred.
        total: bytes at the end; None if not known.
        start: bytes that are there already.
    """

    def __init__(self, name: str, total: int | None, start: int = 0):
        self._name, self._total, self._start = name, total, start
        self._stream = sys.stderr if _is_seen(sys.stderr) else None
        self._began = self._shown = time.monotonic()
        self._have, self._width = start, 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._stream is not None and self._width:
            self._write()
            self._stream.write("\n")
            self._stream.flush()

    def show(self, have: int) -> None:
        """Say that `have` bytes are there."""
        self._have = have
        if self._stream is not None and time.monotonic() - self._shown >= _INTERVAL_SECONDS:
            self._write()

    def _write(self) -> None:
        self._shown = time.monotonic()
        speed = (self._have - self._start) / max(self._shown - self._began, 1e-9)
        text = f"{self._name}: {_size(self._have)}"
        if self._total:
            text += f" of {_size(self._total)} ({100 * self._have // self._total} %)"
        text += f", {_size(speed)}/s"
        assert self._stream is not None
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)


def _is_seen(stream: Any) -> bool:
    """Whether output is seen: a terminal, or the output of a notebook's cell."""
    return stream is not None and (stream.isatty() or type(stream).__module__.startswith("ipykernel"))


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.2f} GB"


__all__ = ["Progress"]
