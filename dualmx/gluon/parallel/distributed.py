"""`DistributedDataParallel`: gradients are all-reduced while backward runs; and manual synchronization of gradients."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from ... import autograd
from ...core.dtypes import as_dtype
from ...core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ...kvstore import is_distributed
from ...namespace import nd
from ...ndarray import NDArray
from ...ndarray.tape import post_backward_hooks
from ...parallel import all_gather, all_reduce, broadcast, rank, size
from ..base_block import Block
from ..parameter import Parameter, ParameterDict
from .data_parallel import devices


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
        if not p.is_initialized:
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


class DistributedDataParallel(Block):
    """Average the gradients of a network over all processes at the end of each backward pass.

    The processes have joined before (`parallel.init()`);
    a single process works without. The parameters and auxiliary states of process 0 are taken over by all when the
    wrapper is made, or at the first forward pass if shapes are not known before. Update with a Trainer that does not
    exchange gradients itself: `Trainer(net.collect_params(), ..., kvstore=None)`, and `step` with the rows of this
    process if the loss is a sum over rows, with 1 if it is a mean.

    Args:
        module: the network, on one context.
        device_ids: the one context of this process, to which the parameters move; where they are by default.
        broadcast_buffers: after each exchange all processes take over the auxiliary states (such as moving averages)
            of the first process.
        bucket_cap_mb: gradients travel in messages of at most about so many MiB.
        find_unused_parameters: accept that a backward pass does not reach all parameters, here or in other processes;
            what it does not reach counts as zero.

    Raises:
        ArgumentTypeError: not a Block. ArgumentError: several contexts, or a device that is not there.

    Example:
        >>> import dualmx as mx
        >>> net = mx.gluon.nn.Dense(1, in_units=2)
        >>> net.initialize()
        >>> net = DistributedDataParallel(net)
        >>> trainer = mx.gluon.Trainer(net.collect_params(), "sgd", kvstore=None)
        >>> with mx.autograd.record():
        ...     loss = net(mx.nd.ones((4, 2))).mean()
        >>> loss.backward()
        >>> trainer.step(1)
    """

    def __init__(
        self,
        module: Block,
        device_ids: Any = None,
        broadcast_buffers: bool = True,
        bucket_cap_mb: float = 25,
        find_unused_parameters: bool = False,
    ):
        super().__init__(prefix="")
        if not isinstance(module, Block):
            raise ArgumentTypeError(
                f"DistributedDataParallel: module of type {type(module).__name__}: expected a Block"
            )
        if not bucket_cap_mb > 0:
            raise ArgumentError(f"DistributedDataParallel: bucket_cap_mb={bucket_cap_mb}: expected a number above 0")
        self.module = module
        self.broadcast_buffers, self.find_unused_parameters = broadcast_buffers, find_unused_parameters
        self._bucket_cap = bucket_cap_mb * 2**20
        self._exchanging = True
        self._pending = self._params_synced = False
        self._hooked_params: list[Parameter] = []
        # While processes may run out of batches: how sums are divided; None outside of `join`.
        self._divides_by_all: bool | None = None
        self._early = False
        self._last: list[int] = []
        params = module.collect_params()
        if device_ids is not None:
            where = devices(device_ids, "DistributedDataParallel: device_ids")
            if len(where) > 1:
                raise ArgumentError(f"DistributedDataParallel: device_ids={where}: {_ONE_CONTEXT}")
            if any(p.is_initialized or p.is_deferred for p in params.values()):
                params.reset_ctx(where)
        if all(p.is_initialized for p in params.values()):
            self._agree()

    def _agree(self) -> None:
        """Take over the parameters of process 0, once."""
        params = self._parameters()
        if any(len(p.list_ctx()) > 1 for p in params):
            raise ArgumentError(f"DistributedDataParallel: parameters on {params[0].list_ctx()}: {_ONE_CONTEXT}")
        sync_initial_weights(params)
        self._params_synced = True

    def _parameters(self) -> list[Parameter]:
        return parameters_of("DistributedDataParallel", self.module)

    def _learned(self) -> list[Parameter]:
        return [p for p in self._parameters() if p.grad_req != "null"]

    def forward(self, *args: Any) -> Any:
        """Compute the network; if this is recorded, the backward pass that follows ends with an exchange."""
        if not self._params_synced:
            self._finish_shapes(args)
        out = self.module(*args)
        if autograd.is_recording() and self._exchanging and not self._pending:
            self._register_hook()
        return out

    def _finish_shapes(self, args: tuple[Any, ...]) -> None:
        """Infer unknown shapes by a forward pass whose outputs are dropped."""
        with autograd.pause(train_mode=False):
            self.module(*args)
        self._agree()

    def _register_hook(self) -> None:
        """Wait for the backward pass that reaches a parameter."""
        self._pending = True
        # Gradients that were added up before in `no_sync` do not tell whether this pass has come.
        self._hooked_params = [p for p in self._parameters() if p.data().has_fresh_grad]
        for p in self._hooked_params:
            p.data().has_fresh_grad = False
        me = weakref.ref(self)

        def act() -> None:
            ddp = me()
            if ddp is None:
                post_backward_hooks.remove(act)
            elif any(p.data().has_fresh_grad for p in ddp._learned()):
                post_backward_hooks.remove(act)
                ddp._after_backward()

        post_backward_hooks.append(act)

    def _after_backward(self) -> None:
        """Exchange what the backward pass of this network computed."""
        params = self._learned()
        self._pending = False
        for p in self._hooked_params:
            p.data().has_fresh_grad = True
        with autograd.pause():
            self._check(params)
            active = self._active_processes(True) if self._divides_by_all is not None else list(range(size()))
            self._exchange(params, [p.grad() for p in params], active)

    def _check(self, params: list[Parameter]) -> None:
        for p in params:
            wanted = p._trainer._kvstore_params["kvstore"] if p._trainer is not None else None
            kind = wanted if isinstance(wanted, str) else str(getattr(wanted, "type", ""))
            if size() > 1 and is_distributed(kind):
                raise MXNetError(
                    f"DistributedDataParallel: the Trainer would exchange gradients once more by its store {kind!r}; "
                    "make it with kvstore=None"
                )
        missing = [p for p in params if not p.data().has_fresh_grad]
        if missing and not self.find_unused_parameters:
            raise MXNetError(
                f"DistributedDataParallel: the backward pass did not reach parameter {missing[0].name!r} "
                f"({len(missing)} of {len(params)}), but other processes wait for its gradient; use all parameters for "
                "the loss, or pass find_unused_parameters=True"
            )
        for p in missing:
            p.grad()[:] = 0
            p.data().has_fresh_grad = True

    # -- exchanges

    def _exchange(self, params: list[Parameter], grads: list[NDArray], active: list[int]) -> None:
        """Average gradients over the processes that have some, and take over the auxiliary states of the first one."""
        if size() == 1:
            return
        by = size() if self._divides_by_all in (None, True) else len(active)
        handles = [
            (b, all_reduce([grads[i] for i in b], wait=False)) for b in gradient_buckets(grads, self._bucket_cap)
        ]
        for bucket, handle in handles:
            sums = handle.wait()
            if rank() in active:
                set_gradients([params[i] for i in bucket], [s / by for s in sums])
        states = [p for p in self._parameters() if p.grad_req == "null"]
        if self.broadcast_buffers and states:
            for p, value in zip(states, broadcast([p.data() for p in states], active[0]), strict=True):
                p.set_data(value)

    def _active_processes(self, here: bool) -> list[int]:
        """Return the processes that still have batches."""
        flags = all_gather(nd.array([float(here)], dtype="float32")).asnumpy().reshape(-1)
        active = [i for i, flag in enumerate(flags) if flag]
        self._last = active or self._last
        if self._early and 0 < len(active) < size():
            gone = ", ".join(str(i) for i in range(size()) if i not in active)
            raise MXNetError(
                f"DistributedDataParallel.join: process {gone} has no more batches, but process {active[0]} has"
            )
        return active

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Return a scope in which backward passes exchange nothing: gradients add up until the next one outside of it.

        Raises:
            MXNetError: a parameter would not add up its gradients (`grad_req` is not `"add"`).

        Example:
            >>> import dualmx as mx
            >>> net = mx.gluon.nn.Dense(1, in_units=2)
            >>> net.initialize()
            >>> net.collect_params().setattr("grad_req", "add")
            >>> ddp = DistributedDataParallel(net)
            >>> for last in (False, True):
            ...     with mx.autograd.record(), contextlib.nullcontext() if last else ddp.no_sync():
            ...         loss = ddp(mx.nd.ones((4, 2))).sum()
            ...     loss.backward()
            >>> net.weight.grad().asnumpy().tolist()
            [[8.0, 8.0]]
        """
        for p in self.module.collect_params().values():
            if p.grad_req == "write":
                raise MXNetError(
                    f"DistributedDataParallel.no_sync: parameter {p.name!r} keeps the last gradient only; first call "
                    "net.collect_params().setattr('grad_req', 'add'), and zero_grad() after each step"
                )
        before, self._exchanging = self._exchanging, False
        try:
            yield
        finally:
            self._exchanging = before

    @contextlib.contextmanager
    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Iterator[None]:
        """Context manager for uneven inputs: ranks without batches keep joining the collectives.

        At the end all processes have the parameters of one that made the most steps.

        Args:
            divide_by_initial_world_size: divide sums of gradients by the number of all processes, not of those that
                still have batches.
            enable: false if all loops are known to be equally long, which saves a message per step.
            throw_on_early_termination: raise in all processes when the first one has no more batches.

        Raises:
            MXNetError: see `throw_on_early_termination`.
        """
        if not enable or size() == 1:
            yield
            return
        self._divides_by_all, self._early = divide_by_initial_world_size, throw_on_early_termination
        self._last = list(range(size()))  # who had batches when somebody had some
        try:
            yield
            params = self._learned()
            nothing = [nd.zeros_like(p.data()) for p in params]
            while active := self._active_processes(False):
                self._exchange(params, nothing, active)
            sync_initial_weights(self._parameters(), self._last[0])
        finally:
            self._divides_by_all, self._early = None, False


_ONE_CONTEXT = "expected one context in each process; for several use DataParallel, or a Trainer with 'collective'"


def gradient_buckets(arrays: list[NDArray], cap: float) -> list[list[int]]:
    """Return groups of positions, the last first, whose arrays have at most `cap` bytes together or are alone."""
    found: list[list[int]] = []
    room = 0.0
    for i in reversed(range(len(arrays))):
        nbytes = arrays[i].size * as_dtype(arrays[i].dtype).itemsize
        if not found or nbytes > room:
            found.append([])
            room = cap
        found[-1].append(i)
        room -= nbytes
    return found
