"""Train while workers come and go: kill one, and start others, while it runs.

dualmx-launch -n 2 -s 1 --on-worker-death elastic python examples/parallel/elastic.py
dualmx status                                                    # in another shell: who takes part
"""

import argparse
import gzip
from pathlib import Path

import numpy as np

import dualmx as mx
from dualmx.gluon import nn

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=32, help="most rows of a worker in a batch")
parser.add_argument("--kv-store", default="dist_sync")
args = parser.parse_args()
DIGITS = Path(__file__).parents[1] / "digits"


def read(name: str, header: int) -> np.ndarray:
    """The bytes of one of MNIST's files after its header."""
    with gzip.open(DIGITS / name) as f:
        return np.frombuffer(f.read()[header:], np.uint8)


x = read("train-images-idx3-ubyte.gz", 16).reshape(-1, 784).astype("float32") / 255
y = read("train-labels-idx1-ubyte.gz", 8).astype("float32")

net = nn.HybridSequential()
net.add(nn.Dense(64, activation="relu", in_units=784), nn.Dense(10, in_units=64))  # with known shapes
net.initialize(mx.init.Xavier())
loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
kv = mx.kv.create(args.kv_store)
trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.2, "momentum": 0.9}, kvstore=kv)
sampler = mx.kv.ElasticSampler(len(x), args.batch_size, kv)

while sampler.epoch < args.epochs:
    epoch, seen, right = sampler.epoch, 0, 0
    for rows in sampler:
        images, labels = mx.nd.array(x[rows]), mx.nd.array(y[rows])
        with mx.autograd.record():
            scores = net(images)
            loss = loss_of(scores, labels)
        loss.backward()
        trainer.step(sampler.total)
        seen += len(rows)
        right += int((scores.argmax(axis=1) == labels).sum().asscalar())
    workers = f"one of {kv.num_workers} workers" if kv.num_workers > 1 else "alone"
    print(f"epoch {epoch}: {seen} of {len(x)} samples here, {workers}, accuracy {right / max(seen, 1):.3f}", flush=True)
