"""`DistributedOptimizer`, `DistributedTrainer` and `broadcast_parameters`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from .. import autograd, parallel
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ..gluon.parameter import Parameter, ParameterDict
from ..gluon.trainer import Trainer
from ..ndarray import NDArray
from ..optimizer import Optimizer
from ..optimizer.optimizer import as_lists
from ..optimizer.updater import update_all
from .basics import require_init, size
from .compression import Compression
from .enqueue import Sum, enqueue_allreduce
from .mpi_ops import root_of
from .process_sets import ProcessSet, global_process_set, group_of


class _DistributedOptimizerMixin(Optimizer):
    """What a `DistributedOptimizer` has before its own class."""

    _exchanged_in: ProcessSet | None = None
    _prescale = 1.0
    _processes = 1  # by which rescale_grad divides
    is_joint = True  # so that the gradients of a step travel together

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Add up the gradients of all processes, and update."""
        self._add_up(grad)
        super().update(index, weight, grad, state)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Add up the gradients of all processes, and update."""
        if self._exchanged_in is None:
            super().update_multi_precision(index, weight, grad, state)
            return
        self._add_up(grad)
        group, prescale = self._exchanged_in, self._prescale
        self._exchanged_in, self._prescale = None, 1.0
        try:
            update_all(self, *as_lists(index, weight, grad, state))
        finally:
            self._exchanged_in, self._prescale = group, prescale

    def _add_up(self, grad: Any) -> None:
        grads = list(grad) if isinstance(grad, (list, tuple)) else [grad]
        if self._exchanged_in is not None:
            processes = self._exchanged_in.size()  # an elastic job's changes
            self.rescale_grad *= self._processes / processes
            self._processes = processes
            _allreduce_grads(grads, Compression.none, self._prescale, self._exchanged_in)


def DistributedOptimizer(
    optimizer: Optimizer, gradient_predivide_factor: float = 1.0, num_groups: int = 0,
    process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """Return an optimizer like `optimizer` that averages the gradients of all processes before each update.

    For `Module` with `kvstore=None` and for update loops of one's own; with `gluon.Trainer` use `DistributedTrainer`.

    Args:
        optimizer: the optimizer.
        gradient_predivide_factor: gradients are divided by it before they are added up, and multiplied after.
        num_groups: accepted; gradients that are updated in one call travel together.
        process_set: the processes.

    Raises:
        ArgumentTypeError: not an optimizer. MXNetError: `init` was not called.

    Example:
        >>> import dualmx as mx
        >>> import dualmx.horovod as hvd
        >>> hvd.init()
        >>> optimizer = hvd.DistributedOptimizer(mx.optimizer.SGD(learning_rate=0.5))
        >>> w = mx.nd.ones((1,))
        >>> mx.optimizer.get_updater(optimizer)(0, mx.nd.ones((1,)), w)
        >>> w.asscalar().item()
        0.5
    """
    require_init("DistributedOptimizer")
    group_of("DistributedOptimizer", process_set)
    if not isinstance(optimizer, Optimizer):
        raise ArgumentTypeError(f"hvd.DistributedOptimizer: a {type(optimizer).__name__}: expected an Optimizer")
    if isinstance(optimizer, _DistributedOptimizerMixin):
        raise ArgumentError("hvd.DistributedOptimizer: the optimizer is distributed already")
    kind = type(optimizer)
    made = object.__new__(type(kind.__name__, (_DistributedOptimizerMixin, kind), {"__module__": __name__}))
    made.__dict__.update(optimizer.__dict__)
    made._exchanged_in, made._prescale = process_set, 1 / gradient_predivide_factor
    made._processes = process_set.size()
    made.rescale_grad *= gradient_predivide_factor / made._processes
    return made


class DistributedTrainer(Trainer):
    """A `gluon.Trainer` that averages the gradients of all processes; `step` takes the rows of this process.

    After `allreduce_grads` (and `step`) the gradients are sums over processes.

    Args:
        params: parameters, on one context.
        optimizer, optimizer_params: see `gluon.Trainer`.
        compression: `Compression.none` or `Compression.fp16`.
        gradient_predivide_factor: gradients are divided by it before they are added up, and multiplied after.
        prefix, num_groups: accepted; gradients of a step travel together.
        process_set: the processes.

    Raises:
        ArgumentError: parameters on several contexts. MXNetError: `init` was not called.

    Example:
        >>> import dualmx as mx
        >>> import dualmx.horovod as hvd
        >>> hvd.init()
        >>> net = mx.gluon.nn.Dense(1, in_units=2)
        >>> net.initialize()
        >>> hvd.broadcast_parameters(net.collect_params(), root_rank=0)
        >>> trainer = hvd.DistributedTrainer(net.collect_params(), "sgd", {"learning_rate": 0.1 * hvd.size()})
        >>> with mx.autograd.record():
        ...     loss = net(mx.nd.ones((4, 2)))
        >>> loss.backward()
        >>> trainer.step(4)
    """

    def __init__(
        self, params: Any, optimizer: Any, optimizer_params: Mapping[str, Any] | None = None,
        compression: Any = Compression.none, gradient_predivide_factor: float = 1.0, prefix: str | None = None,
        num_groups: int = 0, process_set: ProcessSet = global_process_set,
    ):  # fmt: skip
        require_init("DistributedTrainer")
        if not gradient_predivide_factor > 0:
            raise ArgumentError(
                f"hvd.DistributedTrainer: gradient_predivide_factor={gradient_predivide_factor}: expected more than 0"
            )
        if isinstance(optimizer, _DistributedOptimizerMixin):
            warnings.warn("DistributedTrainer: takes the optimizer inside of the DistributedOptimizer", stacklevel=2)
            optimizer = _wrapped_optimizer(optimizer)
        super().__init__(params, optimizer, optimizer_params, kvstore=None)
        if len(self._contexts) > 1:
            raise ArgumentError(
                f"hvd.DistributedTrainer: parameters on {self._contexts}: expected one context in each process"
            )
        self._compression = compression
        group_of("DistributedTrainer", process_set)
        self._process_set = process_set
        self._prescale = 1 / gradient_predivide_factor
        self._scale *= gradient_predivide_factor
        self._amp_original_scale = self._scale

    def _check_and_rescale_grad(self, scale: float) -> None:
        super()._check_and_rescale_grad(scale / self._process_set.size())  # which changes in an elastic job

    def _push_and_pull(self, chosen: list[tuple[int, Parameter]]) -> None:
        _allreduce_grads([p.list_grad()[0] for _, p in chosen], self._compression, self._prescale, self._process_set)


def _wrapped_optimizer(optimizer: _DistributedOptimizerMixin) -> Optimizer:
    """Return the optimizer that a distributed one wraps."""
    made = object.__new__(type(optimizer).__mro__[2])
    made.__dict__.update(
        {k: v for k, v in optimizer.__dict__.items() if k not in ("_exchanged_in", "_prescale", "_processes")},
        rescale_grad=optimizer.rescale_grad * optimizer._prescale * optimizer._processes,
    )
    return made


def _allreduce_grads(grads: list[NDArray], compression: Any, prescale: float, process_set: ProcessSet) -> None:
    """Replace gradients by their sums over processes."""
    if not grads or (process_set.size() == 1 and prescale == 1):
        return
    with autograd.pause():
        for stype in dict.fromkeys(g.stype for g in grads):
            same = [g for g in grads if g.stype == stype]
            packed, contexts = zip(*[compression.compress(g) for g in same], strict=True)
            sums = enqueue_allreduce(
                "gradients", list(packed), Sum, prescale, 1.0, process_set, f"gradients.{stype}"
            ).wait()
            for g, total, ctx in zip(same, sums, contexts, strict=True):
                compression.decompress(total, ctx).copyto(g)


def broadcast_parameters(params: Any, root_rank: int = 0, prefix: str | None = None) -> None:
    """Give all processes the parameters of process `root_rank`.

    Parameters whose shapes are not known yet are exchanged at the moment at which they get values.

    Args:
        params: what `collect_params()` returns, or a dict of arrays as of `Module.get_params()`.
        root_rank: whose values are taken.
        prefix: accepted.

    Raises:
        ArgumentTypeError: something else. ArgumentError: no such process, or shapes differ.
        MXNetError: a parameter was never initialized.
    """
    what = "broadcast_parameters"
    require_init(what)
    root = root_of(what, root_rank, global_process_set)
    if not isinstance(params, (Mapping, ParameterDict)):
        raise ArgumentTypeError(f"hvd.{what}: params of type {type(params).__name__}: expected a dict of parameters")
    found = [params[name] for name in sorted(params.keys())]
    for p in found:
        if not isinstance(p, (Parameter, NDArray)):
            raise ArgumentTypeError(f"hvd.{what}: params holds a {type(p).__name__}: expected Parameters or NDArrays")
        if isinstance(p, Parameter) and not p.is_initialized and not p.is_deferred:
            raise MXNetError(f"hvd.{what}: parameter {p.name!r} was never initialized; call initialize() first")
    _broadcast_into([p for p in found if not isinstance(p, Parameter) or p.is_initialized], root)
    for p in found:
        if isinstance(p, Parameter) and not p.is_initialized:
            p.on_initialized = lambda made, root=root: _broadcast_into([made], root)


def _broadcast_into(found: list[Any], root: int) -> None:
    if not found or size() == 1:
        return
    with autograd.pause():
        arrays = [p.arrays()[0] if isinstance(p, Parameter) else p for p in found]
        dense = [a if a.stype == "default" else a.tostype("default") for a in arrays]
        for p, value in zip(found, parallel.broadcast(dense, root), strict=True):
            if isinstance(p, Parameter):
                p.set_data(value)
            else:
                p[:] = value


__all__ = ["DistributedOptimizer", "DistributedTrainer", "broadcast_parameters"]
