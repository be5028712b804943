"""Callbacks of `fit`."""

from __future__ import annotations

import csv
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError


class Callback:
    """Base of callbacks; subclasses define what they wait for. `logs` are dicts of numbers.

    Attributes:
        model: what is trained.
        params: `epochs`, `steps` (None if unknown) and `verbose`.
    """

    model: Any = None
    params: dict[str, Any]

    def set_model(self, model: Any) -> None:
        """Take the model."""
        self.model = model

    def set_params(self, params: dict[str, Any]) -> None:
        """Take the settings of `fit`."""
        self.params = params

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        """Before the first epoch."""

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        """After the last epoch."""

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Before an epoch."""

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """After an epoch and its validation."""

    def on_train_batch_begin(self, batch: int, logs: dict[str, float] | None = None) -> None:
        """Before a batch of training."""

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        """After a batch of training; a callback that defines it makes each batch wait for its numbers."""


class History(Callback):
    """What `fit` returns.

    Attributes:
        epoch: numbers of the epochs.
        history: for each key of the logs the values of all epochs.
    """

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        """Reset."""
        self.epoch: list[int] = []
        self.history: dict[str, list[float]] = {}

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Keep the values."""
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)


class LambdaCallback(Callback):
    """Call functions.

    Args:
        **functions: by the names of the methods of `Callback`.

    Raises:
        ArgumentError: there is no such method.
    """

    def __init__(self, **functions: Callable[..., Any]):
        for name, function in functions.items():
            if not name.startswith("on_") or not hasattr(Callback, name):
                known = ", ".join(n for n in dir(Callback) if n.startswith("on_"))
                raise ArgumentError(f"LambdaCallback: {name}: expected one of {known}")
            setattr(self, name, function)


class LearningRateScheduler(Callback):
    """Set the learning rate before each epoch.

    Args:
        schedule: function of the epoch and of the rate so far, or of the epoch alone.
    """

    def __init__(self, schedule: Callable[..., float]):
        self.schedule = schedule
        try:
            inspect.signature(schedule).bind(0, 0.1)
            self._takes_rate = True
        except TypeError:
            self._takes_rate = False
        except ValueError:  # nothing tells what a function of C takes
            self._takes_rate = True

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Set the rate."""
        before = (self.model.optimizer.learning_rate,) if self._takes_rate else ()
        self.model.optimizer.set_learning_rate(float(self.schedule(epoch, *before)))


class _MonitorCallback(Callback):
    """Base of callbacks that look at one of the numbers."""

    def __init__(self, monitor: str, mode: str = "auto", min_delta: float = 0.0):
        if mode not in ("auto", "min", "max"):
            raise ArgumentError(f"{type(self).__name__}: mode={mode!r}: expected 'auto', 'min' or 'max'")
        upwards = mode == "max" or (mode == "auto" and ("acc" in monitor or monitor.endswith("auc")))
        self.monitor = monitor
        self._sign, self._delta = (1 if upwards else -1), abs(min_delta)
        self.best = -self._sign * math.inf

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        self.best = -self._sign * math.inf

    def _now(self, logs: dict[str, float] | None) -> float:
        if self.monitor not in (logs or {}):
            there = ", ".join(logs or {})
            raise ArgumentError(f"{type(self).__name__}: monitor={self.monitor!r}: not in the logs; there are {there}")
        return (logs or {})[self.monitor]

    def _improved(self, now: float) -> bool:
        if self._sign * (now - self.best) > self._delta:
            self.best = now
            return True
        return False


class EarlyStopping(_MonitorCallback):
    """End training when a number has not improved for some epochs.

    Args:
        monitor: key in the logs.
        min_delta: what counts as an improvement.
        patience: how many epochs without one.
        mode: `"min"`, `"max"`, or `"auto"`: by the name.
        restore_best_weights: go back to the weights of the best epoch.
    """

    def __init__(
        self, monitor: str = "val_loss", min_delta: float = 0.0, patience: int = 0, mode: str = "auto",
        restore_best_weights: bool = False,
    ):  # fmt: skip
        super().__init__(monitor, mode, min_delta)
        self.patience, self.restore_best_weights = patience, restore_best_weights
        self.stopped_epoch = self._waited = 0
        self._weights: list[np.ndarray] | None = None

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        """Reset."""
        super().on_train_begin(logs)
        self.stopped_epoch = self._waited = 0
        self._weights = None

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Look at the number."""
        if self._improved(self._now(logs)):
            self._waited = 0
            if self.restore_best_weights:
                self._weights = self.model.get_weights()
            return
        self._waited += 1
        if self._waited >= self.patience:
            self.stopped_epoch, self.model.stop_training = epoch, True

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        """Go back to the best weights, if wanted."""
        if self._weights is not None:
            self.model.set_weights(self._weights)


