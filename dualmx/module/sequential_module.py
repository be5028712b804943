"""`SequentialModule`: a chain of modules."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from ..core.errors import ArgumentError, MXNetError, suggest
from ..io import DataBatch, DataDesc
from ..io.data_batch import parse_descs
from ..ndarray import NDArray
from .base_module import SMALL_UNIFORM, BaseModule, fused_step


class SequentialModule(BaseModule):
    """Runs modules one after the other, and their gradients backwards.

    Args:
        logger: where progress is logged.

    Example:
        >>> features = mx.mod.Module(sym.FullyConnected(sym.var("data"), num_hidden=8, name="first"), label_names=None)
        >>> scores = sym.FullyConnected(sym.var("data"), num_hidden=2, name="second")
        >>> classifier = mx.mod.Module(sym.SoftmaxOutput(scores, name="softmax"))
        >>> chain = SequentialModule().add(features).add(classifier, take_labels=True, auto_wiring=True)
        >>> chain.bind([("data", (4, 3))], [("softmax_label", (4,))])
        >>> [(name, tuple(shape)) for name, shape in chain.output_shapes]
        [('softmax_output', (4, 2))]
    """

    META_TAKE_LABELS = "take_labels"
    META_AUTO_WIRING = "auto_wiring"

    def __init__(self, logger: Any = logging):
        super().__init__(logger)
        self._modules: list[BaseModule] = []
        self._metas: list[dict[str, Any]] = []
        self._label_shapes: list[DataDesc] | None = None

    def add(self, module: BaseModule, **kwargs: Any) -> SequentialModule:
        """Append a module; returns the chain.

        Args:
            module: the module.
            kwargs: `take_labels=True` hands it the labels; `auto_wiring=True` renames its inputs to the names of the
                outputs before it.

        Raises:
            ArgumentError: another keyword.
        """
        known = (self.META_TAKE_LABELS, self.META_AUTO_WIRING)
        for key in kwargs:
            if key not in known:
                raise ArgumentError(f"SequentialModule.add: unknown keyword {key!r}; {suggest(key, known)}")
        self._modules.append(module)
        self._metas.append(kwargs)
        self.binded = self.params_initialized = self.optimizer_initialized = False
        return self

    def _labelled(self, index: int) -> bool:
        return bool(self._metas[index].get(self.META_TAKE_LABELS))

    # ---- descriptions

    @property
    def data_names(self) -> list[str]:
        return self._modules[0].data_names if self._modules else []

    @property
    def output_names(self) -> list[str]:
        return self._modules[-1].output_names if self._modules else []

    @property
    def data_shapes(self) -> list[Any]:
        self._require("binded")
        return self._modules[0].data_shapes

    @property
    def label_shapes(self) -> list[Any] | None:
        self._require("binded")
        return self._label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        self._require("binded")
        return self._modules[-1].output_shapes

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
        """Lay out memory for all modules, the shapes of each following from the one before.

        Raises:
            MXNetError: there is no module. ArgumentError: a shared module.
        """
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if shared_module is not None:
            raise ArgumentError("SequentialModule.bind: shared_module is not supported")
        if not self._modules:
            raise MXNetError("SequentialModule.bind: there is no module; call add() first")
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        shapes: Sequence[Any] = data_shapes
        for i, module in enumerate(self._modules):
            if i and self._metas[i].get(self.META_AUTO_WIRING):
                names = module.data_names
                if len(names) != len(shapes):
                    raise MXNetError(
                        f"SequentialModule.bind: module {i} has inputs {names}, but the one before has "
                        f"{len(shapes)} outputs"
                    )
                shapes = [(n, shape) for n, (_, shape) in zip(names, shapes, strict=True)]
            module.bind(
                shapes,
                label_shapes if self._labelled(i) else None,
                for_training,
                inputs_need_grad or (for_training and i > 0),
                force_rebind=True,
                grad_req=grad_req,
            )
            shapes = module.output_shapes
        takes = any(self._labelled(i) for i in range(len(self._modules)))
        self._label_shapes = parse_descs(label_shapes) if takes else None
        self.binded = True

    def init_params(
        self,
        initializer: Any = SMALL_UNIFORM,
        arg_params: dict[str, NDArray] | None = None,
        aux_params: dict[str, NDArray] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Give values to the parameters of all modules.

        Raises:
            MXNetError: two modules have parameters of one name.
        """
        if self.params_initialized and not force_init:
            return
        self._require("binded")
        seen: dict[str, int] = {}
        for i, module in enumerate(self._modules):
            module.init_params(initializer, arg_params, aux_params, allow_missing, force_init, allow_extra)
            for name in (n for table in module.get_params() for n in table):
                if name in seen:
                    raise MXNetError(f"SequentialModule: modules {seen[name]} and {i} both have a parameter {name!r}")
                seen[name] = i
        self.params_initialized = True

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        self._require("binded", "params_initialized")
        arg_params, aux_params = {}, {}
        for module in self._modules:
            args, states = module.get_params()
            arg_params.update(args)
            aux_params.update(states)
        return arg_params, aux_params

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        self._require("binded", "params_initialized")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring.")
            return
        for module in self._modules:
            module.init_optimizer(kvstore, optimizer, optimizer_params, force_init)
        self.optimizer_initialized = True

    # ---- steps

    def prepare(self, data_batch: DataBatch, sparse_row_id_fn: Callable[..., Any] | None = None) -> None:
        """Nothing: what later modules receive is only known after the earlier ones have run."""

    def forward(self, data_batch: DataBatch, is_train: bool | None = None) -> None:
        self._require("binded", "params_initialized")
        batch = data_batch
        for i, module in enumerate(self._modules):
            module.forward(batch, is_train)
            if i + 1 < len(self._modules):
                outputs = module.get_outputs()
                names = self._modules[i + 1].data_names
                batch = DataBatch(
                    outputs,
                    data_batch.label if self._labelled(i + 1) else None,
                    data_batch.pad,
                    data_batch.index,
                    provide_data=[DataDesc(n, x.shape, x.dtype) for n, x in zip(names, outputs, strict=True)],
                    provide_label=data_batch.provide_label,
                )

    def backward(self, out_grads: Any = None) -> None:
        self._require("binded", "params_initialized")
        for i in reversed(range(len(self._modules))):
            self._modules[i].backward(out_grads)
            if i:
                out_grads = self._modules[i].get_input_grads()

    def update(self) -> None:
        self._require("binded", "params_initialized", "optimizer_initialized")
        with fused_step():
            for module in self._modules:
                module.update()

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        self._require("binded", "params_initialized")
        return self._modules[-1].get_outputs(merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        self._require("binded", "params_initialized", "inputs_need_grad")
        return self._modules[0].get_input_grads(merge_multi_context)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        for i, module in enumerate(self._modules):
            if self._labelled(i):
                module.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Any) -> None:
        self._require("binded")
        for module in self._modules:
            module.install_monitor(mon)


__all__ = ["SequentialModule"]
