"""Signatures of recorded prefixes that differ in their context only, within this process and between processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from .trie import BACKWARD, LEAF, REENTER, State, Value, steps_of

ValueIndex: TypeAlias = tuple[int, int]  # the depth of the step that yields a value, and the value's number there

_signatures: dict[Any, object] = {}
_BOUND = 200_000


def index_of(v: Value) -> ValueIndex:
    """Return where a value of a prefix comes from: the depth of its step and its number there."""
    assert v.state is not None
    return v.state.depth, v.index


def context_free_signature(state: State) -> object:
    """Return an object that is the same for prefixes that differ in their context only."""
    fresh = []
    st: State | None = state
    while st is not None and context_free_signature not in st.memo:
        fresh.append(st)
        st = st.parent
    for step in reversed(fresh):
        if len(_signatures) > _BOUND:
            _signatures.clear()
        step.memo[context_free_signature] = _signatures.setdefault(_step_key(step), object())
    return state.memo[context_free_signature]


def _step_key(st: State) -> Any:
    if st.parent is None:
        return ()
    before, ins = st.parent.memo[context_free_signature], tuple(index_of(v) for v in st.ins)
    if st.kind == LEAF:
        return before, st.out.shape, st.out.dtype, st.out.tracked, st.payload
    if st.kind == BACKWARD:
        p = st.payload
        seeds, adds = (
            tuple(None if v is None else index_of(v) for v in group) for group in (p.head_grads, p.accumulate_into)
        )
        targets = tuple(tuple(index_of(v) for v in group) for group in p.targets)
        return before, st.kind, tuple(index_of(v) for v in p.heads), seeds, targets, adds, p.retain_graph
    outs = tuple(index_of(v) for v in st.outs) if st.kind == REENTER else ()
    payload = st.payload if isinstance(st.payload, tuple) else None
    return before, st.kind, st.call, ins, outs, payload, st.recording


def value_at_index(steps: Sequence[State], where: ValueIndex) -> Value:
    """Return the value at a place of a chain of steps."""
    return steps[where[0] - 1].outs[where[1]]


def program_text(state: State) -> str:
    """Return the steps of a prefix in words that other processes would use as well."""
    text = state.memo.get(program_text)
    if text is None:
        text = state.memo[program_text] = ";".join(map(_describe_step, steps_of(state)))
    return text


def _describe_step(st: State) -> str:
    if st.kind == LEAF:
        return f"leaf {st.out.shape} {st.out.dtype} {st.out.tracked}"
    if st.kind == BACKWARD:
        p = st.payload
        groups = (p.heads, p.head_grads, p.accumulate_into, *p.targets)
        places = [[None if v is None else index_of(v) for v in group] for group in groups]
        return f"backward {places} {p.retain_graph}"
    return f"{st.kind} {st.call!r} {st.call and st.call.train} {[index_of(v) for v in st.ins]} {st.recording}"
