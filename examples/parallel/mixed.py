"""Learn ratings: the tables of users and items lie on servers, the dense layers are summed between the workers.

dualmx-launch -n 2 -s 2 --launcher local python examples/parallel/mixed.py
dualmx status                                                    # in another shell: bytes that the servers move
"""

import argparse

import numpy as np

import dualmx as mx
from dualmx.gluon import nn
from dualmx.gluon.contrib.nn import SparseEmbedding

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--users", type=int, default=100_000)
parser.add_argument("--items", type=int, default=20_000)
parser.add_argument("--units", type=int, default=16)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch-size", type=int, default=256, help="rows of a worker")
parser.add_argument("--kv-store", default="dist_mixed", help="dist_sync moves more; device is for a process alone")
args = parser.parse_args()


class Ratings(mx.gluon.Block):
    """What a user thinks of an item; a lookup fetches the rows of the batch from the servers."""

    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.users = SparseEmbedding(args.users, args.units)
            self.items = SparseEmbedding(args.items, args.units)
            self.judge = nn.HybridSequential()
            self.judge.add(
                nn.Dense(64, activation="relu", in_units=2 * args.units),
                nn.Dense(64, activation="relu", in_units=64),
                nn.Dense(1, in_units=64),
            )

    def forward(self, user: mx.nd.NDArray, item: mx.nd.NDArray) -> mx.nd.NDArray:
        return self.judge(mx.nd.concat(self.users(user), self.items(item), dim=1))


kv = mx.kv.create(args.kv_store)
net = Ratings()
net.initialize(mx.init.Normal(0.3))
trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01}, kvstore=kv)
loss_of = mx.gluon.loss.L2Loss()
draw = np.random.default_rng(kv.rank)  # each worker has ratings of its own
taste = np.random.default_rng(99).standard_normal(args.users), np.random.default_rng(98).standard_normal(args.items)

total = 0.0
for step in range(1, args.steps + 1):
    # A few users and items are in most ratings.
    user = np.minimum(draw.zipf(1.3, args.batch_size), args.users) - 1
    item = np.minimum(draw.zipf(1.3, args.batch_size), args.items) - 1
    rating = mx.nd.array(np.tanh(taste[0][user] + taste[1][item])).reshape((-1, 1))
    with mx.autograd.record():
        loss = loss_of(net(mx.nd.array(user), mx.nd.array(item)), rating)
    loss.backward()
    trainer.step(args.batch_size * kv.num_workers)
    total += float(loss.mean().asscalar())
    if step % (args.steps // 4 or 1) == 0:
        print(f"step {step}: loss {total / (args.steps // 4 or 1):.4f}", flush=True)
        total = 0.0
