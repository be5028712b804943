"""`SequentialModule` under its customary import path."""

from .sequential import SequentialModule

__all__ = ["SequentialModule"]
