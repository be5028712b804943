"""Estimators and models as stages of `pyspark.ml`, whose classes they derive from."""

from .estimators import GluonEstimator, KerasEstimator
from .models import GluonModel, KerasModel

__all__ = ["GluonEstimator", "GluonModel", "KerasEstimator", "KerasModel"]
