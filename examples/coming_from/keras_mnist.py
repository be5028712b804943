"""Train a digit classifier in the words of Keras, on several devices or in several processes, with the same result.

python examples/coming_from/keras_mnist.py                                       # 4 virtual devices on the CPU
python examples/coming_from/keras_mnist.py --loop                                # with a loop in the place of fit
TF_CONFIG='{"cluster": {"worker": ["localhost:5000", "localhost:5001"]}, "task": {"type": "worker", "index": 0}}' \\
    python examples/coming_from/keras_mnist.py --strategy workers                # and once more with index 1
TF_CONFIG='{"cluster": {"worker": ["localhost:5001"], "ps": ["localhost:5000"]}, "task": {"type": "ps", "index": 0}}' \\
    python examples/coming_from/keras_mnist.py --strategy servers                # and the worker
"""

import argparse
import gzip
import os
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--strategy", choices=("mirrored", "workers", "servers"), default="mirrored")
parser.add_argument("--devices", type=int, default=4, help="of a mirrored strategy")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--rows", type=int, default=4000)
parser.add_argument("--loop", action="store_true", help="train by a loop of one's own")
parser.add_argument("--save", help="write the weights to this file")
args = parser.parse_args()
if args.strategy == "mirrored":  # before XLA starts
    os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count={args.devices}")

import numpy as np  # noqa: E402

from dualmx import keras, random  # noqa: E402

DIGITS = Path(__file__).parents[1] / "digits"


def read(name, header):
    """The bytes of one of MNIST's files after its header."""
    with gzip.open(DIGITS / name) as f:
        return np.frombuffer(f.read()[header:], np.uint8)


if args.strategy == "mirrored":
    strategy = keras.distribute.MirroredStrategy()
elif args.strategy == "workers":
    strategy = keras.distribute.MultiWorkerMirroredStrategy()
else:
    strategy = keras.distribute.ParameterServerStrategy()  # a server serves here until the job is over

x, x_test = (read(f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28) / 255 for part in ("train", "t10k"))
y, y_test = (read(f"{part}-labels-idx1-ubyte.gz", 8) for part in ("train", "t10k"))

random.seed(1)
np.random.seed(1)
with strategy.scope():
    model = keras.Sequential(
        [
            keras.layers.Flatten(input_shape=(28, 28)),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )


def train_by_hand(rows_of_a_batch=64):
    """What `fit` does, step by step."""
    optimizer = keras.optimizers.Adam()
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def step(inputs):
        images, labels = inputs
        with keras.GradientTape() as tape:
            losses = loss_of(labels, model(images, training=True))
            loss = keras.losses.compute_average_loss(losses, global_batch_size=rows_of_a_batch)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    starts = range(0, args.rows, rows_of_a_batch)
    batches = [(x[i : i + rows_of_a_batch], y[i : i + rows_of_a_batch]) for i in starts]
    for epoch in range(args.epochs):
        total = 0.0
        for inputs in strategy.experimental_distribute_dataset(batches):
            replica_losses = strategy.run(step, args=(inputs,))
            total = total + strategy.reduce(keras.distribute.ReduceOp.SUM, replica_losses, axis=None)
        if strategy.rank == 0:
            print(f"epoch {epoch + 1}: loss {total.asscalar() / len(batches):.4f}", flush=True)


if args.loop:
    train_by_hand()
    right = model.evaluate(x_test, y_test, verbose=0)[1]
else:
    history = model.fit(
        x[: args.rows], y[: args.rows], epochs=args.epochs, batch_size=64, validation_data=(x_test, y_test), verbose=2
    )
    right = history.history["val_accuracy"][-1]
print(f"worker {strategy.rank} of {strategy.workers}: {right:.4f} right", flush=True)
if args.save and strategy.rank == 0:
    model.save_weights(args.save)
