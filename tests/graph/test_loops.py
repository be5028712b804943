"""Equal stretches of a program become loops, and change no result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import dualmx as mx
from dualmx import autograd, gluon, nd
from dualmx.compile import executable
from dualmx.compile.events import CompileEvent, Listener, listeners
from dualmx.compile.executable import sub_jaxprs
from dualmx.graph import loops, program_call
from dualmx.graph.interpreter import JaxExecutor, run
from dualmx.graph.loops import LoopCall
from dualmx.graph.program import Instr, Program
from dualmx.graph.trie import trie
from dualmx.ndarray.recorder import local
from dualmx.op import OPS

N, H = 3, 4
Results = list[np.ndarray]


@pytest.fixture(autouse=True)
def compiled_programs(unoptimized: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DUALMX_TIER", "xla")
    forget()
    yield
    forget()


def forget() -> None:
    nd.waitall()
    trie.clear()
    for ctx in list(local.traces):
        local.new_trace(ctx)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[LoopCall]:
    """The loops that programs compiled from here on have."""
    calls: list[LoopCall] = []

    def spy(program: Program, *args: Any) -> Program:
        rolled = loops.with_loops(program, *args)
        calls.extend(s.call for s in rolled.steps if isinstance(s, Instr) and isinstance(s.call, LoopCall))
        return rolled

    monkeypatch.setattr(executable, "with_loops", spy)
    monkeypatch.setattr(program_call, "with_loops", spy)
    return calls


def random(*shape: int) -> nd.NDArray:
    return nd.array(np.random.uniform(-1, 1, shape) * 0.7)


def same_without_loops(script: Callable[[], Results], monkeypatch: pytest.MonkeyPatch) -> Results:
    """Run a script with loops and without, compare all that it returns, and return it."""

    def results() -> Results:
        forget()
        np.random.seed(7)
        mx.random.seed(7)
        return script()

    rolled = results()
    with monkeypatch.context() as patch:
        patch.setattr(loops, "MIN_ROUNDS", 10**9)
        unrolled = results()
    assert len(rolled) == len(unrolled) > 0
    for a, b in zip(rolled, unrolled, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
    return rolled


def variables(*shapes: tuple[int, ...]) -> list[nd.NDArray]:
    made = [random(*shape) for shape in shapes]
    for v in made:
        v.attach_grad()
    return made


def cell(x: nd.NDArray, h: nd.NDArray, w: nd.NDArray, u: nd.NDArray, b: nd.NDArray) -> nd.NDArray:
    gate = nd.sigmoid(nd.dot(x, w) + nd.dot(h, u) + b)
    return gate * h + (1 - gate) * nd.tanh(nd.dot(x, w) * 0.5 + b)


SHAPES = (H, H), (H, H), (H,)


def recurrent(
    n_rounds: int = 9,
    step: Callable[..., nd.NDArray] = cell,
    after: Callable[[nd.NDArray, int], nd.NDArray] | None = None,
) -> Results:
    """Train a recurrent network for two steps; inputs are slices of one array."""
    w, u, b = variables(*SHAPES)
    x = random(N, n_rounds, H)
    seen: Results = []
    for _ in range(2):
        with autograd.record():
            h = nd.zeros((N, H))
            for t in range(n_rounds):
                h = step(x[:, t], h, w, u, b)
                if after is not None:
                    h = after(h, t)
            loss = (h * h).sum()
        loss.backward()
        for v in (w, u, b):
            v -= 0.1 * v.grad
        seen += [loss.asnumpy(), h.asnumpy(), *[v.asnumpy() for v in (w, u, b)]]
    return seen


def test_a_recorded_loop_is_one_again(found: list[LoopCall], monkeypatch: pytest.MonkeyPatch) -> None:
    same_without_loops(recurrent, monkeypatch)
    assert found
    # The first round, whose state has no gradient, stays outside.
    assert all(call.rounds == 8 for call in found)


def count_equations(jaxpr: Any) -> int:
    return sum(1 + sum(count_equations(body) for body in sub_jaxprs(eqn)) for eqn in jaxpr.eqns)


def test_a_program_grows_by_the_slices_of_its_inputs_only() -> None:
    class Counter(Listener):
        def compiled(self, event: CompileEvent) -> None:
            counts.append(count_equations(event.traced.jaxpr.jaxpr))

    listener, most = Counter(), []
    listeners.append(listener)
    try:
        for n_rounds in (10, 40):
            counts: list[int] = []
            recurrent(n_rounds)
            most.append(max(counts))
    finally:
        listeners.remove(listener)
    assert most[1] <= most[0] + 6 * 30  # a round has a slice with its gradient, and more than 30 equations


def test_random_steps_draw_the_same_numbers(found: list[LoopCall], monkeypatch: pytest.MonkeyPatch) -> None:
    def script() -> Results:
        with autograd.train_mode():
            return recurrent(after=lambda h, t: nd.Dropout(h, p=0.5))

    same_without_loops(script, monkeypatch)
    assert found and all(call.n_keys == call.rounds for call in found)


def test_numbers_of_the_trace_differ_between_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    same_without_loops(lambda: recurrent(after=lambda h, t: h * (1 + 0.1 * t)), monkeypatch)


def test_each_round_has_its_numbers_at_run_time() -> None:
    scale = OPS["_mul_scalar"].call(scalar=2.0)
    assert scale.op.runtime_form is not None
    form = scale.op.runtime_form(scale.params, (N, H), np.dtype("float32"))
    assert form is not None and form[0].n_runtime == 1
    rounds = 14
    steps: list[Instr] = []
    for t in range(rounds):
        h, product, bounded, scaled = (0 if t == 0 else 1 + 3 * t), 2 + 3 * t, 3 + 3 * t, 4 + 3 * t
        steps.append(Instr(OPS["dot"].call(), (h, 1), (product,)))
        steps.append(Instr(OPS["tanh"].call(), (product,), (bounded,)))
        steps.append(Instr(form[0], (bounded,), (scaled,), first_runtime=t))
    program = Program(tuple(steps), 2, (1 + 3 * rounds,))
    avals = {slot: ((N, H), np.dtype("float32")) for slot in range(2 + 3 * rounds)} | {1: ((H, H), np.dtype("float32"))}
    rolled = loops.with_loops(program, lambda: avals)
    (loop,) = rolled.steps
    assert isinstance(loop, Instr) and loop.call.n_runtime == rounds
    h, w = (np.random.uniform(-0.7, 0.7, shape).astype("float32") for shape in ((N, H), (H, H)))
    numbers = np.linspace(0.5, 2, rounds, dtype="float32")
    got = run(rolled, [jnp.asarray(h), jnp.asarray(w)], JaxExecutor(lambda n: None, jnp.asarray(numbers)))
    for number in numbers:
        h = np.tanh(h @ w) * number
    np.testing.assert_allclose(got[0], h, rtol=1e-5, atol=1e-6)


def test_losses_of_all_rounds(found: list[LoopCall], monkeypatch: pytest.MonkeyPatch) -> None:
    def script() -> Results:
        w, u, b = variables(*SHAPES)
        x, y = random(8, N, H), random(8, N, H)
        with autograd.record():
            h, losses = nd.zeros((N, H)), []
            for t in range(8):
                h = cell(x[t], h, w, u, b)
                losses.append(((h - y[t]) ** 2).mean())
        autograd.backward(losses)
        return [v.grad.asnumpy() for v in (w, u, b)] + [loss.asnumpy() for loss in losses]

    same_without_loops(script, monkeypatch)
    assert found


def test_a_gradient_of_some_rounds_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def script() -> Results:
        w, u, b = variables(*SHAPES)
        x = random(8, N, H)
        with autograd.record():
            h, states = nd.zeros((N, H)), []
            for t in range(8):
                h = cell(x[t], h, w, u, b)
                states.append(h)
        states[4].backward(retain_graph=True)
        early = [v.grad.copy() for v in (w, u, b)]
        states[7].backward()
        return [v.asnumpy() for v in (*early, w.grad, u.grad, b.grad, *states)]

    same_without_loops(script, monkeypatch)


@pytest.mark.parametrize("at", [0, 4])
def test_gradients_stop_where_one_round_is_not_recorded(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def step(x: nd.NDArray, h: nd.NDArray, *weights: nd.NDArray) -> nd.NDArray:
        nonlocal t
        t += 1
        if t % 9 == at:
            with autograd.pause():
                return cell(x, h, *weights)
        return cell(x, h, *weights)

    def script() -> Results:
        nonlocal t
        t = -1
        return recurrent(step=step)

    t = -1
    same_without_loops(script, monkeypatch)


def test_gradients_stop_in_every_round(found: list[LoopCall], monkeypatch: pytest.MonkeyPatch) -> None:
    same_without_loops(lambda: recurrent(after=lambda h, t: h + nd.BlockGrad(h) * 0.5), monkeypatch)
    assert found
    same_without_loops(lambda: recurrent(step=lambda x, h, w, u, b: cell(x, h.detach(), w, u, b)), monkeypatch)


@pytest.mark.parametrize("which", [0, 3, 7])
def test_values_of_rounds_are_read_and_differentiated(
    which: int, found: list[LoopCall], monkeypatch: pytest.MonkeyPatch
) -> None:
    def script() -> Results:
        w, u, b = variables(*SHAPES)
        x = random(8, N, H)
        x.attach_grad()
        with autograd.record():
            h, states = nd.zeros((N, H)), []
            for t in range(8):
                h = cell(x[t], h, w, u, b)
                states.append(h)
            loss = (states[which] * 2 + h).sum()
        loss.backward()
        return [v.asnumpy() for v in (x.grad, w.grad, u.grad, b.grad, states[which], states[-2], h)]

    same_without_loops(script, monkeypatch)
    assert found


def test_a_round_that_looks_further_back_is_no_loop(found: list[LoopCall], monkeypatch: pytest.MonkeyPatch) -> None:
    def script() -> Results:
        w, u, b = variables(*SHAPES)
        x = random(9, N, H)
        states = [nd.zeros((N, H)) for _ in range(3)]
        with autograd.record():
            for t in range(9):
                states.append(cell(x[t], states[-3], w, u, b))
            loss = states[-1].sum()
        loss.backward()
        return [v.grad.asnumpy() for v in (w, u, b)]

    same_without_loops(script, monkeypatch)
    # Three rounds together look back to the three before only.
    assert all(call.rounds <= 3 for call in found)


def test_layers_with_weights_of_their_own_are_no_loop(found: list[LoopCall]) -> None:
    ws, bs = variables(*[(H, H)] * 20), variables(*[(H,)] * 20)
    x = random(N, H)
    with autograd.record():
        h = x
        for w, b in zip(ws, bs, strict=True):
            h = nd.Activation(nd.FullyConnected(h, w, b, num_hidden=H), "relu")
    h.backward()
    ws[0].grad.asnumpy()
    assert not found


def test_elementwise_rounds_are_no_loop(found: list[LoopCall]) -> None:
    x = random(N, H)
    for _ in range(15):
        x = x + 0.1 * (nd.sin(x) - x)
    x.asnumpy()
    assert not found


def test_a_chain_that_is_no_loop_is_searched_once() -> None:
    def calls(n_rounds: int) -> int:
        """How many functions of the search a chain of sums makes it call."""
        counted = 0

        def count(frame: Any, event: str, _: Any) -> None:
            nonlocal counted
            counted += event == "call" and frame.f_code.co_filename == loops.__file__

        x = random(2)
        for _ in range(n_rounds):
            x = x + 1
        before = sys.getprofile()
        sys.setprofile(count)
        try:
            x.wait_to_read()
        finally:
            sys.setprofile(before)
        return counted

    assert 100 < calls(200) and calls(400) < 3 * calls(201)


def test_weights_shared_between_some_rounds_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def script() -> Results:
        w, u, b = variables(*SHAPES)
        other = variables((H, H))[0]
        x = random(12, N, H)
        with autograd.record():
            h = nd.zeros((N, H))
            for t in range(12):
                h = cell(x[t], h, w, u if t < 6 else other, b)
            loss = h.sum()
        loss.backward()
        return [v.grad.asnumpy() for v in (w, u, other, b)]

    same_without_loops(script, monkeypatch)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_types(dtype: str, found: list[LoopCall], monkeypatch: pytest.MonkeyPatch) -> None:
    def script() -> Results:
        w, u, b = [v.astype(dtype) for v in variables(*SHAPES)]
        x = random(10, N, H).astype(dtype)
        h = nd.zeros((N, H), dtype=dtype)
        for t in range(10):
            h = cell(x[t], h, w, u, b)
        return [h.asnumpy().astype("float32"), np.array(h.asnumpy().dtype == dtype)]

    rolled = same_without_loops(script, monkeypatch) if dtype == "float64" else script()
    assert rolled[1] and found


def test_a_state_that_changes_its_type_or_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    def script() -> Results:
        w, u, b = variables(*SHAPES)
        x = random(10, N, H)
        h = nd.zeros((1, H))
        for t in range(10):
            h = nd.broadcast_add(nd.tanh(nd.dot(x[t], w) + b), nd.dot(h, u) * 0.5)
        return [h.asnumpy()]

    same_without_loops(script, monkeypatch)


def test_integers_are_counted_beside(found: list[LoopCall], monkeypatch: pytest.MonkeyPatch) -> None:
    def script() -> Results:
        w, u, b = variables(*SHAPES)
        x = random(10, N, H)
        h, count = nd.zeros((N, H)), nd.zeros((N,), dtype="int32")
        for t in range(10):
            h = cell(x[t], h, w, u, b)
            count = count + (h.sum(axis=1) > 0).astype("int32")
        return [h.asnumpy(), count.asnumpy()]

    same_without_loops(script, monkeypatch)
    assert found


@pytest.mark.parametrize(("kind", "hybrid"), [("RNNCell", False), ("LSTMCell", True), ("GRUCell", False)])
def test_cells_of_gluon(kind: str, hybrid: bool, found: list[LoopCall], monkeypatch: pytest.MonkeyPatch) -> None:
    def script() -> Results:
        stack = gluon.rnn.HybridSequentialRNNCell()
        stack.add(getattr(gluon.rnn, kind)(H, input_size=H))
        stack.add(gluon.rnn.DropoutCell(0.3))
        stack.add(gluon.rnn.ResidualCell(getattr(gluon.rnn, kind)(H, input_size=H)))

        class Net(gluon.HybridBlock):
            def __init__(self) -> None:
                super().__init__()
                with self.name_scope():
                    self.stack, self.out = stack, gluon.nn.Dense(2, flatten=False, in_units=H)

            def hybrid_forward(self, F: Any, x: Any) -> Any:
                return self.out(self.stack.unroll(12, x, layout="NTC", merge_outputs=True)[0])

        net = Net()
        net.initialize(mx.init.Uniform(0.5))
        if hybrid:
            net.hybridize()
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
        x, seen = random(N, 12, H), []
        for _ in range(3):
            with autograd.record():
                loss = (net(x) ** 2).mean()
            loss.backward()
            trainer.step(1)
            seen.append(loss.asnumpy())
        return [*seen, *[p.data().asnumpy() for p in net.collect_params().values()]]

    same_without_loops(script, monkeypatch)
    assert found


def test_symbols(found: list[LoopCall], monkeypatch: pytest.MonkeyPatch) -> None:
    def script() -> Results:
        stack = mx.rnn.SequentialRNNCell()
        for i in range(2):
            stack.add(mx.rnn.LSTMCell(H, prefix=f"l{i}_"))
        outputs, _ = stack.unroll(10, mx.sym.Variable("data"), merge_outputs=True)
        net = mx.sym.SoftmaxOutput(
            mx.sym.FullyConnected(mx.sym.Reshape(outputs, (-1, H)), num_hidden=3), name="softmax"
        )
        exe = net.simple_bind(mx.cpu(), data=(N, 10, 5), softmax_label=(N * 10,))
        for name in sorted(exe.arg_dict):
            exe.arg_dict[name][:] = random(*exe.arg_dict[name].shape)
        exe.arg_dict["softmax_label"][:] = np.arange(N * 10) % 3
        exe.forward(is_train=True)
        exe.backward()
        return [exe.outputs[0].asnumpy(), *[g.asnumpy() for g in exe.grad_arrays]]

    same_without_loops(script, monkeypatch)
    assert found


def test_states_of_normalization_are_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    def script() -> Results:
        w, gamma, beta = variables((H, H), (H,), (H,))
        mean, var = nd.zeros((H,)), nd.ones((H,))
        x = random(10, N, H)
        with autograd.record():
            h = nd.zeros((N, H))
            for t in range(10):
                h = nd.tanh(nd.BatchNorm(nd.dot(x[t], w) + 0.3 * h, gamma, beta, mean, var, fix_gamma=False))
            loss = (h * h).sum()
        loss.backward()
        return [v.asnumpy() for v in (w.grad, gamma.grad, beta.grad, mean, var)]

    same_without_loops(script, monkeypatch)
