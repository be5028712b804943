"""Initializers made of others or of loaded values, and for packed RNN parameters."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.errors import ArgumentError
from ..namespace import nd
from ..ndarray import NDArray, load, zeros
from .base import InitDesc, Initializer, create, register

_log = logging.getLogger(__name__)
_GATES = {"rnn_relu": ("",), "rnn_tanh": ("",), "lstm": ("_i", "_f", "_c", "_o"), "gru": ("_r", "_z", "_o")}


class Load:
    """Initialize variables with saved values, others with `default_init`.

    Args:
        param: values by name (prefixes `arg:` and `aux:` are dropped), or the file that holds them.
        default_init: initializer of variables without a value.
        verbose: log where each variable came from.

    Raises:
        ArgumentError: on use, a value of another shape, or no value and no default.
    """

    def __init__(self, param: Any, default_init: Any = None, verbose: bool = False):
        values = param if isinstance(param, Mapping) else load(param)
        if not isinstance(values, Mapping):
            raise ArgumentError(f"Load: {param!r} holds a list: expected arrays with names")
        self.param = {n[4:] if n.startswith(("arg:", "aux:")) else n: v for n, v in values.items()}
        self.default_init = default_init
        self.verbose = verbose

    def __call__(self, name: str, arr: NDArray) -> None:
        """Fill the variable `name`."""
        if name in self.param:
            value = self.param[name]
            if tuple(value.shape) != tuple(arr.shape):
                raise ArgumentError(f"Load: {str(name)!r} has shape {arr.shape}, the loaded value {value.shape}")
            arr[:] = value
            how = "loading"
        else:
            if self.default_init is None:
                raise ArgumentError(f"Load: there is no value for {str(name)!r} and no default_init")
            self.default_init(name, arr)
            how = "default"
        if self.verbose:
            _log.info("Initialized %s by %s", name, how)


class Mixed:
    """Choose an initializer by matching the variable's name, first match first.

    Args:
        patterns: regular expressions, matched from the start of the name.
        initializers: one initializer for each.

    Raises:
        ArgumentError: unequal numbers; on use, a name that nothing matches.

    Example:
        >>> import dualmx as mx
        >>> init = Mixed([".*bias", ".*"], [mx.init.Zero(), mx.init.Uniform(0.1)])
    """

    def __init__(self, patterns: Sequence[str], initializers: Sequence[Any]):
        if len(patterns) != len(initializers):
            raise ArgumentError(f"Mixed: {len(patterns)} patterns for {len(initializers)} initializers")
        self.map = [(re.compile(p), i) for p, i in zip(patterns, initializers, strict=True)]

    def __call__(self, name: str, arr: NDArray) -> None:
        """Fill the variable `name`."""
        for pattern, init in self.map:
            if pattern.match(name):
                init(name, arr)
                return
        raise ArgumentError(f"Mixed: {str(name)!r} matches no pattern; add '.*' at the end with a default initializer")


@register
class FusedRNN(Initializer):
    """Initialize the packed parameters of a fused recurrent layer, gate by gate.

    All weights come first, then all biases; within each, by layer, direction, input-to-hidden before
    hidden-to-hidden, and gate.

    Args:
        init: initializer of the matrices (instance, name or JSON); None for the model's own.
        num_hidden, num_layers, mode, bidirectional: as given to the layer; mode is lstm, gru, rnn_relu or rnn_tanh.
        forget_bias: bias of the forget gates of an LSTM.

    Raises:
        ArgumentError: unknown mode, or an array whose size does not fit.
    """

    def __init__(
        self,
        init: Any,
        num_hidden: int,
        num_layers: int,
        mode: str,
        bidirectional: bool = False,
        forget_bias: float = 1.0,
    ):
        if mode not in _GATES:
            raise ArgumentError(f"FusedRNN: mode={mode!r}: expected one of {', '.join(_GATES)}")
        inner = create(init) if init is not None else None
        super().__init__(
            init=inner.dumps() if inner is not None else None,
            num_hidden=num_hidden,
            num_layers=num_layers,
            mode=mode,
            bidirectional=bidirectional,
            forget_bias=forget_bias,
        )
        self._init = inner
        self._num_hidden = num_hidden
        self._num_layers = num_layers
        self._mode = mode
        self._bidirectional = bidirectional
        self._forget_bias = forget_bias

    def _input_size(self, size: int) -> int:
        """Width of the layer's input, from the number of packed values."""
        hidden, gates = self._num_hidden, len(_GATES[self._mode])
        ways = 2 if self._bidirectional else 1
        upper = (self._num_layers - 1) * (ways * hidden + hidden + 2)
        width = size // (ways * gates * hidden) - upper - (hidden + 2)
        if width < 1 or ways * gates * hidden * (upper + width + hidden + 2) != size:
            raise ArgumentError(f"FusedRNN: {size} values do not fit {self!r}")
        return width

    def _parts(self, width: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Name and shape of every part, in packing order."""
        hidden = self._num_hidden
        ways = ("l", "r") if self._bidirectional else ("l",)
        for kind in ("weight", "bias"):
            for layer in range(self._num_layers):
                for way in ways:
                    inputs = width if layer == 0 else len(ways) * hidden
                    for source, columns in (("i2h", inputs), ("h2h", hidden)):
                        for gate in _GATES[self._mode]:
                            shape = (hidden, columns) if kind == "weight" else (hidden,)
                            yield f"{way}{layer}_{source}{gate}_{kind}", shape

    def _init_weight(self, name: str, arr: NDArray) -> None:
        fallback = name.global_init if isinstance(name, InitDesc) else None
        init = self._init if self._init is not None else fallback
        if init is None or init is self:
            raise ArgumentError(f"FusedRNN: {str(name)!r}: no initializer was given for the matrices")
        flat = []
        for part, shape in self._parts(self._input_size(arr.size)):
            values = zeros(shape, ctx=arr.context, dtype=arr.dtype)
            if part.endswith("_f_bias"):
                values[:] = self._forget_bias
            else:
                init(InitDesc(part, global_init=init), values)
            flat.append(values.reshape((-1,)))
        arr[:] = nd.concat(*flat, dim=0)


__all__ = ["FusedRNN", "Load", "Mixed"]
