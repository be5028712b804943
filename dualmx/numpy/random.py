"""`mx.np.random`: standard samples, transformed by parameters that may be numbers or arrays.

Parameters broadcast, and gradients pass to them where the sample depends on them smoothly.
"""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..core.argcheck import context as as_context
from ..core.argcheck import integer
from ..core.context import Context, current_context
from ..core.dtypes import as_dtype
from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray.handle import invoke, invoke_nullary
from ..ndarray.ndarray import NDArray
from ..op.registry import OPS
from .call import array_from_values, as_array, cast, is_number, to_ints, write_out
from .elementwise import FUNCTIONS as F
from .linalg import cholesky
from .np_ndarray import as_np_class, ndarray

Size = Any


def _size(size: Size, what: str) -> tuple[int, ...] | None:
    if size is None:
        return None
    try:
        found = to_ints(size)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"random.{what}: size={size!r}: expected None, an int or a tuple of ints") from None
    if any(n < 0 for n in found):
        raise ArgumentError(f"random.{what}: size={size}: expected lengths of 0 or more")
    return found


def _parameter(value: Any, what: str, name: str, least: float | None = None, open_end: bool = False) -> Any:
    """Return a parameter as a number or an array; a number below `least` (or equal to it) raises."""
    if is_number(value):
        if least is not None and (value < least or (open_end and value == least)):
            raise ArgumentError(f"random.{what}: {name}={value}: expected a number {'>' if open_end else '>='} {least}")
        return float(value)
    return as_array(value, f"random.{what}", name)


def _shape(params: tuple[Any, ...], size: tuple[int, ...] | None, what: str) -> tuple[int, ...]:
    shapes = [p.shape for p in params if isinstance(p, ndarray)]
    try:
        found = onp.broadcast_shapes(*shapes, *(() if size is None else (size,)))
    except ValueError:
        raise ArgumentError(f"random.{what}: parameters {shapes} and size={size} do not broadcast") from None
    if size is not None and found != size:
        raise ArgumentError(f"random.{what}: size={size}: expected a shape that parameters {shapes} broadcast to")
    return found


def _context_of(params: tuple[Any, ...], ctx: Any) -> Context:
    if ctx is not None:
        return as_context(ctx)
    return next((p.context for p in params if isinstance(p, ndarray)), current_context())


def _draw_standard(
    kind: str, what: str, params: tuple[Any, ...], size: Size, dtype: Any = None, ctx: Any = None
) -> ndarray:
    """Draw the standard form in the shape that `size` or the parameters give."""
    shape = _shape(params, _size(size, what), what)
    name = as_dtype(onp.float32 if dtype is None else dtype).name
    call = OPS["_npi_standard"].call(kind=kind, size=shape, dtype=name)
    return as_np_class(invoke_nullary(call, _context_of(params, ctx))[0])


def _cast_and_write(drawn: ndarray, dtype: Any, out: Any, what: str) -> Any:
    return write_out(cast(drawn, onp.float32 if dtype is None else dtype), out, f"random.{what}")


