"""`Constant`: a parameter that is never trained."""

from __future__ import annotations

import warnings
from typing import Any

from ... import initializer
from ...namespace import nd
from ...ndarray import NDArray
from .parameter import Parameter


class Constant(Parameter):
    """A parameter with a fixed value: saved with the block, never trained.

    Args:
        name: full name.
        value: an array, or nested lists of numbers.

    Example:
        >>> import dualmx as mx
        >>> c = mx.gluon.Constant("c", [[1, 2], [3, 4]])
        >>> c.initialize(ctx=mx.cpu())
        >>> c.data().asnumpy().tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """

    def __init__(self, name: str, value: Any):
        if not isinstance(value, NDArray):
            value = nd.array(value)
        self.value = value
        super().__init__(
            name,
            grad_req="null",
            shape=value.shape,
            dtype=value.dtype,
            init=initializer.Constant(value),
            differentiable=False,
        )

    def __repr__(self) -> str:
        return f"Constant {self.name} (shape={self.shape}, dtype={self.dtype})"

    @property
    def grad_req(self) -> str:
        """Always `"null"`."""
        return "null"

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req != "null":
            warnings.warn(f"Constant {self.name!r} keeps grad_req='null'; it has no gradient", stacklevel=2)
