"""`Estimator`: the training loop as an object."""

from __future__ import annotations

import copy
import logging
import sys
import warnings
from typing import Any

from ....context import Context, cpu, gpu, num_gpus
from ....core.errors import ArgumentError
from ....initializer import Initializer
from ....metric import Accuracy, CompositeEvalMetric, EvalMetric
from ....metric import Loss as LossMetric
from ...data import DataLoader
from ...loss import Loss, SoftmaxCrossEntropyLoss
from ...trainer import Trainer
from .batch_processor import BatchProcessor
from .event_handler import (  # fmt: skip
    BatchBegin,
    BatchEnd,
    EpochBegin,
    EpochEnd,
    EventHandler,
    GradientUpdateHandler,
    LoggingHandler,
    MetricHandler,
    StoppingHandler,
    TrainBegin,
    TrainEnd,
    ValidationHandler,
    listed,
)


class Estimator:
    """Trains a network by `fit` and measures it by `evaluate`, calling event handlers on the way.

    Args:
        net: the network.
        loss: a `gluon.loss.Loss`.
        train_metrics: metric or list of metrics of training; accuracy for a softmax loss, and the loss, by default.
        val_metrics: metrics of validation; copies of those of training by default.
        initializer: for parameters that are not initialized.
        trainer: SGD with learning rate 0.001 by default.
        context: context or list of contexts; GPUs if there are any.
        val_net, val_loss: used for validation instead of `net` and `loss`.
        batch_processor: what is done with one batch.

    Raises:
        ArgumentError: an argument of another kind.

    Example:
        >>> import dualmx as mx
        >>> x, y = mx.nd.ones((8, 3)), mx.nd.zeros((8,))
        >>> data = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(x, y), batch_size=4)
        >>> net = mx.gluon.nn.Dense(2)
        >>> net.initialize()
        >>> trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
        >>> estimator = Estimator(net, mx.gluon.loss.SoftmaxCrossEntropyLoss(), trainer=trainer)
        >>> estimator.logger.setLevel("ERROR")
        >>> estimator.fit(data, epochs=2)
        >>> [metric.name for metric in estimator.train_metrics]
        ['training accuracy', 'training softmaxcrossentropyloss']
    """

    def __init__(
        self, net: Any, loss: Any, train_metrics: Any = None, val_metrics: Any = None, initializer: Any = None,
        trainer: Trainer | None = None, context: Any = None, val_net: Any = None, val_loss: Any = None,
        batch_processor: BatchProcessor | None = None,
    ):  # fmt: skip
        self.net, self.loss = net, _checked_loss(loss)
        self.val_net = net if val_net is None else val_net
        self.val_loss = self.loss if val_loss is None else _checked_loss(val_loss)
        self._train_metrics, self._val_metrics = _checked_metrics(train_metrics), _checked_metrics(val_metrics)
        self._add_default_metrics()
        self.max_epoch: int | None = None
        self.max_batch: int | None = None
        self.logger = logging.Logger(name="Estimator", level=logging.INFO)
        self.logger.addHandler(logging.StreamHandler(sys.stdout))
        self.context = _checked_context(context)
        self._initialize(initializer)
        self.trainer = self._checked_trainer(trainer)
        if batch_processor is not None and not hasattr(batch_processor, "fit_batch"):
            raise ArgumentError(f"batch processor must be of type BatchProcessor, got {batch_processor!r}")
        self.batch_processor = BatchProcessor() if batch_processor is None else batch_processor

    @property
    def train_metrics(self) -> list[EvalMetric]:
        """Metrics of training."""
        return self._train_metrics

    @property
    def val_metrics(self) -> list[EvalMetric]:
        """Metrics of validation."""
        return self._val_metrics

    def _add_default_metrics(self) -> None:
        if not self._train_metrics:
            self._train_metrics = [Accuracy()] if isinstance(self.loss, SoftmaxCrossEntropyLoss) else []
            self._train_metrics.append(LossMetric(self.loss.name.rstrip("0123456789")))
        if not self._val_metrics:
            self._val_metrics = [copy.deepcopy(metric) for metric in self._train_metrics]
        for kind, metrics in (("training", self._train_metrics), ("validation", self._val_metrics)):
            for metric in metrics:
                if kind not in metric.name:
                    metric.name = f"{kind} {metric.name}"

    def _initialize(self, initializer: Any) -> None:
        params = self.net.collect_params()
        missing = [p for p in params.values() if not p.is_initialized and not p.is_deferred]
        if not missing:
            if initializer is not None:
                warnings.warn(
                    "Network already fully initialized, skipping initialization; call net.initialize() with "
                    "force_reinit=True to initialize again", stacklevel=3,
                )  # fmt: skip
            self.net.collect_params().reset_ctx(self.context)
        elif initializer is None or isinstance(initializer, (Initializer, str)):
            extra = {} if initializer is None else {"init": initializer}
            self.net.initialize(ctx=self.context, **extra)
        else:
            raise ArgumentError(f"initializer={initializer!r}: expected an Initializer")

    def _checked_trainer(self, trainer: Any) -> Trainer:
        if trainer is None:
            warnings.warn("Estimator: without a trainer, plain SGD at a rate of 0.001 is used", stacklevel=3)
            return Trainer(self.net.collect_params(), "sgd", {"learning_rate": 0.001})
        if not isinstance(trainer, Trainer):
            raise ArgumentError(f"Estimator: trainer={trainer!r}: expected a gluon.Trainer")
        return trainer

    def evaluate(self, val_data: Any, batch_axis: int = 0, event_handlers: Any = None) -> None:
        """Update the validation metrics on all of `val_data`.

        Args:
            val_data: a `DataLoader`.
            batch_axis: axis along which batches are split among contexts.
            event_handlers: handlers besides those of metrics and logging.

        Raises:
            ArgumentError: not a `DataLoader`.
        """
        if not isinstance(val_data, DataLoader):
            raise ArgumentError(
                f"Estimator.evaluate: val_data of type {type(val_data).__name__}: expected a gluon.data.DataLoader"
            )
        handlers = _HandlerTable(self._with_defaults(event_handlers, MetricHandler, self._val_metrics))
        handlers.call("epoch_begin", self)
        for batch in val_data:
            handlers.call("batch_begin", self, batch=batch)
            _, label, pred, loss = self.batch_processor.evaluate_batch(self, batch, batch_axis)
            handlers.call("batch_end", self, batch=batch, pred=pred, label=label, loss=loss)
        handlers.call("epoch_end", self)

    def fit(
        self, train_data: Any, val_data: Any = None, epochs: int | None = None, event_handlers: Any = None,
        batches: int | None = None, batch_axis: int = 0,
    ) -> None:  # fmt: skip
        """Train for a number of epochs or of batches.

        Args:
            train_data: a `DataLoader`.
            val_data: a `DataLoader` to evaluate on after every epoch.
            epochs: how many epochs.
            event_handlers: handlers; those for stopping, updates, metrics, validation and logging are added if missing.
            batches: how many batches, instead of epochs.
            batch_axis: axis along which batches are split among contexts.

        Raises:
            ArgumentError: not a `DataLoader`, not exactly one of `epochs` and `batches`, or no handler.
        """
        if not isinstance(train_data, DataLoader):
            raise ArgumentError(
                f"Estimator.fit: train_data of type {type(train_data).__name__}: expected a gluon.data.DataLoader"
            )
        if (not epochs) == (not batches):
            raise ArgumentError(
                f"Estimator.fit: epochs={epochs}, batches={batches}: expected one of them and not the other"
            )
        self.max_epoch, self.max_batch = epochs, batches
        handlers = _HandlerTable(self._training_handlers(val_data, event_handlers))
        handlers.call("train_begin", self)
        stop = False
        while not stop:
            handlers.call("epoch_begin", self)
            for batch in train_data:
                handlers.call("batch_begin", self, batch=batch)
                _, label, pred, loss = self.batch_processor.fit_batch(self, batch, batch_axis)
                stop = handlers.call("batch_end", self, batch=batch, pred=pred, label=label, loss=loss)
                if stop:
                    break
            stop = handlers.call("epoch_end", self) or stop
        handlers.call("train_end", self)

    def _training_handlers(self, val_data: Any, event_handlers: Any) -> list[Any]:
        given = _checked_handlers(event_handlers)
        defaults: list[Any] = [StoppingHandler(self.max_epoch, self.max_batch), GradientUpdateHandler()]
        if val_data is not None:
            defaults.append(ValidationHandler(val_data=val_data, eval_fn=self.evaluate))
        added = [d for d in defaults if not any(isinstance(h, type(d)) for h in given)]
        return self._with_defaults([*given, *added], MetricHandler, self._train_metrics)

    @staticmethod
    def _with_defaults(event_handlers: Any, kind: type[MetricHandler], metrics: list[EvalMetric]) -> list[Any]:
        handlers = _checked_handlers(event_handlers)
        if not any(isinstance(h, kind) for h in handlers):
            handlers.append(kind(metrics=metrics))
        if not any(isinstance(h, LoggingHandler) for h in handlers):
            handlers.append(LoggingHandler(metrics=metrics))
        return sorted(handlers, key=lambda h: getattr(h, "priority", 0))


