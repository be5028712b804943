"""Deferred values: arrays whose buffer another thread delivers, awaited on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.context import Context
from ..core.errors import MXNetError
from .handle import check_writable, rebind
from .ndarray import NDArray
from .recorder import Trace


class DeferredTrace(Trace):
    """A trace that nobody records into: what is pending in it gets the value that `fetch` waits for.

    Args:
        ctx: where the array is.
        fetch: returns an array of the promised shape and dtype on `ctx`.
    """

    __slots__ = ("fetch",)

    def __init__(self, ctx: Context, fetch: Callable[[], NDArray]):
        super().__init__(ctx, False)
        self.fetch: Callable[[], NDArray] | None = fetch

    def resolve(self) -> bool:
        """Wait for the value, and give it to all arrays that stand for it."""
        with self.lock:
            if self.fetch is None:
                return True
            data, error = None, None
            try:
                data = self.fetch().realize()
            except MXNetError as e:
                error = e
            self.executed, self.fetch = True, None
            for h in [h for r in self.handles if (h := r()) is not None and h._trace is self]:
                h._trace, h._value, h._data = None, h._value.aval, data
                if error is not None:
                    h._extra().error = error
            self.release()
        return True


def set_deferred(array: NDArray, fetch: Callable[[], NDArray]) -> None:
    """Overwrite an array by what `fetch` returns, which is called when the value is first needed.

    Raises:
        MXNetError: the array is part of a recorded graph.

    Example:
        >>> import dualmx as mx
        >>> x = mx.nd.zeros((2,))
        >>> set_deferred(x, lambda: mx.nd.ones((2,)))
        >>> x.asnumpy().tolist()
        [1.0, 1.0]
    """
    check_writable(array, "promise")
    x: Any = array._meta
    if x is not None and (x.view_base is not None or x.grad_req is not None or x.exposed is not None):
        # A view, whose root would have to wait as well, a variable of a recorded program, or memory that others see.
        array[:] = fetch()
        return
    rebind(array, DeferredTrace(array.context, fetch), array._value.aval)


__all__ = ["set_deferred"]
