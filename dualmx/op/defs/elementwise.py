"""Unary operators: rounding, roots, logarithms, trigonometry, activations, casts; and the sharding constraint."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.scipy import special
from jax.sharding import NamedSharding, PartitionSpec

from ...core.dtypes import is_float
from ...core.errors import ArgumentError, DtypeError
from ..lowering_context import REMAT_NAME, device_grid, mesh
from ..registry import op
from ..runtime_scalars import Params, define_runtime_form, faithful, survives_float32, typed
from ..schema import ABSENT, Count, DType, Key, Positive, Tensor, Train, UntypedTensor, When
from ..shape_rules import convert, merge_shapes, need_float, same_shape, through_float, typed_scalar, widened
from ..spatial import check_float, known, widen
from ..traits import CONSTANT, NO_TRAITS, Layer, Quantized, StorageRule, Traits, stored

Map = Callable[[jax.Array], jax.Array]

KEEPS_ZEROS = stored(StorageRule.KEEPS_ZEROS)


def unary(
    name: str, fn: Map, doc: str, *aliases: str, output: str = "output", traits: Traits = NO_TRAITS, method: str = ""
) -> None:
    """Register `name`: `fn` on every element, the result, called `output`, in the dtype of the input."""

    def body(data: Tensor) -> jax.Array:
        return fn(data)

    body.__doc__ = f"{doc}\n\n    data: any shape and dtype; the result has the same."
    op(name=name, aliases=aliases, output_names=(output,), traits=traits, method=method)(body)


def sparse_too(name: str, fn: Map, doc: str, *aliases: str, traits: Traits = NO_TRAITS) -> None:
    """Register `name`, MXNet's second name of it for sparse arrays, and, if it is public, a method."""
    method = "" if name.startswith("_") else name
    unary(name, fn, doc, f"_sparse_{name}", *aliases, traits=traits, method=method)


def _with_slope(fn: Map, slope: Map) -> Map:
    """Give `fn` the derivative `slope(x)`."""
    wrapped = jax.custom_jvp(fn)
    wrapped.defjvps(lambda t, y, x: t * slope(x))
    return wrapped


def sign(x: jax.Array) -> jax.Array:
    """-1, 0 or 1; 0 for nan."""
    positive = (x > 0).astype(x.dtype)
    return positive if jnp.issubdtype(x.dtype, jnp.unsignedinteger) else positive - (x < 0).astype(x.dtype)


absolute = _with_slope(jnp.abs, sign)


@jax.custom_jvp
def relu(x: jax.Array) -> jax.Array:
    """max(x, 0) with derivative 0 at 0."""
    return jnp.maximum(x, jnp.zeros((), x.dtype))


relu.defjvps(lambda t, y, x: jnp.where(x > 0, t, jnp.zeros_like(t)))


def rint(x: jax.Array) -> jax.Array:
    """Round to the nearest integer, halves down."""
    low = jnp.floor(x)
    return jnp.where(x - low > 0.5, low + 1, low)


def log2(x: jax.Array) -> jax.Array:
    """Logarithm to base 2, whole for powers of 2: integers are cut, so that a bit less would be one less."""
    y = jnp.log2(x)
    rounded = jnp.round(y)
    exact = jnp.isfinite(rounded) & (jnp.power(jnp.asarray(2, x.dtype), rounded) == x)
    return y + lax.stop_gradient(jnp.where(exact, rounded - y, jnp.zeros_like(y)))


def _floats_only(fn: Map) -> Map:
    """Rounding leaves integers as they are."""
    return lambda x: fn(x) if is_float(np.dtype(x.dtype)) else x


def _bool_as_int(fn: Map) -> Map:
    """Arithmetic without a bool form works on 0 and 1."""
    return lambda x: fn(x.astype(jnp.int8)) != 0 if x.dtype == jnp.bool_ else fn(x)


softsign = _with_slope(lambda x: x / (1 + jnp.abs(x)), lambda x: 1 / jnp.square(1 + absolute(x)))


def _gamma(x: jax.Array) -> jax.Array:
    """Gamma function, whole for whole numbers: integers are cut, so that a bit less would be one less."""
    y = special.gamma(x)
    return jnp.where((x > 0) & (x == jnp.round(x)), jnp.round(y), y)


tgamma = _with_slope(_gamma, lambda x: special.gamma(x) * special.digamma(x))

