"""Kernels: an operator, or an operator with its VJP, as functions on NumPy arrays that serve for many sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ....graph.vjp import is_integer
from ....op.lowering_context import lowering_on_platform
from ....op.registry import Call
from ....op.symbolic_sizes import (
    Avals,
    NotSymbolic,
    Pattern,
    SymbolicTrace,
    define,
    guard_function,
    pattern_of,
    trace_symbolically,
)
from . import primitives
from .codegen import SourceWriter, Unsupported

Sizes = tuple[int, ...]
_KEY = ((2,), np.dtype(np.uint32))
_SCALAR = ((), np.dtype(np.float32))


class Kernel(NamedTuple):
    """Functions for the sizes that satisfy a guard.

    Attributes:
        guard: whether it serves for these sizes.
        run: `(sizes, *inputs, *runtime scalars, *keys)` to the results, then to the residuals of `pull`.
        pull: `(sizes, *residuals, *cotangents of floating results)` to the gradients; None without a VJP.
        n_results: number of results.
        floating: positions of the results that have cotangents.
        n_lines: number of statements, of both functions.
    """

    guard: Callable[[Sizes], bool]
    run: Callable[..., tuple[Any, ...]]
    pull: Callable[..., tuple[Any, ...]] | None
    n_results: int
    floating: tuple[int, ...]
    n_lines: int


class _Traces(NamedTuple):
    forward: Any
    backward: Any
    n_results: int
    floating: tuple[int, ...]


# None for what has no kernel. Calls are interned, and so are these.
_kernels: dict[tuple[Call, tuple[int, ...] | None, Pattern], list[Kernel | None]] = {}


def kernel_for(call: Call, wrt: tuple[int, ...], avals: Avals) -> tuple[Kernel, Sizes]:
    """Return the kernel of a call, with its VJP with respect to inputs `wrt` if there are any, and its sizes.

    Raises:
        Unsupported: it has none.
        MXNetError: the call does not take these inputs.
    """
    pattern, sizes = pattern_of(avals)
    key = (call, wrt or None, pattern)
    known = _kernels.setdefault(key, [])
    for kernel in known:
        if kernel is None:
            raise Unsupported(call.op.name)
        if kernel.guard(sizes):
            return kernel, sizes
    try:
        kernel = _make_kernel(call, wrt, avals, pattern, sizes)
    except Unsupported:
        known.append(None)
        raise
    known.append(kernel)
    return kernel, sizes


def constant_kernel(shape: tuple[int, ...], dtype: np.dtype, value: Any) -> Kernel:
    """Return the kernel of a call that yields one number everywhere."""
    return Kernel(lambda sizes: True, lambda sizes: (np.full(shape, value, dtype),), None, 1, (), 1)


def _make_kernel(call: Call, wrt: tuple[int, ...], avals: Avals, pattern: Pattern, sizes: Sizes) -> Kernel:
    if call.joint or call.op.dynamic or any(_is_integer_dtype(avals[k][1]) for k in wrt):
        raise Unsupported(call.op.name)
    more = [jax.ShapeDtypeStruct(*a) for a in [_SCALAR] * call.n_runtime + [_KEY] * call.n_keys]

    def body(specs: list[jax.ShapeDtypeStruct]) -> _Traces:
        with lowering_on_platform("cpu"):
            return _traces(call, wrt, [*specs, *more])

    try:
        trace = trace_symbolically(body, pattern, sizes)
    except NotSymbolic:
        with jax.enable_x64(True):
            traces = body([jax.ShapeDtypeStruct(s, d) for s, d in avals])
        names = [f"d{k}" for k in range(len(sizes))]
        guards = [f"{n} == {size}" for n, size in zip(names, sizes, strict=True)]
        trace = SymbolicTrace(traces, names, guards, frozenset(range(len(sizes))))
    return _kernel_of(trace)


def _is_integer_dtype(dtype: np.dtype) -> bool:
    return not jnp.issubdtype(dtype, jnp.inexact)


def _kernel_of(trace: SymbolicTrace) -> Kernel:
    traces: _Traces = trace.result
    writer = SourceWriter()
    writer.add_function("run", traces.forward, trace.names)
    if traces.backward is not None:
        writer.add_function("pull", traces.backward, trace.names)
    source = writer.source + f"\nfunctions = (run, {'pull' if traces.backward is not None else None})"
    run, pull = define(source, "functions", {"np": np, "K": primitives, **writer.constants})
    return Kernel(
        guard_function(trace.names, trace.guards), run, pull, traces.n_results, traces.floating, writer.n_lines
    )


def _traces(call: Call, wrt: tuple[int, ...], specs: Sequence[jax.ShapeDtypeStruct]) -> _Traces:
    """Trace a call on inputs, runtime scalars and the words of keys, and its VJP if inputs `wrt` are given."""
    n = len(specs) - call.n_runtime - call.n_keys

    def results(inputs: Sequence[Any], rest: Sequence[Any]) -> tuple[Any, ...]:
        keys = [jax.random.wrap_key_data(words) for words in rest[call.n_runtime :]]
        return call.apply_keys(list(inputs), keys, list(rest[: call.n_runtime]))

    if not wrt:
        forward = jax.make_jaxpr(lambda *a: results(a[:n], a[n:]))(*specs)
        return _Traces(forward, None, len(forward.out_avals), ())
    structure: Any = None
    floating: list[int] = []

    def with_residuals(*a: Any) -> tuple[Any, ...]:
        nonlocal structure

        def part(*chosen: Any) -> tuple[list[Any], list[Any]]:
            full = list(a[:n])
            for k, v in zip(wrt, chosen, strict=True):
                full[k] = v
            outs = results(full, a[n:])
            floating[:] = [i for i, o in enumerate(outs) if not is_integer(o)]
            return [o for o in outs if not is_integer(o)], [o for o in outs if is_integer(o)]

        floats, pull, integers = jax.vjp(part, *[a[k] for k in wrt], has_aux=True)
        residuals, structure = jax.tree_util.tree_flatten(pull)
        left = iter(integers)
        outs = [floats[floating.index(i)] if i in floating else next(left) for i in range(len(floats) + len(integers))]
        return (*outs, *residuals)

    forward = jax.make_jaxpr(with_residuals)(*specs)
    n_results = call.n_results
    abstract = [jax.ShapeDtypeStruct(o.shape, o.dtype) for o in forward.out_avals]

    def back(*a: Any) -> Any:
        n_residuals = len(abstract) - n_results
        return jax.tree_util.tree_unflatten(structure, a[:n_residuals])(list(a[n_residuals:]))

    backward = jax.make_jaxpr(back)(*abstract[n_results:], *[abstract[i] for i in floating])
    return _Traces(forward, backward, n_results, tuple(floating))
