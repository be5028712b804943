# Written by `python -m dualmx.namespace.stubs`. Generated, so its length has no bound.
"""Types of `mx.sym.contrib`."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ..core.argcheck import Axes, Floats, Shape
from ..core.context import Context
from ..namespace.contrib import adamw_update as adamw_update
from ..namespace.contrib import mp_adamw_update as mp_adamw_update
from ..namespace.contrib import rand_zipfian as rand_zipfian
from .control import cond as cond
from .control import foreach as foreach
from .control import while_loop as while_loop
from .symbol import Symbol

__all__ = [
    "AdaptiveAvgPooling2D", "BatchNormWithReLU", "BilinearResize2D", "CTCLoss", "DeformableConvolution",
    "DeformablePSROIPooling", "ModulatedDeformableConvolution", "MultiBoxDetection", "MultiBoxPrior", "MultiBoxTarget",
    "MultiProposal", "PSROIPooling", "Proposal", "ROIAlign", "RROIAlign", "SparseEmbedding", "SyncBatchNorm",
    "adamw_update", "allclose", "arange_like", "backward_gradientmultiplier", "backward_hawkesll",
    "backward_index_copy", "backward_quadratic", "bipartite_matching", "boolean_mask", "box_decode", "box_encode",
    "box_iou", "box_nms", "box_non_maximum_suppression", "calibrate_entropy", "cond", "count_sketch", "ctc_loss",
    "dequantize", "dgl_adjacency", "dgl_csr_neighbor_non_uniform_sample", "dgl_csr_neighbor_uniform_sample",
    "dgl_graph_compact", "dgl_subgraph", "div_sqrt_dim", "dot_product_attention", "edge_id", "fft", "foreach", "getnnz",
    "gradientmultiplier", "group_adagrad_update", "hawkesll", "ifft", "index_array", "index_copy",
    "interleaved_matmul_encdec_qk", "interleaved_matmul_encdec_valatt", "interleaved_matmul_selfatt_qk",
    "interleaved_matmul_selfatt_valatt", "mp_adamw_update", "quadratic", "quantize", "quantize_asym", "quantize_v2",
    "quantized_act", "quantized_batch_norm", "quantized_concat", "quantized_conv", "quantized_elemwise_add",
    "quantized_elemwise_mul", "quantized_embedding", "quantized_flatten", "quantized_fully_connected",
    "quantized_pooling", "quantized_rnn", "rand_zipfian", "requantize", "round_ste", "sharding_constraint", "sign_ste",
    "while_loop",
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

def DeformableConvolution(
    data: Symbol | None = None,
    offset: Symbol | None = None,
    weight: Symbol | None = None,
    bias: Symbol | None = None,
    kernel: Shape = ...,
    stride: Shape = (),
    dilate: Shape = (),
    pad: Shape = (),
    num_filter: int = ...,
    num_group: int = 1,
    num_deformable_group: int = 1,
    workspace: int = 1024,
    no_bias: bool = False,
    layout: Literal["NCW", "NCHW", "NCDHW"] | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Convolution whose taps are moved by `offset`, (dy, dx) for each tap and output pixel, sampled bilinearly."""

