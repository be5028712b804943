"""`SVRGModule`: gradients corrected by the full gradient at an earlier point."""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ...module import Module
from ...namespace import nd
from ...ndarray import NDArray


class SVRGModule(Module):
    """Stochastic variance-reduced gradient (Johnson and Zhang, 2013).

    Every `update_freq` epochs the gradient over all data is taken at the present parameters w~. Until the next time,
    a step uses `g(w) - g(w~) + mean gradient at w~`, whose variance vanishes as w approaches w~. (MXNet added each pass
    to the mean of the pass before; here every mean is of one pass.)

    Args:
        update_freq: epochs between two passes over all data.
        symbol, ...: see `Module`.

    Raises:
        ArgumentTypeError: `update_freq` is no whole number. ArgumentError: it is below 1.
    """

    def __init__(
        self,
        symbol: Any,
        data_names: Any = ("data",),
        label_names: Any = ("softmax_label",),
        logger: Any = None,
        context: Any = None,
        work_load_list: Any = None,
        fixed_param_names: Any = None,
        state_names: Any = None,
        group2ctxs: Any = None,
        compression_params: Any = None,
        update_freq: Any = None,
    ):
        if not isinstance(update_freq, int) or isinstance(update_freq, bool):
            raise ArgumentTypeError(f"SVRGModule: update_freq={update_freq!r}: expected a number of epochs")
        if update_freq < 1:
            raise ArgumentError(f"SVRGModule: update_freq={update_freq}: expected at least 1")
        settings = {"logger": logger} if logger is not None else {}
        settings.update(context=context, work_load_list=work_load_list, fixed_param_names=fixed_param_names)
        settings.update(state_names=state_names, group2ctxs=group2ctxs, compression_params=compression_params)
        super().__init__(symbol, data_names, label_names, **settings)
        self.update_freq = update_freq
        self._mod_aux = Module(symbol, data_names, label_names, **settings)
        # Per context, the mean gradient at w~ by parameter; empty before the first pass.
        self._param_dict: list[dict[str, NDArray]] = [{} for _ in self.contexts]

    def bind(
        self,
        data_shapes: Any,
        label_shapes: Any = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: Any = None,
        grad_req: Any = "write",
    ) -> None:
        super().bind(data_shapes, label_shapes, for_training, inputs_need_grad, force_rebind, shared_module, grad_req)
        if for_training:
            self._mod_aux.bind(data_shapes, label_shapes, for_training, inputs_need_grad, force_rebind, None, grad_req)

    def reshape(self, data_shapes: Any, label_shapes: Any = None) -> None:
        super().reshape(data_shapes, label_shapes)
        self._mod_aux.reshape(data_shapes, label_shapes)

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        super().forward(data_batch, is_train)
        if self._param_dict[0] and (self.for_training if is_train is None else is_train):
            self._mod_aux.forward(data_batch, is_train)

    def backward(self, out_grads: Any = None) -> None:
        super().backward(out_grads)
        if self._param_dict[0]:
            self._mod_aux.backward(out_grads)

    def update(self) -> None:
        """Correct the gradients and update the parameters."""
        for mine, other, means in zip(self.devices, self._mod_aux.devices, self._param_dict, strict=True):
            for name, mean in means.items():
                mine.grads[name] += mean - other.grads[name]
        super().update()

    def update_full_grads(self, train_data: Any) -> None:
        """Take the present parameters as w~ and compute the mean gradient over all batches of an iterator.

        Raises:
            MXNetError: the iterator has no batches.
        """
        arg_params, aux_params = self.get_params()
        self._mod_aux.init_params(arg_params=arg_params, aux_params=aux_params, force_init=True)
        train_data.reset()
        sums: list[dict[str, NDArray]] = [{} for _ in self.contexts]
        batches = 0
        for batch in train_data:
            self._mod_aux.forward(batch, is_train=True)
            self._mod_aux.backward()
            batches += 1
            for device, total in zip(self._mod_aux.devices, sums, strict=True):
                for name, grad in device.grads.items():
                    total[name] = grad.copy() if name not in total else total[name] + grad
            nd.waitall()
        train_data.reset()
        if not batches:
            raise MXNetError("SVRGModule.update_full_grads: train_data has no batches")
        self._param_dict = [{name: total / batches for name, total in device.items()} for device in sums]

    def train_epoch(self, epoch: int, train_data: Any, *rest: Any) -> list[tuple[str, float]]:
        if epoch % self.update_freq == 0:
            self.update_full_grads(train_data)
        return super().train_epoch(epoch, train_data, *rest)


__all__ = ["SVRGModule"]
