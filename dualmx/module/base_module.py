"""`BaseModule`: fit, score and predict over a few abstract steps."""

from __future__ import annotations

import contextlib
import copy
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import metric as metrics
from ..checkpoint import BatchEndParam, join_params, split_params
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError, OrderError
from ..initializer import Uniform
from ..io import DataBatch
from ..namespace import nd
from ..ndarray import NDArray, array, flush, load, save

SMALL_UNIFORM = Uniform(0.01)  # what parameters get unless told otherwise


class _StepState(threading.local):
    open = False


_step = _StepState()


@contextlib.contextmanager
def fused_step() -> Iterator[None]:
    """Send what happens inside to the device at the end, so that the metric joins the program of its step."""
    outer, _step.open = _step.open, True
    try:
        yield
    finally:
        _step.open = outer
    flush_step()


def flush_step() -> None:
    """Send the step that `update` completes to the device, unless more is to join it."""
    if not _step.open:
        flush()


class BaseModule:
    """A computation with parameters that can be trained on batches.

    Subclasses define `bind`, `init_params`, `init_optimizer`, `forward`, `backward`, `update`, `get_outputs`,
    `get_params`, `update_metric` and the descriptive properties; the loops here are made of these.

    Args:
        logger: where progress is logged, the `logging` module by default.

    Attributes:
        binded: whether memory has been laid out for given shapes (MXNet's spelling).
        params_initialized: whether the parameters have values.
        optimizer_initialized: whether `update` can be called.
        for_training: whether gradients are computed.
        inputs_need_grad: whether gradients of the inputs are computed too.
    """

    def __init__(self, logger: Any = logging):
        self.logger = logger
        self.binded = self.for_training = self.inputs_need_grad = False
        self.params_initialized = self.optimizer_initialized = False
        self._symbol: Any = None

    # ---- what subclasses describe

    @property
    def data_names(self) -> list[str]:
        """Names of the inputs."""
        raise NotImplementedError

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        raise NotImplementedError

    @property
    def data_shapes(self) -> list[Any]:
        """`DataDesc`s of the inputs."""
        raise NotImplementedError

    @property
    def label_shapes(self) -> list[Any] | None:
        """`DataDesc`s of the labels, `None` or empty if there are none."""
        raise NotImplementedError

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """`(name, shape)` of the outputs."""
        raise NotImplementedError

    @property
    def symbol(self) -> Any:
        """The network."""
        return self._symbol

    # ---- what subclasses do

    def bind(
        self,
        data_shapes: Sequence[Any],
        label_shapes: Sequence[Any] | None = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: Any = None,
        grad_req: Any = "write",
    ) -> None:
        """Allocate memory for inputs of the given shapes."""
        raise NotImplementedError

    def init_params(
        self,
        initializer: Any = SMALL_UNIFORM,
        arg_params: dict[str, NDArray] | None = None,
        aux_params: dict[str, NDArray] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Give values to the parameters."""
        raise NotImplementedError

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        """Prepare updates."""
        raise NotImplementedError

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Return copies of the parameters and of the auxiliary states, by name."""
        raise NotImplementedError

    def prepare(self, data_batch: DataBatch, sparse_row_id_fn: Callable[..., Any] | None = None) -> None:
        """Prepare for a batch before it is processed.

        Args:
            data_batch: the batch.
            sparse_row_id_fn: called with the batch, tells which rows of row_sparse parameters it needs, as a dict of
                row numbers by name. These rows are fetched from the servers of a distributed store; without the
                function all rows are fetched after each step.
        """

    def forward(self, data_batch: DataBatch, is_train: bool | None = None) -> None:
        """Compute the outputs of a batch."""
        raise NotImplementedError

    def backward(self, out_grads: Any = None) -> None:
        """Compute gradients after `forward`."""
        raise NotImplementedError

    def update(self) -> None:
        """Apply the optimizer."""
        raise NotImplementedError

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the outputs of the last `forward`."""
        raise NotImplementedError

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the gradients of the inputs of the last `backward`."""
        raise NotImplementedError

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Add the outputs of the last `forward` to a metric."""
        raise NotImplementedError

    def install_monitor(self, mon: Any) -> None:
        """Let a `Monitor` watch the computation."""
        raise NotImplementedError

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the states carried between batches; none here."""
        self._require("binded", "params_initialized")
        return []

    def set_states(self, states: Any = None, value: float | None = None) -> None:
        """Set the states carried between batches; there are none here."""
        self._require("binded", "params_initialized")
        if states or value:
            raise ArgumentError(f"{type(self).__name__}.set_states: this module has no states")

    def _require(self, *what: str) -> None:
        """Raise unless the steps named by the attributes have been done."""
        steps = {
            "binded": "bind()",
            "params_initialized": "init_params()",
            "optimizer_initialized": "init_optimizer()",
            "for_training": "bind(for_training=True)",
            "inputs_need_grad": "bind(inputs_need_grad=True)",
        }
        for name in what:
            if not getattr(self, name):
                raise OrderError(f"{type(self).__name__}: call {steps[name]} first")

    # ---- parameters

    def set_params(
        self,
        arg_params: dict[str, NDArray],
        aux_params: dict[str, NDArray] | None,
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Assign parameters and auxiliary states; see `init_params`."""
        self.init_params(
            initializer=None, arg_params=arg_params, aux_params=aux_params, allow_missing=allow_missing,
            force_init=force_init, allow_extra=allow_extra,
        )  # fmt: skip

    def save_params(self, fname: str) -> None:
        """Write parameters and auxiliary states to a file."""
        save(fname, join_params(*self.get_params()))

    def load_params(self, fname: str) -> None:
        """Read parameters and auxiliary states from a file of `save_params`, a checkpoint or an export."""
        self.set_params(*split_params(load(fname), fname))

    # ---- loops

    def forward_backward(self, data_batch: DataBatch) -> None:
        """Compute outputs and gradients of a batch in training mode."""
        self.forward(data_batch, is_train=True)
        self.backward()

    def _inference(
        self, eval_data: Any, num_batch: int | None, reset: bool, sparse_row_id_fn: Callable[..., Any] | None
    ) -> Iterator[tuple[int, Any]]:
        self._require("binded", "params_initialized")
        if not hasattr(eval_data, "__iter__") or (reset and not hasattr(eval_data, "reset")):
            raise ArgumentError(f"eval_data of type {type(eval_data).__name__}: expected a DataIter or an NDArray")
        if reset:
            eval_data.reset()
        for nbatch, batch in enumerate(eval_data):
            if nbatch == num_batch:
                return
            self.prepare(batch, sparse_row_id_fn=sparse_row_id_fn)
            self.forward(batch, is_train=False)
            yield nbatch, batch

    def score(
        self,
        eval_data: Any,
        eval_metric: Any,
        num_batch: int | None = None,
        batch_end_callback: Any = None,
        score_end_callback: Any = None,
        reset: bool = True,
        epoch: int = 0,
        sparse_row_id_fn: Callable[..., Any] | None = None,
    ) -> list[tuple[str, float]]:
        """Return `(name, value)` pairs of a metric over a data iterator.

        Args:
            eval_data: the iterator.
            eval_metric: a metric, its name, or a list of either.
            num_batch: batches to use, all by default.
            batch_end_callback: called with a `BatchEndParam` after each batch; may be a list.
            score_end_callback: likewise after the last one.
            reset: reset the iterator first.
            epoch: number passed to the callbacks.
        """
        self._require("binded", "params_initialized")
        if reset:
            eval_data.reset()
        if not isinstance(eval_metric, metrics.EvalMetric):
            eval_metric = metrics.create(eval_metric)
        eval_metric.reset()
        nbatch = -1
        for nbatch, eval_batch in self._inference(eval_data, num_batch, False, sparse_row_id_fn):
            self.update_metric(eval_metric, eval_batch.label)
            _call(batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals()))
        _call(score_end_callback, BatchEndParam(epoch, nbatch + 1, eval_metric, locals()))
        return eval_metric.get_name_value()

    def iter_predict(
        self,
        eval_data: Any,
        num_batch: int | None = None,
        reset: bool = True,
        sparse_row_id_fn: Callable[..., Any] | None = None,
    ) -> Iterator[tuple[list[NDArray], int, Any]]:
        """Yield `(outputs, number, batch)` for each batch, rows of padding left out."""
        for nbatch, batch in self._inference(eval_data, num_batch, reset, sparse_row_id_fn):
            yield self._unpadded(batch), nbatch, batch

    def _unpadded(self, batch: Any) -> list[NDArray]:
        pad = batch.pad or 0
        return [out[: out.shape[0] - pad] if pad else out for out in self.get_outputs()]

    def predict(
        self,
        eval_data: Any,
        num_batch: int | None = None,
        merge_batches: bool = True,
        reset: bool = True,
        always_output_list: bool = False,
        sparse_row_id_fn: Callable[..., Any] | None = None,
    ) -> Any:
        """Return the outputs for a data iterator, or for a single array of inputs.

        Args:
            eval_data: iterator, NDArray or NumPy array.
            num_batch: batches to use, all by default.
            merge_batches: join the batches along axis 0; otherwise return a list with a list of outputs per batch.
            reset: reset the iterator first.
            always_output_list: return a list even if there is one output.

        Raises:
            MXNetError: batches have different numbers of outputs, so they cannot be merged.
        """
        if isinstance(eval_data, np.ndarray):
            eval_data = array(eval_data)
        if isinstance(eval_data, NDArray):
            self._require("binded", "params_initialized")
            self.forward(DataBatch([eval_data]), is_train=False)
            return self.get_outputs()[0]
        batches = []
        for _, batch in self._inference(eval_data, num_batch, reset, sparse_row_id_fn):
            batches.append([out.copy() for out in self._unpadded(batch)])
            flush()
        if not batches or not merge_batches:
            return batches
        if len({len(outputs) for outputs in batches}) > 1:
            raise MXNetError("predict: batches have different numbers of outputs: use merge_batches=False")
        merged = [nd.concatenate(list(parts)) for parts in zip(*batches, strict=True)]
        return merged[0] if len(merged) == 1 and not always_output_list else merged

    def fit(
        self,
        train_data: Any,
        eval_data: Any = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Any = None,
        batch_end_callback: Any = None,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        eval_end_callback: Any = None,
        eval_batch_end_callback: Any = None,
        initializer: Any = SMALL_UNIFORM,
        arg_params: dict[str, NDArray] | None = None,
        aux_params: dict[str, NDArray] | None = None,
        allow_missing: bool = False,
        force_rebind: bool = False,
        force_init: bool = False,
        begin_epoch: int = 0,
        num_epoch: int | None = None,
        validation_metric: Any = None,
        monitor: Any = None,
        sparse_row_id_fn: Callable[..., Any] | None = None,
    ) -> None:
        """Train on an iterator, evaluating on another one after each epoch.

        Args:
            train_data, eval_data: iterators of batches.
            eval_metric, validation_metric: metrics of training and, if different, of evaluation.
            epoch_end_callback: called as `f(epoch, symbol, arg_params, aux_params)`; may be a list.
            batch_end_callback, eval_batch_end_callback, eval_end_callback: called with a `BatchEndParam`; may be lists.
            kvstore: how gradients of several contexts or processes are combined.
            optimizer, optimizer_params: name or instance of the optimizer, and its arguments.
            initializer, arg_params, aux_params, allow_missing, force_init: see `init_params`.
            force_rebind: lay out memory anew even if the module is bound.
            begin_epoch, num_epoch: epochs run from `begin_epoch` to `num_epoch - 1`.
            monitor: a `Monitor`.
            sparse_row_id_fn: see `prepare`.

        Raises:
            ArgumentError: `num_epoch` is missing.

        Example:
            >>> scores = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3)
            >>> mod = mx.mod.Module(mx.sym.SoftmaxOutput(scores, name="softmax"))
            >>> mod.fit(mx.io.NDArrayIter(mx.nd.ones((8, 5)), mx.nd.zeros((8,)), batch_size=4), num_epoch=1)
        """
        if num_epoch is None:
            raise ArgumentError("fit: num_epoch is missing: give the number of epochs")
        if not hasattr(train_data, "provide_data"):
            raise ArgumentTypeError(f"fit: train_data of type {type(train_data).__name__}: expected a DataIter")
        self.bind(
            data_shapes=train_data.provide_data, label_shapes=train_data.provide_label, for_training=True,
            force_rebind=force_rebind,
        )  # fmt: skip
        if monitor is not None:
            self.install_monitor(monitor)
        if force_init or not self.params_initialized:
            self.init_params(
                initializer=initializer, arg_params=arg_params, aux_params=aux_params, allow_missing=allow_missing,
                force_init=force_init,
            )  # fmt: skip
        self.init_optimizer(kvstore=kvstore, optimizer=optimizer, optimizer_params=optimizer_params)
        if validation_metric is None:
            validation_metric = copy.deepcopy(eval_metric)
        if not isinstance(eval_metric, metrics.EvalMetric):
            eval_metric = metrics.create(eval_metric)
        # Overrides of score() need not know the argument, which MXNet leaves out.
        rows: dict[str, Any] = {} if sparse_row_id_fn is None else {"sparse_row_id_fn": sparse_row_id_fn}
        for epoch in range(begin_epoch, num_epoch):
            start = time.time()
            eval_metric.reset()
            for name, value in self.train_epoch(
                epoch, train_data, eval_metric, batch_end_callback, monitor, sparse_row_id_fn
            ):
                self.logger.info("Epoch[%d] Train-%s=%f", epoch, name, value)
            self.logger.info("Epoch[%d] Time cost=%.3f", epoch, time.time() - start)
            self.end_epoch(epoch, epoch_end_callback)
            if eval_data is not None:
                found = self.score(
                    eval_data,
                    validation_metric,
                    score_end_callback=eval_end_callback,
                    batch_end_callback=eval_batch_end_callback,
                    epoch=epoch,
                    **rows,
                )
                for name, value in found:
                    self.logger.info("Epoch[%d] Validation-%s=%f", epoch, name, value)
            train_data.reset()

    def train_epoch(
        self,
        epoch: int,
        train_data: Any,
        eval_metric: Any,
        batch_end_callback: Any,
        monitor: Any,
        sparse_row_id_fn: Callable[..., Any] | None = None,
        first: int = 0,
    ) -> list[tuple[str, float]]:
        """Train on all batches and return the metric; callbacks count batches from `first` on."""
        batches = iter(train_data)
        data_batch, nbatch = next(batches, None), first
        found: list[tuple[str, float]] = []
        if data_batch is None:
            train_data.reset()
            batches = iter(train_data)
            data_batch = next(batches, None)
        if data_batch is None:
            raise MXNetError("fit: train_data has no batches")
        while data_batch is not None:
            if monitor is not None:
                monitor.tic()
            with fused_step():
                self.forward_backward(data_batch)
                self.update()
                self.update_metric(eval_metric, data_batch.label)
            # The device is busy with this batch while the next one is fetched.
            following = next(batches, None)
            if following is not None:
                self.prepare(following, sparse_row_id_fn=sparse_row_id_fn)
            if monitor is not None:
                monitor.toc_print()
            if following is None:
                found = eval_metric.get_global_name_value()  # callbacks may reset the metric
            _call(batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals()))
            data_batch, nbatch = following, nbatch + 1
        return found

    def end_epoch(self, epoch: int, callback: Any) -> None:
        """Let all devices go on from the same parameters, and call what was given for the end of an epoch."""
        arg_params, aux_params = self.get_params()
        self.set_params(arg_params, aux_params)
        _call(callback, epoch, self.symbol, arg_params, aux_params)


def _call(callbacks: Any, *args: Any) -> None:
    if callbacks is not None:
        for callback in callbacks if isinstance(callbacks, (list, tuple)) else (callbacks,):
            callback(*args)


__all__ = ["BaseModule"]
