# Written by `python -m dualmx.namespace.stubs`. Generated, so its length has no bound.
"""Types of `mx.sym`."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ..core.argcheck import Axes, DType, Floats, Holes, Shape
from ..core.context import Context
from .python_ops import Custom as Custom
from .symbol import Symbol

__all__ = [
    "Activation", "BatchNorm", "BatchNorm_v1", "BilinearSampler", "BlockGrad", "CTCLoss", "Cast", "Concat",
    "Convolution", "Convolution_v1", "Correlation", "Crop", "Custom", "Deconvolution", "Dropout", "ElementWiseSum",
    "Embedding", "Flatten", "FullyConnected", "GridGenerator", "GroupNorm", "IdentityAttachKLSparseReg", "InstanceNorm",
    "L2Normalization", "LRN", "LayerNorm", "LeakyReLU", "LinearRegressionOutput", "LogisticRegressionOutput",
    "MAERegressionOutput", "MakeLoss", "Pad", "Pooling", "Pooling_v1", "RNN", "ROIPooling", "Reshape", "SVMOutput",
    "SequenceLast", "SequenceMask", "SequenceReverse", "SliceChannel", "Softmax", "SoftmaxActivation", "SoftmaxOutput",
    "SpatialTransformer", "SwapAxis", "UpSampling", "abs", "adam_update", "add_n", "all_finite", "amp_cast",
    "amp_multicast", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "argmax", "argmax_channel",
    "argmin", "argsort", "batch_dot", "batch_take", "broadcast_add", "broadcast_axes", "broadcast_axis",
    "broadcast_div", "broadcast_equal", "broadcast_greater", "broadcast_greater_equal", "broadcast_hypot",
    "broadcast_lesser", "broadcast_lesser_equal", "broadcast_like", "broadcast_logical_and", "broadcast_logical_or",
    "broadcast_logical_xor", "broadcast_maximum", "broadcast_minimum", "broadcast_minus", "broadcast_mod",
    "broadcast_mul", "broadcast_not_equal", "broadcast_plus", "broadcast_power", "broadcast_sub", "broadcast_to",
    "cast", "cast_storage", "cbrt", "ceil", "choose_element_0index", "clip", "col2im", "concat", "cos", "cosh", "crop",
    "ctc_loss", "cumsum", "degrees", "depth_to_space", "diag", "dot", "elemwise_add", "elemwise_div", "elemwise_mul",
    "elemwise_sub", "erf", "erfinv", "exp", "expand_dims", "expm1", "fill_element_0index", "fix", "flatten", "flip",
    "floor", "ftml_update", "ftrl_update", "gamma", "gammaln", "gather_nd", "hard_sigmoid", "identity", "im2col",
    "khatri_rao", "lamb_update_phase1", "lamb_update_phase2", "linalg_det", "linalg_extractdiag", "linalg_extracttrian",
    "linalg_gelqf", "linalg_gemm", "linalg_gemm2", "linalg_inverse", "linalg_makediag", "linalg_maketrian",
    "linalg_potrf", "linalg_potri", "linalg_slogdet", "linalg_sumlogdiag", "linalg_syrk", "linalg_trmm", "linalg_trsm",
    "log", "log10", "log1p", "log2", "log_softmax", "logical_not", "make_loss", "max", "max_axis", "mean", "min",
    "min_axis", "moments", "mp_lamb_update_phase1", "mp_lamb_update_phase2", "mp_nag_mom_update", "mp_sgd_mom_update",
    "mp_sgd_update", "multi_all_finite", "multi_lars", "multi_mp_sgd_mom_update", "multi_mp_sgd_update",
    "multi_sgd_mom_update", "multi_sgd_update", "multi_sum_sq", "nag_mom_update", "nanprod", "nansum", "negative",
    "norm", "normal", "one_hot", "ones_like", "pad", "pick", "preloaded_multi_mp_sgd_mom_update",
    "preloaded_multi_mp_sgd_update", "preloaded_multi_sgd_mom_update", "preloaded_multi_sgd_update", "prod", "radians",
    "random_exponential", "random_gamma", "random_generalized_negative_binomial", "random_negative_binomial",
    "random_normal", "random_pdf_dirichlet", "random_pdf_exponential", "random_pdf_gamma",
    "random_pdf_generalized_negative_binomial", "random_pdf_negative_binomial", "random_pdf_normal",
    "random_pdf_poisson", "random_pdf_uniform", "random_poisson", "random_randint", "random_uniform",
    "ravel_multi_index", "rcbrt", "reciprocal", "relu", "repeat", "reset_arrays", "reshape", "reshape_like", "reverse",
    "rint", "rmsprop_update", "rmspropalex_update", "round", "rsqrt", "sample_exponential", "sample_gamma",
    "sample_generalized_negative_binomial", "sample_multinomial", "sample_negative_binomial", "sample_normal",
    "sample_poisson", "sample_uniform", "scatter_nd", "sgd_mom_update", "sgd_update", "shape_array", "shuffle",
    "sigmoid", "sign", "signsgd_update", "signum_update", "sin", "sinh", "size_array", "slice", "slice_axis",
    "slice_like", "smooth_l1", "softmax", "softmax_cross_entropy", "softmin", "softsign", "sort", "space_to_depth",
    "split", "sqrt", "square", "squeeze", "stack", "stop_gradient", "sum", "sum_axis", "swapaxes", "take", "tan",
    "tanh", "tile", "topk", "transpose", "trunc", "uniform", "unravel_index", "where", "zeros_like",
]  # fmt: skip

def Activation(
    data: Symbol | None = None,
    act_type: Literal["relu", "sigmoid", "tanh", "softrelu", "softsign", "log_sigmoid", "mish"] = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Apply an activation function to each element."""

