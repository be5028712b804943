"""Dispatch by storage type: a kernel where there is one, the dense operator otherwise."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from ..core import knobs
from ..core.context import Context, current_context
from ..core.errors import ArgumentError, MXNetError
from ..graph.gradient import ROW_SPARSE_REQS
from ..graph.interpreter import run
from ..graph.program import Instr
from ..graph.program_call import ProgramCall
from ..ndarray import handle
from ..ndarray.ndarray import NDArray
from ..op.registry import Call
from ..op.traits import StorageRule
from .base import BaseSparseNDArray
from .creation import of_array
from .lazy_update import lazy_update

_log = logging.getLogger(__name__)

# A kernel returns the outputs, or None to leave the call to the dense operator.
Kernel = Callable[[Call, Sequence[NDArray], Sequence[float]], list[NDArray] | None]
KERNELS: dict[StorageRule, Kernel] = {}
# Rules without a dense fallback for sparse inputs, with what they take.
STRICT: dict[StorageRule, str] = {}
_reported: set[tuple[Any, ...]] = set()


def kernel(*rules: StorageRule, needs: str = "") -> Callable[[Kernel], Kernel]:
    """Register the decorated function for operators of these rules.

    Args:
        needs: what it takes, if what it leaves must not be computed densely.
    """

    def register(fn: Kernel) -> Kernel:
        for rule in rules:
            KERNELS[rule] = fn
            if needs:
                STRICT[rule] = needs
        return fn

    return register


def is_sparse(array: Any) -> bool:
    """True for csr and row_sparse arrays."""
    return isinstance(array, BaseSparseNDArray)


def storages(ins: Sequence[NDArray]) -> tuple[str, ...]:
    """Storage types of the inputs."""
    return tuple(a.stype for a in ins)


def invoke(call: Call, ins: Sequence[NDArray], runtime: Sequence[float] = ()) -> list[NDArray]:
    """Record a call on arrays of any storage type and return its outputs; see `ndarray.invoke`.

    Raises:
        MXNetError: the inputs do not fit the operator, or it does not take their storage types.
    """
    rule = call.op.traits.storage
    if rule is not None and (any(map(is_sparse, ins)) or call.chooses_storage):
        outs = KERNELS[rule](call, ins, runtime)
        if outs is not None:
            return outs
    warn_dense_fallback(call, ins, "default")
    return _invoke_dense(call, ins, runtime)


def _invoke_dense(call: Call, ins: Sequence[NDArray], runtime: Sequence[float]) -> list[NDArray]:
    """Record a call on dense arrays; auxiliary inputs are written back in their own storage type."""
    # Before the call is recorded: what makes them dense may execute what is pending.
    dense = [a.to_dense() if isinstance(a, BaseSparseNDArray) else a for a in ins]
    outs = handle.invoke(call, dense, runtime)
    for i in call.aux_positions(len(ins)) if ins else ():
        state = ins[i]
        if isinstance(state, BaseSparseNDArray):
            if dense[i] is state.dense:
                state._changed()
            else:
                state.assign(dense[i])
    return outs


def invoke_out(call: Call, ins: Sequence[NDArray], outs: Sequence[NDArray], runtime: Sequence[float] = ()) -> None:
    """Record a call whose outputs overwrite arrays of any storage type; see `ndarray.invoke_out`."""
    if not any(kind.is_sparse for kind in {*map(type, ins), *map(type, outs)}):
        handle.invoke_out(call, ins, outs, runtime)
        return
    if not lazy_update(call, ins, outs, runtime):
        for o, made in zip(outs, invoke(call, ins, runtime), strict=False):
            store(o, made, call.op.name)


def store(out: NDArray, value: NDArray, what: str) -> None:
    """Write `value` to `out`, in the storage type of `out`."""
    if out.shape != value.shape:
        raise ArgumentError(f"{what}: out has shape {out.shape}, the result has shape {value.shape}; they must agree")
    if isinstance(out, BaseSparseNDArray):
        out.assign(value if value.stype in ("default", out.stype) else value.tostype("default"))
    else:
        dense = value.to_dense() if isinstance(value, BaseSparseNDArray) else value
        handle.assign(out, dense, what)


def warn_dense_fallback(call: Call, ins: Sequence[NDArray], result: str) -> None:
    """Log, once for each case, that sparse inputs are computed with densely.

    Raises:
        MXNetError: the operator does not do that.
    """
    kinds = storages(ins)
    if all(k == "default" for k in kinds):
        return
    rule = call.op.traits.storage
    if rule in STRICT:
        raise MXNetError(f"{call!r}: not implemented for storage types {kinds}; {STRICT[rule]}")
    case = (call.op.name, kinds, result)
    if case not in _reported and knobs.STORAGE_FALLBACK.read() != "0":
        _reported.add(case)
        _log.warning(
            "Storage type fallback detected: operator = %s, input storage types = %s, output storage type = %s, "
            "parameters = %s. The sparse arrays are converted to dense ones for it; results are the same. Set "
            "MXNET_STORAGE_FALLBACK_LOG_VERBOSE=0 to silence this message.",
            call.op.name, list(kinds), result, call.static,
        )  # fmt: skip


def as_stype(array: NDArray, stype: str) -> NDArray:
    """Return an array in the given storage type, linked to the tape if `array` is."""
    if array.stype == stype:
        return array
    if stype == "default":
        return array.tostype("default")
    if is_sparse(array):
        array = array.tostype("default")
    return of_array(array, stype)


@lru_cache(maxsize=4096)
def _makes_sparse(call: ProgramCall) -> bool:
    """True if a program has steps whose results are asked for in a sparse storage type."""
    for step in call.program.steps:
        params = step.call.params if isinstance(step, Instr) else {}
        kinds = (params.get("stype"), params.get("forward_stype"))
        if isinstance(step, Instr) and step.call.chooses_storage and "default" not in kinds:
            return True
    return False


def needs_stepwise(call: Call, ins: Sequence[NDArray]) -> bool:
    """True if a program must be recorded step by step: it meets sparse arrays, or tables with sparse gradients."""
    if not isinstance(call, ProgramCall) or call.complete is not None:
        return False
    if _makes_sparse(call):
        return True
    if any(kind.is_sparse for kind in set(map(type, ins))):
        return True
    reqs = {x.grad_req for a in ins if (x := a._meta) is not None}
    return not reqs.isdisjoint(ROW_SPARSE_REQS)


class RecordingExecutor:
    """Records each operator on arrays of any storage type; auxiliary inputs are written as they come.

    Args:
        ctx: where operators without inputs run.
    """

    def __init__(self, ctx: Context):
        self.ctx = ctx

    def apply(self, step: Instr, ins: list[NDArray]) -> list[NDArray]:
        """Record a step."""
        return [*self.record(step, ins), *(ins[at] for at in step.call.aux_positions(len(ins)))]

    def record(self, step: Instr, ins: list[NDArray]) -> Sequence[NDArray]:
        """Record a step and return its outputs."""
        if not ins:
            return handle.invoke_nullary(step.call, self.ctx)
        by_storage = step.call.chooses_storage or any(map(is_sparse, ins))
        return (invoke if by_storage else handle.invoke)(step.call, ins)


def run_program_stepwise(call: Call, ins: Sequence[NDArray]) -> list[NDArray]:
    """Record the steps of a program one by one."""
    assert isinstance(call, ProgramCall)
    ctx = ins[0].context if ins else current_context()
    return run(call.program_for(ins), ins, RecordingExecutor(ctx))[: call.n_outputs]


__all__ = [
    "KERNELS", "STRICT", "RecordingExecutor", "as_stype", "invoke", "invoke_out", "is_sparse", "kernel",
    "needs_stepwise", "run_program_stepwise", "storages", "store", "warn_dense_fallback",
]  # fmt: skip
