"""Every environment variable that dualmx reads: default, meaning, and one reader. Printed by `dualmx doctor`."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .errors import ArgumentError


@dataclass(frozen=True)
class Knob:
    """One environment variable.

    Attributes:
        name: the variable.
        default: its value when unset.
        doc: what it does, in one sentence.
        choices: the accepted values; empty for any.
    """

    name: str
    default: str
    doc: str
    choices: tuple[str, ...] = ()

    def read(self) -> str:
        """Return the current value; `ArgumentError` names the variable if the value is not accepted."""
        value = os.environ.get(self.name, self.default)
        if self.choices and value not in self.choices:
            raise ArgumentError(
                f"environment variable {self.name}={value!r}: expected one of {', '.join(self.choices)}"
            )
        return value

    def integer(self, low: int = 0) -> int:
        """Return the current value as an integer of at least `low`."""
        value = os.environ.get(self.name, self.default)
        try:
            number = int(value)
        except ValueError:
            number = low - 1
        if number < low:
            raise ArgumentError(f"environment variable {self.name}={value!r}: expected an integer of {low} or more")
        return number


ENGINE = Knob(
    "MXNET_ENGINE_TYPE",
    "ThreadedEnginePerDevice",
    "NaiveEngine runs every operation at once; the others record and compile lazily.",
    ("NaiveEngine", "ThreadedEngine", "ThreadedEnginePerDevice"),
)
DEBUG = Knob(
    "DUALMX_DEBUG", "0", "1 flushes and compiles with reasons, 2 the program, 3 its jaxpr, 4 its HLO.", tuple("01234")
)
BULK = Knob("MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN", "2000", "Most operations recorded before they are executed.")
BULK_ON = Knob("MXNET_EXEC_BULK_EXEC_TRAIN", "1", "0 executes every operation at once, as NaiveEngine.", ("0", "1"))
CACHE = Knob(
    "DUALMX_CACHE_DIR", "~/.cache/dualmx", "Folder of compiled programs kept between processes; empty for none."
)
HOME = Knob("MXNET_HOME", "~/.mxnet", "Root of data sets and models on disk.")
REPO = Knob("MXNET_GLUON_REPO", "", "Base URL of data sets and pretrained models; empty: local files only.")
PROFILER_AUTOSTART = Knob("MXNET_PROFILER_AUTOSTART", "0", "1 starts the profiler at import.", ("0", "1"))
PROFILER_MODE = Knob(
    "MXNET_PROFILER_MODE", "0", "1 lets an autostarted profiler run and measure each operation by itself.", ("0", "1")
)
UPDATE_ON_KVSTORE = Knob("MXNET_UPDATE_ON_KVSTORE", "1", "Default of Trainer's update_on_kvstore.", ("0", "1"))
AGGREGATION = Knob(
    "MXNET_OPTIMIZER_AGGREGATION_SIZE", "4", "Accepted: all updates of a step are fused whatever its value."
)

KNOBS: tuple[Knob, ...] = (
    ENGINE, DEBUG, BULK, BULK_ON, CACHE, HOME, REPO, PROFILER_AUTOSTART, PROFILER_MODE, UPDATE_ON_KVSTORE, AGGREGATION,
)  # fmt: skip
