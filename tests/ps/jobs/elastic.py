"""A worker of an elastic job: uses each sample of each epoch once, and writes down which."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np

import dualmx as mx

FOLDER, LENGTH, BATCH, EPOCHS = Path(sys.argv[1]), *map(int, sys.argv[2:5])
data = np.random.default_rng(0).standard_normal((LENGTH, 3)).astype(np.float32)
net = mx.gluon.nn.Dense(2, in_units=3)
net.initialize(mx.init.One())
kv = mx.kv.create("dist_sync")
trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9}, kvstore=kv)
sampler = mx.kv.ElasticSampler(LENGTH, BATCH, kv)
log = open(FOLDER / f"{os.getpid()}.log", "w", buffering=1)
print("begins, back:", kv.is_recovery, "of", kv.num_workers, flush=True)
while sampler.epoch < EPOCHS:
    for rows in sampler:
        number, counted = kv.completed_rounds + 1, not kv._contributes_zero
        with mx.autograd.record():
            loss = (net(mx.nd.array(data[rows])) ** 2).sum()
        loss.backward()
        told = {"batch": number, "epoch": sampler.epoch, "rows": rows.tolist() if counted else []}
        told |= {"members": kv.num_workers, "rank": kv.rank, "total": sampler.total, "me": kv._worker.rank}
        print(json.dumps(told), file=log)
        trainer.step(sampler.total)
        weights = b"".join(p.data().asnumpy().tobytes() for p in net.collect_params().values())
        over = kv._elastic.history[-1]
        assert over.number == number
        print(json.dumps({"batch": number, "used": over.counted, "weights": weights.hex()}), file=log)
        (FOLDER / f"{kv._worker.rank}.at").write_text(str(number))
        while number >= int((FOLDER / "limit").read_text() or 0):
            time.sleep(0.01)
print("done at", sampler.epoch, flush=True)
