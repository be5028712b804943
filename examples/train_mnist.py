"""Train a digit classifier imperatively, hybridized, or symbolically: same weights, same batches, same curve.

python examples/train_mnist.py                                    # 5,000 real digits that come with the source
python examples/train_mnist.py --mode symbolic --network mlp
python examples/train_mnist.py --data DIR                         # a folder with MNIST's four (or two t10k) files
dualmx-launch -n 2 -s 2 python examples/train_mnist.py --kv-store dist_sync     # two workers, two servers
"""

import argparse
import logging
import time
from pathlib import Path

import numpy as np

import dualmx as mx

DIGITS = Path(__file__).parent / "digits"


def symbol_lenet():
    """LeNet with relu, ending in the softmax cross-entropy head."""
    x = mx.sym.Variable("data")
    x = mx.sym.Convolution(x, kernel=(5, 5), num_filter=20, name="conv1")
    x = mx.sym.Activation(x, act_type="relu")
    x = mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max")
    x = mx.sym.Convolution(x, kernel=(5, 5), num_filter=50, name="conv2")
    x = mx.sym.Activation(x, act_type="relu")
    x = mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max")
    x = mx.sym.FullyConnected(x, num_hidden=500, name="fc1")
    x = mx.sym.Activation(x, act_type="relu")
    x = mx.sym.FullyConnected(x, num_hidden=10, name="fc2")
    return mx.sym.SoftmaxOutput(x, name="softmax")


def symbol_mlp():
    """Two hidden layers of 512."""
    x = mx.sym.Variable("data")
    for name in ("fc1", "fc2"):
        x = mx.sym.FullyConnected(x, num_hidden=512, name=name)
        x = mx.sym.Activation(x, act_type="relu")
    x = mx.sym.FullyConnected(x, num_hidden=10, name="fc3")
    return mx.sym.SoftmaxOutput(x, name="softmax")


def gluon_lenet():
    """The same network as a Block; the prefixes give the parameters the names they have in the Symbol."""
    net = mx.gluon.nn.HybridSequential(prefix="")
    with net.name_scope():
        net.add(
            mx.gluon.nn.Conv2D(20, kernel_size=5, activation="relu", prefix="conv1_"),
            mx.gluon.nn.MaxPool2D(pool_size=2, strides=2),
            mx.gluon.nn.Conv2D(50, kernel_size=5, activation="relu", prefix="conv2_"),
            mx.gluon.nn.MaxPool2D(pool_size=2, strides=2),
            mx.gluon.nn.Dense(500, activation="relu", prefix="fc1_"),
            mx.gluon.nn.Dense(10, prefix="fc2_"),
        )
    return net


def gluon_mlp():
    """Two hidden layers of 512, as a Block."""
    net = mx.gluon.nn.HybridSequential(prefix="")
    with net.name_scope():
        net.add(
            mx.gluon.nn.Dense(512, activation="relu", prefix="fc1_"),
            mx.gluon.nn.Dense(512, activation="relu", prefix="fc2_"),
            mx.gluon.nn.Dense(10, prefix="fc3_"),
        )
    return net


NETWORKS = {"lenet": (symbol_lenet, gluon_lenet), "mlp": (symbol_mlp, gluon_mlp)}


def initial_weights(symbol, batch_size):
    """Draw the starting weights of every mode, by parameter name."""
    shapes, _, _ = symbol.infer_shape(data=(batch_size, 1, 28, 28))
    draw = mx.init.Xavier()
    weights = {}
    for name, shape in zip(symbol.list_arguments(), shapes, strict=True):
        if name not in ("data", "softmax_label"):
            weights[name] = mx.nd.zeros(shape)
            draw(mx.init.InitDesc(name), weights[name])
    return weights


def read_digits(folder):
    """Return (train images, train labels, test images, test labels); images are float32 (N, 1, 28, 28) in [0, 1].

    Without MNIST's training files, the last 1,000 of the t10k images are held out as the test set.
    """

    def read(train):
        images, labels = mx.gluon.data.vision.MNIST(root=str(folder), train=train)[:]
        images = images.asnumpy().transpose(0, 3, 1, 2).astype("float32") / 255
        return images, np.asarray(labels, "float32")

    images, labels = read(train=False)
    if (Path(folder) / "train-images-idx3-ubyte.gz").exists():
        return (*read(train=True), images, labels)
    return images[:-1000], labels[:-1000], images[-1000:], labels[-1000:]


