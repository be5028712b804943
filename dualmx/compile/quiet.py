"""JAX's notices about its own affairs, kept out of the logs of users who log at level INFO."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator


@contextlib.contextmanager
def quiet_jax_logging() -> Iterator[None]:
    """Let JAX log only warnings and worse in this scope."""
    log = logging.getLogger("jax")
    before = log.level
    log.setLevel(max(before, logging.WARNING))
    try:
        yield
    finally:
        log.setLevel(before)
