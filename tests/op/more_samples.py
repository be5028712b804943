"""Samples of the operators that no table of recorded cases holds: updates, indexing, images, samplers."""

# NumPy's stubs do not know that np.float32([...]) is an array.
# pyright: reportArgumentType=false, reportIndexIssue=false
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.goldens.nn_cases import GROUPS
from tests.op.samples import Sample

# float32 state of the operators that update one weight: name -> (number of states, keywords).
ONE_WEIGHT: dict[str, tuple[int, dict[str, Any]]] = {
    "sgd_update": (0, {}),
    "sgd_mom_update": (1, {"momentum": 0.9}),
    "nag_mom_update": (1, {"momentum": 0.9}),
    "signsgd_update": (0, {}),
    "signum_update": (1, {"momentum": 0.9, "wd_lh": 0.1}),
    "_dcasgd_update": (2, {"momentum": 0.9, "lamda": 0.04}),
    "_lars_update": (1, {"momentum": 0.9, "eta": 0.1}),
    "adam_update": (2, {}),
    "rmsprop_update": (1, {}),
    "rmspropalex_update": (3, {}),
    "_sparse_adagrad_update": (1, {}),
    "ftrl_update": (2, {}),
    "_adamax_update": (2, {}),
    "_nadam_update": (2, {"grad_rate": 0.5, "mean_rate": 0.6, "var_rate": 0.7}),
}
MASTER = {"mp_sgd_update": 0, "mp_sgd_mom_update": 1, "mp_nag_mom_update": 1, "_mp_lars_update": 1}
COMMON = {"lr": 0.1, "wd": 0.01, "rescale_grad": 0.5}
SPEC = {"spec": "a,0:3:1,a", "num_args": 3}


def draw(seed: int, *shape: int, low: float = 0.2, high: float = 1.2) -> np.ndarray:
    """Positive float32 values."""
    return np.random.RandomState(seed).uniform(low, high, shape).astype(np.float32)


def floats(count: int, *shape: int) -> tuple[np.ndarray, ...]:
    """Several arrays of one shape."""
    return tuple(draw(seed, *shape) for seed in range(count))


