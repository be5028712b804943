# Written by `python -m dualmx.namespace.stubs`. Generated, so its length has no bound.
"""Types of `mx.nd.sparse`."""

from collections.abc import Sequence
from typing import TypeAlias

import jax
import numpy as np

from ..core.types import Axes, DType
from .array import NDArray

__all__ = [
    "ElementWiseSum", "abs", "adagrad_update", "add_n", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh",
    "broadcast_add", "broadcast_div", "broadcast_minus", "broadcast_mul", "broadcast_plus", "broadcast_sub", "cbrt",
    "ceil", "clip", "cos", "cosh", "degrees", "elemwise_add", "elemwise_div", "elemwise_mul", "elemwise_sub", "exp",
    "expm1", "fix", "floor", "gamma", "gammaln", "log", "log10", "log1p", "log2", "make_loss", "mean", "negative",
    "norm", "radians", "relu", "rint", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square",
    "stop_gradient", "sum", "tan", "tanh", "trunc", "zeros_like",
]  # fmt: skip

_Array: TypeAlias = NDArray | np.ndarray | jax.Array

def ElementWiseSum(
    *args: _Array | Sequence[_Array],
    num_args: int = 0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Sum of any number of arrays of one shape and dtype: args[0] + args[1] + ..."""

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
    """a / b; integers truncate toward zero."""

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

def cbrt(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Real cube root of x."""

def ceil(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Smallest integer not below x; derivative 0."""

def clip(
    data: _Array, a_min: float, a_max: float, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Limit the elements to [a_min, a_max]: min(max(x, a_min), a_max); derivative 1 within, bounds included."""

def cos(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Cosine of x in radians."""

def cosh(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Hyperbolic cosine of x."""

def degrees(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """x radians in degrees: x * 180 / pi."""

def elemwise_add(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """lhs + rhs."""

def elemwise_div(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """a / b; integers truncate toward zero."""

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

def rint(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Nearest integer, halves down: 1.5 gives 1, -1.5 gives -2; derivative 0."""

def round(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Nearest integer, halves away from zero; derivative 0."""

def rsqrt(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """x ** -0.5."""

def sigmoid(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """1 / (1 + exp(-x))."""

def sign(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """-1, 0 or 1 by the sign of x; derivative 0."""

def sin(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Sine of x in radians."""

def sinh(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Hyperbolic sine of x."""

def sqrt(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Square root of x; nan below 0, derivative inf at 0."""

def square(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """x ** 2."""

def stop_gradient(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """The input, with derivative 0."""

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

def zeros_like(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Zeros in the shape and dtype of the input."""
