"""Names that MXNet users import from `mx.base`."""

from __future__ import annotations

import numpy as np

from .core.errors import MXNetError

string_types = (str,)
numeric_types = (float, int, np.generic)
integer_types = (int, np.int32, np.int64)

__all__ = ["MXNetError", "integer_types", "numeric_types", "string_types"]
