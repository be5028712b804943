"""Keras' metrics, summed on the devices so that no batch waits for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import metric
from ..core.errors import ArgumentError, ArgumentTypeError, suggest
from ..namespace import nd
from ..ndarray import NDArray
from . import losses
from .losses import Loss, numbers, rows_of, same

# Their value is not a function of a sum over rows.
_NOT_SUMS = (metric.F1, metric.MCC, metric.PCC, metric.PearsonCorrelation, metric.CompositeEvalMetric)


class Metric:
    """Base of metrics. Subclasses define `update_state`, `result` and `reset_state`, or what is added up over workers.

    Args:
        name: key in logs.
        dtype: accepted.
    """

    def __init__(self, name: str | None = None, dtype: Any = None):
        self.name = name or _snake(type(self).__name__)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Count a batch."""
        if sample_weight is not None:
            raise ArgumentError(f"metric {self.name}: sample_weight: expected None; weights count in losses only")
        self.update(_array(y_true), _array(y_pred))

    def result(self) -> Any:
        """Return the value so far."""
        return self.value(self.state())

    def reset_state(self) -> None:
        """Reset."""
        self.reset()

    def reset_states(self) -> None:
        """Reset."""
        self.reset_state()

    def reset(self) -> None:
        """`reset_state`, for `fit`."""
        self.reset_state()

    def update(self, y_true: NDArray, y_pred: NDArray) -> None:
        """`update_state`, for `fit`."""
        self.update_state(y_true, y_pred)

    def state(self) -> list[float]:
        """Numbers that are added up over workers; waits for the arrays."""
        found = self.result()
        return [float(found.asscalar() if isinstance(found, NDArray) else found), 1.0]

    def value(self, state: list[float]) -> float:
        """Return what states that were added up mean."""
        return state[0] / state[1] if state[1] else float("nan")


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _array(a: Any) -> NDArray:
    return a if isinstance(a, NDArray) else nd.array(a)


class MeanMetricWrapper(Metric):
    """Mean of the values of a function over the rows of batches.

    Args:
        fn: of labels and predictions, one value per row (or more axes after that).
        name: key in logs.
    """

    def __init__(self, fn: Callable[[NDArray, NDArray], NDArray], name: str | None = None, dtype: Any = None):
        super().__init__(name or getattr(fn, "__name__", None))
        self._function = fn.rows if isinstance(fn, Loss) else fn
        self.reset()

    def reset(self) -> None:
        """Reset."""
        self._sums: dict[Any, NDArray] = {}
        self._rows = 0

    reset_state = reset

    def update(self, y_true: NDArray, y_pred: NDArray) -> None:
        """Count a batch."""
        self.add(rows_of(self._function(y_true, y_pred), f"metric {self.name}"))

    def add(self, values: NDArray) -> None:
        """Count values of rows."""
        total = nd.sum(values)
        before = self._sums.get(values.context)
        self._sums[values.context] = total if before is None else before + total
        self._rows += values.shape[0]

    def state(self) -> list[float]:
        """Sum and number of rows; waits for the arrays."""
        return [sum(float(s.asscalar()) for s in self._sums.values()), float(self._rows)]


class Mean(MeanMetricWrapper):
    """Mean of values.

    Example:
        >>> mean = Mean()
        >>> mean.update_state([1.0, 3.0])
        >>> mean.result()
        2.0
    """

    def __init__(self, name: str = "mean", dtype: Any = None):
        super().__init__(lambda y_true, y_pred: y_pred, name)

    def update_state(self, values: Any, sample_weight: Any = None, *_: Any) -> None:  # type: ignore[override]
        """Count values."""
        self.add(_array(values).reshape((-1,)))


class _MXNetMetric(Metric):
    """A metric of `mx.metric`."""

    def __init__(self, wanted: metric.EvalMetric):
        self._metric = wanted
        self.name = wanted.name

    def reset(self) -> None:
        self._metric.reset()

    def update(self, y_true: NDArray, y_pred: NDArray) -> None:
        self._metric.update([y_true], [y_pred])

    def state(self) -> list[float]:
        return [float(self._metric.sum_metric), float(self._metric.num_inst)]

    def value(self, state: list[float]) -> float:
        if isinstance(self._metric, _NOT_SUMS):
            found = self._metric.get()[1]
            return float(found[0] if isinstance(found, list) else found)
        return float(self._metric.value_of(*state)) if state[1] else float("nan")


def sparse_categorical_accuracy(y_true: NDArray, y_pred: NDArray) -> NDArray:
    """1 where the largest prediction is the true class, which labels give by its number."""
    found = nd.argmax(y_pred, axis=-1)
    return found == numbers(y_true, y_pred).astype(found.dtype)


def categorical_accuracy(y_true: NDArray, y_pred: NDArray) -> NDArray:
    """1 where the largest prediction and the largest label are of one class."""
    return nd.argmax(y_pred, axis=-1) == nd.argmax(same(y_true, y_pred), axis=-1)


