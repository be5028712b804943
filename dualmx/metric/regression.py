"""Regression metrics: means per batch, averaged over batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ..core.errors import ArgumentError
from ..ndarray import NDArray
from .base import EvalMetric, alias, check_label_shapes, listed, register, to_host

Names = Sequence[str] | None


class _MeanError(EvalMetric):
    """Mean over batches of a mean error; a label of one axis is treated as a column."""

    def __init__(self, name: str, output_names: Names, label_names: Names):
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def _error(self, difference: NDArray) -> NDArray:
        raise NotImplementedError

    def update(self, labels: Any, preds: Any) -> None:
        """Take in labels and predictions of one shape, or labels (N,) and predictions (N, K)."""
        for label, pred in listed(labels, preds):
            dtype = "float64" if pred.dtype == numpy.float64 else "float32"
            label, pred = label.as_in_context(pred.context).astype(dtype), pred.astype(dtype)
            label, pred = (x.reshape((x.shape[0], 1)) if len(x.shape) == 1 else x for x in (label, pred))
            try:
                shape = numpy.broadcast_shapes(label.shape, pred.shape)
            except ValueError:
                raise ArgumentError(
                    f"{type(self).__name__}: labels of shape {label.shape} for predictions of shape {pred.shape}"
                ) from None
            label, pred = (x if x.shape == shape else x.broadcast_to(shape) for x in (label, pred))
            self._add(self._error(label - pred), 1)


@register
class MAE(_MeanError):
    """Mean absolute error, `mean(|label - pred|)` of each batch.

    Args:
        name, output_names, label_names: see `EvalMetric`.
    """

    def __init__(self, name: str = "mae", output_names: Names = None, label_names: Names = None):
        super().__init__(name, output_names, label_names)

    def _error(self, difference: NDArray) -> NDArray:
        return difference.abs().mean()


@register
class MSE(_MeanError):
    """Mean squared error, `mean((label - pred) ** 2)` of each batch.

    Args:
        name, output_names, label_names: see `EvalMetric`.

    Example:
        >>> import dualmx as mx
        >>> metric = MSE()
        >>> metric.update([mx.nd.array([1.0, 2.0])], [mx.nd.array([1.0, 4.0])])
        >>> metric.get()
        ('mse', 2.0)
    """

    def __init__(self, name: str = "mse", output_names: Names = None, label_names: Names = None):
        super().__init__(name, output_names, label_names)

    def _error(self, difference: NDArray) -> NDArray:
        return difference.square().mean()


@register
class RMSE(_MeanError):
    """Root of the mean squared error of each batch.

    Args:
        name, output_names, label_names: see `EvalMetric`.
    """

    def __init__(self, name: str = "rmse", output_names: Names = None, label_names: Names = None):
        super().__init__(name, output_names, label_names)

    def _error(self, difference: NDArray) -> NDArray:
        return difference.square().mean().sqrt()


class _Moments:
    """Running means, squared deviations and co-deviation of two sequences, merged batch by batch (Chan et al.)."""

    def __init__(self) -> None:
        self.n = 0
        self.mean_x = self.mean_y = self.xx = self.yy = self.xy = 0.0

    def update(self, x: numpy.ndarray, y: numpy.ndarray) -> None:
        """Take in two vectors of one length."""
        x, y = x.astype("float64"), y.astype("float64")
        n, total = x.size, self.n + x.size
        mx, my = float(x.mean()), float(y.mean())
        dx, dy = mx - self.mean_x, my - self.mean_y
        share = self.n * n / total
        self.xx += float(((x - mx) ** 2).sum()) + dx * dx * share
        self.yy += float(((y - my) ** 2).sum()) + dy * dy * share
        self.xy += float(((x - mx) * (y - my)).sum()) + dx * dy * share
        self.mean_x += dx * n / total
        self.mean_y += dy * n / total
        self.n = total

    @property
    def correlation(self) -> float:
        """Pearson's coefficient, nan when a sequence is constant."""
        root = (self.xx * self.yy) ** 0.5
        return self.xy / root if root else float("nan")


@alias("pearsonr")
class PearsonCorrelation(EvalMetric):
    """Pearson's correlation coefficient of labels and predictions of one shape.

    Args:
        name, output_names, label_names: see `EvalMetric`.
        average: `"macro"` averages the coefficients of updates, `"micro"` correlates all examples together.
    """

    def __init__(
        self,
        name: str = "pearsonr",
        output_names: Names = None,
        label_names: Names = None,
        average: str = "macro",
    ):
        if average not in ("macro", "micro"):
            raise ArgumentError(f"PearsonCorrelation: average={average!r}: expected 'macro' or 'micro'")
        self.average = average
        self._local, self._all = _Moments(), _Moments()
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def update(self, labels: Any, preds: Any) -> None:
        """Take in labels and predictions of one shape."""
        for label, pred in listed(labels, preds):
            check_label_shapes(label, pred, shape=True)
            x, y = to_host(label).ravel(), to_host(pred).ravel()
            if self.average == "macro":
                batch = _Moments()
                batch.update(x, y)
                self._add(batch.correlation, 1)
            else:
                self._local.update(x, y)
                self._all.update(x, y)
                self._add(0.0, 1)

    def get(self) -> tuple[str, float]:
        """`(name, coefficient)` since the last reset."""
        if self.average == "macro" or not self._local.n:
            return super().get()
        return self.name, self._local.correlation

    def get_global(self) -> tuple[str, float]:
        """`(name, coefficient)` since the last full reset."""
        if self.average == "macro" or not self._all.n:
            return super().get_global()
        return self.name, self._all.correlation

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self._local, self._all = _Moments(), _Moments()

    def reset_local(self) -> None:
        """Forget all but the global statistics."""
        super().reset_local()
        self._local = _Moments()


__all__ = ["MAE", "MSE", "PearsonCorrelation", "RMSE"]
