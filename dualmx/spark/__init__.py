"""Distributed training in Apache Spark jobs.

`run` calls a function in several processes. `KerasEstimator` and `GluonEstimator` are `pyspark.ml` estimators that keep
data and checkpoints in a `Store`. All hosts need `pyspark` (`pip install 'dualmx[spark]'`), which is imported when
`run` is called or an estimator is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import MXNetError
from .runner import run
from .store import FilesystemStore, HDFSStore, LocalStore, Store

if TYPE_CHECKING:
    from .ml import GluonEstimator as GluonEstimator
    from .ml import GluonModel as GluonModel
    from .ml import KerasEstimator as KerasEstimator
    from .ml import KerasModel as KerasModel

# Stages of pyspark.ml derive from its classes.
_STAGES = ("GluonEstimator", "GluonModel", "KerasEstimator", "KerasModel")


if not TYPE_CHECKING:  # a type checker would take any name for one of these

    def __getattr__(name: str) -> Any:
        if name not in _STAGES:
            raise AttributeError(f"module 'dualmx.spark' has no attribute {name!r}")
        try:
            from . import ml
        except ImportError as e:
            raise MXNetError(f"spark.{name} needs the package pyspark: pip install 'dualmx[spark]' ({e})") from None
        return getattr(ml, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_STAGES})


__all__ = ["FilesystemStore", "HDFSStore", "LocalStore", "Store", "run"]
