"""Callbacks of training loops: logging, checkpoints, progress bar."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from .checkpoint import BatchEndParam, save_checkpoint
from .core.job_status import report_metric as report


def do_checkpoint(prefix: str, period: int = 1) -> Callable[..., None]:
    """Return an epoch-end callback that saves a checkpoint, numbered epoch + 1, every `period` epochs.

    Example:
        >>> save = do_checkpoint("model", 5)  # module.fit(data, num_epoch=10, epoch_end_callback=save)
    """
    period = max(1, int(period))

    def callback(epoch: int, symbol: Any, arg_params: Any, aux_params: Any) -> None:
        if (epoch + 1) % period == 0:
            save_checkpoint(prefix, epoch + 1, symbol, arg_params, aux_params)

    return callback


def module_checkpoint(
    mod: Any, prefix: str, period: int = 1, save_optimizer_states: bool = False
) -> Callable[..., None]:
    """Return an epoch-end callback that saves module `mod`, with optimizer states if asked, every `period` epochs."""
    period = max(1, int(period))

    def callback(epoch: int, symbol: Any = None, arg_params: Any = None, aux_params: Any = None) -> None:
        if (epoch + 1) % period == 0:
            mod.save_checkpoint(prefix, epoch + 1, save_optimizer_states)

    return callback


def log_train_metric(period: int, auto_reset: bool = False) -> Callable[[BatchEndParam], None]:
    """Return a batch-end callback that logs the training metric every `period` batches.

    Args:
        period: batches between lines.
        auto_reset: start the metric anew after each line.
    """

    def callback(param: BatchEndParam) -> None:
        if param.nbatch % period == 0 and param.eval_metric is not None:
            for name, value in param.eval_metric.get_name_value():
                report(name, value)
                logging.info("Iter[%d] Batch[%d] Train-%s=%f", param.epoch, param.nbatch, name, value)
            if auto_reset:
                param.eval_metric.reset_local()

    return callback


class Speedometer:
    """Batch-end callback that logs samples per second, and the training metric, every `frequent` batches.

    Args:
        batch_size: samples in a batch.
        frequent: batches between lines.
        auto_reset: start the metric anew after each line, so that each line is about its own batches.

    Example:
        Epoch[0] Batch [50-100]	Speed: 13918.38 samples/sec	accuracy=0.300000
    """

    def __init__(self, batch_size: int, frequent: int = 50, auto_reset: bool = True):
        self.batch_size, self.frequent, self.auto_reset = batch_size, frequent, auto_reset
        self.init = False  # whether the clock runs since `tic`
        self.tic: float = 0
        self.last_count = 0

    def __call__(self, param: BatchEndParam) -> None:
        count = param.nbatch
        if count < self.last_count:
            self.init = False
        self.last_count = count
        if not self.init:
            self.init, self.tic = True, time.perf_counter()
        elif count % self.frequent == 0:
            # Reading the metric waits for the batches it counts; without that only their recording would be timed.
            named = param.eval_metric.get_name_value() if param.eval_metric is not None else ()
            elapsed = time.perf_counter() - self.tic
            speed = self.frequent * self.batch_size / elapsed if elapsed else math.inf
            if param.eval_metric is None:
                logging.info("Iter[%d] Batch [%d]\tSpeed: %.2f samples/sec", param.epoch, count, speed)
            else:
                for name, value in named:
                    report(name, value)
                values = "".join(f"\t{name}={value:f}" for name, value in named)
                start = count - self.frequent if self.auto_reset else 0
                if self.auto_reset:
                    param.eval_metric.reset_local()
                logging.info(
                    "Epoch[%d] Batch [%d-%d]\tSpeed: %.2f samples/sec%s", param.epoch, start, count, speed, values
                )
            self.tic = time.perf_counter()


class ProgressBar:
    """Batch-end callback that logs a bar of `length` characters for `total` batches."""

    def __init__(self, total: int, length: int = 80):
        self.total, self.bar_len = total, length

    def __call__(self, param: BatchEndParam) -> None:
        done = param.nbatch / self.total
        filled = round(self.bar_len * done)
        bar = "=" * filled + "-" * (self.bar_len - filled)
        logging.info("[%s] %s%s\r", bar, math.ceil(100 * done), "%")


class LogValidationMetricsCallback:
    """Evaluation-end callback that logs the validation metric."""

    def __call__(self, param: BatchEndParam) -> None:
        if param.eval_metric is not None:
            for name, value in param.eval_metric.get_name_value():
                report(f"validation {name}", value)
                logging.info("Epoch[%d] Validation-%s=%f", param.epoch, name, value)


class Progress:
    """Batch-end callback that keeps one line on a terminal up to date; silent where output goes to a file.

    Args:
        batch_size: samples in a batch.
        total: batches in an epoch, if known.
        every: least number of seconds between two updates.
        stream: where to write, standard error by default.

    Example:
        Epoch 3  120/600 [####----------------]  5120 samples/s  accuracy=0.912
    """

    width = 20

    def __init__(self, batch_size: int, total: int | None = None, every: float = 0.2, stream: TextIO | None = None):
        self.batch_size, self.total, self.every = batch_size, total, every
        self.stream = sys.stderr if stream is None else stream
        self._epoch, self._start, self._shown, self._length = None, 0.0, 0.0, 0

    def __call__(self, param: BatchEndParam) -> None:
        if not self.stream.isatty():
            return
        now, count = time.perf_counter(), param.nbatch + 1
        if param.epoch != self._epoch:
            self._epoch, self._start, self._shown = param.epoch, now, -math.inf
        last = count == self.total
        if now - self._shown < self.every and not last:
            return
        self._shown = now
        line = self.line(param, now - self._start)
        # A return and spaces redraw the line on any terminal, without escape codes.
        self.stream.write("\r" + line.ljust(self._length) + ("\n" if last else ""))
        self.stream.flush()
        self._length = 0 if last else len(line)

    def line(self, param: BatchEndParam, elapsed: float) -> str:
        """Return the text for a batch, `elapsed` seconds after the epoch's first one."""
        count = param.nbatch + 1
        parts = [f"Epoch {param.epoch}", str(count)]
        if self.total:
            filled = self.width * min(count, self.total) // self.total
            parts[1] += f"/{self.total} [{'#' * filled}{'-' * (self.width - filled)}]"
        if elapsed > 0:
            parts.append(f"{param.nbatch * self.batch_size / elapsed:.0f} samples/s")
        if param.eval_metric is not None:
            parts += [f"{name}={value:.4g}" for name, value in param.eval_metric.get_name_value()]
        return "  ".join(parts)
