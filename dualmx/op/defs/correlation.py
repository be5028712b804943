"""Correlation of two feature maps over displacements, as optical flow networks use it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import Count, Positive, Tensor
from ..spatial import check_rank, check_shape, widen


@op(floating=True)
def Correlation(
    data1: Tensor,
    data2: Tensor,
    *,
    kernel_size: Positive = 1,
    max_displacement: Count = 1,
    stride1: Positive = 1,
    stride2: Positive = 1,
    pad_size: Count = 0,
    is_multiply: bool = True,
) -> jax.Array:
    """Compare patches of `data1` with patches of `data2` displaced by up to `max_displacement` pixels.

    Both are padded by `pad_size` zeros. Channel (2r+1)·i + j, with r = max_displacement // stride2, is the mean over
    channels and the kernel of data1[y, x] · data2[y + (i−r)·stride2, x + (j−r)·stride2], or of the absolute difference
    without `is_multiply`; y and x advance by `stride1`. The kernel size must be odd.
    Shapes: data1, data2 (N, C, H, W) -> (N, (2r+1)², H', W') with
    H' = ceil((H + 2·pad_size − 2·(max_displacement + (kernel_size−1)/2)) / stride1).
    Reference: Dosovitskiy et al., "FlowNet".
    """
    check_rank("Correlation", data1.shape, 2, "comparing images")
    check_shape("Correlation", "data2", data2.shape, data1.shape, "that of data1")
    if kernel_size % 2 == 0:
        raise ArgumentError(f"Correlation: kernel_size={kernel_size}: expected an odd number")
    n, c, height, width = data1.shape
    border = max_displacement + (kernel_size - 1) // 2
    rows, columns = (-(-(s + 2 * pad_size - 2 * border) // stride1) for s in (height, width))
    if rows < 1 or columns < 1:
        raise ArgumentError(
            f"Correlation: max_displacement={max_displacement}, kernel_size={kernel_size}: leave nothing of images "
            f"{height} x {width} padded by {pad_size}"
        )
    radius = max_displacement // stride2
    tall, broad = ((k - 1) * stride1 + kernel_size for k in (rows, columns))
    around = ((0, 0), (0, 0), (pad_size, pad_size), (pad_size, pad_size))
    first, second = (jnp.pad(widen(d), around) for d in (data1, data2))
    low = max_displacement
    here = first[:, :, low : low + tall, low : low + broad]

    def compare(shift: jax.Array) -> jax.Array:
        zero = jnp.int32(0)
        there = lax.dynamic_slice(second, (zero, zero, shift[0], shift[1]), (n, c, tall, broad))
        each = jnp.sum(here * there if is_multiply else jnp.abs(here - there), 1)
        window, stride = (1, kernel_size, kernel_size), (1, stride1, stride1)
        return lax.reduce_window(each, np.zeros((), each.dtype), lax.add, window, stride, "VALID")

    steps = np.arange(-radius, radius + 1) * stride2 + low
    shifts = np.stack(np.meshgrid(steps, steps, indexing="ij"), -1).reshape(-1, 2).astype(np.int32)
    out = lax.map(compare, jnp.asarray(shifts))
    return jnp.moveaxis(out / (c * kernel_size**2), 0, 1).astype(data1.dtype)
