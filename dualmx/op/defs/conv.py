"""Convolution, transposed and deformable convolution, correlation, im2col, col2im and the old Crop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.errors import ArgumentError
from .. import interpolation
from ..lowering_context import has_layer_primitives, platform, uses_onednn
from ..registry import op
from ..schema import ABSENT, Count, Ignored, Positive, Shape, Tensor, When
from ..shape_rules import need_float, signature_of
from ..spatial import channels_last, check_float, check_rank, check_shape, is_half, known, per_axis, widen
from ..traits import KEPT_RESULT, Layer, Quantized, Traits

Layout = Literal["NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC"]
Tune = Literal["off", "limited_workspace", "fastest"]


def _channels_at(layout: str | None) -> int:
    """The channel axis of `layout`."""
    return -1 if layout is not None and layout[-1] == "C" else 1


def _weight_shape(p: Any, channels: int, transposed: bool) -> tuple[int, ...]:
    """Shape of the weight for data with `channels` channels."""
    first, second = (channels, p.num_filter // p.num_group) if transposed else (p.num_filter, channels // p.num_group)
    return (first, *p.kernel, second) if _channels_at(p.layout) == -1 else (first, second, *p.kernel)


def _complete(transposed: bool) -> Any:
    def complete(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        data = shapes.get("data")
        # Without the data nothing is said of the parameters, not even of the bias.
        out: dict[str, tuple[int, ...]] = {} if p.no_bias or data is None else {"bias": (p.num_filter,)}
        if data and len(data) == len(p.kernel) + 2:
            weight = _weight_shape(p, data[_channels_at(p.layout)], transposed)
            if known(*weight):
                out["weight"] = weight
        return out

    return complete


def _check(
    name: str, p: dict[str, Any], data: jax.Array, weight: jax.Array, bias: jax.Array | None, transposed: bool
) -> bool:
    """Validate the call; returns True if channels are last."""
    kernel, groups, filters = p["kernel"], p["num_group"], p["num_filter"]
    last = channels_last(name, p["layout"], len(kernel))
    per_axis(name, "kernel", kernel, len(kernel), 1, 1)
    check_rank(name, data.shape, len(kernel), f"kernel={kernel}")
    check_float(name, data)
    channels = data.shape[-1 if last else 1]
    for what, n in (("the data's channels", channels), ("num_filter", filters)):
        if n % groups:
            raise ArgumentError(f"{name}: num_group={groups}: expected a divisor of {what}, {n}")
    first, second = (channels, filters // groups) if transposed else (filters, channels // groups)
    want = (first, *kernel, second) if last else (first, second, *kernel)
    why = f"data {data.shape}, num_filter={filters}, kernel={kernel}, num_group={groups}"
    check_shape(name, "weight", weight.shape, want, why)
    if bias is not None:
        check_shape(name, "bias", bias.shape, (filters,), f"num_filter={filters}")
    return last


def _pointwise(x: jax.Array, w: jax.Array, stride: Sequence[int]) -> jax.Array:
    """Convolution by a kernel of size 1, channels last, as one matrix product; w is (*1, in, out)."""
    if max(stride) > 1:
        x = lax.slice(x, (0,) * x.ndim, x.shape, (1, *stride, 1))  # indexing would gather where sizes are symbols
    flat = x.reshape(math.prod(x.shape[:-1]), x.shape[-1]) @ w.reshape(w.shape[-2:])
    return flat.reshape(*x.shape[:-1], w.shape[-1])


def _convolve(
    x: jax.Array,
    w: jax.Array,
    last: bool,
    stride: Sequence[int],
    pad: Sequence[tuple[int, int]],
    dilate: Sequence[int],
    lhs_dilate: Sequence[int],
    groups: int,
) -> jax.Array:
    """Cross-correlate x (layout by `last`) with w (*kernel, in/groups, out); result in x's layout and dtype."""
    n = w.ndim - 2
    cpu = platform() == "cpu"
    inner_last = last or cpu  # XLA:CPU is fastest channels-last, and cancels the transposes of neighbouring layers
    dtype = x.dtype
    if cpu and is_half(x):
        x, w = x.astype(jnp.float32), w.astype(jnp.float32)
    if inner_last and not last:
        x = jnp.moveaxis(x, 1, -1)
    plain = groups == 1 and w.shape[:n] == (1,) * n and max(lhs_dilate) == 1 and not any(lo or hi for lo, hi in pad)
    flops = 2 * math.prod(x.shape[:-1]) // math.prod(stride) * math.prod(w.shape[-2:])
    by_kernel = has_layer_primitives() and max(stride) > 1  # which copies no slice, nor spreads it in its gradient
    if cpu and plain and not by_kernel and not (dtype == jnp.float32 and uses_onednn(flops)):
        y = _pointwise(x, w, stride)
    else:
        letters = "DHW"[3 - n :]
        data = f"N{letters}C" if inner_last else f"NC{letters}"
        y = lax.conv_general_dilated(
            x,
            w,
            stride,
            pad,
            lhs_dilation=lhs_dilate,
            rhs_dilation=dilate,
            dimension_numbers=(data, f"{letters}IO", data),
            feature_group_count=groups,
        )
    if inner_last and not last:
        y = jnp.moveaxis(y, -1, 1)
    return y.astype(dtype)


