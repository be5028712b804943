"""Keras' layers as gluon blocks, channels last."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from .. import initializer
from ..core.errors import ArgumentError, ArgumentTypeError, suggest
from ..gluon import nn, rnn
from ..gluon.block import Block, HybridBlock
from .functional import Placeholder, placeholders

_SIMPLE = {
    "relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "softsign": "softsign", "softplus": "softrelu",
}  # fmt: skip
_OTHERS: dict[str, Callable[[Any, Any], Any]] = {
    "linear": lambda F, x: x,
    "softmax": lambda F, x: F.softmax(x, axis=-1),
    "log_softmax": lambda F, x: F.log_softmax(x, axis=-1),
    "elu": lambda F, x: F.LeakyReLU(x, act_type="elu", slope=1.0),
    "selu": lambda F, x: F.LeakyReLU(x, act_type="selu"),
    "gelu": lambda F, x: F.LeakyReLU(x, act_type="gelu"),
    "leaky_relu": lambda F, x: F.LeakyReLU(x, act_type="leaky", slope=0.2),
    "relu6": lambda F, x: F.clip(x, 0.0, 6.0),
    "swish": lambda F, x: x * F.sigmoid(x),
    "silu": lambda F, x: x * F.sigmoid(x),
    "exponential": lambda F, x: F.exp(x),
}
_INITIALIZERS: dict[str, Callable[[], Any]] = {
    "zeros": initializer.Zero,
    "ones": initializer.One,
    "random_normal": lambda: initializer.Normal(0.05),
    "random_uniform": lambda: initializer.Uniform(0.05),
    "glorot_uniform": lambda: initializer.Xavier("uniform", "avg", 3),
    "glorot_normal": lambda: initializer.Xavier("gaussian", "avg", 1),
    "he_uniform": lambda: initializer.Xavier("uniform", "in", 6),
    "he_normal": lambda: initializer.Xavier("gaussian", "in", 2),
    "lecun_uniform": lambda: initializer.Xavier("uniform", "in", 3),
    "lecun_normal": lambda: initializer.Xavier("gaussian", "in", 1),
    "orthogonal": initializer.Orthogonal,
}


def _initial(who: str, name: str, wanted: Any) -> Any:
    """Return an initializer from an initializer or its Keras name."""
    if wanted is None or isinstance(wanted, initializer.Initializer):
        return wanted
    if not isinstance(wanted, str):
        raise ArgumentTypeError(f"{who}: {name}={wanted!r}: expected a name or an Initializer")
    if wanted not in _INITIALIZERS:
        raise ArgumentError(f"{who}: {name}={wanted!r}: unknown; {suggest(wanted, list(_INITIALIZERS))}")
    return _INITIALIZERS[wanted]()


def _shape(who: str, wanted: Any) -> tuple[int, ...] | None:
    if wanted is None:
        return None
    shape = (wanted,) if isinstance(wanted, int) else tuple(wanted)
    if not all(isinstance(d, int) and d > 0 for d in shape):
        raise ArgumentError(f"{who}: input_shape={wanted!r}: expected positive integers, without the axis of rows")
    return shape


def _pair(who: str, name: str, value: Any) -> tuple[int, int]:
    pair = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) != 2 or not all(isinstance(v, int) and v > 0 for v in pair):
        raise ArgumentError(f"{who}: {name}={value!r}: expected a positive integer or two of them")
    return pair


def _layout(who: str, data_format: str) -> str:
    known = {"channels_last": "NHWC", "channels_first": "NCHW"}
    if data_format not in known:
        raise ArgumentError(f"{who}: data_format={data_format!r}: expected 'channels_last' or 'channels_first'")
    return known[data_format]


class _LayerMixin:
    """What every layer takes: `input_shape`, of one row, lets a `Sequential` make its weights before it sees data."""

    input_shape: tuple[int, ...] | None = None

    def __call__(self, *args: Any) -> Any:
        """Compute the outputs; of placeholders, return another one."""
        if any(placeholders(args)):
            return Placeholder(self, args)
        return super().__call__(*args)  # type: ignore[misc]


class Input(Placeholder):
    """The shape of one row: the first element of a `Sequential`, or what layers are called on.

    Args:
        shape: without the axis of rows.

    Example:
        >>> from dualmx import keras
        >>> x = keras.Input(shape=(3,))
        >>> h = keras.layers.Dense(4, activation="relu")(x)
        >>> keras.Model(inputs=x, outputs=keras.layers.Add()([h, h])).count_params()
        16
    """

    def __init__(self, shape: Any):
        super().__init__()
        self.input_shape = _shape("Input", shape)


class Activation(_LayerMixin, HybridBlock):
    """Apply a function to each element (softmax: to the last axis).

    Args:
        activation: `"relu"`, `"softmax"`, ..., or a function of an array.

    Raises:
        ArgumentError: an unknown name. ArgumentTypeError: neither a name nor a function.

    Example:
        >>> import dualmx as mx
        >>> Activation("relu")(mx.nd.array([-1, 2])).asnumpy().tolist()
        [0.0, 2.0]
    """

    def __init__(self, activation: Any, input_shape: Any = None):
        super().__init__()
        self.input_shape = _shape("Activation", input_shape)
        if isinstance(activation, str):
            known = [*_SIMPLE, *_OTHERS]
            if activation not in known:
                raise ArgumentError(f"Activation: {activation!r}: unknown; {suggest(activation, known)}")
        elif not callable(activation):
            raise ArgumentTypeError(f"Activation: {activation!r}: expected a name or a function")
        self._wanted = activation

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the function."""
        if not isinstance(self._wanted, str):
            return self._wanted(x)
        if self._wanted in _SIMPLE:
            return F.Activation(x, act_type=_SIMPLE[self._wanted])
        return _OTHERS[self._wanted](F, x)


