"""Lower a recorded prefix to one pure function on JAX arrays; export it as StableHLO."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export as jax_export

from ..graph.trie import BACKWARD, LEAF, OP, REENTER, VARIABLE, State, Value
from .devices import x64
from .integer_vjp import integer_vjp, is_integer


@dataclass
class BackwardPlan:
    """What one backward step computes.

    Attributes:
        heads: values differentiated, `head_grads` their head gradients (None for ones).
        targets: groups of values; each group's gradients are summed into one result.
        accumulate_into: per group, the value to add the gradient to, or None.
        path: recorded steps between targets and heads, last first.
        needed_values: values that depend on a target.
        retain_graph: whether the steps stay on the tape.
    """

    heads: tuple[Value, ...]
    head_grads: tuple[Value | None, ...]
    targets: tuple[tuple[Value, ...], ...]
    accumulate_into: tuple[Value | None, ...]
    retain_graph: bool
    path: list[State] = field(default_factory=list)
    needed_values: set[Value] = field(default_factory=set)


def backward_path(
    entries: Sequence[State], heads: Iterable[Value], targets: Iterable[Value]
) -> tuple[list[State], set[Value], set[Value]]:
    """Return the steps between `targets` and `heads` (last first), the values that depend on targets, those reached."""
    targets = set(targets)
    need = set(targets)
    for e in entries:
        if any(v in need for v in e.ins):
            need.update(v for v in e.outs if v.tracked)
    wanted = {h for h in heads if h in need}
    path = []
    for e in reversed(entries):
        if any(v in wanted for v in e.outs) and any(v in need for v in e.ins):
            path.append(e)
            wanted.update(v for v in e.ins if v in need)
    return path, need, wanted & targets


def tape_steps(steps: Sequence[State]) -> list[State]:
    """Return the recorded steps of a chain that no backward has freed, in order of computation."""
    freed: set[State] = set()
    for s in steps:
        if s.kind == BACKWARD and not s.payload.retain_graph:
            freed.update(s.payload.path)
    again = [s for s in steps if s.kind == REENTER and s not in freed]
    return again + [
        s for s in steps if s.kind == OP and s.recording and s not in freed and any(v.tracked for v in s.outs)
    ]


def vjp_step(
    step: State, ins: list[Any], at: Sequence[int], keys: Sequence[Any], runtime: Sequence[Any]
) -> tuple[tuple[Any, ...], Callable[[Any], Any]]:
    """Apply one step and return its results and the function from their cotangents to those of inputs `at`."""
    call = step.call
    assert call is not None
    if any(is_integer(ins[k]) for k in at) or any(v.tracked and is_integer(v) for v in step.outs):
        return integer_vjp(call, ins, at, keys, runtime)

    def partial(*chosen: Any) -> tuple[Any, ...]:
        full = list(ins)
        for k, v in zip(at, chosen, strict=True):
            full[k] = v
        return call.apply_keys(full, keys, runtime)

    return jax.vjp(partial, *[ins[k] for k in at])


def zero_cotangent(x: Any) -> Any:
    """Return the zero cotangent of `x`; integers have float0 ones."""
    if jnp.issubdtype(x.dtype, jnp.inexact):
        return jnp.zeros(x.shape, x.dtype)
    return np.zeros(x.shape, jax.dtypes.float0)


def backpropagate(
    path: Sequence[State],
    vjp_fns: dict[State, tuple[Callable[[Any], Any], Sequence[int], tuple[Any, ...]]],
    cotangents: dict[Value, Any],
) -> None:
    """Carry `cotangents` (updated in place) from the heads through `path`, last step first."""
    for step in path:
        if not any(v in cotangents for v in step.outs):
            continue
        pull, at, results = vjp_fns[step]
        cts = tuple(
            cotangents[v] if v in cotangents else zero_cotangent(r) for v, r in zip(step.outs, results, strict=True)
        )
        for k, ct in zip(at, pull(cts), strict=True):
            if ct is not None:
                v = step.ins[k]
                cotangents[v] = cotangents[v] + ct if v in cotangents else ct


def head_cotangents(plan: BackwardPlan, env: dict[Value, Any]) -> dict[Value, Any]:
    """Return the cotangents at the heads of `plan`."""
    found: dict[Value, Any] = {}
    for head, seed in zip(plan.heads, plan.head_grads, strict=True):
        ct = jnp.ones_like(env[head]) if seed is None else env[seed]
        found[head] = found[head] + ct if head in found else ct
    return found


def collect_grads(plan: BackwardPlan, cotangents: dict[Value, Any], env: dict[Value, Any]) -> list[Any]:
    """Return one gradient per target group, added to what the plan says."""
    results = []
    for group, old in zip(plan.targets, plan.accumulate_into, strict=True):
        parts = [cotangents[v] for v in group if v in cotangents]
        total = sum(parts[1:], parts[0]) if parts else jnp.zeros_like(env[group[0]])
        results.append(total if old is None else env[old] + total)
    return results


def differentiated_inputs(plan: BackwardPlan, found: dict[State, set[int]]) -> None:
    """Add to `found` the input positions that each step on the plan's path is differentiated in."""
    for step in plan.path:
        places = found.setdefault(step, set())
        places.update(k for k, v in enumerate(step.ins) if v in plan.needed_values)


