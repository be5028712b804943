"""A program of Spark that trains: every way in which the processes of `dualmx.spark.run` can end."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import pyspark.cloudpickle
from pyspark.sql import SparkSession

import dualmx as mx
from dualmx import spark

pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])


def summed(scale: float, extra: int = 0) -> tuple[int, int, list[float], str]:
    mx.parallel.init()
    total = mx.parallel.all_reduce(mx.nd.full((2,), scale * (mx.parallel.rank() + 1) + extra))
    return mx.parallel.rank(), mx.parallel.local_size(), total.asnumpy().tolist(), os.environ.get("COLOUR", "")


def trained(path: str, epochs: int) -> tuple[list[float], int]:
    """Linear regression on this process's share of the rows that Spark has written."""
    import dualmx.horovod as hvd

    hvd.init()
    reader = mx.io.ParquetReader(path, shuffle=True, num_parts=hvd.size(), part_index=hvd.rank())
    net = mx.gluon.nn.Dense(1, in_units=2)
    net.initialize()
    hvd.broadcast_parameters(net.collect_params())
    trainer = hvd.DistributedTrainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for _ in range(epochs):
        for batch in reader.batches(10, discard=True):
            with mx.autograd.record():
                loss = ((net(mx.nd.array(batch["x"])).reshape(-1) - mx.nd.array(batch["y"])) ** 2).mean()
            loss.backward()
            trainer.step(1)
    return net.weight.data().asnumpy().reshape(-1).tolist(), reader.num_rows


def failing(how: str) -> Any:
    mx.parallel.init()
    if mx.parallel.rank() == 1:
        if how == "raise":
            raise ValueError("no such digit")
        os.kill(os.getpid(), signal.SIGKILL)
    return mx.parallel.all_reduce(mx.nd.ones((1,))).asscalar()


folder = sys.argv[1]
session = (
    SparkSession.builder.master("local[2]")  # type: ignore[attr-defined]
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
session.sparkContext.setLogLevel("OFF")

found = spark.run(summed, (2.0,), {"extra": 1}, num_proc=2, env={"COLOUR": "red"})
assert found == [(0, 2, [8.0, 8.0], "red"), (1, 2, [8.0, 8.0], "red")], found
assert spark.run(summed, (1.0,)) == [(0, 2, [3.0, 3.0], ""), (1, 2, [3.0, 3.0], "")]  # in the same executors
assert spark.run(summed, (1.0,), num_proc=1) == [(0, 1, [1.0, 1.0], "")]

rows = [([i / 50 - 1, (i % 7) / 7], 3 * (i / 50 - 1) - 2 * ((i % 7) / 7)) for i in range(101)]
session.createDataFrame(rows, ["x", "y"]).repartition(3).write.parquet(folder + "/rows")
(left, many), (right, few) = spark.run(trained, (folder + "/rows", 60), num_proc=2)
assert left == right and abs(left[0] - 3) < 0.2 and abs(left[1] + 2) < 0.2, left
assert (many, few) == (51, 50)

for how in ("raise", "kill"):
    try:
        spark.run(failing, (how,), num_proc=2)
    except mx.MXNetError as e:
        print(f"{how}: {e}")
    else:
        raise AssertionError(how)
session.stop()
print("finished")
