"""`mx.nd.X` and `mx.sym.X` for every registered operator, with signatures and docs.

An array function is a closure that finds its prepared call by the keywords it was given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from .. import sparse
from ..core.context import Context, current_context
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.module_alias import load
from ..ndarray.creation import array
from ..ndarray.handle import invoke, invoke_binary, invoke_nullary, invoke_out, invoke_unary
from ..ndarray.ndarray import NDArray
from ..ndarray.recorder import local, warn_user
from ..ndarray.value_checks import condition_of, record_check
from ..op.registry import OPS, Call, Op
from ..op.schema import AUX, Input
from ..symbol import control
from ..symbol import creation as symbol_creation
from ..symbol.python_ops import Custom
from ..symbol.symbol import Symbol, create
from . import lazy_module, methods, symbol_random


def signature(op: Op, tensor: type) -> inspect.Signature:
    """Return the public signature: inputs, then parameters, `out` and `name`."""
    kind = inspect.Parameter
    if op.variadic:
        found = [kind(op.inputs[0].name, kind.VAR_POSITIONAL, annotation=tensor)]
        mode: Any = kind.KEYWORD_ONLY
    else:
        found = [kind(i.name, kind.POSITIONAL_OR_KEYWORD, default=None, annotation=tensor) for i in op.inputs]
        mode = kind.POSITIONAL_OR_KEYWORD
    for f in op.params.values():
        if f.name in {"out", "name"}:
            continue
        found.append(kind(f.name, mode, default=None if f.required else f.default))
    found.append(kind("out", mode, default=None))
    found.append(kind("name", mode, default=None))
    found.append(kind("kwargs", kind.VAR_KEYWORD))
    return inspect.Signature(found)


def docstring(op: Op) -> str:
    """Return the operator's documentation with its inputs and parameters listed."""
    lines = [inspect.cleandoc(op.fn.__doc__ or op.name), ""]
    if op.inputs:
        lines.append("Inputs:")
        for i in op.inputs:
            notes = [n for n, on in (("optional", i.optional), ("state, updated in place", i.role is AUX)) if on]
            if i.when is not None:
                notes.append(f"if {i.when.param} is {i.when.value!r}")
            lines.append(f"    {'*' if i.variadic else ''}{i.name}{': ' + ', '.join(notes) if notes else ''}")
    if op.params:
        lines.append("Parameters:")
        for f in op.params.values():
            what = "required" if f.required else f"default {f.default!r}"
            if f.ignored:
                what += "; accepted, no effect"
            lines.append(f"    {f.name}: {what}")
    return "\n".join(lines).rstrip() + "\n"


def as_input(value: Any, op: Op, name: str, like: Any) -> NDArray:
    """Return an input array; NumPy and JAX arrays are converted, their dtype kept."""
    if isinstance(value, NDArray):
        return value
    if isinstance(value, np.ndarray) or hasattr(value, "__jax_array__") or type(value).__module__.startswith("jax"):
        ctx = like.context if like is not None else None
        return array(value, ctx=ctx, dtype=value.dtype)
    raise ArgumentTypeError(
        f"{op.name}: {name}={value!r} of type {type(value).__name__}: expected an NDArray; make one with mx.nd.array()"
    )


