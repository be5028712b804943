"""Large arrays are computed in blocks by several threads: the results are those of whole arrays."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from dualmx import autograd, nd
from dualmx.compile.cpu.kernels import block_axes, blocks, kernel, matmul, primitives
from dualmx.compile.cpu.kernels.blocks import _Blocks
from dualmx.compile.cpu.kernels.codegen import Unsupported
from dualmx.compile.cpu.kernels.kernel import kernel_for
from dualmx.core.errors import MXNetError
from dualmx.op.registry import OPS
from tests import jobs
from tests.op.samples import all_samples

from .test_kernels import errors
from .test_layer_kernels import FORMS

IN_BLOCKS = [
    "LayerNorm", "LeakyReLU", "SoftmaxOutput", "adam_update", "arctan", "broadcast_power", "clip", "erf",
    "lamb_update_phase1", "log_softmax", "sgd_mom_update", "smooth_l1", "softmax", "softmin", "tanh",
]  # fmt: skip


@pytest.fixture
def calls(monkeypatch):
    """Arrays are cut however small they are, for three threads; yields the calls that were run in blocks."""
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", 8)
    monkeypatch.setattr(blocks, "_MIN_BYTES", 1)
    monkeypatch.setattr(type(matmul.one_blas_thread), "n_outside", 3)
    seen, compute = [], _Blocks.compute
    monkeypatch.setattr(_Blocks, "compute", lambda self: seen.append(self) or compute(self))
    return seen


@pytest.fixture
def every_kernel(monkeypatch):
    """Kernels are made anew, and all that can be are run in blocks, whether it is worth it or not."""
    monkeypatch.setattr(block_axes, "_MIN_PASSES", 0)
    monkeypatch.setattr(kernel, "_kernels", {})
    monkeypatch.setattr(kernel, "key_of", lambda *a: None)


def results(call, wrt, arrays, rest, heads):
    """Results and gradients by kernels."""
    avals = tuple((a.shape, a.dtype) for a in arrays)
    with np.errstate(all="ignore"):
        made, sizes = kernel_for(call, wrt, avals)
        values = made.run(sizes, *arrays, *rest)
        outs, residuals = values[: made.n_results], values[made.n_results :]
        if not wrt:
            return list(outs)
        given = [np.resize(heads, outs[i].shape).astype(outs[i].dtype) for i in made.floating]
        return [*outs, *made.pull(sizes, *residuals, *given)]


def compare(name, calls) -> None:
    """Run a sample of an operator, and one with longer axes, in blocks and whole."""
    sample = all_samples()[name][0]
    op, params = OPS[sample.op], dict(sample.params)
    if op.variadic and "num_args" in op.params:
        params.setdefault("num_args", len(sample.arrays))
    call = op.call(sample.train, **params)
    if call.joint or op.dynamic:
        return
    rest = [np.float32(v) for v in op.runtime_values(call.params)] + [np.array([3, 7], np.uint32)] * call.n_keys
    heads = np.random.RandomState(0).randn(97)
    for more in (0, 5):
        arrays = [np.asarray(a) for a in sample.arrays]
        arrays = [np.resize(a, [n + more if n > 1 else n for n in a.shape]).astype(a.dtype) for a in arrays]
        try:
            call.infer(tuple((a.shape, a.dtype) for a in arrays))
        except MXNetError:
            continue
        before = [a.copy() for a in arrays]
        for wrt in ((), tuple(k for k in sample.smooth if arrays[k].dtype.kind == "f")):
            in_blocks, used = results(call, wrt, arrays, rest, heads), len(calls)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(blocks, "_BLOCK_BYTES", 1 << 40)
                whole = results(call, wrt, arrays, rest, heads)
            assert len(calls) == used
            assert errors(in_blocks, whole) <= 8  # sums are added in another order
        for a, b in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(a, b, "a kernel wrote into its input")


@pytest.mark.parametrize("name", IN_BLOCKS)
def test_blocks_of_an_operator(name, calls):
    compare(name, calls)
    assert calls


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(all_samples()))
def test_blocks_of_every_operator(name, calls, every_kernel):
    try:
        compare(name, calls)
    except Unsupported:
        pass


def trained_norm():
    """Results and gradients of a normalized, activated array; those of gamma and beta are sums over blocks."""
    draw = np.random.RandomState(1)
    x, gamma, beta = (nd.array(draw.randn(*s)) for s in ((37, 5, 16), (16,), (16,)))
    for one in (x, gamma, beta):
        one.attach_grad()
    with autograd.record():
        y = nd.LayerNorm(x, gamma, beta)
        loss = (y * nd.array(draw.randn(37, 5, 16))).sum()
    loss.backward()
    return [a.asnumpy() for a in (y, x.grad, gamma.grad, beta.grad)]


def test_results_do_not_depend_on_the_number_of_threads(calls, monkeypatch):
    monkeypatch.setenv("DUALMX_TIER", "numpy")
    found = []
    for count in (1, 2, 5):
        monkeypatch.setattr(type(matmul.one_blas_thread), "n_outside", count)
        found.append(trained_norm())
        assert calls
    for one in found[1:]:
        for a, b in zip(one, found[0], strict=True):
            np.testing.assert_array_equal(a, b)


def test_several_threads_take_part():
    seen, barrier = set(), threading.Barrier(3)

    def work(items):
        for _ in items:
            barrier.wait(60)  # each of three threads has one
            seen.add(threading.current_thread())

    matmul.in_threads(work, range(3), 3)
    assert len(seen) == 3


def softmax_kernel(shape):
    call = OPS["softmax"].call(False, axis=-1)
    return kernel_for(call, (), ((shape, np.dtype("f")),))


@pytest.mark.parametrize("lay", ["in one piece", "channels last", "every other", "reversed", "repeated"])
def test_results_lie_as_those_of_whole_arrays(calls, lay):
    x = FORMS[lay](np.random.RandomState(0).randn(6, 7, 8, 9).astype("f"))
    made, sizes = softmax_kernel(x.shape)
    (found,) = made.run(sizes, x)
    used = len(calls)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_BLOCK_BYTES", 1 << 40)
        (whole,) = made.run(sizes, x)
    assert used == len(calls) == 1
    np.testing.assert_array_equal(found, whole)
    assert found.strides == whole.strides


def test_inputs_that_are_results_are_passed(calls):
    x, call = np.random.RandomState(0).rand(8, 9).astype("f"), OPS["smooth_l1"].call(False)
    made, sizes = kernel_for(call, (0,), ((x.shape, x.dtype),))
    values = made.run(sizes, x, *[np.float32(v) for v in call.op.runtime_values(call.params)])
    assert calls and any(v is x for v in values)


def test_a_failure_in_a_thread_is_raised(calls, monkeypatch):
    made, sizes = softmax_kernel((40, 8))
    reduce_sum, main = primitives.reduce_sum, threading.get_ident()

    def fail(*a):
        if threading.get_ident() != main:
            raise ValueError("as asked")
        time.sleep(0.01)  # the others have a turn
        return reduce_sum(*a)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(primitives, "reduce_sum", fail)
        with pytest.raises(ValueError, match="as asked"):
            made.run(sizes, np.zeros((40, 8), "f"))
    (found,) = made.run(sizes, np.zeros((40, 8), "f"))  # the threads go on
    np.testing.assert_allclose(found, 1 / 8)


def test_small_arrays_are_not_cut(monkeypatch):
    seen = []
    monkeypatch.setattr(_Blocks, "compute", lambda self: seen.append(self._sizes))
    for rows in (16, 1 << 9, 1 << 13):
        made, sizes = softmax_kernel((rows, 64))
        made.run(sizes, np.ones((rows, 64), "f"))
    assert seen == [(1 << 13, 64)]


SOFTMAX = """
import dualmx as mx
from dualmx.compile.cpu.kernels import blocks, kernel
from dualmx.op import trace_store
trace_store.SHIPPED = trace_store.SHIPPED.with_name("none")
made, computed = [], []
make, compute = kernel._make_kernel, blocks._Blocks.compute
kernel._make_kernel = lambda *a: made.append(1) or make(*a)
blocks._Blocks.compute = lambda self: computed.append(1) or compute(self)
mx.nd.softmax(mx.nd.ones((5000, 300))).asnumpy()
print(len(made), len(computed))
"""


def test_a_second_process_knows_the_axes(tmp_path):
    env = {"DUALMX_CACHE_DIR": str(tmp_path), "DUALMX_TIER": "numpy"}
    said = [jobs.run(jobs.PYTHON, "-c", SOFTMAX, env=env).stdout.split() for _ in range(2)]
    assert said == [["1", "1"], ["0", "1"]]
