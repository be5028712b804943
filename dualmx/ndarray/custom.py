"""Operators written in Python: what users write, their registry, and one call as a differentiable function."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core.context import Context, current_context
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError, suggest
from .array import NDArray
from .creation import zeros
from .function import Function
from .trace import local

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

    def infer_storage_type(self, in_stype: list[str]) -> tuple[list[str], list[str], list[str]]:
        """Storage types of inputs, outputs and states: all dense; kept for scripts that override it."""
        outputs, states = len(self.list_outputs()), len(self.list_auxiliary_states())
        return in_stype, ["default"] * outputs, ["default"] * states

    def infer_storage_type_backward(
        self, ograd_stype: list[str], in_stype: list[str], out_stype: list[str], igrad_stype: list[str],
        aux_stype: list[str],
    ) -> tuple[list[str], ...]:  # fmt: skip
        """Storage types in backward: all dense; kept for scripts that override it."""
        given = (ograd_stype, in_stype, out_stype, igrad_stype, aux_stype)
        return tuple(["default"] * len(part) for part in given)

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


class CustomOpSpec:
    """The properties of one call: names, and shapes and dtypes checked against them.

    Args:
        op_type: shown in errors.
        prop: what the user wrote.
    """

    def __init__(self, op_type: str, prop: Any):
        self.op_type, self.prop = op_type, prop
        self.arguments, self.outputs = list(prop.list_arguments()), list(prop.list_outputs())
        self.states = list(prop.list_auxiliary_states())
        self._inferred: Any = None
        if isinstance(prop, CustomOpProp):
            ins, outs = len(self.arguments), len(self.outputs)
            order = list(range(2 * outs + ins))
            prop.declare_backward_dependency(order[:outs], order[outs : outs + ins], order[outs + ins :])

    @classmethod
    def from_kwargs(cls, op_type: Any, kwargs: Mapping[str, Any]) -> CustomOpSpec:
        """Make the properties registered as `op_type` from keywords.

        Raises:
            ArgumentError: unknown `op_type`.
        """
        if op_type not in REGISTRY:
            raise ArgumentError(f"Custom: op_type={op_type!r} is not registered; {suggest(str(op_type), REGISTRY)}")
        with reraise_user_error(f"CustomOpProp of {op_type!r}"):
            return cls(op_type, REGISTRY[op_type](**{k: str(v) for k, v in kwargs.items()}))

    def _three(self, method: str, given: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        with reraise_user_error(f"CustomOpProp.{method} of {self.op_type!r}"):
            got = getattr(self.prop, method)(given)
        got = (*got, []) if len(got) == 2 else got
        found: list[list[Any]] = []
        for kind, part, names in zip(
            ("inputs", "outputs", "states"), got, (self.arguments, self.outputs, self.states), strict=True
        ):
            if len(part) != len(names):
                what = f"{method} gave {len(part)} {kind[:-1]} {method[6:]}s"
                raise ArgumentError(f"Custom({self.op_type!r}): {what}: expected {len(names)}")
            found.append(list(part))
        return found[0], found[1], found[2]

    def shapes(self, given: list[list[int]]) -> tuple[list[Any], list[Any], list[Any]]:
        """Shapes of inputs, outputs and states from those of the inputs, `[]` for unknown."""
        ins, outs, aux = ([tuple(int(n) for n in s) for s in part] for part in self._three("infer_shape", given))
        return ins, outs, aux

    def dtypes(self, given: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Types of inputs, outputs and states from those of the inputs."""
        return self._three("infer_type", given)

    def _ask_storage(self, backward: bool, forward: bool = True, wanted: Sequence[bool] = ()) -> None:
        """Call what a user may have overridden; everything is dense whatever it says."""
        if not isinstance(self.prop, CustomOpProp):
            return
        ins, outs, aux = (["default"] * len(names) for names in (self.arguments, self.outputs, self.states))
        if forward:
            with reraise_user_error(f"CustomOpProp.infer_storage_type of {self.op_type!r}"):
                self.prop.infer_storage_type(list(ins))
        if backward:
            grads = ["default" if i < len(wanted) and wanted[i] else "undefined" for i in range(len(ins))]
            with reraise_user_error(f"CustomOpProp.infer_storage_type_backward of {self.op_type!r}"):
                self.prop.infer_storage_type_backward(
                    list(outs) if self.prop.need_top_grad_ else [], ins, outs, grads, aux
                )

    def create(self, inputs: Sequence[NDArray], in_graph: bool = True) -> CustomOp:
        """Make the operator for these inputs and states."""
        self._ask_storage(backward=in_graph)
        shapes, types = [list(a.shape) for a in inputs], [np.dtype(a.dtype).type for a in inputs]
        with reraise_user_error(f"CustomOpProp.create_operator of {self.op_type!r}"):
            return self.prop.create_operator(inputs[0].context if inputs else current_context(), shapes, types)

    def run(self, given: Sequence[NDArray], op: CustomOp | None = None) -> list[NDArray]:
        """Run the operator (a new one by default) on inputs and states; recorded like any other operator."""
        inputs, aux = list(given[: len(self.arguments)]), list(given[len(self.arguments) :])
        like = [a.shape for a in inputs], [a.dtype for a in inputs]
        known = self._inferred
        if known is None or known[0] != like:
            shapes = self.shapes([list(s) for s in like[0]])[1]
            types = self.dtypes([np.dtype(t).type for t in like[1]])[1]
            known = self._inferred = like, list(zip(shapes, types, strict=True))
        made = self.create(given, in_graph=False) if op is None else op
        ctx = inputs[0].context if inputs else current_context()
        run = _CustomOpFunction(self, made, known[1], aux, ctx, op is not None)
        return list(run(*inputs))


