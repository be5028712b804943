"""Executor group: one executor per context over shared parameters."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..core.argcheck import context as as_context
from ..core.context import Context
from ..core.dtypes import as_dtype
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ..io import DataBatch, DataDesc
from ..metric import EvalMetric
from ..namespace import nd
from ..ndarray import NDArray, array, zeros
from ..ndarray.sharding import data_parallel_spec, sharded_zeros
from ..sparse import with_storage
from ..symbol.executor import recorded_training
from ..symbol.inference import all_shapes, storage_types
from ..symbol.node import topological


def split_rows(rows: int, workload: Sequence[float]) -> list[slice]:
    """Return one slice of a batch of `rows` per context, in proportion to `workload`.

    Raises:
        ArgumentError: there are fewer rows than contexts.
    """
    total = sum(workload)
    sizes = [round(rows * w / total) for w in workload]
    sizes[-1] += rows - sum(sizes)
    if min(sizes) < 1:
        raise ArgumentError(f"Module: a batch of {rows} rows cannot be split over {len(sizes)} contexts")
    ends = np.cumsum(sizes).tolist()
    return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def parse_group2ctxs(given: Any, count: int) -> list[dict[str, Context]]:
    """Return for each of `count` contexts the contexts of groups, in any of the forms that `Module` takes.

    Raises:
        ArgumentError: a list has another length. ArgumentTypeError: something is no context.
    """
    if isinstance(given, (list, tuple)):
        if len(given) != count:
            raise ArgumentError(f"Module: group2ctxs has {len(given)} entries for {count} contexts")
        return [parse_group2ctxs(one, 1)[0] for one in given]
    if given is not None and not isinstance(given, Mapping):
        raise ArgumentTypeError(f"Module: group2ctxs={given!r}: expected contexts by the name of a ctx_group")
    found: list[dict[str, Context]] = [{} for _ in range(count)]
    for group, value in (given or {}).items():
        listed = list(value) if isinstance(value, (list, tuple)) else [value]
        listed = listed * count if len(listed) == 1 else listed
        if len(listed) != count:
            raise ArgumentError(f"Module: group2ctxs: group {group!r} has {len(listed)} contexts for {count}")
        for groups, ctx in zip(found, listed, strict=True):
            if not isinstance(ctx, (Context, str)):
                raise ArgumentTypeError(f"Module: group2ctxs: group {group!r} on {ctx!r}: expected a Context")
            groups[group] = as_context(ctx)
    return found


class DeviceArrays:
    """Parameters, their gradients and the auxiliary states on one context, by name.

    Args:
        ctx: the context.
        groups: other contexts by `ctx_group` attribute.
        symbol: tells the group of each variable.
    """

    def __init__(self, ctx: Context, groups: Mapping[str, Context] | None = None, symbol: Any = None):
        self.ctx, self.groups = ctx, dict(groups or {})
        attrs = symbol.attr_dict() if symbol is not None else {}
        self._shapes = {n: self.groups.get(a.get("__ctx_group__", ""), ctx) for n, a in attrs.items()}
        self._shards = {n: a["__shard__"] for n, a in attrs.items() if "__shard__" in a}
        self.args: dict[str, NDArray] = {}
        self.grads: dict[str, NDArray] = {}
        self.aux: dict[str, NDArray] = {}

    def get_or_create(
        self,
        table: dict[str, NDArray],
        name: str,
        shape: tuple[int, ...],
        dtype: Any,
        stype: str = "default",
        batch_axis: int = -1,
    ) -> NDArray:
        """Return the array `name` of a table, created on first use; its shape never changes.

        On a mesh it is cut as its variable is annotated; what has a batch axis and no annotation, along that.
        """
        found = table.get(name)
        if found is None:
            ctx = self._shapes.get(name, self.ctx)
            if ctx.mesh is not None:
                spec = self._shards.get(name) or data_parallel_spec(ctx, shape, batch_axis)
                found = table[name] = sharded_zeros(ctx, shape, dtype, spec, name)
            elif table is self.args and stype == "row_sparse":
                # A weight stores all its rows.
                found = table[name] = with_storage(zeros(shape, ctx=ctx, dtype=dtype), stype)
            else:
                found = table[name] = zeros(shape, ctx=ctx, dtype=dtype, stype=stype)
        elif found.shape != tuple(shape):
            raise MXNetError(
                f"Module: parameter {name!r} has shape {found.shape}, but {tuple(shape)} follows from these inputs; "
                "parameters must not depend on the shapes of the data"
            )
        return found


class ExecutorGroup:
    """The executors of one set of input shapes.

    Args:
        symbol: the network.
        devices: parameters of each context; arrays missing there are made.
        workload: share of the batch of each context.
        data_shapes, label_shapes: descriptions of whole batches.
        grad_reqs: `"write"`, `"add"` or `"null"` by argument name.
        param_names: the arguments that are parameters.
        state_names: inputs carried over between batches.
    """

    def __init__(
        self,
        symbol: Any,
        devices: Sequence[DeviceArrays],
        workload: Sequence[float],
        data_shapes: Sequence[DataDesc],
        label_shapes: Sequence[DataDesc],
        grad_reqs: Mapping[str, str],
        param_names: Sequence[str],
        state_names: Sequence[str],
    ):
        self.symbol, self.devices = symbol, devices
        self.data_shapes, self.label_shapes = list(data_shapes), list(label_shapes)
        self.grad_reqs, self.state_names = grad_reqs, state_names
        self.param_names = set(param_names)
        self.output_axes = [DataDesc.get_batch_axis(s.attr("__layout__")) for s in symbol]
        first = self.data_shapes[0]
        self.batch_size = first.shape[max(DataDesc.get_batch_axis(first.layout), 0)]
        self.slices = split_rows(self.batch_size, workload) if len(devices) > 1 else [slice(0, self.batch_size)]
        self._data_shapes = [d.shape for d in self.data_shapes]
        self._label_shapes = [d.shape for d in self.label_shapes]
        self.inputs = {d.name: d for d in (*self.data_shapes, *self.label_shapes)}
        self.execs = [self._bind(device, rows) for device, rows in zip(devices, self.slices, strict=True)]

    def _bind(self, device: DeviceArrays, rows: slice) -> Any:
        shapes, types = {}, {}
        for d in self.inputs.values():
            axis = DataDesc.get_batch_axis(d.layout)
            shape = list(d.shape)
            if axis >= 0 and len(self.devices) > 1:
                shape[axis] = rows.stop - rows.start
            shapes[d.name], types[d.name] = tuple(shape), as_dtype(d.dtype)
        arguments, states = self.symbol.list_arguments(), self.symbol.list_auxiliary_states()
        known = set(arguments)
        arg_shapes, _, aux_shapes = all_shapes(self.symbol, **{n: s for n, s in shapes.items() if n in known})
        if arg_shapes is None or aux_shapes is None:
            raise MXNetError(f"Module.bind: not all shapes follow from {shapes}; give the shapes of more inputs")
        arg_types, _, aux_types = self.symbol.infer_type(**{n: t for n, t in types.items() if n in known})
        args, grads = {}, {}
        stypes, grad_stypes = storage_types(topological(self.symbol.entries), {})
        for name, shape, dtype in zip(arguments, arg_shapes, arg_types, strict=True):
            shared = name in self.param_names
            table = device.args if shared else {}
            axis = DataDesc.get_batch_axis(self.inputs[name].layout) if name in self.inputs else -1
            args[name] = device.get_or_create(table, name, shape, dtype, stypes[name], axis)
            if self.grad_reqs.get(name, "null") != "null":
                table = device.grads if shared else {}
                grads[name] = device.get_or_create(table, name, shape, dtype, grad_stypes[name], axis)
        aux = {
            name: device.get_or_create(device.aux, name, shape, dtype)
            for name, shape, dtype in zip(states, aux_shapes, aux_types, strict=True)
        }
        reqs = {name: self.grad_reqs.get(name, "null") for name in arguments}
        return self.symbol.bind(
            device.ctx, args, args_grad=grads, grad_req=reqs, aux_states=aux, group2ctx=device.groups
        )

    def _part(self, value: NDArray, axis: int, rows: slice) -> NDArray:
        if len(self.devices) == 1 or axis < 0:
            return value
        return value[rows] if axis == 0 else nd.slice_axis(value, axis=axis, begin=rows.start, end=rows.stop)

    def matches_shapes(self, data: Sequence[NDArray], label: Sequence[NDArray]) -> bool:
        """True if a batch has the shapes that are bound."""
        return [a.shape for a in data] == self._data_shapes and [a.shape for a in label] == self._label_shapes

    def forward(self, data: Sequence[NDArray], label: Sequence[NDArray], is_train: bool) -> None:
        """Feed a batch and run all executors."""
        given = list(zip(self.data_shapes, data, strict=True))
        given += list(zip(self.label_shapes, label, strict=False))
        for desc, value in given:
            host = self._host(value, desc)
            for exe, rows in zip(self.execs, self.slices, strict=True):
                target = exe.arg_dict.get(desc.name)
                if target is None:
                    continue
                if host is None:
                    part = self._part(value, DataDesc.get_batch_axis(desc.layout), rows)
                else:
                    cut = (slice(None),) * DataDesc.get_batch_axis(desc.layout)
                    part = array(host[(*cut, rows)], ctx=target.context, dtype=value.dtype)
                if part.shape != target.shape:
                    raise ArgumentError(
                        f"Module.forward: input {desc.name!r} has shape {part.shape}: expected {target.shape}"
                    )
                part.copyto(target)
        # One scope for all: what is pending runs once, and then every executor records the same program.
        with recorded_training() if is_train and len(self.execs) > 1 else nullcontext():
            for exe in self.execs:
                exe.forward(is_train=is_train)

    def _host(self, value: NDArray, desc: DataDesc) -> Any:
        """Return a batch in host memory, where it is split without a program; `None` if it stays on its device."""
        several = len(self.devices) > 1 and DataDesc.get_batch_axis(desc.layout) >= 0
        return value.asnumpy() if several and value.context.device_type == "cpu" else None

    def backward(self, out_grads: Any) -> None:
        """Run all executors backward; `out_grads` as for one executor, of the complete batch."""
        for exe, rows in zip(self.execs, self.slices, strict=True):
            exe.backward(out_grads if len(self.devices) == 1 else self._seeds(out_grads, exe_context(exe), rows))

    def _seeds(self, out_grads: Any, ctx: Context, rows: slice) -> list[Any]:
        """Return the part of the head gradients for some rows; executors check it."""
        if isinstance(out_grads, Mapping):
            out_grads = [out_grads.get(name) for name in self.symbol.list_outputs()]
        given = list(out_grads or ())
        if len(given) > len(self.output_axes):
            raise ArgumentError(f"Module.backward: got {len(given)} out_grads for {len(self.output_axes)} outputs")
        return [
            self._part(g, axis, rows).as_in_context(ctx) if isinstance(g, NDArray) else g
            for g, axis in zip(given, self.output_axes, strict=False)
        ]

    def outputs(self, merge: bool) -> list[Any]:
        """Outputs, joined over the contexts if `merge`, else a list per output."""
        per_exec = [exe.outputs for exe in self.execs]
        return self._joined(per_exec, self.output_axes, merge)

    def input_grads(self, merge: bool) -> list[Any]:
        """Gradients of the inputs, joined or not like `outputs`."""
        names = [d.name for d in self.data_shapes]
        axes = [DataDesc.get_batch_axis(d.layout) for d in self.data_shapes]
        grads = [exe.grad_dict for exe in self.execs]
        return self._joined([[g[n] for n in names] for g in grads], axes, merge)

    def states(self, merge: bool) -> list[Any]:
        """Carried states, joined or not like `outputs`."""
        found = [[exe.arg_dict[n] for n in self.state_names] for exe in self.execs]
        return self._joined(found, [0] * len(self.state_names), merge)

    def _joined(self, per_exec: list[list[Any]], axes: list[int], merge: bool) -> list[Any]:
        columns = [list(c) for c in zip(*per_exec, strict=True)]
        if not merge:
            return columns
        if len(self.devices) == 1:
            return [c[0] for c in columns]
        return [
            nd.concatenate([x.as_in_context(c[0].context) for x in c], axis=axis) if axis >= 0 else c[0]
            for c, axis in zip(columns, axes, strict=True)
        ]

    def label_parts(self, labels: Sequence[NDArray], k: int) -> dict[str, NDArray]:
        """Labels by name, of context number `k`."""
        pairs = zip(self.label_shapes, labels, strict=False)
        rows = self.slices[k]
        return {d.name: self._part(value, DataDesc.get_batch_axis(d.layout), rows) for d, value in pairs}


def exe_context(exe: Any) -> Context:
    """Return the context of an executor's arrays."""
    return exe.arg_arrays[0].context


