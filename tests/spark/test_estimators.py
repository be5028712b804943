"""Estimators that are fitted to Spark's data frames, and the stores that they keep things in."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import dualmx as mx
from dualmx import keras, spark
from tests import jobs

INSTALLED = importlib.util.find_spec("pyspark") is not None
needs_java = pytest.mark.skipif(not (INSTALLED and shutil.which("java")), reason="pyspark and Java are not installed")
needs_pyarrow = pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="pyarrow is not installed")
needs_pyspark = pytest.mark.skipif(not INSTALLED, reason="pyspark is not installed")


def submitted(folder: Path, *program: object) -> str:
    env = {"PYSPARK_PYTHON": jobs.PYTHON, "SPARK_LOCAL_IP": jobs.HOST}
    return jobs.run(jobs.PYTHON, *program, env=env, cwd=folder, seconds=500).stdout


@pytest.mark.slow
@needs_java
@pytest.mark.parametrize("part", ["batches", "rows", "resume", "failed", "stages", "errors"])
def test_fitting(part: str, tmp_path: Path) -> None:
    assert "finished" in submitted(tmp_path, jobs.ROOT / "tests/spark/jobs/estimators.py", part, tmp_path)


@pytest.mark.slow
@needs_java
def test_the_example_learns_digits(tmp_path: Path) -> None:
    out = submitted(tmp_path, (jobs.ROOT / "examples/coming_from/spark_mnist.py"), "--store", str(tmp_path / "store"))
    assert float(out.split(" right")[0].split()[-1]) > 0.85, out
    assert len(list((tmp_path / "store" / "runs").glob("*/checkpoint.ckpt"))) == 1


@needs_pyarrow
@pytest.mark.parametrize("name", ["plain", "with a blank", "100%"])
def test_a_local_store(name: str, tmp_path: Path) -> None:
    store = spark.Store.create(tmp_path / name)
    path = store.get_checkpoint_path("first")
    assert isinstance(store, spark.LocalStore) and path == f"file://{tmp_path / name}/runs/first/checkpoint.ckpt"
    assert not store.exists(path)
    with pytest.raises(mx.MXNetError, match="LocalStore: cannot read 'file://.*checkpoint.ckpt'"):
        store.read(path)
    for content in (b"one", b"two"):
        store.write(path, content)
        assert store.exists(path) and store.read(path) == content
    assert [p.name for p in (tmp_path / name / "runs" / "first").iterdir()] == ["checkpoint.ckpt"]
    again = spark.Store.create(f"file://{tmp_path / name}/")
    assert again.read(again.get_checkpoint_path("first")) == b"two"
    store.delete(path)
    store.delete(store.get_runs_path())
    store.delete(path)
    assert not (tmp_path / name / "runs").exists()


@needs_pyarrow
def test_a_store_by_its_uri(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    store = spark.FilesystemStore(f"file://{tmp_path}/data")
    path = f"{store.get_runs_path()}/rows.parquet"
    pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "rows")
    store.write(path, (tmp_path / "rows").read_bytes())
    assert [int(row["x"]) for row in mx.io.ParquetReader(store.readable(path))] == [1, 2, 3]
    store.delete(store.get_runs_path())
    assert not store.exists(path)
    with pytest.raises(mx.MXNetError, match="FilesystemStore: cannot look for 'nowhere://host/data/a'"):
        spark.Store.create("nowhere://host/data").exists("nowhere://host/data/a")


def test_what_stores_are_made_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert spark.LocalStore("here").prefix_path == f"file://{tmp_path}/here"
    own = spark.Store.create("here", train_path="rows", runs_path="file:///runs")
    assert own.get_train_data_path() == f"file://{tmp_path}/rows"
    assert own.get_val_data_path() == f"file://{tmp_path}/here/intermediate_val_data"
    assert own.get_logs_path("a") == "file:///runs/a/logs"
    assert type(spark.Store.create("s3://bucket/data")) is spark.FilesystemStore
    assert type(spark.Store.create("hdfs://name:8020/data")) is spark.HDFSStore
    for run_id in ("../other", "a/b", "", ".hidden", 3):
        with pytest.raises(mx.MXNetError, match="run_id=.*: expected letters"):
            own.get_run_path(run_id)  # type: ignore[arg-type]
    with pytest.raises(mx.MXNetError, match="expected 'hdfs://host:port/folder'"):
        spark.HDFSStore("/data")
    with pytest.raises(mx.MXNetError, match="expected a URI such as"):
        spark.Store.create("dbfs:/data")
    with pytest.raises(mx.MXNetError, match="holds a password") as caught:
        spark.Store.create("s3://key:hidden@bucket/data")
    assert "hidden" not in str(caught.value)


def test_without_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.startswith(("pyspark", "dualmx.spark.ml"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(spark, "ml", raising=False)  # `from . import ml` takes the attribute of an earlier import
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(
        mx.MXNetError, match=r"spark.KerasEstimator needs the package pyspark: pip install 'dualmx\[spark\]'"
    ):
        spark.KerasEstimator
    with pytest.raises(AttributeError, match="no attribute 'TorchEstimator'"):
        spark.TorchEstimator  # type: ignore[attr-defined]


def settings(**given: Any) -> dict[str, Any]:
    usual = dict(network=mx.gluon.nn.Dense(1), loss=mx.gluon.loss.L2Loss(), feature_cols=["x"], label_cols=["y"])
    return {**usual, **given}


@needs_pyspark
@pytest.mark.parametrize(
    ("given", "text"),
    [
        (dict(epochs=0), "GluonEstimator: epochs=0: expected an integer of 1 or more"),
        (dict(epoch=3), "unknown setting 'epoch'; did you mean"),
        (dict(num_proc="two"), "num_proc='two': expected an integer"),
        (dict(validation=1.0), "validation=1.0: expected a share of the rows below 1, or the name of a column"),
        (dict(store="/data"), "store of type str: expected a Store"),
        (dict(feature_cols=[]), r"feature_cols=\[\]: expected a list of names of columns"),
        (dict(feature_cols=["a", "a"]), "expected each column once"),
        (dict(label_cols=["a", "b"]), "expected one column, as a model has one loss"),
        (dict(input_shapes=[[28, 28]]), "expected -1 for the rows"),
        (dict(shuffle="yes"), "shuffle='yes': expected True or False"),
        (dict(random_seed=2**32), r"random_seed=4294967296: expected less than 2 \*\* 32"),
        (dict(verbose=3), "verbose=3: expected 0, 1 or 2"),
        (dict(transformation_fn=3), "transformation_fn=3: expected a function"),
    ],
)
def test_wrong_settings(given: dict[str, Any], text: str) -> None:
    with pytest.raises(mx.MXNetError, match=text):
        spark.GluonEstimator(**settings(**given))


@needs_pyspark
def test_settings_are_params_of_spark() -> None:
    estimator = spark.GluonEstimator(**settings(store=spark.Store.create("/data")))
    assert estimator.getEpochs() == 1 and estimator.setEpochs(3) is estimator and estimator.getEpochs() == 3
    other = estimator.copy({estimator.epochs: 5, estimator.batch_size: 7})
    assert (other.getEpochs(), other.getBatchSize(), estimator.getEpochs(), estimator.getBatchSize()) == (5, 7, 3, 32)
    assert estimator.getFeatureCols() == ["x"] and "epochs" in estimator.explainParams()
    with pytest.raises(mx.MXNetError, match="epochs=-1"):
        estimator.setEpochs(-1)
    model = spark.GluonModel(None, feature_cols=["x"], label_cols=["y"], history={"loss": [1.0]})
    assert model.getOutputCols() == ["y__output"] and model.get_history() == {"loss": [1.0]}
    assert model.setOutputCols("found").getOutputCols() == ["found"]


@needs_pyspark
@pytest.mark.parametrize(
    ("kind", "given", "text"),
    [
        ("GluonEstimator", {}, "GluonEstimator: store: expected a Store, but there is none"),
        ("GluonEstimator", dict(loss=None), "loss: expected a loss, but there is none"),
        ("GluonEstimator", dict(network=None), "network: expected a gluon Block, but there is none"),
        ("KerasEstimator", dict(model=None), "model: expected a model of dualmx.keras, but there is none"),
    ],
)
def test_missing_settings(kind: str, given: dict[str, Any], text: str) -> None:
    usual = settings()
    if kind == "KerasEstimator":
        usual.pop("network")
        usual.update(model=keras.Sequential([keras.layers.Dense(1)]), loss="mse")
    with pytest.raises(mx.MXNetError, match=text):
        getattr(spark, kind)(**{**usual, **given}).fit_on_parquet()
