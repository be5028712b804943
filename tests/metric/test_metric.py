"""Metrics: recordings of MXNet 1.9.1, laziness, errors, configuration."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import dualmx as mx
from tests.goldens.metric_cases import CASES, run
from tests.goldens.metric_cases import batches as metric_batches
from tests.goldens.store import load

RECORDED = load("metric")


def close(got, want):
    """Equality of nested lists, tuples counting as lists, with numbers to 2e-6 and nan equal to nan."""
    if isinstance(want, list):
        return len(got) == len(want) and all(close(g, w) for g, w in zip(got, want, strict=True))
    if isinstance(want, float):
        return (math.isnan(got) and math.isnan(want)) or got == pytest.approx(want, rel=2e-6, abs=2e-6)
    return got == want


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_values_equal_the_recording(case):
    got, want = run(mx, case), RECORDED[case.name]
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        # MXNet's micro average has a global value of 0 and survives a local reset.
        if case.name != "pearson micro" or i not in (5, 7, 8, 9):
            assert close(g, w), (i, g, w)


def test_micro_pearson_has_a_global_value():
    got = run(mx, next(c for c in CASES if c.name == "pearson micro"))
    data = [(a.ravel(), b.ravel()) for a, b in metric_batches("regression")]
    first, everything = np.corrcoef(*data[0])[0, 1], np.corrcoef(*np.hstack(data))[0, 1]
    assert got[5][1] == pytest.approx(everything, rel=1e-6)
    assert got[7][1] == pytest.approx(first, rel=1e-6)


@pytest.mark.parametrize(
    "spec, name",
    [
        ("acc", "accuracy"),
        ("ce", "cross-entropy"),
        ("nll_loss", "nll-loss"),
        ("pearsonr", "pearsonr"),
        ("RMSE", "rmse"),
        (["acc", "mse"], ["accuracy", "mse"]),
        (lambda a, b: 1.0, "custom(<lambda>)"),
        ('["accuracy", {"axis": 1}]', "accuracy"),
    ],
)
def test_create(spec, name):
    metric = mx.metric.create(spec)
    assert metric.get()[0] == name
    assert mx.metric.create(metric) is metric


@pytest.mark.parametrize(
    "act, words",
    [
        (lambda: mx.metric.create("acuracy"), "did you mean 'accuracy'"),
        (lambda: mx.metric.TopKAccuracy(top_k=1), "top_k=1"),
        (lambda: mx.metric.F1(average="none"), "average='none'"),
        (lambda: mx.metric.Accuracy().update([mx.nd.zeros((3,))], [mx.nd.zeros((4, 2))]), "shape 3"),
        (lambda: mx.metric.Accuracy().update([mx.nd.zeros((3,))], [mx.nd.zeros((3, 2))] * 2), "shape 1"),
        (lambda: mx.metric.CrossEntropy().update([mx.nd.zeros((3,))], [mx.nd.zeros((4, 2))]), "CrossEntropy"),
        (lambda: mx.metric.MSE().update([mx.nd.zeros((3, 2))], [mx.nd.zeros((4, 2))]), "MSE"),
        (lambda: mx.metric.F1().update([mx.nd.arange(3)], [mx.nd.zeros((3, 2))]), "binary"),
        (lambda: mx.metric.CompositeEvalMetric(["acc"]).get_metric(5), "index=5"),
        (lambda: mx.metric.register(int), "EvalMetric"),
        (lambda: mx.metric.create(3), "metric=3: expected a name"),
        (lambda: mx.metric.Accuracy().update(3, [mx.nd.zeros((3,))]), "labels of type int"),
        (lambda: mx.metric.F1().update([mx.nd.zeros((3,))], [mx.nd.zeros((3,))]), "expected scores (N, 2)"),
        (lambda: mx.metric.F1().update([mx.nd.zeros((3,))], [mx.nd.zeros((2, 2))]), "labels of shape 3"),
        (lambda: mx.metric.Perplexity(None).update([mx.nd.zeros((3,))], [mx.nd.zeros((2, 2))]), "labels of shape"),
        (lambda: mx.metric.check_label_shapes([1], [1, 2]), "labels of shape 1 for predictions of shape 2"),
        (lambda: mx.metric.PCC().update([mx.nd.zeros((3,))], [mx.nd.zeros((2, 2))]), "labels of shape 3"),
        (lambda: mx.metric.PCC().update([mx.nd.zeros((3, 1))], [mx.nd.zeros((3,))]), "labels of shape (3, 1)"),
        (lambda: mx.metric.Perplexity(0, axis=1).update([mx.nd.zeros((3,))], [mx.nd.zeros((3,))]), "axis=1"),
        (lambda: mx.metric.Perplexity(0, axis=-2).update([mx.nd.zeros((3,))], [mx.nd.zeros((3,))]), "axis=-2"),
    ],
)
def test_errors_name_the_argument(act, words):
    with pytest.raises(mx.MXNetError, match=re.escape(words)):
        act()


@pytest.mark.parametrize("kind", [mx.metric.CrossEntropy, mx.metric.NegativeLogLikelihood])
def test_negative_labels_count_from_the_last_class(kind):
    metric = kind()
    metric.update([mx.nd.array([-1, 1])], [mx.nd.array([[0.3, 0.5, 0.2], [0.1, 0.8, 0.1]])])
    assert metric.get()[1] == pytest.approx(-(np.log(0.2) + np.log(0.8)) / 2, rel=1e-5)


@pytest.mark.parametrize("label", [3, -4])
@pytest.mark.parametrize("kind", ["ce", "nll_loss"])
def test_a_label_that_is_no_class_has_no_likelihood(kind, label):
    metric = mx.metric.create(kind)
    metric.update([mx.nd.array([0, label])], [mx.nd.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])])
    assert np.isnan(metric.get()[1])


def test_names_choose_outputs_and_labels():
    label, pred = mx.nd.array([1, 0]), mx.nd.array([[0.1, 0.9], [0.2, 0.8]])
    metric = mx.metric.Accuracy(output_names=["out"], label_names=["l"])
    metric.update_dict({"l": label, "other": pred}, {"out": pred, "more": label})
    assert metric.get() == ("accuracy", 0.5)
    both = mx.metric.CompositeEvalMetric([metric, "ce"], output_names=["out"], label_names=["l"])
    both.update_dict({"l": label, "other": pred}, {"out": pred, "more": label})
    assert both.get()[1][0] == 0.5
    assert str(both).startswith("EvalMetric: {'accuracy': 0.5, 'cross-entropy':")


def test_counters_can_be_set_and_read():
    class Mine(mx.metric.EvalMetric):
        def update(self, labels, preds):
            self.sum_metric += 3.0
            self.global_sum_metric += 3.0
            self.num_inst += 2
            self.global_num_inst += 2

    metric = Mine("mine")
    metric.update([], [])
    metric.update([], [])
    assert (metric.sum_metric, metric.num_inst, metric.get()) == (6.0, 4, ("mine", 1.5))
    metric.reset_local()
    assert math.isnan(metric.get()[1]) and metric.global_sum_metric == 6.0


def test_config_rebuilds_the_metric():
    config = mx.metric.TopKAccuracy(top_k=3, output_names=["a"]).get_config()
    assert config == {
        "top_k": 3,
        "metric": "TopKAccuracy",
        "name": "top_k_accuracy_3",
        "output_names": ["a"],
        "label_names": None,
    }
    with pytest.raises(NotImplementedError, match="CustomMetric holds a function, which has no configuration"):
        mx.metric.np(lambda a, b: 0).get_config()


def test_numpy_arrays_and_half_precision_are_accepted():
    metric = mx.metric.Accuracy()
    metric.update(np.array([0, 1]), np.array([[1, 0], [1, 0]], "float32"))
    assert metric.get()[1] == 0.5
    loss = mx.metric.CrossEntropy()
    loss.update([mx.nd.array([0, 1])], [mx.nd.array([[0.5, 0.5], [0.5, 0.5]], dtype="float16")])
    assert loss.get()[1] == pytest.approx(math.log(2), rel=1e-5)


def test_sums_stay_exact_over_many_batches():
    metric, loss = mx.metric.Loss(), mx.nd.array([0.1])
    for _ in range(50):
        metric.update(None, [loss])
    assert metric.get()[1] == pytest.approx(float(np.float32(0.1)), rel=1e-12)


def test_a_registered_class_is_found():
    @mx.metric.register
    class Always(mx.metric.EvalMetric):
        def update(self, labels, preds):
            self._add(1, 1)

    assert isinstance(mx.metric.create("always", name="x"), Always)


def test_mappings_and_json_name_a_metric():
    assert mx.metric.create({"metric": "top_k_accuracy", "top_k": 2}).get()[0] == "top_k_accuracy_2"
    assert mx.metric.create('{"metric": "mse", "name": "m"}').get()[0] == "m"
    with pytest.raises(mx.MXNetError, match="no entry 'metric'"):
        mx.metric.create({"name": "acc"})


def test_perplexity_of_sequences_flattens_them():
    label, pred = mx.nd.array([[0, 1], [1, 1]]), mx.nd.array(np.full((2, 2, 4), 0.25))
    metric = mx.metric.Perplexity(ignore_label=0)
    metric.update([label], [pred])
    assert metric.get()[1] == pytest.approx(4.0) and metric.num_inst == 3


def test_scores_of_more_classes_than_labels() -> None:
    """What counts is how many classes the labels have, as in MXNet."""
    scores = mx.nd.array([[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]])
    metric = mx.metric.F1()
    metric.update([mx.nd.array([1, 1, 0, 0])], [scores])
    assert metric.get() == ("f1", 0.5)


class _OwnSum(mx.metric.EvalMetric):
    """A metric that a user wrote with NumPy's sums."""

    def update(self, labels, preds):
        self.sum_metric += labels[0].asnumpy().sum()
        self.num_inst += np.int32(1)


@pytest.mark.parametrize("metric", [mx.metric.np(lambda label, _: label.sum(), name="m"), _OwnSum("m")])
def test_sums_of_float32_are_kept_in_float64(metric):
    """Also where NumPy 2 leaves a float32 added to a Python number a float32."""
    for value in (2.0**24, 1, 1, 1):
        metric.update([mx.nd.array([value])], [mx.nd.zeros(1)])
    assert metric.get() == ("m", (2**24 + 3) / 4)
    assert str(metric) == "EvalMetric: {'m': 4194304.75}"


def test_more_scores_count_than_there_are_classes():
    metric = mx.metric.TopKAccuracy(top_k=5)
    metric.update([mx.nd.array([0, 2])], [mx.nd.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])])
    assert metric.get() == ("top_k_accuracy_5", 1.0)
