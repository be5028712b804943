"""Shape and type inference as methods of `Symbol`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core import np_mode
from ..core.dtypes import as_dtype
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError, suggest
from ..graph.passes.infer import Key, ShapeT, infer_shapes, is_known
from ..graph.passes.infer_dtype import infer_dtypes
from .compose import SymbolBase
from .node import Node, split_variables, topological
from .text import parse_dtype, parse_partial_shape, parse_shape

Shapes = list[tuple[int, ...]]
Dtypes = list[type[Any] | None]


def match_by_name(
    order: Sequence[Node], args: Sequence[Any], kwargs: Mapping[str, Any], what: str
) -> list[tuple[Node, Any]]:
    """Pair variables with facts given by position (in the order of the arguments) or by name.

    Raises:
        ArgumentError: both ways are used, or too many are given. MXNetError: no variable of a given name.
    """
    if args and kwargs:
        raise ArgumentError(f"{what}: give the facts either by position or by keyword, not both")
    arguments, states = split_variables(order)
    if len(args) > len(arguments):
        raise ArgumentError(f"{what}: got {len(args)} facts for {len(arguments)} arguments")
    pairs = [(node, fact) for node, fact in zip(arguments, args, strict=False) if fact is not None]
    named: dict[str, list[Node]] = {}
    for node in (*arguments, *states):
        named.setdefault(node.name, []).append(node)
    for key, fact in kwargs.items():
        if key not in named:
            raise MXNetError(f"{what}: no variable {key!r}; {suggest(key, named)}")
        pairs += [(node, fact) for node in named[key]]
    return pairs


def initial_shapes(order: Sequence[Node], given: Sequence[tuple[Node, Any]]) -> dict[int, ShapeT | None]:
    """Shapes to start from: those given, and the `__shape__` attributes of the other variables."""
    known = {id(n): parse_shape(n.attrs["__shape__"]) for n in order if n.op is None and "__shape__" in n.attrs}
    for node, shape in given:
        if not isinstance(shape, tuple):
            raise ArgumentTypeError(f"infer_shape: {node.name}={shape!r}: shapes are tuples of integers")
        try:
            known[id(node)] = parse_partial_shape(tuple(int(d) for d in shape))
        except (TypeError, ValueError):
            raise ArgumentTypeError(f"infer_shape: {node.name}={shape!r}: shapes are tuples of integers") from None
    return known


def initial_dtypes(order: Sequence[Node], given: Sequence[tuple[Node, Any]]) -> dict[int, np.dtype]:
    """Dtypes to start from: those given, and the `__dtype__` attributes of the other variables."""
    known: dict[int, np.dtype] = {}
    for node in order:
        if node.op is None and "__dtype__" in node.attrs:
            dtype = parse_dtype(node.attrs["__dtype__"])
            if dtype is not None:
                known[id(node)] = dtype
    known.update((id(node), as_dtype(dtype)) for node, dtype in given)
    return known


class Inference(SymbolBase):
    """The inference methods of `Symbol`."""

    __slots__ = ()

    def _infer_shape(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], list[Any], list[Any]]:
        order = topological(self.entries)
        found = infer_shapes(order, initial_shapes(order, match_by_name(order, args, kwargs, "infer_shape")))
        arguments, states = split_variables(order)
        return (
            [found.get((id(n), 0)) for n in arguments],
            [found.get((id(n), i)) for n, i in self.entries],
            [found.get((id(n), 0)) for n in states],
        )

    def _all_shapes(self, **kwargs: Any) -> tuple[Shapes | None, Shapes | None, Shapes | None]:
        """Like `infer_shape`, for callers that say themselves what is missing."""
        lists = self._infer_shape((), kwargs)
        return lists if all(map(is_known, sum(lists, []))) else (None, None, None)

    def infer_shape(self, *args: Any, **kwargs: Any) -> tuple[Shapes | None, Shapes | None, Shapes | None]:
        """Infer the shapes of all arguments, outputs and auxiliary states from those of some variables.

        Args:
            args: shapes of the arguments in order, `None` for unknown.
            kwargs: shapes by variable name; 0 is an unknown dimension, under NumPy semantics (`npx.set_np`) -1.

        Returns:
            Three lists of shapes (arguments, outputs, auxiliary states), or `(None, None, None)` and a warning with the
            arguments that are missing when not all follow.

        Raises:
            MXNetError: shapes contradict each other (the text names node, argument and both shapes), or no variable
            has a given name. ArgumentTypeError: a shape is not a tuple.

        Example:
            >>> import dualmx as mx
            >>> fc = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=3, name="fc")
            >>> fc.infer_shape(x=(2, 4))
            ([(2, 4), (3, 4), (3,)], [(2, 3)], [])
        """
        lists = self._infer_shape(args, kwargs)
        if all(map(is_known, sum(lists, []))):
            return lists
        arguments = split_variables(topological(self.entries))[0]
        missing = [(v.name, s) for v, s in zip(arguments, lists[0], strict=True) if not is_known(s)]
        warnings.warn(
            "Cannot decide shape for the following arguments (0s in shape means unknown dimensions). "
            "Consider providing them as input:" + "".join(f"\n\t{name}: {shape or ()}" for name, shape in missing),
            stacklevel=2,
        )
        return None, None, None

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> tuple[Shapes, Shapes, Shapes]:
        """Like `infer_shape`, but returns what follows: `()` for an unknown shape, 0 for an unknown dimension.

        Under NumPy semantics they are `None` and -1.
        """
        arguments, outputs, states = self._infer_shape(args, kwargs)
        if np_mode.shape.get():
            return arguments, outputs, states
        return [s or () for s in arguments], [s or () for s in outputs], [s or () for s in states]

    def _infer_type(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Dtypes, Dtypes, Dtypes]:
        order = topological(self.entries)
        given = match_by_name(order, args, kwargs, "infer_type")
        known = initial_dtypes(order, given)
        found = infer_dtypes(order, known)
        arguments, states = split_variables(order)

        def listed(keys: list[Key]) -> Dtypes:
            return [found[k].type if k in found else None for k in keys]

        return (
            listed([(id(n), 0) for n in arguments]),
            listed([(id(n), i) for n, i in self.entries]),
            listed([(id(n), 0) for n in states]),
        )

    def infer_type(self, *args: Any, **kwargs: Any) -> tuple[Dtypes | None, Dtypes | None, Dtypes | None]:
        """Infer the dtypes of all arguments, outputs and auxiliary states from those of some variables.

        Returns:
            Three lists of NumPy types (arguments, outputs, auxiliary states), or `(None, None, None)` when not all
            follow.

        Raises:
            MXNetError: dtypes contradict each other, or no variable has a given name.

        Example:
            >>> import dualmx as mx
            >>> fc = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=3, name="fc")
            >>> [t.__name__ for t in fc.infer_type(x="float16")[0]]
            ['float16', 'float16', 'float16']
        """
        lists = self._infer_type(args, kwargs)
        return (None, None, None) if None in sum(lists, []) else lists

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> tuple[Dtypes, Dtypes, Dtypes]:
        """Like `infer_type`, but returns what follows, with `None` for an unknown dtype."""
        return self._infer_type(args, kwargs)
