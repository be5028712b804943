# Written by `python -m dualmx.namespace.stubs`. Generated, so its length has no bound.
"""Types of `mx.sym.sparse`."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ..core.argcheck import Axes, DType, Holes
from .symbol import Symbol

__all__ = [
    "ElementWiseSum", "Embedding", "FullyConnected", "LinearRegressionOutput", "LogisticRegressionOutput",
    "MAERegressionOutput", "abs", "adagrad_update", "adam_update", "add_n", "arccos", "arccosh", "arcsin", "arcsinh",
    "arctan", "arctanh", "broadcast_add", "broadcast_div", "broadcast_minus", "broadcast_mul", "broadcast_plus",
    "broadcast_sub", "cast_storage", "cbrt", "ceil", "clip", "concat", "cos", "cosh", "degrees", "dot", "elemwise_add",
    "elemwise_div", "elemwise_mul", "elemwise_sub", "exp", "expm1", "fix", "floor", "ftrl_update", "gamma", "gammaln",
    "log", "log10", "log1p", "log2", "make_loss", "mean", "negative", "norm", "radians", "relu", "retain", "rint",
    "round", "rsqrt", "sgd_mom_update", "sgd_update", "sigmoid", "sign", "sin", "sinh", "slice", "sqrt", "square",
    "stop_gradient", "sum", "tan", "tanh", "trunc", "where", "zeros_like",
]  # fmt: skip

def ElementWiseSum(
    *args: Symbol | Sequence[Symbol],
    num_args: int = 0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Sum of any number of arrays of one shape and dtype: args[0] + args[1] + ..."""

