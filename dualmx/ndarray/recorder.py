"""The trace: what a thread has recorded on one context and not yet executed.

A trace walks the trie of prefixes. Threads never share one: a thread that reads another's pending value computes it
from a snapshot of that trace (`read_from_other_thread`), and the owner continues undisturbed.
"""

from __future__ import annotations

import sys
import threading
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from ..compile.events import counters
from ..core import knobs
from ..core.context import Context, current_context
from ..core.errors import MXNetError
from ..graph.trie import LEAF, OP, RECORDING, VARIABLE, State, Value, aval, trie
from ..op.lowering_context import lowering_on
from ..op.registry import Call, RuntimeForm
from .exposed import Exposed

_anywhere = nullcontext()
# Prefixes are shared by all threads, and so are the numbers met after them.
_numbers_lock = threading.Lock()
_MANY_NUMBERS = 16
_REAL = np.dtype(np.float32)
_PACKAGE = str(Path(__file__).resolve().parents[1]) + "/"


class TraceReplaced(Exception):
    """Raised while a step is being recorded when the thread's current trace changed and the step must begin again."""


class TraceFull(TraceReplaced):
    """Raised when a trace has no room for a step: it must be executed, and the step begin again."""


class ArrayMeta:
    """What only some arrays have.

    Attributes:
        grad, grad_req: gradient array and `grad_req` ("write" or "add") of a variable.
        fresh_grad: the gradient was computed since the last optimizer step.
        view_base, view_ops: the array that a view is a window of, and the lenses from it to the view.
        views: weak references to the views of a root.
        tape_value: place on the tape of an array computed by recorded operations and already executed.
        error: why there is no value.
        custom_function: the application of a user's `autograd.Function` that this array is an output of, and which one.
        exposed: memory that other libraries see; the array then has no other value.
    """

    __slots__ = (
        "grad",
        "grad_req",
        "fresh_grad",
        "view_base",
        "view_ops",
        "views",
        "tape_value",
        "error",
        "custom_function",
        "exposed",
    )

    def __init__(self) -> None:
        self.grad: Handle | None = None
        self.grad_req: str | None = None
        self.fresh_grad = False
        self.view_base: Handle | None = None
        self.view_ops: tuple[Any, ...] = ()
        self.views: list[weakref.ref[Handle]] = []
        self.tape_value: Any = None
        self.error: MXNetError | None = None
        self.custom_function: tuple[Any, int] | None = None
        self.exposed: Exposed | None = None


class Handle:
    """A mutable name for an immutable value.

    `_data` is the JAX array once there is one, or memory of NumPy that nobody changes: programs on CPUs read that as
    well, and it is quicker made. Until then `_value` names a value of the pending trace `_trace`. An array that
    entered the
    pending trace has both. A stale view, a failed array and one whose memory other libraries see have neither. `_value`
    always tells shape, dtype and context.
    """

    __slots__ = ("_trace", "_value", "_data", "_meta", "__weakref__")
    is_sparse = False
    _trace: Trace | None
    _value: Value
    _data: Any
    _meta: ArrayMeta | None

    def _extra(self) -> ArrayMeta:
        if self._meta is None:
            self._meta = ArrayMeta()
        return self._meta


