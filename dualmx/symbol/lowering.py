"""From a symbol to one call that the engine records and compiles."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from ..core.errors import MXNetError
from ..graph.passes.infer import infer_shapes
from ..graph.program import Instr, program_call
from ..op.registry import Call
from .compose import SymbolBase
from .node import Node, split_variables, topological

_KEPT = 256  # lowered programs kept, so that binding the same architecture again compiles nothing
_programs: OrderedDict[Any, Call] = OrderedDict()
_calls: dict[Any, Call] = {}
_lock = Lock()


def graph_call(
    symbol: SymbolBase, train: bool, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> tuple[Call, list[str], list[str]]:
    """Lower the graph of `symbol` to one `Call`.

    Inputs of the call are the arguments, then the auxiliary states, in the order of `list_arguments` and
    `list_auxiliary_states`; new values of auxiliary states are written back by `ndarray.invoke`.

    Args:
        symbol: what to run; all its outputs are returned.
        train: training mode, frozen into the call.
        shapes: shapes of variables by name; needed when nodes such as `zeros(shape=(0, 3))` have dimensions that
            follow from the rest of the graph.

    Returns:
        The call, the names of the arguments, the names of the auxiliary states.
    """
    order = topological(symbol.entries)
    arguments, states = split_variables(order)
    variables = [*arguments, *states]
    filled = _fill_creations(order, variables, shapes or {})
    slots: dict[tuple[int, int], int] = {(id(v), 0): i for i, v in enumerate(variables)}
    number = {id(v): i for i, v in enumerate(variables)}
    instrs: list[Instr] = []
    aux: dict[int, int] = {}
    n_slots = len(variables)
    for node in order:
        if node.op is None:
            continue
        call = frozen_call(node, train, filled.get(id(node)))
        ins = tuple(slots[id(child), index] for child, index in node.inputs)
        outs = tuple(range(n_slots, n_slots + call.n_results))
        n_slots += call.n_results
        instrs.append(Instr(call, ins, outs))
        slots.update(((id(node), i), outs[i]) for i in range(call.n_outputs))
        for at, slot in zip(call.aux_at, outs[call.n_outputs :], strict=True):
            state = node.inputs[at][0]
            aux[number[id(state)]] = slots[id(state), 0] = slot
    outputs = tuple(slots[id(node), index] for node, index in symbol.entries)
    call = _interned(tuple(instrs), len(variables), outputs, tuple(aux.items()), train, symbol)
    return call, [v.name for v in arguments], [v.name for v in states]


def _interned(
    instrs: tuple[Instr, ...],
    n_inputs: int,
    outputs: tuple[int, ...],
    aux: tuple[tuple[int, int], ...],
    train: bool,
    symbol: SymbolBase,
) -> Call:
    key = (instrs, n_inputs, outputs, aux, train)
    with _lock:
        if key in _programs:
            _programs.move_to_end(key)
            return _programs[key]
    name = f"symbol {symbol.entries[0][0].name}" if symbol.entries else "symbol"
    call = program_call(name, instrs, n_inputs, outputs, aux, train)
    with _lock:
        call = _programs.setdefault(key, call)
        while len(_programs) > _KEPT:
            _programs.popitem(last=False)
    return call


def frozen_call(node: Node, train: bool, shape: tuple[int, ...] | None = None) -> Call:
    """Return the call of a node in the given mode, with parameters that vary at run time fixed to the node's values."""
    assert node.op is not None
    params = dict(node.params) if shape is None else {**node.params, "shape": shape}
    runtime = [n for n in params if node.op.params[n].runtime]
    call = node.op.bind(params, train)
    if not runtime:
        return call
    key = (call, tuple(repr(params[n]) for n in runtime))
    return _calls.setdefault(key, Call(node.op, params, call.train))


def _fill_creations(
    order: Sequence[Node], variables: Sequence[Node], shapes: Mapping[str, tuple[int, ...]]
) -> dict[int, tuple[int, ...]]:
    """Shapes of the creation nodes that were written with unknown dimensions, by `id` of the node."""
    open_nodes = [n for n in order if n.op is not None and not n.inputs and 0 in (n.params.get("shape") or ())]
    if not open_nodes:
        return {}
    found = infer_shapes(order, {id(v): shapes[v.name] for v in variables if v.name in shapes})
    filled = {}
    for node in open_nodes:
        shape = found.get((id(node), 0))
        if shape is None or 0 in shape:
            raise MXNetError(
                f"node {node.name!r} ({node.op.name if node.op else ''}): shape={node.params['shape']} has unknown "
                f"dimensions that do not follow from the graph; write the shape out, or bind with shapes"
            )
        filled[id(node)] = shape
    return filled
