"""Operators that are also methods of arrays and symbols: `x.sum(axis=1)` is `sum(x, axis=1)`."""

from __future__ import annotations

from ..op.registry import OPS

FLUENT: tuple[str, ...] = tuple(sorted({op.method for op in OPS.values() if op.method}))
