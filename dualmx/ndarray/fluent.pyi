# Written by `python -m dualmx.namespace.stubs`. Generated, so its length has no bound.
"""Fluent methods of `mx.nd.NDArray`."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import jax
import numpy as np

from ..core.argcheck import Axes, DType, Holes, Shape
from .handle import Handle
from .ndarray import NDArray

_Array: TypeAlias = NDArray | np.ndarray | jax.Array

class Fluent(Handle):
    """Operators of `mx.nd` as methods."""

    def abs(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """|x|; derivative sign(x), 0 at 0."""

    def arccos(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Inverse cosine in radians, within [0, pi]."""

    def arccosh(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Inverse hyperbolic cosine of x; nan below 1."""

    def arcsin(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Inverse sine in radians, within [-pi/2, pi/2]."""

    def arcsinh(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Inverse hyperbolic sine of x."""

    def arctan(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Inverse tangent in radians, within [-pi/2, pi/2]."""

    def arctanh(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Inverse hyperbolic tangent of x; nan outside [-1, 1]."""

    def argmax(
        self,
        axis: int | None = None,
        keepdims: bool = False,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Position of the largest element along `axis`, the first one if several tie."""

    def argmax_channel(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Position of the largest element along axis 1, the first one if several tie."""

    def argmin(
        self,
        axis: int | None = None,
        keepdims: bool = False,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Position of the smallest element along `axis`, the first one if several tie."""

    def argsort(
        self,
        axis: int | None = -1,
        is_ascend: bool = True,
        dtype: Literal["float32", "float16", "float64", "int32", "int64", "uint8"] = "float32",
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Positions, as `dtype`, that sort along `axis` (of the flattened array without `axis`); equal elements keep
        their order.
        """

    def broadcast_axes(
        self,
        axis: Shape = (),
        size: Shape = (),
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Repeat `data` along the axes `axis`, which must have length 1, `size` times each."""

    def broadcast_like(
        self,
        rhs: _Array,
        lhs_axes: Axes = None,
        rhs_axes: Axes = None,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Repeat axes of length 1 of `lhs` as in `rhs`: all, or, given both, `lhs_axes` to the lengths of
        `rhs_axes`.
        """

    def broadcast_to(self, shape: Sequence[int]) -> NDArray:
        """Return the array broadcast to `shape`; a 0 keeps the array's own length, missing axes are added in front."""

    def cbrt(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Real cube root of x."""

    def ceil(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Smallest integer not below x; derivative 0."""

    def clip(
        self, a_min: float, a_max: float, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
    ) -> NDArray:
        """Limit the elements to [a_min, a_max]: min(max(x, a_min), a_max); derivative 1 within, bounds included."""

    def cos(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Cosine of x in radians."""

    def cosh(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Hyperbolic cosine of x."""

    def degrees(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """x radians in degrees: x * 180 / pi."""

    def depth_to_space(
        self, block_size: int, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
    ) -> NDArray:
        """Move channels into blocks of pixels: (n, b·b·c, h, w) -> (n, c, h·b, w·b), `b` being `block_size`."""

    def diag(
        self,
        k: int = 0,
        axis1: int = 0,
        axis2: int = 1,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Read the `k`-th diagonal, or make a matrix from it."""

    def exp(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """e ** x."""

    def expand_dims(
        self, axis: int, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
    ) -> NDArray:
        """Insert an axis of length 1 at position `axis` of the result: (2, 3) with axis=-1 -> (2, 3, 1)."""

    def expm1(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """e ** x - 1, exact near 0."""

    def fix(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Nearest integer toward zero; derivative 0."""

    def flatten(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Keep axis 0 and merge all others: (n, d1, d2, …) -> (n, d1·d2·…); a 1-d array becomes (n, 1)."""

    def flip(self, axis: Shape, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Reverse the order of elements along every axis in `axis`; an axis named twice stays as it is."""

    def floor(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Largest integer not above x; derivative 0."""

    def log(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Natural logarithm of x."""

    def log10(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Logarithm of x to base 10."""

    def log1p(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """log(1 + x), exact near 0."""

    def log2(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Logarithm of x to base 2."""

    def log_softmax(
        self,
        axis: int = -1,
        temperature: float | None = None,
        dtype: DType | None = None,
        use_length: bool = False,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """`x/t − log Σ exp(x/t)` along `axis`. Shapes: any, kept."""

    def max(
        self,
        axis: Axes = None,
        keepdims: bool = False,
        exclude: bool = False,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Largest element; every tie receives the whole gradient."""

    def mean(
        self,
        axis: Axes = None,
        keepdims: bool = False,
        exclude: bool = False,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Mean of the elements; half precision adds up in float32."""

    def min(
        self,
        axis: Axes = None,
        keepdims: bool = False,
        exclude: bool = False,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Smallest element; every tie receives the whole gradient."""

    def nanprod(
        self,
        axis: Axes = None,
        keepdims: bool = False,
        exclude: bool = False,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Product of the elements that are not nan."""

    def nansum(
        self,
        axis: Axes = None,
        keepdims: bool = False,
        exclude: bool = False,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Sum of the elements that are not nan."""

    def norm(
        self,
        ord: int = 2,
        axis: Axes = None,
        out_dtype: DType | None = None,
        keepdims: bool = False,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Norm along `axis` (all axes if None): ord 2 is sqrt(sum(x**2)), ord 1 is sum(|x|)."""

    def one_hot(
        self,
        depth: int,
        on_value: float = 1.0,
        off_value: float = 0.0,
        dtype: Literal["float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64"] = "float32",
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Encode indices (…) as (…, depth): `on_value` at the index, `off_value` elsewhere and for indices outside."""

    def ones_like(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Ones in the shape and dtype of the input."""

    def pad(
        self,
        mode: Literal["constant", "edge", "reflect"],
        pad_width: Shape,
        constant_value: float = 0.0,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Widen every axis i by `pad_width[2·i]` elements before and `pad_width[2·i+1]` after."""

    def pick(
        self,
        index: _Array,
        axis: int | None = -1,
        keepdims: bool = False,
        mode: Literal["clip", "wrap"] = "clip",
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Read one element along `axis` for every position of the other axes: data (m, n), index (m,) -> (m,)."""

    def prod(
        self,
        axis: Axes = None,
        keepdims: bool = False,
        exclude: bool = False,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Product of the elements."""

    def radians(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """x degrees in radians: x * pi / 180."""

    def rcbrt(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """x ** (-1/3), real for negative x."""

    def reciprocal(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """1 / x."""

    def relu(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """max(x, 0); derivative 0 at 0."""

    def repeat(
        self,
        repeats: int,
        axis: int | None = None,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Repeat each element `repeats` times along `axis`, or of the flattened array without `axis`."""

    def reshape_like(
        self,
        rhs: _Array,
        lhs_begin: int | None = None,
        lhs_end: int | None = None,
        rhs_begin: int | None = None,
        rhs_end: int | None = None,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Reshape `lhs` to the shape of `rhs`, or its axes [lhs_begin, lhs_end) to those [rhs_begin, rhs_end) of
        `rhs`.
        """

    def rint(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Nearest integer, halves down: 1.5 gives 1, -1.5 gives -2; derivative 0."""

    def round(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Nearest integer, halves away from zero; derivative 0."""

    def rsqrt(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """x ** -0.5."""

    def shape_array(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """The shape of the input as a vector of int64, length `data.ndim`."""

    def sigmoid(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """1 / (1 + exp(-x))."""

    def sign(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """-1, 0 or 1 by the sign of x; derivative 0."""

    def sin(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Sine of x in radians."""

    def sinh(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Hyperbolic sine of x."""

    def size_array(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """The number of elements of the input as int64, shape (1,)."""

    def slice(
        self,
        begin: Holes,
        end: Holes,
        step: Holes = (),
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Cut out `data[begin[0]:end[0]:step[0], …]` with Python's slice rules; `None` is open, later axes are
        whole.
        """

    def slice_assign(self, rhs: NDArray, begin: Holes, end: Holes, step: Holes) -> NDArray:
        """Write `rhs` to the window from `begin` to `end` in steps of `step`, and return the array."""

    def slice_assign_scalar(self, value: float, begin: Holes, end: Holes, step: Holes) -> NDArray:
        """Write the number `value` to the window from `begin` to `end` in steps of `step`, and return the array."""

    def slice_axis(
        self,
        axis: int,
        begin: int,
        end: int | None,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Cut out `begin:end` along one axis; negative positions count from the end, `end=None` is open."""

    def slice_like(
        self,
        shape_like: _Array,
        axes: Axes = (),
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Cut `data` to the leading part as long as `shape_like` along `axes` (all axes by default)."""

    def softmax(
        self,
        length: _Array | None = None,
        axis: int = -1,
        temperature: float | None = None,
        dtype: DType | None = None,
        use_length: bool = False,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """`exp(x/t) / Σ exp(x/t)` along `axis`; with `use_length`, over the first `length` elements, 0 behind them."""

    def softmin(
        self,
        axis: int = -1,
        temperature: float | None = None,
        dtype: DType | None = None,
        use_length: bool = False,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Softmax of the negated data along `axis`. Shapes: any, kept."""

    def sort(
        self,
        axis: int | None = -1,
        is_ascend: bool = True,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Sort along `axis`, or the flattened array without `axis`."""

    def space_to_depth(
        self, block_size: int, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
    ) -> NDArray:
        """Move blocks of pixels into channels: (n, c, h·b, w·b) -> (n, b·b·c, h, w), `b` being `block_size`."""

    def split(
        self,
        num_outputs: int,
        axis: int = 1,
        squeeze_axis: bool = False,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray | list[NDArray]:
        """Split `data` along `axis` into `num_outputs` parts of equal length; `squeeze_axis` drops that axis."""

    def split_v2(self, *args: Any, **kwargs: Any) -> Any:
        """Fluent form of `nd.split_v2(x, indices_or_sections, axis, squeeze_axis)`."""

    def sqrt(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Square root of x; nan below 0, derivative inf at 0."""

    def square(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """x ** 2."""

    def squeeze(
        self, axis: Axes = None, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
    ) -> NDArray:
        """Drop the axes `axis`, which must have length 1 (all such axes by default); at least one axis is left."""

    def sum(
        self,
        axis: Axes = None,
        keepdims: bool = False,
        exclude: bool = False,
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Sum of the elements; half precision adds up in float32."""

    def swapaxes(
        self, dim1: int = 0, dim2: int = 0, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
    ) -> NDArray:
        """Exchange the axes `dim1` and `dim2`."""

    def take(
        self,
        indices: _Array,
        axis: int = 0,
        mode: Literal["clip", "wrap", "raise"] = "clip",
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Select slices of `a` along `axis`: (…, n, …) with indices (k, l) -> (…, k, l, …); dtype of `a`."""

    def tan(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Tangent of x in radians."""

    def tanh(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Hyperbolic tangent of x."""

    def tile(self, reps: Shape, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Repeat the whole array `reps[i]` times along axis i; shape and `reps` are aligned at the last axis."""

    def topk(
        self,
        axis: int | None = -1,
        k: int = 1,
        ret_typ: Literal["indices", "value", "both", "mask"] = "indices",
        is_ascend: bool = False,
        dtype: Literal["float32", "float16", "float64", "int32", "int64", "uint8"] = "float32",
        out: NDArray | Sequence[NDArray] | None = None,
        name: str | None = None,
    ) -> NDArray:
        """Find the `k` largest (`is_ascend`: smallest) elements along `axis`, of the flattened array without `axis`."""

    def transpose(self, *axes: int | Sequence[int], **kwargs: Any) -> NDArray:
        """Return the array with its axes permuted (reversed without arguments)."""

    def trunc(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Nearest integer toward zero; derivative 0."""

    def zeros_like(self, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
        """Zeros in the shape and dtype of the input."""
