"""Programs that run by executables of their operators: the CPU stands for a device that has no other first tier."""

from __future__ import annotations

import json
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, gluon, nd
from dualmx.compile import operator_cache, tiers
from dualmx.compile.devices import jax_from_numpy_nocopy
from dualmx.compile.events import DebugPrinter, counters, listeners
from dualmx.compile.first_tier import Unsupported
from dualmx.compile.operator_cache import OperatorExecutable, cache, compile_all
from dualmx.compile.operator_executor import OperatorExecutor, prepare
from dualmx.graph.interpreter import JaxExecutor, run
from dualmx.graph.program import Gradient, Instr, Program
from dualmx.graph.trie import trie
from dualmx.op.lowering_context import lowering_on_platform
from dualmx.op.registry import OPS
from tests import jobs
from tests.compile.test_kernels import COMMON, LOOSE, errors
from tests.conftest import forget_programs
from tests.op.samples import Sample, all_samples


def program_of(sample: Sample) -> tuple[Program, list[np.ndarray], int, int]:
    """The program of a sample and of its gradients, its inputs, and its numbers of keys and runtime scalars."""
    op, params = OPS[sample.op], dict(sample.params)
    if op.variadic and "num_args" in op.params:
        params.setdefault("num_args", len(sample.arrays))
    call = op.call(sample.train, **params)
    arrays = [np.asarray(a) for a in sample.arrays]
    results = call.infer(tuple((a.shape, a.dtype) for a in arrays))
    wrt = tuple(k for k in sample.smooth if arrays[k].dtype.kind == "f")
    heads = [i for i, (_, dtype) in enumerate(results) if jax.numpy.issubdtype(dtype, jax.numpy.inexact)]
    arrays += [sample.head(results[i][0], i).astype(results[i][1]) for i in heads] if wrt else []
    n_inputs, n_operands = len(arrays), len(sample.arrays)
    outs = tuple(range(n_inputs, n_inputs + len(results)))
    steps: list = [Instr(call, tuple(range(n_operands)), outs, wrt=wrt)]
    if wrt:
        grads = tuple(range(outs[-1] + 1, outs[-1] + 1 + len(wrt)))
        seeds = tuple(range(n_operands, n_inputs))
        targets = tuple((k,) for k in wrt)
        steps.append(Gradient(tuple(outs[i] for i in heads), seeds, targets, (None,) * len(wrt), (0,), grads))
        outs += grads
    return Program(tuple(steps), n_inputs, outs), arrays, call.n_keys, call.n_runtime


def compare(sample: Sample) -> float:
    """The error of a sample's results and gradients, by executables of their own and in one program of XLA."""
    program, arrays, n_keys, n_runtime = program_of(sample)
    keys = np.arange(2 * n_keys, dtype=np.uint32).reshape(-1, 2) + 3
    step = program.steps[0]
    assert isinstance(step, Instr)
    runtime = [np.float32(v) for v in step.call.op.runtime_values(step.call.params)]
    avals = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]
    tape = prepare(program, avals, n_runtime, mx.cpu())
    compile_all(part for part in tape if isinstance(part, OperatorExecutable))
    functions = [part.call if isinstance(part, OperatorExecutable) else part for part in tape]
    leaves = [jax_from_numpy_nocopy(a, mx.cpu()) for a in arrays]
    found = run(program, leaves, OperatorExecutor(iter(functions), keys.__getitem__, runtime))

    def whole(keys, runtime, *inputs):
        return run(program, inputs, JaxExecutor(lambda n: jax.random.wrap_key_data(keys[n]), runtime))

    with jax.enable_x64(True), lowering_on_platform("cpu"):
        return errors(found, jax.jit(whole)(keys, runtime, *arrays))


@pytest.mark.parametrize("name", COMMON)
def test_a_common_operator(name):
    assert compare(all_samples()[name][0]) <= 16


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(all_samples()))
def test_every_operator(name):
    try:
        assert compare(all_samples()[name][0]) <= LOOSE.get(name, 16)
    except Unsupported as e:
        assert "callback" in str(e) or OPS[name].dynamic or OPS[name].traits.compares_values


def in_tiers(monkeypatch, work, *names: str) -> list:
    """What a function returns in each tier."""
    found = []
    for name in names:
        monkeypatch.setenv("DUALMX_TIER", name)
        forget_programs()
        mx.random.seed(5)
        found.append(work())
    forget_programs()
    return found


