"""Mixed precision for imperative code: casts around operators, and scaled losses for trainers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...core.errors import ArgumentTypeError, MXNetError
from ...gluon import HybridBlock, Trainer
from ...namespace import nd, sym
from ...ndarray import NDArray
from ...symbol import Symbol
from . import lists
from .convert import free_inputs, target_of
from .loss_scaler import LossScaler


class _State:
    target: np.dtype[Any] | None = None
    scaler: LossScaler | None = None


def _map(
    args: Sequence[Any], kwargs: dict[str, Any], change: Callable[[Any], Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Apply `change` to each array or symbol among the arguments, in lists too."""

    def one(value: Any) -> Any:
        if isinstance(value, (NDArray, Symbol)):
            return change(value)
        if isinstance(value, (list, tuple)) and any(isinstance(v, (NDArray, Symbol)) for v in value):
            return [one(v) for v in value]
        return value

    return tuple([one(a) for a in args]), {k: v if k == "out" else one(v) for k, v in kwargs.items()}


def _cast(value: Any, wide: bool, target: np.dtype[Any]) -> Any:
    known = np.dtype(value.dtype) if isinstance(value, NDArray) else None
    if known == (target if wide else np.float32):
        return nd.amp_cast(value, dtype="float32" if wide else target.name)
    return value


def _widened(values: Sequence[Any], target: np.dtype[Any]) -> bool:
    """True if arrays of both precisions are among the values."""
    types = {np.dtype(v.dtype) for v in values if isinstance(v, NDArray)}
    return target in types and np.dtype(np.float32) in types


def _cast_inputs(made: Any, dtype: str | None) -> Any:
    """Insert casts before the inputs of the node that `mx.sym` has just made; to a common type if `None`."""
    node = made.entries[0][0] if isinstance(made, Symbol) else None
    if node is None or node.op is None:
        return made
    some = [k for k, free in enumerate(free_inputs(node)) if not free]
    values = [Symbol([node.inputs[k]]) for k in some]
    if dtype is not None:
        casts = [sym.amp_cast(v, dtype=dtype) for v in values]
    elif len(values) > 1:
        casts = list(sym.amp_multicast(*values, num_outputs=len(values)))
    else:
        return made
    for k, cast in zip(some, casts, strict=True):
        node.inputs[k] = cast.entries[0]
    return made


def _casting(function: Callable[..., Any], wide: bool, target: np.dtype[Any]) -> Callable[..., Any]:
    """A function of `mx.nd` or `mx.sym` whose inputs are cast to one precision."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = _map(args, kwargs, lambda v: _cast(v, wide, target))
        return _cast_inputs(function(*args, **kwargs), "float32" if wide else target.name)

    return call


def _widening(function: Callable[..., Any], target: np.dtype[Any]) -> Callable[..., Any]:
    """A function or operator method whose inputs are cast to the widest type among them."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        found: list[Any] = []
        _map(args, kwargs, found.append)
        if _widened(found, target):
            args, kwargs = _map(args, kwargs, lambda v: _cast(v, True, target))
        return _cast_inputs(function(*args, **kwargs), None)

    return call


def _conditional(
    function: Callable[..., Any], parameter: str, values: Sequence[str], target: np.dtype[Any]
) -> Callable[..., Any]:
    """A function whose inputs are cast to float32 for some values of a parameter."""
    casting = _casting(function, True, target)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return (casting if kwargs.get(parameter) in values else function)(*args, **kwargs)

    return call


def init(
    target_dtype: Any = "float16",
    target_precision_ops: Sequence[str] | None = None,
    conditional_fp32_ops: Sequence[tuple[str, str, list[str]]] | None = None,
    fp32_ops: Sequence[str] | None = None,
) -> None:
    """Make the operators of `mx.nd` and `mx.sym` cast their inputs; call it before building the network.

    Args:
        target_dtype: `"float16"` or `"bfloat16"`; the latter needs no scaled losses.
        target_precision_ops: further operators that compute in it.
        conditional_fp32_ops: (operator, parameter, values) for which it computes in float32, beside the usual ones.
        fp32_ops: further operators that compute in float32.

    Raises:
        ArgumentError: another type.
    """
    target = target_of(target_dtype)
    if _State.target is not None:
        if _State.target != target:
            raise MXNetError(f"amp.init: initialized for {_State.target.name} before; one type serves a process")
        return
    _State.target = target
    low = {*lists.LOW, *(target_precision_ops or ())} - {*(fp32_ops or ())}
    full = {*lists.FULL, *(fp32_ops or ()), *lists.LOSSES} - {*(target_precision_ops or ())}
    conditions = {name: (p, values) for name, p, values in (*lists.CONDITIONAL, *(conditional_fp32_ops or ()))}
    for room in (nd, sym):
        for name in sorted({*low, *full, *lists.WIDEST, *conditions}):
            function = getattr(room, name, None)
            if function is None:
                continue
            if name in low or name in full:
                wrapped = _casting(function, name in full, target)
            elif name in conditions:
                wrapped = _conditional(function, *conditions[name], target)
            else:
                wrapped = _widening(function, target)
            setattr(room, name, wrapped)
    _without_shortcuts(HybridBlock)
    for cls in (NDArray, Symbol):
        for operator in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "rpow", "mod"):
            setattr(cls, f"__{operator}__", _widening(getattr(cls, f"__{operator}__"), target))


