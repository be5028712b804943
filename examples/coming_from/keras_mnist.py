"""Train a digit classifier in the words of Keras, on several devices or in several processes, with the same result.

python examples/coming_from/keras_mnist.py                                       # 4 virtual devices on the CPU
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
history = model.fit(
    x[: args.rows], y[: args.rows], epochs=args.epochs, batch_size=64, validation_data=(x_test, y_test), verbose=2
)
print(f"worker {strategy.rank} of {strategy.workers}: {history.history['val_accuracy'][-1]:.4f} right", flush=True)
if args.save and strategy.rank == 0:
    model.save_weights(args.save)