def _then(activation: Any) -> Activation | None:
    return None if activation in (None, "linear") else Activation(activation)


class Flatten(_LayerMixin, nn.Flatten):
    """Merge all axes of a row.

    Args:
        input_shape: of one row.
    """

    def __init__(self, input_shape: Any = None):
        super().__init__()
        self.input_shape = _shape("Flatten", input_shape)


class Dense(_LayerMixin, nn.Dense):
    """Fully connected layer on the last axis.

    Args:
        units: size of the output.
        activation: see `Activation`.
        use_bias: add a bias.
        kernel_initializer, bias_initializer: names or Initializers.
        input_shape: of one row.

    Example:
        >>> import dualmx as mx
        >>> layer = Dense(3, activation="softmax")
        >>> layer.initialize()
        >>> layer(mx.nd.ones((2, 5))).sum(axis=1).asnumpy().round(3).tolist()
        [1.0, 1.0]
    """

    def __init__(
        self, units: int, activation: Any = None, use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros", input_shape: Any = None,
    ):  # fmt: skip
        super().__init__(
            units,
            use_bias=use_bias,
            flatten=False,
            weight_initializer=_initial("Dense", "kernel_initializer", kernel_initializer),
            bias_initializer=_initial("Dense", "bias_initializer", bias_initializer),
        )
        self.act = _then(activation)  # type: ignore[assignment]
        self.input_shape = _shape("Dense", input_shape)


class Conv2D(_LayerMixin, nn.Conv2D):
    """Two-dimensional convolution.

    Args:
        filters: channels of the output.
        kernel_size, strides, dilation_rate: an int or a pair.
        padding: `"valid"`, or `"same"` for odd kernels moved by 1.
        data_format: `"channels_last"` or `"channels_first"`.
        activation, use_bias, kernel_initializer, bias_initializer, input_shape: see `Dense`.

    Raises:
        ArgumentError: a padding that is not the same on both sides.
    """

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
        data_format: str = "channels_last", dilation_rate: Any = (1, 1), activation: Any = None,
        use_bias: bool = True, kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
        input_shape: Any = None,
    ):  # fmt: skip
        kernel, by, dilation = (
            _pair("Conv2D", n, v)
            for n, v in (("kernel_size", kernel_size), ("strides", strides), ("dilation_rate", dilation_rate))
        )
        super().__init__(
            filters,
            kernel,
            by,
            _padding(padding, kernel, by, dilation),
            dilation,
            layout=_layout("Conv2D", data_format),
            use_bias=use_bias,
            weight_initializer=_initial("Conv2D", "kernel_initializer", kernel_initializer),
            bias_initializer=_initial("Conv2D", "bias_initializer", bias_initializer),
        )
        self.act = _then(activation)  # type: ignore[assignment]
        self.input_shape = _shape("Conv2D", input_shape)


def _padding(padding: str, kernel: tuple[int, int], by: tuple[int, int], dilation: tuple[int, int]) -> tuple[int, int]:
    if padding not in ("valid", "same"):
        raise ArgumentError(f"Conv2D: padding={padding!r}: expected 'valid' or 'same'")
    if padding == "valid":
        return 0, 0
    reach = [(k - 1) * d for k, d in zip(kernel, dilation, strict=True)]
    if by != (1, 1) or any(r % 2 for r in reach):
        raise ArgumentError(
            f"Conv2D: padding='same' with kernel_size={kernel}, strides={by}: the padding would depend on the input; "
            "use odd kernels moved by 1, or gluon.nn.Conv2D(padding=...) in the list of layers"
        )
    return reach[0] // 2, reach[1] // 2


