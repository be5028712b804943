"""Lower a symbol to one call that the engine records and compiles."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, TypeAlias

from ..core.errors import MXNetError
from ..core.knobs import MIRROR
from ..graph.infer import infer_shapes, is_known, unknown_size
from ..graph.program import Instr, Program
from ..graph.program_call import ProgramCall
from ..op.registry import Call
from .compose import SymbolBase
from .node import Node, split_variables, topological

EntryKey: TypeAlias = tuple[int, int]  # a node, by its identity, and the number of its output

_MAX_PROGRAMS = 256  # lowered programs kept, so that binding the same architecture again compiles nothing
_KEPT_CALLS = 4096
_programs: OrderedDict[Any, ProgramCall] = OrderedDict()
_calls: dict[Any, Call] = {}
_lock = Lock()


def graph_call(symbol: SymbolBase, train: bool, states_only: bool = False) -> tuple[ProgramCall, list[str], list[str]]:
    """Lower the graph of `symbol` to one `Call`.

    Inputs of the call are the arguments, then the auxiliary states, in the order of `list_arguments` and
    `list_auxiliary_states`; new values of auxiliary states are written back by `ndarray.invoke`. Nodes such as
    `zeros(shape=(0, 3))` get the dimensions that follow from the shapes of the inputs when the call is compiled.

    Args:
        symbol: what to run; all its outputs are returned.
        train: training mode, frozen into the call.
        states_only: write nothing but auxiliary states; operators leave other inputs as they are.

    Returns:
        The call, the names of the arguments, the names of the auxiliary states.
    """
    order = topological(symbol.entries)
    arguments, states = split_variables(order)
    variables = [*arguments, *states]
    held = {id(v) for v in states}

    def is_written(node: Node, state: Node) -> bool:
        return id(state) in held or (node.op is not None and node.op.variadic) or not states_only

    nodes = [n for n in order if n.op is not None]
    outputs = [(id(node), i) for node, i in symbol.entries]
    program = program_of_nodes(nodes, [(id(v), 0) for v in variables], outputs, train, is_written=is_written)
    unfinished = {at: n for at, n in enumerate(nodes) if not n.inputs and has_unknown_shape(n)}

    def complete(inputs: Sequence[Any]) -> Program:
        found = infer_shapes(order, {id(v): tuple(a.shape) for v, a in zip(variables, inputs, strict=True)})
        steps: list[Any] = list(program.steps)
        for at, node in unfinished.items():
            shape = found.get((id(node), 0))
            if not is_known(shape):
                raise MXNetError(
                    f"node {node.name!r}: shape={node.params['shape']} has unknown dimensions that do not follow from "
                    f"the graph; write the shape out"
                )
            steps[at] = steps[at]._replace(call=call_with_constants(node, train, shape))
        return program._replace(steps=tuple(steps))

    name = f"symbol {symbol.entries[0][0].name}" if symbol.entries else "symbol"
    call = _interned(
        (program, train, *((at, node.name) for at, node in unfinished.items())),
        lambda: ProgramCall(name, program, train, complete if unfinished else None),
    )
    return call, [v.name for v in arguments], [v.name for v in states]


def program_of_nodes(
    nodes: Sequence[Node],
    inputs: Sequence[EntryKey],
    outputs: Sequence[EntryKey],
    train: bool,
    shape_of: Callable[[Node], Any] = lambda node: None,
    is_written: Callable[[Node, Node], bool] = lambda node, state: True,
) -> Program:
    """Return the program of operators, one step each, that reads what `inputs` name and yields `outputs`.

    Args:
        shape_of: the shape of what a node without inputs makes, None for that in its parameters.
        is_written: whether a node gives a variable among its auxiliary inputs its next value.
    """
    slots: dict[EntryKey, int] = {key: i for i, key in enumerate(inputs)}
    numbers = dict(slots)
    steps: list[Instr] = []
    written: dict[int, int] = {}
    n_slots, n_keys = len(slots), 0
    for node in nodes:
        call = call_with_constants(node, train, shape_of(node))
        outs = tuple(range(n_slots, n_slots + call.n_results))
        ins = tuple(slots[id(child), i] for child, i in node.inputs)
        steps.append(Instr(call, ins, outs, train and is_mirrored(node), n_keys))
        n_slots, n_keys = n_slots + call.n_results, n_keys + call.n_keys
        slots.update(((id(node), i), outs[i]) for i in range(call.n_outputs))
        for at, slot in zip(call.aux_offsets, outs[call.n_outputs :], strict=True):
            state, i = node.inputs[at]
            if state.op is None and is_written(node, state):
                written[numbers[id(state), i]] = slots[id(state), i] = slot
    results = (*(slots[key] for key in outputs), *written.values())
    return Program(tuple(steps), len(inputs), results, tuple(written))


def is_mirrored(node: Node) -> bool:
    """True if the backward pass recomputes the results of a node: by its attribute or the environment."""
    assert node.op is not None
    if node.attrs.get("__force_mirroring__", "").lower() in ("true", "1"):
        return True
    return MIRROR.read() == "1" and not node.op.traits.keeps_result


def has_unknown_shape(node: Node) -> bool:
    """True if a node makes an array of a shape with unknown dimensions."""
    shape = node.params.get("shape")
    return isinstance(shape, tuple) and unknown_size() in shape


def _interned(key: Any, make: Callable[[], ProgramCall]) -> ProgramCall:
    with _lock:
        if key in _programs:
            _programs.move_to_end(key)
            return _programs[key]
    made = make()
    with _lock:
        call = _programs.setdefault(key, made)
        while len(_programs) > _MAX_PROGRAMS:
            _programs.popitem(last=False)
    return call


def call_with_constants(node: Node, train: bool, shape: tuple[int, ...] | None = None) -> Call:
    """Return the call of a node in the given mode, with runtime scalars fixed to the node's values."""
    assert node.op is not None
    params = dict(node.params) if shape is None else {**node.params, "shape": shape}
    runtime = [n for n in params if node.op.params[n].runtime]
    call = node.op.bind(params, train)
    if not runtime:
        return call
    key = (call, tuple(repr(params[n]) for n in runtime))
    if len(_calls) > _KEPT_CALLS:
        _calls.clear()
    return _calls.setdefault(key, Call(node.op, params, call.train))
