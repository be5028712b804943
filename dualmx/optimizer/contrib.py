"""MXNet's import path `mx.optimizer.contrib`."""

from .adaptive import GroupAdaGrad

__all__ = ["GroupAdaGrad"]