def _described(shapes: Any) -> list[DataDesc]:
    return [d if isinstance(d, DataDesc) else DataDesc(*d) for d in shapes or ()]


class DataParallelExecutorGroup:
    """A network bound on several contexts, each of which gets its part of every batch.

    Args:
        symbol: the network.
        contexts: where it runs.
        workload: share of the batch of each context; equal ones if None.
        data_shapes, label_shapes: descriptions of whole batches.
        param_names: the arguments that are parameters.
        for_training: gradients are kept.
        inputs_need_grad: gradients of the data are kept as well.
        shared_group: another group whose parameters this one uses.
        logger: accepted.
        fixed_param_names: parameters without gradients.
        grad_req: "write", "add" or "null", for all arguments or by name.
        state_names: inputs carried over between batches.
        group2ctxs: contexts by `ctx_group`, for each context.

    Example:
        >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
        >>> group = mx.module.executor_group.DataParallelExecutorGroup(
        ...     net, [mx.cpu()], None, [("data", (4, 3))], None, ["fc_weight", "fc_bias"], True, False
        ... )
        >>> group.get_output_shapes()
        [('fc_output', (4, 2))]
    """

    def __init__(
        self,
        symbol: Any,
        contexts: Sequence[Context],
        workload: Sequence[float] | None,
        data_shapes: Any,
        label_shapes: Any,
        param_names: Sequence[str],
        for_training: bool,
        inputs_need_grad: bool,
        shared_group: DataParallelExecutorGroup | None = None,
        logger: Any = logging,
        fixed_param_names: Sequence[str] | None = None,
        grad_req: str | Mapping[str, str] = "write",
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
    ):
        self.symbol, self.contexts, self.param_names = symbol, list(contexts), list(param_names)
        self.workload = list(workload or [1] * len(self.contexts))
        self.arg_names, self.aux_names = symbol.list_arguments(), symbol.list_auxiliary_states()
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self.state_names, self.fixed_param_names = list(state_names or ()), set(fixed_param_names or ())
        self.data_names = [d.name for d in _described(data_shapes)]
        self.label_names = [d.name for d in _described(label_shapes)]
        self.output_names, self.num_outputs = symbol.list_outputs(), len(symbol.list_outputs())
        self.group2ctxs, self._grad_req = group2ctxs, grad_req
        groups = group2ctxs or [None] * len(self.contexts)
        groups = [groups] * len(self.contexts) if isinstance(groups, Mapping) else groups
        self.devices = shared_group.devices if shared_group else [
            DeviceArrays(ctx, group, symbol) for ctx, group in zip(self.contexts, groups, strict=True)
        ]  # fmt: skip
        self.bind_exec(data_shapes, label_shapes, shared_group)

    def _reqs(self) -> dict[str, str]:
        wanted = {}
        for name in self.arg_names:
            given = self._grad_req if isinstance(self._grad_req, str) else self._grad_req.get(name, "null")
            known = name in self.param_names and name not in self.fixed_param_names
            asked = known or (self.inputs_need_grad and name in self.data_names)
            wanted[name] = given if self.for_training and asked else "null"
        return wanted

    def bind_exec(self, data_shapes: Any, label_shapes: Any, shared_group: Any = None, reshape: bool = False) -> None:
        """Bind the network for batches of these shapes."""
        self._show(ExecutorGroup(
            self.symbol, self.devices, self.workload, _described(data_shapes), _described(label_shapes), self._reqs(),
            self.param_names, self.state_names,
        ))  # fmt: skip

    def _show(self, group: ExecutorGroup) -> None:
        """Be the group of these executors from now on."""
        self._group, self.grad_req = group, {n: group.grad_reqs.get(n, "null") for n in self.arg_names}
        self.data_shapes, self.label_shapes = group.data_shapes, group.label_shapes
        self.execs, self.slices, self.batch_size = group.execs, group.slices, group.batch_size

    @classmethod
    def _of(cls, module: Any, group: ExecutorGroup) -> DataParallelExecutorGroup:
        """The executors of a module, which the module chooses."""
        self = cls.__new__(cls)
        self.symbol, self.contexts, self.workload = module._symbol, list(module.contexts), list(module._workload)
        self.param_names, self.state_names = list(module._param_names), list(module._state_names)
        self.arg_names, self.aux_names = self.symbol.list_arguments(), list(module._aux_names)
        self.data_names, self.label_names = list(module._data_names), list(module._label_names)
        self.output_names, self.num_outputs = self.symbol.list_outputs(), len(self.symbol.list_outputs())
        self.for_training, self.inputs_need_grad = module.for_training, module.inputs_need_grad
        self.fixed_param_names, self.group2ctxs = set(module._fixed), module._group2ctxs
        self._grad_req, self.devices = module._grad_req, module.devices
        self._show(group)
        return self

    def _inputs(self, names: Sequence[str]) -> list[list[tuple[slice, NDArray]]]:
        fed = [n for n in names if n in self.arg_names]
        return [[(r, exe.arg_dict[n]) for r, exe in zip(self.slices, self.execs, strict=True)] for n in fed]

    @property
    def data_arrays(self) -> list[list[tuple[slice, NDArray]]]:
        """Each input on every context, with the rows of the batch that it gets."""
        return self._inputs(self.data_names)

    @property
    def label_arrays(self) -> list[list[tuple[slice, NDArray]]] | None:
        """Each label on every context, likewise; `None` if labels are not bound."""
        return self._inputs(self.label_names) if self.label_shapes else None

    @property
    def input_grad_arrays(self) -> list[list[NDArray | None]] | None:
        """The gradient of each input on every context; `None` without."""
        if not self.inputs_need_grad:
            return None
        return [[exe.grad_dict[n] for exe in self.execs] for n in self.data_names]

    @property
    def state_arrays(self) -> list[list[NDArray]]:
        """Each carried state on every context."""
        return self._group.states(False)

    def reshape(self, data_shapes: Any, label_shapes: Any) -> None:
        """Bind for batches of other shapes; parameters stay."""
        self.bind_exec(data_shapes, label_shapes, reshape=True)

    def decide_slices(self, data_shapes: Any) -> list[int]:
        """Return the batch axis of each description."""
        return [DataDesc.get_batch_axis(d.layout) for d in _described(data_shapes)]

    @property
    def param_arrays(self) -> list[list[NDArray]]:
        """Each parameter on every context."""
        names = [n for n in self.arg_names if n in self.param_names]
        return [[d.args[n] for d in self.devices] for n in names]

    @property
    def grad_arrays(self) -> list[list[NDArray | None]]:
        """The gradient of each parameter on every context."""
        names = [n for n in self.arg_names if n in self.param_names]
        return [[d.grads.get(n) for d in self.devices] for n in names] if self.for_training else []

    @property
    def aux_arrays(self) -> list[list[NDArray]]:
        """Each auxiliary state on every context."""
        return [[d.aux[n] for d in self.devices] for n in self.aux_names]

    def set_params(
        self, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray], allow_extra: bool = False
    ) -> None:
        """Copy parameters to all contexts.

        Raises:
            ArgumentError: a name that the network has not, unless `allow_extra`.
        """
        for exe in self.execs:
            exe.copy_params_from(arg_params, aux_params, allow_extra_params=allow_extra)

    def get_params(self, arg_params: dict[str, NDArray], aux_params: dict[str, NDArray]) -> None:
        """Write the mean over the contexts of each parameter and state into the dicts."""
        for into, table in ((arg_params, "args"), (aux_params, "aux")):
            for name in getattr(self.devices[0], table):
                copies = [getattr(d, table)[name].as_in_context(self.contexts[0]) for d in self.devices]
                mean: NDArray = sum(copies[1:], copies[0]) / len(copies)  # type: ignore[assignment]
                if name in into:
                    mean.astype(into[name].dtype, copy=False).copyto(into[name])
                else:
                    into[name] = mean.copy()

    def forward(self, data_batch: DataBatch, is_train: bool | None = None) -> None:
        """Feed a batch and run all executors."""
        training = self.for_training if is_train is None else is_train
        self._group.forward(data_batch.data, data_batch.label or (), training)

    def backward(self, out_grads: Any = None) -> None:
        """Run all executors backward.

        Raises:
            ArgumentError: the group is not for training.
        """
        if not self.for_training:
            raise ArgumentError("backward: the group was bound with for_training=False")
        self._group.backward([out_grads] if isinstance(out_grads, NDArray) else out_grads)

    def get_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Return names and full-batch shapes of the outputs."""
        found = []
        for name, out, axis in zip(
            self.symbol.list_outputs(), self.execs[0].outputs, self._group.output_axes, strict=True
        ):
            shape = list(out.shape)
            if axis >= 0:
                shape[axis] = self.batch_size
            found.append((name, tuple(shape)))
        return found

    def get_outputs(self, merge_multi_context: bool = True, begin: int = 0, end: int | None = None) -> list[Any]:
        """Return outputs, joined over the contexts or as a list for each output."""
        return self._group.outputs(merge_multi_context)[begin:end]

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the gradients of the data.

        Raises:
            ArgumentError: the group was bound without.
        """
        if not self.inputs_need_grad:
            raise ArgumentError("get_input_grads: the group was bound with inputs_need_grad=False")
        return self._group.input_grads(merge_multi_context)

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the carried states."""
        return self._group.states(merge_multi_context)

    def set_states(self, states: Any = None, value: float | None = None) -> None:
        """Set the carried states to arrays (a list for each, one for each context), or to a number."""
        if (states is None) == (value is None):
            raise ArgumentError("set_states: expected states or value, one of them")
        for i, name in enumerate(self.state_names):
            for k, exe in enumerate(self.execs):
                exe.arg_dict[name][:] = value if states is None else states[i][k]

    def update_metric(self, eval_metric: EvalMetric, labels: Any, pre_sliced: bool = False) -> None:
        """Add the outputs of all contexts to a metric."""
        for k, exe in enumerate(self.execs):
            if pre_sliced:
                parts = dict(zip([d.name for d in self.label_shapes], labels[k], strict=False))
            else:
                parts = self._group.label_parts(labels, k)
            eval_metric.update_dict(parts, dict(zip(self.symbol.list_outputs(), exe.outputs, strict=True)))

    def install_monitor(self, mon: Any) -> None:
        """Let a monitor watch all executors."""
        for exe in self.execs:
            mon.install(exe)


__all__ = ["DataParallelExecutorGroup"]
