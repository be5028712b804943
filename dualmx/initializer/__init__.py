"""Initializers: callables that fill a variable in place, chosen by its name or set in its attributes."""

from .base import InitDesc, Initializer, alias, create, register
from .composite import FusedRNN, Load, Mixed
from .constant import Bilinear, Constant, LSTMBias, One, Zero
from .random import MSRAPrelu, Normal, Orthogonal, Uniform, Xavier

__all__ = [
    "Bilinear",
    "Constant",
    "FusedRNN",
    "InitDesc",
    "Initializer",
    "LSTMBias",
    "Load",
    "MSRAPrelu",
    "Mixed",
    "Normal",
    "One",
    "Orthogonal",
    "Uniform",
    "Xavier",
    "Zero",
    "alias",
    "create",
    "register",
]
