"""Changes of the code under test in the members of a job: other sizes, and faults put back for controls."""

from __future__ import annotations

import faulthandler
import signal
import sys

from dualmx.ps import journal


def small() -> None:
    """Snapshots after a few records, not after many megabytes."""
    journal.LEAST, journal.LONGEST = 6000, 1


PATCHES = {f.__name__: f for f in (small,)}


def apply(name: str) -> None:
    """Make a change in this process; that of the name `""` only lets it tell where it is when it gets SIGUSR1."""
    if name:
        PATCHES[name]()
    faulthandler.register(signal.SIGUSR1, sys.stderr)
