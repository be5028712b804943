"""Calls of functions of `mx.np` that official NumPy answers alike: arrays in float64, unless the function is about
integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as onp

rng = onp.random.RandomState(7)
M = rng.uniform(0.2, 0.9, (2, 3))
N = rng.uniform(0.2, 0.9, (3, 2))
V = rng.uniform(0.2, 0.9, 4)
ROW = rng.uniform(0.2, 0.9, 3)
T = rng.uniform(0.2, 0.9, (2, 3, 2))
WHOLE = onp.array([[3, -4, 7], [2, 5, -6]])
COUNT = onp.array([1, 2, 2, 0, 5])
FLAG = onp.array([[True, False, True], [False, False, True]])
EMPTY = onp.zeros((0, 3))
POINT = onp.array(0.7)


@dataclass(frozen=True, eq=False)
class Case:
    """One call: the function's name, positional and keyword arguments, which arguments have a smooth gradient.

    `numpy` is called instead of NumPy's function of that name.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    smooth: bool = False
    numpy: Callable[..., Any] | None = None

    def __str__(self) -> str:
        shown = [f"{list(a.shape)}" if isinstance(a, onp.ndarray) else repr(a)[:20] for a in self.args]
        return f"{self.name}({', '.join(shown + [f'{k}={v!r}' for k, v in self.kwargs.items()])})"


def same(name: str, *args: Any, **kwargs: Any) -> Case:
    return Case(name, args, kwargs)


def smooth(name: str, *args: Any, **kwargs: Any) -> Case:
    return Case(name, args, kwargs, smooth=True)


SMOOTH_UNARY = (
    "abs absolute fabs negative sqrt cbrt square reciprocal exp expm1 log log10 log2 log1p sin cos tan arcsin arccos "
    "arctan sinh cosh tanh arcsinh arctanh degrees rad2deg radians deg2rad positive"
)
FLAT_UNARY = "sign ceil floor trunc fix logical_not isnan isinf isfinite isposinf isneginf"
SMOOTH_BINARY = "add subtract multiply divide true_divide power maximum minimum hypot arctan2 copysign"
COMPARED = "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor"


def elementwise() -> Iterator[Case]:
    for name in SMOOTH_UNARY.split():
        yield smooth(name, M)
    yield smooth("arccosh", M + 1)
    for name in FLAT_UNARY.split():
        yield same(name, onp.array([[-1.5, 0.0, 2.5], [onp.inf, -onp.inf, onp.nan]]) if name[:2] == "is" else M * 3 - 1)
    for name in SMOOTH_BINARY.split():
        yield smooth(name, M, ROW)
        yield smooth(name, M, 0.5)
        yield smooth(name, 0.5, M)
    for name in COMPARED.split():
        yield same(name, WHOLE, ROW)
        yield same(name, WHOLE, 3)
        yield same(name, 3, WHOLE)
    yield smooth("mod", M, ROW)
    yield same("remainder", WHOLE, onp.array([2, 3, -4]))
    yield same("floor_divide", WHOLE, onp.array([2, 3, -4]))
    yield same("lcm", COUNT, onp.array([4, 6, 3, 5, 10]))
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        yield same(name, WHOLE, onp.array([2, 3, 4]))
        yield same(name, FLAG, FLAG[::-1].copy())
        yield same(name, WHOLE, 3)
    yield same("invert", WHOLE)
    yield same("bitwise_not", FLAG)
    yield same("ldexp", M, onp.array([1, 2, 3], "int32"))
    yield same("around", M, 1)
    yield same("round", M * 5)
    yield same("nan_to_num", onp.array([onp.nan, onp.inf, -onp.inf, 1.0]), nan=2.0, posinf=5.0)
    yield smooth("clip", M, 0.3, 0.6)
    yield same("clip", WHOLE, None, 3)


