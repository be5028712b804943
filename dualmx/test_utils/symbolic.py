"""Check symbols: outputs, gradients, numerical derivatives, agreement between contexts."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import autograd
from ..core.context import Context
from ..core.errors import ArgumentError
from ..namespace import nd, sym
from ..ndarray import NDArray, array, waitall
from ..symbol import Symbol
from ..symbol.inference import all_shapes
from .arrays import default_context
from .compare import assert_almost_equal, default_numeric_eps, host


def _placed(what: str, names: Sequence[str], given: Any, ctx: Context, dtype: Any) -> dict[str, NDArray]:
    """Return values (a dict, or a list in the order of `names`) as arrays by name."""
    if isinstance(given, Mapping):
        if set(given) != set(names):
            raise ArgumentError(f"{what}: got {sorted(given)}, expected {sorted(names)}")
        pairs = {n: given[n] for n in names}
    else:
        given = list(given)
        if len(given) != len(names):
            raise ArgumentError(f"{what}: got {len(given)} arrays, expected {len(names)}: {', '.join(names)}")
        pairs = dict(zip(names, given, strict=True))
    placed = {}
    for name, value in pairs.items():
        kind = value.dtype if isinstance(value, NDArray) else dtype
        placed[name] = array(host(value), ctx=ctx, dtype=kind)
    return placed


def _states(symbol: Symbol, aux_states: Any, ctx: Context, dtype: Any) -> dict[str, NDArray]:
    return _placed("aux_states", symbol.list_auxiliary_states(), aux_states, ctx, dtype) if aux_states else {}


def simple_forward(sym: Symbol, ctx: Context | None = None, is_train: bool = False, **inputs: Any) -> Any:
    """Run a symbol on NumPy arrays given by name; return its output, or the list of its outputs, as NumPy arrays."""
    ctx = ctx or default_context()
    placed = {name: array(host(value), ctx=ctx) for name, value in inputs.items()}
    found = sym.bind(ctx, args=placed).forward(is_train=is_train)
    outs = [o.asnumpy() for o in found]
    return outs[0] if len(outs) == 1 else outs


def check_symbolic_forward(
    sym: Symbol,
    location: Any,
    expected: Any,
    rtol: Any = None,
    atol: Any = None,
    aux_states: Any = None,
    ctx: Context | None = None,
    equal_nan: bool = False,
    dtype: Any = np.float32,
) -> list[NDArray]:
    """Require that a symbol's outputs are those expected; returns the outputs.

    Args:
        sym: the symbol.
        location: its arguments, a dict by name or a list in the order of `list_arguments()`.
        expected: its outputs, a dict by name or a list.
        rtol, atol, equal_nan: see `assert_almost_equal`.
        aux_states: auxiliary states, if it has some.
        ctx: where to run, `default_context()` by default.
        dtype: element type of arguments given as NumPy arrays.
    """
    ctx = ctx or default_context()
    placed = _placed("location", sym.list_arguments(), location, ctx, dtype)
    executor = sym.bind(ctx, args=placed, aux_states=_states(sym, aux_states, ctx, dtype))
    outputs = executor.forward(is_train=False)
    names = sym.list_outputs()
    wanted = [expected[n] for n in names] if isinstance(expected, Mapping) else list(expected)
    for name, want, got in zip(names, wanted, outputs, strict=True):
        assert_almost_equal(want, got, rtol, atol, (f"EXPECTED_{name}", f"FORWARD_{name}"), equal_nan)
    return outputs


def check_symbolic_backward(
    sym: Symbol,
    location: Any,
    out_grads: Any,
    expected: Any,
    rtol: Any = None,
    atol: Any = None,
    aux_states: Any = None,
    grad_req: Any = "write",
    ctx: Context | None = None,
    grad_stypes: Any = None,
    equal_nan: bool = False,
    dtype: Any = np.float32,
) -> dict[str, NDArray]:
    """Require that a symbol's gradients are those expected; returns them by argument.

    Args:
        sym, location, rtol, atol, aux_states, ctx, equal_nan, dtype: see `check_symbolic_forward`.
        out_grads: gradients of the outputs, a list or a dict by name; None for a loss.
        expected: gradients by argument, a dict or a list; arguments left out are not checked.
        grad_req: `"write"`, `"add"` (to random values) or `"null"`, one for all, a list or a dict.
        grad_stypes: storage types of gradients; only dense ones.
    """
    ctx = ctx or default_context()
    names = sym.list_arguments()
    placed = _placed("location", names, location, ctx, dtype)
    wanted = dict(expected) if isinstance(expected, Mapping) else dict(zip(names, expected, strict=True))
    if isinstance(grad_req, str):
        reqs = {n: grad_req if n in wanted else "null" for n in names}
    else:
        reqs = dict(grad_req) if isinstance(grad_req, Mapping) else dict(zip(names, grad_req, strict=True))
    start = {n: np.random.normal(size=placed[n].shape) for n in wanted}
    grads = {n: array(v, ctx=ctx, dtype=placed[n].dtype) for n, v in start.items()}
    executor = sym.bind(
        ctx, args=placed, args_grad=grads, grad_req=reqs, aux_states=_states(sym, aux_states, ctx, dtype)
    )
    executor.forward(is_train=True)
    heads = None
    if out_grads is not None:
        outs = sym.list_outputs()
        given = [out_grads[n] for n in outs] if isinstance(out_grads, Mapping) else list(out_grads)
        heads = [
            array(host(g), ctx=ctx, dtype=g.dtype if isinstance(g, NDArray) else o.dtype)
            for g, o in zip(given, executor.outputs, strict=True)
        ]
    executor.backward(heads)
    for name, want in wanted.items():
        if reqs[name] == "add":
            want = host(want) + start[name]
        elif reqs[name] == "null":
            want = start[name]
        labels = (f"EXPECTED_{name}", f"BACKWARD_{name}")
        assert_almost_equal(want, executor.grad_dict[name], rtol, atol, labels, equal_nan)
    return {n: grads[n] for n in wanted}


def numeric_grad(
    executor: Any,
    location: Mapping[str, Any],
    aux_states: Mapping[str, Any] | None = None,
    eps: float = 1e-4,
    use_forward_train: bool = True,
    dtype: Any = np.float32,
) -> dict[str, np.ndarray]:
    """Return the derivative of the sum of an executor's first output by central differences, by argument.

    Args:
        executor: a bound symbol.
        location: arguments to differentiate in, by name.
        aux_states: auxiliary states to start every evaluation from.
        eps: distance of the two points.
        use_forward_train: evaluate in training mode.
        dtype: element type of the evaluations.
    """

    def evaluate() -> float:
        for name, value in (aux_states or {}).items():
            executor.aux_dict[name][:] = value
        return float(host(executor.forward(is_train=use_forward_train)[0]).astype(np.float64).sum())

    grads = {}
    for name, value in location.items():
        start = host(value).astype(dtype)
        grad = np.zeros(start.shape, dtype)
        for at in np.ndindex(start.shape):
            ends = []
            for side in (1, -1):
                moved = start.copy()
                moved[at] += side * eps / 2
                executor.arg_dict[name][:] = moved
                ends.append(evaluate())
            grad[at] = (ends[0] - ends[1]) / eps
        executor.arg_dict[name][:] = start
        grads[name] = grad
    return grads


def check_numeric_gradient(
    sym: Symbol,
    location: Any,
    aux_states: Any = None,
    numeric_eps: float | None = None,
    rtol: Any = None,
    atol: Any = None,
    grad_nodes: Any = None,
    use_forward_train: bool = True,
    ctx: Context | None = None,
    grad_stype_dict: Any = None,
    dtype: Any = np.float32,
) -> None:
    """Require that a symbol's gradients agree with numerical derivatives of a random projection of its outputs.

    Args:
        sym, location, aux_states, rtol, atol, ctx: see `check_symbolic_forward`.
        numeric_eps: distance of the points of the differences, by `dtype` by default.
        grad_nodes: arguments to check (a list, or a dict to `grad_req`), all by default.
        use_forward_train: evaluate in training mode.
        grad_stype_dict: storage types of gradients; only dense ones.
        dtype: float16, float32 or float64.
    """
    if np.dtype(dtype) not in default_numeric_eps():
        raise ArgumentError(f"check_numeric_gradient: dtype={dtype!r}: expected float16, float32 or float64")
    ctx = ctx or default_context()
    eps = default_numeric_eps()[np.dtype(dtype)] if numeric_eps is None else numeric_eps
    names = sym.list_arguments()
    placed = _placed("location", names, location, ctx, dtype)
    states = _states(sym, aux_states, ctx, dtype)
    checked = names if grad_nodes is None else list(grad_nodes)
    reqs = dict(grad_nodes) if isinstance(grad_nodes, Mapping) else dict.fromkeys(checked, "write")
    loss, projections = _projected(sym, {n: a.shape for n, a in placed.items()}, ctx, dtype)
    start = {n: np.random.normal(0, 0.01, placed[n].shape) for n in checked}
    grads = {n: array(v, ctx=ctx, dtype=placed[n].dtype) for n, v in start.items()}
    executor = loss.bind(
        ctx,
        args={**placed, **projections},
        args_grad=grads,
        grad_req={n: reqs.get(n, "null") for n in loss.list_arguments()},
        aux_states=states,
    )
    fixed = {n: a.asnumpy() for n, a in states.items()}
    executor.forward(is_train=True)
    executor.backward()
    exact = {n: grads[n].asnumpy() for n in checked}
    measured = numeric_grad(executor, {n: placed[n].asnumpy() for n in checked}, fixed, eps, use_forward_train, dtype)
    for name in checked:
        want = {"write": measured[name], "add": measured[name] + start[name], "null": start[name]}[reqs[name]]
        assert_almost_equal(want, exact[name], rtol, atol, (f"NUMERICAL_{name}", f"BACKWARD_{name}"))


def _projected(
    symbol: Symbol, shapes: Mapping[str, tuple[int, ...]], ctx: Context, dtype: Any
) -> tuple[Symbol, dict[str, NDArray]]:
    """Return the sum of all outputs, each element with a random weight, as a loss; and the weights by name."""
    out_shapes = all_shapes(symbol, **shapes)[1] or []
    weights, terms = {}, []
    for k, shape in enumerate(out_shapes):
        name = f"__projection{k}"
        # Weights away from 0, so that no element's derivative is hidden.
        weights[name] = array(np.random.random_sample(shape) + 0.1, ctx=ctx, dtype=dtype)
        terms.append(sym.sum(symbol[k] * sym.var(name)))
    return sym.MakeLoss(terms[0] if len(terms) == 1 else sym.add_n(*terms)), weights


def check_consistency(
    sym: Any,
    ctx_list: Sequence[Mapping[str, Any]],
    scale: float = 1.0,
    grad_req: Any = "write",
    arg_params: Mapping[str, Any] | None = None,
    aux_params: Mapping[str, Any] | None = None,
    rtol: Any = None,
    atol: Any = None,
    raise_on_err: bool = True,
    ground_truth: Mapping[str, Any] | None = None,
    equal_nan: bool = False,
    use_uniform: bool = False,
    rand_type: Any = np.float64,
) -> dict[str, np.ndarray]:
    """Require that a symbol computes the same on several contexts or in several element types.

    Args:
        sym: a symbol, or one for each entry of `ctx_list`, with the same arguments.
        ctx_list: for each run a dict with `"ctx"`, shapes by input name, and perhaps `"type_dict"`.
        scale: standard deviation (or bound, with `use_uniform`) of random arguments.
        grad_req: how gradients are stored; `"null"` compares outputs only.
        arg_params, aux_params: values of arguments and states by name instead of random ones and zeros.
        rtol, atol, equal_nan: see `assert_almost_equal`; by default wide enough for the less precise run.
        raise_on_err: raise on a difference, otherwise print it.
        ground_truth: values to compare with; by default those of the run of the highest precision.
        use_uniform: draw uniformly.
        rand_type: element type of the draws.

    Returns:
        What was compared with: outputs and gradients by name.
    """
    symbols = list(sym) if isinstance(sym, (list, tuple)) else [sym] * len(ctx_list)
    executors = [s.simple_bind(grad_req=grad_req, **c) for s, c in zip(symbols, ctx_list, strict=True)]
    values = dict(arg_params or {})
    for name, a in executors[0].arg_dict.items():
        if name not in values:
            draw = np.random.uniform(-scale, scale, a.shape) if use_uniform else np.random.normal(0, scale, a.shape)
            values[name] = draw.astype(rand_type)
    for executor in executors:
        for name, a in executor.arg_dict.items():
            a[:] = host(values[name])
        for name, a in executor.aux_dict.items():
            a[:] = host((aux_params or {}).get(name, 0))
    results = [_results(e, s, grad_req) for e, s in zip(executors, symbols, strict=True)]
    precision = [min(np.finfo(np.dtype(o.dtype)).precision for o in e.outputs) for e in executors]
    best = int(np.argmax(precision))
    truth = dict(ground_truth) if ground_truth is not None else {n: host(v) for n, v in results[best].items()}
    for k, found in enumerate(results):
        for name, got in found.items() if ground_truth is not None or k != best else ():
            try:
                assert_almost_equal(
                    got, truth[name].astype(got.dtype), rtol, atol, (f"run{k}_{name}", "truth"), equal_nan
                )
            except AssertionError as e:
                if raise_on_err:
                    raise
                print(f"run {k} on {ctx_list[k]}: {e}")
    return truth


def _results(executor: Any, symbol: Symbol, grad_req: Any) -> dict[str, np.ndarray]:
    outputs = executor.forward(is_train=grad_req != "null")
    found = {n: o.asnumpy() for n, o in zip(symbol.list_outputs(), outputs, strict=True)}
    if grad_req != "null":
        executor.backward([nd.ones_like(o) for o in outputs])
        found.update({f"{n}_grad": g.asnumpy() for n, g in executor.grad_dict.items() if g is not None})
    return found


def check_gluon_hybridize_consistency(
    net_builder: Any,
    data_l: Sequence[NDArray],
    numpy_func: Any = None,
    test_grad: bool = True,
    rtol: float = 1e-4,
    atol: float = 1e-4,
) -> None:
    """Require that a block gives the same outputs and gradients hybridized and not, and as a NumPy function.

    Args:
        net_builder: makes the block.
        data_l: its inputs.
        numpy_func: computes the expected output from NumPy inputs.
        test_grad: compare gradients of inputs and parameters too.
    """
    saved: dict[str, Any] = {}
    runs = []
    for hybridized in (False, True):
        net = net_builder()
        net.initialize()
        if hybridized:
            net.hybridize()
        inputs = [a.copy() for a in data_l]
        for a in inputs:
            a.attach_grad()
        net(*inputs)
        # Both blocks begin with the values of the first.
        for key, parameter in net.collect_params_with_prefix().items():
            if key in saved:
                parameter.set_data(saved[key])
            saved[key] = parameter.data().copy()
        with autograd.record(train_mode=test_grad):
            out = net(*inputs)
        found = {"output": out}
        if test_grad:
            out.backward()
            found.update({f"input{k}": a.grad for k, a in enumerate(inputs)})
            owned = net.collect_params_with_prefix().items()
            found.update({n: p.grad() for n, p in owned if p.grad_req != "null"})
        runs.append(found)
    for name, want in runs[0].items():
        assert_almost_equal(want, runs[1][name], rtol, atol, (f"plain_{name}", f"hybridized_{name}"))
    if numpy_func is not None:
        want = numpy_func(*[host(a) for a in data_l])
        assert_almost_equal(runs[0]["output"], want, rtol, atol, ("block", "numpy"))


def check_speed(
    sym: Symbol,
    location: Mapping[str, Any] | None = None,
    ctx: Context | None = None,
    N: int = 20,
    grad_req: str | None = None,
    typ: str = "whole",
    **kwargs: Any,
) -> float:
    """Return the seconds of one run of a symbol.

    Args:
        sym: the symbol.
        location: its arguments; standard normal ones of the shapes in `kwargs` by default.
        ctx: where to run.
        N: runs that are averaged.
        grad_req: how gradients are stored, `"write"` by default.
        typ: `"whole"` (forward and backward) or `"forward"`.
    """
    if typ not in ("whole", "forward"):
        raise ArgumentError(f"check_speed: typ={typ!r}: expected 'whole' or 'forward'")
    ctx = ctx or default_context()
    shapes: dict[str, Any] = {n: host(v).shape for n, v in location.items()} if location is not None else kwargs
    executor = sym.simple_bind(ctx, grad_req=grad_req or "write", **shapes)
    for name, a in executor.arg_dict.items():
        a[:] = host(location[name]) if location is not None else np.random.normal(size=a.shape)

    def run() -> None:
        executor.forward(is_train=typ == "whole")
        if typ == "whole":
            executor.backward([nd.ones_like(o) for o in executor.outputs])
        for o in executor.outputs:
            o.wait_to_read()

    run()
    waitall()
    began = time.perf_counter()
    for _ in range(N):
        run()
    waitall()
    return (time.perf_counter() - began) / N


def same_symbol_structure(sym1: Symbol, sym2: Symbol) -> bool:
    """Return whether two graphs have the same operators and connections, whatever their names."""
    return _structure(sym1) == _structure(sym2)


def _structure(symbol: Symbol) -> Any:

    graph = json.loads(symbol.tojson())
    return [(n["op"], [i[:2] for i in n["inputs"]]) for n in graph["nodes"]], [h[:2] for h in graph["heads"]]


__all__ = [
    "check_consistency", "check_gluon_hybridize_consistency", "check_numeric_gradient", "check_speed",
    "check_symbolic_backward", "check_symbolic_forward", "numeric_grad", "same_symbol_structure", "simple_forward",
]  # fmt: skip
