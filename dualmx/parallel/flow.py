"""How micro-batches flow through equal stages inside of one program."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec

from ..core.errors import ArgumentError
from ..op.joint import device_grid, mesh
from ..op.registry import Call, Op
from ..op.schema import UNTYPED, Input
from .schedule import Schedule


def pipeline_call(name: str, stage: Call, slots: list[int], schedule: Schedule, axis: str) -> Call:
    """Return the whole pipeline as one call of the batch and the stacked parameters.

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
