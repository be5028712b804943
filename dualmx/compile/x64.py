"""64-bit types in a scope: dualmx always supports them, without switching them on for the user's own JAX code."""

from __future__ import annotations

from typing import Any

import jax


def x64() -> Any:
    """Context manager under which JAX keeps 64-bit types (about half a microsecond)."""
    return jax.enable_x64(True)
