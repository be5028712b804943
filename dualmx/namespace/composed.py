"""Array functions that prepare their arguments before they call an operator."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..core.checks import integer, require_instance
from ..core.errors import ArgumentError
from ..ndarray.array import NDArray
from ..ndarray.creation import array_from_numpy
from ..ndarray.handle import invoke, invoke_out
from ..ndarray.masked import nonzero_rows
from ..op.registry import OPS
from .array_functions import as_input


def split_v2(ary: NDArray, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> Any:
    """Split an array into equal sections, or at the given indices; a single part is an array, several are a list.

    Args:
        ary: the array.
        indices_or_sections: number of equal parts, or the positions along `axis` where parts begin.
        axis: axis to split.
        squeeze_axis: drop the axis from parts of length 1.

    Raises:
        ArgumentError: the axis does not divide into that many parts.
    """
    require_instance("split_v2", "ary", ary, NDArray, "an NDArray")
    axis = integer("split_v2", "axis", axis)
    if not -len(ary.shape) <= axis < len(ary.shape):
        raise ArgumentError(f"split_v2: axis={axis}: expected an axis of shape {ary.shape}")
    if isinstance(indices_or_sections, (int, np.integer)):
        sections = int(indices_or_sections)
        if sections < 1 or ary.shape[axis] % sections:
            raise ArgumentError(
                f"split_v2: indices_or_sections={sections}: axis {axis} of length {ary.shape[axis]} does not divide"
            )
        call = OPS["_split_v2"].call(indices=(), axis=axis, squeeze_axis=squeeze_axis, sections=sections)
    else:
        given = require_instance("split_v2", "indices_or_sections", indices_or_sections, (list, tuple, np.ndarray),
                         "a number of parts or a list of positions")  # fmt: skip
        at = (0, *(integer("split_v2", "indices_or_sections", i) for i in given))
        call = OPS["_split_v2"].call(indices=at, axis=axis, squeeze_axis=squeeze_axis)
    parts = invoke(call, (ary,))
    return parts[0] if len(parts) == 1 else parts


def histogram(a: NDArray, bins: Any = 10, range: tuple[float, float] | None = None) -> Sequence[NDArray]:
    """Count the elements of `a` in each bin.

    Args:
        a: values of any shape.
        bins: number of equal bins, or an array of increasing edges.
        range: lowest and highest edge when `bins` is a number; by default the least and greatest element.

    Returns:
        Counts (int64; float32 where the range is that of the elements) and bin edges.
    """
    require_instance("histogram", "a", a, NDArray, "an NDArray")
    if isinstance(bins, NDArray):
        return invoke(OPS["_histogram"].call(), (a, bins))
    bins = integer("histogram", "bins", bins, 1)
    if range is None:
        # Only NumPy knows the range before the bins are made; MXNet hands the counts back as it makes any array.
        counts, limits = np.histogram(a.asnumpy(), int(bins))
        return array_from_numpy(counts.astype(np.float32), a.context), array_from_numpy(
            limits.astype(np.float32), a.context
        )
    edges = array_from_numpy(np.linspace(range[0], range[1], int(bins) + 1).astype(a._value.dtype), a.context)
    return invoke(OPS["_histogram"].call(bin_cnt=int(bins), range=range), (a, edges))


def boolean_mask(
    data: Any = None, index: Any = None, axis: int = 0, out: Any = None, name: str | None = None
) -> NDArray:
    """Select the slices of `data` along `axis` whose element of `index` is not 0.

    The length of the result depends on the values of `index`, which are waited for. Gradients go to the selected slices
    of `data`.

    Args:
        data: array of shape (..., n, ...).
        index: mask of shape (n,), of any dtype.
        axis: axis to select along.
        out: array to write to; its shape must be that of the result.

    Raises:
        ArgumentError: `index` is not a vector as long as the axis, or the axis does not exist.

    Example:
        >>> import dualmx as mx
        >>> mx.nd.contrib.boolean_mask(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([0, 1])).asnumpy().tolist()
        [[3.0, 4.0]]
    """
    op = OPS["take"]
    data = as_input(data, op, "data", None)
    index = as_input(index, op, "index", data)
    rows = nonzero_rows(data, index, axis)
    call = op.call(axis=axis)
    if out is not None:
        invoke_out(call, (data, rows), (out,))
        return out
    return invoke(call, (data, rows))[0]


def populate(top: ModuleType) -> None:
    """Put the functions into the array namespace."""
    for fn in (split_v2, histogram):
        setattr(top, fn.__name__, fn)
    top.contrib.boolean_mask = boolean_mask
    # The operator itself, computed at once, has no gradient.
    for name in ("_contrib_boolean_mask", "_npi_boolean_mask"):
        setattr(top._internal, name, boolean_mask)
