"""The executors of a module as an object of their own, under MXNet's name."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.context import Context
from ..core.errors import ArgumentError
from ..io import DataBatch, DataDesc
from ..metric import EvalMetric
from ..ndarray import NDArray
from .executors import DeviceArrays, ExecutorGroup


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
        self.symbol, self.contexts, self.workload = module._symbol, list(module._contexts), list(module._workload)
        self.param_names, self.state_names = list(module._param_names), list(module._state_names)
        self.arg_names, self.aux_names = self.symbol.list_arguments(), list(module._aux_names)
        self.data_names, self.label_names = list(module._data_names), list(module._label_names)
        self.output_names, self.num_outputs = self.symbol.list_outputs(), len(self.symbol.list_outputs())
        self.for_training, self.inputs_need_grad = module.for_training, module.inputs_need_grad
        self.fixed_param_names, self.group2ctxs = set(module._fixed), module._group2ctxs
        self._grad_req, self.devices = module._grad_req, module._devices
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
        """Return names and whole-batch shapes of the outputs."""
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
