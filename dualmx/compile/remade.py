"""Programs whose backward pass makes values again instead of keeping them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def sub_jaxprs(eqn: Any) -> Iterator[tuple[Any, Any]]:
    """The programs inside an equation, as they stand in its parameters, and bare."""
    for value in eqn.params.values():
        for closed in value if isinstance(value, (tuple, list)) else (value,):
            body = getattr(closed, "jaxpr", closed)
            if hasattr(body, "eqns"):
                yield closed, body


def has_remat(jaxpr: Any) -> bool:
    """Whether a program has a backward pass that makes values again to save memory (`jax.checkpoint`).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> makes_again(jax.make_jaxpr(jax.checkpoint(jnp.sin))(0.5).jaxpr)
        True
    """
    return any("prevent_cse" in e.params or any(has_remat(b) for _, b in sub_jaxprs(e)) for e in jaxpr.eqns)


__all__ = ["has_remat", "sub_jaxprs"]
