"""Samplers: `_random_*` of one distribution, `_sample_*` of one per element of parameter arrays, NumPy's, shuffles.

Each distribution is one row of `TABLE`, from which three operators are made. NumPy's samplers draw standard values of a
shape, which functions of `mx.np.random` transform; in graphs, a parameter is a number, or None and an input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

from ...core.errors import ArgumentError
from ..registry import Op, op
from ..runtime_scalars import Params, define_runtime_form, faithful
from ..schema import (
    ABSENT,
    FLOAT32_EXACT_INTS,
    Axes,
    Count,
    DType,
    Ignored,
    Key,
    NonNegative,
    OptDType,
    OptionalTensor,
    Positive,
    Shape,
    Tensor,
    UntypedTensor,
)
from ..shape_rules import accumulator, convert, need_float, same_shape, typed_body

Context = Annotated[str, Ignored]
Size = tuple[int, ...]
REAL = ("float16", "bfloat16", "float32", "float64")


def _poisson(key: jax.Array, shape: Size, dtype: Any, lam: Any) -> jax.Array:
    return random.poisson(key, jnp.broadcast_to(lam, shape), shape, dtype=jnp.int32).astype(dtype)


def _mixture(key: jax.Array, shape: Size, dtype: Any, alpha: Any, scale: Any) -> jax.Array:
    """Poisson counts whose rate is gamma distributed: the negative binomial distribution."""
    rate_key, count_key = random.split(key)
    return _poisson(count_key, shape, dtype, random.gamma(rate_key, alpha, shape, dtype) * scale)


def _uniform(key: jax.Array, shape: Size, dtype: Any, low: Any, high: Any) -> jax.Array:
    return low + (high - low) * random.uniform(key, shape, dtype)


def _normal(key: jax.Array, shape: Size, dtype: Any, loc: Any, scale: Any) -> jax.Array:
    return loc + scale * random.normal(key, shape, dtype)


def _exponential(key: jax.Array, shape: Size, dtype: Any, lam: Any) -> jax.Array:
    return random.exponential(key, shape, dtype) / lam


def _gamma(key: jax.Array, shape: Size, dtype: Any, alpha: Any, beta: Any) -> jax.Array:
    return random.gamma(key, alpha, shape, dtype) * beta


def _negative_binomial(key: jax.Array, shape: Size, dtype: Any, k: Any, p: Any) -> jax.Array:
    return _mixture(key, shape, dtype, k, (1 - p) / p)


def _generalized(key: jax.Array, shape: Size, dtype: Any, mu: Any, alpha: Any) -> jax.Array:
    divisor = jnp.where(alpha > 0, alpha, 1)
    mixed = _mixture(key, shape, dtype, 1 / divisor, mu * divisor)
    return jnp.where(alpha > 0, mixed, _poisson(key, shape, dtype, mu))


def _ordered(low: float, high: float) -> None:
    if not low <= high:
        raise ArgumentError(f"low={low}, high={high}: expected low <= high")


def _all_positive(**params: float) -> None:
    for n, v in params.items():
        if not v > 0:
            raise ArgumentError(f"{n}={v}: expected a value above 0")


def _probability(k: int, p: float) -> None:
    if not 0 < p <= 1:
        raise ArgumentError(f"p={p}: expected a probability in (0, 1]")


@dataclass(frozen=True)
class Distribution:
    """One family of samplers.

    Attributes:
        draw: `draw(key, shape, dtype, *parameters)` with a wide float `dtype`.
        doc: what is sampled.
        params: name -> (annotation, default) of the scalar parameters.
        check: raises `ArgumentError` for parameters out of range.
        arrays: names of the parameter arrays of `_sample_*`, those of `params` by default.
        aliases: further names of `_random_*`.
    """

    draw: Callable[..., jax.Array]
    doc: str
    params: dict[str, tuple[Any, Any]]
    check: Callable[..., None] | None = None
    arrays: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


ONE, ZERO = (float, 1.0), (float, 0.0)
TABLE: dict[str, Distribution] = {
    "uniform": Distribution(
        _uniform, "the uniform distribution on [low, high)", {"low": ZERO, "high": ONE}, _ordered, aliases=("uniform",)
    ),
    "normal": Distribution(
        _normal,
        "the normal distribution, by mean and standard deviation",
        {"loc": ZERO, "scale": (NonNegative, 1.0)},
        arrays=("mu", "sigma"),
        aliases=("normal",),
    ),
    "exponential": Distribution(
        _exponential, "the exponential distribution of mean 1 / lam", {"lam": ONE}, _all_positive
    ),
    "gamma": Distribution(
        _gamma, "the gamma distribution of shape alpha and scale beta", {"alpha": ONE, "beta": ONE}, _all_positive
    ),
    "poisson": Distribution(_poisson, "the Poisson distribution of mean lam", {"lam": (NonNegative, 1.0)}),
    "negative_binomial": Distribution(
        _negative_binomial,
        "the number of failures before the k-th success, each of probability p",
        {"k": (Positive, 1), "p": ONE},
        _probability,
    ),
    "generalized_negative_binomial": Distribution(
        _generalized,
        "counts with mean mu and variance mu + alpha * mu**2",
        {"mu": (NonNegative, 1.0), "alpha": (NonNegative, 1.0)},
    ),
}


def _wide(dtype: Any) -> np.dtype:
    """The dtype to draw in: float32 at least, so that half precision does not coarsen the tails."""
    return accumulator(dtype) if np.dtype(dtype).name in REAL else np.dtype("float32")


def _drawn(d: Distribution, key: jax.Array, shape: Size, dtype: Any, params: Any) -> jax.Array:
    wide = _wide(dtype)
    return convert(d.draw(key, shape, wide, *(jnp.asarray(p, wide) for p in params)), dtype)


def _real(name: str, dtype: str | None) -> str:
    if dtype not in (None, *REAL):
        raise ArgumentError(f"{name}: dtype={dtype!r}: expected one of {', '.join(REAL)}")
    return dtype or "float32"


def _check(name: str, d: Distribution, params: dict[str, Any]) -> None:
    try:
        if d.check:
            d.check(**params)
    except ArgumentError as e:
        raise ArgumentError(f"{name}: {e}") from None


def _register(stem: str, d: Distribution) -> None:
    fixed, like, each = f"_random_{stem}", f"_random_{stem}_like", f"_sample_{stem}"
    arrays = d.arrays or tuple(d.params)

    def draw_fixed(*, key: jax.Array, shape: Size | None, ctx: str, dtype: str | None, **params: Any) -> jax.Array:
        return _drawn(d, key, tuple(shape or (1,)), _real(fixed, dtype), params.values())

    def draw_like(*, data: jax.Array, key: jax.Array, **params: Any) -> jax.Array:
        return _drawn(d, key, data.shape, data.dtype, params.values())

    def checked(name: str, draw: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
        def body(**given: Any) -> jax.Array:
            _check(name, d, {n: given[n] for n in d.params})
            return draw(**given)

        return body

    def fits(params: Params, shape: Size, dtype: np.dtype) -> bool:
        given = {n: params[n] for n in d.params}
        _check(fixed, d, given)
        wide = _wide(params.get("dtype") or dtype)
        return all(faithful(v, wide) for v in given.values())

    def draw_each(*, key: jax.Array, shape: Size, dtype: str | None, **given: jax.Array) -> jax.Array:
        values = [jax.lax.stop_gradient(given[n]) for n in arrays]
        if any(v.shape != values[0].shape for v in values):
            raise ArgumentError(f"{each}: {arrays} have different shapes {[list(v.shape) for v in values]}")
        expanded = [v.reshape(v.shape + (1,) * len(shape)) for v in values]
        size = (*values[0].shape, *shape)
        return _drawn(d, key, size, _real(each, dtype), [jnp.broadcast_to(v, size) for v in expanded])

    sized = {"shape": (Axes, None), "ctx": (Context, ""), "dtype": (OptDType, None)}
    raises = "Raises:\n        ArgumentError: a parameter or dtype out of range."
    made = op(name=fixed, aliases=(f"random_{stem}", *d.aliases))(
        typed_body(
            checked(fixed, draw_fixed),
            f"Samples of {d.doc}.\n\n    shape: of the result, (1,) if empty. dtype: floating-point, float32 unless "
            f"given.\n\n    {raises}",
            {"key": Key},
            {**d.params, **sized},
        )
    )
    define_runtime_form(made, *d.params, fits=fits, body=draw_fixed)
    made = op(name=like)(
        typed_body(
            checked(like, draw_like),
            f"Samples of {d.doc}.\n\n    data: gives the result its shape and dtype.\n\n    {raises}",
            {"data": Tensor, "key": Key},
            d.params,
        )
    )
    define_runtime_form(made, *d.params, fits=fits, body=draw_like)
    op(name=each, aliases=(f"sample_{stem}",), complete=same_shape(each, *arrays))(
        typed_body(
            draw_each,
            f"Samples of {d.doc}, one distribution for each element.\n\n    {', '.join(arrays)}: one shape S and "
            f"dtype. shape: of the samples for each element. dtype: floating-point, float32 unless given.\n    The "
            "result has shape S + shape and derivative 0.\n\n    Raises:\n        ArgumentError: different shapes.",
            {**dict.fromkeys(arrays, Tensor), "key": Key},
            {"shape": (Shape, ()), "dtype": (OptDType, None)},
        )
    )


for _stem, _distribution in TABLE.items():
    _register(_stem, _distribution)


@op(name="_random_randint", aliases=("random_randint", "_npi_random_randint"))
def randint(
    key: Key, *, low: int, high: int, shape: Axes = None, ctx: Context = "", dtype: OptDType = None
) -> jax.Array:
    """Integers drawn uniformly from low, low + 1, ..., high - 1.

    shape: of the result, (1,) if empty. dtype: int32 unless given, or int64.

    Raises:
        ArgumentError: low >= high, bounds outside the dtype, another dtype.
    """
    if dtype not in (None, "int32", "int64"):
        raise ArgumentError(f"_random_randint: dtype={dtype!r}: expected int32 or int64")
    kind = np.dtype(dtype or "int32")
    info = np.iinfo(kind)
    if not info.min <= low < high <= int(info.max):
        raise ArgumentError(f"_random_randint: low={low}, high={high}: expected low < high, both within {kind.name}")
    return random.randint(key, (1,) if shape is None else tuple(shape), low, high, kind)


def _define_randint_at_runtime(made: Op) -> None:
    """Give an operator that draws integers a runtime form for its bounds."""

    def body(key: jax.Array, *, low: jax.Array, high: jax.Array, dtype: str | None, **rest: Any) -> jax.Array:
        kind, shape = np.dtype(dtype or "int32"), rest.get("size", rest.get("shape"))
        return random.randint(key, (1,) if shape is None else tuple(shape), low.astype(kind), high.astype(kind), kind)

    small = FLOAT32_EXACT_INTS
    define_runtime_form(made, "low", "high", fits=lambda p, *_: -small < p["low"] < p["high"] < small, body=body)


_define_randint_at_runtime(randint)


@op(
    name="_sample_multinomial",
    aliases=("sample_multinomial",),
    outputs=lambda p: 2 if p.get_prob else 1,
)
def multinomial(
    data: Tensor,
    key: Key,
    *,
    shape: Shape = (),
    get_prob: bool = False,
    dtype: Literal["uint8", "int32", "float16", "float32", "float64"] = "int32",
) -> Any:
    """Indices drawn with the probabilities along the last axis, which need not add up to 1.

    data: (..., K), not negative. shape: of the samples for each distribution. The result has shape (..., *shape),
    or (1,) if that is empty, and with `get_prob` a second result gives the logarithms of the probabilities drawn,
    through which gradients reach `data`.
    """
    need_float("_sample_multinomial", data=data)
    fixed = jax.lax.stop_gradient(data).astype(accumulator(data.dtype))
    count, choices = int(np.prod(shape, dtype=np.int64)), data.shape[-1]
    steps = jnp.cumsum(fixed.reshape(-1, choices), axis=1)
    level = random.uniform(key, (steps.shape[0], count), steps.dtype) * steps[:, -1:]
    index = jax.vmap(lambda s, u: jnp.searchsorted(s, u, side="right"))(steps, level)
    index = jnp.minimum(index, choices - 1).astype(jnp.int32)
    size = (*data.shape[:-1], *shape) or (1,)
    out = index.reshape(size).astype(dtype)
    if not get_prob:
        return out
    drawn = jnp.take_along_axis(data.reshape(-1, choices), index, axis=1)
    return out, jnp.log(drawn).reshape(size)


@op(name="_shuffle", aliases=("shuffle", "_npi_shuffle"))
def shuffle(data: Tensor, key: Key) -> jax.Array:
    """The slices along the first axis in random order.

    data: any shape and dtype; the result has the same, and gradients go back to the slices' places.
    """
    return data[random.permutation(key, data.shape[0])]


@op(outputs=2)
def _sample_unique_zipfian(key: Key, *, range_max: Positive, shape: Shape = (1,)) -> tuple[jax.Array, jax.Array]:
    """Rows of distinct classes, class k with probability (log(k + 2) - log(k + 1)) / log(range_max + 1).

    Classes are drawn one after the other without those drawn before. The second result counts, for each row, the draws
    with replacement that would have taken. Shapes: `shape` is (n,) or (rows, n) -> int64 of that shape, (rows,) int64.
    """
    rows, n = (1, *shape)[-2:]
    if len(shape) not in (1, 2) or n > range_max:
        raise ArgumentError(
            f"_sample_unique_zipfian: shape={shape}: expected (n,) or (rows, n), n at most range_max={range_max}"
        )
    order_key, tries_key = random.split(key)
    k = jnp.arange(range_max, dtype=jnp.float64)
    share = (jnp.log(k + 2) - jnp.log(k + 1)) / jnp.log(float(range_max + 1))
    # Drawing without replacement is sorting by log-probability plus Gumbel noise.
    noise = random.gumbel(order_key, (rows, range_max), jnp.float64)
    chosen = jax.lax.top_k(jnp.log(share) + noise, n)[1]
    left = 1 - jnp.cumsum(share[chosen], 1) + share[chosen]
    uniform = random.uniform(tries_key, (rows, n), jnp.float64, 1e-300, 1)
    wasted = jnp.floor(jnp.log(uniform) / jnp.log1p(-jnp.clip(left, 1e-12, 1 - 1e-12)))
    tries = n + jnp.where(left >= 1 - 1e-12, 0, wasted).sum(1)
    return chosen.astype(jnp.int64).reshape(shape), tries.astype(jnp.int64)


Given = Annotated[UntypedTensor, OptionalTensor]
Number = float | None
Where = Annotated[str | None, Ignored]
Floating = Literal["float32", "float16", "float64", "None"]


def _values(
    name: str, inputs: tuple[jax.Array | None, ...], numbers: Mapping[str, Number], dtype: str = "float32"
) -> tuple[jax.Array, ...]:
    """The parameters in their order: numbers, or the inputs one after another where they are None."""
    kind = jnp.float32 if dtype in ("float16", "None") else jnp.dtype(dtype)
    left, found = [a for a in inputs if a is not None], []
    for label, number in numbers.items():
        if number is None and not left:
            raise ArgumentError(f"{name}: {label}=None: expected a number, or an input in its place")
        found.append(left.pop(0).astype(kind) if number is None else jnp.asarray(number, kind))
    if left:
        raise ArgumentError(f"{name}: {len(left)} inputs too many: expected one for each parameter that is None")
    return tuple(found)


def _shape(name: str, values: tuple[jax.Array, ...], size: Axes, batch: bool = False) -> tuple[int, ...]:
    """The shape of the draw: `size`, to which the parameters broadcast, or theirs; both one behind the other."""
    shapes = [v.shape for v in values]
    try:
        common = jnp.broadcast_shapes(*shapes)
        if batch:
            return (*(size or ()), *common)
        full = common if size is None else jnp.broadcast_shapes(common, tuple(size))
    except ValueError:
        raise ArgumentError(f"{name}: shapes {shapes} and size={size} do not broadcast") from None
    if size is not None and full != tuple(size):
        raise ArgumentError(f"{name}: size={size}: expected a shape that parameters {shapes} broadcast to")
    return full


def _define_numpy_sampler(
    stem: str, doc: str, params: Mapping[str, Number], draw: Callable[..., jax.Array], *,
    has_dtype: bool = False, has_ctx: bool = True, batch: bool = False, output_names: tuple[str, ...] = ("output0",),
) -> None:  # fmt: skip
    """Register `_npi_<stem>`: `draw(key, shape, dtype, *parameters)`, each parameter a number or an input.

    batch: `size` comes before the shape of the inputs, and is not the shape of the result.
    """
    name, inputs = f"_npi_{stem}", [f"input{i + 1}" for i in range(len(params))]

    def body(*, key: Key, size: Axes, dtype: str = "float32", **given: Any) -> jax.Array:
        # A gamma distribution takes any scale.
        if params.get("scale") is not None and given["scale"] is not None and given["scale"] < 0:
            raise ArgumentError(f"{name}: scale={given['scale']}: expected a number of 0 or more")
        values = _values(name, tuple(given.get(i) for i in inputs), {n: given[n] for n in params}, dtype)
        drawn = draw(key, _shape(name, values, size, batch), values[0].dtype, *values)
        return drawn.astype("float32" if dtype == "None" else dtype)

    options: dict[str, tuple[Any, Any]] = {n: (Number, default) for n, default in params.items()}
    options |= {"size": (Axes, None)}
    options |= ({"ctx": (Where, "cpu")} if has_ctx else {}) | ({"dtype": (Floating, "float32")} if has_dtype else {})
    op(name=name, output_names=output_names)(
        typed_body(body, doc, {**dict.fromkeys(inputs, Given), "key": Key}, options)
    )


def _shifted(name: str) -> Callable[..., jax.Array]:
    """A draw of `loc + scale x`, x being of the standard distribution of `jax.random` called `name`."""
    return lambda key, shape, dtype, loc, scale: loc + scale * getattr(jax.random, name)(key, shape, dtype)


def _by_exponential(fn: Callable[[Any, Any], Any]) -> Callable[..., jax.Array]:
    """A draw of `fn(x, parameter)`, x being exponential."""
    return lambda key, shape, dtype, parameter: fn(jax.random.exponential(key, shape, dtype), parameter)


EACH = ", `size` of them for every element of the inputs: `size` comes first."
LOC_SCALE, SHAPE_ONLY = {"loc": 0.0, "scale": 1.0}, {"a": None}
for _stem, _batch in ("uniform", False), ("uniform_n", True):
    _where = " on [low, high), of shape `size` or that of the inputs."
    _define_numpy_sampler(
        _stem, "Draws from the uniform distribution" + (EACH if _batch else _where),
        {"low": 0.0, "high": 1.0}, _uniform, has_dtype=True, batch=_batch, output_names=(),
    )  # fmt: skip
for _stem, _batch in ("normal", False), ("normal_n", True):
    _where = " with mean `loc` and deviation `scale`, of shape `size` or of the inputs."
    _define_numpy_sampler(
        _stem, "Draws from the normal distribution" + (EACH if _batch else _where), LOC_SCALE, _normal,
        has_dtype=True, batch=_batch,
    )  # fmt: skip
_define_numpy_sampler(
    "gamma", "Draws from the gamma distribution with mean shape · scale, of shape `size` or that of the inputs.",
    {"shape": None, "scale": None}, lambda key, shape, dtype, a, b: b * jax.random.gamma(key, a, shape, dtype),
    has_dtype=True, output_names=(),
)  # fmt: skip
for _stem, _doc in ("logistic", "logistic distribution"), ("gumbel", "Gumbel distribution of maxima"):
    _doc = f"Draws, float32, from the {_doc}, of shape `size` or that of the inputs."
    _define_numpy_sampler(_stem, _doc, LOC_SCALE, _shifted(_stem))
_define_numpy_sampler(
    "exponential",
    "Draws, float32, from the exponential distribution with mean `scale`, of shape `size` or of the input.",
    {"scale": 1.0}, _by_exponential(lambda x, scale: scale * x),
)  # fmt: skip
_define_numpy_sampler(
    "rayleigh", "Draws, float32, from the Rayleigh distribution: scale · sqrt(2 x), x exponential.",
    {"scale": 1.0}, _by_exponential(lambda x, scale: scale * jnp.sqrt(2 * x)),
)  # fmt: skip
_define_numpy_sampler(
    "weibull", "Draws, float32, from the Weibull distribution with shape `a` and scale 1: x ** (1 / a), x exponential.",
    SHAPE_ONLY, _by_exponential(lambda x, a: x ** (1 / a)),
)  # fmt: skip
_define_numpy_sampler(
    "pareto", "Draws, float32, from the Lomax distribution with shape `a`: exp(x / a) − 1, x exponential.",
    SHAPE_ONLY, _by_exponential(lambda x, a: jnp.expm1(x / a)),
)  # fmt: skip
_define_numpy_sampler(
    "powerd", "Draws, float32, from [0, 1] with density a xᵃ⁻¹.",
    SHAPE_ONLY, _by_exponential(lambda x, a: jnp.exp(-x / a)), has_ctx=False, output_names=(),
)  # fmt: skip


@op()
def _npi_bernoulli(
    input1: Given = ABSENT, key: Key = ABSENT, *, prob: Number = None, logit: Number = None, size: Axes = None,
    ctx: Where = "cpu", is_logit: bool = False,
    dtype: Literal["float32", "bool", "float16", "float64", "int32", "uint8"] = "float32",
) -> jax.Array:  # fmt: skip
    """1 with probability `prob`, or sigmoid(`logit`) if `is_logit`, else 0, of shape `size` or that of the input."""
    name = "_npi_bernoulli"
    values = _values(name, (input1,), {"logit": logit} if is_logit else {"prob": prob})
    if not is_logit and prob is not None and not 0 <= prob <= 1:
        raise ArgumentError(f"{name}: prob={prob}: expected a number from 0 to 1")
    chance = jax.nn.sigmoid(values[0]) if is_logit else values[0]
    return (jax.random.uniform(key, _shape(name, values, size), jnp.float32) < chance).astype(dtype)


@op(name="_npi_standard")
def standard(
    key: Key,
    *,
    kind: Literal["uniform", "normal", "exponential", "gumbel", "logistic"],
    size: Shape = (),
    dtype: DType = "float32",
) -> jax.Array:
    """Independent draws of a distribution's standard form (location 0, scale 1) of shape `size`; float16 too."""
    if dtype not in ("float16", "float32", "float64"):
        raise ArgumentError(f"random.{kind}: dtype={dtype!r}: expected float16, float32 or float64")
    drawn = jnp.float32 if dtype == "float16" else jnp.dtype(dtype)
    return getattr(jax.random, kind)(key, size, drawn).astype(dtype)


