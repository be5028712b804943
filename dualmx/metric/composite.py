"""Composite and custom metrics, and `create`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.errors import ArgumentError
from .base import METRICS, EvalMetric, alias, listed, register, to_host

Names = Sequence[str] | None


@alias("composite")
class CompositeEvalMetric(EvalMetric):
    """Several metrics updated together; `get` returns lists of names and values.

    Args:
        metrics: metrics, or what `create` accepts.
        name, output_names, label_names: see `EvalMetric`.

    Example:
        >>> CompositeEvalMetric(["acc", "ce"]).get()[0]
        ['accuracy', 'cross-entropy']
    """

    metrics: list[EvalMetric]

    def __init__(
        self,
        metrics: Sequence[Any] | None = None,
        name: str = "composite",
        output_names: Names = None,
        label_names: Names = None,
    ):
        self.metrics = []
        super().__init__(name, output_names, label_names, has_global_stats=True)
        self.metrics = [create(m) for m in metrics or ()]

    def add(self, metric: Any) -> None:
        """Append a metric, or what `create` accepts."""
        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> EvalMetric:
        """Return the metric at `index`; `ArgumentError` when there is none."""
        try:
            return self.metrics[index]
        except IndexError:
            raise ArgumentError(f"CompositeEvalMetric: index={index}: there are {len(self.metrics)} metrics") from None

    def update_dict(self, label: Mapping[str, Any], pred: Mapping[str, Any]) -> None:
        """Update every metric from labels and outputs by name."""
        if self.label_names is not None:
            label = {n: v for n, v in label.items() if n in self.label_names}
        if self.output_names is not None:
            pred = {n: v for n, v in pred.items() if n in self.output_names}
        for metric in self.metrics:
            metric.update_dict(label, pred)

    def update(self, labels: Any, preds: Any) -> None:
        """Update every metric."""
        for metric in self.metrics:
            metric.update(labels, preds)

    def reset(self) -> None:
        """Reset every metric."""
        for metric in self.metrics:
            metric.reset()

    def reset_local(self) -> None:
        """Reset the local statistics of every metric."""
        for metric in self.metrics:
            metric.reset_local()

    def get(self) -> tuple[list[str], list[Any]]:
        """`(names, values)` since the last reset."""
        return _joined([m.get() for m in self.metrics])

    def get_global(self) -> tuple[list[str], list[Any]]:
        """`(names, values)` since the last full reset."""
        return _joined([m.get_global() for m in self.metrics])

    def get_config(self) -> dict[str, Any]:
        """Configuration of the composite and its metrics."""
        return {**super().get_config(), "metrics": [m.get_config() for m in self.metrics]}


def _joined(results: Sequence[tuple[Any, Any]]) -> tuple[list[str], list[Any]]:
    names: list[str] = []
    values: list[Any] = []
    for name, value in results:
        names += name if isinstance(name, list) else [name]
        values += value if isinstance(value, list) else [value]
    return names, values


@register
class CustomMetric(EvalMetric):
    """A metric from a function of NumPy arrays.

    Args:
        feval: `feval(label, pred)` returning a value, averaged over calls, or a pair (sum, count).
        name: shown name; the function's own, in `custom(...)` if it is a lambda, by default.
        allow_extra_outputs: accept more predictions than labels.
        output_names, label_names: see `EvalMetric`.
    """

    def __init__(
        self,
        feval: Callable[[Any, Any], Any],
        name: str | None = None,
        allow_extra_outputs: bool = False,
        output_names: Names = None,
        label_names: Names = None,
    ):
        if name is None:
            own = str(getattr(feval, "__name__", type(feval).__name__))
            name = f"custom({own})" if "<" in own else own
        super().__init__(
            name,
            output_names,
            label_names,
            feval=feval,
            allow_extra_outputs=allow_extra_outputs,
            has_global_stats=True,
        )
        self._feval = feval
        self._allow_extra_outputs = allow_extra_outputs

    def update(self, labels: Any, preds: Any) -> None:
        """Call the function on every pair of label and prediction."""
        if self._allow_extra_outputs and isinstance(labels, (list, tuple)):
            preds = preds[: len(labels)]
        for label, pred in listed(labels, preds):
            value = self._feval(to_host(label), to_host(pred))
            total, count = value if isinstance(value, tuple) else (value, 1)
            self._add(total, count)

    def get_config(self) -> dict[str, Any]:
        """A function has no configuration."""
        raise NotImplementedError("CustomMetric holds a function, which has no configuration")


def np(
    numpy_feval: Callable[[Any, Any], Any], name: str | None = None, allow_extra_outputs: bool = False
) -> CustomMetric:
    """Make a metric of a function of NumPy arrays, `f(label, pred) -> value or (sum, count)`.

    Example:
        >>> import dualmx as mx
        >>> metric = np(lambda label, pred: float(abs(label - pred).max()))
        >>> metric.update([mx.nd.array([1.0])], [mx.nd.array([4.0])])
        >>> metric.get()
        ('custom(<lambda>)', 3.0)
    """

    def feval(label: Any, pred: Any) -> Any:
        return numpy_feval(label, pred)

    feval.__name__ = getattr(numpy_feval, "__name__", type(numpy_feval).__name__)
    return CustomMetric(feval, name, allow_extra_outputs)


def create(metric: Any, *args: Any, **kwargs: Any) -> EvalMetric:
    """Build a metric from a name, a list, a function of (label, pred) or a mapping.

    A mapping is `{"metric": name, parameter: value}`, also as JSON; a metric is returned as it is.

    Raises:
        ArgumentError: unknown name, with the nearest known one.

    Example:
        >>> create("acc").get()[0]
        'accuracy'
    """
    if isinstance(metric, (list, tuple)):
        return CompositeEvalMetric([create(m, *args, **kwargs) for m in metric])
    if callable(metric) and not isinstance(metric, type):
        return CustomMetric(metric, *args, **kwargs)
    if not isinstance(metric, (str, dict, EvalMetric)):
        raise ArgumentError(f"metric.create: metric={metric!r}: expected a name, a metric or a function")
    return METRICS.create(metric, *args, **kwargs)


__all__ = ["CompositeEvalMetric", "CustomMetric", "create", "np"]