EXACT: tuple[tuple[str, Map, str], ...] = (
    ("abs", absolute, "|x|; derivative sign(x), 0 at 0."),
    ("square", lambda x: x * x, "x ** 2."),
    ("relu", relu, "max(x, 0); derivative 0 at 0."),
)
FLAT: tuple[tuple[str, Map, str], ...] = (
    ("sign", _bool_as_int(sign), "-1, 0 or 1 by the sign of x; derivative 0."),
    ("round", _floats_only(lax.round), "Nearest integer, halves away from zero; derivative 0."),
    ("rint", _floats_only(rint), "Nearest integer, halves down: 1.5 gives 1, -1.5 gives -2; derivative 0."),
    ("fix", _floats_only(jnp.trunc), "Nearest integer toward zero; derivative 0."),
    ("trunc", _floats_only(jnp.trunc), "Nearest integer toward zero; derivative 0."),
    ("ceil", _floats_only(jnp.ceil), "Smallest integer not below x; derivative 0."),
    ("floor", _floats_only(jnp.floor), "Largest integer not above x; derivative 0."),
)
SMOOTH: tuple[tuple[str, Map, str], ...] = (
    ("rsqrt", lax.rsqrt, "x ** -0.5."),
    ("exp", jnp.exp, "e ** x."),
    ("log", jnp.log, "Natural logarithm of x."),
    ("log10", jnp.log10, "Logarithm of x to base 10."),
    ("log2", log2, "Logarithm of x to base 2."),
    ("cos", jnp.cos, "Cosine of x in radians."),
    ("arccos", jnp.arccos, "Inverse cosine in radians, within [0, pi]."),
    ("cosh", jnp.cosh, "Hyperbolic cosine of x."),
    ("arccosh", jnp.arccosh, "Inverse hyperbolic cosine of x; nan below 1."),
    ("sigmoid", jax.nn.sigmoid, "1 / (1 + exp(-x))."),
)
# Likewise, and 0 at 0.
SMOOTH_FROM_ZERO: tuple[tuple[str, Map, str], ...] = (
    ("sqrt", jnp.sqrt, "Square root of x; nan below 0, derivative inf at 0."),
    ("cbrt", jnp.cbrt, "Real cube root of x."),
    ("expm1", jnp.expm1, "e ** x - 1, exact near 0."),
    ("log1p", jnp.log1p, "log(1 + x), exact near 0."),
    ("sin", jnp.sin, "Sine of x in radians."),
    ("tan", jnp.tan, "Tangent of x in radians."),
    ("arcsin", jnp.arcsin, "Inverse sine in radians, within [-pi/2, pi/2]."),
    ("arctan", jnp.arctan, "Inverse tangent in radians, within [-pi/2, pi/2]."),
    ("sinh", jnp.sinh, "Hyperbolic sine of x."),
    ("tanh", jnp.tanh, "Hyperbolic tangent of x."),
    ("arcsinh", jnp.arcsinh, "Inverse hyperbolic sine of x."),
    ("arctanh", jnp.arctanh, "Inverse hyperbolic tangent of x; nan outside [-1, 1]."),
    ("degrees", lambda x: x * (180 / math.pi), "x radians in degrees: x * 180 / pi."),
    ("radians", lambda x: x * (math.pi / 180), "x degrees in radians: x * pi / 180."),
)
# name, function, formula, MXNet's further names
PLAIN: tuple[tuple[Any, ...], ...] = (
    ("softsign", through_float(softsign), "x / (1 + |x|)."),
    ("erf", through_float(lax.erf), "Error function: 2 / sqrt(pi) * integral of exp(-t**2) from 0 to x.", "_npx_erf"),
    ("erfinv", through_float(widened(lax.erf_inv)), "Inverse of the error function on (-1, 1).", "_npx_erfinv"),
    ("gamma", through_float(widened(tgamma)), "Gamma function, (x - 1)! for whole x.", "_npx_gamma", "_sparse_gamma"),
    ("gammaln", through_float(widened(lax.lgamma)), "log |gamma(x)|.", "_npx_gammaln", "_sparse_gammaln"),
    ("_copyto", lambda x: x, "The input itself.", "_npi_copyto"),
    ("_CrossDeviceCopy", lambda x: x, "The input itself; graphs have it where a value moves between devices."),
)

