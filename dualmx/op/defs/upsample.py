"""Up-sampling."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp

from ...core.errors import ArgumentError
from ..registry import OPS, op
from ..schema import Count, Ignored, Positive, Tensor
from ..spatial import check_rank


def _kernel(scale: int) -> int:
    return 2 * scale - scale % 2


def _weight_shape(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    if p.sample_type != "bilinear":
        return {}
    k = _kernel(p.scale)
    return {"weight": (p.num_filter, 1, k, k)}


@op(
    floating=True,
    complete=_weight_shape,
    named=lambda p: ("data", "weight") if p.sample_type == "bilinear" else (),
)
def UpSampling(
    *data: Tensor,
    scale: Positive,
    num_filter: Count = 0,
    sample_type: Literal["nearest", "bilinear"],
    multi_input_mode: Literal["concat", "sum"] = "concat",
    num_args: Count = 0,
    workspace: Annotated[int, Ignored] = 512,
) -> jax.Array:
    """Enlarge images by `scale`.

    "nearest" repeats each pixel; several inputs (N, Cᵢ, Hᵢ, Wᵢ) are all enlarged to (H₀·scale, W₀·scale), then
    concatenated along the channels or summed. "bilinear" takes data (N, C, H, W) and the weight (C, 1, k, k) with
    k = 2·scale − scale mod 2 of a transposed convolution per channel; num_filter = C.
    """
    for x in data:
        check_rank("UpSampling", x.shape, 2, "enlarging images")
    if sample_type == "bilinear":
        if len(data) != 2:
            raise ArgumentError(f"UpSampling: got {len(data)} inputs: expected data and weight with 'bilinear'")
        k, pad = _kernel(scale), scale // 2
        call = OPS["Deconvolution"].call(
            kernel=(k, k), stride=(scale, scale), pad=(pad, pad), num_filter=num_filter, num_group=num_filter
        )
        return call.apply(data)[0]
    height, width = (s * scale for s in data[0].shape[2:])
    enlarged = []
    for x in data:
        rows, columns = height // x.shape[2], width // x.shape[3]
        if (rows * x.shape[2], columns * x.shape[3]) != (height, width):
            raise ArgumentError(f"UpSampling: an input has shape {x.shape}: expected a divisor of ({height}, {width})")
        enlarged.append(jnp.repeat(jnp.repeat(x, rows, 2), columns, 3))
    if multi_input_mode == "concat":
        return jnp.concatenate(enlarged, 1)
    if any(x.shape != enlarged[0].shape for x in enlarged):
        raise ArgumentError(
            f"UpSampling: inputs with {[x.shape[1] for x in data]} channels: expected equal ones to sum"
        )
    return sum(enlarged[1:], enlarged[0])
