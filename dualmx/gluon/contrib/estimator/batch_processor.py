"""`BatchProcessor` under its customary import path."""

from .batch import BatchProcessor

__all__ = ["BatchProcessor"]