def half(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """The arrays in half precision."""
    return tuple(a.astype(np.float16) for a in arrays)


def updates() -> Iterator[Sample]:
    """Updates of one weight."""
    for name, (states, params) in ONE_WEIGHT.items():
        yield Sample(name, floats(2 + states, 3, 2), {**COMMON, **params})
    for name, states in MASTER.items():
        arrays = floats(3 + states, 3, 2)
        momentum = {"momentum": 0.9} if states else {}
        yield Sample(name, (*half(*arrays[:2]), *arrays[2:]), {**COMMON, **momentum})
    rate = {"wd": 0.01, "rescale_grad": 0.5}
    yield Sample("_adadelta_update", floats(4, 3), {"rho": 0.9, **rate})
    yield Sample("ftml_update", floats(5, 3), {**COMMON, "t": 2})
    yield Sample("_contrib_group_adagrad_update", (*floats(2, 3, 2), draw(5, 3, 1)), {"lr": 0.1})
    yield Sample("lamb_update_phase1", floats(4, 3), {"t": 2, **rate})
    yield Sample("lamb_update_phase2", (*floats(2, 3), *floats(2, 1)), {"lr": 0.1})
    w, g, m, v, w32 = floats(5, 3)
    yield Sample("mp_lamb_update_phase1", (*half(w, g), m, v, w32), {"t": 2, **rate})
    yield Sample("mp_lamb_update_phase2", (*half(w), g, *floats(2, 1), w32), {"lr": 0.1})
    scale = draw(7, 1)
    yield Sample("_adamw_update", (w, g, m, v, scale), {"lr": 0.1, "eta": 0.7})
    yield Sample("_mp_adamw_update", (*half(w, g), m, v, w32, scale), {"lr": 0.1, "eta": 0.7})


def many_updates() -> Iterator[Sample]:
    """Updates of several weights in one call."""
    one, two = floats(5, 3), floats(5, 2, 2)
    rates = {"lrs": (0.1, 0.2), "wds": (0.01, 0.0), "num_weights": 2}
    loaded = (np.float32([0.1, 0.2]), np.float32([0.01, 0.0]))
    for mom in (False, True):
        word, momentum = ("sgd_mom", {"momentum": 0.9}) if mom else ("sgd", {})
        for master in (False, True):
            groups: list[np.ndarray] = []
            for w, g, m, _, w32 in (one, two):
                groups += [*(half(w, g) if master else (w, g)), *([m] if mom else []), *([w32] if master else [])]
            name = f"multi_{'mp_' if master else ''}{word}_update"
            yield Sample(name, tuple(groups), {**rates, **momentum})
            yield Sample(f"preloaded_{name}", (*groups, *loaded), {"num_weights": 2, **momentum})
    yield Sample("_multi_adam_update", (*one[:4], *two[:4]), rates)
    scale = np.float32([0.5])
    for master in (False, True):
        groups = []
        for w, g, m, v, w32 in (one, two):
            groups += [*half(w, g), m, v, w32] if master else [w, g, m, v]
        word = "mp_" if master else ""
        etas = {"etas": (0.7, 0.8)}
        yield Sample(f"_multi_{word}adamw_update", (*groups, scale), {**rates, **etas})
        params = {"learning_rates": (0.1, 0.2), "wds": (0.01, 0.0), "step_count": (1, 2), "num_tensors": 2}
        yield Sample(f"_multi_{word}lamb_update", tuple(groups), params)
    yield Sample("multi_lars", floats(4, 3), {"eta": 0.1, "eps": 1e-3})
    yield Sample("multi_sum_sq", (one[0], two[0]), {"num_arrays": 2})
    yield Sample("all_finite", (one[0],))
    yield Sample("multi_all_finite", (one[0], two[0]), {"num_arrays": 2})
    yield Sample("reset_arrays", (one[0], two[0]), {"num_arrays": 2})


def windows() -> Iterator[Sample]:
    """Reading and writing windows and points."""
    data = draw(1, 4, 3, 2)
    window = {"begin": (1, 2), "end": (3, -1), "step": (1, -1)}
    at, where = np.int32([1, -1, 0]), np.int32([0, 1, 1])
    yield Sample("_basic_slice", (data,), {**window, "squeeze": ()}, (0,))
    yield Sample("_basic_slice_assign", (data, draw(2, 2, 3, 2)), window, (0, 1))
    box = {"size": (2, 1, 2), "start": (1, 2, 0), "squeeze": (1,)}
    yield Sample("_window", (data,), box, (0,))
    yield Sample("_window_assign", (data, draw(2, 2, 2)), box, (0, 1))
    yield Sample("_advanced_get", (data, at, where), SPEC, (0,))
    yield Sample("_advanced_set", (data, draw(3, 3, 3), at, where), {**SPEC, "num_args": 4}, (0, 1))
    points = np.int32([[0, 2], [1, 0]])
    yield Sample("_scatter_set_nd", (draw(4, 3, 2), draw(5, 2), points), {"shape": (3, 2)}, (0, 1))
    embedded = {"input_dim": 4, "output_dim": 2}
    yield Sample("_contrib_SparseEmbedding", (np.float32([[0, 3], [1, 3]]), draw(6, 4, 2)), embedded, (1,))
    yield Sample("_rnn_param_concat", floats(2, 3), {"dim": 0}, (0, 1))
    yield Sample("_zeros_without_dtype", (), {"shape": (2, 3)})


def images() -> Iterator[Sample]:
    """Images (H, W, C) or (C, H, W)."""
    bytes_ = np.random.RandomState(1).randint(0, 255, (4, 5, 3)).astype(np.uint8)
    whole = draw(1, 4, 5, 3)
    yield Sample("_image_to_tensor", (bytes_,))
    yield Sample("_image_normalize", (draw(2, 3, 4, 5),), {"mean": (0.5, 0.4, 0.3), "std": (0.2, 0.3, 0.4)}, (0,))
    yield Sample("_image_flip_left_right", (whole,), {}, (0,))
    yield Sample("_image_flip_top_bottom", (whole,), {}, (0,))
    yield Sample("_image_crop", (whole,), {"x": 1, "y": 0, "width": 3, "height": 2}, (0,))
    yield Sample("_image_resize", (whole,), {"size": (3, 6)})


def norms() -> Iterator[Sample]:
    """Relatives of BatchNorm, on the values of a recorded case."""
    case = next(c for c in GROUPS["norm"] if c.op == "BatchNorm" and c.params.get("fix_gamma") is False)
    arrays = tuple(case.arrays().values())
    yield Sample("_contrib_BatchNormWithReLU", arrays, {"fix_gamma": False}, (0, 1, 2))
    yield Sample("_contrib_SyncBatchNorm", arrays, {"fix_gamma": False, "key": "bn"}, (0, 1, 2))


def transforms() -> Iterator[Sample]:
    """Operators that MXNet runs on GPUs only, penalties, and gradients under their own names."""
    rows = draw(1, 2, 6)
    yield Sample("_contrib_fft", (rows,), {}, (0,))
    yield Sample("_contrib_ifft", (rows,), {}, (0,))
    where, sign = np.float32([[0, 2, 1, 2, 0, 3]]), np.float32([[1, -1, 1, 1, -1, 1]])
    yield Sample("_contrib_count_sketch", (rows, where, sign), {"out_dim": 4}, (0,))
    sparse = {"penalty": 0.1, "sparseness_target": 0.2}
    activations = draw(2, 4, 3, low=0.1, high=0.9)
    yield Sample("IdentityAttachKLSparseReg", (activations, np.float32([0.3, 0.4, 0.5])), sparse, (0,), numeric=False)
    yield Sample("_contrib_sharding_constraint", (rows,), {"spec": "('data', None)"}, (0,))
    yield Sample("_contrib_dot_product_attention", floats(3, 1, 2, 3, 2), {"causal": True}, (0, 1, 2))
    yield Sample("_contrib_backward_gradientmultiplier", (rows,), {"scalar": 0.3}, (0,))
    yield Sample("_contrib_backward_quadratic", floats(2, 3, 2), {"a": 2.0, "b": 0.5}, (0, 1))
    copied = (*floats(2, 4, 2), np.int64([3, 1]), draw(3, 2, 2))
    yield Sample("_contrib_backward_index_copy", copied, {}, (0,))
    marks, lengths = np.int32([[0, 1, 0], [1, 1, 0]]), np.float32([3, 2])
    process = (draw(1, 2), draw(2, 2, 2), draw(3, 2), draw(4, 2), draw(5, 2, 2), draw(6, 2, 3))
    yield Sample("_contrib_backward_hawkesll", (*process, marks, lengths, np.float32([9, 9])), {}, (0,))


def quantized() -> Iterator[Sample]:
    """Quantized operators that MXNet's CPU build cannot run as they are documented."""
    ends = tuple(np.float32([v]) for v in (-1, 2, -3, 0.5, -0.1, 0.1))
    image = np.int8(np.arange(24).reshape(1, 2, 3, 4) * 7 % 200 - 100)
    kernel = np.int8(np.arange(24).reshape(3, 2, 2, 2) * 5 % 90 - 45)
    yield Sample("_contrib_quantize_asym", (draw(1, 2, 3, low=-1),))
    yield Sample("_contrib_quantized_elemwise_mul", (image, image[:, ::-1].copy(), *ends[:4]))
    moments = tuple(np.float32(v) for v in ([1.5, 0.7], [0.2, -0.1], [0.1, 0.3], [0.7, 1.2]))
    thresholds = {"min_calib_range": -1.0, "max_calib_range": 2.0, "fix_gamma": False}
    yield Sample("_contrib_quantized_batch_norm", (image, *moments, *ends[:2]), thresholds)
    shape = {"kernel": (2, 2), "num_filter": 3}
    table = np.int8(np.arange(48).reshape(2, 24) * 11 % 180 - 90)
    yield Sample("_contrib_quantized_fully_connected", (image, table, np.int8([5, -3]), *ends), {"num_hidden": 2})
    yield Sample("_contrib_quantized_conv", (image, kernel, np.int8([5, -3, 9]), *ends), shape)


DISTRIBUTIONS: dict[str, dict[str, Any]] = {
    "uniform": {"low": -1.0, "high": 3.0},
    "normal": {"loc": 2.0, "scale": 3.0},
    "exponential": {"lam": 4.0},
    "gamma": {"alpha": 3.0, "beta": 2.0},
    "poisson": {"lam": 3.0},
    "negative_binomial": {"k": 3, "p": 0.25},
    "generalized_negative_binomial": {"mu": 3.0, "alpha": 0.5},
}


def random() -> Iterator[Sample]:
    """Operators that draw."""
    for stem, params in DISTRIBUTIONS.items():
        yield Sample(f"_random_{stem}", (), {**params, "shape": (4, 5)})
        yield Sample(f"_random_{stem}_like", (draw(1, 4, 5),), params)
        yield Sample(f"_sample_{stem}", tuple(np.float32([v, v]) for v in params.values()), {"shape": (4, 5)})
    yield Sample("_random_randint", (), {"low": -5, "high": 1000, "shape": (4, 5)})
    yield Sample("_sample_multinomial", (draw(2, 2, 9),), {"shape": 20, "get_prob": True}, (0,))
    yield Sample("_sample_unique_zipfian", (), {"range_max": 50, "shape": (4, 20)})
    yield Sample("_shuffle", (np.arange(40, dtype=np.float32),), {}, (0,))
    yield Sample("_sgld_update", floats(2, 4, 5), COMMON)
    yield Sample("Dropout", (draw(3, 8, 8),), {"p": 0.5}, (0,))
    for side in ("left_right", "top_bottom"):
        yield Sample(f"_image_random_flip_{side}", (draw(4, 4, 5, 3),), {"p": 0.5})
    for what in ("brightness", "contrast", "saturation", "hue"):
        yield Sample(f"_image_random_{what}", (draw(5, 4, 5, 3),), {"min_factor": 0.5, "max_factor": 1.5})
    amounts = {"brightness": 0.2, "contrast": 0.2, "saturation": 0.2, "hue": 0.1}
    yield Sample("_image_random_color_jitter", (draw(6, 4, 5, 3),), amounts)
    yield Sample("_image_random_lighting", (draw(7, 4, 5, 3),), {"alpha_std": 0.1})


def storage() -> Iterator[Sample]:
    """Operators about storage types, on dense arrays."""
    yield Sample("cast_storage", (draw(1, 4, 3),), {"stype": "default"})
    yield Sample("_sparse_retain", (draw(1, 4, 3), np.float32([0, 2])), {})


MORE = [
    *storage(), *updates(), *many_updates(), *windows(), *images(), *norms(), *transforms(),
    *quantized(), *random(),
]  # fmt: skip
