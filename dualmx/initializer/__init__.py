"""Initializers: callables that fill a variable in place, chosen by its name or set in its attributes."""

from . import base, composite, constant, random
from .base import *
from .composite import *
from .constant import *
from .random import *

__all__: list[str] = []
__all__ += base.__all__
__all__ += composite.__all__
__all__ += constant.__all__
__all__ += random.__all__