# What NumPy mode calls otherwise, or does not have.
NUMPY_NAMES: dict[str, tuple[str, ...]] = {
    "abs": ("_npi_absolute",), "relu": (), "round": (), "rsqrt": (), "sigmoid": (),
}  # fmt: skip


def _numpy(name: str) -> tuple[str, ...]:
    return NUMPY_NAMES.get(name, (f"_npi_{name}",))


for _name, _fn, _doc in EXACT:
    sparse_too(_name, _bool_as_int(_fn), _doc, *_numpy(_name), traits=KEEPS_ZEROS)
for _name, _fn, _doc in FLAT:
    sparse_too(_name, _fn, _doc, *_numpy(_name), traits=stored(StorageRule.KEEPS_ZEROS, is_constant=True))
for _name, _fn, _doc in SMOOTH:
    sparse_too(_name, through_float(_fn), _doc, *_numpy(_name))
for _name, _fn, _doc in SMOOTH_FROM_ZERO:
    sparse_too(_name, through_float(_fn), _doc, *_numpy(_name), traits=KEEPS_ZEROS)
for _name, _fn, _doc, *_aliases in PLAIN:
    unary(_name, _fn, _doc, *_aliases)
unary("negative", _bool_as_int(jnp.negative), "-x.", "_sparse_negative", "_npi_negative", traits=KEEPS_ZEROS)
unary("reciprocal", through_float(lambda x: 1 / x), "1 / x.", "_npi_reciprocal", method="reciprocal")
unary("rcbrt", through_float(lambda x: 1 / jnp.cbrt(x)), "x ** (-1/3), real for negative x.", method="rcbrt")
unary("_copy", lambda x: x, "The input itself.", "identity", traits=KEEPS_ZEROS)
unary(
    "BlockGrad", lax.stop_gradient, "The input, with derivative 0.", "stop_gradient", "_sparse_stop_gradient",
    traits=stored(StorageRule.PASSES_THROUGH, is_constant=True),
)  # fmt: skip
unary(
    "zeros_like", jnp.zeros_like, "Zeros in the shape and dtype of the input.", "_sparse_zeros_like",
    traits=stored(StorageRule.NO_ELEMENTS, is_constant=True), method="zeros_like",
)  # fmt: skip
unary("ones_like", jnp.ones_like, "Ones in the shape and dtype of the input.", traits=CONSTANT, method="ones_like")
_doc = "1 where x is 0, 0 elsewhere, in the dtype of x."
unary("logical_not", lambda x: (x == 0).astype(x.dtype), _doc, traits=CONSTANT)


@jax.custom_vjp
def _loss(x: jax.Array) -> jax.Array:
    return x


_loss.defvjp(lambda x: (x, x), lambda x, head: (jnp.ones_like(x),))
unary(
    "make_loss", _loss, "The input, as a loss: its gradient is 1 whatever gradient comes in.", "_sparse_make_loss",
    output="loss", traits=stored(StorageRule.KEEPS_ZEROS, is_loss=True),
)  # fmt: skip


def _straight_through(fn: Map) -> Map:
    """Give `fn` the derivative 1."""
    return _with_slope(fn, jnp.ones_like)


for _name, _fn, _doc in (
    ("round", _floats_only(_straight_through(lambda x: lax.round(x))), "Nearest integer, halves away from zero"),
    ("sign", _bool_as_int(_straight_through(sign)), "-1, 0 or 1 by the sign of x"),
):
    _doc = f"{_doc}, with derivative 1 (straight-through estimator)."
    sparse_too(f"_contrib_{_name}_ste", _fn, _doc, traits=KEEPS_ZEROS)


@op(name="Cast", aliases=("cast", "_npi_cast", "_npx_cast"), traits=Traits(is_cast=True))
def cast(data: Tensor, *, dtype: DType) -> jax.Array:
    """Convert the elements to `dtype`; floats truncate toward zero when they become integers.

    data: any shape and dtype; the result has the same shape.
    """
    return convert(data, dtype)


@op(name="amp_cast", traits=Traits(is_cast=True, is_amp_cast=True))
def amp_cast(data: Tensor, *, dtype: DType) -> jax.Array:
    """Convert floating-point data to `dtype` and leave integers alone; inserted by mixed precision.

    data: any shape and dtype; the result has the same shape.
    """
    return data.astype(dtype) if is_float(np.dtype(data.dtype)) else data