def split_arguments(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[NDArray], dict[str, Any]]:
    """Sort the arguments of a call into input arrays and parsed parameters; positional ones follow the signature."""
    params = {k: v for k, v in kwargs.items() if k in op.params or k not in {i.name for i in op.inputs}}
    if op.variadic:
        if len(args) == 1 and isinstance(args[0], (list, tuple)):
            args = tuple(args[0])
        found = [as_input(a, op, f"argument {k}", None) for k, a in enumerate(args)]
        if "num_args" in op.params:
            params.setdefault("num_args", len(found))
        return found, op.parse(params)
    names = [i.name for i in op.inputs]
    order = [*names, *op.params]
    if len(args) > len(order):
        raise ArgumentTypeError(f"{op.name}: takes at most {len(order)} positional arguments, got {len(args)}")
    given: dict[str, Any] = {}
    placed: list[str] = []
    left = list(order)
    for value in args:
        # An op may have optional inputs before its parameters: a plain value then is the first parameter.
        while left and left[0] in names and value is not None and not _array_like(value) and left[0] in _optional(op):
            left.pop(0)
        slot = left.pop(0)
        if slot in kwargs:
            raise ArgumentTypeError(f"{op.name}: got multiple values for argument {slot!r}")
        (given if slot in names else params)[slot] = value
        if slot in names and value is not None:
            placed.append(slot)
    given.update({k: v for k, v in kwargs.items() if k in names})
    if params and not op.params:
        # MXNet reads nothing here: scripts pass the likes of `ones_like(x, ctx=ctx)`.
        warn_user(f"{op.name}: it has no parameters: {', '.join(map(repr, params))} ignored")
        params = {}
    parsed = op.parse(params)
    present = [i for i in op.inputs if i.when is None or i.when.holds(parsed)]
    if len(present) < len(op.inputs):
        _shift_inputs(given, placed, present)
        _check_absent(op, given, present, parsed)
    arrays: list[NDArray] = []
    for i in present:
        value = given.get(i.name)
        if value is None:
            if i.optional:
                break
            raise ArgumentError(f"{op.name}: missing input {i.name!r}; it takes ({', '.join(p.name for p in present)})")
        arrays.append(as_input(value, op, i.name, arrays[0] if arrays else None))
    return arrays, parsed


def _shift_inputs(given: dict[str, Any], placed: list[str], present: list[Input]) -> None:
    """Assign positional inputs to those that exist under these parameters, in order, as in MXNet."""
    names = [i.name for i in present]
    if len(placed) == len(names) and any(n not in names for n in placed):
        values = [given.pop(n) for n in placed]
        if not any(given.get(n) is not None for n in names):
            placed = names
        given.update(zip(placed, values, strict=True))


def _check_absent(op: Op, given: dict[str, Any], present: list[Input], parsed: dict[str, Any]) -> None:
    """Raise if an input is given that does not exist under these parameters."""
    for i in op.inputs:
        if i not in present and i.when is not None and given.get(i.name) is not None:
            raise ArgumentError(
                f"{op.name}: input {i.name!r} is given, but {i.when.param}={parsed[i.when.param]!r}: expected "
                f"({', '.join(p.name for p in present)})"
            )


def _targets(call: Call, out: Any) -> list[Any]:
    found = [out] if isinstance(out, NDArray) else list(out) if isinstance(out, (list, tuple)) else [None]
    for o in found:
        if not isinstance(o, NDArray):
            raise ArgumentTypeError(f"{call.op.name}: out={out!r}: expected an NDArray, or a list of them")
    if len(found) not in (call.n_visible, call.n_outputs):
        raise ArgumentError(f"{call.op.name}: out: expected {call.n_visible} array(s), got {len(found)}")
    return found


def _array_like(value: Any) -> bool:
    return isinstance(value, (NDArray, np.ndarray)) or hasattr(value, "__jax_array__")


def _optional(op: Op) -> set[str]:
    return {i.name for i in op.inputs if i.optional or i.when is not None}


