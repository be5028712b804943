"""What the reference contains and in which order: sections as users think of them, and themes of operators."""

from __future__ import annotations

import re

# Section -> paths of public modules below the package; each has a page. An object that several modules export is
# described on the page of the first of them (after those of `SPECIFIC`), and listed with a link on the others.
SECTIONS: dict[str, tuple[str, ...]] = {
    "Arrays": (
        "ndarray",
        "ndarray.random",
        "ndarray.linalg",
        "ndarray.sparse",
        "ndarray.image",
        "ndarray.contrib",
        "numpy",
        "numpy.random",
        "numpy.linalg",
        "numpy_extension",
        "numpy_extension.random",
        "numpy_extension.image",
        "random",
        "context",
    ),
    "Autograd": ("autograd", "operator"),
    "Gluon": (
        "gluon",
        "gluon.nn",
        "gluon.rnn",
        "gluon.loss",
        "gluon.parameter",
        "gluon.trainer",
        "gluon.utils",
        "gluon.data",
        "gluon.data.vision",
        "gluon.data.vision.transforms",
        "gluon.model_zoo",
        "gluon.model_zoo.vision",
        "gluon.model_zoo.model_store",
        "gluon.contrib",
        "gluon.contrib.nn",
        "gluon.contrib.cnn",
        "gluon.contrib.rnn",
        "gluon.contrib.rnn.rnn_cell",
        "gluon.contrib.data",
        "gluon.contrib.data.text",
        "gluon.contrib.estimator",
        "gluon.bridge",
    ),
    "Symbolic": (
        "symbol",
        "symbol.contrib",
        "symbol.random",
        "symbol.sparse",
        "symbol.linalg",
        "symbol.image",
        "symbol.numpy",
        "symbol.numpy_extension",
        "executor",
        "module",
        "module.executor_group",
        "model",
        "rnn",
        "attribute",
        "name",
        "executor_manager",
    ),
    "Training": (
        "optimizer",
        "optimizer.contrib",
        "lr_scheduler",
        "initializer",
        "metric",
        "callback",
        "monitor",
        "checkpoint",
        "contrib.amp",
        "contrib.amp.loss_scaler",
        "contrib.amp.lists.symbol_fp16",
        "contrib.amp.lists.symbol_bf16",
        "contrib.svrg_optimization",
        "contrib.autograd",
    ),
    "Data": ("io", "image", "recordio", "contrib.text", "contrib.text.embedding", "contrib.text.utils", "contrib.io"),
    "Distributed": (
        "kvstore",
        "kvstore.base",
        "kvstore.kvstore_server",
        "gluon.parallel",
        "parallel",
        "parallel.rpc",
        "launch",
        "distributed",
        "horovod",
        "horovod.elastic",
        "keras",
        "keras.layers",
        "keras.models",
        "keras.losses",
        "keras.metrics",
        "keras.optimizers",
        "keras.callbacks",
        "keras.distribute",
        "lightning",
        "lightning.callbacks",
        "lightning.loggers",
        "spark",
    ),
    "Deployment and exchange": (
        "predictor",
        "contrib.quantization",
        "contrib.onnx",
        "onnx",
        "contrib.stablehlo",
        "contrib.safetensors",
        "bridge",
        "library",
    ),
    "Tools": (
        "debug",
        "profiler",
        "visualization",
        "contrib.tensorboard",
        "log",
        "engine",
        "runtime",
        "util",
        "test_utils",
        "error",
        "registry",
        "base",
        "libinfo",
        "rtc",
        "numpy_dispatch_protocol",
        "cli",
        "",
    ),
}

# Modules that are about something narrow: what they export belongs to them, though larger ones have it too.
SPECIFIC = ("context", "executor", "attribute", "name", "util")

# What users write after `mx.` for a module whose file has a longer name.
SHORT_NAMES = {"ndarray": "nd", "symbol": "sym", "numpy": "np", "numpy_extension": "npx"}

# How much a match counts in the search, by section: `Dense` is a layer of Gluon before it is one in the words of Keras.
# Pages that describe nothing of their own count less than any other.
BOOSTS = {"Arrays": 4, "Autograd": 4, "Gluon": 4, "Training": 2}
BOOST_OF_RARE = 0.5

# Packages that no script imports: what the public modules are made of, and the programs behind the command line.
INTERNAL = frozenset({"compile", "core", "diagnose", "graph", "namespace", "op", "ps", "sparse", "text", "tools"})

