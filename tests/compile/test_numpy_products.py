"""Products of NumPy arrays in programs that are not compiled, and the threads that they take."""

from __future__ import annotations

import multiprocessing
import os
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from dualmx import nd
from dualmx.compile.cpu.kernels import matmul as products
from dualmx.graph.trie import trie

needs_openblas = pytest.mark.skipif(products._openblas() is None, reason="NumPy has another library")

FORMS = {
    "rows": lambda a: a,
    "columns": np.asfortranarray,
    "part of the rows": lambda a: np.concatenate([a, a], 1)[:, : a.shape[1]],
    "part of the columns": lambda a: np.asfortranarray(np.concatenate([a, a], 0))[: a.shape[0]],
    "every other": lambda a: np.repeat(a, 2, 1)[:, ::2],
    "reversed": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "repeated": lambda a: np.broadcast_to(a[:1], a.shape),
    "not aligned": lambda a: np.frombuffer(b"x" + a.tobytes(), np.float32, offset=1).reshape(a.shape),
}


@pytest.fixture
def three_threads(monkeypatch):
    """Products are cut in up to three parts, however small they are; yields the threads that computed each."""
    seen = []
    monkeypatch.setattr(products, "_MIN_PRODUCTS_PER_THREAD", 1)
    monkeypatch.setattr(type(products.one_blas_thread), "n_outside", 3)
    matmul = np.matmul
    monkeypatch.setattr(np, "matmul", lambda *a: seen.append(threading.current_thread().name) or matmul(*a))
    return seen


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", [(3, 4, 5), (1, 7, 1), (5, 1, 3), (4, 2, 2), (70, 90, 110)])
def test_parts_of_a_product(three_threads, form, sizes):
    m, k, n = sizes
    draw = np.random.RandomState(0)
    x, y = (FORMS[form](draw.randn(*s).astype("f")) for s in ((m, k), (k, n)))
    found = products.matmul(x, y)
    assert found.shape == (m, n) and found.flags.c_contiguous
    np.testing.assert_allclose(found, x.astype("d") @ y, rtol=1e-5, atol=1e-5 * k)
    assert len(three_threads) == {1: 1, 4: 2}.get(max(m, n), 3)
    assert all(name.startswith(("dualmx-arrays", threading.current_thread().name)) for name in three_threads)


@pytest.mark.parametrize("dtype", ["int32", "float16", "bool"])
def test_parts_of_any_type(three_threads, dtype):
    x = np.arange(12).reshape(3, 4).astype(dtype)
    found = products.matmul(x, x.T)
    assert found.dtype == dtype and len(three_threads) == 3
    assert np.array_equal(found, x @ x.T)


def test_only_large_products_are_cut(monkeypatch):
    monkeypatch.setattr(type(products.one_blas_thread), "n_outside", 2)
    seen = []
    monkeypatch.setattr(products, "_by_threads", lambda x, y, count: seen.append((x.shape, count)))
    for n in (8, 256, 512):
        products.matmul(np.ones((n, n), np.float32), np.ones((n, n), np.float32))
    assert seen == [((512, 512), 2)]


def test_products_without_new_threads(three_threads, monkeypatch):
    def refuse(*a):
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr(products, "_pool", lambda: SimpleNamespace(submit=refuse))
    x = np.arange(12.0).reshape(3, 4)
    assert np.array_equal(products.matmul(x, x.T), x @ x.T)
    assert three_threads == [threading.current_thread().name] * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_products_in_a_fork(three_threads):
    x = np.arange(12.0).reshape(3, 4)
    products.matmul(x, x.T)
    child = multiprocessing.get_context("fork").Process(target=products.matmul, args=(x, x.T))
    child.start()
    child.join(60)
    assert child.exitcode == 0


@needs_openblas
def test_openblas_has_one_thread_meanwhile():
    count, choose = products._openblas()
    before = count()
    choose(2)
    try:
        assert count() == 2
        assert products.one_blas_thread.n_outside == 1
        with products.one_blas_thread:
            assert count() == 1 and products.one_blas_thread.n_outside == 2
            with products.one_blas_thread:
                pass
            assert count() == 1
            inside, leave = threading.Event(), threading.Event()

            def other() -> None:
                with products.one_blas_thread:
                    inside.set()
                    leave.wait(60)

            thread = threading.Thread(target=other)
            thread.start()
            inside.wait(60)
        assert count() == 1  # the other thread is still inside
        leave.set()
        thread.join(60)
        assert count() == 2
    finally:
        choose(before)


@needs_openblas
def test_a_program_takes_one_thread(monkeypatch):
    trie.clear()
    monkeypatch.setenv("DUALMX_TIER", "numpy")
    count, choose = products._openblas()
    before, seen = count(), []
    matmul = np.matmul
    choose(2)
    try:
        monkeypatch.setattr(np, "matmul", lambda *a: seen.append(count()) or matmul(*a))
        assert nd.dot(nd.ones((3, 4)), nd.ones((4, 5))).asnumpy().sum() == 60
        assert seen == [1] and count() == 2
    finally:
        choose(before)
        trie.clear()
