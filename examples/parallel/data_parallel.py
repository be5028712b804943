"""Train one network on several devices of this process: each takes its part of every batch.

python examples/parallel/data_parallel.py                        # 8 virtual devices on the CPU
python examples/parallel/data_parallel.py --devices 2 --sync-bn  # batch statistics of both devices together
"""

import argparse
import gzip
import os
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--devices", type=int, default=8, help="number of devices")
parser.add_argument("--gpu", action="store_true", help="GPUs instead of virtual devices on the CPU")
parser.add_argument("--batch-size", type=int, default=64, help="rows over all devices")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--rows", type=int, default=5000, help="how many of the digits to use")
parser.add_argument("--sync-bn", action="store_true", help="normalize by the statistics of all devices")
args = parser.parse_args()
if not args.gpu:  # before XLA starts
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={args.devices}"

import numpy as np  # noqa: E402

import dualmx as mx  # noqa: E402
from dualmx.gluon import nn  # noqa: E402

DIGITS = Path(__file__).parents[1] / "digits"


def read(name: str, header: int) -> np.ndarray:
    """The bytes of one of MNIST's files after its header."""
    with gzip.open(DIGITS / name) as f:
        return np.frombuffer(f.read()[header:], np.uint8)


x = read("train-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28)[: args.rows].astype("float32") / 255
y = read("train-labels-idx1-ubyte.gz", 8)[: args.rows].astype("float32")

devices = [mx.gpu(i) if args.gpu else mx.cpu(i) for i in range(args.devices)]
net = nn.HybridSequential()
net.add(nn.Conv2D(20, 5, activation="relu"), nn.MaxPool2D(2, 2), nn.Conv2D(50, 5, activation="relu"))
net.add(mx.gluon.contrib.nn.SyncBatchNorm() if args.sync_bn else nn.BatchNorm())
net.add(nn.MaxPool2D(2, 2), nn.Dense(128, activation="relu"), nn.Dense(10))
net.initialize(mx.init.Xavier(), ctx=devices)
net.hybridize()
trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9}, kvstore="device")
loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
batches = mx.gluon.data.DataLoader(
    mx.gluon.data.ArrayDataset(x, y), batch_size=args.batch_size, shuffle=True, last_batch="discard"
)

for epoch in range(args.epochs):
    began, losses = time.time(), []
    for data, label in batches:
        xs = mx.gluon.utils.split_and_load(data, devices)
        ys = mx.gluon.utils.split_and_load(label, devices)
        with mx.autograd.record():
            losses = [loss_of(net(a), b) for a, b in zip(xs, ys, strict=True)]
        mx.autograd.backward(losses)
        trainer.step(args.batch_size)  # one program on all devices: forward, backward, sum of gradients, update
    mean = np.mean([part.mean().asscalar() for part in losses])
    print(f"epoch {epoch}: loss of the last batch {mean:.3f}, {time.time() - began:.1f} s", flush=True)