def uniform(
    low: Any = 0.0, high: Any = 1.0, size: Size = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> ndarray:
    """Draw from the uniform distribution on [low, high).

    Args:
        low, high: numbers or arrays, which broadcast.
        size: shape of the result; that of the parameters if None.
        dtype: float16, float32 (default) or float64.
        ctx: where to draw; that of the parameters, else the current context.
        out: array to write to.

    Raises:
        ArgumentError: parameters do not fit `size`, or another dtype.

    Example:
        >>> import dualmx as mx
        >>> mx.np.random.uniform(size=(2, 3)).shape
        (2, 3)
    """
    a, b = _parameter(low, "uniform", "low"), _parameter(high, "uniform", "high")
    return _cast_and_write(
        a + (b - a) * _draw_standard("uniform", "uniform", (a, b), size, dtype, ctx), dtype, out, "uniform"
    )


def normal(
    loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> ndarray:
    """Draw from the normal distribution with mean `loc` and standard deviation `scale`; arguments as for `uniform`."""
    a, b = _parameter(loc, "normal", "loc"), _parameter(scale, "normal", "scale", 0)
    return _cast_and_write(a + b * _draw_standard("normal", "normal", (a, b), size, dtype, ctx), dtype, out, "normal")


def lognormal(
    mean: Any = 0.0, sigma: Any = 1.0, size: Size = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> ndarray:
    """Draw exp(x), x normal with mean `mean` and standard deviation `sigma`; arguments as for `uniform`."""
    return write_out(F["exp"](normal(mean, sigma, size, dtype, ctx)), out, "random.lognormal")


def logistic(loc: Any = 0.0, scale: Any = 1.0, size: Size = None, ctx: Any = None, out: Any = None) -> ndarray:
    """Draw from the logistic distribution; arguments as for `uniform`."""
    a, b = _parameter(loc, "logistic", "loc"), _parameter(scale, "logistic", "scale", 0)
    return _cast_and_write(
        a + b * _draw_standard("logistic", "logistic", (a, b), size, None, ctx), None, out, "logistic"
    )


def gumbel(loc: Any = 0.0, scale: Any = 1.0, size: Size = None, ctx: Any = None, out: Any = None) -> ndarray:
    """Draw from the Gumbel distribution (of maxima); arguments as for `uniform`."""
    a, b = _parameter(loc, "gumbel", "loc"), _parameter(scale, "gumbel", "scale", 0)
    return _cast_and_write(a + b * _draw_standard("gumbel", "gumbel", (a, b), size, None, ctx), None, out, "gumbel")


def exponential(scale: Any = 1.0, size: Size = None, ctx: Any = None, out: Any = None) -> ndarray:
    """Draw from the exponential distribution with mean `scale`; arguments as for `uniform`."""
    a = _parameter(scale, "exponential", "scale", 0)
    return _cast_and_write(
        a * _draw_standard("exponential", "exponential", (a,), size, None, ctx), None, out, "exponential"
    )


def rayleigh(scale: Any = 1.0, size: Size = None, ctx: Any = None, out: Any = None) -> ndarray:
    """Draw from the Rayleigh distribution, the length of a vector of two normal numbers; arguments as for `uniform`."""
    a = _parameter(scale, "rayleigh", "scale", 0)
    drawn = F["sqrt"](2 * _draw_standard("exponential", "rayleigh", (a,), size, None, ctx))
    return _cast_and_write(a * drawn, None, out, "rayleigh")


def weibull(a: Any, size: Size = None, ctx: Any = None, out: Any = None) -> ndarray:
    """Draw from the Weibull distribution with shape `a` and scale 1; arguments as for `uniform`."""
    p = _parameter(a, "weibull", "a", 0, open_end=True)
    return _cast_and_write(
        _draw_standard("exponential", "weibull", (p,), size, None, ctx) ** (1 / p), None, out, "weibull"
    )


def pareto(a: Any, size: Size = None, ctx: Any = None, out: Any = None) -> ndarray:
    """Draw from the Pareto II (Lomax) distribution with shape `a`: 0 or more; arguments as for `uniform`."""
    p = _parameter(a, "pareto", "a", 0, open_end=True)
    return _cast_and_write(
        F["expm1"](_draw_standard("exponential", "pareto", (p,), size, None, ctx) / p), None, out, "pareto"
    )


def power(a: Any, size: Size = None) -> ndarray:
    """Draw from [0, 1] with density a xᵃ⁻¹; arguments as for `uniform`."""
    p = _parameter(a, "power", "a", 0, open_end=True)
    return _cast_and_write(F["exp"](-_draw_standard("exponential", "power", (p,), size) / p), None, None, "power")


def _gamma(a: Any, what: str, others: tuple[Any, ...], size: Size, dtype: Any, ctx: Any) -> ndarray:
    """Draw gamma numbers of scale 1."""
    params = (a, *others)
    shape = _shape(params, _size(size, what), what)
    kind = as_dtype(onp.float32 if dtype is None else dtype)
    if kind.kind != "f":
        raise ArgumentError(f"random.{what}: dtype={dtype!r}: expected float16, float32 or float64")
    where = _context_of(params, ctx)
    if not isinstance(a, ndarray):
        a = (
            as_np_class(invoke_nullary(OPS["_npi_full"].call(shape=shape, value=a, dtype=kind.name), where)[0])
            if shape
            else (array_from_values(onp.asarray(a, kind), where))
        )
    shapes = as_np_class(invoke(OPS["_npi_broadcast_to"].call(shape=shape), (cast(a, kind),))[0])
    return as_np_class(invoke(OPS["_npi_standard_gamma"].call(), (shapes,))[0])


def gamma(
    shape: Any, scale: Any = 1.0, size: Size = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> ndarray:
    """Draw from the gamma distribution with mean shape · scale; arguments as for `uniform`."""
    a = _parameter(shape, "gamma", "shape", 0, open_end=True)
    b = _parameter(scale, "gamma", "scale", 0)
    return _cast_and_write(b * _gamma(a, "gamma", (b,), size, dtype, ctx), dtype, out, "gamma")


def chisquare(df: Any, size: Size = None, dtype: Any = None, ctx: Any = None) -> ndarray:
    """Draw from the chi-square distribution with `df` degrees of freedom; arguments as for `uniform`."""
    p = _parameter(df, "chisquare", "df", 0, open_end=True)
    return _cast_and_write(_gamma(p / 2, "chisquare", (), size, dtype, ctx) * 2, dtype, None, "chisquare")


def beta(a: Any, b: Any, size: Size = None, dtype: Any = None, ctx: Any = None) -> ndarray:
    """Draw from the beta distribution on [0, 1]; arguments as for `uniform`."""
    p, q = _parameter(a, "beta", "a", 0, open_end=True), _parameter(b, "beta", "b", 0, open_end=True)
    x, y = _gamma(p, "beta", (q,), size, dtype, ctx), _gamma(q, "beta", (p,), size, dtype, ctx)
    return _cast_and_write(x / (x + y), dtype, None, "beta")


def rand(*size: int, **kwargs: Any) -> ndarray:
    """Draw from [0, 1) with the lengths of the axes as arguments; further keywords as for `uniform`."""
    return uniform(0.0, 1.0, size=size, **kwargs)


def randn(*size: int, **kwargs: Any) -> ndarray:
    """Draw from the standard normal distribution; arguments as for `rand`."""
    return normal(0.0, 1.0, size=size, **kwargs)


def randint(
    low: int, high: int | None = None, size: Size = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> ndarray:
    """Draw integers from `low` to below `high`, or from 0 to below `low`; int64, or int32 by `dtype`.

    Raises:
        ArgumentError: an empty range, or another dtype.

    Example:
        >>> import dualmx as mx
        >>> mx.np.random.randint(3, 4, size=(2,))
        array([3, 3], dtype=int64)
    """
    low, high = (0, low) if high is None else (low, high)
    kind = as_dtype(onp.int64 if dtype is None or dtype == "int" else dtype).name
    call = OPS["_npi_randint"].call(low=int(low), high=int(high), size=_size(size, "randint") or (), dtype=kind)
    return write_out(as_np_class(invoke_nullary(call, _context_of((), ctx))[0]), out, "random.randint")


def choice(a: Any, size: Size = None, replace: bool = True, p: Any = None, ctx: Any = None, out: Any = None) -> ndarray:
    """Draw elements of `a` (along its first axis), or of 0 to below `a`.

    Args:
        a: an array, or a number.
        size: shape of the draws; one if None.
        replace: an element may come more than once.
        p: probabilities of the elements, equal ones if None.
        ctx, out: as for `uniform`.

    Raises:
        ArgumentError: more draws than elements without `replace`, or `p` of another length.
    """
    pool = None if is_number(a) else as_array(a, "random.choice")
    n = integer("random.choice", "a", a, 1) if pool is None else pool.shape[0] if pool.ndim else 0
    shape = _size(size, "choice") or ()
    if not n or (not replace and int(onp.prod(shape)) > n):
        raise ArgumentError(f"random.choice: {n} elements: expected at least {max(1, int(onp.prod(shape)))}")
    found = _positions(n, shape, replace, p, _context_of((pool,), ctx))
    return write_out(found if pool is None else pool[found], out, "random.choice")


def _positions(n: int, shape: tuple[int, ...], replace: bool, p: Any, ctx: Context) -> ndarray:
    """Draw positions from 0 to below `n`."""
    if p is not None:
        weights = as_array(p, "random.choice", "p")
        if weights.shape != (n,):
            raise ArgumentError(f"random.choice: p has shape {weights.shape}: expected ({n},)")
        return as_np_class(
            invoke(OPS["_npi_choice"].call(a=n, size=shape, replace=bool(replace), weighted=True), (weights,))[0]
        )
    if replace:
        return randint(n, size=shape, ctx=ctx)
    return permutation(array_from_values(onp.arange(n), ctx))[: int(onp.prod(shape))].reshape(shape)


def multinomial(n: int, pvals: Any, size: Size = None, **kwargs: Any) -> ndarray:
    """Draw the counts of `n` trials over outcomes with probabilities `pvals` (k,); int64, shape (*size, k).

    Raises:
        ArgumentError: the probabilities add up to more than 1. ArgumentTypeError: NumPy's array.

    Example:
        >>> import dualmx as mx
        >>> mx.np.random.multinomial(20, [0.0, 1.0])
        array([ 0, 20], dtype=int64)
    """
    if kwargs:
        raise ArgumentTypeError(f"random.multinomial: unexpected argument {next(iter(kwargs))!r}")
    if isinstance(pvals, onp.ndarray):
        raise ArgumentTypeError("random.multinomial: pvals is a numpy.ndarray: expected a list or a mx.np.ndarray")
    if not isinstance(pvals, NDArray):
        values = onp.asarray(pvals, onp.float64)
        if values.sum() > 1 + 1e-12:
            raise ArgumentError(f"random.multinomial: pvals={list(pvals)}: they add up to more than 1")
        pvals = array_from_values(values)
    call = OPS["_npi_multinomial"].call(n=integer("random.multinomial", "n", n), size=_size(size, "multinomial") or ())
    return as_np_class(invoke(call, (as_array(pvals, "random.multinomial", "pvals"),))[0])


def multivariate_normal(mean: Any, cov: Any, size: Size = None, check_valid: Any = None, tol: Any = None) -> ndarray:
    """Draw vectors of the normal distribution with mean (..., d) and covariance (..., d, d); shape (*size, ..., d).

    Args:
        mean, cov: arrays whose batch axes broadcast.
        size: how many draws of each.
        check_valid, tol: accepted without effect; a covariance without Cholesky factor raises at the next sync point.
    """
    m, c = as_array(mean, "random.multivariate_normal", "mean"), as_array(cov, "random.multivariate_normal", "cov")
    if not m.ndim or c.ndim < 2 or c.shape[-2:] != (m.shape[-1],) * 2:
        raise ArgumentError(
            f"random.multivariate_normal: mean {m.shape} and cov {c.shape}: expected (..., d) and (..., d, d)"
        )
    shape = (_size(size, "multivariate_normal") or ()) + onp.broadcast_shapes(m.shape[:-1], c.shape[:-2]) + m.shape[-1:]
    drawn = _draw_standard("normal", "multivariate_normal", (), shape, m.dtype, m.context)
    return m + (cholesky(c) * drawn[..., None, :]).sum(axis=-1)


def shuffle(x: Any) -> None:
    """Shuffle an array along its first axis, in place."""
    into = as_array(x, "random.shuffle", "x")
    into[...] = permutation(into)


def permutation(x: Any) -> ndarray:
    """Return an array shuffled along its first axis, or the numbers 0 to below `x`, int64, in random order."""
    if is_number(x):
        return choice(x, size=int(x), replace=False)
    return as_np_class(invoke(OPS["_npi_shuffle"].call(), (as_array(x, "random.permutation", "x"),))[0])


__all__ = [
    "beta", "chisquare", "choice", "exponential", "gamma", "gumbel", "logistic", "lognormal", "multinomial",
    "multivariate_normal", "normal", "pareto", "permutation", "power", "rand", "randint", "randn", "rayleigh",
    "shuffle", "uniform", "weibull",
]  # fmt: skip
