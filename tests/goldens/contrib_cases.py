"""The cases that `record.py` records from MXNet: deformable layers, proposals, quantized operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.goldens.nn_cases import Case, record_all

ROIS = [[0, 1, 1, 4, 4], [1, 0.4, 2.6, 3.2, 5.1], [0, 3, 2, 3, 2]]


def _deformable() -> list[Case]:
    made = []
    for kernel, params in (((2, 2), {}), ((3, 2), {"stride": (2, 1), "pad": (1, 1), "num_group": 2})):
        params = {"kernel": kernel, "num_filter": 4, "num_deformable_group": 2, **params}
        stride, pad = params.get("stride", (1, 1)), params.get("pad", (0, 0))
        sizes = zip((5, 6), kernel, stride, pad, strict=True)
        grid = tuple((s + 2 * p - k) // t + 1 for s, k, t, p in sizes)
        taps = 2 * kernel[0] * kernel[1]
        weight = (4, 4 // params.get("num_group", 1), *kernel)
        data, offset = (2, 4, 5, 6), (2, 2 * taps, *grid)
        name = "_contrib_DeformableConvolution"
        made.append(Case(name, {"data": data, "offset": offset, "weight": weight, "bias": (4,)}, params))
        shapes = {"data": data, "offset": offset, "mask": (2, taps, *grid), "weight": weight}
        # MXNet has the gradients of this one on GPUs only.
        modulated = {**params, "no_bias": True}
        made.append(Case("_contrib_ModulatedDeformableConvolution", shapes, modulated, still=tuple(shapes)))
    return made


def _regions() -> list[Case]:
    data = {"data": (2, 8, 6, 6), "rois": (3, 5)}
    fixed: dict[str, Any] = {"fixed": {"rois": ROIS}, "still": ("rois",)}
    sizes = {"output_dim": 2, "group_size": 2, "spatial_scale": 0.8}
    made = [
        Case("_contrib_PSROIPooling", data, {**sizes, "pooled_size": 2}, **fixed),
        Case("_contrib_PSROIPooling", data, {**sizes, "pooled_size": 3, "spatial_scale": 1.0}, **fixed),
    ]
    name = "_contrib_DeformablePSROIPooling"
    moved = {**data, "trans": (3, 4, 2, 2)}
    bent = {**sizes, "pooled_size": 4, "part_size": 2, "sample_per_part": 2, "trans_std": 0.1}
    made.append(Case(name, moved, bent, **fixed))
    made.append(Case(name, data, {**sizes, "pooled_size": 2, "no_trans": True}, **fixed))
    rotated = {"data": (1, 2, 6, 6), "rois": (2, 6)}
    boxes = {"rois": [[0, 3, 3, 4, 2, 30.0], [0, 2, 4, 3, 5, -70.0]]}
    for ratio in (-1, 2):
        params = {"pooled_size": (2, 3), "spatial_scale": 0.9, "sampling_ratio": ratio}
        made.append(Case("_contrib_RROIAlign", rotated, params, boxes, still=("data", "rois")))
    return made


def _proposals() -> list[Case]:
    made = []
    many = {"rpn_pre_nms_top_n": 60, "rpn_post_nms_top_n": 6, "rpn_min_size": 4, "scales": (2.0, 4.0)}
    few = {"rpn_post_nms_top_n": 5, "threshold": 0.2, "output_score": True, "ratios": (1.0,), "scales": (1.0, 2.0)}
    for n, name in ((1, "_contrib_Proposal"), (2, "_contrib_MultiProposal")):
        for params, anchors in ((many, 6), (few, 2)):
            shapes = {"cls_prob": (n, 2 * anchors, 3, 4), "bbox_pred": (n, 4 * anchors, 3, 4), "im_info": (n, 3)}
            info = {"im_info": [[48.0, 64.0, 1.0]] * n}
            made.append(Case(name, shapes, params, info, positive=("cls_prob",), still=tuple(shapes)))
    return made


def _integers(kind: str, *shape: int) -> np.ndarray:
    low = 0 if kind == "uint8" else -100
    count = int(np.prod(shape))
    return (np.arange(count) * 37 % (100 - low) + low).reshape(shape).astype(kind)


ENDS = {"min_data": [-1.0], "max_data": [2.0]}
VALUES = [-1.5, -0.3, 0.0, 0.2, 0.7, 3.0, -4.0]


def _quantized(op: str, arrays: dict[str, Any], **params: Any) -> Case:
    """An operator on given arrays."""
    made = {k: np.asarray(v, None if isinstance(v, np.ndarray) else np.float32) for k, v in arrays.items()}
    # Two dtypes of one shape are told apart by the training flag, which changes nothing here.
    train = not any(a.dtype == np.uint8 for a in made.values())
    return Case(f"_contrib_{op}", {k: v.shape for k, v in made.items()}, params, made, still=tuple(made), train=train)


def _conversions() -> list[Case]:
    ends = {"min_range": [-2.0], "max_range": [1.0]}
    wide = np.asarray([-(2**30), -5, 0, 2**29, 100000], np.int32)
    made = [_quantized("quantize", {"data": VALUES, **ends}, out_type=t) for t in ("int8", "uint8")]
    made += [_quantized("quantize_v2", {"data": VALUES}, out_type=t) for t in ("int8", "uint8", "auto")]
    given = {"min_calib_range": 0.0, "max_calib_range": 2.0}
    made += [_quantized("quantize_v2", {"data": VALUES}, out_type=t, **given) for t in ("int8", "auto")]
    made += [_quantized("dequantize", {"data": _integers(t, 5), **ends}) for t in ("int8", "uint8")]
    made += [_quantized("requantize", {"data": wide, **ends}, **p) for p in ({}, {**given, "out_type": "auto"})]
    histogram = np.float32([1, 2, 3, 4, 5, 0, 2, 1, 0, 1, 5])
    edges = np.linspace(-1, 1, 12).astype(np.float32)
    entropy = _quantized("calibrate_entropy", {"hist": histogram, "hist_edges": edges}, num_quantized_bins=5)
    return [*made, entropy]


def _layers() -> list[Case]:
    made = []
    sides = {"lhs_min": [-1.0], "lhs_max": [2.0], "rhs_min": [-3.0], "rhs_max": [0.5]}
    weights = {"min_weight": [-3.0], "max_weight": [0.5]}
    thresholds = {"min_calib_range": -1.0, "max_calib_range": 2.0}
    for t in ("int8", "uint8"):
        image = {"data": _integers(t, 1, 2, 4, 5), **ENDS}
        made.append(_quantized("quantized_flatten", image))
        made.append(_quantized("quantized_pooling", image, kernel=(2, 2), pool_type="max"))
        made.append(_quantized("quantized_pooling", image, kernel=(2, 3), pool_type="avg", stride=(2, 1)))
        pair = {"lhs": _integers(t, 2, 3), "rhs": _integers(t, 2, 3)[::-1].copy(), **sides}
        made.append(_quantized("quantized_elemwise_add", pair, **thresholds))
        joined = {
            "a": _integers(t, 2, 3),
            "b": _integers("int8", 2, 3),
            "c": [-1.0],
            "d": [2.0],
            "e": [-3.0],
            "f": [0.5],
        }
        made.append(_quantized("quantized_concat", joined, num_args=2, dim=0))
    made.append(_quantized("quantized_act", {"data": _integers("int8", 2, 6), **ENDS}, act_type="relu"))
    table = {"data": np.float32([0, 2]), "weight": _integers("int8", 3, 4), **weights}
    made.append(_quantized("quantized_embedding", table, input_dim=3, output_dim=4))
    return made


def _likelihoods() -> list[Case]:
    name, values = "_contrib_hawkesll", {"marks": np.int32([[0, 1, 0, 2], [2, 2, 1, 0]])}
    values |= {"valid_length": np.float32([3, 4]), "max_time": np.float32([9, 12])}
    shapes = {"lda": (2, 3), "alpha": (3,), "beta": (3,), "state": (2, 3), "lags": (2, 4), "marks": (2, 4)}
    shapes |= {"valid_length": (2,), "max_time": (2,)}
    still = ("state", "lags", "marks", "valid_length", "max_time")
    return [Case(name, shapes, fixed=values, positive=("lda", "alpha", "beta", "state", "lags"), still=still)]


GROUPS = {
    "deformable": _deformable(),
    "regions": _regions(),
    "proposals": _proposals(),
    "conversions": _conversions(),
    "layers": _layers(),
    "likelihoods": _likelihoods(),
}


def record(mx: Any) -> Any:
    """What MXNet gives for every case."""
    return record_all(mx, GROUPS)
