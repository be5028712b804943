"""User-defined operators: `CustomOp`, `CustomOpProp`, `autograd.Function`; boolean_mask, of data-dependent shape."""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core.context import Context, current_context
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError, suggest
from ..op.registry import OPS
from .creation import zeros
from .execute import flush
from .handle import invoke, is_tracked, realize, ref
from .interop import array_from_numpy
from .ndarray import NDArray
from .recorder import Handle, TapePaused, engine, local

_order = itertools.count()


class _FunctionCall:
    """One call of a function while recording: its inputs, and its outputs as the variables where the graph is cut."""

    def __init__(self, function: Function, inputs: Sequence[Handle], outputs: Sequence[Handle]):
        self.function, self.inputs, self.order = function, inputs, next(_order)
        self.outputs = [(o._value.shape, o._value.dtype, o._value.ctx) for o in outputs]
        self.numpy = [_is_numpy(o) for o in outputs]

    def run_backward(self, grads: dict[int, Any]) -> tuple[Sequence[Handle], Sequence[Handle]] | None:
        """Run the user's backward; return the inputs that gradients go on from and their gradients."""
        full = [grads.get(i, None) for i in range(len(self.outputs))]
        given = [zeros(s, c, d) if g is None else g for g, (s, d, c) in zip(full, self.outputs, strict=True)]
        given = [g.as_np_ndarray() if numpy else g for g, numpy in zip(given, self.numpy, strict=True)]
        name = type(self.function).__name__
        before, local.training = local.training, local.backward_training
        try:
            with TapePaused():
                got = self.function.backward(*given)
        finally:
            local.training = before
        got = [got] if isinstance(got, NDArray) or got is None else list(got)
        got = [g.as_nd_ndarray() if g is not None and _is_numpy(g) else g for g in got]
        if len(got) != len(self.inputs):
            raise MXNetError(
                f"{name}.backward returned {len(got)} gradients for {len(self.inputs)} inputs; expected one each"
            )
        kept = []
        for i, (a, g) in enumerate(zip(self.inputs, got, strict=True)):
            if g is None:
                continue
            if not isinstance(g, NDArray) or g._value.shape != a._value.shape:
                shown = g._value.shape if isinstance(g, NDArray) else type(g).__name__
                raise MXNetError(
                    f"{name}.backward: gradient {i} is {shown}; expected an NDArray of shape {a._value.shape}"
                )
            if _needs_grad(a):
                kept.append((a, g.astype(a._value.dtype, copy=False)))
        return ([a for a, _ in kept], [g for _, g in kept]) if kept else None


def _is_numpy(a: Any) -> bool:
    return isinstance(a, NDArray) and a.__class__ is not NDArray and not a.is_sparse


def _needs_grad(a: Handle) -> bool:
    return is_tracked(a) or (a._trace is not None and a._value.tracked)


def _snapshot(a: Handle) -> Handle:
    """Return a handle that keeps the present value and place on the tape of `a` when `a` is overwritten."""
    if a._meta is not None and a._meta.grad_req is not None:
        return a
    data = realize(a) if a._trace is None and a._data is None and not a.is_sparse else a._data
    o = object.__new__(type(a))
    o._trace, o._value, o._data, o._meta = a._trace, a._value, data, None
    if a._trace is not None and a._data is None:
        a._trace.handles.append(ref(o))
    if a._meta is not None and a._meta.tape_value is not None:
        o._extra().tape_value = a._meta.tape_value
    return o


class Function:
    """A function with its own gradient.

    Subclass it, define `forward(self, *inputs)` and `backward(self, *output_grads)` on NDArrays, and call an instance.
    Both run as they are written, without being recorded, and may convert to NumPy.

    Attributes:
        saved_tensors: what `save_for_backward` kept; may be set.

    Example:
        >>> import dualmx as mx
        >>> class Double(mx.autograd.Function):
        ...     def forward(self, x):
        ...         return x * 2
        ...     def backward(self, dy):
        ...         return dy * 2
        >>> x = mx.nd.ones((2,)); x.attach_grad()
        >>> with mx.autograd.record():
        ...     y = Double()(x)
        >>> y.backward(); x.grad.asnumpy().tolist()
        [2.0, 2.0]
    """

    saved_tensors: tuple[Any, ...] = ()
    _wants: tuple[bool, ...] = ()

    def __init__(self) -> None:
        self._used = False
        self.saved_tensors = ()

    def save_for_backward(self, *args: Any) -> None:
        """Keep arrays for `backward`, which finds them in `saved_tensors`."""
        self.saved_tensors = args

    def forward(self, *inputs: Any) -> Any:
        """Compute the outputs; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must define forward")

    def backward(self, *output_grads: Any) -> Any:
        """Return one gradient per input from one gradient per output; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must define backward")

    def __call__(self, *inputs: Any) -> Any:
        name = type(self).__name__
        if getattr(self, "_used", False):
            raise ArgumentError(f"{name}: each Function instance can be called once; make a new one")
        for i, a in enumerate(inputs):
            if not isinstance(a, NDArray):
                raise ArgumentTypeError(f"{name}: input {i} is a {type(a).__name__}; expected an NDArray")
        self._used = True
        before = [_snapshot(a) for a in inputs] if local.recording else []
        with TapePaused():
            got = self.forward(*inputs)
        outs = [got] if isinstance(got, NDArray) else list(got)
        if not all(isinstance(o, NDArray) for o in outs):
            raise ArgumentError(f"{name}.forward must return NDArrays")
        self._wants = tuple(_needs_grad(a) for a in before)
        if any(self._wants):
            outs = [o.copy() if any(o is a for a in inputs) else o for o in outs]
            made = _FunctionCall(self, before, outs)
            for i, o in enumerate(outs):
                x = o._extra()
                x.grad_req, x.custom_function, x.tape_value = "function", (made, i), None
                if o._trace is not None and o._trace is local.traces.get(o._value.ctx):
                    o._trace.mark_variable(o)
        if engine.naive:
            flush(local.trace)
        return outs[0] if isinstance(got, NDArray) else outs if isinstance(got, list) else tuple(outs)


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
            ins, shapes, _ = self.shapes([list(s) for s in like[0]])
            for name, own, found in zip(self.arguments, like[0], ins, strict=True):
                if len(found) != len(own) or any(n not in (0, m) for n, m in zip(found, own, strict=True)):
                    raise ArgumentError(
                        f"Custom({self.op_type!r}): {name} has shape {own}: infer_shape expects {found}"
                    )
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


def nonzero_rows(data: NDArray, index: NDArray, axis: int) -> NDArray:
    """Return the positions along `axis` of `data` whose element of `index` is not 0.

    Raises:
        ArgumentError: `index` is not a vector as long as the axis, or the axis does not exist.
    """
    if not -data.ndim <= axis < data.ndim:
        raise ArgumentError(f"boolean_mask: axis={axis}: expected a value in [{-data.ndim}, {data.ndim})")
    if index.shape != (data.shape[axis],):
        raise ArgumentError(
            f"boolean_mask: index has shape {index.shape}: expected {(data.shape[axis],)}, one element per slice "
            f"of data along axis {axis}"
        )
    return array_from_numpy(np.flatnonzero(index.asnumpy()), data.context)


def select_by_mask(params: Mapping[str, Any], ins: Sequence[NDArray]) -> list[NDArray]:
    """Run an operator that selects by a mask, the second input, as `take`, which has a gradient."""
    data, mask = ins
    axis = params["axis"]
    return invoke(OPS["take"].call(axis=axis), (data, nonzero_rows(data, mask, axis)))


__all__ = ["nonzero_rows", "select_by_mask"]
