"""`Block`: parameters, child blocks, name scopes, hooks and summary."""

from __future__ import annotations

import itertools
import json
import math
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..core.context import Context
from ..core.errors import ArgumentError, ArgumentTypeError, FormatError
from ..core.reader import Content
from ..namespace import nd, sym
from ..ndarray import NDArray
from ..parallel import match_partition_rules
from ..symbol.attributes import NameManager, Prefix
from .cached_graph import CachedGraph
from .parameter import Parameter, ParameterDict, brief

_ids = itertools.count()


class HookHandle:
    """Ticket of a registered hook; `detach()` (or leaving a `with`) removes the hook.

    Example:
        >>> import dualmx as mx
        >>> net = mx.gluon.nn.Flatten()
        >>> with net.register_forward_hook(lambda block, inputs, output: print(output.shape)):
        ...     _ = net(mx.nd.ones((2, 3, 4)))
        (2, 12)
    """

    def __init__(self) -> None:
        self._hooks: dict[int, Callable[..., Any]] | None = None
        self._id: int | None = None

    def attach(self, hooks_dict: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        """Register `hook` in `hooks_dict`."""
        if self._hooks is not None:
            raise RuntimeError("this handle already belongs to a hook")
        self._hooks, self._id = hooks_dict, next(_ids)
        hooks_dict[self._id] = hook

    def detach(self) -> None:
        """Remove the hook; a second call does nothing."""
        if self._hooks is not None and self._id is not None:
            self._hooks.pop(self._id, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.detach()


if TYPE_CHECKING:
    pass


class _CurrentScope(threading.local):
    def __init__(self) -> None:
        self.scope: NameScope | None = None


_current = _CurrentScope()


class NameScope:
    """Blocks and symbols made inside `with scope:` get the prefix of the scope's block.

    Args:
        block: owner; the scope of a block with the empty prefix changes nothing.
    """

    def __init__(self, block: Block):
        self.block = block
        self._counts: dict[str, int] = {}
        self._outer: list[tuple[NameScope | None, Any]] = []

    def __enter__(self) -> NameScope:
        if not self.block._empty_prefix:
            names = Prefix(self.block.prefix)
            names.__enter__()
            self._outer.append((_current.scope, names))
            _current.scope = self
        return self

    def __exit__(self, *exc: Any) -> None:
        if not self.block._empty_prefix:
            _current.scope, names = self._outer.pop()
            names.__exit__(*exc)

    def _next(self, hint: str) -> str:
        count = self._counts.get(hint, 0)
        self._counts[hint] = count + 1
        return f"{hint}{count}_"


def name_block(prefix: str | None, params: ParameterDict | None, hint: str) -> tuple[str, ParameterDict]:
    """Return the full prefix and the parameter dictionary of a new block of kind `hint`."""
    scope = _current.scope
    if prefix is None:
        prefix = scope._next(hint) if scope else NameManager.current.get(None, hint) + "_"
    if params is not None:
        own = ParameterDict(params.prefix, params)
    elif scope is not None:
        own = ParameterDict(scope.block.params.prefix + prefix, scope.block.params._shared)
    else:
        own = ParameterDict(prefix)
    return (scope.block.prefix + prefix if scope else prefix), own


if TYPE_CHECKING:
    pass

_ROW = "{:>20}  {:>42} {:>15}"


def _shapes(value: Any, outermost: bool = True) -> str:
    if isinstance(value, NDArray):
        return str(value.shape)
    if isinstance(value, (list, tuple)):
        text = ", ".join(_shapes(v, False) for v in value)
        return text if outermost else f"[{text}]"
    return str(value)


def print_summary(block: Block, inputs: tuple[Any, ...], quiet: frozenset[type] | set[type]) -> None:
    """Print output shapes and parameter counts of `block` and its children, called on `inputs`.

    Args:
        quiet: block classes that get no row of their own (containers).

    Raises:
        ArgumentError: a block is hybridized, so that its children are not called.
    """
    rows: list[tuple[str, str, int]] = [("Input", _shapes(inputs), 0)]
    counts = {"total": 0, "trainable": 0, "shared": 0}
    seen: set[Parameter] = set()
    handles = []

    def record(layer: Block, _: Any, output: Any) -> None:
        size = 0
        for param in layer.params.values():
            n = math.prod(param.shape or ())
            size += n
            counts["trainable"] += n if param.grad_req != "null" else 0
            counts["shared"] += n if param in seen else 0
            seen.add(param)
        counts["total"] += size
        rows.append((f"{type(layer).__name__}-{len(rows)}", _shapes(output), size))

    def watch(layer: Block) -> None:
        if getattr(layer, "_active", False):
            raise ArgumentError(f"summary: {layer.name!r} is hybridized; call hybridize(False) before summary()")
        if type(layer) not in quiet:
            handles.append(layer.register_forward_hook(record))

    try:
        block.apply(watch)
        block(*inputs)
    finally:
        for handle in handles:
            handle.detach()
    print("-" * 80)
    print(_ROW.format("Layer (type)", "Output Shape", "Param #"))
    print("=" * 80)
    for row in rows:
        print(_ROW.format(*row))
    print("=" * 80)
    print("Parameters in forward computation graph, duplicate included")
    print(f"   Total params: {counts['total']}")
    print(f"   Trainable params: {counts['trainable']}")
    print(f"   Non-trainable params: {counts['total'] - counts['trainable']}")
    print(f"Shared params in forward computation graph: {counts['shared']}")
    print(f"Unique parameters in model: {counts['total'] - counts['shared']}")
    print("-" * 80)


def list_children(block: Block) -> list[Block]:
    """Return the child blocks; a function, for blocks may have an attribute of any name."""
    return list(block._children.values())


class Block:
    """Base of all layers and networks.

    A subclass makes its children and parameters in `__init__`, best inside `with self.name_scope():`, and computes
    in `forward`. Children and parameters assigned to attributes are registered.

    Args:
        prefix: of the names of parameters and children; counted from the class name if `None`.
        params: parameters to share instead of creating new ones.

    Example:
        >>> import dualmx as mx
        >>> class Net(mx.gluon.Block):
        ...     def __init__(self, **kwargs):
        ...         super().__init__(**kwargs)
        ...         with self.name_scope():
        ...             self.dense = mx.gluon.nn.Dense(3)
        ...
        ...     def forward(self, x):
        ...         return mx.nd.relu(self.dense(x))
        >>> net = Net(prefix="net_")
        >>> net.initialize()
        >>> net(mx.nd.ones((2, 5))).shape
        (2, 3)
        >>> list(net.collect_params())
        ['net_dense0_weight', 'net_dense0_bias']
    """

    # Containers that summary() does not list; nn fills it.
    _quiet: set[type] = set()
    _empty_prefix: bool
    _children: dict[str, Block]
    _reg_params: dict[str, Parameter]

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None):
        self._empty_prefix = prefix == ""
        self._prefix, self._params = name_block(prefix, params, self._alias())
        self._name = self._prefix.removesuffix("_")
        self._scope = NameScope(self)
        self._children = {}
        self._reg_params = {}
        self._forward_hooks: dict[int, Callable[..., Any]] = {}
        self._forward_pre_hooks: dict[int, Callable[..., Any]] = {}

    def __call__(self, *args: Any) -> Any:
        if self._forward_pre_hooks or self._forward_hooks:
            for hook in list(self._forward_pre_hooks.values()):
                hook(self, args)
            out = self.forward(*args)
            for hook in list(self._forward_hooks.values()):
                hook(self, args, out)
            return out
        return self.forward(*args)

    def forward(self, *args: Any) -> Any:
        """Compute the outputs; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define forward()")

    def __repr__(self) -> str:
        rows = [f"  ({name}): {_indent(repr(child))}" for name, child in self._listed_children()]
        return f"{type(self).__name__}(\n" + "\n".join(rows) + "\n)"

    def _listed_children(self) -> list[tuple[str, Any]]:
        """Return the children in attributes, which `repr` shows."""
        return [(name, value) for name, value in self.__dict__.items() if isinstance(value, Block)]

    def __setattr__(self, name: str, value: Any) -> None:
        old = self.__dict__.get(name)
        if isinstance(old, (Parameter, Block)) and not isinstance(value, type(old)):
            raise ArgumentTypeError(
                f"{self.name}: attribute {name!r} holds a {type(old).__name__}; it cannot become a "
                f"{type(value).__name__}"
            )
        if isinstance(value, Block):
            self.register_child(value, name)
        elif isinstance(value, Parameter):
            if self._reg_params.get(name, value) is not value:
                raise ArgumentError(
                    f"{self.name}: attribute {name!r} already holds a parameter; to share parameters between blocks, "
                    "pass params= when making the block"
                )
            self._reg_params[name] = value
        object.__setattr__(self, name, value)

    def _alias(self) -> str:
        """What automatic names of this kind of block begin with."""
        return type(self).__name__.lower()

    @property
    def prefix(self) -> str:
        """Prefix of the names of parameters and children."""
        return self._prefix

    @property
    def name(self) -> str:
        """Prefix without the underscore at its end."""
        return self._name

    @property
    def params(self) -> ParameterDict:
        """Parameters of this block alone; see `collect_params` for those of children too."""
        return self._params

    def name_scope(self) -> NameScope:
        """Return a context manager in which new blocks get this block's prefix."""
        return self._scope

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Add a child block, by default under its position as name."""
        if not isinstance(block, Block):
            raise ArgumentTypeError(f"{self.name}: a child of type {type(block).__name__}: expected a Block")
        self._children[str(len(self._children)) if name is None else name] = block

    def register_forward_pre_hook(self, hook: Callable[[Block, Any], None]) -> HookHandle:
        """Call `hook(block, inputs)` before each forward pass; `inputs` is a tuple."""
        handle = HookHandle()
        handle.attach(self._forward_pre_hooks, hook)
        return handle

    def register_forward_hook(self, hook: Callable[[Block, Any, Any], None]) -> HookHandle:
        """Call `hook(block, inputs, outputs)` after each forward pass."""
        handle = HookHandle()
        handle.attach(self._forward_hooks, hook)
        return handle

    def register_op_hook(self, callback: Callable[[str, str, Any], None], monitor_all: bool = False) -> None:
        """Call `callback(array name, op name, array)` for the op outputs of all hybridized children.

        Args:
            callback: receives the names and an NDArray.
            monitor_all: pass inputs and parameters too.
        """
        for child in self._children.values():
            child.register_op_hook(callback, monitor_all)

    def apply(self, fn: Callable[[Block], Any]) -> Block:
        """Call `fn` on every descendant, children first, then on this block; returns the block."""
        for child in self._children.values():
            child.apply(fn)
        fn(self)
        return self

    def collect_params(self, select: str | None = None) -> ParameterDict:
        """Return the parameters of this block and its descendants by full name.

        Args:
            select: regular expression; only names that match it from their start are returned.
        """
        self._warn_about_containers(set(self._children.values()))
        found = ParameterDict(self._params.prefix)
        if select is None:
            found.update(self.params)
        else:
            pattern = re.compile(select)
            found._params.update({k: v for k, v in self.params.items() if pattern.match(k)})
        for child in self._children.values():
            found.update(child.collect_params(select=select))
        return found

    def _warn_about_containers(self, children: set[Block]) -> None:
        for name, value in self.__dict__.items():
            if name.startswith("_") or not isinstance(value, (list, tuple, dict)):
                continue
            inside = value.values() if isinstance(value, dict) else value
            if any(isinstance(v, Block) and v not in children for v in inside):
                warnings.warn(
                    f"{type(self).__name__}.{name} is a plain container of blocks, whose parameters are not "
                    "registered; use nn.Sequential, or register_child() for each",
                    stacklevel=4,
                )

    def collect_params_with_prefix(self) -> dict[str, Parameter]:
        """Return the parameters by attribute path, by the method that subclasses replace."""
        return self._collect_params_with_prefix()

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """Parameters by attribute path, such as `features.0.weight`."""
        if prefix:
            prefix += "."
        found = {prefix + name: param for name, param in self._reg_params.items()}
        for name, child in self._children.items():
            found.update(child._collect_params_with_prefix(prefix + name))
        return found

    def initialize(
        self,
        init: Any = None,
        ctx: Context | list[Context] | None = None,
        verbose: bool = False,
        force_reinit: bool = False,
    ) -> None:
        """Initialize all parameters of the block and its descendants.

        Args:
            init: for parameters without an initializer of their own; `Uniform(0.07)` by default.
            ctx: one context or several, the current one by default.
            verbose: print what each parameter got.
            force_reinit: draw anew even where values exist.
        """
        self.collect_params().initialize(init, ctx, verbose, force_reinit)

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Hybridize (or not) all children that can be; see `HybridBlock.hybridize`."""
        for child in self._children.values():
            child.hybridize(active, **kwargs)

    def cast(self, dtype: Any) -> None:
        """Convert all parameters to `dtype`."""
        for child in self._children.values():
            child.cast(dtype)
        for param in self.params.values():
            param.cast(dtype)

    def shard(self, rules: Any) -> None:
        """Set partition rules of parameters; arrays already on a mesh are resharded now, others at initialization.

        Args:
            rules: pairs (or a dict) of a regular expression, searched for in the names of the parameters, and a spec
                such as `("model", None)`; the first that is found decides.

        Raises:
            ArgumentError: a rule matches no parameter, or a parameter on a mesh cannot be cut so; nothing has moved
                then.

        Example:
            >>> import dualmx as mx
            >>> net = mx.gluon.nn.Dense(4, in_units=3)
            >>> net.shard([("weight$", ("model", None))])
            >>> net.initialize(ctx=mx.parallel.Mesh({"model": 1}))
            >>> net.weight.data().sharding
            ('model', None)
        """
        params = self.collect_params()
        found = match_partition_rules(rules, list(params.keys()))
        for name, spec in found.items():
            params[name]._check_shard(spec)
        for name, spec in found.items():
            params[name].shard = spec

    def summary(self, *inputs: Any) -> None:
        """Print a table of layers, output shapes and parameter counts for a forward pass on `inputs`.

        Raises:
            ArgumentError: the block or a descendant is hybridized.
        """
        print_summary(self, inputs, self._quiet)

    def save_parameters(self, filename: str, deduplicate: bool = False) -> None:
        """Write all parameters to a `.params` file under their attribute paths.

        Args:
            deduplicate: write a parameter shared by several blocks only once, under its last path.

        Raises:
            DeferredInitializationError, MXNetError: a parameter has no values yet.
        """
        params = self._collect_params_with_prefix()
        if deduplicate:
            last = {param: name for name, param in params.items()}
            params = {name: param for name, param in params.items() if last[param] == name}
        nd.save(filename, {name: param._reduce() for name, param in params.items()})

    def load_parameters(
        self,
        filename: str,
        ctx: Context | list[Context] | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Read parameters written by `save_parameters`, `ParameterDict.save` or `HybridBlock.export`.

        Args:
            ctx: where to put parameters that are not initialized yet; `cpu()` by default.
            allow_missing: accept parameters without value in the file.
            ignore_extra: accept values for which there is no parameter.
            cast_dtype: convert values of another dtype.
            dtype_source: with `cast_dtype`, whose dtype to keep: `"current"` or `"saved"`.

        Raises:
            ArgumentError: missing or extra values, or a shape or dtype that does not fit.
        """
        loaded = nd.load(filename)
        if not isinstance(loaded, dict) and (loaded or self._collect_params_with_prefix()):
            raise ArgumentTypeError(f"load_parameters: file {filename!r} holds a list of arrays without names")
        source = f"file {filename!r}"
        self._load(dict(loaded), source, filename, ctx, allow_missing, ignore_extra, cast_dtype, dtype_source)

    def load_dict(
        self,
        param_dict: Mapping[str, Any],
        ctx: Context | list[Context] | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """As `load_parameters`, from arrays by name; a name of MXNet 2.

        Example:
            >>> import dualmx as mx
            >>> net = mx.gluon.nn.Dense(1, in_units=2)
            >>> net.load_dict({"weight": mx.nd.ones((1, 2)), "bias": mx.nd.zeros((1,))})
            >>> net(mx.nd.array([[3, 4]])).asnumpy().tolist()
            [[7.0]]
        """
        if not isinstance(param_dict, Mapping):
            raise ArgumentTypeError(f"load_dict: {type(param_dict).__name__}: expected arrays by name")
        self._load(dict(param_dict), "param_dict", "", ctx, allow_missing, ignore_extra, cast_dtype, dtype_source)

    def _load(
        self,
        loaded: dict[str, Any],
        source: str,
        filename: str,
        ctx: Context | list[Context] | None,
        allow_missing: bool,
        ignore_extra: bool,
        cast_dtype: bool,
        dtype_source: str,
    ) -> None:
        params = self._collect_params_with_prefix()
        if not any("." in name for name in loaded) and not all(name in params for name in loaded):
            full = self.collect_params()
            bare = {name.removeprefix("arg:").removeprefix("aux:") for name in loaded}
            prefix = "" if all(name in bare for name in full) else self.prefix
            full.load_dict(loaded, ctx, allow_missing, ignore_extra, prefix, filename, cast_dtype, dtype_source)
            return
        if not allow_missing:
            present = {param for name, param in params.items() if name in loaded}
            for name, param in params.items():
                if param not in present:
                    raise ArgumentError(
                        f"Parameter {name!r} is missing in {source}, which has {brief(loaded)}. "
                        "Set allow_missing=True to keep what is missing as it is"
                    )
        for name, value in loaded.items():
            if name in params:
                params[name]._load_init(value, ctx, cast_dtype=cast_dtype, dtype_source=dtype_source)
            elif not ignore_extra:
                raise ArgumentError(
                    f"Parameter {name!r} in {source} belongs to nothing here; known are {brief(params)}. "
                    "Set ignore_extra=True to skip it"
                )

    def save(self, prefix: str) -> None:
        """Write parameters, structure and traced graphs to `prefix-model.params` and `prefix-model.json`."""
        with open(f"{prefix}-model.json", "w") as f:
            json.dump(_describe(self, itertools.count()), f)
        self.save_parameters(f"{prefix}-model.params")

    def load(self, prefix: str) -> None:
        """Read what `save` (of dualmx or MXNet) wrote into this block, which must have the same structure.

        Graphs of hybridized blocks are restored, so that `hybrid_forward` is not traced again.

        Raises:
            FormatError: the files describe another structure. ArgumentError: parameters do not fit.
        """
        path = f"{prefix}-model.json"
        content = Content.of_file(path, "a description of a block", "load: cannot read")
        described = content.json()
        with content.parsing():
            (root,) = described.values()
            _check_structure(self, root, path)
        self.load_parameters(f"{prefix}-model.params")
        with content.parsing():
            _restore_graphs(self, root, path)

    def save_params(self, filename: str) -> None:
        """Deprecated: write all parameters under their full names; use `save_parameters`."""
        warnings.warn("save_params is deprecated; use save_parameters", DeprecationWarning, stacklevel=2)
        self.collect_params().save(filename, strip_prefix=self.prefix)

    def load_params(
        self, filename: str, ctx: Any = None, allow_missing: bool = False, ignore_extra: bool = False
    ) -> None:
        """Deprecated: use `load_parameters`."""
        warnings.warn("load_params is deprecated; use load_parameters", DeprecationWarning, stacklevel=2)
        self.load_parameters(filename, ctx, allow_missing, ignore_extra)


def _indent(text: str, by: int = 2) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * by + line for line in rest)])


# ---- the description of a block in the file that `Block.save` writes, as MXNet writes it


def _graph_of(block: Block) -> CachedGraph | None:
    return getattr(block, "_graph", None) if getattr(block, "_active", False) else None


_FIELDS = {"orig_name", "in_format", "out_format", "inputs", "symbol", "hybridized", "children"}


def _describe(block: Block, numbers: Iterator[int]) -> dict[str, Any]:
    """The description of a block under its class and number, with those of its children inside."""
    key = type(block).__name__.lower() + str(next(numbers))
    found: dict[str, Any] = {"orig_name": block.name}
    graph = _graph_of(block)
    if graph is not None:
        found.update(
            in_format=graph.in_format,
            out_format=graph.out_format,
            inputs=[s.tojson() for s in graph.inputs],
            symbol=graph.symbol.tojson(),
        )
    found["hybridized"] = graph is not None
    found["children"] = {child.name: attribute for attribute, child in block._children.items()}
    for child in block._children.values():
        found.update(_describe(child, numbers))
    return {key: found}


def _pairs(block: Block, described: Any, path: str) -> list[tuple[Block, Any]]:
    """Children of a block with their descriptions."""
    try:
        inner = [v for k, v in described.items() if k not in _FIELDS]
        if list(described["children"].values()) == list(block._children):
            return list(zip(block._children.values(), inner, strict=True))
    except (KeyError, ValueError, AttributeError):
        pass
    raise FormatError(f"load: {path!r} describes a block of another structure than {block.name!r}")


def _check_structure(block: Block, described: Any, path: str) -> None:
    for child, inner in _pairs(block, described, path):
        _check_structure(child, inner, path)


def _original_names(block: Block, described: Any, path: str) -> dict[str, Parameter]:
    """The parameters of a block and its descendants under the names they were saved with."""
    old = described["orig_name"] + "_"
    found = {old + name.removeprefix(block.prefix): param for name, param in block.params.items()}
    for child, inner in _pairs(block, described, path):
        found.update(_original_names(child, inner, path))
    return found


def _restore_graphs(block: Block, described: Any, path: str) -> None:
    for child, inner in _pairs(block, described, path):
        _restore_graphs(child, inner, path)
    if not described.get("hybridized") or not hasattr(block, "_graph"):
        return
    block.hybridize()
    inputs = [sym.load_json(text) for text in described["inputs"]]
    graph = CachedGraph.of_symbol(
        sym.load_json(described["symbol"]), inputs, _original_names(block, described, path), block.name
    )
    graph.in_format, graph.out_format = described["in_format"], described["out_format"]
    object.__setattr__(block, "_graph", graph)
