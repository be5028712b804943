"""Kernels by operator and storage types, and the storage types of their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError
from ..ndarray import handle
from ..ndarray.ndarray import NDArray
from ..op import sparse_components as part
from ..op.registry import OPS, Call
from ..op.traits import StorageRule
from . import dispatch
from .base import BaseSparseNDArray, component, pad_to, padded_size
from .creation import zeros
from .csr import CSRNDArray
from .dispatch import as_stype, kernel, storages
from .row_sparse import RowSparseNDArray

Ins = Sequence[NDArray]
Rates = Sequence[float]


def dense_of(a: NDArray) -> NDArray:
    """The dense array with the elements of `a`."""
    return a.to_dense() if isinstance(a, BaseSparseNDArray) else a


def tracked(ins: Ins) -> bool:
    """True if gradients can flow to a sparse input; such calls are recorded on dense arrays."""
    return any(isinstance(a, BaseSparseNDArray) and a.tracked for a in ins)


def dense_fallback(call: Call, ins: Ins, runtime: Rates, stype: str) -> list[NDArray]:
    """Compute on dense arrays; the result has the storage type that the rules say."""
    made = handle.invoke(call, [dense_of(a) for a in ins], runtime)
    return [as_stype(m, stype) for m in made]


# -- one operand


@kernel(StorageRule.KEEPS_ZEROS, StorageRule.PASSES_THROUGH)
def elementwise(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """One operand of which zeros stay zeros: the call on the stored elements."""
    (a,) = ins
    assert isinstance(a, BaseSparseNDArray)
    return [a.map_values(call, runtime)]


@kernel(StorageRule.SCALAR)
def scalar_rule(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """An operand and a scalar: the call on the stored elements if 0 and the scalar give 0."""
    scalar = runtime[0] if runtime else call.params["scalar"]
    zero_stays = call.op.traits.zero_stays
    return elementwise(call, ins, runtime) if zero_stays is not None and zero_stays(scalar) else None


@kernel(StorageRule.CLIP, needs="the bounds must include 0; convert with tostype('default') first")
def clip(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """Clipping of the stored elements, if the bounds include 0."""
    if not call.params["a_min"] <= 0 <= call.params["a_max"]:
        return None
    return elementwise(call, ins, runtime)


@kernel(StorageRule.NO_ELEMENTS)
def zeros_like(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """An array of the same storage type that stores nothing."""
    if tracked(ins):
        return dense_fallback(call, ins, runtime, ins[0].stype)
    return [zeros(ins[0].stype, ins[0].shape, ins[0].context, ins[0].dtype)]


@kernel(StorageRule.CAST, needs="convert by way of the default storage type")
def cast_storage(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """The array in the storage type asked for; between two sparse ones there is no rule."""
    (a,) = ins
    stype = call.params["stype"]
    if stype != "default" and a.stype not in ("default", stype):
        return None
    return [as_stype(a, stype) if a.stype != stype else a.copy()]


@kernel(StorageRule.RETAIN_ROWS, needs="the array must be row_sparse")
def retain(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """The rows of a row_sparse array that are listed."""
    a, ids = ins
    if not isinstance(a, RowSparseNDArray):
        return None
    return dense_fallback(call, ins, runtime, "row_sparse") if tracked(ins) else [a.retain(ids)]


@kernel(StorageRule.SQUARE_SUM, needs="the array must be row_sparse, with an axis")
def square_sum(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """Sums of squares of a row_sparse array; along the rows with `keepdims` they are row_sparse too."""
    (a,) = ins
    axis = call.params["axis"]
    if not isinstance(a, RowSparseNDArray) or not axis:
        return None
    if axis in ((1,), (-1,)) and call.params["keepdims"] and a.ndim == 2:
        if tracked(ins):
            return dense_fallback(call, ins, runtime, "row_sparse")
        return [a.coalesced().with_values(handle.invoke(call, (a.coalesced().rows,))[0])]
    return handle.invoke(call, (dense_of(a),))


@kernel(StorageRule.SUM, StorageRule.MEAN)
def csr_sum(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """Sum or mean of a csr array over its stored elements, dense."""
    (a,) = ins
    p = call.params
    if not isinstance(a, CSRNDArray) or a.dense is not None or p.get("exclude"):
        return None
    call.infer(((a.shape, np.dtype(a.dtype)),))
    axes = tuple(n % 2 for n in (p["axis"] or (0, 1)))
    sums = part.csr_sum.call(shape=a.shape, axis=axes[0])
    found = handle.invoke(sums, (a.values, a.column_ids, a.pointer))[0]
    if len(axes) > 1:
        found = found.sum()
    if call.op.traits.storage is StorageRule.MEAN:
        found = found / float(np.prod([a.shape[n] for n in axes]))
    if p["keepdims"]:
        found = found.reshape(tuple(1 if n in axes else d for n, d in enumerate(a.shape)))
    return [found]


@kernel(StorageRule.NORM)
def norm(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """Norm of all stored elements, dense."""
    (a,) = ins
    if call.params.get("axis") or call.params.get("keepdims") or tracked(ins) or not isinstance(a, BaseSparseNDArray):
        return None
    held = a.materialized()
    if isinstance(held, RowSparseNDArray):
        held = held.coalesced()
        rows = handle.invoke(part.valid_rows.call(length=a.shape[0]), (held.rows, held.ids))[0]
        return handle.invoke(call, (rows,))
    return handle.invoke(call, (held._stored(),))


@kernel(StorageRule.SLICE)
def slice_rule(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """A block of a csr array, csr; steps other than 1 have no rule."""
    (a,) = ins
    p = call.params
    if not isinstance(a, CSRNDArray) or any(s not in (None, 1) for s in p["step"] or ()):
        return None
    bounds = []
    for n, length in enumerate(a.shape):
        given = [(p[name][n] if n < len(p[name] or ()) else None) for name in ("begin", "end")]
        begin, end, _ = slice(*given).indices(length)
        if begin >= end:
            raise ArgumentError(f"slice: begin={p['begin']}, end={p['end']}: nothing is left of shape {a.shape}")
        bounds.append((begin, end))
    (top, bottom), (left, right) = bounds
    return [a.submatrix(top, bottom, left, right)]


# -- two operands


@kernel(StorageRule.SAME_STORAGE, StorageRule.SAME_STORAGE_EAGER)
def same_storage(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """Two operands of one storage type, which the result has too."""
    kinds = storages(ins)
    if kinds[0] != kinds[1] or kinds[0] == "default":
        return None
    return sparse_binary(call, ins, runtime)


def sparse_binary(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """Apply `call` where at least one of two arrays of one storage type stores something."""
    a, b = ins
    if tracked(ins):
        return dense_fallback(call, ins, runtime, a.stype)
    if a.shape != b.shape or a.dtype != b.dtype:
        call.infer(tuple((x.shape, np.dtype(x.dtype)) for x in ins))
        raise ArgumentError(f"{call!r}: shapes {a.shape} and {b.shape} differ")
    if isinstance(a, RowSparseNDArray) and isinstance(b, RowSparseNDArray):
        return [_rows_both(call, a.coalesced(), b.coalesced())]
    if isinstance(a, CSRNDArray) and isinstance(b, CSRNDArray):
        return [_csr_both(call, a, b)]
    return None


def _rows_both(call: Call, a: RowSparseNDArray, b: RowSparseNDArray) -> NDArray:
    found = [x.ids.asnumpy()[: x.n_stored_rows] for x in (a, b)]
    ids = np.union1d(*found).astype(np.int32)
    size = padded_size(len(ids), a.shape[0])
    sides = []
    for x, own in zip((a, b), found, strict=True):
        slots = pad_to(np.searchsorted(ids, own).astype(np.int32), x.ids.shape[0], size)
        sides.append(handle.invoke(part.rows_dense.call(length=size), (x.rows, component(slots, a.context)))[0])
    rows = handle.invoke(call, sides)[0]
    return RowSparseNDArray.of(a.shape, rows, component(pad_to(ids, size, a.shape[0]), a.context), len(ids))


def _csr_both(call: Call, a: CSRNDArray, b: CSRNDArray) -> NDArray:
    width = a.shape[1]
    hosts = [(x.host(), x.row_ids()) for x in (a, b)]
    keys = [lines * width + columns for (_, columns, _), lines in hosts]
    places = np.union1d(*keys)
    size = padded_size(len(places))
    sides = []
    for ((values, _, _), _), own in zip(hosts, keys, strict=True):
        side = np.zeros(size, values.dtype)
        np.add.at(side, np.searchsorted(places, own), values)
        sides.append(component(side, a.context))
    values = handle.invoke(call, sides)[0].asnumpy()[: len(places)]
    kept = values != 0
    lines, columns = np.divmod(places[kept], width)
    pointer = np.concatenate([[0], np.cumsum(np.bincount(lines, minlength=a.shape[0]))])
    return CSRNDArray.of_host(a.shape, values[kept], columns, pointer, a.context)


@kernel(StorageRule.PRODUCT)
def multiply(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """Product of two arrays, of which a dense one is looked up where the sparse one stores something."""
    kinds = storages(ins)
    if kinds[0] == kinds[1]:
        return sparse_binary(call, ins, runtime)
    if "default" not in kinds:
        return None
    which = int(kinds[0] == "default")
    return on_stored_elements(call, ins, runtime, which)


def on_stored_elements(call: Call, ins: Ins, runtime: Rates, which: int) -> list[NDArray] | None:
    """Apply a call of a sparse array, input `which`, and a dense one to the stored elements."""
    sparse = ins[which]
    if tracked(ins):
        return dense_fallback(call, ins, runtime, sparse.stype)
    call.infer(tuple((x.shape, np.dtype(x.dtype)) for x in ins))
    other = dense_of(ins[1 - which])
    if isinstance(sparse, RowSparseNDArray):
        held: Any = sparse.coalesced()
        seen = handle.invoke(part.rows_gather.call(), (held.ids, other))[0]
    elif isinstance(sparse, CSRNDArray) and other.ndim == 2:
        held = sparse.materialized()
        seen = handle.invoke(part.csr_sample.call(), (other, held.column_ids, held.pointer))[0]
    else:
        return None
    sides = (held._stored(), seen) if which == 0 else (seen, held._stored())
    return [held.with_values(handle.invoke(_plain(call), sides)[0])]


def _plain(call: Call) -> Call:
    """The call on arrays of one shape."""
    return OPS[call.op.name.replace("broadcast_", "elemwise_")].call()


@kernel(StorageRule.SCALE_BY_BROADCAST)
def broadcast(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """A csr array times or over a row, column or array of numbers, csr."""
    a, b = ins
    if storages(ins) != ("csr", "default") or b.ndim > 2:
        return None
    if b.ndim == 1:
        b = b.reshape((1, -1))
    return on_stored_elements(call, (a, b), runtime, 0)


@kernel(StorageRule.DIVIDE_STORED)
def scatter_divide(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """Quotient at the stored rows of the first operand, row_sparse."""
    return on_stored_elements(call, ins, runtime, 0) if isinstance(ins[0], RowSparseNDArray) else None


# -- many operands


@kernel(StorageRule.ADD_ALL)
def add_n(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """Sum of row_sparse arrays, their stored rows put one after the other."""
    if any(k != "row_sparse" for k in storages(ins)):
        return None
    if tracked(ins):
        return dense_fallback(call, ins, runtime, "row_sparse")
    call.infer(tuple((x.shape, np.dtype(x.dtype)) for x in ins))
    flat: list[NDArray] = []
    for a in ins:
        assert isinstance(a, RowSparseNDArray)
        held = a if a.dense is None else a.materialized()
        flat += (held.ids, held.rows)
    ids, rows = handle.invoke(part.concat_rows.call(num_args=len(flat)), flat)
    return [RowSparseNDArray.of(ins[0].shape, rows, ids, None)]


@kernel(StorageRule.STACK_ROWS)
def concat(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """csr arrays below each other, csr."""
    if any(k != "csr" for k in storages(ins)) or call.params["dim"] not in (0, -2):
        return None
    if tracked(ins):
        return dense_fallback(call, ins, runtime, "csr")
    shapes = call.infer(tuple((x.shape, np.dtype(x.dtype)) for x in ins))[0][0]
    hosts = [a.host() for a in ins if isinstance(a, CSRNDArray)]
    ends = np.concatenate([[0], *[np.diff(pointer) for _, _, pointer in hosts]])
    values, columns = (np.concatenate([h[k] for h in hosts]) for k in (0, 1))
    return [CSRNDArray.of_host(shapes, values, columns, np.cumsum(ends), ins[0].context)]


# -- tables


@kernel(StorageRule.TABLE_LOOKUP, needs="the ids must be dense, the table dense or row_sparse")
def embedding(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """Rows of a row_sparse table by dense ids, dense."""
    ids, table = ins
    if dispatch.is_sparse(ids) or not isinstance(table, RowSparseNDArray):
        return None
    if table.tracked and table.table is not None:
        return handle.invoke(call, (ids, table.table))
    if table.dense is None:
        held = table.coalesced().sorted_by_id()
        if held.rows.shape[0] < table.shape[0]:
            call.infer(((ids.shape, np.dtype(ids.dtype)), (table.shape, np.dtype(table.dtype))))
            wanted = ids.clip(0, table.shape[0] - 1)
            at = handle.invoke(part.rows_find.call(), (held.ids, wanted))[0]
            return handle.invoke(part.take_rows_or_zero.call(), (held.rows, at))
    return handle.invoke(call, (ids, table.to_dense()))


@kernel(StorageRule.TAKE_ROWS)
def take(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """Rows of a csr array by dense ids, csr."""
    a, ids = ins
    if not isinstance(a, CSRNDArray) or dispatch.is_sparse(ids) or call.params["axis"] != 0 or ids.ndim != 1:
        return None
    if tracked(ins):
        return dense_fallback(call, ins, runtime, "csr")
    chosen, rows = ids.asnumpy().astype(np.int64), a.shape[0]
    chosen = chosen % rows if call.params["mode"] == "wrap" else np.clip(chosen, 0, rows - 1)
    values, columns, pointer = a.host()
    lengths = np.diff(pointer)[chosen]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    at = np.arange(ends[-1]) + np.repeat(pointer[chosen] - ends[:-1], lengths)
    return [CSRNDArray.of_host((len(chosen), a.shape[1]), values[at], columns[at], ends, a.context)]


@kernel(StorageRule.MATRIX_PRODUCT)
def dot(call: Call, ins: Ins, runtime: Rates) -> list[NDArray] | None:
    """Matrix product of a csr array, stored as `forward_stype` or MXNet's rules say."""
    a, b = ins
    p = call.params
    turned, stype = p["transpose_a"], _dot_storage(call, ins)
    if p["forward_stype"] is not None:
        stype = p["forward_stype"]
    if isinstance(a, CSRNDArray) and storages(ins)[1] != "csr" and not p["transpose_b"] and b.ndim == 2:
        call.infer(tuple((x.shape, np.dtype(x.dtype)) for x in ins))
        if not a.tracked:
            return [as_stype(_csr_dot(a.materialized(), b, turned), stype)]
    elif isinstance(a, CSRNDArray) and b.ndim != 2:
        raise ArgumentError(f"dot: rhs of shape {b.shape}: the product with a csr array needs 2 axes")
    return dense_fallback(call, ins, runtime, stype)


