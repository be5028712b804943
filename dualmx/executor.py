"""MXNet's import path of `Executor`."""

from __future__ import annotations

from .symbol.executor import Executor

__all__ = ["Executor"]
