"""The trie of recorded prefixes: a `State` is one unique sequence of recorded steps.

Recording a step is one look-up in `State.next`. On a hit the successor already holds the outputs' shapes, so nothing is
inferred or hashed, and the state reached is the signature of the whole program.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.context import Context
from ..op.registry import Call

LEAF, OP, REENTER, VARIABLE, RECORDING, BACKWARD = "leaf", "op", "again", "var", "mode", "backward"


class Value:
    """One immutable array of a program, or (with `state` None) the shape, dtype and place shared by equal ones.

    Attributes:
        shape, dtype, ctx: what is known before execution.
        aval: the interned state-less value with the same shape, dtype and context.
        state, index: the step that yields it, and which of its results it is.
        tracked: it depends on a variable through recorded steps, so gradients can flow through it.
    """

    __slots__ = ("shape", "dtype", "ctx", "aval", "state", "index", "tracked")
    shape: tuple[int, ...]
    dtype: np.dtype
    ctx: Context
    aval: Value
    state: State | None
    index: int
    tracked: bool

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}@{self.ctx}"


_avals: dict[tuple[Any, ...], Value] = {}


def aval(shape: tuple[int, ...], dtype: np.dtype, ctx: Context) -> Value:
    """Return the interned abstract value."""
    key = (shape, dtype, ctx)
    got = _avals.get(key)
    if got is None:
        got = Value()
        got.shape, got.dtype, got.ctx = shape, np.dtype(dtype), ctx
        got.aval, got.state, got.index, got.tracked = got, None, 0, False
        got = _avals.setdefault((tuple(int(n) for n in shape), got.dtype, ctx), got)
    return got


class State:
    """A recorded prefix; its last step is described here, the rest by `parent`.

    Attributes:
        next: successor by step key; `(call, value, …)` for an operation.
        memo: facts about the prefix that were derived once, by what derived them.
        kind: LEAF (an array enters), VAR (an array becomes a variable), OP, AGAIN (an earlier recorded step is
            entered once more for its gradient), MODE (recording switched), BACKWARD.
        out: the first result, `outs` all of them.
        recording: whether steps recorded from here on belong to the tape.
        n_operations: steps that are executed: arrays that enter are none.
        unrecorded_ops: operations since the last recorded one or backward.
        n_leaves, n_runtime, n_keys, n_vars: totals over the prefix, the positions of the program's inputs.
        user_line: the user's file and line that first recorded this step.
        programs: executables of this prefix by live values.
        has_collective: the prefix exchanges values with those of other contexts, so that all are executed as one
        program.
    """

    __slots__ = (
        "next", "memo", "parent", "kind", "call", "ins", "out", "outs", "recording", "depth", "n_operations",
        "unrecorded_ops", "n_leaves", "n_runtime", "n_keys", "n_vars", "user_line", "payload", "programs",
        "has_collective", "__weakref__",
    )  # fmt: skip

    def __init__(self, parent: State | None, kind: str, call: Call | None, ins: tuple[Any, ...], ctx: Context):
        self.next: dict[Any, State] = {}
        self.memo: dict[Any, Any] = {}
        self.parent, self.kind, self.call, self.ins = parent, kind, call, ins
        self.out: Value = None  # type: ignore[assignment]
        self.outs: tuple[Value, ...] = ()
        self.user_line: tuple[str, int] | None = None
        self.payload: Any = None
        self.programs: dict[Any, Any] = {}
        self.has_collective = (parent is not None and parent.has_collective) or (call is not None and call.joint)
        if parent is None:
            self.recording, self.depth, self.n_operations, self.unrecorded_ops = False, 0, 0, 0
            self.n_leaves = self.n_runtime = self.n_keys = self.n_vars = 0
        else:
            self.recording, self.depth = parent.recording, parent.depth + 1
            self.n_operations = parent.n_operations + (kind in (OP, REENTER, BACKWARD))
            self.unrecorded_ops = (
                0 if kind == BACKWARD or (kind == OP and self.recording) else parent.unrecorded_ops + (kind == OP)
            )
            self.n_leaves = parent.n_leaves + (kind == LEAF)
            self.n_runtime = parent.n_runtime + (call.n_runtime if call else 0)
            self.n_keys = parent.n_keys + (call.n_keys if call else 0)
            self.n_vars = parent.n_vars

    def set_results(self, avals: tuple[Value, ...], tracked: bool) -> None:
        """Give the step its results."""
        # The first result has a field of its own: recording an operator with one result then reads no tuple.
        self.outs = tuple(new_value(a, self, i, tracked) for i, a in enumerate(avals))
        if self.outs:
            self.out = self.outs[0]

    def __repr__(self) -> str:
        return f"<State {self.depth} {self.kind} {self.call or ''}>"


def new_value(like: Value, state: State, index: int, tracked: bool) -> Value:
    """Return a value of `state` with the shape, dtype and place of `like`."""
    v = Value()
    v.shape, v.dtype, v.ctx, v.aval = like.shape, like.dtype, like.ctx, like.aval
    v.state, v.index, v.tracked = state, index, tracked
    return v


def steps_of(state: State) -> list[State]:
    """Return the steps of a prefix in order, without the root."""
    steps = []
    while state.parent is not None:
        steps.append(state)
        state = state.parent
    steps.reverse()
    return steps


class Trie:
    """The roots of all tries, one per context, with bounds on the states and executables kept.

    A program that never repeats itself would grow the tries for ever, and a process may only have so many memory maps,
    of which each executable takes a few. Starting over costs only recompiling.
    """

    def __init__(self, bound: int, programs_bound: int):
        self.max_states, self.max_executables = bound, programs_bound
        self.count = self.programs = 0
        self._roots: dict[Context, State] = {}

    def root(self, ctx: Context) -> State:
        """Return the empty prefix on `ctx`."""
        if self.count > self.max_states or self.programs > self.max_executables:
            self.clear()
        root = self._roots.get(ctx)
        if root is None:
            root = self._roots.setdefault(ctx, State(None, RECORDING, None, (), ctx))
        return root

    def add(self, parent: State, key: Any, made: State) -> State:
        """Link `made` as successor of `parent`; returns the winner if another thread linked one first."""
        # `setdefault` is atomic: two threads that record the same step go on from one state, without a lock.
        self.count += 1
        return parent.next.setdefault(key, made)

    def clear(self) -> None:
        """Forget every prefix and executable.

        Arrays and pending traces may still refer to a state, and through its parents to all others, so the links from
        state to state are cut; what is pending keeps its own chain.
        """
        # No recursion: a chain of states is deeper than Python's stack.
        waiting = list(self._roots.values())
        self._roots.clear()
        self.count = self.programs = 0
        while waiting:
            state = waiting.pop()
            waiting.extend(list(state.next.values()))
            state.next.clear()
            state.memo.clear()
            state.programs.clear()

    def __iter__(self) -> Iterator[State]:
        return iter(self._roots.values())


trie = Trie(bound=400_000, programs_bound=8_000)
