"""A worker that trains on its part of the twelve devices of a job, and prints its weights' hash after each step."""

from __future__ import annotations

import hashlib
import os
import sys

import numpy as np

import dualmx as mx

DEVICES, ROWS, STEPS = 12, 3, 4
kind, optimizer = sys.argv[1:3]
workers, rank = int(os.environ.get("DMLC_NUM_WORKER", 1)), 0
kv = None
if kind != "device":
    kv = mx.kv.create(kind)
    workers, rank = kv.num_workers, kv.rank
own = DEVICES // workers
contexts = [mx.cpu(i) for i in range(own)]
net = mx.gluon.nn.HybridSequential(prefix="")
net.add(mx.gluon.nn.Conv2D(4, 3, in_channels=1, activation="tanh"), mx.gluon.nn.Flatten())
net.add(mx.gluon.nn.Dense(80, in_units=144, activation="relu"), mx.gluon.nn.Dense(5, in_units=80))
net.initialize(mx.init.Zero(), ctx=contexts)
for i, p in enumerate(net.collect_params().values()):
    p.set_data(mx.nd.array(np.random.default_rng(i).standard_normal(p.shape) * 0.2))
net.hybridize()
settings = {"learning_rate": 0.05, **({"momentum": 0.9, "wd": 0.01} if optimizer == "sgd" else {})}
trainer = mx.gluon.Trainer(net.collect_params(), optimizer, settings, kvstore=kv or kind)
loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
for step in range(STEPS):
    draw = np.random.default_rng(100 + step)
    x, y = draw.standard_normal((DEVICES * ROWS, 1, 8, 8)), draw.integers(0, 5, DEVICES * ROWS)
    mine = slice(rank * own * ROWS, (rank + 1) * own * ROWS)
    xs = mx.gluon.utils.split_and_load(mx.nd.array(x[mine]), contexts)
    ys = mx.gluon.utils.split_and_load(mx.nd.array(y[mine]), contexts)
    with mx.autograd.record():
        losses = [loss(net(a), b) for a, b in zip(xs, ys, strict=True)]
    mx.autograd.backward(losses)
    trainer.step(DEVICES * ROWS)
    weights = [p.data(contexts[-1]).asnumpy() for p in net.collect_params().values()]
    digest = hashlib.sha256(b"".join(w.tobytes() for w in weights)).hexdigest()
    print(f"weights {step} {digest[:24]}", flush=True)
