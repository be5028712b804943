"""Keras's strategies of several processes, described by TF_CONFIG."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import dualmx as mx
from dualmx.keras.distribute import Cluster, MultiWorkerMirroredStrategy, ParameterServerStrategy
from tests import jobs
from tests.jobs import free_address

SCRIPT = [jobs.PYTHON, "examples/coming_from/keras_mnist.py"]


def config(task: str, index: int, **cluster: list[str]) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": task, "index": index}})}


@pytest.mark.slow
@pytest.mark.parametrize("how", [[], ["--loop"]], ids=["fit", "loop"])
def test_workers_train_as_one(tmp_path: Path, how: list[str]) -> None:
    both = [free_address(), free_address()]
    command = [*SCRIPT, "--strategy", "workers", "--epochs", "1", "--rows", "600", *how, "--save"]
    said = jobs.run_together(
        [[*command, tmp_path / "two.params"]] * 2,
        [config("chief", 0, chief=both[:1], worker=both[1:]), config("worker", 0, chief=both[:1], worker=both[1:])],
    )
    jobs.run_together([[*command, tmp_path / "one.params"]])
    told = [re.findall(r"([\d.]+) right", s) for s in said]
    assert told[0] == told[1] and "epoch" in said[0].lower() and "epoch" not in said[1].lower()
    two, one = (mx.nd.load(str(tmp_path / f"{n}.params")) for n in ("two", "one"))
    assert isinstance(two, dict) and isinstance(one, dict)
    for name, value in one.items():
        np.testing.assert_allclose(two[name].asnumpy(), value.asnumpy(), rtol=1e-3, atol=2e-5)


NORMED = """
import numpy as np
from dualmx import keras
strategy = keras.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = keras.Sequential([keras.layers.BatchNormalization(input_shape=(4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
x = np.random.RandomState(0).randn(20, 4)
model.fit(x, x[:, :1], epochs=2, batch_size=8, verbose=0)
print([w.tolist() for w in model.get_weights()])
"""


@pytest.mark.slow
def test_workers_end_with_the_same_moving_averages() -> None:
    both = [free_address(), free_address()]
    one, two = jobs.run_together(
        [[jobs.PYTHON, "-c", NORMED]] * 2, [config("worker", k, worker=both) for k in range(2)]
    )
    assert one == two and len(one) > 40


@pytest.mark.slow
@pytest.mark.parametrize("how", [[], ["--loop"]], ids=["fit", "loop"])
def test_servers_keep_the_weights(how: list[str]) -> None:
    cluster = {"ps": [free_address(), free_address()], "worker": [free_address(), free_address()]}
    command = [*SCRIPT, "--strategy", "servers", "--epochs", "2", *how]
    tasks = [("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1)]
    said = jobs.run_together([command] * 4, [config(kind, k, **cluster) for kind, k in tasks])
    right = [float(re.findall(r"([\d.]+) right", s)[0]) for s in said[2:]]
    assert min(right) > 0.75 and "right" not in said[0] + said[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "TF_CONFIG: not JSON"),
        ("[]", r"TF_CONFIG: \[\]: expected an object"),
        ('{"task": {}}', "the field 'cluster' is missing"),
        ('{"cluster": {"worker": ["a:1"]}}', "the field 'task' is missing"),
        ('{"cluster": {"worker": "a:1"}, "task": {}}', "cluster.worker='a:1': expected a list"),
        ('{"cluster": {"worker": ["a"]}, "task": {}}', "cluster.worker: 'a': expected an address such as 'host:5000'"),
        ('{"cluster": {"worker": ["a:70000"]}, "task": {}}', "'a:70000'"),
        ('{"cluster": {"master": ["a:1"]}, "task": {}}', "cluster.master: expected one of chief, worker, ps"),
        ('{"cluster": {"evaluator": ["a:1"]}, "task": {}}', "evaluators take no part"),
        ('{"cluster": {"chief": ["a:1", "b:1"]}, "task": {}}', "cluster.chief: 2 addresses; expected one"),
        ('{"cluster": {"ps": ["a:1"]}, "task": {}}', "nobody trains"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"index": 0}}', "task: the field 'type' is missing"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"type": "ps", "index": 0}}', "task.type='ps': expected one of"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}', "task.index=1: expected 0 to 0"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": "x"}}', "index='x'"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_tf_config_is_named(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Cluster.parse(text)


def test_strategies_that_do_not_fit_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert Cluster.from_env() is None and MultiWorkerMirroredStrategy().workers == 1
    with pytest.raises(mx.base.MXNetError, match="set TF_CONFIG, or start it by dualmx-launch"):
        ParameterServerStrategy()
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}')
    assert MultiWorkerMirroredStrategy().num_replicas_in_sync == 1
    with pytest.raises(ValueError, match="needs one server or more"):
        ParameterServerStrategy()
    ps = Cluster.parse('{"cluster": {"ps": ["a:1"], "worker": ["b:1"]}, "task": {"type": "worker", "index": 0}}')
    with pytest.raises(ValueError, match="has no parameter servers"):
        MultiWorkerMirroredStrategy(ps)


@pytest.mark.slow
def test_example_on_virtual_devices() -> None:
    assert " right" in jobs.run(*SCRIPT, "--epochs", 1, "--rows", 1000, "--devices", 2).stdout
