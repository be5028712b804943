"""How much one input may take: processor time, memory that is touched, and memory that is asked for."""

from __future__ import annotations

import os
import resource
import signal
from typing import Any

GROWTH, SLACK = 8, 64 << 20  # what the readers promise: so many times the size of the input, and so many bytes
NOISE = 24 << 20  # bytes by which the process itself may grow meanwhile: modules, arenas, caches of operators
ARENAS = 256 << 20  # bytes of addresses that allocators and threads reserve without using them
SECONDS = 20  # of processor time, after which a reader hangs; linear ones take some milliseconds
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Hang(BaseException):
    """An input took more than `SECONDS` of processor time."""


class Excess(BaseException):
    """An input made a reader take more memory than it promises."""


def peak() -> int:
    """The most bytes of memory that this process has used since `clear_refs` forgot it.

    `ru_maxrss` would include those of the process that started this one.
    """
    with open("/proc/self/status", "rb") as f:
        return int(f.read().partition(b"VmHWM:")[2].split(maxsplit=1)[0]) << 10


def _expired(*_: Any) -> None:
    raise Hang(f"more than {SECONDS} s of processor time")


class Limits:
    """Runs calls under limits; one at a time, in the main thread.

    Args:
        factor: by which a library is known to go beyond the promise.
    """

    def __init__(self, factor: float = 1.0):
        signal.signal(signal.SIGPROF, _expired)
        self._peak = open("/proc/self/clear_refs", "w")  # noqa: SIM115 - as long as the process lives
        self._now = open("/proc/self/statm", "rb")  # noqa: SIM115
        self._factor = factor

    def _pages(self) -> tuple[int, int]:
        self._now.seek(0)
        whole, resident = self._now.read().split()[:2]
        return int(whole) * _PAGE, int(resident) * _PAGE

    def run(self, call: Any, size: int) -> int:
        """Call, and return the bytes of memory that were touched meanwhile.

        Raises:
            Hang, Excess: see there; and what the call raises.
        """
        promised = int((GROWTH * size + SLACK) * self._factor)
        self._peak.write("5")  # forget how much memory was in use before
        self._peak.flush()
        addresses, before = self._pages()
        used = resource.getrusage(resource.RUSAGE_SELF)
        cpu = int(used.ru_utime + used.ru_stime)
        resource.setrlimit(resource.RLIMIT_AS, (addresses + promised + ARENAS, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu + 3 * SECONDS, resource.RLIM_INFINITY))  # where Python has no turn
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            call()
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            touched = peak() - before
            if touched > promised + NOISE:
                raise Excess(f"{touched >> 20} MiB for {size} bytes")
        return max(touched, 0)
