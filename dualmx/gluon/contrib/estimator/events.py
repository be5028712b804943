"""What happens during training: the moments at which an Estimator calls its event handlers."""

from __future__ import annotations

from typing import Any


class EventHandler:
    """Base of everything that an Estimator calls."""


class TrainBegin(EventHandler):
    """Called once before training."""

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> Any:
        """React to the beginning of training."""


class TrainEnd(EventHandler):
    """Called once after training."""

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> Any:
        """React to the end of training."""


class EpochBegin(EventHandler):
    """Called before every pass over the data."""

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> Any:
        """React to the beginning of an epoch."""


class EpochEnd(EventHandler):
    """Called after every pass over the data; returning true ends training."""

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> Any:
        """React to the end of an epoch."""
        return False


class BatchBegin(EventHandler):
    """Called before every batch, with `batch=`."""

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> Any:
        """React to the beginning of a batch."""


class BatchEnd(EventHandler):
    """Called after every batch, with `batch=`, `pred=`, `label=` and `loss=`; returning true ends training."""

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> Any:
        """React to the end of a batch."""
        return False


class StoppingHandler(TrainBegin, BatchEnd, EpochEnd):
    """Ends training after a number of epochs or batches.

    Args:
        max_epoch: how many epochs, or `None`.
        max_batch: how many batches, or `None`.
    """

    def __init__(self, max_epoch: int | None = None, max_batch: int | None = None):
        self.max_epoch, self.max_batch = max_epoch, max_batch
        self.current_batch = self.current_epoch = 0
        self.stop_training = False

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Count from zero, up to what `fit` was told."""
        self.max_epoch, self.max_batch = estimator.max_epoch, estimator.max_batch
        self.current_batch = self.current_epoch = 0
        self.stop_training = False

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Count a batch."""
        self.current_batch += 1
        self.stop_training |= self.current_batch == self.max_batch
        return self.stop_training

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Count an epoch."""
        self.current_epoch += 1
        self.stop_training |= self.current_epoch == self.max_epoch
        return self.stop_training


class MetricHandler(EpochBegin, BatchEnd):
    """Resets metrics when an epoch begins and updates them after every batch.

    Args:
        metrics: the metrics; those of a loss get the loss.
        priority: order among the handlers of a moment; smaller ones run first.
    """

    def __init__(self, metrics: Any, priority: float = -1000):
        self.metrics, self.priority = listed(metrics), priority

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Reset the metrics."""
        for metric in self.metrics:
            metric.reset()

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Update the metrics."""
        from ....metric import Loss

        for metric in self.metrics:
            if isinstance(metric, Loss):
                metric.update(0, kwargs["loss"])
            else:
                metric.update(kwargs["label"], kwargs["pred"])
        return False


class ValidationHandler(TrainBegin, BatchEnd, EpochEnd):
    """Evaluates on validation data now and then.

    Args:
        val_data: the data.
        eval_fn: called with `val_data=` and `event_handlers=`, such as `Estimator.evaluate`.
        epoch_period: after how many epochs, or `None`.
        batch_period: after how many batches, or `None`.
        priority: order among the handlers of a moment.
        event_handlers: handlers of the evaluation.
    """

    def __init__(
        self, val_data: Any, eval_fn: Any, epoch_period: int | None = 1, batch_period: int | None = None,
        priority: float = -1000, event_handlers: Any = None,
    ):  # fmt: skip
        self.val_data, self.eval_fn, self.event_handlers = val_data, eval_fn, event_handlers
        self.epoch_period, self.batch_period, self.priority = epoch_period, batch_period, priority
        self.current_batch = self.current_epoch = 0

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Count from zero."""
        self.current_batch = self.current_epoch = 0

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Count a batch; evaluate if it is time."""
        self.current_batch += 1
        return self._evaluate(self.batch_period, self.current_batch)

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Count an epoch; evaluate if it is time."""
        self.current_epoch += 1
        return self._evaluate(self.epoch_period, self.current_epoch)

    def _evaluate(self, period: int | None, count: int) -> bool:
        if period and count % period == 0:
            self.eval_fn(val_data=self.val_data, event_handlers=self.event_handlers)
        return False


class GradientUpdateHandler(BatchEnd):
    """Updates the parameters after every batch.

    Args:
        priority: order among the handlers of a moment; before metrics by default.
    """

    def __init__(self, priority: float = -2000):
        self.priority = priority

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Make a step of the trainer with the number of samples of the batch."""
        losses = listed(kwargs["loss"])
        estimator.trainer.step(sum(loss.shape[0] for loss in losses))
        return False


def listed(value: Any) -> list[Any]:
    """A list of one thing or of several; nothing is an empty list."""
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]
