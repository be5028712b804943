# Written by `python -m dualmx.namespace.stubs`. Generated, so its length has no bound.
"""Types of `mx.sym.contrib`."""

from collections.abc import Mapping
from typing import Any, Literal

from ..core.context import Context
from ..core.types import Axes, Floats, Shape
from .symbol import Symbol

__all__ = [
    "AdaptiveAvgPooling2D", "BatchNormWithReLU", "BilinearResize2D", "CTCLoss", "MultiBoxDetection", "MultiBoxPrior",
    "MultiBoxTarget", "ROIAlign", "SparseEmbedding", "SyncBatchNorm", "allclose", "arange_like", "bipartite_matching",
    "box_decode", "box_encode", "box_iou", "box_nms", "box_non_maximum_suppression", "ctc_loss", "div_sqrt_dim",
    "gradientmultiplier", "group_adagrad_update", "index_array", "index_copy", "interleaved_matmul_encdec_qk",
    "interleaved_matmul_encdec_valatt", "interleaved_matmul_selfatt_qk", "interleaved_matmul_selfatt_valatt",
    "quadratic", "round_ste", "sign_ste",
]  # fmt: skip

def AdaptiveAvgPooling2D(
    data: Symbol | None = None,
    output_size: Shape = (),
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Average over output_size bins per axis; bin i covers [floor(i·S/bins), ceil((i+1)·S/bins))."""

def BatchNormWithReLU(
    data: Symbol | None = None,
    gamma: Symbol | None = None,
    beta: Symbol | None = None,
    moving_mean: Symbol | None = None,
    moving_var: Symbol | None = None,
    eps: float = 0.001,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    axis: int = 1,
    cudnn_off: bool = False,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`max(BatchNorm(data), 0)`; see `BatchNorm` for inputs, parameters and shapes."""

def BilinearResize2D(
    data: Symbol | None = None,
    like: Symbol | None = None,
    height: int = 1,
    width: int = 1,
    scale_height: float | None = None,
    scale_width: float | None = None,
    mode: Literal["size", "odd_scale", "like", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up"] = "size",
    align_corners: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Resize images bilinearly."""

def CTCLoss(
    data: Symbol | None = None,
    label: Symbol | None = None,
    data_lengths: Symbol | None = None,
    label_lengths: Symbol | None = None,
    use_data_lengths: bool = False,
    use_label_lengths: bool = False,
    blank_label: Literal["first", "last"] = "first",
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`−log P(label | softmax(data))`, summed over all alignments with blanks (Graves et al. 2006)."""

def MultiBoxDetection(
    cls_prob: Symbol | None = None,
    loc_pred: Symbol | None = None,
    anchor: Symbol | None = None,
    clip: bool = True,
    threshold: float = 0.01,
    background_id: int = 0,
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    variances: Floats = (0.1, 0.1, 0.2, 0.2),
    nms_topk: int = -1,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Detections (class, score, x1, y1, x2, y2) of single-shot detection; no gradients."""

def MultiBoxPrior(
    data: Symbol | None = None,
    sizes: Floats = (1.0,),
    ratios: Floats = (1.0,),
    clip: bool = False,
    steps: Floats = (-1.0, -1.0),
    offsets: Floats = (0.5, 0.5),
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Default boxes around every pixel of a feature map, as corners relative to the image; `data` gives only its
    size.
    """

def MultiBoxTarget(
    anchor: Symbol | None = None,
    label: Symbol | None = None,
    cls_pred: Symbol | None = None,
    overlap_threshold: float = 0.5,
    ignore_label: float = -1,
    negative_mining_ratio: float = -1,
    negative_mining_thresh: float = 0.5,
    minimum_negative_samples: int = 0,
    variances: Floats = (0.1, 0.1, 0.2, 0.2),
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Training targets of single-shot detection: offsets, their mask, classes; no gradients."""

def ROIAlign(
    data: Symbol | None = None,
    rois: Symbol | None = None,
    pooled_size: Shape = ...,
    spatial_scale: float = ...,
    sample_ratio: int = -1,
    position_sensitive: bool = False,
    aligned: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Average bilinear samples of each rectangle of `rois` into a grid of `pooled_size` bins."""

def SparseEmbedding(
    data: Symbol | None = None,
    weight: Symbol | None = None,
    input_dim: int = ...,
    output_dim: int = ...,
    dtype: Literal["float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64"] = "float32",
    deterministic: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Look up rows of `weight` as `Embedding` does; kept under its old name."""

def SyncBatchNorm(
    data: Symbol | None = None,
    gamma: Symbol | None = None,
    beta: Symbol | None = None,
    moving_mean: Symbol | None = None,
    moving_var: Symbol | None = None,
    eps: float = 0.001,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    ndev: int = 1,
    key: str = "",
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`BatchNorm` over the whole batch of all devices, which share one program and so one batch; axis 1."""

def allclose(
    a: Symbol | None = None,
    b: Symbol | None = None,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """1 if |a - b| <= atol + rtol * |b| holds for every element, else 0."""

def arange_like(
    data: Symbol | None = None,
    start: float = 0.0,
    step: float = 1.0,
    repeat: int = 1,
    ctx: Context | str | None = "",
    axis: int | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Numbers start, start + step, …, each `repeat` times, in the shape of `data` or as a vector as long as `axis`."""

def bipartite_matching(
    data: Symbol | None = None,
    is_ascend: bool = False,
    threshold: float = ...,
    topk: int = -1,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Match rows and columns greedily by the best score left, while it is better than `threshold`."""

def box_decode(
    data: Symbol | None = None,
    anchors: Symbol | None = None,
    std0: float = 1.0,
    std1: float = 1.0,
    std2: float = 1.0,
    std3: float = 1.0,
    clip: float = -1.0,
    format: Literal["corner", "center"] = "center",
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Decode predictions relative to anchors into corner boxes; the inverse of `box_encode` with means of 0."""

def box_encode(
    samples: Symbol | None = None,
    matches: Symbol | None = None,
    anchors: Symbol | None = None,
    refs: Symbol | None = None,
    means: Symbol | None = None,
    stds: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Encode the matched reference boxes relative to their anchors."""

def box_iou(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    format: Literal["corner", "center"] = "corner",
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Intersection over union of every pair of boxes; no gradient."""

def box_nms(
    data: Symbol | None = None,
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
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Non-maximum suppression: of boxes that overlap by more than `overlap_thresh`, keep those of higher score."""

def box_non_maximum_suppression(
    data: Symbol | None = None,
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
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Non-maximum suppression: of boxes that overlap by more than `overlap_thresh`, keep those of higher score."""

def ctc_loss(
    data: Symbol | None = None,
    label: Symbol | None = None,
    data_lengths: Symbol | None = None,
    label_lengths: Symbol | None = None,
    use_data_lengths: bool = False,
    use_label_lengths: bool = False,
    blank_label: Literal["first", "last"] = "first",
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`−log P(label | softmax(data))`, summed over all alignments with blanks (Graves et al. 2006)."""

def div_sqrt_dim(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """x / sqrt(n), n being the length of the last axis: the scaling of dot-product attention."""

def gradientmultiplier(
    data: Symbol | None = None,
    scalar: float = 1.0,
    is_int: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The input, with derivative `scalar`; a negative one reverses gradients."""

def group_adagrad_update(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    history: Symbol | None = None,
    lr: float = ...,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    epsilon: float = 1e-05,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """AdaGrad with one history value per row: `h = h + mean(g'**2); w - lr * g' / sqrt(h + epsilon)`."""

def index_array(
    data: Symbol | None = None,
    axes: Axes = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Coordinates (int64) of every element: data (d1, …, dn) -> (d1, …, dn, n), or one per axis in `axes`."""

def index_copy(
    old_tensor: Symbol | None = None,
    index_vector: Symbol | None = None,
    new_tensor: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Return `old_tensor` (n, …) with row `index_vector[k]` replaced by `new_tensor[k]`, new_tensor (k, …)."""

def interleaved_matmul_encdec_qk(
    queries: Symbol | None = None,
    keys_values: Symbol | None = None,
    heads: int = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Attention scores q·kᵀ / √D of a decoder's queries on an encoder's keys."""

def interleaved_matmul_encdec_valatt(
    keys_values: Symbol | None = None,
    attention: Symbol | None = None,
    heads: int = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """An encoder's values weighted by the attention of a decoder."""

def interleaved_matmul_selfatt_qk(
    queries_keys_values: Symbol | None = None,
    heads: int = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Attention scores q·kᵀ / √D of self-attention; each head's queries, keys, values lie side by side."""

def interleaved_matmul_selfatt_valatt(
    queries_keys_values: Symbol | None = None,
    attention: Symbol | None = None,
    heads: int = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Values weighted by the attention of self-attention."""

def quadratic(
    data: Symbol | None = None,
    a: float = 0.0,
    b: float = 0.0,
    c: float = 0.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """a x**2 + b x + c."""

def round_ste(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Nearest integer, halves away from zero, with derivative 1 (straight-through estimator)."""

def sign_ste(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """-1, 0 or 1 by the sign of x, with derivative 1 (straight-through estimator)."""
