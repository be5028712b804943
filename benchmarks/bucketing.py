"""Sentences of many lengths through `BucketingModule`, as one script: seconds of the process, and how well it learned.

    python -m benchmarks.bucketing LIBRARY

LIBRARY is dualmx, or mxnet by an interpreter that has it. Two LSTM cells are unrolled for three lengths; three epochs.
"""

from __future__ import annotations

import json
import random
import sys
import time
from typing import Any

import numpy as np

from .machine import process_age

WORDS, EMBEDDED, HIDDEN, BATCH, EPOCHS = 30, 32, 64, 32, 3
LENGTHS = [10, 20, 30]
TRAINED, HELD_OUT = 1200, 300  # sentences


def sentences(draw: np.random.RandomState, count: int) -> list[list[int]]:
    """Sentences of 5 to 28 words, nine of ten of which follow from the word before."""

    def after(word: int) -> int:
        return (3 * word + 1) % (WORDS - 1) + 1 if draw.rand() < 0.9 else int(draw.randint(1, WORDS))

    found = []
    for _ in range(count):
        words = [int(draw.randint(1, WORDS))]
        for _ in range(draw.randint(4, 28)):
            words.append(after(words[-1]))
        found.append(words)
    return found


def train(mx: Any) -> float:
    """Train, and return the perplexity of sentences that were held out."""
    mx.random.seed(0)
    random.seed(0)  # by which the iterator shuffles
    np.random.seed(0)
    draw = np.random.RandomState(0)
    data, held_out = (
        mx.rnn.BucketSentenceIter(sentences(draw, count), BATCH, buckets=LENGTHS, invalid_label=0)
        for count in (TRAINED, HELD_OUT)
    )
    cells = mx.rnn.SequentialRNNCell()
    for layer in range(2):
        cells.add(mx.rnn.LSTMCell(num_hidden=HIDDEN, prefix=f"lstm{layer}_"))

    def symbol_of(length: int) -> Any:
        x, labels = mx.sym.Variable("data"), mx.sym.Variable("softmax_label")
        x = mx.sym.Embedding(x, input_dim=WORDS, output_dim=EMBEDDED, name="embed")
        cells.reset()
        x, _ = cells.unroll(length, inputs=x, merge_outputs=True)
        x = mx.sym.FullyConnected(mx.sym.Reshape(x, shape=(-1, HIDDEN)), num_hidden=WORDS, name="out")
        labels = mx.sym.Reshape(labels, shape=(-1,))
        x = mx.sym.SoftmaxOutput(x, labels, use_ignore=True, ignore_label=0, name="softmax")
        return x, ("data",), ("softmax_label",)

    model = mx.mod.BucketingModule(symbol_of, default_bucket_key=data.default_bucket_key, context=mx.cpu())
    model.fit(
        data,
        eval_data=held_out,
        eval_metric=mx.metric.Perplexity(0),
        optimizer="adam",
        optimizer_params={"learning_rate": 0.01, "wd": 1e-5},
        initializer=mx.init.Xavier(factor_type="in", magnitude=2.34),
        num_epoch=EPOCHS,
    )
    return float(model.score(held_out, mx.metric.Perplexity(0))[0][1])


def main(library: str) -> None:
    """Print the times as JSON."""
    perplexity = train(__import__(library))
    print(json.dumps({"cpu": time.process_time(), "wall": process_age(), "perplexity": perplexity}))


if __name__ == "__main__":
    main(sys.argv[1])
