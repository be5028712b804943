"""What the writers of kernels read of jaxprs: which equations are needed, and what some of them are."""

from __future__ import annotations

import itertools
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
_UNIFORM = [
    ("random_bits", []), ("shift_right_logical", [9]), ("or", [0x3F800000]), ("bitcast_convert_type", []), ("sub", [1]),
    ("sub", []), ("mul", []), ("add", []), ("max", []),
]  # fmt: skip


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


def uniform_draw(jaxpr: Any) -> tuple[int, int, int] | None:
    """Which inputs of a closed jaxpr that draws float32 are the key, the lower bound and the upper one; else None."""
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    if any(v.aval.shape for v in inner.invars) or inner.outvars[0].aval.dtype != np.float32:
        return None
    number = {v: i for i, v in enumerate(inner.invars)}  # of an input, for each of its views and conversions
    steps = []
    for eqn in inner.eqns:
        if eqn.primitive.name not in ("broadcast_in_dim", "convert_element_type"):
            steps.append(eqn)
        elif not is_literal(eqn.invars[0]) and eqn.invars[0] in number:
            number[eqn.outvars[0]] = number[eqn.invars[0]]
    if [(e.primitive.name, [v.val for v in e.invars if is_literal(v)]) for e in steps] != _UNIFORM:
        return None
    draw, *middle, span, scaled, shifted, limited = steps
    chain = [draw, *middle, scaled, shifted, limited]
    high, low = (number.get(v) for v in span.invars)
    key = number.get(draw.invars[0])
    if key is None or low is None or high is None:
        return None
    is_chained = all(one.outvars[0] in two.invars for one, two in itertools.pairwise(chain))
    is_bounded = all(low in map(number.get, e.invars) for e in (shifted, limited))
    is_scaled = span.outvars[0] in scaled.invars and limited.outvars == inner.outvars
    return (key, low, high) if is_chained and is_bounded and is_scaled else None


__all__ = ["CALLED_JAXPRS", "IDENTITIES", "is_literal", "live_equations", "uniform_draw"]