class _CustomOpFunction(Function):
    """One call of a custom operator."""

    def __init__(
        self, layout: CustomOpSpec, op: CustomOp, outputs: list[tuple[Any, Any]], aux: list[NDArray], ctx: Context,
        in_graph: bool,
    ):  # fmt: skip
        super().__init__()
        self.layout, self.op_type, self.op, self.outputs = layout, layout.op_type, op, outputs
        self.aux, self.ctx, self.in_graph = aux, ctx, in_graph

    def forward(self, *inputs: NDArray) -> list[NDArray]:
        outs = [zeros(tuple(shape), self.ctx, dtype) for shape, dtype in self.outputs]
        given = [a.detach() for a in inputs]
        with reraise_user_error(f"CustomOp.forward of {self.op_type!r}"):
            self.op.forward(local.training, ["write"] * len(outs), given, outs, self.aux)
        self.save_for_backward(given, [o.detach() for o in outs])
        return outs

    def backward(self, *out_grads: NDArray) -> list[NDArray]:
        given, outs = self.saved_tensors
        grads = [zeros(a.shape, a.context, a.dtype) for a in given]
        req = ["write" if wanted else "null" for wanted in self._wants]
        if not self.in_graph:
            self.layout._ask_storage(backward=True, forward=False, wanted=self._wants)
        with reraise_user_error(f"CustomOp.backward of {self.op_type!r}"):
            self.op.backward(req, list(out_grads), given, outs, grads, self.aux)
        return grads


@contextmanager
def reraise_user_error(where: str) -> Iterator[None]:
    """Raise what user code raises as an `MXNetError` that is also of its own type and carries its traceback."""
    try:
        yield
    except MXNetError:
        raise
    except Exception as e:
        text = f"{where}: {e}\n{''.join(traceback.format_exception(e))}"
        try:
            kind: Any = type(type(e).__name__, (MXNetError, type(e)), {})
            error = kind(text)
        except TypeError:  # exceptions with a layout or arguments of their own
            error = MXNetError(text)
        raise error.with_traceback(e.__traceback__) from e
