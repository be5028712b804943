"""Cells around cells: sequential, bidirectional, dropout, zoneout, residual."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...core.errors import ArgumentError, ArgumentTypeError
from ...namespace import sym
from ..base_block import Block
from ..parameter import ParameterDict
from ..pytree import with_class_of
from .cell import HybridRecurrentCell, RecurrentCell, states_or_begin
from .unroll import ARRAYS, functions_for, mask_sequence, merge_or_split, merge_steps, reverse_steps, split_steps


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


class _SequentialBase(RecurrentCell):
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


class SequentialRNNCell(_SequentialBase):
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


class HybridSequentialRNNCell(_SequentialBase, HybridRecurrentCell):
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
        """Raise: the reversed direction needs the complete sequence."""
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


class DropoutCell(HybridRecurrentCell):
    """Drop out the input while training; it has no state and serves between the cells of a sequence.

    Args:
        rate: fraction that is dropped, from 0 to 1.
        axes: axes along which the same mask is used.
        prefix, params: see `Block`.

    Raises:
        ArgumentTypeError: `rate` is no number.
    """

    def __init__(self, rate: float, axes: Any = (), prefix: str | None = None, params: ParameterDict | None = None):
        super().__init__(prefix, params)
        if isinstance(rate, bool) or not isinstance(rate, (int, float)):
            raise ArgumentTypeError(f"DropoutCell: rate={rate!r}: expected a number from 0 to 1")
        if not 0 <= rate <= 1:
            raise ArgumentError(f"DropoutCell: rate={rate}: expected a number from 0 to 1")
        self._rate, self._axes = rate, axes

    def _alias(self) -> str:
        return "dropout"

    def _described(self) -> str:
        return f"rate={self._rate}, axes={self._axes}"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Return nothing: there is no state."""
        return []

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """Drop out."""
        if self._rate > 0:
            inputs = F.Dropout(inputs, p=self._rate, axes=self._axes, name=f"t{self._counter}_fwd")
        return inputs, states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list[Any]]:
        """Drop out all of a sequence, at once if it is merged, whatever `valid_length`; see `RecurrentCell.unroll`."""
        self.reset()
        sequence = merge_or_split(length, inputs, layout, merge_outputs)
        if isinstance(sequence, ARRAYS):
            return with_class_of(sequence, self.hybrid_forward(functions_for(sequence), sequence, begin_state or []))
        return super().unroll(length, sequence, begin_state, layout, merge_outputs)


class ModifierCell(HybridRecurrentCell):
    """Base of cells that wrap one other cell and share its parameters; the wrapped cell is no longer called itself."""

    def __init__(self, base_cell: Any):
        base_cell._modified = True
        super().__init__(prefix=base_cell.prefix + self._alias(), params=None)
        self.base_cell = base_cell

    def _described(self) -> str:
        return repr(self.base_cell)

    @property
    def params(self) -> ParameterDict:
        """Parameters of the wrapped cell."""
        return self.base_cell.params

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Return the states of the wrapped cell."""
        return self.base_cell.state_info(batch_size)

    def begin_state(self, func: Callable[..., Any] = sym.zeros, **kwargs: Any) -> list[Any]:
        """Return the wrapped cell's first states: symbols by default, arrays with `func=nd.zeros, batch_size=...`."""
        self._check_unmodified()
        self.base_cell._modified = False
        try:
            return self.base_cell.begin_state(func=func, **kwargs)
        finally:
            self.base_cell._modified = True

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """Take one step; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define hybrid_forward()")


class ZoneoutCell(ModifierCell):
    """Keep, with some probability and while training, elements of the last output and states instead of new ones.

    Args:
        base_cell: cell to wrap.
        zoneout_outputs, zoneout_states: probabilities.

    Raises:
        ArgumentTypeError: `base_cell` cannot be stepped.

    Reference: Krueger et al. 2016, Zoneout. Without training, nothing is kept.
    """

    def __init__(self, base_cell: Any, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0):
        if isinstance(base_cell, BidirectionalCell):
            raise ArgumentTypeError(
                "ZoneoutCell: a BidirectionalCell cannot be stepped; put a ZoneoutCell around the cells inside it"
            )
        super().__init__(base_cell)
        self.zoneout_outputs, self.zoneout_states = zoneout_outputs, zoneout_states
        self._prev_output: Any = None

    def _alias(self) -> str:
        return "zoneout"

    def _described(self) -> str:
        return f"p_out={self.zoneout_outputs}, p_state={self.zoneout_states}, {self.base_cell!r}"

    def reset(self) -> None:
        """Forget the last output too."""
        super().reset()
        self._prev_output = None

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """Take one step."""
        output, new_states = self.base_cell(inputs, states)

        def chosen(p: float, new: Any, old: Any) -> Any:
            return F.where(F.Dropout(F.ones_like(new), p=p), new, F.zeros_like(new) if old is None else old)

        if self.zoneout_outputs:
            output = chosen(self.zoneout_outputs, output, self._prev_output)
        if self.zoneout_states:
            new_states = [chosen(self.zoneout_states, n, o) for n, o in zip(new_states, states, strict=True)]
        self._prev_output = output
        return output, new_states


class ResidualCell(ModifierCell):
    """Add the input to the wrapped cell's output, which must be of the same size.

    Reference: Wu et al. 2016, Google's neural machine translation system.
    """

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """Take one step."""
        output, states = self.base_cell(inputs, states)
        return F.elemwise_add(output, inputs, name=f"t{self._counter}_fwd"), states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list[Any]]:
        """Unroll the wrapped cell, then add the inputs; see `RecurrentCell.unroll`."""
        self.reset()
        self.base_cell._modified = False
        try:
            outputs, states = self.base_cell.unroll(length, inputs, begin_state, layout, merge_outputs, valid_length)
        finally:
            self.base_cell._modified = True
        merge = isinstance(outputs, ARRAYS)
        F = functions_for(outputs)
        added = merge_steps(inputs, layout) if merge else split_steps(length, inputs, layout)
        if valid_length is not None:
            added = mask_sequence(length, added, layout, valid_length, merge)
        if merge:
            return with_class_of(outputs, F.elemwise_add(outputs, added)), states
        return with_class_of(outputs, [F.elemwise_add(o, i) for o, i in zip(outputs, added, strict=True)]), states


__all__ = [
    "BidirectionalCell", "DropoutCell", "HybridSequentialRNNCell", "ModifierCell", "ResidualCell", "SequentialRNNCell",
    "ZoneoutCell",
]  # fmt: skip
