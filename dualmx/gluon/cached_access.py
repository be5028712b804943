"""What is traced of a hybridized block, under the names by which subclasses written for MXNet ask for it."""

from __future__ import annotations

from typing import Any

from ..core.errors import ArgumentError
from ..symbol import Symbol
from .base import Block
from .cached_graph import CachedGraph
from .structure import TreeDef


class CachedAccess(Block):
    """The traced graph of a block: making it, reading it, replacing it and dropping it."""

    _graph: CachedGraph | None
    _active: bool

    def _clear_cached_op(self) -> None:
        """Forget what was traced; the next call traces anew, with the attributes as they are then."""
        object.__setattr__(self, "_graph", None)

    @property
    def _cached_graph(self) -> tuple[Any, ...]:
        """Variables that stand for the inputs, and the symbol of the outputs; empty if nothing is traced."""
        graph = self._graph
        return () if graph is None else (graph.inputs, graph.symbol)

    @_cached_graph.setter
    def _cached_graph(self, graph: tuple[Any, ...]) -> None:
        if not graph:
            self._clear_cached_op()
            return
        inputs, outputs = graph
        variables = [inputs] if isinstance(inputs, Symbol) else list(inputs)
        made = CachedGraph.of_symbol(outputs, variables, self.collect_params()._params, self.name)
        object.__setattr__(self, "_graph", made)

    @property
    def _in_format(self) -> TreeDef:
        """How inputs of the traced call are nested: 0 for an array, lists for lists; `None` if nothing is traced."""
        return None if self._graph is None else self._graph.in_format

    @property
    def _out_format(self) -> TreeDef:
        """How the outputs of the traced call are nested; see `_in_format`."""
        return None if self._graph is None else self._graph.out_format

    def _get_graph(self, *args: Any) -> tuple[Any, ...]:
        """Trace a call with inputs like `args`, if nothing is traced yet; returns `_cached_graph`."""
        if self._graph is None:
            self._graph = CachedGraph.traced(self, args)  # type: ignore[arg-type]
        return self._cached_graph

    def _build_cache(self, *args: Any) -> None:
        """Trace a call with inputs like `args`, and give all parameters their values."""
        graph = self._graph_for(args)
        graph.built = True
        self._init_deferred(graph, args)

    def _deferred_infer_shape(self, *args: Any) -> None:
        """Infer the unknown shapes of parameters, when the first call needs them."""
        self.infer_shape(*args)

    def infer_shape(self, *args: Any) -> None:
        """Set the unknown shapes of parameters from example inputs.

        Raises:
            ArgumentError: the shapes do not follow from the inputs.
        """
        self._infer_attrs("infer_shape", "shape", *args)

    def infer_type(self, *args: Any) -> None:
        """Cast parameters to the dtypes that example inputs call for."""
        self._infer_attrs("infer_type", "dtype", *args)

    def _infer_attrs(self, infer_fn: str, attr: str, *args: Any) -> None:
        """Set an attribute of all parameters from example inputs.

        Args:
            infer_fn: `"infer_shape"` or `"infer_type"`.
            attr: the attribute that it tells, `"shape"` or `"dtype"`.
            args: the inputs.

        Raises:
            ArgumentError: another function or attribute, or nothing follows from the inputs.
        """
        if (infer_fn, attr) not in (("infer_shape", "shape"), ("infer_type", "dtype")):
            raise ArgumentError(
                f"{self.name}: _infer_attrs({infer_fn!r}, {attr!r}): expected 'infer_shape' with 'shape', or "
                "'infer_type' with 'dtype'"
            )
        getattr(self._graph_for(args), infer_fn)(args)

    def _graph_for(self, args: tuple[Any, ...]) -> CachedGraph:
        """The traced graph, which knows the parameters that it reads."""
        self._get_graph(*args)
        graph = self._graph
        assert graph is not None
        graph.read(self.collect_params()._params)
        return graph

    def _init_deferred(self, graph: CachedGraph, args: tuple[Any, ...]) -> None:
        if any(p._deferred_init for p in graph.params):
            self._deferred_infer_shape(*args)
            for param in graph.params:
                param._finish_deferred_init()
