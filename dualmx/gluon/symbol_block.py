"""`SymbolBlock`: a symbol with its parameters as a block."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.context import Context
from ..core.dtypes import as_dtype
from ..core.errors import ArgumentTypeError
from ..namespace import sym
from ..ndarray import NDArray
from ..symbol import Symbol
from ..symbol.node import topological
from .cached_graph import CachedGraph
from .hybrid import HybridBlock
from .parameter import Parameter, ParameterDict
from .pytree import to_nd_class, with_class_of


class SymbolBlock(HybridBlock):
    """Run a symbol as a block; all its variables that are not inputs become parameters.

    Args:
        outputs: a symbol, or a list of symbols.
        inputs: the variables that are fed by position.
        params: parameters to use for variables of the same name.

    Example:
        >>> import dualmx as mx
        >>> x = mx.sym.var("data")
        >>> net = mx.gluon.SymbolBlock(mx.sym.FullyConnected(x, num_hidden=2, name="fc"), x)
        >>> net.initialize()
        >>> net(mx.nd.ones((4, 3))).shape
        (4, 2)
    """

    def __init__(
        self,
        outputs: Symbol | list[Symbol],
        inputs: Symbol | list[Symbol],
        params: ParameterDict | Mapping[str, Any] | None = None,
    ):
        super().__init__(prefix=None, params=None)
        symbol = sym.Group(list(outputs)) if isinstance(outputs, (list, tuple)) else outputs
        variables = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        for given in (symbol, *variables):
            if not isinstance(given, Symbol):
                raise ArgumentTypeError(f"SymbolBlock: expected symbols, got {type(given).__name__}")
        for variable in variables:
            if variable.list_arguments() != [variable.name]:
                raise ArgumentTypeError(f"SymbolBlock: input {variable.name!r} is not a variable, but an op's output")
        self._prefix = ""
        shared = params if isinstance(params, ParameterDict) else None
        self._params = ParameterDict("", shared)
        if params is not None and shared is None:
            self._params._params.update({k: v for k, v in params.items() if isinstance(v, Parameter)})
        names = {v.name for v in variables}
        attributes = symbol.attr_dict()
        for name in symbol.list_arguments():
            if name not in names:
                self._params.get(name, allow_deferred_init=True, **_declared(attributes.get(name, {})))
        for name in symbol.list_auxiliary_states():
            if name not in names:
                declared = _declared(attributes.get(name, {}))
                self._params.get(name, grad_req="null", allow_deferred_init=True, **declared)
        common = _common_prefix(list(self._params))
        self._reg_params = {name[len(common) :]: param for name, param in self._params.items()}
        graph = CachedGraph.of_symbol(symbol, variables, self._params._params, self._name)
        object.__setattr__(self, "_graph", graph)

    def __getstate__(self) -> dict[str, Any]:
        graph = self._symbol_graph
        return {**super().__getstate__(), "_graph": (graph.symbol, graph.inputs)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        symbol, inputs = state["_graph"]
        graph = CachedGraph.of_symbol(symbol, inputs, state["_params"]._params, state["_name"])
        self.__dict__.update(state, _graph=graph)

    @staticmethod
    def imports(
        symbol_file: str,
        input_names: str | list[str],
        param_file: str | None = None,
        ctx: Context | list[Context] | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
    ) -> SymbolBlock:
        """Load what `HybridBlock.export` (or MXNet) wrote.

        Args:
            symbol_file: the `-symbol.json` file.
            input_names: the variables that are fed by position.
            param_file: the `.params` file; without it, call `initialize()`.
            ctx: where to put the parameters.
            allow_missing, ignore_extra: accept missing or superfluous values in `param_file`.

        Raises:
            FormatError: a malformed file. ArgumentError: values that do not fit.
        """
        names = [input_names] if isinstance(input_names, str) else list(input_names)
        block = SymbolBlock(sym.load(symbol_file), [sym.var(name) for name in names])
        if param_file is not None:
            block.collect_params().load(
                param_file, ctx, allow_missing, ignore_extra, cast_dtype=True, dtype_source="saved"
            )
        return block

    def __repr__(self) -> str:
        graph = self._symbol_graph
        return f"SymbolBlock(\n{graph.symbol!r} : {len(graph.names)} -> {len(graph.symbol.list_outputs())}\n)"

    @property
    def _symbol_graph(self) -> CachedGraph:
        assert self._graph is not None
        return self._graph

    def _clear_cached_op(self) -> None:
        """The graph is the block itself."""

    def forward(self, x: Any, *args: Any) -> Any:
        """Run the symbol on arrays, or put symbols in the place of its inputs."""
        if isinstance(x, NDArray):
            return with_class_of(x, self._call_cached_op(*to_nd_class((x, *args))))
        if not isinstance(x, Symbol):
            raise ArgumentTypeError(f"{self.name}: expected NDArrays or Symbols, got {type(x).__name__}")
        graph = self._symbol_graph
        with self.name_scope():
            given: dict[str, Any] = dict(zip(graph.names, (x, *args), strict=True))
            composed = graph.symbol(**given)
        outputs = [composed[i] for i in range(len(composed.list_outputs()))]
        return outputs[0] if len(outputs) == 1 else outputs

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Same as `forward`."""
        return self.forward(x, *args)

    def hybridize(self, active: bool = True, *args: Any, **kwargs: Any) -> None:
        """Accepted: a symbol always runs as one graph."""
        super().hybridize(active, *args, **kwargs)

    def export(self, path: str, epoch: int = 0, remove_amp_cast: bool = True) -> None:
        """Write `path-symbol.json` and `path-%04d.params`; see `HybridBlock.export`."""
        active, self._active = self._active, True
        try:
            super().export(path, epoch, remove_amp_cast)
        finally:
            self._active = active

    def cast(self, dtype: Any) -> None:
        """Convert the parameters; for float16, those of batch normalizations become float32, as in `nn.BatchNorm`."""
        super().cast(dtype)
        if as_dtype(dtype) == np.float16:
            for node in topological(self._symbol_graph.symbol.entries):
                if node.op is not None and node.op.traits.float32_parameters:
                    for source, _ in node.inputs[1:]:
                        if source.name in self._params:
                            self._params[source.name].cast("float32")

    def reset_ctx(self, ctx: Context | list[Context]) -> None:
        """Move all parameters to other contexts."""
        self.collect_params().reset_ctx(ctx)


def _declared(attributes: Mapping[str, str]) -> dict[str, Any]:
    """Parameter attributes written on a variable."""
    found: dict[str, Any] = {}
    if "__init__" in attributes:
        found["init"] = attributes["__init__"]
    for key in ("__lr_mult__", "__wd_mult__"):
        if key in attributes:
            found[key.strip("_")] = float(attributes[key])
    if attributes.get("__dtype__", "-1").isdigit():
        found["dtype"] = as_dtype(int(attributes["__dtype__"])).type
    return found


def _common_prefix(names: list[str]) -> str:
    """What all names begin with, leaving at least one character of each."""
    common = os.path.commonprefix(names)
    return common[: common.rfind("_", 0, len(common) - 1) + 1] if common in names else common
