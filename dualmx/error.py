"""MXNet's `mx.error`: errors by name."""

from .base import InternalError, register_error
from .core.errors import MXNetError

register = register_error

__all__ = ["InternalError", "MXNetError", "register", "register_error"]
