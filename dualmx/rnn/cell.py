"""Recurrent cells over symbols: `BaseRNNCell`, its unrolling and weights by gate, `RNNCell`, `LSTMCell`, `GRUCell`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import initializer
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ..namespace import nd, sym
from ..symbol import Symbol


class RNNParams:
    """Makes each variable `prefix + name` once and returns the same one from then on.

    Example:
        >>> params = RNNParams("lstm_")
        >>> params.get("weight") is params.get("weight")
        True
    """

    def __init__(self, prefix: str = ""):
        self._prefix = prefix
        self._params: dict[str, Symbol] = {}

    def get(self, name: str, **kwargs: Any) -> Symbol:
        """Return the variable; `kwargs` go to `sym.var` when it is new."""
        full = self._prefix + name
        if full not in self._params:
            self._params[full] = sym.var(full, **kwargs)
        return self._params[full]


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
    _gate_names: tuple[str, ...] = ()  # what the gates add to the names of the weights, in their order

    def __init__(self, prefix: str = "", params: RNNParams | None = None):
        self._own_params = params is None
        self._prefix = prefix
        self._params = RNNParams(prefix) if params is None else params
        self._modified = False
        self._cells: list[BaseRNNCell] = []
        self.reset()

    def reset(self) -> None:
        """Reset the counters of steps and states, before another unrolling."""
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
        """Shape and layout of each state; 0 is the batch size."""
        raise NotImplementedError(f"{type(self).__name__} must define state_info")

    @property
    def state_shape(self) -> list[tuple[int, ...]]:
        """Shapes of the states."""
        return [info["shape"] for info in self.state_info]

    @property
    def _num_gates(self) -> int:
        return len(self._gate_names)

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
        rows = self._num_hidden * self._num_gates
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

    _gate_names = ("",)

    def __init__(
        self, num_hidden: int, activation: Any = "tanh", prefix: str = "rnn_", params: RNNParams | None = None
    ):
        super().__init__(num_hidden, prefix, params)
        self._activation = activation

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

    _gate_names = ("_i", "_f", "_c", "_o")

    def __init__(
        self, num_hidden: int, prefix: str = "lstm_", params: RNNParams | None = None, forget_bias: float = 1.0
    ):
        super().__init__(num_hidden, prefix, params, initializer.LSTMBias(forget_bias=forget_bias))

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of h and c."""
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"} for _ in range(2)]

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Return `(output, [h, c])` of one step."""
        t = self._step()
        i2h, h2h = self._products(inputs, states[0], t)
        return lstm_output(i2h + h2h, states[1], "tanh", t, self._get_activation)


class GRUCell(GatedCell):
    """Gated recurrent unit; `gluon.rnn.GRUCell` has the formula.

    Args:
        num_hidden: size of output and state.
        prefix, params: see `BaseRNNCell`.
    """

    _gate_names = ("_r", "_z", "_o")

    def __init__(self, num_hidden: int, prefix: str = "gru_", params: RNNParams | None = None):
        super().__init__(num_hidden, prefix, params)

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Return `(output, [state])` of one step."""
        t = self._step()
        old = states[0]
        i2h, h2h = self._products(inputs, old, t + "_")
        output = gru_output(i2h, h2h, old, "tanh", t, self._get_activation)
        return output, [output]


def gru_output(i2h: Any, h2h: Any, old: Any, activation: Any, prefix: str, activate: Any, axis: int = 1) -> Any:
    """Combine the gates of a gated recurrent unit, stacked along `axis`."""
    i2h_r, i2h_z, i2h_n = sym.SliceChannel(i2h, num_outputs=3, axis=axis, name=prefix + "_i2h_slice")
    h2h_r, h2h_z, h2h_n = sym.SliceChannel(h2h, num_outputs=3, axis=axis, name=prefix + "_h2h_slice")
    reset = sym.Activation(i2h_r + h2h_r, act_type="sigmoid", name=prefix + "_r_act")
    update = sym.Activation(i2h_z + h2h_z, act_type="sigmoid", name=prefix + "_z_act")
    new = activate(i2h_n + reset * h2h_n, activation, name=prefix + "_h_act")
    return sym.elemwise_add((1.0 - update) * new, update * old, name=prefix + "out")


def lstm_output(gates: Any, c: Any, activation: Any, prefix: str, activate: Any, **slicing: Any) -> Any:
    """Return `(output, [h, c])` of a long short-term memory from its stacked gates i, f, g, o."""
    i, f, g, o = sym.SliceChannel(gates, num_outputs=4, name=prefix + "slice", **slicing)
    i = sym.Activation(i, act_type="sigmoid", name=prefix + "i")
    f = sym.Activation(f, act_type="sigmoid", name=prefix + "f")
    g = activate(g, activation, name=prefix + "c")
    o = sym.Activation(o, act_type="sigmoid", name=prefix + "o")
    next_c = sym.elemwise_add(f * c, i * g, name=prefix + "state")
    next_h = sym.elemwise_mul(o, activate(next_c, activation), name=prefix + "out")
    return next_h, [next_h, next_c]


__all__ = ["BaseRNNCell", "GRUCell", "LSTMCell", "RNNCell", "RNNParams"]
