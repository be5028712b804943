# Written by `python -m dualmx.namespace.stubs`. Generated, so its length has no bound.
"""Types of `mx.nd.contrib`."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import jax
import numpy as np

from ..core.argcheck import Axes, Floats, Shape
from ..core.context import Context
from ..namespace.contrib import isfinite as isfinite
from ..namespace.contrib import isinf as isinf
from ..namespace.contrib import isnan as isnan
from ..namespace.contrib import rand_zipfian as rand_zipfian
from ..namespace.contrib_updates import adamw_update as adamw_update
from ..namespace.contrib_updates import mp_adamw_update as mp_adamw_update
from ..namespace.contrib_updates import multi_adamw_update as multi_adamw_update
from ..namespace.contrib_updates import multi_lamb_update as multi_lamb_update
from ..namespace.contrib_updates import multi_mp_adamw_update as multi_mp_adamw_update
from ..namespace.contrib_updates import multi_mp_lamb_update as multi_mp_lamb_update
from ..namespace.control import cond as cond
from ..namespace.control import foreach as foreach
from ..namespace.control import while_loop as while_loop
from ..namespace.nd_functions import boolean_mask as boolean_mask
from .ndarray import NDArray

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
    "interleaved_matmul_selfatt_valatt", "isfinite", "isinf", "isnan", "mp_adamw_update", "multi_adamw_update",
    "multi_lamb_update", "multi_mp_adamw_update", "multi_mp_lamb_update", "quadratic", "quantize", "quantize_asym",
    "quantize_v2", "quantized_act", "quantized_batch_norm", "quantized_concat", "quantized_conv",
    "quantized_elemwise_add", "quantized_elemwise_mul", "quantized_embedding", "quantized_flatten",
    "quantized_fully_connected", "quantized_pooling", "quantized_rnn", "rand_zipfian", "requantize", "round_ste",
    "sharding_constraint", "sign_ste", "while_loop",
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

def DeformableConvolution(
    data: _Array,
    offset: _Array,
    weight: _Array,
    bias: _Array | None = None,
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
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Convolution whose taps are moved by `offset`, (dy, dx) for each tap and output pixel, sampled bilinearly."""

