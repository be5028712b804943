"""`GradientTape`, as in TensorFlow."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from .. import autograd
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError, OrderError
from ..gluon.data.batchify import map_leaves
from ..gluon.parameter import Parameter
from ..namespace import nd
from ..ndarray import NDArray
from ..ndarray.handle import is_tracked
from .distribute.strategy import replica_context


class _OpenTapes(threading.local):
    """The tapes of a thread that are recording."""

    def __init__(self) -> None:
        self.tapes: list[GradientTape] = []


_open = _OpenTapes()


class GradientTape:
    """Records what is computed inside its `with` block, for gradients.

    Weights of models need not be watched, nor do arrays that depend on something that is. Layers compute as in
    inference unless the model is called with `training=True`.

    Args:
        persistent: `gradient` may be called more than once.
        watch_accessed_variables: give gradients of weights that were not watched.

    Example:
        >>> import dualmx as mx
        >>> from dualmx import keras
        >>> x = mx.nd.array([3])
        >>> with keras.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> tape.gradient(y, x).asscalar().item()
        6.0
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True):
        self._persistent, self._all = persistent, watch_accessed_variables
        self._watched: list[Any] = []
        self._scope: Any = None
        self._used = False

    def __enter__(self) -> GradientTape:
        if self._scope is not None:
            raise OrderError("GradientTape: the tape is recording already")
        self._scope = autograd.record(train_mode=False)
        self._scope.__enter__()
        _open.tapes.append(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        _open.tapes.remove(self)
        scope, self._scope = self._scope, None
        scope.__exit__(*exc)

    def watch(self, tensor: Any) -> None:
        """Record what is computed from arrays, or lists of them, that are no weights.

        Raises:
            ArgumentTypeError: something else.
        """
        for one in _leaves(tensor):
            self._watched.append(one)
            if isinstance(one, NDArray) and not is_tracked(one):
                one.attach_grad()
            elif not isinstance(one, (NDArray, Parameter)):
                raise ArgumentTypeError(f"GradientTape.watch: a {type(one).__name__}: expected NDArrays")

    def watched_variables(self) -> tuple[Any, ...]:
        """Return what was watched."""
        return tuple(self._watched)

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Return a scope in which nothing is recorded."""
        with autograd.pause(train_mode=autograd.is_training()):
            yield

    def reset(self) -> None:
        """Forget what was watched and recorded."""
        self._watched, self._used = [], False

    def gradient(
        self, target: Any, sources: Any, output_gradients: Any = None, unconnected_gradients: str = "none"
    ) -> Any:
        """Return the gradients of the sum of `target` with respect to `sources`.

        Args:
            target: an array, or arrays.
            sources: arrays or weights, or nested lists, tuples and dicts of them.
            output_gradients: factors of the targets, of their shapes; ones by default.
            unconnected_gradients: what is given for a source that no target depends on: `"none"` (None) or `"zero"`.

        Returns:
            Gradients in the structure of `sources`; those of weights are of this replica.

        Raises:
            OrderError: the tape is not persistent, and was asked before. ArgumentError: `unconnected_gradients`.
            ArgumentTypeError: a source is no array and no weight.
        """
        if unconnected_gradients not in ("none", "zero"):
            what = f"unconnected_gradients={unconnected_gradients!r}"
            raise ArgumentError(f"GradientTape.gradient: {what}: expected 'none' or 'zero'")
        if self._used and not self._persistent:
            raise OrderError(
                "GradientTape.gradient: the tape was asked for gradients before; make it with persistent=True"
            )
        self._used = True
        listed = _leaves(sources)
        arrays = [_array(one) for one in listed]
        wanted = [a if self._is_watched(one) else None for one, a in zip(listed, arrays, strict=True)]
        found = self._gradients(_leaves(target), wanted, output_gradients)
        if unconnected_gradients == "zero":
            found = [nd.zeros_like(a) if g is None else g for g, a in zip(found, arrays, strict=True)]
        each = iter(found)
        return map_leaves(lambda _: next(each), sources)

    def _is_watched(self, source: Any) -> bool:
        return self._all or not isinstance(source, Parameter) or any(w is source for w in self._watched)

    def _gradients(self, heads: list[Any], sources: list[NDArray | None], factors: Any) -> list[NDArray | None]:
        keep = any(tape is not self for tape in _open.tapes)  # gradients of gradients may be asked for
        factors = None if factors is None else _leaves(factors)
        found: list[NDArray | None] = [None] * len(sources)

        def ask(which: list[int], retain: bool) -> None:
            arrays = [sources[i] for i in which]
            for i, g in zip(which, autograd.grad(heads, arrays, factors, retain, keep), strict=True):
                found[i] = g

        which = [i for i, a in enumerate(sources) if a is not None]
        try:
            if which:
                ask(which, self._persistent or keep)
        except MXNetError as e:
            if "not reached" not in str(e):
                raise
            for i in which:  # nothing was done, so each one is asked for
                try:
                    ask([i], True)
                except MXNetError as each:
                    if "not reached" not in str(each):
                        raise
        return found


def _array(source: Any) -> NDArray:
    if isinstance(source, Parameter):
        return source.data(replica_context(source.list_ctx()))
    if not isinstance(source, NDArray):
        raise ArgumentTypeError(f"GradientTape.gradient: a source of type {type(source).__name__}: expected NDArrays")
    return source


def _leaves(tree: Any) -> list[Any]:
    """Return the leaves of nested lists, tuples and dicts."""
    found: list[Any] = []
    map_leaves(found.append, tree)
    return found


__all__ = ["GradientTape"]
