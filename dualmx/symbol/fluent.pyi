# Written by `python -m dualmx.namespace.stubs`. Generated, so its length has no bound.
"""Fluent methods of `mx.sym.Symbol`."""

from collections.abc import Mapping
from typing import Any, Literal

from ..core.argcheck import Axes, DType, Holes, Shape
from .symbol import Symbol

class Fluent:
    """Operators of `mx.sym` as methods."""

    def abs(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """|x|; derivative sign(x), 0 at 0."""

    def arccos(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Inverse cosine in radians, within [0, pi]."""

    def arccosh(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Inverse hyperbolic cosine of x; nan below 1."""

    def arcsin(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Inverse sine in radians, within [-pi/2, pi/2]."""

    def arcsinh(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Inverse hyperbolic sine of x."""

    def arctan(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Inverse tangent in radians, within [-pi/2, pi/2]."""

    def arctanh(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Inverse hyperbolic tangent of x; nan outside [-1, 1]."""

    def argmax(
        self,
        axis: int | None = None,
        keepdims: bool = False,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Position of the largest element along `axis`, the first one if several tie."""

    def argmax_channel(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Position of the largest element along axis 1, the first one if several tie."""

    def argmin(
        self,
        axis: int | None = None,
        keepdims: bool = False,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Position of the smallest element along `axis`, the first one if several tie."""

    def argsort(
        self,
        axis: int | None = -1,
        is_ascend: bool = True,
        dtype: Literal["float32", "float16", "float64", "int32", "int64", "uint8"] = "float32",
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Positions, as `dtype`, that sort along `axis` (of the flattened array without `axis`); equal elements keep
        their order.
        """

    def astype(self, dtype: Any, **kwargs: Any) -> Symbol:
        """Fluent form of `sym.cast(x, dtype)`."""

    def broadcast_axes(
        self,
        axis: Shape = (),
        size: Shape = (),
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Repeat `data` along the axes `axis`, which must have length 1, `size` times each."""

    def broadcast_like(
        self,
        rhs: Symbol | None = None,
        lhs_axes: Axes = None,
        rhs_axes: Axes = None,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Repeat axes of length 1 of `lhs` as in `rhs`: all, or, given both, `lhs_axes` to the lengths of
        `rhs_axes`.
        """

    def broadcast_to(
        self, shape: Shape = (), name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
    ) -> Symbol:
        """Repeat axes of length 1 so that the result has `shape`; a 0 in `shape` keeps the length of the input."""

    def cbrt(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Real cube root of x."""

    def ceil(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Smallest integer not below x; derivative 0."""

    def clip(
        self,
        a_min: float = ...,
        a_max: float = ...,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Limit the elements to [a_min, a_max]: min(max(x, a_min), a_max); derivative 1 within, bounds included."""

    def cos(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Cosine of x in radians."""

    def cosh(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Hyperbolic cosine of x."""

    def degrees(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """x radians in degrees: x * 180 / pi."""

    def depth_to_space(
        self, block_size: int = ..., name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
    ) -> Symbol:
        """Move channels into blocks of pixels: (n, b·b·c, h, w) -> (n, c, h·b, w·b), `b` being `block_size`."""

    def diag(self, k: int = 0, **kwargs: Any) -> Symbol:
        """Fluent form of `sym.diag(x, k)`."""

    def exp(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """e ** x."""

    def expand_dims(self, axis: int, inplace: bool = False, **kwargs: Any) -> Symbol:
        """Fluent form of `sym.expand_dims(x, axis)`."""

    def expm1(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """e ** x - 1, exact near 0."""

    def fix(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Nearest integer toward zero; derivative 0."""

    def flatten(self, inplace: bool = False, **kwargs: Any) -> Symbol:
        """Fluent form of `sym.flatten(x)`."""

    def flip(
        self, axis: Shape = ..., name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
    ) -> Symbol:
        """Reverse the order of elements along every axis in `axis`; an axis named twice stays as it is."""

    def floor(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Largest integer not above x; derivative 0."""

    def log(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Natural logarithm of x."""

    def log10(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Logarithm of x to base 10."""

    def log1p(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """log(1 + x), exact near 0."""

    def log2(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Logarithm of x to base 2."""

    def log_softmax(
        self,
        axis: int = -1,
        temperature: float | None = None,
        dtype: DType | None = None,
        use_length: bool = False,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """`x/t − log Σ exp(x/t)` along `axis`. Shapes: any, kept."""

    def max(
        self,
        axis: Axes = None,
        keepdims: bool = False,
        exclude: bool = False,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Largest element; every tie receives the whole gradient."""

    def mean(
        self,
        axis: Axes = None,
        keepdims: bool = False,
        exclude: bool = False,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Mean of the elements; half precision adds up in float32."""

    def min(
        self,
        axis: Axes = None,
        keepdims: bool = False,
        exclude: bool = False,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Smallest element; every tie receives the whole gradient."""

    def nanprod(
        self,
        axis: Axes = None,
        keepdims: bool = False,
        exclude: bool = False,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Product of the elements that are not nan."""

    def nansum(
        self,
        axis: Axes = None,
        keepdims: bool = False,
        exclude: bool = False,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Sum of the elements that are not nan."""

    def norm(
        self,
        ord: int = 2,
        axis: Axes = None,
        out_dtype: DType | None = None,
        keepdims: bool = False,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Norm along `axis` (all axes if None): ord 2 is sqrt(sum(x**2)), ord 1 is sum(|x|)."""

    def one_hot(
        self,
        depth: int = ...,
        on_value: float = 1.0,
        off_value: float = 0.0,
        dtype: Literal["float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64"] = "float32",
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Encode indices (…) as (…, depth): `on_value` at the index, `off_value` elsewhere and for indices outside."""

    def ones_like(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Ones in the shape and dtype of the input."""

    def pad(
        self,
        mode: Literal["constant", "edge", "reflect"] = ...,
        pad_width: Shape = ...,
        constant_value: float = 0.0,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Widen every axis i by `pad_width[2·i]` elements before and `pad_width[2·i+1]` after."""

    def pick(
        self,
        index: Symbol | None = None,
        axis: int | None = -1,
        keepdims: bool = False,
        mode: Literal["clip", "wrap"] = "clip",
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Read one element along `axis` for every position of the other axes: data (m, n), index (m,) -> (m,)."""

    def prod(
        self,
        axis: Axes = None,
        keepdims: bool = False,
        exclude: bool = False,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Product of the elements."""

    def radians(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """x degrees in radians: x * pi / 180."""

    def rcbrt(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """x ** (-1/3), real for negative x."""

    def reciprocal(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """1 / x."""

    def relu(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """max(x, 0); derivative 0 at 0."""

    def repeat(
        self,
        repeats: int = ...,
        axis: int | None = None,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Repeat each element `repeats` times along `axis`, or of the flattened array without `axis`."""

    def reshape(self, *shape: Any, **kwargs: Any) -> Symbol:
        """Fluent form of `sym.reshape(x, shape=…)`; the lengths may be separate arguments."""

    def reshape_like(
        self,
        rhs: Symbol | None = None,
        lhs_begin: int | None = None,
        lhs_end: int | None = None,
        rhs_begin: int | None = None,
        rhs_end: int | None = None,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Reshape `lhs` to the shape of `rhs`, or its axes [lhs_begin, lhs_end) to those [rhs_begin, rhs_end) of
        `rhs`.
        """

    def rint(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Nearest integer, halves down: 1.5 gives 1, -1.5 gives -2; derivative 0."""

    def round(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Nearest integer, halves away from zero; derivative 0."""

    def rsqrt(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """x ** -0.5."""

    def shape_array(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """The shape of the input as a vector of int64, length `data.ndim`."""

    def sigmoid(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """1 / (1 + exp(-x))."""

    def sign(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """-1, 0 or 1 by the sign of x; derivative 0."""

    def sin(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Sine of x in radians."""

    def sinh(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Hyperbolic sine of x."""

    def size_array(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """The number of elements of the input as int64, shape (1,)."""

    def slice(
        self,
        begin: Holes = ...,
        end: Holes = ...,
        step: Holes = (),
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Cut out `data[begin[0]:end[0]:step[0], …]` with Python's slice rules; `None` is open, later axes are
        whole.
        """

    def slice_axis(
        self,
        axis: int = ...,
        begin: int = ...,
        end: int | None = ...,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Cut out `begin:end` along one axis; negative positions count from the end, `end=None` is open."""

    def slice_like(
        self,
        shape_like: Symbol | None = None,
        axes: Axes = (),
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Cut `data` to the leading part as long as `shape_like` along `axes` (all axes by default)."""

    def softmax(
        self,
        length: Symbol | None = None,
        axis: int = -1,
        temperature: float | None = None,
        dtype: DType | None = None,
        use_length: bool = False,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """`exp(x/t) / Σ exp(x/t)` along `axis`; with `use_length`, over the first `length` elements, 0 behind them."""

    def softmin(
        self,
        axis: int = -1,
        temperature: float | None = None,
        dtype: DType | None = None,
        use_length: bool = False,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Softmax of the negated data along `axis`. Shapes: any, kept."""

    def sort(
        self,
        axis: int | None = -1,
        is_ascend: bool = True,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Sort along `axis`, or the flattened array without `axis`."""

    def space_to_depth(
        self, block_size: int = ..., name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
    ) -> Symbol:
        """Move blocks of pixels into channels: (n, c, h·b, w·b) -> (n, b·b·c, h, w), `b` being `block_size`."""

    def split(
        self,
        num_outputs: int = ...,
        axis: int = 1,
        squeeze_axis: bool = False,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Split `data` along `axis` into `num_outputs` parts of equal length; `squeeze_axis` drops that axis."""

    def split_v2(self, *args: Any, **kwargs: Any) -> Symbol:
        """Fluent form of `sym.split_v2(x, indices_or_sections, axis, squeeze_axis)`."""

    def sqrt(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Square root of x; nan below 0, derivative inf at 0."""

    def square(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """x ** 2."""

    def squeeze(self, axis: Any = None, inplace: bool = False, **kwargs: Any) -> Symbol:
        """Fluent form of `sym.squeeze(x, axis)`."""

    def sum(
        self,
        axis: Axes = None,
        keepdims: bool = False,
        exclude: bool = False,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Sum of the elements; half precision adds up in float32."""

    def swapaxes(
        self,
        dim1: int = 0,
        dim2: int = 0,
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Exchange the axes `dim1` and `dim2`."""

    def take(
        self,
        indices: Symbol | None = None,
        axis: int = 0,
        mode: Literal["clip", "wrap", "raise"] = "clip",
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Select slices of `a` along `axis`: (…, n, …) with indices (k, l) -> (…, k, l, …); dtype of `a`."""

    def tan(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Tangent of x in radians."""

    def tanh(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Hyperbolic tangent of x."""

    def tile(
        self, reps: Shape = ..., name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
    ) -> Symbol:
        """Repeat the whole array `reps[i]` times along axis i; shape and `reps` are aligned at the last axis."""

    def topk(
        self,
        axis: int | None = -1,
        k: int = 1,
        ret_typ: Literal["indices", "value", "both", "mask"] = "indices",
        is_ascend: bool = False,
        dtype: Literal["float32", "float16", "float64", "int32", "int64", "uint8"] = "float32",
        name: str | None = None,
        attr: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Symbol:
        """Find the `k` largest (`is_ascend`: smallest) elements along `axis`, of the flattened array without `axis`."""

    def transpose(self, *axes: Any, **kwargs: Any) -> Symbol:
        """Fluent form of `sym.transpose(x, axes=…)`; the axes may be separate arguments."""

    def trunc(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Nearest integer toward zero; derivative 0."""

    def zeros_like(self, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        """Zeros in the shape and dtype of the input."""
