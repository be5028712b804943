"""Lazy optimizer updates: only the rows that a row_sparse gradient stores are read and written."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..core.errors import ArgumentError
from ..ndarray import handle
from ..ndarray.ndarray import NDArray
from ..op.registry import Call, Op
from ..op.schema import AUX, UNTYPED, Input
from ..op.sparse_components import ids_of_dense, set_rows, sum_duplicates
from ..op.traits import RowUpdate
from .base import BaseSparseNDArray, component, pad_to, padded_size
from .row_sparse import RowSparseNDArray


def _is_plain_descent(dense: Call) -> bool:
    p = dense.params
    return dense.op.traits.row_update is RowUpdate.SCALED_ROW and p["wd"] == 0 and p["clip_gradient"] <= 0


@cache
def row_update_call(dense: Call, unique: bool) -> Call:
    """The call that applies the update `dense` to the rows of a gradient given as rows and ids.

    Args:
        dense: call of an update operator on a weight, its gradient and states of as many rows.
        unique: each row occurs once; otherwise rows of equal number are summed first.
    """
    names = [i.name for i in dense.op.inputs][2:]

    def body(weight: Any, rows: Any, ids: Any, **given: Any) -> Any:
        states = [given[n] for n in names]
        scalars = [given[n] for n in dense.op.runtime]
        if _is_plain_descent(dense):
            step = -(scalars[dense.op.runtime.index("lr")] * scalars[dense.op.runtime.index("rescale_grad")])
            return weight.at[ids].add(rows.astype(weight.dtype) * step.astype(weight.dtype), mode="drop")
        if not unique:
            ids, rows = sum_duplicates(ids, rows, weight.shape[0])
        own = [jnp.take(x, ids, axis=0, mode="clip") for x in (weight, *states)]
        new = dense.apply([own[0], rows, *own[1:]], None, scalars)
        old = (weight, *states)
        written = [x.at[ids].set(n, mode="drop") for x, n in zip(old, new, strict=True)]
        return tuple(written) if len(written) > 1 else written[0]

    inputs = (Input("weight", UNTYPED), Input("rows", UNTYPED), Input("ids", UNTYPED), *(Input(n, AUX) for n in names))
    rates = {n: dense.op.params[n] for n in dense.op.runtime}

    op = Op(f"_rows_{dense.op.name.lstrip('_')}", body, inputs, rates)
    return op.bind({n: dense.params[n] for n in rates})


def lazy_update(call: Call, ins: Sequence[NDArray], outs: Sequence[NDArray], runtime: Sequence[float]) -> bool:
    """Make an update by a row_sparse gradient and return True; False for any other call."""
    by_row = call.op.traits.row_update
    if by_row is RowUpdate.DENSE or len(ins) < 2:
        return False
    weight, grad, *states = ins
    if not isinstance(grad, RowSparseNDArray):
        return False
    if grad.shape != weight.shape:
        raise ArgumentError(f"{call.op.name}: grad has shape {grad.shape}, expected the weight's {weight.shape}")
    out = outs[0]
    table = _dense_storage(weight)
    # Without `lazy_update`, where there is that parameter, every row moves as with a dense gradient of zeros.
    lazy = call.params.get("lazy_update", True) and (weight.is_sparse or by_row is not RowUpdate.BY_ROW_OF_SPARSE)
    if not lazy:
        dense = [grad.to_dense(), *(_dense_storage(s) for s in states)]
        handle.invoke_out(call, (table, *dense), (_dense_storage(out),), runtime)
    else:
        held = grad.dense
        rows, ids = (grad.rows, grad.ids) if held is None else (held, handle.invoke(ids_of_dense.call(), (held,))[0])
        update = row_update_call(call, held is not None or grad.count is not None)
        arrays = (table, rows, ids, *(_dense_storage(s) for s in states))
        handle.invoke_out(update, arrays, (_dense_storage(out),), runtime or call.op.runtime_values(call.params))
    for array in (out, *states):
        if isinstance(array, BaseSparseNDArray):
            array._changed()
    return True


def write_rows(array: NDArray, ids: np.ndarray, rows: np.ndarray) -> None:
    """Write `rows` (k, ...) at the row numbers `ids` (k,) of a dense array or a row_sparse one with all its rows."""
    table, size = _dense_storage(array), padded_size(len(ids), array.shape[0])
    where = component(pad_to(np.asarray(ids, np.int32), size, array.shape[0]), array.context)
    new = component(pad_to(rows.astype(array.dtype, copy=False), size), array.context)
    handle.invoke_out(set_rows.call(), (table, new, where), (table,), ())
    if isinstance(array, BaseSparseNDArray):
        array._changed()


def _dense_storage(array: NDArray) -> NDArray:
    """The dense array that a weight or state is held in; from now on, if it was held in pieces."""
    if not isinstance(array, BaseSparseNDArray):
        return array
    if array.dense is None:
        array.dense = array.to_dense()
    return array.dense


__all__ = ["lazy_update", "row_update_call", "write_rows"]