def train(optimizer: str, hybrid: bool, **params) -> list[np.ndarray]:
    """Losses, weights, and statistics of a small convolutional network after some steps."""
    net = gluon.nn.HybridSequential()
    net.add(
        gluon.nn.Conv2D(6, 5, activation="relu"), gluon.nn.MaxPool2D(2, 2), gluon.nn.BatchNorm(),
        gluon.nn.Conv2D(8, 3, activation="tanh"), gluon.nn.AvgPool2D(2, 2), gluon.nn.Flatten(),
        gluon.nn.Dense(16, activation="relu"), gluon.nn.Dropout(0.5), gluon.nn.Dense(10),
    )  # fmt: skip
    net.initialize(mx.init.Xavier())
    if hybrid:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.01, **params})
    loss, found = gluon.loss.SoftmaxCrossEntropyLoss(), []
    for n in (8, 8, 5):
        x, y = nd.array(np.sin(np.arange(n * 256)).reshape(n, 1, 16, 16)), nd.array(np.arange(n) % 10)
        with autograd.record():
            value = loss(net(x), y)
        value.backward()
        trainer.step(n)
        found.append(value.asnumpy())
    return [*found, *[p.data().asnumpy() for p in net.collect_params().values()]]


@pytest.mark.parametrize("hybrid", [False, True])
def test_training_agrees(monkeypatch, hybrid):
    before = counters.operator_runs
    mine, whole = in_tiers(monkeypatch, lambda: train("sgd", hybrid, momentum=0.9), "operators", "xla")
    assert counters.operator_runs >= before + 3
    for a, b in zip(mine, whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


OPTIMIZERS = ["adagrad", "adam", "ftrl", "lamb", "nag", "rmsprop", "signum"]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_updates_agree(monkeypatch, optimizer):
    def update():
        w, g = nd.array(np.sin(np.arange(12.0)).reshape(3, 4)), nd.array(np.cos(np.arange(12.0)).reshape(3, 4))
        made = mx.optimizer.create(optimizer, learning_rate=0.1, wd=0.01)
        state = made.create_state(0, w)
        for _ in range(3):
            made.update(0, w, g, state)
        return w.asnumpy()

    mine, whole = in_tiers(monkeypatch, update, "operators", "xla")
    np.testing.assert_allclose(mine, whole, rtol=2e-6)


def test_random_numbers_are_those_of_the_compiled_program(monkeypatch):
    def draw():
        net = gluon.nn.HybridSequential()  # whose key is folded for each operator
        net.add(gluon.nn.Dropout(0.5), gluon.nn.Dropout(0.3))
        net.hybridize()
        with autograd.train_mode():
            dropped = net(nd.ones((7, 9)))
        drawn = [
            nd.random.uniform(shape=(5, 3)), nd.random.normal(shape=(4,)), nd.random.randint(0, 99, shape=(6,)),
            nd.random.gamma(2.0, 1.0, shape=(5,)), nd.random.poisson(3.0, shape=(5,)), nd.shuffle(nd.arange(20)),
            nd.sample_multinomial(nd.array([0.2, 0.3, 0.5]), shape=(8,)), dropped,
        ]  # fmt: skip
        return [x.asnumpy() for x in drawn]

    mine, whole = in_tiers(monkeypatch, draw, "operators", "xla")
    for a, b in zip(mine, whole, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.usefixtures("operators_tier")
def test_integer_and_second_gradients():
    x = nd.array([1, 2, 3], dtype="int32")
    x.attach_grad()
    with autograd.record():
        y = (x * x).sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [2, 4, 6]
    z = nd.array([1.0, 2.0])
    z.attach_grad()
    with autograd.record():
        first = autograd.grad((z * z * z).sum(), [z], create_graph=True)[0]
        total = first.sum()
    total.backward()
    assert z.grad.asnumpy().tolist() == [6.0, 12.0]


@pytest.mark.usefixtures("operators_tier")
def test_arrays_that_are_overwritten_and_read():
    w, seen = nd.ones((64, 64)), []
    for _ in range(4):
        view, before = w[1], w.asnumpy()
        w += 1
        seen.append((float(w[0, 0].asscalar()), float(view[0].asscalar()), float(before[0, 0])))
    assert seen == [(n, n, n - 1) for n in (2.0, 3.0, 4.0, 5.0)]


@pytest.mark.usefixtures("operators_tier")
def test_a_gradient_that_is_its_head():
    x, head = nd.ones((300, 300)), nd.ones((300, 300)) * 2
    x.attach_grad()
    with autograd.record():
        y = nd.identity(x)
    y.backward(head)
    x.grad[:] += 1
    assert (x.grad.asnumpy() == 3).all() and (head.asnumpy() == 2).all() and (x.asnumpy() == 1).all()


@pytest.mark.usefixtures("operators_tier")
def test_a_program_without_operators():
    x, head = nd.array([1.0, 2.0]), nd.array([3.0, 4.0])
    x.attach_grad()
    with autograd.record():
        x.backward(head)
    assert x.grad.asnumpy().tolist() == [3.0, 4.0]


@pytest.mark.usefixtures("operators_tier")
def test_programs_share_executables():
    cache.clear()
    x = nd.array(np.arange(6.0).reshape(2, 3))
    (nd.tanh(x) + nd.sin(x)).asnumpy()
    before = counters.operator_compiles
    (nd.sin(nd.tanh(x)) + nd.tanh(nd.sin(x))).asnumpy()  # another program of the same operators
    assert counters.operator_compiles == before
    nd.tanh(nd.array([1.0])).asnumpy()
    assert counters.operator_compiles == before + 1


@pytest.mark.usefixtures("operators_tier")
def test_the_cache_is_bounded(monkeypatch):
    cache.clear()
    monkeypatch.setattr(operator_cache, "MAX_EXECUTABLES", 3)
    for n in range(1, 7):
        np.testing.assert_array_equal(nd.square(nd.array(np.arange(n)) + n).asnumpy(), (np.arange(n) + n) ** 2)
        assert len(cache) <= 3
    x = nd.array([1.0])
    assert [nd.square(x + n).asscalar() for n in (1, 2, 3)] == [4.0, 9.0, 16.0]


WARM = """
import json
import jax
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name))
import numpy as np
from dualmx import autograd, nd
from dualmx.compile.devices import jax_from_numpy_nocopy
from dualmx.compile.events import counters

w = nd.array(np.ones((3, 2)))
w.attach_grad()
with autograd.record():
    loss = (nd.tanh(nd.dot(nd.array(np.ones((4, 3))), w)) ** 2).sum()
loss.backward()
w[:] = w - 0.1 * w.grad
w.asnumpy()
hit, miss = [sum(h == f"/jax/compilation_cache/cache_{kind}" for h in hits) for kind in ("hits", "misses")]
print(json.dumps([counters.operator_compiles, counters.operator_runs, hit, miss]))
"""


def test_a_second_process_reads_from_disk(tmp_path):
    environment = {"DUALMX_TIER": "operators", "DUALMX_CACHE_DIR": str(tmp_path), "JAX_COMPILATION_CACHE_DIR": ""}
    first, second = [json.loads(jobs.run(jobs.PYTHON, "-c", WARM, env=environment).stdout) for _ in range(2)]
    compiles, runs, hits, misses = first
    assert compiles >= 8 and runs >= 1 and (hits, misses) == (0, compiles)
    assert second == [compiles, runs, compiles, 0]


def live_bytes(work, monkeypatch) -> int:
    """The most memory that arrays have while operators are called."""
    work()
    seen = []
    call = OperatorExecutor._call

    def noted(self, *args):
        results = call(self, *args)
        seen.append(sum(a.nbytes for a in jax.live_arrays()))
        return results

    before = sum(a.nbytes for a in jax.live_arrays())
    with monkeypatch.context() as patch:
        patch.setattr(OperatorExecutor, "_call", noted)
        work()
    return max(seen) - before


SIZE, LENGTH = 1 << 16, 30


def forward() -> None:
    x = nd.ones((SIZE // 4,))
    for _ in range(LENGTH):
        x = nd.sin(x)
    x.sum().asnumpy()


@pytest.mark.usefixtures("operators_tier")
def test_values_end_with_their_last_reader(monkeypatch):
    assert live_bytes(forward, monkeypatch) < 6 * SIZE
    forget_programs()
    monkeypatch.setattr("dualmx.compile.operators_executable.lifetimes_of", lambda *_: None)
    assert live_bytes(forward, monkeypatch) > LENGTH * SIZE


@pytest.fixture
def pretended_gpu(monkeypatch):
    """The device of all programs says that it is none of the CPU."""
    monkeypatch.setattr(tiers, "device_of", lambda ctx: SimpleNamespace(platform="gpu"))


@pytest.mark.usefixtures("pretended_gpu")
@pytest.mark.parametrize(
    ("given", "tier"),
    [(None, "xla"), ("auto", "operators"), ("numpy", "xla"), ("operators", "operators"), ("xla", "xla")],
)
def test_the_first_tier_of_an_accelerator(monkeypatch, given, tier):
    monkeypatch.delenv("DUALMX_TIER", raising=False)
    if given is not None:
        monkeypatch.setenv("DUALMX_TIER", given)
    assert tiers.first_tier(mx.cpu()) == tier


@pytest.mark.usefixtures("pretended_gpu", "promotion_at_3")
def test_the_third_run_is_compiled_as_a_whole():
    def step(w):
        with autograd.record():
            loss = (nd.tanh(nd.dot(x, w)) ** 2).sum()
        loss.backward()
        w[:] = w - 0.1 * w.grad
        return w.asnumpy()

    def attempt():
        forget_programs()
        w = nd.array(np.sin(np.arange(15)).reshape(5, 3))
        w.attach_grad()
        found = []
        for _ in range(6):
            before = counters.operator_runs, counters.numpy_runs
            bits = step(w).tobytes()
            found.append((bits, counters.operator_runs - before[0], counters.numpy_runs - before[1]))
        return found

    x = nd.array(np.sin(np.arange(40)).reshape(8, 5))
    first = attempt()
    assert [runs for _, runs, _ in first] == [1, 1, 0, 0, 0, 0]
    assert not any(on_numpy for *_, on_numpy in first)
    assert attempt() == first


@pytest.mark.usefixtures("pretended_gpu")
def test_the_run_follows_from_counts(monkeypatch):
    monkeypatch.setenv("DUALMX_TIER", "auto")
    monkeypatch.delenv("DUALMX_PROMOTE_AT", raising=False)

    def run_of(n_operators: int) -> int:
        forget_programs()
        x = nd.ones((3,))
        x.wait_to_read()
        for _ in range(n_operators):
            x = nd.sin(x)
        x.wait_to_read()
        programs = [exe for state in states() for exe in state.programs.values() if exe.promotion is not None]
        return min(exe.promotion.run for exe in programs)

    def states():
        left = list(trie)
        while left:
            state = left.pop()
            left.extend(state.next.values())
            yield state

    few, many = run_of(2), run_of(60)
    assert 6 <= many < few and run_of(2) == few
    forget_programs()


@pytest.mark.usefixtures("pretended_gpu", "promotion_at_3")
def test_explanations_and_messages(capsys):
    listeners.append(DebugPrinter(1))
    explained = []
    try:
        for _ in range(4):
            y = nd.array([1.0, 2.0]) * 2 + 1
            explained.append(mx.debug.explain(y).splitlines()[0].partition("last flush, ")[2])
            y.wait_to_read()
    finally:
        listeners.pop()
    runs = [f"by executables of its operators, run {n}; compiled from run 3 on" for n in (1, 2)]
    assert explained == ["a new program", *runs, "compiled"]
    said = capsys.readouterr().err.splitlines()
    flushes = [line.rpartition(" (")[2] for line in said if "flush of 3 steps" in line]
    assert flushes == [f"{r})" for r in (*runs, "compiled", "compiled")]
    (prepared,) = [line for line in said if "prepared" in line]
    assert prepared.startswith("[dualmx] prepared 2 operations, 1 results as 2 executables of operators, ")
    (compiled,) = [line for line in said if "compiled 2 operations" in line]
    assert compiled.endswith("reason: run 3 is the first that uses it compiled")


@pytest.mark.usefixtures("operators_tier")
def test_new_programs_and_the_times_of_operators():
    with mx.debug.assert_compiles(1):
        nd.tanh(nd.ones((2, 7))).asnumpy()
    with mx.debug.assert_compiles(0):
        nd.tanh(nd.ones((2, 7))).asnumpy()
    mx.profiler.set_config(profile_all=True, filename="unused.json")
    mx.profiler.set_state("run")
    x = nd.ones((2, 7))
    x.attach_grad()
    with autograd.record():
        y = nd.tanh(x).sum()
    y.backward()
    x.grad.asnumpy()
    mx.profiler.set_state("stop")
    table = mx.profiler.dumps(reset=True)
    assert "tanh" in table and "_backward_tanh" in table


@pytest.mark.usefixtures("operators_tier")
def test_what_calls_back_is_compiled_and_called_once():
    called = []

    class Double(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            called.append("forward")
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            called.append("backward")
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    @mx.operator.register("operators_tier_double")
    class DoubleProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Double()

    data = mx.sym.Variable("data")
    symbol = mx.sym.Custom(data, op_type="operators_tier_double")
    executor = symbol.simple_bind(mx.cpu(), data=(3,))
    executor.forward(is_train=True, data=nd.array([1.0, 2.0, 3.0]))
    assert executor.outputs[0].asnumpy().tolist() == [2.0, 4.0, 6.0]
    executor.backward(nd.ones((3,)))
    assert executor.grad_dict["data"].asnumpy().tolist() == [2.0, 2.0, 2.0]
    assert called.count("backward") == 1