def _add_bias(y: jax.Array, bias: jax.Array | None, last: bool) -> jax.Array:
    if bias is None:
        return y
    return y + (bias if last else bias.reshape(-1, *(1,) * (y.ndim - 2)))


@op(
    aliases=("_npx_convolution", "Convolution_v1"),
    complete=_complete(False),
    traits=Traits(
        keeps_result=True,
        has_named_output=True,
        layer=Layer.CONVOLUTION,
        stated_sizes={"num_filter": (1, 0)},
        quantized=Quantized(
            "_contrib_quantized_conv",
            starts=True,
            is_wide=True,
            accepts=lambda p: p["layout"] in (None, "NCW", "NCHW", "NCDHW"),
        ),
    ),
)
def Convolution(
    data: Tensor,
    weight: Tensor,
    bias: Annotated[Tensor, When("no_bias", False)] = ABSENT,
    *,
    kernel: Shape,
    stride: Shape = (),
    dilate: Shape = (),
    pad: Shape = (),
    num_filter: Positive,
    num_group: Positive = 1,
    workspace: Annotated[int, Ignored] = 1024,
    no_bias: bool = False,
    cudnn_tune: Annotated[Tune | None, Ignored] = None,
    cudnn_off: Annotated[bool, Ignored] = False,
    layout: Layout | None = None,
) -> jax.Array:
    """Cross-correlation plus bias: `y[n,o,i] = b[o] + Σ_{c,k} w[o,c,k] · x[n, c, i·stride + k·dilate − pad]`.

    Shapes: data (N, C, *S), weight (num_filter, C/num_group, *kernel), bias (num_filter,), result
    (N, num_filter, *T) with T = floor((S + 2·pad − dilate·(kernel − 1) − 1) / stride) + 1. Layouts with channels last
    take data (N, *S, C) and weight (num_filter, *kernel, C/num_group). Sums of 16-bit floats are kept in float32.
    """
    p = {"kernel": kernel, "num_group": num_group, "num_filter": num_filter, "layout": layout}
    last = _check("Convolution", p, data, weight, bias, False)
    n = len(kernel)
    stride = per_axis("Convolution", "stride", stride, n, 1, 1)
    dilate = per_axis("Convolution", "dilate", dilate, n, 1, 1)
    pad = per_axis("Convolution", "pad", pad, n, 0, 0)
    size = data.shape[1:-1] if last else data.shape[2:]
    for s, k, d, q in zip(size, kernel, dilate, pad, strict=True):
        if d * (k - 1) + 1 > s + 2 * q:
            raise ArgumentError(
                f"Convolution: kernel={kernel}, dilate={dilate}: larger than the data {data.shape} with pad={pad}"
            )
    w = jnp.moveaxis(weight, 0, -1) if last else jnp.moveaxis(weight, (0, 1), (-1, -2))
    y = _convolve(data, w, last, stride, [(q, q) for q in pad], dilate, (1,) * n, num_group)
    return _add_bias(y, bias, last)


