"""User-defined differentiable functions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from .array import NDArray
from .creation import zeros
from .handle import Handle, is_tracked, ref
from .trace import TapePaused, engine, local

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
    data = a._realize(None) if a._trace is None and a._data is None and not a.is_sparse else a._data
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
            engine.flush(local.trace)
        return outs[0] if isinstance(got, NDArray) else outs
