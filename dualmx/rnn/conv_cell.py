"""Symbolic recurrent cells with two-dimensional convolutions."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..core.argcheck import with_defaults
from ..core.errors import ArgumentError
from ..namespace import sym
from .cell import BaseRNNCell, RNNParams, gru_output, lstm_output

_LEAKY = partial(sym.LeakyReLU, act_type="leaky", slope=0.2)


class BaseConvRNNCell(BaseRNNCell):
    """Base of the convolutional cells.

    Args:
        input_shape: shape of the input with its batch axis, in the order of `conv_layout`.
        num_hidden: channels of output and state.
        h2h_kernel, h2h_dilate: of the convolution over the state, which keeps the size; the kernel is odd.
        i2h_kernel, i2h_stride, i2h_pad, i2h_dilate: of the convolution over the input.
        i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer: initializers.
        activation: name of an activation, or a function that takes `name`.
        prefix, params: see `BaseRNNCell`.
        conv_layout: order of the axes.

    Raises:
        ArgumentError: an even `h2h_kernel`.
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        num_hidden: int,
        h2h_kernel: tuple[int, ...] = (3, 3),
        h2h_dilate: tuple[int, ...] = (1, 1),
        i2h_kernel: tuple[int, ...] = (3, 3),
        i2h_stride: tuple[int, ...] = (1, 1),
        i2h_pad: tuple[int, ...] = (1, 1),
        i2h_dilate: tuple[int, ...] = (1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        activation: Any = _LEAKY,
        prefix: str = "",
        params: RNNParams | None = None,
        conv_layout: str = "NCHW",
    ):
        super().__init__(prefix=prefix, params=params)
        if any(k % 2 == 0 for k in h2h_kernel):
            raise ArgumentError(f"{type(self).__name__}: h2h_kernel={h2h_kernel}: expected odd numbers")
        self._num_hidden, self._activation, self._conv_layout = num_hidden, activation, conv_layout
        self._input_shape = tuple(input_shape)
        pad = tuple(d * (k - 1) // 2 for k, d in zip(h2h_kernel, h2h_dilate, strict=True))
        stride = (1,) * len(h2h_kernel)
        self._over_state: dict[str, Any] = {"kernel": h2h_kernel, "stride": stride, "pad": pad, "dilate": h2h_dilate}
        self._over_input: dict[str, Any] = {
            "kernel": i2h_kernel,
            "stride": i2h_stride,
            "pad": i2h_pad,
            "dilate": i2h_dilate,
        }
        self._iW = self.params.get("i2h_weight", init=i2h_weight_initializer)
        self._hW = self.params.get("h2h_weight", init=h2h_weight_initializer)
        self._iB = self.params.get("i2h_bias", init=i2h_bias_initializer)
        self._hB = self.params.get("h2h_bias", init=h2h_bias_initializer)
        about: dict[str, Any] = {"num_filter": num_hidden, "layout": conv_layout}
        _, shapes, _ = sym.Convolution(sym.var("data"), **about, **self._over_input).infer_shape(data=self._input_shape)
        assert shapes is not None
        self._state_shape = (0, *shapes[0][1:])

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of the state."""
        return [{"shape": self._state_shape, "__layout__": self._conv_layout}]

    def _products(self, inputs: Any, state: Any) -> tuple[str, Any, Any]:
        self._counter += 1
        t = f"{self._prefix}t{self._counter}_"
        about: dict[str, Any] = {"num_filter": self._num_hidden * self._num_gates, "layout": self._conv_layout}
        i2h = sym.Convolution(inputs, self._iW, self._iB, name=t + "i2h", **self._over_input, **about)
        h2h = sym.Convolution(state, self._hW, self._hB, name=t + "h2h", **self._over_state, **about)
        return t, i2h, h2h

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Return output and states of one step; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define __call__()")


class ConvRNNCell(BaseConvRNNCell):
    """h' = activation(W * x + b + U * h + d) with convolutions; see `BaseConvRNNCell` for the arguments."""

    _gate_names = ("",)
    __init__ = with_defaults(BaseConvRNNCell.__init__, "ConvRNNCell.__init__", prefix="ConvRNN_")

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Return `(output, [state])` of one step."""
        t, i2h, h2h = self._products(inputs, states[0])
        output = self._get_activation(i2h + h2h, self._activation, name=t + "out")
        return output, [output]


class ConvLSTMCell(BaseConvRNNCell):
    """Long short-term memory with convolutions; see `BaseConvRNNCell` for the arguments."""

    _gate_names = ("_i", "_f", "_c", "_o")
    __init__ = with_defaults(BaseConvRNNCell.__init__, "ConvLSTMCell.__init__", prefix="ConvLSTM_")

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of h and c."""
        return [{"shape": self._state_shape, "__layout__": self._conv_layout} for _ in range(2)]

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Return `(output, [h, c])` of one step."""
        t, i2h, h2h = self._products(inputs, states[0])
        axis = self._conv_layout.find("C")
        return lstm_output(i2h + h2h, states[1], self._activation, t, self._get_activation, axis=axis)


class ConvGRUCell(BaseConvRNNCell):
    """Gated recurrent unit with convolutions; see `BaseConvRNNCell` for the arguments."""

    _gate_names = ("_r", "_z", "_o")
    __init__ = with_defaults(BaseConvRNNCell.__init__, "ConvGRUCell.__init__", prefix="ConvGRU_")

    def __call__(self, inputs: Any, states: Any) -> Any:
        """Return `(output, [state])` of one step."""
        t, i2h, h2h = self._products(inputs, states[0])
        axis = self._conv_layout.find("C")
        output = gru_output(i2h, h2h, states[0], self._activation, t, self._get_activation, axis)
        return output, [output]


__all__ = ["BaseConvRNNCell", "ConvGRUCell", "ConvLSTMCell", "ConvRNNCell"]
