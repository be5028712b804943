"""The cases that `record.py` records from MXNet: sampling, regions of interest, detection, attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.goldens.nn_cases import Case, record_all

ROIS = [[0, 0, 0, 3, 3], [1, 1.2, 2.4, 4.7, 5.1], [0, 3, 2, 1, 1], [1, -2, -3, 2.2, 9], [0, 8, 8, 9, 9]]


def _resizes() -> list[Case]:
    name, data = "_contrib_BilinearResize2D", {"data": (2, 3, 5, 6)}
    params: list[dict[str, Any]] = [
        {"height": 7, "width": 4},
        {"height": 3, "width": 8, "align_corners": False},
        {"height": 1, "width": 1},
        {"scale_height": 1.3, "scale_width": 0.7},
        {"mode": "odd_scale", "scale_height": 2, "scale_width": 1.5},
        {"mode": "to_even_down"},
        {"mode": "to_even_up"},
        {"mode": "to_odd_down"},
        {"mode": "to_odd_up", "align_corners": False},
    ]
    made = [Case(name, data, p) for p in params]
    return [*made, Case(name, {**data, "like": (2, 3, 4, 3)}, {"mode": "like"})]


def _grids() -> list[Case]:
    affine = {"transform_type": "affine", "target_shape": (3, 4)}
    return [
        Case("GridGenerator", {"data": (2, 6)}, affine),
        Case("GridGenerator", {"data": (2, 2, 3, 4)}, {"transform_type": "warp"}),
        Case("BilinearSampler", {"data": (2, 3, 4, 5), "grid": (2, 2, 3, 2)}),
        Case("BilinearSampler", {"data": (1, 2, 3, 3), "grid": (1, 2, 6, 6)}),
        Case("SpatialTransformer", {"data": (2, 3, 4, 5), "loc": (2, 6)}, {**affine, "sampler_type": "bilinear"}),
    ]


def _regions() -> list[Case]:
    data = {"data": (2, 8, 6, 5), "rois": (5, 5)}
    fixed: dict[str, Any] = {"fixed": {"rois": ROIS}, "still": ("rois",)}
    made = [
        Case("ROIPooling", data, {"pooled_size": size, "spatial_scale": scale}, **fixed)
        for size, scale in (((2, 2), 1.0), ((3, 2), 0.6), ((7, 7), 1.0))
    ]
    params: list[dict[str, Any]] = [
        {"pooled_size": (2, 2), "spatial_scale": 1.0},
        {"pooled_size": (3, 2), "spatial_scale": 0.6, "sample_ratio": 2},
        {"pooled_size": (2, 2), "spatial_scale": 1.0, "position_sensitive": True},
    ]
    made += [Case("_contrib_ROIAlign", data, p, **fixed) for p in params]
    upright: dict[str, Any] = {"fixed": {"rois": ROIS[:2]}, "still": ("rois",)}
    aligned: dict[str, Any] = {"pooled_size": (2, 2), "spatial_scale": 0.8, "aligned": True}
    small = {"data": (2, 8, 6, 5), "rois": (2, 5)}
    return made + [Case("_contrib_ROIAlign", small, {**aligned, "sample_ratio": k}, **upright) for k in (-1, 3)]


def _correlations() -> list[Case]:
    data = {"data1": (2, 3, 6, 7), "data2": (2, 3, 6, 7)}
    params: list[dict[str, Any]] = [
        {"pad_size": 1},
        {"kernel_size": 3, "max_displacement": 2, "stride2": 2, "pad_size": 3},
        {"max_displacement": 2, "stride1": 2, "pad_size": 2},
        {"max_displacement": 3, "stride1": 2, "stride2": 2, "pad_size": 4, "is_multiply": False},
    ]
    return [Case("Correlation", data, p) for p in params]


BOXES = [
    [0, 0.9, 0, 0, 4, 4],
    [1, 0.8, 0, 0, 4, 4.2],
    [0, 0.7, 1, 1, 4, 4],
    [0, -0.1, 5, 5, 6, 6],
    [1, 0.95, 5, 5, 7, 7],
    [0, 0.6, 5, 5, 7, 7.1],
]
ANCHORS = [
    [(x - s) / 8, (y - s * r) / 6, (x + s) / 8, (y + s * r) / 6]
    for y in (1, 3, 5)
    for x in (1, 4, 7)
    for s, r in ((1.2, 1.0), (1.6, 0.7))
]
NOTHING = [-1.0] * 5
LABELS = [
    [[1, 0.1, 0.1, 0.4, 0.5], [0, 0.5, 0.5, 0.9, 0.9], NOTHING],
    [[2, 0.3, 0.2, 0.8, 0.6], NOTHING, [1, 0.1, 0.1, 0.4, 0.5]],
    [NOTHING, NOTHING, NOTHING],
]


def _suppressions() -> list[Case]:
    name = "_contrib_box_nms"
    fixed: dict[str, Any] = {"fixed": {"data": BOXES}}
    params: list[dict[str, Any]] = [
        {},
        {"id_index": 0},
        {"id_index": 0, "background_id": 0, "overlap_thresh": 0.3},
        {"topk": 3, "overlap_thresh": 0.9},
        {"topk": 2, "id_index": 0, "force_suppress": True},
        {"in_format": "center", "out_format": "corner"},
        {"out_format": "center", "valid_thresh": 0.75},
        {"valid_thresh": 2},
    ]
    batch = Case(name, {"data": (2, 6, 6)}, {"id_index": 0}, fixed={"data": [BOXES, BOXES[::-1]]})
    return [*(Case(name, {"data": (6, 6)}, p, **fixed) for p in params), batch]


def _floats(value: Any) -> Any:
    return np.asarray(value, np.float32).tolist()


def _boxes() -> list[Case]:
    lhs, rhs = [b[2:] for b in BOXES[:3]], [b[2:] for b in BOXES[2:]]
    two: dict[str, Any] = {"fixed": {"lhs": [[b] for b in lhs], "rhs": rhs}, "still": ("lhs", "rhs")}
    made = [
        Case("_contrib_box_iou", {"lhs": (3, 1, 4), "rhs": (4, 4)}, {"format": f}, **two) for f in ("corner", "center")
    ]
    match = "_contrib_bipartite_matching"
    for k in (-1, 1, 2):
        made.append(Case(match, {"data": (2, 5, 4)}, {"threshold": 0.1, "topk": k}, still=("data",)))
    made.append(Case(match, {"data": (4, 6)}, {"threshold": 0.1, "is_ascend": True}, still=("data",)))
    anchors = [BOXES[0][2:], BOXES[2][2:], BOXES[4][2:]]
    values = {
        "samples": _floats([[1, 0, 1]]),
        "matches": _floats([[0, 1, 1]]),
        "anchors": _floats([anchors]),
        "refs": _floats([[[0, 0, 3, 2], [1, 1, 3, 5]]]),
        "means": [0.0, 0.1, 0, 0.2],
        "stds": [0.1, 0.1, 0.2, 0.3],
    }
    shapes = {
        "samples": (1, 3),
        "matches": (1, 3),
        "anchors": (1, 3, 4),
        "refs": (1, 2, 4),
        "means": (4,),
        "stds": (4,),
    }
    made.append(Case("_contrib_box_encode", shapes, fixed=values, still=tuple(values)))
    decode = {"data": (2, 3, 4), "anchors": (1, 3, 4)}
    at: dict[str, Any] = {"fixed": {"anchors": _floats([anchors])}}
    stds = {"std0": 0.1, "std1": 0.1, "std2": 0.2, "std3": 0.3}
    for p in ({**stds, "clip": 0.1, "format": "corner"}, {}):
        made.append(Case("_contrib_box_decode", decode, p, still=("data", "anchors"), **at))
    return made


def _multiboxes() -> list[Case]:
    prior = [
        {"sizes": (0.5, 0.3), "ratios": (1, 2, 0.5)},
        {"sizes": (0.8, 0.4), "ratios": (2, 1), "clip": True, "steps": (0.4, 0.3), "offsets": (0.2, 0.7)},
    ]
    made = [Case("_contrib_MultiBoxPrior", {"data": (1, 3, 2, 3)}, p, still=("data",)) for p in prior]
    shapes = {"anchor": (1, 18, 4), "label": (3, 3, 5), "cls_pred": (3, 4, 18)}
    target: list[dict[str, Any]] = [
        {},
        {"negative_mining_ratio": 2, "negative_mining_thresh": 0.3},
        {"overlap_threshold": 0.3, "ignore_label": -7, "negative_mining_ratio": 1, "minimum_negative_samples": 3},
        {"overlap_threshold": 0.3, "negative_mining_ratio": 9, "variances": (0.2, 0.1, 0.1, 0.3)},
    ]
    fixed = {"anchor": [ANCHORS], "label": LABELS}
    made += [Case("_contrib_MultiBoxTarget", shapes, p, fixed=fixed, still=tuple(shapes)) for p in target]
    shapes = {"cls_prob": (2, 4, 18), "loc_pred": (2, 72), "anchor": (1, 18, 4)}
    detect: list[dict[str, Any]] = [
        {},
        {"threshold": 0.8, "nms_threshold": 0.2, "force_suppress": True},
        {"nms_topk": 4, "clip": False, "threshold": 0.7},
        {"nms_threshold": 0},
    ]
    ready: dict[str, Any] = {"fixed": {"anchor": [ANCHORS]}, "positive": ("cls_prob",), "still": tuple(shapes)}
    return made + [Case("_contrib_MultiBoxDetection", shapes, p, **ready) for p in detect]


def _attentions() -> list[Case]:
    name, heads = "_contrib_interleaved_matmul_", {"heads": 2}
    return [
        Case(f"{name}selfatt_qk", {"queries_keys_values": (3, 2, 24)}, heads),
        Case(f"{name}selfatt_valatt", {"queries_keys_values": (3, 2, 24), "attention": (4, 3, 3)}, heads),
        Case(f"{name}encdec_qk", {"queries": (5, 2, 8), "keys_values": (3, 2, 16)}, heads),
        Case(f"{name}encdec_valatt", {"keys_values": (3, 2, 16), "attention": (4, 5, 3)}, heads),
    ]


PIXELS = [[[140, 182, 154], [139, 108, 165], [112, 227, 246]], [[98, 202, 135], [145, 236, 18], [22, 5, 212]]]


def _colour(op: str, value: Any = None, whole: bool = False, **params: Any) -> Case:
    """A colour operator on `PIXELS`; `value` is the factor that it is made to draw."""
    if value is not None:
        params |= {"min_factor": value, "max_factor": value + 1e-7}
    fixed = {"data": np.asarray(PIXELS, np.uint8) if whole else _floats(PIXELS)}
    # Values of either dtype are in the name, since the shapes are equal.
    return Case(f"_image_{op}", {"data": (2, 3, 3)}, params, fixed, still=("data",), train=not whole)


def _lights() -> list[Case]:
    return [_colour("adjust_lighting", whole=w, alpha=(0.5, -0.2, 0.1)) for w in (False, True)]


# Drawn from intervals so short that the result is known; MXNet 1.9.1 takes the blue share alone for grey in saturation.
DRAWN = [
    _colour(f"random_{what}", value, whole)
    for what, value in (("brightness", 1.5), ("contrast", 1.25), ("hue", 0.1), ("hue", 1.3))
    for whole in (False, True)
]

GROUPS = {
    "colour": _lights(),
    "attention": _attentions(),
    "resize": _resizes(),
    "grid": _grids(),
    "region": _regions(),
    "correlation": _correlations(),
    "suppression": _suppressions(),
    "box": _boxes(),
    "multibox": _multiboxes(),
}


def record(mx: Any) -> Any:
    """What MXNet gives for every case."""
    return record_all(mx, {**GROUPS, "drawn": DRAWN})
