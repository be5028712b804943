"""`mx.sym.random`: samplers that take numbers or symbols."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..core.errors import ArgumentTypeError
from ..op.registry import get_op
from ..symbol.node import SymbolBase
from ..symbol.symbol import Symbol, create


def _draw(kind: str, sampled: dict[str, Any], numbers: dict[str, Any], kwargs: dict[str, Any]) -> Symbol:
    """Make a `_sample_` node for a distribution given by symbols, a `_random_` node for numbers.

    `sampled` and `numbers` hold the same values under the parameter names of the two kinds of ops.
    """
    symbols = [isinstance(v, SymbolBase) for v in sampled.values()]
    if any(symbols) and not all(symbols):
        shown = ", ".join(f"{k}: {type(v).__name__}" for k, v in sampled.items())
        raise ArgumentTypeError(f"random.{kind}: the parameters must be all symbols or all numbers, got {shown}")
    name, attr = kwargs.pop("name", None), kwargs.pop("attr", None)
    params = {k: v for k, v in kwargs.items() if v is not None}
    if any(symbols):
        params.pop("ctx", None)
        return create(get_op(f"_sample_{kind}"), tuple(sampled.values()), params, name, attr, f"_sample_{kind}")
    context = params.pop("ctx", None)
    if context is not None and "ctx" in get_op(f"_random_{kind}").params:
        params["ctx"] = str(context)
    return create(get_op(f"_random_{kind}"), (), {**numbers, **params}, name, attr, f"_random_{kind}")


def uniform(low: Any = 0, high: Any = 1, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Samples from the uniform distribution on [low, high); `shape` samples per distribution."""
    both = {"low": low, "high": high}
    return _draw("uniform", both, both, {"shape": shape, "dtype": dtype, **kwargs})


def normal(loc: Any = 0, scale: Any = 1, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Samples from the normal distribution with mean `loc` and standard deviation `scale`."""
    both = {"loc": loc, "scale": scale}
    return _draw("normal", both, both, {"shape": shape, "dtype": dtype, **kwargs})


def randn(*shape: int, **kwargs: Any) -> Symbol:
    """Samples of the given shape from the normal distribution; keywords `loc`, `scale`, `dtype`."""
    return normal(kwargs.pop("loc", 0), kwargs.pop("scale", 1), shape, **kwargs)


def poisson(lam: Any = 1, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Samples from the Poisson distribution with rate `lam`, as floats."""
    return _draw("poisson", {"lam": lam}, {"lam": lam}, {"shape": shape, "dtype": dtype, **kwargs})


def exponential(scale: Any = 1, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Samples from the exponential distribution with mean `scale` (rate 1 / scale)."""
    rate = {"lam": 1.0 / scale}
    return _draw("exponential", rate, rate, {"shape": shape, "dtype": dtype, **kwargs})


def gamma(alpha: Any = 1, beta: Any = 1, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Samples from the gamma distribution with shape parameter `alpha` and scale `beta`."""
    both = {"alpha": alpha, "beta": beta}
    return _draw("gamma", both, both, {"shape": shape, "dtype": dtype, **kwargs})


def negative_binomial(k: Any = 1, p: Any = 1, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Samples of the number of failures before `k` successes of probability `p`, as floats."""
    both = {"k": k, "p": p}
    return _draw("negative_binomial", both, both, {"shape": shape, "dtype": dtype, **kwargs})


def generalized_negative_binomial(
    mu: Any = 1, alpha: Any = 1, shape: Any = None, dtype: Any = None, **kwargs: Any
) -> Symbol:
    """Samples from the negative binomial distribution with mean `mu` and dispersion `alpha`, as floats."""
    both = {"mu": mu, "alpha": alpha}
    return _draw("generalized_negative_binomial", both, both, {"shape": shape, "dtype": dtype, **kwargs})


def randint(low: Any, high: Any, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Samples of integers from [low, high)."""
    both = {"low": low, "high": high}
    return _draw("randint", both, both, {"shape": shape, "dtype": dtype, **kwargs})


def multinomial(data: Symbol, shape: Any = None, get_prob: bool = True, dtype: Any = "int32", **kwargs: Any) -> Symbol:
    """Samples of category numbers with probabilities in the last axis of `data`; with `get_prob` also their logs."""
    params = {"get_prob": get_prob, "dtype": dtype, **({} if shape is None else {"shape": shape})}
    return create(get_op("_sample_multinomial"), (data,), params, kwargs.get("name"), None, "_sample_multinomial")


def shuffle(data: Symbol, **kwargs: Any) -> Symbol:
    """The rows of `data` in random order."""
    return create(get_op("_shuffle"), (data,), {}, kwargs.get("name"), None, "_shuffle")


SAMPLERS = (
    uniform, normal, randn, poisson, exponential, gamma, negative_binomial, generalized_negative_binomial, randint,
    multinomial, shuffle,
)  # fmt: skip


def populate(room: ModuleType) -> None:
    """Put the samplers into `room` (`mx.sym.random`), replacing generated functions of the same names."""
    for fn in SAMPLERS:
        setattr(room, fn.__name__, fn)
