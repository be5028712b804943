"""The cases that `record.py` records from MXNet and the operator tests replay; plain NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.goldens import calls


@dataclass(frozen=True)
class Case:
    """One call of an operator.

    `inputs` are shapes; `low` and `high` bound the values drawn for each, one pair for all or one per input. `recorded`
    is false where MXNet cannot run the call on dense arrays, `numeric` where the gradient is defined otherwise than as
    a limit of differences.
    """

    op: str
    inputs: tuple[tuple[int, ...], ...] = ((3, 4),)
    params: dict[str, Any] = field(default_factory=dict)
    low: float | tuple[float, ...] = -2.0
    high: float | tuple[float, ...] = 2.0
    recorded: bool = True
    numeric: bool = True
    whole: bool = False

    @property
    def name(self) -> str:
        """A readable identity, unique among the cases."""
        shown = ",".join(f"{k}={v}" for k, v in self.params.items())
        shapes = ";".join("x".join(map(str, s)) for s in self.inputs)
        return f"{self.op}({shown})[{shapes}]{' whole' if self.whole else ''}".replace(" ", "")

    def arrays(self) -> list[np.ndarray]:
        """The float32 inputs, the same in every run and NumPy version."""
        rng = np.random.RandomState(sum(map(ord, self.name)))
        made = []
        for i, shape in enumerate(self.inputs):
            low = self.low[i] if isinstance(self.low, tuple) else self.low
            high = self.high[i] if isinstance(self.high, tuple) else self.high
            x = rng.uniform(low, high, shape)
            made.append((np.round(x) if self.whole else x).astype(np.float32))
        return made

    def head(self, shape: tuple[int, ...], index: int = 0) -> np.ndarray:
        """The head gradient of an output."""
        rng = np.random.RandomState(1 + index + sum(map(ord, self.name)))
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)


RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("abs", "sign", "negative", "square", "relu", "logical_not", "_copy", "BlockGrad"), (-2, 2)),
    **dict.fromkeys(("zeros_like", "ones_like", "make_loss", "_contrib_sign_ste", "_contrib_round_ste"), (-2, 2)),
    **dict.fromkeys(("round", "rint", "fix", "trunc", "ceil", "floor", "degrees", "radians", "sin", "cos"), (-4, 4)),
    **dict.fromkeys(("sqrt", "rsqrt", "rcbrt", "cbrt", "log", "log2", "log10", "reciprocal"), (0.2, 4)),
    **dict.fromkeys(("exp", "expm1", "sinh", "cosh", "tanh", "arcsinh", "arctan", "sigmoid", "softsign"), (-3, 3)),
    **dict.fromkeys(("arcsin", "arccos", "arctanh", "erfinv"), (-0.9, 0.9)),
    "log1p": (-0.8, 3),
    "tan": (-1.2, 1.2),
    "arccosh": (1.2, 4),
    "erf": (-2, 2),
    "gamma": (0.3, 4),
    "gammaln": (0.3, 8),
}
OTHER_GRADIENT = {"BlockGrad", "make_loss", "_contrib_round_ste", "_contrib_sign_ste", "_contrib_gradientmultiplier"}
ARITHMETIC = ("add", "sub", "mul", "div", "mod", "power", "hypot", "maximum", "minimum")
TESTS = ("equal", "not_equal", "greater", "greater_equal", "lesser", "lesser_equal")
LOGIC = ("logical_and", "logical_or", "logical_xor")
SCALAR = ("plus", "minus", "rminus", "mul", "div", "rdiv", "mod", "rmod", "power", "rpower", "hypot")
REDUCTIONS = ("sum", "mean", "prod", "nansum", "nanprod", "max", "min", "_square_sum")
PDF: dict[str, tuple[tuple[float, float], ...]] = {
    "uniform": ((-1, 1), (-3, -2), (2, 3)),
    "normal": ((-1, 1), (-1, 1), (0.5, 2)),
    "exponential": ((0.2, 2), (0.5, 2)),
    "gamma": ((0.2, 2), (0.5, 3), (0.5, 2)),
    "poisson": ((0, 5), (1, 4)),
    "negative_binomial": ((0, 5), (1, 4), (0.2, 0.8)),
    "generalized_negative_binomial": ((0, 5), (1, 4), (0.2, 0.8)),
}


def unary() -> Iterator[Case]:
    """Operators on one array."""
    for name, (low, high) in RANGES.items():
        yield Case(name, low=low, high=high, numeric=name not in OTHER_GRADIENT)
    for name in ("cbrt", "rcbrt", "gamma", "gammaln", "reciprocal"):
        yield Case(name, ((2, 3),), low=-0.9, high=-0.1)
    yield Case("_copyto", recorded=False)
    yield Case("_CrossDeviceCopy", recorded=False)
    yield Case("hard_sigmoid", low=-4, high=4)
    yield Case("hard_sigmoid", params={"alpha": 0.5, "beta": 0.25})
    yield Case("clip", params={"a_min": -1, "a_max": 0.5})
    yield Case("smooth_l1", params={"scalar": 1.0})
    yield Case("smooth_l1", params={"scalar": 2.5})
    yield Case("_contrib_quadratic", params={"a": 1.5, "b": -2.0, "c": 0.5})
    yield Case("_contrib_gradientmultiplier", params={"scalar": -0.5}, numeric=False)
    yield Case("_contrib_div_sqrt_dim")
    yield Case("Cast", params={"dtype": "float64"})
    yield Case("amp_cast", params={"dtype": "float16"}, numeric=False)
    yield Case("amp_multicast", ((3,), (2, 2)), {"num_outputs": 2})
    yield Case("shape_array", numeric=False)
    yield Case("size_array", numeric=False)
    yield Case("add_n", ((2, 3), (2, 3), (2, 3)))
    yield Case("_identity_with_attr_like_rhs", ((2, 3), (2, 3)))


def binary() -> Iterator[Case]:
    """Operators on two arrays."""
    for stem in ARITHMETIC:
        low = {"power": (0.3, -2), "div": (-2, 0.5), "mod": (-5, 0.7)}.get(stem, -2)
        for shapes in (((2, 3, 4), (3, 1)), ((1, 4), (3, 1))):
            yield Case(f"broadcast_{stem}", shapes, low=low)
        name = f"elemwise_{stem}" if stem in ("add", "sub", "mul", "div") else f"_{stem}"
        yield Case(name, ((3, 4), (3, 4)), low=low)
    for stem in (*TESTS, *LOGIC):
        yield Case(f"broadcast_{stem}", ((2, 3), (3,)), low=-1, high=1, whole=True, numeric=False)
        yield Case(f"_{stem}", ((2, 3), (2, 3)), low=-1, high=1, whole=True, numeric=False)
    yield Case("_grad_add", ((2, 3), (2, 3)))
    yield Case("_scatter_elemwise_div", ((2, 3), (2, 3)), low=0.5)


def with_scalar() -> Iterator[Case]:
    """Operators on an array and a scalar."""
    for stem in SCALAR:
        for scalar in (1.7, 3.0):
            yield Case(f"_{stem}_scalar", params={"scalar": scalar}, low=0.3, high=4)
    yield Case("_mod_scalar", ((2, 3),), {"scalar": -1.7}, low=-5, high=5)
    yield Case("_power_scalar", ((2, 3),), {"scalar": -2.0})
    yield Case("_power_scalar", ((2, 3),), {"scalar": 2.0})
    for stem in ("maximum", "minimum"):
        yield Case(f"_{stem}_scalar", params={"scalar": 0.5})
    for stem in TESTS:
        yield Case(f"_{stem}_scalar", params={"scalar": 1.0}, whole=True, numeric=False)
    for stem in LOGIC:
        for scalar in (0.0, 2.0):
            yield Case(f"_{stem}_scalar", ((2, 3),), {"scalar": scalar}, low=-1, high=1, whole=True, numeric=False)
    for stem in ("plus", "minus"):
        yield Case(f"_scatter_{stem}_scalar", ((2, 3),), {"scalar": 1.5})


def reductions() -> Iterator[Case]:
    """Operators along axes."""
    choices: tuple[dict[str, Any], ...] = (
        {},
        {"axis": 1},
        {"axis": (0, 2), "keepdims": True},
        {"axis": -1, "exclude": True},
    )
    for name in REDUCTIONS:
        for params in choices:
            yield Case(name, ((2, 3, 4),), params, low=0.3, recorded=name != "_square_sum")
    for order in (1, 2):
        for params in ({}, {"axis": 1}, {"axis": (0, 2), "keepdims": True}):
            yield Case("norm", ((2, 3, 4),), {"ord": order, **params})
    for name in ("argmax", "argmin"):
        for params in ({}, {"axis": 1}, {"axis": 2, "keepdims": True}):
            yield Case(name, ((2, 3, 4),), params, whole=True, numeric=False)
    yield Case("argmax_channel", ((2, 5, 2),), numeric=False)
    yield Case("moments", ((2, 3, 4),), {"axes": (0, 2)})
    yield Case("moments", ((2, 3, 4),), {"axes": (1,), "keepdims": True})
    yield Case("_contrib_allclose", ((2, 3), (2, 3)), numeric=False, recorded=False)
    for params in ({}, {"axis": 1}, {"axis": -1}):
        yield Case("_np_cumsum", ((2, 3, 4),), params, recorded=params != {"axis": -1})


def densities() -> Iterator[Case]:
    """Probability densities."""
    for stem, ranges in PDF.items():
        low, high = tuple(r[0] for r in ranges), tuple(r[1] for r in ranges)
        for is_log in (False, True):
            shapes, numeric = (
                ((2, 3), *((2,) for _ in ranges[1:])),
                stem in ("uniform", "normal", "exponential", "gamma"),
            )
            yield Case(f"_random_pdf_{stem}", shapes, {"is_log": is_log}, low, high, numeric=numeric)
    for is_log in (False, True):
        yield Case("_random_pdf_dirichlet", ((2, 4, 3), (2, 3)), {"is_log": is_log}, (0.1, 0.5), (0.5, 3))


CASES: tuple[Case, ...] = (*unary(), *binary(), *with_scalar(), *reductions(), *densities())


def record(mx: Any) -> Any:
    """What MXNet gives for every case that it can run."""
    return {
        c.name: {
            what: value.astype(np.float32)
            for what, value in calls.record(
                mx, c.op, c.arrays(), c.params, range(len(c.inputs)), c.head, every=True
            ).items()
        }
        for c in CASES
        if c.recorded
    }