class MaxPooling2D(_LayerMixin, nn.MaxPool2D):
    """Maxima of windows.

    Args:
        pool_size, strides: an int or a pair; windows do not overlap by default.
        data_format: see `Conv2D`.
        input_shape: of one row.
    """

    def __init__(
        self, pool_size: Any = (2, 2), strides: Any = None, data_format: str = "channels_last", input_shape: Any = None
    ):
        super().__init__(pool_size, strides, 0, _layout("MaxPooling2D", data_format))
        self.input_shape = _shape("MaxPooling2D", input_shape)


class AveragePooling2D(_LayerMixin, nn.AvgPool2D):
    """Means of windows; see `MaxPooling2D` for the arguments."""

    def __init__(
        self, pool_size: Any = (2, 2), strides: Any = None, data_format: str = "channels_last", input_shape: Any = None
    ):
        super().__init__(pool_size, strides, 0, layout=_layout("AveragePooling2D", data_format))
        self.input_shape = _shape("AveragePooling2D", input_shape)


class GlobalAveragePooling2D(_LayerMixin, HybridBlock):
    """Mean of each channel.

    Args:
        data_format: see `Conv2D`.
        input_shape: of one row.
    """

    def __init__(self, data_format: str = "channels_last", input_shape: Any = None):
        super().__init__()
        self._over = (1, 2) if _layout("GlobalAveragePooling2D", data_format) == "NHWC" else (2, 3)
        self.input_shape = _shape("GlobalAveragePooling2D", input_shape)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Take the means."""
        return F.mean(x, axis=self._over)


class Dropout(_LayerMixin, nn.Dropout):
    """Zero a share of the elements while training.

    Args:
        rate: the share.
        input_shape: of one row.
    """

    def __init__(self, rate: float, input_shape: Any = None):
        super().__init__(rate)
        self.input_shape = _shape("Dropout", input_shape)


class BatchNormalization(_LayerMixin, nn.BatchNorm):
    """Normalize by the statistics of the batch, on each device those of its part.

    Args:
        axis: of the channels.
        momentum: share of the old running statistics.
        epsilon: added to the variance.
        center, scale: learn a shift, learn a factor.
        input_shape: of one row.
    """

    def __init__(
        self, axis: int = -1, momentum: float = 0.99, epsilon: float = 1e-3, center: bool = True, scale: bool = True,
        input_shape: Any = None,
    ):  # fmt: skip
        super().__init__(axis, momentum, epsilon, center, scale)
        self.input_shape = _shape("BatchNormalization", input_shape)


class LayerNormalization(_LayerMixin, nn.LayerNorm):
    """Normalize each row along an axis.

    Args:
        axis: the axis.
        epsilon: added to the variance.
        center, scale: learn a shift, learn a factor.
        input_shape: of one row.
    """

    def __init__(
        self, axis: int = -1, epsilon: float = 1e-3, center: bool = True, scale: bool = True, input_shape: Any = None
    ):
        super().__init__(axis, epsilon, center, scale)
        self.input_shape = _shape("LayerNormalization", input_shape)


class Embedding(_LayerMixin, nn.Embedding):
    """Look up rows of a learned table.

    Args:
        input_dim, output_dim: number and length of the rows.
        embeddings_initializer: name or Initializer.
        input_shape: of one row of data.
    """

    def __init__(
        self, input_dim: int, output_dim: int, embeddings_initializer: Any = "random_uniform", input_shape: Any = None
    ):
        initial = _initial("Embedding", "embeddings_initializer", embeddings_initializer)
        super().__init__(input_dim, output_dim, weight_initializer=initial)
        self.input_shape = _shape("Embedding", input_shape)


class Reshape(_LayerMixin, HybridBlock):
    """Give every row another shape.

    Args:
        target_shape: of one row; one number may be -1.
        input_shape: of one row.
    """

    def __init__(self, target_shape: Any, input_shape: Any = None):
        super().__init__()
        self._target = tuple(target_shape)
        if sum(d == -1 for d in self._target) > 1 or not math.prod(self._target):
            raise ArgumentError(f"Reshape: target_shape={target_shape!r}: expected positive integers, at most one -1")
        self.input_shape = _shape("Reshape", input_shape)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Reshape."""
        return F.reshape(x, shape=(0, *self._target)) if -1 in self._target else F.reshape(x, shape=(-1, *self._target))


