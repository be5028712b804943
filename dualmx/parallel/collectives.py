"""Collectives between the processes of a job, for dense and row_sparse arrays; small arrays of one dtype are fused."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray import NDArray, array
from ..ndarray.custom_op import Function
from ..ndarray.interop import array_from_numpy, as_numpy_view
from ..sparse import RowSparseNDArray, row_sparse_array
from . import jax_distributed
from .mailbox import Handle
from .process_group import ProcessGroup
from .reduce_ops import check_op, scale
from .world import group_of


def all_reduce_rows(a: object, factor: float, group: ProcessGroup, what: str, name: str = "") -> RowSparseNDArray:
    """Return the sum over a group of row_sparse arrays of one shape, times `factor`; rows are added in rank order.

    Raises:
        ArgumentError: not row_sparse, or shapes, dtypes or names differ. MXNetError: a member is gone.
    """
    if not isinstance(a, RowSparseNDArray):
        raise ArgumentError(
            f"{what}: a {getattr(a, 'stype', type(a).__name__)} array; expected dense or row_sparse ones"
        )
    values, rows = a.data.asnumpy(), a.indices.asnumpy().astype(np.int64)
    if group.size == 1:
        parts, places = [values], [rows]
    else:
        parts = group.run_in_order(lambda: group.all_gather(np.ascontiguousarray(values), False, what))
        marked = np.concatenate([[zlib.crc32(name.encode())], rows])  # the name travels with the rows
        places = group.run_in_order(lambda: group.all_gather(marked, False, what))
        for rank, other in zip(group.ranks, places, strict=True):
            if other[0] != marked[0]:
                raise ArgumentError(f"{what}: the processes disagree: process {rank} sums something else than {name!r}")
        places = [p[1:] for p in places]
    found, position = np.unique(np.concatenate(places), return_inverse=True)
    total = np.zeros((len(found), *values.shape[1:]), values.dtype)
    begin = 0
    for part in parts:
        total[position[begin : begin + len(part)]] += part  # a process names each row once
        begin += len(part)
    if factor != 1:
        total = (total * factor).astype(values.dtype)
    pieces = (array(total, dtype=total.dtype, ctx=a.context), array(found, dtype=np.int64, ctx=a.context))
    return row_sparse_array(pieces, shape=a.shape, ctx=a.context, dtype=values.dtype)


MAX_FUSED_BYTES = 1 << 20  # bytes from which an array is worth a message of its own
BUCKET_BYTES = 16 << 20  # most bytes that travel together


def fusion_buckets(arrays: Sequence[np.ndarray]) -> list[list[int]]:
    """Group arrays for fusion by dtype, in the order of the first array of each.

    Example:
        >>> arrays = [np.ones(2, np.float16), np.ones(2, np.float32), np.ones(3, np.float16), np.ones(4, np.float32)]
        >>> fusion_buckets(arrays)
        [[0, 2], [1, 3]]
    """
    made: list[list[int]] = []
    open_at: dict[np.dtype, tuple[list[int], int]] = {}
    for i, a in enumerate(arrays):
        if a.nbytes >= MAX_FUSED_BYTES:
            made.append([i])
            continue
        bucket, size = open_at.get(a.dtype, ([], BUCKET_BYTES))
        if size + a.nbytes > BUCKET_BYTES:
            bucket, size = [], 0
            made.append(bucket)
        bucket.append(i)
        open_at[a.dtype] = (bucket, size + a.nbytes)
    return made


def with_fusion(arrays: Sequence[np.ndarray], exchange: Callable[[np.ndarray], np.ndarray]) -> list[np.ndarray]:
    """Return what an exchange that keeps shapes makes of each array."""
    out: list[np.ndarray] = list(arrays)
    for at in fusion_buckets(arrays):
        if len(at) == 1:
            out[at[0]] = exchange(arrays[at[0]])
            continue
        flat = exchange(np.concatenate([arrays[i].reshape(-1) for i in at]))
        begin = 0
        for i in at:
            # A copy lies where devices can use it as it is.
            out[i] = flat[begin : begin + arrays[i].size].reshape(arrays[i].shape).copy()
            begin += arrays[i].size
    return out


def as_list(what: str, data: Any) -> tuple[list[NDArray], bool]:
    """Return an array, or several, as a list, and whether there were several.

    Raises:
        ArgumentTypeError: something else.
    """
    several = isinstance(data, (list, tuple))
    arrays = list(data) if several else [data]
    for a in arrays:
        if not isinstance(a, NDArray):
            raise ArgumentTypeError(f"{what}: a {type(a).__name__}; expected NDArrays")
    return arrays, several


def as_numpy(a: NDArray) -> np.ndarray:
    """Return the values of an array; not to be written to."""
    return np.ascontiguousarray(as_numpy_view(a)).reshape(a.shape)


def rank_in_group(group: ProcessGroup, what: str, name: str, number: Any) -> int:
    """Return the number of a member of a group.

    Raises:
        ArgumentError: there is none of that number.
    """
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < group.size:
        raise ArgumentError(f"{what}: {name}={number!r}: expected a number below {group.size}")
    return number


def uses_xla(group: ProcessGroup, arrays: Sequence[NDArray]) -> bool:
    """Whether XLA exchanges these arrays: it joins all processes, and takes dense ones."""
    return jax_distributed.size() == group.size > 1 and all(a.stype == "default" and a.size for a in arrays)


def check_same_call(group: ProcessGroup, what: str, kind: str, arrays: Sequence[NDArray], **more: Any) -> bool:
    """Raise in all members if they do not call the same: XLA would wait for ever. False if some have joined instead.

    Raises:
        ArgumentError: they differ.
    """
    signature = ", ".join(f"{np.dtype(a.dtype).name} {a.shape}" for a in arrays[:8])
    text = (f" of {signature}" if arrays else "") + (f" and {len(arrays) - 8} more" if len(arrays) > 8 else "")
    text += "".join(f", {k}={v}" for k, v in more.items())
    return group.check_same_call(what, {"k": kind, "t": text, "e": sum(math.prod(a.shape) for a in arrays)})


class DifferentiableCollective(Function):
    """An exchange whose gradient is another one."""

    def __init__(self, there: Callable[..., list[NDArray]], back: Callable[..., list[NDArray]]):
        super().__init__()
        self._there, self._back = there, back

    def forward(self, *inputs: Any) -> Any:
        return self._there(_execute_pending(inputs))

    def backward(self, *output_grads: Any) -> Any:
        found = self._back(_execute_pending(output_grads))
        return found[0] if len(found) == 1 else found


def _execute_pending(arrays: Sequence[Any]) -> list[Any]:
    """Execute pending work here: the communication thread would compute each array by its own program."""
    for a in arrays:
        a.wait_to_read()
    return list(arrays)


def write_out(results: list[NDArray], out: Any, several: bool, what: str) -> Any:
    """Return results, written into `out` if present."""
    if out is not None:
        targets, _ = as_list(what, out)
        if len(targets) != len(results):
            raise ArgumentError(f"{what}: out has {len(targets)} arrays, data {len(results)}")
        for target, result in zip(targets, results, strict=True):
            result.copyto(target)
        return out
    return results if several else results[0]


def reduce_arrays(
    arrays: Sequence[NDArray],
    op: str,
    prescale: float,
    postscale: float,
    group: ProcessGroup,
    what: str,
    name: str = "",
) -> list[NDArray]:
    """Reduce arrays over the members of a group, small ones of a dtype as one message.

    Raises:
        ArgumentError: the members disagree. MXNetError: a member is gone.
    """
    settings = {"op": op, "prescale": prescale, "postscale": postscale, **({"name": name} if name else {})}
    linear = op in ("sum", "average")
    if linear and uses_xla(group, arrays) and check_same_call(group, what, "all_reduce", arrays, **settings):
        sums = jax_distributed.run_xla_collective("sum", what, [a if prescale == 1 else a * prescale for a in arrays])
        factor = postscale / group.size if op == "average" else postscale
        return sums if factor == 1 else [s * factor for s in sums]
    found = with_fusion(
        [scale(as_numpy(a), prescale) for a in arrays], lambda x: group.all_reduce(x, op, postscale, what, name)
    )
    return [array_from_numpy(v, like=a, copy=None) for v, a in zip(found, arrays, strict=True)]


def all_reduce(
    data: Any,
    op: str = "sum",
    prescale: float = 1.0,
    postscale: float = 1.0,
    group: ProcessGroup | None = None,
    out: Any = None,
    wait: bool = True,
    name: str = "",
) -> Any:
    """Return what `op` makes of an array (or of each of a list) over all processes; the same bits in each.

    Sums are made in the order of ranks, those of 16-bit floats in float32. Of row_sparse arrays, whose rows are added,
    only the rows travel. Under `autograd.record` sums and averages have gradients: the sums, and averages, of the
    gradients of all processes.

    Args:
        data: an NDArray or a list of them, of the same shapes and dtypes in all processes.
        op: `"sum"`, `"average"`, `"min"`, `"max"` or `"product"`.
        prescale, postscale: factors of the arrays, and of the result.
        group: the processes; all by default.
        out: arrays for the results; may be those of `data`.
        wait: if False, return a `Handle` at once, whose `wait()` returns the results; without gradients.
        name: of what is summed; processes that give other names are told so.

    Raises:
        ArgumentError: the processes call different things (raised in all of them), or an `op` that a dtype lacks.
        MXNetError: a process is gone.

    Example:
        >>> import dualmx as mx
        >>> mx.parallel.all_reduce(mx.nd.ones((2,)), op="average").asnumpy().tolist()
        [1.0, 1.0]
    """
    what = "parallel.all_reduce"
    arrays, several = as_list(what, data)
    members = group_of(group, what)
    for a in arrays:
        check_op(what, op, np.dtype(a.dtype), prescale, postscale)
    sparse = [a for a in arrays if a.stype != "default"]
    if sparse:
        if len(sparse) < len(arrays) or op not in ("sum", "average"):
            raise ArgumentError(f"{what}: sparse arrays are summed or averaged, apart from dense ones")
        factor = prescale * (postscale / members.size if op == "average" else postscale)
        return write_out([all_reduce_rows(a, factor, members, what, name) for a in arrays], out, several, what)

    def there(xs: Sequence[NDArray]) -> list[NDArray]:
        if members.size == 1:
            factor = prescale * postscale
            return [x.copy() if factor == 1 else x * factor for x in xs]
        return reduce_arrays(xs, op, prescale, postscale, members, what, name)

    if not arrays:
        return write_out([], out, several, what)
    if not wait:
        if members.size > 1:
            for a in arrays:
                a.wait_to_read()
            future = members.run_async(lambda: there(arrays))
            return Handle(lambda: write_out(future.result(), out, several, what), future.done)
        return Handle(lambda: write_out(there(arrays), out, several, what), lambda: True)

    def back(dys: Sequence[NDArray]) -> list[NDArray]:
        if op not in ("sum", "average"):
            raise ArgumentError(f"{what}: op={op!r} has no gradient; sums and averages do")
        return there(dys)

    results = DifferentiableCollective(
        lambda xs: members.run_in_order(lambda: there(xs)), lambda dys: members.run_in_order(lambda: back(dys))
    )(*arrays)
    return write_out(list(results), out, several, what)


def all_gather(data: Any, join: bool = False, group: ProcessGroup | None = None) -> Any:
    """Return the arrays of all processes in their order: stacked along a new first axis, or joined along the first.

    Differentiable: the gradient of a process is the sum of what all processes have for its array.

    Args:
        data: an NDArray or a list of them.
        join: join along the existing first axis, whose length may differ between processes.
        group: the processes; all by default.

    Raises:
        ArgumentError: shapes or dtypes differ. MXNetError: a process is gone.

    Example:
        >>> import dualmx as mx
        >>> mx.parallel.all_gather(mx.nd.ones((2,))).shape, mx.parallel.all_gather(mx.nd.ones((2,)), join=True).shape
        ((1, 2), (2,))
    """
    what = "parallel.all_gather"
    arrays, several = as_list(what, data)
    members = group_of(group, what)
    if join and any(not a.shape for a in arrays):
        raise ArgumentError(f"{what}: join=True: an array without axes")
    if not arrays:
        return []
    starts: list[int] = []

    def there(xs: Sequence[NDArray]) -> list[NDArray]:
        if not join and uses_xla(members, xs):
            check_same_call(members, what, "all_gather", xs)
            return jax_distributed.run_xla_collective("gather", what, xs)
        results = []
        for x in xs:
            found = [as_numpy(x)] if members.size == 1 else members.all_gather(as_numpy(x), not join, what)
            starts.append(sum(len(f) for f in found[: members.rank]) if join else members.rank)
            results.append(array_from_numpy(np.concatenate(found) if join else np.stack(found), like=x, copy=None))
        return results

    def back(dys: Sequence[NDArray]) -> list[NDArray]:
        sums = list(dys) if members.size == 1 else reduce_arrays(dys, "sum", 1.0, 1.0, members, what)
        first = starts or [members.rank] * len(sums)
        if not join:
            return [s[k] for s, k in zip(sums, first, strict=True)]
        return [s[k : k + len(a)] for s, k, a in zip(sums, first, arrays, strict=True)]

    found = DifferentiableCollective(
        lambda xs: members.run_in_order(lambda: there(xs)), lambda dys: members.run_in_order(lambda: back(dys))
    )(*arrays)
    return list(found) if several else found[0]


def broadcast(data: Any, root: int = 0, group: ProcessGroup | None = None, out: Any = None) -> Any:
    """Return the array (or list of arrays) of process `root`; the others pass arrays of the same shapes and dtypes.

    Differentiable: the gradient of `root` is the sum of those of all processes, that of the others is zero.

    Args:
        data: an NDArray or a list of them.
        root: number of the process in the group.
        group: the processes; all by default.
        out: arrays for the results; may be those of `data`.

    Raises:
        ArgumentError: there is no such process, or shapes or dtypes differ. MXNetError: a process is gone.

    Example:
        >>> import dualmx as mx
        >>> mx.parallel.broadcast(mx.nd.ones((2,))).asnumpy().tolist()
        [1.0, 1.0]
    """
    what = "parallel.broadcast"
    arrays, several = as_list(what, data)
    members = group_of(group, what)
    rank_in_group(members, what, "root", root)

    def there(xs: Sequence[NDArray]) -> list[NDArray]:
        if members.size == 1:
            return [x.copy() for x in xs]
        if uses_xla(members, xs):
            check_same_call(members, what, "broadcast", xs, root=root)
            return jax_distributed.run_xla_collective("broadcast", what, xs, root)
        found = with_fusion([as_numpy(x) for x in xs], lambda x: members.broadcast(x, root, what))
        return [
            array_from_numpy(np.array(v), like=x, copy=None).tostype(x.stype) for v, x in zip(found, xs, strict=True)
        ]

    def back(dys: Sequence[NDArray]) -> list[NDArray]:
        sums = list(dys) if members.size == 1 else reduce_arrays(dys, "sum", 1.0, 1.0, members, what)
        return [s if members.rank == root else s * 0 for s in sums]

    if not arrays:
        return []
    found = DifferentiableCollective(
        lambda xs: members.run_in_order(lambda: there(xs)), lambda dys: members.run_in_order(lambda: back(dys))
    )(*arrays)
    return write_out(list(found), out, several, what)


def barrier(group: ProcessGroup | None = None) -> None:
    """Wait until all processes are here.

    Raises:
        MXNetError: a process is gone.

    Example:
        >>> barrier()
    """
    members = group_of(group, "parallel.barrier")
    if members.size > 1:
        members.run_in_order(lambda: members.barrier("parallel.barrier"))
    elif jax_distributed.size() > 1 and group is None:
        from ..ndarray import ones

        jax_distributed.run_xla_collective("sum", "parallel.barrier", [ones((1,))])


def join(group: ProcessGroup | None = None) -> int:
    """Say that this process has no more data: it takes part in the reductions of the others, without values.

    Averages are those of the processes that still have some.

    Returns:
        The number of the process that joined last, when all have.

    Raises:
        ArgumentError: a process calls something else than `all_reduce`. MXNetError: a process is gone.

    Example:
        >>> join()
        0
    """
    members = group_of(group, "parallel.join")
    return 0 if members.size == 1 else members.run_in_order(lambda: members.join("parallel.join"))


__all__ = [
    "all_gather",
    "all_reduce",
    "all_reduce_rows",
    "barrier",
    "broadcast",
    "fusion_buckets",
    "join",
    "with_fusion",
]
