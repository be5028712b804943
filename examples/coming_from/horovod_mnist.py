"""Train a digit classifier as a script for Horovod does; only its import differs.

dualmx-launch -n 2 -s 0 python examples/coming_from/horovod_mnist.py
mpiexec -n 2 python examples/coming_from/horovod_mnist.py
"""

import argparse
import logging
import time
from pathlib import Path

import dualmx as mx
import dualmx.horovod as hvd  # instead of: import horovod.mxnet as hvd
from dualmx import autograd, gluon

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--batch-size", type=int, default=64, help="rows of a batch of each process")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--lr", type=float, default=0.01, help="of one process")
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--gpu", action="store_true")
parser.add_argument("--gradient-predivide-factor", type=float, default=1.0)
parser.add_argument("--fp16-allreduce", action="store_true", help="send gradients as float16")
args = parser.parse_args()
logging.basicConfig(level=logging.INFO, format="%(message)s")
digits = Path(__file__).parents[1] / "digits"


def iterator(part, rank, size):
    """Return an iterator over this process's share of the digits."""
    return mx.io.MNISTIter(
        image=str(digits / f"{part}-images-idx3-ubyte.gz"),
        label=str(digits / f"{part}-labels-idx1-ubyte.gz"),
        input_shape=(1, 28, 28),
        batch_size=args.batch_size,
        shuffle=part == "train",
        flat=False,
        num_parts=size,
        part_index=rank,
    )


def network():
    """Return two convolutions and two dense layers, whose input sizes are found at the first batch."""
    net = gluon.nn.HybridSequential()
    with net.name_scope():
        net.add(gluon.nn.Conv2D(channels=20, kernel_size=5, activation="relu"), gluon.nn.MaxPool2D(2, 2))
        net.add(gluon.nn.Conv2D(channels=50, kernel_size=5, activation="relu"), gluon.nn.MaxPool2D(2, 2))
        net.add(gluon.nn.Flatten(), gluon.nn.Dense(512, activation="relu"), gluon.nn.Dense(10))
    return net


def evaluate(net, batches, context):
    """Return the accuracy on all batches."""
    batches.reset()
    metric = mx.metric.Accuracy()
    for batch in batches:
        data, label = batch.data[0].as_in_context(context), batch.label[0].as_in_context(context)
        metric.update([label], [net(data)])
    return metric.get()[1]


hvd.init()
context = mx.gpu(hvd.local_rank()) if args.gpu else mx.cpu(hvd.local_rank())
train, test = iterator("train", hvd.rank(), hvd.size()), iterator("t10k", 0, 1)

mx.random.seed(42 + hvd.rank())  # other weights in each process: those of the first one are taken
net = network()
net.hybridize()
net.initialize(mx.init.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2), ctx=context)
params = net.collect_params()
hvd.broadcast_parameters(params, root_rank=0)
optimizer = mx.optimizer.create("sgd", learning_rate=args.lr * hvd.size(), momentum=args.momentum)
trainer = hvd.DistributedTrainer(
    params,
    optimizer,
    compression=hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none,
    gradient_predivide_factor=args.gradient_predivide_factor,
)
loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
metric = mx.metric.Accuracy()


def train_epoch(epoch, batches):
    """One pass over this process's share."""
    began = time.time()
    batches.reset()
    metric.reset()
    for batch in batches:
        data, label = batch.data[0].as_in_context(context), batch.label[0].as_in_context(context)
        with autograd.record():
            output = net(data)
            loss = loss_of(output, label)
        loss.backward()
        trainer.step(args.batch_size)
        metric.update([label], [output])
    if hvd.rank() == 0:
        logging.info("Epoch[%d] Train: %s Time cost=%.2f", epoch, metric.get(), time.time() - began)
        logging.info("Epoch[%d] Validation: accuracy=%.4f", epoch, evaluate(net, test, context))


for number in range(args.epochs):
    train_epoch(number, train)
print(f"process {hvd.rank()} of {hvd.size()}: sum of weights {sum(p.data().sum().asscalar() for p in params.values())}")
