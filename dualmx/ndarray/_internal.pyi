# Written by `python -m dualmx.namespace.stubs`. Generated, so its length has no bound.
"""Types of `mx.nd._internal`: every registered name."""

from collections.abc import Callable
from typing import Any

def __getattr__(name: str) -> Callable[..., Any]: ...