class Rescaling(_LayerMixin, HybridBlock):
    """x · scale + offset.

    Args:
        scale, offset: numbers.
        input_shape: of one row.
    """

    def __init__(self, scale: float, offset: float = 0.0, input_shape: Any = None):
        super().__init__()
        self._by = (scale, offset)
        self.input_shape = _shape("Rescaling", input_shape)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Multiply and add."""
        return x * self._by[0] + self._by[1]


MaxPool2D, AvgPool2D, InputLayer = MaxPooling2D, AveragePooling2D, Input


def as_block(layer: Any) -> Block:
    """Return what a `Sequential` may contain as a Block.

    Raises:
        ArgumentTypeError: something else.
    """
    if isinstance(layer, Block):
        return layer
    raise ArgumentTypeError(f"Sequential: a {type(layer).__name__}: expected layers of keras.layers or gluon Blocks")


class _WeightlessLayer(_LayerMixin, HybridBlock):
    """A function without weights."""

    def __init__(self, input_shape: Any = None):
        super().__init__()
        self.input_shape = _shape(type(self).__name__, input_shape)


class ReLU(_WeightlessLayer):
    """max(x, 0), bounded by `max_value`."""

    def __init__(self, max_value: float | None = None, input_shape: Any = None):
        super().__init__(input_shape)
        self._most = max_value

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the function."""
        return F.relu(x) if self._most is None else F.clip(x, 0.0, self._most)


class LeakyReLU(_WeightlessLayer):
    """x where it is positive, `alpha`·x elsewhere."""

    def __init__(self, alpha: float = 0.3, negative_slope: float | None = None, input_shape: Any = None):
        super().__init__(input_shape)
        self._slope = alpha if negative_slope is None else negative_slope

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the function."""
        return F.LeakyReLU(x, act_type="leaky", slope=self._slope)


class ELU(_WeightlessLayer):
    """x where it is positive, `alpha`·(eˣ - 1) elsewhere."""

    def __init__(self, alpha: float = 1.0, input_shape: Any = None):
        super().__init__(input_shape)
        self._slope = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the function."""
        return F.LeakyReLU(x, act_type="elu", slope=self._slope)


class Softmax(_WeightlessLayer):
    """Softmax along an axis."""

    def __init__(self, axis: int = -1, input_shape: Any = None):
        super().__init__(input_shape)
        self._axis = axis

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Apply the function."""
        return F.softmax(x, axis=self._axis)


class Lambda(_LayerMixin, Block):
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


class Permute(_WeightlessLayer):
    """Put the axes of a row, numbered from 1, in another order."""

    def __init__(self, dims: Any, input_shape: Any = None):
        super().__init__(input_shape)
        self._axes = (0, *dims)
        if sorted(self._axes) != list(range(len(self._axes))):
            raise ArgumentError(f"Permute: dims={dims!r}: expected the numbers 1 to {len(self._axes) - 1}")

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Transpose."""
        return F.transpose(x, axes=self._axes)


class RepeatVector(_WeightlessLayer):
    """Repeat each row `n` times along a new axis."""

    def __init__(self, n: int, input_shape: Any = None):
        super().__init__(input_shape)
        self._count = n

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Repeat."""
        return F.repeat(F.expand_dims(x, axis=1), repeats=self._count, axis=1)


class GaussianNoise(_WeightlessLayer):
    """Add draws of N(0, `stddev`²) while training."""

    def __init__(self, stddev: float, input_shape: Any = None):
        super().__init__(input_shape)
        self._deviation = stddev

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Add noise."""
        from .. import autograd

        return x + F.random.normal_like(x, scale=self._deviation) if autograd.is_training() else x


class GlobalMaxPooling2D(_WeightlessLayer):
    """Maximum of each channel."""

    def __init__(self, data_format: str = "channels_last", input_shape: Any = None):
        super().__init__(input_shape)
        self._over = (1, 2) if _layout("GlobalMaxPooling2D", data_format) == "NHWC" else (2, 3)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Take the maxima."""
        return F.max(x, axis=self._over)


class GlobalAveragePooling1D(_WeightlessLayer):
    """Mean over the steps of a sequence: (N, T, C) to (N, C)."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Take the means."""
        return F.mean(x, axis=1)


