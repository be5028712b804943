"""Optimizers that MXNet keeps under `mx.optimizer.contrib`."""

from .adaptive import GroupAdaGrad

__all__ = ["GroupAdaGrad"]
