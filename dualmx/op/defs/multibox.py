"""Single-shot detection: default boxes, training targets, detections."""

from __future__ import annotations

from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.errors import ArgumentError
from ..boxes import overlap, suppress, to_center, to_corner
from ..registry import op
from ..schema import Count, Floats, Ignored, Tensor
from ..spatial import check_rank, check_shape

VARIANCES = (0.1, 0.1, 0.2, 0.2)


def _four(name: str, variances: tuple[float, ...]) -> None:
    if len(variances) != 4:
        raise ArgumentError(f"{name}: variances={variances}: expected 4 numbers, for x, y, width, height")


@op(name="_contrib_MultiBoxPrior", floating=True)
def multi_box_prior(
    data: Tensor,
    *,
    sizes: Floats = (1.0,),
    ratios: Floats = (1.0,),
    clip: bool = False,
    steps: Floats = (-1.0, -1.0),
    offsets: Floats = (0.5, 0.5),
) -> jax.Array:
    """Default boxes around every pixel of a feature map, as corners relative to the image; `data` gives only its size.

    A pixel has a box of each size with the first ratio, then one of the first size with each further ratio: height
    size / √ratio, width size · √ratio · H / W. Centres are (row + offsets[0]) · steps[0] down, likewise across;
    steps that are not positive mean 1/H and 1/W. `clip` cuts the corners to [0, 1].
    Shapes: data (N, C, H, W) -> (1, H·W·(len(sizes) + len(ratios) − 1), 4).
    """
    name = "_contrib_MultiBoxPrior"
    check_rank(name, data.shape, 2, "making boxes")
    if not sizes or not ratios or min(ratios) <= 0:
        raise ArgumentError(f"{name}: sizes={sizes}, ratios={ratios}: expected at least one each, ratios positive")
    if len(steps) != 2 or len(offsets) != 2:
        raise ArgumentError(f"{name}: steps={steps}, offsets={offsets}: expected two numbers each, down and across")
    height, width = data.shape[2:]
    step = [s if s > 0 else 1 / n for s, n in zip(steps, (height, width), strict=True)]
    y, x = ((np.arange(n) + o) * s for n, o, s in zip((height, width), offsets, step, strict=True))
    shapes = [(s, ratios[0]) for s in sizes] + [(sizes[0], r) for r in ratios[1:]]
    half = np.array([(s * r**0.5 * height / width / 2, s / r**0.5 / 2) for s, r in shapes])
    center = np.stack(np.broadcast_arrays(x[None, :, None], y[:, None, None]), -1)
    boxes = np.concatenate([center - half, center + half], -1).reshape(1, -1, 4)
    return jnp.asarray(np.clip(boxes, 0, 1) if clip else boxes, data.dtype)


