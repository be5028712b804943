"""Region proposals: anchors moved by predictions, the best of them after suppression."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.errors import ArgumentError
from ..boxes import overlap, suppress
from ..registry import Op, op
from ..schema import Floats, Positive, Tensor
from ..spatial import check_shape


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
