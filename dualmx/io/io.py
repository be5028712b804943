"""Data iterators, under the path of MXNet's module."""

from ..core.second_place import stand_for

__getattr__, __dir__ = stand_for(__name__, "dualmx.io")
