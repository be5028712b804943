"""Convolutional recurrent cells in one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....core.errors import ArgumentError
from ...parameter import ParameterDict
from ...rnn import HybridRecurrentCell
from ...spatial import SpatialFamily


class ConvCell(HybridRecurrentCell, SpatialFamily):
    """Base of the convolutional cells; subclasses set `_gates` and `hybrid_forward`, members `ndim`.

    Args:
        input_shape: shape of the input without the batch axis, in the order of `conv_layout`.
        hidden_channels: channels of output and state.
        i2h_kernel, h2h_kernel: kernel of the convolution over the input and over the state; the latter is odd.
        i2h_pad: padding of the convolution over the input; that over the state keeps the size.
        i2h_dilate, h2h_dilate: dilations.
        i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer: initializers.
        conv_layout: order of the axes, with the channel second or last.
        activation: name of the activation, or a function or block.
        prefix, params: see `Block`.

    Raises:
        ArgumentError: an even `h2h_kernel`, or a setting of another rank.
    """

    _sizes = ("i2h_pad", "i2h_dilate", "h2h_dilate")
    _tuples_in_1d = True
    _gates = 1
    _kind = "rnn"

    def __init__(
        self,
        input_shape: Sequence[int],
        hidden_channels: int,
        i2h_kernel: Any,
        h2h_kernel: Any,
        i2h_pad: Any = 0,
        i2h_dilate: Any = 1,
        h2h_dilate: Any = 1,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "",
        activation: Any = "tanh",
        prefix: str | None = None,
        params: ParameterDict | None = None,
    ):
        super().__init__(prefix=prefix, params=params)
        self._hidden_channels, self._input_shape = hidden_channels, tuple(input_shape)
        self._conv_layout, self._activation = conv_layout, activation
        self._i2h_kernel = self._each("i2h_kernel", i2h_kernel)
        self._h2h_kernel = self._each("h2h_kernel", h2h_kernel)
        if any(k % 2 == 0 for k in self._h2h_kernel):
            raise ArgumentError(f"{type(self).__name__}: h2h_kernel={h2h_kernel}: expected odd numbers")
        self._i2h_pad, self._i2h_dilate = self._each("i2h_pad", i2h_pad), self._each("i2h_dilate", i2h_dilate)
        self._h2h_dilate = self._each("h2h_dilate", h2h_dilate)
        self._h2h_pad = tuple(d * (k - 1) // 2 for d, k in zip(self._h2h_dilate, self._h2h_kernel, strict=True))
        channel = conv_layout.find("C") - 1
        channels = self._input_shape[channel]
        spatial = [n for i, n in enumerate(self._input_shape) if i != channel % len(self._input_shape)]
        sizes = [
            n + 2 * pad - dilate * (kernel - 1)
            for n, kernel, pad, dilate in zip(spatial, self._i2h_kernel, self._i2h_pad, self._i2h_dilate, strict=False)
        ]
        self._channels_last = conv_layout.endswith("C")
        self._state_shape = self._placed(hidden_channels, sizes)
        rows = self._gates * hidden_channels

        def get(name: str, shape: tuple[int, ...], init: Any) -> Any:
            return self.params.get(name, shape=shape, init=init, allow_deferred_init=True)

        self._channels = channels
        self.i2h_weight = get("i2h_weight", (rows, *self._placed(channels, self._i2h_kernel)), i2h_weight_initializer)
        self.h2h_weight = get(
            "h2h_weight", (rows, *self._placed(hidden_channels, self._h2h_kernel)), h2h_weight_initializer
        )
        self.i2h_bias = get("i2h_bias", (rows,), i2h_bias_initializer)
        self.h2h_bias = get("h2h_bias", (rows,), h2h_bias_initializer)

    def _placed(self, channels: int, spatial: Sequence[int]) -> tuple[int, ...]:
        return (*spatial, channels) if self._channels_last else (channels, *spatial)

    def _each(self, name: str, value: Any) -> tuple[int, ...]:
        found = (value,) * self._ndim if isinstance(value, int) else tuple(value)
        if len(found) != self._ndim:
            raise ArgumentError(f"{type(self).__name__}: {name}={value}: expected an int or {self._ndim} ints")
        return found

    def _alias(self) -> str:
        return "conv_" + self._kind

    def _described(self) -> str:
        rows = self._gates * self._hidden_channels
        return f"{self._channels or None} -> {rows}, {self._activation}, {self._conv_layout}"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Return shape and layout of each state."""
        count = 2 if self._kind == "lstm" else 1
        return [{"shape": (batch_size, *self._state_shape), "__layout__": self._conv_layout} for _ in range(count)]

    def _products(self, F: Any, inputs: Any, state: Any, weights: tuple[Any, ...]) -> tuple[str, Any, Any]:
        """The step's prefix, and the gates' shares of input and state."""
        t = f"t{self._counter}_"
        i2h_weight, h2h_weight, i2h_bias, h2h_bias = weights
        both: dict[str, Any] = {
            "num_filter": self._gates * self._hidden_channels,
            "stride": (1,) * self._ndim,
            "layout": self._conv_layout,
        }
        i2h = F.Convolution(
            inputs, i2h_weight, i2h_bias, kernel=self._i2h_kernel, pad=self._i2h_pad, dilate=self._i2h_dilate,
            name=t + "i2h", **both,
        )  # fmt: skip
        h2h = F.Convolution(
            state, h2h_weight, h2h_bias, kernel=self._h2h_kernel, pad=self._h2h_pad, dilate=self._h2h_dilate,
            name=t + "h2h", **both,
        )  # fmt: skip
        return t, i2h, h2h

    @property
    def _channel_axis(self) -> int:
        return self._conv_layout.find("C")


