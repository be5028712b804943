"""`HybridBlock`: a block that runs on arrays and on symbols, and compiles to one graph when hybridized."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ..core.context import Context
from ..core.errors import ArgumentError, InputKindError, MXNetError
from ..namespace import nd, sym
from ..ndarray import NDArray
from ..symbol import Symbol
from ..symbol.symbol import check_backend
from .base_block import Block
from .cached_graph import CachedGraph
from .parameter import DeferredInitializationError, Parameter, ParameterDict
from .pytree import TreeDef, is_numpy, to_nd_class, to_np_class

_ROOM = __name__.rpartition(".")[0] + "."
_LAYERS = _ROOM + "nn."


class HybridBlock(Block):
    """A block whose `hybrid_forward(F, x, ..., **params)` works with `F = mx.nd` and with `F = mx.sym`.

    Called on arrays, it computes step by step; after `hybridize()` its first call traces `hybrid_forward` once with
    symbols, and this and later calls run the traced graph. Called on symbols, it returns a symbol. Parameters held in
    attributes arrive as keyword arguments under the attribute's name.

    Args:
        prefix: of the names of parameters and children; counted from the class name if `None`.
        params: parameters to share instead of creating new ones.

    Example:
        >>> import dualmx as mx
        >>> class Scale(mx.gluon.HybridBlock):
        ...     def __init__(self, **kwargs):
        ...         super().__init__(**kwargs)
        ...         self.factor = self.params.get("factor", shape=(1,), init="ones")
        ...
        ...     def hybrid_forward(self, F, x, factor):
        ...         return F.broadcast_mul(x, factor)
        >>> net = Scale()
        >>> net.initialize()
        >>> net.hybridize()
        >>> net(mx.nd.ones((2, 3))).sum().asscalar().item()
        6.0
    """

    # Shortcut of a layer class for one NDArray; a user's subclass that defines its own hybrid_forward loses it.
    _fast_forward: Callable[[Any], Any] | None = None
    # Its parameters are held in more parts than they are computed with; `parallel.fully_shard` says so.
    _holds_shards = False
    # A block of dualmx whose hybrid_forward calls a function of the user.
    _calls_user_code = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if (
            "hybrid_forward" in cls.__dict__
            and "_fast_forward" not in cls.__dict__
            and not cls.__module__.startswith(_LAYERS)
        ):
            cls._fast_forward = None

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None):
        super().__init__(prefix, params)
        self._active = False
        self._graph: CachedGraph | None = None
        self._flags: list[tuple[str, Any]] = []
        self._op_hook: tuple[Callable[..., None], bool] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Drop the traced graph from copies."""
        return {**self.__dict__, "_graph": None}

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, Block) or (isinstance(value, Parameter) and self._graph is not None):
            self._clear_cached_op()

    # ---- the traced graph

    def clear_cached_op(self) -> None:
        """Let the next call trace the block again, by the method that subclasses replace."""
        self._clear_cached_op()

    def _clear_cached_op(self) -> None:
        """Drop the traced graph; the next call traces with the current attributes."""
        object.__setattr__(self, "_graph", None)

    @property
    def _cached_graph(self) -> tuple[Any, ...]:
        """The input variables, and the symbol of the outputs; empty if nothing is traced."""
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
            self._graph = CachedGraph.traced(self, args)
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

    # ---- children and calls

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Add a child, which must be a `HybridBlock` too."""
        if not isinstance(block, HybridBlock):
            raise ArgumentError(
                f"{self.name}: children of a HybridBlock must be HybridBlocks, got {type(block).__name__}; "
                "for containers, use HybridSequential instead of Sequential"
            )
        super().register_child(block, name)
        self._clear_cached_op()

    def hybridize(
        self,
        active: bool = True,
        backend: str | None = None,
        clear: bool = True,
        static_alloc: bool = False,
        static_shape: bool = False,
        inline_limit: int = 2,
        forward_bulk_size: int | None = None,
        backward_bulk_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Trace at the next call and run the traced graph from then on, or stop doing so.

        Args:
            active: false returns to step-by-step execution.
            backend: name of a graph partitioner of MXNet; accepted without effect, see `Symbol.optimize_for`.
            clear: forget what was traced before.
            static_alloc, static_shape, inline_limit, forward_bulk_size, backward_bulk_size: MXNet's tuning flags;
                accepted without effect, because XLA always plans memory and specializes on shapes.

        Raises:
            ArgumentError: an unknown backend.
        """
        if backend is not None:
            check_backend("hybridize", backend)
        self._active = active
        self._flags = [
            ("static_alloc", static_alloc),
            ("static_shape", static_shape),
            ("inline_limit", inline_limit),
            *kwargs.items(),
        ]
        if clear:
            self._clear_cached_op()
        if active and (self._forward_hooks or self._forward_pre_hooks):
            warnings.warn(
                f"{self.name!r} is hybridized while it has forward hooks; as a child of a hybridized block they run "
                "only while tracing",
                stacklevel=2,
            )
        super().hybridize(
            active, static_alloc=static_alloc, static_shape=static_shape, inline_limit=inline_limit,
            forward_bulk_size=forward_bulk_size, backward_bulk_size=backward_bulk_size,
        )  # fmt: skip

    def cast(self, dtype: Any) -> None:
        """Convert all parameters to `dtype`; what was traced is forgotten."""
        self._clear_cached_op()
        super().cast(dtype)

    def forward(self, x: Any, *args: Any) -> Any:
        """Run `hybrid_forward` on arrays (or the traced graph, when hybridized) or on symbols."""
        if isinstance(x, NDArray):
            if x.__class__ is not NDArray and not x.is_sparse:
                return self._on_numpy(x.context, x, *args)
            if self._active:
                return self._call_cached_op(x, *args)
            if self._fast_forward is not None and not args and not self._holds_shards:
                return self._fast_forward(x)
            return self._forward_eager(x.context, x, *args)
        if isinstance(x, Symbol):
            return self._on_symbols(x, *args)
        first = _first_array((x, *args))
        if isinstance(first, NDArray):
            if first.__class__ is not NDArray and not first.is_sparse:
                return self._on_numpy(first.context, x, *args)
            return self._call_cached_op(x, *args) if self._active else self._forward_eager(first.context, x, *args)
        if isinstance(first, Symbol):
            return self._on_symbols(x, *args)
        raise InputKindError(f"{self.name}: expected an NDArray or a Symbol among the inputs, got {type(x).__name__}")

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs with the functions of `F`, which is `mx.nd` or `mx.sym`; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define hybrid_forward() or forward()")

    def _forward_eager(self, ctx: Context, x: Any, *args: Any) -> Any:
        try:
            params = {name: param._fast_lookup[ctx] for name, param in self._reg_params.items()}
        except KeyError:
            params = self._finish_deferred(ctx, x, *args)
        if self._holds_shards:
            params = self._gather_shards(nd, params)
        return self.hybrid_forward(nd, x, *args, **params)

    def _gather_shards(self, F: Any, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters with sharded ones gathered for the computation."""
        specs = {name: str(p._shard) for name, p in self._reg_params.items() if p._extra_shard_axis}
        return {
            name: F.contrib.sharding_constraint(value, spec=specs[name], saved=False) if name in specs else value
            for name, value in params.items()
        }

    def _on_numpy(self, ctx: Context, *args: Any) -> Any:
        """Run on arrays with NumPy semantics."""
        own = self._is_builtin()
        x, *rest = to_nd_class(args) if own else args
        if self._active:
            return to_np_class(self._call_cached_op(x, *rest))
        if own and self._fast_forward is not None and not rest and not self._holds_shards:
            return to_np_class(self._fast_forward(x))
        return to_np_class(self._forward_eager(ctx, x, *rest))

    def _is_builtin(self) -> bool:
        """True if this block and all its descendants are dualmx's, which compute with classic operators."""
        kind = type(self)
        if self._calls_user_code or not all(
            m.__module__.startswith(_ROOM) for m in (kind.hybrid_forward, kind.forward)
        ):
            return False
        # Hooks of the descendants are a user's, and receive what the user's arrays are.
        return all(
            isinstance(child, HybridBlock)
            and not (child._forward_hooks or child._forward_pre_hooks)
            and child._is_builtin()
            for child in self._children.values()
        )

    def _finish_deferred(self, ctx: Context, *args: Any) -> dict[str, Any]:
        """Finish deferred initialization with the shapes of `args`; return this block's parameters."""
        try:
            return {name: param.data(ctx) for name, param in self._reg_params.items()}
        except DeferredInitializationError:
            self._deferred_infer_shape(*args)
            for own in self.params.values():
                own._finish_deferred_init()
            return {name: param.data(ctx) for name, param in self._reg_params.items()}

    def _call_cached_op(self, *args: Any) -> Any:
        graph = self._graph
        if graph is None or not graph.built:
            self._build_cache(*args)
            graph = self._graph
            assert graph is not None
        if self._op_hook is not None:
            self._init_deferred(graph, args)
            graph.monitor(args, *self._op_hook)
        try:
            return graph(args)
        except DeferredInitializationError:
            self._init_deferred(graph, args)
            return graph(args)

    def _on_symbols(self, x: Any, *args: Any) -> Any:
        params: dict[str, Any] = {name: p.var() for name, p in self._reg_params.items()}
        if self._holds_shards:
            params = self._gather_shards(sym, params)
        numpy = is_numpy(_first_array((x, *args)))
        if numpy:
            own = self._is_builtin()
            given = to_nd_class((x, *args)) if own else (x, *args)
            x, args, params = given[0], given[1:], params if own else to_np_class(params)
        with self.name_scope():
            out = self.hybrid_forward(sym, x, *args, **params)
        return to_np_class(out) if numpy else out

    def register_op_hook(self, callback: Callable[[str, str, Any], None], monitor_all: bool = False) -> None:
        """When hybridized, call `callback(array name, op name, array)` for the outputs of all ops of each call.

        Args:
            callback: receives the names and an NDArray.
            monitor_all: pass inputs and parameters too.
        """
        super().register_op_hook(callback, monitor_all)
        self._op_hook = (callback, monitor_all)

    def optimize_for(
        self, x: Any, *args: Any, backend: str | None = None, clear: bool = False, static_alloc: bool = False,
        static_shape: bool = False, inline_limit: int = 2, forward_bulk_size: int | None = None,
        backward_bulk_size: int | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        """Hybridize for a graph partitioner (see `hybridize`) and run once on the example inputs.

        Raises:
            ArgumentError: no backend given, or an unknown one.
        """
        if backend is None:
            raise ArgumentError("optimize_for: give the name of a backend")
        self.hybridize(True, backend, clear, static_alloc, static_shape, inline_limit, **kwargs)
        self(x, *args)

    def export(self, path: str, epoch: int = 0, remove_amp_cast: bool = True) -> None:
        """Write the traced graph and the parameters for MXNet's other interfaces.

        The files `path-symbol.json` and `path-%04d.params` (numbered `epoch`) load in `SymbolBlock.imports`,
        `mx.mod.Module` and MXNet itself.

        Raises:
            MXNetError: the block was not hybridized, or not called since.
        """
        graph = self._graph
        if graph is None or not self._active:
            raise MXNetError(
                f"{self.name}: nothing to export; call hybridize(), then run the block once on example data"
            )
        graph.symbol.save(f"{path}-symbol.json", remove_amp_cast=remove_amp_cast)
        aux = set(graph.symbol.list_auxiliary_states())
        values = {f"{'aux' if p.name in aux else 'arg'}:{p.name}": p._reduce() for p in graph.params}
        nd.save(f"{path}-{epoch:04d}.params", values)


def _first_array(value: Any) -> Any:
    """The first array or symbol in nested lists, or `None`."""
    if isinstance(value, (NDArray, Symbol)):
        return value
    if isinstance(value, (list, tuple)):
        return next((found for v in value if (found := _first_array(v)) is not None), None)
    return None
