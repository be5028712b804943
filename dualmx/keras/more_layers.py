"""More layers by Keras's names: recurrent ones, those of several inputs, and small functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core.errors import ArgumentError
from ..gluon import nn, rnn
from ..gluon.block import Block, HybridBlock
from .basic_layers import _Described, _initial, _layout, _pair, _shape, _then


class _Simple(_Described, HybridBlock):
    """A function without weights."""

    def __init__(self, input_shape: Any = None):
        super().__init__()
        self.input_shape = _shape(type(self).__name__, input_shape)


class ReLU(_Simple):
    """max(x, 0), bounded by `max_value`."""

    def __init__(self, max_value: float | None = None, input_shape: Any = None):
        super().__init__(input_shape)
        self._most = max_value

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the function."""
        return F.relu(x) if self._most is None else F.clip(x, 0.0, self._most)


class LeakyReLU(_Simple):
    """x where it is positive, `alpha`·x elsewhere."""

    def __init__(self, alpha: float = 0.3, negative_slope: float | None = None, input_shape: Any = None):
        super().__init__(input_shape)
        self._slope = alpha if negative_slope is None else negative_slope

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the function."""
        return F.LeakyReLU(x, act_type="leaky", slope=self._slope)


class ELU(_Simple):
    """x where it is positive, `alpha`·(eˣ - 1) elsewhere."""

    def __init__(self, alpha: float = 1.0, input_shape: Any = None):
        super().__init__(input_shape)
        self._slope = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the function."""
        return F.LeakyReLU(x, act_type="elu", slope=self._slope)


class Softmax(_Simple):
    """Softmax along an axis."""

    def __init__(self, axis: int = -1, input_shape: Any = None):
        super().__init__(input_shape)
        self._axis = axis

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the function."""
        return F.softmax(x, axis=self._axis)


class Lambda(_Described, Block):
    """A function of arrays.

    Args:
        function: of the inputs.
        input_shape: of one row.
    """

    def __init__(self, function: Callable[..., Any], input_shape: Any = None):
        super().__init__()
        self._function = function
        self.input_shape = _shape("Lambda", input_shape)

    def forward(self, *args: Any) -> Any:
        """Apply the function."""
        return self._function(*args)


class Permute(_Simple):
    """Put the axes of a row, numbered from 1, in another order."""

    def __init__(self, dims: Any, input_shape: Any = None):
        super().__init__(input_shape)
        self._axes = (0, *dims)
        if sorted(self._axes) != list(range(len(self._axes))):
            raise ArgumentError(f"Permute: dims={dims!r}: expected the numbers 1 to {len(self._axes) - 1}")

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Transpose."""
        return F.transpose(x, axes=self._axes)


class RepeatVector(_Simple):
    """Repeat each row `n` times along a new axis."""

    def __init__(self, n: int, input_shape: Any = None):
        super().__init__(input_shape)
        self._count = n

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Repeat."""
        return F.repeat(F.expand_dims(x, axis=1), repeats=self._count, axis=1)


class GaussianNoise(_Simple):
    """Add draws of N(0, `stddev`²) while training."""

    def __init__(self, stddev: float, input_shape: Any = None):
        super().__init__(input_shape)
        self._deviation = stddev

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Add noise."""
        from .. import autograd

        return x + F.random.normal_like(x, scale=self._deviation) if autograd.is_training() else x


class GlobalMaxPooling2D(_Simple):
    """Maximum of each channel."""

    def __init__(self, data_format: str = "channels_last", input_shape: Any = None):
        super().__init__(input_shape)
        self._over = (1, 2) if _layout("GlobalMaxPooling2D", data_format) == "NHWC" else (2, 3)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Take the maxima."""
        return F.max(x, axis=self._over)


class GlobalAveragePooling1D(_Simple):
    """Mean over the steps of a sequence: (N, T, C) to (N, C)."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Take the means."""
        return F.mean(x, axis=1)


class GlobalMaxPooling1D(_Simple):
    """Maximum over the steps of a sequence: (N, T, C) to (N, C)."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Take the maxima."""
        return F.max(x, axis=1)


class MaxPooling1D(_Described, nn.MaxPool1D):
    """Maxima of windows of a sequence (N, T, C)."""

    def __init__(self, pool_size: int = 2, strides: int | None = None, input_shape: Any = None):
        super().__init__(pool_size, strides, 0, "NWC")
        self.input_shape = _shape("MaxPooling1D", input_shape)