@op(name="_npi_standard_gamma")
def standard_gamma(shape: Tensor, key: Key) -> jax.Array:
    """One draw of the gamma distribution of scale 1 for every element of `shape`, in its dtype."""
    drawn = shape.astype(jnp.float32) if shape.dtype == jnp.float16 else shape
    return jax.random.gamma(key, drawn, drawn.shape, drawn.dtype).astype(shape.dtype)


@op(name="_npi_randint")
def np_randint(key: Key, *, low: int, high: int, size: Shape = (), dtype: DType = "int64") -> jax.Array:
    """Independent integers from `low` to below `high`, of shape `size`."""
    if dtype not in ("int32", "int64"):
        raise ArgumentError(f"random.randint: dtype={dtype!r}: expected int32 or int64")
    if low >= high:
        raise ArgumentError(f"random.randint: low={low}, high={high}: expected low < high")
    return jax.random.randint(key, size, low, high, jnp.dtype(dtype))


_define_randint_at_runtime(np_randint)


@op(name="_npi_choice")
def choice(
    input1: Given = ABSENT, input2: Given = ABSENT, key: Key = ABSENT, *, a: int | None = None, size: Axes = None,
    ctx: Where = "cpu", replace: bool = True, weighted: bool = False,
) -> jax.Array:  # fmt: skip
    """Draws of shape `size` from the numbers 0 to below `a`, int64, or from the elements of the first input.

    The last input has the probability of each, if `weighted`. Without `replace` none comes twice.
    """
    inputs = [i for i in (input1, input2) if i is not None]
    if len(inputs) != (a is None) + weighted:
        raise ArgumentError(f"random.choice: {len(inputs)} inputs for a={a}, weighted={weighted}")
    if any(i.ndim != 1 for i in inputs):
        raise ArgumentError(f"random.choice: shapes {[i.shape for i in inputs]}: expected one axis")
    pool = inputs[0] if a is None else jnp.arange(a, dtype=jnp.int64)
    p = inputs[-1] if weighted else None
    if p is not None and p.shape != pool.shape:
        raise ArgumentError(f"random.choice: p has shape {p.shape}: expected {pool.shape}")
    return jax.random.choice(key, pool, tuple(size or ()), replace, p)


@op(name="_npi_multinomial")
def np_multinomial(pvals: UntypedTensor, key: Key, *, n: Count, size: Shape = ()) -> jax.Array:
    """Counts, int64, of `n` trials over the outcomes with probabilities `pvals` (k,); shape (*size, k).

    The last probability is what the others leave of 1.
    """
    if pvals.ndim != 1:
        raise ArgumentError(f"random.multinomial: pvals has shape {pvals.shape}: expected one axis")
    p = pvals.astype(jnp.float64)
    p = jnp.concatenate([p[:-1], jnp.maximum(1 - jnp.sum(p[:-1], keepdims=True), 0)]) if p.size else p
    shape: tuple[Any, ...] = (*size, p.shape[0])
    return jax.random.multinomial(key, float(n), p, shape=shape, dtype=jnp.float64).astype(jnp.int64)
