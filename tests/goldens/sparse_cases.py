"""What is done with sparse arrays, by MXNet when it is recorded and by dualmx when it is replayed: `mx` is either."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

KINDS = ("default", "row_sparse", "csr")
SPARSE = KINDS[1:]
UNARY = (
    "abs", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "ceil", "cos", "cosh", "degrees",
    "exp", "expm1", "fix", "floor", "gamma", "gammaln", "log", "log10", "log1p", "log2", "make_loss", "negative",
    "radians", "relu", "rint", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "stop_gradient",
    "tan", "tanh", "trunc", "zeros_like", "ones_like", "reciprocal", "softmax", "transpose", "Flatten", "max",
    "identity", "erf",
)  # fmt: skip
SCALAR = (
    "_plus_scalar", "_minus_scalar", "_rminus_scalar", "_mul_scalar", "_div_scalar", "_rdiv_scalar", "_power_scalar",
    "_maximum_scalar", "_minimum_scalar", "_equal_scalar", "_not_equal_scalar", "_greater_scalar", "_lesser_scalar",
    "_greater_equal_scalar", "_lesser_equal_scalar", "_scatter_plus_scalar", "_scatter_minus_scalar",
)  # fmt: skip
BINARY = (
    "elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div", "broadcast_add", "broadcast_mul", "broadcast_div",
    "maximum", "_maximum", "_minimum", "_hypot", "_equal", "_power", "_scatter_elemwise_div",
)  # fmt: skip
PYTHON = ("add", "sub", "mul", "truediv", "pow", "eq", "gt")


def values(seed: int, *shape: int) -> np.ndarray:
    """Small floats, about half of them and one row zero."""
    rng = np.random.RandomState(seed)
    found = rng.uniform(0.1, 0.9, shape).astype(np.float32)
    found[rng.uniform(size=shape) > 0.5] = 0
    found[1] = 0
    return found


def made(mx: Any, kind: str, seed: int = 0, shape: tuple[int, ...] = (4, 3)) -> Any:
    """An array of a storage type."""
    return mx.nd.array(values(seed, *shape)).tostype(kind)


def _function(mx: Any, name: str) -> Callable[..., Any]:
    if name.startswith("_"):
        return getattr(mx.nd._internal, name)
    return getattr(mx.nd, name, None) or getattr(mx.nd.sparse, name)


def calls(mx: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names and calls whose storage types and values are compared."""
    nd, sparse = mx.nd, mx.nd.sparse
    for name in UNARY:
        for kind in SPARSE:
            yield f"{name} {kind}", lambda n=name, k=kind: _function(mx, n)(made(mx, k))
    for name in SCALAR:
        for scalar in (2.0, 0.0, -1.0):
            for kind in SPARSE:
                if "div" in name and scalar == 0:
                    continue
                yield (
                    f"{name} {scalar} {kind}",
                    lambda n=name, s=scalar, k=kind: _function(mx, n)(made(mx, k), scalar=s),
                )
    for a in KINDS:
        for b in KINDS:
            for name in BINARY:
                yield f"{name} {a} {b}", lambda n=name, a=a, b=b: _function(mx, n)(made(mx, a), made(mx, b, 1))
            for name in PYTHON:
                f = getattr(operator, name)
                yield f"{name} of {a} {b}", lambda f=f, a=a, b=b: f(made(mx, a), made(mx, b, 1))
            yield f"where {a} {b}", lambda a=a, b=b: nd.where(made(mx, a), made(mx, b, 1), made(mx, b, 2))
        if a != "default":
            for name in PYTHON:
                f = getattr(operator, name)
                yield f"{name} of {a} 2.0", lambda f=f, a=a: f(made(mx, a), 2.0)
                yield f"{name} of 2.0 {a}", lambda f=f, a=a: f(2.0, made(mx, a))
    for a in KINDS:
        for b in KINDS:
            for ta in (False, True):
                for tb in (False, True):
                    for wanted in (None,) if ta or tb or a == b else (None, *KINDS):
                        more = {} if wanted is None else {"forward_stype": wanted}

                        def product(a: str = a, b: str = b, ta: bool = ta, tb: bool = tb, more: Any = more) -> Any:
                            left = made(mx, a, 0, (3, 4) if ta else (4, 3))
                            right = made(mx, b, 1, (2, 3) if tb else (3, 2))
                            return sparse.dot(left, right, transpose_a=ta, transpose_b=tb, **more)

                        yield f"dot {a} {b} {ta} {tb} {wanted}", product
    for kind in SPARSE:
        for shape in ((1, 3), (4, 1), (1, 1)):
            for name in ("broadcast_add", "broadcast_mul", "broadcast_div"):
                dense = np.full(shape, 2, np.float32)
                yield (
                    f"{name} {kind} {shape}",
                    lambda n=name, k=kind, d=dense: _function(mx, n)(made(mx, k), nd.array(d)),
                )
        for name in ("sum", "mean", "norm", "_square_sum"):
            for axis in ((), 0, 1, (0, 1)):
                for keep in (False, True):
                    if name == "_square_sum" and (axis == () or kind == "csr"):
                        continue
                    f = _function(mx, name)
                    yield (
                        f"{name} {kind} {axis} {keep}",
                        lambda f=f, k=kind, axis=axis, keep=keep: f(made(mx, k), axis=axis, keepdims=keep),
                    )
        for low, high in ((-1, 1), (0, 0.5)):
            yield f"clip {kind} {low} {high}", lambda k=kind, lo=low, hi=high: nd.clip(made(mx, k), lo, hi)
        yield f"slice rows {kind}", lambda k=kind: nd.slice(made(mx, k), begin=(1,), end=(4,))
        yield f"slice both {kind}", lambda k=kind: nd.slice(made(mx, k), begin=(0, 1), end=(3, 3))
        yield f"slice step {kind}", lambda k=kind: nd.slice(made(mx, k), begin=(0,), end=(4,), step=(2,))
        yield f"take {kind}", lambda k=kind: nd.take(made(mx, k), nd.array([2, 0, 2]))
        yield f"cast {kind}", lambda k=kind: nd.cast_storage(made(mx, k), "default")
    yield "cast to csr", lambda: nd.cast_storage(made(mx, "default"), "csr")
    yield "cast to row_sparse", lambda: nd.cast_storage(made(mx, "default"), "row_sparse")
    yield "retain", lambda: sparse.retain(made(mx, "row_sparse"), nd.array([0, 1, 3]))
    for kinds in (("row_sparse",) * 3, ("csr",) * 2, ("row_sparse", "default"), ("csr", "default")):
        yield f"add_n {kinds}", lambda kinds=kinds: nd.add_n(*[made(mx, k, i) for i, k in enumerate(kinds)])
        for axis in (0, 1):
            yield (
                f"concat {axis} {kinds}",
                lambda kinds=kinds, n=axis: nd.concat(*[made(mx, k, i) for i, k in enumerate(kinds)], dim=n),
            )


OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("sgd", {}),
    "sgd wd": ("sgd", {"wd": 0.1, "clip_gradient": 0.3}),
    "sgd standard": ("sgd", {"wd": 0.1, "lazy_update": False}),
    "momentum": ("sgd", {"momentum": 0.9, "wd": 0.1}),
    "momentum standard": ("sgd", {"momentum": 0.9, "wd": 0.1, "lazy_update": False}),
    "adam": ("adam", {"wd": 0.1}),
    "adam standard": ("adam", {"wd": 0.1, "lazy_update": False}),
    "adagrad": ("adagrad", {}),
    "ftrl": ("ftrl", {"wd": 0.1}),
    "groupadagrad": ("groupadagrad", {}),
    "nag": ("nag", {"momentum": 0.9}),
    "rmsprop": ("rmsprop", {}),
}


def updated(mx: Any, key: str) -> np.ndarray:
    """A weight after three updates by row_sparse gradients of different rows."""
    name, params = OPTIMIZERS[key]
    optimizer = mx.optimizer.create(name, learning_rate=0.5, rescale_grad=0.5, **params)
    updater = mx.optimizer.get_updater(optimizer)
    weight = mx.nd.array(np.linspace(-1, 1, 18).reshape(6, 3))
    for step, rows in enumerate(([1, 4], [0, 1, 5], [4])):
        data = values(step, 7, 3)[np.arange(len(rows)) * 2] + 0.1
        updater(0, mx.nd.sparse.row_sparse_array((data, rows), shape=(6, 3)), weight)
    return weight.asnumpy()


def record(mx: Any) -> Any:
    """Storage types and shapes of results; their values and then weights after updates, one behind the other."""
    kinds: dict[str, list[Any]] = {}
    values: list[np.ndarray] = []
    for name, call in calls(mx):
        try:
            found = call()
            values.append(found.asnumpy().ravel())
            kinds[name] = [found.stype, *found.shape]
        except mx.base.MXNetError:
            kinds[name] = ["error"]
    return {"kinds": kinds, "values": np.concatenate([*values, *(updated(mx, key).ravel() for key in OPTIMIZERS)])}
