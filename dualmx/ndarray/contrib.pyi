# Written by `python -m dualmx.namespace.stubs`. Generated, so its length has no bound.
"""Types of `mx.nd.contrib`."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import jax
import numpy as np

from ..core.context import Context
from ..core.types import Axes, Floats, Shape
from ..namespace.composed import boolean_mask as boolean_mask
from ..namespace.contrib_updates import adamw_update as adamw_update
from ..namespace.contrib_updates import mp_adamw_update as mp_adamw_update
from ..namespace.contrib_updates import multi_adamw_update as multi_adamw_update
from ..namespace.contrib_updates import multi_lamb_update as multi_lamb_update
from ..namespace.contrib_updates import multi_mp_adamw_update as multi_mp_adamw_update
from ..namespace.contrib_updates import multi_mp_lamb_update as multi_mp_lamb_update
from ..namespace.control import cond as cond
from ..namespace.control import foreach as foreach
from ..namespace.control import while_loop as while_loop
from .array import NDArray

__all__ = [
    "AdaptiveAvgPooling2D", "BatchNormWithReLU", "BilinearResize2D", "CTCLoss", "MultiBoxDetection", "MultiBoxPrior",
    "MultiBoxTarget", "ROIAlign", "SparseEmbedding", "SyncBatchNorm", "adamw_update", "allclose", "arange_like",
    "bipartite_matching", "boolean_mask", "box_decode", "box_encode", "box_iou", "box_nms",
    "box_non_maximum_suppression", "cond", "ctc_loss", "div_sqrt_dim", "foreach", "gradientmultiplier",
    "group_adagrad_update", "index_array", "index_copy", "interleaved_matmul_encdec_qk",
    "interleaved_matmul_encdec_valatt", "interleaved_matmul_selfatt_qk", "interleaved_matmul_selfatt_valatt",
    "mp_adamw_update", "multi_adamw_update", "multi_lamb_update", "multi_mp_adamw_update", "multi_mp_lamb_update",
    "quadratic", "round_ste", "sign_ste", "while_loop",
]  # fmt: skip

_Array: TypeAlias = NDArray | np.ndarray | jax.Array

def AdaptiveAvgPooling2D(
    data: _Array, output_size: Shape = (), out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Average over output_size bins per axis; bin i covers [floor(i·S/bins), ceil((i+1)·S/bins))."""