def lower(
    steps: Sequence[State], results: Sequence[Value], shardings: Mapping[Value, Any] | None = None
) -> Callable[..., list[Any]]:
    """Return `f(runtime, keys, leaves) -> results` for a chain of steps.

    `runtime` is a float32 vector of runtime scalars, `keys` a (k, 2) uint32 array of random keys, `leaves` the arrays
    that enter, in order. `shardings` tells how leaves are cut over a mesh; their gradients are cut alike.
    """
    cut = dict(shardings or {})
    cut.update((s.out, cut[s.ins[0]]) for s in steps if s.kind == VARIABLE and s.ins[0] in cut)
    where: dict[State, set[int]] = {}
    for s in steps:
        if s.kind == BACKWARD:
            differentiated_inputs(s.payload, where)
    read = {v for s in steps for v in s.ins}

    def program(runtime: Any, keys: Any, leaves: Sequence[Any]) -> list[Any]:
        env: dict[Value, Any] = {}
        entering = iter(leaves)
        pulls: dict[State, Any] = {}
        for s in steps:
            if s.kind == LEAF:
                env[s.out] = next(entering)
            elif s.kind in (OP, REENTER):
                call = s.call
                assert call is not None
                ins = [env[v] for v in s.ins]
                own_keys = [jax.random.wrap_key_data(keys[k]) for k in range(s.n_keys - call.n_keys, s.n_keys)]
                rates = [runtime[k] for k in range(s.n_runtime - call.n_runtime, s.n_runtime)]
                if s in where:
                    at = sorted(where[s])
                    outs, pull = vjp_step(s, ins, at, own_keys, rates)
                    pulls[s] = (pull, at, outs)
                elif s.kind == OP or any(v in read and v not in env for v in s.outs):
                    outs = call.apply_keys(ins, own_keys, rates)
                else:
                    continue
                # Outputs of an earlier step are mostly leaves with their saved values; the others are made again.
                for v, out in zip(s.outs, outs, strict=True):
                    env.setdefault(v, out)
            elif s.kind == VARIABLE:
                env[s.out] = env[s.ins[0]]
            elif s.kind == BACKWARD:
                cotangents = head_cotangents(s.payload, env)
                backpropagate(s.payload.path, pulls, cotangents)
                found = collect_grads(s.payload, cotangents, env)
                for v, group, gradient in zip(s.outs, s.payload.targets, found, strict=True):
                    sharding = cut.get(group[0])
                    env[v] = jax.lax.with_sharding_constraint(gradient, sharding) if sharding else gradient
        return [env[v] for v in results]

    return program


def export_stablehlo(
    fn: Callable[..., Any], args: Sequence[jax.Array], platforms: Sequence[str] | None
) -> jax_export.Exported:
    """Return the program of a function for arrays like `args`; see `jax.export.export` for `platforms`."""
    with x64():
        return jax_export.export(jax.jit(fn), platforms=platforms)(*args)


__all__ = ["export_stablehlo"]
