"""`RNNCell`, `LSTMCell` and `GRUCell` over symbols."""

from __future__ import annotations

from typing import Any

from .. import initializer
from ..namespace import sym
from .base import BaseRNNCell
from .params import RNNParams


class GatedCell(BaseRNNCell):
    """Base of the cells with one weight and bias from the input, and one from the last output, for all gates."""

    def __init__(self, num_hidden: int, prefix: str, params: RNNParams | None, i2h_bias: Any = None):
        super().__init__(prefix=prefix, params=params)
        self._num_hidden = num_hidden
        self._iW = self.params.get("i2h_weight")
        self._iB = self.params.get("i2h_bias", **({} if i2h_bias is None else {"init": i2h_bias}))
        self._hW = self.params.get("h2h_weight")
        self._hB = self.params.get("h2h_bias")

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of the state."""
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"}]

    def _step(self) -> str:
        self._counter += 1
        return f"{self._prefix}t{self._counter}_"

    def _products(self, inputs: Any, state: Any, prefix: str) -> tuple[Any, Any]:
        rows = self._num_hidden * len(self._gate_names)
        i2h = sym.FullyConnected(inputs, self._iW, self._iB, num_hidden=rows, name=prefix + "i2h")
        h2h = sym.FullyConnected(state, self._hW, self._hB, num_hidden=rows, name=prefix + "h2h")
        return i2h, h2h


class RNNCell(GatedCell):
    """Elman's cell: h' = activation(W x + b + U h + d).

    Args:
        num_hidden: size of output and state.
        activation: name of an activation, or a function that takes `name`.
        prefix, params: see `BaseRNNCell`.
    """

    def __init__(
        self, num_hidden: int, activation: Any = "tanh", prefix: str = "rnn_", params: RNNParams | None = None
    ):
        super().__init__(num_hidden, prefix, params)
        self._activation = activation

    @property
    def _gate_names(self) -> tuple[str, ...]:
        return ("",)

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Return `(output, [state])` of one step."""
        t = self._step()
        i2h, h2h = self._products(inputs, states[0], t)
        output = self._get_activation(i2h + h2h, self._activation, name=t + "out")
        return output, [output]


class LSTMCell(GatedCell):
    """Long short-term memory; `gluon.rnn.LSTMCell` has the formula.

    Args:
        num_hidden: size of output and of both states.
        prefix, params: see `BaseRNNCell`.
        forget_bias: initial bias of the forget gate, from the input.

    Example:
        >>> import dualmx as mx
        >>> cell = mx.rnn.LSTMCell(8, prefix="lstm_")
        >>> outputs, states = cell.unroll(3, mx.sym.var("data"), merge_outputs=True)
        >>> outputs.infer_shape(data=(2, 3, 5))[1]
        [(2, 3, 8)]
    """

    def __init__(
        self, num_hidden: int, prefix: str = "lstm_", params: RNNParams | None = None, forget_bias: float = 1.0
    ):
        super().__init__(num_hidden, prefix, params, initializer.LSTMBias(forget_bias=forget_bias))

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of h and c."""
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"} for _ in range(2)]

    @property
    def _gate_names(self) -> tuple[str, ...]:
        return ("_i", "_f", "_c", "_o")

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Return `(output, [h, c])` of one step."""
        t = self._step()
        i2h, h2h = self._products(inputs, states[0], t)
        gates = sym.SliceChannel(i2h + h2h, num_outputs=4, name=t + "slice")
        i = sym.Activation(gates[0], act_type="sigmoid", name=t + "i")
        f = sym.Activation(gates[1], act_type="sigmoid", name=t + "f")
        g = sym.Activation(gates[2], act_type="tanh", name=t + "c")
        o = sym.Activation(gates[3], act_type="sigmoid", name=t + "o")
        next_c = sym.elemwise_add(f * states[1], i * g, name=t + "state")
        next_h = sym.elemwise_mul(o, sym.Activation(next_c, act_type="tanh"), name=t + "out")
        return next_h, [next_h, next_c]


class GRUCell(GatedCell):
    """Gated recurrent unit; `gluon.rnn.GRUCell` has the formula.

    Args:
        num_hidden: size of output and state.
        prefix, params: see `BaseRNNCell`.
    """

    def __init__(self, num_hidden: int, prefix: str = "gru_", params: RNNParams | None = None):
        super().__init__(num_hidden, prefix, params)

    @property
    def _gate_names(self) -> tuple[str, ...]:
        return ("_r", "_z", "_o")

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Return `(output, [state])` of one step."""
        t = self._step()
        old = states[0]
        i2h, h2h = self._products(inputs, old, t + "_")
        output = gru_output(i2h, h2h, old, "tanh", t, self._get_activation)
        return output, [output]


def gru_output(i2h: Any, h2h: Any, old: Any, activation: Any, prefix: str, activate: Any, axis: int = 1) -> Any:
    """Combine the gates of a gated recurrent unit, which lie along `axis`."""
    i2h_r, i2h_z, i2h_n = sym.SliceChannel(i2h, num_outputs=3, axis=axis, name=prefix + "_i2h_slice")
    h2h_r, h2h_z, h2h_n = sym.SliceChannel(h2h, num_outputs=3, axis=axis, name=prefix + "_h2h_slice")
    reset = sym.Activation(i2h_r + h2h_r, act_type="sigmoid", name=prefix + "_r_act")
    update = sym.Activation(i2h_z + h2h_z, act_type="sigmoid", name=prefix + "_z_act")
    new = activate(i2h_n + reset * h2h_n, activation, name=prefix + "_h_act")
    return sym.elemwise_add((1.0 - update) * new, update * old, name=prefix + "out")