def array_function(op: Op, name: str) -> Callable[..., Any]:
    """Return the front-end function of `op` called `name`.

    A call seen before, all its arrays positional, is found by the number of arrays and the keywords.
    """
    prepared: dict[Any, tuple[Call, tuple[float, ...]]] = {}
    moded, traits = op.has_train, op.traits
    condition = condition_of(traits) if traits.not_finite or traits.index_bounds else None

    def function(*args: Any, out: Any = None, name: str | None = None, **kwargs: Any) -> Any:
        try:
            found = prepared.get((len(args), *kwargs.items()))
        except TypeError:
            found = None
        if found is not None:
            for a in args:
                if not isinstance(a, NDArray) or a.is_sparse:
                    found = None
                    break
        if found is None:
            ctx = _pop_context(op, kwargs)
            arrays, parsed = split_arguments(op, args, kwargs)
            call, runtime = op.bind(parsed), op.runtime_values(parsed)
            if not arrays and not op.variadic:
                return _create(call, ctx, runtime, out)
            if any(a.is_sparse for a in arrays) or call.chooses_storage:
                return _call_sparse(call.in_mode(local.training) if moded else call, arrays, runtime, out)
            if len(arrays) == len(args) and all(isinstance(a, NDArray) for a in args):
                cache_prepared_call(prepared, len(args), kwargs, (call, runtime))
            args = tuple(arrays)
        else:
            call, runtime = found
        if moded:
            call = call.in_mode(local.training)
        if out is not None:
            targets = _targets(call, out)
            if any(o.is_sparse for o in targets):
                return _call_sparse(call, list(args), runtime, out)
            invoke_out(call, args, targets, runtime)
            if condition is not None:
                record_check(condition, call, args, targets)
            return out
        outs = invoke(call, args, runtime)
        if condition is not None:
            record_check(condition, call, args, outs)
        return outs[0] if call.n_visible == 1 else outs[: call.n_visible]

    fixed = not moded and condition is None
    if fixed and op.inputs and not op.variadic and not any(f.required for f in op.params.values()):
        n = len(op.inputs)
        simple = all(i.when is None and not i.optional for i in op.inputs) and not op.runtime
        call0 = op.call() if simple else None
        if call0 is not None and call0.is_simple and n in (1, 2):
            function = _with_fast_path(function, call0, n)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = docstring(op)
    function.__signature__ = signature(op, NDArray)
    function.__module__ = "dualmx.ndarray"
    return function


def _with_fast_path(function: Callable[..., Any], call: Call, n: int) -> Callable[..., Any]:
    """Return `function` with a way around it for a call on `n` arrays alone."""
    if n == 1:

        def shortened(*args: Any, **kwargs: Any) -> Any:
            if not kwargs and len(args) == 1 and args[0].__class__ is NDArray:
                return invoke_unary(call, args[0])
            return function(*args, **kwargs)
    else:

        def shortened(*args: Any, **kwargs: Any) -> Any:
            if not kwargs and len(args) == 2 and args[0].__class__ is NDArray and args[1].__class__ is NDArray:
                return invoke_binary(call, args[0], args[1])
            return function(*args, **kwargs)

    return shortened


def _call_sparse(call: Call, arrays: list[NDArray], runtime: tuple[float, ...], out: Any) -> Any:
    """Run a call with sparse inputs or a storage type."""
    if out is not None:
        sparse.invoke_out(call, arrays, _targets(call, out), runtime)
        return out
    outs = sparse.invoke(call, arrays, runtime)
    return outs[0] if call.n_visible == 1 else outs[: call.n_visible]


def cache_prepared_call(prepared: dict[Any, Any], n: int, kwargs: dict[str, Any], found: Any) -> None:
    """Cache a prepared call by the keywords `kwargs`, unless they contain arrays or unhashable values."""
    if any(isinstance(v, NDArray) for v in kwargs.values()):
        return
    if len(prepared) > 1024:
        prepared.clear()
    try:
        prepared[(n, *kwargs.items())] = found
    except TypeError:
        return


def _pop_context(op: Op, kwargs: dict[str, Any]) -> Context | None:
    """Take the context out of the keywords of an op without inputs."""
    if op.inputs or "ctx" not in kwargs:
        return None
    ctx = kwargs.pop("ctx")
    if ctx is None or ctx == "":
        return None
    return Context.parse(ctx) if isinstance(ctx, str) else Context(ctx)


def _create(call: Call, ctx: Context | None, runtime: tuple[float, ...], out: Any) -> Any:
    if out is not None:
        invoke_out(call, (), _targets(call, out), runtime)
        return out
    outs = invoke_nullary(call, ctx or current_context(), runtime)
    return outs[0] if call.n_visible == 1 else outs[: call.n_visible]


def symbol_function(op: Op, name: str) -> Callable[..., Any]:
    """Return the function `name` of the symbolic front end, which makes a node of `op`."""
    hint = name.lower()

    def function(*args: Any, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any) -> Symbol:
        if kwargs.pop("out", None) is not None:
            raise ArgumentTypeError(f"{op.name}: out= needs an array; a symbol has no values to write")
        return create(op, args, kwargs, name, attr, hint)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "dualmx.symbol"
    function.__signature__, function.__doc__ = signature_and_doc(op)
    return function


