"""Enqueue collectives on the background loop; run them inline in a single process or where XLA does them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import parallel
from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray import NDArray
from ..ndarray.interop import array_from_numpy
from ..parallel.collectives import all_reduce_rows, as_numpy
from ..parallel.mailbox import Handle
from ..parallel.reduce_ops import check_op, reduce_values, scale
from .background_loop import BackgroundLoop, TensorEntry
from .controller import REDUCTION, Request
from .process_sets import ProcessSet, group_of, loop_of
from .timeline import timeline

Average, Sum, Adasum, Min, Max, Product = "average", "sum", "adasum", "min", "max", "product"


def completed_handle(value: Any) -> Handle:
    """Return the handle of something that is over."""
    return Handle(lambda: value, lambda: True)


def enqueue(engine: BackgroundLoop, request: TensorEntry, finish: Callable[[Any, int], Any]) -> Handle:
    """Enqueue a collective; `finish` makes the result from the received values and the number of ranks."""
    engine.submit(request)
    return Handle(lambda: finish(*engine.wait(request)), request.future.done)


def _enqueue_each(
    engine: BackgroundLoop,
    ask: Request,
    tensors: Sequence[NDArray],
    exchange: Callable[[parallel.ProcessGroup, np.ndarray], np.ndarray],
) -> Handle:
    """Begin to exchange arrays one by one; each has a result, on its context."""
    values = [as_numpy(t) for t in tensors]

    def run(group: parallel.ProcessGroup) -> list[np.ndarray]:
        return [exchange(group, x) for x in values]

    def finish(found: list[np.ndarray], _: int) -> list[NDArray]:
        return [array_from_numpy(f, like=t, copy=None) for f, t in zip(found, tensors, strict=True)]

    return enqueue(engine, TensorEntry(ask, run=run, kept=[t.realize() for t in tensors]), finish)


def _check_arrays(what: str, tensors: Sequence[Any]) -> None:
    for t in tensors:
        if not isinstance(t, NDArray):
            raise ArgumentTypeError(f"hvd.{what}: a {type(t).__name__}: expected NDArrays")


def _dtype_and_shape(x: Any, rows: bool = False) -> str:
    """Return what must be equal on all ranks; `rows` may differ."""
    return f"{np.dtype(x.dtype).name} {('*', *x.shape[1:]) if rows else tuple(x.shape)}"


def _listed(arrays: Sequence[Any], rows: bool = False) -> str:
    shown = ", ".join(_dtype_and_shape(a, rows) for a in arrays[:8])
    return shown + (f" and {len(arrays) - 8} more" if len(arrays) > 8 else "")


def _bytes(arrays: Sequence[Any]) -> int:
    return sum(int(np.prod(a.shape)) * np.dtype(a.dtype).itemsize for a in arrays)


def _shown(what: str, name: str | None, kind: str) -> None:
    """The events of an exchange without others."""
    if timeline.on:
        tensor = name or f"{kind}.{what}"
        timeline.negotiate(tensor, kind)
        timeline.mark(tensor, str(parallel.rank()))
        timeline.end(tensor)
        timeline.begin(tensor, kind.upper())
        timeline.end(tensor)


def scale_integers(x: np.ndarray, factor: float) -> np.ndarray:
    """Return integers times a factor, truncated to integers."""
    return x if factor == 1 else (x.astype(np.float64) * factor).astype(x.dtype)


def enqueue_allreduce(
    what: str, tensors: Sequence[NDArray], op: str, before: float, after: float, process_set: ProcessSet,
    name: str | None,
) -> Handle:  # fmt: skip
    """Begin to reduce arrays; the result is a list of arrays."""
    _check_arrays(what, tensors)
    integers = [np.dtype(t.dtype).kind in "iu" for t in tensors]
    for t, integer in zip(tensors, integers, strict=True):
        factors = (1.0, 1.0) if integer else (before, after)
        check_op(f"hvd.{what}", Sum if op == Adasum or (integer and op == Average) else op, np.dtype(t.dtype), *factors)
    engine = loop_of(what, process_set)
    if not tensors:
        return completed_handle([])
    if any(t.stype != "default" for t in tensors):
        return _enqueue_row_allreduce(what, tensors, op, before, after, process_set, engine, name)
    if op == Adasum:
        return _adasum(what, tensors, before, after, process_set, engine, name)
    if engine is None:
        _shown(what, name, REDUCTION)
        group = group_of(what, process_set)
        return completed_handle(
            [_allreduce_inline(t, i, op, before, after, group) for t, i in zip(tensors, integers, strict=True)]
        )
    values = [(scale_integers if i else scale)(as_numpy(t), before) for t, i in zip(tensors, integers, strict=True)]
    kind = Sum if any(integers) and op == Average else op
    if kind != op and not all(integers):
        raise ArgumentError(f"hvd.{what}: integers and other types together: expected arrays of one kind")
    text = f"{_listed(tensors)}, op={op}, prescale={before:g}, postscale={after:g}"
    ask = Request(name or "", REDUCTION, text, _bytes(tensors), f"{op} {before:g} {after:g} {any(integers)}")
    post = 1.0 if any(integers) else after
    request = TensorEntry(ask, values, kind, post, kept=[t.realize() for t in tensors])

    def finish(found: list[np.ndarray], count: int) -> list[NDArray]:
        if any(integers):
            found = [scale_integers(f, after / count if op == Average else after) for f in found]
        return [array_from_numpy(f, like=t, copy=None) for f, t in zip(found, tensors, strict=True)]

    return enqueue(engine, request, finish)


def _allreduce_inline(t: NDArray, integer: bool, op: str, before: float, after: float, group: Any) -> NDArray:
    if not integer:
        return parallel.all_reduce(t, op, before, after, group)
    values = array_from_numpy(scale_integers(as_numpy(t), before), like=t, copy=None)
    total = parallel.all_reduce(values, Sum if op == Average else op, group=group)
    return array_from_numpy(
        scale_integers(as_numpy(total), after / parallel.size(group) if op == Average else after), like=t, copy=None
    )


def _enqueue_row_allreduce(
    what: str, tensors: Sequence[Any], op: str, before: float, after: float, process_set: ProcessSet,
    engine: BackgroundLoop | None, name: str | None,
) -> Handle:  # fmt: skip
    """Reduce row_sparse arrays by sending their rows."""
    if any(t.stype == "default" for t in tensors) or op not in (Sum, Average):
        raise ArgumentError(f"hvd.{what}: sparse arrays are summed or averaged, apart from dense ones")
    if engine is None:
        return completed_handle(parallel.all_reduce(list(tensors), op, before, after, group_of(what, process_set)))
    for t in tensors:
        t.wait_to_read()

    def run(group: parallel.ProcessGroup) -> list[Any]:
        factor = before * (after / group.size if op == Average else after)
        return [all_reduce_rows(t, factor, group, f"hvd.{what}") for t in tensors]

    text = f"row_sparse {_listed(tensors)}, op={op}, prescale={before:g}, postscale={after:g}"
    return enqueue(engine, TensorEntry(Request(name or "", REDUCTION, text), run=run), lambda found, _: found)


def _adasum(
    what: str, tensors: Sequence[NDArray], before: float, after: float, process_set: ProcessSet,
    engine: BackgroundLoop | None, name: str | None,
) -> Handle:  # fmt: skip
    """Combine by a tree of pairs: (1 - a·b / 2a·a)·a + (1 - a·b / 2b·b)·b (Maleki et al. 2020)."""
    count = process_set.size()
    if count & (count - 1):
        raise ArgumentError(f"hvd.{what}: op=Adasum with {count} processes: expected a power of 2")
    wide = [t.asnumpy().astype(np.float64) * before for t in tensors]

    def run(group: parallel.ProcessGroup | None) -> list[NDArray]:
        found = []
        for x, t in zip(wide, tensors, strict=True):
            parts = [x] if group is None or group.size == 1 else group.all_gather(x, True, f"hvd.{what}")
            while len(parts) > 1:
                parts = [_pair(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
            found.append(array_from_numpy((parts[0] * after).astype(np.dtype(t.dtype)), like=t, copy=None))
        return found

    if engine is None:
        return completed_handle(run(group_of(what, process_set)))
    text = f"{_listed(tensors)}, op={Adasum}, prescale={before:g}, postscale={after:g}"
    return enqueue(engine, TensorEntry(Request(name or "", REDUCTION, text), run=run), lambda found, _: found)


def _pair(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    dot, of_a, of_b = (float(np.vdot(x, y)) for x, y in ((a, b), (a, a), (b, b)))
    return (1 - dot / (2 * of_a) if of_a else 1) * a + (1 - dot / (2 * of_b) if of_b else 1) * b


def enqueue_allgather(what: str, tensors: Sequence[NDArray], process_set: ProcessSet, name: str | None) -> Handle:
    """Begin to join arrays along their first axes."""
    engine = loop_of(what, process_set)
    _check_arrays(what, tensors)
    for t in tensors:
        if not t.shape:
            raise ArgumentError(f"hvd.{what}: an array without axes: expected one to join arrays along")
    if engine is None:
        _shown(what, name, "allgather")
        return completed_handle(parallel.all_gather(list(tensors), join=True, group=group_of(what, process_set)))
    ask = Request(name or "", "allgather", _listed(tensors, True), _bytes(tensors))
    return _enqueue_each(
        engine, ask, tensors, lambda group, x: np.concatenate(group.all_gather(x, False, f"hvd.{what}"))
    )


def enqueue_broadcast(
    what: str, tensors: Sequence[NDArray], root: int, process_set: ProcessSet, name: str | None
) -> Handle:
    """Begin to take over the arrays of the member `root`."""
    engine = loop_of(what, process_set)
    _check_arrays(what, tensors)
    if engine is None:
        _shown(what, name, "broadcast")
        return completed_handle(parallel.broadcast(list(tensors), root, group_of(what, process_set)))
    ask = Request(name or "", "broadcast", f"{_listed(tensors)}, root_rank={process_set.ranks[root]}", _bytes(tensors))
    return _enqueue_each(engine, ask, tensors, lambda group, x: np.array(group.broadcast(x, root, f"hvd.{what}")))


def enqueue_alltoall(
    what: str, tensor: NDArray, splits: Sequence[int] | None, process_set: ProcessSet, name: str | None
) -> Handle:
    """Enqueue an all-to-all; the result is the received rows, and their number from each rank."""
    engine = loop_of(what, process_set)
    count = process_set.size()
    if not isinstance(tensor, NDArray):
        raise ArgumentTypeError(f"hvd.{what}: a {type(tensor).__name__}: expected an NDArray")
    if not tensor.shape:
        raise ArgumentError(f"hvd.{what}: an array without axes cannot be cut")
    rows = tensor.shape[0]
    if splits is None and rows % count:
        raise ArgumentError(f"hvd.{what}: {rows} rows cannot be cut into {count} equal parts; give splits")
    sizes = [rows // count] * count if splits is None else list(splits)
    if len(sizes) != count or min(sizes) < 0 or sum(sizes) != rows:
        raise ArgumentError(f"hvd.{what}: splits={sizes}: expected {count} numbers that make {rows} rows")
    if engine is None:
        _shown(what, name, "alltoall")
        found = parallel.all_to_all(tensor, sizes, group_of(what, process_set))
        received = parallel.all_to_all([_number(n) for n in sizes], group=group_of(what, process_set))
        return completed_handle((found, [int(n.asscalar()) for n in received]))
    parts = np.split(as_numpy(tensor), np.cumsum(sizes)[:-1])
    ask = Request(name or "", "alltoall", _dtype_and_shape(tensor, True), _bytes([tensor]))
    request = TensorEntry(ask, run=lambda group: group.all_to_all(parts, f"hvd.{what}"), kept=tensor.realize())
    return enqueue(
        engine,
        request,
        lambda found, _: (array_from_numpy(np.concatenate(found), like=tensor, copy=None), [len(f) for f in found]),
    )


def _number(n: int) -> NDArray:
    from ..namespace import nd

    return nd.array([n], dtype="int32")


def enqueue_reducescatter(
    what: str, tensors: Sequence[NDArray], op: str, before: float, after: float, process_set: ProcessSet,
    name: str | None,
) -> Handle:  # fmt: skip
    """Begin to reduce arrays of which each process keeps its rows; the first ones one more if they are not equal."""
    engine = loop_of(what, process_set)
    count = process_set.size()
    _check_arrays(what, tensors)
    for t in tensors:
        if op not in (Sum, Average):
            raise ArgumentError(f"hvd.{what}: op={op!r}: expected Average or Sum of hvd")
        check_op(f"hvd.{what}", op, np.dtype(t.dtype), before, after)
        if not t.shape:
            raise ArgumentError(f"hvd.{what}: an array without axes cannot be cut")
    if engine is None and (count == 1 or all(t.shape[0] % count == 0 for t in tensors)):
        _shown(what, name, "reducescatter")
        group = group_of(what, process_set)
        return completed_handle([parallel.reduce_scatter(t, op, before, after, group) for t in tensors])
    values = [scale(as_numpy(t), before) for t in tensors]

    def run(group: parallel.ProcessGroup) -> list[NDArray]:
        results = []
        for x, t in zip(values, tensors, strict=True):
            parts = group.all_to_all(np.array_split(x, group.size), f"hvd.{what}")
            out = np.empty(parts[0].shape, x.dtype)
            reduce_values(parts, op, after, out)
            results.append(array_from_numpy(out, like=t, copy=None))
        return results

    if engine is None:
        members = group_of(what, process_set) or parallel.new_group()
        return completed_handle(members.run_in_order(lambda: run(members)))
    ask = Request(name or "", "reducescatter", f"{_listed(tensors)}, op={op}", _bytes(tensors))
    return enqueue(engine, TensorEntry(ask, run=run, kept=[t.realize() for t in tensors]), lambda found, _: found)


__all__ = ["Adasum", "Average", "Max", "Min", "Product", "Sum"]
