"""Op schema: typed inputs and parameters from the annotations of a pure function.

Positional arguments annotated `Tensor`, `UntypedTensor` or `Aux` are graph inputs. `Key` and `Train` are supplied by
the runtime and hidden from users. Keyword-only arguments are typed parameters.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

import jax
import numpy as np

from ..core.dtypes import as_dtype
from ..core.syntax import literal_of


class Role:
    """What a positional argument of an op body is for."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


TENSOR, UNTYPED, AUX, KEY, TRAIN = map(Role, ("Tensor", "UntypedTensor", "Aux", "Key", "Train"))

Tensor = Annotated[jax.Array, TENSOR]  # input; all Tensor inputs of a call share one dtype
UntypedTensor = Annotated[
    jax.Array, UNTYPED
]  # input whose dtype is independent of the others (indices, labels, statistics)
Aux = Annotated[jax.Array, AUX]  # state: read, and its next value returned after the outputs, in argument order
Key = Annotated[jax.Array, KEY]  # random key, supplied by the runtime
Train = Annotated[bool, TRAIN]  # training flag, supplied by the runtime


@dataclass(frozen=True)
class When:
    """Marks an input that exists only if parameter `param` has (one of) the given value(s)."""

    param: str
    value: Any

    def holds(self, params: dict[str, Any]) -> bool:
        """True if the marked input exists under `params`."""
        got = params[self.param]
        return got in self.value if isinstance(self.value, tuple) else got == self.value


class OptionalInput:
    """Marks an input that the caller may leave out; the body then receives `None`."""


OptionalTensor = OptionalInput()

ABSENT: Any = None
"""Default of an input or random key that need not exist; the body then finds None."""


class Runtime:
    """Marks a number or tuple-of-numbers parameter that becomes runtime input: changing values compiles nothing."""


class Ignored:
    """Marks a parameter accepted for MXNet compatibility that has no effect under XLA."""


@dataclass(frozen=True)
class Range:
    """Bounds, inclusive, of a numeric parameter."""

    low: float = float("-inf")
    high: float = float("inf")

    def __call__(self, value: Any) -> Any:
        if not self.low <= value <= self.high:
            raise ValueError(f"expected a value in [{self.low:g}, {self.high:g}]")
        return value


