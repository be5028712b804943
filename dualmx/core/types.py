"""Types of arguments that many public functions take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

Shape: TypeAlias = int | Sequence[int]
"""Lengths, one per axis, or the only one."""

Axes: TypeAlias = int | Sequence[int] | None
"""Axis numbers; usually `None` means all axes."""

Holes: TypeAlias = int | Sequence[int | None] | None
"""Positions, one per axis, `None` where the axis is not cut."""

Floats: TypeAlias = float | Sequence[float]
"""Numbers, or the only one."""

DType: TypeAlias = str | type | np.dtype[Any] | int
"""An element type: its name, a NumPy type or dtype, or MXNet's number of it."""
