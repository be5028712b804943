"""Rewrite rules from a jaxpr's convolutions and products, as JAX's derivatives write them, to oneDNN."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
from jax import lax

from ....op.lowering_context import MIN_LIBRARY_FLOPS
from .ffi_handlers import CONVOLUTION, KEEP, PRODUCT, available
from .primitives import DATA, FILTERS, FORWARD, ConvSpec, Sizes, faulty, upper_padding

_MIN_SUM_ELEMENTS = 1 << 17  # elements, below which computing them again costs no more than a call
MIN_PRODUCT_FLOPS = 300_000_000  # floating-point operations from which the better kernel is worth the call

Axes = tuple[int, ...]
Ordered = tuple[Any, Axes]  # an array and the axes by which transposing it gives a value


def _canonical(value: Ordered, spec: Axes) -> tuple[Sizes, Axes]:
    """Return the sizes of a value's axes (N, C, *S) or (O, I, *K), and the position of each in the array below."""
    base, axes = value
    at = tuple(axes[i] for i in spec)
    return tuple(base.shape[a] for a in at), at


def _channels_last(value: Ordered, at: Axes) -> jax.Array:
    """The array with axes (N, *S, C)."""
    wanted = (at[0], *at[2:], at[1])
    return value[0] if wanted == tuple(range(len(at))) else lax.transpose(value[0], wanted)


def _match_convolution(
    p: Any, lhs: Sizes, rhs: Sizes, out: Sizes, turned: bool, across: bool
) -> dict[str, Any] | None:  # fmt: skip
    """Kind, sizes, steps and paddings of an equation.

    `turned`: its filters are those of another one in reverse. `across`: what it sums over is the outer of the first two
    axes of its data, as where gradients of filters sum over the samples.
    """
    strides, lhs_dilation, rhs_dilation = p["window_strides"], p["lhs_dilation"], p["rhs_dilation"]
    low = tuple(lo for lo, _ in p["padding"])
    groups = p["feature_group_count"]
    scatters = groups == 1 and max(strides) == 1 and (turned or max(lhs_dilation) > 1)
    if p["batch_group_count"] != 1 or (max(lhs_dilation) > 1 and not scatters):
        return None
    if scatters:  # the gradient of the data, or a transposed convolution
        before = tuple((k - 1) * d - lo for k, d, lo in zip(rhs[2:], rhs_dilation, low, strict=True))
        found = {"kind": DATA, "data": out, "filters": (rhs[1], rhs[0], *rhs[2:]), "result": lhs}
        found |= {"stride": lhs_dilation, "dilate": rhs_dilation, "low": before}
    elif groups == 1 and across:  # the gradient of the filters
        found = {"kind": FILTERS, "data": (lhs[1], lhs[0], *lhs[2:]), "filters": (out[1], out[0], *out[2:])}
        found |= {"result": (rhs[1], rhs[0], *rhs[2:]), "stride": rhs_dilation, "dilate": strides, "low": low}
    else:
        found = {"kind": FORWARD, "data": lhs, "filters": rhs, "result": out}
        found |= {"stride": strides, "dilate": rhs_dilation, "low": low}
    return {**found, "groups": groups, "stride": tuple(found["stride"]), "dilate": tuple(found["dilate"])}


