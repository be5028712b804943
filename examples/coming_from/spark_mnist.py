"""Fit a digit classifier to a data frame of Spark, in several processes on its executors.

python examples/coming_from/spark_mnist.py                              # 2 processes on this host
spark-submit examples/coming_from/spark_mnist.py --num-proc 8 --store hdfs:///digits --master yarn
"""

import argparse
import gzip
from pathlib import Path

import numpy as np
from pyspark.ml.functions import vector_to_array
from pyspark.ml.linalg import Vectors
from pyspark.sql import SparkSession
from pyspark.sql.functions import array_max, array_position, col

from dualmx import keras, spark

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--master", default="local[2]", help="of Spark")
parser.add_argument("--num-proc", type=int, default=2)
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--store", default="store", help="a folder that all hosts share, or a URI")
args = parser.parse_args()

DIGITS = Path(__file__).parents[1] / "digits"


def read(name, header):
    """The bytes of one of MNIST's files after its header."""
    with gzip.open(DIGITS / name) as f:
        return np.frombuffer(f.read()[header:], np.uint8)


def frame(part):
    """Vectors of pixels, and labels."""
    images = read(f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 28 * 28) / 255
    labels = read(f"{part}-labels-idx1-ubyte.gz", 8)
    rows = [(Vectors.dense(image), int(label)) for image, label in zip(images, labels, strict=True)]
    return session.createDataFrame(rows, ["image", "label"])


session = SparkSession.builder.master(args.master).config("spark.ui.showConsoleProgress", "false").getOrCreate()
model = keras.Sequential(
    [
        keras.layers.Conv2D(16, 3, strides=2, activation="relu", input_shape=(28, 28, 1)),
        keras.layers.Flatten(),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
estimator = spark.KerasEstimator(
    model=model,
    optimizer="adam",
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
    feature_cols=["image"],
    label_cols=["label"],
    validation=0.1,
    batch_size=32,
    epochs=args.epochs,
    num_proc=args.num_proc,
    store=spark.Store.create(args.store),
    verbose=2,
)
fitted = estimator.fit(frame("train").limit(4000)).setOutputCols(["chances"])
print({name: round(values[-1], 4) for name, values in fitted.get_history().items()}, flush=True)

chances = vector_to_array(col("chances"))
found = fitted.transform(frame("t10k")).select(
    "label", (array_position(chances, array_max(chances)) - 1).alias("digit")
)
found.cache()  # both counts need the outputs
right = found.where("label = digit").count() / found.count()
print(f"{right:.4f} right", flush=True)
session.stop()