# Theme -> pattern of the registered names of its operators. The first that matches a whole name has the operator.
_NN_PARTS = "interleaved_matmul|dot_product_attention"
_THEMES = {
    "Updates of optimizers": r".*_update(_phase\d)?|multi_(lars|sum_sq)|(multi_)?all_finite|reset_arrays",
    "Eight-bit integers": r"_contrib_(quantize.*|dequantize|requantize|calibrate_entropy)",
    "Images": r"_image_.*",
    "Random numbers": (
        r"_(random|sample)_.*|_shuffle|_npi_(uniform|normal|gamma|logistic|gumbel|exponential|rayleigh|weibull|pareto"
        r"|powerd|bernoulli|standard|randint|choice|multinomial)(_.*)?"
    ),
    "Linear algebra": r"dot|batch_dot|khatri_rao|_linalg_.*",
    "NumPy semantics: linear algebra and products": (
        r"_npi?_(cholesky|inv|det|slogdet|svd|eig.*|solve|pinv.*|tensorinv|tensorsolve|norm|dot|matmul|tensordot.*"
        r"|einsum|kron)"
    ),
    "NumPy semantics: arithmetic and comparison": (
        r"_npi_(.*_scalar|add|subtract|multiply|true_divide|mod|floor_divide|power|maximum|minimum|hypot|arctan2"
        r"|copysign|ldexp|lcm|bitwise_.*|equal|not_equal|less.*|greater.*|logical_.*|is.*|around|nan_to_num)"
    ),
    "NumPy semantics: shapes, searching and reductions": r"_np(i|x)?_(?!cumsum).*",
    "Convolution and pooling": (
        r"Convolution|Deconvolution|Pooling|im2col|col2im|Crop|UpSampling|Correlation"
        r"|_contrib_(\w*DeformableConvolution|AdaptiveAvgPooling2D|BilinearResize2D)"
    ),
    "Normalization": r"(_contrib_)?\w*(BatchNorm|LayerNorm|InstanceNorm|GroupNorm)\w*|L2Normalization|LRN",
    "Activation and softmax": (
        r"Activation|LeakyReLU|softmax|log_softmax|softmin|SoftmaxActivation|relu|sigmoid|softsign|hard_sigmoid"
    ),
    "Fully connected, recurrent and attention layers": (
        rf"FullyConnected|Embedding|_contrib_SparseEmbedding|Dropout|RNN|_rnn_param_concat|_contrib_({_NN_PARTS}).*"
        r"|_contrib_div_sqrt_dim|IdentityAttachKLSparseReg"
    ),
    "Losses and outputs": (
        r"\w*Output|MakeLoss|make_loss|CTCLoss|softmax_cross_entropy|smooth_l1|_contrib_hawkesll"
        r"|_contrib_backward_hawkesll"
    ),
    "Detection": r"_contrib_(box_.*|bipartite_matching|MultiBox.*|.*Proposal|\w*ROI.*)|ROIPooling",
    "Spatial transformations": r"GridGenerator|BilinearSampler|SpatialTransformer",
    "Sequences": r"Sequence\w*",
    "Graphs": r"_contrib_(getnnz|edge_id|dgl_.*)",
    "Signals": r"_contrib_(fft|ifft|count_sketch)",
    "Sorting": r"topk|sort|argsort",
    "Reductions": (
        r"sum|mean|prod|nansum|nanprod|max|min|_square_sum|norm|argmax|argmin|argmax_channel|moments|_np_cumsum"
        r"|_contrib_allclose|_histogram"
    ),
    "Shapes and joining": (
        r"Reshape|reshape_like|Flatten|transpose|SwapAxis|expand_dims|squeeze|broadcast_(to|like|axis)|depth_to_space"
        r"|space_to_depth|diag|reverse|Concat|stack|SliceChannel|_split_v2|tile|repeat|Pad|shape_array|size_array"
    ),
    "Indexing and slicing": (
        r"take|batch_take|pick|fill_element_0index|(_backward_)?gather_nd|scatter_nd|_scatter_set_nd|one_hot"
        r"|_onehot_encode|where|_contrib_(backward_)?index_copy|_contrib_(index_array|boolean_mask)|_(un)?ravel_.*"
        r"|slice.*|_slice_.*|_basic_slice.*|_window.*|_advanced_.*"
    ),
    "Creation": r"_zeros.*|_ones|_full|_arange|_linspace|_eye|_contrib_arange_like|zeros_like|ones_like",
    "Storage and devices": (
        r"cast_storage|_sparse_retain|_copy|_copyto|_CrossDeviceCopy|_contrib_sharding_constraint|_identity_with.*"
    ),
    "Arithmetic and comparison": (
        r"broadcast_.*|elemwise_.*|_\w*(add|sub|mul|div|mod|power|hypot|maximum|minimum|equal|greater|lesser|and|or|xor)"
        r"|_\w*_scalar|add_n|_scatter_.*"
    ),
    "Elementwise mathematics": r"[a-z][a-z0-9_]*|Cast|BlockGrad|_contrib_\w*(_ste|quadratic|gradientmultiplier)",
}
THEMES = {title: re.compile(pattern) for title, pattern in _THEMES.items()}

# Themes whose operators other functions call: their users look for these.
RARE_THEMES = frozenset(t for t in THEMES if t.startswith("NumPy")) | {"Updates of optimizers", "Eight-bit integers"}


def theme_of(operator: str) -> str | None:
    """The theme of the operator registered as `operator`, or None where no pattern matches."""
    return next((title for title, pattern in THEMES.items() if pattern.fullmatch(operator)), None)
