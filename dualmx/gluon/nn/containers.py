"""Containers: `Sequential`, `Concatenate` and their hybrid forms, `Identity`."""

from __future__ import annotations

from typing import Any

from ...namespace import nd
from ..base_block import Block
from ..hybrid import HybridBlock


class _IndexedChildren(Block):
    """Children by position."""

    def add(self, *blocks: Any) -> None:
        """Append blocks."""
        for block in blocks:
            self.register_child(block)

    def _listed_children(self) -> list[tuple[str, Any]]:
        return list(self._children.items())

    def __getitem__(self, key: int | slice) -> Any:
        chosen = list(self._children.values())[key]
        if not isinstance(chosen, list):
            return chosen
        part = type(self)(prefix=self._prefix)
        with part.name_scope():
            part.add(*chosen)
        return part

    def __len__(self) -> int:
        return len(self._children)


class Sequential(_IndexedChildren):
    """Blocks called one after the other, each on the output of the one before.

    Example:
        >>> import dualmx as mx
        >>> net = mx.gluon.nn.Sequential()
        >>> net.add(mx.gluon.nn.Dense(8, activation="relu"), mx.gluon.nn.Dense(2))
        >>> net.initialize()
        >>> net(mx.nd.ones((4, 3))).shape
        (4, 2)
    """

    def forward(self, x: Any) -> Any:
        """Call the blocks in turn."""
        for block in self._children.values():
            x = block(x)
        return x


class HybridSequential(_IndexedChildren, HybridBlock):
    """A chain of `HybridBlock`s that can be hybridized as one; see `Sequential`.

    Example:
        >>> import dualmx as mx
        >>> net = mx.gluon.nn.HybridSequential()
        >>> net.add(mx.gluon.nn.Dense(8, activation="relu"), mx.gluon.nn.Dense(2))
        >>> net.initialize()
        >>> net.hybridize()
        >>> net(mx.nd.ones((4, 3))).shape
        (4, 2)
    """

    def _fast_forward(self, x: Any) -> Any:
        for block in self._children.values():
            x = block(x)
        return x

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Call the blocks in turn."""
        # Not by _eager, which mixed precision takes away.
        for block in self._children.values():
            x = block(x)
        return x


class Concatenate(Sequential):
    """Call all children on the same input and concatenate their outputs along `axis`.

    Args:
        axis: of the outputs.

    Example:
        >>> import dualmx as mx
        >>> net = mx.gluon.nn.Concatenate(axis=1)
        >>> net.add(mx.gluon.nn.Dense(2), mx.gluon.nn.Identity())
        >>> net.initialize()
        >>> net(mx.nd.ones((4, 3))).shape
        (4, 5)
    """

    def __init__(self, axis: int = -1, prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def forward(self, x: Any) -> Any:
        """Call the children on `x` and join."""
        parts = [block(x) for block in self._children.values()]
        return parts[0].wrap_array(nd.concat(*parts, dim=self.axis))


class HybridConcatenate(HybridSequential):
    """`Concatenate` of `HybridBlock`s, which can be hybridized.

    Args:
        axis: of the outputs.
    """

    def __init__(self, axis: int = -1, prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    _fast_forward = None  # type: ignore[assignment]

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Call the children on `x` and join."""
        return F.concat(*[block(x) for block in self._children.values()], dim=self.axis)


class Identity(HybridBlock):
    """Return the input.

    Example:
        >>> import dualmx as mx
        >>> mx.gluon.nn.Identity()(mx.nd.ones((2,))).shape
        (2,)
    """

    def _fast_forward(self, x: Any) -> Any:
        return x

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return `x`."""
        return x


Block._quiet.update((Sequential, HybridSequential))


__all__ = ["Concatenate", "HybridConcatenate", "HybridSequential", "Identity", "Sequential"]
