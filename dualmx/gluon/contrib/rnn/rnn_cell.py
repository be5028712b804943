"""`VariationalDropoutCell`, `LSTMPCell`, and `dynamic_unroll` as one loop of the graph."""

from __future__ import annotations

from typing import Any

from ....core.errors import ArgumentError, ArgumentTypeError
from ...parameter import ParameterDict
from ...rnn import BidirectionalCell, HybridRecurrentCell, ModifierCell, SequentialRNNCell
from ...rnn.cell import states_or_begin
from ...rnn.unroll import ARRAYS, functions_for, mask_sequence, merge_or_split, merge_steps, split_steps


class VariationalDropoutCell(ModifierCell):
    """Drop out with masks that stay the same over all steps of a sequence.

    Args:
        base_cell: cell to wrap.
        drop_inputs: probability of dropping elements of the input.
        drop_states: probability of dropping elements of the first state, as the step reads it.
        drop_outputs: probability of dropping elements of the output.

    Raises:
        ArgumentTypeError: `drop_states` with a cell whose state is not the first one.

    Reference: Gal & Ghahramani 2016. Call `reset()` before unrolling by hand anew, to draw new masks.
    """

    def __init__(self, base_cell: Any, drop_inputs: float = 0.0, drop_states: float = 0.0, drop_outputs: float = 0.0):
        if drop_states and isinstance(base_cell, (BidirectionalCell, SequentialRNNCell)):
            raise ArgumentTypeError(
                f"VariationalDropoutCell: drop_states={drop_states} with a {type(base_cell).__name__}: put a "
                "VariationalDropoutCell around the cells inside it"
            )
        super().__init__(base_cell)
        self.drop_inputs, self.drop_states, self.drop_outputs = drop_inputs, drop_states, drop_outputs
        self._masks: dict[str, Any] = {}

    def _alias(self) -> str:
        return "vardrop"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p_out = {self.drop_outputs}, p_state = {self.drop_states})"

    def reset(self) -> None:
        """Forget the masks too."""
        super().reset()
        self._masks = {}

    def _mask(self, F: Any, what: str, p: float, like: Any) -> Any:
        if what not in self._masks:
            self._masks[what] = F.Dropout(F.ones_like(like), p=p)
        return self._masks[what]

    @property
    def drop_inputs_mask(self) -> Any:
        """What steps multiply their input by, `None` before the first step."""
        return self._masks.get("input")

    @property
    def drop_states_mask(self) -> Any:
        """What steps multiply the first state by, `None` before the first step."""
        return self._masks.get("state")

    @property
    def drop_outputs_mask(self) -> Any:
        """What steps multiply their output by, `None` before the first step."""
        return self._masks.get("output")

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """Take one step."""
        states = list(states)
        if self.drop_states:
            states[0] = states[0] * self._mask(F, "state", self.drop_states, states[0])
        if self.drop_inputs:
            inputs = inputs * self._mask(F, "input", self.drop_inputs, inputs)
        output, states = self.base_cell(inputs, states)
        if self.drop_outputs:
            output = output * self._mask(F, "output", self.drop_outputs, output)
        return output, states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list[Any]]:
        """Run the cell over a sequence; see `RecurrentCell.unroll`. Without `drop_states` it drops out in one go."""
        if self.drop_states:
            return super().unroll(length, inputs, begin_state, layout, merge_outputs, valid_length)
        self.reset()
        merged = merge_steps(split_steps(length, inputs, layout) if isinstance(inputs, list) else inputs, layout)
        axis, F = layout.index("T"), functions_for(merged)
        states = states_or_begin(self, begin_state, split_steps(length, merged, layout))
        if self.drop_inputs:
            merged = F.Dropout(merged, p=self.drop_inputs, axes=(axis,))
        self.base_cell._modified = False
        try:
            outputs, states = self.base_cell.unroll(length, merged, states, layout, True, valid_length)
        finally:
            self.base_cell._modified = True
        if self.drop_outputs:
            outputs = F.Dropout(outputs, p=self.drop_outputs, axes=(axis,))
        return merge_or_split(length, outputs, layout, merge_outputs), states


