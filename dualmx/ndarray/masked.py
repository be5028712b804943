"""Selecting by a mask: the length of the result depends on values, so they are waited for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError
from ..op.registry import OPS
from .array import NDArray
from .creation import array_from_numpy
from .handle import invoke


def nonzero_rows(data: NDArray, index: NDArray, axis: int) -> NDArray:
    """Return the positions along `axis` of `data` whose element of `index` is not 0.

    Raises:
        ArgumentError: `index` is not a vector as long as the axis, or the axis does not exist.
    """
    if not -data.ndim <= axis < data.ndim:
        raise ArgumentError(f"boolean_mask: axis={axis}: expected a value in [{-data.ndim}, {data.ndim})")
    if index.shape != (data.shape[axis],):
        raise ArgumentError(
            f"boolean_mask: index has shape {index.shape}: expected {(data.shape[axis],)}, one element per slice "
            f"of data along axis {axis}"
        )
    return array_from_numpy(np.flatnonzero(index.asnumpy()), data.context)


def _boolean_mask(params: Mapping[str, Any], ins: Sequence[NDArray]) -> list[NDArray]:
    data, index = ins
    axis = params["axis"]
    return invoke(OPS["take"].call(axis=axis), (data, nonzero_rows(data, index, axis)))


# Operators with results of unknown shape that are recorded as others when the values are there, so that they have
# gradients: name -> function of parameters and inputs.
RECORDED = {"_contrib_boolean_mask": _boolean_mask}

__all__ = ["RECORDED", "nonzero_rows"]
