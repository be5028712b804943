"""A worker of a job with faults: trains, goes on where the one before it ended, and saves what it sees at the end."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import dualmx as mx

SHAPES: dict[str, tuple[int, ...]] = {"w": (30, 8), "b": (7,), "c": (5, 3)}
SAMPLES, EPOCHS = 96, 2
PAUSE = 0.012  # seconds between two rounds, so that faults hit in their midst


class Progress:
    """Tells how far the worker is."""

    def __init__(self, folder: Path, task: str):
        self._file = folder / f"{task}.progress"

    def __call__(self, turn: int, stage: str = "round") -> None:
        self._file.write_text(f"{turn} {stage}")


def save(folder: Path, name: str, values: list[Any]) -> None:
    """Write arrays, all or none of them."""
    with open(folder / f"{name}.draft", "wb") as f:
        np.savez(f, *(v.asnumpy() for v in values))
    (folder / f"{name}.draft").replace(folder / f"{name}.npz")


def gradients(out: list[Any], rank: int, turn: int) -> list[Any]:
    """Depend on all weights, so that none may be of another round than the others."""
    noise = np.random.default_rng([rank, turn])
    every = np.float32(np.abs(np.concatenate([o.asnumpy().reshape(-1) for o in out])).mean())
    return [mx.nd.array(o.asnumpy() * 0.1 + noise.standard_normal(o.shape).astype("f") * every) for o in out]


def rows_of(gradient: Any, rank: int, turn: int) -> Any:
    """Some rows of a gradient."""
    ids = np.unique(np.random.default_rng([turn, rank]).integers(0, gradient.shape[0], 4))
    return mx.nd.sparse.row_sparse_array((gradient.asnumpy()[ids], ids), shape=gradient.shape)


def train(kv: Any, rounds: int, rows: bool, compression: str, optimizer: str, progress: Progress) -> list[Any]:
    """A synchronous job: weights at the end, which are those of a run without faults."""
    keys = list(SHAPES)
    if compression:
        kv.set_gradient_compression({"type": compression, **({"threshold": 0.5} if compression == "2bit" else {})})
    start = [mx.nd.ones(s) for s in SHAPES.values()]
    if rows:
        start[0] = start[0].tostype("row_sparse")
    kv.init(keys, start)
    more = {"momentum": 0.9} if optimizer == "sgd" else {}
    kv.set_optimizer(mx.optimizer.create(optimizer, learning_rate=0.01, **more))
    if not kv.is_recovery:
        kv.barrier()
    out = [mx.nd.zeros(s) for s in SHAPES.values()]
    for turn in range(kv.completed_rounds, rounds):
        kv.pull(keys, out=out)
        grads = gradients(out, kv.rank, turn)
        if rows:
            grads[0] = rows_of(grads[0], kv.rank, turn)
        if turn % 3:
            kv.push(keys, grads)
        else:
            for key, one in zip(keys, grads, strict=True):
                kv.push(key, one)
        progress(turn + 1)
        time.sleep(PAUSE)
        if turn % 10 == 4:
            kv.barrier()
    progress(rounds, "trained")
    kv.pull(keys, out=out)
    return out


def count(kv: Any, rounds: int, workers: int, rows: bool, progress: Progress) -> list[Any]:
    """An asynchronous job: each push of each worker adds 1 at a place of its own, and 1 everywhere."""
    keys, shape = ["each", "all"], (workers * rounds, 3)
    start = [mx.nd.zeros(shape), mx.nd.zeros((120,))]
    if rows:
        start[0] = start[0].tostype("row_sparse")
    kv.init(keys, start)
    kv.set_optimizer(mx.optimizer.create("test", rescale_grad=1.0))
    if not kv.is_recovery:
        kv.barrier()
    out = [mx.nd.zeros(shape), mx.nd.zeros((120,))]
    for turn in range(kv.completed_rounds, rounds):
        at = kv.rank * rounds + turn
        if rows:
            each = mx.nd.sparse.row_sparse_array((np.ones((1, 3), "f"), [at]), shape=shape)
        else:
            kv.pull(keys, out=out)
            each = np.zeros(shape, np.float32)
            each[at] = 1
            each = mx.nd.array(each)
        kv.push(keys, [each, mx.nd.ones((120,))])
        progress(turn + 1)
        time.sleep(PAUSE)
    progress(rounds, "trained")
    kv.barrier()
    if rows:
        table = mx.nd.sparse.zeros("row_sparse", shape)
        kv.row_sparse_pull("each", out=table, row_ids=mx.nd.arange(shape[0]))
        kv.pull("all", out=out[1])
        out[0] = table.tostype("default")
    else:
        kv.pull(keys, out=out)
    return out


def sample(kv: Any, progress: Progress) -> list[Any]:
    """An elastic job: each sample adds 1 at a place of its own, once in each epoch."""
    kv.init("each", mx.nd.zeros((SAMPLES,)))
    kv.set_optimizer(mx.optimizer.create("test", rescale_grad=1.0))
    sampler = mx.kv.ElasticSampler(SAMPLES, 3, kv)
    out = mx.nd.zeros((SAMPLES,))
    turn = 0
    while sampler.epoch < EPOCHS:
        for ids in sampler:
            each = np.zeros((SAMPLES,), np.float32)
            each[ids] = 1
            kv.push("each", mx.nd.array(each))
            kv.pull("each", out=out)
            turn += 1
            progress(turn)
            time.sleep(PAUSE)
    progress(turn, "trained")
    kv.pull("each", out=out)
    return [out]


def run() -> None:
    """`job.py FOLDER TASK KIND ROUNDS WORKERS OPTIMIZER COMPRESSION`."""
    folder, task, kind, rounds, workers, optimizer, compression = sys.argv[1:8]
    progress = Progress(Path(folder), task)
    name, _, special = kind.partition(" ")
    kv = mx.kv.create(name)
    if special == "elastic":
        values = sample(kv, progress)
    elif "async" in name:
        values = count(kv, int(rounds), int(workers), special == "rows", progress)
    else:
        values = train(kv, int(rounds), special == "rows", compression, optimizer, progress)
    progress(int(rounds), "final")
    save(Path(folder), task, values)
    if special != "elastic":
        kv.barrier()
    progress(int(rounds), "leaving")
    print("done, back:", kv.is_recovery, flush=True)


if __name__ == "__main__":
    run()