class _HandlerTable:
    """Event handlers by the moments at which they are called."""

    KINDS = {
        "train_begin": TrainBegin, "epoch_begin": EpochBegin, "batch_begin": BatchBegin, "batch_end": BatchEnd,
        "epoch_end": EpochEnd, "train_end": TrainEnd,
    }  # fmt: skip

    def __init__(self, handlers: list[Any]):
        self.handlers = handlers

    def call(self, moment: str, *args: Any, **kwargs: Any) -> bool:
        """Call all handlers of `moment`; true if one of them stops training."""
        waiting = [h for h in self.handlers if isinstance(h, self.KINDS[moment])]
        return any([bool(getattr(h, moment)(*args, **kwargs)) for h in waiting])


def _checked_handlers(value: Any) -> list[Any]:
    handlers = listed(value)
    if not all(isinstance(h, EventHandler) for h in handlers):
        raise ArgumentError(f"Estimator: event_handlers={handlers}: expected EventHandlers only")
    return handlers


def _checked_loss(loss: Any) -> Loss:
    if not isinstance(loss, Loss):
        raise ArgumentError(f"Estimator: loss={loss!r}: expected a gluon.loss.Loss")
    return loss


def _checked_metrics(metrics: Any) -> list[EvalMetric]:
    if isinstance(metrics, CompositeEvalMetric):
        metrics = metrics.metrics
    found = listed(metrics)
    if not all(isinstance(m, EvalMetric) for m in found):
        raise ArgumentError(f"Estimator: metrics {found}: expected EvalMetrics only")
    return found


def _checked_context(context: Any) -> list[Context]:
    if context is None:
        return [gpu(i) for i in range(num_gpus())] or [cpu()]
    found = listed(context)
    if not found or not all(isinstance(c, Context) for c in found):
        raise ArgumentError(
            f"Estimator: context={context!r}: expected a Context such as mx.cpu(), or several in a list"
        )
    return found
