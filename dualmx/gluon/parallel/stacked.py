"""A pipeline of equal stages as one program: each device along an axis of a mesh holds the parameters of one stage."""

from __future__ import annotations

from typing import Any

from ... import autograd
from ...core.checks import integer, require_instance
from ...core.errors import ArgumentError
from ...namespace import nd
from ...ndarray import NDArray, invoke
from ...op.registry import Call
from ...parallel.flow import pipeline_call
from ...parallel.schedule import Schedule
from ...symbol.stepwise import EagerGraph, lower_or_fallback
from ..base import Block
from ..cached_graph import CachedGraph
from ..hybrid import HybridBlock
from ..parameter import Parameter, shape_is_known


class StackedParameter(Parameter):
    """One parameter of all stages; its first axis counts them, and each stage is initialized by itself."""

    def _fill(self, data: NDArray, init: Any, default_init: Any) -> None:
        for k in range(data.shape[0]):
            part = nd.zeros(data.shape[1:], ctx=data.context, dtype=data.dtype)
            super()._fill(part, init, default_init)
            data[k] = part


class StackedPipeline(Block):
    """Equal stages in a row, each with parameters of its own, over the devices along an axis of a mesh.

    Micro-batches flow from device to device (collective-permute) inside of one program; the rest of the network, the
    loss and the update are part of it. The backward pass goes the same way back (GPipe); a device keeps the inputs of
    its stage, and computes the rest again. Off a mesh the stages run one after the other on the whole batch.

    Args:
        stage: a block that maps an array to one of the same shape and dtype, without states such as those of
            `BatchNorm`; not initialized, it only tells how a stage computes.
        stages: how many; on a mesh, the number of devices along `axis`.
        micro_batches: into how many parts a batch is cut; it must be divisible.
        axis: name of an axis of the mesh.

    Shapes: input (N, *), output the same; parameters (stages, *).

    Raises:
        ArgumentError: a number below 1. ArgumentTypeError: `stage` is no HybridBlock.

    Example:
        >>> import dualmx as mx
        >>> stage = mx.gluon.nn.Dense(4, in_units=4, activation="relu", prefix="stage_")
        >>> net = mx.gluon.parallel.StackedPipeline(stage, stages=1, micro_batches=2)
        >>> mesh = mx.parallel.Mesh({"pipe": 1})
        >>> net.initialize(ctx=mesh)
        >>> net(mx.nd.ones((6, 4), ctx=mesh)).shape
        (6, 4)
        >>> [p.shape for p in net.collect_params().values()]
        [(1, 4, 4), (1, 4)]
    """

    def __init__(self, stage: HybridBlock, stages: int, micro_batches: int, axis: str = "pipe", **kwargs: Any):
        super().__init__(**kwargs)
        require_instance("StackedPipeline", "stage", stage, HybridBlock, "a HybridBlock")
        self.schedule = Schedule(integer("StackedPipeline", "stages", stages, 1), micro_batches, "gpipe")
        self._axis = axis
        # In a tuple, so that it does not become a child: its own parameters are never made.
        self._stages = (stage,)
        self._template = stage.collect_params()._params
        self._calls: dict[bool, Call] = {}
        for name, p in self._template.items():
            own = name.removeprefix(stage.prefix)
            full = self.params.prefix + own
            shape = None if p.shape is None else (stages, *p.shape)
            stacked = StackedParameter(
                full, p.grad_req, shape, p.dtype, p.lr_mult, p.wd_mult, p.init, p.allow_deferred_init,
                shard=(axis, *p.shard),
            )  # fmt: skip
            self.params._params[full] = self._reg_params[own] = stacked

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.schedule.stages} x {self._stages[0]!r}, over {self._axis!r})"

    def forward(self, x: NDArray) -> NDArray:
        """Send a batch through all stages.

        Raises:
            ArgumentError: the batch cannot be cut, the mesh has another number of devices along the axis, or a stage
                changes shape or dtype or has states.
        """
        require_instance(
            self.name, "x", x, NDArray, "an NDArray; a pipeline is a program already, hybridize its stages' blocks"
        )
        if not x.shape or x.shape[0] % self.schedule.micro_batches:
            count = self.schedule.micro_batches
            raise ArgumentError(f"{self.name}: a batch of shape {x.shape} cannot be cut into {count} micro-batches")
        train = autograd.is_training()
        call = self._calls.get(train)
        if call is None:
            call = self._calls[train] = self._made(x, train)
        return invoke(call, [x, *(p.data(x.context) for p in self._reg_params.values())])[0]

    def _made(self, x: NDArray, train: bool) -> Call:
        graph = CachedGraph.trace_hybrid(self._stages[0], (x,))
        if not all(shape_is_known(p.shape) for p in self._template.values()):
            graph.infer_shape((x,))
        for p, stacked in zip(self._template.values(), self._reg_params.values(), strict=True):
            stacked.shape = (self.schedule.stages, *(p.shape or ()))
            stacked._finish_deferred_init()
        call = lower_or_fallback(graph.symbol, train)
        if isinstance(call, EagerGraph) or graph.symbol.list_auxiliary_states():
            raise ArgumentError(f"{self.name}: a stage must not have states or operators that run on the host")
        order = [p.name for p in graph.params]
        at = {slot: order.index(p.name) for slot, p in graph._held}
        slots = [at.get(slot, -1) for slot in range(graph._size)]
        where = [list(self._template).index(name) for name in order]
        return pipeline_call(
            f"pipeline {self.name}", call, [where[k] if k >= 0 else -1 for k in slots], self.schedule, self._axis
        )
