"""Calibration: value ranges inside a network from example data, by extremes or by least divergence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...core.errors import ArgumentError, ArgumentTypeError
from ...io import DataIter
from ...namespace import nd
from ...ndarray import NDArray
from ...symbol.symbol import Group

Histogram = tuple[np.ndarray, np.ndarray, float, float, float]
BINS = 8001


class MinMaxCollector:
    """Keeps the least and largest value of every layer in `min_max_dict`.

    Args:
        quantized_dtype: accepted.
        include_layer: names of layers to keep; all if None.
        logger: where the ranges of each batch are written.

    Example:
        >>> collector = MinMaxCollector("int8")
        >>> collector.collect("layer", "Convolution", mx.nd.array([1.0, -3.0]))
        >>> collector.min_max_dict
        {'layer': (-3.0, 1.0)}
    """

    def __init__(self, quantized_dtype: str, include_layer: Any = None, logger: Any = None):
        self.include_layer, self.logger, self.quantized_dtype = include_layer, logger, quantized_dtype
        self.min_max_dict: dict[str, tuple[float, float]] = {}

    def collect(self, name: str, op_name: str, arr: Any) -> None:
        """Take the values of a layer."""
        if self.include_layer is not None and name not in self.include_layer:
            return
        values = arr.asnumpy() if isinstance(arr, NDArray) else np.asarray(arr)
        low, high = float(values.min()), float(values.max())
        old = self.min_max_dict.get(name, (low, high))
        self.min_max_dict[name] = min(low, old[0]), max(high, old[1])
        if self.logger:
            self.logger.debug("layer %s: from %f to %f", name, low, high)

    def ranges(self, quantized_dtype: str) -> dict[str, tuple[float, float]]:
        """Return the range of each layer."""
        return dict(self.min_max_dict)


class HistogramCollector:
    """Keeps a histogram, symmetric around 0, of the values of every layer in `hist_dict`.

    Args:
        num_bins: bins of the first histogram; later values may add more.
        include_layer: names of layers to keep; all if None.
        logger: where the ranges of each batch are written.
    """

    def __init__(self, num_bins: int = BINS, include_layer: Any = None, logger: Any = None):
        self.num_bins, self.include_layer, self.logger = num_bins, include_layer, logger
        self.hist_dict: dict[str, Histogram] = {}

    def collect(self, name: str, op_name: str, arr: Any) -> None:
        """Take the values of a layer."""
        if self.include_layer is not None and name not in self.include_layer:
            return
        values = arr.asnumpy() if isinstance(arr, NDArray) else np.asarray(arr)
        low, high = float(values.min()), float(values.max())
        top = max(abs(low), abs(high))
        if name in self.hist_dict:
            self.hist_dict[name] = combine_histogram(self.hist_dict[name], values, low, high, top)
        else:
            hist, edges = np.histogram(values, bins=self.num_bins, range=(-top, top))
            self.hist_dict[name] = hist, edges, low, high, top
        if self.logger:
            self.logger.debug("layer %s: from %f to %f", name, low, high)

    def ranges(self, quantized_dtype: str) -> dict[str, tuple[float, float]]:
        """Return the thresholds of each layer that lose least information."""
        return {name: optimal_range(hist, quantized_dtype) for name, hist in self.hist_dict.items()}


def combine_histogram(old_hist: Histogram, arr: np.ndarray, new_min: float, new_max: float, new_th: float) -> Histogram:
    """Add values to a histogram (counts, edges, least, largest, threshold), which gets bins for values outside.

    Args:
        old_hist: the histogram.
        arr: the values.
        new_min, new_max: their least and largest.
        new_th: the larger absolute value of the two.
    """
    counts, edges, low, high, top = old_hist
    ends = min(low, new_min), max(high, new_max)
    if new_th <= top:
        hist, _ = np.histogram(arr, bins=len(counts), range=(-top, top))
        return counts + hist, edges, *ends, top
    step = 2 * top / len(counts)
    more = int((new_th - top) // step + 1)
    wide = top + more * step
    hist, new_edges = np.histogram(arr, bins=len(counts) + 2 * more, range=(-wide, wide))
    hist[more : more + len(counts)] += counts
    return hist, new_edges, *ends, wide


def optimal_range(hist: Histogram, quantized_dtype: str, bins: int = 255) -> tuple[float, float]:
    """Return the thresholds for which a histogram and its quantized form diverge least.

    Values that are never negative use twice the levels, and their range begins at 0, if the dtype may be uint8.
    """
    counts, edges, low, _, _ = hist
    unsigned = low >= 0 and quantized_dtype in ("auto", "uint8")
    levels = min(2 * bins + 1 if unsigned else bins, len(counts))
    inputs = nd.array(counts, dtype="float32"), nd.array(edges, dtype="float32")
    found = nd.contrib.calibrate_entropy(*inputs, num_quantized_bins=levels)
    top = float(found[0].asscalar())
    return (0.0 if low >= 0 and unsigned else -top), top


def batches(data: Any, names: list[str]) -> Iterator[dict[str, NDArray]]:
    """Yield the inputs, by name, of the batches of an iterator or of a Gluon data loader."""
    if isinstance(data, DataIter):
        data.reset()
        for batch in data:
            described = [d[0] for d in (batch.provide_data or data.provide_data)]
            yield dict(zip(described, batch.data, strict=True))
        return
    if not hasattr(data, "__iter__"):
        raise ArgumentTypeError(f"calib_data is a {type(data).__name__}: expected a DataIter or a DataLoader")
    for batch in data:
        arrays = list(batch) if isinstance(batch, (list, tuple)) else [batch]
        yield dict(zip(names, arrays, strict=False))


def collect(
    sources: Mapping[str, Any], params: Mapping[str, NDArray], aux: Mapping[str, NDArray], data: Any, names: list[str],
    collector: Any, limit: int | None, ctx: Any,
) -> int:  # fmt: skip
    """Run a network on examples and hand the values of `sources`, entries by name, to the collector.

    Returns:
        How many examples there were.

    Raises:
        ArgumentError: the examples lack an input.
    """
    layers = list(sources.items())
    heads = Group([entry for _, entry in layers])
    arguments, states = heads.list_arguments(), heads.list_auxiliary_states()
    executor, bound, count = None, None, 0
    for batch in batches(data, names):
        missing = [n for n in arguments if n not in params and n not in batch]
        if missing:
            raise ArgumentError(f"calib_data has inputs {sorted(batch)}: the network needs {missing} as well")
        fed = {n: batch[n] for n in arguments if n in batch}
        shapes = {n: a.shape for n, a in fed.items()}
        if executor is None or shapes != bound:
            args = {n: (fed[n].copyto(ctx) if n in fed else params[n].copyto(ctx)) for n in arguments}
            bound = shapes
            executor = heads.bind(ctx, args, aux_states={n: aux[n].copyto(ctx) for n in states})
        for (name, entry), value in zip(layers, executor.forward(is_train=False, **fed), strict=True):
            node = entry.entries[0][0]
            collector.collect(name, node.op.name if node.op else "null", value)
        count += next(iter(batch.values())).shape[0]
        if limit is not None and count >= limit:
            break
    return count


__all__ = ["HistogramCollector", "MinMaxCollector", "collect", "combine_histogram", "optimal_range"]
