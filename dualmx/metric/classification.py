"""Classification metrics: accuracy, F1 and correlation coefficients of confusion matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ..core.argcheck import integer
from ..core.errors import ArgumentError
from .base import EvalMetric, alias, check_label_shapes, listed, register, to_host

Names = Sequence[str] | None


@alias("acc")
class Accuracy(EvalMetric):
    """Fraction of correct classes.

    Predictions are class numbers in the labels' shape, or scores with the classes along `axis`. Counting happens on
    the device; only `get` waits.

    Args:
        axis: axis of the classes.
        name, output_names, label_names: see `EvalMetric`.

    Example:
        >>> import dualmx as mx
        >>> metric = Accuracy()
        >>> metric.update([mx.nd.array([0, 1])], [mx.nd.array([[0.9, 0.1], [0.6, 0.4]])])
        >>> metric.get()
        ('accuracy', 0.5)
    """

    def __init__(self, axis: int = 1, name: str = "accuracy", output_names: Names = None, label_names: Names = None):
        super().__init__(name, output_names, label_names, axis=axis, has_global_stats=True)
        self.axis = axis

    def update(self, labels: Any, preds: Any) -> None:
        """Count the equal classes of labels (*,) and predictions (*,) or, with a class axis, scores."""
        for label, pred in listed(labels, preds):
            if pred.shape != label.shape:
                pred = pred.argmax(axis=self.axis)
            label, pred = label.astype("int32").reshape((-1,)), pred.astype("int32").reshape((-1,))
            check_label_shapes(label, pred)
            self._add((pred == label.as_in_context(pred.context)).sum(), label.shape[0])


@alias("top_k_accuracy", "top_k_acc")
class TopKAccuracy(EvalMetric):
    """Fraction of labels among the `top_k` highest scores.

    Args:
        top_k: how many scores count; more than 1.
        name, output_names, label_names: see `EvalMetric`; `_{top_k}` is appended to the name.

    Raises:
        ArgumentError: `top_k` of 1 or less, or scores of more than two axes.
    """

    def __init__(
        self,
        top_k: int = 1,
        name: str = "top_k_accuracy",
        output_names: Names = None,
        label_names: Names = None,
    ):
        integer("TopKAccuracy", "top_k", top_k)
        super().__init__(name, output_names, label_names, top_k=top_k, has_global_stats=True)
        if top_k <= 1:
            raise ArgumentError(f"TopKAccuracy: top_k={top_k}: expected more than 1; Accuracy is the metric for 1")
        self.top_k = top_k
        self.name += f"_{top_k}"

    def update(self, labels: Any, preds: Any) -> None:
        """Take in labels (N,) and scores (N, classes), or predicted classes (N,)."""
        for label, pred in listed(labels, preds):
            if len(pred.shape) > 2:
                raise ArgumentError(f"TopKAccuracy: predictions have shape {pred.shape}: expected at most 2 axes")
            check_label_shapes(label, pred)
            label = label.as_in_context(pred.context).astype("int32")
            if len(pred.shape) == 2:
                best = pred.astype("float32").topk(axis=1, k=min(self.top_k, pred.shape[1]), dtype="int32")
                hits = best == label.reshape((-1, 1)).broadcast_to(best.shape)
            else:
                hits = pred.astype("int32") == label.reshape((-1,))
            self._add(hits.sum(), hits.shape[0])


class _ConfusionCounts:
    """Counts of a binary classifier's outcomes."""

    def __init__(self) -> None:
        self.tp = self.fp = self.fn = self.tn = 0

    def update(self, label: Any, pred: Any) -> None:
        """Count labels (N,) against scores (N, 2)."""
        scores, truth = to_host(pred), to_host(label).astype("int32").reshape(-1)
        if scores.ndim != 2:
            raise ArgumentError(f"metric: predictions have shape {scores.shape}: expected scores (N, 2)")
        guess = scores.argmax(axis=1)
        check_label_shapes(truth, guess)
        if len(numpy.unique(truth)) > 2:
            raise ArgumentError("metric: there are more than 2 classes: this metric is for binary classification only")
        yes, right = guess == 1, guess == truth
        self.tp += int((yes & right).sum())
        self.fp += int((yes & ~right).sum())
        self.fn += int((~yes & ~right).sum())
        self.tn += int((~yes & right).sum())

    @property
    def count(self) -> int:
        return self.tp + self.fp + self.fn + self.tn

    @property
    def fscore(self) -> float:
        """Harmonic mean of precision and recall, 0 when both are 0 or undefined."""
        precision = self.tp / (self.tp + self.fp) if self.tp + self.fp else 0.0
        recall = self.tp / (self.tp + self.fn) if self.tp + self.fn else 0.0
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0

    @property
    def correlation(self) -> float:
        """Matthews' correlation coefficient; sums that are 0 leave the denominator out."""
        if not self.count:
            return 0.0
        margins = (self.tp + self.fp, self.tp + self.fn, self.tn + self.fp, self.tn + self.fn)
        root = float(numpy.prod([m for m in margins if m], dtype=numpy.float64)) ** 0.5
        return (self.tp * self.tn - self.fp * self.fn) / root


