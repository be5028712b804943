"""Rooted and scattering collectives: reduce, gather, scatter, reduce_scatter, all_to_all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.context import Context
from ..core.errors import ArgumentError
from ..ndarray import NDArray
from ..ndarray.interop import array_from_numpy, with_mode_class
from . import object_codec
from .collectives import DifferentiableCollective, as_list, as_numpy, rank_in_group
from .process_group import ProcessGroup
from .reduce_ops import check_op, reduce_values, scale
from .world import group_of


def reduce(
    data: NDArray,
    root: int = 0,
    op: str = "sum",
    prescale: float = 1.0,
    postscale: float = 1.0,
    group: ProcessGroup | None = None,
) -> NDArray | None:
    """Return in process `root` what `op` makes of the arrays of all processes; None in the others.

    Args:
        data: of the same shape and dtype in all processes.
        root: number of the process in the group.
        op, prescale, postscale, group: see `all_reduce`.

    Raises:
        ArgumentError: shapes or dtypes differ, no such process, or an `op` that the dtype lacks.
        MXNetError: a process is gone.

    Example:
        >>> import dualmx as mx
        >>> mx.parallel.reduce(mx.nd.ones((2,)), postscale=3).asnumpy().tolist()
        [3.0, 3.0]
    """
    what = "parallel.reduce"
    (x,), _ = as_list(what, [data])
    members = group_of(group, what)
    check_op(what, op, np.dtype(x.dtype), prescale, postscale)
    rank_in_group(members, what, "root", root)
    mine = scale(as_numpy(x), prescale)
    parts = [mine]
    if members.size > 1:
        parts = members.run_in_order(lambda: members.gather(mine, root, True, what, o=op))
    if members.rank != root:
        return None
    out = np.empty(mine.shape, mine.dtype)
    reduce_values(parts, op, postscale, out)
    return array_from_numpy(out, like=x, copy=None)


def gather(data: NDArray, root: int = 0, join: bool = False, group: ProcessGroup | None = None) -> list[NDArray] | None:
    """Return in process `root` the arrays of all processes, in their order; None in the others.

    Args:
        data: of the same dtype in all processes, and of the same shape.
        root: number of the process in the group.
        join: arrays may differ in their first axis.
        group: the processes; all by default.

    Raises:
        ArgumentError: shapes or dtypes differ, or no such process. MXNetError: a process is gone.

    Example:
        >>> import dualmx as mx
        >>> len(mx.parallel.gather(mx.nd.ones((2,))))
        1
    """
    what = "parallel.gather"
    (x,), _ = as_list(what, [data])
    members = group_of(group, what)
    rank_in_group(members, what, "root", root)
    if members.size == 1:
        return [x.copy()]
    mine = as_numpy(x)
    found = members.run_in_order(lambda: members.gather(mine, root, not join, what))
    return [array_from_numpy(np.array(v), like=x, copy=None) for v in found] if members.rank == root else None


def scatter(data: Any = None, root: int = 0, group: ProcessGroup | None = None, ctx: Context | None = None) -> NDArray:
    """Return this process's part of what process `root` has.

    Args:
        data: in `root`: a list of one array per process, or an array that is cut into equal parts along its first
            axis. The others pass None.
        root: number of the process in the group.
        group: the processes; all by default.
        ctx: where the part is put; the current context by default.

    Raises:
        ArgumentError: not one array for each process. MXNetError: a process is gone.

    Example:
        >>> import dualmx as mx
        >>> mx.parallel.scatter([mx.nd.ones((2,))]).shape
        (2,)
    """
    what = "parallel.scatter"
    members = group_of(group, what)
    rank_in_group(members, what, "root", root)
    arrays = None
    if members.rank == root:
        given_arrays, several = as_list(what, data)
        arrays = (
            [as_numpy(a) for a in given_arrays] if several else _split_rows(what, as_numpy(given_arrays[0]), members)
        )
        if len(arrays) != members.size:
            raise ArgumentError(f"{what}: data has {len(arrays)} arrays for {members.size} processes")
    if members.size == 1:
        assert arrays is not None
        part = arrays[0]
    else:
        part = members.run_in_order(lambda: members.scatter(arrays, root, what))
    return with_mode_class(array_from_numpy(np.array(part), ctx, copy=None))


def _split_rows(what: str, x: np.ndarray, group: ProcessGroup, splits: Sequence[int] | None = None) -> list[np.ndarray]:
    if not x.shape:
        raise ArgumentError(f"{what}: an array without axes cannot be cut")
    if splits is None:
        if x.shape[0] % group.size:
            raise ArgumentError(f"{what}: {x.shape[0]} rows cannot be cut into {group.size} equal parts")
        splits = [x.shape[0] // group.size] * group.size
    sizes = [int(n) for n in splits]
    if len(sizes) != group.size or min(sizes) < 0 or sum(sizes) != x.shape[0]:
        raise ArgumentError(
            f"{what}: splits={sizes}: expected {group.size} numbers that make {x.shape[0]}, the rows of the array"
        )
    return np.split(x, np.cumsum(sizes)[:-1])


def reduce_scatter(
    data: NDArray, op: str = "sum", prescale: float = 1.0, postscale: float = 1.0, group: ProcessGroup | None = None
) -> NDArray:
    """Return this process's equal part, along the first axis, of what `op` makes of all arrays.

    Differentiable for sums and averages.

    Raises:
        ArgumentError: shapes or dtypes differ, or rows that cannot be cut equally. MXNetError: a process is gone.

    Example:
        >>> import dualmx as mx
        >>> mx.parallel.reduce_scatter(mx.nd.ones((2, 3))).shape
        (2, 3)
    """
    what = "parallel.reduce_scatter"
    (x,), _ = as_list(what, [data])
    members = group_of(group, what)
    check_op(what, op, np.dtype(x.dtype), prescale, postscale)
    _split_rows(what, np.empty(x.shape[:1] and (x.shape[0],), np.bool_), members)

    def there(xs: Sequence[NDArray]) -> list[NDArray]:
        if members.size == 1:
            return reduce_single_process(xs, prescale * postscale)
        mine = scale(as_numpy(xs[0]), prescale)
        return [array_from_numpy(members.reduce_scatter(mine, op, postscale, what), like=xs[0], copy=None)]

    def back(dys: Sequence[NDArray]) -> list[NDArray]:
        if op not in ("sum", "average"):
            raise ArgumentError(f"{what}: op={op!r} has no gradient; sums and averages do")
        factor = prescale * postscale / (members.size if op == "average" else 1)
        grad = as_numpy(dys[0])
        if members.size > 1:
            grad = np.concatenate(members.all_gather(grad, True, what))
        return [array_from_numpy(scale(grad, factor), like=dys[0], copy=None)]

    found = DifferentiableCollective(
        lambda xs: members.run_in_order(lambda: there(xs)), lambda dys: members.run_in_order(lambda: back(dys))
    )(x)
    return found[0]


def reduce_single_process(arrays: Sequence[NDArray], factor: float) -> list[NDArray]:
    """What a process that is alone gets."""
    return [a.copy() if factor == 1 else a * factor for a in arrays]


def all_to_all(data: Any, splits: Sequence[int] | None = None, group: ProcessGroup | None = None) -> Any:
    """Send to each process its part, and return the parts from all, in their order.

    Differentiable for an array.

    Args:
        data: an array that is cut along its first axis, whose received parts are joined; or a list of one array per
            process, which gives a list.
        splits: rows for each process; equally many by default.
        group: the processes; all by default.

    Raises:
        ArgumentError: splits that do not fit, or dtypes or other axes differ. MXNetError: a process is gone.

    Example:
        >>> import dualmx as mx
        >>> mx.parallel.all_to_all(mx.nd.ones((2, 3)), splits=[2]).shape
        (2, 3)
    """
    what = "parallel.all_to_all"
    arrays, several = as_list(what, data)
    members = group_of(group, what)
    if several:
        if len(arrays) != members.size:
            raise ArgumentError(f"{what}: data has {len(arrays)} arrays for {members.size} processes")
        parts = [as_numpy(a) for a in arrays]
        found = parts if members.size == 1 else members.run_in_order(lambda: members.all_to_all(parts, what))
        return [array_from_numpy(np.array(v), like=a, copy=None) for v, a in zip(found, arrays, strict=True)]
    sizes: list[int] = []

    def there(xs: Sequence[NDArray]) -> list[NDArray]:
        parts = _split_rows(what, as_numpy(xs[0]), members, splits)
        found = parts if members.size == 1 else members.all_to_all(parts, what)
        sizes[:] = [len(v) for v in found]
        return [array_from_numpy(np.concatenate(found), like=xs[0], copy=None)]

    def back(dys: Sequence[NDArray]) -> list[NDArray]:
        parts = _split_rows(what, as_numpy(dys[0]), members, sizes)
        found = parts if members.size == 1 else members.all_to_all(parts, what)
        return [array_from_numpy(np.concatenate(found), like=dys[0], copy=None)]

    run = DifferentiableCollective(
        lambda xs: members.run_in_order(lambda: there(xs)), lambda dys: members.run_in_order(lambda: back(dys))
    )
    return run(arrays[0])[0]


def broadcast_object(value: Any = None, root: int = 0, group: ProcessGroup | None = None) -> Any:
    """Return the value of process `root`: None, bool, numbers, str, bytes, arrays, lists, tuples, sets, dicts of these.

    Raises:
        ArgumentTypeError: something else; no code travels. ArgumentError: no such process. MXNetError: one is gone.

    Example:
        >>> broadcast_object({"epoch": 3})
        {'epoch': 3}
    """
    what = "parallel.broadcast_object"
    members = group_of(group, what)
    rank_in_group(members, what, "root", root)
    data = object_codec.encode(value, what) if members.rank == root else None
    if members.size > 1:
        arrays = None if data is None else [data] * members.size
        data = members.run_in_order(lambda: members.scatter(arrays, root, what, "broadcast_object"))
    assert data is not None
    return object_codec.decode(data)


def all_gather_object(value: Any, group: ProcessGroup | None = None) -> list[Any]:
    """Return the values of all processes in their order; see `broadcast_object`.

    Raises:
        ArgumentTypeError: something that cannot be sent. MXNetError: a process is gone.

    Example:
        >>> all_gather_object((1, "a"))
        [(1, 'a')]
    """
    what = "parallel.all_gather_object"
    members = group_of(group, what)
    data = object_codec.encode(value, what)
    found = [data] if members.size == 1 else members.run_in_order(lambda: members.all_gather(data, False, what))
    return [object_codec.decode(d) for d in found]


__all__ = [
    "all_gather_object", "all_to_all", "broadcast_object", "gather", "reduce", "reduce_scatter", "scatter",
]  # fmt: skip