class Trace:
    """One thread's pending program on one context.

    Attributes:
        state: the prefix recorded so far. Written last, after the lists it counts, so that another thread that reads
            it sees lists at least as long.
        handles: weak references to arrays whose value is pending here; the dead ones never become outputs.
        leaves: arrays that entered, in order.
        runtime, keys: runtime scalars and random keys, in order.
        variables: array handles that entered as variables, in order; `variable_numbers` the number of each by its
        identity: one that enters again, with another value, keeps it.
        overwritten_by: leaf value -> handle that entered as it and has been overwritten since (a donation pair).
        dead_buffers: buffers of overwritten handles that never entered, to be recycled; `dead_avals` what they are.
        tape_value_of_leaf: leaf value -> tape value of an earlier flush that it stands for; `leaf_of_tape_value` the
        reverse.
        reentered_entries: tape entries of earlier flushes that were entered once more, in order.
        exposed: arrays overwritten here whose memory other libraries see.
        value_checks: conditions to check after execution, see `verify`.
        executed: executed; the handles hold their arrays.
        read_by_others: values on the tape that other threads have read, computed for them alone.
        n_kept_leaves: how many of the leaves must not be taken over by the program.
        replaced: a trace whose pending values were overwritten here, with buffers to be recycled.
        numbers_met: of calls outside of recordings, the different numbers with which each was added here.
    """

    is_recyclable = False

    __slots__ = (
        "state", "handles", "leaves", "runtime", "keys", "variables", "variable_numbers", "overwritten_by",
        "dead_buffers", "dead_avals", "tape_value_of_leaf", "leaf_of_tape_value", "reentered_entries",
        "ctx", "lock", "executed", "exposed", "value_checks", "read_by_others",
        "n_kept_leaves", "replaced", "numbers_met", "__weakref__",
    )  # fmt: skip

    def __init__(self, ctx: Context, recording: bool, state: State | None = None):
        self.ctx = ctx
        self.handles: list[weakref.ref[Handle]] = []
        self.leaves: list[Any] = []
        self.runtime: list[float] = []
        self.keys: list[tuple[int, int]] = []
        self.variables: list[Handle] = []
        self.variable_numbers: dict[int, int] = {}
        self.overwritten_by: dict[Value, weakref.ref[Handle]] = {}
        self.dead_buffers: list[Any] = []
        self.dead_avals: list[Value] = []
        self.tape_value_of_leaf: dict[Value, Any] = {}
        self.leaf_of_tape_value: dict[Any, Value] = {}
        self.reentered_entries: list[Any] = []
        self.exposed: list[weakref.ref[Handle]] = []
        self.value_checks: list[tuple[Any, list[Value], MXNetError, tuple[str, int] | None]] = []
        self.read_by_others: dict[Value, Any] = {}
        self.lock = threading.RLock()
        self.executed = False
        self.n_kept_leaves = 0
        self.replaced: Trace | None = None
        self.numbers_met: dict[Any, set[tuple[float, ...]]] = {}
        self.state = trie.root(ctx) if state is None else state
        if recording:
            self.set_recording(True)

    def snapshot(self, state: State) -> Trace:
        """Return a trace of the steps up to `state` and their inputs, to be executed while this one goes on."""
        made = Trace(self.ctx, False, state)
        made.leaves, made.runtime = self.leaves[: state.n_leaves], self.runtime[: state.n_runtime]
        made.keys = self.keys[: state.n_keys]
        return made

    def resolve(self) -> bool:
        """Bring the values by other means than a program; False if a program computes them."""
        return False

    def recycle_into(self, tr: Trace) -> None:
        """Hand `tr` buffers that nobody needs any more."""

    def release(self) -> None:
        """Let go of what an executed trace held: arrays that entered still point here."""
        self.handles, self.dead_buffers, self.dead_avals, self.leaves = [], [], [], []
        self.overwritten_by, self.variables, self.variable_numbers, self.read_by_others = {}, [], {}, {}
        self.replaced, self.numbers_met = None, {}

    # -- steps without operations

    def set_recording(self, recording: bool) -> None:
        """Switch whether the steps from here on belong to the tape."""
        st = self.state
        if st.recording != recording:
            if st.kind == RECORDING and st.parent is not None and st.parent.recording == recording:
                # Nothing was recorded since the last switch: a scope without work leaves no mark on the program.
                self.state = st.parent
                return
            nx = st.next.get(recording)
            if nx is None:
                made = State(st, RECORDING, None, (), self.ctx)
                made.recording = recording
                nx = trie.add(st, recording, made)
            self.state = nx

    def add_leaf(self, data: Any, like: Value, tracked: bool = False, variable: tuple[Any, ...] = ()) -> Value:
        """Add a concrete array as a leaf and return its value."""
        st = self.state
        key: Any = (like, tracked, variable) if tracked else like
        if self.ctx.mesh is not None:
            key = (key, data.sharding)
        nx = st.next.get(key)
        if nx is None:
            made = State(st, LEAF, None, (), self.ctx)
            made.set_results((like,), tracked)
            if variable:
                made.payload, made.n_vars = variable, st.n_vars + 1
            nx = trie.add(st, key, made)
        self.leaves.append(data)
        self.state = nx
        return nx.out

    def add_tape_leaf(self, node: Any, data: Any) -> Value:
        """Enter the value of a tape entry of an earlier flush, so that gradients continue into that entry."""
        v = self.add_leaf(data, node.aval, True)
        self.tape_value_of_leaf[v] = node
        self.leaf_of_tape_value[node] = v
        return v

    def add_variable_leaf(self, a: Handle, grad_req: str | None, data: Any, like: Value) -> Value:
        """Enter `a`, or an earlier value of it, as a variable."""
        return self.add_leaf(data, like, True, (grad_req, self.number_of_variable(a)))

    def number_of_variable(self, a: Handle) -> int:
        """Note that `a` enters as a variable; returns its number, the one that it had if it enters again."""
        # `variables` keeps the handle alive, so that no other one gets its identity.
        number = self.variable_numbers.setdefault(id(a), len(self.variables))
        self.variables.append(a)
        return number

    def mark_variable(self, a: Handle) -> None:
        """Turn the current value of `a`, already in this trace, into a variable: gradients stop there."""
        st, x = self.state, a._meta
        assert x is not None
        number = self.number_of_variable(a)
        key = (VARIABLE, a._value, x.grad_req, number)
        nx = st.next.get(key)
        if nx is None:
            made = State(st, VARIABLE, None, (a._value,), self.ctx)
            made.set_results((a._value.aval,), True)
            made.payload, made.n_vars = (x.grad_req, number), st.n_vars + 1
            nx = trie.add(st, key, made)
        self.state = nx
        a._value = nx.out

    # -- operations

    def record_new_op(self, call: Call, vals: Sequence[Value]) -> State:
        """Return the successor of a step that the trie does not have: infer it, or raise at the user's line."""
        st = self.state
        if (
            (st.n_operations >= engine.flush_after or st.unrecorded_ops >= engine.max_unrecorded_ops)
            and not st.has_collective
            and st.n_operations  # without one, executing it would not make room for the next
        ):
            raise TraceFull
        if call.op.runtime_form is not None:
            promoted = self._scalars_to_runtime_inputs(call.op.runtime_form, call, tuple(vals))
            if promoted is not None:
                return promoted
        counters.misses += 1
        # On a mesh, operators that say how values are cut are checked here and not when the program is lowered.
        with lowering_on(self.ctx) if self.ctx.mesh is not None else _anywhere:
            results = call.infer(tuple([(v.shape, v.dtype) for v in vals]))
        made = State(st, OP, call, tuple(vals), self.ctx)
        made.set_results(
            tuple(aval(s, d, self.ctx) for s, d in results), st.recording and any([v.tracked for v in vals])
        )
        made.user_line = user_line()
        return trie.add(st, (call, *vals), made)

    def _scalars_to_runtime_inputs(self, form: RuntimeForm, call: Call, vals: tuple[Value, ...]) -> State | None:
        """Make a number a runtime input from the third on that is met at one site; returns the step, None before that.

        In a loop of one program every turn is a site of its own: there it is one from the `_MANY_NUMBERS`th on.
        """
        st, varied = self.state, None
        with suppress(MXNetError):  # what is wrong is said when the step is inferred
            shape, dtype = (vals[0].shape, vals[0].dtype) if vals else ((), _REAL)
            varied = form(call.params, shape, dtype)
        if varied is None:
            return None
        twin, numbers = varied
        twin = twin.in_mode(call.train)
        with _numbers_lock:
            known = st.memo.setdefault((twin, vals), {})
            known[numbers] = call
            if len(known) < 3 and (twin, *vals) not in st.next and not self._meets_many(twin, vals, numbers):
                return None
            for old in known.values():
                st.next.pop((old, *vals), None)
            while len(known) > 3:
                known.pop(next(iter(known)))
        nx = st.next.get((twin, *vals))
        if nx is None:
            nx = self.record_new_op(twin, vals)
        self.runtime.extend(numbers)
        return nx

    def _meets_many(self, twin: Call, vals: tuple[Value, ...], numbers: tuple[float, ...]) -> bool:
        """Note the numbers of a new step; returns whether the program has so many that each would cost a trace."""
        if self.state.recording:
            return False
        met = self.numbers_met.setdefault((twin, *[v.aval for v in vals]), set())
        met.add(numbers)
        return len(met) >= _MANY_NUMBERS


