"""Steps whose batches use other numbers of rows run the same programs, which are compiled for a few sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, gluon, nd

ROWS, STEPS = 1000, 20
pytestmark = pytest.mark.usefixtures("xla_tier")
numbers_of_rows = [65 + 3 * k for k in range(STEPS)]  # all of one size: more than 64, at most 128


def rows(count: int) -> np.ndarray:
    """As many row numbers, ascending."""
    return np.sort(np.random.choice(ROWS, count, replace=False))


def compiles_nothing(step: Callable[[int], Any]) -> None:
    step(100)
    step(101)
    nd.waitall()
    with mx.debug.assert_compiles(0):
        for count in numbers_of_rows:
            step(count)
        nd.waitall()


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_training_a_table(optimizer: str) -> None:
    """Each batch looks up other rows, and repeats some of them."""
    net = gluon.contrib.nn.SparseEmbedding(ROWS, 4)
    net.initialize("ones")
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.5})
    seen: list[np.ndarray] = []

    def step(count: int) -> None:
        batch = np.concatenate([found := rows(count), np.full(128 - count, found[0])])
        with autograd.record():
            loss = net(nd.array(batch)).sum()
        loss.backward()
        assert net.weight.grad().n_stored_rows == count
        trainer.step(1)
        seen.append(batch)

    compiles_nothing(step)
    if optimizer == "sgd":
        expected = 1 - 0.5 * np.bincount(np.concatenate(seen), minlength=ROWS)
        np.testing.assert_array_equal(net.weight.row_sparse_data(nd.arange(ROWS)).asnumpy()[:, 0], expected)


@pytest.mark.parametrize("stype", ["row_sparse", "default"])
def test_rows_of_a_store(stype: str) -> None:
    store, value = mx.kv.create("local"), np.arange(ROWS * 3, dtype=np.float32).reshape(ROWS, 3)
    store.init("table", nd.array(value).tostype("row_sparse"))
    out = nd.zeros((ROWS, 3)).tostype(stype)

    def step(count: int) -> None:
        ids = rows(count)
        store.row_sparse_pull("table", out, row_ids=nd.array(ids[::-1]))
        expected = np.zeros_like(value)
        expected[ids] = value[ids]
        np.testing.assert_array_equal(out.asnumpy(), expected)

    compiles_nothing(step)


def test_rows_that_are_kept() -> None:
    def step(count: int) -> None:
        ids, wanted = rows(count), rows(count)
        array = nd.sparse.row_sparse_array((np.ones((count, 2), np.float32), ids), shape=(ROWS, 2))
        kept = array.retain(nd.array(wanted))
        assert kept.n_stored_rows == count
        np.testing.assert_array_equal(np.flatnonzero(kept.asnumpy()[:, 0]), np.intersect1d(ids, wanted))

    compiles_nothing(step)


def test_a_number_of_rows_of_another_size_is_compiled() -> None:
    def step(count: int) -> None:  # up to 256 rows, or up to 512
        nd.ones((ROWS, 2)).tostype("row_sparse").retain(nd.array(rows(3 * count))).asnumpy()

    with pytest.raises(AssertionError, match="1 were built"):
        compiles_nothing(step)
