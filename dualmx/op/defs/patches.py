"""Operators on patches of images: im2col, its transpose col2im, and the old Crop."""

from __future__ import annotations

from math import prod

import jax
from jax import lax

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import Count, Shape, Tensor
from ..spatial import per_axis
from .rules import need_float


def _patches(data: jax.Array, kernel: tuple, stride: tuple, dilate: tuple, pad: tuple) -> jax.Array:
    """Columns of `data` (n, c, …): (n, c · prod(kernel), number of positions)."""
    k = len(kernel)
    if not k or data.ndim != k + 2:
        raise ArgumentError(f"kernel={kernel}, data {data.shape}: expected data (n, c, …), one axis per length")
    stride = per_axis("im2col", "stride", stride, k, 1, 1)
    dilate = per_axis("im2col", "dilate", dilate, k, 1, 1)
    pad = per_axis("im2col", "pad", pad, k, 0, 0)
    for n, size, d, p in zip(data.shape[2:], kernel, dilate, pad, strict=True):
        if d * (size - 1) + 1 > n + 2 * p:
            raise ArgumentError(f"kernel={kernel}, dilate={dilate}: expected a window within the padded {data.shape}")
    out = lax.conv_general_dilated_patches(data, kernel, stride, [(p, p) for p in pad], rhs_dilation=dilate)
    return out.reshape(*out.shape[:2], prod(out.shape[2:]))


@op()
def im2col(data: Tensor, *, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = ()) -> jax.Array:
    """Lay out the patches under a sliding window as columns, as a convolution by matrix product needs them.

    Shapes: data (n, c, …) -> (n, c · prod(kernel), positions); rows are ordered by channel, then place in the window.
    """
    need_float("im2col", data=data)
    return _patches(data, kernel, stride, dilate, pad)


@op()
def col2im(
    data: Tensor, *, output_size: Shape, kernel: Shape, stride: Shape = (), dilate: Shape = (), pad: Shape = ()
) -> jax.Array:
    """Add columns back to the places they come from: the transpose of `im2col`.

    Shapes: data (n, c · prod(kernel), positions) -> (n, c, *output_size).
    """
    need_float("col2im", data=data)
    channels = data.shape[1] // max(prod(kernel), 1) if data.ndim == 3 else 0
    image = jax.ShapeDtypeStruct((data.shape[0], channels, *output_size), data.dtype)

    def columns_of(x: jax.Array) -> jax.Array:
        return _patches(x, kernel, stride, dilate, pad)

    columns = jax.eval_shape(columns_of, image)
    if columns.shape != data.shape:
        raise ArgumentError(f"data has shape {data.shape}: expected {columns.shape} for output_size={output_size}")
    return jax.linear_transpose(columns_of, image)(data)[0]


@op(name="Crop")
def crop(
    *args: Tensor, num_args: Count = 0, offset: Shape = (0, 0), h_w: Shape = (0, 0), center_crop: bool = False
) -> jax.Array:
    """Cut height and width of `args[0]` (n, c, h, w) to `h_w`, or to those of a second input.

    The part begins at `offset`, or lies in the middle with `center_crop`.
    """
    data = args[0]
    if data.ndim != 4 or len(args) > 2 or (len(args) == 2 and args[1].ndim != 4) or len(offset) != 2:
        raise ArgumentError(f"shapes {[a.shape for a in args]}: expected one or two inputs (n, c, h, w)")
    size = args[1].shape[2:] if len(args) == 2 else h_w
    if center_crop:
        offset = tuple((n - s) // 2 for n, s in zip(data.shape[2:], size, strict=True))
    for n, s, at in zip(data.shape[2:], size, offset, strict=True):
        if s < 1 or at < 0 or at + s > n:
            raise ArgumentError(f"offset={offset}, size {tuple(size)}: expected a part of {data.shape}")
    (y, x), (h, w) = offset, size
    return data[:, :, y : y + h, x : x + w]
