"""Activation functions with a kind parameter."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtypes import is_float
from ...core.errors import ArgumentError
from ..registry import op
from ..schema import ABSENT, Key, Tensor, Train, When
from ..spatial import check_float, known, widen
from .varying import Params, define_runtime_form, faithful

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def _relu(x: jax.Array) -> jax.Array:
    # The comparison makes the gradient at 0 equal 0.
    return jnp.where(x > 0, x, 0)


def _softrelu(x: jax.Array) -> jax.Array:
    return jax.nn.softplus(x)


def _mish(x: jax.Array) -> jax.Array:
    return x * jnp.tanh(jax.nn.softplus(x))


_KINDS: dict[str, Any] = {
    "relu": _relu,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "softrelu": _softrelu,
    "softsign": lambda x: x / (1 + jnp.abs(x)),
    "log_sigmoid": jax.nn.log_sigmoid,
    "mish": _mish,
}


@op(aliases=("_npx_activation",))
def Activation(
    data: Tensor, *, act_type: Literal["relu", "sigmoid", "tanh", "softrelu", "softsign", "log_sigmoid", "mish"]
) -> jax.Array:
    """Apply an activation function to each element.

    relu max(x, 0); sigmoid 1 / (1 + e⁻ˣ); tanh; softrelu log(1 + eˣ); softsign x / (1 + |x|);
    log_sigmoid log(sigmoid(x)); mish x · tanh(log(1 + eˣ)) (Misra 2019). Shapes: any, kept.
    """
    check_float("Activation", data)
    return _KINDS[act_type](data)


def _leaky_inputs(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    data = shapes.get("data")
    if p.act_type != "prelu" or not data or shapes.get("gamma") == (1,):
        return {}
    channels = data[min(1, len(data) - 1)]
    return {"gamma": (channels,)} if known(channels) else {}


def _per_channel(gamma: jax.Array, data: jax.Array) -> jax.Array:
    if gamma.size == 1:
        return gamma.reshape(())
    channels = data.shape[1] if data.ndim > 1 else data.shape[0]
    if gamma.shape != (channels,):
        raise ArgumentError(f"LeakyReLU: gamma has shape {gamma.shape}: expected (1,) or ({channels},)")
    return gamma.reshape(1, -1, *(1,) * (data.ndim - 2)) if data.ndim > 1 else gamma


@op(aliases=("_npx_leaky_relu",), outputs=lambda p: 2 if p.act_type == "rrelu" else 1, visible=1,
    complete=_leaky_inputs)  # fmt: skip
def LeakyReLU(
    data: Tensor,
    gamma: Annotated[Tensor, When("act_type", "prelu")] = ABSENT,
    key: Key = ABSENT,
    train: Train = False,
    *,
    act_type: Literal["leaky", "prelu", "elu", "selu", "gelu", "rrelu"] = "leaky",
    slope: float = 0.25,
    lower_bound: float = 0.125,
    upper_bound: float = 0.334,
) -> Any:
    """Rectifiers that let some of the negative side through.

    leaky x or slope·x; prelu x or gamma·x, gamma of shape (1,) or (C,) for axis 1 (He et al. 2015); elu x or
    slope·(eˣ − 1) (Clevert et al. 2015); selu 1.0507·(x or 1.6733·(eˣ − 1)) (Klambauer et al. 2017);
    gelu x·Φ(x) with the error function (Hendrycks & Gimpel 2016); rrelu x or r·x, r uniform in
    [lower_bound, upper_bound] per element when training and its mean otherwise (Xu et al. 2015).
    Shapes: any, kept. rrelu has the slopes used as second, hidden output.
    """
    check_float("LeakyReLU", data)
    x, s = data, jnp.asarray(slope, data.dtype)
    if act_type == "leaky":
        return jnp.where(x > 0, x, s * x)
    if act_type == "prelu":
        return jnp.where(x > 0, x, _per_channel(gamma, data) * x)
    if act_type == "elu":
        return jnp.where(x > 0, x, s * jnp.expm1(jnp.minimum(x, 0)))
    if act_type == "selu":
        return _SELU_SCALE * jnp.where(x > 0, x, _SELU_ALPHA * jnp.expm1(jnp.minimum(x, 0)))
    if act_type == "gelu":
        wide = widen(x)
        return (0.5 * wide * (1 + lax.erf(wide * 0.5**0.5))).astype(x.dtype)
    if train:
        slopes = jax.random.uniform(key, x.shape, jnp.float32, lower_bound, upper_bound).astype(x.dtype)
    else:
        slopes = jnp.full(x.shape, (lower_bound + upper_bound) / 2, x.dtype)
    return jnp.where(x > 0, x, slopes * x), slopes


def _slope_fits(params: Params, shape: tuple[int, ...], dtype: np.dtype) -> bool:
    return params["act_type"] in ("leaky", "elu") and is_float(dtype) and faithful(params["slope"], dtype)


define_runtime_form(LeakyReLU, "slope", fits=_slope_fits)