def Embedding(
    data: Symbol | None = None,
    weight: Symbol | None = None,
    input_dim: int = ...,
    output_dim: int = ...,
    dtype: Literal["float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64"] = "float32",
    sparse_grad: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Look up rows of `weight`: data (…) of ids, weight (input_dim, output_dim) -> (…, output_dim)."""

def FullyConnected(
    data: Symbol | None = None,
    weight: Symbol | None = None,
    bias: Symbol | None = None,
    num_hidden: int = ...,
    no_bias: bool = False,
    flatten: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Affine map `y = x · weightᵀ + bias`."""

def LinearRegressionOutput(
    data: Symbol | None = None,
    label: Symbol | None = None,
    grad_scale: float = 1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The data forward; backward `(data − label) · grad_scale / outputs per sample`, whatever the head gradient."""

def LogisticRegressionOutput(
    data: Symbol | None = None,
    label: Symbol | None = None,
    grad_scale: float = 1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`sigmoid(data)` forward; backward `(sigmoid(data) − label) · grad_scale / outputs per sample`."""

def MAERegressionOutput(
    data: Symbol | None = None,
    label: Symbol | None = None,
    grad_scale: float = 1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The data forward; backward `sign(data − label) · grad_scale / outputs per sample`, whatever the head gradient."""

def abs(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """|x|; derivative sign(x), 0 at 0."""

def adagrad_update(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    history: Symbol | None = None,
    lr: float = ...,
    epsilon: float = 1e-07,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """AdaGrad: `h = h + g'**2; w - lr * (g' / sqrt(h + epsilon) + wd * w)` (Duchi et al., 2011). Shapes: all equal."""

def adam_update(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    mean: Symbol | None = None,
    var: Symbol | None = None,
    lr: float = ...,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-08,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Adam with coupled decay: `w - lr * m / (sqrt(v) + epsilon)`; the caller folds bias correction into `lr`."""

def add_n(
    *args: Symbol | Sequence[Symbol],
    num_args: int = 0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Sum of any number of arrays of one shape and dtype: args[0] + args[1] + ..."""

def arccos(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Inverse cosine in radians, within [0, pi]."""

def arccosh(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Inverse hyperbolic cosine of x; nan below 1."""

def arcsin(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Inverse sine in radians, within [-pi/2, pi/2]."""

def arcsinh(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Inverse hyperbolic sine of x."""

def arctan(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Inverse tangent in radians, within [-pi/2, pi/2]."""

def arctanh(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Inverse hyperbolic tangent of x; nan outside [-1, 1]."""

def broadcast_add(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """lhs + rhs."""

def broadcast_div(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """a / b; integers truncate toward zero, and over 0 are what an infinite result becomes."""

def broadcast_minus(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """lhs - rhs."""

def broadcast_mul(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """lhs * rhs."""

def broadcast_plus(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """lhs + rhs."""

def broadcast_sub(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """lhs - rhs."""

def cast_storage(
    data: Symbol | None = None,
    stype: Literal["default", "row_sparse", "csr"] = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The same values in the storage type `stype`; from one sparse type to the other by way of the default one."""

def cbrt(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Real cube root of x."""

def ceil(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Smallest integer not below x; derivative 0."""

def clip(
    data: Symbol | None = None,
    a_min: float = ...,
    a_max: float = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Limit the elements to [a_min, a_max]: min(max(x, a_min), a_max); derivative 1 within, bounds included."""

def concat(
    *args: Symbol | Sequence[Symbol],
    num_args: int = 0,
    dim: int = 1,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Join the inputs along axis `dim`, along which their lengths add up; all other lengths are equal."""

def cos(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Cosine of x in radians."""

def cosh(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Hyperbolic cosine of x."""

def degrees(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """x radians in degrees: x * 180 / pi."""

def dot(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    forward_stype: Literal["default", "csr", "row_sparse"] | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Sum of products over the last axis of `lhs` and the first of `rhs`."""

def elemwise_add(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """lhs + rhs."""

def elemwise_div(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """a / b; integers truncate toward zero, and over 0 are what an infinite result becomes."""

def elemwise_mul(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """lhs * rhs."""

def elemwise_sub(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """lhs - rhs."""

def exp(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """e ** x."""

def expm1(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """e ** x - 1, exact near 0."""

def fix(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Nearest integer toward zero; derivative 0."""

def floor(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Largest integer not above x; derivative 0."""

def ftrl_update(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    z: Symbol | None = None,
    n: Symbol | None = None,
    lr: float = ...,
    lamda1: float = 0.01,
    beta: float = 1.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Follow the regularised leader (McMahan et al., 2013); weights with `|z| <= lamda1` become 0. Shapes: all
    equal.
    """

def gamma(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Gamma function, (x - 1)! for whole x."""

def gammaln(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """log |gamma(x)|."""

def log(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Natural logarithm of x."""

def log10(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Logarithm of x to base 10."""

def log1p(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """log(1 + x), exact near 0."""

def log2(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Logarithm of x to base 2."""

def make_loss(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """The input, as a loss: its gradient is 1 whatever gradient comes in."""

def mean(
    data: Symbol | None = None,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Mean of the elements; half precision adds up in float32."""

def negative(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """-x."""

def norm(
    data: Symbol | None = None,
    ord: int = 2,
    axis: Axes = None,
    out_dtype: DType | None = None,
    keepdims: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Norm along `axis` (all axes if None): ord 2 is sqrt(sum(x**2)), ord 1 is sum(|x|)."""

def radians(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """x degrees in radians: x * pi / 180."""

def relu(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """max(x, 0); derivative 0 at 0."""

def retain(
    data: Symbol | None = None,
    indices: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The rows `indices` of the row_sparse array `data`; all other rows become zero."""

def rint(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Nearest integer, halves down: 1.5 gives 1, -1.5 gives -2; derivative 0."""

def round(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Nearest integer, halves away from zero; derivative 0."""

def rsqrt(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """x ** -0.5."""

def sgd_mom_update(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    mom: Symbol | None = None,
    lr: float = ...,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """SGD with momentum: `m = momentum * m - lr * (g' + wd * w); w + m`. Shapes: all equal."""

def sgd_update(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    lr: float = ...,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Stochastic gradient descent: `w - lr * (g' + wd * w)`. Shapes: all equal. `lazy_update` concerns row_sparse."""

def sigmoid(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """1 / (1 + exp(-x))."""

def sign(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """-1, 0 or 1 by the sign of x; derivative 0."""

def sin(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Sine of x in radians."""

def sinh(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Hyperbolic sine of x."""

def slice(
    data: Symbol | None = None,
    begin: Holes = ...,
    end: Holes = ...,
    step: Holes = (),
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Cut out `data[begin[0]:end[0]:step[0], …]` with Python's slice rules; `None` is open, later axes are whole."""

def sqrt(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Square root of x; nan below 0, derivative inf at 0."""

def square(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """x ** 2."""

def stop_gradient(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """The input, with derivative 0."""

def sum(
    data: Symbol | None = None,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Sum of the elements; half precision adds up in float32."""

def tan(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Tangent of x in radians."""

def tanh(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Hyperbolic tangent of x."""

def trunc(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Nearest integer toward zero; derivative 0."""

def where(
    condition: Symbol | None = None,
    x: Symbol | None = None,
    y: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Choose `x` where `condition` is not 0, else `y`; all of one shape, or condition (m,) choosing rows."""

def zeros_like(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Zeros in the shape and dtype of the input."""
