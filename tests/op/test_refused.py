"""Inputs and parameters that an operator refuses, each with the words that name the fault: no check may go missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualmx as mx

OFFSETS = ((1, 18, 2, 2), (1, 2, 3, 3), (1,))
# Shapes of the inputs, with a dtype in a pair, parameters, and what the error says.
REFUSED: dict[str, list[tuple[Any, dict[str, Any], str]]] = {
    "_contrib_dot_product_attention": [(((2, 3), (2, 3), (2, 3)), {}, "expected .batch, heads, length, width")],
    "broadcast_sub": [((((2,), "bool"), ((2,), "bool")), {}, "no arithmetic on bool")],
    "_contrib_DeformableConvolution": [
        (((1, 2, 4, 4), *OFFSETS), {"kernel": (3,), "num_filter": 1}, "kernel=.3,.: expected .height, width"),
        (((1, 3, 4, 4), *OFFSETS), {"kernel": (3, 3), "num_filter": 1, "num_group": 2}, "num_group=2: .*divisor"),
    ],
    "im2col": [
        (((1, 4, 4),), {"kernel": (2, 2)}, "expected data"),
        (((1, 1, 2, 4),), {"kernel": (3, 3)}, "within the padded"),
        (((1, 1, 4, 4),), {"kernel": (3, 3), "dilate": (2, 2)}, "dilate=.2, 2.: .*within the padded"),
    ],
    "Crop": [
        (((1, 4, 4),), {"num_args": 1, "h_w": (1, 1)}, "expected one or two inputs"),
        (((1, 1, 4, 4),), {"num_args": 1, "h_w": (2, 2), "offset": (3, 0)}, "expected a part of"),
        (((1, 1, 4, 4),), {"num_args": 1, "h_w": (0, 2), "offset": (0, 0)}, "h_w|expected a part of"),
    ],
    "_arange": [
        ((), {"start": 3, "stop": 3}, "at least one number"),
        ((), {"start": 0, "stop": 3, "step": 0}, "at least one number|step"),
        ((), {"start": 0, "stop": 3, "step": -1}, "at least one number"),
    ],
    "Dropout": [(((2, 3),), {"axes": (2,)}, "axes=.2,.: expected axes of data"), (((2,),), {"p": 1.5}, "p=1.5")],
    "_contrib_MultiBoxPrior": [(((1, 1, 2, 2),), {"steps": (1,)}, "expected two numbers each")],
    "_contrib_MultiBoxDetection": [(((1, 2, 3), (1, 12), (1, 3, 4)), {"variances": (1, 1, 1)}, "expected 4 numbers")],
    "fill_element_0index": [(((2, 3), (2,), (3,)), {}, "expected .m, n., .m,., .m,")],
    "gather_nd": [
        (((2, 3), (2,)), {}, "at least 2 axes"),
        (((2, 3), (3, 1)), {}, "the first at most 2"),
    ],
    "where": [
        (((2,), (2, 3), (2, 4)), {}, "expected equal shapes"),
        (((3,), (2, 3), (2, 3)), {}, "of the length of axis 0"),
    ],
    "slice": [
        (((2, 3),), {"begin": (0,), "end": (1, 1)}, "expected equal lengths"),
        (((2,),), {"begin": (0, 0), "end": (1, 1)}, "at most"),
        (((2, 3),), {"begin": (0,), "end": (1,), "step": (0,)}, "other than 0"),
    ],
    "slice_axis": [
        (((2, 3),), {"axis": 0, "begin": 1, "end": 1}, "at least one position"),
        (((2, 3),), {"axis": 1, "begin": 0, "end": 4}, "end=4"),
        (((2, 3),), {"axis": 1, "begin": -4, "end": None}, "begin=-4"),
    ],
    "slice_like": [
        (((2, 3), (2,)), {}, "equally many axes"),
        (((2, 3), (2, 4)), {}, "axis 1 has length 3: expected at least 4"),
    ],
    "Embedding": [(((2,), (3, 2)), {"input_dim": 3, "output_dim": 3}, r"expected \(input_dim, output_dim\)")],
    "dot": [
        (((), (2,)), {}, "at least one axis"),
        (((2, 3), (2, 3)), {}, "to have equal lengths"),
    ],
    "khatri_rao": [(((2, 3), (2, 2)), {"num_args": 2}, "equal numbers of columns")],
    "_linalg_gemm": [(((2, 3), (3, 2), (2, 3)), {}, "C has shape .2, 3.: expected that of the product")],
    "_linalg_gemm2": [
        (((1, 2, 3), (3, 2)), {}, "equally many axes"),
        (((2, 3), (3, 2)), {"axis": 1}, "axis not the last"),
    ],
    "_linalg_trmm": [(((2, 2), (3, 3)), {}, "matrices that fit"), (((1, 2, 2), (2, 3)), {}, "matrices that fit")],
    "_linalg_trsm": [(((2, 2), (2, 3)), {"rightside": True}, "matrices that fit")],
    "_linalg_extractdiag": [(((3, 3),), {"offset": n}, "no such diagonal") for n in (3, -3)],
    "_linalg_extracttrian": [(((3, 3),), {"offset": n}, "no such diagonal") for n in (3, -3)],
    "_linalg_makediag": [(((),), {}, "at least 1")],
    "_linalg_maketrian": [(((0,),), {}, "last axis"), (((4,),), {}, "last axis")],
    "_linalg_gelqf": [(((3, 2),), {}, "no more rows than columns")],
    "CTCLoss": [
        (((4, 2), (2, 2)), {}, "expected .time, batch, classes"),
        (((4, 2, 3), (3, 2)), {}, "expected .time, batch, classes"),
    ],
    "multi_sum_sq": [(((2,), (2,)), {"num_arrays": 1}, "num_arrays=1")],
    "multi_all_finite": [(((2,),), {"num_arrays": 2}, "num_arrays=2")],
    "Pooling": [
        (((1, 1, 4, 4),), {"kernel": (2, 2), "pad": (1, 0), "pooling_convention": "same"}, "expected zeros"),
    ],
    "_sample_uniform": [(((2,), (3,)), {}, "different shapes")],
    "_npi_normal": [((), {"loc": 0, "scale": -1, "size": (2,)}, "scale=-1")],
    "_npi_insert_scalar": [(((3,),), {"val": 1, "int_ind": n, "axis": 0}, f"int_ind={n}") for n in (4, -4)],
    "_npi_delete": [(((3,),), {"int_ind": n, "axis": 0}, f"int_ind={n}") for n in (3, -4)],
    "_npi_boolean_mask_assign_scalar": [(((3,), (2,)), {"value": 1}, "expected axes of data")],
    "_npx_reshape": [
        (((2, 3),), {"newshape": (-1, -1)}, "at most one -1"),
        (((2, 3),), {"newshape": (6,), "order": "F"}, "only 'C'|order"),
        (((2, 3),), {"newshape": (-2, -2, -2)}, "no axis left"),
        (((2, 3),), {"newshape": (-3, 6)}, "of length 1, not 2"),
        (((2, 3),), {"newshape": (-6, 2)}, "needs two lengths"),
        (((2, 3),), {"newshape": (-6, 2, 2, 3)}, "do not multiply"),
    ],
    "Reshape": [
        (((2, 3),), {"shape": (-1, -1)}, "at most one -1"),
        (((2, 3),), {"shape": (0, 0, 0)}, "no more than the 2 axes"),
        (((4, 3),), {"shape": (-4, -1, -1, 3)}, "two lengths beside -4"),
        (((4, 3),), {"shape": (-4, 3, -1, 3)}, "cannot split"),
        (((4, 3),), {"shape": (-4, 3, 2, 3)}, "cannot split"),
    ],
    "reshape_like": [(((4,), (2, 2)), {"rhs_begin": 1, "rhs_end": 1}, "expected a range|4 elements")],
    "SequenceMask": [(((3,),), {}, "at least 2 axes"), (((3, 2, 2),), {"axis": 2}, "axis=2")],
    "depth_to_space": [(((1, 4, 2),), {"block_size": 2}, "expected 4 axes")],
    "space_to_depth": [(((1, 1, 3, 4),), {"block_size": 2}, "divide"), (((1, 1, 4, 3),), {"block_size": 2}, "divide")],
    "diag": [
        (((2, 3),), {"axis1": 1, "axis2": -1}, "two different axes"),
        (((2, 3),), {"k": 3}, "no such diagonal"),
        (((2, 3),), {"k": -2}, "no such diagonal"),
    ],
    "Concat": [(((2, 3), (2, 3, 1)), {"dim": 0, "num_args": 2}, "Concat"), (((2, 3), (2, 2)), {"dim": 0}, "Concat")],
    "tile": [(((2,),), {"reps": (-1,)}, "reps")],
    "squeeze": [(((2, 1),), {"axis": 0}, "axes of length 1")],
    "broadcast_to": [(((2, 3),), {"shape": (4, 3)}, "expected length 1 or 4 along axis 0")],
    "broadcast_like": [(((1, 3), (3,)), {}, "same number of axes")],
    "broadcast_axis": [(((2, 3),), {"axis": 0, "size": 4}, "axes of length 1")],
    "sum": [(((2, 3),), {"axis": (0, -2)}, "at most once"), (((2, 3),), {"axis": -3}, "axis=-3")],
    "sgd_update": [((((2,), "int32"), ((2,), "int32")), {"lr": 1}, "expected floating-point")],
    "_maximum_scalar": [((((2,), "int32"),), {"scalar": float("nan")}, "scalar=nan")],
    "_image_adjust_lighting": [(((2, 2, 3),), {"alpha": (1, 1)}, "expected 3 numbers")],
    "_image_normalize": [(((3, 4, 4),), {"mean": (1, 1)}, "mean"), (((4, 4, 3),), {}, "1 or 3 channels")],
    "_contrib_index_copy": [(((4, 2), (3,), (2, 2)), {}, "_contrib_index_copy")],
    "SequenceReverse": [(((3, 2),), {"axis": 1}, "axis=1")],
}
CASES = [(name, *case) for name, cases in REFUSED.items() for case in cases]


def _array(shape: Any) -> mx.nd.NDArray:
    shape, dtype = shape if len(shape) == 2 and isinstance(shape[1], str) else (shape, "float32")
    return mx.nd.array(np.ones(shape), dtype=dtype)


@pytest.mark.parametrize(("name", "shapes", "params", "said"), CASES, ids=[f"{c[0]} {c[2]}" for c in CASES])
def test_the_fault_is_named(name: str, shapes: Any, params: dict[str, Any], said: str) -> None:
    operator = getattr(mx.nd._internal, name, None) or getattr(mx.nd, name)
    with pytest.raises(mx.MXNetError, match=said) as caught:
        operator(*map(_array, shapes), **params)
    assert not isinstance(caught.value, NotImplementedError)
