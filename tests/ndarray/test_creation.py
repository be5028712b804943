"""Arrays from values that are numbers, but not stored as such."""

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import ArgumentTypeError

NAN = float("nan")


@pytest.mark.parametrize(
    ("source", "want"),
    [
        (["1", "2.5"], [1, 2.5]),
        ([["nan", " -1e3 "], ["inf", "4"]], [[NAN, -1000], [float("inf"), 4]]),
        ([b"1", b"2"], [1, 2]),
        ([None, 1.0], [NAN, 1]),
        ([10**20, 1], [1e20, 1]),
        (np.array([[1, None], [True, "3"]], dtype=object), [[1, NAN], [1, 3]]),
        (np.array(["7", "8"]), [7, 8]),
    ],
    ids=str,
)
def test_text_and_objects_are_converted_one_by_one(source, want):
    got = mx.nd.array(source)
    assert got.dtype is np.float32
    np.testing.assert_array_equal(got.asnumpy(), np.float32(want))
    if isinstance(source, list):
        np.testing.assert_array_equal(mx.np.array(source).asnumpy(), np.float32(want))
    written = mx.nd.zeros(got.shape)
    written[:] = source
    np.testing.assert_array_equal(written.asnumpy(), np.float32(want))
    if got.ndim == 2:
        np.testing.assert_array_equal(mx.nd.sparse.row_sparse_array(got).asnumpy(), np.float32(want))


def test_a_given_dtype_is_what_they_become():
    assert mx.nd.array(["3", "4"], dtype="int32").asnumpy().tolist() == [3, 4]
    assert mx.nd.array(np.array([True, 2], dtype=object), dtype="float16").dtype is np.float16
    assert mx.nd.sparse.csr_matrix([["1", "0"]]).asnumpy().tolist() == [[1, 0]]


@pytest.mark.parametrize(
    ("source", "dtype", "message"),
    [
        (["1", "a"], None, "could not convert string to float"),
        (["1.5"], "int32", "invalid literal"),
        ([None], "int32", "NoneType"),
        ([{}], None, "elements of type object are not numbers"),
        ([10**20], "int64", "too large"),
        ([1 + 2j], None, "elements of type complex128 are not numbers"),
    ],
    ids=str,
)
def test_what_is_no_number_is_refused(source, dtype, message):
    for make in (mx.nd.array, mx.np.array):
        with pytest.raises(ArgumentTypeError, match=message):
            make(source, dtype=dtype)
