"""Log lines about training."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ....core.errors import ArgumentError
from ....core.figures import report_metric
from .events import BatchBegin, BatchEnd, EpochBegin, EpochEnd, TrainBegin, TrainEnd, listed


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
