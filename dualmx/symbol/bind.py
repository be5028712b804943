"""Bind a symbol to arrays: `bind` and `simple_bind`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.argcheck import context as as_context
from ..core.context import Context
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError, suggest
from ..graph.infer import Key, ShapeT, infer_shapes, is_known
from ..graph.infer_dtype import default_dtypes
from ..ndarray import NDArray, zeros
from ..ndarray.sharding import sharded_zeros
from ..sparse import with_storage
from .executor import GRAD_REQS, Executor
from .inference import initial_dtypes, initial_shapes, storage_types
from .multi_context_executor import MultiContextExecutor, group_of, spans_contexts
from .node import Node, SymbolBase, split_variables, topological


def _grad_reqs(names: Sequence[str], grad_req: Any) -> list[str]:
    """Return one gradient request per argument name."""
    if isinstance(grad_req, str):
        reqs = [grad_req] * len(names)
    elif isinstance(grad_req, Mapping):
        reqs = [grad_req.get(name, "null") for name in names]
    elif isinstance(grad_req, (list, tuple)):
        if len(grad_req) != len(names):
            raise ArgumentError(f"grad_req has {len(grad_req)} entries for {len(names)} arguments")
        reqs = list(grad_req)
    else:
        raise ArgumentTypeError(f"grad_req={grad_req!r}: expected a string, a list or a dict")
    for name, req in zip(names, reqs, strict=True):
        if req not in GRAD_REQS:
            raise ArgumentError(f"grad_req={req!r} for {name!r}: {suggest(str(req), GRAD_REQS)}")
    return reqs


def _arrays_by_name(what: str, names: Sequence[str], given: Any, partial: bool) -> list[Any]:
    """Return one array per name from a list or a dict; a missing name is an error unless `partial`."""
    if isinstance(given, Mapping):
        found = []
        for name in names:
            if name not in given and not partial:
                raise ArgumentError(f"bind: key {name!r} is missing in {what}; it needs {', '.join(names)}")
            found.append(given.get(name))
    elif isinstance(given, (list, tuple)):
        if len(given) != len(names):
            raise ArgumentError(f"bind: {what} has {len(given)} arrays for {len(names)} names: {', '.join(names)}")
        found = list(given)
    else:
        raise ArgumentTypeError(f"bind: {what} of type {type(given).__name__}: expected a list or a dict of NDArrays")
    for name, value in zip(names, found, strict=True):
        if not isinstance(value, NDArray) and not (partial and value is None):
            raise ArgumentTypeError(f"bind: {what} {name!r} is {value!r}: expected an NDArray")
    return found


def _all_shapes(
    order: Sequence[Node], variables: Mapping[str, Node], given: Mapping[str, Any]
) -> dict[Key, ShapeT | None]:
    """Return all shapes inferred from those `given` by name; `MXNetError` if a variable's shape stays unknown."""
    given = {n: (s,) if isinstance(s, int) else tuple(s) if isinstance(s, list) else s for n, s in given.items()}
    shapes = infer_shapes(order, initial_shapes(order, [(variables[n], s) for n, s in given.items() if n in variables]))
    missing = [n for n, v in variables.items() if not is_known(shapes.get((id(v), 0)))]
    if missing:
        listed = ", ".join(f"{n}: {shapes.get((id(variables[n]), 0))}" for n in missing)
        raise MXNetError(f"simple_bind: these shapes do not follow from {given}; give more of them: {listed}")
    return shapes


def _check_context(ctx: Any) -> Context:
    if not isinstance(ctx, Context):
        raise ArgumentTypeError(f"bind: ctx={ctx!r}: expected a Context such as mx.cpu()")
    return ctx


def _check_groups(group2ctx: Any, order: Sequence[Node]) -> dict[str, Context]:
    """Return the contexts by `ctx_group` attribute; if there are any, every group needs one."""
    if group2ctx is None:
        return {}
    if not isinstance(group2ctx, Mapping):
        raise ArgumentTypeError(f"bind: group2ctx={group2ctx!r}: expected contexts by the name of a ctx_group")
    found = {}
    for group, ctx in group2ctx.items():
        if not isinstance(ctx, (Context, str)):
            raise ArgumentTypeError(f"bind: group2ctx: group {group!r} on {ctx!r}: expected a Context")
        found[group] = as_context(ctx)
    for node in order if found else ():
        group = group_of(node)
        if group and group not in found:
            near = suggest(group, found)
            raise ArgumentError(f"bind: {node.name!r} is in ctx_group {group!r}: not in group2ctx; {near}")
    return found


def _variables(symbol: SymbolBase, what: str) -> tuple[list[Node], list[str], list[str]]:
    """All nodes, and the names of the arguments and of the states; `MXNetError` if one name stands for two."""
    order = topological(symbol.entries)
    arguments, states = split_variables(order)
    names, aux_names = [n.name for n in arguments], [n.name for n in states]
    seen: set[str] = set()
    for name in (*names, *aux_names):
        if name in seen:
            raise MXNetError(f"{what}: two different variables are called {name!r}; rename one, or use one of them")
        seen.add(name)
    return order, names, aux_names


