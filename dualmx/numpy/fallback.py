"""Functions that NumPy computes on host copies; no gradient passes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as onp

from ..core.deprecated import former_names
from ..core.errors import ArgumentTypeError
from ..ndarray.numpy_protocol import to_numpy_tree
from .call import array_from_values, is_symbolic, target

# What MXNet leaves to NumPy, as far as today's NumPy still has it.
HOST_FUNCTIONS = (
    "allclose", "apply_along_axis", "apply_over_axes", "argpartition", "bitwise_count", "choose", "compress",
    "corrcoef", "correlate", "convolve", "cov", "cross", "cumprod", "digitize", "divmod", "extract", "float_power",
    "fmax", "fmin", "fmod", "frexp", "gcd", "geomspace", "genfromtxt", "gradient", "heaviside", "histogram2d",
    "histogram_bin_edges", "histogramdd", "i0", "in1d", "intersect1d", "isin", "ix_", "left_shift", "lexsort",
    "logaddexp", "logaddexp2", "mirr", "modf", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean",
    "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "nextafter", "npv",
    "packbits", "partition", "piecewise", "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul",
    "polysub", "ppmt", "pv", "rate", "real", "imag", "right_shift", "roots", "searchsorted", "select", "setdiff1d",
    "setxor1d", "signbit", "sinc", "spacing", "trapz", "tri", "tril_indices", "tril_indices_from", "trim_zeros",
    "triu_indices", "triu_indices_from", "union1d", "unpackbits", "unwrap", "vander",
)  # fmt: skip
# Names that NumPy has renamed since, and its keywords.
RENAMED = {"trapz": "trapezoid", "in1d": "isin"}
KEYWORDS = {"interpolation": "method", "normed": "density", "ar1": "element", "ar2": "test_elements"}
DROPPED = {"corrcoef": ("bias", "ddof")}
# Functions whose signature is not shown, because today's lacks what MXNet's has.
HIDDEN_SIGNATURES = (
    "corrcoef", "genfromtxt", "histogram2d", "histogramdd", "in1d", "nanpercentile", "nanquantile",
)  # fmt: skip
# About types, not values.
TYPES = ("min_scalar_type", "promote_types", "result_type", "can_cast")


def to_host(value: Any, what: str) -> Any:
    """Return `value` with every array in it as a NumPy copy.

    Raises:
        MXNetError: a gradient through one of them is being recorded; it would be lost.
    """
    return to_numpy_tree(value, what, "another function of mx.np")


def from_host(value: Any) -> Any:
    """Return NumPy's result with every array in it as one of this room; scalars and other objects stay."""
    if isinstance(value, onp.ndarray) and value.dtype.kind in "biuf":
        return array_from_values(value)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(from_host(v) for v in value)
    if isinstance(value, tuple):
        return tuple(from_host(v) for v in value)
    return value


def wrap_host_function(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` of NumPy as a function of arrays of this room."""

    renamed = KEYWORDS if name in HIDDEN_SIGNATURES else {}

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if is_symbolic(args):
            raise ArgumentTypeError(f"{name}: NumPy computes it from values, and a symbol has none")
        out = kwargs.pop("out", None)
        for key in DROPPED.get(name, ()):
            kwargs.pop(key, None)
        kwargs = {renamed.get(k, k): v for k, v in kwargs.items() if v is not None or k not in renamed}
        found = function(*to_host(args, name), **to_host(kwargs, name))
        if out is None:
            return from_host(found)
        into = target(out, name)
        into[...] = from_host(onp.asarray(found))
        return into

    wrapped.__name__ = wrapped.__qualname__ = name
    wrapped.__module__ = "dualmx.numpy"
    wrapped.__doc__ = f"`numpy.{name}`, computed by NumPy on the host; no gradient passes."
    if name not in HIDDEN_SIGNATURES:
        wrapped.__wrapped__ = function  # type: ignore[attr-defined]
    return wrapped


divmod, float_power, frexp, heaviside, modf, positive, signbit, spacing = (
    wrap_host_function(name, getattr(onp, name))
    for name in ("divmod", "float_power", "frexp", "heaviside", "modf", "positive", "signbit", "spacing")
)


@cache
def find(name: str) -> Any:
    """Return the function called `name` that falls back on NumPy, None if there is none."""
    if name in TYPES:
        return getattr(onp, name)
    if name not in HOST_FUNCTIONS:
        return None
    function = getattr(onp, name, None) or getattr(onp, RENAMED.get(name, ""), None)
    return None if function is None else wrap_host_function(name, function)


def set_printoptions(precision: int | None = None, threshold: int | None = None, **kwarg: Any) -> None:
    """Set how arrays are printed; the options are NumPy's."""
    onp.set_printoptions(precision=precision, threshold=threshold, **kwarg)


__all__ = ["HOST_FUNCTIONS", "TYPES", "find", "from_host", "set_printoptions", "to_host", "wrap_host_function"]

__getattr__ = former_names(__name__, {"NAMES": "HOST_FUNCTIONS"})
