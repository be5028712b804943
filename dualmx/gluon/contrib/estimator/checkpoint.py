"""Checkpoints and early stopping."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.errors import ArgumentError, MXNetError
from ....metric import CompositeEvalMetric, EvalMetric
from .events import BatchEnd, EpochEnd, TrainBegin, TrainEnd


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
        """Begin anew."""
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
