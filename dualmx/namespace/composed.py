"""Array functions that prepare their arguments before they call an operator."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from ..core.errors import ArgumentError
from ..ndarray.array import NDArray
from ..ndarray.creation import from_host
from ..ndarray.handle import Handle, invoke
from ..op.registry import OPS


def split_v2(ary: NDArray, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> list[NDArray]:
    """Split an array into equal sections, or at the given indices.

    Args:
        ary: the array.
        indices_or_sections: number of equal parts, or the positions along `axis` where parts begin.
        axis: axis to split.
        squeeze_axis: drop the axis from parts of length 1.

    Raises:
        ArgumentError: the axis does not divide into that many parts.
    """
    if isinstance(indices_or_sections, (int, np.integer)):
        sections = int(indices_or_sections)
        if sections < 1 or ary.shape[axis] % sections:
            raise ArgumentError(
                f"split_v2: indices_or_sections={sections}: axis {axis} of length {ary.shape[axis]} does not divide"
            )
        call = OPS["_split_v2"].call(indices=(), axis=axis, squeeze_axis=squeeze_axis, sections=sections)
    else:
        at = (0, *(int(i) for i in indices_or_sections))
        call = OPS["_split_v2"].call(indices=at, axis=axis, squeeze_axis=squeeze_axis)
    return invoke(call, (ary,))


def histogram(a: NDArray, bins: Any = 10, range: tuple[float, float] | None = None) -> list[NDArray]:
    """Count the elements of `a` in each bin.

    Args:
        a: values of any shape.
        bins: number of equal bins, or an array of increasing edges.
        range: lowest and highest edge when `bins` is a number; by default the least and greatest element.

    Returns:
        Counts (int64) and bin edges.
    """
    if isinstance(bins, Handle):
        return invoke(OPS["_histogram"].call(), (a, bins))
    if range is None:
        range = (float(a.min().asscalar()), float(a.max().asscalar()))
    edges = from_host(np.linspace(range[0], range[1], int(bins) + 1).astype(a._v.dtype), a.context)
    return invoke(OPS["_histogram"].call(bin_cnt=int(bins), range=range), (a, edges))


def populate(top: ModuleType) -> None:
    """Put the functions into the array namespace."""
    for fn in (split_v2, histogram):
        setattr(top, fn.__name__, fn)
