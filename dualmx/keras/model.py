"""Models: blocks that know how to be trained."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import autograd, initializer
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ..gluon import nn
from ..gluon.block import Block, HybridBlock
from ..namespace import nd
from ..ndarray import NDArray
from .basic_layers import Input, as_block
from .distribute import Strategy, get_replica_context, get_strategy
from .distribute.replicas import replica_context
from .graph import Graph, Placeholder, placeholders
from .training import Training


class Model(Training, Block):
    """A network with `compile`, `fit`, `evaluate` and `predict`; it belongs to the strategy in whose scope it is made.

    Args:
        net: a gluon Block; or nothing in a subclass that defines `call`; or `inputs`.
        outputs: what layers made of the inputs, one or a list.
        inputs: what `keras.Input` returned, one or a list.
        name: accepted.

    Raises:
        ArgumentTypeError: not a Block. ArgumentError: outputs that depend on other inputs.

    Attributes:
        row_shapes: of the inputs, without the axis of rows; None where nothing tells them.

    Example:
        >>> import numpy as np
        >>> import dualmx as mx
        >>> model = Model(mx.gluon.nn.Dense(1))
        >>> model.compile("sgd", "mse")
        >>> len(model.fit(np.ones((8, 3)), np.ones(8), verbose=0).history["loss"])
        1
    """

    row_shapes: list[tuple[int, ...]] | None = None

    def __init__(self, net: Any = None, outputs: Any = None, inputs: Any = None, name: str | None = None):
        super().__init__(prefix="")
        inputs = net if inputs is None and outputs is not None else inputs
        if inputs is not None:
            net = Graph(inputs, outputs)
        self._strategy: Strategy = get_strategy()
        self._compiled = None
        if net is not None and not isinstance(net, Block):
            raise ArgumentTypeError(f"Model: net of type {type(net).__name__}: expected a gluon Block")
        if net is not None:
            self.net = net
        if inputs is not None:
            self.row_shapes = [one.input_shape for one in placeholders([inputs])]  # type: ignore[attr-defined]
            self.build(*[nd.zeros((1, *shape), ctx=self._strategy.contexts[0]) for shape in self.row_shapes])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_compiled": None}  # the copy is trained by itself

    @property
    def distribute_strategy(self) -> Strategy:
        """The strategy in whose scope the model was made."""
        return self._strategy

    def call(self, *inputs: Any) -> Any:
        """Compute the outputs; subclasses without a `net` define it."""
        if "net" not in self.__dict__:
            raise NotImplementedError(f"{type(self).__name__} must define call(), or be given a net")
        return self.net(*inputs)

    def __call__(self, *args: Any, training: bool | None = None) -> Any:
        """Compute the outputs of arrays; NumPy's are copied to the first device of the strategy.

        Args:
            *args: inputs; placeholders of `keras.Input` make this model a layer of another one.
            training: compute as in training, or not; as `autograd` says by default.
        """
        if any(placeholders(args)):
            return Placeholder(self, args)
        replica = get_replica_context()
        if replica is not None and any(id(p) in replica.changed for p in self.collect_params().values()):
            what = f"{type(self).__name__}: its weights change when all replicas have run"
            raise MXNetError(f"{what}; call strategy.run once per update")
        ctx = replica_context(self._strategy.contexts)
        args = tuple(nd.array(a, ctx=ctx, dtype=self._dtype()) if isinstance(a, np.ndarray) else a for a in args)
        if training is None or training == autograd.is_training():
            return super().__call__(*args)
        with autograd.train_mode() if training else autograd.predict_mode():
            return super().__call__(*args)

    def forward(self, *inputs: Any) -> Any:
        """Compute the outputs; weights are made at the first call."""
        if self._missing():
            self.build(*inputs)
        return self.call(*inputs)

    def _missing(self) -> bool:
        params = self.collect_params().values()
        return not all(p._data is not None or p._deferred_init for p in params)

    def build(self, *inputs: Any) -> None:
        """Make the weights, with the shapes that inputs call for.

        Args:
            *inputs: arrays.
        """
        contexts = self._strategy.contexts
        params = self.collect_params()
        for p in params.values():
            if p._data is None and not p._deferred_init:
                p.initialize(None, contexts, initializer.Xavier("uniform", "avg", 3))
        if any(p.list_ctx() != contexts for p in params.values()):
            params.reset_ctx(contexts)
        if any(p._data is None for p in params.values()):
            with autograd.pause():
                self.call(*[a.as_in_context(contexts[0]) for a in inputs])

    # -- weights

    @property
    def layers(self) -> list[Block]:
        """The layers."""
        return list((self.net if "net" in self.__dict__ else self)._children.values())

    @property
    def weights(self) -> list[Any]:
        """All parameters."""
        return list(self.collect_params().values())

    @property
    def trainable_weights(self) -> list[Any]:
        """The parameters that are learned."""
        return [p for p in self.weights if p.grad_req != "null"]

    trainable_variables, variables = trainable_weights, weights

    def summary(self, *inputs: Any) -> None:
        """Print the layers and their parameters."""
        self._require_weights("summary")
        print(f'Model: "{type(self).__name__.lower()}"')
        for layer in self.layers:
            count = sum(int(np.prod(p.shape)) for p in layer.collect_params().values())
            print(f"{layer.name + ' (' + type(layer).__name__ + ')':<48}{count:>12}")
        print(f"Total params: {self.count_params()}")

    def get_weights(self) -> list[np.ndarray]:
        """Return the values of all parameters, in the shapes of gluon.

        Raises:
            MXNetError: the model has no weights yet.
        """
        self._require_weights("get_weights")
        return [p._reduce().asnumpy() for p in self.collect_params().values()]

    def set_weights(self, weights: Any) -> None:
        """Overwrite the values of all parameters.

        Raises:
            ArgumentError: another number of arrays, or other shapes. MXNetError: the model has no weights yet.
        """
        self._require_weights("set_weights")
        params = list(self.collect_params().values())
        if len(weights) != len(params):
            raise ArgumentError(f"set_weights: {len(weights)} arrays; expected {len(params)}")
        for p, value in zip(params, weights, strict=True):
            p.set_data(value if isinstance(value, NDArray) else nd.array(value, dtype=p.dtype))

    def save_weights(self, filepath: str) -> None:
        """Write all parameters to a `.params` file, which `load_weights` and `load_parameters` of the network read.

        Raises:
            MXNetError: the model has no weights yet.
        """
        self._require_weights("save_weights")
        self._network().save_parameters(str(filepath))

    def load_weights(self, filepath: str) -> None:
        """Read what `save_weights` wrote.

        Raises:
            ArgumentError: the file is of another network.
        """
        self._network().load_parameters(str(filepath), ctx=self._strategy.contexts)

    def _network(self) -> Block:
        return self.__dict__.get("net", self)

    def _require_weights(self, what: str) -> None:
        if any(p._data is None for p in self.collect_params().values()):
            raise MXNetError(
                f"{what}: the model has no weights yet; call it on a batch, or give its first layer an input_shape"
            )

    def count_params(self) -> int:
        """Return how many numbers the parameters have together."""
        self._require_weights("count_params")
        return sum(int(np.prod(p.shape)) for p in self.collect_params().values())


class Sequential(Model):
    """Layers one after the other.

    Args:
        layers: of `keras.layers`, or gluon Blocks; the first may be an `Input`.
        name: accepted, for those who write it.

    Raises:
        ArgumentTypeError: something else among the layers.

    Example:
        >>> from dualmx import keras
        >>> model = Sequential([keras.layers.Dense(4, activation="relu", input_shape=(3,)), keras.layers.Dense(2)])
        >>> model.count_params()
        26
    """

    def __init__(self, layers: Any = (), name: str | None = None):
        listed = list(layers)
        self._rows_like = next((s for s in (getattr(one, "input_shape", None) for one in listed[:1]) if s), None)
        blocks = [as_block(one) for one in listed if not isinstance(one, Input)]
        kind = nn.HybridSequential if all(isinstance(b, HybridBlock) for b in blocks) else nn.Sequential
        net = kind(prefix="")
        net.add(*blocks)
        super().__init__(net)
        self._build_early()

    def add(self, layer: Any) -> None:
        """Append a layer.

        Raises:
            MXNetError: the model is compiled already.
        """
        if self._compiled is not None:
            raise MXNetError("Sequential.add: the model is compiled already; add layers before")
        if isinstance(layer, Input):
            self._rows_like = layer.input_shape
            return
        first = not len(self.net)  # type: ignore[arg-type]
        block = as_block(layer)
        if not isinstance(block, HybridBlock) and isinstance(self.net, HybridBlock):
            others = list(self.net._children.values())
            self._children.pop("net")
            del self.net
            self.net = nn.Sequential(prefix="")
            self.net.add(*others)
        self.net.add(block)  # type: ignore[union-attr]
        if first and self._rows_like is None:
            self._rows_like = getattr(layer, "input_shape", None)
        self._build_early()

    def _build_early(self) -> None:
        self.row_shapes = None if self._rows_like is None else [self._rows_like]
        if self._rows_like is not None and self.layers:
            self.build(nd.zeros((1, *self._rows_like), ctx=self._strategy.contexts[0]))
