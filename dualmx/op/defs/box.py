"""Boxes: overlap, suppression, matching, encoding against anchors."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jax import lax

from ...core.errors import ArgumentError
from ..boxes import overlap, suppress, to_center, to_corner
from ..registry import op
from ..schema import Tensor, UntypedTensor
from ..spatial import check_shape

Format = Literal["corner", "center"]


@op(floating=True)
def _contrib_box_iou(lhs: Tensor, rhs: Tensor, *, format: Format = "corner") -> jax.Array:
    """Intersection over union of every pair of boxes; no gradient.

    Shapes: lhs (*L, 4), rhs (*R, 4) -> (*L, *R). "corner" boxes are (x1, y1, x2, y2), "center" ones
    (x, y, width, height).
    """
    if rhs.ndim < 2:
        raise ArgumentError(f"_contrib_box_iou: rhs has shape {rhs.shape}: expected (..., 4), at least 2 axes")
    for name, boxes in (("lhs", lhs), ("rhs", rhs)):
        if boxes.ndim < 1 or boxes.shape[-1] != 4:
            raise ArgumentError(f"_contrib_box_iou: {name} has shape {boxes.shape}: expected (..., 4)")
    lhs, rhs = (lax.stop_gradient(to_corner(b) if format == "center" else b) for b in (lhs, rhs))
    return overlap(lhs.reshape(*lhs.shape[:-1], *(1,) * (rhs.ndim - 1), 4), rhs)


def _nms_fields(width: int, **fields: int) -> None:
    for name, value in fields.items():
        last = width - 4 if name == "coord_start" else width - 1
        if not -1 <= value <= last or (value < 0 and name in ("coord_start", "score_index")):
            raise ArgumentError(f"_contrib_box_nms: {name}={value}: expected 0 to {last} in rows of {width} numbers")
        at = fields["coord_start"]
        if name != "coord_start" and at <= value < at + 4:
            raise ArgumentError(f"_contrib_box_nms: {name}={value}: it is one of the coordinates, {at} to {at + 3}")
    if fields["id_index"] == fields["score_index"]:
        raise ArgumentError(f"_contrib_box_nms: id_index={fields['id_index']}: it is also score_index")


@op(aliases=("_contrib_box_non_maximum_suppression",), floating=True, output_names=("output0",))
def _contrib_box_nms(
    data: Tensor,
    *,
    overlap_thresh: float = 0.5,
    valid_thresh: float = 0,
    topk: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = -1,
    background_id: int = -1,
    force_suppress: bool = False,
    in_format: Format = "corner",
    out_format: Format = "corner",
) -> jax.Array:
    """Non-maximum suppression: of boxes that overlap by more than `overlap_thresh`, keep those of higher score.

    Rows hold a score at `score_index`, four coordinates from `coord_start`, perhaps a class at `id_index`. Rows of
    score at most `valid_thresh`, of the class `background_id`, and beyond the `topk` best are dropped. Boxes of
    different classes do not compete unless `force_suppress`. Survivors come first, best first; other rows are -1.
    Shapes: data (*B, N, K) -> the same. Gradients go to the rows that survive,
    unconverted.
    """
    if data.ndim < 2:
        raise ArgumentError(f"_contrib_box_nms: data has shape {data.shape}: expected (..., boxes, fields)")
    n, width = data.shape[-2:]
    _nms_fields(width, coord_start=coord_start, score_index=score_index, id_index=id_index)
    taking = n if topk < 0 else min(n, topk)

    def one(rows: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Rows of the survivors, best first, and which of these places are filled."""
        score = rows[:, score_index]
        valid = score > valid_thresh
        if id_index >= 0:
            valid &= rows[:, id_index] != background_id
        order = jnp.argsort(jnp.where(valid, -score, jnp.inf), stable=True).astype(jnp.int32)
        alive = valid[order] & (jnp.arange(n, dtype=jnp.int32) < taking)
        rows = rows[order]
        box = rows[:, coord_start : coord_start + 4]
        box = to_corner(box) if in_format == "center" else box

        def hits(i: jax.Array) -> jax.Array:
            found = overlap(box[i], box) > overlap_thresh
            return found if force_suppress or id_index < 0 else found & (rows[:, id_index] == rows[i, id_index])

        alive = suppress(alive, hits, taking)
        first = jnp.argsort(~alive, stable=True).astype(jnp.int32)
        return order[first], alive[first]

    flat = data.reshape(-1, n, width)
    at, filled = jax.vmap(one)(lax.stop_gradient(flat))
    out = jnp.take_along_axis(flat, at[..., None], 1)
    if in_format != out_format:
        raw = out[..., coord_start : coord_start + 4]
        box = lax.stop_gradient(to_center(raw) if out_format == "center" else to_corner(raw))
        box += raw - lax.stop_gradient(raw)
        out = jnp.concatenate([out[..., :coord_start], box, out[..., coord_start + 4 :]], -1)
    return jnp.where(filled[..., None], out, jnp.asarray(-1, data.dtype)).reshape(data.shape)


