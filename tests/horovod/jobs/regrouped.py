"""Training by `hvd.elastic` that goes on when processes are killed and started again; argv: folder, samples, epochs.

Each process writes where it is to `<pid>.at`, and takes its time until the file `go` is there. Its batches have the
same gradient whatever samples they are of, so that the weights tell only how many steps were made.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

import dualmx as mx
import dualmx.horovod as hvd

BATCH = 5
DATA = np.random.RandomState(0).randn(4, 3).astype("float32")


def made() -> tuple[mx.gluon.Block, mx.gluon.Trainer]:
    """The network, whose input sizes are not known before the first batch, and what trains it."""
    net = mx.gluon.nn.HybridSequential()
    norm = (
        mx.gluon.contrib.nn.SyncBatchNorm() if os.environ.get("REGROUPED_NORM") == "sync" else mx.gluon.nn.BatchNorm()
    )
    net.add(mx.gluon.nn.Dense(4, activation="tanh"), norm, mx.gluon.nn.Dense(1))
    net.initialize(mx.init.Uniform(0.5))
    net.hybridize()
    return net, hvd.DistributedTrainer(net.collect_params(), "sgd", {"learning_rate": 0.02, "momentum": 0.9})


def step(net: mx.gluon.Block, trainer: mx.gluon.Trainer) -> None:
    with mx.autograd.record():
        loss = ((net(mx.nd.array(DATA)) - 1) ** 2).sum()
    loss.backward()
    trainer.step(len(DATA))


def main(folder: Path, samples: int, epochs: int) -> None:
    hvd.init()
    mx.random.seed(7 if hvd.rank() == 0 else os.getpid())  # those of the first process are everybody's
    net, trainer = made()
    sampler = hvd.elastic.ElasticSampler(range(samples))
    counts = mx.nd.zeros((samples,))
    state = hvd.elastic.MXNetState(net, trainer, sampler=sampler, counts=counts, epoch=0, step=0)
    sizes: list[int] = []
    state.register_reset_callbacks([lambda: sizes.append(hvd.size())])

    @hvd.elastic.run
    def train(state: hvd.elastic.MXNetState) -> str:
        while state.epoch < epochs:
            for number in range(-(-len(sampler) // BATCH)):
                step(net, trainer)
                used = np.zeros(samples, "float32")
                np.add.at(used, sampler.get_indices(number, BATCH), 1)
                state.counts = state.counts + hvd.allreduce(mx.nd.array(used), op=hvd.Sum)
                sampler.record_batch(number, BATCH)
                state.step += 1
                (folder / f"{os.getpid()}.new").write_text(f"{hvd.rank()} {hvd.size()} {state.step}")
                (folder / f"{os.getpid()}.new").replace(folder / f"{os.getpid()}.at")
                if not (folder / "go").exists():
                    time.sleep(0.1)
                if state.step % 2 == 0:
                    state.commit()
            repeated = int(state.counts.sum().asscalar()) - samples
            assert state.counts.min().asscalar() == 1 and repeated < 3, (repeated, state.counts)
            state.counts = mx.nd.zeros((samples,))
            state.epoch += 1
            sampler.set_epoch(state.epoch)
            state.commit()
        return f"of {hvd.size()} after {state.step} steps"

    outcome = train(state)
    weights = np.concatenate([p.data().asnumpy().reshape(-1) for p in net.collect_params().values()])
    np.save(folder / f"{os.getpid()}.npy", weights)
    # Unbuffered `print` writes the end of a line by itself, and other processes write to the same file.
    sys.stdout.write(f"finished {outcome}, groups of {sizes}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
