"""Convolution and transposed convolution in one to three dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
from jax import lax

from ...core.errors import ArgumentError
from ..backend import platform, uses_onednn
from ..registry import op
from ..schema import ABSENT, Ignored, Positive, Shape, Tensor, When
from ..spatial import channels_last, check_float, check_rank, check_shape, is_half, known, per_axis

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
        x = x[(slice(None), *(slice(None, None, s) for s in stride), slice(None))]
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
    if cpu and plain and not (dtype == jnp.float32 and uses_onednn(flops)):
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


@op(aliases=("_npx_convolution", "Convolution_v1"), complete=_complete(False))
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


@op(aliases=("_npx_deconvolution",), complete=_complete(True))
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
