"""Convolutions on NumPy arrays, by oneDNN and without it: the results and gradients of XLA's."""

from __future__ import annotations

import random
import threading
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

from dualmx.compile.cpu.kernels import convolutions, primitives
from dualmx.compile.cpu.kernels.codegen import SourceWriter
from dualmx.compile.cpu.onednn import ffi_handlers
from dualmx.op.symbolic_sizes import define

ULP = 2.0**-23


@pytest.fixture(params=["onednn", "numpy"])
def library(request, monkeypatch):
    """What computes; returns how many convolutions oneDNN was asked for."""
    asked: list[bytes] = []
    if request.param == "onednn":
        if not ffi_handlers.available():
            pytest.skip(ffi_handlers.unavailable())
        convolve = convolutions.convolve
        monkeypatch.setattr(convolutions, "convolve", lambda text, *a: (asked.append(text), convolve(text, *a))[1])
    else:
        monkeypatch.setattr(convolutions, "available", lambda: False)
    yield lambda: len(asked)
    assert bool(asked) == (request.param == "onednn")


def draw(seed: int) -> tuple[Any, list[np.ndarray]]:
    """A convolution with its gradients as a function of data, filters and cotangents; and such arrays."""
    d = random.Random(seed)
    n, groups = d.choice((1, 2, 2, 2, 3)), d.choice((1, 1, 1, 2, 3))
    letters = "DHW"[3 - n :]
    while True:
        channels, results, samples = groups * d.choice((1, 2, 3, 5)), groups * d.choice((1, 2, 4)), d.choice((1, 2, 3))
        size, kernel = [d.randrange(1, 9) for _ in range(n)], [d.randrange(1, 4) for _ in range(n)]
        stride, dilation = [d.choice((1, 1, 2, 3)) for _ in range(n)], [d.choice((1, 1, 2)) for _ in range(n)]
        spread, padding = [1] * n, [(d.randrange(3),) * 2 for _ in range(n)]
        if d.random() < 0.3:
            spread = [d.choice((1, 1, 1, 2)) for _ in range(n)]
        if d.random() < 0.3:
            padding = [(d.randrange(-1, 4), d.randrange(-1, 4)) for _ in range(n)]
        axes = zip(size, spread, padding, kernel, dilation, strict=True)
        if all((s - 1) * b + 1 + low + high > (k - 1) * e for s, b, (low, high), k, e in axes):
            break
    last = d.random() < 0.5
    names = (
        (f"N{letters}C", f"{letters}IO", f"N{letters}C") if last else (f"NC{letters}", f"OI{letters}", f"NC{letters}")
    )

    def forward(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, stride, padding, spread, dilation, names, groups)

    def both(x: Any, w: Any, h: Any) -> Any:
        y, pull = jax.vjp(forward, x, w)
        return y, *pull(h)

    values = np.random.RandomState(seed)
    x = values.randn(*((samples, *size, channels) if last else (samples, channels, *size))).astype("f")
    per_group = channels // groups
    w = values.randn(*((*kernel, per_group, results) if last else (results, per_group, *kernel))).astype("f")
    shape = jax.eval_shape(forward, x, w).shape
    h = values.randn(*shape).astype("f") if d.random() < 0.7 else np.broadcast_to(np.float32(0.5), shape)
    if d.random() < 0.3:  # another arrangement in memory
        x = np.swapaxes(np.ascontiguousarray(np.swapaxes(x, 1, -1)), 1, -1)
    return both, [x, w, h]


def kernel_of(fn: Any, *arrays: Any) -> Any:
    writer = SourceWriter()
    writer.add_function("run", jax.make_jaxpr(fn)(*arrays), [])
    run = define(writer.source, "run", {"np": np, "K": primitives, **writer.constants})
    return lambda *a: run((), *a)


def agrees(seed: int) -> None:
    fn, arrays = draw(seed)
    for found, wanted in zip(kernel_of(fn, *arrays)(*arrays), jax.jit(fn)(*arrays), strict=True):
        wanted = np.asarray(wanted)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=16 * ULP * np.abs(wanted).max())


def test_geometries(library):
    for seed in range(12):
        agrees(seed)


@pytest.mark.slow
def test_many_geometries(library):
    for seed in range(12, 212):
        agrees(seed)


def test_a_reversed_kernel_is_seen(library):
    """A control: the same filters read in reverse are others."""
    x, w = np.random.RandomState(0).randn(1, 2, 6, 6).astype("f"), np.arange(18, dtype=np.float32).reshape(1, 2, 3, 3)

    def fn(x: Any, w: Any) -> Any:
        return (lax.conv_general_dilated(x, lax.rev(w, (2, 3)), (1, 1), "SAME"),)

    np.testing.assert_allclose(kernel_of(fn, x, w)(x, w)[0], fn(x, w)[0], rtol=1e-5, atol=1e-4)
    assert np.abs(kernel_of(fn, x, w)(x, np.flip(w, (2, 3)))[0] - fn(x, w)[0]).max() > 1


def test_what_onednn_refuses_numpy_computes(monkeypatch):
    monkeypatch.setattr(convolutions, "available", lambda: True)
    monkeypatch.setattr(convolutions, "convolve", lambda *a: False)
    agrees(3)


@pytest.mark.skipif(not ffi_handlers.available(), reason=f"left to XLA: {ffi_handlers.unavailable()}")
def test_an_impossible_convolution_is_refused():
    a = np.ones((1, 4, 4, 2), np.float32)
    assert not convolutions.convolve(b"0;1;0;1,2,4,4;3,5,9,9;1,3,2,2;1,1;1,1;0,0;0,0;0,1,2,3", a, a, a, True)
    assert not convolutions.convolve(b"nonsense", a, a, a, False)


@pytest.mark.parametrize("shape", [(0, 2, 5, 5), (2, 0, 5, 5)])
def test_arrays_without_elements(shape):
    x, w = np.ones(shape, np.float32), np.ones((3, shape[1], 2, 2), np.float32)

    def fn(x: Any, w: Any) -> Any:
        y, pull = jax.vjp(lambda *a: lax.conv_general_dilated(*a, (1, 1), "SAME"), x, w)
        return y, *pull(y)

    for found, wanted in zip(kernel_of(fn, x, w)(x, w), fn(x, w), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32"])
def test_other_types(dtype):
    x, w = np.arange(50).reshape(1, 2, 5, 5).astype(dtype) % 7, np.arange(36).reshape(2, 2, 3, 3).astype(dtype) % 5
    with jax.enable_x64(True):

        def fn(x: Any, w: Any) -> Any:
            return (lax.conv_general_dilated(x, w, (2, 1), ((1, 1), (0, 2))),)

        found, wanted = kernel_of(fn, x, w)(x, w)[0], np.asarray(fn(x, w)[0])
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, wanted)


def test_threads(library):
    cases = [draw(seed) for seed in range(4)]
    wanted = [kernel_of(fn, *arrays)(*arrays) for fn, arrays in cases]
    found: list[list[Any]] = [[] for _ in cases]

    def work(n: int) -> None:
        fn, arrays = cases[n]
        run = kernel_of(fn, *arrays)
        found[n] += [run(*arrays) for _ in range(30)]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(cases))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    for results, expected in zip(found, wanted, strict=True):
        assert len(results) == 30
        for result in results:
            for a, b in zip(result, expected, strict=True):
                np.testing.assert_array_equal(a, b)
