"""Executor of graphs placed on several contexts by `ctx_group`: one program per run of nodes on a context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..core.context import Context
from ..core.errors import MXNetError
from ..graph.infer import infer_shapes
from ..graph.program_call import ProgramCall
from ..ndarray import NDArray, invoke, zeros
from ..ndarray.handle import is_tracked
from ..ndarray.tape import backward as run_backward
from ..op.registry import Call
from .executor import Executor, RecordedForward, recorded_training, without_recording
from .lowering import EntryKey, has_unknown_shape, program_of_nodes
from .node import Node, SymbolBase, split_variables, topological


class Segment(NamedTuple):
    """A program on one context.

    Attributes:
        ctx: where it runs.
        call: the program; its inputs are `args`, then `states`.
        args: variables that are arguments, and outputs of earlier segments.
        states: variables that are auxiliary states.
        outputs: what later segments or the user read.
    """

    ctx: Context
    call: Call
    args: tuple[EntryKey, ...]
    states: tuple[EntryKey, ...]
    outputs: tuple[EntryKey, ...]


def group_of(node: Node) -> str:
    """Return the `ctx_group` of a node, empty without one."""
    return node.attrs.get("__ctx_group__", "")


def assign_contexts(
    order: Sequence[Node], ctx: Context, group2ctx: Mapping[str, Context], arrays: Mapping[str, NDArray]
) -> dict[int, Context]:
    """Return where each node is placed, by identity.

    That is the context of its group. Without one, variables are where their arrays are, and operators where their first
    input is.
    """
    found: dict[int, Context] = {}
    for node in order:
        if group_of(node) in group2ctx:
            found[id(node)] = group2ctx[group_of(node)]
        elif node.op is None:
            found[id(node)] = arrays[node.name].context
        else:
            found[id(node)] = found[id(node.inputs[0][0])] if node.inputs else ctx
    return found


def spans_contexts(
    order: Sequence[Node], ctx: Context, group2ctx: Mapping[str, Context], arrays: Mapping[str, NDArray]
) -> bool:
    """True if an operator is placed elsewhere than on `ctx`."""
    places = assign_contexts(order, ctx, group2ctx, arrays)
    return any(n.op and places[id(n)] is not ctx for n in order)


def context_segments(order: Sequence[Node], places: Mapping[int, Context]) -> list[tuple[Context, list[Node]]]:
    """Order the operators so that each context works as long as it can before it waits for another."""
    waiting = {id(n): n for n in order if n.op is not None}
    missing = {k: {id(c) for c, _ in n.inputs if c.op is not None} for k, n in waiting.items()}
    found: list[tuple[Context, list[Node]]] = []
    while waiting:
        ready = next(k for k in waiting if not missing[k])
        here, nodes = places[ready], []
        for key, node in list(waiting.items()):
            # In topological order one pass finds all that depend on nothing but what is done or found before.
            if places[key] is here and not missing[key] - {id(n) for n in nodes}:
                nodes.append(node)
        done = {id(n) for n in nodes}
        for key in done:
            del waiting[key]
        for left in missing.values():
            left -= done
        found.append((here, nodes))
    return found


class MultiContextExecutor(Executor):
    """An executor of a symbol whose operators run on several contexts.

    Each stretch of operators on one context is one program; values that cross contexts are copied. The gradients take
    the same way back, so that each context only holds and computes its own part.

    Example:
        >>> import dualmx as mx
        >>> with mx.AttrScope(ctx_group="first"):
        ...     h = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=4, name="a")
        >>> with mx.AttrScope(ctx_group="second"):
        ...     y = mx.sym.FullyConnected(h, num_hidden=2, name="b")
        >>> exe = y.simple_bind(mx.cpu(0), group2ctx={"first": mx.cpu(0), "second": mx.cpu(1)}, x=(3, 5))
        >>> exe.forward()[0].context
        cpu(1)
    """

    def __init__(
        self,
        symbol: SymbolBase,
        ctx: Context,
        args: Sequence[NDArray],
        grads: Sequence[NDArray | None],
        reqs: Sequence[str],
        states: Sequence[NDArray],
        group2ctx: Mapping[str, Context],
    ):
        super().__init__(symbol, ctx, args, grads, reqs, states, group2ctx)
        order = topological(symbol.entries)
        arguments, auxiliary = split_variables(order)
        self._variables: dict[EntryKey, tuple[NDArray, NDArray | None, str]] = {
            (id(n), 0): each for n, each in zip(arguments, zip(args, grads, reqs, strict=True), strict=True)
        }
        self._arrays = {(id(n), 0): a for n, a in zip(auxiliary, states, strict=True)}
        shapes = {id(n): a.shape for n, a in zip((*arguments, *auxiliary), (*args, *states), strict=True)}
        self._shapes = infer_shapes(order, shapes)
        self._places = assign_contexts(order, ctx, group2ctx, {**self.arg_dict, **self.aux_dict})
        self._stretches = context_segments(order, self._places)
        self._segments: dict[bool, list[Segment]] = {}
        self._runs: list[tuple[Segment, RecordedForward, dict[EntryKey, NDArray]]] = []
        self._uses: dict[EntryKey, int] = {}

    def _output_contexts(self) -> list[Context]:
        return [self._places[id(n)] for n, _ in self._symbol.entries]

    def _lowered(self, train: bool) -> list[Segment]:
        found = self._segments.get(train)
        if found is None:
            found = self._segments[train] = [self._segment(k, train) for k in range(len(self._stretches))]
        return found

    def _segment(self, number: int, train: bool) -> Segment:
        ctx, nodes = self._stretches[number]
        inside = {id(n) for n in nodes}
        read = list(dict.fromkeys((id(c), i) for n in nodes for c, i in n.inputs if id(c) not in inside))
        args = tuple(p for p in read if p not in self._arrays)
        states = tuple(p for p in read if p in self._arrays)
        later = {(id(c), i) for _, others in self._stretches[number + 1 :] for n in others for c, i in n.inputs}
        later.update((id(n), i) for n, i in self._symbol.entries)
        outputs = tuple((id(n), i) for n in nodes for i in range(n.n_outputs) if (id(n), i) in later)

        def shape_of(node: Node) -> Any:
            return self._shapes.get((id(node), 0)) if not node.inputs and has_unknown_shape(node) else None

        program = program_of_nodes(nodes, [*args, *states], outputs, train, shape_of)
        call = ProgramCall(f"symbol {nodes[0].name} … {nodes[-1].name}", program, train)
        return Segment(ctx, call, args, states, outputs)

    def forward(self, is_train: bool = False, **kwargs: Any) -> list[NDArray]:
        for name, value in kwargs.items():
            self._set_input(name, value)
        self._recorded_forward, self._runs = None, []
        self._run_monitor(is_train)
        with recorded_training() if is_train else without_recording():
            values = self._train() if is_train else self._predict()
        self._publish_outputs([values[id(n), i] for n, i in self._symbol.entries])
        return list(self._outputs)

    def _predict(self) -> dict[EntryKey, NDArray]:
        values = {p: a for p, (a, _, _) in self._variables.items()}
        for s in self._lowered(False):
            inputs = [values[p] for p in s.args] + [self._arrays[p] for p in s.states]
            inputs = [a.as_in_context(s.ctx) for a in inputs]
            with s.ctx:
                outs = invoke(s.call, inputs)
            values.update(zip(s.outputs, outs, strict=False))
        return values

    def _train(self) -> dict[EntryKey, NDArray]:
        values = {p: a for p, (a, _, _) in self._variables.items()}
        segments = self._lowered(True)
        self._uses = {}
        for s in segments:
            for p in s.args:
                self._uses[p] = self._uses.get(p, 0) + 1
        for s in segments:
            crossing: dict[EntryKey, NDArray] = {}
            args, grads, reqs = [], [], []
            for p in s.args:
                value = values[p]
                if p in self._variables:
                    _, grad, req = self._variables[p]
                    req = "add" if req == "write" and self._uses[p] > 1 else req
                else:
                    with without_recording():
                        value = (value.detach() if is_tracked(value) else value).as_in_context(s.ctx)
                        grad = crossing[p] = zeros(value.shape, ctx=s.ctx, dtype=value.dtype)
                    req = "write"
                args.append(value)
                grads.append(grad)
                reqs.append(req)
            replay = RecordedForward(s.call, s.ctx, args, grads, reqs)
            outs = replay.run([self._arrays[p] for p in s.states])
            values.update(zip(s.outputs, outs, strict=False))
            self._runs.append((s, replay, crossing))
        return values

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        seeds = self._seeds(out_grads)
        if not self._runs:
            raise MXNetError("backward: call forward(is_train=True) first; it records what gradients need")
        given: dict[EntryKey, list[NDArray | None]] = {}
        for (node, i), seed in zip(self._symbol.entries, seeds, strict=True):
            given.setdefault((id(node), i), []).append(seed)
        for p, (_, grad, req) in self._variables.items():
            if grad is not None and req == "write" and self._uses.get(p, 0) > 1:
                grad[:] = 0
        for s, replay, crossing in reversed(self._runs):
            pairs = [
                (h, None if seed is None else seed.as_in_context(s.ctx))
                for p, h in zip(s.outputs, replay.heads(), strict=False)
                for seed in given.get(p, ())
            ]
            if not pairs or not replay.has_variables:
                continue
            run_backward([h for h, _ in pairs], [seed for _, seed in pairs])
            for p, grad in crossing.items():
                given.setdefault(p, []).append(grad)
