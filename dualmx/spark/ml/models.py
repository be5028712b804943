# pyright: reportMissingImports=false
# Those who check types need not have pyspark.
"""Models that `fit` returns: transformers that add a column with the outputs of a network."""

from __future__ import annotations

import functools
import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.ml import Model
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter
from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, StructField, StructType

from ... import keras
from ...core.errors import ArgumentError, FormatError, MXNetError
from ...gluon.block import Block, SymbolBlock
from ...gluon.cached_graph import CachedGraph
from ...io.arrow_columns import arrow, to_numpy
from ...namespace import nd
from ..worker_training import Inputs
from . import params as of
from .params import Settings, setting

_CHUNK_BYTES = 1 << 26  # bytes of a row of a saved network
_SYMBOL, _PARAMS = "network-symbol.json", "network-0000.params"


class NetworkModel(Settings, Model, MLWritable, MLReadable):
    """Base of models.

    Args:
        network: the network.
        **given: settings.
    """

    feature_cols = setting("feature_cols", "names of the columns that are inputs", of.names)
    label_cols = setting("label_cols", "the name of the column with labels", of.one_name)
    output_cols = setting("output_cols", "the name of the column with outputs", of.one_name)
    input_shapes = setting("input_shapes", "shapes of the inputs", of.shapes)
    output_shape = setting("output_shape", "the shape of a row of the outputs")
    batch_size = setting("batch_size", "rows that are computed at a time", of.count)
    history = setting("history", "the loss and the metrics of all epochs, by name")
    run_id = setting("run_id", "the name of the run, under which the store has the checkpoint", of.text)

    def __init__(self, network: Any = None, **given: Any):
        super().__init__()
        self._network = network
        self._set(**given)

    def get_history(self) -> dict[str, list[float]]:
        """Return the loss and the metrics of all epochs, by name; those of validations begin with `val_`."""
        return self.getOrDefault("history")

    def getOutputCols(self) -> list[str]:
        """Return the name of the column with outputs: that of the labels with `__output`, if none was set."""
        if self.isDefined("output_cols"):
            return self.getOrDefault("output_cols")
        return [f"{name}__output" for name in self.getOrDefault("label_cols")]

    def _transform(self, dataset: DataFrame) -> DataFrame:
        what, given = type(self).__name__, self._values()
        columns, (out,) = dataset.columns, self.getOutputCols()
        missing = [name for name in given["feature_cols"] if name not in columns]
        if missing:
            raise ArgumentError(f"{what}: no column {missing[0]!r} in the data frame; there are {columns}")
        if out in columns:
            raise ArgumentError(f"{what}: there is a column {out!r} already; choose another by setOutputCols(['name'])")
        single = int(np.prod(given["output_shape"])) == 1
        inputs = Inputs(given["feature_cols"], given["input_shapes"])
        places = [columns.index(name) for name in inputs.names]
        outputs = functools.partial(_with_outputs, self._network, inputs, places, given["batch_size"], single)
        added = StructField(out, DoubleType() if single else VectorUDT(), False)
        schema = StructType([*dataset.schema.fields, added])
        return dataset.sparkSession.createDataFrame(dataset.rdd.mapPartitions(outputs), schema, verifySchema=False)

    def write(self) -> MLWriter:
        """Return a writer of the network, as a symbol with parameters, and of the settings."""
        return _Writer(self)

    @classmethod
    def read(cls) -> MLReader[Any]:
        """Return a reader of what `write` has written; its network is a `SymbolBlock`."""
        return _Reader(cls)

    @staticmethod
    def _around(block: SymbolBlock) -> Any:
        """Return the model around a network that was read."""
        return block


class GluonModel(NetworkModel):
    """A network that was trained by a `GluonEstimator`: `transform(df)` adds a column with its outputs.

    Outputs of one number are doubles, others dense vectors. `save(path)` writes the network as a symbol with
    parameters, `GluonModel.load(path)` reads it.

    Args:
        network: the network.
        **given: settings.

    Raises:
        ArgumentError: `transform` misses a column, or there is one like the new one. FormatError: a column without
            numbers. MXNetError: `save` of a network that does not work on symbols.
    """

    def getNetwork(self) -> Any:
        """Return the network: a copy of the estimator's, or a `SymbolBlock` that was read."""
        return self._network


class KerasModel(NetworkModel):
    """A model that was trained by a `KerasEstimator`; see `GluonModel`.

    Args:
        network: the model of `dualmx.keras`.
        **given: settings.
    """

    def getModel(self) -> Any:
        """Return the model of `dualmx.keras`, which is not compiled."""
        return self._network

    @staticmethod
    def _around(block: SymbolBlock) -> Any:
        return keras.Model(block)


