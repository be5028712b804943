"""Metrics: means over rows, added up on the devices, so that no batch waits for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import metric
from ..core.errors import ArgumentError, ArgumentTypeError, suggest
from ..namespace import nd
from ..ndarray import NDArray
from . import losses
from .losses import Loss, numbers, rows_of, same

# Their value is not a function of a sum over rows.
_NOT_SUMS = (metric.F1, metric.MCC, metric.PCC, metric.PearsonCorrelation, metric.CompositeEvalMetric)


class Mean:
    """Mean of the values of a function over the rows of batches.

    Args:
        function: of labels and predictions, one value per row (or more axes after that).
        name: key in logs.
    """

    def __init__(self, function: Callable[[NDArray, NDArray], NDArray], name: str):
        self.name = name
        self._function = function
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self._sums: dict[Any, NDArray] = {}
        self._rows = 0

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

    def value(self, state: list[float]) -> float:
        """Return what states that were added up mean."""
        return state[0] / state[1] if state[1] else float("nan")


class _OfMetric:
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
        return float(self._metric._value(*state)) if state[1] else float("nan")


def sparse_categorical_accuracy(y_true: NDArray, y_pred: NDArray) -> NDArray:
    """1 where the largest prediction is that of the right class, given by its number."""
    found = nd.argmax(y_pred, axis=-1)
    return found == numbers(y_true, y_pred).astype(found.dtype)


def categorical_accuracy(y_true: NDArray, y_pred: NDArray) -> NDArray:
    """1 where the largest prediction and the largest label are of one class."""
    return nd.argmax(y_pred, axis=-1) == nd.argmax(same(y_true, y_pred), axis=-1)


def binary_accuracy(y_true: NDArray, y_pred: NDArray) -> NDArray:
    """1 where predictions lie on the label's side of ½."""
    return (y_pred > 0.5).astype(y_pred.dtype) == same(y_true, y_pred)


def accuracy_of(loss: Loss) -> Callable[[NDArray, NDArray], NDArray]:
    """Return what "accuracy" means beside a loss; by the shapes if the loss does not tell."""
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


def get(wanted: Any, loss: Loss, workers: int = 1) -> Any:
    """Return a metric, given by name, as a metric of `mx.metric`, or as a function of labels and predictions.

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
        return Mean(known[wanted], wanted)
    if isinstance(wanted, metric.EvalMetric):
        if workers > 1 and isinstance(wanted, _NOT_SUMS):
            raise ArgumentError(
                f"compile: metric {type(wanted).__name__} cannot be added up over {workers} workers; use a mean over "
                "rows such as accuracy, or compute it from predict()"
            )
        return _OfMetric(wanted)
    if not callable(wanted) or isinstance(wanted, type):
        raise ArgumentTypeError(f"compile: metric {wanted!r}: expected a name, an EvalMetric or a function")
    function: Any = wanted
    return Mean(function, getattr(wanted, "__name__", type(wanted).__name__.lower()))
