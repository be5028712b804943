"""Draws of NumPy's distributions as nodes of graphs: a parameter is a number, or None and an input in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import jax
import jax.numpy as jnp

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import ABSENT, Axes, Ignored, Key, OptionalTensor, UntypedTensor

Given = Annotated[UntypedTensor, OptionalTensor]
Number = float | None
Where = Annotated[str | None, Ignored]
Floating = Literal["float32", "float16", "float64", "None"]


def _values(
    name: str, inputs: tuple[jax.Array | None, ...], numbers: Mapping[str, Number], dtype: str = "float32"
) -> tuple[jax.Array, ...]:
    """The parameters in their order: numbers, or the inputs one after another where they are None."""
    kind = jnp.float32 if dtype in ("float16", "None") else jnp.dtype(dtype)
    left, found = [a for a in inputs if a is not None], []
    for label, number in numbers.items():
        if number is None and not left:
            raise ArgumentError(f"{name}: {label}=None: expected a number, or an input in its place")
        found.append(left.pop(0).astype(kind) if number is None else jnp.asarray(number, kind))
    if left:
        raise ArgumentError(f"{name}: {len(left)} inputs too many: expected one for each parameter that is None")
    return tuple(found)


def _shape(name: str, values: tuple[jax.Array, ...], size: Axes, batch: bool = False) -> tuple[int, ...]:
    """The shape of the draw: `size`, to which the parameters broadcast, or theirs; both one behind the other."""
    shapes = [v.shape for v in values]
    try:
        common = jnp.broadcast_shapes(*shapes)
        if batch:
            return (*(size or ()), *common)
        whole = common if size is None else jnp.broadcast_shapes(common, tuple(size))
    except ValueError:
        raise ArgumentError(f"{name}: shapes {shapes} and size={size} do not broadcast") from None
    if size is not None and whole != tuple(size):
        raise ArgumentError(f"{name}: size={size}: expected a shape that parameters {shapes} broadcast to")
    return whole


def _kept(drawn: jax.Array, dtype: str) -> jax.Array:
    return drawn.astype("float32" if dtype == "None" else dtype)


def _between(name: str, key: Key, values: tuple[jax.Array, ...], shape: tuple[int, ...], dtype: str) -> jax.Array:
    low, high = values
    return _kept(low + (high - low) * jax.random.uniform(key, shape, low.dtype), dtype)


def _around(name: str, key: Key, values: tuple[jax.Array, ...], shape: tuple[int, ...], dtype: str) -> jax.Array:
    loc, scale = values
    return _kept(loc + scale * jax.random.normal(key, shape, loc.dtype), dtype)


def _spread(name: str, scale: Number) -> None:
    if scale is not None and scale < 0:
        raise ArgumentError(f"{name}: scale={scale}: expected a number of 0 or more")


@op()
def _npi_uniform(
    input1: Given = ABSENT, input2: Given = ABSENT, key: Key = ABSENT, *, low: Number = 0.0, high: Number = 1.0,
    size: Axes = None, ctx: Where = "cpu", dtype: Floating = "float32",
) -> jax.Array:  # fmt: skip
    """Draws from the uniform distribution on [low, high), of shape `size` or that of the inputs."""
    values = _values("_npi_uniform", (input1, input2), {"low": low, "high": high}, dtype)
    return _between("_npi_uniform", key, values, _shape("_npi_uniform", values, size), dtype)


@op()
def _npi_uniform_n(
    input1: Given = ABSENT, input2: Given = ABSENT, key: Key = ABSENT, *, low: Number = 0.0, high: Number = 1.0,
    size: Axes = None, ctx: Where = "cpu", dtype: Floating = "float32",
) -> jax.Array:  # fmt: skip
    """Draws from the uniform distribution, `size` of them for every element of the inputs: `size` comes first."""
    values = _values("_npi_uniform_n", (input1, input2), {"low": low, "high": high}, dtype)
    return _between("_npi_uniform_n", key, values, _shape("_npi_uniform_n", values, size, True), dtype)


@op(output_names=("output0",))
def _npi_normal(
    input1: Given = ABSENT, input2: Given = ABSENT, key: Key = ABSENT, *, loc: Number = 0.0, scale: Number = 1.0,
    size: Axes = None, ctx: Where = "cpu", dtype: Floating = "float32",
) -> jax.Array:  # fmt: skip
    """Draws from the normal distribution with mean `loc` and deviation `scale`, of shape `size` or of the inputs."""
    _spread("_npi_normal", scale)
    values = _values("_npi_normal", (input1, input2), {"loc": loc, "scale": scale}, dtype)
    return _around("_npi_normal", key, values, _shape("_npi_normal", values, size), dtype)


@op(output_names=("output0",))
def _npi_normal_n(
    input1: Given = ABSENT, input2: Given = ABSENT, key: Key = ABSENT, *, loc: Number = 0.0, scale: Number = 1.0,
    size: Axes = None, ctx: Where = "cpu", dtype: Floating = "float32",
) -> jax.Array:  # fmt: skip
    """Draws from the normal distribution, `size` of them for every element of the inputs: `size` comes first."""
    _spread("_npi_normal_n", scale)
    values = _values("_npi_normal_n", (input1, input2), {"loc": loc, "scale": scale}, dtype)
    return _around("_npi_normal_n", key, values, _shape("_npi_normal_n", values, size, True), dtype)


@op()
def _npi_gamma(
    input1: Given = ABSENT, input2: Given = ABSENT, key: Key = ABSENT, *, shape: Number = None, scale: Number = None,
    size: Axes = None, ctx: Where = "cpu", dtype: Floating = "float32",
) -> jax.Array:  # fmt: skip
    """Draws from the gamma distribution with mean shape · scale, of shape `size` or that of the inputs."""
    a, b = values = _values("_npi_gamma", (input1, input2), {"shape": shape, "scale": scale}, dtype)
    return _kept(b * jax.random.gamma(key, a, _shape("_npi_gamma", values, size), a.dtype), dtype)


@op(output_names=("output0",))
def _npi_logistic(
    input1: Given = ABSENT, input2: Given = ABSENT, key: Key = ABSENT, *, loc: Number = 0.0, scale: Number = 1.0,
    size: Axes = None, ctx: Where = "cpu",
) -> jax.Array:  # fmt: skip
    """Draws, float32, from the logistic distribution, of shape `size` or that of the inputs."""
    _spread("_npi_logistic", scale)
    loc_, scale_ = values = _values("_npi_logistic", (input1, input2), {"loc": loc, "scale": scale})
    return loc_ + scale_ * jax.random.logistic(key, _shape("_npi_logistic", values, size), jnp.float32)


@op(output_names=("output0",))
def _npi_gumbel(
    input1: Given = ABSENT, input2: Given = ABSENT, key: Key = ABSENT, *, loc: Number = 0.0, scale: Number = 1.0,
    size: Axes = None, ctx: Where = "cpu",
) -> jax.Array:  # fmt: skip
    """Draws, float32, from the Gumbel distribution of maxima, of shape `size` or that of the inputs."""
    _spread("_npi_gumbel", scale)
    loc_, scale_ = values = _values("_npi_gumbel", (input1, input2), {"loc": loc, "scale": scale})
    return loc_ + scale_ * jax.random.gumbel(key, _shape("_npi_gumbel", values, size), jnp.float32)


def _exponential(name: str, key: Key, values: tuple[jax.Array, ...], size: Axes) -> jax.Array:
    return jax.random.exponential(key, _shape(name, values, size), jnp.float32)


@op(output_names=("output0",))
def _npi_exponential(
    input1: Given = ABSENT, key: Key = ABSENT, *, scale: Number = 1.0, size: Axes = None, ctx: Where = "cpu"
) -> jax.Array:
    """Draws, float32, from the exponential distribution with mean `scale`, of shape `size` or of the input."""
    _spread("_npi_exponential", scale)
    values = _values("_npi_exponential", (input1,), {"scale": scale})
    return values[0] * _exponential("_npi_exponential", key, values, size)


@op(output_names=("output0",))
def _npi_rayleigh(
    input1: Given = ABSENT, key: Key = ABSENT, *, scale: Number = 1.0, size: Axes = None, ctx: Where = "cpu"
) -> jax.Array:
    """Draws, float32, from the Rayleigh distribution: scale · sqrt(2 x), x exponential."""
    _spread("_npi_rayleigh", scale)
    values = _values("_npi_rayleigh", (input1,), {"scale": scale})
    return values[0] * jnp.sqrt(2 * _exponential("_npi_rayleigh", key, values, size))


@op(output_names=("output0",))
def _npi_weibull(
    input1: Given = ABSENT, key: Key = ABSENT, *, a: Number = None, size: Axes = None, ctx: Where = "cpu"
) -> jax.Array:
    """Draws, float32, from the Weibull distribution with shape `a` and scale 1: x ** (1 / a), x exponential."""
    values = _values("_npi_weibull", (input1,), {"a": a})
    return _exponential("_npi_weibull", key, values, size) ** (1 / values[0])


@op(output_names=("output0",))
def _npi_pareto(
    input1: Given = ABSENT, key: Key = ABSENT, *, a: Number = None, size: Axes = None, ctx: Where = "cpu"
) -> jax.Array:
    """Draws, float32, from the Lomax distribution with shape `a`: exp(x / a) − 1, x exponential."""
    values = _values("_npi_pareto", (input1,), {"a": a})
    return jnp.expm1(_exponential("_npi_pareto", key, values, size) / values[0])


@op()
def _npi_powerd(input1: Given = ABSENT, key: Key = ABSENT, *, a: Number = None, size: Axes = None) -> jax.Array:
    """Draws, float32, from [0, 1] with density a xᵃ⁻¹."""
    values = _values("_npi_powerd", (input1,), {"a": a})
    return jnp.exp(-_exponential("_npi_powerd", key, values, size) / values[0])


@op()
def _npi_bernoulli(
    input1: Given = ABSENT, key: Key = ABSENT, *, prob: Number = None, logit: Number = None, size: Axes = None,
    ctx: Where = "cpu", is_logit: bool = False,
    dtype: Literal["float32", "bool", "float16", "float64", "int32", "uint8"] = "float32",
) -> jax.Array:  # fmt: skip
    """1 with probability `prob`, or sigmoid(`logit`) if `is_logit`, else 0, of shape `size` or that of the input."""
    name = "_npi_bernoulli"
    values = _values(name, (input1,), {"logit": logit} if is_logit else {"prob": prob})
    if not is_logit and prob is not None and not 0 <= prob <= 1:
        raise ArgumentError(f"{name}: prob={prob}: expected a number from 0 to 1")
    chance = jax.nn.sigmoid(values[0]) if is_logit else values[0]
    return (jax.random.uniform(key, _shape(name, values, size), jnp.float32) < chance).astype(dtype)