class ModelCheckpoint(_MonitorCallback):
    """Save the weights after each epoch, or after the best ones; only the first worker does.

    Args:
        filepath: file name, in which `{epoch:02d}` (from 1) and keys of the logs are filled in.
        monitor: key in the logs.
        save_best_only: save after improvements only.
        mode: see `EarlyStopping`.
        save_weights_only: accepted; weights are what is saved.
    """

    def __init__(
        self, filepath: str, monitor: str = "val_loss", save_best_only: bool = False, mode: str = "auto",
        save_weights_only: bool = True,
    ):  # fmt: skip
        super().__init__(monitor, mode)
        self.filepath, self.save_best_only, self.save_weights_only = str(filepath), save_best_only, save_weights_only

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Save."""
        if self.save_best_only and not self._improved(self._now(logs)):
            return
        if self.model.distribute_strategy.rank == 0:
            try:
                path = self.filepath.format(epoch=epoch + 1, **(logs or {}))
            except KeyError as e:
                raise ArgumentError(f"ModelCheckpoint: filepath={self.filepath!r}: {e} is not in the logs") from None
            self.model.save_weights(path)


class ReduceLROnPlateau(_MonitorCallback):
    """Lower the learning rate when a number has not improved for some epochs.

    Args:
        monitor, min_delta, mode: see `EarlyStopping`.
        factor: of the new rate.
        patience: how many epochs without an improvement.
        min_lr: lowest rate.
    """

    def __init__(
        self, monitor: str = "val_loss", factor: float = 0.1, patience: int = 10, mode: str = "auto",
        min_delta: float = 1e-4, min_lr: float = 0.0,
    ):  # fmt: skip
        super().__init__(monitor, mode, min_delta)
        if not 0 < factor < 1:
            raise ArgumentError(f"ReduceLROnPlateau: factor={factor}: expected a number between 0 and 1")
        self.factor, self.patience, self.min_lr, self._waited = factor, patience, min_lr, 0

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Look at the number."""
        if self._improved(self._now(logs)):
            self._waited = 0
            return
        self._waited += 1
        if self._waited >= self.patience:
            optimizer = self.model.optimizer
            optimizer.set_learning_rate(max(optimizer.learning_rate * self.factor, self.min_lr))
            self._waited = 0


class TerminateOnNaN(Callback):
    """End training when the loss of an epoch is not finite."""

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Look at the loss."""
        if not math.isfinite((logs or {}).get("loss", 0.0)):
            self.model.stop_training = True


class CSVLogger(Callback):
    """Write the logs of all epochs to a file of comma-separated values; only the first worker does.

    Args:
        filename: the file, which is overwritten.
    """

    def __init__(self, filename: str):
        self.filename = filename
        self._rows: list[dict[str, float]] = []

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        """Reset."""
        self._rows = []

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Write."""
        self._rows.append({"epoch": epoch, **(logs or {})})
        if self.model.distribute_strategy.rank == 0:
            with open(self.filename, "w", newline="", encoding="utf-8") as f:
                writer = csv.DictWriter(f, list(self._rows[0]), restval="", extrasaction="ignore")
                writer.writeheader()
                writer.writerows(self._rows)


def listed(given: Any) -> list[Callback]:
    """Return callbacks as a list.

    Raises:
        ArgumentTypeError: something else is among them.
    """
    found = list(given) if isinstance(given, (list, tuple)) else [] if given is None else [given]
    for one in found:
        if not isinstance(one, Callback):
            raise ArgumentTypeError(f"fit: callbacks: a {type(one).__name__}: expected objects of keras.callbacks")
    return found
