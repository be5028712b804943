"""`Module`: a symbol with parameters, trained on one or several contexts."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import optimizer as opt
from ..checkpoint import load_checkpoint
from ..core.argcheck import require_instance
from ..core.context import Context, cpu
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError, OrderError, suggest
from ..initializer import InitDesc
from ..io import DataBatch, DataDesc
from ..io.data_batch import parse_descs
from ..ndarray import NDArray, flush, zeros
from ..symbol import Symbol
from ..symbol.inference import all_shapes
from .base_module import SMALL_UNIFORM, BaseModule, flush_step
from .executor_group import DataParallelExecutorGroup, DeviceArrays, ExecutorGroup, parse_group2ctxs
from .param_update import KVStoreUpdater, LocalUpdater, make_updater


class HostParams:
    """CPU copies of parameters and auxiliary states, made on first use.

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
        """Write new values into the copies, if there are any."""
        self.dirty = False
        for copies, fresh in ((self.arg_params, arg_params), (self.aux_params, aux_params)):
            if copies is None:
                continue
            for name, value in fresh.items():
                if name in copies and copies[name].shape == value.shape:
                    value.copyto(copies[name])
                else:
                    copies[name] = value.copy()


class Module(BaseModule):
    """A network with memory for its inputs, parameters and gradients.

    Forward, backward and update are recorded together and run as one compiled program per batch shape.

    Args:
        symbol: the network.
        data_names: which of its arguments are inputs.
        label_names: which of them are labels; `None` for none.
        logger: where progress is logged.
        context: a context, or a list of them over which batches are split.
        work_load_list: share of the batch of each context.
        fixed_param_names: parameters that are not updated.
        state_names: inputs carried from batch to batch (see `set_states`).
        group2ctxs: contexts by `ctx_group` attribute, where the operators of a group run: a dict, or one per context;
            in one dict, a group may have a list with its context for each of `context`.
        compression_params: gradient compression between contexts (`"device"`) or processes.

    Raises:
        ArgumentError: a name that the symbol has no argument for.

    Example:
        >>> import dualmx as mx
        >>> net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2), name="softmax")
        >>> mod = mx.mod.Module(net)
        >>> mod.bind([("data", (4, 3))], [("softmax_label", (4,))])
        >>> mod.init_params()
        >>> mod.init_optimizer(optimizer_params={"learning_rate": 0.1})
        >>> mod.forward_backward(mx.io.DataBatch([mx.nd.ones((4, 3))], [mx.nd.ones(4)]))
        >>> mod.update()
        >>> mod.get_outputs()[0].shape
        (4, 2)
    """

    devices: list[DeviceArrays]
    contexts: list[Context]
    _workload: Sequence[float]
    _fixed: list[str]
    _compression: dict[str, Any]
    _group: ExecutorGroup | None
    _groups: dict[Any, ExecutorGroup]
    _updates: LocalUpdater | None
    _view: DataParallelExecutorGroup | None = None
    _group2ctxs: Any = None
    _param_names: list[str]
    _aux_names: list[str]

    def __init__(
        self,
        symbol: Any,
        data_names: Sequence[str] | None = ("data",),
        label_names: Sequence[str] | None = ("softmax_label",),
        logger: Any = logging,
        context: Any = None,
        work_load_list: Sequence[float] | None = None,
        fixed_param_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
        compression_params: Mapping[str, Any] | None = None,
    ):
        require_instance("Module", "symbol", symbol, Symbol, "a Symbol")
        super().__init__(logger)
        self._host = HostParams()
        contexts = context if isinstance(context, (list, tuple)) else [cpu() if context is None else context]
        self.contexts = [Context(c) for c in contexts]
        self._workload = list(work_load_list) if work_load_list is not None else [1] * len(contexts)
        if len(self._workload) != len(self.contexts):
            raise ArgumentError(
                f"Module: work_load_list has {len(self._workload)} shares for {len(self.contexts)} contexts"
            )
        self._symbol = symbol
        self._data_names, self._label_names = list(data_names or ()), list(label_names or ())
        self._state_names, self._fixed = list(state_names or ()), list(fixed_param_names or ())
        arguments = symbol.list_arguments()
        for what, names in (
            ("data_names", self._data_names),
            ("state_names", self._state_names),
            ("fixed_param_names", self._fixed),
        ):
            for name in names:
                if name not in arguments:
                    raise ArgumentError(f"Module: {what}: {name!r} is no argument; {suggest(name, arguments)}")
        for name in self._label_names:
            if name not in arguments:
                warnings.warn(
                    f"Module: label_names: {name!r} is no argument of the symbol; {suggest(name, arguments)}",
                    stacklevel=2,
                )
        inputs = {*self._data_names, *self._label_names, *self._state_names}
        self._param_names = [n for n in arguments if n not in inputs]
        self._aux_names = symbol.list_auxiliary_states()
        self._compression = dict(compression_params or {})
        self._group2ctxs = group2ctxs
        groups = parse_group2ctxs(group2ctxs, len(contexts))
        self.devices = [DeviceArrays(c, g, symbol) for c, g in zip(self.contexts, groups, strict=True)]
        self._group: ExecutorGroup | None = None
        self._groups: dict[Any, ExecutorGroup] = {}
        self._updates: LocalUpdater | None = None
        self._optimizer: opt.Optimizer | None = None
        self._states_file: str | None = None
        self._monitor: Any = None
        self._grad_req: Any = "write"

    # ---- descriptions

    @property
    def data_names(self) -> list[str]:
        return self._data_names

    @property
    def label_names(self) -> list[str]:
        """Names of the labels."""
        return self._label_names

    @property
    def output_names(self) -> list[str]:
        return self._symbol.list_outputs()

    @property
    def data_shapes(self) -> list[DataDesc]:
        return self._require_bound.data_shapes

    @property
    def label_shapes(self) -> list[DataDesc] | None:
        return self._require_bound.label_shapes or None

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        shapes = {d.name: d.shape for d in (*self.data_shapes, *(self.label_shapes or ()))}
        known = set(self._symbol.list_arguments())
        _, found, _ = all_shapes(self._symbol, **{n: s for n, s in shapes.items() if n in known})
        return list(zip(self.output_names, found or (), strict=True))

    @property
    def _require_bound(self) -> ExecutorGroup:
        if self._group is None:
            raise OrderError(f"{type(self).__name__}: call bind() first")
        return self._group

    # ---- memory

    def bind(
        self,
        data_shapes: Sequence[Any],
        label_shapes: Sequence[Any] | None = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: Module | None = None,
        grad_req: Any = "write",
    ) -> None:
        """Allocate memory for batches of the given shapes; parameters keep their values.

        Args:
            data_shapes: `DataDesc`s or `(name, shape)` pairs of the inputs.
            label_shapes: likewise of the labels.
            for_training: compute gradients too.
            inputs_need_grad: gradients of the inputs too.
            force_rebind: do it even if the module is bound already.
            shared_module: a bound module whose parameters are used, by name, instead of own ones.
            grad_req: `"write"`, `"add"` or `"null"`, for all parameters, or by name.

        Raises:
            ArgumentError: shapes whose names are not those of the module, or gradients without training.
        """
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if inputs_need_grad and not for_training:
            raise ArgumentError("Module.bind: inputs_need_grad=True needs for_training=True")
        if shared_module is not None:
            shared_module._require("binded", "params_initialized")
            self.devices, self._host = shared_module.devices, shared_module._host
            for name in (*self._param_names, *self._aux_names):
                if name not in self.devices[0].args and name not in self.devices[0].aux:
                    raise MXNetError(f"Module.bind: parameter {name!r} is not among those of the shared module")
            self.params_initialized = True
        self.for_training, self.inputs_need_grad, self._grad_req = for_training, inputs_need_grad, grad_req
        self._groups = {}
        self._set_group(self._group_for(parse_descs(data_shapes), parse_descs(label_shapes)))
        self.binded = True
        if self._host.given:
            given = self._host.arg_params or {}, self._host.aux_params or {}
            self._host = HostParams()
            if self.params_initialized:
                self.set_params(*given)

    def _group_for(self, data: list[DataDesc], label: list[DataDesc]) -> ExecutorGroup:
        for what, descs, names in (("data", data, self._data_names), ("label", label, self._label_names)):
            found = [d.name for d in descs]
            if sorted(found) != sorted(names) and (descs or what == "data"):
                raise ArgumentError(f"Module.bind: {what}_shapes are of {found}: expected {names}, the {what}_names")
        key = tuple((d.name, d.shape, str(d.dtype), d.layout) for d in (*data, *label))
        if key not in self._groups:
            names = (self._grad_reqs(), self._param_names, self._state_names)
            self._groups[key] = ExecutorGroup(self._symbol, self.devices, self._workload, data, label, *names)
            if self._monitor is not None:
                for exe in self._groups[key].execs:
                    self._monitor.install(exe)
        return self._groups[key]

    def _grad_reqs(self) -> dict[str, str]:
        if not self.for_training:
            return {}
        trained = [n for n in self._param_names if n not in self._fixed]
        req = self._grad_req
        if isinstance(req, (list, tuple)):
            req = dict(zip(self._symbol.list_arguments(), req, strict=True))
        reqs = {n: req.get(n, "null") if isinstance(req, Mapping) else req for n in trained}
        if self.inputs_need_grad:
            reqs.update(dict.fromkeys(self._data_names, "write"))
        return reqs

    def reshape(self, data_shapes: Sequence[Any], label_shapes: Sequence[Any] | None = None) -> None:
        """Use other input shapes from now on; parameters stay."""
        self._require("binded")
        self._set_group(self._group_for(parse_descs(data_shapes), parse_descs(label_shapes)))

    # ---- steps

    def prepare(self, data_batch: DataBatch, sparse_row_id_fn: Callable[..., Any] | None = None) -> None:
        """Fetch the rows that a batch needs; see `BaseModule.prepare`."""
        self._require("binded")
        if self._updates is not None:
            self._updates.fetch_rows(None if sparse_row_id_fn is None else sparse_row_id_fn(data_batch))

    def forward(self, data_batch: DataBatch, is_train: bool | None = None) -> None:
        """Compute the outputs of a batch, whose shapes may differ from those bound.

        Args:
            data_batch: inputs in the order of `data_shapes`, labels in that of `label_shapes`.
            is_train: training mode; that of `bind` by default.
        """
        self._require("binded", "params_initialized")
        if not hasattr(data_batch, "data"):
            kind = type(data_batch).__name__
            raise ArgumentTypeError(f"Module.forward: data_batch of type {kind}: expected a DataBatch")
        group = self._require_bound
        # A batch may be a named tuple of `data` alone.
        label: list[NDArray] = list(getattr(data_batch, "label", None) or ())
        data, provide_data = list(data_batch.data), getattr(data_batch, "provide_data", None)
        if len(data) != len(self._data_names):
            names = ", ".join(self._data_names)
            raise ArgumentError(f"Module.forward: data_batch has {len(data)} data arrays: expected those of {names}")
        if provide_data is None and group.matches_shapes(data, label):
            self._run(group, data, label, is_train)
            return
        descs = parse_descs(provide_data) or _described(group.data_shapes, data, self._data_names)
        labels = parse_descs(getattr(data_batch, "provide_label", None)) if label else []
        if label and not labels and self._label_names:
            labels = _described(group.label_shapes, label, self._label_names)
        labels = [d for d in labels if d.name in self._label_names]
        if descs != group.data_shapes or (labels and labels != group.label_shapes):
            if not labels and descs[0].shape[:1] == group.data_shapes[0].shape[:1]:
                labels = group.label_shapes
            group = self._set_group(self._group_for(descs, labels))
        self._run(group, data, label, is_train)

    def _run(self, group: ExecutorGroup, data: list[NDArray], label: list[NDArray], is_train: bool | None) -> None:
        train = self.for_training if is_train is None else is_train
        group.forward(data, label, train)
        if not train:
            # Without an update to close the step, outputs of many batches would become one ever longer program.
            flush()

    def backward(self, out_grads: Any = None) -> None:
        """Compute gradients after `forward(is_train=True)`.

        Args:
            out_grads: gradients of the outputs, for networks that do not end in a loss; an NDArray or a list.
        """
        self._require("binded", "params_initialized", "for_training")
        self._require_bound.backward([out_grads] if isinstance(out_grads, NDArray) else out_grads)

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the outputs of the last `forward`, joined over the contexts, or a list per output."""
        self._require("binded", "params_initialized")
        return self._require_bound.outputs(merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the gradients of the inputs, joined over the contexts, or a list per input."""
        self._require("binded", "params_initialized", "inputs_need_grad")
        return self._require_bound.input_grads(merge_multi_context)

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the carried states, in the order of `state_names`."""
        self._require("binded", "params_initialized")
        return self._require_bound.states(merge_multi_context)

    def set_states(self, states: Any = None, value: float | None = None) -> None:
        """Set the carried states to arrays (full batches, or a list per context), or all to one value."""
        self._require("binded", "params_initialized")
        if (states is None) == (value is None):
            raise ArgumentError("Module.set_states: expected states or value, one of them")
        group = self._require_bound
        for k, targets in enumerate(zip(*group.states(False), strict=True)):
            for i, target in enumerate(targets):
                if states is None:
                    target[:] = value
                else:
                    given = states[i]
                    part = given[k] if isinstance(given, (list, tuple)) else given
                    if not isinstance(given, (list, tuple)) and len(self.devices) > 1:
                        part = part[group.slices[k]]
                    part.copyto(target)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Add the outputs of the last `forward` to `eval_metric`; with several contexts, each one's part for itself."""
        group = self._require_bound
        for k, exe in enumerate(group.execs):
            if pre_sliced:
                mine = dict(zip(self._label_names, labels[k], strict=False))
            else:
                mine = group.label_parts(labels or (), k) or dict(zip(self._label_names, labels or (), strict=False))
            eval_metric.update_dict(mine, dict(zip(self.output_names, exe.outputs, strict=True)))

    def install_monitor(self, mon: Any) -> None:
        """Let a `Monitor` watch all executors."""
        self._require("binded")
        self._monitor = mon
        for group in self._groups.values():
            for exe in group.execs:
                mon.install(exe)

    # ---- updates

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        """Prepare updates; gradients are divided by the batch size (of all workers under synchronous stores).

        Args:
            kvstore: `"local"`, `"device"`, `None`, the name of a distributed or registered store, or a store.
            optimizer: name of an optimizer, or an instance.
            optimizer_params: arguments of the optimizer: a dict or pairs.
            force_init: do it even if there is an optimizer.
        """
        self._require("binded", "params_initialized")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring...")
            return
        names = [n for n in self._param_names if self._require_bound.grad_reqs.get(n, "null") != "null"]
        index_of = {n: i for i, n in enumerate(self._param_names)}
        updates = make_updater(kvstore, self.devices, names, index_of, self._compression)
        rescale = 1.0 / (self._require_bound.batch_size * updates.num_workers)
        if isinstance(optimizer, str):
            params = {"rescale_grad": rescale, **dict(optimizer_params)}
            named = {i: n for n, i in index_of.items()}
            optimizer = opt.create(optimizer, sym=self._symbol, param_idx2name=named, **params)
        elif not isinstance(optimizer, opt.Optimizer):
            raise ArgumentTypeError(f"Module.init_optimizer: optimizer={optimizer!r}: expected a name or an Optimizer")
        elif optimizer.rescale_grad != rescale:
            warnings.warn(
                f"the optimizer has rescale_grad={optimizer.rescale_grad}, but 1 / (batch size x workers) is "
                f"{rescale}; is this intended?",
                stacklevel=2,
            )
        if not optimizer.idx2name:
            optimizer.idx2name = {i: n for n, i in index_of.items()}
        self._optimizer, self._updates = optimizer, updates
        updates.start(optimizer)
        self.optimizer_initialized = True
        if self._states_file is not None:
            self.load_optimizer_states(self._states_file)
            self._states_file = None

    def borrow_optimizer(self, shared_module: Module) -> None:
        """Use the optimizer of another module, with which the parameters are shared."""
        shared_module._require("optimizer_initialized")
        self._optimizer, self._updates = shared_module._optimizer, shared_module._updates
        self.optimizer_initialized = True

    @property
    def _active_updates(self) -> LocalUpdater:
        if self._updates is None:
            raise OrderError(f"{type(self).__name__}: call init_optimizer() first")
        return self._updates

    def update(self) -> None:
        """Apply the optimizer to all parameters, and send the step to the device."""
        self._require("binded", "params_initialized", "optimizer_initialized")
        self._active_updates.apply()
        self._params_dirty = True
        flush_step()

    def save_optimizer_states(self, fname: str) -> None:
        """Write the optimizer's states to a file."""
        self._active_updates.save_states(fname)

    def load_optimizer_states(self, fname: str) -> None:
        """Read the optimizer's states from a file of dualmx or MXNet."""
        self._active_updates.load_states(fname)

    # ---- checkpoints

    def save_checkpoint(
        self, prefix: str, epoch: int, save_optimizer_states: bool = False, remove_amp_cast: bool = True
    ) -> None:
        """Write `prefix-symbol.json`, `prefix-%04d.params` and, optionally, `prefix-%04d.states`."""
        self._symbol.save(f"{prefix}-symbol.json", remove_amp_cast=remove_amp_cast)
        name = f"{prefix}-{epoch:04d}.params"
        self.save_params(name)
        logging.info('Saved checkpoint to "%s"', name)
        if save_optimizer_states:
            name = f"{prefix}-{epoch:04d}.states"
            self.save_optimizer_states(name)
            logging.info('Saved optimizer state to "%s"', name)

    @staticmethod
    def load(prefix: str, epoch: int, load_optimizer_states: bool = False, **kwargs: Any) -> Module:
        """Return a module of a checkpoint, to be bound; `kwargs` are those of `Module`."""
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        mod = Module(symbol, **kwargs)
        mod._arg_params, mod._aux_params = arg_params, aux_params
        mod.params_initialized = True
        if load_optimizer_states:
            mod._states_file = f"{prefix}-{epoch:04d}.states"
        return mod

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
        return self.contexts

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
        """Return the CPU copies, made now if necessary."""
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

    @property
    def _kvstore(self) -> Any:
        """The store that sums gradients; `None` on one context, unless one was passed."""
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

    def init_params(
        self,
        initializer: Any = SMALL_UNIFORM,
        arg_params: dict[str, NDArray] | None = None,
        aux_params: dict[str, NDArray] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Give values to parameters and auxiliary states.

        Args:
            initializer: for values that are not given.
            arg_params, aux_params: given values by name; names the network does not have are ignored.
            allow_missing: let the initializer fill what is missing in `arg_params` and `aux_params`.
            force_init: do it even if there are values already.
            allow_extra: accepted.

        Raises:
            MXNetError: not bound, or a value is missing. ArgumentError: a value has the wrong shape.
        """
        if self.params_initialized and not force_init:
            warnings.warn(
                "Parameters already initialized and force_init=False. init_params call ignored.", stacklevel=2
            )
            return
        self._require("binded")
        attrs = self._symbol.attr_dict()
        main = self.devices[0]
        for table, names, given in (
            (main.args, self._param_names, arg_params),
            (main.aux, self._aux_names, aux_params),
        ):
            for name in sorted(names):
                self._fill(name, table[name], given, initializer, attrs.get(name, {}), allow_missing)
        self._broadcast_params()
        self.params_initialized = True
        self._sync_params_from_devices()

    def _fill(
        self,
        name: str,
        target: NDArray,
        given: dict[str, NDArray] | None,
        initializer: Any,
        attrs: dict[str, str],
        allow_missing: bool,
    ) -> None:
        if given is not None and name in given:
            value = given[name]
            if value.shape != target.shape:
                raise ArgumentError(f"Module: parameter {name!r} has shape {value.shape}: expected {target.shape}")
            if value is not target:
                value.copyto(target)
            return
        if given is not None and not allow_missing:
            raise MXNetError(f"Module: parameter {name!r} is missing; give it, or pass allow_missing=True")
        if initializer is None:
            return
        main = self.contexts[0]
        if target.context == main or target.stype != "default":
            initializer(InitDesc(name, attrs), target)
        else:  # drawn where all others are, since each context has a random stream: groups do not change values
            value = zeros(target.shape, ctx=main, dtype=target.dtype)
            initializer(InitDesc(name, attrs), value)
            value.copyto(target)

    def _broadcast_params(self) -> None:
        """Copy parameters and states of the first context to the others."""
        main = self.devices[0]
        for other in self.devices[1:]:
            for source, target in ((main.args, other.args), (main.aux, other.aux)):
                for name, value in source.items():
                    value.copyto(target[name])

    def set_params(
        self,
        arg_params: dict[str, NDArray],
        aux_params: dict[str, NDArray] | None,
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        if allow_missing and not allow_extra:
            known = {*self._param_names, *self._aux_names}
            for name in (*arg_params, *(aux_params or ())):
                if name not in known:
                    raise ArgumentError(
                        f"Module.set_params: {name!r} is no parameter; {suggest(name, known)}; see allow_extra"
                    )
        super().set_params(arg_params, aux_params, allow_missing, force_init, allow_extra)

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Return copies of the parameters and of the auxiliary states (averaged over contexts), by name.

        Before `bind` those that a checkpoint gave are returned themselves, as MXNet does.
        """
        self._require("params_initialized")
        if self._host.given:
            return self._host.arg_params or {}, self._host.aux_params or {}
        main = self.devices[0]
        if self._updates is not None:
            self._updates.fetch_rows(None)
        arg_params = {n: main.args[n].copyto(cpu()) for n in self._param_names}
        aux_params = {}
        for n in self._aux_names:
            total = main.aux[n].copyto(cpu())
            for other in self.devices[1:]:
                total = total + other.aux[n].as_in_context(cpu())
            aux_params[n] = total / len(self.devices) if len(self.devices) > 1 else total
        flush()
        self._host.write(arg_params, aux_params)
        return arg_params, aux_params


def _described(like: Sequence[DataDesc], arrays: Sequence[NDArray], names: Sequence[str]) -> list[DataDesc]:
    """Descriptions of the arrays of a batch, with names and layouts as bound."""
    if len(like) != len(arrays):
        return [DataDesc(n, a.shape, a.dtype) for n, a in zip(names, arrays, strict=False)]
    return [DataDesc(d.name, a.shape, d.dtype, d.layout) for d, a in zip(like, arrays, strict=True)]
