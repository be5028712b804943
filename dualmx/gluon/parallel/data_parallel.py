"""`DataParallel`: one network on several devices of this process, called like one on a single device."""

from __future__ import annotations

from typing import Any

from ... import autograd
from ...core.context import Context
from ...core.errors import ArgumentError, ArgumentTypeError
from ...namespace import nd
from ...ndarray import NDArray
from ..base import Block
from ..split import split_and_load
from .devices import devices, rest


class DataParallel(Block):
    """Cut each batch over devices, compute the parts there, and return the outputs joined on one of them.

    A loss of the joined output has the gradients of one device with the whole batch; a `Trainer` adds up the parts.
    Loops that keep the parts apart (`split_and_load`, see the page on several devices) copy less between devices.

    Args:
        module: the network. Its parameters move to the devices, or are initialized there.
        device_ids: contexts, numbers or names of devices; all accelerators (or devices of the CPU) by default.
        output_device: where the outputs are joined; the first device by default.
        dim: the axis of inputs and outputs that counts the rows.

    Raises:
        ArgumentError: a device that is not there. ArgumentTypeError: not a Block.

    Example:
        >>> import dualmx as mx
        >>> net = DataParallel(mx.gluon.nn.Dense(2, in_units=3), [mx.cpu(0), mx.cpu(1)])
        >>> net.initialize()
        >>> net(mx.nd.ones((5, 3))).shape
        (5, 2)
    """

    def __init__(self, module: Block, device_ids: Any = None, output_device: Any = None, dim: int = 0):
        super().__init__(prefix="")
        if not isinstance(module, Block):
            raise ArgumentTypeError(f"DataParallel: module of type {type(module).__name__}: expected a Block")
        self.contexts = devices(device_ids, "DataParallel: device_ids")
        self.output_device = self.contexts[0]
        if output_device is not None:
            self.output_device = devices([output_device], "DataParallel: output_device")[0]
        self.dim = dim
        self.module = module
        params = module.collect_params()
        if any(p._data is not None or p._deferred_init for p in params.values()):
            params.reset_ctx(self.contexts)

    def initialize(self, init: Any = None, ctx: Any = None, verbose: bool = False, force_reinit: bool = False) -> None:
        """Initialize all parameters, on the devices of this wrapper.

        Args:
            init, verbose, force_reinit: see `Block.initialize`.
            ctx: left out, or the same devices.

        Raises:
            ArgumentError: other devices.
        """
        if ctx is not None and ([ctx] if isinstance(ctx, Context) else list(ctx)) != self.contexts:
            raise ArgumentError(f"DataParallel.initialize: ctx={ctx}: the network is on {self.contexts}; leave it out")
        super().initialize(init, self.contexts, verbose, force_reinit)

    def forward(self, *args: Any) -> Any:
        """Compute the network on the parts of the inputs; what is not an array is handed to all parts.

        Raises:
            ArgumentError: no array among the inputs, or arrays with different numbers of rows.
        """
        arrays = [a for a in args if isinstance(a, NDArray)]
        if not arrays or any(a.ndim == 0 for a in arrays):
            raise ArgumentError("DataParallel: expected at least one array among the inputs, all with an axis of rows")
        rows = {a.shape[self.dim] for a in arrays}
        if len(rows) > 1:
            told = ", ".join(map(str, sorted(rows)))
            raise ArgumentError(f"DataParallel: inputs of {told} rows; expected equally many")
        used = self.contexts[: max(1, rows.pop())]
        parts = [
            split_and_load(a, used, self.dim, even_split=False) if isinstance(a, NDArray) else [a] * len(used)
            for a in args
        ]
        outs = [self.module(*own) for own in zip(*parts, strict=True)]
        if autograd.is_recording() and len(used) < len(self.contexts):
            with autograd.pause():
                rest(self.collect_params().values(), self.contexts[len(used) :])
        return self._joined(outs)

    def _joined(self, outs: list[Any]) -> Any:
        if isinstance(outs[0], (list, tuple)):
            return type(outs[0])(self._joined(list(group)) for group in zip(*outs, strict=True))
        there = [o.as_in_context(self.output_device) for o in outs]
        if len(there) == 1:
            return there[0]
        if there[0].ndim == 0:
            raise ArgumentError("DataParallel: the network returns numbers without rows; expected arrays with rows")
        return nd.concat(*there, dim=self.dim)
