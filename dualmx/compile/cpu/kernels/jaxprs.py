"""What the writers of kernels read of jaxprs: which equations are needed, and what some of them are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# What a primitive that calls a jaxpr calls.
CALLED_JAXPRS: dict[str, Callable[[dict[str, Any]], Any]] = {
    **dict.fromkeys(("jit", "pjit", "checkpoint", "remat", "remat2"), lambda params: params["jaxpr"]),
    **dict.fromkeys(
        ("closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"),
        lambda params: params.get("call_jaxpr") or params["fun_jaxpr"],
    ),
}
IDENTITIES = ("optimization_barrier", "stop_gradient", "copy", "copy_p", "name", "random_wrap", "random_unwrap")

# What `jax.random.uniform` calls, but for views and conversions: primitives with their constants.
_UNIFORM = (
    ("random_bits", []), ("shift_right_logical", [9]), ("or", [0x3F800000]), ("bitcast_convert_type", []), ("sub", [1]),
    ("sub", []), ("mul", []), ("add", []), ("max", []),
)  # fmt: skip


def is_literal(v: Any) -> bool:
    """Whether an operand of an equation is a constant; the import that names its class takes 18 ms."""
    return hasattr(v, "val")


def live_equations(jaxpr: Any) -> list[Any]:
    """Return the equations of an open jaxpr that its results need."""
    needed = {v for v in jaxpr.outvars if not is_literal(v)}
    live = []
    for eqn in reversed(jaxpr.eqns):
        if not needed.isdisjoint(eqn.outvars):
            live.append(eqn)
            needed.update(v for v in eqn.invars if not is_literal(v))
    return live[::-1]


def draws_uniform(jaxpr: Any) -> bool:
    """Whether a closed jaxpr draws float32 from one key, between two numbers."""
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    if len(inner.invars) != 3 or any(v.aval.shape for v in inner.invars) or inner.outvars[0].aval.dtype != np.float32:
        return False
    steps = [(e.primitive.name, [v.val for v in e.invars if is_literal(v)]) for e in inner.eqns]
    return tuple([s for s in steps if s[0] not in ("broadcast_in_dim", "convert_element_type")]) == _UNIFORM


__all__ = ["CALLED_JAXPRS", "IDENTITIES", "draws_uniform", "is_literal", "live_equations"]
