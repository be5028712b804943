"""Kernels: an operator, or an operator with its VJP, as functions on NumPy arrays that serve for many sizes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ....core.errors import MXNetError
from ....graph.vjp import is_integer
from ....op.lowering_context import lowering_on_platform, with_layer_primitives
from ....op.registry import Call
from ....op.shape_functions import encode_shapes
from ....op.stored_source import UNUSABLE, Data, FormatError, SourceReader, encode_expression, encode_functions
from ....op.symbolic_sizes import (
    Avals,
    NotSymbolic,
    Pattern,
    SymbolicTrace,
    define,
    guard_function,
    names_of_sizes,
    pattern_of,
    trace_symbolically,
)
from ....op.trace_store import (
    decode_constant,
    decode_refinement,
    describe_refusal,
    encode_constant,
    encode_pattern,
    key_of,
    read_fields,
    store,
)
from ...first_tier import Work
from . import primitives
from .block_axes import ABSENT, INPUT, BlockAxis, block_axes
from .blocks import in_blocks
from .codegen import SourceWriter, Unsupported, writing_into

Sizes = tuple[int, ...]
_KEY = ((2,), np.dtype(np.uint32))
_SCALAR = ((), np.dtype(np.float32))
_MAX_STORED = 8  # kernels that are read for one pattern

_POOLING_STATEMENTS = 30  # of the formula, as which maxima and their gradients count
_VIEW = re.compile(r" = (?:np\.reshape|np\.broadcast_to|\w+\.transpose|\w+\.reshape)\(")  # it moves no elements


def work_of(source: str) -> Work:
    """Return the work of functions.

    Example:
        >>> work_of("def run(sizes, x0):\\n v1 = np.matmul(x0,x0)\\n v2 = v1+x0\\n return (v2,)")
        Work(statements=1, products=1, convolutions=0, loops=0, layers=0)
    """
    products, convolutions = source.count("K.dot_general(") + source.count("matmul("), source.count("K.convolution(")
    layers, poolings = source.count("K.normalize_batch"), source.count("K.max_pool")
    around = source.count("def ") + source.count(" return (") + source.count(" = sizes\n") + len(_VIEW.findall(source))
    statements = source.count("\n") + 1 - around - products - convolutions - layers + _POOLING_STATEMENTS * poolings
    loops = source.count("K.scan(") + source.count("K.while_loop(")
    return Work(statements, products, convolutions, loops, layers)


class Kernel(NamedTuple):
    """Functions for the sizes that satisfy a guard.

    Attributes:
        guard: whether it serves for these sizes.
        run: `(sizes, *inputs, *runtime scalars, *keys)` to the results, then to the residuals of `pull`.
        pull: `(sizes, *residuals, *cotangents of floating results)` to the gradients; None without a VJP.
        n_results: number of results.
        floating: positions of the results that have cotangents.
        work: that of both functions.
    """

    guard: Callable[[Sizes], bool]
    run: Callable[..., tuple[Any, ...]]
    pull: Callable[..., tuple[Any, ...]] | None
    n_results: int
    floating: tuple[int, ...]
    work: Work


class _Traces(NamedTuple):
    forward: Any
    backward: Any
    n_results: int
    floating: tuple[int, ...]


# Kernels, with which of the sizes each takes; None for what has none. Calls are interned, and so are these.
_Known = list[tuple[Kernel, tuple[int, ...]] | None]
_kernels: dict[tuple[Call, tuple[int, ...] | None, Pattern], _Known] = {}


def kernel_for(call: Call, wrt: tuple[int, ...], avals: Avals) -> tuple[Kernel, Sizes]:
    """Return the kernel of a call, with its VJP with respect to inputs `wrt` if there are any, and its sizes.

    Raises:
        Unsupported: it has none.
        MXNetError: the call does not take these inputs.
    """
    pattern, sizes = pattern_of(avals)
    call = call.without_stated_sizes(avals)
    key = (call, wrt or None, pattern)
    known = _kernels.get(key)
    if known is None:
        known = _kernels.setdefault(key, [*_stored_kernels(call, wrt, pattern, sizes)])
    for found in known:
        if found is None:
            raise Unsupported(call.op.name)
        kernel, which = found
        own = tuple([sizes[i] for i in which])
        if kernel.guard(own):
            return kernel, own
    try:
        kernel = _make_kernel(call, wrt, avals, pattern, sizes)
    except Unsupported:
        known.append(None)
        raise
    known.append((kernel, tuple(range(len(sizes)))))
    return kernel, sizes


def constant_kernel(shape: tuple[int, ...], dtype: np.dtype, value: Any) -> Kernel:
    """Return the kernel of a call that yields one number everywhere."""
    return Kernel(lambda sizes: True, lambda sizes: (np.full(shape, value, dtype),), None, 1, (), Work(1, 0, 0, 0))


def arranging_kernel(call: Call, wrt: tuple[int, ...], avals: Avals) -> Kernel:
    """Return the kernel of a call that only arranges elements.

    Raises:
        Unsupported: it has none.
    """
    arrangement, params, shapes = call.op.traits.arrangement, call.params, [shape for shape, _ in avals]
    if arrangement is None or any(_is_integer_dtype(avals[k][1]) for k in wrt):
        raise Unsupported(call.op.name)

    def run(sizes: Sizes, *arrays: Any) -> tuple[Any, ...]:
        return tuple(arrangement.run(params, arrays))

    def pull(sizes: Sizes, *cotangents: Any) -> tuple[Any, ...]:
        gradients = arrangement.pull(params, shapes, cotangents)
        return tuple([gradients[k] for k in wrt])

    n = call.n_results
    work = Work(n + (len(avals) if wrt else 0), 0, 0, 0)
    return Kernel(lambda sizes: True, run, pull if wrt else None, n, tuple(range(n)), work)


def _make_kernel(call: Call, wrt: tuple[int, ...], avals: Avals, pattern: Pattern, sizes: Sizes) -> Kernel:
    if call.joint or call.op.dynamic or any(_is_integer_dtype(avals[k][1]) for k in wrt):
        raise Unsupported(call.op.name)
    traits = call.op.traits
    if traits.compares_values:
        raise Unsupported(call.op.name)  # a kernel does not know where its inputs come from
    if (
        wrt
        and (traits.is_cast or traits.combines_floats)
        and any(_is_integer_dtype(d) for _, d in call.infer(tuple(avals)))
    ):
        raise Unsupported(call.op.name)  # gradients pass through these integers
    more = [jax.ShapeDtypeStruct(*a) for a in [_SCALAR] * call.n_runtime + [_KEY] * call.n_keys]

    def body(specs: list[jax.ShapeDtypeStruct]) -> _Traces:
        with lowering_on_platform("cpu"), with_layer_primitives():
            return _traces(call, wrt, [*specs, *more])

    try:
        trace = trace_symbolically(body, pattern, sizes)
    except (NotSymbolic, MXNetError):  # a body may also refuse symbols where it would take numbers
        with jax.enable_x64(True):
            traces = body([jax.ShapeDtypeStruct(s, d) for s, d in avals])
        names = names_of_sizes(len(sizes))
        guards = [f"{n} == {size}" for n, size in zip(names, sizes, strict=True)]
        trace = SymbolicTrace(traces, names, guards, frozenset(range(len(sizes))))
    written = _write(trace)
    if (key := key_of(call, pattern)) is not None:
        _keep(key, pattern, wrt, written, trace)
    return written.kernel(names_of_sizes(len(sizes)))


def _is_integer_dtype(dtype: np.dtype) -> bool:
    return not jnp.issubdtype(dtype, jnp.inexact)


class _KernelSource(NamedTuple):
    """A kernel as source.

    Attributes:
        source: that of the functions `run` and, with a VJP, `pull`.
        constants: by the names that they have there.
        guards: conditions on the sizes.
        n_results, floating, has_pull: as those of `Kernel` say.
        axes: along which `run`, and `pull`, may be run in parts.
    """

    source: str
    constants: dict[str, Any]
    guards: list[str]
    n_results: int
    floating: tuple[int, ...]
    has_pull: bool
    axes: tuple[list[BlockAxis], list[BlockAxis]]

    def kernel(self, sizes: Sequence[str]) -> Kernel:
        """Return the kernel, in whose source sizes have these names."""
        source = f"{self.source}\nfunctions = (run, {'pull' if self.has_pull else None})"
        scope = {"np": np, "K": primitives, **self.constants}
        run, pull = define(source, "functions", scope)
        guard, work = guard_function(sizes, self.guards), work_of(self.source)

        def in_parts(function: Any, name: str, axes: list[BlockAxis]) -> Any:
            return in_blocks(function, lambda: define(writing_into(self.source, name), name, scope), axes, guard)

        run, pull = in_parts(run, "run", self.axes[0]), pull and in_parts(pull, "pull", self.axes[1])
        return Kernel(guard, run, pull, self.n_results, self.floating, work)


def _write(trace: SymbolicTrace) -> _KernelSource:
    traces: _Traces = trace.result
    writer = SourceWriter()
    writer.add_function("run", traces.forward, trace.names)
    if traces.backward is not None:
        writer.add_function("pull", traces.backward, trace.names)
    has_pull = traces.backward is not None
    axes = block_axes(traces.forward, trace.names), block_axes(traces.backward, trace.names) if has_pull else []
    return _KernelSource(
        writer.source, writer.constants, trace.guards, traces.n_results, traces.floating, has_pull, axes
    )


# -- between processes

_FUNCTIONS = {
    f"K.{name}": fn
    for name, fn in vars(primitives).items()
    if isinstance(fn, FunctionType) and fn.__module__.startswith(f"{__package__}.") and not name.startswith("_")
}


def _part(wrt: tuple[int, ...]) -> str:
    """What the list of kernels with gradients of some inputs is called in an entry."""
    return f"kernels {list(wrt)}"


def _keep(key: str, pattern: Pattern, wrt: tuple[int, ...], written: _KernelSource, trace: SymbolicTrace) -> None:
    """Keep a kernel, and with it the shapes of its results, for later processes."""
    try:
        data = {
            "pattern": encode_pattern(pattern),
            "guards": [encode_expression(g) for g in written.guards],
            "functions": encode_functions(written.source),
            "constants": {name: encode_constant(value) for name, value in written.constants.items()},
            "n_results": written.n_results,
            "floating": list(written.floating),
            "axes": [[list(axis) for axis in axes] for axes in written.axes],
        }
        shapes = encode_shapes(pattern, trace.guards, trace.result.forward.out_avals[: written.n_results])
    except FormatError as e:
        describe_refusal(key, e)
    else:
        store.add(key, {"shapes": shapes, _part(wrt): data})


def _stored_kernels(call: Call, wrt: tuple[int, ...], pattern: Pattern, sizes: Sizes) -> _Known:
    """Return the kernels of a call that earlier processes kept, if they can be used."""
    key = key_of(call, pattern)
    if key is None:
        return []
    n_args = len(pattern) + call.n_runtime + call.n_keys
    found: _Known = []
    try:
        for data in store.read(key).get(_part(wrt), []):
            stored_pattern, *fields = read_fields(
                data, pattern=list, guards=list, functions=list, constants=dict, n_results=int, floating=list,
                axes=list,
            )  # fmt: skip
            which = decode_refinement(stored_pattern, pattern)
            if which is None or len(found) == _MAX_STORED:
                continue
            names = names_of_sizes(len(which))
            kernel = _read(fields, names, n_args, len(wrt)).kernel(names)
            if kernel.n_results != call.n_results:
                raise FormatError(f"{kernel.n_results} results")
            kernel.guard(tuple([sizes[i] for i in which]))
            found.append((kernel, which))
    except UNUSABLE as e:
        describe_refusal(key, e)
        return []
    return found


def _read(fields: list[Data], names: list[str], n_args: int, n_gradients: int) -> _KernelSource:
    """Return the kernel of stored fields, whose functions take and return as many values as they must."""
    guards, functions, constants, n_results, floating, axes = fields
    values = {name: decode_constant(value) for name, value in constants.items()}
    reader = SourceReader(values, names, _FUNCTIONS)
    lines = [reader.function(f, (name,)) for f, name in zip(functions, ("run", "pull"), strict=False)]
    counts = [(len(args), len(results) - 1) for _, args, _, results in functions]
    n_residuals = counts[0][1] - n_results
    wanted = [(1 + n_args, n_results + n_residuals)]
    if n_gradients:
        wanted.append((1 + n_residuals + len(floating), n_gradients))
    if counts != wanted or n_residuals < 0 or any(f[1][0] != "sizes" or f[3][0] != "tuple" for f in functions):
        raise FormatError(f"functions of {counts} values")
    if any(type(i) is not int or not 0 <= i < n_results for i in floating):
        raise FormatError(f"results {floating}")
    source = "\n".join(row for function in lines for row in function)
    scope = SourceReader(names)
    return _KernelSource(
        source, values, [scope.expression(g) for g in guards], n_results, tuple(floating), len(functions) == 2,
        _read_axes(axes, counts, len(names)),
    )  # fmt: skip


def _read_axes(
    axes: list[Data], counts: list[tuple[int, int]], n_sizes: int
) -> tuple[list[BlockAxis], list[BlockAxis]]:
    """Return the axes of stored functions, which take `sizes` and arrays and return values, as many as counted."""
    found: list[list[BlockAxis]] = []
    for group, (n_args, n_values) in itertools.zip_longest(axes, counts, fillvalue=(0, 0)):
        found.append([])
        for data in group if type(group) is list else ():
            size, ins, outs, passes = data
            places = [(ins, n_args - 1, ABSENT), (outs, n_values, INPUT - n_args + 2)]
            if any(len(at) != n or any(type(i) is not int or i < least for i in at) for at, n, least in places):
                raise FormatError(f"axes {data}")
            if type(size) is not int or not 0 <= size < n_sizes or type(passes) is not int:
                raise FormatError(f"size {size}")
            found[-1].append(BlockAxis(size, ins, outs, passes))
    if len(found) > 2:
        raise FormatError(f"axes of {len(found)} functions")
    return found[0], found[1] if len(found) > 1 else []


# -- tracing


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
