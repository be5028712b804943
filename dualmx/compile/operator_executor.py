"""Programs on any device whose operators are executables of their own, which run one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from ..core.context import Context
from ..graph.interpreter import Lifetimes, lifetimes_of, run, run_vjp
from ..graph.program import Instr, Program, differentiate
from ..graph.program_call import GradCall, ProgramCall
from ..graph.vjp import call_vjp, is_integer, zero_cotangent
from ..op.registry import Call
from .events import listeners
from .first_tier import Unsupported
from .operator_cache import OperatorExecutable, cache

KEY, SCALAR = jax.ShapeDtypeStruct((2,), np.uint32), jax.ShapeDtypeStruct((), np.float32)


def _apply(call: Call, ins: Sequence[Any], keys: Sequence[Any], runtime: Sequence[Any]) -> tuple[Any, ...]:
    return call.apply_keys(ins, [jax.random.wrap_key_data(k) for k in keys], runtime)


def _pull(
    call: Call,
    wrt: tuple[int, ...],
    has_integer_results: bool,
    ins: Sequence[Any],
    keys: Sequence[Any],
    runtime: Sequence[Any],
    cotangents: Sequence[Any],
) -> tuple[Any, ...]:
    """Return the cotangents of inputs `wrt` from those of the results; None stands for zero.

    What it needs of the operator itself it computes again: residuals would be executables' results, and two kinds of
    forward executable. XLA leaves out what it does not need.
    """
    wrapped = [jax.random.wrap_key_data(k) for k in keys]
    outs, vjp_fn = call_vjp(call, list(ins), wrt, wrapped, runtime, has_integer_results)
    given = tuple([zero_cotangent(o) if c is None else c for o, c in zip(outs, cotangents, strict=True)])
    return tuple(vjp_fn(given))


def _add(a: Any, b: Any) -> Any:
    return a + b


def _full(shape: tuple[int, ...], dtype: Any, value: int) -> Any:
    return jax.numpy.full(shape, value, dtype)


def _fold_in(key: Any, number: Any) -> Any:
    return jax.random.key_data(jax.random.fold_in(jax.random.wrap_key_data(key), number))


class OperatorExecutor:
    """Operators by executables of their own, for one run of a program.

    Args:
        tape: what a run needs, in the order in which it does: functions, and nested programs with their lifetimes.
        key: the random key of a number, as its two words.
        runtime: the runtime scalars; None if the calls hold their own.
    """

    __slots__ = ("_tape", "_key", "_runtime")

    def __init__(self, tape: Iterator[Any], key: Callable[[int], Any], runtime: Sequence[Any] | None):
        self._tape, self._key, self._runtime = tape, key, runtime

    def _call(self, function: Callable[..., Any], static: tuple[Any, ...], *args: Any) -> Any:
        """Call a function, whose first arguments are known when it is compiled."""
        return next(self._tape)(*args)

    def _program(self, step: Instr, ins: Sequence[Any]) -> tuple[Program, Lifetimes]:
        """Return the program of a step that calls one."""
        return next(self._tape)

    def _scalars(self, step: Instr) -> tuple[list[Any], Sequence[Any]]:
        """Return the random keys and the runtime scalars of a step."""
        call, first = step.call, step.first_runtime
        keys = [self._key(step.first_key + i) for i in range(call.n_keys)]
        if self._runtime is None:
            return keys, [np.float32(v) for v in call.op.runtime_values(call.params)]
        return keys, self._runtime[first : first + call.n_runtime]

    def _enter(self, step: Instr) -> OperatorExecutor:
        """Return the executor of a nested program, with its keys and scalars."""
        keys, runtime = self._scalars(step)
        if isinstance(step.call, GradCall):
            return self._with(keys.__getitem__, runtime)
        return self._with(lambda number: self._call(_fold_in, (), keys[0], np.uint32(number)), None)

    def _with(self, key: Callable[[int], Any], runtime: Sequence[Any] | None) -> OperatorExecutor:
        return type(self)(self._tape, key, runtime)

    def apply(self, step: Instr, ins: list[Any]) -> Sequence[Any]:
        """Return the results of a step."""
        if isinstance(step.call, (GradCall, ProgramCall)):
            program, lifetimes = self._program(step, ins)
            return run(program, ins, self._enter(step), lifetimes)
        keys, runtime = self._scalars(step)
        if not step.call.parts:
            return self._call(_apply, (step.call,), ins, keys, [*runtime])
        results: dict[int, Any] = {}
        for part in step.call.parts:  # many of which are one executable
            given = [ins[i] for i in part.ins], [], [runtime[i] for i in part.scalars]
            results.update(zip(part.outs, self._call(_apply, (part.call,), *given), strict=True))
        return [results[i] for i in range(len(results))]

    def vjp(self, step: Instr, ins: list[Any], avals: Any) -> tuple[Sequence[Any], Any]:
        """Return the results, and the function from their cotangents (None for zero) to those of inputs `wrt`."""
        if isinstance(step.call, (GradCall, ProgramCall)):
            program, lifetimes = self._program(step, ins)
            return run_vjp(program, ins, step.wrt, self._enter(step), lifetimes)
        keys, runtime = self._scalars(step)
        runtime = [*runtime]
        outs = self._call(_apply, (step.call,), ins, keys, runtime)
        has_integer_results = avals is not None and any(is_integer(avals[slot]) for slot in step.outs)
        static = step.call, step.wrt, has_integer_results

        def vjp_fn(cotangents: Sequence[Any]) -> Sequence[Any]:
            return self._call(_pull, static, ins, keys, runtime, list(cotangents))

        return outs, vjp_fn

    def add(self, a: Any, b: Any) -> Any:
        """Return the sum of two cotangents."""
        return self._call(_add, (), a, b)

    def ones_like(self, x: Any) -> Any:
        """Return ones."""
        return self._call(_full, (x.shape, x.dtype, 1))

    def zeros_like(self, x: Any) -> Any:
        """Return zeros."""
        return self._call(_full, (x.shape, x.dtype, 0))

    def zero_cotangent(self, x: Any) -> None:
        """Return what stands for a cotangent of zeros."""
        return None

    def place_gradient(self, slot: int, gradient: Any) -> Any:
        """There is one place."""
        return gradient


class AvalExecutor(OperatorExecutor):
    """Runs a program on abstract values, and writes the tape of its runs.

    Attributes:
        made: the tape: executables, and nested programs with their lifetimes.

    Raises:
        Unsupported: an operator does not run by itself.
    """

    __slots__ = ("made", "_ctx")

    def __init__(self, ctx: Context, key: Callable[[int], Any], runtime: Sequence[Any] | None, made: list[Any]):
        super().__init__(iter(()), key, runtime)
        self._ctx, self.made = ctx, made

    def _with(self, key: Callable[[int], Any], runtime: Sequence[Any] | None) -> OperatorExecutor:
        return AvalExecutor(self._ctx, key, runtime, self.made)

    def _call(self, function: Callable[..., Any], static: tuple[Any, ...], *args: Any) -> Any:
        executable = cache.get(function, static, args, self._ctx)
        self.made.append(executable)
        return executable.results

    def _program(self, step: Instr, ins: Sequence[Any]) -> tuple[Program, Lifetimes]:
        _require_supported(step)
        if isinstance(step.call, ProgramCall):
            program = step.call.program_for(ins)
            program = differentiate(program, step.wrt) if step.wrt else program
        else:
            assert isinstance(step.call, GradCall)
            if step.wrt:
                raise Unsupported("a gradient of a gradient")
            program = step.call.program
        self.made.append((program, lifetimes_of(program, step.wrt)))
        return self.made[-1]

    def apply(self, step: Instr, ins: list[Any]) -> Sequence[Any]:
        """Return what the results of a step will be."""
        _require_supported(step)
        return super().apply(step, ins)

    def vjp(self, step: Instr, ins: list[Any], avals: Any) -> tuple[Sequence[Any], Any]:
        """Return what the results of a step will be, and the function to what the cotangents will be."""
        _require_supported(step)
        return super().vjp(step, ins, avals)


def _require_supported(step: Instr) -> None:
    call = step.call
    if step.wrt and step.rematerialize:
        raise Unsupported("a result that is made again to save memory")
    if call.joint or call.op.dynamic or call.op.traits.compares_values:
        raise Unsupported(call.op.name)


class TimingOperatorExecutor(OperatorExecutor):
    """Waits for each operator, and tells listeners how long it took."""

    __slots__ = ()

    def _call(self, function: Callable[..., Any], static: tuple[Any, ...], *args: Any) -> Any:
        began = time.perf_counter()
        results = jax.block_until_ready(super()._call(function, static, *args))
        ended = time.perf_counter()
        if function in (_apply, _pull):
            name = static[0].op.name if function is _apply else f"_backward_{static[0].op.name}"
            for w in list(listeners):
                w.ran_operator(name, began, ended)
        return results


def prepare(program: Program, inputs: Sequence[Any], n_runtime: int, ctx: Context) -> list[Any]:
    """Return the tape of the runs of a program: executables, not all of them compiled, and nested programs.

    Raises:
        Unsupported: an operator does not run by itself.
    """
    made: list[Any] = []
    run(program, inputs, AvalExecutor(ctx, lambda number: KEY, [SCALAR] * n_runtime, made))
    return made


__all__ = ["OperatorExecutable", "OperatorExecutor", "TimingOperatorExecutor", "prepare"]