def _dot_storage(call: Call, ins: Ins) -> str:
    """Storage type of a product when none is asked for."""
    kinds = storages(ins)
    p = call.params
    if kinds == ("default", "csr") and not p["transpose_a"]:
        return "csr"
    by_row = kinds[0] == "csr" and kinds[1] != "csr" and p["transpose_a"] and not p["transpose_b"]
    return "row_sparse" if by_row else "default"


def _csr_dot(a: CSRNDArray, b: NDArray, turned: bool) -> NDArray:
    pieces = (a.column_ids, a.pointer)
    if turned:
        call = part.csr_transposed_dot.call(width=a.shape[1])
        ids, rows = handle.invoke(call, (a.values, dense_of(b), *pieces))
        made = RowSparseNDArray.of((a.shape[1], b.shape[1]), rows, ids, None)
        # What gradients flow through is held densely.
        return RowSparseNDArray.of_dense(made.to_dense()) if handle.is_tracked(rows) else made
    if isinstance(b, RowSparseNDArray) and b.table is not None and b.tracked:
        b = b.table
    if isinstance(b, RowSparseNDArray) and b.dense is None:
        held = b.coalesced().sorted_by_id()
        at = handle.invoke(part.rows_find.call(), (held.ids, a.column_ids))[0]
        seen = handle.invoke(part.take_rows_or_zero.call(), (held.rows, at))[0]
    else:
        seen = handle.invoke(part.rows_gather.call(), (a.column_ids, dense_of(b)))[0]
    return handle.invoke(part.csr_combine.call(), (a.values, seen, a.pointer))[0]
