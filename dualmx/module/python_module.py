"""Modules written in Python under their customary import path."""

from .python import PythonLossModule, PythonModule

__all__ = ["PythonLossModule", "PythonModule"]
