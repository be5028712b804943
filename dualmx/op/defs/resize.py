"""Bilinear resizing of feature maps."""

from __future__ import annotations

from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import numpy as np

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import ABSENT, OptionalTensor, Tensor
from ..spatial import check_float, check_rank, widen


def _between(data: jax.Array, axis: int, size: int, align_corners: bool) -> jax.Array:
    """Interpolate linearly along `axis` to `size` points."""
    old = data.shape[axis]
    at = np.arange(size, dtype=np.float64)
    if size == old:
        return data
    if align_corners:
        source = at * ((old - 1) / (size - 1) if size > 1 else 0)
    else:
        source = np.maximum((at + 0.5) * (old / size) - 0.5, 0)
    low = np.minimum(source.astype(np.int32), old - 1)
    high = np.minimum(low + 1, old - 1)
    shape = [-1 if k == axis else 1 for k in range(data.ndim)]
    weight = jnp.asarray((source - low).reshape(shape), data.dtype)
    return jnp.take(data, low, axis) * (1 - weight) + jnp.take(data, high, axis) * weight


def _scaled(size: int, scale: float | None, fixed: int, mode: str) -> int:
    if mode == "size":
        return int(size * scale) if scale is not None else fixed
    if mode == "odd_scale":
        return int(size * (scale or 1)) if size % 2 == 0 else int((size - 1) * (scale or 1)) + 1
    parity = int("odd" in mode)
    step = 1 if mode.endswith("up") else -1
    return size if size % 2 == parity else size + step


@op()
def _contrib_BilinearResize2D(
    data: Tensor,
    like: Annotated[Tensor, OptionalTensor] = ABSENT,
    *,
    height: int = 1,
    width: int = 1,
    scale_height: float | None = None,
    scale_width: float | None = None,
    mode: Literal["size", "odd_scale", "like", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up"] = "size",
    align_corners: bool = True,
) -> jax.Array:
    """Resize images bilinearly.

    "size" takes `height` and `width`, or the scales where given (cut to a whole number); "like" the size of `like`;
    "odd_scale" scales an even length, and an odd one less its last pixel; "to_even_up" and its kin change lengths of
    the wrong parity by one. `align_corners` maps the corner pixels' centres on each other, otherwise the images'
    edges.
    Shapes: data (N, C, H, W) -> (N, C, H', W'); `like` gets a gradient of zeros.
    """
    check_rank("_contrib_BilinearResize2D", data.shape, 2, "resizing images")
    check_float("_contrib_BilinearResize2D", data)
    if mode == "like":
        if like is None or like.ndim != 4:
            raise ArgumentError("_contrib_BilinearResize2D: mode='like' needs a second input (N, C, H, W)")
        rows, columns = like.shape[2:]
    else:
        rows = _scaled(data.shape[2], scale_height, height, mode)
        columns = _scaled(data.shape[3], scale_width, width, mode)
    if rows < 1 or columns < 1:
        raise ArgumentError(f"_contrib_BilinearResize2D: the result would be {rows} x {columns}: expected at least 1")
    return _between(_between(widen(data), 2, rows, align_corners), 3, columns, align_corners).astype(data.dtype)
