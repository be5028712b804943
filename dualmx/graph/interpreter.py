"""The interpreter: the only code that runs a program and its backward passes.

How an operator is executed is the executor's: traced into one XLA program, at once, or recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
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
    """

    values: tuple[tuple[int, ...], ...]
    vjps: tuple[frozenset[int], ...]


def lifetimes_of(program: Program) -> Lifetimes:
    """Return when the values of a program are needed no more."""
    needed, pulled = set(program.outputs), set[int]()
    values: list[tuple[int, ...]] = []
    vjps: list[frozenset[int]] = []
    for step in reversed(program.steps):
        path = frozenset[int]()
        if isinstance(step, Alias):
            touched = [step.source, step.out]
        elif isinstance(step, Gradient):
            path = frozenset(step.path) - pulled
            heads = [head for head, seed in zip(step.heads, step.head_grads, strict=True) if seed is None]
            optional = [slot for slot in (*step.head_grads, *step.accumulate_into) if slot is not None]
            touched = [*heads, *optional, *[group[0] for group in step.targets], *step.outs]
        else:
            touched = [*step.ins, *step.outs]
        values.append(tuple([slot for slot in dict.fromkeys(touched) if slot not in needed]))
        vjps.append(path)
        needed.update(touched)
        pulled |= path
    return Lifetimes(tuple(values[::-1]), tuple(vjps[::-1]))


class Executor(Protocol):
    """How operators are executed."""

    def apply(self, step: Instr, ins: list[Any]) -> Sequence[Any]:
        """Return the results of a step on the values `ins`."""
        ...


class VjpExecutor(Executor, Protocol):
    """How operators are executed and differentiated."""

    def vjp(self, step: Instr, ins: list[Any], has_integer_results: bool) -> tuple[Sequence[Any], VjpFn]:
        """Return the results and the function from their cotangents to those of the inputs `step.wrt`."""
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

    def vjp(self, step: Instr, ins: list[Any], has_integer_results: bool) -> tuple[Sequence[Any], VjpFn]:
        """Return the results and the function from their cotangents to those of the inputs `step.wrt`."""
        return call_vjp(step.call, ins, step.wrt, *self._scalars(step), has_integer_results)

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
    path = tuple(reversed(vjp_fns))
    chosen = {slot: inputs[slot] for slot in wrt}

    def vjp_fn(cotangents: Sequence[Any]) -> list[Any]:
        given = {-1 - i: ct for i, ct in enumerate(cotangents) if ct is not None}
        heads = tuple(program.outputs[-1 - slot] for slot in given)
        step = Gradient(heads, tuple(given), tuple((slot,) for slot in wrt), (None,) * len(wrt), path, ())
        return _run_backward(step, program.steps, chosen | given, vjp_fns, executor)

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
                has_integers = avals is not None and any(is_integer(avals[slot]) for slot in step.outs)
                outs, vjp_fn = executor.vjp(step, ins, has_integers)
                # Where values are dropped, zeros are made without their like.
                vjp_fns[number] = vjp_fn, outs if lifetimes is None else (None,) * len(outs)
            else:
                outs = executor.apply(step, ins)
            for slot, out in zip(step.outs, outs, strict=False):
                env.setdefault(slot, out)
        elif isinstance(step, Alias):
            env[step.out] = env[step.source]
        elif isinstance(step, Gradient):
            last = () if lifetimes is None else lifetimes.vjps[number]
            env.update(zip(step.outs, _run_backward(step, steps, env, vjp_fns, executor, last), strict=True))
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
    last: Collection[int] = (),
) -> list[Any]:
    """Carry cotangents from the heads through the path, last step first, and return one gradient per target group.

    The VJPs of the steps `last` are taken out of `vjp_fns`, since no later pass needs them.
    """
    cotangents: dict[int, Any] = {}
    targets = {slot for group in step.targets for slot in group}
    producers = Counter(slot for number in step.path for slot in steps[number].outs)

    def add(slot: int, ct: Any) -> None:
        cotangents[slot] = cotangents[slot] + ct if slot in cotangents else ct

    for head, seed in zip(step.heads, step.head_grads, strict=True):
        add(head, executor.ones_like(env[head]) if seed is None else env[seed])
    for number in step.path:
        instr: Instr = steps[number]
        if any(slot in cotangents for slot in instr.outs):
            vjp_fn, outs = vjp_fns[number]
            cts = tuple(
                cotangents[slot] if slot in cotangents else executor.zero_cotangent(out)
                for slot, out in zip(instr.outs, outs, strict=True)
            )
            for k, ct in zip(instr.wrt, vjp_fn(cts), strict=True):
                if ct is not None:
                    add(instr.ins[k], ct)
        if number in last:
            vjp_fns.pop(number, None)
        for slot in instr.outs:
            producers[slot] -= 1
            if not producers[slot] and slot not in targets:
                cotangents.pop(slot, None)
    gradients = []
    for group, old in zip(step.targets, step.accumulate_into, strict=True):
        parts = [cotangents[slot] for slot in group if slot in cotangents]
        total = sum(parts[1:], parts[0]) if parts else executor.zeros_like(env[group[0]])
        gradients.append(executor.place_gradient(group[0], total if old is None else env[old] + total))
    return gradients
