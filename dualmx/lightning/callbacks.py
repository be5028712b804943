"""Callbacks of `Trainer`."""

from __future__ import annotations

import math
import os
import re
from typing import Any

from ..core.errors import ArgumentError


class Callback:
    """Base of callbacks; subclasses define what they wait for."""

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Before everything else."""

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """After everything else."""

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Before a validation."""

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """After a validation."""

    def on_test_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Before a test."""

    def on_test_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """After a test."""

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Before training."""

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """After everything else."""

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Before the first epoch."""

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """After the last epoch."""

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Before an epoch."""

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """After an epoch and its validation."""

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """Before a batch."""

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """After a batch; `outputs` are the losses of the devices."""

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Before a validation."""

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """After a validation."""


class _MonitorCallback(Callback):
    def __init__(self, monitor: str | None, mode: str):
        if mode not in ("min", "max"):
            raise ArgumentError(f"{type(self).__name__}: mode={mode!r}: expected 'min' or 'max'")
        self.monitor, self.mode = monitor, mode

    def _now(self, trainer: Any) -> float:
        there = trainer.callback_metrics
        if self.monitor not in there:
            known = ", ".join(there) or "none"
            raise ArgumentError(f"{type(self).__name__}: monitor={self.monitor!r} was not logged; there are {known}")
        return there[self.monitor]

    def _better(self, now: float, before: float, delta: float = 0.0) -> bool:
        return now < before - delta if self.mode == "min" else now > before + delta


class EarlyStopping(_MonitorCallback):
    """End training when a number has not improved for some epochs.

    Args:
        monitor: what was logged.
        min_delta: what counts as an improvement.
        patience: how many epochs without one.
        mode: `"min"` or `"max"`.
    """

    def __init__(self, monitor: str, min_delta: float = 0.0, patience: int = 3, mode: str = "min"):
        super().__init__(monitor, mode)
        self.min_delta, self.patience = abs(min_delta), patience
        self.best_score = math.inf if mode == "min" else -math.inf
        self.wait_count = self.stopped_epoch = 0

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Look at the number."""
        now = self._now(trainer)
        if self._better(now, self.best_score, self.min_delta):
            self.best_score, self.wait_count = now, 0
            return
        self.wait_count += 1
        if self.wait_count >= self.patience:
            self.stopped_epoch, trainer.should_stop = trainer.current_epoch, True


class LearningRateMonitor(Callback):
    """Reports the learning rate after each epoch, as `lr-` and the optimizer's name.

    Args:
        logging_interval: accepted.
    """

    def __init__(self, logging_interval: str | None = None):
        self.logging_interval = logging_interval

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Report the rate."""
        for one in trainer.optimizers:
            trainer._report({f"lr-{type(one).__name__}": float(one.learning_rate)})


class ModelCheckpoint(_MonitorCallback):
    """Save checkpoints after epochs; the first process writes them.

    Args:
        dirpath: folder; `checkpoints` beside the logger's file by default.
        filename: name without `.ckpt`, in which `{epoch}`, `{step}` and what was logged are filled in, as in
            `epoch=3-val_loss=0.25` for `{epoch}-{val_loss:.2f}`.
        monitor: by which the best ones are kept; without it the last one is.
        save_last: also keep the last one as `last.ckpt`.
        save_top_k: how many are kept; -1 for all, 0 for none.
        mode: `"min"` or `"max"`.
        every_n_epochs: epochs from one to the next.

    Attributes:
        best_model_path: of the best one (the last one without `monitor`).
    """

    def __init__(
        self, dirpath: Any = None, filename: str | None = None, monitor: str | None = None, save_last: bool = False,
        save_top_k: int = 1, mode: str = "min", every_n_epochs: int = 1,
    ):  # fmt: skip
        super().__init__(monitor, mode)
        self.dirpath, self.filename = dirpath, filename or "{epoch}-{step}"
        self.save_last, self.save_top_k, self.every_n_epochs = save_last, save_top_k, every_n_epochs
        if monitor is None and save_top_k not in (-1, 0, 1):
            raise ArgumentError(f"ModelCheckpoint: save_top_k={save_top_k} needs monitor, by which the best are chosen")
        self.best_model_path = self.last_model_path = ""
        self.best_model_score: float | None = None
        self._kept: list[tuple[float, str]] = []

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Save."""
        if (trainer.current_epoch + 1) % self.every_n_epochs:
            return
        folder = str(self.dirpath) if self.dirpath is not None else trainer._folder("checkpoints")
        names = {**trainer.callback_metrics, "epoch": trainer.current_epoch, "step": trainer.global_step}
        try:
            spelled = re.sub(r"(?<!=)\{(\w+)", r"\1={\1", self.filename)
            path = os.path.join(folder, spelled.format(**names) + ".ckpt")
        except KeyError as e:
            raise ArgumentError(f"ModelCheckpoint: filename={self.filename!r}: {e} was not logged") from None
        if self.save_top_k:
            self._keep(trainer, path)
        if self.save_last:
            self.last_model_path = os.path.join(folder, "last.ckpt")
            trainer.save_checkpoint(self.last_model_path)

    def _keep(self, trainer: Any, path: str) -> None:
        # Without a number the newest is the best.
        score = self._now(trainer) if self.monitor is not None else 0.0
        worst_first = sorted(self._kept, key=lambda k: k[0], reverse=self.mode == "min")
        full = 0 < self.save_top_k <= len(self._kept)
        if full and self.monitor is not None and not self._better(score, worst_first[0][0]):
            return
        trainer.save_checkpoint(path)
        if full:
            self._kept.remove(worst_first[0])
            if worst_first[0][1] != path:
                trainer._remove(worst_first[0][1])
        self._kept.append((score, path))
        if self.monitor is None or self.best_model_score is None or self._better(score, self.best_model_score):
            self.best_model_path, self.best_model_score = path, score if self.monitor is not None else None
