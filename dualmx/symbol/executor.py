"""`Executor`: a symbol bound to arrays, forward and backward through the lazy engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.context import Context
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError, suggest
from ..ndarray import NDArray, array, invoke, zeros
from ..ndarray.aliasing import invalidate_views
from ..ndarray.execute import flush
from ..ndarray.handle import assign, enter_variable, is_tracked, to_jax_array
from ..ndarray.recorder import engine, local
from ..ndarray.tape import backward as run_backward
from ..op.registry import Call
from ..sparse import BaseSparseNDArray
from .inference import all_shapes, output_stypes
from .lowering import EagerGraph, execute, lower_or_fallback
from .node import SymbolBase, topological
from .python_nodes import PythonNodeOp

if TYPE_CHECKING:
    from .node import Entry

# How gradients that are stored by rows are requested.
ROW_SPARSE_REQS = {"write": "rows", "add": "rows_add"}


@contextmanager
def _mode(recording: bool, training: bool) -> Iterator[None]:
    before = (local.recording, local.training)
    local.record_depth += recording
    local.recording, local.training = recording, training
    local.trace.set_recording(recording)
    try:
        yield
    finally:
        local.record_depth -= recording
        local.recording, local.training = before
        local.trace.set_recording(before[0])


@contextmanager
def recorded_training(training: bool = True) -> Iterator[None]:
    """Record in training mode; what is pending runs first, so that every step begins with the same empty program."""
    if not local.record_depth:
        for trace in list(local.traces.values()):
            flush(trace)
    with _mode(True, training):
        yield


@contextmanager
def without_recording() -> Iterator[None]:
    """Run in inference mode, recording nothing."""
    with _mode(False, False):
        yield


class RecordedForward:
    """One forward pass in training mode, and the variables through which its gradients reach the bound arrays.

    The bound arrays are not made variables themselves: users may record their own gradients on them. Each pass reads
    their present values under variables of its own.
    """

    def __init__(
        self,
        call: Call | EagerGraph,
        ctx: Context,
        args: Sequence[NDArray],
        grads: Sequence[NDArray | None],
        reqs: Sequence[str],
    ):
        self.call, self.ctx, self.args = call, ctx, list(args)
        self.grad_targets = [
            (grad, req) if grad is not None and req != "null" else None for grad, req in zip(grads, reqs, strict=True)
        ]
        self.has_variables = any(t is not None for t in self.grad_targets)
        self._states: list[NDArray] = []
        self._alive: list[NDArray] = []
        self._heads: list[NDArray] | None = None

    def run(self, states: Sequence[NDArray]) -> list[NDArray]:
        """Record the forward pass, update `states`, and return the outputs; call inside `recorded_training`."""
        self._states = list(states)
        for state in states:
            if is_tracked(state):  # by an earlier pass whose backward never came: this one's is not to lead back to it
                to_jax_array(state)
                invalidate_views(state)
        inputs = [self._input(arg, target) for arg, target in zip(self.args, self.grad_targets, strict=True)]
        here = [s.as_in_context(self.ctx) for s in states]
        outputs = execute(self.call, [*inputs, *here], self.ctx)
        for state, used in zip(states, here, strict=True):
            if used is not state:
                used.copyto(state)
        for at in self.call.aux_positions(len(inputs) + len(here)):
            if at < len(inputs) and inputs[at] is not self.args[at]:
                assign(self.args[at], inputs[at].detach(), "forward")
        self._heads = outputs
        self._alive = inputs if self._needs_eager() else []
        return outputs

    def _needs_eager(self) -> bool:
        return isinstance(self.call, EagerGraph) or engine.naive

    def _input(self, arg: NDArray, target: tuple[NDArray, str] | None) -> NDArray:
        value = arg.as_in_context(self.ctx)
        if target is None:
            return value.detach() if is_tracked(value) else value
        if isinstance(value, BaseSparseNDArray):
            return type(value).of_dense(self._input(value.to_dense(), target))
        trace = local.trace if local.trace.ctx is self.ctx else local.use_trace(self.ctx)
        grad, req = target
        # Of eager graphs programs end in between, and gradients come back to this value.
        return enter_variable(
            trace, value, grad, ROW_SPARSE_REQS[req] if grad.is_sparse else req, is_kept=self._needs_eager()
        )

    def heads(self) -> list[NDArray]:
        """Return the recorded outputs for one backward; later calls record the forward again, states unchanged."""
        heads, self._heads = self._heads, None
        if heads is None:
            with without_recording():
                states = [s.copy() for s in self._states]
            with recorded_training():
                self.run(states)
            heads, self._heads = self._heads, None
        assert heads is not None
        return heads


GRAD_REQS = ("write", "add", "null")


def _kind(a: NDArray) -> tuple[Any, ...]:
    return a.shape, a.dtype, a.stype, a.context


class Executor:
    """A symbol bound to argument arrays, gradient arrays and auxiliary states.

    `forward` and `backward` record into the lazy engine, so that forward, backward and the parameter updates that
    follow are one compiled program. Made by `Symbol.bind` and `Symbol.simple_bind`.

    Args:
        symbol: what to run.
        ctx: where to run it.
        args: one array per argument.
        grads: one gradient array or `None` per argument.
        reqs: `"write"`, `"add"` or `"null"` per argument.
        states: one array per auxiliary state.

    Example:
        >>> import dualmx as mx
        >>> x = mx.sym.var("x")
        >>> exe = mx.sym.MakeLoss(x * x).simple_bind(mx.cpu(), x=(2,))
        >>> _ = exe.forward(is_train=True, x=mx.nd.array([1, 2]))
        >>> exe.backward()
        >>> exe.grad_dict["x"].asnumpy().tolist()
        [2.0, 4.0]
    """

    def __init__(
        self,
        symbol: SymbolBase,
        ctx: Context,
        args: Sequence[NDArray],
        grads: Sequence[NDArray | None],
        reqs: Sequence[str],
        states: Sequence[NDArray],
        group2ctx: Mapping[str, Context] | None = None,
    ):
        self._symbol, self._ctx = symbol, ctx
        self._arg_names, self._aux_names = symbol.list_arguments(), symbol.list_auxiliary_states()
        self._output_names = symbol.list_outputs()
        self.arg_arrays, self.grad_arrays, self.aux_arrays = list(args), list(grads), list(states)
        self._arg_dict = dict(zip(self._arg_names, self.arg_arrays, strict=True))
        self._grad_dict = dict(zip(self._arg_names, self.grad_arrays, strict=True))
        self._aux_dict = dict(zip(self._aux_names, self.aux_arrays, strict=True))
        self._grad_req = list(reqs)
        self._group2ctx = dict(group2ctx or {})
        self._calls: dict[Any, Any] = {}
        self._host_operators: dict[Any, Any] = {}
        self._outputs: list[NDArray] = []
        self._recorded_forward: RecordedForward | None = None
        wanted = {name for name, req in zip(self._arg_names, reqs, strict=True) if req != "null"}
        self._need_gradient = heads_with_gradient(symbol.entries, wanted)
        self._monitor: tuple[Callable[[str, NDArray], Any], bool] | None = None

    # ---- arrays by name

    @property
    def arg_dict(self) -> dict[str, NDArray]:
        """Argument arrays by name."""
        return self._arg_dict

    @property
    def grad_dict(self) -> dict[str, NDArray | None]:
        """Gradient arrays by argument name, `None` where no gradient is kept."""
        return self._grad_dict

    @property
    def aux_dict(self) -> dict[str, NDArray]:
        """Auxiliary states by name."""
        return self._aux_dict

    @property
    def outputs(self) -> list[NDArray]:
        """Outputs of the last `forward`, in the order of `Symbol.list_outputs`; zeros before the first one.

        The arrays stay the same: every `forward` writes to them, so that outputs may be taken once and read after each
        pass. Copy what has to outlive the next `forward`.
        """
        if not self._outputs:
            call = self._call(False)
            inputs = [*self.arg_arrays, *self.aux_arrays]
            found = call.infer(tuple((a.shape, np.dtype(a.dtype)) for a in inputs))[: call.n_outputs]
            kinds = self._output_stypes()
            self._outputs = [
                zeros(shape, ctx=ctx, dtype=dtype, stype=kind)
                for (shape, dtype), kind, ctx in zip(found, kinds, self._output_contexts(), strict=True)
            ]
        return list(self._outputs)

    def _output_contexts(self) -> list[Context]:
        return [self._ctx] * len(self._output_names)

    def _output_stypes(self) -> list[str]:
        entries = self._symbol.entries
        bound = {name: a.stype for name, a in zip(self._arg_names, self.arg_arrays, strict=True)}
        return output_stypes(topological(entries), [node for node, _ in entries], bound)

    @property
    def output_dict(self) -> dict[str, NDArray]:
        """Outputs of the last `forward` by name."""
        return dict(zip(self._output_names, self.outputs, strict=True))

    @property
    def _output_dict(self) -> dict[str, NDArray] | None:
        """Outputs by name; `None` before the first `forward`."""
        return self.output_dict if self._outputs else None

    @staticmethod
    def _get_dict(names: Sequence[str], ndarrays: Sequence[Any]) -> dict[str, Any]:
        """Return arrays by name; raises `ArgumentError` for a duplicate name."""
        twice = sorted({n for n in names if list(names).count(n) > 1})
        if twice:
            raise ArgumentError(f"Executor: several arrays are called {twice[0]!r}: give each a name of its own")
        return dict(zip(names, ndarrays, strict=True))

    # ---- running

    def _call(self, train: bool, internals: bool = False) -> Any:
        key = (train, internals)
        if key not in self._calls:
            symbol = SymbolBase(self._symbol.internal_entries()) if internals else self._symbol
            self._calls[key] = lower_or_fallback(symbol, train, made=self._host_operators)
        return self._calls[key]

    def forward(self, is_train: bool = False, **kwargs: Any) -> list[NDArray]:
        """Run the graph and return the outputs.

        Args:
            is_train: training mode: dropout and batch statistics are active, states are updated, and `backward` may
                follow.
            kwargs: new values of arguments (NDArray or NumPy array of the bound shape), copied in first.

        Raises:
            ArgumentTypeError: unknown argument, or a value that is no array. ArgumentError: wrong shape.
        """
        for name, value in kwargs.items():
            self._set_input(name, value)
        self._recorded_forward = None
        self._run_monitor(is_train)
        if is_train:
            with recorded_training():
                self._recorded_forward = self._recorded(True)
                made = self._recorded_forward.run(self.aux_arrays)
        else:
            with without_recording():
                inputs = [a.as_in_context(self._ctx) for a in (*self.arg_arrays, *self.aux_arrays)]
                made = execute(self._call(False), inputs, self._ctx)
        self._publish_outputs(made)
        return list(self._outputs)

    def _publish_outputs(self, made: list[NDArray]) -> None:
        """Write new outputs to the arrays that were handed out; where their kinds differ, hand out the new ones."""
        shown = self._outputs
        if list(map(_kind, shown)) != list(map(_kind, made)):
            self._outputs = made
            return
        with without_recording():
            for old, new in zip(shown, made, strict=True):
                assign(old, new, "forward")

    def _recorded(self, train: bool) -> RecordedForward:
        return RecordedForward(self._call(train), self._ctx, self.arg_arrays, self.grad_arrays, self._grad_req)

    def _set_input(self, name: str, value: Any) -> None:
        try:
            target = self.arg_arrays[self._arg_names.index(name)]
        except ValueError:
            raise ArgumentTypeError(f"forward: unknown argument {name!r}; {suggest(name, self._arg_names)}") from None
        if isinstance(value, np.ndarray):
            value = array(value, ctx=self._ctx, dtype=target.dtype)
        if not isinstance(value, NDArray):
            raise ArgumentError(f"forward: {name}={value!r}: expected an NDArray or a NumPy array")
        if value.shape != target.shape:
            raise ArgumentError(
                f"forward: argument {name!r} is bound with shape {target.shape}, received {value.shape}"
            )
        if value is not target:
            value.copyto(target)

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Compute gradients of the last `forward` into the gradient arrays.

        A forward in inference mode keeps nothing for gradients, so that its graph runs again.

        `"write"` gradients are overwritten, `"add"` gradients are added to. A second backward after the same forward
        computes the forward pass again, from the present values of the arguments.

        Args:
            out_grads: gradient of each output: an array, a list, or a dict by output name. Outputs that define their
                own gradient (`SoftmaxOutput`, `MakeLoss`, …) need none.
            is_train: accepted for compatibility; the mode is that of the forward pass.

        Raises:
            MXNetError: a gradient is missing for an output that is no loss.
            ArgumentTypeError: a gradient is not an NDArray. ArgumentError: it has the wrong shape.
        """
        if not any(g is not None and r != "null" for g, r in zip(self.grad_arrays, self._grad_req, strict=True)):
            return
        seeds = self._seeds(out_grads)
        if self._recorded_forward is None:
            with recorded_training(training=False):
                self._recorded_forward = self._recorded(False)
                made = self._recorded_forward.run(self.aux_arrays)
            self._publish_outputs(made)
        heads = self._recorded_forward.heads()
        if heads and self._recorded_forward.has_variables:
            run_backward(heads, seeds)

    def _seeds(self, out_grads: Any) -> list[NDArray | None]:
        names = self._output_names
        if out_grads is None and not any(self._need_gradient):
            return [None] * len(names)
        if out_grads is None:
            given: list[Any] = []
        elif isinstance(out_grads, NDArray):
            given = [out_grads]
        elif isinstance(out_grads, Mapping):
            given = [out_grads.get(name) for name in names]
        else:
            given = list(out_grads)
        if len(given) > len(names):
            raise ArgumentError(f"backward: got {len(given)} out_grads for {len(names)} outputs")
        given += [None] * (len(names) - len(given))
        current = self.outputs
        for i, seed in enumerate(given):
            if seed is None:
                if self._need_gradient[i]:
                    raise MXNetError(
                        f"backward: output {names[i]!r} is not a loss, so its gradient is required: pass out_grads, or "
                        f"end the network with make_loss"
                    )
                continue
            if not isinstance(seed, NDArray):
                raise ArgumentTypeError(f"backward: out_grads[{i}]={seed!r}: expected an NDArray")
            if seed.shape != current[i].shape:
                raise ArgumentError(
                    f"backward: out_grads[{i}] has shape {seed.shape}, output {names[i]!r} has {current[i].shape}"
                )
            given[i] = seed.astype(current[i].dtype, copy=False)
        return given

    # ---- parameters

    def copy_params_from(
        self,
        arg_params: Mapping[str, NDArray],
        aux_params: Mapping[str, NDArray] | None = None,
        allow_extra_params: bool = False,
    ) -> None:
        """Copy arrays into arguments and auxiliary states by name, casting to the bound dtypes.

        Raises:
            ArgumentError: a name that is not bound (unless `allow_extra_params`), or a wrong shape.
        """
        for what, given, bound in (
            ("arguments", arg_params, self.arg_dict),
            ("auxiliary states", aux_params or {}, self.aux_dict),
        ):
            for name, value in given.items():
                if name in bound:
                    if value.shape != bound[name].shape:
                        raise ArgumentError(
                            f"copy_params_from: {name!r} has shape {value.shape}, bound is {bound[name].shape}"
                        )
                    value.copyto(bound[name])
                elif not allow_extra_params:
                    raise ArgumentError(
                        f"copy_params_from: name {name!r} is not among the {what}; {suggest(name, bound)}"
                    )

    def reshape(self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any) -> Executor:
        """Return an executor for other input shapes that shares the arrays whose shapes stay the same.

        Args:
            partial_shaping: allow shapes of arguments that are not given to change.
            allow_up_sizing: allow arrays to become larger.
            kwargs: new shapes by argument name.

        Raises:
            ArgumentTypeError: unknown argument. MXNetError: a shape changes or grows without permission.
        """
        for name in kwargs:
            if name not in self._arg_names:
                raise ArgumentTypeError(f"reshape: unknown argument {name!r}; {suggest(name, self._arg_names)}")
        arg_shapes, _, aux_shapes = all_shapes(self._symbol, **kwargs)
        if arg_shapes is None or aux_shapes is None:
            raise MXNetError(f"reshape: not all shapes follow from {kwargs}; give the shapes of more arguments")
        args, grads = [], []
        for name, shape, old, grad in zip(self._arg_names, arg_shapes, self.arg_arrays, self.grad_arrays, strict=True):
            if shape == old.shape:
                args.append(old)
                grads.append(grad)
                continue
            if name not in kwargs and not partial_shaping:
                raise MXNetError(
                    f"reshape: the shape of {name!r}, which was not given, changes from {old.shape} to {shape}; pass "
                    f"partial_shaping=True if this is intended"
                )
            args.append(self._resized(name, old, shape, allow_up_sizing))
            grads.append(None if grad is None else zeros(shape, ctx=grad.context, dtype=grad.dtype))
        states = []
        for name, shape, old in zip(self._aux_names, aux_shapes, self.aux_arrays, strict=True):
            if shape != old.shape and not partial_shaping:
                raise MXNetError(
                    f"reshape: the shape of state {name!r} changes from {old.shape} to {shape}; pass "
                    f"partial_shaping=True if this is intended"
                )
            states.append(old if shape == old.shape else self._resized(name, old, shape, allow_up_sizing))
        return type(self)(self._symbol, self._ctx, args, grads, self._grad_req, states, self._group2ctx)

    def _resized(self, name: str, old: NDArray, shape: tuple[int, ...], allow_up_sizing: bool) -> NDArray:
        if int(np.prod(shape)) > old.size and not allow_up_sizing:
            raise MXNetError(
                f"reshape: {name!r} would grow from {old.shape} to {shape}; pass allow_up_sizing=True to allocate anew"
            )
        return zeros(shape, ctx=old.context, dtype=old.dtype)

    # ---- looking inside

    def set_monitor_callback(self, callback: Callable[[str, NDArray], Any], monitor_all: bool = False) -> None:
        """Call `callback(name, array)` for every operator output of each forward, for variables too if `monitor_all`.

        Callbacks may also treat them as MXNet's bytes and handles: `base.py_str(name)` is the name, and
        `NDArray(ctypes.cast(array, base.NDArrayHandle), writable=False)` the array.
        Monitoring runs the graph a second time with all intermediate results kept.
        """
        if not callable(callback):
            raise ArgumentTypeError(f"set_monitor_callback: callback={callback!r}: expected a function (name, array)")
        self._monitor = (callback, bool(monitor_all))

    @property
    def _monitor_callback(self) -> Callable[[str, NDArray], Any] | None:
        """The function set by `set_monitor_callback`."""
        return None if self._monitor is None else self._monitor[0]

    @property
    def _monitor_all(self) -> bool | None:
        """Whether it is called for variables too; `None` if there is no such function."""
        return None if self._monitor is None else self._monitor[1]

    def _run_monitor(self, is_train: bool) -> None:
        if self._monitor is None:
            return
        callback, monitor_all = self._monitor
        internals = SymbolBase(self._symbol.internal_entries())
        with without_recording():
            copies = [a.as_in_context(self._ctx).copy() for a in (*self.arg_arrays, *self.aux_arrays)]
            results = execute(self._call(is_train, internals=True), copies, self._ctx)
        for name, (node, _), value in zip(internals.list_outputs(), internals.entries, results, strict=True):
            if monitor_all or node.op is not None:
                callback(_OutputName(name), value)

    def get_optimized_symbol(self) -> SymbolBase:
        """Return the bound symbol; optimization happens in XLA, below symbols."""
        return self._symbol

    def debug_str(self) -> str:
        """Return a readable listing of the bound graph."""
        return self._symbol.debug_str()


class _OutputName(str):
    """The name of an output, which can be decoded as the bytes that MXNet hands to callbacks."""

    __slots__ = ()

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the name as plain text."""
        return str(self)


def heads_with_gradient(entries: Sequence[Entry], wanted: Collection[str]) -> list[bool]:
    """Say of each head whether its gradient reaches a variable that is `wanted`.

    None does past a node that defines its own gradient, or through which none flows.
    """
    reaching: set[int] = set()
    for node in topological(entries):
        if node.op is None:
            reaches = node.name in wanted
        else:
            stops = (
                node.op.is_loss
                if isinstance(node.op, PythonNodeOp)
                else node.op.traits.is_loss or node.op.traits.is_constant
            )
            reaches = not stops and any(id(child) in reaching for child, _ in node.inputs)
        if reaches:
            reaching.add(id(node))
    return [id(node) in reaching for node, _ in entries]


def invoke_on_context(call: Any, ctx: Context) -> list[NDArray]:
    """Run a call without inputs on a context."""
    with ctx:
        return invoke(call, [])