def _match(iou: jax.Array, threshold: float) -> tuple[jax.Array, jax.Array]:
    """Object of each anchor by `iou` (A, G), and which anchors are positive.

    Every object takes, best pair first, the anchor it overlaps most; then anchors left that overlap an object by more
    than `threshold` take theirs.
    """
    anchors, objects = iou.shape

    def step(_: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        of_anchor, taken = state
        left = jnp.where((of_anchor[:, None] < 0) & ~taken, iou, -1)
        best = jnp.argmax(left).astype(jnp.int32)
        good = left.ravel()[best] > 1e-6
        anchor, thing = best // objects, best % objects
        return (
            of_anchor.at[anchor].set(jnp.where(good, thing, of_anchor[anchor])),
            taken.at[thing].set(good | taken[thing]),
        )

    start = jnp.full((anchors,), -1, jnp.int32), jnp.zeros((objects,), jnp.bool_)
    of_anchor, _ = lax.fori_loop(jnp.int32(0), jnp.int32(objects), step, start)
    nearest = jnp.argmax(iou, 1).astype(jnp.int32)
    near = (jnp.max(iou, 1) > threshold) if threshold > 0 else jnp.zeros((anchors,), jnp.bool_)
    return jnp.where(of_anchor >= 0, of_anchor, nearest), (of_anchor >= 0) | near


@op(name="_contrib_MultiBoxTarget", outputs=3, floating=True, output_names=("loc_target", "loc_mask", "cls_target"))
def multi_box_target(
    anchor: Tensor,
    label: Tensor,
    cls_pred: Tensor,
    *,
    overlap_threshold: float = 0.5,
    ignore_label: float = -1,
    negative_mining_ratio: float = -1,
    negative_mining_thresh: float = 0.5,
    minimum_negative_samples: Annotated[Count, Ignored] = 0,
    variances: Floats = VARIANCES,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Training targets of single-shot detection: offsets, their mask, classes; no gradients.

    Rows of label are (class, x1, y1, x2, y2, …) up to the first class of -1. Every object takes the anchor that it
    overlaps most, best pairs first; anchors left that overlap an object by more than `overlap_threshold` take it too.
    Taken anchors get class + 1 and ((x−xₐ)/wₐ, (y−yₐ)/hₐ, log(w/wₐ), log(h/hₐ)) / variances. The rest are background
    (0); or, when `negative_mining_ratio` is positive, only that many per taken anchor are, those overlapping less than
    `negative_mining_thresh` of least predicted background probability, and the others get `ignore_label`. An image
    without objects gets `ignore_label` throughout.
    Shapes: anchor (1, A, 4), label (N, G, ≥5), cls_pred (N, classes, A) -> (N, 4·A), (N, 4·A), (N, A).
    """
    name = "_contrib_MultiBoxTarget"
    _four(name, variances)
    if anchor.ndim != 3 or anchor.shape[::2] != (1, 4):
        raise ArgumentError(f"{name}: anchor has shape {anchor.shape}: expected (1, A, 4)")
    if label.ndim != 3 or label.shape[1] < 1 or label.shape[2] < 5:
        raise ArgumentError(f"{name}: label has shape {label.shape}: expected (N, G, 5), rows (class, x1, y1, x2, y2)")
    if cls_pred.ndim != 3 or cls_pred.shape[::2] != (label.shape[0], anchor.shape[1]):
        want = f"({label.shape[0]}, classes, {anchor.shape[1]})"
        raise ArgumentError(f"{name}: cls_pred has shape {cls_pred.shape}: expected {want}")
    anchor, label, cls_pred = map(lax.stop_gradient, (anchor, label, cls_pred))
    boxes, count = anchor[0], anchor.shape[1]
    place = to_center(boxes)
    spread = jnp.asarray(variances, anchor.dtype)

    def one(label: jax.Array, scores: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        real = jnp.cumprod(label[:, 0] != -1).astype(jnp.bool_)
        iou = jnp.where(real, overlap(boxes[:, None], label[None, :, 1:5]), -1)
        thing, positive = _match(iou, overlap_threshold)
        negative = ~positive
        if negative_mining_ratio > 0:
            wanted = jnp.minimum((positive.sum() * negative_mining_ratio).astype(jnp.int32), negative.sum())
            hard = negative & (iou.max(1) < negative_mining_thresh)
            background = jax.nn.softmax(scores, 0)[0]
            order = jnp.argsort(jnp.where(hard, background, jnp.inf), stable=True).astype(jnp.int32)
            rank = jnp.zeros((count,), jnp.int32).at[order].set(jnp.arange(count, dtype=jnp.int32))
            negative = hard & (rank < wanted)
        target = to_center(label[thing, 1:5])
        raw = jnp.concatenate([(target[:, :2] - place[:, :2]) / place[:, 2:], jnp.log(target[:, 2:] / place[:, 2:])], 1)
        classes = jnp.where(positive, label[thing, 0] + 1, jnp.where(negative, 0, ignore_label))
        classes = jnp.where(real[0], classes, ignore_label)
        mask = jnp.broadcast_to(positive[:, None], raw.shape)
        return jnp.where(mask, raw / spread, 0).ravel(), mask.astype(anchor.dtype).ravel(), classes.astype(anchor.dtype)

    return jax.vmap(one)(label, cls_pred)


@op(name="_contrib_MultiBoxDetection", floating=True)
def multi_box_detection(
    cls_prob: Tensor,
    loc_pred: Tensor,
    anchor: Tensor,
    *,
    clip: bool = True,
    threshold: float = 0.01,
    background_id: Annotated[int, Ignored] = 0,
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    variances: Floats = VARIANCES,
    nms_topk: int = -1,
) -> jax.Array:
    """Detections (class, score, x1, y1, x2, y2) of single-shot detection; no gradients.

    Each anchor's class is the likeliest but the background, which is class 0 of `cls_prob`; those of a probability
    below `threshold` are dropped (-1 throughout, at the end). Boxes are decoded with `variances`, cut to [0, 1] by
    `clip`, sorted by score; of boxes of one class (of any with `force_suppress`) that overlap by `nms_threshold` or
    more, and beyond the `nms_topk` best, the class becomes -1.
    Shapes: cls_prob (N, classes, A), loc_pred (N, 4·A), anchor (1, A, 4) -> (N, A, 6).
    """
    name = "_contrib_MultiBoxDetection"
    _four(name, variances)
    if cls_prob.ndim != 3 or cls_prob.shape[1] < 2:
        raise ArgumentError(f"{name}: cls_prob has shape {cls_prob.shape}: expected (N, classes, A), background first")
    n, _, count = cls_prob.shape
    check_shape(name, "loc_pred", loc_pred.shape, (n, 4 * count), "4 numbers per anchor")
    check_shape(name, "anchor", anchor.shape, (1, count, 4), "a box per anchor")
    cls_prob, loc_pred, anchor = map(lax.stop_gradient, (cls_prob, loc_pred, anchor))
    place = to_center(anchor[0])
    spread = jnp.asarray(variances, anchor.dtype)
    keeping = count if nms_topk <= 0 else min(nms_topk, count)
    at = jnp.arange(count, dtype=jnp.int32)

    def one(prob: jax.Array, moved: jax.Array) -> jax.Array:
        moved = moved.reshape(count, 4) * spread
        box = jnp.concatenate([moved[:, :2] * place[:, 2:] + place[:, :2], jnp.exp(moved[:, 2:]) * place[:, 2:]], 1)
        box = to_corner(box)
        box = jnp.clip(box, 0, 1) if clip else box
        score = prob[1:].max(0)
        kind = jnp.argmax(prob[1:], 0).astype(prob.dtype)
        rows = jnp.concatenate([kind[:, None], score[:, None], box], 1)
        valid = score >= threshold
        # Dropped anchors come last, the others in their own order, and in that of their scores.
        packed = jnp.where(jnp.sort(~valid)[:, None], -1, rows[jnp.argsort(~valid, stable=True)])
        if not 0 < nms_threshold <= 1:
            return packed
        rows = packed[jnp.argsort(-packed[:, 1], stable=True)]
        kept = jnp.minimum(valid.sum().astype(jnp.int32), keeping)
        rows = jnp.where((at < kept)[:, None], rows, packed)

        def hits(i: jax.Array) -> jax.Array:
            found = overlap(rows[i, 2:], rows[:, 2:]) >= nms_threshold
            return found if force_suppress else found & (rows[:, 0] == rows[i, 0])

        alive = suppress((at < kept) & (rows[:, 0] >= 0), hits, keeping)
        return rows.at[:, 0].set(jnp.where(alive, rows[:, 0], -1))

    return jax.vmap(one)(cls_prob, loc_pred)