def _user_frame() -> FrameType | None:
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def user_line() -> tuple[str, int] | None:
    """Return file and line of the innermost frame outside the package."""
    frame = _user_frame()
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def warn_user(text: str) -> None:
    """Warn of the innermost line outside the package, of each line once."""
    frame = _user_frame()
    if frame is not None:
        seen = frame.f_globals.setdefault("__warningregistry__", {})
        warnings.warn_explicit(text, UserWarning, frame.f_code.co_filename, frame.f_lineno, registry=seen)


MAX_UNRECORDED_OPS = 512


class Engine:
    """Process-wide settings of the lazy engine.

    Attributes:
        naive: execute each operation at once.
        bulk_size: most steps recorded before they are executed, as set by the user; `flush_after` the same, rounded
        down to a
            multiple of the program's period once that is known.
        max_unrecorded_ops: most operations in a row outside of recordings; cutting these costs nothing, and compile
        times grow
            faster than programs.
    """

    def __init__(self) -> None:
        self.naive = knobs.ENGINE.read() == "NaiveEngine" or knobs.BULK_ON.read() == "0"
        self.set_bounds(knobs.BULK.integer(1))

    def set_bounds(self, bulk_size: int) -> None:
        """Set the most steps recorded before they are executed, and the bounds that follow from it."""
        self.bulk_size = self.flush_after = bulk_size
        self.max_unrecorded_ops = min(bulk_size, MAX_UNRECORDED_OPS)

    def adjust_limits(self, trace: Trace) -> None:
        """Choose the next bound of a trace that reached one as a multiple of its program's period.

        Cutting a K-step loop every N steps would give K / gcd(K, N) different programs; cutting at a multiple of K
        gives one.
        """
        period = find_period(trace.state)
        if period:
            self.flush_after = max(period, self.bulk_size // period * period)
            self.max_unrecorded_ops = max(period, min(self.bulk_size, MAX_UNRECORDED_OPS) // period * period)


def find_period(state: State) -> int | None:
    """Return the smallest number of steps after which the last calls of a chain repeat, None if they do not."""
    calls = []
    st: State | None = state
    while st is not None and st.parent is not None:
        calls.append(id(st.call))
        st = st.parent
    for k in range(1, len(calls) // 2 + 1):
        # Short patterns repeat by chance.
        times = 3 if k < 16 else 2
        if k * times <= len(calls) and all(calls[:k] == calls[i * k : (i + 1) * k] for i in range(1, times)):
            return k
    return None


engine = Engine()


class ThreadState(threading.local):
    """What one thread is doing: its current trace, all its traces, the autograd flags, the depth of `record`."""

    def __init__(self) -> None:
        self.recording = False
        self.training = False
        # The training flag that a user's Function finds in its backward.
        self.backward_training = True
        self.record_depth = 0
        self.traces: dict[Context, Trace] = {}
        self.trace: Trace = self.new_trace(current_context())

    def new_trace(self, ctx: Context) -> Trace:
        """Begin an empty trace on `ctx` and make it the current one."""
        self.trace = self.traces[ctx] = Trace(ctx, self.recording)
        return self.trace

    def use_trace(self, ctx: Context) -> Trace:
        """Make the trace on `ctx` the current one, beginning it if there is none."""
        tr = self.traces.get(ctx)
        if tr is None or tr.executed:
            return self.new_trace(ctx)
        tr.set_recording(self.recording)
        self.trace = tr
        return tr


local = ThreadState()


class TapePaused:
    """Nothing is recorded in this scope."""

    def __enter__(self) -> None:
        self.before = local.recording
        local.recording = False
        local.trace.set_recording(False)

    def __exit__(self, *exc: object) -> None:
        local.recording = self.before
        local.trace.set_recording(self.before)


@contextmanager
def backward_mode(training: bool) -> Iterator[None]:
    """Set the training flag that a user's Function finds in its backward."""
    before, local.backward_training = local.backward_training, bool(training)
    try:
        yield
    finally:
        local.backward_training = before


def execution_error(where: tuple[str, int] | None, e: BaseException) -> MXNetError:
    """Return the error that poisons the results of a program whose execution raised `e`."""
    note_failure(e)
    line = f"{where[0]}:{where[1]}" if where else "an unknown line"
    lines = str(e).strip().splitlines() or [""]
    # Errors out of callbacks carry a traceback; its first and last lines say what happened.
    text = lines[0] if len(lines) == 1 else f"{lines[0]} … {lines[-1].strip()}"
    return MXNetError(f"execution of the operations recorded up to {line} failed: {type(e).__name__}: {text}")


def async_error(e: BaseException) -> MXNetError:
    """Return the error of an array whose program had been started when it raised `e`."""
    note_failure(e)
    return MXNetError(f"execution failed: {str(e).strip()}")


reported_failures: set[str] = set()  # texts of failures that were raised since the last `waitall`


def note_failure(e: BaseException) -> bool:
    """Note that `e` is raised in the user's program; returns whether its cause was not told before."""
    counters.failures += 1
    # Programs that wait for one that failed put this before its error.
    cause = str(e).replace("Error dispatching computation: ", "").strip()
    new = cause not in reported_failures
    reported_failures.add(cause)
    return new