def _with_outputs(
    network: Block, inputs: Inputs, places: Sequence[int], size: int, single: bool, rows: Iterable[Any]
) -> Iterator[tuple[Any, ...]]:
    """Rows of a partition, with the outputs for them."""
    model = network if isinstance(network, keras.Model) else keras.Model(network)
    rows = iter(rows)
    while part := list(itertools.islice(rows, size)):
        count = len(part)
        # Few sizes of batches, so that few programs are compiled.
        filling = np.minimum(np.arange(min(size, 1 << (count - 1).bit_length())), count - 1)
        found = {name: _column(name, [row[i] for row in part]) for name, i in zip(inputs.names, places, strict=True)}
        xs = [x[filling] for x in inputs.of(found)]
        outputs = np.asarray(model.predict_on_batch(xs), np.float64)[:count].reshape(count, -1)
        for row, values in zip(part, outputs, strict=True):
            yield (*row, float(values[0]) if single else Vectors.dense(values))


def _column(name: str, values: list[Any]) -> np.ndarray:
    """Values of a column as a `ParquetReader` has them."""
    if hasattr(values[0], "toArray"):
        if any(v is None for v in values) or len({len(v) for v in values}) > 1:
            raise FormatError(f"column {name!r}: expected vectors of one length, and none missing")
        return np.stack([v.toArray() for v in values])
    plain = [bytes(v) if isinstance(v, bytearray) else v for v in values]
    return to_numpy(name, arrow().array(plain))


class _Writer(MLWriter):
    def __init__(self, model: NetworkModel):
        super().__init__()
        self._model = model

    def saveImpl(self, path: str) -> None:
        """Write the settings as JSON, and the network in pieces of files."""
        files, names = _files(
            type(self._model).__name__, self._model._network, self._model.getOrDefault("input_shapes")
        )
        DefaultParamsWriter.saveMetadata(self._model, path, self.sc, {"networkInputs": names})
        pieces = [
            (name, number, bytearray(content[begin : begin + _CHUNK_BYTES]))
            for name, content in files.items()
            for number, begin in enumerate(range(0, len(content), _CHUNK_BYTES))
        ]
        frame = self.sparkSession.createDataFrame(pieces, "file string, piece int, content binary")
        frame.write.parquet(os.path.join(path, "network"))


class _Reader(MLReader[Any]):
    def __init__(self, kind: type[NetworkModel]):
        super().__init__()
        self._kind = kind

    def load(self, path: str) -> NetworkModel:
        """Read a model.

        Raises:
            ArgumentError: something else than such a model is there.
        """
        metadata = DefaultParamsReader.loadMetadata(path, self.sc)
        wanted = f"{self._kind.__module__}.{self._kind.__name__}"
        if metadata["class"] != wanted:
            raise ArgumentError(
                f"{self._kind.__name__}.load: {path!r} holds a {metadata['class']}: expected a {wanted}"
            )
        pieces = self.sparkSession.read.parquet(os.path.join(path, "network")).orderBy("file", "piece").collect()
        with tempfile.TemporaryDirectory() as scratch:
            for name in (_SYMBOL, _PARAMS):
                with open(os.path.join(scratch, name), "wb") as f:
                    f.writelines(piece["content"] for piece in pieces if piece["file"] == name)
            symbol, params = (os.path.join(scratch, name) for name in (_SYMBOL, _PARAMS))
            block = SymbolBlock.imports(symbol, metadata["networkInputs"], params)
        model = self._kind(self._kind._around(block))
        model.with_uid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model


def _files(what: str, network: Block, shapes: Sequence[Sequence[int]]) -> tuple[dict[str, bytes], list[str]]:
    """The files of a network, and the names of its inputs."""
    try:
        graph = CachedGraph.of_block(network, tuple(nd.zeros((1, *shape[1:])) for shape in shapes))
    except Exception as e:  # of code that was written for arrays
        raise MXNetError(
            f"{what}.save: the network does not work on symbols, so it cannot be written as one ({e}); "
            "save_parameters writes its weights alone"
        ) from e
    aux = set(graph.symbol.list_auxiliary_states())
    with tempfile.TemporaryDirectory() as scratch:
        symbol, params = (os.path.join(scratch, name) for name in (_SYMBOL, _PARAMS))
        graph.symbol.save(symbol)
        nd.save(params, {f"{'aux' if p.name in aux else 'arg'}:{p.name}": p.reduce() for p in graph.params})
        return {os.path.basename(path): Path(path).read_bytes() for path in (symbol, params)}, graph.names


__all__ = ["GluonModel", "KerasModel", "NetworkModel"]
