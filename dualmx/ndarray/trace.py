"""The trace: what a thread has recorded on one context and not executed yet.

A trace walks the trie of prefixes. Threads never share one: a thread that reads another's pending value computes it
from a snapshot of the other's trace (`peek`), and the owner goes on undisturbed.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compile.counters import counters
from ..compile.devices import device_put, jax_from_numpy_nocopy
from ..core import knobs
from ..core.context import Context, current_context
from ..core.errors import MXNetError
from ..graph.trie import LEAF, OP, RECORDING, VARIABLE, State, Value, aval, trie
from ..op.joint import lowering_on
from ..op.registry import Call

if TYPE_CHECKING:
    from .handle import Handle

_anywhere = nullcontext()
_REAL = np.dtype(np.float32)
_PACKAGE = str(Path(__file__).resolve().parents[1]) + "/"


class TraceReplaced(Exception):
    """Raised while a step is being recorded when the thread's current trace changed and the step must begin again."""


class Trace:
    """One thread's pending program on one context.

    Attributes:
        state: the prefix recorded so far. Written last, after the lists it counts, so that another thread that reads
            it sees lists at least as long.
        handles: weak references to arrays whose value is pending here; the dead ones never become outputs.
        leaves: arrays that entered, in order.
        runtime, keys: runtime scalars and random keys, in order.
        variables: array handles that entered as variables, by variable number.
        replaced: leaf value -> handle that entered as it and has been overwritten since (a donation pair).
        scratch: buffers of overwritten handles that never entered, to be recycled.
        saved: leaf value -> tape value of an earlier flush that it stands for; `entered` the reverse.
        again: tape entries of earlier flushes that were entered once more, in order.
        exposed: arrays overwritten here whose memory other libraries see.
        expected: conditions to check after execution, see `verify`.
        sealed: executed; the handles hold their arrays.
    """

    __slots__ = (
        "state", "handles", "leaves", "runtime", "keys", "variables", "replaced", "scratch", "saved", "entered",
        "again", "ctx", "lock", "sealed", "exposed", "expected", "__weakref__",
    )  # fmt: skip

    keep: Any = None  # of promises: what brings the values

    def __init__(self, ctx: Context, recording: bool):
        self.ctx = ctx
        self.handles: list[weakref.ref[Handle]] = []
        self.leaves: list[Any] = []
        self.runtime: list[float] = []
        self.keys: list[tuple[int, int]] = []
        self.variables: list[Handle] = []
        self.replaced: dict[Value, weakref.ref[Handle]] = {}
        self.scratch: list[Any] = []
        self.saved: dict[Value, Any] = {}
        self.entered: dict[Any, Value] = {}
        self.again: list[Any] = []
        self.exposed: list[weakref.ref[Handle]] = []
        self.expected: list[tuple[Any, list[Value], MXNetError, tuple[str, int] | None]] = []
        self.lock = threading.RLock()
        self.sealed = False
        self.state = trie.root(ctx)
        if recording:
            self.set_mode(True)

    # -- steps without operations

    def set_mode(self, recording: bool) -> None:
        """Switch whether the steps from here on belong to the tape."""
        st = self.state
        if st.rec != recording:
            if st.kind == RECORDING and st.parent is not None and st.parent.rec == recording:
                # Nothing was recorded since the last switch: a scope without work leaves no mark on the program.
                self.state = st.parent
                return
            nx = st.next.get(recording)
            if nx is None:
                made = State(st, RECORDING, None, (), self.ctx)
                made.rec = recording
                nx = trie.add(st, recording, made)
            self.state = nx

    def enter(self, data: Any, like: Value, tracked: bool = False, variable: tuple[Any, ...] = ()) -> Value:
        """Add a concrete array as a leaf and return its value."""
        st = self.state
        key: Any = (like, tracked, variable) if tracked else like
        if self.ctx.mesh is not None:
            key = (key, data.sharding)
        nx = st.next.get(key)
        if nx is None:
            made = State(st, LEAF, None, (), self.ctx)
            made.yields((like,), tracked)
            if variable:
                made.payload, made.n_vars = variable, st.n_vars + 1
            nx = trie.add(st, key, made)
        self.leaves.append(data)
        self.state = nx
        return nx.out

    def leaf(self, a: Handle) -> Value:
        """Return the value of `a` in this trace, entering it if need be; the slow path of recording."""
        if a._tr is self:
            return a._v
        x = a._x
        if x is not None and x.root is not None and not x.window:
            # A second handle on an array: what enters is that array, with its place on the tape.
            return self.leaf(x.root)
        data, memory = a._data, None
        if data is None:
            if a._v.ctx is not self.ctx:
                # What is pending on another context may go on there.
                raise TraceReplaced
            # What other libraries may write to enters anew for each operation.
            memory = None if x is None else engine.exposed(a)
            data = a._force(self)
            if a._tr is self:
                return a._v
        like = a._v.aval
        # Reading a stale view may have executed this very trace.
        if like.ctx is not self.ctx or self.sealed:
            raise TraceReplaced
        x = a._x
        if a._tr is not None and type(data) is np.ndarray and (x is None or x.req is None or not local.recording):
            # It is read again and again, which is quicker from a JAX array.
            data = a._data = jax_from_numpy_nocopy(data, like.ctx)
        if x is None or (x.node is None and x.req is None):
            v = self.enter(data, like)
        elif x.req is not None:
            v = self.enter_variable(a, data, like)
        else:
            v = self.entered.get(x.node)
            if memory is not None and not memory.is_as_recorded():
                x.node = None
                v = self.enter(data, like)
            elif v is None:
                v = self.enter_saved(x.node, data)
        if memory is None:
            a._v, a._tr = v, self
        return v

    def enter_saved(self, node: Any, data: Any) -> Value:
        """Enter the value of a tape entry of an earlier flush, so that gradients continue into that entry."""
        v = self.enter(data, node.aval, True)
        self.saved[v] = node
        self.entered[node] = v
        return v

    def enter_variable(self, a: Handle, data: Any, like: Value) -> Value:
        """Enter `a` as a variable; a variable that entered before, with another value, keeps its number."""
        x = a._x
        assert x is not None
        number = next((i for i, o in enumerate(self.variables) if o is a), len(self.variables))
        v = self.enter(data, like, True, (x.req, number))
        self.variables.append(a)
        return v

    def make_variable(self, a: Handle) -> None:
        """Turn the current value of `a`, already in this trace, into a variable: gradients stop there."""
        st, x = self.state, a._x
        assert x is not None
        number = next((i for i, o in enumerate(self.variables) if o is a), len(self.variables))
        key = (VARIABLE, a._v, x.req, number)
        nx = st.next.get(key)
        if nx is None:
            made = State(st, VARIABLE, None, (a._v,), self.ctx)
            made.yields((a._v.aval,), True)
            made.payload, made.n_vars = (x.req, number), st.n_vars + 1
            nx = trie.add(st, key, made)
        self.variables.append(a)
        self.state = nx
        a._v = nx.out

    # -- operations

    def miss(self, call: Call, vals: Sequence[Value]) -> State:
        """Return the successor of a step that the trie does not have: infer it, or raise at the user's line."""
        st = self.state
        if (st.depth >= engine.bound or st.quiet >= engine.quiet) and not st.joint and _has_operations(st):
            engine.overflow(self)
            raise TraceReplaced
        if call.op.name in engine.dynamic_twin:
            promoted = self._promote(call, tuple(vals))
            if promoted is not None:
                return promoted
        counters.misses += 1
        # On a mesh, operators that say how values are cut are checked here and not when the program is lowered.
        with lowering_on(self.ctx) if self.ctx.mesh is not None else _anywhere:
            results = call.infer(tuple([(v.shape, v.dtype) for v in vals]))
        made = State(st, OP, call, tuple(vals), self.ctx)
        made.yields(tuple(aval(s, d, self.ctx) for s, d in results), st.rec and any([v.tracked for v in vals]))
        made.where = user_line()
        return trie.add(st, (call, *vals), made)

    def _promote(self, call: Call, vals: tuple[Value, ...]) -> State | None:
        """From the third number met at one site on, make it a runtime input; returns the step, None before that."""
        st, varied = self.state, None
        with suppress(MXNetError):  # what is wrong is said when the step is inferred
            shape, dtype = (vals[0].shape, vals[0].dtype) if vals else ((), _REAL)
            varied = engine.dynamic_twin[call.op.name](call.params, shape, dtype)
        if varied is None:
            return None
        twin, numbers = varied
        twin = twin.at(call.train)
        if st.seen is None:
            st.seen = {}
        known = st.seen.setdefault((twin, vals), {})
        known[numbers] = call
        if len(known) < 3:
            return None
        for old in known.values():
            st.next.pop((old, *vals), None)
        while len(known) > 3:
            known.pop(next(iter(known)))
        nx = st.next.get((twin, *vals))
        if nx is None:
            nx = self.miss(twin, vals)
        self.runtime.extend(numbers)
        return nx


