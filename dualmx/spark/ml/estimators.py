# pyright: reportMissingImports=false
# Those who check types need not have pyspark.
"""Estimators: `fit` writes a data frame to the store, trains in several processes and returns a model."""

from __future__ import annotations

import copy
import secrets
import time
from typing import Any

from pyspark.ml import Estimator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import coalesce, col, lit, rand
from pyspark.sql.types import BooleanType, NumericType

from ... import metric, optimizer
from ...core.errors import ArgumentError, ArgumentTypeError
from ...gluon.block import Block
from ...gluon.loss import Loss
from ...io import ParquetReader
from ...keras import Model, losses, metrics, optimizers
from ...keras.callbacks import listed as listed_callbacks
from ...lightning import checkpoint
from ..runner import run
from ..store import Store
from ..worker_training import Inputs, TrainingSpec, last_checkpoint, train
from . import params as of
from .models import GluonModel, KerasModel, NetworkModel
from .params import Settings, setting

_VALIDATION = "dualmx_validation"  # which of the written rows are for validation


def _validation(what: str, name: str, value: Any) -> Any:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise ArgumentError(f"{what}: {name}={value!r}: expected a share of the rows below 1, or the name of a column")
    return float(value) or None


def _store(what: str, name: str, value: Any) -> Store:
    if isinstance(value, Store):
        return value
    raise ArgumentTypeError(
        f"{what}: {name} of type {type(value).__name__}: expected a Store, such as Store.create('/shared/folder')"
    )


def _verbose(what: str, name: str, value: Any) -> int:
    if value in (0, 1, 2):
        return int(value)
    raise ArgumentError(f"{what}: {name}={value!r}: expected 0, 1 or 2")


def _function(what: str, name: str, value: Any) -> Any:
    if callable(value):
        return value
    raise ArgumentTypeError(f"{what}: {name}={value!r}: expected a function")


def _known_shapes(network: Any) -> list[list[int]] | None:
    shapes = getattr(network, "row_shapes", None)  # which models of keras have
    return None if shapes is None else [[-1, *shape] for shape in shapes]


