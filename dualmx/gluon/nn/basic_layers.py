"""Dense, Dropout, Embedding, Flatten and Lambda; also re-exports containers and normalization."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.errors import ArgumentError, suggest
from ...namespace import nd, sym
from ..base_block import Block
from ..hybrid import HybridBlock
from ..pytree import with_class_of
from . import containers, normalization
from .activations import Activation
from .containers import *  # noqa: F403
from .normalization import *  # noqa: F403
from .normalization import BatchNorm
from .op_layer import OpLayer


class Dense(OpLayer):
    """Fully connected layer: activation(x · weightᵀ + bias).

    Args:
        units: size of the output.
        activation: name of an activation applied to the result.
        use_bias: add a bias.
        flatten: merge all axes but the first; otherwise the layer applies to the last axis.
        dtype: of the parameters.
        weight_initializer, bias_initializer: initializers.
        in_units: size of the input; found at the first forward pass if 0.

    Shapes: input (N, *) or (*, in_units); output (N, units) or (*, units); weight (units, in_units), bias (units,).

    Example:
        >>> import dualmx as mx
        >>> layer = mx.gluon.nn.Dense(3, activation="relu")
        >>> layer.initialize()
        >>> layer(mx.nd.ones((2, 5))).shape
        (2, 3)
    """

    _named = {"_units": "num_hidden", "_flatten": "flatten"}

    def __init__(
        self,
        units: int,
        activation: str | None = None,
        use_bias: bool = True,
        flatten: bool = True,
        dtype: Any = "float32",
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_units: int = 0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self._units, self._in_units, self._flatten = units, in_units, flatten
        with self.name_scope():
            self.weight = self.params.get(
                "weight", shape=(units, in_units), init=weight_initializer, dtype=dtype, allow_deferred_init=True
            )
            self.bias = (
                self.params.get("bias", shape=(units,), init=bias_initializer, dtype=dtype, allow_deferred_init=True)
                if use_bias
                else None
            )
            self.act = Activation(activation, prefix=activation + "_") if activation is not None else None
        self._prepare(
            "FullyConnected", (self.weight, self.bias), num_hidden=units, no_bias=not use_bias, flatten=flatten
        )

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        """Multiply, add, activate."""
        operands = (x, weight) if bias is None else (x, weight, bias)
        out = F.FullyConnected(
            *operands, no_bias=bias is None, num_hidden=self._units, flatten=self._flatten, name="fwd"
        )
        return out if self.act is None else self.act(out)

    def __repr__(self) -> str:
        units, in_units = self.weight.shape or (self._units, 0)
        act = self.act if self.act is not None else "linear"
        return f"{type(self).__name__}({in_units or None} -> {units}, {act})"


class Dropout(OpLayer):
    """Zero each element with probability `rate` while training, and scale the others by 1 / (1 - rate).

    Args:
        rate: fraction that is dropped, from 0 to 1.
        axes: axes along which the same mask is used.

    Raises:
        ArgumentError: a rate outside [0, 1].

    Reference: Srivastava et al. 2014, Dropout.
    """

    _named = {"_axes": "axes"}

    def __init__(self, rate: float, axes: tuple[int, ...] = (), **kwargs: Any):
        super().__init__(**kwargs)
        self._axes = axes
        self._prepare("Dropout", p=rate, axes=axes, cudnn_off=False)

    @property
    def _rate(self) -> float:
        return self._kwargs["p"]

    @_rate.setter
    def _rate(self, rate: float) -> None:
        self._kwargs["p"] = rate

    def _fast_forward(self, x: Any) -> Any:
        return super()._fast_forward(x) if self._kwargs["p"] > 0 else nd.identity(x)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Drop out."""
        return F.Dropout(x, name="fwd", **self._kwargs) if self._rate > 0 else F.identity(x)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p = {self._rate}, axes={self._axes})"


