"""Detection: box overlap, suppression, matching, encoding; SSD's anchors, targets and detections; proposals."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.errors import ArgumentError
from ..boxes import overlap, suppress, to_center, to_corner
from ..registry import Op, op
from ..schema import Count, Floats, Ignored, Positive, Tensor, UntypedTensor
from ..spatial import check_rank, check_shape

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
    With `topk=0` the data come back as they are. Shapes: data (*B, N, K) -> the same. Gradients go to the rows that
    survive, unconverted.
    """
    if data.ndim < 2:
        raise ArgumentError(f"_contrib_box_nms: data has shape {data.shape}: expected (..., boxes, fields)")
    n, width = data.shape[-2:]
    _nms_fields(width, coord_start=coord_start, score_index=score_index, id_index=id_index)
    if topk == 0:
        return data
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
    scale = jnp.asarray(variances, anchor.dtype)

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
        return jnp.where(mask, raw / scale, 0).ravel(), mask.astype(anchor.dtype).ravel(), classes.astype(anchor.dtype)

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
    scale = jnp.asarray(variances, anchor.dtype)
    keeping = count if nms_topk <= 0 else min(nms_topk, count)
    at = jnp.arange(count, dtype=jnp.int32)

    def one(prob: jax.Array, moved: jax.Array) -> jax.Array:
        moved = moved.reshape(count, 4) * scale
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


def base_anchors(stride: int, scales: tuple[float, ...], ratios: tuple[float, ...]) -> np.ndarray:
    """Corner boxes (A, 4) around the first cell, ratios outermost; sides are whole pixels, ends included."""
    middle, found = (stride - 1) / 2, []
    for ratio in ratios:
        wide = math.floor(math.sqrt(math.floor(stride * stride / ratio)) + 0.5)
        tall = math.floor(wide * ratio + 0.5)
        for scale in scales:
            half = (wide * scale - 1) / 2, (tall * scale - 1) / 2
            found.append((middle - half[0], middle - half[1], middle + half[0], middle + half[1]))
    return np.asarray(found, np.float32)


def _moved(anchors: jax.Array, deltas: jax.Array, plain: bool) -> jax.Array:
    """Anchors (M, 4) moved by predictions (M, 4): corner offsets if `plain`, else centre shifts and log sides."""
    if plain:
        return anchors + deltas
    sides = anchors[:, 2:] - anchors[:, :2] + 1
    centre = anchors[:, :2] + 0.5 * (sides - 1) + deltas[:, :2] * sides
    sides = jnp.exp(deltas[:, 2:]) * sides
    return jnp.concatenate([centre - 0.5 * (sides - 1), centre + 0.5 * (sides - 1)], 1)


def _one_image(
    score: jax.Array, deltas: jax.Array, info: jax.Array, anchors: np.ndarray, p: dict[str, float]
) -> tuple[jax.Array, jax.Array]:
    """The proposals (post, 4) of one image and their scores (post,); score (A, H, W), deltas (4A, H, W)."""
    count, height, width = score.shape
    stride = int(p["feature_stride"])
    shift = np.stack(np.meshgrid(np.arange(width), np.arange(height)), -1).astype(np.float32) * stride
    grid = np.concatenate([shift, shift], -1)[:, :, None] + anchors
    moved = deltas.reshape(count, 4, height, width).transpose(2, 3, 0, 1).reshape(-1, 4)
    scores = score.transpose(1, 2, 0).ravel()
    boxes = _moved(jnp.asarray(grid.reshape(-1, 4)), moved, bool(p["iou_loss"]))
    edge = jnp.stack([info[1], info[0], info[1], info[0]]) - 1
    boxes = jnp.clip(boxes, 0, edge)
    row = jnp.repeat(jnp.arange(height, dtype=jnp.int32), width * count)
    column = jnp.tile(jnp.repeat(jnp.arange(width, dtype=jnp.int32), count), height)
    real = (info[:2] / stride).astype(jnp.int32)
    scores = jnp.where((row >= real[0]) | (column >= real[1]), -1, scores)
    least = p["min_size"] * info[2]
    small = jnp.any(boxes[:, 2:] - boxes[:, :2] + 1 < least, 1)
    grow = jnp.stack([-least, -least, least, least]) / 2
    boxes = jnp.where(small[:, None], boxes + grow, boxes)
    scores = jnp.where(small, -1, scores)
    pre, post = int(p["pre"]), int(p["post"])
    order = jnp.argsort(-scores, stable=True)[:pre].astype(jnp.int32)
    boxes, scores = boxes[order], scores[order]

    def hits(i: jax.Array) -> jax.Array:
        return overlap(boxes[i], boxes, 1) > p["threshold"]

    alive = suppress(jnp.ones(len(order), bool), hits, len(order))
    kept = jnp.argsort(~alive, stable=True).astype(jnp.int32)
    n = jnp.minimum(alive.sum().astype(jnp.int32), post)
    chosen = kept[jnp.arange(post, dtype=jnp.int32) % n]
    return boxes[chosen], scores[chosen]


