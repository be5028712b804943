"""Views: windows on another array, through which writes go and which the host reads without a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.trie import aval
from ..op.registry import Call
from . import handle
from .exposed import through
from .handle import Handle, exposed, invoke1, is_tracked, ref, show
from .trace import engine, local

_MANY = 64  # views of one array, from which on those that nobody holds any more are forgotten at times


def link(shown: Handle, root: Handle, window: Sequence[Call]) -> None:
    """Make `shown` what the lenses of `window` show of `root`: it becomes stale when `root` is written."""
    own, views = shown._extra(), root._extra().views
    own.root, own.window = root, tuple(window)
    if len(views) >= _MANY and not len(views) & (len(views) - 1):
        views[:] = [v for v in views if v() is not None]
    views.append(ref(shown))


def make_view(base: Any, lens: Call, shape: tuple[int, ...] | None = None) -> Any:
    """Return what `lens` (a `_basic_slice` or `Reshape` call) shows of `base`, linked so that writes go through.

    With `shape`, the result's, nothing is recorded before the view is used, if `base` has a value already.
    """
    x = base._x
    root, window = (x.root, (*x.window, lens)) if x is not None and x.root is not None else (base, (lens,))
    followed = local.recording and is_tracked(base)
    if exposed(root) is not None and not followed:  # nothing is kept of what it shows
        shape = lens.infer(((base._v.shape, base._v.dtype),))[0][0]
    elif root._data is None or engine.naive:
        shape = None
    if shape is None or followed:
        shown = invoke1(lens, base)
        if followed:
            # Inside a recording writes to tracked arrays raise, so the view is only a value.
            return shown
    else:
        shown = object.__new__(handle.array_class)
        shown._tr = shown._data = shown._x = None
        shown._v = aval(shape, base._v.dtype, base._v.ctx)
    link(shown, root, window)
    return shown


def cut(lens: Call, whole: Any) -> Any:
    """Return a copy of what `lens` shows of `whole`; one program serves for all places in an array that has a value."""
    followed = local.recording and is_tracked(whole)
    return invoke1(lens, whole) if whole._data is None or followed else show(lens, whole)


def on_host(a: Any) -> np.ndarray | None:
    """Return a NumPy copy of a view that was never used, cut from its root in host memory; None for other arrays.

    A program would have to be compiled for each window: `x[0]`, `x[1]`, … Memory that other libraries see is read here
    as well.
    """
    x = a._x
    if a._tr is not None or a._data is not None or x is None or x.error is not None:
        return None
    memory = exposed(a)
    if memory is not None and (x.root is None or (x.root._tr is None and x.root._x.error is None)):
        return np.array(through(memory.memory, x.window))
    if x.root is None:
        return None
    shown = x.root._data
    if type(shown) is not np.ndarray:
        data = x.root._array()
        if not data.is_fully_addressable or [d.platform for d in data.devices()] != ["cpu"]:
            return None
        shown = x.root._wait(lambda: np.asarray(data))
    return np.array(through(shown, x.window))
