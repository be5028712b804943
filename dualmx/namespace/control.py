"""Control flow over arrays: `foreach`, `while_loop`, `cond`, run step by step and recorded as they run."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..core.argcheck import integer
from ..core.errors import ArgumentError, ArgumentTypeError
from ..ndarray.creation import zeros
from ..ndarray.handle import invoke
from ..ndarray.ndarray import NDArray
from ..op.registry import OPS


def _flatten(what: str, value: Any) -> tuple[list[NDArray], Any]:
    """The arrays of a nested list and its structure: 0 for an array, a list of structures for a list."""
    if isinstance(value, NDArray):
        return [value], 0
    if not isinstance(value, (list, tuple)):
        raise ArgumentTypeError(f"{what} is a {type(value).__name__}: expected an NDArray or a nested list of them")
    found: list[NDArray] = []
    shape = []
    for part in value:
        arrays, inner = _flatten(what, part)
        found += arrays
        shape.append(inner)
    return found, shape


def _restore(arrays: list[NDArray], shape: Any) -> Any:
    """Nest `arrays` as `shape` says, removing them from the list."""
    return arrays.pop(0) if shape == 0 else [_restore(arrays, inner) for inner in shape]


def _pair(what: str, got: Any) -> tuple[Any, Any]:
    if not isinstance(got, (list, tuple)) or len(got) != 2:
        raise ArgumentError(f"{what} returned {type(got).__name__}: expected two things, outputs and next states")
    return got[0], got[1]


def _stack(arrays: list[NDArray]) -> NDArray:
    return invoke(OPS["stack"].call(axis=0, num_args=len(arrays)), arrays)[0]


def _truth(what: str, value: Any) -> bool:
    if isinstance(value, NDArray):
        if value.size != 1:
            raise ArgumentError(f"{what} has shape {value.shape}: expected one number")
        return bool(value.asscalar())
    return bool(value)


def _same(what: str, got: Any, want: Any) -> None:
    if got != want:
        raise ArgumentError(f"{what} changed their structure during the loop; expected the same nested lists each time")


def foreach(body: Callable[[Any, Any], tuple[Any, Any]], data: Any, init_states: Any) -> tuple[Any, Any]:
    """Run `body` over the first axis of `data`, handing states from step to step.

    Args:
        body: `(slices, states) -> (outputs, next states)`.
        data: an array or nested list of arrays of one length; slices are nested alike.
        init_states: states of the first step, an array or nested list of arrays.

    Returns:
        The outputs of the steps, each stacked along a new first axis, and the states after the last.

    Raises:
        ArgumentError: no steps; lengths differ; the structure of outputs or states changes. ArgumentTypeError: not
            arrays.

    Example:
        >>> outputs, last = nd.contrib.foreach(lambda x, s: (x + s, x + s), nd.arange(3), nd.zeros((1,)))
        >>> outputs.asnumpy().ravel().tolist()
        [0.0, 1.0, 3.0]
    """
    arrays, shape = _flatten("foreach: data", data)
    _, state_shape = _flatten("foreach: init_states", init_states)
    lengths = sorted({len(a) for a in arrays})
    if len(lengths) != 1 or lengths[0] == 0:
        raise ArgumentError(f"foreach: data have {lengths} steps: expected arrays of one length that is not 0")
    states, kept, out_shape = init_states, list[list[NDArray]](), None
    for i in range(lengths[0]):
        outs, states = _pair("foreach: body", body(_restore([a[i] for a in arrays], shape), states))
        found, out_now = _flatten("foreach: an output of body", outs)
        _same("foreach: the states", _flatten("foreach: a state of body", states)[1], state_shape)
        _same("foreach: the outputs", out_now, out_now if out_shape is None else out_shape)
        out_shape = out_now
        kept.append(found)
    return _restore([_stack(list(column)) for column in zip(*kept, strict=True)], out_shape), states


def while_loop(
    cond: Callable[..., Any], func: Callable[..., tuple[Any, Any]], loop_vars: Any, max_iterations: int | None = None
) -> tuple[Any, Any]:
    """Run `func` while `cond` is true, at most `max_iterations` times.

    Args:
        cond: `(*loop_vars) -> one number`, true to go on.
        func: `(*loop_vars) -> (outputs, next loop_vars)`.
        loop_vars: an array or list of arrays.
        max_iterations: bound on the steps, and first length of the outputs.

    Returns:
        The outputs, stacked along a new first axis of length `max_iterations`, zeros after the last step (an empty
        list if there is no step), and the last loop_vars.

    Raises:
        ArgumentError: no bound; no loop_vars; their number or the outputs' structure changes.

    Example:
        >>> outputs, last = nd.contrib.while_loop(lambda i: i < 2, lambda i: (i * 10, i + 1), nd.zeros((1,)), 3)
        >>> outputs.asnumpy().ravel().tolist(), last.asscalar().item()
        ([0.0, 10.0, 0.0], 2.0)
    """
    if max_iterations is None:
        raise ArgumentError("while_loop: max_iterations=None: expected a bound on the number of steps")
    bound = integer("while_loop", "max_iterations", max_iterations, low=0)
    state, state_shape = _flatten("while_loop: loop_vars", loop_vars)
    if not state:
        raise ArgumentError("while_loop: loop_vars=[]: expected at least one array")
    steps, out_shape = list[list[NDArray]](), None
    single = isinstance(loop_vars, NDArray)
    while len(steps) < bound and _truth(
        "while_loop: the result of cond", cond(*_arguments(state, state_shape, single))
    ):
        outs, after = _pair("while_loop: func", func(*_arguments(state, state_shape, single)))
        found, out_now = _flatten("while_loop: an output of func", [] if outs is None else outs)
        state, shape_now = _flatten("while_loop: loop_vars after func", after)
        _same("while_loop: loop_vars", [0] if shape_now == 0 else shape_now, [0] if single else state_shape)
        _same("while_loop: the outputs", out_now, out_now if out_shape is None else out_shape)
        out_shape = out_now
        steps.append(found)
    last = state[0] if single else _restore(list(state), state_shape)
    if not steps:
        return [], last
    padded = []
    for column in zip(*steps, strict=True):
        rest = [zeros(column[0].shape, ctx=column[0].context, dtype=column[0].dtype)] * (bound - len(column))
        padded.append(_stack([*column, *rest]))
    return _restore(padded, out_shape), last


def _arguments(state: list[NDArray], shape: Any, single: bool) -> list[Any]:
    return list(state) if single else _restore(list(state), shape)


def cond(pred: Any, then_func: Callable[[], Any], else_func: Callable[[], Any]) -> Any:
    """Return `then_func()` if `pred`, an array of one number, is true, else `else_func()`.

    Raises:
        ArgumentError: more than one number.

    Example:
        >>> nd.contrib.cond(nd.array([1]), lambda: nd.array([2]), lambda: nd.array([3])).asscalar().item()
        2.0
    """
    return then_func() if _truth("cond: pred", pred) else else_func()


def populate(contrib: ModuleType) -> None:
    """Add the functions to `nd.contrib`."""
    for made in (foreach, while_loop, cond):
        setattr(contrib, made.__name__, made)
