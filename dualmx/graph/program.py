"""Linear programs of symbols and hybridized blocks, and the call that runs one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ..op.lowering_context import REMAT_NAME
from ..op.registry import Call, Op
from ..op.schema import UNTYPED, Input


class Instr(NamedTuple):
    """One application of a call: slots read, slots written (outputs, then next auxiliary values).

    If `rematerialize`, the backward pass makes the outputs again instead of keeping them.
    """

    call: Call
    ins: tuple[int, ...]
    outs: tuple[int, ...]
    rematerialize: bool = False


def run(instrs: Sequence[Instr], env: dict[int, Any], key: Any, keys_used: int = 0) -> int:
    """Execute `instrs` on JAX values in `env` (slot -> value); the n-th random one draws from fold_in(key, n).

    Returns how many random ones there were, added to `drawn`.
    """
    for call, ins, outs, _ in instrs:
        sub = None
        if call.has_key:
            sub = jax.random.fold_in(key, keys_used)
            keys_used += 1
        values = [env[i] for i in ins]
        call._check_dtypes([(v.shape, np.dtype(v.dtype)) for v in values])
        for slot, value in zip(outs, call.apply(values, sub), strict=False):
            env[slot] = value
    return keys_used


def run_with_remat(instrs: Sequence[Instr], env: dict[int, Any], key: Any, wanted: Sequence[int]) -> None:
    """Execute `instrs` as `run` does, of which the slots `wanted` are read, with a backward pass that makes again the
    outputs of mirrored ones; see "Training Deep Nets with Sublinear Memory Cost" (Chen et al., 2016)."""
    drawn, groups = 0, _remat_segments(instrs)
    for at, group in enumerate(groups):
        if not any(i.rematerialize for i in group):
            drawn = run(group, env, key, drawn)
            continue
        later = {s for g in groups[at + 1 :] for i in g for s in i.ins}.union(wanted)
        made = {s for i in group for s in i.outs}
        reads = [*dict.fromkeys(s for i in group for s in i.ins if s not in made)]
        writes = sorted(made & later)
        part = jax.checkpoint(_segment_fn(group, reads, writes, key, drawn))
        env.update(zip(writes, part(*[env[s] for s in reads]), strict=True))
        drawn += sum(i.call.has_key for i in group)


def _segment_fn(
    group: Sequence[Instr], reads: Sequence[int], writes: Sequence[int], key: Any, drawn: int
) -> Callable[..., tuple[Any, ...]]:
    """Return a group as a function from the values of the slots it reads to those it writes."""

    def part(*values: Any) -> tuple[Any, ...]:
        env = dict(zip(reads, values, strict=True))
        run(group, env, key, drawn)
        return tuple(env[s] for s in writes)

    return part


def _remat_segments(instrs: Sequence[Instr]) -> list[list[Instr]]:
    """Cut a program before all that reads what is kept: gradients of that need nothing of what was made before."""
    groups: list[list[Instr]] = [[]]
    kept: set[int] = set()
    for instr in instrs:
        if kept.intersection(instr.ins):
            groups.append([])
            kept.clear()
        groups[-1].append(instr)
        if not instr.rematerialize:
            kept.update(instr.outs)
    return groups


def run_and_collect(instrs: Sequence[Instr], env: dict[int, Any], key: Any, wanted: Sequence[int]) -> tuple[Any, ...]:
    """Execute `instrs` on the values in `env`, and return those of the slots `wanted`."""
    if any(i.rematerialize for i in instrs):
        run_with_remat(instrs, env, key, wanted)
    else:
        run(instrs, env, key)
    return tuple(env[s] for s in wanted)


def _with_remat_policy(body: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
    """Return `body` with a backward pass that makes the values named UNSAVED again."""
    policy = jax.checkpoint_policies.save_anything_except_these_names(REMAT_NAME)

    def recompute(*data: Any, key: Any = None) -> tuple[Any, ...]:
        # A new function each time: what JAX remembers of one would carry the mesh it was traced for to another.
        return jax.checkpoint(lambda *given: body(*given, key=key), policy=policy)(*data)

    return recompute


class ProgramCall(Call):
    """A whole linear program as one call, so that a hybridized block or an executor is a single recorded op."""

    __slots__ = ("aux", "steps")
    # Instructions and result slots, for those who record a program step by step; None if it has more to it.
    steps: tuple[tuple[Instr, ...], tuple[int, ...]] | None

    def __init__(
        self,
        op: Op,
        train: bool,
        n_outputs: int,
        aux: Sequence[tuple[int, int]],
        n_inputs: int,
        joint: bool = False,
    ):
        super().__init__(op, {}, train)
        self.n_outputs = self.n_visible = n_outputs
        self.n_aux = len(aux)
        self.n_results = n_outputs + self.n_aux
        self.aux_offsets = tuple(i - n_inputs for i, _ in aux)
        self.is_simple = self.n_results == 1 and not self.n_keys
        self.joint = joint
        self.steps = None

    def __repr__(self) -> str:
        return self.op.name

    def in_mode(self, train: bool) -> Call:
        """A program was lowered for one mode and stays in it."""
        return self


def program_call(
    name: str,
    instrs: Sequence[Instr],
    n_inputs: int,
    outputs: Sequence[int],
    aux: Sequence[tuple[int, int]] = (),
    train: bool = False,
) -> Call:
    """Wrap a linear program as one `Call`.

    Args:
        name: shown in profiles and error messages.
        instrs: the program; slots 0..n_inputs-1 are its inputs.
        outputs: slots returned.
        aux: pairs (input index, slot of its next value), written back to the input after the call.
        train: the mode the program was lowered for.
    """
    program = tuple(instrs)
    result_slots = (*outputs, *(slot for _, slot in aux))
    random = any(i.call.has_key for i in program)

    def body(*data: Any, key: Any = None) -> tuple[Any, ...]:
        return run_and_collect(program, dict(enumerate(data)), key, result_slots)

    unsaved = train and any(i.call.params.get("saved") is False for i in program)
    inputs = (Input("data", UNTYPED, variadic=True),)
    op = Op(
        name,
        _with_remat_policy(body) if unsaved else body,
        inputs,
        {},
        outputs=len(outputs),
        key_name="key" if random else "",
    )
    call = ProgramCall(op, train, len(outputs), aux, n_inputs, any(i.call.joint for i in program))
    call.steps = (program, tuple(outputs))
    return call
