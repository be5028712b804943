"""The VJP of one call; integers are differentiated in floating point and truncated to their dtype, as MXNet does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..op.registry import Call
from ..op.schema import TENSOR
from ..op.shape_rules import convert

VjpFn = Callable[[Sequence[Any]], Sequence[Any]]


def is_integer(x: Any) -> bool:
    """True for arrays and values of integers or truth values, to which `jax.vjp` gives no gradient."""
    return not jnp.issubdtype(x.dtype, jnp.inexact)


def call_vjp(
    call: Call,
    ins: list[Any],
    wrt: Sequence[int],
    keys: Sequence[Any],
    runtime: Sequence[Any],
    has_integer_results: bool = False,
) -> tuple[tuple[Any, ...], VjpFn]:
    """Apply a call and return its results and the function from their cotangents to those of inputs `wrt`."""
    if has_integer_results or any(is_integer(ins[k]) for k in wrt):
        return _integer_vjp(call, ins, wrt, keys, runtime)
    return jax.vjp(_partial(call, ins, wrt, keys, runtime), *[ins[k] for k in wrt])


def _partial(
    call: Call, ins: Sequence[Any], wrt: Sequence[int], keys: Sequence[Any], runtime: Sequence[Any]
) -> Callable[..., tuple[Any, ...]]:
    """Return a call as a function of its inputs `wrt` only."""

    def partial(*chosen: Any) -> tuple[Any, ...]:
        full = list(ins)
        for k, v in zip(wrt, chosen, strict=True):
            full[k] = v
        return call.apply_keys(full, keys, runtime)

    return partial


def zero_cotangent(x: Any) -> Any:
    """Return the zero cotangent of `x`; integers have float0 ones."""
    return np.zeros(x.shape, jax.dtypes.float0) if is_integer(x) else jnp.zeros(x.shape, x.dtype)


def _same_dtype_inputs(call: Call, count: int) -> list[bool]:
    """Which inputs share one dtype."""
    if call.op.variadic:
        return [call.op.inputs[0].role is TENSOR] * count
    live = [i for i in call.op.inputs if i.when is None or i.when.holds(call.params)]
    return [i.role is TENSOR for i in live] + [False] * (count - len(live))


def _integer_vjp(
    call: Call, ins: list[Any], wrt: Sequence[int], keys: Sequence[Any], runtime: Sequence[Any]
) -> tuple[tuple[Any, ...], VjpFn]:
    """`jax.vjp` of a step on inputs `wrt`; integers among them are differentiated as the numbers they stand for.

    The second result maps cotangents, of the types of the results, to gradients; None stands for zero.
    """
    outs = call.apply_keys(ins, keys, runtime)
    if call.op.traits.is_cast:
        return outs, lambda cotangents: [convert(cotangents[0], ins[0].dtype)]
    shared = _same_dtype_inputs(call, len(ins))
    wide = {k for k in wrt if is_integer(ins[k])}
    if any(shared[k] for k in wide):
        wide |= {k for k, together in enumerate(shared) if together and is_integer(ins[k])}
    smooth = call
    if call.op.traits.combines_floats and is_integer(outs[0]):
        smooth = call.op.bind({**call.params, "dtype": "float64"})
    raised = [x.astype(jnp.float64) if k in wide else x for k, x in enumerate(ins)]
    try:
        results, pull = jax.vjp(_partial(smooth, raised, wrt, keys, runtime), *[raised[k] for k in wrt])
    except (TypeError, ValueError):
        # What takes integers only (bits, positions) does not change smoothly with them.
        return outs, _vjp_of_float_inputs(call, ins, wrt, keys, runtime)

    def back(cotangents: Sequence[Any]) -> list[Any]:
        return [convert(g, ins[k].dtype) for k, g in zip(wrt, pull(_seeds(cotangents, results)), strict=True)]

    return outs, back


def _seeds(cotangents: Sequence[Any], results: Sequence[Any]) -> tuple[Any, ...]:
    """The cotangents in the types that the vjp of `results` takes: integers have none."""
    return tuple(
        jnp.zeros(r.shape, jax.dtypes.float0) if is_integer(r) else jnp.asarray(_dense_cotangent(ct)).astype(r.dtype)
        for ct, r in zip(cotangents, results, strict=True)
    )


def _dense_cotangent(ct: Any) -> Any:
    return jnp.zeros(ct.shape) if ct.dtype == jax.dtypes.float0 else ct


def _vjp_of_float_inputs(
    call: Call, ins: list[Any], wrt: Sequence[int], keys: Sequence[Any], runtime: Sequence[Any]
) -> VjpFn:
    floats = [k for k in wrt if not is_integer(ins[k])]
    if not floats:
        return lambda cotangents: [None] * len(wrt)
    results, pull = jax.vjp(_partial(call, ins, floats, keys, runtime), *[ins[k] for k in floats])

    def back(cotangents: Sequence[Any]) -> list[Any]:
        found = dict(zip(floats, pull(_seeds(cotangents, results)), strict=True))
        return [found.get(k) for k in wrt]

    return back
