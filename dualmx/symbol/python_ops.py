"""`sym.Custom`, and the older `PythonOp` objects that are called on symbols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ndarray import NDArray
from ..ndarray.custom_op import CustomOpSpec
from .attributes import AttrScope, NameManager, json_key, param_text
from .node import SymbolBase
from .python_nodes import PythonNodeOp, host_node, host_op
from .symbol import Symbol


def Custom(*args: Any, op_type: str = "", name: str | None = None, attr: Any = None, **kwargs: Any) -> Symbol:
    """Make a node of the custom operator registered as `op_type`.

    The operator runs in Python between the compiled parts of the graph, in the order of the graph.

    Args:
        args: its inputs, then its states; or by their names as keywords; variables are made for missing ones.
        op_type: name given to `mx.operator.register`.
        name: of the node.
        attr: string attributes.
        kwargs: parameters, handed to the `CustomOpProp` as text.

    Raises:
        ArgumentError: unknown `op_type` or input. ArgumentTypeError: an input is not a symbol.
    """
    named = {k: v for k, v in kwargs.items() if isinstance(v, SymbolBase)}
    attrs = AttrScope.current.get(attr)
    attrs.update({k: param_text(v) for k, v in kwargs.items() if k not in named and v is not None})
    if op_type:
        attrs["op_type"] = op_type
    attrs = {json_key(k): v for k, v in attrs.items()}
    op = host_op(attrs)
    node = host_node(op, NameManager.current.get(name, "custom"), args, named, attrs)  # pyright: ignore[reportArgumentType]
    return Symbol([(node, i) for i in range(len(op.spec.outputs))])


class PythonOp:
    """An operator written in Python; override `forward`, `backward` and what differs from one input and one output.

    Args:
        need_top_grad: whether backward reads the gradients of the outputs; without, the operator is a loss.
    """

    _op_name = "_Native"

    def __init__(self, need_top_grad: bool = True):
        self.need_top_grad_ = need_top_grad

    def __call__(self, *args: Symbol, **kwargs: Any) -> Symbol:
        return self.get_symbol(*args, **kwargs)

    def get_symbol(self, *args: Symbol, **kwargs: Any) -> Symbol:
        """Make a node of this operator: inputs by position or name, and `name`."""
        name = NameManager.current.get(kwargs.pop("name", None), self._op_name.lower())
        layout = CustomOpSpec(type(self).__name__, _PythonOpProp(self))
        node = host_node(
            PythonNodeOp(self._op_name, layout), name, args, kwargs, {"need_top_grad": str(self.need_top_grad())}
        )
        return Symbol([(node, i) for i in range(len(layout.outputs))])

    def forward(self, in_data: list[Any], out_data: list[Any]) -> None:
        """Write `out_data` from `in_data`; copies the first input by default."""
        out_data[0][:] = in_data[0]

    def backward(self, out_grad: list[Any], in_data: list[Any], out_data: list[Any], in_grad: list[Any]) -> None:
        """Write `in_grad`; 1 by default."""
        in_grad[0][:] = 1.0

    def infer_shape(self, in_shape: list[Any]) -> tuple[list[Any], list[Any]]:
        """Shapes of inputs and outputs from those of the inputs."""
        return in_shape, [in_shape[0]]

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return ["data"]

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return ["output"]

    def need_top_grad(self) -> bool:
        """Whether backward reads the gradients of the outputs."""
        return self.need_top_grad_


class NumpyOp(PythonOp):
    """A `PythonOp` whose functions see NumPy arrays."""


class NDArrayOp(PythonOp):
    """A `PythonOp` whose functions see NDArrays."""

    _op_name = "_NDArray"

    def declare_backward_dependency(
        self, out_grad: Sequence[int], in_data: Sequence[int], out_data: Sequence[int]
    ) -> list[int]:
        """Which arrays backward reads; kept for scripts that override it, everything is handed to backward."""
        return [*(out_grad if self.need_top_grad() else ()), *in_data, *out_data]


class _PythonOpProp:
    """A `PythonOp` seen as the properties of a custom operator, and as the operator itself."""

    def __init__(self, made: PythonOp):
        self.made, self.need_top_grad_ = made, made.need_top_grad()
        self.list_arguments, self.list_outputs = made.list_arguments, made.list_outputs
        self.infer_shape = made.infer_shape

    def list_auxiliary_states(self) -> list[str]:
        return []

    def infer_type(self, types: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        known = next((t for t in types if t is not None), np.float32)
        return [known] * len(types), [known] * len(self.list_outputs()), []

    def create_operator(self, ctx: Any, shapes: list[Any], types: list[Any]) -> _PythonOpProp:
        return self

    def forward(self, is_train: bool, req: list[str], in_data: list[Any], out_data: list[Any], aux: list[Any]) -> None:
        self._call(self.made.forward, (in_data,), out_data)

    def backward(
        self, req: list[str], out_grad: list[Any], in_data: list[Any], out_data: list[Any], in_grad: list[Any],
        aux: list[Any],
    ) -> None:  # fmt: skip
        self._call(self.made.backward, (out_grad, in_data, out_data), in_grad)

    def _call(self, function: Any, read: Sequence[list[NDArray]], written: list[NDArray]) -> None:
        if isinstance(self.made, NDArrayOp):
            function(*read, written)
            return
        results = [a.asnumpy() for a in written]
        function(*([a.asnumpy() for a in part] for part in read), results)
        for array, value in zip(written, results, strict=True):
            array[:] = value


__all__ = ["Custom", "NDArrayOp", "NumpyOp", "PythonOp"]