def _without_shortcuts(cls: type[HybridBlock]) -> None:
    """Let layers call the functions of `mx.nd`, which cast, instead of their prepared operators, which do not."""
    if "_fast_forward" in cls.__dict__:
        cls._fast_forward = None
    for sub in cls.__subclasses__():
        _without_shortcuts(sub)


def init_trainer(optimizer_or_trainer: Any) -> None:
    """Let a trainer skip the steps whose gradients overflow, and adapt the scale of its losses.

    Raises:
        MXNetError: `init` was not called. ArgumentTypeError: no `gluon.Trainer`.
    """
    if _State.target is None:
        raise MXNetError("amp.init_trainer: call amp.init() first")
    if not isinstance(optimizer_or_trainer, Trainer):
        raise ArgumentTypeError(
            f"amp.init_trainer: got {type(optimizer_or_trainer).__name__}: expected a gluon.Trainer"
        )
    if _State.scaler is None:
        _State.scaler = scaler = LossScaler()
    else:
        scaler = LossScaler()
    optimizer_or_trainer.loss_scaler = scaler


def _scaler(what: str, trainer: Any) -> LossScaler:
    scaler = getattr(trainer, "loss_scaler", None)
    if scaler is None:
        raise MXNetError(f"amp.{what}: call amp.init_trainer(trainer) first")
    return scaler


@contextmanager
def scale_loss(loss: Any, optimizer_or_trainer: Any) -> Iterator[Any]:
    """Give the loss (or the list of losses) times the trainer's scale; the trainer divides gradients by it.

    Example:
        >>> import dualmx as mx
        >>> net = mx.gluon.nn.Dense(1, in_units=1)
        >>> net.initialize()
        >>> trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
        >>> trainer.loss_scaler = LossScaler(4)
        >>> with scale_loss(mx.nd.ones(1), trainer) as scaled:
        ...     scaled.asscalar().item()
        4.0
    """
    scale = _scaler("scale_loss", optimizer_or_trainer).loss_scale
    optimizer_or_trainer.set_loss_scale(scale)
    yield [one * scale for one in loss] if isinstance(loss, (list, tuple)) else loss * scale


def unscale(optimizer_or_trainer: Any) -> None:
    """Divide the gradients by the scale now, to look at them or to clip them before the step."""
    _scaler("unscale", optimizer_or_trainer)
    optimizer_or_trainer.unscale_grads()


def list_lp16_ops(target_dtype: Any) -> list[str]:
    """Operators that compute in 16 bits."""
    target_of(target_dtype)
    return list(lists.LOW)


def list_fp32_ops(target_dtype: Any) -> list[str]:
    """Operators that compute in float32."""
    target_of(target_dtype)
    return list(lists.FULL)


def list_lp16_fp32_ops(target_dtype: Any) -> list[str]:
    """Operators that compute in the type of their inputs."""
    target_of(target_dtype)
    return list(lists.EITHER)


def list_conditional_fp32_ops(target_dtype: Any) -> list[tuple[str, str, list[str]]]:
    """Operators that compute in float32 for some values of a parameter."""
    target_of(target_dtype)
    return list(lists.CONDITIONAL)


def list_widest_type_cast(target_dtype: Any) -> list[str]:
    """Operators whose inputs are cast to the widest type among them."""
    target_of(target_dtype)
    return list(lists.WIDEST)


def list_loss_output_functions(target_dtype: Any) -> list[str]:
    """Operators that are losses."""
    target_of(target_dtype)
    return list(lists.LOSSES)


def list_lp16_use_fp32_params(target_dtype: Any) -> dict[str, list[str]] | None:
    """Inputs that stay in float32 with 16-bit data, by operator; `None` if there are none."""
    if target_of(target_dtype).name == "float16":
        return None
    inputs = ["", "gamma", "beta", "moving_mean", "moving_var"]
    return {"BatchNorm": list(inputs), "BatchNormWithReLU": list(inputs)}


__all__ = [
    "init", "init_trainer", "list_conditional_fp32_ops", "list_fp32_ops", "list_loss_output_functions",
    "list_lp16_fp32_ops", "list_lp16_ops", "list_lp16_use_fp32_params", "list_widest_type_cast", "scale_loss",
    "unscale",
]  # fmt: skip
