"""In which programs XLA:CPU may compute matrix products together with the elementwise operations around them.

XLA hands a product to its library together with the elementwise operations before and after it. That saves passes over
memory: a bias is added where the sum is made. But two products in one such call take up to 8 times as long as apart.
And where the right operand repeats itself along its last axis, as `broadcast_to` of a number does, the library reads
memory out of bounds (seen in jaxlib 0.10). In such programs each product is a call by itself, and so it is in programs
without a loop: there a perceptron's step takes a tenth longer with its biases in the calls, while that of a recurrent
network takes a fifth less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

from .transpose_sinking import ELEMENTWISE

# What XLA may compute in one call with a product, besides elementwise operations.
_LAYOUTS = frozenset("broadcast_in_dim concatenate expand_dims pad reshape slice squeeze transpose".split())
_CALLS = frozenset("jit pjit closed_call custom_jvp_call".split())
# Of these the first input alone decides: the others tell where to read.
_BY_FIRST = frozenset({"gather", "dynamic_slice"})
# What repeats itself in one of their inputs does so in their result.
_BY_ANY = frozenset({"concatenate", "pad"})


class _Source(Enum):
    """What a value is computed from, by operations that XLA takes into a product."""

    PRODUCT = 1
    REPEATED = 2


Sources = Sequence[_Source | None]


def has_fusible_operand(jaxpr: Any) -> bool:
    """Whether a program has a product with an operand that comes from another product, or that may repeat itself.

    Args:
        jaxpr: of the program. What XLA may simplify to such an operand counts as well. A product whose result, or what
            is computed from it element by element, has other readers than products is made before them.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> x, s = jnp.ones((3, 3)), jnp.ones(())
        >>> [has_fusible_operand(jax.make_jaxpr(f)(x, s).jaxpr) for f in (
        ...     lambda x, s: jnp.tanh(x @ x) @ x, lambda x, s: x @ jnp.broadcast_to(s, (3, 3)),
        ...     lambda x, s: x @ (x * s), lambda x, s: jnp.sort(x @ x) @ x)]
        [True, True, False, False]
    """
    return _visit(jaxpr, [None] * len(jaxpr.invars))[0]


def has_loop_of_products(jaxpr: Any) -> bool:
    """Whether a program has a loop with a product in its body.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> f = lambda x: jax.lax.scan(lambda h, _: (jnp.tanh(h @ h), None), x, length=3)[0]
        >>> [has_loop_of_products(jax.make_jaxpr(g)(jnp.ones((2, 2))).jaxpr) for g in (f, lambda x: x @ x)]
        [True, False]
    """
    bodies = [(eqn.primitive.name in ("scan", "while"), body) for eqn in jaxpr.eqns for body in sub_jaxprs(eqn)]
    return any(has_loop_of_products(body) or (is_loop and _has_product(body)) for is_loop, body in bodies)


def _has_product(jaxpr: Any) -> bool:
    return any(
        eqn.primitive.name == "dot_general" or any(_has_product(body) for body in sub_jaxprs(eqn)) for eqn in jaxpr.eqns
    )


def _visit(jaxpr: Any, given: Sources) -> tuple[bool, list[_Source | None]]:
    """Whether there is such a product, and where the results come from, if the inputs come from `given`."""
    sources = dict(zip(jaxpr.invars, given, strict=True))
    elsewhere = _read_elsewhere(jaxpr)

    def source_of(v: Any) -> _Source | None:
        # A literal; the import that names its class takes 18 ms.
        return _Source.REPEATED if hasattr(v, "val") else sources.get(v)

    for eqn in jaxpr.eqns:
        name, ins = eqn.primitive.name, [source_of(v) for v in eqn.invars]
        if name == "dot_general" and any(ins):
            return True, []
        results: Sources = [_source_of_result(name, eqn, ins)] * len(eqn.outvars)
        for body in sub_jaxprs(eqn):
            found, made = _visit(body, _sources_of_body(name, eqn, body, ins))
            if found:
                return True, []
            if name in _CALLS:
                results = made
        for v, source in zip(eqn.outvars, results, strict=True):
            sources[v] = None if source is _Source.PRODUCT and v in elsewhere else source
    return False, [source_of(v) for v in jaxpr.outvars]


def _read_elsewhere(jaxpr: Any) -> set[Any]:
    """Return the variables that are results, or from which others than products are computed element by element."""
    found = {v for v in jaxpr.outvars if not hasattr(v, "val")}
    for eqn in reversed(jaxpr.eqns):
        name = eqn.primitive.name
        passes = name in ELEMENTWISE | _LAYOUTS and eqn.outvars[0] not in found
        if not passes and name != "dot_general" and name not in _CALLS:
            found.update(v for v in eqn.invars if not hasattr(v, "val"))
    return found


def _source_of_result(name: str, eqn: Any, ins: Sources) -> _Source | None:
    """Where the results of an equation come from, apart from those of its sub-jaxprs."""
    if name == "dot_general":
        return _Source.PRODUCT
    if not ins or any(True for _ in sub_jaxprs(eqn)):
        return None
    if _Source.PRODUCT in ins and name in ELEMENTWISE | _LAYOUTS:
        return _Source.PRODUCT
    if name == "broadcast_in_dim" and eqn.outvars[0].aval.size > eqn.invars[0].aval.size:
        return _Source.REPEATED
    repeated = [source is _Source.REPEATED for source in ins]
    found = repeated[0] if name in _BY_FIRST else any(repeated) if name in _BY_ANY else all(repeated)
    return _Source.REPEATED if found else None


def _sources_of_body(name: str, eqn: Any, body: Any, ins: Sources) -> Sources:
    """Where the inputs of a sub-jaxpr come from. XLA moves into a loop what is constant in it."""
    if name in _CALLS:
        return ins
    known = [source if source is _Source.REPEATED else None for source in ins]
    if name == "scan":
        constants, carried = eqn.params["num_consts"], eqn.params["num_carry"]
        if eqn.params["length"] > 1:  # a shorter loop is none
            known[constants : constants + carried] = [None] * carried
    elif name == "while":
        # Its inputs are the constants of the condition, those of the body, and what changes.
        first, last = eqn.params["cond_nconsts"], eqn.params["cond_nconsts"] + eqn.params["body_nconsts"]
        found = known[:first] if body is eqn.params["cond_jaxpr"].jaxpr else known[first:last]
        known = found + [None] * (len(body.invars) - len(found))
    else:
        known = known[len(known) - len(body.invars) :] if len(known) >= len(body.invars) else []
    return known if len(known) == len(body.invars) else [_Source.REPEATED] * len(body.invars)


def sub_jaxprs(eqn: Any) -> Iterator[Any]:
    """Yield the sub-jaxprs of an equation."""
    for value in eqn.params.values():
        for closed in value if isinstance(value, (tuple, list)) else (value,):
            body = getattr(closed, "jaxpr", closed)
            if hasattr(body, "eqns"):
                yield body


__all__ = ["has_fusible_operand", "has_loop_of_products", "sub_jaxprs"]