class LSTMPCell(HybridRecurrentCell):
    """LSTM whose output is projected: h' = P (σ(o) tanh(c')); see `LSTMCell` for the rest.

    Args:
        hidden_size: size of the state c.
        projection_size: size of output and state h.
        i2h_weight_initializer, h2h_weight_initializer, h2r_weight_initializer, i2h_bias_initializer,
            h2h_bias_initializer: initializers.
        input_size: size of the input; found at the first step if 0.
        prefix, params: see `Block`.

    Shapes: input (N, input_size); states (N, projection_size) and (N, hidden_size).

    Reference: Sak et al. 2014.
    """

    def __init__(
        self,
        hidden_size: int,
        projection_size: int,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        h2r_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: ParameterDict | None = None,
    ):
        super().__init__(prefix=prefix, params=params)
        self._hidden_size, self._input_size, self._projection_size = hidden_size, input_size, projection_size
        rows = 4 * hidden_size

        def get(name: str, shape: tuple[int, ...], init: Any) -> Any:
            return self.params.get(name, shape=shape, init=init, allow_deferred_init=True)

        self.i2h_weight = get("i2h_weight", (rows, input_size), i2h_weight_initializer)
        self.h2h_weight = get("h2h_weight", (rows, projection_size), h2h_weight_initializer)
        self.h2r_weight = get("h2r_weight", (projection_size, hidden_size), h2r_weight_initializer)
        self.i2h_bias = get("i2h_bias", (rows,), i2h_bias_initializer)
        self.h2h_bias = get("h2h_bias", (rows,), h2h_bias_initializer)

    def _alias(self) -> str:
        return "lstmp"

    def _described(self) -> str:
        rows, columns = self.i2h_weight.shape or (0, 0)
        return f"{columns or None} -> {rows} -> {self._projection_size}"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Return shape and layout of h and c."""
        sizes = self._projection_size, self._hidden_size
        return [{"shape": (batch_size, size), "__layout__": "NC"} for size in sizes]

    def hybrid_forward(
        self,
        F: Any,
        inputs: Any,
        states: Any,
        i2h_weight: Any,
        h2h_weight: Any,
        h2r_weight: Any,
        i2h_bias: Any,
        h2h_bias: Any,
    ) -> Any:
        """Take one step."""
        t, rows = f"t{self._counter}_", 4 * self._hidden_size
        i2h = F.FullyConnected(inputs, i2h_weight, i2h_bias, num_hidden=rows, name=t + "i2h")
        h2h = F.FullyConnected(states[0], h2h_weight, h2h_bias, num_hidden=rows, name=t + "h2h")
        gates = F.SliceChannel(i2h + h2h, num_outputs=4, name=t + "slice")
        i = F.Activation(gates[0], act_type="sigmoid", name=t + "i")
        f = F.Activation(gates[1], act_type="sigmoid", name=t + "f")
        g = F.Activation(gates[2], act_type="tanh", name=t + "c")
        o = F.Activation(gates[3], act_type="sigmoid", name=t + "o")
        next_c = F.elemwise_add(f * states[1], i * g, name=t + "state")
        hidden = F.elemwise_mul(o, F.Activation(next_c, act_type="tanh"), name=t + "hidden")
        next_r = F.FullyConnected(hidden, h2r_weight, num_hidden=self._projection_size, no_bias=True, name=t + "out")
        return next_r, [next_r, next_c]


def dynamic_unroll(
    cell: Any,
    inputs: Any,
    begin_state: Any,
    drop_inputs: float = 0,
    drop_outputs: float = 0,
    layout: str = "TNC",
    valid_length: Any = None,
) -> tuple[Any, list[Any]]:
    """Run a cell over a sequence with one `contrib.foreach`, so that the graph does not grow with the length.

    Args:
        cell: recurrent cell.
        inputs: (T, N, C) or (N, T, C) as in `layout`.
        begin_state: list of first states.
        drop_inputs, drop_outputs: probabilities of dropping elements, with one mask for all steps.
        layout: `"TNC"` or `"NTC"`.
        valid_length: (N,) lengths of the samples; outputs behind them are zeros, states are those at the length.

    Returns:
        outputs, merged, and the last states.

    Raises:
        ArgumentError: another layout.
    """
    if layout not in ("TNC", "NTC"):
        raise ArgumentError(f"dynamic_unroll: layout={layout!r}: expected 'TNC' or 'NTC'")
    F, axis = functions_for(inputs), layout.index("T")
    if drop_inputs:
        inputs = F.Dropout(inputs, p=drop_inputs, axes=(axis,))
    if axis == 1:
        inputs = F.swapaxes(inputs, dim1=0, dim2=1)
    count = len(begin_state)
    single = isinstance(begin_state, ARRAYS)
    first = [begin_state] if single else list(begin_state)

    def body(step: Any, states: Any) -> Any:
        output, after = cell(step, states)
        return (output if valid_length is None else [output, *after]), after

    outputs, states = F.contrib.foreach(body, inputs, first)
    if valid_length is not None:
        outputs, *passed = outputs
        states = [
            F.SequenceLast(s, sequence_length=valid_length, use_sequence_length=True, axis=0) for s in passed[:count]
        ]
        outputs = mask_sequence(0, outputs, "TNC", valid_length, True)
    if axis == 1:
        outputs = F.swapaxes(outputs, dim1=0, dim2=1)
    if drop_outputs:
        outputs = F.Dropout(outputs, p=drop_outputs, axes=(axis,))
    return outputs, states


__all__ = ["LSTMPCell", "VariationalDropoutCell", "dynamic_unroll"]
