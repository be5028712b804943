"""`BaseModule` under its customary import path."""

from .base import BaseModule

__all__ = ["BaseModule"]