def binary_accuracy(y_true: NDArray, y_pred: NDArray) -> NDArray:
    """1 where predictions are on the label's side of ½."""
    return (y_pred > 0.5).astype(y_pred.dtype) == same(y_true, y_pred)


def accuracy_of(loss: Loss) -> Callable[[NDArray, NDArray], NDArray]:
    """Return the accuracy that "accuracy" means with a loss; chosen by shapes if the loss does not decide."""
    if isinstance(loss, losses.SparseCategoricalCrossentropy):
        return sparse_categorical_accuracy
    if isinstance(loss, losses.CategoricalCrossentropy):
        return categorical_accuracy
    if isinstance(loss, losses.BinaryCrossentropy):
        return binary_accuracy

    def by_shape(y_true: NDArray, y_pred: NDArray) -> NDArray:
        if y_pred.ndim > 1 and y_pred.shape[-1] > 1:
            kind = categorical_accuracy if y_true.shape == y_pred.shape else sparse_categorical_accuracy
            return kind(y_true, y_pred)
        return binary_accuracy(y_true, y_pred)

    return by_shape


class Accuracy(MeanMetricWrapper):
    """Share of predictions that equal the labels.

    Example:
        >>> accuracy = Accuracy()
        >>> accuracy.update_state([1, 2, 3, 4], [0, 2, 3, 4])
        >>> accuracy.result()
        0.75
    """

    def __init__(self, name: str = "accuracy", dtype: Any = None):
        super().__init__(lambda y_true, y_pred: y_pred == same(y_true, y_pred), name)


class SparseCategoricalAccuracy(MeanMetricWrapper):
    """See `sparse_categorical_accuracy`."""

    def __init__(self, name: str = "sparse_categorical_accuracy", dtype: Any = None):
        super().__init__(sparse_categorical_accuracy, name)


class CategoricalAccuracy(MeanMetricWrapper):
    """See `categorical_accuracy`."""

    def __init__(self, name: str = "categorical_accuracy", dtype: Any = None):
        super().__init__(categorical_accuracy, name)


class BinaryAccuracy(MeanMetricWrapper):
    """Fraction of predictions on the label's side of a threshold."""

    def __init__(self, name: str = "binary_accuracy", dtype: Any = None, threshold: float = 0.5):
        super().__init__(lambda y, p: (p > threshold).astype(p.dtype) == same(y, p), name)


class SparseTopKCategoricalAccuracy(MeanMetricWrapper):
    """Fraction of rows whose class number is among the `k` largest predictions."""

    def __init__(self, k: int = 5, name: str = "sparse_top_k_categorical_accuracy", dtype: Any = None):
        super().__init__(lambda y, p: _among(numbers(y, p), p, k), name)


class TopKCategoricalAccuracy(MeanMetricWrapper):
    """Share of rows whose largest label is among the `k` largest predictions."""

    def __init__(self, k: int = 5, name: str = "top_k_categorical_accuracy", dtype: Any = None):
        super().__init__(lambda y, p: _among(nd.argmax(same(y, p), axis=-1), p, k), name)


def _among(classes: NDArray, y_pred: NDArray, k: int) -> NDArray:
    largest = nd.topk(y_pred, k=min(k, y_pred.shape[-1]), axis=-1, dtype="float32")
    return nd.sum(largest == nd.expand_dims(classes.astype("float32"), axis=-1), axis=-1)


class MeanSquaredError(MeanMetricWrapper):
    """Mean of squared differences."""

    def __init__(self, name: str = "mean_squared_error", dtype: Any = None):
        super().__init__(losses.MeanSquaredError(), name)


class RootMeanSquaredError(MeanSquaredError):
    """Root of the mean of squared differences."""

    def __init__(self, name: str = "root_mean_squared_error", dtype: Any = None):
        super().__init__(name)

    def value(self, state: list[float]) -> float:
        """Return what states that were added up mean."""
        return super().value(state) ** 0.5


class MeanAbsoluteError(MeanMetricWrapper):
    """Mean of absolute differences."""

    def __init__(self, name: str = "mean_absolute_error", dtype: Any = None):
        super().__init__(losses.MeanAbsoluteError(), name)


class SparseCategoricalCrossentropy(MeanMetricWrapper):
    """Mean of the loss of that name."""

    def __init__(self, name: str = "sparse_categorical_crossentropy", dtype: Any = None, from_logits: bool = False):
        super().__init__(losses.SparseCategoricalCrossentropy(from_logits), name)


class CategoricalCrossentropy(MeanMetricWrapper):
    """Mean of the loss of that name."""

    def __init__(self, name: str = "categorical_crossentropy", dtype: Any = None, from_logits: bool = False):
        super().__init__(losses.CategoricalCrossentropy(from_logits), name)


class BinaryCrossentropy(MeanMetricWrapper):
    """Mean of the loss of that name."""

    def __init__(self, name: str = "binary_crossentropy", dtype: Any = None, from_logits: bool = False):
        super().__init__(losses.BinaryCrossentropy(from_logits), name)