def BatchNormWithReLU(
    data: _Array,
    gamma: _Array,
    beta: _Array,
    moving_mean: _Array,
    moving_var: _Array,
    eps: float = 0.001,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    axis: int = 1,
    cudnn_off: bool = False,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """`max(BatchNorm(data), 0)`; see `BatchNorm` for inputs, parameters and shapes."""

def BilinearResize2D(
    data: _Array,
    like: _Array | None = None,
    height: int = 1,
    width: int = 1,
    scale_height: float | None = None,
    scale_width: float | None = None,
    mode: Literal["size", "odd_scale", "like", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up"] = "size",
    align_corners: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Resize images bilinearly."""

def CTCLoss(
    data: _Array,
    label: _Array,
    data_lengths: _Array | None = None,
    label_lengths: _Array | None = None,
    use_data_lengths: bool = False,
    use_label_lengths: bool = False,
    blank_label: Literal["first", "last"] = "first",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """`−log P(label | softmax(data))`, summed over all alignments with blanks (Graves et al. 2006)."""

def MultiBoxDetection(
    cls_prob: _Array,
    loc_pred: _Array,
    anchor: _Array,
    clip: bool = True,
    threshold: float = 0.01,
    background_id: int = 0,
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    variances: Floats = (0.1, 0.1, 0.2, 0.2),
    nms_topk: int = -1,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Detections (class, score, x1, y1, x2, y2) of single-shot detection; no gradients."""

def MultiBoxPrior(
    data: _Array,
    sizes: Floats = (1.0,),
    ratios: Floats = (1.0,),
    clip: bool = False,
    steps: Floats = (-1.0, -1.0),
    offsets: Floats = (0.5, 0.5),
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Default boxes around every pixel of a feature map, as corners relative to the image; `data` gives only its
    size.
    """

def MultiBoxTarget(
    anchor: _Array,
    label: _Array,
    cls_pred: _Array,
    overlap_threshold: float = 0.5,
    ignore_label: float = -1,
    negative_mining_ratio: float = -1,
    negative_mining_thresh: float = 0.5,
    minimum_negative_samples: int = 0,
    variances: Floats = (0.1, 0.1, 0.2, 0.2),
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Training targets of single-shot detection: offsets, their mask, classes; no gradients."""

def ROIAlign(
    data: _Array,
    rois: _Array,
    pooled_size: Shape,
    spatial_scale: float,
    sample_ratio: int = -1,
    position_sensitive: bool = False,
    aligned: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Average bilinear samples of each rectangle of `rois` into a grid of `pooled_size` bins."""

def SparseEmbedding(
    data: _Array,
    weight: _Array,
    input_dim: int,
    output_dim: int,
    dtype: Literal["float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64"] = "float32",
    deterministic: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Look up rows of `weight` as `Embedding` does; kept under its old name."""

def SyncBatchNorm(
    data: _Array,
    gamma: _Array,
    beta: _Array,
    moving_mean: _Array,
    moving_var: _Array,
    eps: float = 0.001,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    ndev: int = 1,
    key: str = "",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """`BatchNorm` over the whole batch of all devices, which share one program and so one batch; axis 1."""

def allclose(
    a: _Array,
    b: _Array,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """1 if |a - b| <= atol + rtol * |b| holds for every element, else 0."""

def arange_like(
    data: _Array,
    start: float = 0.0,
    step: float = 1.0,
    repeat: int = 1,
    ctx: Context | str | None = "",
    axis: int | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Numbers start, start + step, …, each `repeat` times, in the shape of `data` or as a vector as long as `axis`."""

def bipartite_matching(
    data: _Array,
    is_ascend: bool = False,
    threshold: float = ...,
    topk: int = -1,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Match rows and columns greedily by the best score left, while it is better than `threshold`."""

def box_decode(
    data: _Array,
    anchors: _Array,
    std0: float = 1.0,
    std1: float = 1.0,
    std2: float = 1.0,
    std3: float = 1.0,
    clip: float = -1.0,
    format: Literal["corner", "center"] = "center",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Decode predictions relative to anchors into corner boxes; the inverse of `box_encode` with means of 0."""

def box_encode(
    samples: _Array,
    matches: _Array,
    anchors: _Array,
    refs: _Array,
    means: _Array,
    stds: _Array,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Encode the matched reference boxes relative to their anchors."""

def box_iou(
    lhs: _Array,
    rhs: _Array,
    format: Literal["corner", "center"] = "corner",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Intersection over union of every pair of boxes; no gradient."""

def box_nms(
    data: _Array,
    overlap_thresh: float = 0.5,
    valid_thresh: float = 0,
    topk: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = -1,
    background_id: int = -1,
    force_suppress: bool = False,
    in_format: Literal["corner", "center"] = "corner",
    out_format: Literal["corner", "center"] = "corner",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Non-maximum suppression: of boxes that overlap by more than `overlap_thresh`, keep those of higher score."""

def box_non_maximum_suppression(
    data: _Array,
    overlap_thresh: float = 0.5,
    valid_thresh: float = 0,
    topk: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = -1,
    background_id: int = -1,
    force_suppress: bool = False,
    in_format: Literal["corner", "center"] = "corner",
    out_format: Literal["corner", "center"] = "corner",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Non-maximum suppression: of boxes that overlap by more than `overlap_thresh`, keep those of higher score."""

def ctc_loss(
    data: _Array,
    label: _Array,
    data_lengths: _Array | None = None,
    label_lengths: _Array | None = None,
    use_data_lengths: bool = False,
    use_label_lengths: bool = False,
    blank_label: Literal["first", "last"] = "first",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """`−log P(label | softmax(data))`, summed over all alignments with blanks (Graves et al. 2006)."""

def div_sqrt_dim(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """x / sqrt(n), n being the length of the last axis: the scaling of dot-product attention."""

def gradientmultiplier(
    data: _Array,
    scalar: float = 1.0,
    is_int: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """The input, with derivative `scalar`; a negative one reverses gradients."""

def group_adagrad_update(
    weight: _Array,
    grad: _Array,
    history: _Array,
    lr: float,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    epsilon: float = 1e-05,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """AdaGrad with one history value per row: `h = h + mean(g'**2); w - lr * g' / sqrt(h + epsilon)`."""

def index_array(
    data: _Array, axes: Axes = None, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Coordinates (int64) of every element: data (d1, …, dn) -> (d1, …, dn, n), or one per axis in `axes`."""

def index_copy(
    old_tensor: _Array,
    index_vector: _Array,
    new_tensor: _Array,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Return `old_tensor` (n, …) with row `index_vector[k]` replaced by `new_tensor[k]`, new_tensor (k, …)."""

def interleaved_matmul_encdec_qk(
    queries: _Array,
    keys_values: _Array,
    heads: int,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Attention scores q·kᵀ / √D of a decoder's queries on an encoder's keys."""

def interleaved_matmul_encdec_valatt(
    keys_values: _Array,
    attention: _Array,
    heads: int,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """An encoder's values weighted by the attention of a decoder."""

def interleaved_matmul_selfatt_qk(
    queries_keys_values: _Array, heads: int, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Attention scores q·kᵀ / √D of self-attention; each head's queries, keys, values lie side by side."""

def interleaved_matmul_selfatt_valatt(
    queries_keys_values: _Array,
    attention: _Array,
    heads: int,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Values weighted by the attention of self-attention."""

def quadratic(
    data: _Array,
    a: float = 0.0,
    b: float = 0.0,
    c: float = 0.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """a x**2 + b x + c."""

def round_ste(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Nearest integer, halves away from zero, with derivative 1 (straight-through estimator)."""

def sign_ste(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """-1, 0 or 1 by the sign of x, with derivative 1 (straight-through estimator)."""
