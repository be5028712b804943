"""How many sizes of a program there are: one whose sizes follow the data has ever other ones.

Where all programs are compiled from a round of their job on, each new size would be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import knobs
from ..graph.signature import index_of
from ..graph.trie import State

_VARIED_FROM = 8  # sizes; a few shapes of parameters or batches are worth compiling for
_MAX_PROGRAMS = 4096


class ProgramSizes:
    """Programs of the same operators on the same operands.

    Attributes:
        count: how many of them were made, which differ in sizes or in parameters of operators.
    """

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    @property
    def is_varied(self) -> bool:
        """Whether runs of each one, and not rounds of a job, tell when it is compiled.

        Where another process takes the place of one that died it would have met fewer.
        """
        return self.count >= _VARIED_FROM and knobs.ON_WORKER_DEATH.read() != "wait"


_known: dict[Any, ProgramSizes] = {}


def sizes_of(steps: Sequence[State]) -> ProgramSizes:
    """Return what is known of the sizes of a new program, which counts as one of them."""
    key = tuple([(s.kind, s.call and s.call.op.name, *[index_of(v) for v in s.ins]) for s in steps])
    if len(_known) >= _MAX_PROGRAMS and key not in _known:
        _known.clear()
    found = _known.setdefault(key, ProgramSizes())
    found.count += 1
    return found


__all__ = ["ProgramSizes", "sizes_of"]
