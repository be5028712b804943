"""Operators written in Python: their registry and `nd.Custom`, an adapter over differentiable functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError, suggest
from ..ndarray.array import NDArray
from ..ndarray.creation import zeros
from ..ndarray.function import Function
from ..ndarray.trace import local

# What makes the properties of a call from its keywords: the registered classes.
REGISTRY: dict[str, Callable[..., CustomOpProp]] = {}


class CustomOp:
    """The computation of a custom operator: override `forward` and `backward`."""

    def forward(self, is_train: bool, req: list[str], in_data: list[Any], out_data: list[Any], aux: list[Any]) -> None:
        """Compute `out_data` from `in_data` by `self.assign`; `aux` are states that it may write."""
        raise NotImplementedError(f"{type(self).__name__} must define forward")

    def backward(
        self,
        req: list[str],
        out_grad: list[Any],
        in_data: list[Any],
        out_data: list[Any],
        in_grad: list[Any],
        aux: list[Any],
    ) -> None:
        """Compute `in_grad` from `out_grad` by `self.assign`."""
        raise NotImplementedError(f"{type(self).__name__} must define backward")

    def assign(self, dst: Any, req: str, src: Any) -> None:
        """Put `src` into `dst` as `req` says: "null" not at all, "write" or "inplace" over it, "add" on top.

        Raises:
            ArgumentError: another `req`.
        """
        if req in ("write", "inplace"):
            dst[:] = src
        elif req == "add":
            dst[:] += src
        elif req != "null":
            raise ArgumentError(f"assign: req={req!r}: expected null, write, inplace or add")


class CustomOpProp:
    """What a custom operator looks like: names, shapes, types; override what differs from one input and one output.

    Keywords of the call arrive in `__init__` as text, as in MXNet.

    Args:
        need_top_grad: whether backward reads the gradients of the outputs.
    """

    def __init__(self, need_top_grad: bool = True):
        self.need_top_grad_ = need_top_grad

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return ["data"]

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return ["output"]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the states."""
        return []

    def infer_shape(self, in_shape: list[Any]) -> tuple[Any, ...]:
        """Shapes of inputs, outputs and, if there are any, states from those of the inputs."""
        return in_shape, [in_shape[0]] * len(self.list_outputs()), []

    def infer_type(self, in_type: list[Any]) -> tuple[Any, ...]:
        """dtypes of inputs, outputs and states from those of the inputs; all that of the first by default."""
        outputs, states = len(self.list_outputs()), len(self.list_auxiliary_states())
        return in_type, [in_type[0]] * outputs, [in_type[0]] * states

    def declare_backward_dependency(
        self, out_grad: Sequence[int], in_data: Sequence[int], out_data: Sequence[int]
    ) -> list[int]:
        """Which arrays backward reads; kept for scripts that override it, everything is handed to backward."""
        return [*(out_grad if self.need_top_grad_ else ()), *in_data, *out_data]

    def create_operator(self, ctx: Any, in_shapes: list[Any], in_dtypes: list[Any]) -> CustomOp:
        """Return the `CustomOp` for inputs (and states) of these shapes and dtypes on `ctx`."""
        raise NotImplementedError(f"{type(self).__name__} must define create_operator")


def register(reg_name: str) -> Callable[[type[CustomOpProp]], type[CustomOpProp]]:
    """Return a decorator that makes a `CustomOpProp` available as `op_type=reg_name`; a later one replaces it.

    Raises:
        ArgumentTypeError: the class is not a `CustomOpProp`.

    Example:
        >>> import dualmx as mx
        >>> class Twice(mx.operator.CustomOp):
        ...     def forward(self, is_train, req, in_data, out_data, aux):
        ...         self.assign(out_data[0], req[0], in_data[0] * 2)
        ...     def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        ...         self.assign(in_grad[0], req[0], out_grad[0] * 2)
        >>> @mx.operator.register("twice")
        ... class TwiceProp(mx.operator.CustomOpProp):
        ...     def create_operator(self, ctx, in_shapes, in_dtypes):
        ...         return Twice()
        >>> mx.nd.Custom(mx.nd.ones((2,)), op_type="twice").asnumpy().tolist()
        [2.0, 2.0]
    """

    def keep(cls: type[CustomOpProp]) -> type[CustomOpProp]:
        if not (isinstance(cls, type) and issubclass(cls, CustomOpProp)):
            raise ArgumentTypeError(f"operator.register({reg_name!r}): {cls!r}: expected a subclass of CustomOpProp")
        REGISTRY[reg_name] = cls
        return cls

    return keep


