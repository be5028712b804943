"""Layers that the interpreter runs as one primitive each; compilers see their formulas, which they fuse."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial, wraps
from typing import Any

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad

from .lowering_context import has_layer_primitives

Formula = Callable[..., tuple[jax.Array, ...]]


def layer_primitive(formula: Formula) -> Formula:
    """Make a function of arrays and static keyword parameters one primitive, of its name, in the interpreter's kernels.

    Only calls whose arrays are all float32 become one; a rule in `compile/cpu/kernels/codegen.py` writes them. Its
    derivatives are those of the formula.
    """

    @wraps(formula)
    def apply(*arrays: jax.Array, **params: Any) -> tuple[jax.Array, ...]:
        if has_layer_primitives() and all(a.dtype == np.float32 for a in arrays):
            return tuple(_primitive_of(formula).bind(*arrays, **params))
        return formula(*arrays, **params)

    return apply


@cache
def _primitive_of(formula: Formula) -> Any:
    primitive = Primitive(formula.__name__)
    primitive.multiple_results = True

    def infer(*avals: Any, **params: Any) -> list[Any]:
        specs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
        results = jax.eval_shape(partial(formula, **params), *specs)
        return [avals[0].update(shape=r.shape, dtype=r.dtype, weak_type=False) for r in results]

    def differentiate(primals: Any, tangents: Any, **params: Any) -> Any:
        return jax.jvp(partial(formula, **params), primals, [ad.instantiate_zeros(t) for t in tangents])

    primitive.def_abstract_eval(infer)
    ad.primitive_jvps[primitive] = differentiate
    return primitive


__all__ = ["layer_primitive"]