def _proposal(name: str, many: bool, doc: str) -> Op:
    def body(
        cls_prob: Tensor,
        bbox_pred: Tensor,
        im_info: Tensor,
        *,
        rpn_pre_nms_top_n: int = 6000,
        rpn_post_nms_top_n: Positive = 300,
        threshold: float = 0.7,
        rpn_min_size: int = 16,
        scales: Floats = (4.0, 8.0, 16.0, 32.0),
        ratios: Floats = (0.5, 1.0, 2.0),
        feature_stride: Positive = 16,
        output_score: bool = False,
        iou_loss: bool = False,
    ) -> tuple[jax.Array, jax.Array]:
        anchors = base_anchors(feature_stride, scales, ratios)
        a = len(anchors)
        if cls_prob.ndim != 4 or cls_prob.shape[1] != 2 * a:
            raise ArgumentError(
                f"{name}: cls_prob has shape {cls_prob.shape}: expected (N, {2 * a}, H, W), {a} anchors"
            )
        n, _, height, width = cls_prob.shape
        if n != 1 and not many:
            raise ArgumentError(f"{name}: cls_prob has {n} images: expected 1; MultiProposal takes more")
        check_shape(name, "bbox_pred", bbox_pred.shape, (n, 4 * a, height, width), f"{a} anchors")
        check_shape(name, "im_info", im_info.shape, (n, 3), "height, width and scale of each image")
        total = a * height * width
        pre = min(rpn_pre_nms_top_n, total) if rpn_pre_nms_top_n > 0 else total
        p = {
            "feature_stride": feature_stride, "iou_loss": iou_loss, "min_size": rpn_min_size, "threshold": threshold,
            "pre": pre, "post": min(rpn_post_nms_top_n, pre),
        }  # fmt: skip
        given = tuple(lax.stop_gradient(v).astype(jnp.float32) for v in (cls_prob[:, a:], bbox_pred, im_info))
        boxes, scores = lax.map(lambda one: _one_image(one[0], one[1], one[2], anchors, p), given)
        short = rpn_post_nms_top_n - int(p["post"])
        if short:
            wrap = jnp.arange(rpn_post_nms_top_n, dtype=jnp.int32) % int(p["post"])
            boxes, scores = boxes[:, wrap], scores[:, wrap]
        image = jnp.repeat(jnp.arange(n, dtype=jnp.int32), rpn_post_nms_top_n).astype(jnp.float32)[:, None]
        rows = jnp.concatenate([image, boxes.reshape(-1, 4)], 1)
        return rows.astype(cls_prob.dtype), scores.reshape(-1, 1).astype(cls_prob.dtype)

    body.__doc__ = doc
    names = ("output", "score")
    return op(name=name, outputs=2, visible=lambda p: 1 + p.output_score, output_names=names, floating=True)(body)


_DOC = """Propose regions{of}: move anchors by `bbox_pred`, clip them to the image, keep the best by suppression.

Anchors have `ratios` and `scales` of a cell of `feature_stride` pixels. Proposals with a side below
rpn_min_size · scale count last; the rpn_pre_nms_top_n best compete, those overlapping a better one by more than
`threshold` are dropped, and rpn_post_nms_top_n are returned, from the first again if fewer are left. No gradients.
Shapes: cls_prob ({n}, 2A, H, W), background first, bbox_pred ({n}, 4A, H, W), im_info ({n}, 3) rows (height, width,
scale) -> ({m}rpn_post_nms_top_n, 5) rows (image, x1, y1, x2, y2), and scores ({m}rpn_post_nms_top_n, 1) with
`output_score`. Reference: Ren et al., "Faster R-CNN".
"""
Proposal = _proposal("_contrib_Proposal", False, _DOC.format(of="", n="1", m=""))
MultiProposal = _proposal("_contrib_MultiProposal", True, _DOC.format(of=" of several images", n="N", m="N·"))
