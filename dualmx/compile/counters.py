"""Counts of what the engine did, read by `mx.debug` and the tests."""

from __future__ import annotations


class Counters:
    """Totals of this process: programs compiled and run, recorded steps that were new, buffers copied, failures."""

    __slots__ = ("compiles", "flushes", "misses", "kept_copies", "failures", "compile_seconds")

    def __init__(self) -> None:
        self.compiles = self.flushes = self.misses = self.kept_copies = self.failures = 0
        self.compile_seconds = 0.0


counters = Counters()
