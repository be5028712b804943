# Written by `python -m dualmx.namespace.stubs`. Generated, so its length has no bound.
"""Types of `mx.nd`."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import jax
import numpy as np

from ..core.argcheck import Axes, DType, Floats, Holes, Shape
from ..core.context import Context
from ..namespace.nd_functions import CachedOp as CachedOp
from ..namespace.nd_functions import Custom as Custom
from ..namespace.nd_functions import get_oshape_of_gather_nd_op as get_oshape_of_gather_nd_op
from ..namespace.nd_functions import histogram as histogram
from ..namespace.nd_functions import imdecode as imdecode
from ..namespace.nd_functions import split_v2 as split_v2
from .ndarray import NDArray

__all__ = [
    "Activation", "BatchNorm", "BatchNorm_v1", "BilinearSampler", "BlockGrad", "CTCLoss", "CachedOp", "Cast", "Concat",
    "Convolution", "Convolution_v1", "Correlation", "Crop", "Custom", "Deconvolution", "Dropout", "ElementWiseSum",
    "Embedding", "Flatten", "FullyConnected", "GridGenerator", "GroupNorm", "IdentityAttachKLSparseReg", "InstanceNorm",
    "L2Normalization", "LRN", "LayerNorm", "LeakyReLU", "LinearRegressionOutput", "LogisticRegressionOutput",
    "MAERegressionOutput", "MakeLoss", "Pad", "Pooling", "Pooling_v1", "RNN", "ROIPooling", "Reshape", "SVMOutput",
    "SequenceLast", "SequenceMask", "SequenceReverse", "SliceChannel", "Softmax", "SoftmaxActivation", "SoftmaxOutput",
    "SpatialTransformer", "SwapAxis", "UpSampling", "abs", "adam_update", "add", "add_n", "all_finite", "amp_cast",
    "amp_multicast", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "argmax", "argmax_channel",
    "argmin", "argsort", "batch_dot", "batch_take", "broadcast_add", "broadcast_axes", "broadcast_axis",
    "broadcast_div", "broadcast_equal", "broadcast_greater", "broadcast_greater_equal", "broadcast_hypot",
    "broadcast_lesser", "broadcast_lesser_equal", "broadcast_like", "broadcast_logical_and", "broadcast_logical_or",
    "broadcast_logical_xor", "broadcast_maximum", "broadcast_minimum", "broadcast_minus", "broadcast_mod",
    "broadcast_mul", "broadcast_not_equal", "broadcast_plus", "broadcast_power", "broadcast_sub", "broadcast_to",
    "cast", "cast_storage", "cbrt", "ceil", "choose_element_0index", "clip", "col2im", "concat", "cos", "cosh", "crop",
    "ctc_loss", "cumsum", "degrees", "depth_to_space", "diag", "divide", "dot", "elemwise_add", "elemwise_div",
    "elemwise_mul", "elemwise_sub", "equal", "erf", "erfinv", "exp", "expand_dims", "expm1", "fill_element_0index",
    "fix", "flatten", "flip", "floor", "ftml_update", "ftrl_update", "gamma", "gammaln", "gather_nd",
    "get_oshape_of_gather_nd_op", "greater", "greater_equal", "hard_sigmoid", "histogram", "hypot", "identity",
    "im2col", "imdecode", "khatri_rao", "lamb_update_phase1", "lamb_update_phase2", "lesser", "lesser_equal",
    "linalg_det", "linalg_extractdiag", "linalg_extracttrian", "linalg_gelqf", "linalg_gemm", "linalg_gemm2",
    "linalg_inverse", "linalg_makediag", "linalg_maketrian", "linalg_potrf", "linalg_potri", "linalg_slogdet",
    "linalg_sumlogdiag", "linalg_syrk", "linalg_trmm", "linalg_trsm", "log", "log10", "log1p", "log2", "log_softmax",
    "logical_and", "logical_not", "logical_or", "logical_xor", "make_loss", "max", "max_axis", "maximum", "mean", "min",
    "min_axis", "minimum", "modulo", "moments", "mp_lamb_update_phase1", "mp_lamb_update_phase2", "mp_nag_mom_update",
    "mp_sgd_mom_update", "mp_sgd_update", "multi_all_finite", "multi_lars", "multi_mp_sgd_mom_update",
    "multi_mp_sgd_update", "multi_sgd_mom_update", "multi_sgd_update", "multi_sum_sq", "multiply", "nag_mom_update",
    "nanprod", "nansum", "negative", "norm", "normal", "not_equal", "one_hot", "ones_like", "pad", "pick", "power",
    "preloaded_multi_mp_sgd_mom_update", "preloaded_multi_mp_sgd_update", "preloaded_multi_sgd_mom_update",
    "preloaded_multi_sgd_update", "prod", "radians", "random_exponential", "random_gamma",
    "random_generalized_negative_binomial", "random_negative_binomial", "random_normal", "random_pdf_dirichlet",
    "random_pdf_exponential", "random_pdf_gamma", "random_pdf_generalized_negative_binomial",
    "random_pdf_negative_binomial", "random_pdf_normal", "random_pdf_poisson", "random_pdf_uniform", "random_poisson",
    "random_randint", "random_uniform", "ravel_multi_index", "rcbrt", "reciprocal", "relu", "repeat", "reset_arrays",
    "reshape", "reshape_like", "reverse", "rint", "rmsprop_update", "rmspropalex_update", "round", "rsqrt",
    "sample_exponential", "sample_gamma", "sample_generalized_negative_binomial", "sample_multinomial",
    "sample_negative_binomial", "sample_normal", "sample_poisson", "sample_uniform", "scatter_nd", "sgd_mom_update",
    "sgd_update", "shape_array", "shuffle", "sigmoid", "sign", "signsgd_update", "signum_update", "sin", "sinh",
    "size_array", "slice", "slice_axis", "slice_like", "smooth_l1", "softmax", "softmax_cross_entropy", "softmin",
    "softsign", "sort", "space_to_depth", "split", "split_v2", "sqrt", "square", "squeeze", "stack", "stop_gradient",
    "subtract", "sum", "sum_axis", "swapaxes", "take", "tan", "tanh", "tile", "topk", "transpose", "true_divide",
    "trunc", "uniform", "unravel_index", "where", "zeros_like",
]  # fmt: skip

_Array: TypeAlias = NDArray | np.ndarray | jax.Array

def Activation(
    data: _Array,
    act_type: Literal["relu", "sigmoid", "tanh", "softrelu", "softsign", "log_sigmoid", "mish"],
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Apply an activation function to each element."""

