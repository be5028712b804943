"""The two exchanges of a training loop that every process runs for itself: weights once, gradients at each step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import autograd
from ...core.errors import ArgumentTypeError, MXNetError
from ...ndarray import NDArray
from ...parallel import all_reduce, broadcast, size
from ..base import Block
from ..parameter import Parameter, ParameterDict


def parameters_of(what: str, source: Any) -> list[Parameter]:
    """Return the parameters of a block, a dict or a list of them, sorted by name if they have names.

    Raises:
        ArgumentTypeError: something else. MXNetError: one of them has no values yet.
    """
    if isinstance(source, Block):
        source = source.collect_params()
    if isinstance(source, (ParameterDict, Mapping)):
        found = [source[name] for name in sorted(source.keys())]
    else:
        found = list(source) if isinstance(source, (list, tuple)) else [source]
    for p in found:
        if not isinstance(p, Parameter):
            raise ArgumentTypeError(f"{what}: a {type(p).__name__}: expected a Block or its parameters")
        if p._data is None:
            raise MXNetError(
                f"{what}: parameter {p.name!r} has no values yet; initialize the network, and pass one batch "
                "through it if shapes of parameters are not known before"
            )
    return found


def sync_initial_weights(net: Any, root: int = 0) -> None:
    """Give all processes the parameters of process `root`, auxiliary states such as moving averages included.

    Args:
        net: a Block, or its parameters in a dict or a list; the same in all processes.
        root: whose values are taken.

    Raises:
        ArgumentTypeError: not parameters. MXNetError: a parameter has no values yet, or a process is gone.

    Example:
        >>> import dualmx as mx
        >>> net = mx.gluon.nn.Dense(2, in_units=3)
        >>> net.initialize()
        >>> sync_initial_weights(net)
    """
    params = parameters_of("sync_initial_weights", net)
    if size() == 1:
        return
    found = broadcast([p.list_data()[0] for p in params], root)
    for p, value in zip(params, found, strict=True):
        p.set_data(value)


def sync_gradients(net: Any, average: bool = True) -> None:
    """Replace the gradients by their mean (or sum) over all processes; the same bits in each.

    With batches of B rows in each of R processes and losses that are sums over rows, `trainer.step(B)` after it equals
    one process with R·B rows. The gradients of several contexts of one process are added. The Trainer must not exchange
    gradients itself: make it with `kvstore=None`.

    Args:
        net: a Block, or its parameters in a dict or a list; the same in all processes.
        average: divide by the number of processes.

    Raises:
        ArgumentTypeError: not parameters. MXNetError: a parameter has no values yet, or a process is gone.

    Example:
        >>> import dualmx as mx
        >>> net = mx.gluon.nn.Dense(2, in_units=3)
        >>> net.initialize()
        >>> sync_initial_weights(net)
        >>> trainer = mx.gluon.Trainer(net.collect_params(), "sgd", kvstore=None)
        >>> with mx.autograd.record():
        ...     loss = net(mx.nd.ones((4, 3))).sum()
        >>> loss.backward()
        >>> sync_gradients(net)
        >>> trainer.step(4)
    """
    params = [p for p in parameters_of("sync_gradients", net) if p.grad_req != "null"]
    set_gradients(
        params, all_reduce([summed_grad(p) for p in params], "average" if average else "sum") if params else []
    )


def summed_grad(param: Parameter) -> NDArray:
    """Return the gradient of a parameter, added over the contexts of this process."""
    first, *others = param.list_grad()
    with autograd.pause():
        for g in others:
            first = first + g.as_in_context(first.context)
    return first


def set_gradients(params: list[Parameter], values: list[NDArray]) -> None:
    """Overwrite the gradients of parameters on all their contexts."""
    with autograd.pause():
        for p, value in zip(params, values, strict=True):
            for g in p.list_grad():
                g[:] = value.as_in_context(g.context)
