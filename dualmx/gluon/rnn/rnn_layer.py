"""Recurrent layers `RNN`, `LSTM`, `GRU`, each one call of the fused operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dtypes import as_dtype
from ...core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ...namespace import nd, sym
from ...ndarray import NDArray
from ..hybrid import HybridBlock
from ..parameter import Parameter, tensor_types
from .cell import GRUCell, LSTMCell, RNNCell, make_state
from .cell_wrappers import BidirectionalCell, DropoutCell, HybridSequentialRNNCell
from .unroll import ARRAYS

_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


class FusedLayer(HybridBlock):
    """Base of the recurrent layers: parameters per layer and direction, joined into the operator's flat vector."""

    _mode: str
    # Whether the last call was made without states, and so returned none.
    skip_states: bool | None = None

    def __init__(
        self,
        mode: str,
        hidden_size: int,
        num_layers: int,
        layout: str,
        dropout: float,
        bidirectional: bool,
        input_size: int,
        initializers: dict[str, Any],
        dtype: Any = "float32",
        projection_size: int | None = None,
        state_clip: tuple[Any, Any, bool] = (None, None, False),
        use_sequence_length: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        where = type(self).__name__
        if layout not in ("TNC", "NTC"):
            raise ArgumentError(f"{where}: layout={layout!r}: expected 'TNC' or 'NTC'")
        if hidden_size <= 0 or num_layers <= 0:
            raise ArgumentError(
                f"{where}: hidden_size={hidden_size}, num_layers={num_layers}: expected positive numbers"
            )
        if projection_size and mode != "lstm":
            raise ArgumentTypeError(f"{where}: projection_size={projection_size}: only LSTM projects its output")
        self._mode, self._layout, self._dtype = mode, layout, dtype
        self._hidden_size, self._num_layers, self._dropout = hidden_size, num_layers, dropout
        self._projection_size, self._input_size = projection_size, input_size
        self._dir = 2 if bidirectional else 1
        self._state_clip, self._use_sequence_length = state_clip, use_sequence_length
        self._gates = _GATES[mode]
        for kind, chosen in initializers.items():
            setattr(self, f"_{kind}_initializer", chosen)
        rows, out = self._gates * hidden_size, projection_size or hidden_size
        self._names: list[tuple[int, str]] = [(k, d) for k in range(num_layers) for d in "lr"[: self._dir]]
        for layer, direction in self._names:
            width = input_size if layer == 0 else out * self._dir
            shapes = {"i2h_weight": (rows, width), "h2h_weight": (rows, out), "i2h_bias": (rows,), "h2h_bias": (rows,)}
            if projection_size:
                shapes["h2r_weight"] = (projection_size, hidden_size)
            for kind, shape in shapes.items():
                name = f"{direction}{layer}_{kind}"
                param = self.params.get(
                    name, shape=shape, init=initializers[kind], allow_deferred_init=True, dtype=dtype
                )
                setattr(self, name, param)

    def __repr__(self) -> str:
        rows, columns = self._first.shape or (0, 0)
        parts = [f"{columns or None} -> {rows // self._gates}", self._layout]
        if self._num_layers != 1:
            parts.append(f"num_layers={self._num_layers}")
        if self._dropout != 0:
            parts.append(f"dropout={self._dropout}")
        if self._dir == 2:
            parts.append("bidirectional")
        return f"{type(self).__name__}({', '.join(parts)})"

    @property
    def _first(self) -> Parameter:
        return self._reg_params["l0_i2h_weight"]

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """Parameters by the paths they have in MXNet's files, those of the equivalent cells."""
        prefix = f"{prefix}._unfused" if prefix else "_unfused"
        found = {}
        for name, param in self._reg_params.items():
            which, kind = name.split("_", 1)
            side = f"{which[0]}_cell." if self._dir == 2 else ""
            found[f"{prefix}.{which[1:]}.{side}{kind}"] = param
        return found

    def cast(self, dtype: Any) -> None:
        """Convert parameters and states to `dtype`."""
        super().cast(dtype)
        self._dtype = dtype

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Return shape, layout and dtype of each state, (layers · directions, N, hidden_size)."""
        shape = (self._num_layers * self._dir, batch_size, self._projection_size or self._hidden_size)
        return [{"shape": shape, "__layout__": "LNC", "dtype": self._dtype}]

    def begin_state(self, batch_size: int = 0, func: Callable[..., Any] = nd.zeros, **kwargs: Any) -> list[Any]:
        """Return the states for the first step.

        Args:
            batch_size: number of samples; only symbols can leave it open (0).
            func: makes a state from `shape`, `dtype` and further keywords.
            kwargs: further keywords for `func`, such as `ctx`.
        """
        infos = enumerate(self.state_info(batch_size))
        return [make_state(func, f"{self.prefix}h0_{i}", {**info, **kwargs}) for i, info in infos]

    def __call__(self, inputs: Any, states: Any = None, sequence_length: Any = None) -> Any:
        """Run over a sequence; see `forward`."""
        args = (inputs, states, sequence_length)
        while args[-1] is None:
            args = args[:-1]
        return super().__call__(*args)

    def forward(self, inputs: Any, states: Any = None, sequence_length: Any = None) -> Any:
        """Run over a sequence.

        Args:
            inputs: (T, N, C) or (N, T, C) as in `layout`.
            states: first states, a list or, if there is only one, an array; zeros by default.
            sequence_length: (N,) lengths, if the layer was made with `use_sequence_length=True`.

        Returns:
            the output (T, N, hidden_size · directions); with `states`, a pair of it and the list of last states, which
            is a list of a hybridized layer as of every hybridized block.

        Raises:
            ArgumentError: a state has another shape.
        """
        skip = self.skip_states = states is None
        if states is None:
            states = self._zeros_for(inputs)
        elif isinstance(states, ARRAYS):
            states = [states]
        if isinstance(inputs, NDArray):
            self._check_states(inputs, states)
        if self._use_sequence_length:
            if sequence_length is None:
                raise ArgumentError(f"{self.name}: sequence_length=None: expected (N,) lengths (use_sequence_length)")
            out = super().forward(inputs, states, sequence_length)
        else:
            out = super().forward(inputs, states)
        return out[0] if skip else out

    def _zeros_for(self, inputs: Any) -> list[Any]:
        if isinstance(inputs, NDArray):
            self._check_rank(inputs.shape)
            batch = inputs.shape[self._layout.index("N")]
            return self.begin_state(batch, ctx=inputs.context, dtype=as_dtype(inputs.dtype))
        return self.begin_state(0, func=sym.zeros)

    def _check_rank(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 3:
            raise ArgumentError(f"{self.name}: inputs have shape {shape}: expected three axes, {self._layout}")

    def _check_states(self, inputs: Any, states: Any) -> None:
        self._check_rank(inputs.shape)
        infos = self.state_info(inputs.shape[self._layout.index("N")])
        if len(states) != len(infos):
            raise ArgumentError(f"{self.name}: {len(states)} states: expected {len(infos)}")
        for state, info in zip(states, infos, strict=True):
            if state.shape != info["shape"]:
                raise ArgumentError(
                    f"Invalid recurrent state shape. Expecting {info['shape']}, got {state.shape}. ({self.name})"
                )

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any = None, sequence_length: Any = None, **params: Any
    ) -> Any:
        """Run the fused operator; returns output and last states."""
        if states is None:
            states = self._zeros_for(inputs)
        if self._layout == "NTC":
            inputs = F.swapaxes(inputs, dim1=0, dim2=1)
        low, high, nan = self._state_clip
        lengths = [] if sequence_length is None else [sequence_length]
        out, *last = F.RNN(
            inputs,
            self._flat(F, params),
            *states,
            *lengths,
            use_sequence_length=self._use_sequence_length,
            state_size=self._hidden_size,
            projection_size=self._projection_size,
            num_layers=self._num_layers,
            bidirectional=self._dir == 2,
            p=self._dropout,
            state_outputs=True,
            mode=self._mode,
            lstm_state_clip_min=low,
            lstm_state_clip_max=high,
            lstm_state_clip_nan=nan,
        )
        return (F.swapaxes(out, dim1=0, dim2=1) if self._layout == "NTC" else out), last

    def _flat(self, F: Any, params: dict[str, Any]) -> Any:
        """The operator's vector: the weights of all layers and directions, then the biases."""
        weights = ("i2h_weight", "h2h_weight", *(["h2r_weight"] if self._projection_size else []))
        order = [
            params[f"{direction}{layer}_{kind}"]
            for kinds in (weights, ("i2h_bias", "h2h_bias"))
            for layer, direction in self._names
            for kind in kinds
        ]
        return F._internal._rnn_param_concat(*(F.reshape(p, shape=(-1,)) for p in order), dim=0)

    def infer_shape(self, inputs: Any, *args: Any) -> None:
        """Set the input size of the first layer from `inputs`."""
        self._check_rank(inputs.shape)
        for direction in "lr"[: self._dir]:
            first = self._reg_params[f"{direction}0_i2h_weight"]
            assert first.shape is not None
            first.shape = (first.shape[0], inputs.shape[2])

    def _unfuse(self) -> HybridSequentialRNNCell:
        """Return cells with the same parameters that compute the same step by step.

        Raises:
            MXNetError: with projection, for which there is no such cell.
        """
        if self._projection_size:
            raise MXNetError(f"{self.name}: layers with projection cannot be unfused")

        def cell(prefix: str, width: int) -> Any:
            about: dict[str, Any] = {"input_size": width, "prefix": prefix}
            if self._mode == "lstm":
                return LSTMCell(self._hidden_size, **about)
            if self._mode == "gru":
                return GRUCell(self._hidden_size, **about)
            return RNNCell(self._hidden_size, activation=self._mode.removeprefix("rnn_"), **about)

        stack = HybridSequentialRNNCell(prefix=self.prefix, params=self.params)
        with stack.name_scope():
            width = (self._first.shape or (0, 0))[1]
            for layer in range(self._num_layers):
                sides = [cell(f"{d}{layer}_", width) for d in "lr"[: self._dir]]
                stack.add(BidirectionalCell(*sides) if self._dir == 2 else sides[0])
                if self._dropout > 0 and layer != self._num_layers - 1:
                    stack.add(DropoutCell(self._dropout))
                width = self._hidden_size * self._dir
        return stack


class RNN(FusedLayer):
    """Layers of Elman's network: h' = activation(W x + b + U h + d).

    Args:
        hidden_size: size of output and state in one direction.
        num_layers: number of layers, each on top of the other.
        activation: `"relu"` or `"tanh"`.
        layout: `"TNC"` (time, batch, channel) or `"NTC"`; states are (layers · directions, N, hidden_size) either way.
        dropout: probability of dropping outputs of all layers but the last while training.
        bidirectional: run through the sequence in both directions, too, and join the outputs.
        i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer: initializers.
        input_size: size of the input; found at the first forward pass if 0.
        dtype: of parameters and states.
        kwargs: `use_sequence_length`, `prefix`, `params`.

    Raises:
        ArgumentError: an unknown activation or layout.

    Example:
        >>> import dualmx as mx
        >>> layer = mx.gluon.rnn.RNN(4, num_layers=2, activation="tanh")
        >>> layer.initialize()
        >>> layer(mx.nd.ones((3, 2, 5))).shape
        (3, 2, 4)
    """

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        activation: str = "relu",
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        dtype: Any = "float32",
        **kwargs: Any,
    ):
        if activation not in ("relu", "tanh"):
            raise ArgumentError(f"RNN: activation={activation!r}: expected 'relu' or 'tanh'")
        inits = _named(i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer)
        mode = "rnn_" + activation
        super().__init__(
            mode, hidden_size, num_layers, layout, dropout, bidirectional, input_size, inits, dtype, **kwargs
        )


