"""Keras' losses: objects that return a mean, functions that return one value per row."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import gluon
from ..core.errors import ArgumentError, ArgumentTypeError, suggest
from ..namespace import nd
from ..ndarray import NDArray
from .distribute.strategy import get_strategy

_EPSILON = 1e-7


_REDUCTIONS = ("sum_over_batch_size", "mean", "auto", "sum", "none")


class Reduction:
    """Names of reductions."""

    AUTO, SUM, SUM_OVER_BATCH_SIZE, NONE = "auto", "sum", "sum_over_batch_size", "none"


class Loss:
    """Base of losses: `loss(y_true, y_pred)` is the mean over rows, or what `reduction` says. Subclasses define `call`.

    Args:
        reduction: `"sum_over_batch_size"` (also `"mean"`, `"auto"`) for the mean over rows, `"sum"`, or `"none"` for
            one value per row; `fit` always takes the mean.
        name: of the loss.

    Raises:
        ArgumentError: another reduction.

    Example:
        >>> import dualmx as mx
        >>> y, p = mx.nd.array([[1], [2]]), mx.nd.array([[0], [4]])
        >>> MeanSquaredError()(y, p).asscalar().item(), MeanSquaredError(reduction="none")(y, p).asnumpy().tolist()
        (2.5, [1.0, 4.0])
    """

    reduction = Reduction.SUM_OVER_BATCH_SIZE

    def __init__(self, reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE, name: str | None = None):
        self.reduction = "none" if reduction is None else reduction
        if self.reduction not in _REDUCTIONS:
            known = ", ".join(map(repr, _REDUCTIONS))
            raise ArgumentError(f"{type(self).__name__}: reduction={reduction!r}: expected one of {known}")
        self.name = name

    def __call__(self, y_true: Any, y_pred: NDArray, sample_weight: Any = None) -> NDArray:
        """Return the loss of a batch.

        Args:
            y_true, y_pred: labels, which may be NumPy's, and predictions.
            sample_weight: factors of the rows.
        """
        values = self.rows(_array_like(y_true, y_pred), y_pred)
        if sample_weight is not None:
            values = values * _array_like(sample_weight, y_pred).astype(values.dtype).reshape((-1,))
        if self.reduction == "none":
            return values
        return nd.sum(values) if self.reduction == "sum" else nd.mean(values)

    def rows(self, y_true: NDArray, y_pred: NDArray) -> NDArray:
        """Return one value per row; a loss that is one number is that of each row."""
        values, what = self.call(y_true, y_pred), type(self).__name__
        if isinstance(values, NDArray) and values.size == 1 and y_pred.shape[0] != 1:
            return nd.broadcast_to(values.reshape((1,)), y_pred.shape[:1])
        return rows_of(values, what)

    def call(self, y_true: NDArray, y_pred: NDArray) -> NDArray:
        """Return the loss of each row (first axis), averaged over other axes."""
        raise NotImplementedError(f"{type(self).__name__} must define call")


class SparseCategoricalCrossentropy(Loss):
    """-log of the probability of the true class, which labels give by its number.

    Args:
        from_logits: predictions are logits; otherwise probabilities.
        **kwargs: see `Loss`.

    Shapes: y_true (N, ...) or (N, ..., 1), y_pred (N, ..., classes).

    Example:
        >>> import dualmx as mx
        >>> loss = SparseCategoricalCrossentropy()
        >>> round(float(loss(mx.nd.array([1]), mx.nd.array([[0.75, 0.25]])).asscalar()), 4)
        1.3863
    """

    def __init__(self, from_logits: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.from_logits = from_logits

    def call(self, y_true: NDArray, y_pred: NDArray) -> NDArray:
        """Return the losses."""
        return -nd.pick(_logs(y_pred, self.from_logits), numbers(y_true, y_pred), axis=-1)


class CategoricalCrossentropy(Loss):
    """-Σ y_true · log y_pred over classes.

    Args:
        from_logits: predictions are logits; otherwise probabilities.
        label_smoothing: share of the labels that is spread over all classes.
        **kwargs: see `Loss`.
    """

    def __init__(self, from_logits: bool = False, label_smoothing: float = 0.0, **kwargs: Any):
        super().__init__(**kwargs)
        self.from_logits, self.label_smoothing = from_logits, label_smoothing

    def call(self, y_true: NDArray, y_pred: NDArray) -> NDArray:
        """Return the losses."""
        labels = same(y_true, y_pred)
        if self.label_smoothing:
            labels = labels * (1 - self.label_smoothing) + self.label_smoothing / y_pred.shape[-1]
        return -nd.sum(labels * _logs(y_pred, self.from_logits), axis=-1)


class BinaryCrossentropy(Loss):
    """-y·log p - (1 - y)·log(1 - p), the mean over the last axis.

    Args:
        from_logits: predictions are logits; otherwise probabilities.
        **kwargs: see `Loss`.
    """

    def __init__(self, from_logits: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.from_logits = from_logits

    def call(self, y_true: NDArray, y_pred: NDArray) -> NDArray:
        """Return the losses."""
        y = same(y_true, y_pred)
        if self.from_logits:
            return nd.relu(y_pred) - y_pred * y + nd.Activation(-nd.abs(y_pred), act_type="softrelu")
        p = nd.clip(y_pred, _EPSILON, 1 - _EPSILON)
        return -(y * nd.log(p) + (1 - y) * nd.log(1 - p))


class MeanSquaredError(Loss):
    """(y_true - y_pred)²."""

    def call(self, y_true: NDArray, y_pred: NDArray) -> NDArray:
        """Return the losses."""
        return nd.square(same(y_true, y_pred) - y_pred)


class MeanAbsoluteError(Loss):
    """|y_true - y_pred|."""

    def call(self, y_true: NDArray, y_pred: NDArray) -> NDArray:
        """Return the losses."""
        return nd.abs(same(y_true, y_pred) - y_pred)


class Huber(Loss):
    """½·d² for |d| ≤ delta, delta·(|d| - ½·delta) beyond, with d = y_true - y_pred.

    Args:
        delta: where the square ends.
        **kwargs: see `Loss`.
    """

    def __init__(self, delta: float = 1.0, **kwargs: Any):
        super().__init__(**kwargs)
        self.delta = delta

    def call(self, y_true: NDArray, y_pred: NDArray) -> NDArray:
        """Return the losses."""
        d = nd.abs(same(y_true, y_pred) - y_pred)
        near = nd.minimum(d, self.delta)
        return near * (d - 0.5 * near)


class Hinge(Loss):
    """max(1 - y·p, 0) of labels -1 and 1; labels 0 count as -1."""

    def call(self, y_true: NDArray, y_pred: NDArray) -> NDArray:
        """Return the losses."""
        return nd.relu(1 - _signs(y_true, y_pred) * y_pred)


class SquaredHinge(Loss):
    """max(1 - y·p, 0)² of labels -1 and 1; labels 0 count as -1."""

    def call(self, y_true: NDArray, y_pred: NDArray) -> NDArray:
        """Return the losses."""
        return nd.square(nd.relu(1 - _signs(y_true, y_pred) * y_pred))


class KLDivergence(Loss):
    """Σ y·log(y / p) over the last axis."""

    def call(self, y_true: NDArray, y_pred: NDArray) -> NDArray:
        """Return the losses."""
        y, p = nd.clip(same(y_true, y_pred), _EPSILON, 1), nd.clip(y_pred, _EPSILON, 1)
        return nd.sum(y * nd.log(y / p), axis=-1)


class Poisson(Loss):
    """p - y·log p."""

    def call(self, y_true: NDArray, y_pred: NDArray) -> NDArray:
        """Return the losses."""
        return y_pred - same(y_true, y_pred) * nd.log(y_pred + _EPSILON)


class LogCosh(Loss):
    """log cosh (p - y)."""

    def call(self, y_true: NDArray, y_pred: NDArray) -> NDArray:
        """Return the losses."""
        d = y_pred - same(y_true, y_pred)
        return d + nd.Activation(-2 * d, act_type="softrelu") - math.log(2)


class CosineSimilarity(Loss):
    """Minus the cosine of the angle between labels and predictions along the last axis."""

    def call(self, y_true: NDArray, y_pred: NDArray) -> NDArray:
        """Return the losses."""
        y = same(y_true, y_pred)
        norms = [nd.sqrt(nd.sum(nd.square(a), axis=-1)) for a in (y, y_pred)]
        return -nd.sum(y * y_pred, axis=-1) / nd.maximum(norms[0] * norms[1], _EPSILON)


class MeanAbsolutePercentageError(Loss):
    """100·|(y - p) / y|."""

    def call(self, y_true: NDArray, y_pred: NDArray) -> NDArray:
        """Return the losses."""
        y = same(y_true, y_pred)
        return 100 * nd.abs((y - y_pred) / nd.maximum(nd.abs(y), _EPSILON))


class MeanSquaredLogarithmicError(Loss):
    """(log(1 + y) - log(1 + p))²; negative values count as 0."""

    def call(self, y_true: NDArray, y_pred: NDArray) -> NDArray:
        """Return the losses."""
        return nd.square(nd.log1p(nd.relu(same(y_true, y_pred))) - nd.log1p(nd.relu(y_pred)))


def _signs(y_true: NDArray, y_pred: NDArray) -> NDArray:
    y = same(y_true, y_pred)
    return nd.where(y > 0, nd.ones_like(y), -nd.ones_like(y))


class _GluonLoss(Loss):
    """A loss of gluon, which takes the predictions first."""

    def __init__(self, loss: gluon.loss.Loss):
        super().__init__()
        self._loss = loss

    def call(self, y_true: NDArray, y_pred: NDArray) -> NDArray:
        return self._loss(y_pred, y_true)


class _FunctionLoss(Loss):
    def __init__(self, function: Callable[[Any, Any], Any]):
        super().__init__()
        self._function = function

    def call(self, y_true: NDArray, y_pred: NDArray) -> NDArray:
        return self._function(y_true, y_pred)


def sparse_categorical_crossentropy(y_true: NDArray, y_pred: NDArray, from_logits: bool = False) -> NDArray:
    """See `SparseCategoricalCrossentropy`; one value per row."""
    return SparseCategoricalCrossentropy(from_logits).rows(y_true, y_pred)


def categorical_crossentropy(y_true: NDArray, y_pred: NDArray, from_logits: bool = False) -> NDArray:
    """See `CategoricalCrossentropy`; one value per row."""
    return CategoricalCrossentropy(from_logits).rows(y_true, y_pred)


def binary_crossentropy(y_true: NDArray, y_pred: NDArray, from_logits: bool = False) -> NDArray:
    """See `BinaryCrossentropy`; one value per row."""
    return BinaryCrossentropy(from_logits).rows(y_true, y_pred)


NAMES: dict[str, Callable[[], Loss]] = {
    "sparse_categorical_crossentropy": SparseCategoricalCrossentropy,
    "categorical_crossentropy": CategoricalCrossentropy,
    "binary_crossentropy": BinaryCrossentropy,
    "mean_squared_error": MeanSquaredError,
    "mse": MeanSquaredError,
    "mean_absolute_error": MeanAbsoluteError,
    "mae": MeanAbsoluteError,
    "huber": Huber,
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "kl_divergence": KLDivergence,
    "poisson": Poisson,
    "log_cosh": LogCosh,
    "cosine_similarity": CosineSimilarity,
    "mean_absolute_percentage_error": MeanAbsolutePercentageError,
    "mape": MeanAbsolutePercentageError,
    "mean_squared_logarithmic_error": MeanSquaredLogarithmicError,
    "msle": MeanSquaredLogarithmicError,
}


def mean_squared_error(y_true: NDArray, y_pred: NDArray) -> NDArray:
    """See `MeanSquaredError`; one value per row."""
    return MeanSquaredError().rows(y_true, y_pred)


def mean_absolute_error(y_true: NDArray, y_pred: NDArray) -> NDArray:
    """See `MeanAbsoluteError`; one value per row."""
    return MeanAbsoluteError().rows(y_true, y_pred)


mse, mae = mean_squared_error, mean_absolute_error


def get(wanted: Any) -> Loss:
    """Return a loss from Keras' name, a gluon loss, or a function of labels and predictions.

    Raises:
        ArgumentError: an unknown name. ArgumentTypeError: something else.
    """
    if isinstance(wanted, Loss):
        return wanted
    if isinstance(wanted, str):
        if wanted not in NAMES:
            raise ArgumentError(f"compile: loss={wanted!r}: unknown; {suggest(wanted, list(NAMES))}")
        return NAMES[wanted]()
    if isinstance(wanted, gluon.loss.Loss):
        return _GluonLoss(wanted)
    if not callable(wanted) or isinstance(wanted, type):
        raise ArgumentTypeError(f"compile: loss={wanted!r}: expected a name, a loss object or a function")
    return _FunctionLoss(wanted)


def compute_average_loss(
    per_example_loss: NDArray, sample_weight: Any = None, global_batch_size: int | None = None
) -> NDArray:
    """Return a replica's part of the mean loss of a batch: the sum of its rows over the rows of all replicas.

    Args:
        per_example_loss: one value per row, of the rows of this replica.
        sample_weight: factors of the rows.
        global_batch_size: rows of all replicas together; by default as many for each replica as here.

    Raises:
        ArgumentError: `global_batch_size` is no positive number.

    Example:
        >>> import dualmx as mx
        >>> compute_average_loss(mx.nd.array([1, 3]), global_batch_size=8).asscalar().item()
        0.5
    """
    values = per_example_loss
    if sample_weight is not None:
        values = values * _array_like(sample_weight, values).astype(values.dtype)
    if global_batch_size is None:
        global_batch_size = values.shape[0] * get_strategy().num_replicas_in_sync
    if not global_batch_size > 0:
        raise ArgumentError(
            f"compute_average_loss: global_batch_size={global_batch_size!r}: expected a positive number"
        )
    return nd.sum(values) / float(global_batch_size)


def _array_like(values: Any, other: NDArray) -> NDArray:
    """Labels or weights as an array on the context of another one."""
    return values if isinstance(values, NDArray) else nd.array(values, ctx=other.context, dtype=other.dtype)


def rows_of(values: Any, what: str) -> NDArray:
    """Return one value per row: the means over all other axes.

    Raises:
        ArgumentError: not an array with an axis of rows.
    """
    if not isinstance(values, NDArray) or values.ndim == 0:
        raise ArgumentError(f"{what}: expected an array with one value per row, or more axes after that")
    return values if values.ndim == 1 else nd.mean(values, axis=0, exclude=True)


def same(y_true: NDArray, y_pred: NDArray) -> NDArray:
    """Return labels with the dtype and the shape of predictions; an axis of length 1 at the end may lack.

    Raises:
        ArgumentError: other shapes.
    """
    y = y_true if y_true.dtype == y_pred.dtype else y_true.astype(y_pred.dtype)
    if y.shape == y_pred.shape:
        return y
    if (*y.shape, 1) == y_pred.shape or y.shape == (*y_pred.shape, 1):
        return y.reshape(y_pred.shape)
    raise ArgumentError(f"labels of shape {y.shape} for predictions of shape {y_pred.shape}: expected equal shapes")


def numbers(y_true: NDArray, y_pred: NDArray) -> NDArray:
    """Return numbers of classes without an axis of length 1 at the end.

    Raises:
        ArgumentError: the shapes do not belong together.
    """
    if y_true.shape == y_pred.shape[:-1]:
        return y_true
    if y_true.shape == (*y_pred.shape[:-1], 1):
        return y_true.reshape(y_pred.shape[:-1])
    raise ArgumentError(
        f"labels of shape {y_true.shape} for predictions of shape {y_pred.shape}: expected the numbers of classes, of "
        f"shape {y_pred.shape[:-1]}"
    )


def _logs(y_pred: NDArray, from_logits: bool) -> NDArray:
    if from_logits:
        return nd.log_softmax(y_pred, axis=-1)
    shares = nd.broadcast_div(y_pred, nd.sum(y_pred, axis=-1, keepdims=True))
    return nd.log(nd.clip(shares, _EPSILON, 1 - _EPSILON))
