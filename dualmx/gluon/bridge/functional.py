"""`functional`: a block or symbol as a pure function of a tree of parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from ...core.errors import ArgumentError, ArgumentTypeError
from ...ndarray import NDArray, array
from ...op.registry import Call, Op
from ...op.schema import ABSENT, UNTYPED, Input, ParamField, to_float
from ...symbol import Symbol
from ...symbol.lowering import graph_call
from ...symbol.node import topological
from ..base_block import Block
from ..cached_graph import CachedGraph
from ..pytree import flatten, unflatten

Function = Callable[..., Any]


def functional(
    source: Any, *example: Any, train: bool = False, params: Mapping[str, Any] | None = None
) -> tuple[Function, dict[str, jax.Array]]:
    """Return `(fn, params)`: a pure JAX function and the parameters to start from, by full name.

    `fn(params, *inputs, key=None)` takes JAX arrays and works under `jax.jit`, `jax.grad`, `jax.vmap` and in Optax
    loops. It returns the outputs, nested as the block's; with `train=True` it returns `(outputs, state)`, where
    `state` holds the next values of moving statistics, by name: `params = {**params, **state}`.

    Args:
        source: a block whose `hybrid_forward` runs on symbols, or a symbol.
        example: example inputs of a block; they also finish deferred initialization. For a symbol, none.
        train: training mode. Dropout then needs `key`, a `jax.random` key, as operators that draw do always.
        params: for a symbol, values by name; the other arguments are the function's inputs, in order.

    Raises:
        ArgumentTypeError: neither block nor symbol. ArgumentError: example or params are missing.

    Example:
        >>> import dualmx as mx, jax, jax.numpy as jnp
        >>> net = mx.gluon.nn.Dense(1, in_units=3)
        >>> net.initialize()
        >>> fn, params = mx.gluon.bridge.functional(net, mx.nd.ones((2, 3)))
        >>> grads = jax.grad(lambda p: fn(p, jnp.ones((2, 3))).sum())(params)
        >>> sorted(g.shape for g in grads.values())
        [(1,), (1, 3)]
    """
    if isinstance(source, Symbol):
        return _of_symbol(source, train, params or {})
    if not isinstance(source, Block):
        raise ArgumentTypeError(f"functional: expected a block or a symbol, got {type(source).__name__}")
    if not example:
        raise ArgumentError("functional: give example inputs of the block")
    inputs = [x if isinstance(x, (NDArray, list, tuple)) else array(x) for x in example]
    if any(p.is_deferred for p in source.collect_params().values()):
        source(*inputs)
    graph = CachedGraph.of_block(source, tuple(inputs))
    values = {p.name: p.list_data()[0].as_jax() for p in graph.params}
    fn = _function(
        graph.symbol, train, lambda given: flatten(given, "functional", (jax.Array, np.ndarray))[0], graph.names
    )
    return (lambda params, *given, key=None: fn(params, given, key, graph.out_format)), values


def _of_symbol(symbol: Symbol, train: bool, params: Mapping[str, Any]) -> tuple[Function, dict[str, jax.Array]]:
    values = {name: (v if isinstance(v, NDArray) else array(v)).as_jax() for name, v in params.items()}
    missing = [n for n in symbol.list_auxiliary_states() if n not in values]
    if missing:
        raise ArgumentError(f"functional: params lacks the states {', '.join(missing)}")
    names = [n for n in symbol.list_arguments() if n not in values]
    n_outputs = len(symbol.list_outputs())
    fn = _function(symbol, train, list, names)
    return (lambda params, *given, key=None: fn(params, given, key, 0 if n_outputs == 1 else [0] * n_outputs)), values


def _draws(symbol: Symbol, train: bool) -> bool:
    """Whether a graph needs random numbers: those operators that can do without do so in prediction mode."""
    for op, params in ((n.op, n.params) for n in topological(symbol.entries) if n.op is not None and n.op.has_key):
        optional = op.has_train and inspect.signature(op.fn).parameters[op.key_name].default is ABSENT
        if train or not optional or params.get("mode") == "always":
            return True
    return False


def _function(symbol: Symbol, train: bool, listed: Callable[[Any], list[Any]], names: list[str]) -> Function:
    call, arguments, states = graph_call(symbol, train, states_only=True)
    draws = _draws(symbol, train)

    def fn(params: Mapping[str, Any], given: tuple[Any, ...], key: Any, form: Any) -> Any:
        flat = listed(given)
        if len(flat) != len(names):
            raise ArgumentError(f"functional: got {len(flat)} inputs, expected {len(names)}: {', '.join(names)}")
        by_name = {**params, **dict(zip(names, flat, strict=True))}
        if draws and key is None:
            raise ArgumentError("functional: this function draws random numbers; pass key=jax.random.key(...)")
        order = [*arguments, *states]
        unused = jax.random.key(0) if call.has_key and key is None else key
        results = call.apply([by_name[n] for n in order], unused)
        outs = list(results[: call.n_outputs])
        out = outs[0] if form == 0 else unflatten(outs, form)
        if not train:
            return out
        written = [order[i] for i in call.aux_positions(len(order))]
        return out, dict(zip(written, results[call.n_outputs :], strict=True))

    return fn


def pure_call(
    name: str,
    fn: Callable[..., Sequence[Any]],
    n_outputs: int,
    writes: Sequence[int] = (),
    random: bool = False,
    runtime: Sequence[str] = (),
) -> Call:
    """Return a call of `fn(*arrays)`, to be run with `ndarray.invoke`.

    Args:
        name: shown in profiles and error messages.
        fn: pure; returns the outputs, then the next values of the inputs it writes.
        n_outputs: number of outputs.
        writes: positions of the inputs that receive next values.
        random: pass a random key as keyword `key`.
        runtime: keywords under which `fn` receives float scalars given at each run.
    """
    params = {n: ParamField(n, float, to_float, 1.0, runtime=True) for n in runtime}
    inputs = (Input("data", UNTYPED, variadic=True),)
    op = Op(
        name,
        fn,
        inputs,
        params,
        outputs=n_outputs,
        key_name="key" if random else "",
        mutates=(lambda _: tuple(writes)) if writes else None,
    )
    return Call(op, dict.fromkeys(runtime, 1.0), False)
