"""Modules written in Python: `PythonModule` without parameters, `PythonLossModule` at the end of a chain."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from ..core.errors import ArgumentError, MXNetError
from ..io import DataBatch, DataDesc
from ..io.data_batch import parse_descs
from ..ndarray import NDArray, array
from .base_module import SMALL_UNIFORM, BaseModule


class PythonModule(BaseModule):
    """A module without parameters; subclasses define `forward`, `backward`, `get_outputs` and `get_input_grads`.

    Args:
        data_names, label_names, output_names: names of inputs, labels and outputs.
        logger: where progress is logged.
    """

    def __init__(
        self,
        data_names: Sequence[str],
        label_names: Sequence[str] | None,
        output_names: Sequence[str],
        logger: Any = logging,
    ):
        super().__init__(logger)
        self._data_names, self._label_names = list(data_names), list(label_names or ())
        self._output_names = list(output_names)
        self._data_shapes: list[DataDesc] = []
        self._label_shapes: list[DataDesc] = []
        self._output_shapes: list[tuple[str, tuple[int, ...]]] = []

    @property
    def data_names(self) -> list[str]:
        return self._data_names

    @property
    def output_names(self) -> list[str]:
        return self._output_names

    @property
    def data_shapes(self) -> list[Any]:
        return self._data_shapes

    @property
    def label_shapes(self) -> list[Any] | None:
        return self._label_shapes or None

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        return self._output_shapes

    def _compute_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Return `(name, shape)` of the outputs, from `data_shapes`; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define _compute_output_shapes()")

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
        """Remember the shapes.

        Raises:
            ArgumentError: names that are not those of the module.
        """
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        data, label = parse_descs(data_shapes), parse_descs(label_shapes)
        if [d.name for d in data] != self._data_names or (label and [d.name for d in label] != self._label_names):
            raise ArgumentError(
                f"{type(self).__name__}.bind: got inputs {[d.name for d in data]}, labels {[d.name for d in label]}: "
                f"expected {self._data_names} and {self._label_names}"
            )
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self._data_shapes, self._label_shapes = data, label
        self._output_shapes = self._compute_output_shapes()
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
        """Nothing: there are no parameters."""
        self.params_initialized = True

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Return two empty dicts."""
        return {}, {}

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        """Nothing: there is nothing to update."""
        self.optimizer_initialized = True

    def update(self) -> None:
        """Nothing: there are no parameters."""

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Add the outputs to a metric, if there are labels."""
        if self._label_shapes:
            eval_metric.update(labels[0] if pre_sliced else labels, self.get_outputs())

    def install_monitor(self, mon: Any) -> None:
        """Nothing: there is no executor."""


class PythonLossModule(PythonModule):
    """A loss whose gradient is a Python function; its output is its input, the scores.

    Args:
        name: prefix of the output's name.
        data_names, label_names: one input, the scores, and one label.
        logger: where progress is logged.
        grad_func: `grad_func(scores, labels)` returns the gradient of the loss with respect to the scores.

    Example:
        >>> loss = PythonLossModule(grad_func=lambda scores, labels: scores - labels, label_names=["target"])
        >>> loss.bind([("data", (2, 1))], [("target", (2, 1))])
        >>> loss.forward(mx.io.DataBatch([nd.array([[3], [5]])], [nd.array([[1], [1]])]), is_train=True)
        >>> loss.backward()
        >>> loss.get_input_grads()[0].asnumpy().tolist()
        [[2.0], [4.0]]
    """

    def __init__(
        self,
        name: str = "pyloss",
        data_names: Sequence[str] = ("data",),
        label_names: Sequence[str] = ("softmax_label",),
        logger: Any = logging,
        grad_func: Callable[[NDArray, NDArray], Any] | None = None,
    ):
        super().__init__(data_names, label_names, [f"{name}_output"], logger)
        if len(self._data_names) != 1 or len(self._label_names) != 1:
            raise ArgumentError("PythonLossModule: expected one name in data_names, and one in label_names")
        self._grad_func = grad_func
        self._scores: NDArray | None = None
        self._labels: NDArray | None = None
        self._scores_grad: NDArray | None = None

    def _compute_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        return [(self._output_names[0], self._data_shapes[0].shape)]

    def forward(self, data_batch: DataBatch, is_train: bool | None = None) -> None:
        """Keep the scores, and in training mode the labels."""
        self._scores = data_batch.data[0]
        if self.for_training if is_train is None else is_train:
            if not data_batch.label:
                raise MXNetError("PythonLossModule.forward: the batch has no label; add it with take_labels=True")
            self._labels = data_batch.label[0]

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the scores."""
        return [self._scores]

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradient of the loss.

        Raises:
            ArgumentError: `out_grads`, which a loss does not take.
        """
        if out_grads is not None:
            raise ArgumentError("PythonLossModule.backward: out_grads: a loss takes none; it is the end of the chain")
        self._require("for_training")
        self._backward_impl()

    def _backward_impl(self) -> None:
        """Set `_scores_grad` from `_scores` and `_labels`; subclasses without `grad_func` define it."""
        if self._grad_func is None:
            raise NotImplementedError(f"{type(self).__name__}: pass grad_func=, or define _backward_impl()")
        assert self._scores is not None and self._labels is not None
        grad = self._grad_func(self._scores, self._labels)
        self._scores_grad = grad if isinstance(grad, NDArray) else array(grad)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the gradient of the scores."""
        return [self._scores_grad]


__all__ = ["PythonLossModule", "PythonModule"]