def bind(
    symbol: SymbolBase, ctx: Context, args: Any, args_grad: Any, grad_req: Any, aux_states: Any, group2ctx: Any
) -> Executor:
    """`Symbol.bind`: an executor on arrays of the caller."""
    ctx = _check_context(ctx)
    order, names, aux_names = _variables(symbol, "bind")
    group2ctx = _check_groups(group2ctx, order)
    arrays = _arrays_by_name("args", names, args, False)
    grads = [None] * len(names) if args_grad is None else _arrays_by_name("args_grad", names, args_grad, True)
    states = _arrays_by_name("aux_states", aux_names, {} if aux_states is None else aux_states, False)
    reqs = _grad_reqs(names, grad_req)
    for name, value, grad in zip(names, arrays, grads, strict=True):
        if grad is not None and grad.shape != value.shape:
            raise ArgumentError(f"bind: args_grad {name!r} has shape {grad.shape}, its argument {value.shape}")
    shapes = dict(zip((*names, *aux_names), (a.shape for a in (*arrays, *states)), strict=True))
    infer_shapes(order, {id(n): shapes[n.name] for n in order if n.op is None})
    held = dict(zip((*names, *aux_names), (*arrays, *states), strict=True))
    is_split = group2ctx and spans_contexts(order, ctx, group2ctx, held)
    kind = MultiContextExecutor if is_split else Executor
    return kind(symbol, ctx, arrays, grads, reqs, states, group2ctx)


def simple_bind(
    symbol: SymbolBase,
    ctx: Context,
    given_shapes: Mapping[str, Any],
    grad_req: Any = "write",
    type_dict: Mapping[str, Any] | None = None,
    stype_dict: Mapping[str, str] | None = None,
    group2ctx: Mapping[str, Context] | None = None,
    shared_arg_names: Sequence[str] | None = None,
    shared_exec: Executor | None = None,
) -> Executor:
    """`Symbol.simple_bind`: an executor on arrays that are allocated here."""
    ctx = _check_context(ctx)
    order, names, aux_names = _variables(symbol, "simple_bind")
    group2ctx = _check_groups(group2ctx, order)
    variables = {n.name: n for n in order if n.op is None}
    shapes = _all_shapes(order, {n: variables[n] for n in (*names, *aux_names)}, given_shapes)
    types = [(variables[k], d) for k, d in (type_dict or {}).items() if k in variables]
    dtypes = default_dtypes(order, initial_dtypes(order, types), shapes)
    reqs = _grad_reqs(names, grad_req)
    places = {n: group2ctx.get(group_of(variables[n]), ctx) for n in variables}

    stypes, grad_stypes = storage_types(order, stype_dict or {})

    def new(name: str, kinds: Mapping[str, str] = stypes) -> NDArray:
        shape = shapes[id(variables[name]), 0]
        assert shape is not None
        dtype = dtypes[id(variables[name]), 0]
        if places[name].mesh is not None:
            return sharded_zeros(places[name], shape, dtype, variables[name].attrs.get("__shard__", "()"), name)
        if kinds is stypes and kinds[name] == "row_sparse":
            # A weight stores all its rows.
            return with_storage(zeros(shape, ctx=places[name], dtype=dtype), "row_sparse")
        return zeros(shape, ctx=places[name], dtype=dtype, stype=kinds[name])

    def shared(name: str, pool: Mapping[str, NDArray | None]) -> NDArray:
        old = pool.get(name)
        wanted = shapes[id(variables[name]), 0]
        if old is None or old.shape != wanted:
            found = None if old is None else old.shape
            raise MXNetError(f"simple_bind: {name!r} of shape {wanted} cannot be shared: shared_exec has {found}")
        return old

    args, grads = [], []
    for name, req in zip(names, reqs, strict=True):
        if shared_exec is not None and name in (shared_arg_names or ()):
            args.append(shared(name, shared_exec.arg_dict))
            grad = shared_exec.grad_dict[name]
            grads.append(None if req == "null" else new(name, grad_stypes) if grad is None else grad)
        else:
            args.append(new(name))
            grads.append(None if req == "null" else new(name, grad_stypes))
    pool = shared_exec.aux_dict if shared_exec is not None else {}
    states = [shared(name, pool) if name in pool else new(name) for name in aux_names]
    held = dict(zip((*names, *aux_names), (*args, *states), strict=True))
    is_split = group2ctx and spans_contexts(order, ctx, group2ctx, held)
    kind = MultiContextExecutor if is_split else Executor
    return kind(symbol, ctx, args, grads, reqs, states, group2ctx)
