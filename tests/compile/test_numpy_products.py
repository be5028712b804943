"""Products of NumPy arrays in programs that are not compiled, and the threads that they take."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from dualmx import nd
from dualmx.compile.cpu.kernels import matmul as products
from dualmx.compile.cpu.onednn import ffi_handlers
from dualmx.graph.trie import trie

needs_onednn = pytest.mark.skipif(not ffi_handlers.available(), reason=f"no oneDNN: {ffi_handlers.unavailable()}")
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


@needs_onednn
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", [(3, 4, 5), (1, 7, 1), (5, 1, 3), (70, 90, 110)])
def test_products_by_onednn(form, sizes):
    m, k, n = sizes
    draw = np.random.RandomState(0)
    x, y = (FORMS[form](draw.randn(*s).astype("f")) for s in ((m, k), (k, n)))
    found = ffi_found = products.multiply(x, y)
    assert found.shape == (m, n) and ffi_found.flags.c_contiguous
    np.testing.assert_allclose(found, x.astype("d") @ y, rtol=1e-5, atol=1e-5 * k)


def test_large_products_only(monkeypatch):
    seen = []
    monkeypatch.setattr(products, "available", lambda: True)
    monkeypatch.setattr(products, "multiply", lambda x, y: seen.append(x.shape) or x @ y)
    for n in (8, 256):
        products.matmul(np.ones((n, n), np.float32), np.ones((n, n), np.float32))
    products.matmul(np.ones((256, 256)), np.ones((256, 256)))
    assert seen == [(256, 256)]


@needs_openblas
def test_openblas_has_one_thread_meanwhile():
    count, choose = products._openblas()
    before = count()
    choose(2)
    try:
        assert count() == 2
        with products.one_blas_thread:
            assert count() == 1
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
