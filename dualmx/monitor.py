"""`Monitor`: statistics of the arrays inside executors."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

from .core.errors import ArgumentTypeError
from .namespace import nd
from .ndarray import NDArray


def _root_mean_square(x: NDArray) -> NDArray:
    return nd.sqrt(nd.mean(nd.square(x)))


class Monitor:
    """Collects a statistic of outputs, and of arguments and auxiliary states, every `interval` batches.

    Args:
        interval: batches between collections.
        stat_func: statistic of an array: an NDArray or a list of them; the root of the mean square by default.
        pattern: regular expression of the names to collect, matched from their beginning.
        sort: sort results by name.
        monitor_all: collect inputs of the operators too.

    Example:
        >>> monitor = Monitor(100, pattern=".*weight")  # module.fit(data, num_epoch=1, monitor=monitor)
    """

    def __init__(
        self,
        interval: int,
        stat_func: Callable[[NDArray], Any] | None = None,
        pattern: str = ".*",
        sort: bool = False,
        monitor_all: bool = False,
    ):
        self.stat_func = stat_func or _root_mean_square
        self.interval, self.sort, self.monitor_all = interval, sort, monitor_all
        self.activated = False
        self.queue: list[tuple[int, str, Any]] = []
        self.step = 0
        self.exes: list[Any] = []
        self.re_prog = re.compile(pattern)

    def install(self, exe: Any) -> None:
        """Watch the executor `exe`."""
        exe.set_monitor_callback(self.stat_helper, self.monitor_all)
        self.exes.append(exe)

    def stat_helper(self, name: str, array: NDArray) -> None:
        """Collect the statistic of an array, if this batch is collected and the name asked for; executors call it."""
        if self.activated and self.re_prog.match(name):
            self.queue.append((self.step, name, self.stat_func(array)))

    def tic(self) -> None:
        """Begin a batch; every `interval`-th one is collected."""
        if self.step % self.interval == 0:
            self.queue = []
            self.activated = True
        self.step += 1

    def toc(self) -> list[tuple[int, str, str]]:
        """End a batch; returns `(step, name, statistic as text)` of what was collected.

        Raises:
            ArgumentTypeError: the statistic is not an NDArray or a list of them.
        """
        if not self.activated:
            return []
        for exe in self.exes:
            for name, array in [*exe.arg_dict.items(), *exe.aux_dict.items()]:
                self.stat_helper(name, array)
        self.activated = False
        if self.sort:
            self.queue.sort(key=lambda entry: entry[1])
        res = [(step, name, "".join(f"{_text(v)}\t" for v in _listed(stat))) for step, name, stat in self.queue]
        self.queue = []
        return res

    def toc_print(self) -> None:
        """End a batch and log what was collected."""
        for step, name, text in self.toc():
            logging.info("Batch: %7d %-30s %s", step, name, text)


def _listed(stat: Any) -> list[NDArray]:
    stats = stat if isinstance(stat, list) else [stat]
    for s in stats:
        if not isinstance(s, NDArray):
            raise ArgumentTypeError(
                f"Monitor: stat_func returned {type(s).__name__}: expected an NDArray or a list of them"
            )
    return stats


def _text(value: NDArray) -> str:
    return str(value.asscalar() if value.shape == (1,) else value.asnumpy())