def DeformablePSROIPooling(
    data: _Array,
    rois: _Array,
    trans: _Array | None = None,
    spatial_scale: float = ...,
    output_dim: int = ...,
    group_size: int = ...,
    pooled_size: int = ...,
    part_size: int = 0,
    sample_per_part: int = 1,
    trans_std: float = 0.0,
    no_trans: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Position-sensitive pooling whose bins are moved by `trans` times `trans_std` times the region's sides."""

def ModulatedDeformableConvolution(
    data: _Array,
    offset: _Array,
    mask: _Array,
    weight: _Array,
    bias: _Array | None = None,
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
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Convolution whose taps are moved by `offset` and weighted by `mask`; pixels outside the image are 0."""

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

def MultiProposal(
    cls_prob: _Array,
    bbox_pred: _Array,
    im_info: _Array,
    rpn_pre_nms_top_n: int = 6000,
    rpn_post_nms_top_n: int = 300,
    threshold: float = 0.7,
    rpn_min_size: int = 16,
    scales: Floats = (4.0, 8.0, 16.0, 32.0),
    ratios: Floats = (0.5, 1.0, 2.0),
    feature_stride: int = 16,
    output_score: bool = False,
    iou_loss: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Propose regions of several images: move anchors by `bbox_pred`, clip them to the image, keep the best by
    suppression.
    """

def PSROIPooling(
    data: _Array,
    rois: _Array,
    spatial_scale: float,
    output_dim: int,
    pooled_size: int,
    group_size: int = 0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Average each bin of a region over the channels that belong to its position."""

def Proposal(
    cls_prob: _Array,
    bbox_pred: _Array,
    im_info: _Array,
    rpn_pre_nms_top_n: int = 6000,
    rpn_post_nms_top_n: int = 300,
    threshold: float = 0.7,
    rpn_min_size: int = 16,
    scales: Floats = (4.0, 8.0, 16.0, 32.0),
    ratios: Floats = (0.5, 1.0, 2.0),
    feature_stride: int = 16,
    output_score: bool = False,
    iou_loss: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Propose regions: move anchors by `bbox_pred`, clip them to the image, keep the best by suppression."""

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

def RROIAlign(
    data: _Array,
    rois: _Array,
    pooled_size: Shape,
    spatial_scale: float,
    sampling_ratio: int = -1,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Average bilinear samples of rotated rectangles into a grid of `pooled_size` bins."""

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
    processes: int = 1,
    exchange: str = "",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """`BatchNorm`, axis 1, by the statistics of the batches of `ndev` devices of each of some `processes` together."""

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

def backward_gradientmultiplier(
    data: _Array,
    scalar: float = 1.0,
    is_int: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """The gradient of `gradientmultiplier`: data · scalar. Shapes: any."""

def backward_hawkesll(
    ograd: _Array,
    lda: _Array,
    alpha: _Array,
    beta: _Array,
    state: _Array,
    lags: _Array,
    marks: _Array,
    valid_length: _Array,
    max_time: _Array,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """The gradients of `hawkesll`'s log likelihood with respect to lda, alpha and beta. Shapes: as `hawkesll`."""

def backward_index_copy(
    ograd: _Array,
    old_tensor: _Array,
    index_vector: _Array,
    new_tensor: _Array,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """The gradients of `index_copy` with respect to the old and the new tensor. Shapes: as `index_copy`."""

def backward_quadratic(
    ograd: _Array,
    data: _Array,
    a: float = 0.0,
    b: float = 0.0,
    c: float = 0.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """The gradient of `quadratic`: ograd · (2 · a · data + b). Shapes: ograd and data equal."""

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

def calibrate_entropy(
    hist: _Array,
    hist_edges: _Array,
    num_quantized_bins: int = 255,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """The threshold that loses least information when a symmetric histogram is quantized to `num_quantized_bins`."""

def count_sketch(
    data: _Array,
    h: _Array,
    s: _Array,
    out_dim: int,
    processing_batch_size: int = 32,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Count sketch: out[:, h[i]] += s[i] · data[:, i]."""

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

def dequantize(
    data: _Array,
    min_range: _Array,
    max_range: _Array,
    out_type: Literal["float32"] = "float32",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Integers as float32: data · t / 127.5 for int8, data · t / 255.5 for uint8, t the larger end of the range."""

def dgl_adjacency(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """The csr matrix, float32, with 1 for every edge of a graph whose edges are numbered in int64; same shape."""

def dgl_csr_neighbor_non_uniform_sample(
    *data: _Array | Sequence[_Array],
    num_args: int = 3,
    num_hops: int = 1,
    num_neighbor: int = 2,
    max_num_vertices: int = 100,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Sample like `dgl_csr_neighbor_uniform_sample`, an edge to vertex v with a chance in proportion to
    probability[v].
    """

def dgl_csr_neighbor_uniform_sample(
    *data: _Array | Sequence[_Array],
    num_args: int = 2,
    num_hops: int = 1,
    num_neighbor: int = 2,
    max_num_vertices: int = 100,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Sample the surroundings of each set of vertices: up to `num_neighbor` edges of each, with equal chances."""

def dgl_graph_compact(
    *data: _Array | Sequence[_Array],
    num_args: int = 2,
    return_mapping: bool,
    graph_sizes: Shape,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray | list[NDArray]:
    """Drop the empty rows and columns of sampled graphs: csr matrices (s, s) with edges numbered anew from 0."""

def dgl_subgraph(
    *data: _Array | Sequence[_Array],
    num_args: int = 2,
    return_mapping: bool,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray | list[NDArray]:
    """The edges among the vertices of each given set, as csr matrices (k, k) with edges numbered anew from 0."""

def div_sqrt_dim(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """x / sqrt(n), n being the length of the last axis: the scaling of dot-product attention."""

def dot_product_attention(
    query: _Array,
    key: _Array,
    value: _Array,
    causal: bool = False,
    axis: str = "",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """softmax(query · keyᵀ / √D) · value for each head."""

def edge_id(
    data: _Array, u: _Array, v: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """The values stored at (u[i], v[i]) in a csr matrix, -1 where there is none."""

def fft(
    data: _Array, compute_size: int = 128, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Discrete Fourier transform of the last axis, real and imaginary parts interleaved."""

def getnnz(
    data: _Array, axis: int | None = None, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """How many elements a csr matrix stores, explicit zeros included: in all, int64 (1,), or in each row for
    `axis=1`.
    """

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

def hawkesll(
    lda: _Array,
    alpha: _Array,
    beta: _Array,
    state: _Array,
    lags: _Array,
    marks: _Array,
    valid_length: _Array,
    max_time: _Array,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Log likelihood of Hawkes processes with exponential decay, one for each of K marks."""

def ifft(
    data: _Array, compute_size: int = 128, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Real part of the inverse transform of interleaved real and imaginary parts, times the length d."""

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

def quantize(
    data: _Array,
    min_range: _Array,
    max_range: _Array,
    out_type: Literal["int8", "uint8"] = "uint8",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Quantize with given thresholds: round(data · 127 / t) for int8, round(data · 255 / t) for uint8, saturated."""

def quantize_asym(
    data: _Array,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Quantize to uint8 with a scale and a shift: round(data · scale + shift), saturated."""

def quantize_v2(
    data: _Array,
    out_type: Literal["int8", "uint8", "auto"] = "int8",
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Quantize with thresholds known beforehand, or with the least and largest element."""

def quantized_act(
    data: _Array,
    min_data: _Array,
    max_data: _Array,
    act_type: Literal["relu", "sigmoid", "softrelu", "softsign", "tanh"],
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """max(data, 0) of quantized values; the range passes through. Only "relu" exists. Shapes: data any."""

def quantized_batch_norm(
    data: _Array,
    gamma: _Array,
    beta: _Array,
    moving_mean: _Array,
    moving_var: _Array,
    min_data: _Array,
    max_data: _Array,
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
) -> list[NDArray]:
    """Normalise quantized data by the moving statistics, and quantize to int8 over the thresholds."""

def quantized_concat(
    *data: _Array | Sequence[_Array],
    num_args: int = 0,
    dim: int = 1,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Concatenate quantized arrays on a common scale: the widest of their ranges."""

def quantized_conv(
    data: _Array,
    weight: _Array,
    bias: _Array | None = None,
    min_data: _Array | None = None,
    max_data: _Array | None = None,
    min_weight: _Array | None = None,
    max_weight: _Array | None = None,
    min_bias: _Array | None = None,
    max_bias: _Array | None = None,
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
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Convolution of 8-bit integers, summed in 32 bits; the bias is rescaled to the steps of the sums."""

def quantized_elemwise_add(
    lhs: _Array,
    rhs: _Array,
    lhs_min: _Array,
    lhs_max: _Array,
    rhs_min: _Array,
    rhs_max: _Array,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Sum of quantized arrays: 32-bit over the sum of both ranges, or 8-bit over the thresholds if they are given."""

def quantized_elemwise_mul(
    lhs: _Array,
    rhs: _Array,
    lhs_min: _Array,
    lhs_max: _Array,
    rhs_min: _Array,
    rhs_max: _Array,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
    enable_float_output: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Product of int8 arrays: 32-bit, int8 over the thresholds if they are given, or float32."""

def quantized_embedding(
    data: _Array,
    weight: _Array,
    min_weight: _Array,
    max_weight: _Array,
    input_dim: int,
    output_dim: int,
    dtype: str = "float32",
    sparse_grad: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Rows of a quantized table; ids out of range are clipped."""

def quantized_flatten(
    data: _Array,
    min_data: _Array,
    max_data: _Array,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Merge all axes but the first; the range passes through. Shapes: data (N, …) -> (N, K), (1,), (1,)."""

def quantized_fully_connected(
    data: _Array,
    weight: _Array,
    bias: _Array | None = None,
    min_data: _Array | None = None,
    max_data: _Array | None = None,
    min_weight: _Array | None = None,
    max_weight: _Array | None = None,
    min_bias: _Array | None = None,
    max_bias: _Array | None = None,
    num_hidden: int = ...,
    no_bias: bool = False,
    flatten: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """x · weightᵀ + bias of 8-bit integers, summed in 32 bits; the bias is rescaled to the steps of the sums."""

def quantized_pooling(
    data: _Array,
    min_data: _Array,
    max_data: _Array,
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
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Largest or mean element of windows of quantized images, means rounded; the range passes through."""

def quantized_rnn(
    data: _Array,
    parameters: _Array,
    state: _Array,
    state_cell: _Array | None = None,
    data_scale: _Array | None = None,
    data_shift: _Array | None = None,
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
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """A stack of LSTM layers over uint8 data, with weights rounded to 8 bits; states and results are float32."""

def requantize(
    data: _Array,
    min_range: _Array,
    max_range: _Array,
    out_type: Literal["int8", "uint8", "auto"] = "int8",
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Narrow 32-bit results to 8 bits, by known thresholds or by the largest absolute value of the data."""

def round_ste(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Nearest integer, halves away from zero, with derivative 1 (straight-through estimator)."""

def sharding_constraint(
    data: _Array,
    spec: str = "()",
    saved: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """The input itself, cut over the axes of the mesh as `spec` says; nothing changes off a mesh."""

def sign_ste(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """-1, 0 or 1 by the sign of x, with derivative 1 (straight-through estimator)."""
