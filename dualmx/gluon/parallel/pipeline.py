"""Pipeline parallelism: stages on different devices, or equal stages as one program over a mesh axis."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ... import autograd
from ...core.argcheck import context as as_context
from ...core.argcheck import integer, require_instance
from ...core.context import Context
from ...core.errors import ArgumentError, ArgumentTypeError
from ...namespace import nd
from ...ndarray import NDArray, flush, invoke
from ...op.registry import Call
from ...parallel.pipeline import Schedule, pipeline_call
from ...symbol.lowering import EagerGraph, lower_or_fallback
from ..base_block import Block
from ..batch_split import split_data
from ..cached_graph import CachedGraph
from ..hybrid import HybridBlock
from ..parameter import Parameter, shape_is_known


class Pipeline(Block):
    """Stages on different contexts, through which micro-batches flow.

    A batch is cut into micro-batches; while one stage works on the first, the stage before it works on the second. Each
    pass of a stage is a program on its device, and devices work at the same time. Only inputs and outputs of a stage
    are kept from the forward to the backward pass if the stage is hybridized.

    Gradients are summed over the micro-batches, and equal those of the whole batch, to rounding; batch normalization
    uses the statistics of a micro-batch. The parameters' `grad_req` becomes `"add"`.

    Args:
        stages: blocks, each taking the output of the one before it: one array.
        contexts: as many contexts, which may be meshes.
        micro_batches: into how many parts a batch is cut; it must be divisible.
        schedule: `"1f1b"` or `"gpipe"`, see `parallel.Schedule`.

    Raises:
        ArgumentError: no stages, or not as many contexts. ArgumentTypeError: a stage is no block.

    Example:
        >>> import dualmx as mx
        >>> stages = [mx.gluon.nn.Dense(4, in_units=3, activation="relu"), mx.gluon.nn.Dense(2, in_units=4)]
        >>> net = mx.gluon.parallel.Pipeline(stages, [mx.cpu(0), mx.cpu(1)], micro_batches=4)
        >>> net.initialize()
        >>> loss = net.forward_backward(mx.nd.ones((8, 3)), mx.nd.ones((8, 2)), mx.gluon.loss.L2Loss())
        >>> loss.shape
        (8,)
        >>> for trainer in net.trainers("sgd", {"learning_rate": 0.1}):
        ...     trainer.step(8)
    """

    def __init__(
        self,
        stages: Sequence[Block],
        contexts: Sequence[Context],
        micro_batches: int,
        schedule: str = "1f1b",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.stages, self.contexts = list(stages), [as_context(c) for c in contexts]
        for stage in self.stages:
            if not isinstance(stage, Block):
                raise ArgumentTypeError(f"Pipeline: a stage of type {type(stage).__name__}: expected a Block")
            self.register_child(stage)
        if not self.stages or len(self.stages) != len(self.contexts):
            raise ArgumentError(
                f"Pipeline: {len(self.stages)} stages on {len(self.contexts)} contexts: expected as many"
            )
        self.schedule = Schedule(len(self.stages), micro_batches, schedule)

    def initialize(self, init: Any = None, ctx: Any = None, verbose: bool = False, force_reinit: bool = False) -> None:
        """Initialize each stage on its context.

        Raises:
            ArgumentError: a context is given.
        """
        if ctx is not None:
            raise ArgumentError("Pipeline.initialize: ctx: the stages have contexts already")
        for stage, where in zip(self.stages, self.contexts, strict=True):
            stage.initialize(init, where, verbose, force_reinit)

    def forward(self, x: NDArray) -> NDArray:
        """Run the stages on a complete batch, one after another; the result is on the last one's context."""
        for stage, ctx in zip(self.stages, self.contexts, strict=True):
            x = stage(x.as_in_context(ctx))
        return x

    def trainers(self, optimizer: str, optimizer_params: Any = None, **kwargs: Any) -> list[Any]:
        """Return a `Trainer` for each stage that has parameters; call `step` of each."""
        from ..trainer import Trainer

        params = [s.collect_params() for s in self.stages]
        return [Trainer(p, optimizer, dict(optimizer_params or {}), **kwargs) for p in params if len(p.keys())]

    def forward_backward(self, data: NDArray, label: NDArray, loss: Any, accumulate: bool = False) -> NDArray:
        """Compute the losses of a batch, and the gradients of their sum.

        Args:
            data, label: a batch, cut along the first axis.
            loss: `loss(output, label)` gives the losses of the rows, or their sum, in an array with a first axis.
            accumulate: add to the gradients that are there.

        Returns:
            The losses, joined along the first axis, on the context of the last stage.

        Raises:
            ArgumentError: the batch cannot be cut into equal micro-batches.
        """
        if not accumulate:
            self.collect_params().zero_grad()
        return _BatchPass(self, data, label, loss).run()

    def measure(self, data: NDArray, label: NDArray, loss: Any, repeats: int = 3) -> dict[str, Any]:
        """Measure one micro-batch in each stage alone, and report the resulting schedule; gradients are lost.

        Returns:
            `forward`, `backward`: seconds of each stage; `bubble`: the fraction of the time that stages wait;
            `utilisation`: the fraction that each stage works; `in_flight`: most micro-batches that each holds.
        """
        once = _BatchPass(self, data, label, loss)
        best: list[list[float]] = [[float("inf")] * len(self.stages) for _ in range(2)]
        for _ in range(repeats + 1):  # the first time compiles
            for back in (False, True):
                for s in reversed(range(len(self.stages))) if back else range(len(self.stages)):
                    nd.waitall()
                    began = time.perf_counter()
                    once.work(s, 0, back)
                    nd.waitall()
                    best[back][s] = min(best[back][s], time.perf_counter() - began)
        found = self.schedule.timeline(*best)
        total = max(w.end for w in found)
        busy = [sum(w.end - w.begin for w in found if w.stage == s) / total for s in range(len(self.stages))]
        return {
            "forward": best[0],
            "backward": best[1],
            "bubble": 1 - sum(busy) / len(busy),
            "utilisation": busy,
            "in_flight": self.schedule.in_flight(),
        }


