"""Estimators and models as `pyspark.ml` stages."""

from .estimators import GluonEstimator, KerasEstimator
from .models import GluonModel, KerasModel

__all__ = ["GluonEstimator", "GluonModel", "KerasEstimator", "KerasModel"]