def accuracy(net, batches):
    """Share of right answers of a Block on an iterator, padding excluded."""
    metric = mx.metric.Accuracy()
    batches.reset()
    for batch in batches:
        real = batch.data[0].shape[0] - batch.pad
        metric.update([batch.label[0][:real]], [net(batch.data[0])[:real]])
    return metric.get()[1]


def part_of(images, labels, batch_size, kv):
    """Return an iterator over this worker's samples: each belongs to one worker, and all make equally many steps.

    Without a distributed store it is over all samples.
    """
    parts, part = (1, 0) if kv is None else (kv.num_workers, kv.rank)
    mine = slice(len(images) * part // parts, len(images) * (part + 1) // parts)
    batches = mx.io.NDArrayIter(images[mine], labels[mine], batch_size, shuffle=True)
    steps = [-(-(len(images) * (i + 1) // parts - len(images) * i // parts) // batch_size) for i in range(parts)]
    return batches if len(set(steps)) == 1 else mx.io.ResizeIter(batches, max(steps))


def fit_gluon(net, weights, train, test, args, kv):
    """Train a Block with record / backward / Trainer.step; returns the final test accuracy."""
    net.initialize()
    for name, parameter in net.collect_params().items():
        parameter.set_data(weights[name])
    if args.mode == "hybrid":
        net.hybridize()
    loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    sgd = {"learning_rate": args.lr, "momentum": args.momentum}
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", sgd, kvstore=kv or args.kv_store)
    rows = args.batch_size * (kv.num_workers if kv is not None and "async" not in kv.type else 1)  # of one update
    metric = mx.metric.Accuracy()
    speedometer = mx.callback.Speedometer(args.batch_size, args.log_every)
    right = 0.0
    for epoch in range(args.epochs):
        start = time.time()
        metric.reset()
        for i, batch in enumerate(train):
            data, label = batch.data[0], batch.label[0]
            with mx.autograd.record():
                output = net(data)
                loss = loss_of(output, label)
            loss.backward()
            trainer.step(rows)
            metric.update([label], [output])
            speedometer(mx.model.BatchEndParam(epoch, i, metric, locals()))
        train.reset()
        logging.info("Epoch[%d] Train-accuracy=%f", epoch, metric.get_global()[1])
        logging.info("Epoch[%d] Time cost=%.3f", epoch, time.time() - start)
        right = accuracy(net, test)
        logging.info("Epoch[%d] Validation-accuracy=%f", epoch, right)
    return right


def fit_module(symbol, weights, train, test, args, kv):
    """Train a Symbol with Module.fit; returns the final test accuracy."""
    module = mx.mod.Module(symbol)
    module.fit(
        train,
        eval_data=test,
        eval_metric="acc",
        arg_params=weights,
        optimizer="sgd",
        optimizer_params={"learning_rate": args.lr, "momentum": args.momentum},
        kvstore=kv or args.kv_store,
        batch_end_callback=mx.callback.Speedometer(args.batch_size, args.log_every),
        num_epoch=args.epochs,
    )
    return dict(module.score(test, "acc"))["accuracy"]


def parse_args():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=("imperative", "hybrid", "symbolic"), default="imperative")
    parser.add_argument("--network", choices=tuple(NETWORKS), default="lenet")
    parser.add_argument("--data", default=DIGITS, help="folder with MNIST's idx files (default: the embedded digits)")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--kv-store", default="local")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--log-every", type=int, default=20, help="batches between two speed lines")
    return parser.parse_args()


def main():
    """Read, train, report."""
    args = parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    start = time.time()
    x_train, y_train, x_test, y_test = read_digits(args.data)
    symbol, block = (build() for build in NETWORKS[args.network])
    mx.random.seed(args.seed)
    np.random.seed(args.seed)
    weights = initial_weights(symbol, args.batch_size)
    kv = mx.kv.create(args.kv_store) if "dist" in args.kv_store else None
    train = part_of(x_train, y_train, args.batch_size, kv)
    test = mx.io.NDArrayIter(x_test, y_test, args.batch_size)
    logging.info("%s %s: %d train, %d test images", args.mode, args.network, len(x_train), len(x_test))
    if args.mode == "symbolic":
        right = fit_module(symbol, weights, train, test, args, kv)
    else:
        right = fit_gluon(block, weights, train, test, args, kv)
    if kv is None or kv.rank == 0:
        logging.info("Final accuracy: %.4f after %d epochs, %.1f s in all", right, args.epochs, time.time() - start)


if __name__ == "__main__":
    main()