def BatchNorm(
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
    """`(x − mean) / √(var + eps) · gamma + beta` per channel (Ioffe & Szegedy 2015)."""

def BatchNorm_v1(
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
    """`(x − mean) / √(var + eps) · gamma + beta` per channel (Ioffe & Szegedy 2015)."""

def BilinearSampler(
    data: Symbol | None = None,
    grid: Symbol | None = None,
    cudnn_off: bool | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Read images at the positions of `grid`, between pixels bilinearly; 0 outside the image."""

def BlockGrad(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """The input, with derivative 0."""

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

def Cast(
    data: Symbol | None = None,
    dtype: DType = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Convert the elements to `dtype`; floats truncate toward zero when they become integers."""

def Concat(
    *args: Symbol | Sequence[Symbol],
    num_args: int = 0,
    dim: int = 1,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Join the inputs along axis `dim`, along which their lengths add up; all other lengths are equal."""

def Convolution(
    data: Symbol | None = None,
    weight: Symbol | None = None,
    bias: Symbol | None = None,
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
    """Cross-correlation plus bias: `y[n,o,i] = b[o] + Σ_{c,k} w[o,c,k] · x[n, c, i·stride + k·dilate − pad]`."""

def Convolution_v1(
    data: Symbol | None = None,
    weight: Symbol | None = None,
    bias: Symbol | None = None,
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
    """Cross-correlation plus bias: `y[n,o,i] = b[o] + Σ_{c,k} w[o,c,k] · x[n, c, i·stride + k·dilate − pad]`."""

def Correlation(
    data1: Symbol | None = None,
    data2: Symbol | None = None,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Compare patches of `data1` with patches of `data2` displaced by up to `max_displacement` pixels."""

def Crop(
    *args: Symbol | Sequence[Symbol],
    num_args: int = 0,
    offset: Shape = (0, 0),
    h_w: Shape = (0, 0),
    center_crop: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Cut height and width of `args[0]` (n, c, h, w) to `h_w`, or to those of a second input."""

def Deconvolution(
    data: Symbol | None = None,
    weight: Symbol | None = None,
    bias: Symbol | None = None,
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
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Transposed convolution, the adjoint of `Convolution` with respect to its data."""

def Dropout(
    data: Symbol | None = None,
    p: float = 0.5,
    mode: Literal["training", "always"] = "training",
    axes: Shape = (),
    cudnn_off: bool | None = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Zero each element with probability p and scale the others by 1/(1 − p) (Srivastava et al. 2014)."""

def ElementWiseSum(
    *args: Symbol | Sequence[Symbol],
    num_args: int = 0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Sum of any number of arrays of one shape and dtype: args[0] + args[1] + ..."""

def Embedding(
    data: Symbol | None = None,
    weight: Symbol | None = None,
    input_dim: int = ...,
    output_dim: int = ...,
    dtype: Literal["float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64"] = "float32",
    sparse_grad: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Look up rows of `weight`: data (…) of ids, weight (input_dim, output_dim) -> (…, output_dim)."""

def Flatten(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Keep axis 0 and merge all others: (n, d1, d2, …) -> (n, d1·d2·…); a 1-d array becomes (n, 1)."""

def FullyConnected(
    data: Symbol | None = None,
    weight: Symbol | None = None,
    bias: Symbol | None = None,
    num_hidden: int = ...,
    no_bias: bool = False,
    flatten: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Affine map `y = x · weightᵀ + bias`."""

def GridGenerator(
    data: Symbol | None = None,
    transform_type: Literal["affine", "warp"] = ...,
    target_shape: Shape = (0, 0),
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Make the sampling grid (N, 2, H, W), x then y in [-1, 1], that `BilinearSampler` reads."""

def GroupNorm(
    data: Symbol | None = None,
    gamma: Symbol | None = None,
    beta: Symbol | None = None,
    num_groups: int = 1,
    eps: float = 1e-05,
    output_mean_var: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`(x − mean) / √(var + eps) · gamma + beta` with statistics per sample and group of channels (Wu & He 2018)."""

def IdentityAttachKLSparseReg(
    data: Symbol | None = None,
    moving_avg: Symbol | None = None,
    sparseness_target: float = 0.1,
    penalty: float = 0.001,
    momentum: float = 0.9,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The data unchanged; its gradient grows by that of a divergence which draws mean activations to a target."""

def InstanceNorm(
    data: Symbol | None = None,
    gamma: Symbol | None = None,
    beta: Symbol | None = None,
    eps: float = 0.001,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`(x − mean) / √(var + eps) · gamma + beta` with statistics per sample and channel (Ulyanov et al. 2016)."""

def L2Normalization(
    data: Symbol | None = None,
    eps: float = 1e-10,
    mode: Literal["channel", "instance", "spatial"] = "instance",
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`x / √(Σ x² + eps)`, summing over all axes but the first ("instance"), axis 1, or axes 2 and up ("spatial")."""

def LRN(
    data: Symbol | None = None,
    alpha: float = 0.0001,
    beta: float = 0.75,
    knorm: float = 2.0,
    nsize: int = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Local response normalization `x · (knorm + alpha/nsize · Σ x²)^−beta` over `nsize` neighbouring channels
    (odd).
    """

def LayerNorm(
    data: Symbol | None = None,
    gamma: Symbol | None = None,
    beta: Symbol | None = None,
    axis: int = -1,
    eps: float = 1e-05,
    output_mean_var: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`(x − mean) / √(var + eps) · gamma + beta` with statistics along `axis` (Ba et al. 2016)."""

def LeakyReLU(
    data: Symbol | None = None,
    gamma: Symbol | None = None,
    act_type: Literal["leaky", "prelu", "elu", "selu", "gelu", "rrelu"] = "leaky",
    slope: float = 0.25,
    lower_bound: float = 0.125,
    upper_bound: float = 0.334,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Rectifiers that let some of the negative side through."""

def LinearRegressionOutput(
    data: Symbol | None = None,
    label: Symbol | None = None,
    grad_scale: float = 1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The data forward; backward `(data − label) · grad_scale / outputs per sample`, whatever the head gradient."""

def LogisticRegressionOutput(
    data: Symbol | None = None,
    label: Symbol | None = None,
    grad_scale: float = 1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`sigmoid(data)` forward; backward `(sigmoid(data) − label) · grad_scale / outputs per sample`."""

def MAERegressionOutput(
    data: Symbol | None = None,
    label: Symbol | None = None,
    grad_scale: float = 1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The data forward; backward `sign(data − label) · grad_scale / outputs per sample`, whatever the head gradient."""

def MakeLoss(
    data: Symbol | None = None,
    grad_scale: float = 1.0,
    valid_thresh: float = 0.0,
    normalization: Literal["null", "batch", "valid"] = "null",
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The data forward; backward `grad_scale / z` for each element, whatever the head gradient."""

def Pad(
    data: Symbol | None = None,
    mode: Literal["constant", "edge", "reflect"] = ...,
    pad_width: Shape = ...,
    constant_value: float = 0.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Widen every axis i by `pad_width[2·i]` elements before and `pad_width[2·i+1]` after."""

def Pooling(
    data: Symbol | None = None,
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
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Reduce windows of the spatial axes by their maximum, mean, sum or `(Σ x^p)^(1/p)` ("lp", signed as written)."""

def Pooling_v1(
    data: Symbol | None = None,
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
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Reduce windows of the spatial axes by their maximum, mean, sum or `(Σ x^p)^(1/p)` ("lp", signed as written)."""

def RNN(
    data: Symbol | None = None,
    parameters: Symbol | None = None,
    state: Symbol | None = None,
    state_cell: Symbol | None = None,
    sequence_length: Symbol | None = None,
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
    """A stack of recurrent layers over a whole sequence."""

def ROIPooling(
    data: Symbol | None = None,
    rois: Symbol | None = None,
    pooled_size: Shape = ...,
    spatial_scale: float = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Max-pool each rectangle of `rois` into a grid of `pooled_size` bins."""

def Reshape(
    data: Symbol | None = None,
    shape: Shape = (),
    reverse: bool = False,
    target_shape: Shape = (),
    keep_highest: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Give `data` a new shape of as many elements; dtype of `data`."""

def SVMOutput(
    data: Symbol | None = None,
    label: Symbol | None = None,
    margin: float = 1.0,
    regularization_coefficient: float = 1.0,
    use_linear: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The data forward; backward the gradient of one-versus-all hinge losses, whatever the head gradient."""

def SequenceLast(
    data: Symbol | None = None,
    sequence_length: Symbol | None = None,
    use_sequence_length: bool = False,
    axis: int = 0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The last element of each sequence (at length − 1, or the very last without lengths)."""

def SequenceMask(
    data: Symbol | None = None,
    sequence_length: Symbol | None = None,
    use_sequence_length: bool = False,
    value: float = 0.0,
    axis: int = 0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Replace the elements behind each sequence's length by `value`; the identity without lengths."""

def SequenceReverse(
    data: Symbol | None = None,
    sequence_length: Symbol | None = None,
    use_sequence_length: bool = False,
    axis: int = 0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Reverse each sequence within its length; elements behind the length stay."""

def SliceChannel(
    data: Symbol | None = None,
    num_outputs: int = ...,
    axis: int = 1,
    squeeze_axis: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Split `data` along `axis` into `num_outputs` parts of equal length; `squeeze_axis` drops that axis."""

def Softmax(
    data: Symbol | None = None,
    label: Symbol | None = None,
    grad_scale: float = 1.0,
    ignore_label: float = -1.0,
    multi_output: bool = False,
    use_ignore: bool = False,
    preserve_shape: bool = False,
    normalization: Literal["null", "batch", "valid"] = "null",
    out_grad: bool = False,
    smooth_alpha: float = 0.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Softmax forward; backward the gradient of its cross entropy with the label, whatever the head gradient."""

def SoftmaxActivation(
    data: Symbol | None = None,
    mode: Literal["instance", "channel"] = "instance",
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Softmax over the last axis ("instance") or over axis 1 ("channel"). Shapes: any, kept."""

def SoftmaxOutput(
    data: Symbol | None = None,
    label: Symbol | None = None,
    grad_scale: float = 1.0,
    ignore_label: float = -1.0,
    multi_output: bool = False,
    use_ignore: bool = False,
    preserve_shape: bool = False,
    normalization: Literal["null", "batch", "valid"] = "null",
    out_grad: bool = False,
    smooth_alpha: float = 0.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Softmax forward; backward the gradient of its cross entropy with the label, whatever the head gradient."""

def SpatialTransformer(
    data: Symbol | None = None,
    loc: Symbol | None = None,
    target_shape: Shape = (0, 0),
    transform_type: Literal["affine"] = ...,
    sampler_type: Literal["bilinear"] = ...,
    cudnn_off: bool | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Sample images through affine maps: `BilinearSampler(data, GridGenerator(loc, "affine", target_shape))`."""

def SwapAxis(
    data: Symbol | None = None,
    dim1: int = 0,
    dim2: int = 0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Exchange the axes `dim1` and `dim2`."""

def UpSampling(
    *data: Symbol | Sequence[Symbol],
    scale: int,
    num_filter: int = 0,
    sample_type: Literal["nearest", "bilinear"],
    multi_input_mode: Literal["concat", "sum"] = "concat",
    num_args: int = 0,
    workspace: int = 512,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Enlarge images by `scale`."""

def abs(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """|x|; derivative sign(x), 0 at 0."""

def adam_update(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    mean: Symbol | None = None,
    var: Symbol | None = None,
    lr: float = ...,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-08,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Adam with coupled decay: `w - lr * m / (sqrt(v) + epsilon)`; the caller folds bias correction into `lr`."""

def add_n(
    *args: Symbol | Sequence[Symbol],
    num_args: int = 0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Sum of any number of arrays of one shape and dtype: args[0] + args[1] + ..."""

def all_finite(
    data: Symbol | None = None,
    init_output: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """1 if no element is infinite or NaN, else 0, as float32 of shape (1,)."""

def amp_cast(
    data: Symbol | None = None,
    dtype: DType = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Convert floating-point data to `dtype` and leave integers alone; inserted by mixed precision."""

def amp_multicast(
    *data: Symbol | Sequence[Symbol],
    num_outputs: int,
    cast_narrow: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Convert floating-point inputs to their widest dtype, or the narrowest with `cast_narrow`; integers stay."""

def arccos(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Inverse cosine in radians, within [0, pi]."""

def arccosh(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Inverse hyperbolic cosine of x; nan below 1."""

def arcsin(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Inverse sine in radians, within [-pi/2, pi/2]."""

def arcsinh(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Inverse hyperbolic sine of x."""

def arctan(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Inverse tangent in radians, within [-pi/2, pi/2]."""

def arctanh(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Inverse hyperbolic tangent of x; nan outside [-1, 1]."""

def argmax(
    data: Symbol | None = None,
    axis: int | None = None,
    keepdims: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Position of the largest element along `axis`, the first one if several tie."""

def argmax_channel(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Position of the largest element along axis 1, the first one if several tie."""

def argmin(
    data: Symbol | None = None,
    axis: int | None = None,
    keepdims: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Position of the smallest element along `axis`, the first one if several tie."""

def argsort(
    data: Symbol | None = None,
    axis: int | None = -1,
    is_ascend: bool = True,
    dtype: Literal["float32", "float16", "float64", "int32", "int64", "uint8"] = "float32",
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Positions, as `dtype`, that sort along `axis` (of the flattened array without `axis`); equal elements keep
    their order.
    """

def batch_dot(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    forward_stype: Literal["default", "csr", "row_sparse"] | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Matrix products of two stacks: (b…, m, k) · (b…, k, n) -> (b…, m, n), each factor transposed if so asked."""

def batch_take(
    a: Symbol | None = None,
    indices: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Read one element of every row: `out[i] = a[i, indices[i]]`; a (…, n), indices as many as rows, clipped."""

def broadcast_add(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """lhs + rhs."""

def broadcast_axes(
    data: Symbol | None = None,
    axis: Shape = (),
    size: Shape = (),
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Repeat `data` along the axes `axis`, which must have length 1, `size` times each."""

def broadcast_axis(
    data: Symbol | None = None,
    axis: Shape = (),
    size: Shape = (),
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Repeat `data` along the axes `axis`, which must have length 1, `size` times each."""

def broadcast_div(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """a / b; integers truncate toward zero, and over 0 are what an infinite result becomes."""

def broadcast_equal(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """1 where lhs == rhs, 0 elsewhere, in the dtype of the operands; derivative 0."""

def broadcast_greater(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """1 where lhs > rhs, 0 elsewhere, in the dtype of the operands; derivative 0."""

def broadcast_greater_equal(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """1 where lhs >= rhs, 0 elsewhere, in the dtype of the operands; derivative 0."""

def broadcast_hypot(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """sqrt(a**2 + b**2) without overflow; integers truncate."""

def broadcast_lesser(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """1 where lhs < rhs, 0 elsewhere, in the dtype of the operands; derivative 0."""

def broadcast_lesser_equal(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """1 where lhs <= rhs, 0 elsewhere, in the dtype of the operands; derivative 0."""

def broadcast_like(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    lhs_axes: Axes = None,
    rhs_axes: Axes = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Repeat axes of length 1 of `lhs` as in `rhs`: all, or, given both, `lhs_axes` to the lengths of `rhs_axes`."""

def broadcast_logical_and(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """1 where lhs and rhs are both other than 0, 0 elsewhere, in the dtype of the operands; derivative 0."""

def broadcast_logical_or(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """1 where lhs or rhs is other than 0, 0 elsewhere, in the dtype of the operands; derivative 0."""

def broadcast_logical_xor(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """1 where exactly one of lhs and rhs is other than 0, 0 elsewhere, in the dtype of the operands; derivative 0."""

def broadcast_maximum(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The larger of lhs and rhs; ties give the derivative to lhs."""

def broadcast_minimum(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The smaller of lhs and rhs; ties give the derivative to lhs."""

def broadcast_minus(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """lhs - rhs."""

def broadcast_mod(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """a - b * floor(a / b), with the sign of b; 0 where b is 0."""

def broadcast_mul(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """lhs * rhs."""

def broadcast_not_equal(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """1 where lhs != rhs, 0 elsewhere, in the dtype of the operands; derivative 0."""

def broadcast_plus(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """lhs + rhs."""

def broadcast_power(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """a ** b; integers go through float64 and truncate."""

def broadcast_sub(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """lhs - rhs."""

def broadcast_to(
    data: Symbol | None = None,
    shape: Shape = (),
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Repeat axes of length 1 so that the result has `shape`; a 0 in `shape` keeps the length of the input."""

def cast(
    data: Symbol | None = None,
    dtype: DType = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Convert the elements to `dtype`; floats truncate toward zero when they become integers."""

def cast_storage(
    data: Symbol | None = None,
    stype: Literal["default", "row_sparse", "csr"] = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """The same values in the storage type `stype`; from one sparse type to the other by way of the default one."""

def cbrt(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Real cube root of x."""

def ceil(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Smallest integer not below x; derivative 0."""

def choose_element_0index(
    data: Symbol | None = None,
    index: Symbol | None = None,
    axis: int | None = -1,
    keepdims: bool = False,
    mode: Literal["clip", "wrap"] = "clip",
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Read one element along `axis` for every position of the other axes: data (m, n), index (m,) -> (m,)."""

def clip(
    data: Symbol | None = None,
    a_min: float = ...,
    a_max: float = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Limit the elements to [a_min, a_max]: min(max(x, a_min), a_max); derivative 1 within, bounds included."""

def col2im(
    data: Symbol | None = None,
    output_size: Shape = ...,
    kernel: Shape = ...,
    stride: Shape = (),
    dilate: Shape = (),
    pad: Shape = (),
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Add columns back to the places they come from: the transpose of `im2col`."""

def concat(
    *args: Symbol | Sequence[Symbol],
    num_args: int = 0,
    dim: int = 1,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Join the inputs along axis `dim`, along which their lengths add up; all other lengths are equal."""

def cos(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Cosine of x in radians."""

def cosh(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Hyperbolic cosine of x."""

def crop(
    data: Symbol | None = None,
    begin: Holes = ...,
    end: Holes = ...,
    step: Holes = (),
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Cut out `data[begin[0]:end[0]:step[0], …]` with Python's slice rules; `None` is open, later axes are whole."""

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

def cumsum(
    a: Symbol | None = None,
    axis: int | None = None,
    dtype: DType | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Running sum along `axis`, or along the flattened array if `axis` is None."""

def degrees(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """x radians in degrees: x * 180 / pi."""

def depth_to_space(
    data: Symbol | None = None,
    block_size: int = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Move channels into blocks of pixels: (n, b·b·c, h, w) -> (n, c, h·b, w·b), `b` being `block_size`."""

def diag(
    data: Symbol | None = None,
    k: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Read the `k`-th diagonal, or make a matrix from it."""

def dot(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    forward_stype: Literal["default", "csr", "row_sparse"] | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Sum of products over the last axis of `lhs` and the first of `rhs`."""

def elemwise_add(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """lhs + rhs."""

def elemwise_div(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """a / b; integers truncate toward zero, and over 0 are what an infinite result becomes."""

def elemwise_mul(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """lhs * rhs."""

def elemwise_sub(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """lhs - rhs."""

def erf(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Error function: 2 / sqrt(pi) * integral of exp(-t**2) from 0 to x."""

def erfinv(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Inverse of the error function on (-1, 1)."""

def exp(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """e ** x."""

def expand_dims(
    data: Symbol | None = None,
    axis: int = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Insert an axis of length 1 at position `axis` of the result: (2, 3) with axis=-1 -> (2, 3, 1)."""

def expm1(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """e ** x - 1, exact near 0."""

def fill_element_0index(
    lhs: Symbol | None = None,
    mhs: Symbol | None = None,
    rhs: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Write one element of every row: `out[i, rhs[i]] = mhs[i]`, the rest as in `lhs`; lhs (m, n), mhs and rhs (m,)."""

def fix(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Nearest integer toward zero; derivative 0."""

def flatten(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Keep axis 0 and merge all others: (n, d1, d2, …) -> (n, d1·d2·…); a 1-d array becomes (n, 1)."""

def flip(
    data: Symbol | None = None,
    axis: Shape = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Reverse the order of elements along every axis in `axis`; an axis named twice stays as it is."""

def floor(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Largest integer not above x; derivative 0."""

def ftml_update(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    d: Symbol | None = None,
    v: Symbol | None = None,
    z: Symbol | None = None,
    lr: float = ...,
    beta1: float = 0.6,
    beta2: float = 0.999,
    epsilon: float = 1e-08,
    t: int = ...,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_grad: float = -1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Follow the moving leader (Zheng & Kwok, 2017) with coupled decay; `t` counts updates from 1. Shapes: all
    equal.
    """

def ftrl_update(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    z: Symbol | None = None,
    n: Symbol | None = None,
    lr: float = ...,
    lamda1: float = 0.01,
    beta: float = 1.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Follow the regularised leader (McMahan et al., 2013); weights with `|z| <= lamda1` become 0. Shapes: all
    equal.
    """

def gamma(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Gamma function, (x - 1)! for whole x."""

def gammaln(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """log |gamma(x)|."""

def gather_nd(
    data: Symbol | None = None,
    indices: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Read points: column k of `indices` holds the coordinates of point k along the first axes of `data`."""

def hard_sigmoid(
    data: Symbol | None = None,
    alpha: float = 0.2,
    beta: float = 0.5,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Piecewise linear sigmoid: min(max(alpha * x + beta, 0), 1); derivative alpha strictly inside, else 0."""

def identity(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """The input itself."""

def im2col(
    data: Symbol | None = None,
    kernel: Shape = ...,
    stride: Shape = (),
    dilate: Shape = (),
    pad: Shape = (),
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Lay out the patches under a sliding window as columns, as a convolution by matrix product needs them."""

def khatri_rao(
    *args: Symbol | Sequence[Symbol],
    num_args: int = 0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Column-wise Kronecker product: matrices (m1, n), (m2, n), … -> (m1·m2·…, n)."""

def lamb_update_phase1(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    mean: Symbol | None = None,
    var: Symbol | None = None,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-06,
    t: int = ...,
    bias_correction: bool = True,
    wd: float = ...,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """LAMB's direction `m / (sqrt(v) + epsilon) + wd * w`, before the trust ratio (You et al., 2020). Shapes: equal."""

def lamb_update_phase2(
    weight: Symbol | None = None,
    g: Symbol | None = None,
    r1: Symbol | None = None,
    r2: Symbol | None = None,
    lr: float = ...,
    lower_bound: float = -1.0,
    upper_bound: float = -1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """LAMB's step `w - lr * clip(r1, lower_bound, upper_bound) / r2 * g`; the ratio is 1 where a norm is 0."""

def linalg_det(
    A: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Determinant: (…, n, n) -> (…), (1,) for a single matrix."""

def linalg_extractdiag(
    A: Symbol | None = None,
    offset: int = 0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Read diagonal `offset` (positive above the main one): (…, n, n) -> (…, n - |offset|)."""

def linalg_extracttrian(
    A: Symbol | None = None,
    offset: int = 0,
    lower: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Pack the triangle at diagonal `offset` into a vector: (…, n, n) -> (…, m·(m+1)/2), m = n - |offset|."""

def linalg_gelqf(
    A: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """LQ factorisation A = L · Q of (…, m, n), m ≤ n: returns Q (…, m, n) with orthonormal rows and L (…, m, m)."""

def linalg_gemm(
    A: Symbol | None = None,
    B: Symbol | None = None,
    C: Symbol | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    beta: float = 1.0,
    axis: int = -2,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """alpha · op(A) · op(B) + beta · C, op being transposition if so asked; C has the shape of the product."""

def linalg_gemm2(
    A: Symbol | None = None,
    B: Symbol | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    axis: int = -2,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """alpha · op(A) · op(B), op being transposition if so asked; rows lie along `axis`, columns along the last."""

def linalg_inverse(
    A: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Inverse of every square matrix; a singular one gives inf or NaN."""

def linalg_makediag(
    A: Symbol | None = None,
    offset: int = 0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Matrices with `A` on diagonal `offset` and 0 elsewhere: (…, n) -> (…, n + |offset|, n + |offset|)."""

def linalg_maketrian(
    A: Symbol | None = None,
    offset: int = 0,
    lower: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Unpack what `linalg_extracttrian` packed into matrices that are 0 elsewhere: (…, m·(m+1)/2) -> (…, n, n)."""

def linalg_potrf(
    A: Symbol | None = None,
    lower: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Cholesky factor: the lower triangular L with positive diagonal and L · Lᵀ = A, A symmetric positive-definite."""

def linalg_potri(
    A: Symbol | None = None,
    lower: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Inverse (L · Lᵀ)⁻¹ from the Cholesky factor `A`: the lower triangular L or, unless `lower`, Lᵀ."""

def linalg_slogdet(
    A: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Sign of the determinant and logarithm of its absolute value, each (…), (1,) for a single matrix."""

def linalg_sumlogdiag(
    A: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Sum of the logarithms of the diagonal: (…, n, n) -> (…), (1,) for a single matrix."""

def linalg_syrk(
    A: Symbol | None = None,
    transpose: bool = False,
    alpha: float = 1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """alpha · A · Aᵀ, or alpha · Aᵀ · A with `transpose`."""

def linalg_trmm(
    A: Symbol | None = None,
    B: Symbol | None = None,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """alpha · op(A) · B (`rightside`: B · op(A)); A triangular, its other triangle is not read."""

def linalg_trsm(
    A: Symbol | None = None,
    B: Symbol | None = None,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Solve op(A) · X = alpha · B (`rightside`: X · op(A)) for X; A triangular, its other triangle is not read."""

def log(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Natural logarithm of x."""

def log10(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Logarithm of x to base 10."""

def log1p(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """log(1 + x), exact near 0."""

def log2(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Logarithm of x to base 2."""

def log_softmax(
    data: Symbol | None = None,
    axis: int = -1,
    temperature: float | None = None,
    dtype: DType | None = None,
    use_length: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`x/t − log Σ exp(x/t)` along `axis`. Shapes: any, kept."""

def logical_not(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """1 where x is 0, 0 elsewhere, in the dtype of x."""

def make_loss(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """The input, as a loss: its gradient is 1 whatever gradient comes in."""

def max(
    data: Symbol | None = None,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Largest element; every tie receives the whole gradient."""

def max_axis(
    data: Symbol | None = None,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Largest element; every tie receives the whole gradient."""

def mean(
    data: Symbol | None = None,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Mean of the elements; half precision adds up in float32."""

def min(
    data: Symbol | None = None,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Smallest element; every tie receives the whole gradient."""

def min_axis(
    data: Symbol | None = None,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Smallest element; every tie receives the whole gradient."""

def moments(
    data: Symbol | None = None,
    axes: Axes = None,
    keepdims: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Mean and variance over `axes`: mean(x) and mean((x - mean(x))**2), computed in float32 for half precision."""

def mp_lamb_update_phase1(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    mean: Symbol | None = None,
    var: Symbol | None = None,
    weight32: Symbol | None = None,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-06,
    t: int = ...,
    bias_correction: bool = True,
    wd: float = ...,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`lamb_update_phase1` on the float32 master copy `weight32`; the direction is float32."""

def mp_lamb_update_phase2(
    weight: Symbol | None = None,
    g: Symbol | None = None,
    r1: Symbol | None = None,
    r2: Symbol | None = None,
    weight32: Symbol | None = None,
    lr: float = ...,
    lower_bound: float = -1.0,
    upper_bound: float = -1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`lamb_update_phase2` on the float32 master copy `weight32`; the output is its rounding."""

def mp_nag_mom_update(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    mom: Symbol | None = None,
    weight32: Symbol | None = None,
    lr: float = ...,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`nag_mom_update` of the float32 master copy `weight32`; the output is its rounding."""

def mp_sgd_mom_update(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    mom: Symbol | None = None,
    weight32: Symbol | None = None,
    lr: float = ...,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`sgd_mom_update` of the float32 master copy `weight32` with float32 momentum; the output is its rounding."""

def mp_sgd_update(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    weight32: Symbol | None = None,
    lr: float = ...,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`sgd_update` of the float32 master copy `weight32`; the output is its rounding to the dtype of `weight`."""

def multi_all_finite(
    *data: Symbol | Sequence[Symbol],
    num_arrays: int = 1,
    init_output: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """1 if no element of any array is infinite or NaN, else 0, as float32 of shape (1,)."""

def multi_lars(
    lrs: Symbol | None = None,
    weights_sum_sq: Symbol | None = None,
    grads_sum_sq: Symbol | None = None,
    wds: Symbol | None = None,
    eta: float = ...,
    eps: float = ...,
    rescale_grad: float = 1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Layer-wise rates `lr * eta * ‖w‖ / (rescale_grad * ‖g‖ + wd * ‖w‖ + eps)`, `lr` where a norm is 0."""

def multi_mp_sgd_mom_update(
    *data: Symbol | Sequence[Symbol],
    lrs: Floats,
    wds: Floats,
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """SGD with momentum for groups (weight, grad, mom, weight32); each as `sgd_mom_update`. Outputs: the next
    weights; states are written.
    """

def multi_mp_sgd_update(
    *data: Symbol | Sequence[Symbol],
    lrs: Floats,
    wds: Floats,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """SGD for groups (weight, grad, weight32); `w - lr * (g' + wd * w)` each, as `sgd_update`. Outputs: the next
    weights.
    """

def multi_sgd_mom_update(
    *data: Symbol | Sequence[Symbol],
    lrs: Floats,
    wds: Floats,
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """SGD with momentum for groups (weight, grad, mom); each as `sgd_mom_update`. Outputs: the next weights; states
    are written.
    """

def multi_sgd_update(
    *data: Symbol | Sequence[Symbol],
    lrs: Floats,
    wds: Floats,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """SGD for groups (weight, grad); `w - lr * (g' + wd * w)` each, as `sgd_update`. Outputs: the next weights."""

def multi_sum_sq(
    *data: Symbol | Sequence[Symbol],
    num_arrays: int,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Sum of squares of every array, as one float32 vector of shape (num_arrays,)."""

def nag_mom_update(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    mom: Symbol | None = None,
    lr: float = ...,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Nesterov's momentum: `m = momentum * m; w' = w - m + (1 + momentum) * (m - lr * (g' + wd * w))`."""

def nanprod(
    data: Symbol | None = None,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Product of the elements that are not nan."""

def nansum(
    data: Symbol | None = None,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Sum of the elements that are not nan."""

def negative(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """-x."""

def norm(
    data: Symbol | None = None,
    ord: int = 2,
    axis: Axes = None,
    out_dtype: DType | None = None,
    keepdims: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Norm along `axis` (all axes if None): ord 2 is sqrt(sum(x**2)), ord 1 is sum(|x|)."""

def normal(
    loc: float = 0.0,
    scale: float = 1.0,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the normal distribution, by mean and standard deviation."""

def one_hot(
    indices: Symbol | None = None,
    depth: int = ...,
    on_value: float = 1.0,
    off_value: float = 0.0,
    dtype: Literal["float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64"] = "float32",
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Encode indices (…) as (…, depth): `on_value` at the index, `off_value` elsewhere and for indices outside."""

def ones_like(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Ones in the shape and dtype of the input."""

def pad(
    data: Symbol | None = None,
    mode: Literal["constant", "edge", "reflect"] = ...,
    pad_width: Shape = ...,
    constant_value: float = 0.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Widen every axis i by `pad_width[2·i]` elements before and `pad_width[2·i+1]` after."""

def pick(
    data: Symbol | None = None,
    index: Symbol | None = None,
    axis: int | None = -1,
    keepdims: bool = False,
    mode: Literal["clip", "wrap"] = "clip",
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Read one element along `axis` for every position of the other axes: data (m, n), index (m,) -> (m,)."""

def preloaded_multi_mp_sgd_mom_update(
    *data: Symbol | Sequence[Symbol],
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """SGD with momentum for groups (weight, grad, mom, weight32), then the arrays lrs and wds; each as
    `sgd_mom_update`. Outputs: the next weights.
    """

def preloaded_multi_mp_sgd_update(
    *data: Symbol | Sequence[Symbol],
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """SGD for groups (weight, grad, weight32), then the arrays lrs and wds; each as `sgd_update`. Outputs: the next
    weights.
    """

def preloaded_multi_sgd_mom_update(
    *data: Symbol | Sequence[Symbol],
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """SGD with momentum for groups (weight, grad, mom), then the arrays lrs and wds; each as `sgd_mom_update`.
    Outputs: the next weights.
    """

def preloaded_multi_sgd_update(
    *data: Symbol | Sequence[Symbol],
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """SGD for groups (weight, grad), then the arrays lrs and wds; each as `sgd_update`. Outputs: the next weights."""

def prod(
    data: Symbol | None = None,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Product of the elements."""

def radians(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """x degrees in radians: x * pi / 180."""

def random_exponential(
    lam: float = 1.0,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the exponential distribution of mean 1 / lam."""

def random_gamma(
    alpha: float = 1.0,
    beta: float = 1.0,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the gamma distribution of shape alpha and scale beta."""

def random_generalized_negative_binomial(
    mu: float = 1.0,
    alpha: float = 1.0,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of counts with mean mu and variance mu + alpha * mu**2."""

def random_negative_binomial(
    k: int = 1,
    p: float = 1.0,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the number of failures before the k-th success, each of probability p."""

def random_normal(
    loc: float = 0.0,
    scale: float = 1.0,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the normal distribution, by mean and standard deviation."""

def random_pdf_dirichlet(
    sample: Symbol | None = None,
    alpha: Symbol | None = None,
    is_log: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Density of samples from the Dirichlet distribution of concentrations alpha, its logarithm with `is_log`."""

def random_pdf_exponential(
    sample: Symbol | None = None,
    lam: Symbol | None = None,
    is_log: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Density of samples from the exponential distribution: lam * exp(-lam * x), its logarithm with `is_log`."""

def random_pdf_gamma(
    sample: Symbol | None = None,
    alpha: Symbol | None = None,
    beta: Symbol | None = None,
    is_log: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Density of samples from the gamma distribution of shape alpha and rate beta, its logarithm with `is_log`."""

def random_pdf_generalized_negative_binomial(
    sample: Symbol | None = None,
    mu: Symbol | None = None,
    alpha: Symbol | None = None,
    is_log: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Density of samples from counts of mean mu and variance mu + alpha * mu**2, its logarithm with `is_log`."""

def random_pdf_negative_binomial(
    sample: Symbol | None = None,
    k: Symbol | None = None,
    p: Symbol | None = None,
    is_log: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Density of samples from failures before the k-th success of probability p, its logarithm with `is_log`."""

def random_pdf_normal(
    sample: Symbol | None = None,
    mu: Symbol | None = None,
    sigma: Symbol | None = None,
    is_log: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Density of samples from the normal distribution of mean mu and standard deviation sigma, its logarithm with
    `is_log`.
    """

def random_pdf_poisson(
    sample: Symbol | None = None,
    lam: Symbol | None = None,
    is_log: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Density of samples from the Poisson distribution: lam**x * exp(-lam) / x!, its logarithm with `is_log`."""

def random_pdf_uniform(
    sample: Symbol | None = None,
    low: Symbol | None = None,
    high: Symbol | None = None,
    is_log: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Density of samples from the uniform distribution: 1 / (high - low), its logarithm with `is_log`."""

def random_poisson(
    lam: float = 1.0,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the Poisson distribution of mean lam."""

def random_randint(
    low: int,
    high: int,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Integers drawn uniformly from low, low + 1, ..., high - 1."""

def random_uniform(
    low: float = 0.0,
    high: float = 1.0,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the uniform distribution on [low, high)."""

def ravel_multi_index(
    data: Symbol | None = None,
    shape: Shape = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Turn coordinates (n, k…) in an array of `shape` into flat positions (k…), of the dtype of `data`."""

def rcbrt(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """x ** (-1/3), real for negative x."""

def reciprocal(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """1 / x."""

def relu(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """max(x, 0); derivative 0 at 0."""

def repeat(
    data: Symbol | None = None,
    repeats: int = ...,
    axis: int | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Repeat each element `repeats` times along `axis`, or of the flattened array without `axis`."""

def reset_arrays(
    *data: Symbol | Sequence[Symbol],
    num_arrays: int,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Fill every array with zeros, in place; no output."""

def reshape(
    data: Symbol | None = None,
    shape: Shape = (),
    reverse: bool = False,
    target_shape: Shape = (),
    keep_highest: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Give `data` a new shape of as many elements; dtype of `data`."""

def reshape_like(
    lhs: Symbol | None = None,
    rhs: Symbol | None = None,
    lhs_begin: int | None = None,
    lhs_end: int | None = None,
    rhs_begin: int | None = None,
    rhs_end: int | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Reshape `lhs` to the shape of `rhs`, or its axes [lhs_begin, lhs_end) to those [rhs_begin, rhs_end) of `rhs`."""

def reverse(
    data: Symbol | None = None,
    axis: Shape = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Reverse the order of elements along every axis in `axis`; an axis named twice stays as it is."""

def rint(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Nearest integer, halves down: 1.5 gives 1, -1.5 gives -2; derivative 0."""

def rmsprop_update(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    n: Symbol | None = None,
    lr: float = ...,
    gamma1: float = 0.95,
    epsilon: float = 1e-08,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    clip_weights: float = -1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """RMSProp with coupled decay: `n = gamma1 * n + (1 - gamma1) * g**2; w - lr * g / sqrt(n + epsilon)`."""

def rmspropalex_update(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    n: Symbol | None = None,
    g: Symbol | None = None,
    delta: Symbol | None = None,
    lr: float = ...,
    gamma1: float = 0.95,
    gamma2: float = 0.9,
    epsilon: float = 1e-08,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    clip_weights: float = -1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Centred RMSProp with momentum `gamma2` and coupled decay (Graves, 2013, eq. 38-45). Shapes: all equal."""

def round(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Nearest integer, halves away from zero; derivative 0."""

def rsqrt(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """x ** -0.5."""

def sample_exponential(
    lam: Symbol | None = None,
    shape: Shape = (),
    dtype: DType | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the exponential distribution of mean 1 / lam, one distribution for each element."""

def sample_gamma(
    alpha: Symbol | None = None,
    beta: Symbol | None = None,
    shape: Shape = (),
    dtype: DType | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the gamma distribution of shape alpha and scale beta, one distribution for each element."""

def sample_generalized_negative_binomial(
    mu: Symbol | None = None,
    alpha: Symbol | None = None,
    shape: Shape = (),
    dtype: DType | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of counts with mean mu and variance mu + alpha * mu**2, one distribution for each element."""

def sample_multinomial(
    data: Symbol | None = None,
    shape: Shape = (),
    get_prob: bool = False,
    dtype: Literal["uint8", "int32", "float16", "float32", "float64"] = "int32",
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Indices drawn with the probabilities along the last axis, which need not add up to 1."""

def sample_negative_binomial(
    k: Symbol | None = None,
    p: Symbol | None = None,
    shape: Shape = (),
    dtype: DType | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the number of failures before the k-th success, each of probability p, one distribution for each
    element.
    """

def sample_normal(
    mu: Symbol | None = None,
    sigma: Symbol | None = None,
    shape: Shape = (),
    dtype: DType | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the normal distribution, by mean and standard deviation, one distribution for each element."""

def sample_poisson(
    lam: Symbol | None = None,
    shape: Shape = (),
    dtype: DType | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the Poisson distribution of mean lam, one distribution for each element."""

def sample_uniform(
    low: Symbol | None = None,
    high: Symbol | None = None,
    shape: Shape = (),
    dtype: DType | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the uniform distribution on [low, high), one distribution for each element."""

def scatter_nd(
    data: Symbol | None = None,
    indices: Symbol | None = None,
    shape: Shape = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Write `data` at the points `indices` into zeros of `shape`; of several writes to a point the last one stays."""

def sgd_mom_update(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    mom: Symbol | None = None,
    lr: float = ...,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """SGD with momentum: `m = momentum * m - lr * (g' + wd * w); w + m`. Shapes: all equal."""

def sgd_update(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    lr: float = ...,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Stochastic gradient descent: `w - lr * (g' + wd * w)`. Shapes: all equal. `lazy_update` concerns row_sparse."""

def shape_array(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """The shape of the input as a vector of int64, length `data.ndim`."""

def shuffle(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """The slices along the first axis in random order."""

def sigmoid(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """1 / (1 + exp(-x))."""

def sign(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """-1, 0 or 1 by the sign of x; derivative 0."""

def signsgd_update(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    lr: float = ...,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """SignSGD: `(1 - lr * wd) * w - lr * sign(grad)` (Bernstein et al., 2018). Shapes: all equal."""

def signum_update(
    weight: Symbol | None = None,
    grad: Symbol | None = None,
    mom: Symbol | None = None,
    lr: float = ...,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    wd_lh: float = 0.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """SignSGD with momentum: `m = momentum * m - (1 - momentum) * (g' + wd * w); (1 - lr * wd_lh) * w + lr *
    sign(m)`.
    """

def sin(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Sine of x in radians."""

def sinh(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Hyperbolic sine of x."""

def size_array(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """The number of elements of the input as int64, shape (1,)."""

def slice(
    data: Symbol | None = None,
    begin: Holes = ...,
    end: Holes = ...,
    step: Holes = (),
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Cut out `data[begin[0]:end[0]:step[0], …]` with Python's slice rules; `None` is open, later axes are whole."""

def slice_axis(
    data: Symbol | None = None,
    axis: int = ...,
    begin: int = ...,
    end: int | None = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Cut out `begin:end` along one axis; negative positions count from the end, `end=None` is open."""

def slice_like(
    data: Symbol | None = None,
    shape_like: Symbol | None = None,
    axes: Axes = (),
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Cut `data` to the leading part as long as `shape_like` along `axes` (all axes by default)."""

def smooth_l1(
    data: Symbol | None = None,
    scalar: float = 1.0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Smooth absolute value: (s x)**2 / 2 where |x| < 1 / s**2, else |x| - 0.5 / s**2, with s = `scalar`."""

def softmax(
    data: Symbol | None = None,
    length: Symbol | None = None,
    axis: int = -1,
    temperature: float | None = None,
    dtype: DType | None = None,
    use_length: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`exp(x/t) / Σ exp(x/t)` along `axis`; with `use_length`, over the first `length` elements, 0 behind them."""

def softmax_cross_entropy(
    data: Symbol | None = None,
    label: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """`−Σᵢ log softmax(dataᵢ)[labelᵢ]`, summed over the batch."""

def softmin(
    data: Symbol | None = None,
    axis: int = -1,
    temperature: float | None = None,
    dtype: DType | None = None,
    use_length: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Softmax of the negated data along `axis`. Shapes: any, kept."""

def softsign(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """x / (1 + |x|)."""

def sort(
    data: Symbol | None = None,
    axis: int | None = -1,
    is_ascend: bool = True,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Sort along `axis`, or the flattened array without `axis`."""

def space_to_depth(
    data: Symbol | None = None,
    block_size: int = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Move blocks of pixels into channels: (n, c, h·b, w·b) -> (n, b·b·c, h, w), `b` being `block_size`."""

def split(
    data: Symbol | None = None,
    num_outputs: int = ...,
    axis: int = 1,
    squeeze_axis: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Split `data` along `axis` into `num_outputs` parts of equal length; `squeeze_axis` drops that axis."""

def sqrt(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Square root of x; nan below 0, derivative inf at 0."""

def square(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """x ** 2."""

def squeeze(
    data: Symbol | None = None,
    axis: Axes = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Drop the axes `axis`, which must have length 1 (all such axes by default); at least one axis is left."""

def stack(
    *args: Symbol | Sequence[Symbol],
    axis: int = 0,
    num_args: int = 0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Join inputs of equal shape along a new axis at position `axis`: k times (m, n) -> (k, m, n)."""

def stop_gradient(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """The input, with derivative 0."""

def sum(
    data: Symbol | None = None,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Sum of the elements; half precision adds up in float32."""

def sum_axis(
    data: Symbol | None = None,
    axis: Axes = None,
    keepdims: bool = False,
    exclude: bool = False,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Sum of the elements; half precision adds up in float32."""

def swapaxes(
    data: Symbol | None = None,
    dim1: int = 0,
    dim2: int = 0,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Exchange the axes `dim1` and `dim2`."""

def take(
    a: Symbol | None = None,
    indices: Symbol | None = None,
    axis: int = 0,
    mode: Literal["clip", "wrap", "raise"] = "clip",
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Select slices of `a` along `axis`: (…, n, …) with indices (k, l) -> (…, k, l, …); dtype of `a`."""

def tan(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Tangent of x in radians."""

def tanh(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Hyperbolic tangent of x."""

def tile(
    data: Symbol | None = None,
    reps: Shape = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Repeat the whole array `reps[i]` times along axis i; shape and `reps` are aligned at the last axis."""

def topk(
    data: Symbol | None = None,
    axis: int | None = -1,
    k: int = 1,
    ret_typ: Literal["indices", "value", "both", "mask"] = "indices",
    is_ascend: bool = False,
    dtype: Literal["float32", "float16", "float64", "int32", "int64", "uint8"] = "float32",
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Find the `k` largest (`is_ascend`: smallest) elements along `axis`, of the flattened array without `axis`."""

def transpose(
    data: Symbol | None = None,
    axes: Shape = (),
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Permute the axes: axis i of the result is axis `axes[i]` of `data`; without `axes` their order is reversed."""

def trunc(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Nearest integer toward zero; derivative 0."""

def uniform(
    low: float = 0.0,
    high: float = 1.0,
    shape: Axes = None,
    ctx: Context | str | None = "",
    dtype: DType | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Samples of the uniform distribution on [low, high)."""

def unravel_index(
    data: Symbol | None = None,
    shape: Shape = ...,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Turn flat positions (k…) in an array of `shape` into coordinates (n, k…), of the dtype of `data`."""

def where(
    condition: Symbol | None = None,
    x: Symbol | None = None,
    y: Symbol | None = None,
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Choose `x` where `condition` is not 0, else `y`; all of one shape, or condition (m,) choosing rows."""

def zeros_like(
    data: Symbol | None = None, name: str | None = None, attr: Mapping[str, str] | None = None, **kwargs: Any
) -> Symbol:
    """Zeros in the shape and dtype of the input."""
