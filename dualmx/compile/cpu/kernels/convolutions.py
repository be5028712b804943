"""Convolutions of NumPy arrays: by oneDNN, or without it as products with the windows of the data.

Both compute a result or the gradient of the data or of the filters, with channels last. What else the primitive can
express, such as paddings that cut, is first made one of these.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ....op.lowering_context import MIN_LIBRARY_FLOPS
from ..onednn.ffi_handlers import available
from ..onednn.numpy_calls import convolve, dense
from ..onednn.primitives import DATA, FILTERS, FORWARD, ConvSpec, Sizes, faulty, upper_padding

_BLOCK_BYTES = 1 << 24  # of the windows that are laid out at a time


def convolution(
    x: Any, filters: Any, padding: Any, stride: Sizes, lhs_dilation: Sizes, dilation: Sizes, groups: int,
    batch_groups: int, numbers: Any,
) -> Any:  # fmt: skip
    """The primitive `conv_general_dilated`; `spread` is the dilation of the data. Sums of small floats are wide."""
    dtype = x.dtype
    if dtype.itemsize < 4 and dtype.kind not in "iu":
        x, filters = x.astype(np.float32), filters.astype(np.float32)
    steps = filters.strides
    is_turned = all(steps[a] < 0 for a in numbers.rhs_spec[2:])
    plan = _plan(
        x.dtype, x.shape, filters.shape, is_turned, padding, stride, lhs_dilation, dilation, groups, batch_groups,
        numbers, available(),
    )  # fmt: skip
    return plan.run(x, filters).astype(dtype, copy=False)


@dataclass(frozen=True)
class _Plan:
    """How a convolution is computed of arrays of certain sizes.

    Attributes:
        spec: what is computed; its `order` is that of filters in one piece.
        first: the axes of the first operand, of which channels are the last.
        second: those of the second one: (O, C/groups, *K) of filters, or channels last.
        out: those of the result among the axes of what is computed.
        by_library: oneDNN computes it.
        is_small: it is not worth several threads.
        orders: for the strides of filters the order of their axes in memory.
        texts: for these what tells oneDNN.
    """

    spec: ConvSpec
    first: Sizes
    second: Sizes
    out: Sizes
    by_library: bool
    is_small: bool
    orders: dict[Sizes, Sizes] = field(default_factory=dict)
    texts: dict[Sizes, bytes] = field(default_factory=dict)

    def run(self, x: Any, y: Any) -> Any:
        """Compute the convolution of x with y."""
        spec, x, y = self.spec, x.transpose(self.first), y.transpose(self.second)
        if spec.kind == DATA:
            y = np.flip(y, tuple(range(2, y.ndim)))
            if spec.groups > 1:  # (O, C/groups, *K) of the convolution whose gradient this is
                y = y.reshape(y.shape[0], spec.groups, -1, *y.shape[2:]).swapaxes(0, 1).reshape(spec.filters)
        if self.by_library and (found := self._by_library(x, y)) is not None:
            return found.transpose(self.out)
        return _COMPUTE[spec.kind](spec, x, y).transpose(self.out)

    def _by_library(self, x: Any, y: Any) -> Any:
        spec = self.spec
        x = dense(x)
        if spec.kind == FILTERS:
            y = dense(y)
            shape, text = spec.filters, self._text(spec.order)
        else:
            size = spec.result if spec.kind == FORWARD else spec.data
            shape = (size[0], *size[2:], size[1])
            order = self.orders.get(y.strides) or self._order(y)
            y, text = dense(y.transpose(order)), self._text(order)
        out = np.empty(shape, np.float32)
        return out if convolve(text, x, y, out, self.is_small) else None

    def _order(self, y: Any) -> Sizes:
        """The order of axes in which filters lie in one piece, or shall lie if they do not."""
        order = tuple(np.argsort([-s for s in y.strides], kind="stable").tolist())
        if not y.transpose(order).flags.c_contiguous:
            order = self.spec.order
        self.orders[y.strides] = order
        return order

    def _text(self, order: Sizes) -> bytes:
        if order not in self.texts:
            self.texts[order] = replace(self.spec, order=order).text().encode()
        return self.texts[order]


@dataclass(frozen=True)
class _SplitPlan:
    """A convolution as several of parts of the samples, whose results are put together along the channels."""

    part: Any
    count: int
    samples: int
    channels: int
    results: int

    def run(self, x: Any, y: Any) -> Any:
        """Compute the convolution of x with y."""
        parts = zip(np.split(x, self.count, self.samples), np.split(y, self.count, self.channels), strict=True)
        return np.concatenate([self.part.run(a, b) for a, b in parts], self.results)


@dataclass(frozen=True)
class _PaddingPlan:
    """A convolution of data that was padded, cut and spread before."""

    plan: _Plan
    shape: Sizes
    source: tuple[slice, ...]
    target: tuple[slice, ...]

    def run(self, x: Any, y: Any) -> Any:
        """Compute the convolution of x with y."""
        padded = np.zeros(self.shape, x.dtype)
        padded[self.target] = x[self.source]
        return self.plan.run(padded, y)


@functools.lru_cache(maxsize=2048)
def _plan(
    dtype: np.dtype, x: Sizes, y: Sizes, is_turned: bool, padding: Any, stride: Sizes, lhs_dilation: Sizes,
    dilation: Sizes, groups: int, batch_groups: int, numbers: Any, has_library: bool,
) -> Any:  # fmt: skip
    lhs, rhs, out = (tuple(s) for s in (numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec))
    data, filters = tuple(x[a] for a in lhs), tuple(y[a] for a in rhs)
    result = (
        data[0] // batch_groups,
        filters[0],
        *_counts(data[2:], filters[2:], padding, stride, lhs_dilation, dilation),
    )
    has_library = has_library and dtype == np.float32 and 0 not in (*data, *filters, *result) and 3 <= len(x) <= 5
    spec = _match(
        data, filters, result, padding, stride, lhs_dilation, dilation, groups, batch_groups, is_turned, lhs[0] > lhs[1]
    )
    if spec is not None:
        return _plan_of(spec, lhs, rhs, out, has_library)
    if batch_groups > 1:
        part_x, part_y = list(x), list(y)
        part_x[lhs[0]] //= batch_groups
        part_y[rhs[0]] //= batch_groups
        part = _plan(
            dtype, tuple(part_x), tuple(part_y), is_turned, padding, stride, lhs_dilation, dilation, groups, 1, numbers,
            has_library,
        )  # fmt: skip
        return _SplitPlan(part, batch_groups, lhs[0], rhs[0], out[1])
    shape, source, target = list(x), [slice(None)] * len(x), [slice(None)] * len(x)
    for axis, (low, high), step in zip(lhs[2:], padding, lhs_dilation, strict=True):
        n = x[axis]
        size = max(low + high + max((n - 1) * step + 1, 0), 0)
        start = max(0, -(low // step)) if low < 0 else 0
        stop = max(min(n, (size - 1 - low) // step + 1), start)
        shape[axis], source[axis] = size, slice(start, stop)
        target[axis] = slice(low + start * step, low + (stop - 1) * step + 1, step) if stop > start else slice(0)
    none = (0,) * (len(x) - 2)
    data = tuple(shape[a] for a in lhs)
    order = tuple(range(len(x)))
    spec = ConvSpec(FORWARD, groups, data, filters, result, stride, dilation, none, none, order)
    return _PaddingPlan(_plan_of(spec, lhs, rhs, out, has_library), tuple(shape), tuple(source), tuple(target))


def _plan_of(spec: ConvSpec, lhs: Sizes, rhs: Sizes, out: Sizes, has_library: bool) -> _Plan:
    """The plan of a convolution whose operands and result have their axes (N, C, *S) or (O, C, *K) at these places."""
    n = len(lhs)
    if spec.kind == FILTERS:  # samples and channels have changed places
        first, second = (lhs[1], *lhs[2:], lhs[0]), (rhs[1], *rhs[2:], rhs[0])
        place = (1, 0, *range(2, n))  # of the axes (N, O, *T) in (O, C, *K)
    else:
        first, place = (lhs[0], *lhs[2:], lhs[1]), (0, n - 1, *range(1, n - 1))
        second = (rhs[1], rhs[0], *rhs[2:]) if spec.kind == DATA else rhs
    axes = [0] * n
    for k, axis in enumerate(out):
        axes[axis] = place[k]
    return _Plan(spec, first, second, tuple(axes), has_library and not faulty(spec), spec.flops() < MIN_LIBRARY_FLOPS)


def _counts(
    data: Sizes, kernel: Sizes, padding: Any, stride: Sizes, lhs_dilation: Sizes, dilation: Sizes
) -> Iterator[int]:
    """How many windows there are along each spatial axis."""
    for n, k, (low, high), s, b, d in zip(data, kernel, padding, stride, lhs_dilation, dilation, strict=True):
        size = max((n - 1) * b + 1, 0) + low + high
        yield max((size - (k - 1) * d - 1) // s + 1, 0)


def _match(
    data: Sizes, filters: Sizes, result: Sizes, padding: Any, stride: Sizes, lhs_dilation: Sizes,
    dilation: Sizes, groups: int, batch_groups: int, is_turned: bool, is_across: bool,
) -> ConvSpec | None:  # fmt: skip
    """The convolution, or gradient of one, that the primitive stands for; None if it is neither.

    Args:
        data, filters, result: their sizes (N, C, *S), (O, C/groups, *K) and (N, O, *T).
        is_turned: the filters are read in reverse, as those of gradients of data are.
        is_across: samples and channels have changed places, as in gradients of filters.
    """
    low = tuple([lo for lo, _ in padding])
    order = tuple(range(len(data)))
    if batch_groups == 1 and max(stride) == 1 and (is_turned or max(lhs_dilation) > 1):
        low = tuple([(k - 1) * d - lo for k, d, lo in zip(filters[2:], dilation, low, strict=True)])
        turned = (data[1], filters[0] // groups, *filters[2:])
        sizes, steps = (DATA, groups, result, turned, data), (lhs_dilation, dilation)
    elif max(lhs_dilation) > 1:
        return None
    elif groups == 1 and (batch_groups > 1 or is_across):
        data, across = (data[1], data[0], *data[2:]), (filters[1], filters[0], *filters[2:])
        sizes, steps = (FILTERS, batch_groups, data, (result[1], result[0], *result[2:]), across), (dilation, stride)
    elif batch_groups == 1:
        sizes, steps = (FORWARD, groups, data, filters, result), (stride, dilation)
    else:
        return None
    high = upper_padding(sizes[2][2:], sizes[4][2:], sizes[3][2:], steps[0], steps[1], low)
    return None if high is None or 0 in result else ConvSpec(*sizes, *steps, low, high, order)


# -- without oneDNN


def _window_axes(spec: ConvSpec) -> Iterator[tuple[Sizes, tuple[slice, ...]]]:
    """For each element of the kernel its position, and where the windows have theirs in padded data (N, *S, C)."""
    for at in itertools.product(*map(range, spec.filters[2:])):
        axes = zip(at, spec.dilate, spec.result[2:], spec.stride, strict=True)
        yield at, (slice(None), *[slice(i * d, i * d + (t - 1) * s + 1, s) for i, d, t, s in axes])


def _inner(spec: ConvSpec) -> tuple[slice, ...]:
    """Where data (N, *S, C) lie in padded ones."""
    return (slice(None), *[slice(low, low + n) for low, n in zip(spec.low, spec.data[2:], strict=True)])


def _padded(spec: ConvSpec, x: Any) -> Any:
    """Data (N, *S, C) with zeros around."""
    if not any((*spec.low, *spec.high)):
        return x
    size = [low + n + high for low, n, high in zip(spec.low, spec.data[2:], spec.high, strict=True)]
    out = np.zeros((x.shape[0], *size, x.shape[-1]), x.dtype)
    out[_inner(spec)] = x
    return out


def _blocks(spec: ConvSpec, itemsize: int) -> Iterator[slice]:
    """Parts of the samples whose windows take little memory."""
    per_sample = math.prod(spec.result[2:]) * math.prod(spec.filters[2:]) * spec.data[1] * itemsize
    count = max(1, _BLOCK_BYTES // max(per_sample, 1))
    return (slice(i, i + count) for i in range(0, spec.data[0], count))


def _columns(spec: ConvSpec, x: Any) -> Any:
    """The windows of padded data (N, *S, C), as (groups, N*T, K*C/groups)."""
    n, kernel, count = len(x), spec.filters[2:], spec.result[2:]
    depth = spec.filters[1]
    samples, *space, channels = x.strides
    windows = np.lib.stride_tricks.as_strided(
        x,
        (spec.groups, n, *count, *kernel, depth),
        (
            channels * depth, samples, *[a * s for a, s in zip(space, spec.stride, strict=True)],
            *[a * d for a, d in zip(space, spec.dilate, strict=True)], channels,
        ),
        writeable=False,
    )  # fmt: skip
    return windows.reshape(spec.groups, n * math.prod(count), math.prod(kernel) * depth)


def _grouped(spec: ConvSpec, y: Any) -> Any:
    """Results (N, *T, O) as (groups, N*T, O/groups)."""
    return np.moveaxis(y.reshape(math.prod(y.shape[:-1]), spec.groups, spec.result[1] // spec.groups), 1, 0)


def _as_matrices(spec: ConvSpec, filters: Any) -> Any:
    """Filters (O, C/groups, *K) as (groups, O/groups, K*C/groups)."""
    size = spec.groups, spec.result[1] // spec.groups, math.prod(spec.filters[1:])
    return np.moveaxis(filters, 1, -1).reshape(size)


def _forward(spec: ConvSpec, x: Any, filters: Any) -> Any:
    """The result (N, *T, O)."""
    x, w = _padded(spec, x), _as_matrices(spec, filters).swapaxes(1, 2)
    out = np.empty((spec.result[0], *spec.result[2:], spec.result[1]), x.dtype)
    for part in _blocks(spec, x.itemsize):
        product = np.matmul(_columns(spec, x[part]), w)
        out[part] = np.moveaxis(product, 0, 1).reshape(out[part].shape)
    return out


def _data(spec: ConvSpec, y: Any, filters: Any) -> Any:
    """The gradient of the data (N, *S, C) from that of the result (N, *T, O)."""
    size = [low + n + high for low, n, high in zip(spec.low, spec.data[2:], spec.high, strict=True)]
    out = np.zeros((spec.data[0], *size, spec.data[1]), y.dtype)
    w = _as_matrices(spec, filters)
    for part in _blocks(spec, y.itemsize):
        n = len(y[part])
        columns = np.matmul(_grouped(spec, y[part]), w)
        columns = columns.reshape(spec.groups, n, *spec.result[2:], *spec.filters[2:], spec.filters[1])
        columns = np.moveaxis(columns, 0, -2)  # (N, *T, *K, groups, C/groups)
        for at, window in _window_axes(spec):
            share = columns[(slice(None),) * (y.ndim - 1) + at]
            out[part][window] += share.reshape(*share.shape[:-2], spec.data[1])
    return out[_inner(spec)]


def _filters(spec: ConvSpec, x: Any, y: Any) -> Any:
    """The gradient of the filters (O, C/groups, *K) from the data (N, *S, C) and that of the result (N, *T, O)."""
    x = _padded(spec, x)
    out = np.zeros((spec.groups, spec.result[1] // spec.groups, math.prod(spec.filters[1:])), x.dtype)
    for part in _blocks(spec, x.itemsize):
        out += np.matmul(_grouped(spec, y[part]).swapaxes(1, 2), _columns(spec, x[part]))
    return np.moveaxis(out.reshape(spec.filters[0], *spec.filters[2:], spec.filters[1]), -1, 1)


_COMPUTE = {FORWARD: _forward, DATA: _data, FILTERS: _filters}