def reductions() -> Iterator[Case]:
    for name in ("sum", "mean", "prod", "std", "var", "max", "min", "ptp"):
        yield smooth(name, T)
        yield smooth(name, T, axis=1)
        yield smooth(name, T, axis=(0, -1), **({"keepdims": True} if name != "ptp" else {}))
    for name in ("amax", "amin", "median"):
        yield smooth(name, M, axis=0)
    yield smooth("std", M, ddof=1)
    yield smooth("sum", M, axis=())
    yield same("sum", EMPTY, axis=0)
    yield same("prod", EMPTY)
    yield same("sum", M, initial=3.0)
    yield same("max", EMPTY, initial=3.0)
    for name in ("all", "any"):
        yield same(name, FLAG, axis=0)
        yield same(name, M)
    for name in ("argmax", "argmin"):
        yield same(name, M)
        yield same(name, M, axis=1)
    yield smooth("cumsum", M)
    yield smooth("cumsum", M, axis=1)
    yield smooth("average", M, axis=1, weights=ROW)
    yield same("average", M, returned=True)
    yield same("percentile", M, 30)
    yield same("percentile", M, onp.array([10.0, 50.0]), axis=1)
    yield same("quantile", M, 0.3, axis=0, keepdims=True)
    yield same("count_nonzero", FLAG, axis=1)


def shapes() -> Iterator[Case]:
    yield smooth("reshape", M, (3, -1))
    yield smooth("ravel", M)
    yield smooth("squeeze", M[None])
    yield smooth("squeeze", M[None], axis=0)
    yield smooth("expand_dims", M, (0, -1))
    yield smooth("transpose", T)
    yield smooth("transpose", T, (1, 0, 2))
    yield smooth("swapaxes", T, 0, -1)
    yield smooth("moveaxis", T, (0, 1), (-1, 0))
    yield smooth("rollaxis", T, 2)
    yield smooth("rollaxis", T, 0, 3)
    yield smooth("roll", M, 1)
    yield smooth("roll", M, (1, -1), axis=(0, 1))
    yield smooth("flip", M)
    yield smooth("flip", M, 1)
    yield smooth("flipud", M)
    yield smooth("fliplr", M)
    yield smooth("rot90", M)
    yield smooth("rot90", T, 3, (0, 2))
    yield smooth("broadcast_to", ROW, (2, 3))
    yield smooth("tile", M, (2, 1))
    yield smooth("repeat", M, 2)
    yield smooth("repeat", M, 2, axis=1)
    yield smooth("repeat", ROW, [0, 2, 1])
    yield smooth("resize", ROW, (2, 4))
    for mode in ("constant", "edge", "reflect", "symmetric", "maximum", "minimum"):
        yield smooth("pad", M, ((1, 1), (0, 2)), mode=mode)
    yield same("pad", M, 1, constant_values=5)
    yield smooth("diag", M)
    yield smooth("diag", V, 1)
    yield smooth("diagflat", M)
    yield smooth("diagonal", T, 1, 1, 2)
    yield smooth("tril", M, -1)
    yield smooth("triu", M, 1)
    yield smooth("trace", M, 1)
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        yield same(name, POINT)
        yield smooth(name, ROW)
    yield smooth("meshgrid", ROW, V)
    yield smooth("meshgrid", ROW, V, indexing="ij", sparse=True)
    yield smooth("broadcast_arrays", ROW, M)


def joins() -> Iterator[Case]:
    yield smooth("concatenate", [M, M * 2])
    yield smooth("concatenate", [M, N], axis=None)
    yield smooth("stack", [M, M * 2], axis=-1)
    for name in ("vstack", "hstack", "dstack", "column_stack"):
        yield smooth(name, [ROW, ROW * 2])
        yield smooth(name, [M, M * 2])
    yield smooth("append", M, ROW)
    yield smooth("append", M, M, axis=0)
    yield smooth("split", V, 2)
    yield smooth("split", M, [1, 2], axis=1)
    yield same("split", V, [3, 1])
    yield smooth("array_split", V, 3)
    yield smooth("hsplit", M, 3)
    yield smooth("vsplit", M, 2)
    yield smooth("dsplit", T, 2)


