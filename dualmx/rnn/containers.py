"""Cells over symbols made of other cells: one after another, or in both directions of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.errors import ArgumentError
from ..namespace import sym
from ..symbol import Symbol
from .base import BaseRNNCell, sequence
from .params import RNNParams


class CellGroup(BaseRNNCell):
    """What cells made of several cells share."""

    def __init__(self, params: RNNParams | None):
        super().__init__(prefix="", params=params)
        self._override_cell_params = params is not None

    def _adopt(self, cell: BaseRNNCell) -> None:
        """Share variables: those given to the group with the cell, then the cell's with the group."""
        if self._override_cell_params:
            if not cell._own_params:
                raise ArgumentError("params: give variables to the group or to the cell inside it, not to both")
            cell.params._params.update(self.params._params)
        self.params._params.update(cell.params._params)
        self._cells.append(cell)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of the states of all cells."""
        return [info for cell in self._cells for info in cell.state_info]

    def begin_state(self, **kwargs: Any) -> list[Any]:
        """Return symbols for the first states of all cells."""
        self._check_unmodified()
        return [state for cell in self._cells for state in cell.begin_state(**kwargs)]

    def unpack_weights(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Unpack the weights of all cells."""
        found = dict(args)
        for cell in self._cells:
            found = cell.unpack_weights(found)
        return found

    def pack_weights(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Pack the weights of all cells."""
        found = dict(args)
        for cell in self._cells:
            found = cell.pack_weights(found)
        return found


def _with_states(cells: Sequence[BaseRNNCell], states: Any) -> Iterator[tuple[BaseRNNCell, Any]]:
    """Each cell with its own of the states of all."""
    at = 0
    for cell in cells:
        size = len(cell.state_info)
        yield cell, states[at : at + size]
        at += size


class SequentialRNNCell(CellGroup):
    """Cells one after another; `params` shares variables with all of them.

    Example:
        >>> import dualmx as mx
        >>> cells = mx.rnn.SequentialRNNCell()
        >>> cells.add(mx.rnn.LSTMCell(4, prefix="l0_"))
        >>> cells.add(mx.rnn.GRUCell(3, prefix="l1_"))
        >>> cells.state_shape
        [(0, 4), (0, 4), (0, 3)]
    """

    def __init__(self, params: RNNParams | None = None):
        super().__init__(params)

    def add(self, cell: BaseRNNCell) -> None:
        """Append a cell."""
        self._adopt(cell)

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Return output and new states of one step of every cell."""
        self._counter += 1
        after = []
        for cell, own in _with_states(self._cells, states):
            if isinstance(cell, BidirectionalCell):
                raise NotImplementedError("a BidirectionalCell cannot be stepped; use unroll()")
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
    ) -> tuple[Any, Any]:
        """Unroll one cell after the other; see `BaseRNNCell.unroll`."""
        self.reset()
        states = self.begin_state() if begin_state is None else begin_state
        after, last = [], len(self._cells) - 1
        for k, (cell, own) in enumerate(_with_states(self._cells, states)):
            inputs, new = cell.unroll(length, inputs, own, layout, merge_outputs if k == last else None)
            after += new
        return inputs, after


class BidirectionalCell(CellGroup):
    """Two cells that run through the sequence in both directions; it can only be unrolled.

    Args:
        l_cell, r_cell: cells for the sequence and for the reversed sequence.
        params: variables to share with both.
        output_prefix: of the names of the joined outputs.
    """

    def __init__(
        self, l_cell: BaseRNNCell, r_cell: BaseRNNCell, params: RNNParams | None = None, output_prefix: str = "bi_"
    ):
        super().__init__(params)
        self._output_prefix = output_prefix
        self._adopt(l_cell)
        self._adopt(r_cell)

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Raise: the reversed direction needs the whole sequence."""
        raise NotImplementedError("BidirectionalCell cannot be stepped; use unroll()")

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Any, Any]:
        """Unroll both cells and join their outputs; the states are a list for each; see `BaseRNNCell.unroll`."""
        self.reset()
        steps = sequence(length, inputs, layout, False)
        states = self.begin_state() if begin_state is None else begin_state
        left, right = self._cells
        size = len(left.state_info)
        there, l_states = left.unroll(length, steps, states[:size], layout, merge_outputs)
        back, r_states = right.unroll(length, steps[::-1], states[size:], layout, merge_outputs)
        both = there, back
        merge = all(isinstance(s, Symbol) for s in both) if merge_outputs is None else merge_outputs
        there, back = (sequence(length, s, layout, merge) for s in both)
        if merge:
            mirrored = sym.reverse(back, axis=layout.find("T"))
            outputs = sym.Concat(there, mirrored, dim=2, name=self._output_prefix + "out")
        else:
            pairs = enumerate(zip(there, back[::-1], strict=True))
            outputs = [sym.Concat(a, b, dim=1, name=f"{self._output_prefix}t{i}") for i, (a, b) in pairs]
        return outputs, [l_states, r_states]
