"""Operators: schema, registry, definitions. One annotated function per operator; CONTRIBUTING.md has the recipe."""

from .registry import OPS, Call, Op, get_op, op

__all__ = ["OPS", "Call", "Op", "get_op", "op"]
