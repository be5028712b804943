"""Kernels on NumPy arrays agree with XLA, at the sizes that they were made with and at others."""

from __future__ import annotations

import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, gluon, nd
from dualmx.compile.cpu.kernels import kernel, primitives
from dualmx.compile.cpu.kernels.codegen import SourceWriter, Unsupported
from dualmx.compile.cpu.kernels.kernel import kernel_for
from dualmx.compile.events import counters
from dualmx.core.errors import MXNetError
from dualmx.graph.trie import trie
from dualmx.op import shape_functions
from dualmx.op.lowering_context import lowering_on_platform
from dualmx.op.registry import OPS, Call
from dualmx.op.symbolic_sizes import define
from tests.op.samples import Sample, all_samples

EPSILON = {2: 2.0**-10, 4: 2.0**-23, 8: 2.0**-52}
# Primitives that no kernel has: a program with one is compiled.
WITHOUT_KERNEL = {"pure_callback", "random_gamma"}
# Float32 densities through logarithms of the gamma function: XLA's own differ from SciPy's by more.
LOOSE = {"_random_pdf_generalized_negative_binomial": 1024.0}
# Samples that are grown by repeating their rows make singular matrices, whose determinant is a matter of rounding.
FOR_ONE_SIZE = {"_linalg_det", "_npi_det"}
COMMON = [
    "Activation", "BatchNorm", "Concat", "Convolution", "Deconvolution", "Dropout", "Embedding", "FullyConnected",
    "LayerNorm", "Pad", "Pooling", "RNN", "SliceChannel", "SoftmaxOutput", "adam_update", "argmax", "broadcast_add",
    "dot", "log_softmax", "mean", "pick", "sgd_mom_update", "softmax", "sort", "take", "topk", "transpose",
    "where", "_linalg_sumlogdiag",
]  # fmt: skip


def errors(found, wanted) -> float:
    """The largest difference in units of the last place of the largest element."""
    worst = 0.0
    for a, b in zip(found, wanted, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b)
            continue
        kind = np.complex128 if a.dtype.kind == "c" else np.float64
        x, y = a.astype(kind), b.astype(kind)
        differ = ~((x == y) | (np.isnan(x) & np.isnan(y)))
        if differ.any():
            finite = np.abs(y[np.isfinite(y)])
            scale = max(finite.max() if finite.size else 1.0, 1e-30)
            epsilon = 2.0**-7 if a.dtype.name == "bfloat16" else EPSILON[a.real.dtype.itemsize]
            worst = max(worst, float(np.abs(x - y)[differ].max() / scale / epsilon))
    return worst


def compare(sample: Sample, grown: bool) -> float | None:
    """The error of a sample's kernel and of its VJP; None where the operator does not take the sizes.

    It is 0 where XLA's results are further from those in float64 than the kernel's, as in sums that cancel.
    """
    op, params = OPS[sample.op], dict(sample.params)
    if op.variadic and "num_args" in op.params:
        params.setdefault("num_args", len(sample.arrays))
    call = op.call(sample.train, **params)
    if call.joint or op.dynamic:
        return None
    arrays = [np.asarray(a) for a in sample.arrays]
    if grown:
        arrays = [np.resize(a, [n + 3 if n > 1 else n for n in a.shape]).astype(a.dtype) for a in arrays]
    avals = tuple((a.shape, a.dtype) for a in arrays)
    try:
        call.infer(avals)
    except MXNetError:
        return None
    wrt = tuple(k for k in sample.smooth if arrays[k].dtype.kind == "f")
    scalars = [np.float32(v) for v in op.runtime_values(call.params)]
    keys = [np.array([3, 7], np.uint32)] * call.n_keys
    before = [a.copy() for a in arrays]

    with np.errstate(all="ignore"):
        kernel, sizes = kernel_for(call, (), avals)
        found = list(kernel.run(sizes, *arrays, *scalars, *keys))
        heads: list[np.ndarray] = []
        if wrt:
            kernel, sizes = kernel_for(call, wrt, avals)
            values = kernel.run(sizes, *arrays, *scalars, *keys)
            outs, residuals = values[: kernel.n_results], values[kernel.n_results :]
            heads = [sample.head(outs[i].shape, 0).astype(outs[i].dtype) for i in kernel.floating]
            found += [*outs, *kernel.pull(sizes, *residuals, *heads)]
        wanted = by_xla(call, arrays, wrt, heads, scalars, keys)
    for a, b in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(a, b, "a kernel wrote into its input")
    error = errors(found, wanted)
    if error > 16:
        wide = [a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays]
        truth = by_xla(call, wide, wrt, [h.astype(np.float64) for h in heads], scalars, keys)
        truth = [np.asarray(t).astype(w.dtype) for t, w in zip(truth, wanted, strict=True)]
        error = 0.0 if errors(found, truth) <= errors(wanted, truth) else error
    return error


