"""Keras' import path of models."""

from .model import Model, Sequential

__all__ = ["Model", "Sequential"]
