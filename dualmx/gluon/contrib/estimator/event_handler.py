"""Event handlers of an Estimator: metrics, validation, logging, checkpoints, early stopping."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.errors import ArgumentError, MXNetError
from ....core.job_status import report_metric
from ....metric import CompositeEvalMetric, EvalMetric


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
        """Count from zero, up to the limits of `fit`."""
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


class LoggingHandler(TrainBegin, TrainEnd, EpochBegin, EpochEnd, BatchBegin, BatchEnd):
    """Writes progress to the estimator's logger.

    Args:
        log_interval: `"epoch"`, or after how many batches a line is written.
        metrics: those whose values are written.
        priority: order among the handlers of a moment; last by default.

    Raises:
        ArgumentError: another `log_interval`.
    """

    def __init__(self, log_interval: int | str = "epoch", metrics: Any = None, priority: float = np.inf):
        if not (isinstance(log_interval, int) and log_interval > 0) and log_interval != "epoch":
            raise ArgumentError(
                f"LoggingHandler: log_interval={log_interval!r}: expected a number of batches or 'epoch'"
            )
        self.log_interval, self.metrics, self.priority = log_interval, listed(metrics), priority
        self.batch_index = self.current_epoch = self.processed_samples = 0
        self.log_interval_time = 0.0
        self.train_start = self.epoch_start = self.batch_start = 0.0

    def _values(self) -> str:
        """The metrics in words; they are reported, too."""
        found = [metric.get() for metric in self.metrics]
        for name, value in found:
            report_metric(name, value)
        return ", ".join(f"{name}: {value:.4f}" for name, value in found)

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Write how training will be."""
        self.train_start = time.time()
        name, rate = type(estimator.trainer.optimizer).__name__, estimator.trainer.learning_rate
        estimator.logger.info("Training begin: using optimizer %s with current learning rate %.4f ", name, rate)
        if estimator.max_epoch:
            estimator.logger.info("Train for %d epochs.", estimator.max_epoch)
        else:
            estimator.logger.info("Train for %d batches.", estimator.max_batch)
        self.current_epoch = self.batch_index = self.processed_samples = 0
        self.log_interval_time = 0.0

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Write how long training took, and the metrics."""
        text = f"Train finished using total {int(time.time() - self.train_start)}s with {self.current_epoch} epochs. "
        estimator.logger.info((text + self._values()).rstrip(", "))

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Write that an epoch begins."""
        if any("training" in metric.name for metric in self.metrics):
            rate = estimator.trainer.learning_rate
            estimator.logger.info("[Epoch %d] Begin, current learning rate: %.4f", self.current_epoch, rate)
        else:
            estimator.logger.info("Validation Begin")
        self.epoch_start = time.time()

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Write how long the epoch took, and the metrics."""
        text = f"[Epoch {self.current_epoch}] Finished in {time.time() - self.epoch_start:.3f}s, "
        estimator.logger.info((text + self._values()).rstrip(", "))
        self.current_epoch += 1
        self.batch_index = 0
        return False

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Take the time."""
        if self.log_interval != "epoch":
            self.batch_start = time.time()

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Write a line every `log_interval` batches."""
        if self.log_interval != "epoch":
            assert isinstance(self.log_interval, int)
            self.log_interval_time += time.time() - self.batch_start
            self.processed_samples += kwargs["batch"][0].shape[0]
            if self.batch_index % self.log_interval == 0:
                at = f"[Epoch {self.current_epoch}][Batch {self.batch_index}][Samples {self.processed_samples}] "
                text = f"{at}time/interval: {self.log_interval_time:.3f}s "
                estimator.logger.info((text + self._values()).rstrip(", "))
                self.log_interval_time = 0.0
        self.batch_index += 1
        return False


def better(mode: str, monitor: EvalMetric | None) -> Callable[[float, float], bool]:
    """Return the comparison under which a first value is an improvement over a second one.

    Raises:
        ArgumentError: another mode.
    """
    if mode not in ("auto", "min", "max"):
        raise ArgumentError(f"mode={mode!r}: expected auto, min or max")
    if mode == "auto":
        name = "" if monitor is None else str(monitor.get()[0]).lower()
        mode = "max" if "acc" in name or "f1" in name else "min"
    return np.less if mode == "min" else np.greater


class CheckpointHandler(TrainBegin, BatchEnd, EpochEnd):
    """Saves parameters and optimizer states after some epochs or batches, and the best ones.

    Files in `model_dir` are `<prefix>-symbol.json` (of a hybridized network), `<prefix>-epoch<e>batch<b>.params` and
    `.states`, and `<prefix>-best.params` and `.states`.

    Args:
        model_dir: the folder.
        model_prefix: of the file names.
        monitor: metric by which the best is known.
        verbose: above 0, log what is saved.
        save_best: keep the best parameters by `monitor`.
        mode: whether less or more of the metric is better; `"auto"` goes by its name.
        epoch_period: after how many epochs, or `None`.
        batch_period: after how many batches, or `None`.
        max_checkpoints: how many are kept besides the best.
        resume_from_checkpoint: begin with the newest checkpoint in the folder, and train only what is left.

    Raises:
        ArgumentError: `save_best` without a metric, or another mode.
    """

    def __init__(
        self, model_dir: str, model_prefix: str = "model", monitor: EvalMetric | None = None, verbose: int = 0,
        save_best: bool = False, mode: str = "auto", epoch_period: int | None = 1, batch_period: int | None = None,
        max_checkpoints: int = 5, resume_from_checkpoint: bool = False,
    ):  # fmt: skip
        if save_best and (not isinstance(monitor, EvalMetric) or isinstance(monitor, CompositeEvalMetric)):
            raise ArgumentError(
                "To save best model only, please provide one of the metric objects from estimator.train_metrics and "
                "estimator.val_metrics as monitor."
            )
        self.model_dir, self.model_prefix, self.monitor, self.verbose = model_dir, model_prefix, monitor, verbose
        self.save_best, self.epoch_period, self.batch_period = save_best, epoch_period, batch_period
        self.max_checkpoints, self.resume_from_checkpoint = max_checkpoints, resume_from_checkpoint
        self.current_batch = self.current_epoch = 0
        self.saved_checkpoints: list[str] = []
        os.makedirs(model_dir, exist_ok=True)
        self._improves = better(mode, monitor)
        self.best = np.inf if self._improves is np.less else -np.inf
        self.trained_epoch = self.trained_batch = -1

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Count from zero, or load the newest checkpoint."""
        self.current_epoch = self.current_batch = 0
        self.saved_checkpoints = []
        self.trained_epoch = self.trained_batch = -1
        if self.resume_from_checkpoint:
            self._resume(estimator)

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Save if it is time, after this batch."""
        if self.current_batch == 0:
            self._save_symbol(estimator)
        self.current_batch += 1
        if self.batch_period and self.current_batch % self.batch_period == 0:
            self._save(estimator, self.current_batch - 1)
        return False

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Save if it is time, after this epoch."""
        if self.epoch_period and (self.current_epoch + 1) % self.epoch_period == 0:
            self._save(estimator, self.current_batch)
        self.current_epoch += 1
        return False

    def _say(self, estimator: Any, text: str) -> None:
        if self.verbose > 0:
            estimator.logger.info("[Epoch %d] CheckpointHandler: %s", self.current_epoch, text)

    def _save(self, estimator: Any, number: int) -> None:
        epoch, batch = self.current_epoch + self.trained_epoch + 1, number + max(self.trained_batch, 0)
        name = f"{self.model_prefix}-epoch{epoch}batch{batch}"
        where = f"saving model at {self.model_dir} with prefix: {name}"
        self._say(estimator, f"trained total {self.current_batch} batches, {where}")
        self._write(estimator, name)
        self.saved_checkpoints.append(name)
        if len(self.saved_checkpoints) > self.max_checkpoints:
            self._remove(self.saved_checkpoints.pop(0))
        if self.save_best and self.monitor is not None:
            self._save_best(estimator)

    def _save_best(self, estimator: Any) -> None:
        assert self.monitor is not None
        title, value = self.monitor.get()
        if self._improves(value, self.best):
            best = f"{self.model_prefix}-best"
            change = f"{title} improved from {self.best:0.5f} to {value:0.5f}"
            self._say(estimator, f"{change}, updating best model at {self.model_dir} with prefix: {best}")
            self.best = value
            self._write(estimator, best)
        else:
            self._say(estimator, f"{title} did not improve from {self.best:0.5f}, skipping updating best model")

    def _path(self, name: str) -> str:
        return os.path.join(self.model_dir, name)

    def _write(self, estimator: Any, name: str) -> None:
        estimator.net.save_parameters(self._path(name + ".params"))
        estimator.trainer.save_states(self._path(name + ".states"))

    def _remove(self, name: str) -> None:
        for ending in (".params", ".states"):
            path = self._path(name + ending)
            if os.path.exists(path):
                os.remove(path)

    def _save_symbol(self, estimator: Any) -> None:
        graph = getattr(estimator.net, "_graph", None)
        if graph is not None:
            graph.symbol.save(self._path(f"{self.model_prefix}-symbol.json"))
        else:
            estimator.logger.info(
                "CheckpointHandler: the parameters are saved without the graph; hybridize() the network to have both"
            )

    def _resume(self, estimator: Any) -> None:
        found = []
        for name in os.listdir(self.model_dir):
            match = re.fullmatch(re.escape(self.model_prefix) + r"-epoch(\d+)batch(\d+)\.params", name)
            if match and os.path.exists(self._path(name[: -len("params")] + "states")):
                found.append((int(match[1]), int(match[2])))
        if not found:
            estimator.logger.info(
                "CheckpointHandler: no checkpoint of prefix %s in %s, training from the beginning", self.model_prefix,
                self.model_dir,
            )  # fmt: skip
            return
        epoch, batch = max(found)
        done_epochs, done_batches = epoch + 1, batch + 1
        for what, wanted, done in (
            ("epoch", estimator.max_epoch, done_epochs), ("batch", estimator.max_batch, done_batches)
        ):  # fmt: skip
            if wanted and done >= wanted:
                raise MXNetError(
                    f"CheckpointHandler: the checkpoint has {what} {done} behind it, fit asks for {wanted}; give a "
                    f"larger number to continue"
                )
        name = self._path(f"{self.model_prefix}-epoch{epoch}batch{batch}")
        estimator.net.load_parameters(name + ".params", ctx=estimator.context)
        estimator.trainer.load_states(name + ".states")
        self.trained_epoch, self.trained_batch = epoch, batch
        if estimator.max_epoch:
            estimator.max_epoch -= done_epochs
            left = f"{estimator.max_epoch} epochs "
        else:
            estimator.max_batch -= done_batches
            left = f"{estimator.max_batch} batches "
        estimator.logger.info(
            "CheckpointHandler: Checkpoint resumed from epoch %d batch %d, continue to train for %s", epoch, batch, left
        )