def by_xla(call, arrays, wrt, heads, scalars, keys) -> list[jax.Array]:
    """Results, and with inputs to differentiate the results once more and the gradients."""

    def run(*inputs):
        return call.apply_keys(list(inputs), [jax.random.wrap_key_data(k) for k in keys], scalars)

    def run_part(*chosen):
        full = list(arrays)
        for k, v in zip(wrt, chosen, strict=True):
            full[k] = v
        return [o for o in run(*full) if jnp.issubdtype(o.dtype, jnp.inexact)]

    with jax.enable_x64(True), lowering_on_platform("cpu"):
        outs = list(jax.jit(run)(*arrays))
        if not wrt:
            return outs
        return [*outs, *outs, *jax.jit(lambda c, h: jax.vjp(run_part, *c)[1](h))([arrays[k] for k in wrt], heads)]


@pytest.mark.parametrize("name", COMMON)
def test_kernel_of_a_common_operator(name):
    for grown in (False, True):
        assert (compare(all_samples()[name][0], grown) or 0.0) <= 16


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(all_samples()))
def test_kernel_of_every_operator(name):
    for grown in (False, True)[: 1 if name in FOR_ONE_SIZE else 2]:
        try:
            assert (compare(all_samples()[name][0], grown) or 0.0) <= LOOSE.get(name, 16)
        except Unsupported as e:
            assert str(e) in {*WITHOUT_KERNEL, name}


@pytest.fixture
def numpy_tier(monkeypatch):
    """Run what is recorded without compiling it."""
    trie.clear()
    monkeypatch.setenv("DUALMX_TIER", "numpy")
    yield
    trie.clear()


def lenet():
    net = gluon.nn.HybridSequential()
    net.add(
        gluon.nn.Conv2D(6, 5, activation="relu"), gluon.nn.MaxPool2D(2, 2), gluon.nn.BatchNorm(),
        gluon.nn.Conv2D(8, 3, strides=2, activation="tanh"), gluon.nn.AvgPool2D(2, 2), gluon.nn.Flatten(),
        gluon.nn.Dense(16, activation="relu"), gluon.nn.Dropout(0.5), gluon.nn.Dense(10),
    )  # fmt: skip
    return net


def losses(hybrid: bool, optimizer: str) -> list[float]:
    mx.random.seed(3)
    net = lenet()
    net.initialize(mx.init.Xavier())
    if hybrid:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.01})
    loss, found = gluon.loss.SoftmaxCrossEntropyLoss(), []
    for n in (8, 8, 5, 8):  # the last batch of an epoch is smaller
        x, y = nd.array(np.sin(np.arange(n * 784)).reshape(n, 1, 28, 28)), nd.array(np.arange(n) % 10)
        with autograd.record():
            value = loss(net(x), y)
        value.backward()
        trainer.step(n)
        found.append(float(value.mean().asscalar()))
    return found


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_training_without_compiling_is_as_with(hybrid, optimizer, monkeypatch):
    trie.clear()
    compiled = losses(hybrid, optimizer)
    trie.clear()
    monkeypatch.setenv("DUALMX_TIER", "numpy")
    before = counters.compiles
    np.testing.assert_allclose(losses(hybrid, optimizer), compiled, rtol=2e-5)
    assert counters.compiles == before


@pytest.mark.usefixtures("numpy_tier")
def test_loops_and_branches():
    def body(x, state):
        return x + state, state * 2

    x = nd.array(np.arange(6.0).reshape(3, 2))
    x.attach_grad()
    before = counters.compiles
    with autograd.record():
        outs, last = nd.contrib.foreach(body, x, nd.ones((2,)))
        total = (outs * outs).sum() + last.sum()
    total.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * outs.asnumpy())
    assert counters.compiles == before


