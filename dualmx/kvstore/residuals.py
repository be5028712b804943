"""Compression residuals of workers that may die, kept for their successors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..ps.journal import Journal
from ..ps.protocol import RESIDUAL_RECORDS, ResidualRecord, header
from ..ps.store import Record, bytes_of


class Residuals:
    """Totals of a worker's last pushes: gradients with what was kept back of those before.

    From a total follow what is sent of it and what is kept back, so that it says all of a push. It is written before
    the push leaves. Of two pushes, since the worker may have died in a round: then it makes that push again, bit by
    bit, or the next one.

    Args:
        journal: where they are written. back: whether a worker takes the place of one that wrote there.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     first = Residuals(Journal(folder, 0, role="residuals"), back=False)
        ...     first.write("w", 7, np.ones(2, np.float32))
        ...     second = Residuals(Journal(folder, 0, role="residuals"), back=True)
        ...     second.total("w", 7), second.total("w", 6)
        (array([1., 1.], dtype=float32), None)
    """

    def __init__(self, journal: Journal, back: bool):
        self._journal = journal
        self._totals: dict[Any, dict[int, np.ndarray]] = {}
        if not back:
            journal.remove()
        for record in journal.replay():
            key, turn, shape = RESIDUAL_RECORDS.read(record)
            self._remember(key, turn, np.frombuffer(record.data(), np.float32).reshape(shape))

    @property
    def empty(self) -> bool:
        """Whether nothing is known of any push."""
        return not self._totals

    def total(self, key: Any, turn: int) -> np.ndarray | None:
        """The total of push number `turn` of a key, if it is known."""
        return self._totals.get(key, {}).get(turn)

    def write(self, key: Any, turn: int, total: np.ndarray) -> None:
        """Write down a total, before anything of it is sent.

        Raises:
            JournalError: it cannot be written.
        """
        self._remember(key, turn, total)
        if self._journal.append(*_record(key, turn, total)):
            self._journal.snapshot(self._records())

    def _remember(self, key: Any, turn: int, total: np.ndarray) -> None:
        known = self._totals.get(key, {})
        self._totals[key] = {**({turn - 1: known[turn - 1]} if turn - 1 in known else {}), turn: total}

    def _records(self) -> Iterator[Record]:
        for key, totals in self._totals.items():
            for turn, total in totals.items():
                yield _record(key, turn, total)


def _record(key: Any, turn: int, total: np.ndarray) -> Record:
    record = ResidualRecord(key, turn, list(total.shape))
    return header(record), [bytes_of(np.ascontiguousarray(total).reshape(-1))]


__all__ = ["Residuals"]
