"""FullyConnected and Dropout."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtypes import is_float
from ...core.errors import ArgumentError
from ..registry import op
from ..runtime_scalars import Params, define_runtime_form, faithful
from ..schema import ABSENT, Fraction, Ignored, Key, Positive, Shape, Tensor, Train, When
from ..spatial import check_float, check_shape, known
from ..traits import Layer, Quantized, Traits


def _inputs(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    data = shapes.get("data")
    # Without the data nothing is said of the parameters, not even of the bias.
    out: dict[str, tuple[int, ...]] = {} if p.no_bias or data is None else {"bias": (p.num_hidden,)}
    if data:
        used = data[1:] if p.flatten else data[-1:]
        if known(*used):
            out["weight"] = (p.num_hidden, math.prod(used))
    weight = shapes.get("weight")
    if data and len(data) == 2 and data[1] == 0 and weight and len(weight) == 2 and weight[1]:
        out["data"] = (data[0], weight[1])
    return out


@op(
    aliases=("_npx_fully_connected",),
    complete=_inputs,
    traits=Traits(
        keeps_result=True,
        has_named_output=True,
        layer=Layer.DENSE,
        stated_sizes={"num_hidden": (1, 0)},
        quantized=Quantized("_contrib_quantized_fully_connected", starts=True, is_wide=True),
    ),
)
def FullyConnected(
    data: Tensor,
    weight: Tensor,
    bias: Annotated[Tensor, When("no_bias", False)] = ABSENT,
    *,
    num_hidden: Positive,
    no_bias: bool = False,
    flatten: bool = True,
) -> jax.Array:
    """Affine map `y = x · weightᵀ + bias`.

    Shapes: data (N, …), weight (num_hidden, K), bias (num_hidden,). With `flatten` all axes after the first are one
    (K = their product) and the result is (N, num_hidden); otherwise the last axis is mapped, (…, K) → (…, num_hidden).
    Sums of 16-bit floats are accumulated in float32.
    """
    check_float("FullyConnected", data)
    if data.ndim == 0:
        raise ArgumentError("FullyConnected: data has no axes: expected (N, …)")
    x = data.reshape(data.shape[0], math.prod(data.shape[1:])) if flatten else data
    why = f"num_hidden={num_hidden}, data {data.shape}, flatten={flatten}"
    check_shape("FullyConnected", "weight", weight.shape, (num_hidden, x.shape[-1]), why)
    wide = "float32" if data.dtype.itemsize == 2 else data.dtype
    out = lax.dot_general(x, weight, (((x.ndim - 1,), (1,)), ((), ())), preferred_element_type=wide)
    if bias is not None:
        check_shape("FullyConnected", "bias", bias.shape, (num_hidden,), f"num_hidden={num_hidden}")
        out = out + bias.astype(wide)
    return out.astype(data.dtype)


@op(aliases=("_npx_dropout",), traits=Traits(keeps_result=True, has_named_output=True))
def Dropout(
    data: Tensor,
    key: Key = ABSENT,
    train: Train = False,
    *,
    p: Fraction = 0.5,
    mode: Literal["training", "always"] = "training",
    axes: Shape = (),
    cudnn_off: Annotated[bool | None, Ignored] = False,
) -> jax.Array:
    """Zero each element with probability p and scale the others by 1/(1 − p) (Srivastava et al. 2014).

    Active when training, or with mode "always"; the identity otherwise. The elements along `axes` share their fate.
    Shapes: any, kept. The probability is realized in steps of 2⁻¹⁶.
    """
    check_float("Dropout", data)
    if any(not -data.ndim <= a < data.ndim for a in axes):
        raise ArgumentError(f"Dropout: axes={axes}: expected axes of data with shape {data.shape}")
    if p == 0 or not (train or mode == "always"):
        return data
    if p == 1:
        return jnp.zeros_like(data)
    return _masked(data, key, axes, _limit(p), 1 / (1 - p))


def _limit(p: float) -> int:
    """How many of 65536 equally likely numbers keep an element."""
    return min(round((1 - p) * 65536), 65535)


def _masked(data: jax.Array, key: jax.Array, axes: tuple[int, ...], limit: Any, scale: Any) -> jax.Array:
    shared = {a % data.ndim for a in axes}
    shape = tuple(1 if i in shared else n for i, n in enumerate(data.shape))
    keep = jax.random.bits(key, shape, jnp.uint16) < jnp.asarray(limit, jnp.uint16)
    return jnp.where(keep, data * jnp.asarray(scale, data.dtype), 0)


def _fits(params: Params, shape: tuple[int, ...], dtype: np.dtype) -> bool:
    # Nothing is drawn with 0 and 1.
    p, ndim = params["p"], len(shape)
    placed = all(-ndim <= a < ndim for a in params["axes"])
    return 0 < p < 1 and placed and is_float(dtype) and faithful(1 / (1 - p), dtype)


def _runtime(
    data: jax.Array, key: jax.Array, train: bool, *, p: jax.Array, limit: jax.Array, scale: jax.Array,
    mode: str, axes: tuple[int, ...], cudnn_off: bool | None,
) -> jax.Array:  # fmt: skip
    check_float("Dropout", data)
    return _masked(data, key, axes, limit, scale) if train or mode == "always" else data


define_runtime_form(
    Dropout, "p", fits=_fits, body=_runtime, derived=lambda params: {
        "limit": float(_limit(params["p"])), "scale": 1 / (1 - params["p"])
    },
)  # fmt: skip
