"""Collectives of `torch.distributed`; results are written in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import autograd, parallel
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ..namespace import nd
from ..ndarray import NDArray
from ..parallel import Handle, ProcessGroup
from .process_groups import group_rank, is_not_member


class ReduceOp:
    """How values of several processes become one."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = "sum", "average", "product", "min", "max", "band", "bor", "bxor"


reduce_op = ReduceOp
_BITS = {"band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor}


class Work:
    """An exchange that was begun; its arrays are written when `wait` returns."""

    def __init__(self, finish: Callable[[], Any], ready: Callable[[], bool]):
        self._finish: Callable[[], Any] | None = finish
        self._ready = ready
        self._error: MXNetError | None = None

    def wait(self, timeout: Any = None) -> bool:
        """Wait for the end; returns True.

        Raises:
            ArgumentError: the processes called different things. MXNetError: a process is gone.
        """
        if self._finish is not None:
            finish, self._finish = self._finish, None
            try:
                finish()
            except MXNetError as e:
                self._error = e
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether `wait` returns, or raises, at once."""
        return self._finish is None or self._ready()

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return self._finish is None and self._error is None

    def exception(self) -> MXNetError | None:
        """What `wait` has raised; None if it has not."""
        return self._error


def require_array(what: str, name: str, a: Any) -> NDArray:
    """Return an array.

    Raises:
        ArgumentTypeError: something else.
    """
    if not isinstance(a, NDArray):
        raise ArgumentTypeError(f"{what}: {name} of type {type(a).__name__}: expected an NDArray")
    return a


def arrays(what: str, name: str, found: Any, count: int | None = None) -> list[NDArray]:
    """Return arrays in a list, as many as processes.

    Raises:
        ArgumentTypeError: something else. ArgumentError: another number of them.
    """
    if not isinstance(found, (list, tuple)):
        raise ArgumentTypeError(f"{what}: {name} of type {type(found).__name__}: expected a list of NDArrays")
    if count is not None and len(found) != count:
        raise ArgumentError(f"{what}: {name} has {len(found)} arrays: expected {count}, one for each process")
    return [require_array(what, name, a) for a in found]


def write_results(what: str, values: Sequence[NDArray], targets: Sequence[NDArray]) -> None:
    """Write values to arrays of their shapes.

    Raises:
        ArgumentError: another shape or dtype.
    """
    for value, target in zip(values, targets, strict=True):
        if value.shape != target.shape or value.dtype != target.dtype:
            raise ArgumentError(
                f"{what}: {np.dtype(value.dtype).name}{list(value.shape)} does not fit into "
                f"{np.dtype(target.dtype).name}{list(target.shape)}"
            )
        value.copyto(target)


def _run_now(run: Callable[[], Any], async_op: bool) -> Work | None:
    """Run an exchange now."""
    with autograd.pause():
        run()
    return Work(lambda: None, lambda: True) if async_op else None


def _run_into(
    what: str, exchange: Callable[[], NDArray | Sequence[NDArray] | None], outs: Sequence[NDArray], async_op: bool
) -> Work | None:
    """Run an exchange now, and write to `outs` what it gives to this process, if anything."""

    def run() -> None:
        found = exchange()
        if found is not None:
            write_results(what, [found] if isinstance(found, NDArray) else found, outs)

    return _run_now(run, async_op)


def _name(what: str, op: Any, x: NDArray) -> str:
    known = {v for k, v in vars(ReduceOp).items() if k.isupper()}
    if op not in known:
        raise ArgumentError(f"{what}: op={op!r}: expected a value of ReduceOp")
    if op in _BITS and np.dtype(x.dtype).kind not in "iub":
        raise ArgumentError(f"{what}: op={op!r} of {np.dtype(x.dtype).name} values: expected integers")
    return ReduceOp.MAX if op == ReduceOp.SUM and np.dtype(x.dtype) == bool else op


def _reduce_bitwise(how: str, x: NDArray, group: ProcessGroup | None) -> NDArray:
    """What an operation on bits makes of the arrays of all processes."""
    parts = parallel.all_gather(x, group=group).asnumpy()
    return nd.array(_BITS[how].reduce(parts), dtype=x.dtype, ctx=x.context)


def _reduced_part(x: NDArray, how: str, group: ProcessGroup | None) -> NDArray:
    """This process's rows of what `how` makes of the arrays of all processes."""
    if how not in _BITS:
        return parallel.reduce_scatter(x, how, group=group)
    rows = x.shape[0] // parallel.size(group)
    first = rows * parallel.rank(group)
    return _reduce_bitwise(how, x, group)[first : first + rows]


def all_reduce(
    tensor: NDArray, op: str = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """Replace an array in all processes by what `op` makes of all; with `async_op` return a `Work`.

    Raises:
        ArgumentError: the processes call different things, or an unknown `op`. MXNetError: a process is gone.
    """
    what = "all_reduce"
    if is_not_member(what, group):
        return None
    x, how = require_array(what, "tensor", tensor), _name(what, op, tensor)
    if how in _BITS:
        return _run_into(what, lambda: _reduce_bitwise(how, x, group), [x], async_op)
    with autograd.pause():
        if not async_op:
            parallel.all_reduce(x, how, group=group, out=x)
            return None
        handle: Handle = parallel.all_reduce(x, how, group=group, wait=False)
    return Work(lambda: write_results(what, [handle.wait()], [x]), handle.is_completed)


def broadcast(
    tensor: NDArray, src: int | None = None, group: ProcessGroup | None = None, async_op: bool = False,
    group_src: int | None = None,
) -> Any:  # fmt: skip
    """Replace an array in all processes by that of process `src`, or `group_src` of the group.

    With `async_op` return a `Work`.

    Raises:
        ArgumentError: no such process, or shapes or dtypes differ. MXNetError: a process is gone.
    """
    what = "broadcast"
    if is_not_member(what, group):
        return None
    x, root = require_array(what, "tensor", tensor), group_rank(what, "src", src, group, group_src)
    return _run_now(lambda: parallel.broadcast(x, root, group, out=x), async_op)


def reduce(
    tensor: NDArray, dst: int | None = None, op: str = ReduceOp.SUM, group: ProcessGroup | None = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Any:  # fmt: skip
    """Replace an array in process `dst`, or `group_dst` of the group, by what `op` makes of all.

    Raises:
        ArgumentError: the processes call different things. MXNetError: a process is gone.
    """
    what = "reduce"
    if is_not_member(what, group):
        return None
    x, how = require_array(what, "tensor", tensor), _name(what, op, tensor)
    root = group_rank(what, "dst", dst, group, group_dst)

    def exchange() -> NDArray | None:
        if how not in _BITS:
            return parallel.reduce(x, root, how, group=group)
        found = _reduce_bitwise(how, x, group)
        return found if parallel.rank(group) == root else None

    return _run_into(what, exchange, [x], async_op)


def all_gather(
    tensor_list: Sequence[NDArray], tensor: NDArray, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """Write the arrays of all processes to the arrays of a list, in their order; shapes may differ.

    Raises:
        ArgumentError: another number of arrays, or arrays of other shapes. MXNetError: a process is gone.
    """
    what = "all_gather"
    if is_not_member(what, group):
        return None
    outs = arrays(what, "tensor_list", tensor_list, parallel.size(group))
    x = require_array(what, "tensor", tensor)

    def exchange() -> list[NDArray]:
        rows = [o.shape[0] if o.shape else 1 for o in outs]
        joined = parallel.all_gather(x if x.shape else x.reshape((1,)), join=True, group=group)
        if sum(rows) != joined.shape[0]:
            raise ArgumentError(f"{what}: {joined.shape[0]} rows came for {sum(rows)} of tensor_list")
        ends = np.cumsum(rows).tolist()
        parts = [joined[e - n : e] for e, n in zip(ends, rows, strict=True)]
        return [p if o.shape else p.reshape(()) for p, o in zip(parts, outs, strict=True)]

    return _run_into(what, exchange, outs, async_op)


def all_gather_into_tensor(
    output_tensor: NDArray, input_tensor: NDArray, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """Write the arrays of all processes, joined along their first axis or stacked, to one array.

    Raises:
        ArgumentError: an array of another shape. MXNetError: a process is gone.
    """
    what = "all_gather_into_tensor"
    if is_not_member(what, group):
        return None
    out, x = require_array(what, "output_tensor", output_tensor), require_array(what, "input_tensor", input_tensor)
    return _run_into(what, lambda: parallel.all_gather(x, out.ndim == x.ndim, group), [out], async_op)


def gather(
    tensor: NDArray, gather_list: Sequence[NDArray] | None = None, dst: int | None = None,
    group: ProcessGroup | None = None, async_op: bool = False, group_dst: int | None = None,
) -> Any:  # fmt: skip
    """Write the arrays of all processes to the arrays of a list in process `dst` (0); the others pass no list.

    Raises:
        ArgumentError: another number of arrays. MXNetError: a process is gone.
    """
    what = "gather"
    if is_not_member(what, group):
        return None
    x, root = require_array(what, "tensor", tensor), group_rank(what, "dst", dst, group, group_dst, 0)
    outs = _only(what, "gather_list", gather_list, root, group)
    return _run_into(what, lambda: parallel.gather(x, root, group=group), outs or [], async_op)


def scatter(
    tensor: NDArray, scatter_list: Sequence[NDArray] | None = None, src: int | None = None,
    group: ProcessGroup | None = None, async_op: bool = False, group_src: int | None = None,
) -> Any:  # fmt: skip
    """Write to an array this process's part of the list of process `src` (0); the others pass no list.

    Raises:
        ArgumentError: another number of arrays. MXNetError: a process is gone.
    """
    what = "scatter"
    if is_not_member(what, group):
        return None
    x, root = require_array(what, "tensor", tensor), group_rank(what, "src", src, group, group_src, 0)
    given = _only(what, "scatter_list", scatter_list, root, group)
    return _run_into(what, lambda: parallel.scatter(given, root, group, x.context), [x], async_op)


def _only(what: str, name: str, found: Any, root: int, group: ProcessGroup | None) -> list[NDArray] | None:
    """The list of process `root`; an error if it is not where it should be."""
    if parallel.rank(group) == root:
        return arrays(what, name, found, parallel.size(group))
    if found:
        raise ArgumentError(f"{what}: {name}: expected in process {root} only")
    return None


def reduce_scatter(
    output: NDArray, input_list: Sequence[NDArray], op: str = ReduceOp.SUM, group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:  # fmt: skip
    """Write to `output` what `op` makes of all processes' arrays at this one's place of the list.

    Raises:
        ArgumentError: another number of arrays, or shapes or dtypes differ. MXNetError: a process is gone.
    """
    what = "reduce_scatter"
    if is_not_member(what, group):
        return None
    given = arrays(what, "input_list", input_list, parallel.size(group))
    out, how = require_array(what, "output", output), _name(what, op, output)
    for a in given:
        if a.shape != out.shape or a.dtype != out.dtype:
            raise ArgumentError(
                f"{what}: input_list has {np.dtype(a.dtype).name}{list(a.shape)}: expected those of output, "
                f"{np.dtype(out.dtype).name}{list(out.shape)}"
            )

    def exchange() -> NDArray:
        return _reduced_part(nd.stack(*given, axis=0), how, group).reshape(out.shape)

    return _run_into(what, exchange, [out], async_op)


def reduce_scatter_tensor(
    output: NDArray, input: NDArray, op: str = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """Write to `output` this process's equal part, along the first axis, of what `op` makes of all arrays.

    Raises:
        ArgumentError: rows that cannot be cut equally, or shapes or dtypes differ. MXNetError: a process is gone.
    """
    what = "reduce_scatter_tensor"
    if is_not_member(what, group):
        return None
    out, x = require_array(what, "output", output), require_array(what, "input", input)
    how = _name(what, op, x)
    if out.size * parallel.size(group) != x.size:
        raise ArgumentError(f"{what}: output of {list(out.shape)} for input of {list(x.shape)}: expected an equal part")
    return _run_into(what, lambda: _reduced_part(x, how, group).reshape(out.shape), [out], async_op)


def all_to_all(
    output_tensor_list: Sequence[NDArray], input_tensor_list: Sequence[NDArray], group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:  # fmt: skip
    """Send one array of a list to each process, and write the received arrays to another list.

    Raises:
        ArgumentError: another number of arrays, or arrays of other shapes. MXNetError: a process is gone.
    """
    what = "all_to_all"
    if is_not_member(what, group):
        return None
    count = parallel.size(group)
    outs = arrays(what, "output_tensor_list", output_tensor_list, count)
    given = arrays(what, "input_tensor_list", input_tensor_list, count)
    return _run_into(what, lambda: parallel.all_to_all(given, group=group), outs, async_op)


def all_to_all_single(
    output: NDArray, input: NDArray, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: ProcessGroup | None = None, async_op: bool = False,
) -> Any:  # fmt: skip
    """Send rows to each process, and write the received rows to `output`.

    Args:
        output, input: arrays.
        output_split_sizes: rows that come from each process; equally many by default.
        input_split_sizes: rows for each process; equally many by default.
        group: the processes.
        async_op: return a `Work`.

    Raises:
        ArgumentError: rows that cannot be cut so, or that do not fit. MXNetError: a process is gone.
    """
    what = "all_to_all_single"
    if is_not_member(what, group):
        return None
    out, x = require_array(what, "output", output), require_array(what, "input", input)
    if output_split_sizes and sum(output_split_sizes) != out.shape[0]:
        raise ArgumentError(f"{what}: output_split_sizes={list(output_split_sizes)}: expected {out.shape[0]} rows")
    return _run_into(what, lambda: parallel.all_to_all(x, input_split_sizes, group), [out], async_op)


def barrier(group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None) -> Any:
    """Wait until all processes are here.

    Raises:
        MXNetError: a process is gone.
    """
    if is_not_member("barrier", group):
        return None
    return _run_now(lambda: parallel.barrier(group), async_op)


def monitored_barrier(group: ProcessGroup | None = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """`barrier`, whose errors name the processes that are missing, as all do here."""
    barrier(group)


__all__ = [
    "ReduceOp", "Work", "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all", "all_to_all_single",
    "barrier", "broadcast", "gather", "monitored_barrier", "reduce", "reduce_op", "reduce_scatter",
    "reduce_scatter_tensor", "scatter",
]  # fmt: skip
