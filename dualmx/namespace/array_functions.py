"""`mx.nd.X` for every registered operator: a closure that finds its prepared call by the keywords it was given."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from ..core.context import Context, current_context
from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray.array import NDArray
from ..ndarray.creation import array
from ..ndarray.handle import Handle, create, invoke, invoke_out
from ..ndarray.trace import local
from ..op.registry import Call, Op
from .signature import docstring, signature


def as_input(value: Any, op: Op, name: str, beside: Any) -> NDArray:
    """Return an input array; NumPy and JAX arrays are converted, their dtype kept."""
    if isinstance(value, Handle):
        return value  # type: ignore[return-value]
    if isinstance(value, np.ndarray) or hasattr(value, "__jax_array__") or type(value).__module__.startswith("jax"):
        ctx = beside.context if beside is not None else None
        return array(value, ctx=ctx, dtype=value.dtype)
    raise ArgumentTypeError(
        f"{op.name}: {name}={value!r} of type {type(value).__name__}: expected an NDArray; make one with mx.nd.array()"
    )


def split_arguments(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[NDArray], dict[str, Any]]:
    """Sort the arguments of a call into input arrays and parameters; positional ones follow the signature."""
    params = {k: v for k, v in kwargs.items() if k in op.params or k not in {i.name for i in op.inputs}}
    if op.variadic:
        if len(args) == 1 and isinstance(args[0], (list, tuple)):
            args = tuple(args[0])
        found = [as_input(a, op, f"argument {k}", None) for k, a in enumerate(args)]
        if "num_args" in op.params:
            params.setdefault("num_args", len(found))
        return found, params
    names = [i.name for i in op.inputs]
    order = [*names, *op.params]
    if len(args) > len(order):
        raise ArgumentTypeError(f"{op.name}: takes at most {len(order)} positional arguments, got {len(args)}")
    given: dict[str, Any] = {}
    left = list(order)
    for value in args:
        # An op may have optional inputs before its parameters: a plain value then is the first parameter.
        while left and left[0] in names and value is not None and not _array_like(value) and left[0] in _optional(op):
            left.pop(0)
        slot = left.pop(0)
        if slot in kwargs:
            raise ArgumentTypeError(f"{op.name}: got multiple values for argument {slot!r}")
        (given if slot in names else params)[slot] = value
    given.update({k: v for k, v in kwargs.items() if k in names})
    parsed = op.parse(params)
    present = [i for i in op.inputs if i.when is None or i.when.holds(parsed)]
    arrays: list[NDArray] = []
    for i in present:
        value = given.get(i.name)
        if value is None:
            if i.optional:
                break
            raise ArgumentError(
                f"{op.name}: missing input {i.name!r}; it takes ({', '.join(p.name for p in present)})"
            )
        arrays.append(as_input(value, op, i.name, arrays[0] if arrays else None))
    return arrays, params


def _array_like(value: Any) -> bool:
    return isinstance(value, (Handle, np.ndarray)) or hasattr(value, "__jax_array__")


def _optional(op: Op) -> set[str]:
    return {i.name for i in op.inputs if i.optional or i.when is not None}


def array_function(op: Op, name: str) -> Callable[..., Any]:
    """Return the front-end function of `op` called `name`."""
    prepared: dict[Any, Call] = {}
    n_required = len([i for i in op.inputs if not i.optional])
    plain = not op.variadic and bool(op.inputs)

    def function(*args: Any, out: Any = None, name: str | None = None, **kwargs: Any) -> Any:
        call = None
        if plain and len(args) == n_required:
            for v in args:
                if not isinstance(v, Handle):
                    break
            else:
                for v in kwargs.values():
                    if isinstance(v, Handle):
                        break
                else:
                    try:
                        key = tuple(kwargs.items())
                        call = prepared.get(key)
                        if call is None and all(i.when is None for i in op.inputs):
                            call = op.call(**kwargs)
                            if len(prepared) > 1024:
                                prepared.clear()
                            prepared[key] = call
                    except TypeError:
                        call = None
        if call is None:
            ctx = _pop_context(op, kwargs)
            args_list, params = split_arguments(op, args, kwargs)
            call = op.call(**params)
            if not args_list and not op.variadic:
                return _create(call, ctx, params, out)
            args = tuple(args_list)
        runtime: Any = ()
        if call.n_runtime:
            runtime = op.runtime_values(op.parse({k: v for k, v in kwargs.items() if k in op.params}))
        if call.op.key_name or call.op.train_name:
            call = call.at(local.training)
        if out is not None:
            invoke_out(call, args, [out] if isinstance(out, Handle) else list(out), runtime)
            return out
        outs = invoke(call, args, runtime)
        return outs[0] if call.n_visible == 1 else outs[: call.n_visible]

    function.__name__ = function.__qualname__ = name
    function.__doc__ = docstring(op)
    function.__signature__ = signature(op, NDArray)  # type: ignore[attr-defined]
    function.__module__ = "dualmx.ndarray"
    return function


def _pop_context(op: Op, kwargs: dict[str, Any]) -> Context | None:
    """Take the context out of the keywords of an op without inputs."""
    if op.inputs or "ctx" not in kwargs:
        return None
    ctx = kwargs.pop("ctx")
    if ctx is None or ctx == "":
        return None
    return Context.parse(ctx) if isinstance(ctx, str) else Context(ctx)


def _create(call: Call, ctx: Context | None, params: dict[str, Any], out: Any) -> Any:
    runtime = call.op.runtime_values(call.op.parse(params)) if call.n_runtime else ()
    if out is not None:
        invoke_out(call, (), [out] if isinstance(out, Handle) else list(out), runtime)
        return out
    outs = create(call, ctx or current_context(), runtime)
    return outs[0] if call.n_visible == 1 else outs[: call.n_visible]


PREFIXES = {
    "_contrib_": "contrib",
    "_linalg_": "linalg",
    "_random_": "random",
    "_sample_": "random",
    "_image_": "image",
    "_sparse_": "sparse",
}


def public_names(name: str) -> tuple[str, str]:
    """Return (sub-namespace, name) under which a registered name appears; the top one is `""`."""
    for prefix, room in PREFIXES.items():
        if name.startswith(prefix):
            return room, name[len(prefix) :]
    return ("_internal", name) if name.startswith("_") else ("", name)


def module(parent: ModuleType, name: str, doc: str) -> ModuleType:
    """Return the sub-namespace `name` of `parent`, made and registered if it is new."""
    import sys

    path = f"{parent.__name__}.{name}"
    found = sys.modules.get(path)
    if found is None:
        found = sys.modules[path] = ModuleType(path, doc)
        setattr(parent, name, found)
    return found


def populate(top: ModuleType, ops: dict[str, Op]) -> None:
    """Fill the array namespace and its sub-namespaces with a function for every registered name."""
    rooms = {room: module(top, room, f"Array operators: {room}.") for room in {*PREFIXES.values(), "_internal", "op"}}
    made: dict[Op, Callable[..., Any]] = {}
    for name, op in ops.items():
        room, short = public_names(name)
        fn = made.get(op)
        if fn is None:
            fn = made[op] = array_function(op, short)
        target = rooms[room] if room else top
        if not hasattr(target, short) or (room and not inspect.isfunction(getattr(target, short))):
            setattr(target, short, fn)
        setattr(rooms["_internal"], name, fn)
        if not room:
            setattr(rooms["op"], short, fn)
