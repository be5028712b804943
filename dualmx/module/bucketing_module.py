"""`BucketingModule`: one module per sequence bucket, all with the same parameters."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..checkpoint import load_params
from ..core.context import cpu
from ..core.errors import ArgumentError, MXNetError, OrderError
from ..io import DataBatch
from ..ndarray import NDArray, array, load, save
from ..symbol import Symbol
from ..symbol import load as load_symbol
from .base_module import SMALL_UNIFORM, BaseModule
from .module import Module


class BucketingModule(BaseModule):
    """Makes a network for each new bucket key; the parameters are those of the default bucket.

    Args:
        sym_gen: `sym_gen(key)` returns `(symbol, data_names, label_names)`.
        default_bucket_key: key of the bucket with all the parameters, usually the largest.
        logger, context, work_load_list, fixed_param_names, state_names, group2ctxs, compression_params: see `Module`.

    Example:
        >>> mod = BucketingModule(sym_gen, default_bucket_key=60)  # doctest: +SKIP
        >>> mod.fit(sentences, num_epoch=5)  # doctest: +SKIP
    """

    def __init__(
        self,
        sym_gen: Callable[[Any], tuple[Any, Sequence[str], Sequence[str] | None]],
        default_bucket_key: Any = None,
        logger: Any = logging,
        context: Any = None,
        work_load_list: Sequence[float] | None = None,
        fixed_param_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
        compression_params: Mapping[str, Any] | None = None,
    ):
        super().__init__(logger)
        if default_bucket_key is None:
            raise ArgumentError("BucketingModule: default_bucket_key is missing")
        self._sym_gen, self._default_bucket_key = sym_gen, default_bucket_key
        self._arguments: dict[str, Any] = {
            "logger": logger,
            "context": context,
            "work_load_list": work_load_list,
            "fixed_param_names": fixed_param_names,
            "state_names": state_names,
            "group2ctxs": group2ctxs,
            "compression_params": compression_params,
        }
        self._buckets: dict[Any, Module] = {}
        self._curr_bucket_key: Any = default_bucket_key
        self._monitor: Any = None
        self._grad_req: Any = "write"
        self._init_args: tuple[dict[str, NDArray], dict[str, NDArray]] | None = None
        self._make(default_bucket_key)  # errors of sym_gen show here

    def _make(self, key: Any) -> Module:
        symbol, data_names, label_names = self._call_sym_gen(key)
        return Module(symbol, data_names, label_names, **self._arguments)

    @property
    def _params_dirty(self) -> bool:
        """Whether there were updates since the parameters were last read."""
        return bool(self._buckets) and self._buckets[self._default_bucket_key]._params_dirty

    @_params_dirty.setter
    def _params_dirty(self, dirty: bool) -> None:
        if self._buckets:
            self._buckets[self._default_bucket_key]._params_dirty = dirty

    @property
    def _context(self) -> Any:
        """Contexts of the networks, as passed."""
        return cpu() if self._arguments["context"] is None else self._arguments["context"]

    @property
    def _fixed_param_names(self) -> list[str]:
        """The parameters that are not updated."""
        return list(self._arguments["fixed_param_names"] or ())

    @property
    def _state_names(self) -> list[str]:
        """The inputs that are carried over between batches."""
        return list(self._arguments["state_names"] or ())

    def _call_sym_gen(self, bucket_key: Any) -> tuple[Any, Any, Any]:
        """The network of a bucket with the names of its inputs and labels."""
        return self._sym_gen(bucket_key)

    @property
    def _curr_module(self) -> Module:
        if not self._buckets:
            raise OrderError("BucketingModule: call bind() first")
        return self._buckets[self._curr_bucket_key]

    # ---- descriptions

    @property
    def data_names(self) -> list[str]:
        return self._curr_module.data_names if self.binded else self._make(self._default_bucket_key).data_names

    @property
    def output_names(self) -> list[str]:
        return self._curr_module.output_names if self.binded else self._make(self._default_bucket_key).output_names

    @property
    def data_shapes(self) -> list[Any]:
        return self._curr_module.data_shapes

    @property
    def label_shapes(self) -> list[Any] | None:
        return self._curr_module.label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        return self._curr_module.output_shapes

    @property
    def symbol(self) -> Any:
        return self._curr_module.symbol

    # ---- memory and parameters

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
        """Allocate memory for the default bucket; other buckets follow on first use."""
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if shared_module is not None:
            raise ArgumentError("BucketingModule.bind: shared_module is not supported")
        params = self.get_params() if self.params_initialized and self._buckets else self._init_args
        self.for_training, self.inputs_need_grad, self._grad_req = for_training, inputs_need_grad, grad_req
        module = self._make(self._default_bucket_key)
        module.bind(data_shapes, label_shapes, for_training, inputs_need_grad, grad_req=grad_req)
        self._buckets, self._curr_bucket_key = {self._default_bucket_key: module}, self._default_bucket_key
        self.binded = True
        if params is not None:
            self.set_params(*params)

    def switch_bucket(
        self, bucket_key: Any, data_shapes: Sequence[Any], label_shapes: Sequence[Any] | None = None
    ) -> None:
        """Use the network of a bucket from now on, making it on first use."""
        self._require("binded")
        if bucket_key not in self._buckets:
            default = self._buckets[self._default_bucket_key]
            module = self._make(bucket_key)
            module.bind(
                data_shapes,
                label_shapes,
                self.for_training,
                self.inputs_need_grad,
                shared_module=default,
                grad_req=self._grad_req,
            )
            if self._monitor is not None:
                module.install_monitor(self._monitor)
            if default.optimizer_initialized:
                module.borrow_optimizer(default)
            self._buckets[bucket_key] = module
        self._curr_bucket_key = bucket_key

    def init_params(
        self,
        initializer: Any = SMALL_UNIFORM,
        arg_params: dict[str, NDArray] | None = None,
        aux_params: dict[str, NDArray] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        if self.params_initialized and not force_init:
            return
        self._require("binded")
        default = self._buckets[self._default_bucket_key]
        default.init_params(initializer, arg_params, aux_params, allow_missing, force_init, allow_extra)
        self.params_initialized = True

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Return copies of the parameters and auxiliary states of the default bucket, which has all of them."""
        self._require("binded", "params_initialized")
        return self._buckets[self._default_bucket_key].get_params()

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        """Prepare updates; all buckets share one optimizer."""
        self._require("binded", "params_initialized")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring.")
            return
        default = self._buckets[self._default_bucket_key]
        default.init_optimizer(kvstore, optimizer, optimizer_params, force_init)
        for module in self._buckets.values():
            if module is not default:
                module.borrow_optimizer(default)
        self.optimizer_initialized = True

    # ---- steps

    def prepare(self, data_batch: DataBatch, sparse_row_id_fn: Callable[..., Any] | None = None) -> None:
        """Make the network of the batch's bucket, without switching to it; see `BaseModule.prepare`."""
        self._require("binded", "params_initialized")
        current = self._curr_bucket_key
        self._switch_to(data_batch)
        self._curr_module.prepare(data_batch, sparse_row_id_fn)
        self._curr_bucket_key = current

    def _switch_to(self, batch: DataBatch) -> None:
        key = self._default_bucket_key if batch.bucket_key is None else batch.bucket_key
        if key in self._buckets:
            self._curr_bucket_key = key
            return
        if batch.provide_data is None:
            raise MXNetError(f"BucketingModule: the first batch of bucket {key!r} must have provide_data")
        self.switch_bucket(key, batch.provide_data, batch.provide_label)

    def forward(self, data_batch: DataBatch, is_train: bool | None = None) -> None:
        """Compute the outputs of a batch with the network of its `bucket_key`."""
        self._require("binded", "params_initialized")
        self._switch_to(data_batch)
        self._curr_module.forward(data_batch, is_train)

    def backward(self, out_grads: Any = None) -> None:
        self._curr_module.backward(out_grads)

    def update(self) -> None:
        self._require("binded", "params_initialized", "optimizer_initialized")
        self._curr_module.update()

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        return self._curr_module.get_outputs(merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        return self._curr_module.get_input_grads(merge_multi_context)

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        return self._curr_module.get_states(merge_multi_context)

    def set_states(self, states: Any = None, value: float | None = None) -> None:
        self._curr_module.set_states(states, value)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        self._curr_module.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Any) -> None:
        self._require("binded")
        self._monitor = mon
        for module in self._buckets.values():
            module.install_monitor(mon)

    # ---- checkpoints

    def save_checkpoint(self, prefix: str, epoch: int, remove_amp_cast: bool = False) -> None:
        """Write `prefix-%04d.params`, `prefix-<key>-symbol.json` for each bucket, and their keys in `prefix.buckets`.

        Raises:
            ArgumentError: bucket keys that are not integers.
        """
        self._require("binded", "params_initialized")
        if not all(isinstance(k, (int, np.integer)) for k in self._buckets):
            raise ArgumentError("BucketingModule.save_checkpoint: bucket keys must be integers to be saved")
        save(f"{prefix}.buckets", array(list(self._buckets), dtype="int32"))
        for key, module in self._buckets.items():
            module.symbol.save(f"{prefix}-{key}-symbol.json", remove_amp_cast=remove_amp_cast)
        name = f"{prefix}-{epoch:04d}.params"
        self.save_params(name)
        logging.info('Saved checkpoint to "%s"', name)

    @staticmethod
    def load(
        prefix: str,
        epoch: int,
        sym_gen: Callable[[Any], Any] | None = None,
        default_bucket_key: Any = None,
        **kwargs: Any,
    ) -> BucketingModule:
        """Return a module of a checkpoint, to be bound; `sym_gen` makes its networks as before."""
        if sym_gen is None or default_bucket_key is None:
            raise ArgumentError("BucketingModule.load: sym_gen and default_bucket_key are needed")
        (bucket_keys,) = load(f"{prefix}.buckets")
        keys = bucket_keys.asnumpy().tolist()  # type: ignore[union-attr]
        saved = {key: load_symbol(f"{prefix}-{key}-symbol.json") for key in keys}
        return BucketingModule.load_dict(saved, sym_gen, default_bucket_key, *load_params(prefix, epoch), **kwargs)

    @staticmethod
    def load_dict(
        sym_dict: Mapping[Any, Symbol] | None = None,
        sym_gen: Callable[[Any], Any] | None = None,
        default_bucket_key: Any = None,
        arg_params: dict[str, NDArray] | None = None,
        aux_params: dict[str, NDArray] | None = None,
        **kwargs: Any,
    ) -> BucketingModule:
        """Return a module, to be bound, of saved networks by bucket key, a generator for others, and parameters."""
        if sym_gen is None:
            raise ArgumentError("BucketingModule.load_dict: sym_gen is needed")
        saved = dict(sym_dict or {})

        def generate(key: Any) -> tuple[Any, Any, Any]:
            symbol, data_names, label_names = sym_gen(key)
            return saved.get(key, symbol), data_names, label_names

        mod = BucketingModule(generate, default_bucket_key, **kwargs)
        mod._init_args = (arg_params or {}, aux_params or {})
        mod.params_initialized = True
        return mod


__all__ = ["BucketingModule"]
