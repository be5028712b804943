"""NumPy semantics switches: for shapes (0-d and zero-size arrays) and for arrays (`mx.np.ndarray`)."""

from __future__ import annotations

import threading
from typing import Any


class _ScopedFlag:
    """A flag with a value for the process, over which scopes put one for their thread."""

    def __init__(self) -> None:
        self.process_value = False
        self.thread_value = threading.local()

    def get(self) -> bool:
        """Return the value in this thread."""
        return getattr(self.thread_value, "value", self.process_value)

    def set(self, value: bool) -> None:
        """Set the value for the process; scopes of other threads keep theirs."""
        self.process_value = value
        self.thread_value.__dict__.pop("value", None)


shape, array = _ScopedFlag(), _ScopedFlag()


class Scope:
    """Set a switch within a `with` block, in this thread; also a decorator of functions."""

    def __init__(self, switch: _ScopedFlag, active: bool):
        self.switch, self.active = switch, bool(active)
        self.before: list[Any] = []

    def __enter__(self) -> Scope:
        self.before.append(self.switch.thread_value.__dict__.get("value"))
        self.switch.thread_value.value = self.active
        return self

    def __exit__(self, *exc: object) -> None:
        before = self.before.pop()
        if before is None:
            self.switch.thread_value.__dict__.pop("value", None)
        else:
            self.switch.thread_value.value = before


__all__ = ["Scope", "array", "shape"]
