"""`CachedGraph`: a hybridized block, traced once with symbols, run as one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .. import autograd
from ..core.context import Context
from ..core.errors import ArgumentError, MXNetError
from ..namespace import sym
from ..ndarray import NDArray, invoke
from ..sparse import needs_stepwise, run_program_stepwise
from ..symbol import Symbol
from ..symbol.inference import all_shapes
from ..symbol.lowering import EagerGraph, execute, lower_or_fallback
from .parameter import ARRAYS_VERSION, DeferredInitializationError, Parameter, ParameterDict, brief
from .pytree import LEAF, TreeDef, flatten, to_nd_class, unflatten, with_class_of


class BlockProtocol(Protocol):
    """What is needed of a block."""

    @property
    def name(self) -> str: ...

    def collect_params(self) -> ParameterDict: ...

    def __call__(self, *args: Any) -> Any: ...


class SymbolicBlock(BlockProtocol, Protocol):
    """What is needed of a hybrid block."""

    def _on_symbols(self, x: Any, *args: Any) -> Any: ...


class CachedGraph:
    """The traced symbol of a block and its inputs; made by `trace_hybrid`, `of_block` or `of_symbol`."""

    error_prefix: str
    in_format: TreeDef
    inputs: list[Symbol]
    built = False  # whether a call has taken it as what the block runs
    _is_fed = False  # whether it knows its parameters
    _held: list[tuple[int, Parameter]]

    @classmethod
    def trace_hybrid(cls, block: SymbolicBlock, args: tuple[Any, ...]) -> CachedGraph:
        """`traced`, with the block's parameters."""
        self = cls.traced(block, args)
        self.read(block.collect_params()._params)
        return self

    @classmethod
    def of_block(cls, block: BlockProtocol, args: tuple[Any, ...]) -> CachedGraph:
        """Trace a call of any block that works on symbols."""
        self = cls._traced(block, args, block)
        self.read(block.collect_params()._params)
        return self

    @classmethod
    def traced(cls, block: SymbolicBlock, args: tuple[Any, ...]) -> CachedGraph:
        """Trace `hybrid_forward` once, with variables `data` (or `data0`, `data1`, ...) for `args`."""
        return cls._traced(block, args, block._on_symbols)

    @classmethod
    def _traced(cls, block: BlockProtocol, args: tuple[Any, ...], run: Callable[..., Any]) -> CachedGraph:
        self = cls()
        self.error_prefix = block.name or type(block).__name__
        flat, self.in_format = flatten(args, f"{self.error_prefix} (hybridized)")
        names = ["data"] if len(flat) == 1 else [f"data{i}" for i in range(len(flat))]
        self.inputs = [sym.var(name) for name in names]
        traced = run(*unflatten(with_class_of(flat, self.inputs), self.in_format))
        outs, out_format = flatten(to_nd_class(traced), f"{self.error_prefix}, outputs")
        symbol = outs[0] if len(outs) == 1 else sym.Group(outs)
        self._collect_params(names, symbol, out_format)
        return self

    @classmethod
    def of_symbol(cls, outputs: Symbol, inputs: list[Symbol], params: dict[str, Parameter], where: str) -> CachedGraph:
        """Wrap a symbol whose output format is its list of outputs."""
        self = cls()
        self.error_prefix, self.in_format, self.inputs = where, [LEAF] * len(inputs), inputs
        fmt = LEAF if len(outputs.list_outputs()) == 1 else [LEAF] * len(outputs.list_outputs())
        self._collect_params([str(s.name) for s in inputs], outputs, fmt)
        self.read(params)
        return self

    def _collect_params(self, names: list[str], symbol: Symbol, out_format: TreeDef) -> None:
        self.names, self.symbol, self.out_format = names, symbol, out_format
        self._calls: dict[bool, Any] = {}
        self._templates: dict[Context, list[Any]] = {}
        self._generation = -1
        order = [*symbol.list_arguments(), *symbol.list_auxiliary_states()]
        self._fed = [(slot, names.index(n)) for slot, n in enumerate(order) if n in names]
        self._size = len(order)
        self._order = order

    def read(self, params: dict[str, Parameter]) -> None:
        """Read the variables that are no inputs from these parameters; nothing changes for a graph that has some.

        Raises:
            ArgumentError: a variable is neither an input nor among them.
        """
        if self._is_fed:
            return
        self._is_fed, self._held = True, []
        for slot, name in enumerate(self._order):
            if name not in self.names:
                if name not in params:
                    raise ArgumentError(
                        f"{self.error_prefix}: variable {name!r} is neither an input nor a parameter of the block; "
                        "inputs are "
                        f"{brief(self.names)}, parameters {brief(params)}"
                    )
                self._held.append((slot, params[name]))
        self._computed = [(slot, param) for slot, param in self._held if param._computed]

    @property
    def params(self) -> list[Parameter]:
        """The parameters that the graph reads."""
        return [p for _, p in self._held]

    def __call__(self, args: tuple[Any, ...]) -> Any:
        if len(args) == 1 and isinstance(args[0], NDArray):
            flat, fmt = args, [LEAF]
        else:
            flat, fmt = flatten(args, f"{self.error_prefix} (hybridized)")
        if fmt != self.in_format:
            raise ArgumentError(
                f"{self.error_prefix}: the nesting of the inputs, {fmt}, differs from {self.in_format} at the call "
                "that was "
                "traced; call hybridize() again to trace anew"
            )
        ins = self._input_list(flat[0].context)[:]
        for slot, i in self._fed:
            ins[slot] = flat[i]
        train = autograd.is_training()
        call = self._calls.get(train)
        if call is None:
            # In inference parameters may be shared with other threads, so they are left alone.
            call = self._calls[train] = lower_or_fallback(self.symbol, train, states_only=not train)
        if isinstance(call, EagerGraph):
            outs = execute(call, ins, flat[0].context)
        else:
            outs = run_program_stepwise(call, ins) if needs_stepwise(call, ins) else invoke(call, ins)
        return outs[0] if self.out_format == LEAF else unflatten(outs, self.out_format)

    def _input_list(self, ctx: Context) -> list[Any]:
        """The list of inputs with the parameters of `ctx` filled in, kept while no parameter array is replaced."""
        if self._generation != ARRAYS_VERSION.count:
            self._templates.clear()
            self._generation = ARRAYS_VERSION.count
        ins = self._templates.get(ctx)
        if ins is None:
            ins = list[Any]([None]) * self._size
            for slot, param in self._held:
                if not param._computed:
                    ins[slot] = param.data(ctx)
            self._templates[ctx] = ins
        if self._computed:
            ins = ins[:]
            for slot, param in self._computed:
                ins[slot] = param.data(ctx)
        return ins

    def infer_shape(self, args: tuple[Any, ...]) -> None:
        """Set the shapes of the parameters from the inputs' shapes; raises `ArgumentError` if they do not follow."""
        flat, _ = flatten(args, self.error_prefix)
        known = {name: array.shape for name, array in zip(self.names, flat, strict=True)}
        try:
            args_found, _, aux_found = all_shapes(self.symbol, **known)
        except MXNetError as e:
            raise ArgumentError(
                f"{self.error_prefix}: deferred initialization failed because the shapes of its parameters cannot be "
                f"inferred: {e}"
            ) from e
        found = [*(args_found or ()), *(aux_found or ())]
        if not found:
            missing = [p.name for p in self.params if not p.shape or not all(d > 0 for d in p.shape)]
            raise ArgumentError(
                f"{self.error_prefix}: deferred initialization failed because the shapes of {brief(missing)} do not "
                "follow "
                f"from the inputs {known}; give these parameters their shape"
            )
        for slot, param in self._held:
            param.shape = found[slot]

    def infer_type(self, args: tuple[Any, ...]) -> None:
        """Cast the parameters to the dtypes that follow from the inputs' dtypes."""
        flat, _ = flatten(args, self.error_prefix)
        known = {name: array.dtype for name, array in zip(self.names, flat, strict=True)}
        args_found, _, aux_found = self.symbol.infer_type(**known)
        found = [*(args_found or ()), *(aux_found or ())]
        for slot, param in self._held:
            if found:
                param.cast(found[slot])

    def monitor(self, args: tuple[Any, ...], callback: Callable[[str, str, NDArray], None], everything: bool) -> None:
        """Compute all inner outputs (and inputs, if `everything`) and pass each to `callback(name, op, array)`."""
        flat, _ = flatten(args, self.error_prefix)
        ins = self._input_list(flat[0].context)[:]
        for slot, i in self._fed:
            ins[slot] = flat[i]
        inner = self.symbol.get_internals()
        with autograd.pause(train_mode=autograd.is_training()):
            call = lower_or_fallback(inner, autograd.is_training())
            arg_names, aux_names = inner.list_arguments(), inner.list_auxiliary_states()
            order = [*self.symbol.list_arguments(), *self.symbol.list_auxiliary_states()]
            by_name = dict(zip(order, ins, strict=True))
            outs = execute(call, [by_name[n] for n in (*arg_names, *aux_names)], flat[0].context)
        values = {(id(node), i): array for (node, i), array in zip(inner.entries, outs, strict=True)}
        reported: set[int] = set()
        for name, (node, _), array in zip(inner.list_outputs(), inner.entries, outs, strict=True):
            if node.op is None:
                continue
            if everything and id(node) not in reported:
                reported.add(id(node))
                for to, (child, i) in zip(node.input_names(), node.inputs, strict=False):
                    callback(f"{node.name}_{to}", node.op.name, values[id(child), i])
            callback(name, node.op.name, array)


__all__ = ["CachedGraph", "DeferredInitializationError"]
