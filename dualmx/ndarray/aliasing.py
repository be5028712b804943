"""What else shows the memory of an array: its views, and other libraries; both are kept in step with writes."""

from __future__ import annotations

from .exposed import Exposed
from .recorder import Handle, Trace, async_error


def exposed(a: Handle) -> Exposed | None:
    """Return the memory of `a`, or of what it is a view of, that other libraries see; None if none does any more."""
    x = a._meta
    if x is None:
        return None
    root = a if x.view_base is None else x.view_base
    if root._meta is None or root._meta.exposed is None:
        return None
    memory = root._meta.exposed
    if memory.is_shared():
        return memory
    root._meta.exposed = None
    if root._trace is None and root._data is None and root._meta.error is None:
        root._data = memory.taken_back(root._value.ctx)
    return None


def exposed_to_write(a: Handle) -> Exposed | None:
    """As `exposed`; an array forgets memory that it cannot write to."""
    memory = exposed(a)
    if memory is None or memory.writable:
        return memory
    assert a._meta is not None
    root = a if a._meta.view_base is None else a._meta.view_base
    data, root._extra().exposed = memory.read((), root._value.ctx), None
    if root._trace is None and root._data is None:
        root._data = data
    return None


def publish(tr: Trace) -> None:
    """Write the results of an executed trace to memory that other libraries see."""
    overwritten, tr.exposed = tr.exposed, []
    for a in [a for r in overwritten if (a := r()) is not None]:
        publish_value(a)


def publish_value(a: Handle) -> None:
    """Write the value of an array to its memory that other libraries see, if there is any."""
    memory = exposed(a) if a._trace is None and a._data is not None else None
    if memory is None:
        return
    try:
        memory.write(a._data)
        memory.recorded = a._data if a._meta is not None and a._meta.tape_value is not None else None
    except RuntimeError as e:
        a._extra().error = error = async_error(e)
        raise error from e
    finally:
        a._data = None
        make_views_stale(a)


def invalidate_views(o: Handle) -> None:
    """Make the views of `o` stale, and forget its place on the tape."""
    x = o._meta
    if x is None:
        return
    x.tape_value = x.error = None
    make_views_stale(o)


def make_views_stale(o: Handle) -> None:
    """Let the views of `o` be read anew when they are used next."""
    x = o._meta
    if x is not None and x.views:
        alive = []
        for w in x.views:
            view = w()
            if view is not None:
                view._trace = view._data = None
                alive.append(w)
        x.views = alive
