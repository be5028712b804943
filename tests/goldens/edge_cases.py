"""Calls at the edges: values at thresholds, ties, sizes of one, lengths of zero, windows as large as their array.

The other cases draw their values, and drawn values hit no threshold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.goldens import elementwise_cases
from tests.goldens.nn_cases import Case, record_all

POINTS = np.float32([-2.5, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5])
LEFT, RIGHT = (np.float32(m) for m in np.meshgrid(POINTS[3:8], POINTS[3:8], indexing="ij"))
FLAT = np.float32([[2, 2, 1, 2], [0, 0, 0, 0], [-1, 3, 3, -1]])  # every row and column has a tie


def at(op: str, *arrays: Any, still: Any = (), train: bool = True, **params: Any) -> Case:
    """A call of an operator on given arrays; `still` are the positions that get no gradient."""
    given = {f"in{i}": np.asarray(a) for i, a in enumerate(arrays)}
    shapes = {n: a.shape for n, a in given.items()}
    return Case(op, shapes, params, given, still=tuple(f"in{i}" for i in still), train=train)


def _elementwise() -> Iterator[Case]:
    # MXNet is asked for no derivative at a pole, nor of x**y where x is not above 0.
    yield from (at(name, POINTS[6:] if "gamma" in name else POINTS) for name in elementwise_cases.RANGES)
    for stem in (*elementwise_cases.ARITHMETIC, *elementwise_cases.TESTS, *elementwise_cases.LOGIC):
        still = () if stem in elementwise_cases.ARITHMETIC else (0, 1)
        yield at(f"broadcast_{stem}", POINTS[:, None], POINTS, still=still)
        name = f"elemwise_{stem}" if stem in ("add", "sub", "mul", "div") else f"_{stem}"
        yield at(name, LEFT + 2 if stem == "power" else LEFT, RIGHT, still=still)
        if stem in (*elementwise_cases.TESTS, *elementwise_cases.LOGIC, "maximum", "minimum", "mod", "hypot"):
            yield from (at(f"_{stem}_scalar", POINTS, still=still[:1], scalar=s) for s in (-1.5, 0.0, 1.0))
    yield at("clip", POINTS, a_min=-1.5, a_max=1.0)
    yield at("hard_sigmoid", POINTS)
    yield from (at("smooth_l1", POINTS, scalar=s) for s in (1.0, 2.0))
    yield from (at("Activation", POINTS, act_type=t) for t in ("relu", "sigmoid", "tanh", "softrelu", "softsign"))
    yield from (at("LeakyReLU", POINTS, act_type=t) for t in ("leaky", "elu", "gelu"))
    yield at("LeakyReLU", POINTS[5:], act_type="selu")  # below 0, MXNet's gradient is not the derivative
    yield at("LeakyReLU", POINTS.reshape(1, 11), np.float32([0.25]), act_type="prelu")


def _reductions() -> Iterator[Case]:
    for name in ("sum", "mean", "prod", "nansum", "nanprod", "max", "min"):
        data = FLAT + 2 if "prod" in name else FLAT  # MXNet divides products by their factors, 0 too
        yield from (at(name, data, axis=a) for a in (0, 1))
        yield at(name, data[:1, :1], axis=0)
    for name in ("argmax", "argmin"):
        yield from (at(name, FLAT, axis=a, still=(0,)) for a in (0, 1))
    yield at("norm", FLAT, axis=1, ord=1)
    for k in (1, 3, 4):
        yield from (at("topk", FLAT, k=k, ret_typ=t, is_ascend=a) for t in ("value", "mask") for a in (False, True))
    yield from (at("sort", FLAT, axis=-1, is_ascend=a) for a in (False, True))
    yield at("_histogram", POINTS, still=(0,), bin_cnt=4, range=(-2.0, 2.0))
    yield at("_histogram", POINTS, np.float32([-2, -1, 1, 2]), still=(0, 1))


def _indices() -> Iterator[Case]:
    rows, table = np.float32([-4, -3, -1, 0, 2, 3, 4]), np.float32(FLAT)
    for mode in ("clip", "wrap"):
        yield from (at("take", table, rows, still=(1,), mode=mode, axis=a) for a in (0, 1))
        yield at("pick", table, np.float32([-1, 3, 4]), still=(1,), mode=mode)
    yield at("Embedding", np.float32([0, 2]), table, still=(0,), input_dim=3, output_dim=4)
    yield at("one_hot", rows, still=(0,), depth=3, on_value=2.0, off_value=-1.0)
    yield from (at("slice_axis", table, axis=1, begin=b, end=e) for b, e in ((0, 1), (3, None), (-1, None), (0, 4)))
    yield at("slice", table, begin=(2, 3), end=(None, None), step=(-2, -1))
    yield at("repeat", table, repeats=1, axis=0)
    yield at("tile", table, reps=(1, 1))
    yield at("_unravel_index", np.float32([0, 11]), still=(0,), shape=(3, 4))
    yield at("_ravel_multi_index", np.float32([[0, 2], [0, 3]]), still=(0,), shape=(3, 4))
    yield from (at("diag", table, k=k) for k in (-2, 3))
    for op in ("SequenceMask", "SequenceReverse"):
        data = np.float32(np.arange(1, 13)).reshape(3, 2, 2)
        lengths = ((1, 3), (3, 3)) + (((0, 2),) if op == "SequenceMask" else ())
        for i, length in enumerate(lengths):  # the number of columns tells the cases apart
            grown = np.concatenate([data] * (i + 1), axis=2)
            yield at(op, grown, np.float32(length), still=(1,), use_sequence_length=True)


def _windows() -> Iterator[Case]:
    flat, tall = np.ones((1, 2, 4, 6), np.float32), np.float32(np.arange(24) % 5).reshape(1, 2, 3, 4)
    for kind in ("max", "avg", "sum", "lp"):
        more = {"p_value": 2} if kind == "lp" else {}
        yield at("Pooling", tall, kernel=(3, 4), pool_type=kind, **more)
        yield at("Pooling", tall, kernel=(1, 1), stride=(2, 3), pool_type=kind, **more)
        for convention in ("valid", "full"):
            yield at(
                "Pooling", flat, kernel=(2, 3), stride=(2, 3), pool_type=kind, pooling_convention=convention, **more
            )
    for counted in (False, True):
        yield at("Pooling", tall, kernel=(3, 2), pad=(1, 1), pool_type="avg", count_include_pad=counted)
    weight = np.float32(np.arange(24) % 7 - 3)
    bias = np.float32([1])
    yield at("Convolution", tall, weight.reshape(1, 2, 3, 4), bias, kernel=(3, 4), num_filter=1)
    yield at(
        "Convolution", tall, weight[:6].reshape(2, 1, 3, 1), kernel=(3, 1), num_filter=2, num_group=2, no_bias=True
    )
    yield at("Convolution", tall, weight[:4].reshape(1, 2, 2, 1), bias, kernel=(2, 1), dilate=(2, 1), num_filter=1)
    yield at("Convolution", tall, weight[:2].reshape(1, 2, 1, 1), bias, kernel=(1, 1), stride=(3, 4), num_filter=1)
    yield at("Deconvolution", tall, weight[:8].reshape(2, 1, 1, 4), kernel=(1, 4), stride=(2, 1), num_filter=1)
    yield at("UpSampling", tall, scale=1, sample_type="nearest", num_args=1)
    yield from (at("_contrib_BilinearResize2D", tall, height=h, width=w) for h, w in ((3, 4), (1, 1), (1, 8), (5, 2)))
    yield from (at("_contrib_AdaptiveAvgPooling2D", tall, output_size=s) for s in ((1, 1), (3, 4), (2, 3)))
    corners = np.float32([[[[-1, 1, -1, 1, 0]], [[-1, -1, 1, 1, 0]]]])
    yield at("BilinearSampler", tall, corners)
    yield from (at("LRN", tall, nsize=n) for n in (1, 3))
    yield at("Pad", tall, mode="constant", pad_width=(0, 0, 0, 0, 0, 1, 2, 0), constant_value=5.0)
    yield from (at("Pad", tall, mode=m, pad_width=(0, 0, 0, 0, 2, 0, 0, 2)) for m in ("edge", "reflect"))


def _norms() -> Iterator[Case]:
    one, zeros = np.ones((1,), np.float32), np.zeros((2, 3), np.float32)
    yield at("LayerNorm", np.float32([[3], [-2]]), one, 0 * one)
    yield at("InstanceNorm", np.float32([[[3]], [[-2]]]), one, 0 * one)
    yield at("L2Normalization", zeros)
    yield at("softmax", np.float32([[3], [-2]]), axis=-1)
    yield at("log_softmax", np.zeros((2, 1), np.float32), axis=-1)
    yield at("Dropout", FLAT, p=0.0)
    yield at("Dropout", FLAT, p=0.9, train=False)


def _losses() -> Iterator[Case]:
    yield from (at("MakeLoss", POINTS, normalization="valid", valid_thresh=t) for t in (0.5, 2.5, -2.5))
    scores = np.float32([[1, 0, 1], [2, 1, -1], [0, 0, 0], [-1, 1, 1]])
    for linear in (False, True):
        yield at("SVMOutput", scores, np.float32([0, 1, 2, 0]), still=(1,), use_linear=linear)
    for op in ("LinearRegressionOutput", "LogisticRegressionOutput"):
        yield at(op, LEFT, RIGHT, still=(1,))


def _boxes() -> Iterator[Case]:
    # The second box covers half of the first, the third touches both, the fourth is a point, the last one lies alone.
    boxes = np.float32([[0, 0, 2, 1], [0, 0, 1, 1], [2, 0, 3, 1], [1, 1, 1, 1], [5, 5, 6, 6]])
    yield at("_contrib_box_iou", boxes, boxes, still=(0, 1))
    rows = np.concatenate([np.float32([[0, 0.75], [0, 0.5], [1, 0.5], [1, 0.25], [0, 0]]), boxes], axis=1)
    for overlap in (0.5, 0.25):
        for least in (0.0, 0.25, 0.5):
            yield at("_contrib_box_nms", rows, overlap_thresh=overlap, valid_thresh=least)
    yield from (at("_contrib_box_nms", rows, topk=k, force_suppress=True, id_index=0) for k in (0, 1, 5, 6))
    yield from (at("_contrib_bipartite_matching", LEFT, still=(0,), threshold=t) for t in (0.5, 1.0))
    yield at("_contrib_bipartite_matching", LEFT, still=(0,), threshold=0.0, is_ascend=True)
    anchors = np.float32([[0, 0, 0.5, 1], [0, 0, 1, 1], [0.5, 0, 1, 1], [0, 0, 0.25, 1]])
    label = np.float32([[[1, 0, 0, 1, 1], [-1, -1, -1, -1, -1]]])
    scores = np.float32(np.arange(8) % 3).reshape(1, 2, 4)
    for threshold in (0.5, 0.25, 0.75, 1.0):
        yield at("_contrib_MultiBoxTarget", anchors[None], label, scores, still=(0, 1, 2), overlap_threshold=threshold)
    mined = {"negative_mining_ratio": 1, "negative_mining_thresh": 0.5, "overlap_threshold": 0.75}
    yield at("_contrib_MultiBoxTarget", anchors[None], label, scores, still=(0, 1, 2), **mined)
    chances = np.float32([[[0.5, 0.25, 0.5, 0.75], [0.5, 0.75, 0.5, 0.25]]])
    moves = np.zeros((1, 16), np.float32)
    for threshold in (0.25, 0.5, 0.75):
        for most in (0.25, 0.5):
            how = {"threshold": threshold, "nms_threshold": most}
            yield at("_contrib_MultiBoxDetection", chances, moves, anchors[None], still=(0, 1, 2), **how)
    picture = np.float32(np.arange(16)).reshape(1, 1, 4, 4)
    rois = np.float32([[0, 0, 0, 3, 3], [0, 1, 1, 1, 1], [0, 0.5, 0.5, 2.5, 2.5], [0, 3, 3, 4, 4]])
    yield at("ROIPooling", picture, rois, still=(1,), pooled_size=(2, 2), spatial_scale=1.0)
    yield at("ROIPooling", picture, rois, still=(1,), pooled_size=(1, 2), spatial_scale=0.5)
    yield at("_contrib_ROIAlign", picture, rois, still=(1,), pooled_size=(2, 2), spatial_scale=1.0, sample_ratio=1)


def _updates() -> Iterator[Case]:
    weight, grad = POINTS[::-1].copy(), POINTS
    still = (0, 1, 2, 3)
    common = {"lr": 0.5, "wd": 0.25, "rescale_grad": 0.5}
    for clip in (-1.0, 0.5, 1.25):
        yield at("sgd_update", weight, grad, still=still, clip_gradient=clip, **common)
        yield at("sgd_mom_update", weight, grad, POINTS, still=still, momentum=0.5, clip_gradient=clip, **common)
        yield at("nag_mom_update", weight, grad, POINTS, still=still, momentum=0.5, clip_gradient=clip, **common)
        yield at("signum_update", weight, grad, POINTS, still=still, momentum=0.5, clip_gradient=clip, **common)
        yield at("adam_update", weight, grad, POINTS, POINTS**2, still=still, clip_gradient=clip, **common)
        yield at("ftrl_update", weight, grad, POINTS, POINTS**2, still=still, lamda1=1.0, clip_gradient=clip, **common)
        yield at("rmsprop_update", weight, grad, POINTS**2, still=still, clip_gradient=clip, clip_weights=1.0, **common)
    yield at("signsgd_update", weight, grad, still=still, lr=0.5)
    for low, high in ((-1.0, -1.0), (5.0, -1.0), (-1.0, 2.0)):
        norms = np.float32([5]), np.float32([2])
        bounds = {"lower_bound": low, "upper_bound": high}
        yield at("lamb_update_phase2", weight, grad, *norms, still=still, lr=0.5, **bounds)
    for norms in ((0, 2), (5, 0), (0, 0)):
        given = tuple(np.float32([n]) for n in norms)
        yield at("lamb_update_phase2", weight[: -sum(norms) - 1], grad[: -sum(norms) - 1], *given, still=still, lr=0.5)


GROUPS = {
    "elementwise": list(_elementwise()),
    "reductions": list(_reductions()),
    "indices": list(_indices()),
    "windows": list(_windows()),
    "norms": list(_norms()),
    "losses": list(_losses()),
    "boxes": list(_boxes()),
    "updates": list(_updates()),
}


def record(mx: Any) -> Any:
    """What MXNet gives for every case."""
    return record_all(mx, GROUPS)