class _BatchPass:
    """One batch on its way through a pipeline."""

    def __init__(self, pipe: Pipeline, data: NDArray, label: NDArray, loss: Any):
        self.pipe, self.loss = pipe, loss
        count = pipe.schedule.micro_batches
        self.data, self.labels = split_data(data, count), split_data(label, count)
        self.inputs: dict[tuple[int, int], NDArray] = {}
        self.outputs: dict[tuple[int, int], NDArray] = {}
        self.losses: dict[int, NDArray] = {}
        for param in pipe.collect_params().values():
            if param.grad_req == "write":
                param.grad_req = "add"

    def run(self) -> NDArray:
        """Make all passes in an order in which each finds what it needs, and return the losses."""
        for w in self.pipe.schedule.timeline():
            self.work(w.stage, w.micro, w.backward)
        losses = [self.losses[m] for m in sorted(self.losses)]
        return losses[0].wrap_array(nd.concat(*losses, dim=0))

    def work(self, stage: int, micro: int, backward: bool) -> None:
        """Start one pass of one stage."""
        ctx = self.pipe.contexts[stage]
        with ctx:
            if backward:
                self._backward(stage, micro, ctx)
            else:
                self._forward(stage, micro, ctx)
            flush()

    def _forward(self, stage: int, micro: int, ctx: Context) -> None:
        pipe, last = self.pipe, stage == len(self.pipe.stages) - 1
        before = self.data[micro] if stage == 0 else self.outputs[stage - 1, micro]
        x = before.detach().as_in_context(ctx)
        if stage > 0:
            x = x.copy() if x is before else x
            x.attach_grad()
        with autograd.record():
            out = pipe.stages[stage](x)
            if last:
                out = self.losses[micro] = self.loss(out, self.labels[micro].as_in_context(ctx))
        self.inputs[stage, micro], self.outputs[stage, micro] = x, out

    def _backward(self, stage: int, micro: int, ctx: Context) -> None:
        out = self.outputs.pop((stage, micro))
        after = self.inputs.pop((stage + 1, micro), None)
        if after is None:
            out.backward()
            self.losses[micro] = self.losses[micro].detach()
        else:
            assert after.grad is not None
            out.backward(after.grad.as_in_context(ctx))
        if stage == 0:
            del self.inputs[0, micro]


class StackedParameter(Parameter):
    """One parameter of all stages; its first axis counts them, and each stage is initialized by itself."""

    def _fill(self, data: NDArray, init: Any, default_init: Any) -> None:
        for k in range(data.shape[0]):
            part = nd.zeros(data.shape[1:], ctx=data.context, dtype=data.dtype)
            super()._fill(part, init, default_init)
            data[k] = part


class StackedPipeline(Block):
    """Equal stages in sequence with stacked parameters, over the devices along a mesh axis.

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