class _Binary(EvalMetric):
    """A score of a confusion matrix, averaged over updates (`macro`) or of all examples together (`micro`)."""

    def __init__(self, name: str, output_names: Names, label_names: Names, average: str):
        if average not in ("macro", "micro"):
            raise ArgumentError(f"{type(self).__name__}: average={average!r}: expected 'macro' or 'micro'")
        self.average = average
        self._local, self._all = _ConfusionCounts(), _ConfusionCounts()
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def _score(self, confusion: _ConfusionCounts) -> float:
        raise NotImplementedError

    def update(self, labels: Any, preds: Any) -> None:
        """Take in labels (N,) of 0 and 1 and scores (N, 2)."""
        for label, pred in listed(labels, preds):
            self._local.update(label, pred)
            self._all.update(label, pred)
        if self.average == "macro":
            self._add(self._score(self._local), 1)
            self._local, self._all = _ConfusionCounts(), _ConfusionCounts()
        else:
            self.sum_metric = self._score(self._local) * self._local.count
            self.num_inst = self._local.count
            self.global_sum_metric = self._score(self._all) * self._all.count
            self.global_num_inst = self._all.count

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self._local, self._all = _ConfusionCounts(), _ConfusionCounts()

    def reset_local(self) -> None:
        """Forget all but the global statistics."""
        super().reset_local()
        self._local = _ConfusionCounts()


@register
class F1(_Binary):
    """F1 of a binary classifier: the harmonic mean of precision and recall.

    Args:
        name, output_names, label_names: see `EvalMetric`.
        average: `"macro"` averages over updates, `"micro"` counts all examples together.

    Raises:
        ArgumentError: on update, more than two classes.
    """

    def __init__(self, name: str = "f1", output_names: Names = None, label_names: Names = None, average: str = "macro"):
        super().__init__(name, output_names, label_names, average)

    def _score(self, confusion: _ConfusionCounts) -> float:
        return confusion.fscore


@register
class MCC(_Binary):
    """Matthews' correlation coefficient of a binary classifier, in [-1, 1].

    Args:
        name, output_names, label_names: see `EvalMetric`.
        average: `"macro"` averages over updates, `"micro"` counts all examples together.
    """

    def __init__(
        self, name: str = "mcc", output_names: Names = None, label_names: Names = None, average: str = "macro"
    ):
        super().__init__(name, output_names, label_names, average)

    def _score(self, confusion: _ConfusionCounts) -> float:
        return confusion.correlation


@register
class PCC(EvalMetric):
    """Pearson's correlation of labels and predicted classes for any number of classes (Gorodkin, 2004).

    For two classes it equals the micro-averaged `MCC`.

    Args:
        name, output_names, label_names: see `EvalMetric`.
    """

    def __init__(
        self,
        name: str = "pcc",
        output_names: Names = None,
        label_names: Names = None,
        has_global_stats: bool = True,
    ):
        self._matrices: list[numpy.ndarray] = [numpy.zeros((2, 2)), numpy.zeros((2, 2))]
        super().__init__(name, output_names, label_names, has_global_stats=has_global_stats)

    def update(self, labels: Any, preds: Any) -> None:
        """Take in labels (N,) and scores (N, classes), or predicted classes (N,)."""
        for label, pred in listed(labels, preds):
            truth = to_host(label).astype("int64").reshape(-1)
            guess = to_host(pred)
            if guess.shape != label.shape and guess.ndim < 2:
                raise ArgumentError(f"PCC: labels of shape {label.shape} for predictions of shape {guess.shape}")
            guess = (guess.argmax(axis=1) if guess.shape != label.shape else guess).astype("int64").reshape(-1)
            check_label_shapes(truth, guess)
            size = int(max(truth.max(initial=0), guess.max(initial=0))) + 1
            for i, matrix in enumerate(self._matrices):
                width = max(size, len(matrix))
                grown = numpy.zeros((width, width))
                grown[: len(matrix), : len(matrix)] = matrix
                numpy.add.at(grown, (guess, truth), 1)
                self._matrices[i] = grown
        self._add(0.0, 1)
        self.sum_metric = _multiclass(self._matrices[0]) * self.num_inst
        self.global_sum_metric = _multiclass(self._matrices[1]) * self.global_num_inst

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self._matrices = [numpy.zeros((2, 2)), numpy.zeros((2, 2))]

    def reset_local(self) -> None:
        """Forget all but the global statistics."""
        super().reset_local()
        self._matrices[0] = numpy.zeros((2, 2))


def _multiclass(matrix: numpy.ndarray) -> float:
    """Correlation of the two sides of a confusion matrix; nan when one of them is constant."""
    n = matrix.sum()
    x, y = matrix.sum(axis=1), matrix.sum(axis=0)
    xx, yy = (x * (n - x)).sum(), (y * (n - y)).sum()
    if xx == 0 or yy == 0:
        return float("nan")
    return float((matrix.diagonal() * n).sum() - (x * y).sum()) / float((xx * yy) ** 0.5)


__all__ = ["Accuracy", "F1", "MCC", "PCC", "TopKAccuracy"]
