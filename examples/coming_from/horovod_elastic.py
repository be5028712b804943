"""Train a digit classifier while processes come and go: kill one, and start others, while it runs.

dualmx-launch -n 3 -s 0 --on-worker-death elastic python examples/coming_from/horovod_elastic.py
"""

import argparse
import gzip
from pathlib import Path

import numpy as np

import dualmx as mx
import dualmx.horovod as hvd  # instead of: import horovod.mxnet as hvd
from dualmx import autograd, gluon

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--batch-size", type=int, default=32, help="rows of a batch of each process")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--lr", type=float, default=0.05, help="of one process")
parser.add_argument("--commit-every", type=int, default=5, help="batches between two commits")
args = parser.parse_args()
DIGITS = Path(__file__).parents[1] / "digits"


def read(name, header):
    """Return the bytes of one of MNIST's files after its header."""
    with gzip.open(DIGITS / name) as f:
        return np.frombuffer(f.read()[header:], np.uint8)


hvd.init()
x = read("train-images-idx3-ubyte.gz", 16).reshape(-1, 784).astype("float32") / 255
y = read("train-labels-idx1-ubyte.gz", 8).astype("float32")
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(64, activation="relu"), gluon.nn.Dense(10))
net.initialize(mx.init.Xavier())
net.hybridize()
settings = {"learning_rate": args.lr * hvd.size(), "momentum": 0.9}
trainer = hvd.DistributedTrainer(net.collect_params(), "sgd", settings)
loss_of = gluon.loss.SoftmaxCrossEntropyLoss()

sampler = hvd.elastic.ElasticSampler(x)
state = hvd.elastic.MXNetState(net=net, trainer=trainer, sampler=sampler, epoch=0)
state.register_reset_callbacks([lambda: trainer.set_learning_rate(args.lr * hvd.size())])


@hvd.elastic.run
def train(state):
    """All epochs that are left; called again when the processes have changed."""
    while state.epoch < args.epochs:
        right = seen = 0
        for number in range(-(-len(sampler) // args.batch_size)):
            rows = sampler.get_indices(number, args.batch_size)
            images, labels = mx.nd.array(x[rows]), mx.nd.array(y[rows])
            with autograd.record():
                scores = net(images)
                loss = loss_of(scores, labels)
            loss.backward()
            trainer.step(len(rows))
            sampler.record_batch(number, args.batch_size)
            right += int((scores.argmax(axis=1) == labels).sum().asscalar())
            seen += len(rows)
            if number % args.commit_every == args.commit_every - 1:
                state.commit()
        print(f"epoch {state.epoch}: process {hvd.rank()} of {hvd.size()}, accuracy {right / max(seen, 1):.3f}")
        state.epoch += 1
        sampler.set_epoch(state.epoch)
        state.commit()


train(state)
