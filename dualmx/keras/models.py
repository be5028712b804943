"""Models by the name of their module in Keras."""

from .model import Model, Sequential

__all__ = ["Model", "Sequential"]