@op(name="amp_multicast", outputs=lambda p: p.num_outputs, traits=Traits(is_amp_cast=True))
def amp_multicast(*data: UntypedTensor, num_outputs: Positive, cast_narrow: bool = False) -> tuple[jax.Array, ...]:
    """Convert floating-point inputs to their widest dtype, or the narrowest with `cast_narrow`; integers stay.

    data: arrays of any shapes; as many results in the same shapes.
    """
    sizes = [x.dtype for x in data if is_float(np.dtype(x.dtype))]
    if not sizes:
        return data
    chosen = (min if cast_narrow else max)(sizes, key=lambda d: d.itemsize)
    return tuple(x.astype(chosen) if is_float(np.dtype(x.dtype)) else x for x in data)


@op(name="clip", aliases=("_npi_clip", "_sparse_clip"), traits=stored(StorageRule.CLIP), method="clip")
def clip(data: Tensor, *, a_min: float, a_max: float) -> jax.Array:
    """Limit the elements to [a_min, a_max]: min(max(x, a_min), a_max); derivative 1 within, bounds included.

    data: any shape and dtype; the result has the same. The bounds are converted to the dtype of `data`.
    """
    dtype = np.dtype(data.dtype)
    if not is_float(dtype) and dtype != np.bool_:
        info = np.iinfo(dtype)
        a_min, a_max = max(a_min, info.min), min(a_max, info.max)
    return _between(data, typed_scalar("clip", data, a_min), typed_scalar("clip", data, a_max))


def _between(data: jax.Array, low: Any, high: Any) -> jax.Array:
    return jnp.where(data > high, high, jnp.where(data < low, low, data))


def _clip_fits(params: Params, shape: tuple[int, ...], dtype: np.dtype) -> bool:
    low, high = params["a_min"], params["a_max"]
    if is_float(dtype):
        return faithful(low, dtype) and faithful(high, dtype)
    if dtype == np.bool_:
        return False
    info = np.iinfo(dtype)
    return (low <= info.min or survives_float32(low, dtype)) and (high >= info.max or survives_float32(high, dtype))


def _runtime_clip(data: jax.Array, *, a_min: jax.Array, a_max: jax.Array) -> jax.Array:
    return _between(data, typed(a_min, data.dtype), typed(a_max, data.dtype))


define_runtime_form(clip, "a_min", "a_max", fits=_clip_fits, body=_runtime_clip)


