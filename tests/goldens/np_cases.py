"""Calls of `mx.np` whose dtypes, shapes and values are compared with what MXNet gave.

A case is (function, arguments); an argument `"float32"` stands for the array [1, 0, 3] in that dtype, other arguments
for themselves.
"""

from __future__ import annotations

import contextlib
import operator
from typing import Any

DTYPES = ("bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64")
UNARY = (
    "abs negative sign rint ceil floor trunc fix sqrt cbrt square reciprocal exp log1p sin arctan tanh degrees "
    "logical_not isnan isfinite bitwise_not around"
).split()
BINARY = "add subtract multiply true_divide mod power maximum minimum hypot copysign lcm bitwise_and equal less".split()
REDUCED = "sum prod mean std var max min argmax argmin any all cumsum average".split()
CREATED: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "array of ints": ("array", ([1, 2],), {}),
    "array of bools": ("array", ([True],), {}),
    "array of a number": ("array", (3,), {}),
    "array of int8": ("array", ([1, 2],), {"dtype": "int8"}),
    "empty array": ("array", ([[]],), {}),
    "zeros ()": ("zeros", ((),), {}),
    "zeros (0, 3)": ("zeros", ((0, 3),), {}),
    "ones int32": ("ones", (2,), {"dtype": "int32"}),
    "full int": ("full", ((2,), 3), {}),
    "full bool": ("full", ((2,), True), {}),
    "arange": ("arange", (3,), {}),
    "arange step": ("arange", (1, 3, 0.5), {}),
    "linspace": ("linspace", (0, 1, 3), {}),
    "linspace int32": ("linspace", (0, 1, 3), {"dtype": "int32"}),
    "logspace": ("logspace", (0, 1, 3), {}),
    "eye": ("eye", (2, 3), {"k": 1, "dtype": "int32"}),
    "identity": ("identity", (2,), {}),
    "indices": ("indices", ((2, 2),), {}),
    "hamming": ("hamming", (4,), {}),
    "blackman": ("blackman", (4,), {}),
}


def _cases() -> dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]]:
    found = dict(CREATED)
    for dtype in DTYPES:
        for name in (*UNARY, *REDUCED):
            # Integers have no reciprocal of 0.
            if name != "reciprocal" or dtype.startswith("float"):
                found[f"{name} {dtype}"] = (name, (dtype,), {})
        for name in BINARY:
            for other in (*dict.fromkeys((dtype, "int32", "float32")), 2, 2.5, True):
                found[f"{name} {dtype} {other}"] = (name, (dtype, other), {})
            found[f"{name} 2.5 {dtype}"] = (name, (2.5, dtype), {})
        for to in ("int64", "float16", "float32"):
            found[f"sum {dtype} as {to}"] = ("sum", (dtype,), {"dtype": to})
            found[f"mean {dtype} as {to}"] = ("mean", (dtype,), {"dtype": to})
        for symbol in ("add", "mul", "truediv", "pow", "gt", "eq"):
            found[f"operator {symbol} {dtype}"] = (f"operator.{symbol}", (dtype, 2.5), {})
    return found


EXPRESSIONS = _cases()


def evaluate(case: tuple[str, tuple[Any, ...], dict[str, Any]], np: Any, onp: Any) -> Any:
    """Call the function of a case in the room `np`."""
    name, args, kwargs = case
    given = [np.array([1, 0, 3], dtype=a) if isinstance(a, str) else a for a in args]
    function = getattr(operator, name[9:]) if name.startswith("operator.") else getattr(np, name)
    return function(*given, **kwargs)


def described(found: Any, onp: Any) -> list[Any]:
    """Dtype, shape and values, as JSON can hold them."""
    values = found.asnumpy()
    return [str(onp.dtype(values.dtype)), list(values.shape), [str(v) for v in values.astype("float32").reshape(-1)]]


def record(mx: Any) -> Any:
    """What every call gives; what MXNet refuses is not compared."""
    import numpy as onp

    mx.npx.set_np()
    table = {}
    for name, expression in EXPRESSIONS.items():
        with contextlib.suppress(Exception):
            table[name] = described(evaluate(expression, mx.np, onp), onp)
    return dict(sorted(table.items()))
