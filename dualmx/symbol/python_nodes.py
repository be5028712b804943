"""Graph nodes that Python computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from ..core.dtypes import as_dtype
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ..ndarray.custom_op import CustomOpSpec
from ..op.registry import Call, Op
from ..op.schema import AUX, UNTYPED, Input
from .attributes import is_dunder
from .node import Entry, Node, SymbolBase, single_entry


class PythonNodeCall(Call):
    """A call that only Python can run; inside a compiled program it has shapes, and raises when it is reached."""

    __slots__ = ()

    def infer(self, avals: tuple[Any, ...]) -> tuple[tuple[tuple[int, ...], np.dtype], ...]:
        """Shapes and dtypes of outputs and states, as the user's properties infer them."""
        layout = self.op.spec  # pyright: ignore[reportAttributeAccessIssue]
        n = len(layout.arguments)
        ins, outs, aux = layout.shapes([list(s) for s, _ in avals[:n]])
        if ins != [s for s, _ in avals[:n]]:
            raise ArgumentError(
                f"Custom({layout.op_type!r}): infer_shape wants inputs {ins}, they are {[s for s, _ in avals[:n]]}"
            )
        _, types, aux_types = layout.dtypes([d.type for _, d in avals[:n]])
        shapes, dtypes = [*outs, *aux], [*types, *aux_types]
        return tuple((s, as_dtype(t)) for s, t in zip(shapes, dtypes, strict=True))

    def apply(self, inputs: Sequence[Any], key: Any = None, runtime: Sequence[Any] = ()) -> tuple[Any, ...]:
        """Return placeholders of the results while shapes are inferred."""
        found = self.infer(tuple((tuple(v.shape), np.dtype(v.dtype)) for v in inputs))
        name = self.op.spec.op_type  # pyright: ignore[reportAttributeAccessIssue]

        def reached(*values: Any) -> Any:
            raise MXNetError(f"Custom({name!r}) is written in Python and cannot run inside a pure JAX function")

        return tuple(jax.pure_callback(reached, [jax.ShapeDtypeStruct(*pair) for pair in found], *inputs))


class PythonNodeOp(Op):
    """The operator of one node that Python runs: inputs, outputs and states as its properties name them."""

    def __init__(self, name: str, layout: CustomOpSpec):
        inputs = [Input(n, UNTYPED) for n in layout.arguments] + [Input(n, AUX) for n in layout.states]
        super().__init__(
            name, self._raise_not_compiled, tuple(inputs), {}, outputs=len(layout.outputs),
            output_names=tuple(layout.outputs), complete=self._shapes, complete_dtype=self._dtypes,
        )  # fmt: skip
        self.spec = layout

    def _raise_not_compiled(self, *inputs: Any) -> Any:
        raise NotImplementedError

    @property
    def is_loss(self) -> bool:
        """True if backward needs no gradients of the outputs."""
        return not self.spec.prop.need_top_grad_

    def parse(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The properties have read the parameters already."""
        return {}

    def bind(self, params: Mapping[str, Any], train: bool = False) -> Call:
        """Return the call."""
        return self.calls.setdefault(train, PythonNodeCall(self, {}, False))

    def _shapes(self, p: Any, known: Mapping[str, Any]) -> dict[str, Any]:
        given = [list(known.get(n, ())) for n in self.spec.arguments]
        try:
            ins, _, aux = self.spec.shapes(given)
        except MXNetError:
            if all(n in known for n in self.spec.arguments):
                raise
            return {}
        names = (*self.spec.arguments, *self.spec.states)
        return {n: s for n, s in zip(names, (*ins, *aux), strict=True) if s}

    def _dtypes(self, p: Any, known: Mapping[str, str]) -> dict[str, str]:
        given = [as_dtype(known[n]).type if n in known else None for n in self.spec.arguments]
        if given and given[0] is None:
            return {}
        try:
            ins, outs, aux = self.spec.dtypes(given)
        except MXNetError:
            if None not in given:
                raise
            return {}
        ins = [given[0] if t is None else t for t in ins]
        results = [f"output{i}" if i else "output" for i in range(len(outs))]
        names = (*self.spec.arguments, *results, *self.spec.states)
        return {n: as_dtype(t).name for n, t in zip(names, (*ins, *outs, *aux), strict=True) if t is not None}


def host_op(attrs: Mapping[str, str]) -> PythonNodeOp:
    """The operator of a `Custom` node with these attributes.

    Raises:
        ArgumentError: `op_type` is missing or not registered.
    """
    own = {k: v for k, v in attrs.items() if not is_dunder(k)}
    if "op_type" not in own:
        raise ArgumentError("Custom: missing required parameter 'op_type'")
    return PythonNodeOp("Custom", CustomOpSpec.from_kwargs(own.pop("op_type"), own))


def host_node(
    op: PythonNodeOp, name: str, args: Sequence[Any], named: Mapping[str, SymbolBase], attrs: Mapping[str, str]
) -> Node:
    """Connect a node to its inputs; automatic variables for missing ones.

    Raises:
        ArgumentError: more inputs than it has, or an unknown one. ArgumentTypeError: an input is not a symbol.
    """
    names = [*op.spec.arguments, *op.spec.states]
    where = f"{op.name}({op.spec.op_type!r})"
    if len(args) > len(names):
        raise ArgumentError(f"{where}: got {len(args)} inputs, expected {len(names)}: {names}")
    for value in args:
        if not isinstance(value, SymbolBase):
            raise ArgumentTypeError(f"{where}: positional arguments are symbols, got {value!r}")
    given: dict[str, Any] = dict(zip(names, args, strict=False))
    for key, value in named.items():
        if key not in names or key in given:
            raise ArgumentError(f"{where}: unexpected input {key!r}, given once by position or name out of {names}")
        given[key] = value
    inputs: list[Entry] = []
    for key in names:
        if key in given:
            inputs.append(single_entry(given[key], f"{where}: input {key!r}"))
        else:
            inputs.append((Node(None, f"{name}_{key}", attrs=attrs), 0))
    return Node(op, name, inputs, {}, attrs)


__all__ = ["PythonNodeCall", "PythonNodeOp", "host_node", "host_op"]
