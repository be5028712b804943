"""Cells that change what other cells do: dropout, zoneout, residual connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.errors import ArgumentError, ArgumentTypeError
from ...namespace import sym
from ..parameter import ParameterDict
from ..semantics import with_class_of
from .base import HybridRecurrentCell
from .containers import BidirectionalCell
from .sequences import ARRAYS, functions_for, mask_sequence, merge_or_split, merge_steps, split_steps


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
        """Drop out a whole sequence at once if it is merged; see `RecurrentCell.unroll`."""
        self.reset()
        sequence = merge_or_split(length, inputs, layout, merge_outputs)
        if isinstance(sequence, ARRAYS):
            return with_class_of(sequence, self.hybrid_forward(functions_for(sequence), sequence, begin_state or []))
        return super().unroll(length, sequence, begin_state, layout, merge_outputs, valid_length)


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
