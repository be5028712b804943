"""Operators: schema, registry, definitions. One annotated function per operator; see CONTRIBUTING."""

from .registry import OPS, Call, Op, get_op, op

__all__ = ["OPS", "Call", "Op", "get_op", "op"]
