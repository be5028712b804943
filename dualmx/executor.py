"""MXNet's import path of `Executor`."""

from .symbol.executor import Executor

__all__ = ["Executor"]
