"""Pipelines: schedules of stages and micro-batches, and a pipeline of equal stages as one program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec

from ..core.argcheck import integer
from ..core.errors import ArgumentError, suggest
from ..op.lowering_context import device_grid, mesh
from ..op.registry import Call, Op
from ..op.schema import UNTYPED, Input


class PipelineAction(NamedTuple):
    """What a stage does at one time.

    Attributes:
        stage, micro: numbers of the stage and of the micro-batch.
        backward: false for the forward pass.
        begin, end: times.
    """

    stage: int
    micro: int
    backward: bool
    begin: float
    end: float


class Schedule:
    """The order in which each stage of a pipeline makes the forward and backward passes of micro-batches.

    `"gpipe"`: all forward passes, then all backward passes. `"1f1b"`: as soon as a stage can, it makes a backward pass
    after each forward pass; it takes the same time, but stage s of S holds at most S - s micro-batches.

    Args:
        stages: number of stages.
        micro_batches: number of micro-batches.
        kind: `"gpipe"` or `"1f1b"`.

    Attributes:
        orders: for each stage its passes in order, as pairs (number of the micro-batch, is it a backward pass).

    Raises:
        ArgumentError: a number below 1, or an unknown kind.

    Reference: Huang et al. 2019, GPipe; Narayanan et al. 2021, Megatron-LM (1F1B).

    Example:
        >>> s = Schedule(2, 3, "1f1b")
        >>> print(s)
        0 |F0 F1 .  B0 F2 B1 .  B2
        1 |.  F0 B0 F1 B1 F2 B2 .
        >>> round(s.bubble(), 3), s.in_flight()
        (0.25, [2, 1])
    """

    def __init__(self, stages: int, micro_batches: int, kind: str = "1f1b"):
        self.stages = integer("Schedule", "stages", stages, 1)
        self.micro_batches = integer("Schedule", "micro_batches", micro_batches, 1)
        if kind not in ("gpipe", "1f1b"):
            raise ArgumentError(f"Schedule: kind={kind!r}: {suggest(kind, ('gpipe', '1f1b'))}")
        self.kind = kind
        self.orders = [self._order(s) for s in range(stages)]

    def _order(self, stage: int) -> list[tuple[int, bool]]:
        count = self.micro_batches
        ahead = count if self.kind == "gpipe" else min(self.stages - stage, count)
        found = [(m, False) for m in range(ahead)]
        for m in range(count):
            found.append((m, True))
            if ahead + m < count:
                found.append((ahead + m, False))
        return found

    def timeline(
        self, forward: float | Sequence[float] = 1.0, backward: float | Sequence[float] = 1.0
    ) -> list[PipelineAction]:
        """Return the start time of each pass, if each starts as early as possible.

        Args:
            forward, backward: duration of a pass, or one for each stage.
        """
        times = [self._durations(forward), self._durations(backward)]
        ended: dict[tuple[int, int, bool], float] = {}
        free, at, found = [0.0] * self.stages, [0] * self.stages, []
        while len(found) < 2 * self.stages * self.micro_batches:
            for s in range(self.stages):
                while at[s] < len(self.orders[s]):
                    micro, back = self.orders[s][at[s]]
                    needs = [(s, micro, False)] * back
                    other = s + 1 if back else s - 1
                    if 0 <= other < self.stages:
                        needs.append((other, micro, back))
                    if not all(n in ended for n in needs):
                        break
                    begin = max([free[s], *(ended[n] for n in needs)])
                    free[s] = ended[s, micro, back] = begin + times[back][s]
                    found.append(PipelineAction(s, micro, back, begin, free[s]))
                    at[s] += 1
        return sorted(found, key=lambda w: (w.begin, w.stage))

    def _durations(self, given: float | Sequence[float]) -> list[float]:
        found = [float(given)] * self.stages if isinstance(given, (int, float)) else [float(t) for t in given]
        if len(found) != self.stages:
            raise ArgumentError(f"Schedule.timeline: {len(found)} durations for {self.stages} stages")
        return found

    def bubble(self, forward: float | Sequence[float] = 1.0, backward: float | Sequence[float] = 1.0) -> float:
        """The fraction of time that stages are idle on average: (S - 1) / (M + S - 1) if all take equally long."""
        found = self.timeline(forward, backward)
        busy, total = sum(w.end - w.begin for w in found), max(w.end for w in found)
        return 1 - busy / (self.stages * total)

    def in_flight(self) -> list[int]:
        """For each stage, the most micro-batches between their forward and backward pass."""
        found = []
        for order in self.orders:
            pending = most = 0
            for _, back in order:
                pending += -1 if back else 1
                most = max(most, pending)
            found.append(most)
        return found

    def __str__(self) -> str:
        """A row per stage, a column per unit of time; dots are waiting."""
        found = self.timeline()
        width = len(str(self.micro_batches - 1)) + 2
        rows = [["."] * int(max(w.end for w in found)) for _ in range(self.stages)]
        for w in found:
            rows[w.stage][int(w.begin)] = f"{'B' if w.backward else 'F'}{w.micro}"
        return "\n".join(f"{s} |{''.join(c.ljust(width) for c in row)}".rstrip() for s, row in enumerate(rows))


def pipeline_call(name: str, stage: Call, slots: list[int], schedule: Schedule, axis: str) -> Call:
    """Return the pipeline as one call of the batch and the stacked parameters.

    Args:
        stage: what one stage computes; `slots` tells which parameter each of its inputs is, -1 for the batch.
    """

    def apply(x: Any, params: Any, key: Any) -> Any:
        (out,) = stage.apply([x if k < 0 else params[k] for k in slots], key)
        if out.shape != x.shape or out.dtype != x.dtype:
            raise ArgumentError(
                f"{name}: a stage maps {x.dtype}{list(x.shape)} to {out.dtype}{list(out.shape)}: expected the same"
            )
        return out

    def body(x: Any, *params: Any, key: Any = None) -> Any:
        there = mesh()
        if there is None:
            return _sequential_stages(apply, x, params, key, schedule.stages)
        there.sharding((axis,), None, name)
        if there.axes[axis] != schedule.stages:
            raise ArgumentError(
                f"{name}: {schedule.stages} stages over {axis!r} of {there!r}: expected as many devices"
            )
        count = schedule.micro_batches
        # Rows that are apart from each other: each micro-batch is cut over the mesh as the batch is.
        micro = jnp.swapaxes(x.reshape(x.shape[0] // count, count, *x.shape[1:]), 0, 1)
        flow = jax.shard_map(
            lambda micro, key, *own: _pipelined_scan(apply, micro, own, key, schedule, axis),
            mesh=device_grid(),
            in_specs=(PartitionSpec(), PartitionSpec(), *[PartitionSpec(axis)] * len(params)),
            out_specs=PartitionSpec(),
            axis_names={axis},
            check_vma=False,
        )
        out = flow(micro, key, *params)
        return jnp.swapaxes(out, 0, 1).reshape(x.shape)

    key_name = "key" if stage.has_key else ""
    return Call(Op(name, body, (Input("data", UNTYPED, variadic=True),), {}, key_name=key_name), {}, stage.train)


def _sequential_stages(apply: Any, x: Any, params: Any, key: Any, stages: int) -> Any:
    """All stages on one device."""

    def step(x: Any, given: Any) -> Any:
        number, *own = given
        return apply(x, own, None if key is None else jax.random.fold_in(key, number)), None

    return lax.scan(step, x, (jnp.arange(stages, dtype=jnp.uint32), *params))[0]


def _pipelined_scan(apply: Any, micro_batches: Any, params: Any, key: Any, schedule: Schedule, axis: str) -> Any:
    """What each device does: at step t, stage s works on micro-batch t - s."""
    stages, count = schedule.stages, schedule.micro_batches
    here = lax.axis_index(axis)
    own = [p[0] for p in params]

    def step(held: Any, t: Any) -> Any:
        x = jnp.where(here == 0, micro_batches[jnp.minimum(t, count - 1)], held)
        sub = None if key is None else jax.random.fold_in(jax.random.fold_in(key, here), t)
        out = jax.checkpoint(lambda x, own, sub: apply(x, own, sub))(x, own, sub)
        return lax.ppermute(out, axis, [(i, i + 1) for i in range(stages - 1)]), out

    # Stages that have nothing to do yet compute with real rows, whose results are not used.
    _, outs = lax.scan(step, micro_batches[0], jnp.arange(count + stages - 1, dtype=jnp.int32))
    last = outs[stages - 1 :]
    return lax.psum(jnp.where(here == stages - 1, last, jnp.zeros_like(last)), axis)
