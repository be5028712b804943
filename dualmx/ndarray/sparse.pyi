# Written by `python -m dualmx.namespace.stubs`. Generated, so its length has no bound.
"""Types of `mx.nd.sparse`."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import jax
import numpy as np

from ..core.argcheck import Axes, DType, Holes
from ..sparse import BaseSparseNDArray as BaseSparseNDArray
from ..sparse import CSRNDArray as CSRNDArray
from ..sparse import NotSupportedForSparseNDArray as NotSupportedForSparseNDArray
from ..sparse import RowSparseNDArray as RowSparseNDArray
from ..sparse import array as array
from ..sparse import csr_matrix as csr_matrix
from ..sparse import empty as empty
from ..sparse import row_sparse_array as row_sparse_array
from ..sparse import zeros as zeros
from .ndarray import NDArray

__all__ = [
    "BaseSparseNDArray", "CSRNDArray", "ElementWiseSum", "Embedding", "FullyConnected", "LinearRegressionOutput",
    "LogisticRegressionOutput", "MAERegressionOutput", "NotSupportedForSparseNDArray", "RowSparseNDArray", "abs",
    "adagrad_update", "adam_update", "add", "add_n", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh",
    "array", "broadcast_add", "broadcast_div", "broadcast_minus", "broadcast_mul", "broadcast_plus", "broadcast_sub",
    "cast_storage", "cbrt", "ceil", "clip", "concat", "cos", "cosh", "csr_matrix", "degrees", "divide", "dot",
    "elemwise_add", "elemwise_div", "elemwise_mul", "elemwise_sub", "empty", "exp", "expm1", "fix", "floor",
    "ftrl_update", "gamma", "gammaln", "log", "log10", "log1p", "log2", "make_loss", "mean", "multiply", "negative",
    "norm", "radians", "relu", "retain", "rint", "round", "row_sparse_array", "rsqrt", "sgd_mom_update", "sgd_update",
    "sigmoid", "sign", "sin", "sinh", "slice", "sqrt", "square", "stop_gradient", "subtract", "sum", "tan", "tanh",
    "trunc", "where", "zeros", "zeros_like",
]  # fmt: skip

_Array: TypeAlias = NDArray | np.ndarray | jax.Array

def ElementWiseSum(
    *args: _Array | Sequence[_Array],
    num_args: int = 0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Sum of any number of arrays of one shape and dtype: args[0] + args[1] + ..."""