@pytest.mark.usefixtures("numpy_tier")
def test_random_numbers_are_those_of_the_compiled_program(monkeypatch):
    def draw():
        mx.random.seed(5)
        return [f(shape=(7, 3)).asnumpy() for f in (nd.random.uniform, nd.random.normal, nd.random.exponential)]

    found = draw()
    monkeypatch.setenv("DUALMX_TIER", "xla")
    trie.clear()
    np.testing.assert_array_equal(found[0], draw()[0])
    for a, b in zip(found[1:], draw()[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("numpy_tier")
def test_what_has_no_kernel_is_compiled():
    before = counters.compiles
    drawn = nd.random.gamma(alpha=3, beta=2, shape=(50,)).asnumpy()
    assert (drawn > 0).all() and counters.compiles > before


MATRICES = {
    "inverse": lambda x: (jnp.linalg.inv(x),),
    "determinant": lambda x: jnp.linalg.slogdet(x),
    "qr": lambda x: jnp.linalg.qr(x),
    "complete qr": lambda x: jnp.linalg.qr(x, mode="complete"),
    "singular values": lambda x: (jnp.linalg.svd(x, compute_uv=False),),
    "svd": lambda x: (lambda u, s, vt: (s, u[..., :3] * s[..., None, :] @ vt[..., :3, :]))(*jnp.linalg.svd(x)),
    "eigenvalues": lambda x: (jnp.linalg.eigvalsh(x + x.mT),),
    "cholesky": lambda x: (jnp.linalg.cholesky(x @ x.mT + jnp.eye(3)),),
    "fft": lambda x: (jnp.fft.fft2(x).real, jnp.fft.rfft(x).imag, jnp.fft.irfft(x), jnp.fft.ifft(x).real),
}
for _side in (True, False):
    for _lower in (True, False):
        for _turned in (True, False):
            MATRICES[f"triangular solve {_side} {_lower} {_turned}"] = lambda x, s=_side, w=_lower, t=_turned: (
                jax.lax.linalg.triangular_solve(x, x + 1, left_side=s, lower=w, transpose_a=t),
            )


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("batch", [(), (2,), (2, 2)])
def test_matrix_functions(name, batch):
    rng = np.random.RandomState(0)
    x = rng.randn(*batch, 3, 3).astype(np.float32) + 3 * np.eye(3, dtype=np.float32)
    writer = SourceWriter()
    writer.add_function("run", jax.make_jaxpr(MATRICES[name])(x), [])
    run = define(writer.source, "run", {"np": np, "K": primitives, **writer.constants})
    for found, wanted in zip(run((), x), MATRICES[name](jnp.asarray(x)), strict=True):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.usefixtures("numpy_tier")
def test_gradient_of_a_gradient_and_retained_graphs():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = x**3
        (dx,) = autograd.grad(y, [x], create_graph=True, retain_graph=True)
        z = dx.sum()
    z.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 6 * x.asnumpy(), rtol=1e-6)


@pytest.mark.usefixtures("numpy_tier")
def test_results_share_no_memory_with_what_is_written_later():
    x = nd.array(np.arange(6.0).reshape(2, 3))
    part, turned = x[1:], x.T
    part.wait_to_read()
    turned.wait_to_read()
    x += 1
    assert part.copy().asnumpy().tolist() == [[4.0, 5.0, 6.0]]  # a window of x
    assert turned.asnumpy().tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


@pytest.fixture
def traced(monkeypatch):
    """The calls that are traced from now on, for shapes or kernels."""
    found = []
    for module in (kernel, shape_functions):
        trace = module.trace_symbolically
        monkeypatch.setattr(module, "trace_symbolically", lambda *args, t=trace: found.append(args[1]) or t(*args))
    infer = Call._infer_by_trace
    monkeypatch.setattr(Call, "_infer_by_trace", lambda self, *args: found.append(self) or infer(self, *args))
    return found


@pytest.mark.usefixtures("numpy_tier")
def test_a_new_shape_that_is_made_of_numbers_is_not_traced(traced):
    def gradient(x, *shape, **more):
        with autograd.record():
            y = (x.reshape(*shape, **more) * 2).reshape((-1,))
        y.backward()
        assert y.shape == (x.size,)
        return x.grad.asnumpy()

    arrays = [nd.array(np.arange(24.0).reshape(shape)) for shape in ((4, 6), (2, 3, 4), (2, 3, 4))]
    for x in arrays:
        x.attach_grad()
    gradient(arrays[0], (8, 3))
    del traced[:]
    for x, shape, more in zip(arrays, ((3, 8), (-3, 4), (-1, 3, 0)), ({}, {}, {"reverse": True}), strict=True):
        assert gradient(x, shape, **more).tolist() == np.full(x.shape, 2.0).tolist()
    assert not [call for call in traced if getattr(call, "op", OPS["dot"]).name == "Reshape"]
    with pytest.raises(MXNetError, match="Reshape: .*expected 24 elements"):
        arrays[0].reshape((5, 5))


def arrangement_errors(name: str, params: dict, shapes) -> float:
    """How far the kernel of an operator that arranges elements is from its body, gradients included."""
    call = OPS[name].call(False, **params)
    arrays = [np.arange(np.prod(s), dtype=np.float32).reshape(s) + k for k, s in enumerate(shapes)]
    avals, wrt = tuple((a.shape, a.dtype) for a in arrays), tuple(range(len(arrays)))
    made = kernel.arranging_kernel(call, wrt, avals)
    outs = made.run((), *arrays)
    assert [(o.shape, o.dtype) for o in outs] == list(call.infer(avals)) and made.pull is not None
    heads = [np.cos(np.arange(o.size)).reshape(o.shape).astype(np.float32) for o in outs]
    return errors([*outs, *outs, *made.pull((), *heads)], by_xla(call, arrays, wrt, heads, [], []))


@pytest.mark.parametrize(
    ("name", "params", "shapes"),
    [
        ("Reshape", {"shape": (4, -1)}, [(2, 3, 4)]),
        ("Reshape", {"shape": (-3, 0)}, [(2, 3, 4)]),
        ("SliceChannel", {"num_outputs": 3}, [(2, 6, 4)]),
        ("SliceChannel", {"num_outputs": 4, "axis": -1, "squeeze_axis": True}, [(2, 6, 4)]),
        ("SliceChannel", {"num_outputs": 1, "axis": 0}, [(1, 2)]),
        ("SliceChannel", {"num_outputs": 3, "axis": 0, "squeeze_axis": True}, [(3,)]),
        ("Concat", {"num_args": 3, "dim": 1}, [(2, 1, 3), (2, 4, 3), (2, 2, 3)]),
        ("Concat", {"num_args": 2, "dim": -2}, [(0, 3), (5, 3)]),
    ],
)
def test_operators_that_arrange_elements(name, params, shapes):
    assert OPS[name].traits.arrangement is not None
    assert arrangement_errors(name, params, shapes) == 0


def test_an_operator_that_computes_has_no_arrangement():
    with pytest.raises(Unsupported, match="dot"):
        kernel.arranging_kernel(OPS["dot"].call(False), (), (((2, 2), np.dtype("float32")),) * 2)


@pytest.mark.parametrize(
    ("name", "params", "shapes", "problem"),
    [
        ("SliceChannel", {"num_outputs": 4}, [(2, 6)], "num_outputs=4: expected a divisor of 6, axis 1"),
        ("SliceChannel", {"num_outputs": 3, "squeeze_axis": True}, [(2, 6)], "squeeze_axis"),
        ("Concat", {"num_args": 2}, [(2, 6), (3, 6)], "Concat"),
        ("Concat", {"num_args": 0}, [], "expected at least one"),
    ],
)
def test_what_cannot_be_arranged_is_told_as_before(name, params, shapes, problem):
    call = OPS[name].call(False, **params)
    with pytest.raises(MXNetError, match=problem):
        call.infer(tuple((s, np.dtype("float32")) for s in shapes))


@pytest.mark.usefixtures("numpy_tier")
def test_an_update_of_many_weights_takes_one_trace_of_each_kind(traced):
    def train(layers: int) -> list[np.ndarray]:
        net = gluon.nn.Sequential()
        net.add(*[gluon.nn.Dense(3, in_units=3) for _ in range(layers)])
        net.initialize(mx.init.One())
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.5})
        for _ in range(2):
            with autograd.record():
                loss = net(nd.ones((2, 3))).sum()
            loss.backward()
            trainer.step(2)
        return [p.data().asnumpy() for p in net.collect_params().values()]

    train(2)
    del traced[:]
    first, *_ = train(5)
    assert not traced
    assert first.shape == (3, 3) and (first < 1).all()