def signature_and_doc(op: Op) -> tuple[inspect.Signature, str]:
    """Signature and documentation of the functions of `op`."""
    found = [p for p in signature(op, Symbol).parameters.values() if p.name != "out"]
    mode: Any = next(p.kind for p in found if p.name == "name")
    found.insert(len(found) - 1, inspect.Parameter("attr", mode, default=None))
    notes = "\nOther keywords: name (of the node), attr (string attributes), `__key__` attributes.\n"
    return inspect.Signature(found, return_annotation=Symbol), docstring(op) + notes


def populate(top: ModuleType) -> None:
    """Serve every operator in the symbolic namespace and its sub-namespaces, and give `Symbol` its fluent methods."""
    lazy_module.populate(top, "Symbolic operators", symbol_function)
    symbol_random.populate(top.random)
    control.populate(top.contrib)
    for room in (top, top.op):
        setattr(room, Custom.__name__, Custom)
    install(Symbol, top)


def reshape(self: Symbol, *shape: Any, **kwargs: Any) -> Symbol:
    """Fluent form of `sym.reshape(x, shape=…)`; the lengths may be separate arguments."""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    if shape:
        kwargs["shape"] = shape
    return create(OPS["reshape"], (self,), kwargs, kwargs.pop("name", None), hint="reshape")


def transpose(self: Symbol, *axes: Any, **kwargs: Any) -> Symbol:
    """Fluent form of `sym.transpose(x, axes=…)`; the axes may be separate arguments."""
    if len(axes) == 1 and isinstance(axes[0], (tuple, list)):
        axes = tuple(axes[0])
    if axes:
        kwargs["axes"] = axes
    return create(OPS["transpose"], (self,), kwargs, kwargs.pop("name", None))


def astype(self: Symbol, dtype: Any, **kwargs: Any) -> Symbol:
    """Fluent form of `sym.cast(x, dtype)`."""
    return create(OPS["cast"], (self,), {"dtype": dtype}, kwargs.get("name"), hint="cast")


def squeeze(self: Symbol, axis: Any = None, inplace: bool = False, **kwargs: Any) -> Symbol:
    """Fluent form of `sym.squeeze(x, axis)`."""
    return create(OPS["squeeze"], (self,), {"axis": axis}, kwargs.get("name"))


def diag(self: Symbol, k: int = 0, **kwargs: Any) -> Symbol:
    """Fluent form of `sym.diag(x, k)`."""
    return create(OPS["diag"], (self,), {"k": k, **kwargs}, kwargs.pop("name", None))


def expand_dims(self: Symbol, axis: int, inplace: bool = False, **kwargs: Any) -> Symbol:
    """Fluent form of `sym.expand_dims(x, axis)`."""
    return create(OPS["expand_dims"], (self,), {"axis": axis}, kwargs.get("name"))


def flatten(self: Symbol, inplace: bool = False, **kwargs: Any) -> Symbol:
    """Fluent form of `sym.flatten(x)`."""
    return create(OPS["flatten"], (self,), {}, kwargs.get("name"), hint="flatten")


def split_v2(self: Symbol, *args: Any, **kwargs: Any) -> Symbol:
    """Fluent form of `sym.split_v2(x, indices_or_sections, axis, squeeze_axis)`."""
    return symbol_creation.split_v2(self, *args, **kwargs)


def as_np_ndarray(self: Symbol) -> Any:
    """Return the same expression with the operators of `mx.sym.np`: they broadcast, comparisons give bool."""
    return load("numpy.symbols").as_np(self)


HANDWRITTEN = (reshape, transpose, astype, squeeze, diag, expand_dims, flatten, split_v2, as_np_ndarray)


def install(cls: type[Symbol], top: ModuleType) -> None:
    """Give `cls` a method for every fluent operator that is registered."""
    methods.install_all(cls, top, "sym")
    for own in HANDWRITTEN:
        setattr(cls, own.__name__, own)