def _literal(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return literal_of(value.strip().rstrip("L"))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError("not a number or tuple of numbers") from None


def to_int(value: Any) -> int:
    """Convert a Python or NumPy integer, an integral float, or MXNet's text of one."""
    value = _literal(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return int(value)
    raise ValueError("expected an integer")


def to_float(value: Any) -> float:
    """Convert a number or MXNet's text of one (`"1e-05"`, `"inf"`)."""
    if isinstance(value, (list, tuple, dict, type(None))):
        raise ValueError("expected a number")
    return float(value)


def to_shape(value: Any) -> tuple[int, ...]:
    """Convert an int or a sequence of ints, or MXNet's text `"(3, 3)"`."""
    value = _literal(value)
    if isinstance(value, (int, np.integer)):
        return (int(value),)
    if not isinstance(value, (tuple, list, np.ndarray)):
        raise ValueError("expected an int or a tuple of ints")
    return tuple(to_int(v) for v in value)


def to_axes(value: Any) -> tuple[int, ...] | None:
    """Convert `None`, an int, or a sequence of ints."""
    return None if value is None or value in ("None", "") else to_shape(value)


def to_optional_ints(value: Any) -> tuple[int | None, ...]:
    """Convert a sequence of ints in which `None` may stand (slice's begin, end, step)."""
    value = _literal(value)
    if value is None or isinstance(value, (int, np.integer)):
        value = (value,)
    return tuple(None if v is None else to_int(v) for v in value)


def to_floats(value: Any) -> tuple[float, ...]:
    """Convert a number or a sequence of numbers."""
    value = _literal(value)
    return (float(value),) if isinstance(value, (int, float)) else tuple(float(v) for v in value)


def to_bool(value: Any) -> bool:
    """Convert a truth value or MXNet's text `"True"`, `"true"`, `"1"` (or the false ones)."""
    if isinstance(value, str):
        try:
            return {"true": True, "1": True, "false": False, "0": False}[value.lower()]
        except KeyError:
            raise ValueError("expected True or False") from None
    if isinstance(value, (bool, int, np.bool_, np.integer)) and value in (0, 1):
        return bool(value)
    raise ValueError("expected True or False")


def to_dtype(value: Any) -> str:
    """Convert a dtype, its name, or MXNet's flag to the canonical name."""
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    return as_dtype(value).name


Shape = Annotated[tuple, to_shape]
Axes = Annotated[tuple | None, to_axes]
OptionalInts = Annotated[tuple, to_optional_ints]
Floats = Annotated[tuple, to_floats]
Positive = Annotated[int, to_int, Range(1)]
Count = Annotated[int, to_int, Range(0)]
NonNegative = Annotated[float, to_float, Range(0)]
Fraction = Annotated[float, to_float, Range(0, 1)]
DType = Annotated[str, to_dtype]
OptDType = Annotated[str | None, lambda v: None if v in (None, "None") else to_dtype(v)]
FLOAT32_EXACT_INTS = 1 << 24  # whole numbers below are exact as runtime inputs, which are float32
RuntimeFloat = Annotated[float, to_float, Runtime]  # runtime float: learning rate, rescale_grad
RuntimeFloats = Annotated[
    tuple, to_floats, Runtime
]  # runtime floats, one scalar each: learning rates of a multi-weight update
RuntimeInt = Annotated[int, to_int, Range(1), Runtime]  # runtime count of updates, from 1; the body receives a float

_PLAIN: dict[Any, Callable[[Any], Any]] = {int: to_int, float: to_float, bool: to_bool, str: str}


def converter(t: Any) -> Callable[[Any], Any]:
    """Build the value converter that one parameter annotation describes."""
    if get_origin(t) is Annotated:
        base, *marks = get_args(t)
        steps = [m for m in marks if callable(m) and m not in (Ignored, Runtime)] or [converter(base)]

        def run(value: Any) -> Any:
            for step in steps:
                value = step(value)
            return value

        return run
    if get_origin(t) is Literal:
        choices = get_args(t)

        def choose(value: Any) -> Any:
            if isinstance(value, (type, np.dtype)):
                value = as_dtype(value).name
            for c in choices:
                if value == c or str(c) == str(value):
                    return c
            raise ValueError(f"expected one of {choices}")

        return choose
    if get_origin(t) in (typing.Union, types.UnionType):
        inner = converter(next(a for a in get_args(t) if a is not type(None)))
        return lambda value: None if value is None or value == "None" else inner(value)
    return _PLAIN.get(t, lambda value: value)


@dataclass(frozen=True)
class Input:
    """One positional input of an op."""

    name: str
    role: Role
    when: When | None = None
    optional: bool = False
    variadic: bool = False


@dataclass(frozen=True)
class ParamField:
    """One typed parameter of an op."""

    name: str
    type: Any
    convert: Callable[[Any], Any]
    default: Any
    runtime: bool = False
    ignored: bool = False
    vector: bool = False

    @property
    def required(self) -> bool:
        """True when the parameter has no default."""
        return self.default is REQUIRED


REQUIRED = object()


def read_schema(fn: Callable[..., Any]) -> tuple[tuple[Input, ...], dict[str, ParamField], str, str]:
    """Read the annotations of an op body: inputs, parameters, and the names of its key and training arguments."""
    hints = typing.get_type_hints(fn, include_extras=True)
    inputs: list[Input] = []
    params: dict[str, ParamField] = {}
    hidden: dict[Role, str] = {}
    for p in inspect.signature(fn).parameters.values():
        t = hints[p.name]
        marks = get_args(t)[1:] if get_origin(t) is Annotated else ()
        role = next((m for m in marks if isinstance(m, Role)), None)
        if role in (KEY, TRAIN):
            hidden[role] = p.name
        elif role is not None:
            when = next((m for m in marks if isinstance(m, When)), None)
            maybe = any(isinstance(m, OptionalInput) for m in marks)
            inputs.append(Input(p.name, role, when, maybe, p.kind is inspect.Parameter.VAR_POSITIONAL))
        else:
            default = REQUIRED if p.default is inspect.Parameter.empty else p.default
            runtime = Runtime in marks
            vector = runtime and get_args(t)[0] is tuple
            params[p.name] = ParamField(p.name, t, converter(t), default, runtime, Ignored in marks, vector)
    return tuple(inputs), params, hidden.get(KEY, ""), hidden.get(TRAIN, "")