@op(aliases=("_npx_deconvolution",), complete=_complete(True), traits=Traits(keeps_result=True, has_named_output=True))
def Deconvolution(
    data: Tensor,
    weight: Tensor,
    bias: Annotated[Tensor, When("no_bias", False)] = ABSENT,
    *,
    kernel: Shape,
    stride: Shape = (),
    dilate: Shape = (),
    pad: Shape = (),
    adj: Shape = (),
    target_shape: Shape = (),
    num_filter: Positive,
    num_group: Positive = 1,
    workspace: Annotated[int, Ignored] = 512,
    no_bias: bool = True,
    cudnn_tune: Annotated[Tune | None, Ignored] = None,
    cudnn_off: Annotated[bool, Ignored] = False,
    layout: Layout | None = None,
) -> jax.Array:
    """Transposed convolution, the adjoint of `Convolution` with respect to its data.

    Shapes: data (N, C, *S), weight (C, num_filter/num_group, *kernel), bias (num_filter,), result
    (N, num_filter, *T) with T = stride·(S − 1) + dilate·(kernel − 1) + 1 − 2·pad + adj. A `target_shape` fixes T and
    replaces `pad` and `adj`. Layouts with channels last take weight (C, *kernel, num_filter/num_group).
    """
    p = {"kernel": kernel, "num_group": num_group, "num_filter": num_filter, "layout": layout}
    last = _check("Deconvolution", p, data, weight, bias, True)
    n = len(kernel)
    stride = per_axis("Deconvolution", "stride", stride, n, 1, 1)
    dilate = per_axis("Deconvolution", "dilate", dilate, n, 1, 1)
    pad = per_axis("Deconvolution", "pad", pad, n, 0, 0)
    adj = per_axis("Deconvolution", "adj", adj, n, 0, 0)
    size = data.shape[1:-1] if last else data.shape[2:]
    full = [s * (i - 1) + d * (k - 1) + 1 for i, k, s, d in zip(size, kernel, stride, dilate, strict=True)]
    if any(target_shape):
        target = per_axis("Deconvolution", "target_shape", target_shape, n, 0, 1)
        excess = [f - t for f, t in zip(full, target, strict=True)]
        if min(excess) < 0:
            raise ArgumentError(f"Deconvolution: target_shape={target}: expected at most {tuple(full)}")
        adj = tuple(e % 2 for e in excess)
        pad = tuple((e + 1) // 2 for e in excess)
    elif any(a >= s for a, s in zip(adj, stride, strict=True)):
        raise ArgumentError(f"Deconvolution: adj={adj}: expected values below stride={stride}")
    if any(f - 2 * q + a < 1 for f, q, a in zip(full, pad, adj, strict=True)):
        raise ArgumentError(f"Deconvolution: pad={pad}: nothing is left of the output of size {tuple(full)}")
    reach = [d * (k - 1) for k, d in zip(kernel, dilate, strict=True)]
    edges = [(r - q, r - q + a) for r, q, a in zip(reach, pad, adj, strict=True)]
    per_group = num_filter // num_group
    w = weight if not last else jnp.moveaxis(weight, -1, 1)
    w = w.reshape(num_group, weight.shape[0] // num_group, per_group, *kernel)
    w = jnp.moveaxis(w, (0, 1, 2), (-2, -3, -1)).reshape(*kernel, weight.shape[0] // num_group, num_filter)
    w = jnp.flip(w, tuple(range(n)))
    y = _convolve(data, w, last, (1,) * n, edges, dilate, stride, num_group)
    return _add_bias(y, bias, last)


ChannelsFirst = Literal["NCW", "NCHW", "NCDHW"] | None


def _output_size(p: Any, size: tuple[int, ...]) -> tuple[int, ...]:
    """Spatial shape of the output."""
    fill = {"stride": 1, "dilate": 1, "pad": 0}
    stride, dilate, pad = (tuple(getattr(p, k)) or (v,) * 2 for k, v in fill.items())
    return tuple(
        (s + 2 * q - d * (k - 1) - 1) // t + 1
        for s, k, t, d, q in zip(size, p.kernel, stride, dilate, pad, strict=False)
    )


def _complete_deformable(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
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
        taken = jnp.where(inside[:, None], interpolation.sample_each(images, y, x), 0)
    else:
        share = widen(mask).reshape(n * groups, 1, rows, columns, *grid)
        taken = interpolation.sample_each(images, y, x) * share
    taken = taken.reshape(n, p.num_group, channels // p.num_group, rows, columns, *grid)
    kernel = widen(weight).reshape(p.num_group, -1, channels // p.num_group, rows, columns)
    out = jnp.einsum("ngcijhw,gfcij->ngfhw", taken, kernel, precision=lax.Precision.HIGHEST)
    out = out.reshape(n, p.num_filter, *grid)
    if bias is not None:
        check_shape(name, "bias", bias.shape, (p.num_filter,), f"num_filter={p.num_filter}")
        out = out + widen(bias)[:, None, None]
    return out.astype(data.dtype)


@op(complete=_complete_deformable, traits=KEPT_RESULT)
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
    layout: Annotated[ChannelsFirst, Ignored] = None,
) -> jax.Array:
    """Convolution whose taps are moved by `offset` and weighted by `mask`; pixels outside the image are 0.

    Shapes: data (N, C, H, W), weight (F, C/num_group, kh, kw), offset (N, 2·G·kh·kw, H', W'), mask (N, G·kh·kw, H', W')
    with G = num_deformable_group -> (N, F, H', W'). Reference: Zhu et al., "Deformable ConvNets v2".
    """
    p = SimpleNamespace(
        kernel=kernel, stride=stride, dilate=dilate, pad=pad, num_filter=num_filter, num_group=num_group,
        num_deformable_group=num_deformable_group,
    )  # fmt: skip
    return _deform("_contrib_ModulatedDeformableConvolution", p, data, offset, mask, weight, bias)


@op(complete=_complete_deformable, traits=KEPT_RESULT)
@signature_of(_contrib_ModulatedDeformableConvolution.fn, "mask", "im2col_step")
def _contrib_DeformableConvolution(data, offset, weight, bias=ABSENT, **given: Any) -> jax.Array:
    """Convolution whose taps are moved by `offset`, (dy, dx) for each tap and output pixel, sampled bilinearly.

    Taps outside the image count as 0; those between its last pixel and its edge read the last pixel.
    Shapes: data (N, C, H, W), weight (F, C/num_group, kh, kw), offset (N, 2·G·kh·kw, H', W') with G =
    num_deformable_group -> (N, F, H', W'). Reference: Dai et al., "Deformable Convolutional Networks".
    """
    return _deform("_contrib_DeformableConvolution", SimpleNamespace(**given), data, offset, None, weight, bias)


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
