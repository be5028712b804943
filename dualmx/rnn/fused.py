"""`FusedRNNCell`: all layers and steps as one operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .. import initializer
from ..core.errors import ArgumentError
from ..namespace import nd, sym
from .base import BaseRNNCell, sequence
from .cells import GRUCell, LSTMCell, RNNCell
from .containers import BidirectionalCell, SequentialRNNCell
from .modifiers import DropoutCell
from .params import RNNParams

_GATES = {
    "rnn_relu": ("",),
    "rnn_tanh": ("",),
    "lstm": ("_i", "_f", "_c", "_o"),
    "gru": ("_r", "_z", "_o"),
}


class FusedRNNCell(BaseRNNCell):
    """Recurrent layers over a whole sequence as one `RNN` operator, with one flat parameter vector.

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

    @property
    def _gate_names(self) -> tuple[str, ...]:
        return _GATES[self._mode]

    @property
    def _num_gates(self) -> int:
        return len(self._gate_names)

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
        """Raise: the operator runs whole sequences."""
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
