"""Fully connected layer."""

from __future__ import annotations

import math
from typing import Annotated, Any

import jax
from jax import lax

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import ABSENT, Positive, Tensor, When
from ..spatial import check_float, check_shape, known


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


@op(aliases=("_npx_fully_connected",), complete=_inputs)
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