def BatchNorm(
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
    """`(x − mean) / √(var + eps) · gamma + beta` per channel (Ioffe & Szegedy 2015)."""

def BatchNorm_v1(
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
    """`(x − mean) / √(var + eps) · gamma + beta` per channel (Ioffe & Szegedy 2015)."""

def BilinearSampler(
    data: _Array,
    grid: _Array,
    cudnn_off: bool | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Read images at the positions of `grid`, between pixels bilinearly; 0 outside the image."""

def BlockGrad(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """The input, with derivative 0."""

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

def Cast(
    data: _Array, dtype: DType, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Convert the elements to `dtype`; floats truncate toward zero when they become integers."""

def Concat(
    *args: _Array | Sequence[_Array],
    num_args: int = 0,
    dim: int = 1,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Join the inputs along axis `dim`, along which their lengths add up; all other lengths are equal."""

def Convolution(
    data: _Array,
    weight: _Array,
    bias: _Array | None = None,
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
) -> NDArray:
    """Cross-correlation plus bias: `y[n,o,i] = b[o] + Σ_{c,k} w[o,c,k] · x[n, c, i·stride + k·dilate − pad]`."""

def Convolution_v1(
    data: _Array,
    weight: _Array,
    bias: _Array | None = None,
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
) -> NDArray:
    """Cross-correlation plus bias: `y[n,o,i] = b[o] + Σ_{c,k} w[o,c,k] · x[n, c, i·stride + k·dilate − pad]`."""

def Correlation(
    data1: _Array,
    data2: _Array,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Compare patches of `data1` with patches of `data2` displaced by up to `max_displacement` pixels."""

def Crop(
    *args: _Array | Sequence[_Array],
    num_args: int = 0,
    offset: Shape = (0, 0),
    h_w: Shape = (0, 0),
    center_crop: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Cut height and width of `args[0]` (n, c, h, w) to `h_w`, or to those of a second input."""

def Deconvolution(
    data: _Array,
    weight: _Array,
    bias: _Array | None = None,
    kernel: Shape = ...,
    stride: Shape = (),
    dilate: Shape = (),
    pad: Shape = (),
    adj: Shape = (),
    target_shape: Shape = (),
    num_filter: int = ...,
    num_group: int = 1,
    workspace: int = 512,
    no_bias: bool = True,
    cudnn_tune: Literal["off", "limited_workspace", "fastest"] | None = None,
    cudnn_off: bool = False,
    layout: Literal["NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC"] | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Transposed convolution, the adjoint of `Convolution` with respect to its data."""

def Dropout(
    data: _Array,
    p: float = 0.5,
    mode: Literal["training", "always"] = "training",
    axes: Shape = (),
    cudnn_off: bool | None = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Zero each element with probability p and scale the others by 1/(1 − p) (Srivastava et al. 2014)."""

def ElementWiseSum(
    *args: _Array | Sequence[_Array],
    num_args: int = 0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Sum of any number of arrays of one shape and dtype: args[0] + args[1] + ..."""

def Embedding(
    data: _Array,
    weight: _Array,
    input_dim: int,
    output_dim: int,
    dtype: Literal["float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64"] = "float32",
    sparse_grad: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Look up rows of `weight`: data (…) of ids, weight (input_dim, output_dim) -> (…, output_dim)."""

def Flatten(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Keep axis 0 and merge all others: (n, d1, d2, …) -> (n, d1·d2·…); a 1-d array becomes (n, 1)."""

def FullyConnected(
    data: _Array,
    weight: _Array,
    bias: _Array | None = None,
    num_hidden: int = ...,
    no_bias: bool = False,
    flatten: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Affine map `y = x · weightᵀ + bias`."""

def GridGenerator(
    data: _Array,
    transform_type: Literal["affine", "warp"],
    target_shape: Shape = (0, 0),
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Make the sampling grid (N, 2, H, W), x then y in [-1, 1], that `BilinearSampler` reads."""

def GroupNorm(
    data: _Array,
    gamma: _Array,
    beta: _Array,
    num_groups: int = 1,
    eps: float = 1e-05,
    output_mean_var: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """`(x − mean) / √(var + eps) · gamma + beta` with statistics per sample and group of channels (Wu & He 2018)."""

def IdentityAttachKLSparseReg(
    data: _Array,
    moving_avg: _Array,
    sparseness_target: float = 0.1,
    penalty: float = 0.001,
    momentum: float = 0.9,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """The data unchanged; its gradient grows by that of a divergence which draws mean activations to a target."""

def InstanceNorm(
    data: _Array,
    gamma: _Array,
    beta: _Array,
    eps: float = 0.001,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """`(x − mean) / √(var + eps) · gamma + beta` with statistics per sample and channel (Ulyanov et al. 2016)."""

def L2Normalization(
    data: _Array,
    eps: float = 1e-10,
    mode: Literal["channel", "instance", "spatial"] = "instance",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """`x / √(Σ x² + eps)`, summing over all axes but the first ("instance"), axis 1, or axes 2 and up ("spatial")."""

def LRN(
    data: _Array,
    alpha: float = 0.0001,
    beta: float = 0.75,
    knorm: float = 2.0,
    nsize: int = ...,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Local response normalization `x · (knorm + alpha/nsize · Σ x²)^−beta` over `nsize` neighbouring channels
    (odd).
    """

def LayerNorm(
    data: _Array,
    gamma: _Array,
    beta: _Array,
    axis: int = -1,
    eps: float = 1e-05,
    output_mean_var: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """`(x − mean) / √(var + eps) · gamma + beta` with statistics along `axis` (Ba et al. 2016)."""

def LeakyReLU(
    data: _Array,
    gamma: _Array | None = None,
    act_type: Literal["leaky", "prelu", "elu", "selu", "gelu", "rrelu"] = "leaky",
    slope: float = 0.25,
    lower_bound: float = 0.125,
    upper_bound: float = 0.334,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Rectifiers that let some of the negative side through."""

def LinearRegressionOutput(
    data: _Array,
    label: _Array,
    grad_scale: float = 1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """The data forward; backward `(data − label) · grad_scale / outputs per sample`, whatever the head gradient."""

def LogisticRegressionOutput(
    data: _Array,
    label: _Array,
    grad_scale: float = 1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """`sigmoid(data)` forward; backward `(sigmoid(data) − label) · grad_scale / outputs per sample`."""

def MAERegressionOutput(
    data: _Array,
    label: _Array,
    grad_scale: float = 1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """The data forward; backward `sign(data − label) · grad_scale / outputs per sample`, whatever the head gradient."""

def MakeLoss(
    data: _Array,
    grad_scale: float = 1.0,
    valid_thresh: float = 0.0,
    normalization: Literal["null", "batch", "valid"] = "null",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """The data forward; backward `grad_scale / z` for each element, whatever the head gradient."""

def Pad(
    data: _Array,
    mode: Literal["constant", "edge", "reflect"],
    pad_width: Shape,
    constant_value: float = 0.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Widen every axis i by `pad_width[2·i]` elements before and `pad_width[2·i+1]` after."""

def Pooling(
    data: _Array,
    kernel: Shape = (),
    pool_type: Literal["max", "avg", "sum", "lp"] = "max",
    global_pool: bool = False,
    cudnn_off: bool = False,
    pooling_convention: Literal["valid", "full", "same"] = "valid",
    stride: Shape = (),
    pad: Shape = (),
    p_value: int | None = None,
    count_include_pad: bool | None = None,
    layout: Literal["NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC"] | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Reduce windows of the spatial axes by their maximum, mean, sum or `(Σ x^p)^(1/p)` ("lp", signed as written)."""

def Pooling_v1(
    data: _Array,
    kernel: Shape = (),
    pool_type: Literal["max", "avg", "sum", "lp"] = "max",
    global_pool: bool = False,
    cudnn_off: bool = False,
    pooling_convention: Literal["valid", "full", "same"] = "valid",
    stride: Shape = (),
    pad: Shape = (),
    p_value: int | None = None,
    count_include_pad: bool | None = None,
    layout: Literal["NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC"] | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Reduce windows of the spatial axes by their maximum, mean, sum or `(Σ x^p)^(1/p)` ("lp", signed as written)."""

def RNN(
    data: _Array,
    parameters: _Array,
    state: _Array,
    state_cell: _Array | None = None,
    sequence_length: _Array | None = None,
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
    """A stack of recurrent layers over a whole sequence."""

def ROIPooling(
    data: _Array,
    rois: _Array,
    pooled_size: Shape,
    spatial_scale: float,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Max-pool each rectangle of `rois` into a grid of `pooled_size` bins."""

def Reshape(
    data: _Array,
    shape: Shape = (),
    reverse: bool = False,
    target_shape: Shape = (),
    keep_highest: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Give `data` a new shape of as many elements; dtype of `data`."""

def SVMOutput(
    data: _Array,
    label: _Array,
    margin: float = 1.0,
    regularization_coefficient: float = 1.0,
    use_linear: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """The data forward; backward the gradient of one-versus-all hinge losses, whatever the head gradient."""

def SequenceLast(
    data: _Array,
    sequence_length: _Array | None = None,
    use_sequence_length: bool = False,
    axis: int = 0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """The last element of each sequence (at length − 1, or the very last without lengths)."""

def SequenceMask(
    data: _Array,
    sequence_length: _Array | None = None,
    use_sequence_length: bool = False,
    value: float = 0.0,
    axis: int = 0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Replace the elements behind each sequence's length by `value`; the identity without lengths."""

def SequenceReverse(
    data: _Array,
    sequence_length: _Array | None = None,
    use_sequence_length: bool = False,
    axis: int = 0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Reverse each sequence within its length; elements behind the length stay."""

def SliceChannel(
    data: _Array,
    num_outputs: int,
    axis: int = 1,
    squeeze_axis: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray | list[NDArray]:
    """Split `data` along `axis` into `num_outputs` parts of equal length; `squeeze_axis` drops that axis."""

def Softmax(
    data: _Array,
    label: _Array,
    grad_scale: float = 1.0,
    ignore_label: float = -1.0,
    multi_output: bool = False,
    use_ignore: bool = False,
    preserve_shape: bool = False,
    normalization: Literal["null", "batch", "valid"] = "null",
    out_grad: bool = False,
    smooth_alpha: float = 0.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Softmax forward; backward the gradient of its cross entropy with the label, whatever the head gradient."""

def SoftmaxActivation(
    data: _Array,
    mode: Literal["instance", "channel"] = "instance",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Softmax over the last axis ("instance") or over axis 1 ("channel"). Shapes: any, kept."""

def SoftmaxOutput(
    data: _Array,
    label: _Array,
    grad_scale: float = 1.0,
    ignore_label: float = -1.0,
    multi_output: bool = False,
    use_ignore: bool = False,
    preserve_shape: bool = False,
    normalization: Literal["null", "batch", "valid"] = "null",
    out_grad: bool = False,
    smooth_alpha: float = 0.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Softmax forward; backward the gradient of its cross entropy with the label, whatever the head gradient."""

def SpatialTransformer(
    data: _Array,
    loc: _Array,
    target_shape: Shape = (0, 0),
    transform_type: Literal["affine"] = ...,
    sampler_type: Literal["bilinear"] = ...,
    cudnn_off: bool | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Sample images through affine maps: `BilinearSampler(data, GridGenerator(loc, "affine", target_shape))`."""

def SwapAxis(
    data: _Array, dim1: int = 0, dim2: int = 0, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Exchange the axes `dim1` and `dim2`."""

def UpSampling(
    *data: _Array | Sequence[_Array],
    scale: int,
    num_filter: int = 0,
    sample_type: Literal["nearest", "bilinear"],
    multi_input_mode: Literal["concat", "sum"] = "concat",
    num_args: int = 0,
    workspace: int = 512,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Enlarge images by `scale`."""

def abs(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """|x|; derivative sign(x), 0 at 0."""

def adam_update(
    weight: _Array,
    grad: _Array,
    mean: _Array,
    var: _Array,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-08,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Adam with coupled decay: `w - lr * m / (sqrt(v) + epsilon)`; the caller folds bias correction into `lr`."""

def add(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `add` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def add_n(
    *args: _Array | Sequence[_Array],
    num_args: int = 0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Sum of any number of arrays of one shape and dtype: args[0] + args[1] + ..."""

def all_finite(
    data: _Array, init_output: bool = True, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """1 if no element is infinite or NaN, else 0, as float32 of shape (1,)."""

def amp_cast(
    data: _Array, dtype: DType, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Convert floating-point data to `dtype` and leave integers alone; inserted by mixed precision."""

def amp_multicast(
    *data: _Array | Sequence[_Array],
    num_outputs: int,
    cast_narrow: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray | list[NDArray]:
    """Convert floating-point inputs to their widest dtype, or the narrowest with `cast_narrow`; integers stay."""

def arccos(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Inverse cosine in radians, within [0, pi]."""

def arccosh(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Inverse hyperbolic cosine of x; nan below 1."""

def arcsin(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Inverse sine in radians, within [-pi/2, pi/2]."""

def arcsinh(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Inverse hyperbolic sine of x."""

def arctan(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Inverse tangent in radians, within [-pi/2, pi/2]."""

def arctanh(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Inverse hyperbolic tangent of x; nan outside [-1, 1]."""

def argmax(
    data: _Array,
    axis: int | None = None,
    keepdims: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Position of the largest element along `axis`, the first one if several tie."""

def argmax_channel(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Position of the largest element along axis 1, the first one if several tie."""

def argmin(
    data: _Array,
    axis: int | None = None,
    keepdims: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Position of the smallest element along `axis`, the first one if several tie."""

def argsort(
    data: _Array,
    axis: int | None = -1,
    is_ascend: bool = True,
    dtype: Literal["float32", "float16", "float64", "int32", "int64", "uint8"] = "float32",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Positions, as `dtype`, that sort along `axis` (of the flattened array without `axis`); equal elements keep
    their order.
    """

def batch_dot(
    lhs: _Array,
    rhs: _Array,
    transpose_a: bool = False,
    transpose_b: bool = False,
    forward_stype: Literal["default", "csr", "row_sparse"] | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Matrix products of two stacks: (b…, m, k) · (b…, k, n) -> (b…, m, n), each factor transposed if so asked."""

def batch_take(
    a: _Array, indices: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Read one element of every row: `out[i] = a[i, indices[i]]`; a (…, n), indices as many as rows, clipped."""

def broadcast_add(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """lhs + rhs."""

def broadcast_axes(
    data: _Array,
    axis: Shape = (),
    size: Shape = (),
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Repeat `data` along the axes `axis`, which must have length 1, `size` times each."""

def broadcast_axis(
    data: _Array,
    axis: Shape = (),
    size: Shape = (),
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Repeat `data` along the axes `axis`, which must have length 1, `size` times each."""

def broadcast_div(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """a / b; integers truncate toward zero, and over 0 are what an infinite result becomes."""

def broadcast_equal(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """1 where lhs == rhs, 0 elsewhere, in the dtype of the operands; derivative 0."""

def broadcast_greater(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """1 where lhs > rhs, 0 elsewhere, in the dtype of the operands; derivative 0."""

def broadcast_greater_equal(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """1 where lhs >= rhs, 0 elsewhere, in the dtype of the operands; derivative 0."""

def broadcast_hypot(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """sqrt(a**2 + b**2) without overflow; integers truncate."""

def broadcast_lesser(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """1 where lhs < rhs, 0 elsewhere, in the dtype of the operands; derivative 0."""

def broadcast_lesser_equal(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """1 where lhs <= rhs, 0 elsewhere, in the dtype of the operands; derivative 0."""

def broadcast_like(
    lhs: _Array,
    rhs: _Array,
    lhs_axes: Axes = None,
    rhs_axes: Axes = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Repeat axes of length 1 of `lhs` as in `rhs`: all, or, given both, `lhs_axes` to the lengths of `rhs_axes`."""

def broadcast_logical_and(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """1 where lhs and rhs are both other than 0, 0 elsewhere, in the dtype of the operands; derivative 0."""

def broadcast_logical_or(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """1 where lhs or rhs is other than 0, 0 elsewhere, in the dtype of the operands; derivative 0."""

def broadcast_logical_xor(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """1 where exactly one of lhs and rhs is other than 0, 0 elsewhere, in the dtype of the operands; derivative 0."""

def broadcast_maximum(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """The larger of lhs and rhs; ties give the derivative to lhs."""

def broadcast_minimum(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """The smaller of lhs and rhs; ties give the derivative to lhs."""

def broadcast_minus(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """lhs - rhs."""

def broadcast_mod(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """a - b * floor(a / b), with the sign of b; 0 where b is 0."""

def broadcast_mul(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """lhs * rhs."""

def broadcast_not_equal(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """1 where lhs != rhs, 0 elsewhere, in the dtype of the operands; derivative 0."""

def broadcast_plus(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """lhs + rhs."""

def broadcast_power(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """a ** b; integers go through float64 and truncate."""

def broadcast_sub(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """lhs - rhs."""

def broadcast_to(
    data: _Array, shape: Shape = (), out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Repeat axes of length 1 so that the result has `shape`; a 0 in `shape` keeps the length of the input."""

def cast(
    data: _Array, dtype: DType, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Convert the elements to `dtype`; floats truncate toward zero when they become integers."""

def cast_storage(
    data: _Array,
    stype: Literal["default", "row_sparse", "csr"],
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """The same values in the storage type `stype`; from one sparse type to the other by way of the default one."""

def cbrt(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Real cube root of x."""

def ceil(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Smallest integer not below x; derivative 0."""

def choose_element_0index(
    data: _Array,
    index: _Array,
    axis: int | None = -1,
    keepdims: bool = False,
    mode: Literal["clip", "wrap"] = "clip",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Read one element along `axis` for every position of the other axes: data (m, n), index (m,) -> (m,)."""

def clip(
    data: _Array, a_min: float, a_max: float, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Limit the elements to [a_min, a_max]: min(max(x, a_min), a_max); derivative 1 within, bounds included."""

def col2im(
    data: _Array,
    output_size: Shape,
    kernel: Shape,
    stride: Shape = (),
    dilate: Shape = (),
    pad: Shape = (),
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Add columns back to the places they come from: the transpose of `im2col`."""

def concat(
    *args: _Array | Sequence[_Array],
    num_args: int = 0,
    dim: int = 1,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Join the inputs along axis `dim`, along which their lengths add up; all other lengths are equal."""

def cos(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Cosine of x in radians."""

def cosh(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Hyperbolic cosine of x."""

def crop(
    data: _Array,
    begin: Holes,
    end: Holes,
    step: Holes = (),
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Cut out `data[begin[0]:end[0]:step[0], …]` with Python's slice rules; `None` is open, later axes are whole."""

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

def cumsum(
    a: _Array,
    axis: int | None = None,
    dtype: DType | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Running sum along `axis`, or along the flattened array if `axis` is None."""

def degrees(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """x radians in degrees: x * 180 / pi."""

def depth_to_space(
    data: _Array, block_size: int, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Move channels into blocks of pixels: (n, b·b·c, h, w) -> (n, c, h·b, w·b), `b` being `block_size`."""

def diag(
    data: _Array,
    k: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Read the `k`-th diagonal, or make a matrix from it."""

def divide(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `divide` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def dot(
    lhs: _Array,
    rhs: _Array,
    transpose_a: bool = False,
    transpose_b: bool = False,
    forward_stype: Literal["default", "csr", "row_sparse"] | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Sum of products over the last axis of `lhs` and the first of `rhs`."""

def elemwise_add(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """lhs + rhs."""

def elemwise_div(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """a / b; integers truncate toward zero, and over 0 are what an infinite result becomes."""

def elemwise_mul(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """lhs * rhs."""

def elemwise_sub(
    lhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """lhs - rhs."""

def equal(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `equal` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def erf(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Error function: 2 / sqrt(pi) * integral of exp(-t**2) from 0 to x."""

def erfinv(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Inverse of the error function on (-1, 1)."""

def exp(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """e ** x."""

def expand_dims(
    data: _Array, axis: int, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Insert an axis of length 1 at position `axis` of the result: (2, 3) with axis=-1 -> (2, 3, 1)."""

def expm1(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """e ** x - 1, exact near 0."""

def fill_element_0index(
    lhs: _Array, mhs: _Array, rhs: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Write one element of every row: `out[i, rhs[i]] = mhs[i]`, the rest as in `lhs`; lhs (m, n), mhs and rhs (m,)."""

def fix(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Nearest integer toward zero; derivative 0."""

def flatten(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Keep axis 0 and merge all others: (n, d1, d2, …) -> (n, d1·d2·…); a 1-d array becomes (n, 1)."""

def flip(data: _Array, axis: Shape, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Reverse the order of elements along every axis in `axis`; an axis named twice stays as it is."""

def floor(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Largest integer not above x; derivative 0."""

def ftml_update(
    weight: _Array,
    grad: _Array,
    d: _Array,
    v: _Array,
    z: _Array,
    lr: float,
    beta1: float = 0.6,
    beta2: float = 0.999,
    epsilon: float = 1e-08,
    t: int = ...,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_grad: float = -1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Follow the moving leader (Zheng & Kwok, 2017) with coupled decay; `t` counts updates from 1. Shapes: all
    equal.
    """

def ftrl_update(
    weight: _Array,
    grad: _Array,
    z: _Array,
    n: _Array,
    lr: float,
    lamda1: float = 0.01,
    beta: float = 1.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Follow the regularised leader (McMahan et al., 2013); weights with `|z| <= lamda1` become 0. Shapes: all
    equal.
    """

def gamma(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Gamma function, (x - 1)! for whole x."""

def gammaln(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """log |gamma(x)|."""

def gather_nd(
    data: _Array, indices: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Read points: column k of `indices` holds the coordinates of point k along the first axes of `data`."""

def greater(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `greater` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def greater_equal(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `greater_equal` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def hard_sigmoid(
    data: _Array,
    alpha: float = 0.2,
    beta: float = 0.5,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Piecewise linear sigmoid: min(max(alpha * x + beta, 0), 1); derivative alpha strictly inside, else 0."""

def hypot(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `hypot` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def identity(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """The input itself."""

def im2col(
    data: _Array,
    kernel: Shape,
    stride: Shape = (),
    dilate: Shape = (),
    pad: Shape = (),
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Lay out the patches under a sliding window as columns, as a convolution by matrix product needs them."""

def khatri_rao(
    *args: _Array | Sequence[_Array],
    num_args: int = 0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Column-wise Kronecker product: matrices (m1, n), (m2, n), … -> (m1·m2·…, n)."""

def lamb_update_phase1(
    weight: _Array,
    grad: _Array,
    mean: _Array,
    var: _Array,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-06,
    t: int = ...,
    bias_correction: bool = True,
    wd: float = ...,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """LAMB's direction `m / (sqrt(v) + epsilon) + wd * w`, before the trust ratio (You et al., 2020). Shapes: equal."""

def lamb_update_phase2(
    weight: _Array,
    g: _Array,
    r1: _Array,
    r2: _Array,
    lr: float,
    lower_bound: float = -1.0,
    upper_bound: float = -1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """LAMB's step `w - lr * clip(r1, lower_bound, upper_bound) / r2 * g`; the ratio is 1 where a norm is 0."""

def lesser(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `lesser` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def lesser_equal(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `lesser_equal` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def linalg_det(A: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Determinant: (…, n, n) -> (…), (1,) for a single matrix."""

def linalg_extractdiag(
    A: _Array, offset: int = 0, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Read diagonal `offset` (positive above the main one): (…, n, n) -> (…, n - |offset|)."""

def linalg_extracttrian(
    A: _Array,
    offset: int = 0,
    lower: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Pack the triangle at diagonal `offset` into a vector: (…, n, n) -> (…, m·(m+1)/2), m = n - |offset|."""

def linalg_gelqf(A: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> list[NDArray]:
    """LQ factorisation A = L · Q of (…, m, n), m ≤ n: returns Q (…, m, n) with orthonormal rows and L (…, m, m)."""

def linalg_gemm(
    A: _Array,
    B: _Array,
    C: _Array,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    beta: float = 1.0,
    axis: int = -2,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """alpha · op(A) · op(B) + beta · C, op being transposition if so asked; C has the shape of the product."""

def linalg_gemm2(
    A: _Array,
    B: _Array,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    axis: int = -2,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """alpha · op(A) · op(B), op being transposition if so asked; rows lie along `axis`, columns along the last."""

def linalg_inverse(A: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Inverse of every square matrix; a singular one gives inf or NaN."""

def linalg_makediag(
    A: _Array, offset: int = 0, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Matrices with `A` on diagonal `offset` and 0 elsewhere: (…, n) -> (…, n + |offset|, n + |offset|)."""

def linalg_maketrian(
    A: _Array,
    offset: int = 0,
    lower: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Unpack what `linalg_extracttrian` packed into matrices that are 0 elsewhere: (…, m·(m+1)/2) -> (…, n, n)."""

def linalg_potrf(
    A: _Array, lower: bool = True, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Cholesky factor: the lower triangular L with positive diagonal and L · Lᵀ = A, A symmetric positive-definite."""

def linalg_potri(
    A: _Array, lower: bool = True, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Inverse (L · Lᵀ)⁻¹ from the Cholesky factor `A`: the lower triangular L or, unless `lower`, Lᵀ."""

def linalg_slogdet(A: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> list[NDArray]:
    """Sign of the determinant and logarithm of its absolute value, each (…), (1,) for a single matrix."""

def linalg_sumlogdiag(A: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Sum of the logarithms of the diagonal: (…, n, n) -> (…), (1,) for a single matrix."""

def linalg_syrk(
    A: _Array,
    transpose: bool = False,
    alpha: float = 1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """alpha · A · Aᵀ, or alpha · Aᵀ · A with `transpose`."""

def linalg_trmm(
    A: _Array,
    B: _Array,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """alpha · op(A) · B (`rightside`: B · op(A)); A triangular, its other triangle is not read."""

def linalg_trsm(
    A: _Array,
    B: _Array,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Solve op(A) · X = alpha · B (`rightside`: X · op(A)) for X; A triangular, its other triangle is not read."""

def log(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Natural logarithm of x."""

def log10(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Logarithm of x to base 10."""

def log1p(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """log(1 + x), exact near 0."""

def log2(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Logarithm of x to base 2."""

def log_softmax(
    data: _Array,
    axis: int = -1,
    temperature: float | None = None,
    dtype: DType | None = None,
    use_length: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """`x/t − log Σ exp(x/t)` along `axis`. Shapes: any, kept."""

def logical_and(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `logical_and` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def logical_not(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """1 where x is 0, 0 elsewhere, in the dtype of x."""

def logical_or(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `logical_or` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def logical_xor(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `logical_xor` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def make_loss(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """The input, as a loss: its gradient is 1 whatever gradient comes in."""

def max(
    data: _Array,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Largest element; every tie receives the whole gradient."""

def max_axis(
    data: _Array,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Largest element; every tie receives the whole gradient."""

def maximum(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `maximum` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def mean(
    data: _Array,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Mean of the elements; half precision adds up in float32."""

def min(
    data: _Array,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Smallest element; every tie receives the whole gradient."""

def min_axis(
    data: _Array,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Smallest element; every tie receives the whole gradient."""

def minimum(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `minimum` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def modulo(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `modulo` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def moments(
    data: _Array,
    axes: Axes = None,
    keepdims: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Mean and variance over `axes`: mean(x) and mean((x - mean(x))**2), computed in float32 for half precision."""

def mp_lamb_update_phase1(
    weight: _Array,
    grad: _Array,
    mean: _Array,
    var: _Array,
    weight32: _Array,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-06,
    t: int = ...,
    bias_correction: bool = True,
    wd: float = ...,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """`lamb_update_phase1` on the float32 master copy `weight32`; the direction is float32."""

def mp_lamb_update_phase2(
    weight: _Array,
    g: _Array,
    r1: _Array,
    r2: _Array,
    weight32: _Array,
    lr: float,
    lower_bound: float = -1.0,
    upper_bound: float = -1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """`lamb_update_phase2` on the float32 master copy `weight32`; the output is its rounding."""

def mp_nag_mom_update(
    weight: _Array,
    grad: _Array,
    mom: _Array,
    weight32: _Array,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """`nag_mom_update` of the float32 master copy `weight32`; the output is its rounding."""

def mp_sgd_mom_update(
    weight: _Array,
    grad: _Array,
    mom: _Array,
    weight32: _Array,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """`sgd_mom_update` of the float32 master copy `weight32` with float32 momentum; the output is its rounding."""

def mp_sgd_update(
    weight: _Array,
    grad: _Array,
    weight32: _Array,
    lr: float,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """`sgd_update` of the float32 master copy `weight32`; the output is its rounding to the dtype of `weight`."""

def multi_all_finite(
    *data: _Array | Sequence[_Array],
    num_arrays: int = 1,
    init_output: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """1 if no element of any array is infinite or NaN, else 0, as float32 of shape (1,)."""

def multi_lars(
    lrs: _Array,
    weights_sum_sq: _Array,
    grads_sum_sq: _Array,
    wds: _Array,
    eta: float,
    eps: float,
    rescale_grad: float = 1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Layer-wise rates `lr * eta * ‖w‖ / (rescale_grad * ‖g‖ + wd * ‖w‖ + eps)`, `lr` where a norm is 0."""

def multi_mp_sgd_mom_update(
    *data: _Array | Sequence[_Array],
    lrs: Floats,
    wds: Floats,
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """SGD with momentum for groups (weight, grad, mom, weight32); each as `sgd_mom_update`. Outputs: the next
    weights; states are written.
    """

def multi_mp_sgd_update(
    *data: _Array | Sequence[_Array],
    lrs: Floats,
    wds: Floats,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """SGD for groups (weight, grad, weight32); `w - lr * (g' + wd * w)` each, as `sgd_update`. Outputs: the next
    weights.
    """

def multi_sgd_mom_update(
    *data: _Array | Sequence[_Array],
    lrs: Floats,
    wds: Floats,
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """SGD with momentum for groups (weight, grad, mom); each as `sgd_mom_update`. Outputs: the next weights; states
    are written.
    """

def multi_sgd_update(
    *data: _Array | Sequence[_Array],
    lrs: Floats,
    wds: Floats,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """SGD for groups (weight, grad); `w - lr * (g' + wd * w)` each, as `sgd_update`. Outputs: the next weights."""

def multi_sum_sq(
    *data: _Array | Sequence[_Array],
    num_arrays: int,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Sum of squares of every array, as one float32 vector of shape (num_arrays,)."""

def multiply(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `multiply` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def nag_mom_update(
    weight: _Array,
    grad: _Array,
    mom: _Array,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Nesterov's momentum: `m = momentum * m; w' = w - m + (1 + momentum) * (m - lr * (g' + wd * w))`."""

def nanprod(
    data: _Array,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Product of the elements that are not nan."""

def nansum(
    data: _Array,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Sum of the elements that are not nan."""

def negative(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """-x."""

def norm(
    data: _Array,
    ord: int = 2,
    axis: Axes = None,
    out_dtype: DType | None = None,
    keepdims: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Norm along `axis` (all axes if None): ord 2 is sqrt(sum(x**2)), ord 1 is sum(|x|)."""

def normal(
    loc: float = 0.0,
    scale: float = 1.0,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of the normal distribution, by mean and standard deviation."""

def not_equal(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `not_equal` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def one_hot(
    indices: _Array,
    depth: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    dtype: Literal["float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64"] = "float32",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Encode indices (…) as (…, depth): `on_value` at the index, `off_value` elsewhere and for indices outside."""

def ones_like(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Ones in the shape and dtype of the input."""

def pad(
    data: _Array,
    mode: Literal["constant", "edge", "reflect"],
    pad_width: Shape,
    constant_value: float = 0.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Widen every axis i by `pad_width[2·i]` elements before and `pad_width[2·i+1]` after."""

def pick(
    data: _Array,
    index: _Array,
    axis: int | None = -1,
    keepdims: bool = False,
    mode: Literal["clip", "wrap"] = "clip",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Read one element along `axis` for every position of the other axes: data (m, n), index (m,) -> (m,)."""

def power(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `power` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def preloaded_multi_mp_sgd_mom_update(
    *data: _Array | Sequence[_Array],
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """SGD with momentum for groups (weight, grad, mom, weight32), then the arrays lrs and wds; each as
    `sgd_mom_update`. Outputs: the next weights.
    """

def preloaded_multi_mp_sgd_update(
    *data: _Array | Sequence[_Array],
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """SGD for groups (weight, grad, weight32), then the arrays lrs and wds; each as `sgd_update`. Outputs: the next
    weights.
    """

def preloaded_multi_sgd_mom_update(
    *data: _Array | Sequence[_Array],
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """SGD with momentum for groups (weight, grad, mom), then the arrays lrs and wds; each as `sgd_mom_update`.
    Outputs: the next weights.
    """

def preloaded_multi_sgd_update(
    *data: _Array | Sequence[_Array],
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """SGD for groups (weight, grad), then the arrays lrs and wds; each as `sgd_update`. Outputs: the next weights."""

def prod(
    data: _Array,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Product of the elements."""

def radians(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """x degrees in radians: x * pi / 180."""

def random_exponential(
    lam: float = 1.0,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of the exponential distribution of mean 1 / lam."""

def random_gamma(
    alpha: float = 1.0,
    beta: float = 1.0,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of the gamma distribution of shape alpha and scale beta."""

def random_generalized_negative_binomial(
    mu: float = 1.0,
    alpha: float = 1.0,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of counts with mean mu and variance mu + alpha * mu**2."""

def random_negative_binomial(
    k: int = 1,
    p: float = 1.0,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of the number of failures before the k-th success, each of probability p."""

def random_normal(
    loc: float = 0.0,
    scale: float = 1.0,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of the normal distribution, by mean and standard deviation."""

def random_pdf_dirichlet(
    sample: _Array,
    alpha: _Array,
    is_log: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Density of samples from the Dirichlet distribution of concentrations alpha, its logarithm with `is_log`."""

def random_pdf_exponential(
    sample: _Array,
    lam: _Array,
    is_log: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Density of samples from the exponential distribution: lam * exp(-lam * x), its logarithm with `is_log`."""

def random_pdf_gamma(
    sample: _Array,
    alpha: _Array,
    beta: _Array,
    is_log: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Density of samples from the gamma distribution of shape alpha and rate beta, its logarithm with `is_log`."""

def random_pdf_generalized_negative_binomial(
    sample: _Array,
    mu: _Array,
    alpha: _Array,
    is_log: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Density of samples from counts of mean mu and variance mu + alpha * mu**2, its logarithm with `is_log`."""

def random_pdf_negative_binomial(
    sample: _Array,
    k: _Array,
    p: _Array,
    is_log: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Density of samples from failures before the k-th success of probability p, its logarithm with `is_log`."""

def random_pdf_normal(
    sample: _Array,
    mu: _Array,
    sigma: _Array,
    is_log: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Density of samples from the normal distribution of mean mu and standard deviation sigma, its logarithm with
    `is_log`.
    """

def random_pdf_poisson(
    sample: _Array,
    lam: _Array,
    is_log: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Density of samples from the Poisson distribution: lam**x * exp(-lam) / x!, its logarithm with `is_log`."""

def random_pdf_uniform(
    sample: _Array,
    low: _Array,
    high: _Array,
    is_log: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Density of samples from the uniform distribution: 1 / (high - low), its logarithm with `is_log`."""

def random_poisson(
    lam: float = 1.0,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of the Poisson distribution of mean lam."""

def random_randint(
    low: int,
    high: int,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Integers drawn uniformly from low, low + 1, ..., high - 1."""

def random_uniform(
    low: float = 0.0,
    high: float = 1.0,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of the uniform distribution on [low, high)."""

def ravel_multi_index(
    data: _Array, shape: Shape, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Turn coordinates (n, k…) in an array of `shape` into flat positions (k…), of the dtype of `data`."""

def rcbrt(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """x ** (-1/3), real for negative x."""

def reciprocal(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """1 / x."""

def relu(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """max(x, 0); derivative 0 at 0."""

def repeat(
    data: _Array,
    repeats: int,
    axis: int | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Repeat each element `repeats` times along `axis`, or of the flattened array without `axis`."""

def reset_arrays(
    *data: _Array | Sequence[_Array],
    num_arrays: int,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> list[NDArray]:
    """Fill every array with zeros, in place; no output."""

def reshape(
    data: _Array,
    shape: Shape = (),
    reverse: bool = False,
    target_shape: Shape = (),
    keep_highest: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Give `data` a new shape of as many elements; dtype of `data`."""

def reshape_like(
    lhs: _Array,
    rhs: _Array,
    lhs_begin: int | None = None,
    lhs_end: int | None = None,
    rhs_begin: int | None = None,
    rhs_end: int | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Reshape `lhs` to the shape of `rhs`, or its axes [lhs_begin, lhs_end) to those [rhs_begin, rhs_end) of `rhs`."""

def reverse(
    data: _Array, axis: Shape, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Reverse the order of elements along every axis in `axis`; an axis named twice stays as it is."""

def rint(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Nearest integer, halves down: 1.5 gives 1, -1.5 gives -2; derivative 0."""

def rmsprop_update(
    weight: _Array,
    grad: _Array,
    n: _Array,
    lr: float,
    gamma1: float = 0.95,
    epsilon: float = 1e-08,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    clip_weights: float = -1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """RMSProp with coupled decay: `n = gamma1 * n + (1 - gamma1) * g**2; w - lr * g / sqrt(n + epsilon)`."""

def rmspropalex_update(
    weight: _Array,
    grad: _Array,
    n: _Array,
    g: _Array,
    delta: _Array,
    lr: float,
    gamma1: float = 0.95,
    gamma2: float = 0.9,
    epsilon: float = 1e-08,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    clip_weights: float = -1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Centred RMSProp with momentum `gamma2` and coupled decay (Graves, 2013, eq. 38-45). Shapes: all equal."""

def round(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Nearest integer, halves away from zero; derivative 0."""

def rsqrt(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """x ** -0.5."""

def sample_exponential(
    lam: _Array,
    shape: Shape = (),
    dtype: DType | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of the exponential distribution of mean 1 / lam, one distribution for each element."""

def sample_gamma(
    alpha: _Array,
    beta: _Array,
    shape: Shape = (),
    dtype: DType | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of the gamma distribution of shape alpha and scale beta, one distribution for each element."""

def sample_generalized_negative_binomial(
    mu: _Array,
    alpha: _Array,
    shape: Shape = (),
    dtype: DType | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of counts with mean mu and variance mu + alpha * mu**2, one distribution for each element."""

def sample_multinomial(
    data: _Array,
    shape: Shape = (),
    get_prob: bool = False,
    dtype: Literal["uint8", "int32", "float16", "float32", "float64"] = "int32",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Indices drawn with the probabilities along the last axis, which need not add up to 1."""

def sample_negative_binomial(
    k: _Array,
    p: _Array,
    shape: Shape = (),
    dtype: DType | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of the number of failures before the k-th success, each of probability p, one distribution for each
    element.
    """

def sample_normal(
    mu: _Array,
    sigma: _Array,
    shape: Shape = (),
    dtype: DType | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of the normal distribution, by mean and standard deviation, one distribution for each element."""

def sample_poisson(
    lam: _Array,
    shape: Shape = (),
    dtype: DType | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of the Poisson distribution of mean lam, one distribution for each element."""

def sample_uniform(
    low: _Array,
    high: _Array,
    shape: Shape = (),
    dtype: DType | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of the uniform distribution on [low, high), one distribution for each element."""

def scatter_nd(
    data: _Array, indices: _Array, shape: Shape, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Write `data` at the points `indices` into zeros of `shape`; of several writes to a point the last one stays."""

def sgd_mom_update(
    weight: _Array,
    grad: _Array,
    mom: _Array,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """SGD with momentum: `m = momentum * m - lr * (g' + wd * w); w + m`. Shapes: all equal."""

def sgd_update(
    weight: _Array,
    grad: _Array,
    lr: float,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Stochastic gradient descent: `w - lr * (g' + wd * w)`. Shapes: all equal. `lazy_update` concerns row_sparse."""

def shape_array(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """The shape of the input as a vector of int64, length `data.ndim`."""

def shuffle(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """The slices along the first axis in random order."""

def sigmoid(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """1 / (1 + exp(-x))."""

def sign(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """-1, 0 or 1 by the sign of x; derivative 0."""

def signsgd_update(
    weight: _Array,
    grad: _Array,
    lr: float,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """SignSGD: `(1 - lr * wd) * w - lr * sign(grad)` (Bernstein et al., 2018). Shapes: all equal."""

def signum_update(
    weight: _Array,
    grad: _Array,
    mom: _Array,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    wd_lh: float = 0.0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """SignSGD with momentum: `m = momentum * m - (1 - momentum) * (g' + wd * w); (1 - lr * wd_lh) * w + lr *
    sign(m)`.
    """

def sin(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Sine of x in radians."""

def sinh(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Hyperbolic sine of x."""

def size_array(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """The number of elements of the input as int64, shape (1,)."""

def slice(
    data: _Array,
    begin: Holes,
    end: Holes,
    step: Holes = (),
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Cut out `data[begin[0]:end[0]:step[0], …]` with Python's slice rules; `None` is open, later axes are whole."""

def slice_axis(
    data: _Array,
    axis: int,
    begin: int,
    end: int | None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Cut out `begin:end` along one axis; negative positions count from the end, `end=None` is open."""

def slice_like(
    data: _Array,
    shape_like: _Array,
    axes: Axes = (),
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Cut `data` to the leading part as long as `shape_like` along `axes` (all axes by default)."""

def smooth_l1(
    data: _Array, scalar: float = 1.0, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Smooth absolute value: (s x)**2 / 2 where |x| < 1 / s**2, else |x| - 0.5 / s**2, with s = `scalar`."""

def softmax(
    data: _Array,
    length: _Array | None = None,
    axis: int = -1,
    temperature: float | None = None,
    dtype: DType | None = None,
    use_length: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """`exp(x/t) / Σ exp(x/t)` along `axis`; with `use_length`, over the first `length` elements, 0 behind them."""

def softmax_cross_entropy(
    data: _Array, label: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """`−Σᵢ log softmax(dataᵢ)[labelᵢ]`, summed over the batch."""

def softmin(
    data: _Array,
    axis: int = -1,
    temperature: float | None = None,
    dtype: DType | None = None,
    use_length: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Softmax of the negated data along `axis`. Shapes: any, kept."""

def softsign(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """x / (1 + |x|)."""

def sort(
    data: _Array,
    axis: int | None = -1,
    is_ascend: bool = True,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Sort along `axis`, or the flattened array without `axis`."""

def space_to_depth(
    data: _Array, block_size: int, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Move blocks of pixels into channels: (n, c, h·b, w·b) -> (n, b·b·c, h, w), `b` being `block_size`."""

def split(
    data: _Array,
    num_outputs: int,
    axis: int = 1,
    squeeze_axis: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray | list[NDArray]:
    """Split `data` along `axis` into `num_outputs` parts of equal length; `squeeze_axis` drops that axis."""

def sqrt(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Square root of x; nan below 0, derivative inf at 0."""

def square(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """x ** 2."""

def squeeze(
    data: _Array, axis: Axes = None, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Drop the axes `axis`, which must have length 1 (all such axes by default); at least one axis is left."""

def stack(
    *args: _Array | Sequence[_Array],
    axis: int = 0,
    num_args: int = 0,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Join inputs of equal shape along a new axis at position `axis`: k times (m, n) -> (k, m, n)."""

def stop_gradient(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """The input, with derivative 0."""

def subtract(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `subtract` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def sum(
    data: _Array,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Sum of the elements; half precision adds up in float32."""

def sum_axis(
    data: _Array,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Sum of the elements; half precision adds up in float32."""

def swapaxes(
    data: _Array, dim1: int = 0, dim2: int = 0, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Exchange the axes `dim1` and `dim2`."""

def take(
    a: _Array,
    indices: _Array,
    axis: int = 0,
    mode: Literal["clip", "wrap", "raise"] = "clip",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Select slices of `a` along `axis`: (…, n, …) with indices (k, l) -> (…, k, l, …); dtype of `a`."""

def tan(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Tangent of x in radians."""

def tanh(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Hyperbolic tangent of x."""

def tile(data: _Array, reps: Shape, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Repeat the whole array `reps[i]` times along axis i; shape and `reps` are aligned at the last axis."""

def topk(
    data: _Array,
    axis: int | None = -1,
    k: int = 1,
    ret_typ: Literal["indices", "value", "both", "mask"] = "indices",
    is_ascend: bool = False,
    dtype: Literal["float32", "float16", "float64", "int32", "int64", "uint8"] = "float32",
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Find the `k` largest (`is_ascend`: smallest) elements along `axis`, of the flattened array without `axis`."""

def transpose(
    data: _Array, axes: Shape = (), out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Permute the axes: axis i of the result is axis `axes[i]` of `data`; without `axes` their order is reversed."""

def true_divide(lhs: _Array | float, rhs: _Array | float) -> NDArray:
    """Element-wise `true_divide` with broadcasting; each operand is an NDArray or a number (cast to its dtype)."""

def trunc(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Nearest integer toward zero; derivative 0."""

def uniform(
    low: float = 0.0,
    high: float = 1.0,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    out: NDArray | Sequence[NDArray] | None = None,
    name: str | None = None,
) -> NDArray:
    """Samples of the uniform distribution on [low, high)."""

def unravel_index(
    data: _Array, shape: Shape, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Turn flat positions (k…) in an array of `shape` into coordinates (n, k…), of the dtype of `data`."""

def where(
    condition: _Array, x: _Array, y: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None
) -> NDArray:
    """Choose `x` where `condition` is not 0, else `y`; all of one shape, or condition (m,) choosing rows."""

def zeros_like(data: _Array, out: NDArray | Sequence[NDArray] | None = None, name: str | None = None) -> NDArray:
    """Zeros in the shape and dtype of the input."""
