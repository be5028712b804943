"""Jaxpr predicates that choose XLA:CPU options: matmuls of a broadcast operand, and rematerialization.

XLA:CPU hands a matmul to its library together with its operands' computation. If the right operand repeats along its
last axis, as `broadcast_to` of a number does, the library reads memory out of bounds (seen in jaxlib 0.10).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def sub_jaxprs(eqn: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the sub-jaxprs of an equation, closed and open."""
    for value in eqn.params.values():
        for closed in value if isinstance(value, (tuple, list)) else (value,):
            body = getattr(closed, "jaxpr", closed)
            if hasattr(body, "eqns"):
                yield closed, body


def has_remat(jaxpr: Any) -> bool:
    """Whether a program rematerializes values in its backward pass (`jax.checkpoint`).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> has_remat(jax.make_jaxpr(jax.checkpoint(jnp.sin))(0.5).jaxpr)
        True
    """
    return any("prevent_cse" in e.params or any(has_remat(b) for _, b in sub_jaxprs(e)) for e in jaxpr.eqns)


# Of these the first input alone decides: the others tell where to read.
_BY_FIRST = frozenset({"gather", "dynamic_slice"})
# What repeats itself in one of their inputs does so in their result.
_BY_ANY = frozenset({"concatenate", "pad"})
_LOOPS = frozenset({"scan", "while"})


def has_broadcast_dot(jaxpr: Any) -> bool:
    """Whether a program has a matmul with an operand that may be a broadcast.

    Args:
        jaxpr: of the program. What XLA may simplify to such a matrix counts as well.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> x = jnp.ones((2, 3))
        >>> has_broadcast_dot(jax.make_jaxpr(lambda x, s: x @ jnp.broadcast_to(s, (3, 4)))(x, 0.5).jaxpr)
        True
        >>> has_broadcast_dot(jax.make_jaxpr(lambda x, s: x @ (x.T * s))(x, 0.5).jaxpr)
        False
    """
    return _find_broadcast_dot(jaxpr, [False] * len(jaxpr.invars))[0]


def _find_broadcast_dot(jaxpr: Any, given: Sequence[bool]) -> tuple[bool, list[bool]]:
    """Whether there is such a matmul, and which results are broadcasts, if the inputs `given` are."""
    broadcast = {v for v, is_broadcast in zip(jaxpr.invars, given, strict=True) if is_broadcast}

    def is_broadcast(v: Any) -> bool:
        return hasattr(v, "val") or v in broadcast  # a literal; the import that names its class takes 18 ms

    for eqn in jaxpr.eqns:
        name, ins = eqn.primitive.name, [is_broadcast(v) for v in eqn.invars]
        if name == "dot_general" and any(ins):
            return True, []
        results = [_is_broadcast_result(name, eqn, ins)] * len(eqn.outvars)
        for body, inputs in _sub_jaxprs_with_flags(name, eqn, ins):
            found, made = _find_broadcast_dot(body, inputs)
            if found:
                return True, []
            if name not in _LOOPS and len(made) == len(eqn.outvars):
                results = [a or b for a, b in zip(results, made, strict=True)]
        broadcast.update(v for v, made in zip(eqn.outvars, results, strict=True) if made)
    return False, [is_broadcast(v) for v in jaxpr.outvars]


def _is_broadcast_result(name: str, eqn: Any, ins: list[bool]) -> bool:
    """Whether the results of an equation are broadcasts, apart from its sub-jaxprs."""
    if name == "broadcast_in_dim":
        return ins[0] or eqn.outvars[0].aval.size > eqn.invars[0].aval.size
    if name in _LOOPS or not ins:
        return False
    return ins[0] if name in _BY_FIRST else any(ins) if name in _BY_ANY else all(ins)


def _sub_jaxprs_with_flags(name: str, eqn: Any, ins: list[bool]) -> Iterator[tuple[Any, list[bool]]]:
    """Yield the sub-jaxprs of an equation, and which of their inputs are broadcasts."""
    for closed, body in sub_jaxprs(eqn):
        if name == "scan":
            constants, carried = eqn.params["num_consts"], eqn.params["num_carry"]
            once = eqn.params["length"] == 1  # such a loop is none
            known = [s and (once or not constants <= i < constants + carried) for i, s in enumerate(ins)]
        elif name == "while":
            # Its inputs are the constants of the condition, those of the body, and what changes.
            first, last = eqn.params["cond_nconsts"], eqn.params["cond_nconsts"] + eqn.params["body_nconsts"]
            constants = ins[:first] if closed is eqn.params["cond_jaxpr"] else ins[first:last]
            known = constants + [False] * (len(body.invars) - len(constants))
        else:
            known = ins[len(ins) - len(body.invars) :] if len(ins) >= len(body.invars) else []
        yield body, known if len(known) == len(body.invars) else [True] * len(body.invars)


__all__ = ["has_broadcast_dot", "has_remat", "sub_jaxprs"]
