"""Convolution that samples its input at learned offsets, plain and modulated."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
from jax import lax

from ...core.errors import ArgumentError
from .. import bilinear
from ..registry import op
from ..schema import ABSENT, Ignored, Positive, Shape, Tensor, When
from ..spatial import check_float, check_rank, check_shape, known, per_axis, widen

Layout = Literal["NCW", "NCHW", "NCDHW"] | None


def _output_size(p: Any, size: tuple[int, ...]) -> tuple[int, ...]:
    """Spatial shape of the output."""
    fill = {"stride": 1, "dilate": 1, "pad": 0}
    stride, dilate, pad = (tuple(getattr(p, k)) or (v,) * 2 for k, v in fill.items())
    return tuple(
        (s + 2 * q - d * (k - 1) - 1) // t + 1
        for s, k, t, d, q in zip(size, p.kernel, stride, dilate, pad, strict=False)
    )


def _complete(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    data = shapes.get("data")
    out: dict[str, tuple[int, ...]] = {} if p.no_bias else {"bias": (p.num_filter,)}
    if data and len(data) == 4 and len(p.kernel) == 2 and known(*data):
        out["weight"] = (p.num_filter, data[1] // p.num_group, *p.kernel)
        taps = p.num_deformable_group * p.kernel[0] * p.kernel[1]
        grid = _output_size(p, data[2:])
        out["offset"] = (data[0], 2 * taps, *grid)
        if hasattr(p, "im2col_step"):
            out["mask"] = (data[0], taps, *grid)
    return out


def _deform(
    name: str, p: Any, data: jax.Array, offset: jax.Array, mask: jax.Array | None, weight: jax.Array, bias: Any
) -> jax.Array:
    check_float(name, data)
    if len(p.kernel) != 2:
        raise ArgumentError(f"{name}: kernel={p.kernel}: expected (height, width)")
    check_rank(name, data.shape, 2, "deformable convolution")
    n, channels, height, width = data.shape
    for what, value in (("num_group", p.num_group), ("num_deformable_group", p.num_deformable_group)):
        if channels % value:
            raise ArgumentError(f"{name}: {what}={value}: expected a divisor of the data's channels, {channels}")
    if p.num_filter % p.num_group:
        raise ArgumentError(f"{name}: num_group={p.num_group}: expected a divisor of num_filter, {p.num_filter}")
    rows, columns = per_axis(name, "kernel", p.kernel, 2, 1, 1)
    stride = per_axis(name, "stride", p.stride, 2, 1, 1)
    dilate = per_axis(name, "dilate", p.dilate, 2, 1, 1)
    pad = per_axis(name, "pad", p.pad, 2, 0, 0)
    grid, groups = _output_size(p, (height, width)), p.num_deformable_group
    taps = groups * rows * columns
    check_shape(name, "offset", offset.shape, (n, 2 * taps, *grid), "two numbers per tap and output pixel")
    check_shape(
        name, "weight", weight.shape, (p.num_filter, channels // p.num_group, rows, columns), f"data {data.shape}"
    )
    if mask is not None:
        check_shape(name, "mask", mask.shape, (n, taps, *grid), "one number per tap and output pixel")

    moved = widen(offset).reshape(n, groups, rows, columns, 2, *grid)
    start = [
        (jnp.arange(k, dtype=moved.dtype) * d)[:, None] + jnp.arange(g, dtype=moved.dtype) * s - q
        for k, d, g, s, q in zip((rows, columns), dilate, grid, stride, pad, strict=True)
    ]
    y = moved[:, :, :, :, 0] + start[0][:, None, :, None]
    x = moved[:, :, :, :, 1] + start[1][:, None, :]
    images = widen(data).reshape(n * groups, channels // groups, height, width)
    y, x = (v.reshape(n * groups, *v.shape[2:]) for v in (y, x))
    if mask is None:
        inside = (y >= 0) & (x >= 0) & (y < height) & (x < width)
        y, x = jnp.clip(y, 0, height - 1), jnp.clip(x, 0, width - 1)
        taken = jnp.where(inside[:, None], bilinear.sample_each(images, y, x), 0)
    else:
        share = widen(mask).reshape(n * groups, 1, rows, columns, *grid)
        taken = bilinear.sample_each(images, y, x) * share
    taken = taken.reshape(n, p.num_group, channels // p.num_group, rows, columns, *grid)
    kernel = widen(weight).reshape(p.num_group, -1, channels // p.num_group, rows, columns)
    out = jnp.einsum("ngcijhw,gfcij->ngfhw", taken, kernel, precision=lax.Precision.HIGHEST)
    out = out.reshape(n, p.num_filter, *grid)
    if bias is not None:
        check_shape(name, "bias", bias.shape, (p.num_filter,), f"num_filter={p.num_filter}")
        out = out + widen(bias)[:, None, None]
    return out.astype(data.dtype)


class _Params:
    def __init__(self, **values: Any):
        self.__dict__.update(values)


@op(complete=_complete)
def _contrib_DeformableConvolution(
    data: Tensor,
    offset: Tensor,
    weight: Tensor,
    bias: Annotated[Tensor, When("no_bias", False)] = ABSENT,
    *,
    kernel: Shape,
    stride: Shape = (),
    dilate: Shape = (),
    pad: Shape = (),
    num_filter: Positive,
    num_group: Positive = 1,
    num_deformable_group: Positive = 1,
    workspace: Annotated[int, Ignored] = 1024,
    no_bias: bool = False,
    layout: Annotated[Layout, Ignored] = None,
) -> jax.Array:
    """Convolution whose taps are moved by `offset`, (dy, dx) for each tap and output pixel, sampled bilinearly.

    Taps outside the image count as 0; those between its last pixel and its edge read the last pixel.
    Shapes: data (N, C, H, W), weight (F, C/num_group, kh, kw), offset (N, 2·G·kh·kw, H', W') with G =
    num_deformable_group -> (N, F, H', W'). Reference: Dai et al., "Deformable Convolutional Networks".
    """
    p = _Params(
        kernel=kernel, stride=stride, dilate=dilate, pad=pad, num_filter=num_filter, num_group=num_group,
        num_deformable_group=num_deformable_group,
    )  # fmt: skip
    return _deform("_contrib_DeformableConvolution", p, data, offset, None, weight, bias)


@op(complete=_complete)
def _contrib_ModulatedDeformableConvolution(
    data: Tensor,
    offset: Tensor,
    mask: Tensor,
    weight: Tensor,
    bias: Annotated[Tensor, When("no_bias", False)] = ABSENT,
    *,
    kernel: Shape,
    stride: Shape = (),
    dilate: Shape = (),
    pad: Shape = (),
    num_filter: Positive,
    num_group: Positive = 1,
    num_deformable_group: Positive = 1,
    workspace: Annotated[int, Ignored] = 1024,
    no_bias: bool = False,
    im2col_step: Annotated[int, Ignored] = 64,
    layout: Annotated[Layout, Ignored] = None,
) -> jax.Array:
    """Convolution whose taps are moved by `offset` and weighted by `mask`; pixels outside the image are 0.

    Shapes: data (N, C, H, W), weight (F, C/num_group, kh, kw), offset (N, 2·G·kh·kw, H', W'), mask (N, G·kh·kw, H', W')
    with G = num_deformable_group -> (N, F, H', W'). Reference: Zhu et al., "Deformable ConvNets v2".
    """
    p = _Params(
        kernel=kernel, stride=stride, dilate=dilate, pad=pad, num_filter=num_filter, num_group=num_group,
        num_deformable_group=num_deformable_group,
    )  # fmt: skip
    return _deform("_contrib_ModulatedDeformableConvolution", p, data, offset, mask, weight, bias)