class Conv1D(_Described, nn.Conv1D):
    """One-dimensional convolution of sequences (N, T, C); see `Conv2D` for the arguments."""

    def __init__(
        self, filters: int, kernel_size: int, strides: int = 1, padding: str = "valid", dilation_rate: int = 1,
        activation: Any = None, use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros", input_shape: Any = None,
    ):  # fmt: skip
        kernel, by, dilation = ((v if isinstance(v, int) else v[0]) for v in (kernel_size, strides, dilation_rate))
        reach = (kernel - 1) * dilation
        if padding not in ("valid", "same") or (padding == "same" and (reach % 2 or by != 1)):
            raise ArgumentError(
                f"Conv1D: padding={padding!r}: expected 'valid', or 'same' with an odd kernel moved by 1"
            )
        super().__init__(
            filters, kernel, by, reach // 2 if padding == "same" else 0, dilation, layout="NWC", use_bias=use_bias,
            weight_initializer=_initial("Conv1D", "kernel_initializer", kernel_initializer),
            bias_initializer=_initial("Conv1D", "bias_initializer", bias_initializer),
        )  # fmt: skip
        self.act = _then(activation)  # type: ignore[assignment]
        self.input_shape = _shape("Conv1D", input_shape)


class ZeroPadding2D(_Simple):
    """Put zeros around images (N, H, W, C).

    Args:
        padding: a number, or one for heights and one for widths.
        input_shape: of one row.
    """

    def __init__(self, padding: Any = (1, 1), input_shape: Any = None):
        super().__init__(input_shape)
        self._by = _pair("ZeroPadding2D", "padding", padding)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Pad."""
        (h, w), zero = self._by, (0, 0)
        channels_first = F.transpose(x, axes=(0, 3, 1, 2))
        padded = F.pad(channels_first, mode="constant", pad_width=(*zero, *zero, h, h, w, w))
        return F.transpose(padded, axes=(0, 2, 3, 1))


class UpSampling2D(_Simple):
    """Repeat the rows and columns of images (N, H, W, C)."""

    def __init__(self, size: Any = (2, 2), input_shape: Any = None):
        super().__init__(input_shape)
        self._by = _pair("UpSampling2D", "size", size)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Repeat."""
        return F.repeat(F.repeat(x, repeats=self._by[0], axis=1), repeats=self._by[1], axis=2)


class _Merge(_Described, HybridBlock):
    """A layer of a list of arrays."""

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        """Merge the arrays, given one by one or in a list."""
        found = list(x) if not args and isinstance(x, (list, tuple)) else [x, *args]
        if len(found) < 2:
            raise ArgumentError(f"{type(self).__name__}: expected a list of two or more arrays")
        return self._merged(F, found)

    def _merged(self, F: Any, arrays: list[Any]) -> Any:
        raise NotImplementedError


class Concatenate(_Merge):
    """Join arrays along an axis."""

    def __init__(self, axis: int = -1):
        super().__init__()
        self._axis = axis

    def _merged(self, F: Any, arrays: list[Any]) -> Any:
        return F.concat(*arrays, dim=self._axis)


class Add(_Merge):
    """The sum of arrays."""

    def _merged(self, F: Any, arrays: list[Any]) -> Any:
        return functools.reduce(F.broadcast_add, arrays)


class Subtract(_Merge):
    """The first array minus the second."""

    def _merged(self, F: Any, arrays: list[Any]) -> Any:
        return F.broadcast_sub(arrays[0], arrays[1])


class Multiply(_Merge):
    """The product of arrays."""

    def _merged(self, F: Any, arrays: list[Any]) -> Any:
        return functools.reduce(F.broadcast_mul, arrays)


class Average(Add):
    """The mean of arrays."""

    def _merged(self, F: Any, arrays: list[Any]) -> Any:
        return super()._merged(F, arrays) / len(arrays)


class Maximum(_Merge):
    """The larger elements of arrays."""

    def _merged(self, F: Any, arrays: list[Any]) -> Any:
        return functools.reduce(F.broadcast_maximum, arrays)


class _Recurrent(_Described, HybridBlock):
    """A recurrent layer of sequences (N, T, C).

    Args:
        units: size of the state.
        return_sequences: return the outputs of all steps, not of the last one.
        input_shape: of one row.
    """

    _kind: Callable[..., Any]

    def __init__(self, units: int, return_sequences: bool = False, input_shape: Any = None, **settings: Any):
        super().__init__()
        self._all = return_sequences
        self.input_shape = _shape(type(self).__name__, input_shape)
        with self.name_scope():
            self.rnn = type(self)._kind(units, layout="NTC", **settings)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Run over the sequence."""
        out = self.rnn(x)
        return out if self._all else F.SequenceLast(F.transpose(out, axes=(1, 0, 2)))


class LSTM(_Recurrent):
    """Long short-term memory.

    Example:
        >>> import dualmx as mx
        >>> layer = LSTM(4)
        >>> layer.initialize()
        >>> layer(mx.nd.ones((2, 5, 3))).shape
        (2, 4)
    """

    _kind = rnn.LSTM


class GRU(_Recurrent):
    """Gated recurrent unit, with the reset gate after the product."""

    _kind = rnn.GRU


class SimpleRNN(_Recurrent):
    """tanh of what comes in and of the state."""

    _kind = staticmethod(lambda units, **settings: rnn.RNN(units, activation="tanh", **settings))
