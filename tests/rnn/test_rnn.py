"""Symbolic recurrent cells: unrolled graphs, weights gate by gate, buckets, training, checkpoints."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualmx as mx

CELLS: dict[str, Any] = {
    "rnn": lambda: mx.rnn.RNNCell(4, "relu"),
    "lstm": lambda: mx.rnn.LSTMCell(4),
    "gru": lambda: mx.rnn.GRUCell(4),
    "zoneout": lambda: mx.rnn.ZoneoutCell(mx.rnn.LSTMCell(4), 0.3, 0.2),
    "residual": lambda: mx.rnn.ResidualCell(mx.rnn.GRUCell(5)),
}


@pytest.mark.parametrize("name", CELLS)
def test_cells_equal_those_of_gluon(name: str) -> None:
    cell = CELLS[name]()
    data = mx.nd.random.uniform(-1, 1, shape=(2, 2, 5))
    symbol, states = cell.unroll(2, mx.sym.var("data"), merge_outputs=True)
    both = mx.sym.Group([symbol, *states])
    executor = both.simple_bind(mx.cpu(), data=data.shape)
    prefix = cell.base_cell._prefix if hasattr(cell, "base_cell") else cell._prefix
    rnn = mx.gluon.rnn
    size = 5 if name == "residual" else 4
    twin = {"rnn": lambda: rnn.RNNCell(4, "relu", prefix=prefix), "gru": lambda: rnn.GRUCell(size, prefix=prefix)}.get(
        "gru" if name == "residual" else name, lambda: rnn.LSTMCell(4, prefix=prefix)
    )()
    twin = rnn.ResidualCell(twin) if name == "residual" else twin
    twin.initialize()
    want, last = twin.unroll(2, data, merge_outputs=True)
    values = {k: v.data() for k, v in twin.collect_params().items()}
    executor.copy_params_from(values)
    found = executor.forward(data=data)
    np.testing.assert_allclose(found[0].asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[-1].asnumpy(), last[-1].asnumpy(), rtol=1e-5, atol=1e-6)


def test_fused_and_unfused_agree(mode: str = "gru") -> None:
    fused = mx.rnn.FusedRNNCell(3, 2, mode, bidirectional=True, get_next_state=True, prefix="f_", dropout=0.5)
    data = mx.nd.random.uniform(-1, 1, shape=(2, 2, 5))
    outputs, states = fused.unroll(2, mx.sym.var("data"), merge_outputs=True)
    assert len(states) == len(fused.state_info)
    executor = outputs.simple_bind(mx.cpu(), data=data.shape)
    vector = mx.nd.random.uniform(-0.5, 0.5, shape=executor.arg_dict["f_parameters"].shape)
    executor.copy_params_from({"f_parameters": vector})
    want = executor.forward(data=data)[0]
    gates = fused.unpack_weights({"f_parameters": vector})
    assert (fused.pack_weights(gates)["f_parameters"].asnumpy() == vector.asnumpy()).all()
    stack = fused.unfuse()
    weights = stack.pack_weights(gates)
    assert set(stack.unpack_weights(weights)) == set(gates)
    executor = stack.unroll(2, mx.sym.var("data"), merge_outputs=True)[0].simple_bind(mx.cpu(), data=data.shape)
    executor.copy_params_from(weights)
    np.testing.assert_allclose(executor.forward(data=data)[0].asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-6)


def outputs_of(symbol: Any, **shapes: Any) -> Any:
    return dict(enumerate(symbol.infer_shape(**shapes)))[1]


def test_names_and_variables() -> None:
    cell = mx.rnn.LSTMCell(4, prefix="a_")
    output, states = cell.unroll(2, [mx.sym.var("x0"), mx.sym.var("x1")])
    assert [o.name for o in output] == ["a_t0_out", "a_t1_out"] and [s.name for s in states][1] == "a_t1_state"
    assert cell.params.get("i2h_bias").attr("__init__") == '["lstmbias", {"forget_bias": 1.0}]'
    assert mx.sym.Group(output).list_arguments() == [
        "x0", "a_i2h_weight", "a_i2h_bias", "a_h2h_weight", "a_h2h_bias", "x1"
    ]  # fmt: skip
    pair = mx.rnn.BidirectionalCell(mx.rnn.RNNCell(2, prefix="l_"), mx.rnn.RNNCell(3, prefix="r_"))
    merged = pair.unroll(2, mx.sym.var("d"), layout="TNC", merge_outputs=True)[0]
    assert outputs_of(merged, d=(2, 4, 6)) == [(2, 4, 5)]
    image = mx.rnn.ConvLSTMCell((1, 3, 8, 8), 4)
    assert image.state_shape == [(0, 4, 8, 8)] * 2
    steps, _ = image.unroll(2, [mx.sym.var("x0"), mx.sym.var("x1")])
    assert outputs_of(steps[1], x0=(2, 3, 8, 8), x1=(2, 3, 8, 8)) == [(2, 4, 8, 8)]


def test_sentences_become_numbers() -> None:
    words = [["a", "b"], ["b", "c", "a"]]
    assert mx.rnn.encode_sentences(words) == ([[0, 1], [1, 2, 0]], {"\n": -1, "a": 0, "b": 1, "c": 2})
    numbers, vocab = mx.rnn.encode_sentences(words, invalid_label=0, start_label=0)
    assert numbers == [[1, 2], [2, 3, 1]] and vocab["\n"] == 0
    assert mx.rnn.encode_sentences([["x", "a"]], {"a": 1, "<unk>": 5}, unknown_token="<unk>")[0] == [[5, 1]]
    with pytest.raises(AssertionError, match="unknown token x"):
        mx.rnn.encode_sentences([["x"]], {"a": 1})


def test_batches_of_a_bucket() -> None:
    random.seed(0)
    np.random.seed(0)
    sentences = [[1, 2, 3], [4, 5], [6, 7, 8, 9], [1, 2], [3, 4], [5, 6, 7], [1] * 10]
    with pytest.warns(UserWarning, match="discarded 1 sentences"):
        batches = mx.rnn.BucketSentenceIter(sentences, 2, buckets=[3, 4], invalid_label=0)
    assert (batches.provide_data or [])[0].shape == (2, 4) and batches.default_bucket_key == 4
    # as MXNet shuffles with these seeds
    first, second = list(batches)
    assert first.data[0].asnumpy().tolist() == [[1, 2, 0], [1, 2, 3]]
    assert first.label[0].asnumpy().tolist() == [[2, 0, 0], [2, 3, 0]]
    assert (second.bucket_key, second.pad, (second.provide_data or [])[0].shape) == (3, 0, (2, 3))
    time_major = mx.rnn.BucketSentenceIter(sentences[:6], 2, buckets=[4], layout="TN")
    assert next(time_major).data[0].shape == (4, 2)
    with pytest.raises(mx.MXNetError, match="layout='XX'"):
        mx.rnn.BucketSentenceIter(sentences, 2, layout="XX")


@pytest.mark.slow
def test_a_language_model_over_buckets(tmp_path: Path) -> None:
    random.seed(1)
    np.random.seed(1)
    mx.random.seed(1)
    sentences = [[(start + i) % 6 + 1 for i in range(length)] for start in range(6) for length in (3, 4) for _ in "ab"]
    data = mx.rnn.BucketSentenceIter(sentences, 4, buckets=[3, 4], invalid_label=0)
    cell = mx.rnn.FusedRNNCell(16, prefix="lstm_")

    def symbol(length: int) -> Any:
        words, label = mx.sym.var("data"), mx.sym.var("softmax_label")
        embedded = mx.sym.Embedding(words, input_dim=7, output_dim=8, name="embed")
        outputs, _ = cell.unroll(length, embedded, merge_outputs=True)
        scores = mx.sym.FullyConnected(outputs.reshape((-1, 16)), num_hidden=7, name="pred")
        loss = mx.sym.SoftmaxOutput(scores, label.reshape((-1,)), name="softmax", use_ignore=True, ignore_label=0)
        return loss, ("data",), ("softmax_label",)

    module = mx.mod.BucketingModule(symbol, data.default_bucket_key)
    metric = mx.metric.Perplexity(0)
    module.fit(
        data,
        eval_metric=metric,
        num_epoch=4,
        optimizer="adam",
        optimizer_params={"learning_rate": 0.1},
        epoch_end_callback=mx.rnn.do_rnn_checkpoint(cell, str(tmp_path / "lm"), 4),
    )
    data.reset()
    before = dict(module.score(data, mx.metric.Perplexity(0)))["perplexity"]
    assert before < 2.5
    _, args, _ = mx.rnn.load_rnn_checkpoint(cell, str(tmp_path / "lm"), 4)
    np.testing.assert_array_equal(
        args["lstm_parameters"].asnumpy(), module.get_params()[0]["lstm_parameters"].asnumpy()
    )


def test_refusals() -> None:
    cell = mx.rnn.LSTMCell(3)
    with pytest.raises(mx.MXNetError, match="inputs=None"):
        cell.unroll(2, None)
    with pytest.raises(mx.MXNetError, match="length=3"):
        cell.unroll(3, [mx.sym.var("x")])
    with pytest.raises(mx.MXNetError, match="unfuse"):
        mx.rnn.ZoneoutCell(mx.rnn.FusedRNNCell(3))
    with pytest.raises(mx.MXNetError, match="mode='foo'"):
        mx.rnn.FusedRNNCell(3, mode="foo")
    mx.rnn.ZoneoutCell(cell, 0.5)
    with pytest.raises(mx.MXNetError, match="modifier"):
        cell.begin_state()
