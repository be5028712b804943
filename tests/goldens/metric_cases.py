"""Metric runs that `record.py` records from MXNet and the tests replay; `mx` is the framework module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """A metric on one kind of data; `make(metric_module)` builds it."""

    name: str
    make: Callable[[Any], Any]
    data: str


def batches(kind: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """(label, prediction) batches of unequal size, the same in every run and NumPy version."""
    rng = np.random.RandomState(sum(map(ord, kind)))
    found = []
    for n in (8, 8, 5):
        if kind == "binary":
            p = rng.dirichlet([1, 1], n)
            label = (rng.uniform(size=n) < 0.3 + 0.5 * p[:, 1]).astype("float32")
        elif kind == "classes":
            p = rng.dirichlet([1] * 6, n)
            label = rng.randint(0, 6, n)
        elif kind == "numbers":
            p, label = rng.randint(0, 4, n), rng.randint(0, 4, n)
        elif kind == "sequence":
            p, label = rng.dirichlet([1] * 4, (n, 3)), rng.randint(0, 4, (n, 3))
        elif kind == "maps":
            p, label = rng.uniform(size=(n, 4, 3)), rng.randint(0, 4, (n, 3))
        elif kind == "column":
            p = rng.randn(n, 1)
            label = rng.randn(n)
        else:
            p = rng.randn(n)
            label = 0.5 * p + rng.randn(n)
        found.append((np.asarray(label, "float32"), np.asarray(p, "float32")))
    return found


CASES = [
    Case("accuracy", lambda m: m.Accuracy(), "classes"),
    Case("accuracy of class numbers", lambda m: m.Accuracy(), "numbers"),
    Case("accuracy of maps", lambda m: m.Accuracy(), "maps"),
    Case("accuracy on the last axis", lambda m: m.Accuracy(axis=-1), "sequence"),
    Case("top 2", lambda m: m.TopKAccuracy(top_k=2), "classes"),
    Case("top 3", lambda m: m.create("top_k_accuracy", top_k=3), "classes"),
    Case("f1", lambda m: m.F1(), "binary"),
    Case("f1 micro", lambda m: m.F1(average="micro"), "binary"),
    Case("mcc", lambda m: m.MCC(), "binary"),
    Case("mcc micro", lambda m: m.MCC(average="micro"), "binary"),
    Case("pcc", lambda m: m.PCC(), "classes"),
    Case("pcc binary", lambda m: m.PCC(), "binary"),
    Case("perplexity", lambda m: m.Perplexity(None), "classes"),
    Case("perplexity but 1", lambda m: m.Perplexity(1), "classes"),
    Case("mae", lambda m: m.MAE(), "regression"),
    Case("mse", lambda m: m.MSE(), "regression"),
    Case("rmse", lambda m: m.RMSE(), "regression"),
    Case("mse of a column", lambda m: m.MSE(), "column"),
    Case("mae against classes", lambda m: m.MAE(), "classes"),
    Case("cross entropy", lambda m: m.CrossEntropy(), "classes"),
    Case("nll", lambda m: m.NegativeLogLikelihood(eps=1e-3), "classes"),
    Case("pearson", lambda m: m.PearsonCorrelation(), "regression"),
    Case("pearson micro", lambda m: m.PearsonCorrelation(average="micro"), "regression"),
    Case("loss", lambda m: m.Loss(), "regression"),
    Case("torch", lambda m: m.Torch(), "regression"),
    Case("caffe", lambda m: m.Caffe(), "regression"),
    Case("function", lambda m: m.np(lambda label, pred: float(abs(label - pred).max())), "regression"),
    Case("pair", lambda m: m.CustomMetric(lambda a, b: (float((a - b).sum()), a.size), name="gap"), "regression"),
    Case("composite", lambda m: m.CompositeEvalMetric(["acc", "ce", m.F1()]), "binary"),
]


def run(mx: Any, case: Case) -> list[Any]:
    """`get` before, after every batch, after a local reset and one more batch, and after a full reset; globals too."""
    metric = case.make(mx.metric)
    found = [metric.get()]
    data = [(mx.nd.array(label), mx.nd.array(pred)) for label, pred in batches(case.data)]
    for label, pred in data:
        metric.update([label], [pred])
        found.append(metric.get())
    metric.update([a for a, _ in data], [b for _, b in data])
    found.append(metric.get())
    found.append(metric.get_global())
    metric.reset_local()
    found.append(metric.get())
    metric.update(*map(list, zip(*data[:1], strict=True)))
    found += [metric.get(), metric.get_global(), metric.get_name_value()]
    metric.reset()
    return [*found, metric.get(), metric.get_global()]


def record(mx: Any) -> Any:
    """What every metric tells."""
    return {case.name: run(mx, case) for case in CASES}
