"""`sym.Custom`: nodes of operators written in Python."""

from __future__ import annotations

from typing import Any

from .attributes import AttrScope, json_key
from .compose import SymbolBase
from .host import host_node, host_op
from .names import NameManager
from .symbol import Symbol
from .text import param_text


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


__all__ = ["Custom"]