class Embedding(OpLayer):
    """Look up rows of a learned table.

    Args:
        input_dim: number of rows.
        output_dim: length of a row.
        dtype: of the table and the output.
        weight_initializer: of the table.
        sparse_grad: the gradient is row_sparse: only the rows of a batch are computed, stored and updated.

    Shapes: input (*) of row numbers, clipped to [0, input_dim); output (*, output_dim).

    Example:
        >>> import dualmx as mx
        >>> layer = mx.gluon.nn.Embedding(10, 4)
        >>> layer.initialize()
        >>> layer(mx.nd.array([[1, 2, 3]])).shape
        (1, 3, 4)
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        dtype: Any = "float32",
        weight_initializer: Any = None,
        sparse_grad: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.weight = self.params.get(
            "weight",
            shape=(input_dim, output_dim),
            init=weight_initializer,
            dtype=dtype,
            allow_deferred_init=True,
            grad_stype="row_sparse" if sparse_grad else "default",
        )
        self._prepare(
            "Embedding",
            (self.weight,),
            input_dim=input_dim,
            output_dim=output_dim,
            dtype=dtype,
            sparse_grad=sparse_grad,
        )

    def hybrid_forward(self, F: Any, x: Any, weight: Any) -> Any:
        """Look up."""
        return F.Embedding(x, weight, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        values = self._kwargs
        return f"{type(self).__name__}({values['input_dim']} -> {values['output_dim']}, {values['dtype']})"


class Flatten(OpLayer):
    """Merge all axes but the first.

    Shapes: input (N, *); output (N, product of the rest).
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self._prepare("Flatten")

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Flatten."""
        return F.Flatten(x)

    def __repr__(self) -> str:
        return type(self).__name__


class Lambda(Block):
    """Wrap a function of arrays as a block.

    Args:
        function: a function, or the name of one in `mx.nd`.

    Raises:
        ArgumentError: neither a function nor the name of one.

    Example:
        >>> import dualmx as mx
        >>> mx.gluon.nn.Lambda(lambda x: x * 2)(mx.nd.ones((2,))).asnumpy().tolist()
        [2.0, 2.0]
    """

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None):
        super().__init__(prefix=prefix)
        self._func_impl, self._func_name = _resolve(function, "Lambda", (nd,))

    def forward(self, *args: Any) -> Any:
        """Call the function."""
        return with_class_of(args, self._func_impl(*args))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._func_name})"


class HybridLambda(HybridBlock):
    """Wrap a function `f(F, x, ...)`, with `F` either `mx.nd` or `mx.sym`, as a hybrid block.

    Args:
        function: such a function, or a name that exists in both `mx.nd` and `mx.sym`.

    Raises:
        ArgumentError: neither a function nor the name of one.
    """

    _calls_user_code = True

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None):
        super().__init__(prefix=prefix)
        found, self._func_name = _resolve(function, "HybridLambda", (nd, sym))
        self._func = (lambda F, *args: getattr(F, function)(*args)) if isinstance(function, str) else found

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        """Call the function."""
        return self._func(F, x, *args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._func_name})"


def _resolve(function: Any, who: str, spaces: tuple[Any, ...]) -> tuple[Callable[..., Any], str]:
    if isinstance(function, str):
        for space in spaces:
            if not hasattr(space, function):
                raise ArgumentError(
                    f"{who}: no function {function!r} in {space.__name__}; {suggest(function, dir(space))}"
                )
        return getattr(spaces[0], function), function
    if not callable(function):
        raise ArgumentError(f"{who}: expected a function or its name, got {type(function).__name__}")
    return function, getattr(function, "__name__", type(function).__name__)


_BatchNorm = BatchNorm  # MXNet's name, by which programs tell layers of the kind

__all__ = ["Activation", "Dense", "Dropout", "Embedding", "Flatten", "HybridLambda", "Lambda", "_BatchNorm"]
__all__ += containers.__all__
__all__ += normalization.__all__
