"""Cells over symbols that change what other cells do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..core.errors import ArgumentTypeError
from ..namespace import sym
from ..symbol import Symbol
from .base import BaseRNNCell, sequence
from .containers import BidirectionalCell
from .params import RNNParams


class DropoutCell(BaseRNNCell):
    """Drop out the input while training; it has no state.

    Args:
        dropout: fraction that is dropped, from 0 to 1.
        prefix, params: see `BaseRNNCell`.

    Raises:
        ArgumentTypeError: `dropout` is no number.
    """

    def __init__(self, dropout: float, prefix: str = "dropout_", params: RNNParams | None = None):
        super().__init__(prefix, params)
        if not isinstance(dropout, (int, float)):
            raise ArgumentTypeError(f"DropoutCell: dropout={dropout!r}: expected a number from 0 to 1")
        self.dropout = dropout

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Nothing: there is no state."""
        return []

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Return `(output, states)`."""
        return (sym.Dropout(inputs, p=self.dropout) if self.dropout > 0 else inputs), states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Any, Any]:
        """Drop out a whole sequence at once if it is merged; see `BaseRNNCell.unroll`."""
        self.reset()
        given = sequence(length, inputs, layout, merge_outputs)
        if isinstance(given, Symbol):
            return self(given, [])
        return super().unroll(length, given, begin_state, layout, merge_outputs)


class ModifierCell(BaseRNNCell):
    """Base of cells that wrap one other cell and share its variables; the wrapped cell is no longer called itself."""

    def __init__(self, base_cell: BaseRNNCell):
        base_cell._modified = True
        super().__init__()
        self.base_cell = base_cell

    @property
    def params(self) -> RNNParams:
        """Variables of the wrapped cell."""
        self._own_params = False
        return self.base_cell.params

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """States of the wrapped cell."""
        return self.base_cell.state_info

    def begin_state(self, init_sym: Callable[..., Any] = sym.zeros, **kwargs: Any) -> list[Any]:
        """Return symbols for the wrapped cell's first states."""
        self._check_unmodified()
        self.base_cell._modified = False
        try:
            return self.base_cell.begin_state(func=init_sym, **kwargs)
        finally:
            self.base_cell._modified = True

    def unpack_weights(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Unpack the wrapped cell's weights."""
        return self.base_cell.unpack_weights(args)

    def pack_weights(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Pack the wrapped cell's weights."""
        return self.base_cell.pack_weights(args)

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Return output and states of one step; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define __call__()")


class ZoneoutCell(ModifierCell):
    """Keep, with some probability and while training, elements of the last output and states instead of new ones.

    Args:
        base_cell: cell to wrap, which can be stepped.
        zoneout_outputs, zoneout_states: probabilities.

    Raises:
        ArgumentTypeError: the cell cannot be stepped.
    """

    def __init__(self, base_cell: BaseRNNCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0):
        from .fused import FusedRNNCell

        if isinstance(base_cell, (FusedRNNCell, BidirectionalCell)):
            raise ArgumentTypeError(
                f"ZoneoutCell: a {type(base_cell).__name__} cannot be stepped; unfuse() it, or put a ZoneoutCell "
                "around the cells inside it"
            )
        super().__init__(base_cell)
        self.zoneout_outputs, self.zoneout_states = zoneout_outputs, zoneout_states
        self.prev_output: Any = None

    def reset(self) -> None:
        """Forget the last output too."""
        super().reset()
        self.prev_output = None

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Return output and states of one step."""
        output, after = self.base_cell(inputs, states)

        def chosen(p: float, new: Any, old: Any) -> Any:
            mask = sym.Dropout(sym.ones_like(new), p=p)
            return sym.where(mask, new, sym.zeros((0, 0)) if old is None else old)

        if self.zoneout_outputs:
            output = chosen(self.zoneout_outputs, output, self.prev_output)
        if self.zoneout_states:
            after = [chosen(self.zoneout_states, n, o) for n, o in zip(after, states, strict=True)]
        self.prev_output = output
        return output, after


class ResidualCell(ModifierCell):
    """Add the input to the wrapped cell's output, which must be of the same size."""

    def __init__(self, base_cell: BaseRNNCell):
        super().__init__(base_cell)

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Return output and states of one step."""
        output, states = self.base_cell(inputs, states)
        return sym.elemwise_add(output, inputs, name=f"{output.name}_plus_residual"), states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Any, Any]:
        """Unroll the wrapped cell, then add the inputs; see `BaseRNNCell.unroll`."""
        self.reset()
        self.base_cell._modified = False
        try:
            outputs, states = self.base_cell.unroll(length, inputs, begin_state, layout, merge_outputs)
        finally:
            self.base_cell._modified = True
        merge = isinstance(outputs, Symbol) if merge_outputs is None else merge_outputs
        outputs, added = (sequence(length, s, layout, merge) for s in (outputs, inputs))
        if merge:
            return sym.elemwise_add(outputs, added, name=f"{outputs.name}_plus_residual"), states
        pairs = zip(outputs, added, strict=True)
        return [sym.elemwise_add(o, i, name=f"{o.name}_plus_residual") for o, i in pairs], states
