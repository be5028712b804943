"""Recurrent cells: `RecurrentCell`, its initial states and unrolling, `RNNCell`, `LSTMCell`, `GRUCell`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...core.errors import ArgumentError, MXNetError
from ...namespace import nd, sym
from ..base_block import Block
from ..hybrid import HybridBlock
from ..parameter import Parameter, ParameterDict
from ..pytree import with_default_class
from .unroll import functions_for, last_states, mask_sequence, merge_or_split, split_steps


def make_state(func: Callable[..., Any], name: str, info: dict[str, Any]) -> Any:
    """Call `func(name=name, **info)`, leaving out a name and a layout that the function does not take."""
    try:
        takes = inspect.signature(func).parameters
    except (TypeError, ValueError):
        takes = {}
    optional = {"name": name, "__layout__": info.get("__layout__")}
    open_ended = not takes or any(p.kind is p.VAR_KEYWORD for p in takes.values())
    given = {k: v for k, v in info.items() if k not in optional}
    return with_default_class(
        func(**given, **{k: v for k, v in optional.items() if v is not None and (open_ended or k in takes)})
    )


def states_or_begin(cell: Any, begin_state: Any, steps: list[Any], **kwargs: Any) -> Any:
    """Return `begin_state`, or zeros that fit the first of `steps`."""
    if begin_state is not None:
        return begin_state
    if functions_for(steps) is sym:
        return cell.begin_state(func=sym.zeros, batch_size=0, **kwargs)
    first = steps[0]
    return cell.begin_state(func=nd.zeros, batch_size=first.shape[0], ctx=first.context, dtype=first.dtype, **kwargs)


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
        """Reset the step counter and kept values; call it before unrolling by hand again."""
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
        """Apply an activation from its name, its block, or a function that takes `name`."""
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


class GatedCell(HybridRecurrentCell):
    """Base of cells with one weight and bias from the input and one from the last output, for all gates together."""

    _gates = 1
    i2h_weight: Parameter
    h2h_weight: Parameter

    def __init__(
        self,
        hidden_size: int,
        initializers: tuple[Any, Any, Any, Any],
        input_size: int,
        prefix: str | None,
        params: ParameterDict | None,
    ):
        super().__init__(prefix=prefix, params=params)
        if hidden_size <= 0:
            raise ArgumentError(f"{type(self).__name__}: hidden_size={hidden_size}: expected a positive number")
        self._hidden_size = hidden_size
        self._input_size = input_size
        rows = self._gates * hidden_size
        shapes = {
            "i2h_weight": (rows, input_size),
            "h2h_weight": (rows, hidden_size),
            "i2h_bias": (rows,),
            "h2h_bias": (rows,),
        }
        for (name, shape), init in zip(shapes.items(), initializers, strict=True):
            setattr(self, name, self.params.get(name, shape=shape, init=init, allow_deferred_init=True))

    def _described(self) -> str:
        rows, columns = self.i2h_weight.shape or (0, 0)
        return f"{columns or None} -> {rows}"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Return shape and layout of the state."""
        return [{"shape": (batch_size, self._hidden_size), "__layout__": "NC"}]

    def _products(self, F: Any, prefix: str, inputs: Any, state: Any, **weights: Any) -> tuple[Any, Any]:
        """The gates' shares of the input and of the last output, each (N, gates * hidden)."""
        rows = self._gates * self._hidden_size
        i2h = F.FullyConnected(inputs, weights["i2h_weight"], weights["i2h_bias"], num_hidden=rows, name=prefix + "i2h")
        h2h = F.FullyConnected(state, weights["h2h_weight"], weights["h2h_bias"], num_hidden=rows, name=prefix + "h2h")
        return i2h, h2h


class RNNCell(GatedCell):
    """Elman's cell: h' = activation(W x + b + U h + d).

    Args:
        hidden_size: size of output and state.
        activation: `"tanh"`, `"relu"`, `"sigmoid"`, `"softsign"`, or a function that takes `name`.
        i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer: initializers.
        input_size: size of the input; found at the first step if 0.
        prefix, params: see `Block`.

    Shapes: input (N, input_size); state and output (N, hidden_size).

    Example:
        >>> import dualmx as mx
        >>> cell = mx.gluon.rnn.RNNCell(4)
        >>> cell.initialize()
        >>> outputs, states = cell.unroll(3, mx.nd.ones((2, 3, 5)), merge_outputs=True)
        >>> outputs.shape, states[0].shape
        ((2, 3, 4), (2, 4))
    """

    def __init__(
        self,
        hidden_size: int,
        activation: Any = "tanh",
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: ParameterDict | None = None,
    ):
        initializers = i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer
        super().__init__(hidden_size, initializers, input_size, prefix, params)
        self._activation = activation

    def _alias(self) -> str:
        return "rnn"

    def _described(self) -> str:
        return f"{super()._described()}, {self._activation}"

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> Any:
        """Take one step."""
        t = f"t{self._counter}_"
        weights = {"i2h_weight": i2h_weight, "h2h_weight": h2h_weight, "i2h_bias": i2h_bias, "h2h_bias": h2h_bias}
        i2h, h2h = self._products(F, t, inputs, states[0], **weights)
        total = F.elemwise_add(i2h, h2h, name=t + "plus0")
        output = self._activate(F, total, self._activation, name=t + "out")
        return output, [output]


