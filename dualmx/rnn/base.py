"""`BaseRNNCell`: a recurrent cell over symbols, its unrolling, and its weights gate by gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ..namespace import nd, sym
from ..symbol import Symbol
from .params import RNNParams


def sequence(length: int, inputs: Any, layout: str, merge: bool | None) -> Any:
    """Return `inputs` (a symbol with a time axis, or a list of steps) merged, split, or as they are if `None`.

    Raises:
        ArgumentError: a list of another length, or a layout without T. ArgumentTypeError: nothing given.
    """
    if inputs is None:
        raise ArgumentTypeError("unroll: inputs=None: expected a symbol or a list of symbols, made with mx.sym.var()")
    axis = layout.find("T")
    if axis < 0:
        raise ArgumentError(f"unroll: layout={layout!r}: expected 'NTC' or 'TNC'")
    if isinstance(inputs, Symbol):
        if merge is not False:
            return inputs
        if len(inputs.list_outputs()) != 1:
            raise ArgumentError("unroll: inputs is a group of symbols: expected one symbol, or a list")
        return list(sym.split(inputs, axis=axis, num_outputs=length, squeeze_axis=True))
    if len(inputs) != length:
        raise ArgumentError(f"unroll: {len(inputs)} steps in inputs: expected length={length}")
    if merge:
        return sym.Concat(*(sym.expand_dims(i, axis=axis) for i in inputs), dim=axis)
    return list(inputs)


class BaseRNNCell:
    """Base of the cells over symbols: called with an input and states, a cell returns an output and new states.

    Args:
        prefix: of the names of its symbols.
        params: variables to share with other cells; own ones if `None`.
    """

    _num_hidden: int

    def __init__(self, prefix: str = "", params: RNNParams | None = None):
        self._own_params = params is None
        self._prefix = prefix
        self._params = RNNParams(prefix) if params is None else params
        self._modified = False
        self._cells: list[BaseRNNCell] = []
        self.reset()

    def reset(self) -> None:
        """Count steps and states anew, before another unrolling."""
        self._init_counter = -1
        self._counter = -1
        for cell in self._cells:
            cell.reset()

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Return `(output, new states)` of one step; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define __call__()")

    @property
    def params(self) -> RNNParams:
        """The variables of this cell."""
        self._own_params = False
        return self._params

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of each state; 0 stands for the batch size."""
        raise NotImplementedError(f"{type(self).__name__} must define state_info")

    @property
    def state_shape(self) -> list[tuple[int, ...]]:
        """Shapes of the states."""
        return [info["shape"] for info in self.state_info]

    @property
    def _gate_names(self) -> tuple[str, ...]:
        return ()

    def _check_unmodified(self) -> None:
        if self._modified:
            raise MXNetError("a modifier (such as a ZoneoutCell) holds this cell; call the modifier instead")

    def begin_state(self, func: Callable[..., Any] = sym.zeros, **kwargs: Any) -> list[Any]:
        """Return symbols for the states of the first step.

        Args:
            func: makes one from `name`, `shape` and `kwargs`: `sym.zeros`, `sym.var`, ...

        Raises:
            MXNetError: the cell is wrapped in a modifier cell.
        """
        self._check_unmodified()
        states = []
        for info in self.state_info:
            self._init_counter += 1
            states.append(func(name=f"{self._prefix}begin_state_{self._init_counter}", **{**info, **kwargs}))
        return states

    def unpack_weights(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return `args` with this cell's arrays replaced by one array for each gate."""
        args = dict(args)
        h = self._num_hidden if self._gate_names else 0
        for group in ("i2h", "h2h") if self._gate_names else ():
            packed = {kind: args.pop(f"{self._prefix}{group}_{kind}") for kind in ("weight", "bias")}
            for j, gate in enumerate(self._gate_names):
                for kind, array in packed.items():
                    args[f"{self._prefix}{group}{gate}_{kind}"] = array[j * h : (j + 1) * h].copy()
        return args

    def pack_weights(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Undo `unpack_weights`."""
        args = dict(args)
        for group in ("i2h", "h2h") if self._gate_names else ():
            for kind in ("weight", "bias"):
                parts = [args.pop(f"{self._prefix}{group}{gate}_{kind}") for gate in self._gate_names]
                args[f"{self._prefix}{group}_{kind}"] = nd.concatenate(parts)
        return args

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Any, Any]:
        """Apply the cell to a sequence.

        Args:
            length: number of steps.
            inputs: one symbol with a time axis as in `layout`, or a list of `length` symbols (N, ...).
            begin_state: states for the first step, zeros by default.
            layout: `"NTC"` or `"TNC"`.
            merge_outputs: return one symbol if true, a list if false, what comes naturally if `None`.

        Returns:
            outputs and the states after the last step.

        Raises:
            ArgumentError: the inputs do not have `length` steps.
        """
        self.reset()
        states = None
        outputs = []
        for step in sequence(length, inputs, layout, False):
            if states is None:
                states = self.begin_state() if begin_state is None else begin_state
            output, states = self(step, states)
            outputs.append(output)
        return sequence(length, outputs, layout, merge_outputs), states

    def _get_activation(self, inputs: Any, activation: Any, **kwargs: Any) -> Any:
        if isinstance(activation, str):
            named: Any = activation
            return sym.Activation(inputs, act_type=named, **kwargs)
        return activation(inputs, **kwargs)
