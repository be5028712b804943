"""How the value of an array will be, or was, computed."""

from __future__ import annotations

from ..compile.events import format_where
from ..graph.trie import LEAF, steps_of
from .aliasing import exposed
from .recorder import Handle


def explain(x: Handle) -> str:
    """Return how the value of `x` will be, or was, computed: one line per pending step it depends on.

    Example:
        >>> import dualmx as mx
        >>> x = mx.nd.ones((2,)) + 1
        >>> print(mx.debug.explain(x))  # doctest: +ELLIPSIS
        float32[2]@cpu(0): pending, 2 steps...
    """
    if x._data is not None:
        state = "computed"
        if x._trace is not None and not x._trace.executed:
            state += f", an input of the pending program ({x._trace.state.depth} steps)"
        return f"{x._value!r}: {state}"
    if x._trace is None:
        if x._meta is not None and x._meta.error is not None:
            return f"{x._value!r}: failed: {x._meta.error}"
        if exposed(x) is not None:
            return f"{x._value!r}: in memory that other libraries see; each operation reads it again"
        return f"{x._value!r}: a view whose base was written; it is read again when needed"
    steps = steps_of(x._trace.state)
    wanted = {x._value}
    lines = []
    for s in reversed(steps):
        if not any(v in wanted for v in s.outs):
            continue
        wanted.update(s.ins)
        what = "input" if s.kind == LEAF else repr(s.call) if s.call else s.kind
        ins = ", ".join(repr(v) for v in s.ins)
        outs = ", ".join(repr(v) for v in s.outs)
        taped = " (on the tape)" if s.recording and s.out is not None and s.out.tracked else ""
        lines.append(f"  {what}({ins}) -> {outs}{taped}  at {format_where(s.user_line)}")
    lines.reverse()
    # A copy: other threads add theirs meanwhile.
    programs = list(x._trace.state.programs.values())
    known = next((exe.describe() for exe in programs if x._value in exe.outputs), "a new program")
    return f"{x._value!r}: pending, {len(lines)} steps of {len(steps)} recorded since the last flush, {known}\n" + (
        "\n".join(lines)
    )


__all__ = ["explain"]
