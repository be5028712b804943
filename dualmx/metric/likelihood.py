"""Metrics of predicted probabilities, and mean losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from ..core.errors import ArgumentError
from ..namespace import nd
from ..ndarray import NDArray
from .base import EvalMetric, alias, as_array, listed, register

Names = Sequence[str] | None


def chosen(label: NDArray, pred: NDArray, kind: str, axis: int = -1) -> NDArray:
    """Flat probabilities of the labelled classes: label of N elements in any shape, pred with the classes on `axis`."""
    if not -len(pred.shape) <= axis < len(pred.shape):
        raise ArgumentError(f"{kind}: axis={axis}: predictions have shape {pred.shape}")
    if label.size * pred.shape[axis] != pred.size:
        raise ArgumentError(f"{kind}: labels of shape {label.shape} for predictions of shape {pred.shape}")
    label = label.as_in_context(pred.context).reshape((-1,)).astype("int32")
    if axis not in (-1, len(pred.shape) - 1):
        pred = pred.swapaxes(axis, -1)
    pred = pred.reshape((-1, pred.shape[-1]))
    if pred.dtype not in (numpy.float32, numpy.float64):
        pred = pred.astype("float32")
    return nd.pick(pred, label, axis=1)


@alias("ce")
class CrossEntropy(EvalMetric):
    """Mean of `-log(p + eps)` over samples, `p` the predicted probability of the label.

    Args:
        eps: keeps the logarithm finite.
        name, output_names, label_names: see `EvalMetric`.

    Example:
        >>> import dualmx as mx
        >>> metric = CrossEntropy()
        >>> metric.update([mx.nd.array([0])], [mx.nd.array([[0.5, 0.5]])])
        >>> round(metric.get()[1], 4)
        0.6931
    """

    def __init__(
        self,
        eps: float = 1e-12,
        name: str = "cross-entropy",
        output_names: Names = None,
        label_names: Names = None,
    ):
        super().__init__(name, output_names, label_names, eps=eps, has_global_stats=True)
        self.eps = eps

    def update(self, labels: Any, preds: Any) -> None:
        """Take in labels (N,) and probabilities (N, classes); a label that is no class makes the value nan."""
        for label, pred in listed(labels, preds):
            classes = pred.shape[-1]
            label = nd.where(label < 0, label + classes, label)  # counted from the last class, as in an index
            p = chosen(label, pred, type(self).__name__)
            known = ((label >= 0) * (label < classes)).reshape((-1,)).as_in_context(p.context)
            # Raising would need the labels here, and so end the program of a step that runs ahead.
            p = nd.where(known.astype(p.dtype), p, p * math.nan)
            self._add(-((p + self.eps).log().sum()), label.size)


@alias("nll_loss")
class NegativeLogLikelihood(CrossEntropy):
    """Mean negative log-likelihood of the labels, as `CrossEntropy`.

    Args:
        eps: keeps the logarithm finite.
        name, output_names, label_names: see `EvalMetric`.
    """

    def __init__(
        self,
        eps: float = 1e-12,
        name: str = "nll-loss",
        output_names: Names = None,
        label_names: Names = None,
    ):
        super().__init__(eps, name, output_names, label_names)


@register
class Perplexity(EvalMetric):
    """`exp` of the mean of `-log(max(1e-10, p))` over samples whose label is not `ignore_label`.

    Args:
        ignore_label: label of samples to leave out, or None.
        axis: axis of the classes.
        name, output_names, label_names: see `EvalMetric`.
    """

    def __init__(
        self,
        ignore_label: int | None,
        axis: int = -1,
        name: str = "perplexity",
        output_names: Names = None,
        label_names: Names = None,
    ):
        super().__init__(name, output_names, label_names, ignore_label=ignore_label, has_global_stats=True)
        self.ignore_label = ignore_label
        self.axis = axis

    def update(self, labels: Any, preds: Any) -> None:
        """Take in labels and probabilities with the classes on `axis`, of as many samples."""
        for label, pred in listed(labels, preds):
            p = chosen(label, pred, "Perplexity", self.axis)
            count: Any = label.size
            if self.ignore_label is not None:
                left_out = (label.as_in_context(p.context).reshape((-1,)) == self.ignore_label).astype(p.dtype)
                count = label.size - left_out.sum()
                p = p * (1 - left_out) + left_out
            self._add(-(nd.maximum(p, 1e-10).log().sum()), count)

    def value_of(self, total: float, count: float) -> float:
        return math.exp(total / count)


@register
class Loss(EvalMetric):
    """Mean of all elements of the outputs; labels are not looked at.

    Args:
        name, output_names, label_names: see `EvalMetric`.
    """

    def __init__(self, name: str = "loss", output_names: Names = None, label_names: Names = None):
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def update(self, labels: Any, preds: Any) -> None:
        """Take in loss arrays of any shape."""
        for pred in [preds] if isinstance(preds, (NDArray, numpy.ndarray)) else preds:
            loss = as_array(pred)
            self._add(loss.sum(), loss.size)


@register
class Torch(Loss):
    """`Loss` under the name of Torch criterions."""

    def __init__(self, name: str = "torch", output_names: Names = None, label_names: Names = None):
        super().__init__(name, output_names, label_names)


@register
class Caffe(Loss):
    """`Loss` under the name of Caffe criterions."""

    def __init__(self, name: str = "caffe", output_names: Names = None, label_names: Names = None):
        super().__init__(name, output_names, label_names)


__all__ = ["Caffe", "CrossEntropy", "Loss", "NegativeLogLikelihood", "Perplexity", "Torch"]