class TrainingEstimator(Settings, Estimator):
    """Base of estimators: everything but the network and the words for how it is trained."""

    optimizer = setting("optimizer", "an optimizer")
    loss = setting("loss", "a loss")
    metrics = setting("metrics", "a list of metrics", of.listed)
    feature_cols = setting("feature_cols", "names of the columns that are inputs", of.names)
    label_cols = setting("label_cols", "the name of the column with labels", of.one_name)
    sample_weight_col = setting("sample_weight_col", "a column with factors of the losses", of.text)
    validation = setting("validation", "a share of the rows, or a column that is true or above 0 for them", _validation)
    input_shapes = setting("input_shapes", "shapes of the inputs", of.shapes)
    batch_size = setting("batch_size", "rows of a batch of each process", of.count)
    val_batch_size = setting("val_batch_size", "rows of a batch of validation and prediction", of.count)
    epochs = setting("epochs", "how often fit trains on all rows", of.count)
    num_proc = setting("num_proc", "the number of processes", of.count)
    store = setting("store", "a Store", _store)
    run_id = setting("run_id", "the name of the run, whose last checkpoint fit goes on from", of.text)
    shuffle = setting("shuffle", "whether each epoch has another order of the rows", of.flag)
    callbacks = setting("callbacks", "callbacks of dualmx.keras")
    verbose = setting("verbose", "what the first process prints", _verbose)
    partitions_per_process = setting("partitions_per_process", "files written for each process", of.count)
    transformation_fn = setting("transformation_fn", "a function that changes columns", _function)
    random_seed = setting("random_seed", "the seed of weights, orders, dropout and of what is validated", of.seed)

    _network = "network"
    _made: type[NetworkModel]
    _usual: dict[str, Any]

    def __init__(self, **given: Any):
        super().__init__()
        self._setDefault(
            **self._usual,
            metrics=[], sample_weight_col=None, validation=None, input_shapes=None, batch_size=32, val_batch_size=None,
            epochs=1, num_proc=None, run_id=None, shuffle=True, callbacks=[], verbose=1, partitions_per_process=10,
            transformation_fn=None, random_seed=0,
        )  # fmt: skip
        self._set(**given)

    def fit_on_parquet(self, params: dict[Any, Any] | None = None) -> NetworkModel:
        """Train on the Parquet files that are in the store already, and return a model.

        They are where `store.get_train_data_path()` and, for a validation, `store.get_val_data_path()` say.

        Args:
            params: settings of this call, by Params.

        Raises:
            ArgumentError, ArgumentTypeError: see the class. FormatError: no Parquet files.
            MXNetError: a process failed; its traceback is in the text.
        """
        if params:
            return self.copy(params).fit_on_parquet()
        given = self._given()
        store: Store = given["store"]
        val = store.get_val_data_path()
        return self._trained(given, store.get_train_data_path(), val if store.exists(val) else None)

    def _given(self) -> dict[str, Any]:
        return self._values((self._network, "loss", "feature_cols", "label_cols", "store"))

    def _fit(self, dataset: DataFrame) -> NetworkModel:
        given, what = self._given(), type(self).__name__
        store: Store = given["store"]
        validation, weight = given["validation"], given["sample_weight_col"]
        wanted: list[str] = [*given["feature_cols"], *given["label_cols"], *([weight] if weight else [])]
        for name in (*wanted, *([validation] if isinstance(validation, str) else [])):
            if name not in dataset.columns:
                raise ArgumentError(f"{what}: no column {name!r} in the data frame; there are {dataset.columns}")
        self._parts(given)  # raises before anything is written
        apart = lit(False)
        if isinstance(validation, str):
            kind = dataset.schema[validation].dataType
            if not isinstance(kind, (BooleanType, NumericType)):
                raise ArgumentError(f"{what}: validation={validation!r}: a column of {kind}: expected bools or numbers")
            apart = coalesce(col(validation).cast("double") > 0, lit(False))
        elif validation is not None:
            apart = rand(given["random_seed"]) < validation
        path = store.get_frame_path(f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}")
        files = self._processes(given, dataset.sparkSession) * given["partitions_per_process"]
        try:
            chosen = dataset.withColumn(_VALIDATION, apart).select(*dict.fromkeys(wanted), _VALIDATION)
            # One job decides about each row once, even where the frame is not the same when it is computed again.
            chosen.repartition(files).write.partitionBy(_VALIDATION).parquet(path)
            train, val = (f"{path}/{_VALIDATION}={kind}" for kind in ("false", "true"))
            if not store.exists(train):
                raise ArgumentError(f"{what}: the data frame has no rows to train on")
            if validation is not None and not store.exists(val):
                raise ArgumentError(f"{what}: validation={validation!r}: no row of the data frame is for validation")
            return self._trained(given, train, val if validation is not None else None)
        finally:
            store.delete(path)

    def _processes(self, given: dict[str, Any], session: Any) -> int:
        return given["num_proc"] or session.sparkContext.defaultParallelism

    def _parts(self, given: dict[str, Any]) -> tuple[Any, Any, list[Any]]:
        """The optimizer, the loss and the metrics as `compile` takes them."""
        raise NotImplementedError

    def _trained(self, given: dict[str, Any], train_path: str, val_path: str | None) -> NetworkModel:
        network, store = given[self._network], given["store"]
        processes = self._processes(given, SparkSession.builder.getOrCreate())
        chosen, loss, wanted = self._parts(given)
        for one in wanted:
            metrics.get(one, losses.get(loss), processes)
        run_id = given["run_id"] or f"run-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"
        inputs = Inputs(given["feature_cols"], given["input_shapes"] or _known_shapes(network))
        found, before, _ = last_checkpoint(store, run_id)
        if found:
            checkpoint.restore(copy.deepcopy(network), found)
        job = TrainingSpec(
            network, chosen, loss, wanted, listed_callbacks(given["callbacks"]), given["verbose"], store, run_id,
            train_path, val_path, inputs, given["label_cols"][0], given["sample_weight_col"], given["batch_size"],
            given["val_batch_size"] or given["batch_size"], before + given["epochs"], given["shuffle"],
            given["random_seed"], given["transformation_fn"],
        )  # fmt: skip
        for path in (train_path, *([val_path] if val_path else [])):
            self._look_at(job.reader(path), job, processes if path == train_path else 1)
        history, shapes, shape = run(train, (job,), num_proc=processes, env={"TF_CONFIG": ""})[0]
        learnt = copy.deepcopy(network)
        checkpoint.restore(learnt, last_checkpoint(store, run_id)[0])
        return self._made(
            learnt, feature_cols=given["feature_cols"], label_cols=given["label_cols"], input_shapes=shapes,
            output_shape=shape, batch_size=job.val_batch_size, history=history, run_id=run_id,
        ).with_uid(f"{self._made.__name__}_{self.uid.rpartition('_')[2]}")  # fmt: skip

    def _look_at(self, reader: ParquetReader, job: TrainingSpec, processes: int) -> None:
        """Read a row here, so that columns that cannot be used are named before processes are started."""
        if reader.num_rows < processes:
            raise ArgumentError(
                f"{type(self).__name__}: {reader.num_rows} rows to train on for num_proc={processes}: expected one for "
                "each process"
            )
        job.batch(next(reader.batches(1)))