def source_of(fn, *args) -> tuple[str, dict]:
    writer = SourceWriter()
    writer.add_function("run", jax.make_jaxpr(fn)(*args), [])
    return writer.source, writer.constants


def test_memory_of_dead_values_is_used_again_and_that_of_views_is_not():
    x = np.ones((3, 4), np.float32)
    assert "out=" in source_of(lambda x: jnp.exp(jnp.sin(x) + x), x)[0]

    def reads_a_view_later(x):
        base = jnp.sin(x)
        view = base.reshape(4, 3)
        return jnp.exp(base), view

    lines = source_of(reads_a_view_later, x)[0]
    assert "np.exp" in lines and "out=" not in lines


def test_memory_is_used_again_through_its_only_view():
    def one_view(x):
        return jnp.tanh(jnp.sin(x).T) + 1

    def two_views(x):
        base = jnp.sin(x)
        return jnp.tanh(base.T), jnp.exp(base.reshape(4, 3))

    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for fn, count in ((one_view, 2), (two_views, 0)):
        source, constants = source_of(fn, x)
        assert source.count("out=") == count
        found = define(source, "run", {"np": np, "K": primitives, **constants})((), x)
        wanted = fn(x) if count == 0 else (fn(x),)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_what_nothing_reads_is_not_written():
    assert "sin" not in source_of(lambda x: (jnp.sin(x), x * 2)[1], np.ones(3, np.float32))[0]
    assert "broadcast_to" not in source_of(lambda x: jnp.where(x > 1, x, 0.0), np.ones(3, np.float32))[0]


