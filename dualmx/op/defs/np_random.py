"""Draws of NumPy's distributions: standard ones of a shape, of which functions of `mx.np.random` make the others."""

from __future__ import annotations

from typing import Any, Literal

import jax
import jax.numpy as jnp

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import ABSENT, FLOAT32_EXACT_INTS, Axes, Count, DType, Key, Shape, Tensor, UntypedTensor
from .np_draws import Given, Where
from .varying import define_runtime_form

_KINDS = {
    "uniform": lambda key, shape, kind: jax.random.uniform(key, shape, kind),
    "normal": lambda key, shape, kind: jax.random.normal(key, shape, kind),
    "exponential": lambda key, shape, kind: jax.random.exponential(key, shape, kind),
    "gumbel": lambda key, shape, kind: jax.random.gumbel(key, shape, kind),
    "logistic": lambda key, shape, kind: jax.random.logistic(key, shape, kind),
}


@op(name="_npi_standard")
def standard(
    key: Key,
    *,
    kind: Literal["uniform", "normal", "exponential", "gumbel", "logistic"],
    size: Shape = (),
    dtype: DType = "float32",
) -> jax.Array:
    """Independent draws of a distribution's standard form (location 0, scale 1) of shape `size`; float16 too."""
    if dtype not in ("float16", "float32", "float64"):
        raise ArgumentError(f"random.{kind}: dtype={dtype!r}: expected float16, float32 or float64")
    drawn = jnp.float32 if dtype == "float16" else jnp.dtype(dtype)
    return _KINDS[kind](key, size, drawn).astype(dtype)


@op(name="_npi_standard_gamma")
def standard_gamma(shape: Tensor, key: Key) -> jax.Array:
    """One draw of the gamma distribution of scale 1 for every element of `shape`, in its dtype."""
    drawn = shape.astype(jnp.float32) if shape.dtype == jnp.float16 else shape
    return jax.random.gamma(key, drawn, drawn.shape, drawn.dtype).astype(shape.dtype)


@op(name="_npi_randint")
def randint(key: Key, *, low: int, high: int, size: Shape = (), dtype: DType = "int64") -> jax.Array:
    """Independent integers from `low` to below `high`, of shape `size`."""
    if dtype not in ("int32", "int64"):
        raise ArgumentError(f"random.randint: dtype={dtype!r}: expected int32 or int64")
    if low >= high:
        raise ArgumentError(f"random.randint: low={low}, high={high}: expected low < high")
    return jax.random.randint(key, size, low, high, jnp.dtype(dtype))


def _randint(key: jax.Array, *, low: jax.Array, high: jax.Array, size: tuple[int, ...], dtype: str) -> jax.Array:
    kind = jnp.dtype(dtype)
    return jax.random.randint(key, size, low.astype(kind), high.astype(kind), kind)


define_runtime_form(
    randint,
    "low",
    "high",
    fits=lambda p, *_: -FLOAT32_EXACT_INTS < p["low"] < p["high"] < FLOAT32_EXACT_INTS,
    body=_randint,
)


@op(name="_npi_choice")
def choice(
    input1: Given = ABSENT, input2: Given = ABSENT, key: Key = ABSENT, *, a: int | None = None, size: Axes = None,
    ctx: Where = "cpu", replace: bool = True, weighted: bool = False,
) -> jax.Array:  # fmt: skip
    """Draws of shape `size` from the numbers 0 to below `a`, int64, or from the elements of the first input.

    The last input has the probability of each, if `weighted`. Without `replace` none comes twice.
    """
    inputs = [i for i in (input1, input2) if i is not None]
    if len(inputs) != (a is None) + weighted:
        raise ArgumentError(f"random.choice: {len(inputs)} inputs for a={a}, weighted={weighted}")
    if any(i.ndim != 1 for i in inputs):
        raise ArgumentError(f"random.choice: shapes {[i.shape for i in inputs]}: expected one axis")
    pool = inputs[0] if a is None else jnp.arange(a, dtype=jnp.int64)
    p = inputs[-1] if weighted else None
    if p is not None and p.shape != pool.shape:
        raise ArgumentError(f"random.choice: p has shape {p.shape}: expected {pool.shape}")
    return jax.random.choice(key, pool, tuple(size or ()), replace, p)


@op(name="_npi_multinomial")
def multinomial(pvals: UntypedTensor, key: Key, *, n: Count, size: Shape = ()) -> jax.Array:
    """Counts, int64, of `n` trials over the outcomes with probabilities `pvals` (k,); shape (*size, k).

    The last probability is what the others leave of 1.
    """
    if pvals.ndim != 1:
        raise ArgumentError(f"random.multinomial: pvals has shape {pvals.shape}: expected one axis")
    p = pvals.astype(jnp.float64)
    p = jnp.concatenate([p[:-1], jnp.maximum(1 - jnp.sum(p[:-1], keepdims=True), 0)]) if p.size else p
    shape: tuple[Any, ...] = (*size, p.shape[0])
    return jax.random.multinomial(key, float(n), p, shape=shape, dtype=jnp.float64).astype(jnp.int64)