class LSTM(FusedLayer):
    """Layers of long short-term memory; see `LSTMCell` for the formula.

    Args:
        hidden_size: size of the states and, without projection, of the output in one direction.
        num_layers, layout, dropout, bidirectional, input_size, dtype, kwargs: see `RNN`.
        i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer: initializers.
        projection_size: size to which outputs (and the state h) are projected, `None` for no projection.
        h2r_weight_initializer: initializer of the projection.
        state_clip_min, state_clip_max: bounds of the state c.
        state_clip_nan: accepted without effect: NaN stays NaN.

    Example:
        >>> import dualmx as mx
        >>> layer = mx.gluon.rnn.LSTM(4, bidirectional=True)
        >>> layer.initialize()
        >>> output, (h, c) = layer(mx.nd.ones((3, 2, 5)), layer.begin_state(batch_size=2))
        >>> output.shape, h.shape, c.shape
        ((3, 2, 8), (2, 2, 4), (2, 2, 4))
    """

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        input_size: int = 0,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        projection_size: int | None = None,
        h2r_weight_initializer: Any = None,
        state_clip_min: float | None = None,
        state_clip_max: float | None = None,
        state_clip_nan: bool = False,
        dtype: Any = "float32",
        **kwargs: Any,
    ):
        inits = _named(i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer)
        super().__init__(
            "lstm", hidden_size, num_layers, layout, dropout, bidirectional, input_size,
            {**inits, "h2r_weight": h2r_weight_initializer}, dtype, projection_size,
            (state_clip_min, state_clip_max, state_clip_nan), **kwargs,
        )  # fmt: skip

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Return shape, layout and dtype of h and c."""
        (h,) = super().state_info(batch_size)
        return [h, {**h, "shape": (*h["shape"][:2], self._hidden_size)}]


class GRU(FusedLayer):
    """Layers of gated recurrent units; see `GRUCell` for the formula.

    Args:
        hidden_size: size of output and state in one direction.
        num_layers, layout, dropout, bidirectional, input_size, dtype, kwargs: see `RNN`.
        i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer: initializers.
    """

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        input_size: int = 0,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        dtype: Any = "float32",
        **kwargs: Any,
    ):
        inits = _named(i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer)
        super().__init__(
            "gru", hidden_size, num_layers, layout, dropout, bidirectional, input_size, inits, dtype, **kwargs
        )

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Return shape, layout and dtype of the state."""
        return super().state_info(batch_size)


def _named(i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any) -> dict[str, Any]:
    return {"i2h_weight": i2h_weight, "h2h_weight": h2h_weight, "i2h_bias": i2h_bias, "h2h_bias": h2h_bias}


_RNNLayer = FusedLayer  # MXNet's name, by which programs tell layers of the kind

__all__ = ["GRU", "LSTM", "RNN", "_RNNLayer", "tensor_types"]
