"""Products in programs of XLA: those whose operands repeat themselves, several in a row, and what follows them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import dualmx as mx
from dualmx.compile.events import CompileEvent, Listener, listeners

pytestmark = pytest.mark.usefixtures("xla_tier")
draw = np.random.default_rng(0)
X, COLUMN = draw.standard_normal((6, 5)).astype(np.float32), draw.standard_normal((5, 1)).astype(np.float32)

OPERANDS: dict[str, tuple[Callable[[], mx.nd.NDArray], np.ndarray]] = {
    "a number": (lambda: mx.nd.broadcast_to(mx.nd.array([[0.3]]), (5, 12)), np.full((5, 12), 0.3)),
    "a column": (lambda: mx.nd.broadcast_to(mx.nd.array(COLUMN), (5, 12)), np.repeat(COLUMN, 12, 1)),
    "parts of numbers": (
        lambda: mx.nd.concat(
            mx.nd.broadcast_to(mx.nd.array([0.3]), (60,)), mx.nd.broadcast_to(mx.nd.array([0.7]), (9,)), dim=0
        )[:60].reshape((5, 12)),
        np.full((5, 12), 0.3),
    ),
    "what is computed from numbers": (
        lambda: mx.nd.exp(mx.nd.broadcast_to(mx.nd.array([[0.3]]), (5, 12))) * 2, np.full((5, 12), np.exp(0.3) * 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERANDS)
def test_an_operand_that_repeats_itself(name: str) -> None:
    make, values = OPERANDS[name]
    for _ in range(3):
        found = mx.nd.dot(
            mx.nd.array(X), make()
        ).asnumpy()  # an assertion would hold the operand, which makes it a result
        assert np.allclose(found, X @ values, rtol=1e-5, atol=1e-5)


def test_gradient_through_a_mean_of_columns() -> None:
    w = mx.nd.array(draw.standard_normal((5, 12)))
    w.attach_grad()
    with mx.autograd.record():
        y = (mx.nd.dot(mx.nd.array(X), w).mean(axis=1) ** 2).sum()
    y.backward()
    rows = 2 * (X @ w.asnumpy()).mean(1) / 12
    assert np.allclose(w.grad.asnumpy(), X.T @ np.repeat(rows[:, None], 12, 1), rtol=1e-4, atol=1e-5)


def test_recurrent_layers_whose_weights_are_made_in_the_same_program() -> None:
    mx.npx.set_np()
    try:
        for layer in (mx.gluon.rnn.GRU(4, input_size=5), mx.gluon.rnn.LSTM(4), mx.gluon.rnn.RNN(4, bidirectional=True)):
            layer.initialize(mx.init.Constant(0.1))
            x = mx.np.ones((3, 2, 5))
            first = layer(x).asnumpy()
            assert np.array_equal(first, layer(x).asnumpy()) and 0 < first.min() < first.max() < 1
    finally:
        mx.npx.reset_np()


def program_text(run: Callable[[], object]) -> str:
    """What XLA made of the programs that `run` runs for the first time."""

    class Texts(Listener):
        text = ""

        def compiled(self, event: CompileEvent) -> None:
            self.text += event.compiled.as_text()

    seen = Texts()
    listeners.append(seen)
    try:
        run()
    finally:
        listeners.remove(seen)
    return seen.text


def test_each_of_two_products_in_a_row_is_a_call_of_the_library_of_its_own() -> None:
    x = mx.nd.ones((64, 64))
    text = program_text(lambda: mx.nd.dot(mx.nd.relu(mx.nd.dot(x, x)), x).wait_to_read())
    assert text.count(" dot(") == text.count("kind=kCustom, calls=") == 2


def test_in_recurrent_programs_a_bias_is_added_in_the_call_of_its_product() -> None:
    x, w, b = (mx.nd.array(draw.standard_normal(shape)) for shape in ((700, 200), (800, 200), (800,)))
    layer, sequence = mx.gluon.rnn.LSTM(8, input_size=4), mx.nd.array(draw.standard_normal((5, 3, 4)))
    states = [mx.nd.array(draw.standard_normal((1, 3, 8))) for _ in range(2)]
    layer.initialize()
    layer(sequence, states)[0].wait_to_read()

    def calls(*more: mx.nd.NDArray) -> list[str]:
        def run() -> None:
            outs = [mx.nd.FullyConnected(x, w, b, num_hidden=800), *(o for s in more for o in layer(s, states)[:1])]
            outs[0].wait_to_read()

        return [part for part in program_text(run).split("\n\n") if " dot(" in part]

    assert not any(" add(" in call for call in calls())
    assert any(" add(" in call and "f32[700,800]" in call for call in calls(sequence))
