"""MXNet's `mx.executor_manager`: training loops over several contexts from before modules."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from .core.context import Context
from .core.errors import ArgumentError
from .io import DataBatch, DataDesc
from .metric import EvalMetric
from .module import executor_group
from .module.executor_group import split_rows
from .ndarray import NDArray


def _split_input_slice(batch_size: int, work_load_list: Sequence[float]) -> list[slice]:
    """Return the rows of a batch that each context gets."""
    return split_rows(batch_size, work_load_list)


def _check_arguments(symbol: Any) -> None:
    """Raise `ArgumentError` if two arguments, or two auxiliary states, have one name."""
    for what, names in (("arguments", symbol.list_arguments()), ("auxiliary states", symbol.list_auxiliary_states())):
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ArgumentError(f"the network has several {what} called {twice[0]!r}: give each a name of its own")


class DataParallelExecutorGroup(executor_group.DataParallelExecutorGroup):
    """A network bound on several contexts for the batches of an iterator.

    Args:
        sym: the network.
        arg_names: its arguments; accepted.
        param_names: the arguments that are parameters.
        ctx: where it runs.
        slices: rows of the batch of each context.
        train_data: iterator, or batch, whose `provide_data` and `provide_label` say the shapes.
        shared_group: another group whose parameters this one uses.
    """

    def __init__(
        self, sym: Any, arg_names: Sequence[str], param_names: Sequence[str], ctx: Sequence[Context],
        slices: Sequence[slice], train_data: Any, shared_group: Any = None,
    ):  # fmt: skip
        _check_arguments(sym)
        rows = [s.stop - s.start for s in slices]
        data, label = train_data.provide_data, train_data.provide_label
        super().__init__(sym, ctx, rows, data, label, param_names, True, False, shared_group)
        self._batch: DataBatch | None = None

    def load_data_batch(self, data_batch: DataBatch) -> None:
        """Take the batch that the next `forward` runs on."""
        self._batch = data_batch

    def forward(self, data_batch: Any = None, is_train: bool | None = False) -> None:  # pyright: ignore
        """Run all executors on the batch that was loaded; `is_train` may be given by position."""
        if isinstance(data_batch, bool):
            data_batch, is_train = None, data_batch
        batch = data_batch if data_batch is not None else self._batch
        if batch is None:
            raise ArgumentError("forward: no batch was loaded; call load_data_batch first")
        super().forward(batch, is_train)

    def update_metric(self, metric: EvalMetric, labels: Any, pre_sliced: bool = False) -> None:  # pyright: ignore
        """Add the outputs of all contexts to a metric."""
        super().update_metric(metric, labels, pre_sliced)


class DataParallelExecutorManager:
    """Groups of executors for one network, or for one of each bucket, over shared parameters.

    Args:
        symbol: the network.
        ctx: where it runs.
        train_data: iterator of the batches.
        arg_names, param_names, aux_names: names in the network.
        work_load_list: share of the batch of each context; equal ones if None.
        logger: where messages go.
        sym_gen: network by bucket key.
    """

    def __init__(
        self, symbol: Any, ctx: Sequence[Context], train_data: Any, arg_names: Sequence[str],
        param_names: Sequence[str], aux_names: Sequence[str], work_load_list: Sequence[float] | None = None,
        logger: Any = None, sym_gen: Any = None,
    ):  # fmt: skip
        (logger or logging).info("running on %s", list(ctx))
        load = list(work_load_list or [1] * len(ctx))
        if len(load) != len(ctx):
            raise ArgumentError(f"work_load_list has {len(load)} numbers: expected {len(ctx)}, one for each context")
        self.ctx, self.arg_names, self.param_names, self.aux_names = list(ctx), arg_names, param_names, aux_names
        self.symbol, self.sym_gen = symbol, sym_gen
        first = train_data.provide_data[0]
        self.slices = split_rows((first if isinstance(first, DataDesc) else DataDesc(*first)).shape[0], load)
        self.execgrp = DataParallelExecutorGroup(symbol, arg_names, param_names, self.ctx, self.slices, train_data)
        self.curr_execgrp = self.execgrp
        self.execgrp_bucket = {train_data.default_bucket_key: self.execgrp} if sym_gen is not None else {}

    @property
    def param_arrays(self) -> list[list[NDArray]]:
        """Each parameter on every context."""
        return self.execgrp.param_arrays

    @property
    def grad_arrays(self) -> list[list[NDArray | None]]:
        """The gradient of each parameter on every context."""
        return self.execgrp.grad_arrays

    @property
    def aux_arrays(self) -> list[list[NDArray]]:
        """Each auxiliary state on every context."""
        return self.execgrp.aux_arrays

    def install_monitor(self, monitor: Any) -> None:
        """Let a monitor watch all executors.

        Raises:
            NotImplementedError: there are buckets.
        """
        if self.sym_gen is not None:
            raise NotImplementedError("install_monitor: a monitor cannot watch networks of several buckets")
        self.execgrp.install_monitor(monitor)

    def set_params(self, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray]) -> None:
        """Copy parameters to all contexts."""
        self.execgrp.set_params(arg_params, aux_params, allow_extra=True)

    def copy_to(self, arg_params: dict[str, NDArray], aux_params: dict[str, NDArray]) -> None:
        """Write the mean over the contexts of each parameter and state into the dicts."""
        self.execgrp.get_params(arg_params, aux_params)

    def load_data_batch(self, data_batch: Any) -> None:
        """Take the batch that the next `forward` runs on; with buckets, with the network of its bucket."""
        if self.sym_gen is not None:
            key = data_batch.bucket_key
            if key not in self.execgrp_bucket:
                symbol = self.sym_gen(key)
                self.execgrp_bucket[key] = DataParallelExecutorGroup(
                    symbol, symbol.list_arguments(), self.param_names, self.ctx, self.slices, data_batch, self.execgrp
                )
            self.curr_execgrp = self.execgrp_bucket[key]
        self.curr_execgrp.load_data_batch(data_batch)

    def forward(self, is_train: bool = False) -> None:
        """Run the executors."""
        self.curr_execgrp.forward(is_train=is_train)

    def backward(self) -> None:
        """Run the executors backward."""
        self.curr_execgrp.backward()

    def update_metric(self, metric: EvalMetric, labels: Any, pre_sliced: bool = False) -> None:
        """Add the outputs to a metric."""
        self.curr_execgrp.update_metric(metric, labels, pre_sliced)


__all__ = ["DataParallelExecutorGroup", "DataParallelExecutorManager"]