@pytest.mark.parametrize("config", [((1, 2, 0), (0, 0, 1)), ((-1, 1, 1), (2, -2, 0)), ((3, -4, 2), (-2, -2, 0))])
def test_sums_of_what_has_zeros_around(config):
    def fn(x, y):
        return jax.lax.pad(x, np.float32(0), config) + jax.lax.pad(y, np.float32(0), config)

    x, y = (np.random.RandomState(n).randn(3, 4).astype("f") for n in range(2))
    source, constants = source_of(fn, x, y)
    assert "K.add_inside" in source
    found = define(source, "run", {"np": np, "K": primitives, **constants})((), x, y)[0]
    np.testing.assert_array_equal(found, fn(x, y))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32", "complex64", "bfloat16"])
@pytest.mark.parametrize("shape", [(3, 4), (100, 70)])
def test_selection_against_zero(dtype, shape):
    draw = np.random.RandomState(0)
    mask, x = draw.rand(*shape) > 0.5, (draw.randn(*shape) * 50).astype(jnp.dtype(dtype))
    if x.dtype.kind == "f":
        x[0, :3] = np.nan, np.inf, -np.inf
    wide = np.broadcast_to(x[:1], shape)
    for a, b in ((mask, x), (mask.T, x.T), (mask.T, np.ascontiguousarray(x.T)), (mask, wide)):
        np.testing.assert_array_equal(primitives.keep(a, b), np.where(a, b, x.dtype.type(0)))
        np.testing.assert_array_equal(primitives.drop(a, b), np.where(a, x.dtype.type(0), b))
        assert primitives.keep(a, b).dtype == primitives.drop(a, b).dtype == x.dtype


WINDOWS = [  # dimension numbers of one window, and its sizes
    (((0, 1), (0,), (0,)), (1, 5, 6)),
    (((0, 1, 2), (), (1,)), (4, 3, 6)),
    (((0,), (0, 2), (2, 0)), (1, 5, 1)),
]


@pytest.mark.parametrize("numbers, sizes", WINDOWS)
@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_one_window_inside_and_outside(numbers, sizes, mode):
    draw = np.random.RandomState(0)
    x = draw.randn(4, 5, 6).astype("f")
    gathers, scatters = jax.lax.GatherDimensionNumbers(*numbers), jax.lax.ScatterDimensionNumbers(*numbers)
    shape = jax.lax.gather(x, np.zeros(len(numbers[2]), np.int32), gathers, sizes).shape
    update = draw.randn(*shape).astype("f")

    def fn(x, at, update):
        changed = [f(x, at, update, scatters, mode=mode) for f in (jax.lax.scatter, jax.lax.scatter_add)]
        return jax.lax.gather(x, at, gathers, sizes, mode=mode), *changed

    source, constants = source_of(fn, x, np.zeros(len(numbers[2]), np.int32), update)
    run = define(source, "run", {"np": np, "K": primitives, **constants})
    for start in (-1, 0, 1, 9):
        at = np.array([start] * len(numbers[2]), np.int32)
        for found, wanted in zip(run((), x, at, update), fn(x, at, update), strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.usefixtures("numpy_tier")
def test_threads_run_one_program_with_numbers_of_their_own():
    trie.clear()
    x = nd.array(np.ones((4, 3)))
    found: dict[int, set[float]] = {}

    def work(n: int) -> None:
        found[n] = {float((x * n + n).sum().asscalar()) for _ in range(200)}

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(2, 8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    sys.setswitchinterval(before)
    assert found == {n: {24.0 * n} for n in range(2, 8)}


def test_a_body_for_several_platforms_runs_as_on_the_cpu():
    def add(n):
        return lambda x: x + n

    def fn(x):
        return jax.lax.platform_dependent(x, tpu=add(1), cpu=add(2), default=add(3))

    writer = SourceWriter()
    writer.add_function("run", jax.make_jaxpr(fn)(np.float32(0)), [])
    run = define(writer.source, "run", {"np": np, "K": primitives, **writer.constants})
    assert run((), np.float32(5)) == (7.0,)
