"""What a `Module` is made of, under the names by which subclasses and loops written for MXNet ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.context import Context
from ..io import DataDesc
from ..ndarray import NDArray
from .base import BaseModule
from .executor_group import DataParallelExecutorGroup
from .executors import DeviceArrays, ExecutorGroup
from .updates import KVStoreUpdater, LocalUpdater


class HostParams:
    """Copies of parameters and auxiliary states on the CPU; made when they are first asked for.

    Attributes:
        arg_params, aux_params: arrays by name, `None` until then.
        given: they were put here before there were arrays on the devices, which are to get their values.
        dirty: there were updates since they were copied.
    """

    def __init__(self) -> None:
        self.arg_params: dict[str, NDArray] | None = None
        self.aux_params: dict[str, NDArray] | None = None
        self.given = self.dirty = False

    def write(self, arg_params: dict[str, NDArray], aux_params: dict[str, NDArray]) -> None:
        """Write fresh values into the arrays that are held, if any are."""
        self.dirty = False
        for held, fresh in ((self.arg_params, arg_params), (self.aux_params, aux_params)):
            if held is None:
                continue
            for name, value in fresh.items():
                if name in held and held[name].shape == value.shape:
                    value.copyto(held[name])
                else:
                    held[name] = value.copy()


class ModuleParts(BaseModule):
    """Executors, parameters and the way of updating of a `Module`."""

    _devices: list[DeviceArrays]
    _contexts: list[Context]
    _workload: Sequence[float]
    _fixed: list[str]
    _compression: dict[str, Any]
    _group: ExecutorGroup | None
    _groups: dict[Any, ExecutorGroup]
    _updates: LocalUpdater | None
    _optimizer: Any
    _view: DataParallelExecutorGroup | None = None
    _group2ctxs: Any = None

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._host = HostParams()

    # ---- executors

    def _set_group(self, group: ExecutorGroup) -> ExecutorGroup:
        """Run the executors of `group` from now on."""
        self._group = group
        if self._view is not None:
            self._view._show(group)
        return group

    @property
    def _exec_group(self) -> DataParallelExecutorGroup | None:
        """The executors in use; `None` before `bind`."""
        if self._group is None:
            return None
        if self._view is None:
            self._view = DataParallelExecutorGroup._of(self, self._group)
        return self._view

    def _reset_bind(self) -> None:
        """Forget the executors; parameters keep their values."""
        self.binded, self._group, self._view, self._groups = False, None, None, {}

    @property
    def _data_shapes(self) -> list[DataDesc] | None:
        """Descriptions of the inputs; `None` before `bind`."""
        return None if self._group is None else self._group.data_shapes

    @property
    def _label_shapes(self) -> list[DataDesc] | None:
        """Descriptions of the labels; `None` if there are none."""
        return None if self._group is None else self._group.label_shapes or None

    @property
    def _output_names(self) -> list[str]:
        """Names of the outputs."""
        return self._symbol.list_outputs()

    @property
    def _context(self) -> list[Context]:
        """The contexts that a batch is split over."""
        return self._contexts

    @property
    def _work_load_list(self) -> list[float]:
        """Share of the batch of each context."""
        return list(self._workload)

    @property
    def _fixed_param_names(self) -> list[str]:
        """The parameters that are not updated."""
        return self._fixed

    @property
    def _compression_params(self) -> dict[str, Any] | None:
        """Gradient compression between contexts or processes."""
        return self._compression or None

    # ---- parameters

    @property
    def _params_dirty(self) -> bool:
        """Whether there were updates since the parameters were last copied from the devices."""
        return self._host.dirty

    @_params_dirty.setter
    def _params_dirty(self, dirty: bool) -> None:
        self._host.dirty = dirty

    def _sync_params_from_devices(self) -> None:
        """Copy parameters and auxiliary states from the devices to `_arg_params` and `_aux_params`."""
        if self._host.arg_params is not None or self._host.aux_params is not None:
            self.get_params()
        self._host.dirty = False

    def _host_params(self) -> HostParams:
        """The copies on the CPU; made now if there is something to copy."""
        host = self._host
        if self.binded and (host.arg_params is None or host.aux_params is None):
            initialized, self.params_initialized = self.params_initialized, True
            arg_params, aux_params = self.get_params()
            self.params_initialized = initialized
            host.arg_params = arg_params if host.arg_params is None else host.arg_params
            host.aux_params = aux_params if host.aux_params is None else host.aux_params
        return host

    @property
    def _arg_params(self) -> dict[str, NDArray] | None:
        """Copies of the parameters on the CPU, as of the last `get_params` or `_sync_params_from_devices`."""
        return self._host_params().arg_params

    @_arg_params.setter
    def _arg_params(self, params: dict[str, NDArray] | None) -> None:
        self._host.arg_params = params
        self._host.given |= not self.binded

    @property
    def _aux_params(self) -> dict[str, NDArray] | None:
        """Copies of the auxiliary states on the CPU; see `_arg_params`."""
        return self._host_params().aux_params

    @_aux_params.setter
    def _aux_params(self, params: dict[str, NDArray] | None) -> None:
        self._host.aux_params = params
        self._host.given |= not self.binded

    # ---- updates

    @property
    def _kvstore(self) -> Any:
        """The store that gradients are exchanged through; `None` on one context, unless a store was given."""
        return self._updates._store if isinstance(self._updates, KVStoreUpdater) else None

    @property
    def _update_on_kvstore(self) -> bool | None:
        """Whether the store applies the optimizer; `None` before `init_optimizer`."""
        if self._updates is None:
            return None
        return isinstance(self._updates, KVStoreUpdater) and self._updates._update_on_store

    @property
    def _updater(self) -> Any:
        """What applies the optimizer, unless the store does; `None` before `init_optimizer`."""
        return None if self._updates is None or self._update_on_kvstore else self._updates._updater
