"""Base of metrics: sums on host or device, local and global values, configuration, registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.registry import Registry
from ..ndarray import NDArray, array

METRICS = Registry("metric")


class Total:
    """A sum of numbers and of one-element arrays; arrays are added on their device, in float64, when it suits it."""

    __slots__ = ("host", "device")

    def __init__(self, host: Any = 0.0):
        self.host = _wide(host)
        self.device: NDArray | None = None

    def add(self, value: Any) -> None:
        """Add a number, or an array of one element, without waiting for it."""
        if isinstance(value, NDArray):
            value = value.astype("float64")
            self.device = value if self.device is None else self.device + value.as_in_context(self.device.context)
        else:
            self.host = _wide(self.host + _wide(value))

    def value(self) -> Any:
        """The sum; waits for the device."""
        return self.host if self.device is None else self.host + float(self.device.asscalar())


def _wide(value: Any) -> Any:
    """Convert a NumPy scalar to 64 bits: with a Python number it would keep its dtype, and round long sums."""
    if isinstance(value, numpy.floating):
        return numpy.float64(value)
    return numpy.int64(value) if isinstance(value, numpy.signedinteger) else value


def _plain(value: Any) -> Any:
    """A NumPy scalar as Python's number, which prints as a number."""
    return value.item() if isinstance(value, numpy.generic) else value


