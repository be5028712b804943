"""`mx.npx`, under the path of MXNet's functions of arrays."""

from ..core.second_place import stand_for

__getattr__, __dir__ = stand_for(__name__, "dualmx.numpy_extension")