@op(outputs=2, floating=True)
def _contrib_bipartite_matching(
    data: Tensor, *, is_ascend: bool = False, threshold: float, topk: int = -1
) -> tuple[jax.Array, jax.Array]:
    """Match rows and columns greedily by the best score left, while it is better than `threshold`.

    The best score is the largest, or the smallest with `is_ascend`. A positive `topk` ends the search after topk + 1
    matches, as MXNet does. Returns each row's column and each column's row, -1 where unmatched; no gradients.
    Shapes: data (*B, N, M) -> (*B, N), (*B, M).
    """
    if data.ndim < 2:
        raise ArgumentError(f"_contrib_bipartite_matching: data has shape {data.shape}: expected (..., rows, columns)")
    n, m = data.shape[-2:]
    scores = lax.stop_gradient(-data if is_ascend else data).reshape(-1, n, m)
    least = -threshold if is_ascend else threshold
    steps = min(n, m) if topk <= 0 else min(n, m, topk + 1)

    def one(scores: jax.Array) -> tuple[jax.Array, jax.Array]:
        def step(_: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            rows, columns = state
            left = jnp.where((rows[:, None] < 0) & (columns < 0), scores, -jnp.inf)
            best = jnp.argmax(left).astype(jnp.int32)
            good = left.ravel()[best] > least
            row, column = best // m, best % m
            return (
                rows.at[row].set(jnp.where(good, column, rows[row])),
                columns.at[column].set(jnp.where(good, row, columns[column])),
            )

        start = jnp.full((n,), -1, jnp.int32), jnp.full((m,), -1, jnp.int32)
        return lax.fori_loop(jnp.int32(0), jnp.int32(steps), step, start)

    rows, columns = jax.vmap(one)(scores)
    shape = data.shape[:-2]
    return rows.astype(data.dtype).reshape(*shape, n), columns.astype(data.dtype).reshape(*shape, m)


@op(outputs=2, floating=True)
def _contrib_box_encode(
    samples: Tensor, matches: Tensor, anchors: Tensor, refs: Tensor, means: UntypedTensor, stds: UntypedTensor
) -> tuple[jax.Array, jax.Array]:
    """Encode the matched reference boxes relative to their anchors.

    With centres and sides of corner boxes, targets are ((x−xₐ)/wₐ, (y−yₐ)/hₐ, log(w/wₐ), log(h/hₐ)), less `means`,
    over `stds`, where samples > 0.5, and 0 elsewhere; the second result is the mask. No gradients.
    Shapes: samples, matches (B, N), anchors (B, N, 4), refs (B, M, 4), means, stds (4,) -> (B, N, 4) twice.
    """
    name = "_contrib_box_encode"
    check_shape(name, "matches", matches.shape, samples.shape, "that of samples")
    check_shape(name, "anchors", anchors.shape, (*samples.shape, 4), "a box for every sample")
    if refs.ndim != 3 or refs.shape[::2] != (samples.shape[0], 4):
        raise ArgumentError(f"{name}: refs has shape {refs.shape}: expected ({samples.shape[0]}, M, 4)")
    samples, matches, anchors, refs = map(lax.stop_gradient, (samples, matches, anchors, refs))
    matched = jnp.take_along_axis(refs, matches.astype(jnp.int32)[..., None], 1, mode="clip")
    anchor, box = to_center(anchors), to_center(matched)
    raw = jnp.concatenate(
        [(box[..., :2] - anchor[..., :2]) / anchor[..., 2:], jnp.log(box[..., 2:] / anchor[..., 2:])], -1
    )
    mask = jnp.broadcast_to((samples > 0.5)[..., None], raw.shape)
    means, stds = (lax.stop_gradient(v).astype(raw.dtype) for v in (means, stds))
    return jnp.where(mask, (raw - means) / stds, 0), mask.astype(raw.dtype)


@op(floating=True)
def _contrib_box_decode(
    data: Tensor,
    anchors: Tensor,
    *,
    std0: float = 1.0,
    std1: float = 1.0,
    std2: float = 1.0,
    std3: float = 1.0,
    clip: float = -1.0,
    format: Format = "center",
) -> jax.Array:
    """Decode predictions relative to anchors into corner boxes; the inverse of `box_encode` with means of 0.

    Logarithms of sides, times their std, are cut to `clip` when it is positive. `format` is that of the anchors. No
    gradients. Shapes: data (B, N, 4), anchors (1, N, 4) -> (B, N, 4).
    """
    if data.ndim != 3 or data.shape[2] != 4:
        raise ArgumentError(f"_contrib_box_decode: data has shape {data.shape}: expected (B, N, 4)")
    check_shape("_contrib_box_decode", "anchors", anchors.shape, (1, *data.shape[1:]), "a box for every prediction")
    data, anchors = lax.stop_gradient(data), lax.stop_gradient(anchors)
    anchor = to_center(anchors) if format == "corner" else anchors
    moved = data * jnp.asarray((std0, std1, std2, std3), data.dtype)
    sides = jnp.minimum(moved[..., 2:], clip) if clip > 0 else moved[..., 2:]
    sides = jnp.exp(sides) * anchor[..., 2:]
    return to_corner(jnp.concatenate([moved[..., :2] * anchor[..., 2:] + anchor[..., :2], sides], -1))