class GluonEstimator(TrainingEstimator):
    """Trains a gluon network on data frames.

    `fit(df)` writes the columns that it needs into the store, trains in `num_proc` processes by `spark.run`, removes
    what was written, and returns a `GluonModel`. All processes make each update together, as `gluon.Trainer` would on
    their batches put together; each row is in one batch of an epoch. After each epoch a checkpoint is written; with the
    `run_id` of an earlier run, training goes on from its last one, for `epochs` more.

    Args:
        network: the network, whose weights training begins with; what is not initialized is drawn (Xavier). It stays
            as it is.
        optimizer: a name or an Optimizer; `"sgd"` by default.
        optimizer_params: arguments of the optimizer, given by name.
        loss: a loss of gluon, which takes predictions and labels.
        metrics: names and metrics of `mx.metric`.
        feature_cols: columns, each of which is an input of the network: numbers, arrays of equal shapes, vectors.
        label_cols: the column with labels.
        sample_weight_col: a column with factors of the losses.
        validation: a share of the rows, drawn at random, or a column that is true or above 0 for them; these rows are
            not trained on.
        input_shapes: shapes of the inputs such as `[[-1, 1, 28, 28]]`, if those of the columns are others.
        batch_size: rows of a batch of each process; 32 by default.
        val_batch_size: likewise for validation and prediction.
        epochs: how often all rows are trained on; 1 by default.
        num_proc: how many processes; as many as Spark runs tasks at once by default.
        store: a `Store`, which all hosts reach.
        run_id: name of the run; one is made by default.
        shuffle: draw a new order of each process's rows in each epoch (the default).
        callbacks: objects of `dualmx.keras.callbacks`, for all processes.
        verbose: what the first process prints: 0 nothing, 1 (the default) or 2 lines about epochs.
        partitions_per_process: files that are written for each process; 10 by default.
        transformation_fn: called with a dict of the columns of some rows, as NumPy arrays; returns those that are
            trained on. Predictions take the columns as they are.
        random_seed: of weights, orders, dropout and of the rows for validation; 0 by default.

    Raises:
        ArgumentError: an unknown setting, a column that is not there, no rows, or fewer rows than processes.
        ArgumentTypeError: a setting of another type. FormatError: a column without numbers.
        MXNetError: a process failed; its traceback is in the text.

    Example:
        >>> import dualmx as mx
        >>> from dualmx import spark
        >>> net = mx.gluon.nn.Dense(10)
        >>> estimator = spark.GluonEstimator(
        ...     network=net, optimizer="adam", optimizer_params={"learning_rate": 0.01},
        ...     loss=mx.gluon.loss.SoftmaxCrossEntropyLoss(), metrics=["acc"], feature_cols=["image"],
        ...     label_cols=["label"], num_proc=2, epochs=3, store=spark.Store.create("/shared/digits"),
        ... )
        >>> estimator.setBatchSize(64).getBatchSize()
        64
        >>> model = estimator.fit(df)  # doctest: +SKIP
        >>> model.transform(df).select("label", "label__output")  # doctest: +SKIP
    """

    network = setting("network", "a gluon Block")
    optimizer_params = setting("optimizer_params", "a dict of the optimizer's arguments")
    _made = GluonModel
    _usual = {"optimizer": "sgd", "optimizer_params": None}

    def _parts(self, given: dict[str, Any]) -> tuple[Any, Any, list[Any]]:
        what, network, chosen = type(self).__name__, given["network"], given["optimizer"]
        if not isinstance(network, Block):
            raise ArgumentTypeError(f"{what}: network of type {type(network).__name__}: expected a gluon Block")
        if not isinstance(given["loss"], Loss):
            kind = type(given["loss"]).__name__
            raise ArgumentTypeError(f"{what}: loss of type {kind}: expected a loss of gluon")
        if isinstance(chosen, optimizer.Optimizer) and given["optimizer_params"]:
            raise ArgumentError(f"{what}: optimizer_params: expected none beside an Optimizer, which has its own")
        if not isinstance(chosen, optimizer.Optimizer):
            chosen = optimizer.create(chosen, **(given["optimizer_params"] or {}))
        return chosen, given["loss"], [metric.create(one) for one in given["metrics"]]


class KerasEstimator(TrainingEstimator):
    """Trains a model of `dualmx.keras` on data frames; see `GluonEstimator` for how.

    Args:
        model: the model, compiled or not, whose weights training begins with. It stays as it is.
        optimizer: a name, or an optimizer of `keras.optimizers`; `"rmsprop"` by default.
        loss: a name, a loss of `keras.losses`, or a function of labels and predictions.
        metrics: names, metrics of `keras.metrics`, or functions.
        **given: the other arguments of `GluonEstimator`, except `optimizer_params`. Without `input_shapes`, inputs have
            the shapes that the model tells.

    Raises:
        ArgumentError, ArgumentTypeError, FormatError, MXNetError: see `GluonEstimator`.

    Example:
        >>> from dualmx import keras, spark
        >>> model = keras.Sequential([keras.layers.Dense(10, input_shape=(64,))])
        >>> estimator = spark.KerasEstimator(
        ...     model=model, optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        ...     metrics=["accuracy"], feature_cols=["image"], label_cols=["label"], validation=0.1,
        ...     store=spark.Store.create("/shared/digits"),
        ... )
        >>> estimator.getValidation()
        0.1
    """

    model = setting("model", "a model of dualmx.keras")
    _network, _made = "model", KerasModel
    _usual = {"optimizer": "rmsprop"}

    def _parts(self, given: dict[str, Any]) -> tuple[Any, Any, list[Any]]:
        if not isinstance(given["model"], Model):
            kind = type(given["model"]).__name__
            raise ArgumentTypeError(f"{type(self).__name__}: model of type {kind}: expected a model of dualmx.keras")
        return optimizers.get(given["optimizer"]), losses.get(given["loss"]), given["metrics"]


__all__ = ["GluonEstimator", "KerasEstimator", "TrainingEstimator"]
