"""`mx.sym.np.random`: samplers as nodes; parameters are numbers or symbols, which broadcast.

Example:
    >>> import dualmx as mx
    >>> mx.sym.np.random.normal(size=(2, 3)).infer_shape()[1]
    [(2, 3)]
"""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..core.context import current_context
from ..core.dtypes import as_dtype
from ..core.errors import ArgumentTypeError
from ..op.registry import OPS
from ..symbol import Symbol
from ..symbol.symbol import create
from .call import is_number
from .np_symbol import as_np, make_node


def sampler_node(
    operator: str, hint: str, numbers: dict[str, Any], out: Any = None, ctx: Any = None, **params: Any
) -> Any:
    """Return the node of a distribution; symbols among the parameters become its inputs.

    Raises:
        ArgumentTypeError: a parameter is neither number nor symbol, or `out` is given.
    """
    if out is not None:
        raise ArgumentTypeError(f"random.{hint}: out= needs an array; a symbol has no values to write")
    for label, value in numbers.items():
        if value is not None and not is_number(value) and not isinstance(value, Symbol):
            raise ArgumentTypeError(f"random.{hint}: {label} of type {type(value).__name__}: expected number or symbol")
    inputs = tuple(v for v in numbers.values() if isinstance(v, Symbol))
    given = {k: None if isinstance(v, Symbol) else v for k, v in numbers.items()}
    if "ctx" in OPS[operator].params:
        given["ctx"] = str(current_context() if ctx is None else ctx)
    if "dtype" in params:
        params["dtype"] = as_dtype(onp.float32 if params["dtype"] is None else params["dtype"]).name
    return as_np(create(OPS[operator], inputs, given | params, None, None, hint))


def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None):
    """Return a node of draws from the uniform distribution on [low, high); see `mx.np.random.uniform`."""
    return sampler_node("_npi_uniform", "uniform", {"low": low, "high": high}, out, ctx, size=size, dtype=dtype)


def normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None):
    """Return a node of normal draws; see `mx.np.random.normal`."""
    return sampler_node("_npi_normal", "normal", {"loc": loc, "scale": scale}, out, ctx, size=size, dtype=dtype)


