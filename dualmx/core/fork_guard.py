"""Fork guard: a fork of a process that runs XLA must not compute with it."""

from __future__ import annotations

import gc
import os

from .errors import ForkError


class _ForkGuard:
    """State of this process.

    Attributes:
        is_fork: why arrays cannot be computed here, empty where they can.
        runs_xla: XLA was started here, or before the fork that made this process.
    """

    is_fork = ""
    runs_xla = False

    def require_compute(self) -> None:
        """Raise `ForkError` where computing would wait for threads that exist only in the parent process."""
        if self.is_fork:
            raise ForkError(self.is_fork)

    def mark_fork(self) -> None:
        """Note that this process is a fork of one that may run XLA."""
        if self.runs_xla:
            gc.freeze()  # at the end XLA's client would wait for its threads, which exist only in the parent
            self.is_fork = (
                "this process is a fork of one that computes with arrays, and cannot compute itself: start it by "
                "multiprocessing.get_context('spawn'), or fork before the first array is computed"
            )


fork_guard = _ForkGuard()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=fork_guard.mark_fork)