def products() -> Iterator[Case]:
    yield smooth("dot", M, N)
    yield smooth("dot", ROW, ROW)
    yield smooth("dot", T, N.T.copy()[:, :2])
    yield smooth("matmul", T, M)
    yield smooth("matmul", ROW, N)
    yield smooth("matmul", T, onp.array([1.0, 2.0]))
    yield smooth("tensordot", T, M, axes=[[0, 1], [0, 1]])
    yield smooth("tensordot", M, N, axes=1)
    yield smooth("tensordot", ROW, V, axes=0)
    yield smooth("inner", M, ROW)
    yield smooth("outer", M, V)
    yield smooth("vdot", M, M)
    yield smooth("kron", M, N)
    yield smooth("einsum", "ij,jk->ik", M, N)
    yield smooth("einsum", "ij->", M)
    yield smooth("einsum", "...i,i", T.swapaxes(1, 2).copy(), ROW)
    yield smooth("polyval", ROW, M)


def searches() -> Iterator[Case]:
    yield smooth("where", FLAG, M, 2 * M)
    yield smooth("where", FLAG, M, 1.5)
    yield same("where", FLAG)
    yield same("nonzero", WHOLE * FLAG)
    yield same("argwhere", FLAG)
    yield same("flatnonzero", FLAG)
    yield smooth("sort", M)
    yield smooth("sort", M, axis=None)
    yield same("argsort", M, axis=0)
    yield same("unique", COUNT)
    yield same("unique", COUNT, return_index=True, return_inverse=True, return_counts=True)
    yield same("unique", onp.array([[1, 2], [1, 2], [0, 5]]), axis=0)
    yield same("bincount", COUNT)
    yield same("bincount", COUNT, weights=onp.arange(5.0), minlength=8)
    yield same("histogram", V, bins=3)
    yield same("histogram", V, bins=onp.array([0.0, 0.3, 0.6, 1.0]))
    yield smooth("take", M, onp.array([0, 2, -1]))
    yield smooth("take", M, onp.array([[0, 1], [1, 0]]), axis=1)
    yield same("take", M, onp.array([7, -9]), mode="wrap")
    yield same("take", M, onp.array([7, -9]), mode="clip")
    yield smooth("take_along_axis", M, onp.array([[0], [2]]), axis=1)
    yield smooth("delete", M, 1, axis=1)
    yield smooth("delete", M, [0, -1])
    yield smooth("delete", V, slice(1, 3))
    yield smooth("insert", V, 1, 5.0)
    yield smooth("insert", M, 1, ROW, axis=0)
    yield smooth("insert", M, [0, 2], onp.array([[1.0, 2.0], [3.0, 4.0]]), axis=1)
    yield smooth("insert", V, [1, 1, 3], onp.array([1.0, 2.0, 3.0]))
    yield same("insert", V, slice(0, 2), 9.0)
    yield smooth("diff", M)
    yield smooth("diff", M, n=2, axis=1, prepend=0.0)
    yield smooth("ediff1d", M, to_begin=1.0, to_end=onp.array([2.0, 3.0]))
    yield smooth("interp", V, onp.array([0.0, 0.5, 1.0]), onp.array([1.0, 3.0, 2.0]))
    yield same("interp", V * 4, onp.array([0.0, 0.5, 0.8]), onp.array([1.0, 3.0, 2.0]), period=1.0)
    yield same("unravel_index", COUNT, (2, 3))
    yield same("diag_indices_from", onp.eye(3))
    yield same("isclose", M, M * (1 + 1e-6))
    yield same("allclose", M, M + 1)
    yield same("array_equal", M, M)
    yield same("array_equiv", M, M[:1])
    yield same("shape", M)
    yield same("ndim", M)
    yield same("size", M, 1)


def host() -> Iterator[Case]:
    """What NumPy itself computes."""
    yield same("modf", M * 3)
    yield same("median", V)
    yield same("searchsorted", onp.sort(V), 0.5)
    yield same("cov", M)
    yield same("corrcoef", M)
    yield same("union1d", COUNT, onp.array([9]))
    yield same("isin", WHOLE, COUNT)
    yield same("nanmean", M)
    yield same("cumprod", M, axis=1)
    yield same("partition", V, 1)
    yield same("polyfit", ROW, ROW * 2 + 1, 1)
    yield same("digitize", M, onp.array([0.3, 0.6]))
    yield same("select", [FLAG], [M], 0.0)
    yield same("vander", ROW)


ROOMS = (elementwise, reductions, shapes, joins, products, searches, host)
CASES = [case for room in ROOMS for case in room()]