def lognormal(
    mean: Any = 0.0, sigma: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Return a node of exp(x), x normal; see `mx.np.random.lognormal`."""
    return make_node("exp", (normal(mean, sigma, size, dtype, ctx, out),), {})


def logistic(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Return a node of draws from the logistic distribution; see `mx.np.random.logistic`."""
    return sampler_node("_npi_logistic", "logistic", {"loc": loc, "scale": scale}, out, ctx, size=size)


def gumbel(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Return a node of draws from the Gumbel distribution; see `mx.np.random.gumbel`."""
    return sampler_node("_npi_gumbel", "gumbel", {"loc": loc, "scale": scale}, out, ctx, size=size)


def exponential(scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Return a node of draws from the exponential distribution; see `mx.np.random.exponential`."""
    return sampler_node("_npi_exponential", "exponential", {"scale": scale}, out, ctx, size=size)


def rayleigh(scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Return a node of draws from the Rayleigh distribution; see `mx.np.random.rayleigh`."""
    return sampler_node("_npi_rayleigh", "rayleigh", {"scale": scale}, out, ctx, size=size)


def weibull(a: Any, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Return a node of draws from the Weibull distribution; see `mx.np.random.weibull`."""
    return sampler_node("_npi_weibull", "weibull", {"a": a}, out, ctx, size=size)


def pareto(a: Any, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Return a node of draws from the Lomax distribution; see `mx.np.random.pareto`."""
    return sampler_node("_npi_pareto", "pareto", {"a": a}, out, ctx, size=size)


def power(a: Any, size: Any = None) -> Any:
    """Return a node of draws with density a xᵃ⁻¹; see `mx.np.random.power`."""
    return sampler_node("_npi_powerd", "powerd", {"a": a}, size=size)


def gamma(shape: Any, scale: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Return a node of draws from the gamma distribution; see `mx.np.random.gamma`."""
    return sampler_node("_npi_gamma", "gamma", {"shape": shape, "scale": scale}, out, ctx, size=size, dtype=dtype)


def chisquare(df: Any, size: Any = None, dtype: Any = None, ctx: Any = None) -> Any:
    """Return a node of draws from the chi-square distribution; see `mx.np.random.chisquare`."""
    return gamma(df / 2, 2.0, size, dtype, ctx)


def beta(a: Any, b: Any, size: Any = None, dtype: Any = None, ctx: Any = None) -> Any:
    """Return nodes of draws from the beta distribution; see `mx.np.random.beta`."""
    x, y = gamma(a, 1.0, size, dtype, ctx), gamma(b, 1.0, size, dtype, ctx)
    return x / (x + y)


def rand(*size: int, **kwargs: Any) -> Any:
    """Return a node of draws from [0, 1) with the lengths of the axes as arguments."""
    return uniform(0.0, 1.0, size or None, **kwargs)


def randint(
    low: int, high: int | None = None, size: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Return a node of integers from `low` to below `high`, or from 0 to below `low`; int64, or int32 by `dtype`."""
    if out is not None:
        raise ArgumentTypeError("random.randint: out= needs an array; a symbol has no values to write")
    low, high = (0, low) if high is None else (low, high)
    kind = as_dtype(onp.int64 if dtype is None or dtype == "int" else dtype).name
    shape = () if size is None else (size,) if is_number(size) else tuple(size)
    params = {"low": int(low), "high": int(high), "shape": shape, "dtype": kind}
    place = str(current_context() if ctx is None else ctx)
    return make_node("_random_randint", (), params | {"ctx": place}, "random_randint")


def choice(a: Any, size: Any = None, replace: bool = True, p: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Return a node of draws from the elements of the symbol `a`, or from the numbers from 0 to below the number `a`.

    `p`, a symbol, has the probability of each; without, all are equal.

    Raises:
        ArgumentTypeError: `a` is neither number nor symbol, `p` is no symbol, or `out` is given.
    """
    if not is_number(a) and not isinstance(a, Symbol):
        raise ArgumentTypeError(f"random.choice: a of type {type(a).__name__}: expected number or symbol")
    if p is not None and not isinstance(p, Symbol):
        raise ArgumentTypeError(f"random.choice: p of type {type(p).__name__}: expected a symbol")
    inputs = [as_np(i) for i in (a, p) if isinstance(i, Symbol)]
    params = {
        "a": None if isinstance(a, Symbol) else int(a),
        "size": size,
        "ctx": str(current_context() if ctx is None else ctx),
    }
    if out is not None:
        raise ArgumentTypeError("random.choice: out= needs an array; a symbol has no values to write")
    params |= {"replace": bool(replace), "weighted": p is not None}
    return as_np(create(OPS["_npi_choice"], inputs, params, None, None, "choice"))


def multivariate_normal(mean: Any, cov: Any, size: Any = None, check_valid: Any = None, tol: Any = None) -> Any:
    """Return nodes of draws of the normal distribution with mean (..., d) and covariance (..., d, d).

    `size` draws of each, in front of the axes of `mean`; see `mx.np.random.multivariate_normal`.
    """
    for name, value in (("mean", mean), ("cov", cov)):
        if not isinstance(value, Symbol):
            raise ArgumentTypeError(f"random.multivariate_normal: {name}: expected a symbol, got {value!r}")
    centre, factor = as_np(mean), make_node("_npi_cholesky", (as_np(cov),), {})
    batch = () if size is None else (size,) if is_number(size) else tuple(size)
    zero, one = (
        make_node("_npi_full_like", (centre,), {"fill_value": 0.0}),
        make_node("_npi_full_like", (centre,), {"fill_value": 1.0}),
    )
    noise = sampler_node("_npi_normal_n", "normal_n", {"loc": zero, "scale": one}, size=batch)
    scaled = make_node("_npi_matmul", (factor, make_node("expand_dims", (noise,), {"axis": -1})), {})
    return centre + make_node("_np_squeeze", (scaled,), {"axis": (-1,)})


def shuffle(x: Any) -> None:
    """Refuse: a symbol cannot be changed in place."""
    raise ArgumentTypeError("random.shuffle: a symbol cannot be shuffled in place; shuffle the array that is bound")


def bernoulli(
    prob: Any = None, logit: Any = None, size: Any = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Return a node of draws of 1 with probability `prob`, or sigmoid(`logit`); see `mx.npx.random.bernoulli`."""
    if (prob is None) == (logit is None):
        raise ArgumentTypeError(f"random.bernoulli: prob={prob}, logit={logit}: expected one of them")
    kind = as_dtype(onp.float32 if dtype is None else dtype).name
    numbers = {"prob": prob, "logit": logit}
    return sampler_node(
        "_npi_bernoulli", "bernoulli", numbers, out, ctx, size=size, dtype=kind, is_logit=logit is not None
    )


def uniform_n(low: Any = 0.0, high: Any = 1.0, batch_shape: Any = None, dtype: Any = None, ctx: Any = None) -> Any:
    """Return a node of `batch_shape` draws for every element of the parameters; see `mx.npx.random.uniform_n`."""
    return sampler_node(
        "_npi_uniform_n", "uniform_n", {"low": low, "high": high}, None, ctx, size=batch_shape, dtype=dtype
    )


def normal_n(loc: Any = 0.0, scale: Any = 1.0, batch_shape: Any = None, dtype: Any = None, ctx: Any = None) -> Any:
    """Return a node of `batch_shape` draws for every element of the parameters; see `mx.npx.random.normal_n`."""
    return sampler_node(
        "_npi_normal_n", "normal_n", {"loc": loc, "scale": scale}, None, ctx, size=batch_shape, dtype=dtype
    )


__all__ = [
    "bernoulli", "beta", "chisquare", "choice", "exponential", "gamma", "gumbel", "logistic", "lognormal",
    "multivariate_normal", "normal", "normal_n", "pareto", "power", "rand", "randint", "rayleigh", "shuffle", "uniform",
    "uniform_n", "weibull",
]  # fmt: skip
