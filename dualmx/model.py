"""Checkpoints, and `FeedForward`, the classifier from before modules."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import metric as metrics
from .callback import LogValidationMetricsCallback
from .checkpoint import BatchEndParam, load_checkpoint, load_params, save_checkpoint
from .core.errors import ArgumentError, ArgumentTypeError, MXNetError
from .initializer import Uniform
from .io import NDArrayIter, ResizeIter
from .module import Module, param_update
from .ndarray import NDArray

# MXNet's names
_create_kvstore = param_update.create_kvstore
_create_sparse_kvstore = param_update.create_sparse_kvstore
_initialize_kvstore = param_update.initialize_kvstore
_update_params = param_update.update_params
_update_params_on_kvstore = param_update.update_params_on_kvstore

_UNIFORM = Uniform(0.01)
_LOG_VALIDATION = LogValidationMetricsCallback()


class FeedForward:
    """A network that is trained and asked with arrays or data iterators; new programs use `Module`.

    Args:
        symbol: the network.
        ctx: context, or list of contexts.
        num_epoch: `fit` runs from `begin_epoch` to `num_epoch - 1`.
        epoch_size: batches in an epoch; one pass over the data by default.
        optimizer: name of an optimizer, or an instance.
        initializer: for parameters that are not given.
        numpy_batch_size: batch size when data are arrays.
        arg_params, aux_params: given parameters and auxiliary states; after `fit`, the trained ones.
        allow_extra_params: accept parameters that the network does not have.
        begin_epoch: number of the first epoch.
        kwargs: arguments of the optimizer, such as `learning_rate`.

    Example:
        >>> import numpy as np
        >>> network = sym.SoftmaxOutput(sym.FullyConnected(sym.var("data"), num_hidden=2), name="softmax")
        >>> x = np.array([[0.0, 1.0], [1.0, 0.0]] * 8, "float32")
        >>> model = FeedForward(network, num_epoch=5, learning_rate=0.5, numpy_batch_size=8)
        >>> model.fit(x, x.argmax(1))
        >>> model.predict(x)[:2].argmax(1).tolist()
        [1, 0]
    """

    def __init__(
        self,
        symbol: Any,
        ctx: Any = None,
        num_epoch: int | None = None,
        epoch_size: int | None = None,
        optimizer: Any = "sgd",
        initializer: Any = _UNIFORM,
        numpy_batch_size: int = 128,
        arg_params: Mapping[str, NDArray] | None = None,
        aux_params: Mapping[str, NDArray] | None = None,
        allow_extra_params: bool = False,
        begin_epoch: int = 0,
        **kwargs: Any,
    ):
        self.symbol, self.ctx, self.num_epoch, self.epoch_size = symbol, ctx, num_epoch, epoch_size
        self.optimizer, self.initializer, self.numpy_batch_size = optimizer, initializer, numpy_batch_size
        self.arg_params = None if arg_params is None else dict(arg_params)
        self.aux_params = None if aux_params is None else dict(aux_params)
        self.allow_extra_params, self.begin_epoch, self.kwargs = allow_extra_params, begin_epoch, kwargs

    def _iter(self, x: Any, y: Any, train: bool) -> Any:
        if not isinstance(x, (np.ndarray, NDArray)):
            if not hasattr(x, "provide_data"):
                raise ArgumentTypeError(f"FeedForward: X of type {type(x).__name__}: expected an array or a DataIter")
            return x
        if train and y is None:
            raise ArgumentError("FeedForward.fit: y is missing; it goes with X as an array")
        if isinstance(y, (np.ndarray, NDArray)) and y.ndim == 2 and y.shape[1] == 1:
            y = y.reshape(-1)
        size = min(x.shape[0], self.numpy_batch_size)
        return NDArrayIter(x, y, size, shuffle=train, last_batch_handle="roll_over" if train else "pad")

    def _eval_iter(self, eval_data: Any) -> Any:
        if eval_data is None or hasattr(eval_data, "provide_data"):
            return eval_data
        if not isinstance(eval_data, (list, tuple)) or len(eval_data) != 2:
            kind = type(eval_data).__name__
            raise ArgumentTypeError(f"FeedForward.fit: eval_data of type {kind}: expected a DataIter or (X, y)")
        x, y = (np.asarray(a) if isinstance(a, list) else a for a in eval_data)
        return self._iter(x, y, True)

    def _module(self, data: Any, train: bool) -> Module:
        names = [[d[0] for d in descs or ()] for descs in (data.provide_data, data.provide_label)]
        inputs = [n for n in self.symbol.list_arguments() if n.endswith("label")]
        module = Module(self.symbol, names[0], names[1] or inputs, context=self.ctx)
        module.bind(data.provide_data, data.provide_label or None, for_training=train)
        return module

    def _ready(self, data: Any) -> Module:
        if self.arg_params is None:
            raise MXNetError("FeedForward: there are no parameters; call fit() or load() first")
        module = self._module(data, False)
        module.init_params(None, self.arg_params, self.aux_params, allow_extra=self.allow_extra_params)
        return module

    def fit(
        self,
        X: Any,
        y: Any = None,
        eval_data: Any = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Any = None,
        batch_end_callback: Any = None,
        kvstore: Any = "local",
        logger: Any = None,
        work_load_list: Sequence[float] | None = None,
        monitor: Any = None,
        eval_end_callback: Any = _LOG_VALIDATION,
        eval_batch_end_callback: Any = None,
    ) -> None:
        """Train on arrays `X`, `y`, or on a data iterator `X`.

        Args:
            X, y: the data; arrays are shuffled.
            eval_data: iterator, or pair of arrays or lists, to evaluate after each epoch; arrays are shuffled.
            eval_metric: metric of training and evaluation.
            epoch_end_callback, batch_end_callback, eval_end_callback, eval_batch_end_callback: see `Module.fit`.
            kvstore, monitor: see `Module.fit`.
            logger: where progress is logged.

        Raises:
            ArgumentError: `num_epoch` or `y` is missing.
        """
        if self.num_epoch is None:
            raise ArgumentError("FeedForward.fit: num_epoch is missing: give the number of epochs to FeedForward")
        log = logging if logger is None else logger
        train = self._iter(X, y, True)
        eval_data = self._eval_iter(eval_data)
        module = self._module(train, True)
        module.init_params(
            self.initializer, self.arg_params, self.aux_params, True, allow_extra=self.allow_extra_params
        )
        module.init_optimizer(kvstore, self.optimizer, self.kwargs)
        if monitor is not None:
            module.install_monitor(monitor)
        log.info("Start training with %s", module.contexts)
        metric = eval_metric if isinstance(eval_metric, metrics.EvalMetric) else metrics.create(eval_metric)
        batches = train if self.epoch_size is None else ResizeIter(train, self.epoch_size, False)
        train.reset()  # which draws another order, before the first epoch as well
        for epoch in range(self.begin_epoch, self.num_epoch):
            start = time.time()
            metric.reset()
            # MXNet counts batches from 1 here, and from 0 in modules.
            module.train_epoch(epoch, batches, metric, batch_end_callback, monitor, first=1)
            if self.epoch_size is None:
                log.info("Epoch[%d] Resetting Data Iterator", epoch)
            batches.reset()
            log.info("Epoch[%d] Time cost=%.3f", epoch, time.time() - start)
            module.end_epoch(epoch, epoch_end_callback)
            self.arg_params, self.aux_params = module.get_params()
            if eval_data is not None:
                module.score(
                    eval_data,
                    metric,
                    batch_end_callback=eval_batch_end_callback,
                    score_end_callback=eval_end_callback,
                    epoch=epoch,
                )
                eval_data.reset()

    def predict(self, X: Any, num_batch: int | None = None, return_data: bool = False, reset: bool = True) -> Any:
        """Return the outputs as NumPy arrays, one array if there is one output.

        Args:
            X: array or data iterator.
            num_batch: batches to use, all by default.
            return_data: also return the inputs and the labels.
            reset: reset the iterator first.
        """
        data = self._iter(X, None, False)
        module = self._ready(data)
        found: list[list[list[np.ndarray]]] = []
        for outputs, _, batch in module.iter_predict(data, num_batch, reset):
            rows = slice(0, outputs[0].shape[0])
            read = [[x.asnumpy()[rows] for x in group or ()] for group in (outputs, batch.data, batch.label)]
            found.append(read)
        joined = [
            [np.concatenate(parts) for parts in zip(*(batch[k] for batch in found), strict=True)] for k in range(3)
        ]
        results = [group[0] if len(group) == 1 else group for group in joined]
        return tuple(results) if return_data else results[0]

    def score(
        self,
        X: Any,
        eval_metric: Any = "acc",
        num_batch: int | None = None,
        batch_end_callback: Any = None,
        reset: bool = True,
    ) -> float:
        """Return the value of a metric over a data iterator."""
        data = self._iter(X, None, False)
        metric = eval_metric if isinstance(eval_metric, metrics.EvalMetric) else metrics.create(eval_metric)
        self._ready(data).score(data, metric, num_batch, batch_end_callback, reset=reset)
        return metric.get()[1]

    def save(self, prefix: str, epoch: int | None = None, remove_amp_cast: bool = True) -> None:
        """Write a checkpoint, numbered `num_epoch` by default."""
        number = self.num_epoch if epoch is None else epoch
        if number is None:
            raise ArgumentError("FeedForward.save: epoch is missing")
        save_checkpoint(prefix, number, self.symbol, self.arg_params or {}, self.aux_params or {}, remove_amp_cast)

    @staticmethod
    def load(prefix: str, epoch: int, ctx: Any = None, **kwargs: Any) -> FeedForward:
        """Return the model of a checkpoint; training would go on at `epoch`."""
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        return FeedForward(symbol, ctx, arg_params=arg_params, aux_params=aux_params, begin_epoch=epoch, **kwargs)

    @staticmethod
    def create(
        symbol: Any,
        X: Any,
        y: Any = None,
        ctx: Any = None,
        num_epoch: int | None = None,
        epoch_size: int | None = None,
        optimizer: Any = "sgd",
        initializer: Any = _UNIFORM,
        eval_data: Any = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Any = None,
        batch_end_callback: Any = None,
        kvstore: Any = "local",
        logger: Any = None,
        work_load_list: Sequence[float] | None = None,
        eval_end_callback: Any = _LOG_VALIDATION,
        eval_batch_end_callback: Any = None,
        **kwargs: Any,
    ) -> FeedForward:
        """Make a model and train it; see `FeedForward` and `fit`."""
        model = FeedForward(symbol, ctx, num_epoch, epoch_size, optimizer, initializer, **kwargs)
        model.fit(
            X,
            y,
            eval_data,
            eval_metric,
            epoch_end_callback,
            batch_end_callback,
            kvstore,
            logger,
            work_load_list,
            eval_end_callback=eval_end_callback,
            eval_batch_end_callback=eval_batch_end_callback,
        )
        return model


__all__ = [
    "BatchEndParam", "FeedForward", "_create_kvstore", "_create_sparse_kvstore", "_initialize_kvstore",
    "_update_params", "_update_params_on_kvstore", "load_checkpoint", "load_params", "save_checkpoint",
]  # fmt: skip
