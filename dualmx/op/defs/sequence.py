"""Operators on padded sequences: mask, last element, reverse."""

from __future__ import annotations

from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import ABSENT, Tensor, UntypedTensor, When
from ..spatial import known
from .index import constant


def _lengths(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    data = shapes.get("data")
    if not p.use_sequence_length or not data or len(data) < 2 or p.axis not in (0, 1):
        return {}
    batch = data[1 - p.axis]
    return {"sequence_length": (batch,)} if known(batch) else {}


def _check(name: str, data: jax.Array, lengths: jax.Array | None, axis: int) -> None:
    if axis not in (0, 1) or data.ndim < 2:
        raise ArgumentError(f"{name}: axis={axis} on data {data.shape}: expected axis 0 or 1 and at least 2 axes")
    if lengths is not None and lengths.shape != (data.shape[1 - axis],):
        raise ArgumentError(
            f"{name}: sequence_length has shape {lengths.shape}: expected ({data.shape[1 - axis]},), one per sequence"
        )


def _grid(data: jax.Array, lengths: jax.Array, axis: int) -> tuple[jax.Array, jax.Array]:
    """Times and lengths, both shaped to broadcast against the data."""
    tail = (1,) * (data.ndim - 2)
    times = jnp.arange(data.shape[axis], dtype=jnp.int32)
    counts = jax.lax.stop_gradient(lengths).astype(jnp.int32)
    if axis == 0:
        return times.reshape(-1, 1, *tail), counts.reshape(1, -1, *tail)
    return times.reshape(1, -1, *tail), counts.reshape(-1, 1, *tail)


@op(aliases=("_npx_sequence_mask",), complete=_lengths)
def SequenceMask(
    data: Tensor,
    sequence_length: Annotated[UntypedTensor, When("use_sequence_length", True)] = ABSENT,
    *,
    use_sequence_length: bool = False,
    value: float = 0.0,
    axis: int = 0,
) -> jax.Array:
    """Replace the elements behind each sequence's length by `value`; the identity without lengths.

    Shapes: data (T, B, …) for axis 0, (B, T, …) for axis 1, kept; sequence_length (B,).
    """
    _check("SequenceMask", data, sequence_length, axis)
    if sequence_length is None:
        return data
    times, counts = _grid(data, sequence_length, axis)
    return jnp.where(times < counts, data, constant(value, np.dtype(data.dtype)))


@op(complete=_lengths)
def SequenceLast(
    data: Tensor,
    sequence_length: Annotated[UntypedTensor, When("use_sequence_length", True)] = ABSENT,
    *,
    use_sequence_length: bool = False,
    axis: int = 0,
) -> jax.Array:
    """The last element of each sequence (at length − 1, or the very last without lengths).

    Shapes: data (T, B, …) for axis 0, (B, T, …) for axis 1; sequence_length (B,); result (B, …).
    """
    _check("SequenceLast", data, sequence_length, axis)
    if sequence_length is None:
        return data[-1] if axis == 0 else data[:, -1]
    last = jnp.clip(jax.lax.stop_gradient(sequence_length).astype(jnp.int32) - 1, 0, data.shape[axis] - 1)
    each = jnp.arange(data.shape[1 - axis], dtype=jnp.int32)
    return data[last, each] if axis == 0 else data[each, last]


@op(complete=_lengths)
def SequenceReverse(
    data: Tensor,
    sequence_length: Annotated[UntypedTensor, When("use_sequence_length", True)] = ABSENT,
    *,
    use_sequence_length: bool = False,
    axis: int = 0,
) -> jax.Array:
    """Reverse each sequence within its length; elements behind the length stay.

    Shapes: data (T, B, …), kept; sequence_length (B,). Only axis 0 is the time axis.
    """
    _check("SequenceReverse", data, sequence_length, axis)
    if axis != 0:
        raise ArgumentError(f"SequenceReverse: axis={axis}: expected 0; swap the axes of the data")
    if sequence_length is None:
        return jnp.flip(data, 0)
    times, counts = _grid(data, sequence_length, 0)
    source = jnp.where(times < counts, counts - 1 - times, times)
    return jnp.take_along_axis(data, source, 0)
