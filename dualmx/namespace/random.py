"""`mx.nd.random`: samplers that take numbers (one distribution) or arrays (one per element)."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from ..core.argcheck import DType, Shape, require_instance
from ..core.context import Context, current_context
from ..core.errors import ArgumentTypeError
from ..ndarray.handle import invoke, invoke_nullary, invoke_out
from ..ndarray.ndarray import NDArray
from ..op.registry import OPS


def _draw(name: str, params: dict[str, Any], shape: Any, dtype: Any, ctx: Any, out: Any) -> Any:
    arrays = [isinstance(v, NDArray) for v in params.values()]
    extra: dict[str, Any] = {} if shape is None else {"shape": shape}
    if dtype is not None:
        extra["dtype"] = dtype
    if any(arrays):
        if not all(arrays):
            raise ArgumentTypeError(f"random.{name}: {', '.join(params)} must be all numbers or all NDArrays")
        call, ins = OPS[f"_sample_{name}"].call(**extra), list(params.values())
        if out is not None:
            invoke_out(call, ins, (out,))
            return out
        return invoke(call, ins)[0]
    if out is not None:
        extra.setdefault("shape", out.shape)
        extra.setdefault("dtype", out.dtype)
    extra.setdefault("shape", (1,))
    call = OPS[f"_random_{name}"].call(**params, **extra)
    if out is not None:
        invoke_out(call, (), (out,))
        return out
    return invoke_nullary(call, Context(ctx) if ctx is not None else current_context())[0]


def uniform(
    low: NDArray | float = 0,
    high: NDArray | float = 1,
    shape: Shape | None = None,
    dtype: DType | None = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Draw from the uniform distribution over [low, high).

    Example:
        >>> x = uniform(2, 3, shape=(4,))
        >>> x.shape, bool((x >= 2).min())
        ((4,), True)
    """
    return _draw("uniform", {"low": low, "high": high}, shape, dtype, ctx, out)


def normal(
    loc: NDArray | float = 0,
    scale: NDArray | float = 1,
    shape: Shape | None = None,
    dtype: DType | None = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Draw from the normal distribution with mean `loc` and standard deviation `scale`.

    Example:
        >>> normal(mx.nd.array([0, 100]), mx.nd.ones((2,)), shape=3).shape
        (2, 3)
    """
    keys = ("mu", "sigma") if isinstance(loc, NDArray) or isinstance(scale, NDArray) else ("loc", "scale")
    return _draw("normal", dict(zip(keys, (loc, scale), strict=True)), shape, dtype, ctx, out)


def randn(*shape: int, **kwargs: Any) -> NDArray:
    """Draw an array of the given shape from the normal distribution (`loc`, `scale`, `dtype`, `ctx`, `out`)."""
    return normal(kwargs.pop("loc", 0), kwargs.pop("scale", 1), shape or None, **kwargs)


def poisson(
    lam: NDArray | float = 1,
    shape: Shape | None = None,
    dtype: DType | None = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Draw from the Poisson distribution with rate `lam`."""
    return _draw("poisson", {"lam": lam}, shape, dtype, ctx, out)


def exponential(
    scale: NDArray | float = 1,
    shape: Shape | None = None,
    dtype: DType | None = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Draw from the exponential distribution with mean `scale` (rate 1 / scale)."""
    return _draw("exponential", {"lam": 1.0 / scale}, shape, dtype, ctx, out)


def gamma(
    alpha: NDArray | float = 1,
    beta: NDArray | float = 1,
    shape: Shape | None = None,
    dtype: DType | None = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Draw from the gamma distribution with shape `alpha` and scale `beta`."""
    return _draw("gamma", {"alpha": alpha, "beta": beta}, shape, dtype, ctx, out)


def negative_binomial(
    k: NDArray | float = 1,
    p: NDArray | float = 1,
    shape: Shape | None = None,
    dtype: DType | None = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Draw the number of failures before `k` successes of probability `p`."""
    return _draw("negative_binomial", {"k": k, "p": p}, shape, dtype, ctx, out)


def generalized_negative_binomial(
    mu: NDArray | float = 1,
    alpha: NDArray | float = 1,
    shape: Shape | None = None,
    dtype: DType | None = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Draw from the negative binomial distribution with mean `mu` and dispersion `alpha`."""
    return _draw("generalized_negative_binomial", {"mu": mu, "alpha": alpha}, shape, dtype, ctx, out)


def randint(
    low: int,
    high: int,
    shape: Shape | None = None,
    dtype: DType | None = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Draw integers from [low, high), int32 by default.

    Example:
        >>> randint(5, 6, shape=2).asnumpy().tolist()
        [5, 5]
    """
    return _draw("randint", {"low": low, "high": high}, shape, dtype, ctx, out)


def multinomial(
    data: NDArray,
    shape: Shape | None = None,
    get_prob: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    dtype: DType = "int32",
) -> Any:
    """Draw indices from categorical distributions.

    Args:
        data: probabilities, (k,) or (n, k); each row sums to 1.
        shape: samples per distribution, one (without an axis) by default.
        get_prob: also return the log-probability of each sample, differentiable.

    Example:
        >>> multinomial(mx.nd.array([[0, 1], [1, 0]]), shape=3).asnumpy().tolist()
        [[1, 1, 1], [0, 0, 0]]
    """
    require_instance("random.multinomial", "data", data, NDArray, "an NDArray")
    call = OPS["_sample_multinomial"].call(shape=() if shape is None else shape, get_prob=get_prob, dtype=dtype)
    if out is not None:
        invoke_out(call, (data,), [out] if isinstance(out, NDArray) else out)
        return out
    outs = invoke(call, (data,))
    return outs if get_prob else outs[0]


def bernoulli(
    prob: NDArray | float = 0.5,
    shape: Shape | None = None,
    dtype: DType = "float32",
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Draw 1 with probability `prob` (a number or an array of the result's shape), else 0."""
    if isinstance(prob, NDArray):
        drawn = uniform(shape=prob.shape, dtype="float32", ctx=prob.context)
        made = (drawn < prob).astype(dtype)
    else:
        made = (uniform(shape=shape, ctx=ctx) < float(prob)).astype(dtype)
    return made if out is None else made.copyto(out)


def shuffle(data: NDArray, out: NDArray | None = None) -> NDArray:
    """Return `data` with its rows in random order.

    Example:
        >>> shuffle(mx.nd.arange(4)).sum().asscalar().item()
        6.0
    """
    require_instance("random.shuffle", "data", data, NDArray, "an NDArray")
    call = OPS["_shuffle"].call()
    if out is not None:
        invoke_out(call, (data,), (out,))
        return out
    return invoke(call, (data,))[0]


FUNCTIONS = (
    uniform, normal, randn, poisson, exponential, gamma, negative_binomial, generalized_negative_binomial, randint,
    multinomial, bernoulli, shuffle,
)  # fmt: skip


def populate(top: ModuleType) -> None:
    """Put the samplers into `nd.random`; its other functions (`*_like`, `pdf_*`) come from the registry."""
    for fn in FUNCTIONS:
        setattr(top.random, fn.__name__, fn)