@op(name="hard_sigmoid")
def hard_sigmoid(data: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> jax.Array:
    """Piecewise linear sigmoid: min(max(alpha * x + beta, 0), 1); derivative alpha strictly inside, else 0.

    data: any shape, floating-point; the result has the same.

    Raises:
        ArgumentError: integer data.
    """
    need_float("hard_sigmoid", data=data)
    line = data * jnp.asarray(alpha, data.dtype) + jnp.asarray(beta, data.dtype)
    return jnp.where(line <= 0, jnp.zeros_like(line), jnp.where(line >= 1, jnp.ones_like(line), line))


def _line_fits(params: Params, shape: tuple[int, ...], dtype: np.dtype) -> bool:
    return is_float(dtype) and faithful(params["alpha"], dtype) and faithful(params["beta"], dtype)


define_runtime_form(hard_sigmoid, "alpha", "beta", fits=_line_fits)


@op(name="smooth_l1", aliases=("_npx_smooth_l1",))
def smooth_l1(data: Tensor, *, scalar: float = 1.0) -> jax.Array:
    """Smooth absolute value: (s x)**2 / 2 where |x| < 1 / s**2, else |x| - 0.5 / s**2, with s = `scalar`.

    data: any shape and dtype; the result has the same. Source: R. Girshick, Fast R-CNN, 2015.
    """
    return _smooth(data, **_parabola({"scalar": scalar}))


def _parabola(params: Params) -> dict[str, float]:
    """Half the curvature of smooth_l1 around 0, and where it ends."""
    square = params["scalar"] * params["scalar"]
    return {"half": 0.5 * square, "edge": 1 / square if square else math.inf}


def _smooth(data: jax.Array, *, half: Any, edge: Any, scalar: Any = None) -> jax.Array:
    def value(x: jax.Array) -> jax.Array:
        size, bend, end = absolute(x), jnp.asarray(half, x.dtype), jnp.asarray(edge, x.dtype)
        return jnp.where(size < end, bend * x * x, size - jnp.asarray(0.5 * edge, x.dtype))

    return through_float(value)(data)


def _parabola_fits(params: Params, shape: tuple[int, ...], dtype: np.dtype) -> bool:
    wide = dtype if is_float(dtype) else np.dtype(np.float64)
    return all(faithful(n, wide) for n in _parabola(params).values())


define_runtime_form(smooth_l1, "scalar", fits=_parabola_fits, body=_smooth, derived=_parabola)


@op(name="_contrib_quadratic")
def quadratic(data: Tensor, *, a: float = 0.0, b: float = 0.0, c: float = 0.0) -> jax.Array:
    """a x**2 + b x + c.

    data: any shape and dtype; the result has the same.
    """
    return through_float(lambda x: (a * x + b) * x + c)(data)


@op(name="_contrib_gradientmultiplier")
def gradient_multiplier(data: Tensor, *, scalar: float = 1.0, is_int: bool = True) -> jax.Array:
    """The input, with derivative `scalar`; a negative one reverses gradients.

    data: any shape and dtype; the result has the same.
    """
    return _with_slope(lambda x: x, lambda x: jnp.full_like(x, scalar))(data)


define_runtime_form(
    gradient_multiplier, "scalar", fits=lambda params, _, dtype: is_float(dtype) and faithful(params["scalar"], dtype)
)


@op(name="_contrib_div_sqrt_dim")
def div_sqrt_dim(data: Tensor) -> jax.Array:
    """x / sqrt(n), n being the length of the last axis: the scaling of dot-product attention.

    data: any shape and dtype; the result has the same.
    """
    return through_float(lambda x: x / math.sqrt(data.shape[-1]))(data)


@op(name="shape_array", aliases=("_npx_shape_array",), traits=CONSTANT, method="shape_array")
def shape_array(data: Tensor) -> jax.Array:
    """The shape of the input as a vector of int64, length `data.ndim`."""
    return jnp.asarray(np.asarray(data.shape, np.int64))


@op(name="size_array", traits=CONSTANT, method="size_array")
def size_array(data: Tensor) -> jax.Array:
    """The number of elements of the input as int64, shape (1,)."""
    return jnp.asarray(np.asarray([data.size], np.int64))


@op(name="_identity_with_attr_like_rhs", complete=same_shape("_identity_with_attr_like_rhs", "lhs", "rhs"))
def identity_like(lhs: Tensor, rhs: Tensor) -> jax.Array:
    """The first input, which must have the shape and dtype of the second; derivative 0 for the second."""
    merge_shapes("_identity_with_attr_like_rhs", {"lhs": lhs.shape, "rhs": rhs.shape})
    return lhs


def _complete_add_n(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    merged = merge_shapes("add_n", shapes)
    return {} if merged is None else {f"arg{i}": merged for i in range(p.num_args)}


@op(
    name="add_n",
    aliases=("ElementWiseSum", "_sparse_ElementWiseSum", "_sparse_add_n"),
    complete=_complete_add_n,
    traits=stored(StorageRule.ADD_ALL),
)
def add_n(*args: Tensor, num_args: Count = 0) -> jax.Array:
    """Sum of any number of arrays of one shape and dtype: args[0] + args[1] + ...

    Raises:
        ArgumentError: no array, or arrays of different shapes.
    """
    if not args:
        raise ArgumentError("add_n: got no array: expected at least one")
    merge_shapes("add_n", {f"arg{i}": x.shape for i, x in enumerate(args)})
    total = args[0]
    for x in args[1:]:
        total = jnp.add(total, x)
    return total


_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def _relu(x: jax.Array) -> jax.Array:
    # The comparison makes the gradient at 0 equal 0.
    return jnp.where(x > 0, x, 0)


def _softrelu(x: jax.Array) -> jax.Array:
    return jax.nn.softplus(x)


def _mish(x: jax.Array) -> jax.Array:
    return x * jnp.tanh(jax.nn.softplus(x))


_KINDS: dict[str, Any] = {
    "relu": _relu,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "softrelu": _softrelu,
    "softsign": lambda x: x / (1 + jnp.abs(x)),
    "log_sigmoid": jax.nn.log_sigmoid,
    "mish": _mish,
}


@op(
    aliases=("_npx_activation",),
    traits=Traits(
        has_named_output=True,
        layer=Layer.ACTIVATION,
        quantized=Quantized("_contrib_quantized_act", accepts=lambda p: p["act_type"] == "relu"),
    ),
)
def Activation(
    data: Tensor, *, act_type: Literal["relu", "sigmoid", "tanh", "softrelu", "softsign", "log_sigmoid", "mish"]
) -> jax.Array:
    """Apply an activation function to each element.

    relu max(x, 0); sigmoid 1 / (1 + e⁻ˣ); tanh; softrelu log(1 + eˣ); softsign x / (1 + |x|);
    log_sigmoid log(sigmoid(x)); mish x · tanh(log(1 + eˣ)) (Misra 2019). Shapes: any, kept.
    """
    check_float("Activation", data)
    return _KINDS[act_type](data)


def _leaky_inputs(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    data = shapes.get("data")
    if p.act_type != "prelu" or not data or shapes.get("gamma") == (1,):
        return {}
    channels = data[min(1, len(data) - 1)]
    return {"gamma": (channels,)} if known(channels) else {}


def _per_channel(gamma: jax.Array, data: jax.Array) -> jax.Array:
    if gamma.size == 1:
        return gamma.reshape(())
    channels = data.shape[1] if data.ndim > 1 else data.shape[0]
    if gamma.shape != (channels,):
        raise ArgumentError(f"LeakyReLU: gamma has shape {gamma.shape}: expected (1,) or ({channels},)")
    return gamma.reshape(1, -1, *(1,) * (data.ndim - 2)) if data.ndim > 1 else gamma


@op(aliases=("_npx_leaky_relu",), outputs=lambda p: 2 if p.act_type == "rrelu" else 1, visible=1,
    complete=_leaky_inputs, traits=Traits(
        initializers={"gamma": '["Constant", {"value": 0.25}]'}, has_named_output=True, layer=Layer.ACTIVATION,
    ))  # fmt: skip
def LeakyReLU(
    data: Tensor,
    gamma: Annotated[Tensor, When("act_type", "prelu")] = ABSENT,
    key: Key = ABSENT,
    train: Train = False,
    *,
    act_type: Literal["leaky", "prelu", "elu", "selu", "gelu", "rrelu"] = "leaky",
    slope: float = 0.25,
    lower_bound: float = 0.125,
    upper_bound: float = 0.334,
) -> Any:
    """Rectifiers that let some of the negative side through.

    leaky x or slope·x; prelu x or gamma·x, gamma of shape (1,) or (C,) for axis 1 (He et al. 2015); elu x or
    slope·(eˣ − 1) (Clevert et al. 2015); selu 1.0507·(x or 1.6733·(eˣ − 1)) (Klambauer et al. 2017);
    gelu x·Φ(x) with the error function (Hendrycks & Gimpel 2016); rrelu x or r·x, r uniform in
    [lower_bound, upper_bound] per element when training and its mean otherwise (Xu et al. 2015).
    Shapes: any, kept. rrelu has the slopes used as second, hidden output.
    """
    check_float("LeakyReLU", data)
    x, s = data, jnp.asarray(slope, data.dtype)
    if act_type == "leaky":
        return jnp.where(x > 0, x, s * x)
    if act_type == "prelu":
        return jnp.where(x > 0, x, _per_channel(gamma, data) * x)
    if act_type in ("elu", "selu"):
        below = jnp.expm1(jnp.where(x > 0, jnp.zeros_like(x), x))  # minimum(x, 0) would halve the derivative at 0
        if act_type == "elu":
            return jnp.where(x > 0, x, s * below)
        return _SELU_SCALE * jnp.where(x > 0, x, _SELU_ALPHA * below)
    if act_type == "gelu":
        wide = widen(x)
        return (0.5 * wide * (1 + lax.erf(wide * 0.5**0.5))).astype(x.dtype)
    if train:
        slopes = jax.random.uniform(key, x.shape, jnp.float32, lower_bound, upper_bound).astype(x.dtype)
    else:
        slopes = jnp.full(x.shape, (lower_bound + upper_bound) / 2, x.dtype)
    return jnp.where(x > 0, x, slopes * x), slopes


def _slope_fits(params: Params, shape: tuple[int, ...], dtype: np.dtype) -> bool:
    return params["act_type"] in ("leaky", "elu") and is_float(dtype) and faithful(params["slope"], dtype)


define_runtime_form(LeakyReLU, "slope", fits=_slope_fits)


Test = Callable[[jax.Array], jax.Array]


def _of_floats(test: Test, of_integers: bool) -> Test:
    """A test of floating-point values; integers all answer `whole`."""
    return lambda x: test(x) if is_float(np.dtype(x.dtype)) else jnp.full(x.shape, of_integers)


TESTS: tuple[tuple[str, Test, str], ...] = (
    ("logical_not", lambda x: x == 0, "True where x is 0."),
    ("isnan", _of_floats(jnp.isnan, False), "True where x is not a number."),
    ("isinf", _of_floats(jnp.isinf, False), "True where x is infinite."),
    ("isfinite", _of_floats(jnp.isfinite, True), "True where x is neither infinite nor nan."),
    ("isposinf", _of_floats(lambda x: x == jnp.inf, False), "True where x is positive infinity."),
    ("isneginf", _of_floats(lambda x: x == -jnp.inf, False), "True where x is negative infinity."),
)


def _register(name: str, test: Test, doc: str) -> None:
    def body(x: Tensor) -> jax.Array:
        return test(x)

    body.__doc__ = f"{doc}\n\n    x: any shape and dtype; the result is bool, of the same shape."
    op(name=name)(body)


for _name, _test, _doc in TESTS:
    _register(f"_npi_{_name}", _test, _doc)


@op()
def _npi_bitwise_not(x: Tensor) -> jax.Array:
    """Every bit of integers flipped; `not` of bools.

    x: any shape, integers or bool; the result has the same.

    Raises:
        ArgumentError: floating-point data.
    """
    if is_float(np.dtype(x.dtype)):
        raise DtypeError(f"_npi_bitwise_not: dtype {x.dtype}: expected integers or bool")
    return ~x


@op()
def _npi_around(x: Tensor, *, decimals: int = 0) -> jax.Array:
    """Round to `decimals` places, halves to the even neighbour; negative `decimals` round tens, hundreds and so on.

    x: any shape and dtype; the result has the same. The derivative is 0.
    """
    x = lax.stop_gradient(x)
    if is_float(np.dtype(x.dtype)):
        return jnp.round(x, decimals)
    return x if decimals >= 0 else jnp.round(x.astype(jnp.float64), decimals).astype(x.dtype)


@op()
def _npi_nan_to_num(
    data: Tensor, *, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> jax.Array:
    """Replace nan by `nan` and infinities by `posinf` and `neginf`, by default the largest finite values.

    data: any shape and dtype; the result has the same. The derivative of replaced elements is 0.
    """
    if not is_float(np.dtype(data.dtype)):
        return data
    largest = float(jnp.finfo(data.dtype).max)
    high = jnp.asarray(largest if posinf is None else posinf, data.dtype)
    low = jnp.asarray(-largest if neginf is None else neginf, data.dtype)
    safe = jnp.where(jnp.isnan(data), jnp.asarray(nan, data.dtype), data)
    return jnp.where(data == jnp.inf, high, jnp.where(data == -jnp.inf, low, safe))


@op()
def _contrib_sharding_constraint(data: UntypedTensor, *, spec: str = "()", saved: bool = True) -> jax.Array:
    """The input itself, cut over the axes of the mesh as `spec` says; nothing changes off a mesh.

    Args:
        spec: per axis of the data `None`, the name of an axis of the mesh, or a tuple of names, as in
            `"('data', None)"`. An entry `...` leaves any number of axes to XLA, as in `"(..., 'model')"`.
        saved: keep the result for the backward pass; if not, a hybridized block makes it once more there.

    Example:
        >>> import dualmx as mx
        >>> mx.nd.contrib.sharding_constraint(mx.nd.ones((2,)), spec="('data',)").asnumpy().tolist()
        [1.0, 1.0]
    """
    there = mesh()
    if there is None:
        return data
    open_axes = PartitionSpec.UNCONSTRAINED
    cut = there.sharding(spec, data.shape, "sharding_constraint", open_axes)
    out = jax.lax.with_sharding_constraint(data, NamedSharding(device_grid(), cut.spec))
    return out if saved else checkpoint_name(out, REMAT_NAME)
