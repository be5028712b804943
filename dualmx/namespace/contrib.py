"""Handwritten functions of `nd.contrib` and `sym.contrib`."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from ..core.argcheck import integer, require_instance
from ..core.context import Context
from ..ndarray.ndarray import NDArray
from ..op.registry import OPS
from ..symbol.symbol import Symbol, create


def isnan(data: NDArray) -> NDArray:
    """1 where an element is not a number, else 0, in the dtype of `data`.

    Example:
        >>> nd.contrib.isnan(nd.array([1.0, float("nan")])).asnumpy().tolist()
        [0.0, 1.0]
    """
    return data != data


def isinf(data: NDArray) -> NDArray:
    """1 where an element is infinite, else 0, in the dtype of `data`.

    Example:
        >>> nd.contrib.isinf(nd.array([1.0, float("-inf")])).asnumpy().tolist()
        [0.0, 1.0]
    """
    return data.abs() == math.inf if np.dtype(data.dtype).kind not in "biu" else data != data


def isfinite(data: NDArray) -> NDArray:
    """1 where an element is neither infinite nor not a number, else 0, in the dtype of `data`.

    Example:
        >>> nd.contrib.isfinite(nd.array([1.0, float("-inf")])).asnumpy().tolist()
        [1.0, 0.0]
    """
    return data - data == 0


def rand_zipfian(
    true_classes: NDArray, num_sampled: int, range_max: int, ctx: Context | None = None
) -> tuple[NDArray, NDArray, NDArray]:
    """Draw classes from an approximately log-uniform distribution, with replacement, for sampled softmax.

    Class k of `range_max` has probability (log(k + 2) - log(k + 1)) / log(range_max + 1): frequent classes first.

    Args:
        true_classes: classes of the targets, any shape.
        num_sampled: how many classes to draw.
        range_max: number of classes.
        ctx: where to draw.

    Returns:
        The classes drawn (num_sampled,) int64; how often each true class, and each class drawn, is expected among them
        (float64).

    Example:
        >>> drawn, expected_true, expected = nd.contrib.rand_zipfian(nd.array([3]), 4, 5)
        >>> drawn.shape, round(float(expected_true.asscalar()), 4)
        ((4,), 0.4982)
    """
    from .. import ndarray as nd

    require_instance("rand_zipfian", "true_classes", true_classes, NDArray, "an NDArray")
    num_sampled = integer("rand_zipfian", "num_sampled", num_sampled, 1)
    log_range = math.log(integer("rand_zipfian", "range_max", range_max, 1) + 1)
    drawn = nd.random.uniform(0, log_range, shape=(num_sampled,), dtype="float64", ctx=ctx)
    classes = (drawn.exp() - 1).astype("int64") % range_max

    def expected(of: NDArray) -> NDArray:
        return ((of + 2.0) / (of + 1.0)).log() / log_range * num_sampled

    return (
        classes,
        expected(true_classes.as_in_context(classes.context).astype("float64")),
        expected(classes.astype("float64")),
    )


def symbolic_rand_zipfian(true_classes: Symbol, num_sampled: int, range_max: int) -> tuple[Symbol, Symbol, Symbol]:
    """Draw classes from an approximately log-uniform distribution; see `nd.contrib.rand_zipfian`."""
    num_sampled = integer("rand_zipfian", "num_sampled", num_sampled, 1)
    log_range = math.log(integer("rand_zipfian", "range_max", range_max, 1) + 1)
    params = {"low": 0.0, "high": log_range, "shape": (num_sampled,), "dtype": "float64"}
    drawn = create(OPS["_random_uniform"], (), params, None)
    classes = (drawn.exp() - 1).astype("int64") % range_max

    def expected(of: Symbol) -> Symbol:
        return ((of + 2.0) / (of + 1.0)).log() / log_range * num_sampled

    return classes, expected(true_classes.astype("float64")), expected(classes.astype("float64"))


symbolic_rand_zipfian.__name__ = symbolic_rand_zipfian.__qualname__ = "rand_zipfian"


def _symbolic_update(op_name: str, name: str, inputs: tuple[str, ...]) -> Any:
    def update(*args: Any, name: str | None = None, **kwargs: Any) -> Symbol:
        order = (*inputs, "rescale_grad", "lr", "eta", "beta1", "beta2", "epsilon", "wd", "clip_gradient")
        given = dict(zip(order, args, strict=False)) | kwargs
        given = {k: v for k, v in given.items() if v is not None}
        scale = given.pop("rescale_grad", 1.0)
        if not isinstance(scale, Symbol):
            scale = create(OPS["_full"], (), {"shape": (1,), "value": float(scale)}, None)
        symbols = [given.pop(i) for i in inputs]
        return create(OPS[op_name], (*symbols, scale), given, name, hint=op_name.lstrip("_"))

    update.__name__ = update.__qualname__ = name
    update.__doc__ = f"One step of AdamW as a node; the gradient's scale may be a number. See `nd.contrib.{name}`."
    return update


_WEIGHTS = ("weight", "grad", "mean", "var")
adamw_update = _symbolic_update("_adamw_update", "adamw_update", _WEIGHTS)
mp_adamw_update = _symbolic_update("_mp_adamw_update", "mp_adamw_update", (*_WEIGHTS, "weight32"))


def set_value(src: float = 0.0, out: Any = None, name: str | None = None) -> NDArray:
    """Fill the array `out` with the number `src` and return it."""
    require_instance("_set_value", "out", out, NDArray, "an NDArray to fill")
    out[:] = src
    return out


def populate(nd: ModuleType, sym: ModuleType) -> None:
    """Add the functions to `nd.contrib` and `sym.contrib`."""
    for made in (isnan, isinf, isfinite, rand_zipfian):
        setattr(nd.contrib, made.__name__, made)
    sym.contrib.rand_zipfian = symbolic_rand_zipfian
    sym.contrib.adamw_update, sym.contrib.mp_adamw_update = adamw_update, mp_adamw_update
    nd._internal._set_value = set_value