class EarlyStoppingHandler(TrainBegin, EpochEnd, TrainEnd):
    """Ends training when a metric stops improving.

    Args:
        monitor: the metric.
        min_delta: smallest change that counts as an improvement.
        patience: for how many epochs no improvement is borne.
        mode: whether less or more of the metric is better; `"auto"` goes by its name.
        baseline: value to improve on from the first epoch.

    Raises:
        ArgumentError: no single metric, or another mode.
    """

    def __init__(
        self, monitor: EvalMetric, min_delta: float = 0, patience: int = 0, mode: str = "auto",
        baseline: float | None = None,
    ):  # fmt: skip
        if not isinstance(monitor, EvalMetric) or isinstance(monitor, CompositeEvalMetric):
            raise ArgumentError(
                f"EarlyStoppingHandler: monitor={monitor!r}: expected a single metric, such as one of train_metrics"
            )
        self.monitor, self.patience, self.baseline = monitor, patience, baseline
        self._improves = better(mode, monitor)
        self.min_delta = -min_delta if self._improves is np.less else min_delta
        self.train_begin(None)

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Reset."""
        self.wait = self.stopped_epoch = self.current_epoch = 0
        self.stop_training = False
        worst = np.inf if self._improves is np.less else -np.inf
        self.best = worst if self.baseline is None else self.baseline

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Look at the metric."""
        value = self.monitor.get()[1]
        if np.isnan(value):
            estimator.logger.warning("%s is not updated yet; pass it to estimator.fit", self.monitor.get()[0])
        elif self._improves(value - self.min_delta, self.best):
            self.best, self.wait = value, 0
        else:
            self.wait += 1
            if self.wait >= self.patience:
                self.stopped_epoch, self.stop_training = self.current_epoch, True
        self.current_epoch += 1
        return self.stop_training

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Say why training ended."""
        if self.stop_training:
            name = self.monitor.get()[0]
            estimator.logger.info(
                "[Epoch %d] EarlyStoppingHandler: early stopping due to %s not improving", self.stopped_epoch, name
            )


__all__ = [
    "BatchBegin",
    "BatchEnd",
    "CheckpointHandler",
    "EarlyStoppingHandler",
    "EpochBegin",
    "EpochEnd",
    "EventHandler",
    "GradientUpdateHandler",
    "LoggingHandler",
    "MetricHandler",
    "StoppingHandler",
    "TrainBegin",
    "TrainEnd",
    "ValidationHandler",
]
