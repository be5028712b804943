"""Cells made of other cells: one after another, or in both directions of time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...core.errors import ArgumentTypeError
from ..base import Block
from ..parameter import ParameterDict
from ..semantics import with_class_of
from .base import HybridRecurrentCell, RecurrentCell
from .sequences import ARRAYS, functions_for, mask_sequence, merge_or_split, reverse_steps, split_steps
from .states import states_or_begin


def _infos(cells: Any, batch_size: int) -> list[dict[str, Any]]:
    return [info for cell in cells for info in cell.state_info(batch_size)]


def _begin(cells: Any, **kwargs: Any) -> list[Any]:
    return [state for cell in cells for state in cell.begin_state(**kwargs)]


def _with_states(cells: Any, states: Any) -> Iterator[tuple[Any, Any]]:
    """Each cell with its own of the states of all."""
    at = 0
    for cell in cells:
        size = len(cell.state_info())
        yield cell, states[at : at + size]
        at += size


class _Stack(RecurrentCell):
    """What `SequentialRNNCell` and `HybridSequentialRNNCell` share."""

    def __repr__(self) -> str:
        rows = [f"({name}): " + repr(cell).replace("\n", "\n  ") for name, cell in self._children.items()]
        return f"{type(self).__name__}(\n" + "\n".join(rows) + "\n)"

    @property
    def _cells(self) -> list[Any]:
        return list(self._children.values())

    def add(self, cell: RecurrentCell) -> None:
        """Append a cell."""
        self.register_child(cell)

    def __getitem__(self, i: int) -> Any:
        return self._children[str(i)]

    def __len__(self) -> int:
        return len(self._children)

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Return the states of all cells."""
        return _infos(self._cells, batch_size)

    def begin_state(self, **kwargs: Any) -> list[Any]:
        """Return the first states of all cells; see `RecurrentCell.begin_state`."""
        self._check_unmodified()
        return _begin(self._cells, **kwargs)

    def _step(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        after = []
        for cell, own in _with_states(self._cells, states):
            inputs, new = cell(inputs, own)
            after += new
        return inputs, after

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list[Any]]:
        """Unroll one cell after the other; see `RecurrentCell.unroll`."""
        self.reset()
        steps = split_steps(length, inputs, layout)
        begin_state = states_or_begin(self, begin_state, steps)
        after, last = [], len(self) - 1
        sequence: Any = steps
        for k, (cell, own) in enumerate(_with_states(self._cells, begin_state)):
            merge = merge_outputs if k == last else None
            sequence, new = cell.unroll(length, sequence, own, layout, merge, valid_length)
            after += new
        return sequence, after


class SequentialRNNCell(_Stack):
    """Cells one after another; the states are those of all cells in a row.

    Example:
        >>> import dualmx as mx
        >>> cells = mx.gluon.rnn.SequentialRNNCell()
        >>> with cells.name_scope():
        ...     cells.add(mx.gluon.rnn.LSTMCell(4))
        ...     cells.add(mx.gluon.rnn.GRUCell(3))
        >>> cells.initialize()
        >>> outputs, states = cells.unroll(2, mx.nd.ones((5, 2, 6)), merge_outputs=True)
        >>> outputs.shape, [s.shape for s in states]
        ((5, 2, 3), [(5, 4), (5, 4), (5, 3)])
    """

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None):
        super().__init__(prefix=prefix, params=params)

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Take one step with every cell."""
        self._counter += 1
        return self._step(inputs, states)

    def hybrid_forward(self, *args: Any, **kwargs: Any) -> Any:
        """Not used: the cells are called one by one."""
        raise NotImplementedError("SequentialRNNCell calls its cells one by one")


class HybridSequentialRNNCell(_Stack, HybridRecurrentCell):
    """Cells one after another that hybridize into one graph; see `SequentialRNNCell`."""

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None):
        super().__init__(prefix=prefix, params=params)

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Take one step with every cell."""
        return Block.__call__(self, inputs, states)

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """Take one step with every cell."""
        return self._step(inputs, states)


class BidirectionalCell(HybridRecurrentCell):
    """Two cells that run through the sequence in both directions; their outputs are joined. It can only be unrolled.

    Args:
        l_cell, r_cell: cells for the sequence and for the reversed sequence.
        output_prefix: of the names of the joined outputs of symbols.

    Example:
        >>> import dualmx as mx
        >>> cell = mx.gluon.rnn.BidirectionalCell(mx.gluon.rnn.GRUCell(3), mx.gluon.rnn.GRUCell(3))
        >>> cell.initialize()
        >>> cell.unroll(2, mx.nd.ones((5, 2, 6)), merge_outputs=True)[0].shape
        (5, 2, 6)
    """

    def __init__(self, l_cell: Any, r_cell: Any, output_prefix: str = "bi_"):
        super().__init__(prefix="", params=None)
        self.register_child(l_cell, "l_cell")
        self.register_child(r_cell, "r_cell")
        self._output_prefix = output_prefix

    def _described(self) -> str:
        left, right = self._children.values()
        return f"forward={left!r}, backward={right!r}"

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Raise: the reversed direction needs the whole sequence."""
        raise NotImplementedError("BidirectionalCell cannot be stepped; use unroll()")

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Return the states of both cells."""
        return _infos(self._children.values(), batch_size)

    def begin_state(self, **kwargs: Any) -> list[Any]:
        """Return the first states of both cells; see `RecurrentCell.begin_state`."""
        self._check_unmodified()
        return _begin(self._children.values(), **kwargs)

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list[Any]]:
        """Unroll both cells and join their outputs along the last axis; see `RecurrentCell.unroll`."""
        self.reset()
        steps = split_steps(length, inputs, layout)
        F = functions_for(steps)
        states = states_or_begin(self, begin_state, steps)
        left, right = self._children.values()
        if not isinstance(left, RecurrentCell) or not isinstance(right, RecurrentCell):
            raise ArgumentTypeError("BidirectionalCell: expected two recurrent cells")
        size = len(left.state_info(0))
        there, l_states = left.unroll(length, steps, states[:size], layout, merge_outputs, valid_length)
        mirrored = reverse_steps(steps, valid_length)
        back, r_states = right.unroll(length, mirrored, states[size:], layout, False, valid_length)
        back = reverse_steps(back, valid_length)
        merge = isinstance(there, ARRAYS) if merge_outputs is None else merge_outputs
        there, back = merge_or_split(length, there, layout, merge), merge_or_split(length, back, layout, merge)
        if merge:
            outputs = F.concat(there, back, dim=2, name=self._output_prefix + "out")
        else:
            pairs = enumerate(zip(there, back, strict=True))
            outputs = [F.concat(a, b, dim=1, name=f"{self._output_prefix}t{i}") for i, (a, b) in pairs]
        outputs = with_class_of(steps, outputs)
        if valid_length is not None:
            outputs = mask_sequence(length, outputs, layout, valid_length, merge)
        return outputs, l_states + r_states
