"""`DataParallel`: a network on several devices of this process, optionally with fully sharded parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ... import autograd
from ...compile.devices import local_devices
from ...core.context import Context
from ...core.errors import ArgumentError, ArgumentTypeError
from ...namespace import nd
from ...ndarray import NDArray
from ..base_block import Block
from ..batch_split import split_and_load
from ..hybrid import HybridBlock
from ..parameter import Parameter

_NAMED = re.compile(r"(?:.*/)?(?:device:)?(cpu|gpu|tpu|cuda)[:(](\d+)\)?", re.IGNORECASE)


def devices(wanted: Any = None, what: str = "devices") -> list[Context]:
    """Return contexts.

    Args:
        wanted: `None` for all accelerators, or all devices that the CPU is split into if there are none; a number of
            these; or contexts, numbers of accelerators (of CPU devices without one) or names such as `"gpu:0"`,
            `"/gpu:0"`, `"cuda:0"` in a list.
        what: the argument that errors name.

    Raises:
        ArgumentError: a device that is not there, one named twice, or another text. ArgumentTypeError: something else.

    Example:
        >>> devices(["cpu:0"])
        [cpu(0)]
        >>> devices([mx.cpu(0), mx.cpu(1)])
        [cpu(0), cpu(1)]
    """
    kind = next((k for k in ("gpu", "tpu") if local_devices(k)), "cpu")
    if wanted is None:
        return [Context(kind, i) for i in range(len(local_devices(kind)))]
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        if wanted < 1:
            raise ArgumentError(f"{what}: {wanted}: expected a number of 1 or more, or a list")
        return [_present(Context(kind, i), f"{wanted} devices", what) for i in range(wanted)]
    listed = [wanted] if isinstance(wanted, (str, Context)) else list(wanted) if isinstance(wanted, Iterable) else None
    if listed is None:
        raise ArgumentTypeError(f"{what}: {wanted!r}: expected contexts, numbers or names such as 'gpu:0' in a list")
    if not listed:
        raise ArgumentError(f"{what}: []: expected at least one device")
    found = [_context(one, kind, what) for one in listed]
    twice = [c for c in found if found.count(c) > 1]
    if twice:
        raise ArgumentError(f"{what}: {twice[0]} is named twice")
    return found


def _context(one: Any, kind: str, what: str) -> Context:
    if isinstance(one, Context):
        # MXNet lets CPU contexts share devices.
        return one if one.device_type.startswith("cpu") else _present(one, repr(str(one)), what)
    if isinstance(one, int) and not isinstance(one, bool):
        return _present(Context(kind, one), repr(one), what)
    if not isinstance(one, str):
        raise ArgumentTypeError(f"{what}: {one!r}: expected a context, a number or a name such as 'gpu:0'")
    match = _NAMED.fullmatch(one.strip())
    if not match:
        raise ArgumentError(f"{what}: {one!r}: expected a name such as 'cpu:0', 'gpu:1' or '/gpu:1'")
    named = match[1].lower().replace("cuda", "gpu")
    return _present(Context(named, int(match[2])), repr(one), what)


def _present(ctx: Context, said: str, what: str) -> Context:
    if ctx.device_id < len(local_devices(ctx.device_type)):
        return ctx
    there = ", ".join(f"{len(local_devices(k))} {k}" for k in ("cpu", "gpu", "tpu") if local_devices(k))
    remedy = "name one of these"
    if ctx.device_type == "cpu":
        remedy = (
            f"set XLA_FLAGS=--xla_force_host_platform_device_count={ctx.device_id + 1} before the program starts to "
            "split the CPU into more"
        )
    raise ArgumentError(f"{what}: {said}: there is no such device; this process has {there}. Please {remedy}")


def rest(params: Iterable[Parameter], contexts: Iterable[Context]) -> None:
    """Let contexts that get no rows of a batch contribute nothing to its gradients, which counts as a backward pass.

    Call it before the backward pass of the other contexts.

    Args:
        params: initialized parameters.
        contexts: those without rows.
    """
    idle = list(contexts)
    for param in params if idle else ():
        if param.grad_req != "null":
            for ctx in idle:
                array = param.data(ctx)
                if param.grad_req == "write":
                    param.grad(ctx)[:] = 0
                array.has_fresh_grad = True


class DataParallel(Block):
    """Split each batch over devices, compute the parts there, and return the outputs joined on one of them.

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
        if any(p.is_initialized or p.is_deferred for p in params.values()):
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
            lengths = ", ".join(map(str, sorted(rows)))
            raise ArgumentError(f"DataParallel: inputs of {lengths} rows; expected equally many")
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
        return there[0].wrap_array(nd.concat(*there, dim=self.dim))


def fully_shard(block: Block, axis: str = "data", min_size: int = 1) -> Block:
    """Store every parameter of a block sharded along an axis of its mesh, mostly the batch axis.

    Each parameter is cut along one more of its axes, the one with the largest parts that divide. A `HybridBlock`
    gathers its parameters when it computes with them; hybridized, it gathers them once more in the backward pass, and
    does not keep them in between. Gradients and optimizer states are cut as the parameters are (ZeRO-3, FSDP).
    Parameters that cannot be cut stay whole, and so do statistics, which layers write themselves.

    Args:
        block: initialized already, or not yet.
        axis: name of an axis of the mesh.
        min_size: parameters of fewer elements stay whole.

    Returns:
        The block.

    Raises:
        ArgumentError: the block is on a mesh without that axis. Before initialization, `initialize` raises it.

    Example:
        >>> import dualmx as mx
        >>> net = mx.gluon.parallel.fully_shard(mx.gluon.nn.Dense(4, in_units=8))
        >>> net.initialize(ctx=mx.parallel.Mesh({"data": 1}))
        >>> net.weight.data().sharding
        (None, 'data')
    """
    if not isinstance(axis, str) or not axis:
        raise ArgumentError(f"fully_shard: axis={axis!r}: expected the name of an axis of a mesh")
    for param in block.collect_params().values():
        shape = param.shape or ()
        size = 1
        for n in shape:
            size *= n
        if param._differentiable and (size >= min_size or min(shape, default=0) <= 0):
            param._shard_along(axis)

    def mark(part: Any) -> None:
        if isinstance(part, HybridBlock):
            part._holds_shards = any(p._extra_shard_axis for p in part._reg_params.values())
            part._clear_cached_op()

    block.apply(mark)
    return block
