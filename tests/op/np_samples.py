"""Samples of the operators behind `mx.np`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualmx.op.defs import binary
from tests.op.samples import Sample, wave

M, ROW, N, V, T = wave((2, 3)), wave((3,), 1), wave((3, 2), 2), wave((4,), 3), wave((2, 2, 3), 4)
WHOLE = np.array([[3, 4, 7], [2, 5, 6]], np.int32)
INTEGER = ("lcm", "bitwise_and", "bitwise_or", "bitwise_xor")
_WHOLE_ONLY = "takes integers only, and a symbol's inputs are floats until told otherwise; see tests/numpy/cases.py"
_AT_ONCE = "its shape depends on values, so no graph can hold it; see tests/numpy"
WITHOUT = {
    **{f"_npi_{name}": _WHOLE_ONLY for name in INTEGER},
    **{f"_npi_{name}_scalar": _WHOLE_ONLY for name in INTEGER},
    "_npi_bitwise_not": _WHOLE_ONLY,
    **dict.fromkeys(("_npi_delete", "_npi_insert_tensor", "_contrib_boolean_mask"), _AT_ONCE.replace("numpy", "op")),
    **dict.fromkeys(("_npx_nonzero", "_npi_unique", "_npi_bincount", "_npi_eig", "_npi_eigvals"), _AT_ONCE),
}
FLAT = (*binary.NP_COMPARISONS, "floor_divide")


def pairs() -> Iterator[Sample]:
    """Two operands."""
    for name in (*binary.PAIRS, *binary.NP_COMPARISONS):
        if name not in INTEGER:
            yield Sample(f"_npi_{name}", (M, ROW), smooth=() if name in FLAT else (0, 1))
    for name in (*binary.TWO_WAYS, *binary.NP_COMPARISONS, "true_divide"):
        smooth = () if name in FLAT else (0,)
        yield Sample(f"_npi_{name}_scalar", (M,), {"scalar": 2.0}, smooth)
        if name in (*binary.TWO_WAYS, "true_divide"):
            yield Sample(f"_npi_r{name}_scalar", (M,), {"scalar": 2.0}, smooth)


def others() -> Iterator[Sample]:
    """One operand, or several of different kinds."""
    for name in ("logical_not", "isnan", "isinf", "isfinite", "isposinf", "isneginf"):
        yield Sample(f"_npi_{name}", (M,))
    yield Sample("_npi_around", (M,), {"decimals": 1})
    yield Sample("_npi_nan_to_num", (M,), {"nan": 1.0}, (0,))
    for name in ("_np_sum", "_np_prod", "_npi_mean", "_npi_var", "_npi_std", "_np_max", "_np_min"):
        yield Sample(name, (T,), {"axis": (0, 2)}, (0,))
    for name in ("_np_all", "_np_any"):
        yield Sample(name, (M,), {"axis": (1,)})
    for name in ("_npi_argmax", "_npi_argmin"):
        yield Sample(name, (M,), {"axis": 1})
    yield Sample("_npi_average", (M, ROW), {"axis": (1,)}, (0, 1))
    yield Sample("_npi_percentile", (M,), {"q_scalar": 30.0, "axis": (1,)})
    for name, params in {
        "_np_reshape": {"newshape": (3, -1)}, "_np_squeeze": {}, "_np_transpose": {"axes": (1, 0)},
        "_np_moveaxis": {"source": (0,), "destination": (1,)}, "_np_roll": {"shift": (1,)}, "_npi_flip": {"axis": (0,)},
        "_npi_rot90": {"k": 1}, "_npi_broadcast_to": {"shape": (2, 2, 3)}, "_npi_pad": {"pad_width": ((1, 1), (0, 2))},
        "_np_diag": {"k": 1}, "_np_diagflat": {"k": 1}, "_np_diagonal": {"offset": 1}, "_np_trace": {"offset": 1},
        "_npi_tril": {"k": 0}, "_npi_triu": {"k": 1}, "_npi_diff": {"n": 1},
        "_npi_positions": {"at": (1, -1, 0), "axis": 1},
    }.items():  # fmt: skip
        yield Sample(name, (M,), params, (0,))
    for name in ("_npi_concatenate", "_npi_stack", "_npi_vstack", "_npi_hstack", "_npi_dstack", "_npi_column_stack"):
        yield Sample(name, (M, M + 1), {"num_args": 2}, (0, 1))
    for name in ("_np_atleast_1d", "_np_atleast_2d", "_np_atleast_3d"):
        yield Sample(name, (M, ROW), {"num_args": 2}, (0, 1))
    yield Sample("_npi_ediff1d", (M,), {"to_end_scalar": 2.0}, (0,))
    yield Sample("_npi_polyval", (ROW, M), smooth=(0, 1))
    yield Sample("_np_take_along_axis", (M, np.array([[0], [2]], np.int32)), {"axis": 1}, (0,))
    yield Sample("_npi_interp", (V, np.array([0, 1, 3], np.float32), ROW), smooth=(2,))
    yield Sample("_npi_where", (WHOLE > 4, M, ROW), smooth=(1, 2))
    yield Sample("_npi_where_lscalar", (WHOLE > 4, M), {"scalar": 2.0}, (1,))
    yield Sample("_npi_where_rscalar", (WHOLE > 4, M), {"scalar": 2.0}, (1,))
    yield Sample("_npi_where_scalar2", (WHOLE > 4,), {"x": 1.0, "y": 2.0})


def products() -> Iterator[Sample]:
    """Sums of products."""
    for name in ("_np_dot", "_npi_matmul", "_npi_kron"):
        yield Sample(name, (M, N), smooth=(0, 1))
    yield Sample("_npi_tensordot", (M, N), {"a_axes_summed": (1,), "b_axes_summed": (0,)}, (0, 1))
    yield Sample("_npi_tensordot_int_axes", (M, N), {"axes": 1}, (0, 1))
    yield Sample("_npi_einsum", (M, N), {"subscripts": "ij,jk->ik", "num_args": 2}, (0, 1))


def created() -> Iterator[Sample]:
    """Arrays from parameters."""
    for name in ("_npi_zeros", "_npi_ones"):
        yield Sample(name, (), {"shape": (2, 3)})
    yield Sample("_npi_full_like", (M,), {"fill_value": 2.0})
    yield Sample("_npi_arange", (), {"start": 0.0, "stop": 3.0})
    yield Sample("_npi_eye", (), {"N": 2, "M": 3})
    yield Sample("_npi_identity", (), {"shape": (2, 2)})
    yield Sample("_npi_indices", (), {"dimensions": (2, 3)})
    yield Sample("_npi_logspace", (), {"start": 0.0, "stop": 1.0, "num": 3})
    for name in ("hanning", "hamming", "blackman"):
        yield Sample(f"_npi_{name}", (), {"M": 4})


def edited() -> Iterator[Sample]:
    """What inserts, overwrites and splits."""
    pair = np.array([7, 8], np.float32)
    yield Sample("_npi_insert_scalar", (M, pair), {"int_ind": 1, "axis": 1}, (0, 1))
    yield Sample("_npi_insert_slice", (M, pair.reshape(2, 1)), {"start": 0, "stop": 1, "axis": 1}, (0, 1))
    yield Sample("_npi_boolean_mask_assign_scalar", (M, WHOLE > 4), {"value": 0.5}, (0,))
    yield Sample("_npi_boolean_mask_assign_tensor", (M, np.array([True, False]), ROW), {}, (0, 2))
    yield Sample("_npi_pinv_scalar_rcond", (M,), smooth=(0,))
    yield Sample("_npi_diag_indices_from", (M[:, :2],))
    yield Sample("_npi_hsplit", (M,), {"sections": 3}, (0,))
    yield Sample("_npi_dsplit", (T,), {"indices": (0, 1)}, (0,))
    yield Sample("_np_resize", (M,), {"new_shape": (4, 2)}, (0,))
    yield Sample("_npi_share_memory", (M, M))


def draws() -> Iterator[Sample]:
    """Distributions as nodes, with parameters that are numbers or inputs."""
    positive = np.abs(M) + 0.5
    for name in ("uniform", "normal", "logistic", "gumbel", "uniform_n", "normal_n"):
        yield Sample(f"_npi_{name}", (), {"size": (2, 3)})
    yield Sample("_npi_gamma", (), {"shape": 2.0, "scale": 1.0, "size": (2,)})
    for name in ("exponential", "rayleigh"):
        yield Sample(f"_npi_{name}", (positive,), {"scale": None})
    for name in ("weibull", "pareto", "powerd"):
        yield Sample(f"_npi_{name}", (positive,), {"a": None, "size": (2, 2, 3)})
    yield Sample("_npi_bernoulli", (), {"prob": 0.5, "size": (8, 9)})


def samples() -> Iterator[Sample]:
    """All of them."""
    for room in (pairs, others, products, created, edited, draws):
        yield from room()
