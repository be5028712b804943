"""Views: windows on another array, through which writes go; the host reads them without a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.trie import aval
from ..op.registry import Call
from . import handle
from .exposed import through
from .handle import Handle, exposed, invoke_unary, is_tracked, read_view_op, ref
from .recorder import engine, local

_PRUNE_AT = 64  # views of one array, from which on those that nobody holds any more are forgotten at times


def register_view(shown: Handle, root: Handle, window: Sequence[Call]) -> None:
    """Make `shown` what the lenses of `window` show of `root`: it becomes stale when `root` is written."""
    own, views = shown._extra(), root._extra().views
    own.view_base, own.view_ops = root, tuple(window)
    if len(views) >= _PRUNE_AT and not len(views) & (len(views) - 1):
        views[:] = [v for v in views if v() is not None]
    views.append(ref(shown))


def second_handle(a: Handle, cls: type[Handle]) -> Any:
    """Return a second handle of class `cls` on `a`: values, writes, gradients and the tape are shared."""
    x = a._meta
    root = x.view_base if x is not None and x.view_base is not None and not x.view_ops else a
    made: Any = object.__new__(cls)
    made._trace, made._value, made._data, made._meta = None, root._value, None, None
    register_view(made, root, ())
    return made


def array_in_memory(a: Handle) -> Handle:
    """Return the array that has the memory of `a`: what it is a view of, or itself."""
    return a if a._meta is None or a._meta.view_base is None else a._meta.view_base


def make_view(base: Any, view_op: Call, shape: tuple[int, ...] | None = None) -> Any:
    """Return what `lens` (a `_basic_slice` or `Reshape` call) shows of `base`, linked so that writes go through.

    With `shape`, the result's, nothing is recorded before the view is used, if `base` has a value already.
    """
    x = base._meta
    root, window = (
        (x.view_base, (*x.view_ops, view_op)) if x is not None and x.view_base is not None else (base, (view_op,))
    )
    followed = local.recording and is_tracked(base)
    if exposed(root) is not None and not followed:  # nothing is kept of what it shows
        shape = view_op.infer(((base._value.shape, base._value.dtype),))[0][0]
    elif root._data is None or engine.naive:
        shape = None
    if shape is None or followed:
        shown = invoke_unary(view_op, base)
        if followed:
            # Inside a recording writes to tracked arrays raise, so the view is only a value.
            return shown
    else:
        shown = object.__new__(handle.array_class)
        shown._trace = shown._data = shown._meta = None
        shown._value = aval(shape, base._value.dtype, base._value.ctx)
    register_view(shown, root, window)
    return shown


def copy_window(view_op: Call, base: Any) -> Any:
    """Return a copy of what `lens` shows of `whole`; one program serves for all places in an array that has a value."""
    followed = local.recording and is_tracked(base)
    return invoke_unary(view_op, base) if base._data is None or followed else read_view_op(view_op, base)


def view_to_numpy(a: Any) -> np.ndarray | None:
    """Return a NumPy copy of a view that was never used, cut from its root in host memory; None for other arrays.

    A program would have to be compiled for each window: `x[0]`, `x[1]`, … Memory that other libraries see is read here
    as well.
    """
    x = a._meta
    if a._trace is not None or a._data is not None or x is None or x.error is not None:
        return None
    memory = exposed(a)
    if memory is not None and (x.view_base is None or (x.view_base._trace is None and x.view_base._meta.error is None)):
        return np.array(through(memory.memory, x.view_ops))
    if x.view_base is None:
        return None
    shown = x.view_base._data
    if type(shown) is not np.ndarray:
        data = x.view_base.realize()
        if not data.is_fully_addressable or [d.platform for d in data.devices()] != ["cpu"]:
            return None
        shown = x.view_base._block_on(lambda: np.asarray(data))
    return np.array(through(shown, x.view_ops))
