"""Modules: symbols with memory, parameters and an optimizer, and the training loop around them."""

from __future__ import annotations

from . import base_module, bucketing_module, executor_group, python_module, sequential_module
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
    "base_module",
    "bucketing_module",
    "executor_group",
    "python_module",
    "sequential_module",
]
