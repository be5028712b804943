"""Parameters: named arrays with gradients, one replica per context."""

from ...ndarray import NDArray
from .constant import Constant
from .parameter import ARRAYS_VERSION, DeferredInitializationError, Parameter, context_list, shape_is_known
from .parameter_dict import ParameterDict, brief

tensor_types = (NDArray,)

__all__ = [
    "ARRAYS_VERSION", "Constant", "DeferredInitializationError", "Parameter", "ParameterDict", "brief", "context_list",
    "shape_is_known", "tensor_types",
]  # fmt: skip
