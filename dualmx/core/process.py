"""What this process may do: a fork of a process that runs XLA must not compute with it."""

from __future__ import annotations

from .errors import MXNetError


class _Process:
    """State of this process.

    Attributes:
        no_compute: why arrays cannot be computed here, empty where they can.
    """

    no_compute = ""

    def require_compute(self) -> None:
        """Raise `MXNetError` where computing would wait for threads that exist only in the parent process."""
        if self.no_compute:
            raise MXNetError(self.no_compute)


process = _Process()
