"""Programs on NumPy arrays: nothing is compiled, and operators run one after the other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ....graph import spec
from ....graph.interpreter import lifetimes_of, run, run_vjp
from ....graph.program import Alias, Gradient, Instr, Program, differentiate
from ....graph.program_call import GradCall, ProgramCall
from ....op.registry import Part
from ....op.symbolic_sizes import Avals
from ...events import listeners
from . import primitives
from .codegen import Unsupported
from .kernel import Kernel, Work, arranging_kernel, constant_kernel, kernel_for


class _PartKernel(NamedTuple):
    """A part of a call with its kernel, and the shapes and dtypes of its inputs."""

    part: Part
    kernel: Kernel
    sizes: tuple[int, ...]
    avals: Avals


class _StepKernel:
    """An operator of a program with its kernel, or with those of its parts, or a nested program with its kernels.

    Attributes:
        runtime: the runtime scalars that the call holds itself.
        shapes: shape and dtype of every result.
        parts: what the call is made of; empty if it has one kernel or is a nested program.
    """

    __slots__ = ("call", "kernel", "sizes", "runtime", "avals", "shapes", "parts", "program", "inner")

    def __init__(self, step: Instr, avals: Avals):
        call = self.call = step.call
        if step.wrt and step.rematerialize:
            raise Unsupported("a result that is made again to save memory")
        self.avals, self.shapes = avals, call.infer(tuple(avals))
        self.runtime = [np.float32(v) for v in call.op.runtime_values(call.params)]
        self.kernel: Kernel | None = None
        self.parts: list[_PartKernel] = []
        if isinstance(call, GradCall):
            if step.wrt:
                raise Unsupported("a gradient of a gradient")
            self.program = call.program
        elif isinstance(call, ProgramCall):
            self.program = call.program_for([jax.ShapeDtypeStruct(s, d) for s, d in avals])
            if step.wrt:
                self.program = differentiate(self.program, step.wrt)
        elif call.op.traits.fill is not None:
            # A call for each shape: a trace of each would cost more than all else.
            (shape, dtype), value = self.shapes[0], call.op.traits.fill(call.params)
            self.kernel, self.sizes = constant_kernel(shape, dtype, value), ()
            return
        elif call.op.traits.arrangement is not None:
            self.kernel, self.sizes = arranging_kernel(call, step.wrt, avals), ()
            return
        elif call.parts and not step.wrt:
            for part in call.parts:
                own = part.avals(avals)
                self.parts.append(_PartKernel(part, *kernel_for(part.call, (), own), own))
            return
        else:
            self.kernel, self.sizes = kernel_for(call, step.wrt, avals)
            return
        self.inner = ProgramKernels(self.program, avals, step.wrt)

    def run_parts(self, ins: list[Any], scalars: Sequence[Any]) -> list[Any]:
        """Return the results of a call that is made of parts."""
        results: list[Any] = [None] * len(self.shapes)
        for part, kernel, sizes, _ in self.parts:
            arrays = [ins[i].reshape(-1) if part.is_flat else ins[i] for i in part.ins]
            for place, result in zip(
                part.outs, kernel.run(sizes, *arrays, *[scalars[i] for i in part.scalars]), strict=True
            ):
                results[place] = _reshaped(result, self.shapes[place][0]) if part.is_flat else result
        return results

    def work(self) -> tuple[Work, int]:
        """Return what a run does, and how many bytes the results of its statements have, about."""
        if self.kernel is not None:
            return self.kernel.work, self.kernel.work.statements * _largest_bytes((*self.avals, *self.shapes))
        if not self.parts:
            return self.inner.work()
        written = sum(p.kernel.work.statements * _largest_bytes(p.avals) for p in self.parts)
        return _total(p.kernel.work for p in self.parts), written


def _reshaped(x: Any, shape: tuple[int, ...]) -> Any:
    """Return an array with another shape; what has memory of its own keeps it, so that nobody must copy it."""
    if shape and x.flags.owndata and x.flags.writeable:
        x.resize(shape, refcheck=False)
        return x
    return x.reshape(shape)


def _largest_bytes(avals: Avals) -> int:
    return max([math.prod(shape) * dtype.itemsize for shape, dtype in avals], default=0)


def _total(works: Iterable[Work]) -> Work:
    return Work(*map(sum, zip(Work(0, 0, 0, 0), *works, strict=True)))


class ProgramKernels:
    """The kernels of a program, chosen once for the shapes of its inputs.

    Args:
        program: all that a run executes.
        avals: shape and dtype of the inputs.
        wrt: inputs in which the whole program is differentiated.

    Attributes:
        lifetimes: when its values are needed no more.

    Raises:
        Unsupported: an operator has no kernel.
    """

    def __init__(self, program: Program, avals: Avals, wrt: Sequence[int] = ()):
        self._program = program  # whose steps are known by their identity
        self.lifetimes = lifetimes_of(program, wrt)
        self._steps: dict[int, _StepKernel] = {}
        known = dict(enumerate(avals))
        for step in program.steps:
            if isinstance(step, Instr):
                prepared = self._steps[id(step)] = _StepKernel(step, [known[slot] for slot in step.ins])
                for slot, result in zip(step.outs, prepared.shapes, strict=True):
                    known.setdefault(slot, result)
            elif isinstance(step, Gradient):
                known.update((out, known[group[0]]) for out, group in zip(step.outs, step.targets, strict=True))
            elif isinstance(step, Alias):
                known[step.out] = known[step.source]

    def work(self) -> tuple[Work, int]:
        """Return what a run does, and how many bytes the results of its statements have, about."""
        parts = [step.work() for step in self._steps.values()]
        return _total(work for work, _ in parts), sum(written for _, written in parts)

    def of_step(self, step: Instr) -> _StepKernel:
        """Return the kernel of a step."""
        return self._steps[id(step)]


class NumpyExecutor:
    """Operators as functions on NumPy arrays, for one run of a program.

    Args:
        kernels: those of the program.
        key: the random key of a number.
        runtime: the runtime scalars; None if the calls hold their own.
    """

    __slots__ = ("_kernels", "_key", "_runtime")

    def __init__(self, kernels: ProgramKernels, key: Callable[[int], Any], runtime: Sequence[Any] | None):
        self._kernels, self._key, self._runtime = kernels, key, runtime

    def _scalars(self, step: Instr, prepared: _StepKernel) -> Sequence[Any]:
        call, first = step.call, step.first_runtime
        if not (call.n_runtime or call.n_keys):
            return ()
        runtime = prepared.runtime if self._runtime is None else self._runtime[first : first + call.n_runtime]
        return [*runtime, *[self._key(step.first_key + i) for i in range(call.n_keys)]]

    def _enter(self, step: Instr, prepared: _StepKernel) -> NumpyExecutor:
        """Return the executor of a nested program, with its keys and scalars."""
        scalars = self._scalars(step, prepared)
        if isinstance(prepared.call, GradCall):
            n = prepared.call.n_runtime
            return type(self)(prepared.inner, scalars[n:].__getitem__, scalars[:n])
        return type(self)(prepared.inner, lambda number: primitives.fold_in(scalars[0], number), None)

    def apply(self, step: Instr, ins: list[Any]) -> Sequence[Any]:
        """Return the results of a step."""
        prepared = self._kernels.of_step(step)
        if prepared.kernel is not None:
            results = prepared.kernel.run(prepared.sizes, *ins, *self._scalars(step, prepared))
        elif prepared.parts:
            results = prepared.run_parts(ins, self._scalars(step, prepared))
        else:
            return run(prepared.program, ins, self._enter(step, prepared), prepared.inner.lifetimes)
        if spec.is_on:
            spec.verify_results(step.call, results, prepared.shapes)
        return results

    def vjp(self, step: Instr, ins: list[Any], avals: Any) -> tuple[Sequence[Any], Any]:
        """Return the results, and the function from their cotangents (None for zero) to those of inputs `wrt`."""
        prepared = self._kernels.of_step(step)
        if prepared.kernel is None:
            return run_vjp(prepared.program, ins, step.wrt, self._enter(step, prepared), prepared.inner.lifetimes)
        kernel, sizes = prepared.kernel, prepared.sizes
        values = kernel.run(prepared.sizes, *ins, *self._scalars(step, prepared))
        outs, residuals = values[: kernel.n_results], values[kernel.n_results :]
        pull, shapes = kernel.pull, prepared.shapes
        if spec.is_on:
            spec.verify_results(step.call, outs, shapes)
        assert pull is not None

        def vjp_fn(cotangents: Sequence[Any]) -> Sequence[Any]:
            given = [_zeros(*shapes[i]) if cotangents[i] is None else cotangents[i] for i in kernel.floating]
            return pull(sizes, *residuals, *given)

        return outs, vjp_fn

    def add(self, a: Any, b: Any) -> Any:
        """Return the sum of two cotangents."""
        return a + b

    def ones_like(self, x: Any) -> Any:
        """Return ones."""
        return np.broadcast_to(np.asarray(1, x.dtype), x.shape)

    def zeros_like(self, x: Any) -> Any:
        """Return zeros."""
        return _zeros(x.shape, x.dtype)

    def zero_cotangent(self, x: Any) -> None:
        """Return what stands for a cotangent of zeros."""
        return None

    def place_gradient(self, slot: int, gradient: Any) -> Any:
        """There is one place."""
        return gradient


class TimingExecutor(NumpyExecutor):
    """Tells listeners how long each operator takes; nested programs are told of by their operators."""

    __slots__ = ()

    def apply(self, step: Instr, ins: list[Any]) -> Sequence[Any]:
        """Return the results of a step."""
        began = time.perf_counter()
        results = super().apply(step, ins)
        self._tell(step, step.call.op.name, began)
        return results

    def vjp(self, step: Instr, ins: list[Any], avals: Any) -> tuple[Sequence[Any], Any]:
        """Return the results, and the function from their cotangents, which is timed as well."""
        began = time.perf_counter()
        outs, pull = super().vjp(step, ins, avals)
        self._tell(step, step.call.op.name, began)

        def vjp_fn(cotangents: Sequence[Any]) -> Sequence[Any]:
            began = time.perf_counter()
            gradients = pull(cotangents)
            self._tell(step, f"_backward_{step.call.op.name}", began)
            return gradients

        return outs, vjp_fn

    def _tell(self, step: Instr, name: str, began: float) -> None:
        prepared = self._kernels.of_step(step)
        if prepared.kernel is not None or prepared.parts:
            ended = time.perf_counter()
            for w in list(listeners):
                w.ran_operator(name, began, ended)


def _zeros(shape: tuple[int, ...], dtype: Any) -> Any:
    return np.broadcast_to(np.asarray(0, dtype), shape)
