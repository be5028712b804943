"""Log metrics for TensorBoard."""

from __future__ import annotations

import importlib
from typing import Any

from ..core.errors import MXNetError


class LogMetricsCallback:
    """A batch or epoch callback that writes each value of the metric as a scalar.

    Args:
        logging_dir: folder of the event files.
        prefix: put before the names, as `prefix-name`.

    Raises:
        MXNetError: no package that writes event files is installed.
    """

    def __init__(self, logging_dir: str, prefix: str | None = None):
        self.prefix, self.step = prefix, 0
        self.summary_writer = _writer(logging_dir)

    def __call__(self, param: Any) -> None:
        """Write the values of `param.eval_metric`."""
        self.step += 1
        if param.eval_metric is None:
            return
        for name, value in param.eval_metric.get_name_value():
            self.summary_writer.add_scalar(name if self.prefix is None else f"{self.prefix}-{name}", value, self.step)


def _writer(folder: str) -> Any:
    for module in ("tensorboardX", "mxboard"):
        try:
            return importlib.import_module(module).SummaryWriter(folder)
        except ImportError:
            continue
    raise MXNetError("LogMetricsCallback: install the package 'tensorboardX', which writes the event files")


__all__ = ["LogMetricsCallback"]