class _SumAttribute:
    """Attribute that holds a `Total` and reads and writes as a number."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.slot = "_" + name

    def __get__(self, metric: Any, owner: type | None = None) -> Any:
        return getattr(metric, self.slot).value() if metric is not None else self

    def __set__(self, metric: Any, value: Any) -> None:
        setattr(metric, self.slot, Total(value))


def check_label_shapes(labels: Any, preds: Any, wrap: bool = False, shape: bool = False) -> tuple[Any, Any]:
    """Require as many labels as predictions (equal shapes if `shape`); `wrap` turns single arrays into lists.

    Raises:
        ArgumentError: they differ.
    """
    for name, given in (("labels", labels), ("preds", preds)):
        if not hasattr(given, "__len__"):
            raise ArgumentTypeError(f"metric: {name} of type {type(given).__name__}: expected a list of arrays")
    got = (labels.shape, preds.shape) if shape else (len(labels), len(preds))
    if got[0] != got[1]:
        raise ArgumentError(f"metric: labels of shape {got[0]} for predictions of shape {got[1]}")
    if wrap:
        labels = [labels] if isinstance(labels, NDArray) else labels
        preds = [preds] if isinstance(preds, NDArray) else preds
    return labels, preds


def listed(labels: Any, preds: Any) -> list[tuple[NDArray, NDArray]]:
    """Pairs of label and prediction arrays from arrays or equally long lists of them."""
    one = (NDArray, numpy.ndarray)
    labels = [labels] if isinstance(labels, one) else labels
    preds = [preds] if isinstance(preds, one) else preds
    check_label_shapes(labels, preds)
    return [(as_array(label), as_array(pred)) for label, pred in zip(labels, preds, strict=True)]


def as_array(x: Any) -> NDArray:
    """`x` as an NDArray of its own dtype."""
    return x if isinstance(x, NDArray) else array(x, dtype=numpy.asarray(x).dtype)


def to_host(x: Any) -> numpy.ndarray:
    """`x` as a NumPy array."""
    return x.asnumpy() if isinstance(x, NDArray) else numpy.asarray(x)


class EvalMetric:
    """Base of metrics: an average `sum_metric / num_inst`, since the last local and the last full reset.

    Subclasses define `update(labels, preds)`, which calls `_add` or changes the four counters. Reading a counter waits
    for the arrays that went into it; `_add` does not.

    Args:
        name: shown name.
        output_names, label_names: which outputs and labels `update_dict` takes; None for all.
        **kwargs: further configuration, kept for `get_config`.

    Attributes:
        sum_metric, num_inst: since the last `reset` or `reset_local`.
        global_sum_metric, global_num_inst: since the last `reset`.

    Example:
        >>> import dualmx as mx
        >>> @register
        ... class Count(EvalMetric):
        ...     def update(self, labels, preds):
        ...         self._add(1, len(preds))
        >>> metric = Count("count")
        >>> metric.update([], [mx.nd.zeros((1,)), mx.nd.zeros((1,))])
        >>> metric.get()
        ('count', 0.5)
    """

    sum_metric = _SumAttribute()
    num_inst = _SumAttribute()
    global_sum_metric = _SumAttribute()
    global_num_inst = _SumAttribute()

    def __init__(
        self,
        name: str,
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        **kwargs: Any,
    ):
        self.name = str(name)
        self.output_names = output_names
        self.label_names = label_names
        self._has_global_stats = kwargs.pop("has_global_stats", False)
        self._kwargs = kwargs
        self.reset()

    def __str__(self) -> str:
        return f"EvalMetric: {dict(self.get_name_value())}"

    def get_config(self) -> dict[str, Any]:
        """Configuration from which `create` can rebuild the metric."""
        return {
            **self._kwargs,
            "metric": type(self).__name__,
            "name": self.name,
            "output_names": self.output_names,
            "label_names": self.label_names,
        }

    def update_dict(self, label: Mapping[str, Any], pred: Mapping[str, Any]) -> None:
        """Update from labels and outputs by name, restricted to `label_names` and `output_names`."""
        preds = list(pred.values()) if self.output_names is None else [pred[n] for n in self.output_names]
        labels = list(label.values()) if self.label_names is None else [label[n] for n in self.label_names]
        self.update(labels, preds)

    def update(self, labels: Any, preds: Any) -> None:
        """Take in a batch: lists of label and prediction arrays."""
        raise NotImplementedError(f"{type(self).__name__} must define update(labels, preds)")

    def _add(self, amount: Any, count: Any) -> None:
        """Add to local and global sums; numbers or one-element arrays."""
        for name, value in (("sum_metric", amount), ("num_inst", count)):
            getattr(self, "_" + name).add(value)
            getattr(self, "_global_" + name).add(value)

    def reset(self) -> None:
        """Forget everything."""
        self.num_inst = 0
        self.sum_metric = 0.0
        self.global_num_inst = 0
        self.global_sum_metric = 0.0

    def reset_local(self) -> None:
        """Forget all but the global statistics."""
        self.num_inst = 0
        self.sum_metric = 0.0

    def value_of(self, total: float, count: float) -> Any:
        """Return the value of a sum over a number of instances, which is not 0."""
        return total / count

    def get(self) -> tuple[Any, Any]:
        """Return `(name, value)` since the last reset; nan if there was no update."""
        count = self.num_inst
        return self.name, (_plain(self.value_of(self.sum_metric, count)) if count else float("nan"))

    def get_global(self) -> tuple[Any, Any]:
        """`(name, value)` since the last full reset."""
        if not self._has_global_stats:
            return self.get()
        count = self.global_num_inst
        return self.name, (_plain(self.value_of(self.global_sum_metric, count)) if count else float("nan"))

    def get_name_value(self) -> list[tuple[str, Any]]:
        """`get` as a list of pairs."""
        return _pairs(*self.get())

    def get_global_name_value(self) -> list[tuple[str, Any]]:
        """`get_global` as a list of pairs."""
        return _pairs(*self.get_global())


def _pairs(name: Any, value: Any) -> list[tuple[str, Any]]:
    names = name if isinstance(name, list) else [name]
    values = value if isinstance(value, list) else [value]
    return list(zip(names, values, strict=True))


def register(klass: type, *names: str) -> type:
    """Register an EvalMetric class under its lower-cased name (and `names`); usable as a decorator."""
    if not (isinstance(klass, type) and issubclass(klass, EvalMetric)):
        raise ArgumentError(f"metric.register: {klass!r}: expected a subclass of EvalMetric")
    return METRICS.register(klass, *names)


def alias(*names: str) -> Any:
    """Decorator that registers a class under `names` as well as its own."""
    return lambda klass: register(klass, *names)


__all__ = ["EvalMetric", "alias", "check_label_shapes", "register"]