def get_all_registered_operators() -> list[str]:
    """Names of the registered custom operators."""
    return sorted(REGISTRY)


class _Run(Function):
    """One call of a custom operator."""

    def __init__(self, op: CustomOp, outputs: list[tuple[Any, Any]], aux: list[NDArray]):
        super().__init__()
        self.op, self.outputs, self.aux = op, outputs, aux

    def forward(self, *inputs: NDArray) -> list[NDArray]:
        ctx = inputs[0].context
        outs = [zeros(tuple(shape), ctx, dtype) for shape, dtype in self.outputs]
        given = [a.detach() for a in inputs]
        self.op.forward(local.training, ["write"] * len(outs), given, outs, self.aux)
        self.save_for_backward(given, [o.detach() for o in outs])
        return outs

    def backward(self, *out_grads: NDArray) -> list[NDArray]:
        given, outs = self.saved_tensors
        grads = [zeros(a.shape, a.context, a.dtype) for a in given]
        self.op.backward(["write"] * len(grads), list(out_grads), given, outs, grads, self.aux)
        return grads


def _counted(op_type: str, method: str, what: str, got: Sequence[Any], want: int) -> list[Any]:
    if len(got) != want:
        raise ArgumentError(f"Custom({op_type!r}): {method} gave {len(got)} {what}: expected {want}")
    return list(got)


def _inputs(op_type: str, names: list[str], args: Sequence[Any], named: dict[str, NDArray]) -> list[NDArray]:
    found = dict(zip(names, args, strict=False))
    if len(args) > len(names) or found.keys() & named.keys() or found.keys() | named.keys() != set(names):
        shown = f"{len(args)} by position" + (f" and {sorted(named)}" if named else "")
        raise ArgumentError(f"Custom({op_type!r}): got inputs {shown}: expected {names}")
    found |= named
    for name in names:
        if not isinstance(found[name], NDArray):
            kind = type(found[name]).__name__
            raise ArgumentTypeError(f"Custom({op_type!r}): {name} is a {kind}: expected an NDArray")
    return [found[name] for name in names]


def Custom(*args: Any, op_type: str, name: str | None = None, **kwargs: Any) -> Any:
    """Call the custom operator registered as `op_type`.

    Args:
        args: its inputs, then its states; or by their names as keywords.
        op_type: name given to `mx.operator.register`.
        name: accepted.
        kwargs: parameters, handed to the `CustomOpProp` as text.

    Returns:
        The output, or a list of several.

    Raises:
        ArgumentError: unknown `op_type`, or inputs that its `list_arguments` does not name. Whatever the operator
            raises comes through with its traceback.
    """
    if op_type not in REGISTRY:
        raise ArgumentError(f"Custom: op_type={op_type!r} is not registered; {suggest(op_type, REGISTRY)}")
    named = {k: v for k, v in kwargs.items() if isinstance(v, NDArray)}
    prop = REGISTRY[op_type](**{k: str(v) for k, v in kwargs.items() if k not in named})
    names, states, results = prop.list_arguments(), prop.list_auxiliary_states(), prop.list_outputs()
    given = _inputs(op_type, [*names, *states], args, named)
    inputs, aux = given[: len(names)], given[len(names) :]
    shapes = prop.infer_shape([list(a.shape) for a in inputs])
    types = prop.infer_type([np.dtype(a.dtype).type for a in inputs])
    out_shapes = _counted(op_type, "infer_shape", "output shapes", shapes[1], len(results))
    out_types = _counted(op_type, "infer_type", "output types", types[1], len(results))
    made = prop.create_operator(
        inputs[0].context, [list(a.shape) for a in given], [np.dtype(a.dtype).type for a in given]
    )
    outs = _Run(made, list(zip(out_shapes, out_types, strict=True)), aux)(*inputs)
    return outs[0] if len(outs) == 1 else outs


def populate(top: ModuleType) -> None:
    """Put `Custom` into the array namespace."""
    setattr(top, Custom.__name__, Custom)


__all__ = ["Custom", "CustomOp", "CustomOpProp", "get_all_registered_operators", "register"]
