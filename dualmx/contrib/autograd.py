"""MXNet's first autograd API, kept for old scripts; use `mx.autograd`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .. import autograd
from ..core.argcheck import require_instance
from ..namespace import nd
from ..ndarray import NDArray


def set_is_training(is_train: bool) -> bool:
    """Switch recording and training mode on or off; returns whether training mode was on."""
    before = autograd.set_training(is_train)
    autograd.set_recording(is_train)
    return before


class TrainingStateScope:
    """Record in training mode (`True`), or neither (`False`), inside a `with` block."""

    def __init__(self, enter_state: bool):
        self._state = enter_state
        self._before = (False, False)

    def __enter__(self) -> None:
        self._before = (autograd.set_recording(self._state), autograd.set_training(self._state))

    def __exit__(self, *_: Any) -> None:
        autograd.set_recording(self._before[0])
        autograd.set_training(self._before[1])


def train_section() -> TrainingStateScope:
    """Scope in which operations are recorded, in training mode.

    Example:
        >>> x = nd.ones(2)
        >>> x.attach_grad()
        >>> with train_section():
        ...     y = x * 3
        >>> compute_gradient([y])
        >>> x.grad.asnumpy().tolist()
        [3.0, 3.0]
    """
    return TrainingStateScope(True)


def test_section() -> TrainingStateScope:
    """Scope in which nothing is recorded, in inference mode."""
    return TrainingStateScope(False)


def mark_variables(variables: Any, gradients: Any, grad_reqs: Any = "write") -> None:
    """See `mx.autograd.mark_variables`."""
    autograd.mark_variables(variables, gradients, grad_reqs)


def backward(outputs: Sequence[NDArray], out_grads: Any = None, retain_graph: bool = False) -> None:
    """Compute the gradients of the marked variables; see `mx.autograd.backward`."""
    autograd.backward(outputs, out_grads, retain_graph)


def compute_gradient(outputs: Sequence[NDArray]) -> None:
    """`backward` with ones as gradients of the outputs."""
    backward(outputs)


def grad_and_loss(func: Callable[..., Any], argnum: int | Sequence[int] | None = None) -> Callable[..., Any]:
    """Return a function that computes the gradients of `func` and its result.

    Args:
        func: a function of arrays that returns an array or a list of them.
        argnum: position or positions of the arguments to differentiate by; all by default.

    Returns:
        A function of the same arguments; it returns (list of gradients, result).

    Example:
        >>> grads, loss = grad_and_loss(lambda x: x * x)(nd.array([1, 2]))
        >>> grads[0].asnumpy().tolist(), loss.asnumpy().tolist()
        ([2.0, 4.0], [1.0, 4.0])
    """

    @functools.wraps(func)
    def wrapped(*args: NDArray) -> tuple[list[NDArray], Any]:
        chosen = list(args)
        if argnum is not None:
            chosen = [args[i] for i in ([argnum] if isinstance(argnum, int) else argnum)]
        for x in chosen:
            require_instance("grad_and_loss", "argument", x, NDArray, "an NDArray")
        grads = [nd.zeros_like(x) for x in chosen]
        mark_variables(chosen, grads)
        with train_section():
            outputs = func(*args)
        compute_gradient([outputs] if isinstance(outputs, NDArray) else outputs)
        return grads, outputs

    return wrapped


def grad(func: Callable[..., Any], argnum: int | Sequence[int] | None = None) -> Callable[..., list[NDArray]]:
    """Return a function that computes the gradients of `func`; see `grad_and_loss`."""
    both = grad_and_loss(func, argnum)

    @functools.wraps(both)
    def wrapped(*args: NDArray) -> list[NDArray]:
        return both(*args)[0]

    return wrapped


__all__ = [
    "TrainingStateScope", "backward", "compute_gradient", "grad", "grad_and_loss", "mark_variables",
    "set_is_training", "test_section", "train_section",
]  # fmt: skip
