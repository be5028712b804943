"""Creation, pieces, conversion, slicing, assignment, checks, files of csr and row_sparse arrays."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import dualmx as mx

nd, sparse = mx.nd, mx.nd.sparse
DENSE = np.array([[0, 1, 0], [2, 0, 3], [0, 0, 0], [4, 0, 0]], np.float32)


def csr() -> Any:
    return nd.array(DENSE).tostype("csr")


def rows() -> Any:
    return nd.array(DENSE).tostype("row_sparse")


def lists(*arrays: Any) -> list[Any]:
    return [a.asnumpy().tolist() for a in arrays]


def test_pieces() -> None:
    a, r = csr(), rows()
    assert lists(a.data, a.indices, a.indptr) == [[1, 2, 3, 4], [1, 0, 2, 0], [0, 1, 3, 3, 4]]
    assert lists(r.data, r.indices) == [[[0, 1, 0], [2, 0, 3], [4, 0, 0]], [0, 1, 3]]
    assert {x.dtype for x in (a.indices, a.indptr, r.indices)} == {np.int64}
    assert (a.shape, a.ndim, len(a), a.dtype, a.stype, a.nnz) == ((4, 3), 2, 4, np.float32, "csr", 4)
    assert (r.stype, r.nnz, r.context) == ("row_sparse", 9, mx.cpu())
    assert repr(a) == str(a) == "\n<CSRNDArray 4x3 @cpu(0)>"
    assert isinstance(a, sparse.CSRNDArray) and isinstance(r, sparse.RowSparseNDArray)
    assert isinstance(a, sparse.BaseSparseNDArray) and isinstance(r, mx.nd.NDArray)
    for x in (a, r):
        np.testing.assert_array_equal(x.asnumpy(), DENSE)
        np.testing.assert_array_equal(x.tostype("default").asnumpy(), DENSE)
        assert x.wait_to_read() is None


def test_csr_matrix() -> None:
    made = sparse.csr_matrix(([1, 2, 3], [1, 0, 2], [0, 1, 3, 3]), shape=(3, 4))
    assert made.dtype == np.float32
    assert made.asnumpy().tolist() == [[0, 1, 0, 0], [2, 0, 3, 0], [0, 0, 0, 0]]
    assert sparse.csr_matrix(([1, 2, 3], [1, 0, 2], [0, 1, 3, 3])).shape == (3, 3)
    summed = sparse.csr_matrix(([1, 2, 5], ([1, 1, 0], [0, 0, 2])), shape=(4, 5))
    assert summed.asnumpy()[1, 0] == 3 and summed.asnumpy()[0, 2] == 5 and summed.nnz == 2
    matrix = scipy.sparse.random(6, 5, 0.4, "csr", np.float64, random_state=0)
    for found in (sparse.csr_matrix(matrix), sparse.array(matrix), nd.array(matrix)):
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found.asnumpy(), matrix.toarray())
    assert (sparse.array(matrix).asscipy() != matrix).nnz == 0
    assert sparse.csr_matrix(np.eye(3)).dtype == np.float64
    assert sparse.csr_matrix([[1, 0], [0, 2]]).dtype == np.float32
    assert sparse.csr_matrix(csr(), dtype="float64").dtype == np.float64
    assert sparse.csr_matrix((3, 4)).nnz == 0
    assert sparse.csr_matrix(([], [], [0, 0, 0]), shape=(2, 2)).asnumpy().tolist() == [[0, 0], [0, 0]]


def test_row_sparse_array() -> None:
    made = sparse.row_sparse_array(([[1, 2], [3, 4]], [4, 1]), shape=(6, 2))
    assert lists(made.indices) == [[4, 1]]
    assert made.asnumpy()[[1, 4]].tolist() == [[3, 4], [1, 2]]
    assert sparse.row_sparse_array(([[1, 2], [3, 4]], [1, 4])).shape == (5, 2)
    assert sparse.row_sparse_array((3, 4, 5)).data.shape == (0, 4, 5)
    assert sparse.row_sparse_array(np.array([[0, 0], [1, 0]])).indices.asnumpy().tolist() == [1]
    three = nd.ones((2, 2, 2)).tostype("row_sparse")
    assert three.data.shape == (2, 2, 2)


@pytest.mark.parametrize("kind", ["csr", "row_sparse"])
def test_zeros_and_copies(kind: str) -> None:
    for z in (sparse.zeros(kind, (2, 3)), nd.zeros((2, 3), stype=kind), sparse.empty(kind, (2, 3))):
        assert z.stype == kind and z.indices.shape == (0,) and not z.asnumpy().any()
    a = nd.array(DENSE).tostype(kind)
    assert a.astype("float32", copy=False) is a
    assert a.astype("float16").dtype == np.float16
    assert a.as_in_context(mx.cpu()) is a
    for b in (
        a.copy(),
        a.copyto(mx.cpu(1)),
        a.as_in_context(mx.cpu(1)),
        copy.deepcopy(a),
        pickle.loads(pickle.dumps(a)),
    ):
        assert b.stype == kind and b is not a
        np.testing.assert_array_equal(b.asnumpy(), DENSE)
    assert a.copyto(mx.cpu(1)).context == mx.cpu(1)
    dense = nd.zeros((4, 3))
    assert a.copyto(dense) is dense
    np.testing.assert_array_equal(dense.asnumpy(), DENSE)
    other = sparse.zeros(kind, (4, 3), dtype="float64")
    a.copyto(other)
    assert other.dtype == np.float64
    np.testing.assert_array_equal(other.asnumpy(), DENSE)
    nd.array(2 * DENSE).copyto(other)
    np.testing.assert_array_equal(other.asnumpy(), 2 * DENSE)


def test_slicing() -> None:
    a = csr()
    assert a[1].shape == (1, 3) and a[1].asnumpy().tolist() == [[2, 0, 3]]
    assert a[-1].asnumpy().tolist() == [[4, 0, 0]]
    assert a[:] is a and rows()[:].stype == "row_sparse"
    for part in (slice(1, 3), slice(1, 100), slice(-2, None)):
        assert a[part].stype == "csr"
        np.testing.assert_array_equal(a[part].asnumpy(), DENSE[part])
    both = a.slice(begin=(1, 1), end=(4, 3))
    assert both.stype == "csr"
    np.testing.assert_array_equal(both.asnumpy(), DENSE[1:4, 1:3])


def test_retain() -> None:
    for found in (rows().retain(nd.array([3, 2])), sparse.retain(rows(), nd.array([3, 2]))):
        assert lists(found.indices, found.data) == [[3, 2], [[4, 0, 0], [0, 0, 0]]]
    assert sparse.retain(sparse.row_sparse_array(([[1], [2]], [4, 1]), shape=(5, 1)), nd.array([4])).asnumpy()[4] == 1


def test_assignment() -> None:
    a, r = csr(), rows()
    a[:] = nd.ones((4, 3))
    assert a.stype == "csr" and a.nnz == 12
    a[:] = csr()
    assert a.nnz == 4
    a += a
    a *= 0.5
    np.testing.assert_array_equal(a.asnumpy(), DENSE)
    r[:] = 2
    assert r.indices.shape == (4,)
    r[:] = 0
    assert r.indices.shape == (0,)
    r[:] = DENSE
    r -= 1
    np.testing.assert_array_equal(r.asnumpy(), DENSE - 1)
    out = sparse.zeros("csr", (4, 3))
    assert sparse.elemwise_add(rows(), rows(), out=out) is out
    np.testing.assert_array_equal(out.asnumpy(), 2 * DENSE)


@pytest.mark.parametrize(
    "action, error, said",
    [
        (lambda: csr()[::2], ValueError, "sliced with step 1 only, got slice"),
        (lambda: csr()[1, 2], ValueError, "indexed along axis 0 only, got .1, 2."),
        (lambda: csr()[4], ValueError, "index 4 is out of bounds"),
        (lambda: csr()[-5], ValueError, "index -5 is out of bounds"),
        (lambda: csr()[2:2], ValueError, "is empty"),
        (lambda: csr()[1.0], ValueError, "takes an int or a slice"),
        (lambda: rows()[1], ValueError, "takes .:. only, got 1; use retain or tostype"),
        (lambda: csr().__setitem__(slice(None), 1), ValueError, "cannot be filled with a number"),
        (lambda: csr().__setitem__(0, 1), ValueError, "only, got 0"),
        (lambda: rows().__setitem__(1, 2), TypeError, "only, got 1"),
        (lambda: rows().__setitem__(slice(1, 3), 2), ValueError, "only, got slice.1, 3"),
        (lambda: csr().__setitem__(slice(None), rows()), TypeError, "a row_sparse one: convert it first"),
        (lambda: csr().__setitem__(slice(None), np.ones((4, 2))), ValueError, "got .4, 2."),
        (lambda: csr().__setitem__(slice(None), None), TypeError, "a NoneType: expected an array"),
        (lambda: csr().copyto(rows()), TypeError, "cannot copy a csr array into a row_sparse one"),
        (lambda: csr().copyto(3), TypeError, "other=3"),
        (lambda: csr().copyto(nd.zeros((4, 2))), mx.MXNetError, "out has shape .4, 2., the result has shape .4, 3."),
        (lambda: csr().tostype("row_sparse"), ValueError, "from csr to row_sparse is not supported; go by way of"),
        (lambda: rows().tostype("csr"), ValueError, "from row_sparse to csr is not supported; go by way of"),
        (lambda: csr().tostype("x"), mx.MXNetError, "stype='x': expected one of default"),
        (lambda: nd.ones((2, 2)).tostype("x"), mx.MXNetError, "stype='x': expected one of default"),
        (
            lambda: nd.ones((2, 2, 2)).tostype("csr"),
            ValueError,
            "a csr array has 2 axes; got an array of shape .2, 2, 2.",
        ),
        (lambda: csr().size, NotImplementedError, "use shape, or nnz"),
        (lambda: csr().asscalar(), NotImplementedError, "use asnumpy"),
        (lambda: csr().reshape((2, 6)), sparse.NotSupportedForSparseNDArray, "convert with tostype"),
        (lambda: bool(csr()), ValueError, "convert it with asnumpy"),
        (lambda: float(csr()), TypeError, "use asnumpy"),
        (lambda: sparse.csr_matrix((1, 2, 3, 4)), ValueError, "a tuple of 4: expected .M, N."),
        (lambda: sparse.csr_matrix(([1], [0, 1], [0, 1])), ValueError, "expected .nnz,., .nnz,. and"),
        (lambda: sparse.csr_matrix(([1], [0], [])), ValueError, "expected .nnz,., .nnz,. and"),
        (lambda: sparse.csr_matrix(([[1]], [0], [0, 1])), ValueError, "expected .nnz,., .nnz,. and"),
        (lambda: sparse.csr_matrix(np.ones(2)), ValueError, "the source has shape .2,."),
        (lambda: sparse.csr_matrix(csr(), shape=(3, 3)), ValueError, "shape=.3, 3.: the source has shape .4, 3."),
        (lambda: sparse.csr_matrix(rows()), ValueError, "convert it with tostype"),
        (lambda: sparse.csr_matrix("x"), TypeError, "type str is not array-like"),
        (
            lambda: sparse.csr_matrix(([1, 2], ([0, 9], [0, 0])), shape=(2, 2)),
            ValueError,
            "row or col leaves the shape .2, 2.",
        ),
        (
            lambda: sparse.row_sparse_array(([[1, 2]], [0]), shape=(6, 3)),
            mx.MXNetError,
            "does not fit the shape .6, 3.; expected .1, 3.",
        ),
        (
            lambda: sparse.row_sparse_array(([[1, 2]], [1], 3), shape=(6, 2)),
            ValueError,
            "a tuple of 3: expected a shape or",
        ),
        (lambda: sparse.row_sparse_array("x"), TypeError, "type str is not array-like"),
        (lambda: sparse.zeros("x", (2, 2)), ValueError, "stype='x': expected one of default"),
        (lambda: sparse.array(nd.ones((2, 2))), ValueError, "convert it with tostype"),
        (lambda: sparse.array(np.ones((2, 2))), ValueError, "use mx.nd.array for dense"),
        (lambda: sparse.array(scipy.sparse.coo_matrix(np.eye(2))), ValueError, "expected csr; use its tocsr"),
        (lambda: rows().retain([1]), TypeError, "indices=.1.: expected an NDArray"),
        (lambda: csr() + "x", TypeError, "type str: expected an NDArray or a number"),
        (lambda: csr() * None, TypeError, "operand of type NoneType"),
        (lambda: csr() < [1], TypeError, "operand of type list"),
        (lambda: 1j * rows(), TypeError, "operand of type complex"),
    ],
)
def test_refused(action: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        action()


@pytest.mark.parametrize(
    "columns, pointer, full_only",
    [
        ([1, 0, 9], [0, 1, 3, 3], True),
        ([1, 2, 0], [0, 1, 3, 3], True),
        ([1, -2, 0], [0, 1, 2, 3], True),
        ([1, 2, 0], [0, 2, 1, 3], True),
        ([1, 2, 0], [1, 1, 3, 3], False),
        ([1, 2, 0], [0, 1, 1, 2], False),
        ([1, 0, 2], [0, 1, 3], False),
    ],
)
def test_check_format_of_csr(columns: list[int], pointer: list[int], full_only: bool) -> None:
    made = sparse.csr_matrix(([1, 2, 3], columns, pointer), shape=(3, 3))
    with pytest.raises(mx.MXNetError, match="check_format"):
        made.check_format()
    if full_only:
        made.check_format(full_check=False)
    else:
        with pytest.raises(mx.MXNetError, match="check_format: (indptr|shapes)"):
            made.check_format(full_check=False)


@pytest.mark.parametrize("ids", [[3, 9], [3, 1], [1, 1], [-1, 1]])
def test_check_format_of_rows(ids: list[int]) -> None:
    made = sparse.row_sparse_array(([[1, 2], [3, 4]], ids), shape=(6, 2))
    made.check_format(full_check=False)
    with pytest.raises(mx.MXNetError, match="check_format"):
        made.check_format()


def test_check_format_passes() -> None:
    for a in (csr(), rows(), csr() + csr(), rows() + rows(), sparse.zeros("csr", (2, 2))):
        a.check_format()


def test_files(tmp_path: Path) -> None:
    nd.save(str(tmp_path / "x"), {"a": csr(), "r": rows(), "d": nd.ones((2,))})
    found = nd.load(str(tmp_path / "x"))
    assert {k: v.stype for k, v in found.items()} == {"a": "csr", "r": "row_sparse", "d": "default"}
    np.testing.assert_array_equal(found["a"].asnumpy(), DENSE)
    np.testing.assert_array_equal(found["r"].asnumpy(), DENSE)
    assert nd.save_tobuffer(found) == (tmp_path / "x").read_bytes()


def test_files_have_the_bytes_of_mxnet() -> None:
    rows_bytes = (
        "12010000000000000000000000000000010000000000000"
        "0c9fa93f9010000000200000001000000000000000200000000000000020000000500000000000000020000000000000001000000"
        "00000000000000000600000001000000010000000000000000"
        "00803f0000004003000000000000000000000000000000"
    )
    made = sparse.row_sparse_array(([[1, 2]], [3]), shape=(5, 2))
    assert nd.save_tobuffer([made]).hex() == rows_bytes
    cells = sparse.csr_matrix(([5], [1], [0, 0, 1]), shape=(2, 3))
    body = (
        "c9fa93f902000000010000000100000000000000020000000200000000000000030000000000000001000000000000000000000006000000"
        "0100000003000000000000000600000001000000010000000000000000"
        "00a0400000000000000000000000000000000001000000000000000100000000000000"
    )
    assert body in nd.save_tobuffer([cells]).hex()


def _changed(made: Any, old: list[int], new: list[int]) -> bytes:
    """The file of an array in which one list of whole numbers is another one."""
    data, found = nd.save_tobuffer([made]), np.array(old, np.int64).tobytes()
    assert data.count(found) == 1
    return data.replace(found, np.array(new, np.int64).tobytes())


@pytest.mark.parametrize("pointer", [[-1, 2, 5], [1, 2, 5], [0, 6, 5], [0, 2, 4], [0, 2, 6], [0, -2, 5]])
def test_files_with_rows_that_do_not_rise_are_refused(pointer: list[int]) -> None:
    made = sparse.csr_matrix(([1, 2, 3, 4, 5], [3, 8, 3, 7, 8], [0, 2, 5]), shape=(2, 9))
    with pytest.raises(mx.MXNetError, match="does not rise"):
        nd.load_frombuffer(_changed(made, [0, 2, 5], pointer))


@pytest.mark.parametrize("ids", [[-1, 8], [3, 9], [9, 9]])
def test_files_with_positions_out_of_range_are_refused(ids: list[int]) -> None:
    cells = sparse.csr_matrix(([1, 2], [3, 8], [0, 1, 2]), shape=(2, 9))
    rows_of_nine = sparse.row_sparse_array(([[1], [2]], [3, 8]), shape=(9, 1))
    for made in (cells, rows_of_nine):
        with pytest.raises(mx.MXNetError, match="leaves the range"):
            nd.load_frombuffer(_changed(made, [3, 8], ids))
        (same,) = nd.load_frombuffer(_changed(made, [3, 8], [0, 8]))
        assert same.indices.asnumpy().tolist() == [0, 8]


def test_arrays_without_rows_and_without_values() -> None:
    for shape in ((0, 3), (3, 0), (1, 1)):
        for kind in ("csr", "row_sparse"):
            made = sparse.zeros(kind, shape)
            assert made.asnumpy().shape == shape and made.tostype("default").shape == shape
            (same,) = nd.load_frombuffer(nd.save_tobuffer([made]))
            assert (same.stype, same.shape) == (kind, shape)


def test_against_scipy() -> None:
    rng = np.random.RandomState(1)
    a, b = (scipy.sparse.random(17, 23, 0.2, "csr", np.float32, random_state=i) for i in (1, 2))
    x, y = sparse.array(a), sparse.array(b)
    w = rng.rand(23, 5).astype(np.float32)
    v = rng.rand(17, 5).astype(np.float32)
    pairs = [
        (x + y, a + b), (x - y, a - b), (x * y, a.multiply(b)), (x * 3, a * 3), (x.square(), a.power(2)),
        (x[3:9], a[3:9]),
    ]  # fmt: skip
    for got, want in pairs:
        assert got.stype == "csr"
        np.testing.assert_allclose(got.asscipy().toarray(), want.toarray(), rtol=1e-6)
    np.testing.assert_allclose(sparse.dot(x, nd.array(w)).asnumpy(), a @ w, rtol=1e-5)
    turned = sparse.dot(x, nd.array(v), transpose_a=True)
    assert turned.stype == "row_sparse"
    assert turned.indices.asnumpy().tolist() == sorted(set(a.indices.tolist()))
    np.testing.assert_allclose(turned.asnumpy(), a.T @ v, rtol=1e-5)
    np.testing.assert_allclose(x.sum(axis=0).asnumpy(), np.asarray(a.sum(0))[0], rtol=1e-5)


def test_other_counts_compile_nothing() -> None:
    """A batch of csr rows with another number of stored elements runs the same programs."""
    w = nd.ones((40, 2))

    def step(seed: int) -> np.ndarray:
        matrix = scipy.sparse.random(8, 40, 0.06 + 0.01 * seed, "csr", np.float32, random_state=seed)
        got = sparse.dot(sparse.array(matrix), w).asnumpy()
        np.testing.assert_allclose(got, matrix @ np.ones((40, 2)), rtol=1e-5)
        return got

    step(0)
    with mx.debug.assert_compiles(0):
        for seed in range(1, 5):
            step(seed)