def DeformablePSROIPooling(
    data: Symbol | None = None,
    rois: Symbol | None = None,
    trans: Symbol | None = None,
    spatial_scale: float = ...,
    output_dim: int = ...,
    group_size: int = ...,
    pooled_size: int = ...,
    part_size: int = 0,
    sample_per_part: int = 1,
    trans_std: float = 0.0,
    no_trans: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Position-sensitive pooling whose bins are moved by `trans` times `trans_std` times the region's sides."""

def ModulatedDeformableConvolution(
    data: Symbol | None = None,
    offset: Symbol | None = None,
    mask: Symbol | None = None,
    weight: Symbol | None = None,
    bias: Symbol | None = None,
    kernel: Shape = ...,
    stride: Shape = (),
    dilate: Shape = (),
    pad: Shape = (),
    num_filter: int = ...,
    num_group: int = 1,
    num_deformable_group: int = 1,
    workspace: int = 1024,
    no_bias: bool = False,
    im2col_step: int = 64,
    layout: Literal["NCW", "NCHW", "NCDHW"] | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Convolution whose taps are moved by `offset` and weighted by `mask`; pixels outside the image are 0."""

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

def MultiProposal(
    cls_prob: Symbol | None = None,
    bbox_pred: Symbol | None = None,
    im_info: Symbol | None = None,
    rpn_pre_nms_top_n: int = 6000,
    rpn_post_nms_top_n: int = 300,
    threshold: float = 0.7,
    rpn_min_size: int = 16,
    scales: Floats = (4.0, 8.0, 16.0, 32.0),
    ratios: Floats = (0.5, 1.0, 2.0),
    feature_stride: int = 16,
    output_score: bool = False,
    iou_loss: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Propose regions of several images: move anchors by `bbox_pred`, clip them to the image, keep the best by
    suppression.
    """

def PSROIPooling(
    data: Symbol | None = None,
    rois: Symbol | None = None,
    spatial_scale: float = ...,
    output_dim: int = ...,
    pooled_size: int = ...,
    group_size: int = 0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Average each bin of a region over the channels that belong to its position."""

def Proposal(
    cls_prob: Symbol | None = None,
    bbox_pred: Symbol | None = None,
    im_info: Symbol | None = None,
    rpn_pre_nms_top_n: int = 6000,
    rpn_post_nms_top_n: int = 300,
    threshold: float = 0.7,
    rpn_min_size: int = 16,
    scales: Floats = (4.0, 8.0, 16.0, 32.0),
    ratios: Floats = (0.5, 1.0, 2.0),
    feature_stride: int = 16,
    output_score: bool = False,
    iou_loss: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Propose regions: move anchors by `bbox_pred`, clip them to the image, keep the best by suppression."""

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

def RROIAlign(
    data: Symbol | None = None,
    rois: Symbol | None = None,
    pooled_size: Shape = ...,
    spatial_scale: float = ...,
    sampling_ratio: int = -1,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Average bilinear samples of rotated rectangles into a grid of `pooled_size` bins."""

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
    processes: int = 1,
    exchange: str = "",
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`BatchNorm`, axis 1, by the statistics of the batches of `ndev` devices of each of some `processes` together."""

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

def backward_gradientmultiplier(
    data: Symbol | None = None,
    scalar: float = 1.0,
    is_int: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The gradient of `gradientmultiplier`: data · scalar. Shapes: any."""

def backward_hawkesll(
    ograd: Symbol | None = None,
    lda: Symbol | None = None,
    alpha: Symbol | None = None,
    beta: Symbol | None = None,
    state: Symbol | None = None,
    lags: Symbol | None = None,
    marks: Symbol | None = None,
    valid_length: Symbol | None = None,
    max_time: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The gradients of `hawkesll`'s log likelihood with respect to lda, alpha and beta. Shapes: as `hawkesll`."""

def backward_index_copy(
    ograd: Symbol | None = None,
    old_tensor: Symbol | None = None,
    index_vector: Symbol | None = None,
    new_tensor: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The gradients of `index_copy` with respect to the old and the new tensor. Shapes: as `index_copy`."""

def backward_quadratic(
    ograd: Symbol | None = None,
    data: Symbol | None = None,
    a: float = 0.0,
    b: float = 0.0,
    c: float = 0.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The gradient of `quadratic`: ograd · (2 · a · data + b). Shapes: ograd and data equal."""

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

def boolean_mask(
    data: Symbol | None = None,
    index: Symbol | None = None,
    axis: int = 0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Select the slices of `data` along `axis` whose element of `index` is not 0; computed at once."""

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

def calibrate_entropy(
    hist: Symbol | None = None,
    hist_edges: Symbol | None = None,
    num_quantized_bins: int = 255,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The threshold that loses least information when a symmetric histogram is quantized to `num_quantized_bins`."""

def count_sketch(
    data: Symbol | None = None,
    h: Symbol | None = None,
    s: Symbol | None = None,
    out_dim: int = ...,
    processing_batch_size: int = 32,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Count sketch: out[:, h[i]] += s[i] · data[:, i]."""

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

def dequantize(
    data: Symbol | None = None,
    min_range: Symbol | None = None,
    max_range: Symbol | None = None,
    out_type: Literal["float32"] = "float32",
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Integers as float32: data · t / 127.5 for int8, data · t / 255.5 for uint8, t the larger end of the range."""

def dgl_adjacency(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """The csr matrix, float32, with 1 for every edge of a graph whose edges are numbered in int64; same shape."""

def dgl_csr_neighbor_non_uniform_sample(
    *data: Symbol | Sequence[Symbol],
    num_args: int = 3,
    num_hops: int = 1,
    num_neighbor: int = 2,
    max_num_vertices: int = 100,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Sample like `dgl_csr_neighbor_uniform_sample`, an edge to vertex v with a chance in proportion to
    probability[v].
    """

def dgl_csr_neighbor_uniform_sample(
    *data: Symbol | Sequence[Symbol],
    num_args: int = 2,
    num_hops: int = 1,
    num_neighbor: int = 2,
    max_num_vertices: int = 100,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Sample the surroundings of each set of vertices: up to `num_neighbor` edges of each, with equal chances."""

def dgl_graph_compact(
    *data: Symbol | Sequence[Symbol],
    num_args: int = 2,
    return_mapping: bool,
    graph_sizes: Shape,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Drop the empty rows and columns of sampled graphs: csr matrices (s, s) with edges numbered anew from 0."""

def dgl_subgraph(
    *data: Symbol | Sequence[Symbol],
    num_args: int = 2,
    return_mapping: bool,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The edges among the vertices of each given set, as csr matrices (k, k) with edges numbered anew from 0."""

def div_sqrt_dim(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """x / sqrt(n), n being the length of the last axis: the scaling of dot-product attention."""

def dot_product_attention(
    query: Symbol | None = None,
    key: Symbol | None = None,
    value: Symbol | None = None,
    causal: bool = False,
    axis: str = "",
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """softmax(query · keyᵀ / √D) · value for each head."""

def edge_id(
    data: Symbol | None = None,
    u: Symbol | None = None,
    v: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The values stored at (u[i], v[i]) in a csr matrix, -1 where there is none."""

def fft(
    data: Symbol | None = None,
    compute_size: int = 128,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Discrete Fourier transform of the last axis, real and imaginary parts interleaved."""

def getnnz(
    data: Symbol | None = None,
    axis: int | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """How many elements a csr matrix stores, explicit zeros included: in all, int64 (1,), or in each row for
    `axis=1`.
    """

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

def hawkesll(
    lda: Symbol | None = None,
    alpha: Symbol | None = None,
    beta: Symbol | None = None,
    state: Symbol | None = None,
    lags: Symbol | None = None,
    marks: Symbol | None = None,
    valid_length: Symbol | None = None,
    max_time: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Log likelihood of Hawkes processes with exponential decay, one for each of K marks."""

def ifft(
    data: Symbol | None = None,
    compute_size: int = 128,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Real part of the inverse transform of interleaved real and imaginary parts, times the length d."""

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

def quantize(
    data: Symbol | None = None,
    min_range: Symbol | None = None,
    max_range: Symbol | None = None,
    out_type: Literal["int8", "uint8"] = "uint8",
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Quantize with given thresholds: round(data · 127 / t) for int8, round(data · 255 / t) for uint8, saturated."""

def quantize_asym(
    data: Symbol | None = None,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Quantize to uint8 with a scale and a shift: round(data · scale + shift), saturated."""

def quantize_v2(
    data: Symbol | None = None,
    out_type: Literal["int8", "uint8", "auto"] = "int8",
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Quantize with thresholds known beforehand, or with the least and largest element."""

def quantized_act(
    data: Symbol | None = None,
    min_data: Symbol | None = None,
    max_data: Symbol | None = None,
    act_type: Literal["relu", "sigmoid", "softrelu", "softsign", "tanh"] = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """max(data, 0) of quantized values; the range passes through. Only "relu" exists. Shapes: data any."""

def quantized_batch_norm(
    data: Symbol | None = None,
    gamma: Symbol | None = None,
    beta: Symbol | None = None,
    moving_mean: Symbol | None = None,
    moving_var: Symbol | None = None,
    min_data: Symbol | None = None,
    max_data: Symbol | None = None,
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
    """Normalise quantized data by the moving statistics, and quantize to int8 over the thresholds."""

def quantized_concat(
    *data: Symbol | Sequence[Symbol],
    num_args: int = 0,
    dim: int = 1,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Concatenate quantized arrays on a common scale: the widest of their ranges."""

def quantized_conv(
    data: Symbol | None = None,
    weight: Symbol | None = None,
    bias: Symbol | None = None,
    min_data: Symbol | None = None,
    max_data: Symbol | None = None,
    min_weight: Symbol | None = None,
    max_weight: Symbol | None = None,
    min_bias: Symbol | None = None,
    max_bias: Symbol | None = None,
    kernel: Shape = ...,
    stride: Shape = (),
    dilate: Shape = (),
    pad: Shape = (),
    num_filter: int = ...,
    num_group: int = 1,
    workspace: int = 1024,
    no_bias: bool = False,
    cudnn_tune: Literal["off", "limited_workspace", "fastest"] | None = None,
    cudnn_off: bool = False,
    layout: Literal["NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC"] | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Convolution of 8-bit integers, summed in 32 bits; the bias is rescaled to the steps of the sums."""

def quantized_elemwise_add(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    lhs_min: Symbol | None = None,
    lhs_max: Symbol | None = None,
    rhs_min: Symbol | None = None,
    rhs_max: Symbol | None = None,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Sum of quantized arrays: 32-bit over the sum of both ranges, or 8-bit over the thresholds if they are given."""

def quantized_elemwise_mul(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    lhs_min: Symbol | None = None,
    lhs_max: Symbol | None = None,
    rhs_min: Symbol | None = None,
    rhs_max: Symbol | None = None,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
    enable_float_output: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Product of int8 arrays: 32-bit, int8 over the thresholds if they are given, or float32."""

def quantized_embedding(
    data: Symbol | None = None,
    weight: Symbol | None = None,
    min_weight: Symbol | None = None,
    max_weight: Symbol | None = None,
    input_dim: int = ...,
    output_dim: int = ...,
    dtype: str = "float32",
    sparse_grad: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Rows of a quantized table; ids out of range are clipped."""

def quantized_flatten(
    data: Symbol | None = None,
    min_data: Symbol | None = None,
    max_data: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Merge all axes but the first; the range passes through. Shapes: data (N, …) -> (N, K), (1,), (1,)."""

def quantized_fully_connected(
    data: Symbol | None = None,
    weight: Symbol | None = None,
    bias: Symbol | None = None,
    min_data: Symbol | None = None,
    max_data: Symbol | None = None,
    min_weight: Symbol | None = None,
    max_weight: Symbol | None = None,
    min_bias: Symbol | None = None,
    max_bias: Symbol | None = None,
    num_hidden: int = ...,
    no_bias: bool = False,
    flatten: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """x · weightᵀ + bias of 8-bit integers, summed in 32 bits; the bias is rescaled to the steps of the sums."""

def quantized_pooling(
    data: Symbol | None = None,
    min_data: Symbol | None = None,
    max_data: Symbol | None = None,
    kernel: Shape = (),
    pool_type: Literal["max", "avg", "sum", "lp"] = "max",
    global_pool: bool = False,
    cudnn_off: bool = False,
    pooling_convention: Literal["valid", "full", "same"] = "valid",
    stride: Shape = (),
    pad: Shape = (),
    p_value: int | None = None,
    count_include_pad: bool | None = None,
    layout: Literal["NCHW"] | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Largest or mean element of windows of quantized images, means rounded; the range passes through."""

def quantized_rnn(
    data: Symbol | None = None,
    parameters: Symbol | None = None,
    state: Symbol | None = None,
    state_cell: Symbol | None = None,
    data_scale: Symbol | None = None,
    data_shift: Symbol | None = None,
    state_size: int = ...,
    num_layers: int = ...,
    bidirectional: bool = False,
    mode: Literal["rnn_relu", "rnn_tanh", "lstm", "gru"] = ...,
    p: float = 0.0,
    state_outputs: bool = False,
    projection_size: int | None = None,
    lstm_state_clip_min: float | None = None,
    lstm_state_clip_max: float | None = None,
    lstm_state_clip_nan: bool = False,
    use_sequence_length: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """A stack of LSTM layers over uint8 data, with weights rounded to 8 bits; states and results are float32."""

def requantize(
    data: Symbol | None = None,
    min_range: Symbol | None = None,
    max_range: Symbol | None = None,
    out_type: Literal["int8", "uint8", "auto"] = "int8",
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Narrow 32-bit results to 8 bits, by known thresholds or by the largest absolute value of the data."""

def round_ste(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Nearest integer, halves away from zero, with derivative 1 (straight-through estimator)."""

def sharding_constraint(
    data: Symbol | None = None,
    spec: str = "()",
    saved: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The input itself, cut over the axes of the mesh as `spec` says; nothing changes off a mesh."""

def sign_ste(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """-1, 0 or 1 by the sign of x, with derivative 1 (straight-through estimator)."""
