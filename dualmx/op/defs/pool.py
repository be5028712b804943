"""Pooling, adaptive average pooling, up-sampling and bilinear resizing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.errors import ArgumentError
from ..layer_primitives import layer_primitive
from ..lowering_context import platform
from ..registry import OPS, op
from ..schema import ABSENT, Count, Ignored, OptionalTensor, Positive, Shape, Tensor
from ..spatial import channels_last, check_float, check_rank, per_axis, widen
from ..traits import Layer, Quantized, Traits

Layout = Literal["NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC"]
_MAX_UNROLLED_ELEMENTS = 32  # windows of up to this many elements are unrolled into strided slices


class Window(NamedTuple):
    """Static geometry of a pooling: per spatial axis; `first` is the index of the first spatial axis."""

    first: int
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    low: tuple[int, ...]  # padding in front
    high: tuple[int, ...]  # padding behind, as far as windows reach; never negative
    out: tuple[int, ...]

    def pads(self, ndim: int) -> list[tuple[int, int]]:
        """Padding of every axis of an array with `ndim` axes."""
        pads = [(0, 0)] * ndim
        pads[self.first : self.first + len(self.kernel)] = zip(self.low, self.high, strict=True)
        return pads

    def full(self, values: Sequence[int], ndim: int) -> list[int]:
        """`values` at the spatial axes, 1 elsewhere."""
        return [1] * self.first + list(values) + [1] * (ndim - self.first - len(values))


def _slices(x: jax.Array, win: Window, fill: float) -> list[jax.Array]:
    """The strided slices of x, one per position inside the window, in row-major order of the positions."""
    x = jnp.pad(x, win.pads(x.ndim), constant_values=fill)
    step = win.full(win.stride, x.ndim)
    found = []
    for at in itertools.product(*map(range, win.kernel)):
        start, stop = [0] * x.ndim, list(x.shape)
        for i, (a, o, s) in enumerate(zip(at, win.out, win.stride, strict=True), win.first):
            start[i], stop[i] = a, a + (o - 1) * s + 1
        found.append(lax.slice(x, start, stop, step))
    return found


def _unslice(parts: list[jax.Array], shape: Sequence[int], win: Window) -> jax.Array:
    """Adjoint of `_slices`: sum the parts back into an array of `shape`."""
    n = len(win.kernel)
    zero = jnp.zeros((), parts[0].dtype)
    if win.kernel == win.stride:  # disjoint windows: interleave
        for i in reversed(range(n)):
            k = win.kernel[i]
            parts = [jnp.stack(parts[j : j + k], win.first + i + 1) for j in range(0, len(parts), k)]
        sizes = [o * k for o, k in zip(win.out, win.kernel, strict=True)]
        joined = parts[0].reshape(*shape[: win.first], *sizes, *shape[win.first + n :])
        fit = [(0, 0, 0)] * len(shape)
        for i in range(n):
            at = win.first + i
            fit[at] = (-win.low[i], shape[at] + win.low[i] - sizes[i], 0)
        return joined if not any(map(any, fit)) else lax.pad(joined, zero, fit)
    total = None
    for part, at in zip(parts, itertools.product(*map(range, win.kernel)), strict=True):
        fit = [(0, 0, 0)] * len(shape)
        for i, (a, o, s) in enumerate(zip(at, win.out, win.stride, strict=True)):
            axis = win.first + i
            fit[axis] = (a - win.low[i], shape[axis] + win.low[i] - a - (o - 1) * s - 1, s - 1)
        padded = lax.pad(part, zero, fit)
        total = padded if total is None else total + padded
    assert total is not None
    return total


def _lowest(x: jax.Array) -> float:
    """What padding holds for a maximum: finite, so that a window in the padding alone does no harm later."""
    return float(jnp.finfo(x.dtype).min)


@layer_primitive
def max_pool(x: jax.Array, *, win: Window) -> tuple[jax.Array, ...]:
    """The maxima of windows."""
    best, *rest = _slices(x, win, _lowest(x))
    for part in rest:
        best = jnp.maximum(best, part)
    return (best,)


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def _max_sliced(x: jax.Array, win: Window) -> jax.Array:
    """Maximum over small windows; the gradient goes to the first maximum of each window."""
    return max_pool(x, win=win)[0]


def _max_fwd(x: jax.Array, win: Window) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    (y,) = max_pool(x, win=win)
    return y, (x, y)


def _max_bwd(win: Window, res: tuple[jax.Array, jax.Array], dy: jax.Array) -> tuple[jax.Array, ...]:
    return max_pool_vjp(*res, dy, win=win)


@layer_primitive
def max_pool_vjp(x: jax.Array, y: jax.Array, dy: jax.Array, *, win: Window) -> tuple[jax.Array, ...]:
    """The gradient of the data from that of their maxima, which it passes to the first maximum of each window."""
    taken = jnp.zeros(y.shape, bool)
    parts = []
    for part in _slices(x, win, _lowest(x)):
        hit = (part == y) & ~taken
        taken = taken | hit
        parts.append(jnp.where(hit, dy, 0))
    return (_unslice(parts, x.shape, win),)


_max_sliced.defvjp(_max_fwd, _max_bwd)


def _max(x: jax.Array, win: Window) -> jax.Array:
    if math.prod(win.kernel) <= _MAX_UNROLLED_ELEMENTS:
        return _max_sliced(x, win)
    low = np.array(-np.inf, x.dtype)  # a tracer would hide from JAX that this is a maximum
    kernel, stride = win.full(win.kernel, x.ndim), win.full(win.stride, x.ndim)
    x = jnp.pad(x, win.pads(x.ndim), constant_values=_lowest(x)) if any(win.low + win.high) else x
    return lax.reduce_window(x, low, lax.max, kernel, stride, "VALID")


def _sum(x: jax.Array, win: Window) -> jax.Array:
    if math.prod(win.kernel) <= _MAX_UNROLLED_ELEMENTS:
        return sum(_slices(x, win, 0.0)[1:], _slices(x, win, 0.0)[0])
    kernel, stride = win.full(win.kernel, x.ndim), win.full(win.stride, x.ndim)
    return lax.reduce_window(x, np.zeros((), x.dtype), lax.add, kernel, stride, win.pads(x.ndim))


def _divisors(win: Window, size: Sequence[int], pad: Sequence[int], include_pad: bool, ndim: int) -> Any:
    """How many elements each window averages: those inside the data, or inside the padded data."""
    xp = np if all(isinstance(n, int) for n in size) else jnp  # sizes may be symbols
    total = np.ones((1,) * ndim)
    for i, (k, s, q, o, n) in enumerate(zip(win.kernel, win.stride, pad, win.out, size, strict=True)):
        start = xp.arange(o) * s - q
        low, high = (-q, n + q) if include_pad else (0, n)
        count = xp.minimum(start + k, high) - xp.maximum(start, low)
        shape = [1] * ndim
        shape[win.first + i] = o
        total = total * xp.maximum(count, 1).reshape(shape)
    return total


def _root(total: jax.Array, p: int) -> jax.Array:
    """The p-th root of `total`, with gradient 0 where total is 0."""
    if p == 1:
        return total
    safe = jnp.where(total == 0, 1, total)
    return jnp.where(total == 0, 0, jnp.sqrt(safe) if p == 2 else jnp.cbrt(safe))


def _powers(x: jax.Array, p: int | None) -> jax.Array:
    if p not in (1, 2, 3):
        raise ArgumentError(f"Pooling: p_value={p}: expected 1, 2 or 3 with pool_type='lp'")
    return lax.integer_pow(x, p)


def _global(x: jax.Array, axes: tuple[int, ...], pool_type: str, p: int | None) -> jax.Array:
    if pool_type == "max":
        n, keep = len(axes), x.shape
        win = Window(axes[0], tuple(keep[a] for a in axes), (1,) * n, (0,) * n, (0,) * n, (1,) * n)
        return _max(x, win)
    if pool_type == "lp":
        return _root(jnp.sum(_powers(x, p), axes, keepdims=True), p or 1)
    return (jnp.mean if pool_type == "avg" else jnp.sum)(x, axes, keepdims=True)


def _geometry(
    first: int, size: Sequence[int], kernel: tuple[int, ...], stride: tuple[int, ...], pad: tuple[int, ...], rule: str
) -> Window:
    if rule == "same" and any(pad):
        raise ArgumentError(f"Pooling: pad={pad}: expected zeros with pooling_convention='same'")
    out, high = [], []
    for n, k, s, q in zip(size, kernel, stride, pad, strict=True):
        if q >= k:
            raise ArgumentError(f"Pooling: pad={pad}: expected values below kernel={kernel}")
        if rule == "same":
            o = -(-n // s)
        elif k > n + 2 * q:
            raise ArgumentError(f"Pooling: kernel={kernel}: larger than the data's {tuple(size)} padded by pad={pad}")
        else:
            o = ((n + 2 * q - k) // s if rule == "valid" else -(-(n + 2 * q - k) // s)) + 1
        out.append(o)
        high.append(max(0, (o - 1) * s + k - n - q))
    return Window(first, kernel, stride, pad, tuple(high), tuple(out))


def _quantizable(p: Mapping[str, Any]) -> bool:
    is_image = len(p["kernel"]) == 2 or p["global_pool"]
    return p["pool_type"] in ("max", "avg") and p["layout"] in (None, "NCHW") and is_image


@op(
    aliases=("_npx_pooling", "Pooling_v1"),
    traits=Traits(
        has_named_output=True,
        layer=Layer.POOLING,
        quantized=Quantized("_contrib_quantized_pooling", accepts=_quantizable),
    ),
)
def Pooling(
    data: Tensor,
    *,
    kernel: Shape = (),
    pool_type: Literal["max", "avg", "sum", "lp"] = "max",
    global_pool: bool = False,
    cudnn_off: Annotated[bool, Ignored] = False,
    pooling_convention: Literal["valid", "full", "same"] = "valid",
    stride: Shape = (),
    pad: Shape = (),
    p_value: int | None = None,
    count_include_pad: bool | None = None,
    layout: Layout | None = None,
) -> jax.Array:
    """Reduce windows of the spatial axes by their maximum, mean, sum or `(Σ x^p)^(1/p)` ("lp", signed as written).

    Shapes: data (N, C, *S), or (N, *S, C) in channels-last layouts, 1 to 3 spatial axes. The output size is
    floor((S + 2·pad − kernel) / stride) + 1 ("valid"), the same with ceil ("full"), or ceil(S / stride) ("same", no
    padding in front); 1 with `global_pool`. The mean counts padding unless `count_include_pad` is false; parts of a
    window beyond the padding never count. The gradient of "max" goes to the first maximum of each window.
    """
    check_float("Pooling", data)
    if data.ndim not in (3, 4, 5):
        raise ArgumentError(f"Pooling: data has shape {data.shape}: expected 3, 4 or 5 axes (batch, channels, space)")
    n = data.ndim - 2
    if not global_pool or kernel:
        check_rank("Pooling", data.shape, len(kernel), f"kernel={kernel}")
    last = channels_last("Pooling", layout, n)
    move = not last and platform() == "cpu" and not global_pool
    x = widen(data)
    if move:
        x = jnp.moveaxis(x, 1, -1)
    first = 1 if move or last else 2
    if global_pool:
        return _global(x, tuple(range(first, first + n)), pool_type, p_value).astype(data.dtype)
    kernel = per_axis("Pooling", "kernel", kernel, n, 1, 1)
    stride = per_axis("Pooling", "stride", stride, n, 1, 1)
    pad = per_axis("Pooling", "pad", pad, n, 0, 0)
    size = x.shape[first : first + n]
    win = _geometry(first, size, kernel, stride, pad, pooling_convention)
    if pool_type == "max":
        y = _max(x, win)
    elif pool_type == "lp":
        y = _root(_sum(_powers(x, p_value), win), p_value or 1)
    else:
        y = _sum(x, win)
        if pool_type == "avg":
            y = y / jnp.asarray(_divisors(win, size, pad, count_include_pad is not False, x.ndim), y.dtype)
    y = y.astype(data.dtype)
    return jnp.moveaxis(y, -1, 1) if move else y


def _averaging(size: int, bins: int, dtype: Any) -> jax.Array:
    """The (bins, size) matrix that averages bin i over [floor(i·size/bins), ceil((i+1)·size/bins))."""
    m = np.zeros((bins, size))
    for i in range(bins):
        start, stop = i * size // bins, -(-(i + 1) * size // bins)
        m[i, start:stop] = 1 / (stop - start)
    return jnp.asarray(m, dtype)


@op()
def _contrib_AdaptiveAvgPooling2D(data: Tensor, *, output_size: Shape = ()) -> jax.Array:
    """Average over output_size bins per axis; bin i covers [floor(i·S/bins), ceil((i+1)·S/bins)).

    Shapes: data (N, C, H, W), result (N, C, *output_size); `output_size` is empty (1 × 1), one int, or two.
    """
    name = "_contrib_AdaptiveAvgPooling2D"
    check_float(name, data)
    check_rank(name, data.shape, 2, "2-d pooling")
    if len(output_size) > 2 or any(o < 1 for o in output_size):
        raise ArgumentError(f"{name}: output_size={output_size}: expected at most two positive integers")
    bins = (tuple(output_size) * 2)[:2] if output_size else (1, 1)
    x = widen(data)
    rows, columns = (_averaging(s, b, x.dtype) for s, b in zip(data.shape[2:], bins, strict=True))
    y = jnp.einsum("oh,nchw,pw->ncop", rows, x, columns, precision=lax.Precision.HIGHEST)
    return y.astype(data.dtype)


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
    input_names_of=lambda p: ("data", "weight") if p.sample_type == "bilinear" else (),
    traits=Traits(initializers={"weight": '["bilinear", {}]'}, has_named_output=True),
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
