"""A block in another process: inputs, outputs and gradients travel."""

from __future__ import annotations

import itertools
from typing import Any

from ... import autograd
from ...core.errors import ArgumentError, ArgumentTypeError
from ...namespace import nd
from ...ndarray import NDArray
from ...parallel import rpc
from ..base_block import Block


class _HostedBlock:
    """A block of this process that another one uses.

    Attributes:
        open: by number of the call, inputs and outputs of forward passes whose backward pass may come.
    """

    def __init__(self, block: Block):
        self.block = block
        self.trainer: Any = None
        self.open: dict[int, tuple[list[NDArray], list[NDArray]]] = {}
        self.numbers = itertools.count()

    def forward(self, inputs: list[NDArray], train: bool, record: bool) -> tuple[int, list[NDArray]]:
        """Run the block; returns the number of the call and the outputs."""
        params = list(self.block.collect_params().values())
        given = [x.as_in_context(params[0].list_ctx()[0]) for x in inputs] if params else inputs
        if not record:
            with autograd.train_mode() if train else autograd.predict_mode():
                return -1, _several(self.block(*given))
        for x in given:
            x.attach_grad()
        with autograd.record(train_mode=train):
            outputs = _several(self.block(*given))
        number = next(self.numbers)
        self.open[number] = (given, outputs)
        return number, outputs

    def backward(self, number: int, gradients: list[NDArray]) -> list[NDArray]:
        """Return the gradients of the inputs of a call, and add those of the parameters to theirs."""
        if number not in self.open:
            raise ArgumentError(f"backward: there is no forward pass {number}; each has one backward pass")
        inputs, outputs = self.open.pop(number)
        autograd.backward(outputs, [g.as_in_context(o.context) for g, o in zip(gradients, outputs, strict=True)])
        return [x.grad for x in inputs if x.grad is not None]


def _several(out: Any) -> list[NDArray]:
    return list(out) if isinstance(out, (list, tuple)) else [out]


def _make(name: str, args: list[Any], named: dict[str, Any]) -> _HostedBlock:
    block = rpc.registered(name)(*args, **named)
    if not isinstance(block, Block):
        raise ArgumentTypeError(f"{name!r} returned a {type(block).__name__}: expected an initialized Block")
    return _HostedBlock(block)


def _train_with(hosted: _HostedBlock, optimizer: str, settings: dict[str, Any]) -> None:
    from ..trainer import Trainer

    hosted.trainer = Trainer(hosted.block.collect_params(), optimizer, settings)


def _step(hosted: _HostedBlock, batch_size: int, learning_rate: float | None) -> None:
    if hosted.trainer is None:
        raise ArgumentError("step: call train_with() first")
    if learning_rate is not None:
        hosted.trainer.set_learning_rate(learning_rate)
    hosted.trainer.step(batch_size)


def _parameters(hosted: _HostedBlock) -> dict[str, NDArray]:
    return {name: p._reduce() for name, p in hosted.block._collect_params_with_prefix().items()}


rpc.register("block.make", _make)
rpc.register("block.forward", lambda held, inputs, train, record: held.forward(inputs, train, record))
rpc.register("block.backward", lambda held, number, gradients: held.backward(number, gradients))
rpc.register("block.train_with", _train_with)
rpc.register("block.step", _step)
rpc.register("block.parameters", _parameters)
rpc.register("block.zero_grad", lambda held: held.block.collect_params().zero_grad())


class _RemoteCall(autograd.Function):
    """One recorded call of a remote block."""

    def __init__(self, remote: RemoteBlock):
        super().__init__()
        self.remote = remote

    def forward(self, anchor: NDArray, *inputs: NDArray) -> Any:
        self.anchor, self.inputs = anchor, inputs
        self.number, outputs = self.remote._ask("forward", list(inputs), autograd.is_training(), True)
        outputs = [o.as_in_context(inputs[0].context) for o in outputs]
        return outputs[0] if len(outputs) == 1 else outputs

    def backward(self, *gradients: NDArray) -> Any:
        found = self.remote._ask("backward", self.number, list(gradients))
        return [
            nd.zeros_like(self.anchor),
            *(g.as_in_context(x.context) for g, x in zip(found, self.inputs, strict=True)),
        ]


class RemoteBlock(Block):
    """A block that another process stores and computes, used like a local one.

    Outputs travel here, and in the backward pass their gradients travel there, where those of the parameters stay. The
    other process only has to call `parallel.rpc.start()` and `parallel.rpc.stop()`.

    Args:
        to: number of the process.
        name: of a function registered there by `parallel.rpc.register`, which returns an initialized block.
        args, named: for that function.

    Shapes: as the block's; inputs and outputs are arrays.

    Raises:
        ArgumentError: no such process or function. ArgumentTypeError: it returns no block.

    Example:
        >>> import dualmx as mx
        >>> @mx.parallel.rpc.register("layer")
        ... def layer(units):
        ...     net = mx.gluon.nn.Dense(units, in_units=3)
        ...     net.initialize()
        ...     return net
        >>> net = mx.gluon.parallel.RemoteBlock(0, "layer", 2)
        >>> net.train_with("sgd", learning_rate=0.1)
        >>> with mx.autograd.record():
        ...     loss = (net(mx.nd.ones((4, 3))) ** 2).sum()
        >>> loss.backward()
        >>> net.step(4)
        >>> sorted(net.parameters())
        ['bias', 'weight']
    """

    def __init__(self, to: int, name: str, *args: Any, **named: Any):
        super().__init__()
        self.to = to
        self._held = rpc.call_remote(to, "block.make", name, list(args), named)
        # Inputs need no gradient for the parameters of the block to get theirs.
        self._grad_anchor = nd.zeros((1,))
        self._grad_anchor.attach_grad()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(to={self.to})"

    def _ask(self, what: str, *args: Any) -> Any:
        return rpc.call(self.to, f"block.{what}", self._held, *args)

    def forward(self, *inputs: NDArray) -> Any:
        """Compute the outputs in the other process.

        Raises:
            MXNetError: it is gone, or the block raised an error.
        """
        if autograd.is_recording():
            return _RemoteCall(self)(self._grad_anchor, *inputs)
        _, outputs = self._ask("forward", list(inputs), autograd.is_training(), False)
        outputs = [o.as_in_context(inputs[0].context) for o in outputs]
        return outputs[0] if len(outputs) == 1 else outputs

    def train_with(self, optimizer: str, **settings: Any) -> None:
        """Make a `Trainer` of the block's parameters in the other process."""
        self._ask("train_with", optimizer, settings)

    def step(self, batch_size: int, learning_rate: float | None = None) -> None:
        """Make a step of that trainer, with a new learning rate if one is given.

        Raises:
            ArgumentError: `train_with` was not called.
        """
        self._ask("step", batch_size, learning_rate)

    def parameters(self) -> dict[str, NDArray]:
        """Return copies of the block's parameters by their path in it."""
        return self._ask("parameters")

    def zero_grad(self) -> None:
        """Set the gradients of the block's parameters to zero."""
        self._ask("zero_grad")

    def release(self) -> None:
        """Let the other process forget the block."""
        self._held.release()
