"""Automatic differentiation of imperative code.

Operations called inside `record()` on arrays that depend on a variable (an array with `attach_grad()`) are recorded;
`backward` computes the gradients of their results with respect to the variables.

Example:
    >>> import dualmx as mx
    >>> x = mx.nd.array([1, 2, 3])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad.asnumpy().tolist()
    [2.0, 4.0, 6.0]
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from .core.argcheck import require_instance
from .core.errors import ArgumentError, ArgumentTypeError, MXNetError
from .ndarray import tape
from .ndarray.custom_op import Function
from .ndarray.execute import flush
from .ndarray.handle import is_tracked
from .ndarray.ndarray import NDArray, make_variable
from .ndarray.recorder import backward_mode, local
from .ndarray.tape import recorded_ops
from .symbol.node import Node, topological
from .symbol.symbol import Symbol


class _Scope:
    """Sets the recording and training flags of this thread, and restores them at the end."""

    __slots__ = ("recording", "training", "before")

    def __init__(self, recording: bool | None, training: bool | None):
        self.recording, self.training = recording, training

    def __enter__(self) -> _Scope:
        self.before = (local.recording, local.training)
        if self.recording is not None:
            set_recording(self.recording)
            local.record_depth += self.recording
        if self.training is not None:
            local.training = self.training
        return self

    def __exit__(self, *exc: object) -> None:
        if self.recording:
            local.record_depth -= 1
        set_recording(self.before[0])
        local.training = self.before[1]


def record(train_mode: bool = True) -> _Scope:
    """Return a scope in which operations are recorded for `backward`; `train_mode` also sets the training flag.

    Example:
        >>> with record():
        ...     is_recording(), is_training()
        (True, True)
    """
    return _Scope(True, train_mode)


def pause(train_mode: bool = False) -> _Scope:
    """Return a scope in which nothing is recorded; `train_mode` also sets the training flag.

    Example:
        >>> x = mx.nd.ones((2,))
        >>> x.attach_grad()
        >>> with record():
        ...     y = 2 * x
        ...     with pause():
        ...         scale = y.sum()
        ...     z = y * scale
        >>> z.backward()
        >>> x.grad.asnumpy().tolist()
        [8.0, 8.0]
    """
    return _Scope(False, train_mode)


def train_mode() -> _Scope:
    """Return a scope in which operations behave as in training; recording is not changed."""
    return _Scope(None, True)


def predict_mode() -> _Scope:
    """Return a scope in which operations behave as in inference; recording is not changed."""
    return _Scope(None, False)


def is_recording() -> bool:
    """Return whether operations of this thread are being recorded."""
    return local.recording


def is_training() -> bool:
    """Return whether operations of this thread behave as in training."""
    return local.training


def set_recording(is_recording: bool) -> bool:
    """Switch recording on or off; returns what it was."""
    before = local.recording
    if bool(is_recording) != before:
        if is_recording and not local.record_depth:
            # Variables have values then, and a step that begins with an empty trace is the same program every time.
            for tr in list(local.traces.values()):
                flush(tr)
        local.recording = bool(is_recording)
        local.trace.set_recording(local.recording)
    return before


def set_training(train_mode: bool) -> bool:
    """Set the training flag; returns what it was."""
    before, local.training = local.training, bool(train_mode)
    return before


def mark_variables(variables: Any, gradients: Any, grad_reqs: Any = "write") -> None:
    """Make arrays variables whose gradients go to the given arrays.

    Args:
        variables, gradients: an array each, or lists of equal length.
        grad_reqs: `"write"`, `"add"` or `"null"`, one for all or one each.

    Example:
        >>> x, g = mx.nd.array([3]), mx.nd.zeros((1,))
        >>> mark_variables(x, g)
        >>> with record():
        ...     y = x * x
        >>> y.backward()
        >>> g.asscalar().item()
        6.0
    """
    if isinstance(variables, NDArray):
        variables, gradients = [variables], [gradients]
    for name, given in (("variables", variables), ("gradients", gradients)):
        for a in require_instance("mark_variables", name, given, (list, tuple), "an NDArray or a list of them"):
            require_instance("mark_variables", name, a, NDArray, "NDArrays")
    reqs = [grad_reqs] * len(variables) if isinstance(grad_reqs, str) else list(grad_reqs)
    if not len(variables) == len(gradients) == len(reqs):
        raise ArgumentError(
            f"mark_variables: {len(variables)} variables, {len(gradients)} gradients, {len(reqs)} grad_reqs; expected "
            f"equal numbers"
        )
    for v, g, req in zip(variables, gradients, reqs, strict=True):
        make_variable(v, g, req)


def _listed(what: str, heads: Any) -> list[NDArray]:
    if not isinstance(heads, (NDArray, list, tuple)):
        raise ArgumentTypeError(f"{what}: heads of type {type(heads).__name__}: expected an NDArray or a list of them")
    found = [heads] if isinstance(heads, NDArray) else list(heads)
    for h in found:
        if not isinstance(h, NDArray):
            raise ArgumentTypeError(f"{what}: heads contain a {type(h).__name__}; expected NDArrays")
    if not found:
        raise ArgumentError(f"{what}: heads=[]: expected at least one array")
    return found


def _last_of_each(what: str, heads: list[NDArray], head_grads: Any) -> tuple[list[NDArray], Any]:
    """Heads once each: of an array that is a head several times, MXNet takes the last gradient."""
    seeds = tape.check_head_grads(what, heads, head_grads)
    last = {id(h): (h, s) for h, s in zip(heads, seeds, strict=True)}
    return [h for h, _ in last.values()], [s for _, s in last.values()]


def backward(heads: Any, head_grads: Any = None, retain_graph: bool = False, train_mode: bool = True) -> None:
    """Compute the gradients of `heads` with respect to all variables they were recorded from.

    Args:
        heads: an array or a list of arrays.
        head_grads: gradients of the heads, ones by default.
        retain_graph: keep the graph for another backward.
        train_mode: training flag in the backward of a `Function`; other operations keep the mode in which they were
            recorded.

    Raises:
        MXNetError: no variable is reached from a head.

    Example:
        >>> x = mx.nd.array([1, 2])
        >>> x.attach_grad()
        >>> with record():
        ...     y, z = x * 2, x * x
        >>> backward([y, z], [mx.nd.array([1, 0]), mx.nd.array([0, 1])])
        >>> x.grad.asnumpy().tolist()
        [2.0, 4.0]
    """
    given = _listed("backward", heads)
    unrecorded = [i for i, head in enumerate(given) if not is_tracked(head)]
    if 0 < len(unrecorded) < len(given):  # where none is, the pass itself finds out
        raise MXNetError(
            f"backward: heads[{unrecorded[0]}] was not recorded from a variable, as others were: compute it inside "
            "autograd.record() from arrays with attach_grad(), or leave it out"
        )
    with nullcontext() if train_mode else backward_mode(False):
        tape.backward(*_last_of_each("backward", given, head_grads), retain_graph)


def grad(
    heads: Any,
    variables: Any,
    head_grads: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    train_mode: bool = True,
) -> list[NDArray]:
    """Return the gradients of `heads` with respect to `variables` instead of storing them.

    Args:
        heads, variables: arrays or lists of arrays.
        head_grads: gradients of the heads, ones by default.
        retain_graph: keep the graph; by default as `create_graph`.
        create_graph: record the computation of the gradients, so that they can be differentiated again.
        train_mode: see `backward`.

    Returns:
        A list with the gradient of each variable, also of a single one; `grad` of the variables is left alone.

    Raises:
        MXNetError: a variable is not reached.

    Example:
        >>> x = mx.nd.array([2])
        >>> x.attach_grad()
        >>> with record():
        ...     y = x**3
        ...     (first,) = grad(y, x, create_graph=True)
        >>> first.backward()
        >>> first.asscalar().item(), x.grad.asscalar().item()
        (12.0, 12.0)
    """
    keep = create_graph if retain_graph is None else retain_graph
    wanted = _listed("grad", variables)
    given, seeds = _last_of_each("grad", _listed("grad", heads), head_grads)
    with nullcontext() if train_mode else backward_mode(False):
        found = tape.gradients(given, wanted, seeds, keep, create_graph)
    return [a.wrap_array(g) for a, g in zip(wanted, found, strict=True)]


def get_symbol(x: NDArray) -> Symbol:
    """Return the recorded computation of `x` as a Symbol, whose arguments, in its order, are `var0`, `var1`, …

    Raises:
        MXNetError: `x` was not recorded, or by an operator that has no symbol.

    Example:
        >>> x = mx.nd.array([1, 2])
        >>> x.attach_grad()
        >>> with record():
        ...     y = mx.nd.relu(x) * 3
        >>> get_symbol(y).eval(var0=mx.nd.array([-1, 2]))[0].asnumpy().tolist()
        [0.0, 6.0]
    """
    steps, head = recorded_ops(x)
    entries: dict[Any, tuple[Node, int]] = {}

    def entry(v: Any) -> tuple[Node, int]:
        if v not in entries:
            entries[v] = (Node(None, "var"), 0)
        return entries[v]

    for k, s in enumerate(steps):
        changed = {n: str(v) for n, v in s.params.items() if v != s.op.params[n].default}
        node = Node(s.op, f"node_{k}", [entry(v) for v in s.ins], s.params, changed)
        entries.update((v, (node, i)) for i, v in enumerate(s.outs))
    for k, node in enumerate(n for n in topological([entry(head)]) if n.op is None):
        node.name = f"var{k}"
    return Symbol([entry(head)])


__all__ = [
    "Function", "backward", "get_symbol", "grad", "is_recording", "is_training", "mark_variables", "pause",
    "predict_mode", "record", "set_recording", "set_training", "train_mode",
]  # fmt: skip
