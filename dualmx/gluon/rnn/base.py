"""`RecurrentCell`: one step of a recurrent network, and its unrolling over a sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.errors import MXNetError
from ...namespace import nd
from ..base import Block
from ..hybrid import HybridBlock
from ..parameter import ParameterDict
from .sequences import functions_for, last_states, mask_sequence, merge_or_split, split_steps
from .states import make_state, states_or_begin


class RecurrentCell(Block):
    """Base of recurrent cells: called with an input and a list of states, a cell returns an output and new states.

    A subclass defines `state_info` and `forward` (or, as a `HybridRecurrentCell`, `hybrid_forward`).

    Args:
        prefix: of the names of parameters; counted from the class name if `None`.
        params: parameters to share instead of creating new ones.
    """

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None):
        super().__init__(prefix=prefix, params=params)
        self._modified = False
        self.reset()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._described()})"

    def _described(self) -> str:
        return ""

    def reset(self) -> None:
        """Forget what was counted and kept from step to step; do so before unrolling by hand anew."""
        self._init_counter = -1
        self._counter = -1
        for cell in self._children.values():
            if isinstance(cell, RecurrentCell):
                cell.reset()

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Return shape and layout of each state; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define state_info()")

    def _check_unmodified(self) -> None:
        if self._modified:
            raise MXNetError(
                f"{self.name}: a modifier (such as a ZoneoutCell) holds this cell; call the modifier instead"
            )

    def begin_state(self, batch_size: int = 0, func: Callable[..., Any] = nd.zeros, **kwargs: Any) -> list[Any]:
        """Return the states for the first step.

        Args:
            batch_size: number of samples; only symbols can leave it open (0).
            func: makes a state from `shape` and further keywords, such as `nd.ones` or `sym.zeros`.
            kwargs: further keywords for `func`, such as `ctx` and `dtype`.

        Raises:
            MXNetError: the cell is wrapped in a modifier cell.
        """
        self._check_unmodified()
        states = []
        for info in self.state_info(batch_size):
            self._init_counter += 1
            name = f"{self._prefix}begin_state_{self._init_counter}"
            states.append(make_state(func, name, {**info, **kwargs}))
        return states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list[Any]]:
        """Run the cell over a sequence.

        Args:
            length: number of steps.
            inputs: one array with a time axis as in `layout`, or a list of `length` arrays (N, ...).
            begin_state: states for the first step, zeros by default.
            layout: order of the axes of merged inputs and outputs; T is time, N is the batch.
            merge_outputs: return one array if true, a list of steps if false, what comes naturally if `None`.
            valid_length: (N,) lengths of the samples; outputs behind them are zeros, states are those at the length.

        Returns:
            outputs and the states after the last step.

        Raises:
            ArgumentError: the inputs do not have `length` steps, or an unknown layout.
        """
        self.reset()
        steps = split_steps(length, inputs, layout)
        F = functions_for(steps)
        states = states_or_begin(self, begin_state, steps)
        outputs, passed = [], []
        for step in steps:
            output, states = self(step, states)
            outputs.append(output)
            passed.append(states)
        if valid_length is None:
            return merge_or_split(length, outputs, layout, merge_outputs), states
        states = last_states(F, passed, valid_length)
        return mask_sequence(length, outputs, layout, valid_length, merge_outputs is not False), states

    def _activate(self, F: Any, inputs: Any, activation: Any, **kwargs: Any) -> Any:
        """Apply an activation given by name, by its block, or by a function that takes `name`."""
        if activation in ("tanh", "sigmoid", "relu", "softsign"):
            return getattr(F, activation)(inputs, **kwargs)
        if isinstance(activation, str):
            return F.Activation(inputs, act_type=activation, **kwargs)
        return activation(inputs) if isinstance(activation, Block) else activation(inputs, **kwargs)

    def forward(self, inputs: Any, states: Any) -> Any:
        """Take one step; returns output and new states.

        Shapes: inputs (N, C); states as in `state_info`; output (N, hidden).
        """
        self._counter += 1
        return super().forward(inputs, states)


class HybridRecurrentCell(RecurrentCell, HybridBlock):
    """A recurrent cell whose `hybrid_forward(F, inputs, states, **params)` works on arrays and on symbols."""

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None):
        super().__init__(prefix=prefix, params=params)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Take one step; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define hybrid_forward()")