class ConvRNNStep(ConvCell):
    """h' = activation(W * x + b + U * h + d)."""

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> Any:
        """Take one step."""
        t, i2h, h2h = self._products(F, inputs, states[0], (i2h_weight, h2h_weight, i2h_bias, h2h_bias))
        output = self._activate(F, i2h + h2h, self._activation, name=t + "out")
        return output, [output]


class ConvLSTMStep(ConvCell):
    """c' = σ(f) c + σ(i) activation(g), h' = σ(o) activation(c'), gates from W * x + U * h."""

    _gates = 4
    _kind = "lstm"

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> Any:
        """Take one step."""
        t, i2h, h2h = self._products(F, inputs, states[0], (i2h_weight, h2h_weight, i2h_bias, h2h_bias))
        gates = F.SliceChannel(i2h + h2h, num_outputs=4, axis=self._channel_axis, name=t + "slice")
        i = F.Activation(gates[0], act_type="sigmoid", name=t + "i")
        f = F.Activation(gates[1], act_type="sigmoid", name=t + "f")
        g = self._activate(F, gates[2], self._activation, name=t + "c")
        o = F.Activation(gates[3], act_type="sigmoid", name=t + "o")
        next_c = F.elemwise_add(f * states[1], i * g, name=t + "state")
        next_h = F.elemwise_mul(o, self._activate(F, next_c, self._activation), name=t + "out")
        return next_h, [next_h, next_c]


class ConvGRUStep(ConvCell):
    """h' = (1 − z) n + z h, n = activation(W * x + b + r (U * h + d))."""

    _gates = 3
    _kind = "gru"

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> Any:
        """Take one step."""
        t, i2h, h2h = self._products(F, inputs, states[0], (i2h_weight, h2h_weight, i2h_bias, h2h_bias))
        axis = self._channel_axis
        i2h_r, i2h_z, i2h_n = F.SliceChannel(i2h, num_outputs=3, axis=axis, name=t + "i2h_slice")
        h2h_r, h2h_z, h2h_n = F.SliceChannel(h2h, num_outputs=3, axis=axis, name=t + "h2h_slice")
        reset = F.Activation(i2h_r + h2h_r, act_type="sigmoid", name=t + "r_act")
        update = F.Activation(i2h_z + h2h_z, act_type="sigmoid", name=t + "z_act")
        new = self._activate(F, i2h_n + reset * h2h_n, self._activation, name=t + "h_act")
        output = F.elemwise_add((1.0 - update) * new, update * states[0], name=t + "out")
        return output, [output]


class Conv1DRNNCell(ConvRNNStep, ndim=1):
    """Elman's network over 1-dimensional data, with convolutions; see `ConvCell` for the arguments."""


class Conv1DLSTMCell(ConvLSTMStep, ndim=1):
    """Long short-term memory over 1-dimensional data, with convolutions; see `ConvCell` for the arguments."""


class Conv1DGRUCell(ConvGRUStep, ndim=1):
    """Gated recurrent units over 1-dimensional data, with convolutions; see `ConvCell` for the arguments."""


class Conv2DRNNCell(ConvRNNStep, ndim=2):
    """Elman's network over 2-dimensional data, with convolutions; see `ConvCell` for the arguments."""


class Conv2DLSTMCell(ConvLSTMStep, ndim=2):
    """Long short-term memory over 2-dimensional data, with convolutions; see `ConvCell` for the arguments."""


class Conv2DGRUCell(ConvGRUStep, ndim=2):
    """Gated recurrent units over 2-dimensional data, with convolutions; see `ConvCell` for the arguments."""


class Conv3DRNNCell(ConvRNNStep, ndim=3):
    """Elman's network over 3-dimensional data, with convolutions; see `ConvCell` for the arguments."""


class Conv3DLSTMCell(ConvLSTMStep, ndim=3):
    """Long short-term memory over 3-dimensional data, with convolutions; see `ConvCell` for the arguments."""


class Conv3DGRUCell(ConvGRUStep, ndim=3):
    """Gated recurrent units over 3-dimensional data, with convolutions; see `ConvCell` for the arguments."""


__all__ = [
    "Conv1DGRUCell", "Conv1DLSTMCell", "Conv1DRNNCell", "Conv2DGRUCell", "Conv2DLSTMCell", "Conv2DRNNCell",
    "Conv3DGRUCell", "Conv3DLSTMCell", "Conv3DRNNCell",
]  # fmt: skip
