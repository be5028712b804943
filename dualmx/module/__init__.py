"""Modules: symbols with memory, parameters and an optimizer, and the training loop around them."""

from __future__ import annotations

from .base import BaseModule
from .bucketing import BucketingModule
from .module import Module
from .python import PythonLossModule, PythonModule
from .sequential import SequentialModule

__all__ = [
    "BaseModule",
    "BucketingModule",
    "Module",
    "PythonLossModule",
    "PythonModule",
    "SequentialModule",
]