def _convolution(eqn: Any, lhs: Ordered, rhs: Ordered, turned: tuple[Any, Axes, Axes] | None) -> Ordered | None:
    """Compute an equation `conv_general_dilated` by oneDNN; None if XLA should.

    `turned` is what `rhs` holds in reverse, and along which axes, where that is known. The result is an array and the
    axes by which transposing it gives the equation's value.
    """
    aval = eqn.outvars[0].aval
    p, n = eqn.params, len(aval.shape)
    if aval.dtype != np.float32 or lhs[0].dtype != np.float32 or rhs[0].dtype != np.float32 or not 3 <= n <= 5:
        return None
    spec = p["dimension_numbers"]
    source: Ordered | None = turned[:2] if turned and turned[2] == tuple(sorted(spec.rhs_spec[2:])) else None
    out = tuple(aval.shape[i] for i in spec.out_spec)
    (left, left_at), (right, right_at) = _canonical(lhs, spec.lhs_spec), _canonical(rhs, spec.rhs_spec)
    found = _match_convolution(p, left, right, out, source is not None, left_at[0] > left_at[1])
    if found is None:
        return None
    high = upper_padding(
        found["data"][2:], found["result"][2:], found["filters"][2:], found["stride"], found["dilate"], found["low"]
    )
    if high is None:
        return None
    kind = found["kind"]
    spatial = tuple(range(2, n))
    if kind == FILTERS:
        order: Axes = tuple(range(n))
        first = _channels_last(lhs, (left_at[1], left_at[0], *left_at[2:]))
        second = _channels_last(rhs, (right_at[1], right_at[0], *right_at[2:]))
        shape, place = found["filters"], (1, 0, *spatial)  # of the result's axes (N, O, *T) in (O, C, *K)
    else:
        if kind == DATA:
            if source is None:
                source = (lax.rev(rhs[0], tuple(right_at[2:])), rhs[1])
            _, at = _canonical(source, spec.rhs_spec)
            at, second = (at[1], at[0], *at[2:]), source[0]
        else:
            at, second = right_at, rhs[0]
        order = tuple(int(i) for i in np.argsort(at))
        first = _channels_last(lhs, left_at)
        shape, place = (out[0], *out[2:], out[1]), (0, n - 1, *range(1, n - 1))
    c = ConvSpec(high=high, order=order, **found)
    if c.flops() < MIN_LIBRARY_FLOPS or faulty(c) or not available():
        return None
    call = jax.ffi.ffi_call(CONVOLUTION, jax.ShapeDtypeStruct(shape, np.float32))
    axes = [0] * n
    for k, axis in enumerate(spec.out_spec):
        axes[axis] = place[k]
    return call(first, second, text=c.text()), tuple(axes)


def _product(eqn: Any, lhs: Ordered, rhs: Ordered, _: Any) -> Ordered | None:
    """Compute an equation `dot_general` that sums over leading axes, as gradients of weights do; None if XLA should."""
    (left, right), batch = eqn.params["dimension_numbers"]
    leading = tuple(range(len(left)))
    aval = eqn.outvars[0].aval
    if not leading or tuple(left) != leading or tuple(right) != leading or batch != ((), ()):
        return None
    a, b = lhs[0], rhs[0]
    if lhs[1] != tuple(range(a.ndim)) or rhs[1] != tuple(range(b.ndim)):
        return None
    if {a.dtype, b.dtype, aval.dtype} != {np.dtype(np.float32)}:
        return None
    k, m, n = (math.prod(s) for s in (a.shape[: len(left)], a.shape[len(left) :], b.shape[len(left) :]))
    if 2 * k * m * n < MIN_PRODUCT_FLOPS or not available():
        return None
    call = jax.ffi.ffi_call(PRODUCT, jax.ShapeDtypeStruct((m, n), np.float32))
    out = call(a.reshape(k, m), b.reshape(k, n), text=f"{m},{n},{k}")
    return out.reshape(aval.shape), tuple(range(len(aval.shape)))


def materialize_once(x: jax.Array) -> jax.Array:
    """The same values, which XLA computes once and keeps until all that read them have done so.

    XLA computes a value again in every loop that reads it and could take it in. Along a chain of residual layers the
    gradient of each is the sum of all later ones, so that the work grows with the square of their number.
    """
    if x.size < _MIN_SUM_ELEMENTS or not available():
        return x
    return jax.ffi.ffi_call(KEEP, jax.ShapeDtypeStruct(x.shape, x.dtype), input_output_aliases={0: 0})(x)


REWRITE_RULES = {"conv_general_dilated": _convolution, "dot_general": _product}
