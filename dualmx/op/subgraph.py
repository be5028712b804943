"""Control-flow operators `_foreach`, `_while_loop` and `_cond` as XLA scans and branches.

They are not registered, because they mean nothing without their graphs, which `symbol.subgraph` binds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..core.errors import ArgumentError
from .registry import Call, Op
from .schema import Count, Key, Shape, Train, UntypedTensor


class LoweredGraph(NamedTuple):
    """A graph lowered to a call; `order[i]` is the number, among the graph's variables, of the call's input i."""

    call: Call
    order: tuple[int, ...]

    def run(self, values: Sequence[Any], key: Any) -> tuple[list[Any], dict[int, Any]]:
        """Outputs for the values of the variables, and the next values of the variables that the graph writes."""
        got = self.call.apply([values[i] for i in self.order], key)
        return list(got[: self.call.n_outputs]), dict(zip(self.writes(), got[self.call.n_outputs :], strict=True))

    def writes(self) -> list[int]:
        """Numbers of the variables that the graph writes."""
        return [self.order[i] for i in self.call.aux_positions(len(self.order))]


def foreach_wiring(p: Any) -> tuple[int, ...]:
    """The input position that feeds each variable of the body of `_foreach`."""
    at = dict(enumerate((*p.in_data_locs, *p.in_state_locs, *p.remain_locs)))
    return tuple(position for position, _ in sorted(at.items(), key=lambda item: item[1]))


def _written_inputs(bodies: Sequence[tuple[LoweredGraph, Sequence[int]]]) -> tuple[int, ...]:
    """Input positions written by graphs, given with the positions that feed their variables."""
    return tuple(dict.fromkeys(wires[v] for body, wires in bodies for v in body.writes()))


def _truth(name: str, value: Any) -> Any:
    if value.size != 1:
        raise ArgumentError(f"{name}: the condition has shape {tuple(value.shape)}: expected one number")
    return value.reshape(()) != 0


def _keeps(name: str, what: str, old: Sequence[Any], new: Sequence[Any]) -> None:
    for i, (a, b) in enumerate(zip(old, new, strict=True)):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            found, want = f"{b.dtype}{list(b.shape)}", f"{a.dtype}{list(a.shape)}"
            raise ArgumentError(f"{name}: {what} {i} becomes {found}: expected {want}, as before the step")


def _foreach(
    *data: UntypedTensor, key: Key, train: Train, num_args: Count = 0, num_outputs: Count, num_out_data: Count,
    in_state_locs: Shape, in_data_locs: Shape, remain_locs: Shape, bodies: tuple = (),
) -> tuple[Any, ...]:  # fmt: skip
    """Scan the body over the first axis of the data."""
    body: LoweredGraph = bodies[0]
    n_data, n_state = len(in_data_locs), len(in_state_locs)
    wires = [*in_data_locs, *in_state_locs, *remain_locs]
    xs, init = data[:n_data], data[n_data : n_data + n_state]
    lengths = sorted({x.shape[0] if x.ndim else 0 for x in xs})
    if len(lengths) != 1 or lengths[0] == 0:
        raise ArgumentError(f"_foreach: data have {lengths} steps: expected arrays of one length that is not 0")
    fed = foreach_wiring(_InputLocations(in_data_locs, in_state_locs, remain_locs))
    written = _written_inputs([(body, fed)])

    def step(carry: Any, x: Any) -> Any:
        states, held, t = carry
        env = [None] * len(wires)
        current = list(data[n_data + n_state :])
        for at, value in zip(written, held, strict=True):
            current[at - n_data - n_state] = value
        for number, value in zip(wires, (*x, *states, *current), strict=True):
            env[number] = value
        outs, wrote = body.run(env, jax.random.fold_in(key, t))
        after = tuple(outs[num_out_data:])
        _keeps("_foreach", "state", states, after)
        held = tuple(next(v for n, v in wrote.items() if fed[n] == at) for at in written)
        return (after, held, t + 1), tuple(outs[:num_out_data])

    start = (tuple(init), tuple(data[at] for at in written), jnp.zeros((), jnp.uint32))
    (states, held, _), stacked = jax.lax.scan(step, start, tuple(xs))
    return (*stacked, *states, *held)


class _InputLocations(NamedTuple):
    in_data_locs: Sequence[int]
    in_state_locs: Sequence[int]
    remain_locs: Sequence[int]


def _while_loop(
    *data: UntypedTensor, key: Key, train: Train, num_args: Count = 0, num_outputs: Count, num_out_data: Count,
    max_iterations: Count, cond_input_locs: Shape, func_input_locs: Shape, func_var_locs: Shape, bodies: tuple = (),
) -> tuple[Any, ...]:  # fmt: skip
    """Run the body while the condition holds; a scan of bounded length, so that it has gradients."""
    test, body = bodies
    places = [func_input_locs[i] for i in func_var_locs]
    written = [at for at in _written_inputs([(body, func_input_locs)]) if at not in places]

    def env(variables: Any, held: Any) -> list[Any]:
        now = list(data)
        for at, value in zip((*places, *written), (*variables, *held), strict=True):
            now[at] = value
        return now

    def run(variables: Any, held: Any, sub: Any) -> Any:
        now = env(variables, held)
        outs, wrote = body.run([now[i] for i in func_input_locs], sub)
        after = tuple(outs[num_out_data:])
        _keeps("_while_loop", "loop variable", variables, after)
        kept = {func_input_locs[n]: v for n, v in wrote.items()}
        return tuple(outs[:num_out_data]), after, tuple(kept[at] for at in written)

    def step(carry: Any, t: Any) -> Any:
        active, variables, held = carry
        now = env(variables, held)
        sub = jax.random.fold_in(key, t)
        (verdict,), _ = test.run([now[i] for i in cond_input_locs], sub)
        active = active & _truth("_while_loop", verdict)
        shapes = jax.eval_shape(run, variables, held, sub)[0]

        def skip(variables: Any, held: Any, sub: Any) -> Any:
            return tuple(jnp.zeros(s.shape, s.dtype) for s in shapes), variables, held

        outs, variables, held = jax.lax.cond(active, run, skip, variables, held, sub)
        return (active, variables, held), outs

    start = (jnp.array(True), tuple(data[at] for at in places), tuple(data[at] for at in written))
    (_, variables, held), stacked = jax.lax.scan(step, start, jnp.arange(max_iterations, dtype=jnp.uint32))
    return (*stacked, *variables, *held)


def _cond(
    *data: UntypedTensor, key: Key, train: Train, num_args: Count = 0, num_outputs: Count, cond_input_locs: Shape,
    then_input_locs: Shape, else_input_locs: Shape, bodies: tuple = (),
) -> tuple[Any, ...]:  # fmt: skip
    """Run one of two graphs."""
    test, then, other = bodies
    (verdict,), _ = test.run([data[i] for i in cond_input_locs], key)
    sides = ((then, then_input_locs), (other, else_input_locs))
    written = _written_inputs(sides)

    def branch(body: LoweredGraph, wires: Sequence[int]) -> Any:
        def run(values: Any) -> Any:
            outs, wrote = body.run([values[i] for i in wires], key)
            now = {wires[n]: v for n, v in wrote.items()}
            return tuple(outs), tuple(now.get(at, values[at]) for at in written)

        return run

    runs = [branch(*side) for side in sides]
    shapes = [jax.eval_shape(run, tuple(data))[0] for run in runs]
    _keeps("_cond", "output of the branches: output", *shapes)
    outs, held = jax.lax.cond(_truth("_cond", verdict), *runs, tuple(data))
    return (*outs, *held)


def _foreach_mutates(p: Any) -> Sequence[int]:
    return _written_inputs([(p.bodies[0], foreach_wiring(p))]) if p.bodies else ()


def _while_mutates(p: Any) -> Sequence[int]:
    if not p.bodies:
        return ()
    places = {p.func_input_locs[i] for i in p.func_var_locs}
    return [at for at in _written_inputs([(p.bodies[1], p.func_input_locs)]) if at not in places]


def _cond_mutates(p: Any) -> Sequence[int]:
    return _written_inputs([(p.bodies[1], p.then_input_locs), (p.bodies[2], p.else_input_locs)]) if p.bodies else ()


def _outputs(p: Any) -> int:
    return p.num_outputs


BASES = {
    name: Op(name, fn, outputs=_outputs, mutates=mutates)
    for name, fn, mutates in (
        ("_foreach", _foreach, _foreach_mutates),
        ("_while_loop", _while_loop, _while_mutates),
        ("_cond", _cond, _cond_mutates),
    )
}
"""The operators, without their graphs, by name."""

N_GRAPHS = {"_foreach": 1, "_while_loop": 2, "_cond": 3}


def input_positions(name: str, p: Any, which: int) -> tuple[int, ...]:
    """The input position that feeds each variable of graph number `which` of the operator."""
    if name == "_foreach":
        return foreach_wiring(p)
    if name == "_while_loop":
        return (p.cond_input_locs, p.func_input_locs)[which]
    return (p.cond_input_locs, p.then_input_locs, p.else_input_locs)[which]


def scanned_inputs(name: str, p: Any) -> range:
    """The input positions of which a graph sees slices along the first axis."""
    return range(len(p.in_data_locs) if name == "_foreach" else 0)


def shape_ties(name: str, p: Any) -> dict[int, int]:
    """Heads of the body that have the shape and dtype of an input: head number to input position."""
    if name == "_foreach":
        return {p.num_out_data + i: len(p.in_data_locs) + i for i in range(len(p.in_state_locs))}
    if name == "_while_loop":
        return {p.num_out_data + i: p.func_input_locs[at] for i, at in enumerate(p.func_var_locs)}
    return {}


__all__ = ["BASES", "LoweredGraph", "N_GRAPHS", "scanned_inputs", "shape_ties", "input_positions"]
