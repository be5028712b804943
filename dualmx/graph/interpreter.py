"""The interpreter: the only code that runs a program and its backward passes.

How an operator is executed is the executor's: traced into one XLA program, at once, by itself, or recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import repeat
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from . import spec
from .program import Alias, Checkpoint, Gradient, Instr, Program, Step
from .vjp import VjpFn, call_vjp, is_integer, zero_cotangent


class Lifetimes(NamedTuple):
    """When the values of a program are needed no more.

    Attributes:
        values: for each step, the slots that are no outputs and that no later step reads.
        vjps: for each step, the numbers of the differentiated steps that no later backward pass goes through.
        cotangents: for each backward pass, by its number, the slots whose cotangents each step of its path is the last
            to read; under `PULL` those of the function that `run_vjp` returns.
    """

    values: tuple[tuple[int, ...], ...]
    vjps: tuple[frozenset[int], ...]
    cotangents: dict[int, list[tuple[int, ...]]]

    def of_pass(self, number: int) -> tuple[list[tuple[int, ...]] | None, frozenset[int]]:
        """Return the slots whose cotangents end with the steps of a backward pass, and the VJPs that do."""
        return self.cotangents[number], self.vjps[number]


PULL = -1


def lifetimes_of(program: Program, wrt: Iterable[int] = ()) -> Lifetimes:
    """Return when the values of a program, which is differentiated in inputs `wrt`, are needed no more."""
    needed, pulled = set(program.outputs), set[int]()
    values: list[tuple[int, ...]] = []
    vjps: list[frozenset[int]] = []
    cotangents = {PULL: _last_reads(program.steps, _pull_path(program.steps), wrt)}
    for number, step in reversed([*enumerate(program.steps)]):
        path = frozenset[int]()
        if isinstance(step, Alias):
            touched = [step.source, step.out]
        elif isinstance(step, Gradient):
            path = frozenset(step.path) - pulled
            targets = [slot for group in step.targets for slot in group]
            cotangents[number] = _last_reads(program.steps, step.path, targets)
            heads = [head for head, seed in zip(step.heads, step.head_grads, strict=True) if seed is None]
            optional = [slot for slot in (*step.head_grads, *step.accumulate_into) if slot is not None]
            touched = [*heads, *optional, *[group[0] for group in step.targets], *step.outs]
        else:
            touched = [*step.ins, *step.outs]
        values.append(tuple([slot for slot in dict.fromkeys(touched) if slot not in needed]))
        vjps.append(path)
        needed.update(touched)
        pulled |= path
    return Lifetimes(tuple(values[::-1]), tuple(vjps[::-1]), cotangents)


def _pull_path(steps: Sequence[Step]) -> list[int]:
    """The steps that are differentiated, last first."""
    return [n for n in range(len(steps) - 1, -1, -1) if isinstance(s := steps[n], Instr) and s.wrt]


def _last_reads(steps: Sequence[Any], path: Sequence[int], targets: Iterable[int]) -> list[tuple[int, ...]]:
    """For each step of a path, the slots of its results whose cotangents are needed no more after it."""
    left = Counter(slot for number in path for slot in steps[number].outs)
    left.update(targets)  # which are needed to the end
    reads: list[tuple[int, ...]] = []
    for number in path:
        left.subtract(steps[number].outs)
        reads.append(tuple([slot for slot in steps[number].outs if not left[slot]]))
    return reads


class Executor(Protocol):
    """How operators are executed."""

    def apply(self, step: Instr, ins: list[Any]) -> Sequence[Any]:
        """Return the results of a step on the values `ins`."""
        ...


class VjpExecutor(Executor, Protocol):
    """How operators are executed and differentiated."""

    def vjp(self, step: Instr, ins: list[Any], avals: Any) -> tuple[Sequence[Any], VjpFn]:
        """Return the results and the function from their cotangents to those of the inputs `step.wrt`.

        Args:
            step: what to run.
            ins: its inputs.
            avals: abstract values by slot, None where they are not known.
        """
        ...


class JaxExecutor:
    """Operators as functions of JAX: on tracers they become part of one XLA program, on arrays they run at once.

    Args:
        key: the random key of a number.
        runtime: the runtime scalars; None if the calls hold their own.
        shardings: how slots, and their gradients, are cut over a mesh.
    """

    def __init__(
        self,
        key: Callable[[int], Any],
        runtime: Sequence[Any] | None = None,
        shardings: Mapping[int, Any] | None = None,
    ):
        self.key, self.runtime, self.shardings = key, runtime, shardings or {}

    def _scalars(self, step: Instr) -> tuple[list[Any], list[Any]]:
        """Return the random keys and the runtime scalars of a step."""
        call, first = step.call, step.first_runtime
        keys = [self.key(step.first_key + i) for i in range(call.n_keys)]
        return keys, [] if self.runtime is None else [self.runtime[first + i] for i in range(call.n_runtime)]

    def apply(self, step: Instr, ins: list[Any]) -> Sequence[Any]:
        """Run the body of an operator."""
        step.call.check_dtypes([(x.shape, np.dtype(x.dtype)) for x in ins])
        return step.call.apply_keys(ins, *self._scalars(step))

    def vjp(self, step: Instr, ins: list[Any], avals: Any) -> tuple[Sequence[Any], VjpFn]:
        """Return the results and the function from their cotangents to those of the inputs `step.wrt`."""
        has_integer_results = avals is not None and any(is_integer(avals[slot]) for slot in step.outs)
        return call_vjp(step.call, ins, step.wrt, *self._scalars(step), has_integer_results)

    def add(self, a: Any, b: Any) -> Any:
        """Return the sum of two cotangents."""
        return a + b

    def ones_like(self, x: Any) -> Any:
        """Return ones, the cotangent of a head without one."""
        return jnp.ones_like(x)

    def zeros_like(self, x: Any) -> Any:
        """Return zeros, the gradient of what no head depends on."""
        return jnp.zeros_like(x)

    def zero_cotangent(self, x: Any) -> Any:
        """Return the cotangent of a result that no head depends on."""
        return zero_cotangent(x)

    def checkpoint(self, body: Callable[..., Any], ins: list[Any]) -> Sequence[Any]:
        """Run a function, whose backward pass makes again what it computes."""
        return jax.checkpoint(body)(*ins)

    def place_gradient(self, slot: int, gradient: Any) -> Any:
        """Cut a gradient over the mesh like the value it belongs to."""
        sharding = self.shardings.get(slot)
        return jax.lax.with_sharding_constraint(gradient, sharding) if sharding else gradient


def run(program: Program, inputs: Sequence[Any], executor: Executor, lifetimes: Lifetimes | None = None) -> list[Any]:
    """Run a program on values and return those of its outputs.

    With its lifetimes its values are dropped as soon as they can be; tracers hold no memory. Only a `JaxExecutor` runs
    checkpoints.
    """
    if spec.is_on:
        spec.verify(program)
    env = dict(enumerate(inputs))
    _run_steps(program.steps, env, executor, program.avals, lifetimes)
    return [env[slot] for slot in program.outputs]


def run_vjp(
    program: Program,
    inputs: Sequence[Any],
    wrt: Sequence[int],
    executor: Executor,
    lifetimes: Lifetimes | None = None,
) -> tuple[list[Any], VjpFn]:
    """Run a program that `differentiate` made for inputs `wrt`; returns the outputs and the function to gradients.

    That takes one cotangent for each output, None for zero.
    """
    if spec.is_on:
        spec.verify(program)
    env = dict(enumerate(inputs))
    vjp_fns = _run_steps(program.steps, env, executor, program.avals, lifetimes)
    path = tuple(_pull_path(program.steps))
    drops = None if lifetimes is None else lifetimes.cotangents[PULL]
    chosen = {slot: inputs[slot] for slot in wrt}

    def vjp_fn(cotangents: Sequence[Any]) -> list[Any]:
        given = {-1 - i: ct for i, ct in enumerate(cotangents) if ct is not None}
        heads = tuple(program.outputs[-1 - slot] for slot in given)
        step = Gradient(heads, tuple(given), tuple((slot,) for slot in wrt), (None,) * len(wrt), path, ())
        return _run_backward(step, program.steps, chosen | given, vjp_fns, executor, drops)

    return [env[slot] for slot in program.outputs], vjp_fn


def _run_steps(
    steps: Sequence[Step],
    env: dict[int, Any],
    executor: Any,
    avals: Any = None,
    lifetimes: Lifetimes | None = None,
) -> dict[int, tuple[VjpFn, Sequence[Any]]]:
    """Run steps on the values in `env` (slot -> value), to which theirs are added.

    Returns, by the numbers of the steps that are differentiated, their VJPs and results.
    """
    vjp_fns: dict[int, tuple[VjpFn, Sequence[Any]]] = {}
    for number, step in enumerate(steps):
        if isinstance(step, Instr):
            ins = [env[slot] for slot in step.ins]
            if step.wrt:
                outs, vjp_fn = executor.vjp(step, ins, avals)
                # Where values are dropped, zeros are made without their like.
                vjp_fns[number] = vjp_fn, outs if lifetimes is None else (None,) * len(outs)
            else:
                outs = executor.apply(step, ins)
            for slot, out in zip(step.outs, outs, strict=False):
                env.setdefault(slot, out)
        elif isinstance(step, Alias):
            env[step.out] = env[step.source]
        elif isinstance(step, Gradient):
            drops, last = (None, frozenset[int]()) if lifetimes is None else lifetimes.of_pass(number)
            gradients = _run_backward(step, steps, env, vjp_fns, executor, drops, last)
            env.update(zip(step.outs, gradients, strict=True))
        else:
            outs = executor.checkpoint(_checkpoint_body(step, executor), [env[slot] for slot in step.ins])
            env.update(zip(step.outs, outs, strict=True))
        if lifetimes is not None:
            for slot in lifetimes.values[number]:
                env.pop(slot, None)
    return vjp_fns


def _checkpoint_body(step: Checkpoint, executor: Any) -> Callable[..., tuple[Any, ...]]:
    def body(*values: Any) -> tuple[Any, ...]:
        env = dict(zip(step.ins, values, strict=True))
        _run_steps(step.steps, env, executor)
        return tuple(env[slot] for slot in step.outs)

    return body


def _run_backward(
    step: Gradient,
    steps: Sequence[Any],
    env: Mapping[int, Any],
    vjp_fns: dict[int, tuple[VjpFn, Sequence[Any]]],
    executor: Any,
    drops: Iterable[Sequence[int]] | None = None,
    last: frozenset[int] = frozenset(),
) -> list[Any]:
    """Carry cotangents from the heads through the path, last step first, and return one gradient per target group.

    Args:
        drops: for each step of the path, slots whose cotangents end with it.
        last: steps whose VJPs are taken out of `vjp_fns`, since no later pass needs them.
    """
    cotangents: dict[int, Any] = {}

    for head, seed in zip(step.heads, step.head_grads, strict=True):
        ct = executor.ones_like(env[head]) if seed is None else env[seed]
        cotangents[head] = executor.add(cotangents[head], ct) if head in cotangents else ct
    for number, ended in zip(step.path, repeat(()) if drops is None else drops, strict=drops is not None):
        instr: Instr = steps[number]
        for slot in instr.outs:
            if slot in cotangents:
                _pull(instr, *vjp_fns[number], cotangents, executor)
                break
        if number in last:
            vjp_fns.pop(number, None)
        for slot in ended:
            cotangents.pop(slot, None)
    gradients = []
    for group, old in zip(step.targets, step.accumulate_into, strict=True):
        parts = [cotangents[slot] for slot in group if slot in cotangents]
        total = reduce(executor.add, parts) if parts else executor.zeros_like(env[group[0]])
        if old is not None:
            total = executor.add(env[old], total)
        gradients.append(executor.place_gradient(group[0], total))
    return gradients


def _pull(instr: Instr, vjp_fn: VjpFn, outs: Sequence[Any], cotangents: dict[int, Any], executor: Any) -> None:
    """Carry the cotangents of the results of a step to its inputs."""
    cts = [
        cotangents[slot] if slot in cotangents else executor.zero_cotangent(out)
        for slot, out in zip(instr.outs, outs, strict=True)
    ]
    ins = instr.ins
    for k, ct in zip(instr.wrt, vjp_fn(tuple(cts)), strict=True):
        if ct is not None:
            slot = ins[k]
            cotangents[slot] = executor.add(cotangents[slot], ct) if slot in cotangents else ct