class GlobalMaxPooling1D(_WeightlessLayer):
    """Maximum over the steps of a sequence: (N, T, C) to (N, C)."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Take the maxima."""
        return F.max(x, axis=1)


class MaxPooling1D(_LayerMixin, nn.MaxPool1D):
    """Maxima of windows of a sequence (N, T, C)."""

    def __init__(self, pool_size: int = 2, strides: int | None = None, input_shape: Any = None):
        super().__init__(pool_size, strides, 0, "NWC")
        self.input_shape = _shape("MaxPooling1D", input_shape)


class Conv1D(_LayerMixin, nn.Conv1D):
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


class ZeroPadding2D(_WeightlessLayer):
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


class UpSampling2D(_WeightlessLayer):
    """Repeat the rows and columns of images (N, H, W, C)."""

    def __init__(self, size: Any = (2, 2), input_shape: Any = None):
        super().__init__(input_shape)
        self._by = _pair("UpSampling2D", "size", size)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Repeat."""
        return F.repeat(F.repeat(x, repeats=self._by[0], axis=1), repeats=self._by[1], axis=2)


class _MergeLayer(_LayerMixin, HybridBlock):
    """A layer of a list of arrays."""

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        """Merge the arrays, passed one by one or in a list."""
        found = list(x) if not args and isinstance(x, (list, tuple)) else [x, *args]
        if len(found) < 2:
            raise ArgumentError(f"{type(self).__name__}: expected a list of two or more arrays")
        return self._merged(F, found)

    def _merged(self, F: Any, arrays: list[Any]) -> Any:
        raise NotImplementedError


class Concatenate(_MergeLayer):
    """Join arrays along an axis."""

    def __init__(self, axis: int = -1):
        super().__init__()
        self._axis = axis

    def _merged(self, F: Any, arrays: list[Any]) -> Any:
        return F.concat(*arrays, dim=self._axis)


class Add(_MergeLayer):
    """The sum of arrays."""

    def _merged(self, F: Any, arrays: list[Any]) -> Any:
        return functools.reduce(F.broadcast_add, arrays)


class Subtract(_MergeLayer):
    """The first array minus the second."""

    def _merged(self, F: Any, arrays: list[Any]) -> Any:
        return F.broadcast_sub(arrays[0], arrays[1])


class Multiply(_MergeLayer):
    """The product of arrays."""

    def _merged(self, F: Any, arrays: list[Any]) -> Any:
        return functools.reduce(F.broadcast_mul, arrays)


class Average(Add):
    """The mean of arrays."""

    def _merged(self, F: Any, arrays: list[Any]) -> Any:
        return super()._merged(F, arrays) / len(arrays)


class Maximum(_MergeLayer):
    """The larger elements of arrays."""

    def _merged(self, F: Any, arrays: list[Any]) -> Any:
        return functools.reduce(F.broadcast_maximum, arrays)


class _RecurrentLayer(_LayerMixin, HybridBlock):
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


class LSTM(_RecurrentLayer):
    """Long short-term memory.

    Example:
        >>> import dualmx as mx
        >>> layer = LSTM(4)
        >>> layer.initialize()
        >>> layer(mx.nd.ones((2, 5, 3))).shape
        (2, 4)
    """

    _kind = rnn.LSTM


class GRU(_RecurrentLayer):
    """Gated recurrent unit, with the reset gate after the product."""

    _kind = rnn.GRU


class SimpleRNN(_RecurrentLayer):
    """tanh of a linear function of input and state."""

    _kind = staticmethod(lambda units, **settings: rnn.RNN(units, activation="tanh", **settings))


__all__ = [
    "Activation",
    "Add",
    "Average",
    "AveragePooling2D",
    "AvgPool2D",
    "BatchNormalization",
    "Concatenate",
    "Conv1D",
    "Conv2D",
    "Dense",
    "Dropout",
    "ELU",
    "Embedding",
    "Flatten",
    "GRU",
    "GaussianNoise",
    "GlobalAveragePooling1D",
    "GlobalAveragePooling2D",
    "GlobalMaxPooling1D",
    "GlobalMaxPooling2D",
    "Input",
    "InputLayer",
    "LSTM",
    "Lambda",
    "LayerNormalization",
    "LeakyReLU",
    "MaxPool2D",
    "MaxPooling1D",
    "MaxPooling2D",
    "Maximum",
    "Multiply",
    "Permute",
    "ReLU",
    "RepeatVector",
    "Rescaling",
    "Reshape",
    "SimpleRNN",
    "Softmax",
    "Subtract",
    "UpSampling2D",
    "ZeroPadding2D",
]
