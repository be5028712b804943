"""Lower a symbol to one call that the engine records and compiles."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple

from ..core.errors import MXNetError
from ..core.knobs import MIRROR
from ..graph.infer import infer_shapes, is_known, unknown_size
from ..graph.program import Instr, ProgramCall, program_call, run_and_collect
from ..op.registry import Call, Op
from ..op.schema import UNTYPED, Input
from .compose import SymbolBase
from .node import Node, split_variables, topological

_MAX_PROGRAMS = 256  # lowered programs kept, so that binding the same architecture again compiles nothing
_KEPT_CALLS = 4096
_programs: OrderedDict[Any, Call] = OrderedDict()
_calls: dict[Any, Call] = {}
_lock = Lock()


def graph_call(symbol: SymbolBase, train: bool, states_only: bool = False) -> tuple[Call, list[str], list[str]]:
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
    slots: dict[tuple[int, int], int] = {(id(v), 0): i for i, v in enumerate(variables)}
    number, held = {id(v): i for i, v in enumerate(variables)}, {id(v) for v in states}
    instrs: list[Instr] = []
    aux: dict[int, int] = {}
    n_slots = len(variables)
    unfinished: dict[int, Node] = {}
    for node in order:
        if node.op is None:
            continue
        call = call_with_constants(node, train)
        ins = tuple(slots[id(child), index] for child, index in node.inputs)
        outs = tuple(range(n_slots, n_slots + call.n_results))
        n_slots += call.n_results
        if not ins and has_unknown_shape(node):
            unfinished[len(instrs)] = node
        instrs.append(Instr(call, ins, outs, train and is_mirrored(node)))
        slots.update(((id(node), i), outs[i]) for i in range(call.n_outputs))
        for at, slot in zip(call.aux_offsets, outs[call.n_outputs :], strict=True):
            state = node.inputs[at][0]
            if state.op is None and (id(state) in held or node.op.variadic or not states_only):
                aux[number[id(state)]] = slots[id(state), 0] = slot
    program = _ProgramArgs(
        f"symbol {symbol.entries[0][0].name}" if symbol.entries else "symbol",
        tuple(instrs),
        len(variables),
        tuple(slots[id(node), index] for node, index in symbol.entries),
        tuple(aux.items()),
        train,
    )
    key = (*program[1:], *((at, node.name) for at, node in unfinished.items()))
    call = _interned(
        key,
        lambda: (
            _complete_when_shapes_known(program, order, variables, unfinished) if unfinished else program_call(*program)
        ),
    )
    return call, [v.name for v in arguments], [v.name for v in states]


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


class _ProgramArgs(NamedTuple):
    """The arguments of `program_call`."""

    name: str
    instrs: tuple[Instr, ...]
    n_inputs: int
    outputs: tuple[int, ...]
    aux: tuple[tuple[int, int], ...]
    train: bool


def _interned(key: Any, make: Callable[[], Call]) -> Call:
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


def _complete_when_shapes_known(
    program: _ProgramArgs, order: Sequence[Node], variables: Sequence[Node], unfinished: Mapping[int, Node]
) -> Call:
    """A program whose creation nodes of unknown shape are finished when the shapes of its inputs are known."""
    results = (*program.outputs, *(slot for _, slot in program.aux))

    def body(*data: Any, key: Any = None) -> tuple[Any, ...]:
        found = infer_shapes(order, {id(v): tuple(d.shape) for v, d in zip(variables, data, strict=True)})
        instrs = list(program.instrs)
        for at, node in unfinished.items():
            shape = found.get((id(node), 0))
            if not is_known(shape):
                raise MXNetError(
                    f"node {node.name!r}: shape={node.params['shape']} has unknown dimensions that do not follow from "
                    f"the graph; write the shape out"
                )
            instrs[at] = instrs[at]._replace(call=call_with_constants(node, program.train, shape))
        return run_and_collect(instrs, dict(enumerate(data)), key, results)

    random = any(i.call.has_key for i in program.instrs)
    inputs = (Input("data", UNTYPED, variadic=True),)
    op = Op(program.name, body, inputs, {}, outputs=len(program.outputs), key_name="key" if random else "")
    joint = any(i.call.joint for i in program.instrs)
    return ProgramCall(op, program.train, len(program.outputs), program.aux, program.n_inputs, joint)
