"""Programs of Spark that fit estimators; the argument says which one, and where it may write."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.cloudpickle
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.linalg import Vectors
from pyspark.sql import Row, SparkSession

import dualmx as mx
from dualmx import keras, spark

pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])
part, folder = sys.argv[1], Path(sys.argv[2])
session = (
    SparkSession.builder.master("local[2]")  # type: ignore[attr-defined]
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .getOrCreate()
)
session.sparkContext.setLogLevel("OFF")
store = spark.Store.create(folder / "a store")
draw = np.random.RandomState(0)
X, Y = draw.rand(37, 3).astype("float32"), draw.rand(37).astype("float32")
W = (0.5 + draw.rand(37)).astype("float32")
frame = session.createDataFrame(
    [Row(x=Vectors.dense(x.tolist()), y=float(y), w=float(w)) for x, y, w in zip(X, Y, W, strict=True)]
)


def net() -> Any:
    """A network that begins with the same weights each time."""
    made = mx.gluon.nn.HybridSequential()
    made.add(mx.gluon.nn.Dense(4, activation="tanh", in_units=3), mx.gluon.nn.Dense(1, in_units=4))
    made.initialize()
    normal = np.random.RandomState(1)
    for p in made.collect_params().values():
        p.set_data(mx.nd.array(normal.randn(*p.shape)))
    return made


def estimator(**given: Any) -> Any:
    settings = dict(
        network=net(), loss=mx.gluon.loss.L2Loss(), optimizer="sgd",
        optimizer_params={"learning_rate": 0.1, "momentum": 0.9}, feature_cols=["x"], label_cols=["y"], num_proc=2,
        epochs=3, store=store, verbose=0, partitions_per_process=2,
    )  # fmt: skip
    return spark.GluonEstimator(**(settings | given))


def values(network: Any) -> list[np.ndarray]:
    return [p.data().asnumpy() for p in network.collect_params().values()]


def weights(model: Any) -> list[np.ndarray]:
    return values(model.getNetwork())


def same(left: list[np.ndarray], right: list[np.ndarray], tolerance: float = 1e-5) -> None:
    for a, b in zip(left, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def refused(text: str, act: Any) -> None:
    try:
        act()
    except mx.MXNetError as e:
        assert text in str(e), f"{text!r} is not in {e}"
    else:
        raise AssertionError(f"nothing was raised: expected {text!r}")


class Keep(keras.callbacks.Callback):
    """Write the weights that each process ends with."""

    def on_train_end(self, logs: Any = None) -> None:
        np.savez(folder / f"process{mx.parallel.rank()}.npz", *self.model.get_weights())


def equal_processes(count: int) -> list[np.ndarray]:
    """What both processes have written: as many arrays, which are equal."""
    first, second = (np.load(folder / f"process{i}.npz") for i in range(2))
    assert len(first.files) == count and all((first[name] == second[name]).all() for name in first.files)
    return list(first.values())


def batches() -> None:
    """All rows in one batch, then uneven batches of which a process has none at the end."""
    by_hand = net()
    trainer = mx.gluon.Trainer(by_hand.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    losses = []
    for _ in range(3):
        with mx.autograd.record():
            loss = mx.gluon.loss.L2Loss()(by_hand(mx.nd.array(X)), mx.nd.array(Y)) * mx.nd.array(W)
        loss.backward()
        trainer.step(37)
        losses.append(float(loss.mean().asscalar()))
    expected = values(by_hand)
    for processes in (1, 2):
        begun = net()
        model = estimator(
            network=begun, batch_size=64, num_proc=processes, sample_weight_col="w", callbacks=[Keep()]
        ).fit(frame)
        same(weights(model), expected)
        same(values(begun), values(net()), 0)
        np.testing.assert_allclose(model.get_history()["loss"], losses, rtol=1e-5)
    equal_processes(4)

    # Statistics of BatchNorm are those of each process's own rows, until the epoch ends.
    moving = net()
    moving.add(mx.gluon.nn.BatchNorm(in_channels=1))
    moving.initialize(force_reinit=True)
    model = estimator(network=moving, batch_size=5, callbacks=[Keep()]).fit(frame)
    np.testing.assert_array_equal(equal_processes(8)[6], weights(model)[6])
    assert weights(model)[6].any()

    # The processes have rows 0 to 10 and 11 to 20, so one alone would have these batches of 10.
    alone = [*range(5), *range(11, 16), *range(5, 10), *range(16, 21), 10]
    found = []
    for name, order, size, processes in (("two", range(21), 5, 2), ("one", alone, 10, 1)):
        rows = list(order)
        path = folder / f"{name}.parquet"
        pq.write_table(pa.table({"x": X[rows].tolist(), "y": Y[rows]}), path, row_group_size=4)
        own = spark.LocalStore(folder / name, train_path=str(path))
        model = estimator(store=own, batch_size=size, num_proc=processes, shuffle=False).fit_on_parquet()
        found.append((weights(model), model.get_history()["loss"]))
    same(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-5)


def rows() -> None:
    """Each row counts once: the loss of a row is a power of two, and nothing is learnt."""
    zero = mx.gluon.nn.Dense(1, in_units=1)
    zero.initialize(mx.init.Zero())
    powers = session.createDataFrame([Row(x=[1.0], y=float(2**i), held=i % 3 == 0) for i in range(21)])
    plain = dict(
        network=zero, loss=mx.gluon.loss.L1Loss(), optimizer_params={"learning_rate": 0.0}, batch_size=2, epochs=2
    )
    loss = estimator(**plain).fit(powers).get_history()["loss"]
    assert [round(v * 21) for v in loss] == [2**21 - 1] * 2, loss
    history = estimator(**plain, validation="held").fit(powers).get_history()
    assert round(history["val_loss"][1] * 7) == sum(2**i for i in range(0, 21, 3)), history
    assert round(history["loss"][1] * 14) == sum(2**i for i in range(21) if i % 3), history
    history = estimator(**plain, validation=0.3).fit(powers).get_history()
    split = [
        n for n in range(1, 21)
        if round(history["loss"][0] * n).bit_count() == n
        and round(history["loss"][0] * n) + round(history["val_loss"][0] * (21 - n)) == 2**21 - 1
    ]  # fmt: skip
    assert len(split) == 1 and 8 < split[0] < 20, history
    assert not list((folder / "a store" / "intermediate_frames").iterdir())  # what fit wrote is gone


def resume() -> None:
    frame.select("x", "y").repartition(3).write.parquet(store.get_train_data_path())
    adam = dict(optimizer="adam", optimizer_params={"learning_rate": 0.05}, batch_size=4)
    whole = estimator(**adam, epochs=4).fit_on_parquet()
    estimator(**adam, epochs=2, run_id="again").fit_on_parquet()
    second = estimator(**adam, epochs=2, run_id="again").fit_on_parquet()
    same(weights(second), weights(whole), 1e-6)
    assert len(second.get_history()["loss"]) == 4 and second.getRunId() == "again"
    np.testing.assert_allclose(second.get_history()["loss"], whole.get_history()["loss"], rtol=1e-5)
    before = store.read(store.get_checkpoint_path("again"))
    other = mx.gluon.nn.Dense(1)
    refused("checkpoint of another network", lambda: estimator(network=other, run_id="again").fit_on_parquet())
    assert store.read(store.get_checkpoint_path("again")) == before


def dying(epoch: int, logs: Any) -> None:
    if epoch == 2 and mx.parallel.rank() == 1:
        raise OSError("a disk is full")


def failed() -> None:
    """What a run has learnt before a process failed is not lost."""
    frame.select("x", "y").repartition(3).write.parquet(store.get_train_data_path())
    whole = estimator(epochs=4).fit_on_parquet()
    callback = keras.callbacks.LambdaCallback(on_epoch_begin=dying)
    begun = estimator(epochs=4, run_id="begun", callbacks=[callback])
    refused("OSError: a disk is full", begun.fit_on_parquet)
    model = begun.setCallbacks([]).setEpochs(2).fit_on_parquet()
    same(weights(model), weights(whole), 1e-6)
    assert len(model.get_history()["loss"]) == 4


def stages() -> None:
    """Pipelines, several inputs, outputs of one number and of many, files."""
    plain = session.createDataFrame(
        [Row(a=float(x[0]), b=float(x[1]), c=float(x[2]), y=float(y)) for x, y in zip(X, Y, strict=True)]
    )
    steps = [VectorAssembler(inputCols=["a", "b", "c"], outputCol="x"), estimator(batch_size=8)]
    fitted = Pipeline(stages=steps).fit(plain)
    learnt = fitted.stages[1]
    found = [row["y__output"] for row in fitted.transform(plain).orderBy("y").collect()]
    np.testing.assert_allclose(found, learnt.getNetwork()(mx.nd.array(X[np.argsort(Y)])).asnumpy()[:, 0], rtol=1e-5)
    fitted.write().overwrite().save(str(folder / "pipeline"))
    again = PipelineModel.load(str(folder / "pipeline"))
    np.testing.assert_allclose(
        [r["y__output"] for r in again.transform(plain).orderBy("y").collect()], found, rtol=1e-6
    )
    assert again.stages[1].get_history() == learnt.get_history() and again.stages[1].uid == learnt.uid
    refused("holds a dualmx.spark.ml.models.GluonModel", lambda: spark.KerasModel.load(learnt_at(learnt)))

    one, two = keras.Input(shape=(2, 2)), keras.Input(shape=(3,))
    layers = keras.layers
    h = layers.Concatenate()([layers.Flatten()(one), two])
    model = keras.Model(inputs=[one, two], outputs=layers.Dense(2, activation="softmax")(layers.Dropout(0.2)(h)))
    mixed = session.createDataFrame(
        [
            Row(image=[float(i), 1.0, 0.0, 1.0], words=Vectors.sparse(3, {i % 3: 1.0}), kind=i % 2, note=str(i))
            for i in range(20)
        ]
    )
    fitted = spark.KerasEstimator(
        model=model, optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"], store=store,
        feature_cols=["image", "words"], label_cols="kind", num_proc=2, batch_size=4, verbose=0,
        transformation_fn=halved,
    ).fit(mixed)  # fmt: skip
    fitted.setOutputCols(["chances"]).write().overwrite().save(str(folder / "two inputs"))
    for each in (fitted, spark.KerasModel.load(str(folder / "two inputs"))):
        got = each.transform(mixed).collect()
        images, words = (np.array([r[n].toArray() if n == "words" else r[n] for r in got]) for n in ("image", "words"))
        expected = fitted.getModel().predict([images.reshape(-1, 2, 2).astype("float32"), words.astype("float32")])
        np.testing.assert_allclose([r["chances"].toArray() for r in got], expected, rtol=1e-5)
        assert [r["note"] for r in got] == [str(i) for i in range(20)]
    assert set(fitted.get_history()) == {"loss", "accuracy"}


def halved(columns: Any) -> Any:
    return {**columns, "image": columns["image"] / 2}


def learnt_at(model: Any) -> str:
    model.write().overwrite().save(str(folder / "alone"))
    return str(folder / "alone")


def errors() -> None:
    make = lambda **given: lambda: estimator(**given).fit(frame)  # noqa: E731
    refused("GluonEstimator: no column 'z' in the data frame; there are ['x', 'y', 'w']", make(feature_cols=["z"]))
    refused("no column 'split'", make(validation="split"))
    refused("validation='x': a column of VectorUDT", make(validation="x"))
    refused("the data frame has no rows to train on", lambda: estimator().fit(frame.where("y > 2")))
    refused("no row of the data frame is for validation", lambda: estimator(validation=1e-9).fit(frame))
    refused("37 rows to train on for num_proc=38: expected one for each process", make(num_proc=38))
    refused("input_shapes has (-1, 2, 2) for it", make(input_shapes=[[-1, 2, 2]]))
    text = frame.withColumn("x", frame["y"].cast("string"))
    refused("column 'x': text, bytes or rows of different shapes: expected numbers", lambda: estimator().fit(text))
    refused("metric F1 cannot be added up over 2 workers", make(metrics=["f1"]))
    usual = estimator()
    refused("epochs=0: expected an integer of 1 or more", lambda: usual.fit(frame, {usual.epochs: 0}))
    refused("Parquet", lambda: estimator(store=spark.Store.create(folder / "empty")).fit_on_parquet())
    refused(
        "rows became another number: expected as many back",
        make(transformation_fn=lambda columns: {n: v[:0] for n, v in columns.items()}),
    )
    refused("ValueError: no such digit", make(callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=failing)]))
    model = spark.GluonModel(net(), feature_cols=["x"], label_cols=["y"], output_shape=[1], batch_size=4)
    refused("no column 'x'", lambda: model.transform(frame.drop("x")))
    refused("there is a column 'y' already", lambda: model.setOutputCols(["y"]).transform(frame))
    assert not list((folder / "a store" / "intermediate_frames").iterdir())


def failing(epoch: int, logs: Any) -> None:
    raise ValueError("no such digit")


dict(batches=batches, rows=rows, resume=resume, failed=failed, stages=stages, errors=errors)[part]()
session.stop()
print("finished")
