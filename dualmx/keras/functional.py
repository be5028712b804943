"""Functional models: layers called on placeholders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..core.errors import ArgumentError
from ..gluon.block import Block


class Placeholder:
    """What a layer makes of placeholders; or, without a layer, an input of a model.

    Args:
        layer: the layer, None for an input.
        args: what it is called with.
    """

    def __init__(self, layer: Any = None, args: tuple[Any, ...] = ()):
        self.layer, self.args = layer, args

    def __repr__(self) -> str:
        return f"<placeholder of {type(self.layer).__name__}>"


def placeholders(args: Any) -> Iterator[Placeholder]:
    """Yield the placeholders among arguments and lists of them."""
    for a in args:
        if isinstance(a, Placeholder):
            yield a
        elif isinstance(a, (list, tuple)):
            yield from placeholders(a)


class Graph(Block):
    """The network between inputs and outputs.

    Args:
        inputs: a placeholder, or a list of them, as `keras.Input` returns.
        outputs: one, or a list, as layers return.

    Raises:
        ArgumentError: an output depends on another input.
    """

    def __init__(self, inputs: Any, outputs: Any):
        super().__init__(prefix="")
        self._inputs = list(placeholders([inputs]))
        self._outputs, self._several = list(placeholders([outputs])), isinstance(outputs, (list, tuple))
        self._order: list[Placeholder] = []
        for one in self._outputs:
            self._visit(one)
        for layer in dict.fromkeys(p.layer for p in self._order):
            self.register_child(layer)

    def _visit(self, one: Placeholder) -> None:
        if one in self._order or one in self._inputs:
            return
        if one.layer is None:
            raise ArgumentError("Model: an output depends on a keras.Input that is not among the inputs")
        for before in placeholders(one.args):
            self._visit(before)
        self._order.append(one)

    def forward(self, *args: Any) -> Any:
        """Compute the outputs."""
        if len(args) != len(self._inputs):
            raise ArgumentError(f"Model: {len(args)} inputs: expected {len(self._inputs)}")
        values: dict[Any, Any] = dict(zip(self._inputs, args, strict=True))

        def value(a: Any) -> Any:
            if isinstance(a, Placeholder):
                return values[a]
            return type(a)(map(value, a)) if isinstance(a, (list, tuple)) else a

        for one in self._order:
            values[one] = one.layer(*map(value, one.args))
        found = [values[o] for o in self._outputs]
        return found if self._several else found[0]
