"""Connectionist temporal classification."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
from jax import lax

from ...core.errors import ArgumentError
from ..registry import op
from ..schema import ABSENT, Tensor, UntypedTensor, When
from ..spatial import check_float, check_shape, known, widen

_NEVER = -1e30  # log-probability of what cannot happen; finite, so that gradients stay finite


def _lengths(p: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    data = shapes.get("data")
    if not data or len(data) != 3 or not known(data[1]):
        return {}
    names = ["data_lengths"] * p.use_data_lengths + ["label_lengths"] * p.use_label_lengths
    return dict.fromkeys(names, (data[1],))


@op(output_names=("output0",), aliases=("ctc_loss", "_contrib_CTCLoss", "_contrib_ctc_loss"), complete=_lengths)
def CTCLoss(
    data: Tensor,
    label: UntypedTensor,
    data_lengths: Annotated[UntypedTensor, When("use_data_lengths", True)] = ABSENT,
    label_lengths: Annotated[UntypedTensor, When("use_label_lengths", True)] = ABSENT,
    *,
    use_data_lengths: bool = False,
    use_label_lengths: bool = False,
    blank_label: Literal["first", "last"] = "first",
) -> jax.Array:
    """`−log P(label | softmax(data))`, summed over all alignments with blanks (Graves et al. 2006).

    Shapes: data (T, N, K) of unnormalized scores, label (N, L), result (N,). With blank_label "first" the blank is
    class 0 and labels are 1..K−1, padded with 0; with "last" the blank is class K−1, labels are 0..K−2, padded with −1.
    Lengths, (N,) each, override the sequence length T and the padding. The result and its gradient are 0 where no
    alignment fits, and where the sequence has no steps, so that such samples do not count.
    """
    check_float("CTCLoss", data)
    if data.ndim != 3 or label.ndim != 2 or label.shape[0] != data.shape[1]:
        raise ArgumentError(
            f"CTCLoss: data {data.shape}, label {label.shape}: expected (time, batch, classes) and (batch, labels)"
        )
    steps, batch, classes = data.shape
    for name, v in (("data_lengths", data_lengths), ("label_lengths", label_lengths)):
        if v is not None:
            check_shape("CTCLoss", name, v.shape, (batch,), f"batch of {batch}")
    if label.shape[1] > steps:
        raise ArgumentError(f"CTCLoss: label has shape {label.shape}: more labels than the {steps} time steps")
    logp = jax.nn.log_softmax(widen(data), 2)
    blank, padding = (0, 0) if blank_label == "first" else (classes - 1, -1)
    labels = lax.stop_gradient(label).astype(jnp.int32)
    if label_lengths is None:
        count = jnp.sum(jnp.cumprod((labels != padding).astype(jnp.int32), 1), 1)
    else:
        count = lax.stop_gradient(label_lengths).astype(jnp.int32)
    length = jnp.full((batch,), steps, jnp.int32)
    if data_lengths is not None:
        length = lax.stop_gradient(data_lengths).astype(jnp.int32)
    # States alternate: blank, label 1, blank, label 2, …, blank.
    states = 2 * labels.shape[1] + 1
    path = jnp.full((batch, states), blank, jnp.int32).at[:, 1::2].set(jnp.clip(labels, 0, classes - 1))
    before = jnp.pad(path, ((0, 0), (2, 0)), constant_values=blank)[:, :states]
    skips = (path != blank) & (path != before)
    emitted = jnp.take_along_axis(logp, jnp.broadcast_to(path, (steps, batch, states)), 2)
    index = jnp.arange(states, dtype=jnp.int32)
    first = jnp.where(index < 2, emitted[0], _NEVER)

    def advance(alpha: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        emit, t = now
        one = jnp.pad(alpha, ((0, 0), (1, 0)), constant_values=_NEVER)[:, :states]
        two = jnp.pad(alpha, ((0, 0), (2, 0)), constant_values=_NEVER)[:, :states]
        total = jnp.logaddexp(jnp.logaddexp(alpha, one), jnp.where(skips, two, _NEVER))
        new = jnp.maximum(total + emit, _NEVER)
        return jnp.where((t < length)[:, None], new, alpha), None

    alpha, _ = lax.scan(advance, first, (emitted[1:], jnp.arange(1, steps, dtype=jnp.int32)))
    at_blank = jnp.take_along_axis(alpha, (2 * count)[:, None], 1)[:, 0]
    at_label = jnp.take_along_axis(alpha, jnp.maximum(2 * count - 1, 0)[:, None], 1)[:, 0]
    total = jnp.logaddexp(at_blank, jnp.where(count > 0, at_label, _NEVER))
    return jnp.where((total < _NEVER / 2) | (length < 1), 0.0, -total).astype(data.dtype)