class _ThresholdCounts(Metric):
    """Counts, of predictions above a threshold and labels above ½."""

    def __init__(self, thresholds: float = 0.5, name: str | None = None, dtype: Any = None):
        super().__init__(name)
        self._threshold = thresholds
        self.reset()

    def reset(self) -> None:
        """Reset."""
        self._counts = np.zeros(2)

    reset_state = reset

    def _of(self, y: np.ndarray, p: np.ndarray) -> np.ndarray:
        """What a precision or recall divides by."""
        raise NotImplementedError

    def update(self, y_true: NDArray, y_pred: NDArray) -> None:
        """Count a batch."""
        y, p = same(y_true, y_pred).asnumpy() > 0.5, y_pred.asnumpy() > self._threshold
        self._counts += [np.sum(y & p), np.sum(self._of(y, p))]

    def state(self) -> list[float]:
        """Right ones, and of how many."""
        return self._counts.tolist()

    def value(self, state: list[float]) -> float:
        """Return what states that were added up mean."""
        return state[0] / state[1] if state[1] else 0.0


class Precision(_ThresholdCounts):
    """Share of predictions above the threshold whose label is 1.

    Example:
        >>> precision = Precision()
        >>> precision.update_state([0, 1, 1, 1], [1, 0, 1, 1])
        >>> round(precision.result(), 4)
        0.6667
    """

    def _of(self, y: np.ndarray, p: np.ndarray) -> np.ndarray:
        return p


class Recall(_ThresholdCounts):
    """Share of labels 1 whose prediction is above the threshold."""

    def _of(self, y: np.ndarray, p: np.ndarray) -> np.ndarray:
        return y


class AUC(Metric):
    """Area under the ROC curve, by trapezoids at equally spaced thresholds.

    Args:
        num_thresholds: how many.
        name: key in logs.

    Example:
        >>> auc = AUC(num_thresholds=3)
        >>> auc.update_state([0, 0, 1, 1], [0, 0.5, 0.3, 0.9])
        >>> auc.result()
        0.75
    """

    def __init__(self, num_thresholds: int = 200, name: str = "auc", dtype: Any = None):
        super().__init__(name)
        inner = [(i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)]
        self._thresholds = np.array([-1e-7, *inner, 1 + 1e-7])
        self.reset()

    def reset(self) -> None:
        """Reset."""
        self._counts = np.zeros((2, len(self._thresholds)))
        self._totals = np.zeros(2)

    reset_state = reset

    def update(self, y_true: NDArray, y_pred: NDArray) -> None:
        """Count a batch."""
        y, p = same(y_true, y_pred).asnumpy().ravel() > 0.5, y_pred.asnumpy().ravel()
        above = p[:, None] > self._thresholds
        self._counts += [above[y].sum(0), above[~y].sum(0)]
        self._totals += [y.sum(), (~y).sum()]

    def state(self) -> list[float]:
        """Positives above each threshold, negatives above each, how many there are of both."""
        return [*self._counts.ravel().tolist(), *self._totals.tolist()]

    def value(self, state: list[float]) -> float:
        """Return what states that were added up mean."""
        positives, negatives = (v or 1.0 for v in state[-2:])
        true, false = np.array(state[:-2]).reshape(2, -1)
        x, y = false / negatives, true / positives
        return float(np.sum((x[:-1] - x[1:]) * (y[:-1] + y[1:]) / 2))


def get(wanted: Any, loss: Loss, workers: int = 1) -> Any:
    """Return a metric from a name, an `mx.metric`, or a function of labels and predictions.

    Args:
        wanted: one of these.
        loss: the loss it stands beside.
        workers: among how many workers it is added up.

    Raises:
        ArgumentError: an unknown name, or a metric that cannot be added up. ArgumentTypeError: something else.
    """
    known: dict[str, Callable[[Any, Any], Any]] = {
        "accuracy": accuracy_of(loss), "acc": accuracy_of(loss),
        "sparse_categorical_accuracy": sparse_categorical_accuracy, "categorical_accuracy": categorical_accuracy,
        "binary_accuracy": binary_accuracy, **{name: make() for name, make in losses.NAMES.items()},
    }  # fmt: skip
    if isinstance(wanted, str):
        if wanted not in known:
            raise ArgumentError(f"compile: metric {wanted!r}: unknown; {suggest(wanted, list(known))}")
        return MeanMetricWrapper(known[wanted], wanted)
    if isinstance(wanted, Metric):
        return wanted
    if isinstance(wanted, metric.EvalMetric):
        if workers > 1 and isinstance(wanted, _NOT_SUMS):
            raise ArgumentError(
                f"compile: metric {type(wanted).__name__} cannot be added up over {workers} workers; use a mean over "
                "rows such as accuracy, or compute it from predict()"
            )
        return _MXNetMetric(wanted)
    if not callable(wanted) or isinstance(wanted, type):
        raise ArgumentTypeError(f"compile: metric {wanted!r}: expected a name, a Metric, an EvalMetric or a function")
    function: Any = wanted
    return MeanMetricWrapper(function, getattr(wanted, "__name__", type(wanted).__name__.lower()))
