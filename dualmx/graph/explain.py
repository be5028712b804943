"""Reason of an executable-cache miss: the first step that differs from what is known."""

from __future__ import annotations

from .trie import BACKWARD, LEAF, RECORDING, State


def describe_step(step: State) -> str:
    """Return what a step does, with the types of what it reads or lets enter."""
    if step.kind == LEAF:
        return f"input {step.out!r}" + (" that is a variable" if step.payload else "")
    if step.kind == RECORDING:
        return f"recording {'on' if step.recording else 'off'}"
    if step.kind == BACKWARD:
        return f"backward through {len(step.payload.path)} operations"
    what = repr(step.call) if step.call else step.kind
    return f"{what} on ({', '.join(repr(v) for v in step.ins)})"


def cache_miss_reason(state: State) -> str:
    """Return why the prefix that ends in `state` has no fitting executable yet, in one sentence."""
    if state.programs:
        return "the same operations ran before, with other results still in use"
    if state.next:
        return "an earlier program had the same operations and went on"
    step = state
    while step.parent is not None:
        others = [s for s in step.parent.next.values() if s is not step]
        if others:
            line = f" at {step.user_line[0]}:{step.user_line[1]}" if step.user_line else ""
            before = describe_step(others[-1])
            return f"step {step.depth} of {state.depth}{line} is {describe_step(step)}; before it was {before}"
        if step.parent.programs:
            return f"an earlier program ended {state.depth - step.parent.depth} steps before"
        step = step.parent
    return "the first program recorded on this context"