class LSTMCell(GatedCell):
    """Long short-term memory: c' = σ(f) c + σ(i) tanh(g), h' = σ(o) tanh(c') with gates i, f, g, o from W x + U h.

    Args:
        hidden_size: size of output and of both states, h and c.
        i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer: initializers.
        input_size: size of the input; found at the first step if 0.
        prefix, params: see `Block`.
        activation, recurrent_activation: what stands for tanh and for σ.

    Shapes: input (N, input_size); states and output (N, hidden_size); weights (4 · hidden_size, …).

    Reference: Hochreiter & Schmidhuber 1997.
    """

    _gates = 4

    def __init__(
        self,
        hidden_size: int,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: ParameterDict | None = None,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
    ):
        initializers = i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer
        super().__init__(hidden_size, initializers, input_size, prefix, params)
        self._activation = activation
        self._recurrent_activation = recurrent_activation

    def _alias(self) -> str:
        return "lstm"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Return shape and layout of h and c."""
        return [{"shape": (batch_size, self._hidden_size), "__layout__": "NC"} for _ in range(2)]

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> Any:
        """Take one step."""
        t = f"t{self._counter}_"
        weights = {"i2h_weight": i2h_weight, "h2h_weight": h2h_weight, "i2h_bias": i2h_bias, "h2h_bias": h2h_bias}
        i2h, h2h = self._products(F, t, inputs, states[0], **weights)
        gates = F.SliceChannel(F.elemwise_add(i2h, h2h, name=t + "plus0"), num_outputs=4, name=t + "slice")
        i = self._activate(F, gates[0], self._recurrent_activation, name=t + "i")
        f = self._activate(F, gates[1], self._recurrent_activation, name=t + "f")
        g = self._activate(F, gates[2], self._activation, name=t + "c")
        o = self._activate(F, gates[3], self._recurrent_activation, name=t + "o")
        next_c = F.elemwise_add(
            F.elemwise_mul(f, states[1], name=t + "mul0"), F.elemwise_mul(i, g, name=t + "mul1"), name=t + "state"
        )
        seen = self._activate(F, next_c, self._activation, name=t + "activation0")
        next_h = F.elemwise_mul(o, seen, name=t + "out")
        return next_h, [next_h, next_c]


class GRUCell(GatedCell):
    """Gated recurrent unit: h' = (1 − z) n + z h, n = tanh(W x + b + r (U h + d)), r and z sigmoids of such sums.

    Args:
        hidden_size: size of output and state.
        i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer: initializers.
        input_size: size of the input; found at the first step if 0.
        prefix, params: see `Block`.

    Shapes: input (N, input_size); state and output (N, hidden_size); weights (3 · hidden_size, …), gates r, z, n.

    Reference: Cho et al. 2014; the reset gate acts behind the product, as in cuDNN.
    """

    _gates = 3

    def __init__(
        self,
        hidden_size: int,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: ParameterDict | None = None,
    ):
        initializers = i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer
        super().__init__(hidden_size, initializers, input_size, prefix, params)

    def _alias(self) -> str:
        return "gru"

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> Any:
        """Take one step."""
        t = f"t{self._counter}_"
        weights = {"i2h_weight": i2h_weight, "h2h_weight": h2h_weight, "i2h_bias": i2h_bias, "h2h_bias": h2h_bias}
        old = states[0]
        i2h, h2h = self._products(F, t, inputs, old, **weights)
        i2h_r, i2h_z, i2h_n = F.SliceChannel(i2h, num_outputs=3, name=t + "i2h_slice")
        h2h_r, h2h_z, h2h_n = F.SliceChannel(h2h, num_outputs=3, name=t + "h2h_slice")
        reset = F.Activation(F.elemwise_add(i2h_r, h2h_r, name=t + "plus0"), act_type="sigmoid", name=t + "r_act")
        update = F.Activation(F.elemwise_add(i2h_z, h2h_z, name=t + "plus1"), act_type="sigmoid", name=t + "z_act")
        kept = F.elemwise_mul(reset, h2h_n, name=t + "mul0")
        new = F.Activation(F.elemwise_add(i2h_n, kept, name=t + "plus2"), act_type="tanh", name=t + "h_act")
        rest = F.elemwise_sub(F.ones_like(update, name=t + "ones_like0"), update, name=t + "minus0")
        output = F.elemwise_add(
            F.elemwise_mul(rest, new, name=t + "mul1"), F.elemwise_mul(update, old, name=t + "mul20"), name=t + "out"
        )
        return output, [output]


__all__ = ["GRUCell", "HybridRecurrentCell", "LSTMCell", "RNNCell", "RecurrentCell"]
