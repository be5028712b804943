"""Symbolic cells around cells: sequential, bidirectional, dropout, zoneout, residual; `FusedRNNCell`, one operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .. import initializer
from ..core.errors import ArgumentError, ArgumentTypeError
from ..namespace import nd, sym
from ..symbol import Symbol
from .cell import BaseRNNCell, GRUCell, LSTMCell, RNNCell, RNNParams, sequence


class CellGroup(BaseRNNCell):
    """Base of cells made of several cells."""

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
        """Raise: the reversed direction needs the complete sequence."""
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
        """Drop out a complete sequence at once if it is merged; see `BaseRNNCell.unroll`."""
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


_GATES = {
    "rnn_relu": ("",),
    "rnn_tanh": ("",),
    "lstm": ("_i", "_f", "_c", "_o"),
    "gru": ("_r", "_z", "_o"),
}


class FusedRNNCell(BaseRNNCell):
    """Recurrent layers over a sequence as one `RNN` operator, with one flat parameter vector.

    Args:
        num_hidden: size of output and states in one direction.
        num_layers: number of layers.
        mode: `"rnn_relu"`, `"rnn_tanh"`, `"lstm"` or `"gru"`.
        bidirectional: run in both directions and join the outputs.
        dropout: probability of dropping outputs of all layers but the last while training.
        get_next_state: return the states after the last step from `unroll`.
        forget_bias: initial bias of the forget gates.
        prefix: of the names, `mode + "_"` by default.
        params: see `BaseRNNCell`.

    Raises:
        ArgumentError: an unknown mode.
    """

    def __init__(
        self,
        num_hidden: int,
        num_layers: int = 1,
        mode: str = "lstm",
        bidirectional: bool = False,
        dropout: float = 0.0,
        get_next_state: bool = False,
        forget_bias: float = 1.0,
        prefix: str | None = None,
        params: RNNParams | None = None,
    ):
        if mode not in _GATES:
            raise ArgumentError(f"FusedRNNCell: mode={mode!r}: expected one of {', '.join(_GATES)}")
        super().__init__(prefix=f"{mode}_" if prefix is None else prefix, params=params)
        self._num_hidden, self._num_layers = num_hidden, num_layers
        self._mode: Any = mode
        self._gate_names = _GATES[mode]
        self._bidirectional, self._dropout, self._get_next_state = bidirectional, dropout, get_next_state
        self._directions = ["l", "r"] if bidirectional else ["l"]
        self._forget_bias = forget_bias
        init = initializer.FusedRNN(None, num_hidden, num_layers, mode, bidirectional, forget_bias)
        self._parameter = self.params.get("parameters", init=init)
        self._vector = str(self._parameter.name)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of h and, for lstm, of c."""
        shape = (len(self._directions) * self._num_layers, 0, self._num_hidden)
        return [{"shape": shape, "__layout__": "LNC"} for _ in range(1 + (self._mode == "lstm"))]

    def _parts(self, input_size: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Name and shape of each gate's weight and bias in their order in the vector."""
        h = self._num_hidden
        for kind in ("weight", "bias"):
            for layer in range(self._num_layers):
                width = input_size if layer == 0 else h * len(self._directions)
                for direction in self._directions:
                    for group, columns in (("i2h", width), ("h2h", h)):
                        for gate in self._gate_names:
                            name = f"{self._prefix}{direction}{layer}_{group}{gate}_{kind}"
                            yield name, ((h, columns) if kind == "weight" else (h,))

    def unpack_weights(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return `args` with the vector replaced by one array for each gate, layer and direction.

        Raises:
            ArgumentError: the vector's size does not fit.
        """
        args = dict(args)
        vector = args.pop(self._vector)
        h, ways = self._num_hidden, len(self._directions)
        upper = (self._num_layers - 1) * (ways * h + h + 2)
        width, rest = divmod(vector.size, ways * self._num_gates * h)
        input_size = width - upper - h - 2
        if rest or input_size < 1:
            raise ArgumentError(f"unpack_weights: {vector.size} values do not fit {self._num_layers} layers of {h}")
        at = 0
        for name, shape in self._parts(input_size):
            size = shape[0] * (shape[1] if len(shape) > 1 else 1)
            args[name] = vector[at : at + size].reshape(shape).copy()
            at += size
        return args

    def pack_weights(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Undo `unpack_weights`."""
        args = dict(args)
        first = args[f"{self._prefix}l0_i2h{self._gate_names[0]}_weight"]
        parts = [args.pop(name).reshape((-1,)) for name, _ in self._parts(first.shape[1])]
        args[self._vector] = nd.concatenate(parts)
        return args

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Raise: the operator runs complete sequences."""
        raise NotImplementedError("FusedRNNCell cannot be stepped; use unroll()")

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Any, Any]:
        """Run over a sequence; the states are empty without `get_next_state`; see `BaseRNNCell.unroll`."""
        self.reset()
        merged = sequence(length, inputs, layout, True)
        batch_first = layout.find("T") == 1
        if batch_first:
            merged = sym.swapaxes(merged, dim1=0, dim2=1)
        states = self.begin_state() if begin_state is None else begin_state
        out = sym.RNN(
            merged,
            self._parameter,
            *states,
            state_size=self._num_hidden,
            num_layers=self._num_layers,
            bidirectional=self._bidirectional,
            p=self._dropout,
            state_outputs=self._get_next_state,
            mode=self._mode,
            name=self._prefix + "rnn",
        )
        outputs, last = (out[0], [out[i] for i in range(1, len(states) + 1)]) if self._get_next_state else (out, [])
        if batch_first:
            outputs = sym.swapaxes(outputs, dim1=0, dim2=1)
        return sequence(length, outputs, layout, merge_outputs), last

    def unfuse(self) -> SequentialRNNCell:
        """Return cells that compute the same step by step; weights go over by `unpack_weights` and `pack_weights`."""
        stack = SequentialRNNCell()

        def cell(prefix: str) -> BaseRNNCell:
            if self._mode == "lstm":
                return LSTMCell(self._num_hidden, prefix=prefix, forget_bias=self._forget_bias)
            if self._mode == "gru":
                return GRUCell(self._num_hidden, prefix=prefix)
            return RNNCell(self._num_hidden, activation=self._mode.removeprefix("rnn_"), prefix=prefix)

        for layer in range(self._num_layers):
            sides = [cell(f"{self._prefix}{d}{layer}_") for d in self._directions]
            if self._bidirectional:
                stack.add(BidirectionalCell(sides[0], sides[1], output_prefix=f"{self._prefix}bi_l{layer}_"))
            else:
                stack.add(sides[0])
            if self._dropout > 0 and layer != self._num_layers - 1:
                stack.add(DropoutCell(self._dropout, prefix=f"{self._prefix}_dropout{layer}_"))
        return stack


__all__ = [
    "BidirectionalCell", "DropoutCell", "FusedRNNCell", "ModifierCell", "ResidualCell", "SequentialRNNCell",
    "ZoneoutCell",
]  # fmt: skip
