"""Helpers for tests: matrices of a kind, sparse arrays, optimizers side by side, customary import paths."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import dualmx as mx
from dualmx.core.errors import ArgumentError

tu = mx.test_utils


def test_matrices():
    q = tu.new_orthonormal_matrix_2d(4)
    np.testing.assert_allclose(q @ q.T, np.eye(4), atol=1e-12)
    assert np.isrealobj(np.linalg.eigvals(tu.new_matrix_with_real_eigvals_nd((2, 3, 3))))
    s = tu.new_sym_matrix_with_real_eigvals_nd((2, 2, 3, 3))
    np.testing.assert_allclose(s, np.swapaxes(s, -1, -2))
    assert tu.get_identity_mat(3).asnumpy().tolist() == np.eye(3).tolist()
    assert tu.get_identity_mat_batch((2, 3, 3)).asnumpy().sum() == 6


def test_sparse_arrays():
    a, (values, rows) = tu.rand_sparse_ndarray((6, 2), "row_sparse", rsp_indices=[1, 4], data_init=3)
    assert a.stype == "row_sparse" and rows.tolist() == [1, 4] and (values == 3).all()
    assert a.asnumpy().sum() == 12
    a, (pointer, columns, values) = tu.rand_sparse_ndarray((5, 4), "csr", density=0.5)
    assert a.stype == "csr" and pointer.asnumpy()[-1] == len(columns) == len(values)
    shuffled = tu.shuffle_csr_column_indices(a)
    np.testing.assert_array_equal(shuffled.asnumpy(), a.asnumpy())
    assert tu.create_sparse_array_zd((3, 2), "row_sparse", 0, rsp_indices=[]).asnumpy().sum() == 0
    assert tu.rand_ndarray((3, 2), "csr", density=1).stype == "csr"
    for bad in (dict(stype="coo"), dict(stype="csr", density=2), dict(stype="csr", distribution="normal")):
        with pytest.raises(ArgumentError, match="rand_sparse_ndarray: .*: expected "):
            tu.rand_sparse_ndarray((3, 2), **bad)


@pytest.mark.parametrize(("shape", "count"), [((3, 4), 1), ([(3, 4), (2,)], 1)])
def test_optimizers_side_by_side(shape, count):
    made = [mx.optimizer.SGD(learning_rate=0.1, momentum=0.9) for _ in range(2)]
    tu.compare_optimizer(*made, shape, np.float32, ntensors=count)
    with pytest.raises(AssertionError, match="Items are not equal"):
        tu.compare_optimizer(made[0], mx.optimizer.SGD(learning_rate=0.2, momentum=0.9), shape, "float32")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("module.base_module", "BaseModule"), ("module.bucketing_module", "BucketingModule"),
        ("module.python_module", "PythonLossModule"), ("module.sequential_module", "SequentialModule"),
        ("gluon.contrib.estimator.event_handler", "LoggingHandler"),
        ("gluon.contrib.estimator.batch_processor", "BatchProcessor"), ("operator", "NumpyOp"),
    ],
)  # fmt: skip
def test_customary_import_paths(path, name):
    assert hasattr(importlib.import_module(f"dualmx.{path}"), name)
