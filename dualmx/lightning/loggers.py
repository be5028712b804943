"""Loggers that write metrics to files."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any


class Logger:
    """Base of loggers; only the first process calls them."""

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        """Take numbers at a step."""

    def save(self) -> None:
        """Write the buffered values."""


class CSVLogger(Logger):
    """Writes `metrics.csv` in the folder `save_dir/name/version_N`.

    Args:
        save_dir: parent of all.
        name: of the series of runs.
        version: number or name of the run; the next number by default.
    """

    def __init__(self, save_dir: str = ".", name: str = "lightning_logs", version: Any = None):
        self._root = Path(save_dir) / name
        self._version = version
        self._rows: list[dict[str, Any]] = []

    @property
    def version(self) -> Any:
        """Number or name of the run."""
        if self._version is None:
            taken = [p.name.removeprefix("version_") for p in self._root.glob("version_*")]
            self._version = max([int(v) for v in taken if v.isdecimal()], default=-1) + 1
        return self._version

    @property
    def log_dir(self) -> str:
        """Folder of the run."""
        name = f"version_{self.version}" if isinstance(self.version, int) else str(self.version)
        return str(self._root / name)

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        """Take numbers at a step."""
        self._rows.append({**metrics, "step": step})

    def save(self) -> None:
        """Write all numbers so far."""
        columns = list(dict.fromkeys(key for row in self._rows for key in row))
        folder = Path(self.log_dir)
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "metrics.csv", "w", newline="", encoding="utf-8") as f:
            writer = csv.DictWriter(f, columns, restval="")
            writer.writeheader()
            writer.writerows(self._rows)