def Embedding(
    data: _Array,
    weight: _Array,
    input_dim: int,
    output_dim: int,
    dtype: Literal["float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64"] = "float32",
    sparse_grad: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Look up rows of `weight`: data (…) of ids, weight (input_dim, output_dim) -> (…, output_dim)."""

def FullyConnected(
    data: _Array,
    weight: _Array,
    bias: _Array | None = None,
    num_hidden: int = ...,
    no_bias: bool = False,
    flatten: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Affine map `y = x · weightᵀ + bias`."""

def LinearRegressionOutput(
    data: _Array,
    label: _Array,
    grad_scale: float = 1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """The data forward; backward `(data − label) · grad_scale / outputs per sample`, whatever the head gradient."""

def LogisticRegressionOutput(
    data: _Array,
    label: _Array,
    grad_scale: float = 1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """`sigmoid(data)` forward; backward `(sigmoid(data) − label) · grad_scale / outputs per sample`."""

def MAERegressionOutput(
    data: _Array,
    label: _Array,
    grad_scale: float = 1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """The data forward; backward `sign(data − label) · grad_scale / outputs per sample`, whatever the head gradient."""

def abs(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """|x|; derivative sign(x), 0 at 0."""

def adagrad_update(
    weight: _Array,
    grad: _Array,
    history: _Array,
    lr: float,
    epsilon: float = 1e-07,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """AdaGrad: `h = h + g'**2; w - lr * (g' / sqrt(h + epsilon) + wd * w)` (Duchi et al., 2011). Shapes: all equal."""

def adam_update(
    weight: _Array,
    grad: _Array,
    mean: _Array,
    var: _Array,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-08,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Adam with coupled decay: `w - lr * m / (sqrt(v) + epsilon)`; the caller folds bias correction into `lr`."""

def add(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `add` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def add_n(
    *args: _Array | Sequence[_Array],
    num_args: int = 0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Sum of any number of arrays of one shape and dtype: args[0] + args[1] + ..."""

def arccos(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Inverse cosine in radians, within [0, pi]."""

def arccosh(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Inverse hyperbolic cosine of x; nan below 1."""

def arcsin(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Inverse sine in radians, within [-pi/2, pi/2]."""

def arcsinh(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Inverse hyperbolic sine of x."""

def arctan(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Inverse tangent in radians, within [-pi/2, pi/2]."""

def arctanh(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Inverse hyperbolic tangent of x; nan outside [-1, 1]."""

def broadcast_add(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """lhs + rhs."""

def broadcast_div(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """a / b; integers truncate toward zero, and over 0 are what an infinite result becomes."""

def broadcast_minus(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """lhs - rhs."""

def broadcast_mul(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """lhs * rhs."""

def broadcast_plus(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """lhs + rhs."""

def broadcast_sub(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """lhs - rhs."""

def cast_storage(
    data: _Array,
    stype: Literal["default", "row_sparse", "csr"],
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """The same values in the storage type `stype`; from one sparse type to the other by way of the default one."""

def cbrt(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Real cube root of x."""

def ceil(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Smallest integer not below x; derivative 0."""

def clip(
    data: _Array, a_min: float, a_max: float, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Limit the elements to [a_min, a_max]: min(max(x, a_min), a_max); derivative 1 within, bounds included."""

def concat(
    *args: _Array | Sequence[_Array],
    num_args: int = 0,
    dim: int = 1,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Join the inputs along axis `dim`, along which their lengths add up; all other lengths are equal."""

def cos(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Cosine of x in radians."""

def cosh(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Hyperbolic cosine of x."""

def degrees(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """x radians in degrees: x * 180 / pi."""

def divide(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `divide` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def dot(
    lhs: _Array,
    rhs: _Array,
    transpose_a: bool = False,
    transpose_b: bool = False,
    forward_stype: Literal["default", "csr", "row_sparse"] | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Sum of products over the last axis of `lhs` and the first of `rhs`."""

def elemwise_add(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """lhs + rhs."""

def elemwise_div(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """a / b; integers truncate toward zero, and over 0 are what an infinite result becomes."""

def elemwise_mul(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """lhs * rhs."""

def elemwise_sub(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """lhs - rhs."""

def exp(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """e ** x."""

def expm1(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """e ** x - 1, exact near 0."""

def fix(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Nearest integer toward zero; derivative 0."""

def floor(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Largest integer not above x; derivative 0."""

def ftrl_update(
    weight: _Array,
    grad: _Array,
    z: _Array,
    n: _Array,
    lr: float,
    lamda1: float = 0.01,
    beta: float = 1.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Follow the regularised leader (McMahan et al., 2013); weights with `|z| <= lamda1` become 0. Shapes: all
    equal.
    """

def gamma(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Gamma function, (x - 1)! for whole x."""

def gammaln(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """log |gamma(x)|."""

def log(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Natural logarithm of x."""

def log10(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Logarithm of x to base 10."""

def log1p(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """log(1 + x), exact near 0."""

def log2(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Logarithm of x to base 2."""

def make_loss(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """The input, as a loss: its gradient is 1 whatever gradient comes in."""

def mean(
    data: _Array,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Mean of the elements; half precision adds up in float32."""

def multiply(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `multiply` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def negative(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """-x."""

def norm(
    data: _Array,
    ord: int = 2,
    axis: Axes = None,
    out_dtype: DType | None = None,
    keepdims: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Norm along `axis` (all axes if None): ord 2 is sqrt(sum(x**2)), ord 1 is sum(|x|)."""

def radians(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """x degrees in radians: x * pi / 180."""

def relu(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """max(x, 0); derivative 0 at 0."""

def retain(
    data: _Array, indices: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """The rows `indices` of the row_sparse array `data`; all other rows become zero."""

def rint(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Nearest integer, halves down: 1.5 gives 1, -1.5 gives -2; derivative 0."""

def round(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Nearest integer, halves away from zero; derivative 0."""

def rsqrt(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """x ** -0.5."""

def sgd_mom_update(
    weight: _Array,
    grad: _Array,
    mom: _Array,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """SGD with momentum: `m = momentum * m - lr * (g' + wd * w); w + m`. Shapes: all equal."""

def sgd_update(
    weight: _Array,
    grad: _Array,
    lr: float,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Stochastic gradient descent: `w - lr * (g' + wd * w)`. Shapes: all equal. `lazy_update` concerns row_sparse."""

def sigmoid(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """1 / (1 + exp(-x))."""

def sign(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """-1, 0 or 1 by the sign of x; derivative 0."""

def sin(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Sine of x in radians."""

def sinh(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Hyperbolic sine of x."""

def slice(
    data: _Array,
    begin: Holes,
    end: Holes,
    step: Holes = (),
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Cut out `data[begin[0]:end[0]:step[0], …]` with Python's slice rules; `None` is open, later axes are whole."""

def sqrt(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Square root of x; nan below 0, derivative inf at 0."""

def square(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """x ** 2."""

def stop_gradient(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """The input, with derivative 0."""

def subtract(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `subtract` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def sum(
    data: _Array,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Sum of the elements; half precision adds up in float32."""

def tan(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Tangent of x in radians."""

def tanh(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Hyperbolic tangent of x."""

def trunc(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Nearest integer toward zero; derivative 0."""

def where(
    condition: _Array, x: _Array, y: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Choose `x` where `condition` is not 0, else `y`; all of one shape, or condition (m,) choosing rows."""

def zeros_like(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Zeros in the shape and dtype of the input."""
