"""Runs of custom functions and operators that log which hooks are called; see `record.py`.

`mx` is the framework module. Each case takes it and returns the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.goldens.hooks_spy import Log, spy

# Left out: list_arguments, list_outputs and list_auxiliary_states, constants that MXNet asks for again and again.
PROP = (
    "create_operator", "declare_backward_dependency", "infer_shape", "infer_storage_type",
    "infer_storage_type_backward", "infer_type",
)  # fmt: skip


def _registered(mx: Any, log: Log, need_top_grad: bool, states: bool = False) -> None:
    """Register an operator of two inputs and two outputs, of which all hooks log."""

    class Op(spy(mx.operator.CustomOp, ("assign",), log, "Op")):  # type: ignore[misc]
        def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            call = log.enter("Op.forward", (bool(is_train), req, in_data, out_data, aux), {})
            self.assign(out_data[0], req[0], in_data[0] * in_data[1])
            self.assign(out_data[1], req[1], in_data[0] + 1)
            log.leave(call)

        def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
            grads = out_grad if need_top_grad else "unknown"  # MXNet gives arrays without values
            call = log.enter("Op.backward", (req, grads, in_data, out_data, in_grad, aux), {})
            self.assign(in_grad[0], req[0], in_data[1])
            self.assign(in_grad[1], req[1], in_data[0])
            log.leave(call)

    base = spy(mx.operator.CustomOpProp, PROP, log, "Prop", results=True)

    class Prop(base):  # type: ignore[misc, valid-type]
        def __init__(self, scale: str = "1"):
            log.note("Prop", scale)
            super().__init__(need_top_grad=need_top_grad)

        def list_arguments(self) -> list[str]:
            return ["left", "right"]

        def list_outputs(self) -> list[str]:
            return ["product", "more"]

        def list_auxiliary_states(self) -> list[str]:
            return ["count"] if states else []

        def infer_shape(self, in_shape: Any) -> Any:
            log.note("infer_shape", in_shape)
            return [in_shape[0], in_shape[0]], [in_shape[0], in_shape[0]], [[1]] if states else []

        def infer_type(self, in_type: Any) -> Any:
            log.note("infer_type", in_type)
            return super().infer_type(in_type)

        def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> Any:
            log.note("create_operator", ctx, in_shapes)  # MXNet gives the dtypes as its own numbers
            return Op()

    mx.operator.register("hooked")(Prop)


def _pair(mx: Any) -> tuple[Any, Any]:
    return mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([[5, 6], [7, 8]])


def imperative(mx: Any, need_top_grad: bool = True) -> Log:
    """The operator on arrays: outside of recording, inside, backward, and once more."""
    log = Log()
    _registered(mx, log, need_top_grad)
    x, y = _pair(mx)
    log.note("call")
    mx.nd.waitall()
    for out in mx.nd.Custom(x, y, op_type="hooked", scale="2"):
        out.wait_to_read()
    x.attach_grad()
    for k in range(2):
        log.note("record", k)
        with mx.autograd.record():
            out, _ = mx.nd.Custom(x, y, op_type="hooked")
        out.wait_to_read()
        log.note("backward")
        out.backward()
        x.grad.wait_to_read()
    return log


def symbolic(mx: Any, need_top_grad: bool = True, states: bool = False) -> Log:
    """The operator in a symbol: making it, shapes, binding, running."""
    log = Log()
    _registered(mx, log, need_top_grad, states)
    log.note("symbol and shapes")
    out = mx.sym.Custom(mx.sym.var("x"), mx.sym.var("y"), op_type="hooked", name="op")
    out.infer_shape(x=(2, 2))
    bound = out.simple_bind(mx.cpu(), x=(2, 2), y=(2, 2), grad_req={"x": "write", "y": "null"})
    for k in range(2):
        if k:
            log.note("forward")
        for value in bound.forward(is_train=True):
            value.wait_to_read()
        log.note("backward")
        bound.backward([mx.nd.ones((2, 2)), mx.nd.ones((2, 2))])
        bound.grad_arrays[0].wait_to_read()
    log.note("forward alone")
    for value in bound.forward(is_train=False):
        value.wait_to_read()
    # How often the passes over a graph ask for the same shapes and types is nobody's business.
    infers = [c for n, c in enumerate(log.calls) if "infer_" in c and c not in log.calls[:n]]
    log.calls = [c for c in log.calls if "infer_" not in c or (c in infers and not infers.remove(c))]
    return log


def function(mx: Any) -> Log:
    """An autograd.Function of two inputs: outside of recording, inside, with and without gradients of inputs."""
    log = Log()

    class Product(spy(mx.autograd.Function, ("__call__", "save_for_backward"), log, "Product")):  # type: ignore[misc]
        def forward(self, x: Any, y: Any) -> Any:
            call = log.enter("forward", (x, y), {})
            log.note("recording", mx.autograd.is_recording(), mx.autograd.is_training())
            self.save_for_backward(x, y)
            log.note("saved", self.saved_tensors)
            self.saved_tensors = (x * 2, y)
            log.leave(call)
            return x * y, x + y

        def backward(self, one: Any, other: Any) -> Any:
            call = log.enter("backward", (one, other), {})
            log.note("recording", mx.autograd.is_recording(), mx.autograd.is_training())
            x, y = self.saved_tensors
            log.note("saved", float(x.sum().asscalar()), float(y.sum().asscalar()))
            log.leave(call)
            return one * y, one * x

    x, y = _pair(mx)
    log.note("call")
    Product()(x, y)
    x.attach_grad()
    for mode in (True, False):
        log.note("record", mode)
        with mx.autograd.record(train_mode=mode):
            out = Product()(x, y)
        log.note("backward")
        out[0].backward(train_mode=mode)
        x.grad.wait_to_read()
    log.note("gradient", float(x.grad.sum().asscalar()))
    log.note("untouched")
    Product().saved_tensors
    log.note("empty", Product().saved_tensors)
    return log


def cases() -> Iterator[tuple[str, Callable[[Any], Log]]]:
    """Name and function of each case."""
    yield "operator on arrays", imperative
    yield "operator on arrays, no top gradient", lambda mx: imperative(mx, False)
    yield "operator in symbols", symbolic
    yield "operator in symbols, no top gradient", lambda mx: symbolic(mx, False)
    yield "operator in symbols, with states", lambda mx: symbolic(mx, states=True)
    yield "function", function