def _has_operations(state: State) -> bool:
    """True if a prefix has an operation; without one, executing it would not make room for the next."""
    st: State | None = state
    while st is not None:
        if st.kind not in (LEAF, VARIABLE, RECORDING):
            return True
        st = st.parent
    return False


def user_line() -> tuple[str, int] | None:
    """Return file and line of the innermost frame outside the package."""
    frame = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


MAX_UNRECORDED_OPS = 512


class Engine:
    """Process-wide settings of the lazy engine.

    Attributes:
        naive: execute each operation at once.
        limit: most steps recorded before they are executed, as set by the user; `bound` the same, rounded down to a
            multiple of the program's period once that is known.
        quiet: most operations in a row outside of recordings; cutting these costs nothing, and compile times grow
            faster than programs.
        dynamic_twin: operator name -> what turns a call of it into one that takes its numbers at run time.
    """

    def __init__(self) -> None:
        self.naive = knobs.ENGINE.read() == "NaiveEngine" or knobs.BULK_ON.read() == "0"
        self.limit = knobs.BULK.integer(1)
        self.bound = self.limit
        self.quiet = min(self.limit, MAX_UNRECORDED_OPS)
        self.dynamic_twin: dict[str, Any] = {}
        # Filled by the modules that build on handles.
        self.flush: Any = None
        self.peek: Any = None
        self.run_now: Any = None
        self.exposed: Any = None  # tells the memory of an array that other libraries see
        self.flush_joint: Any = None
        self.sharding_of: Any = None
        self.link_copy: Any = None
        self.sparse: Any = None  # the module that makes arrays of other storage types

    def overflow(self, trace: Trace) -> None:
        """Execute a trace that reached the bound, and choose the next bound as a multiple of the program's period.

        Cutting a K-step loop every N steps would give K / gcd(K, N) different programs; cutting at a multiple of K
        gives one.
        """
        period = find_period(trace.state)
        if period:
            self.bound = max(period, self.limit // period * period)
            self.quiet = max(period, min(self.limit, MAX_UNRECORDED_OPS) // period * period)
        self.flush(trace)


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
        self.scopes = 0
        self.traces: dict[Context, Trace] = {}
        self.tr: Trace = self.renew(current_context())

    def renew(self, ctx: Context) -> Trace:
        """Begin an empty trace on `ctx` and make it the current one."""
        self.tr = self.traces[ctx] = Trace(ctx, self.recording)
        return self.tr

    def switch(self, ctx: Context) -> Trace:
        """Make the trace on `ctx` the current one, beginning it if there is none."""
        tr = self.traces.get(ctx)
        if tr is None or tr.sealed:
            return self.renew(ctx)
        tr.set_mode(self.recording)
        self.tr = tr
        return tr


local = ThreadState()


class TapePaused:
    """Nothing is recorded in this scope."""

    def __enter__(self) -> None:
        self.before = local.recording
        local.recording = False
        local.tr.set_mode(False)

    def __exit__(self, *exc: object) -> None:
        local.recording = self.before
        local.tr.set_mode(self.before)


@contextmanager
def backward_mode(training: bool) -> Iterator[None]:
    """Set the training flag that a user's Function finds in its backward."""
    before, local.backward_training = local.backward_training, bool(training)
    try:
        yield
    finally:
        local.backward_training = before


@contextmanager
def isolated_traces() -> Iterator[None]:
    """Record into traces of its own inside the `with` block and execute them at its end; what is pending stays so."""
    before = local.traces, local.tr
    local.traces = {}
    local.renew(before[1].ctx)
    try:
        yield
        for tr in list(local.traces.values()):
            engine.flush(tr)
    finally:
        local.traces, local.tr = before


def copy_buffer_to(a: Handle, ctx: Context, like: Any = None) -> Any:
    """Return the array of `a` copied to `ctx`, on a mesh cut as the JAX array `like` is."""
    data = a._data if a._data is not None else a._force(None)
    if type(data) is np.ndarray:
        data = jax_from_numpy_nocopy(data, a._v.ctx)  # `put` would copy memory that anybody may change
    return device_put(data, ctx, like)


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
