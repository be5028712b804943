"""Programs for other processes: StableHLO with JAX's own calling convention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import export as jax_export

from .x64 import x64


def export_stablehlo(
    fn: Callable[..., Any], args: Sequence[jax.Array], platforms: Sequence[str] | None
) -> jax_export.Exported:
    """Return the program of a function for arrays like `args`; see `jax.export.export` for `platforms`."""
    with x64():
        return jax_export.export(jax.jit(fn), platforms=platforms)(*args)


__all__ = ["export_stablehlo"]
