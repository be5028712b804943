"""`mx.np.ndarray`: the lazy handle of `NDArray` under NumPy's rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as onp

from ..core.context import Context
from ..core.dtypes import as_dtype
from ..core.errors import ArgumentError, ArgumentTypeError, RangeError, UnsupportedError
from ..ndarray.handle import invoke_unary
from ..ndarray.ndarray import NDArray
from ..ndarray.view import second_handle
from ..op.registry import OPS
from .fluent import Fluent


def as_np_class(a: Any) -> Any:
    """Return the classic array `a`, nothing else holding it, as an `ndarray`: the same object under the other class."""
    a.__class__ = ndarray
    return a


def as_np(a: NDArray) -> ndarray:
    """Return `a` as an array with NumPy semantics on the same value; see `NDArray.as_np_ndarray`."""
    return a if isinstance(a, ndarray) else second_handle(a, ndarray)


class ndarray(Fluent):
    """An n-dimensional array with the semantics of `numpy.ndarray`, computed lazily.

    Arrays may have no axes and no elements, comparisons give bool, bool arrays are masks, indices are int64. Operations
    are recorded as those of `mx.nd` are, in the same programs and on the same tape.

    Example:
        >>> import dualmx as mx
        >>> x = mx.np.array([[1, 2], [3, 4]])
        >>> x[x > 1].sum()
        array(9.)
    """

    __slots__ = ()

    @property
    def dtype(self) -> onp.dtype:
        """Element type as a `numpy.dtype`."""
        return self._value.dtype

    def __len__(self) -> int:
        if not self._value.shape:
            raise ArgumentTypeError("len() of unsized object: the array has no axis")
        return self._value.shape[0]

    def as_nd_ndarray(self) -> NDArray:
        """Return a classic array on the same value: writes to one are seen by the other, gradients are shared.

        Example:
            >>> import dualmx as mx
            >>> mx.np.ones((2,)).as_nd_ndarray()
            <BLANKLINE>
            [1. 1.]
            <NDArray 2 @cpu(0)>
        """
        return second_handle(self, NDArray)

    def as_np_ndarray(self) -> ndarray:
        """Return the array itself: it has NumPy semantics."""
        return self

    def wrap_array(self, made: Any) -> Any:
        return as_np_class(made)

    # -- values

    def __float__(self) -> float:
        return float(self._single_element())

    def __int__(self) -> int:
        return int(self._single_element())

    def _single_element(self) -> Any:
        if self.size != 1:
            raise ArgumentTypeError(f"only an array of one element is a number in Python; this one is {self.shape}")
        return self.asscalar()

    def item(self, *args: Any) -> Any:
        """Return one element as a Python number: the only one, or that at a flat or full index."""
        try:
            return self.asnumpy().item(*args)
        except IndexError as e:
            raise RangeError(f"item: {e}") from None
        except (ValueError, TypeError) as e:
            raise ArgumentError(f"item: {e}") from None

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ArgumentError(
                f"the truth value of an array of shape {self.shape} is ambiguous; use a.any() or a.all()"
            )
        return bool(self.asnumpy().any())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self._value.dtype.kind not in "biu" or self.size != 1:
            raise ArgumentTypeError("only integer scalar arrays can be converted to a scalar index")
        return int(self.item())

    def __repr__(self) -> str:
        text = repr(self.asnumpy())
        if self._value.dtype == onp.float32:
            # float32 is the usual type here, as float64 is in NumPy.
            text = text.replace(", dtype=float32", "")
        elif self._value.dtype in (onp.float64, onp.int64) and "dtype=" not in text:
            text = f"{text[:-1]}, dtype={self._value.dtype})"
        where = self.context
        return text if where.device_type.startswith("cpu") else f"{text[:-1]}, ctx={where})"

    def __str__(self) -> str:
        return str(self.asnumpy())

    def __format__(self, spec: str) -> str:
        if spec and self._value.shape:
            raise ArgumentTypeError(
                f"format: an array of shape {self.shape} has no format {spec!r}; format its elements"
            )
        return format(self.item() if not self._value.shape else str(self), spec)

    def __round__(self, n: int = 0) -> ndarray:
        return self.round(n)

    def __floor__(self) -> ndarray:
        return self.floor()

    def __ceil__(self) -> ndarray:
        return self.ceil()

    def __trunc__(self) -> ndarray:
        return self.trunc()

    # -- copies and views

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> ndarray:
        """Return the array cast to `dtype` (None: float32); the same object if it has it and `copy` is false.

        Raises:
            ArgumentError: another order than C, or casting other than "unsafe".
        """
        if order not in ("C", "K", "A"):
            raise ArgumentError(f"astype: order={order!r}: expected 'C' or 'K'")
        dtype = "float32" if dtype is None else dtype
        if casting != "unsafe":
            raise ArgumentError(f"astype: casting={casting!r}: expected 'unsafe'")
        target = as_dtype(dtype)
        if target == self._value.dtype and not copy:
            return self
        return as_np_class(invoke_unary(OPS["Cast"].call(dtype=target.name), self))

    def copy(self, order: str = "C") -> ndarray:
        """Return a copy on the same context."""
        if order not in ("C", "K", "A"):
            raise ArgumentError(f"copy: order={order!r}: expected 'C'")
        return as_np_class(super().copy())

    def copyto(self, other: Any) -> Any:
        """Copy into the array `other` (cast to its dtype), or to a new array on the context `other`."""
        found = super().copyto(other)
        return as_np_class(found) if isinstance(other, Context) else found

    def as_in_context(self, context: Context) -> ndarray:
        """Return the array on `context`; the same object if it is there already."""
        found: Any = super().as_in_context(context)
        return found if found is self else as_np_class(found)

    def as_in_ctx(self, ctx: Context) -> ndarray:
        """Return the array on `ctx`; the same object if it is there already."""
        return self.as_in_context(ctx)

    to_device = as_in_ctx

    def tostype(self, stype: str) -> Any:
        """Return the array itself for `"default"`; there are no sparse arrays with NumPy semantics."""
        return super().tostype(stype)

    def detach(self) -> ndarray:
        """Return an array with the same value through which no gradient flows."""
        return as_np_class(super().detach())

    def reshape(self, *shape: Any, order: str = "C") -> ndarray:
        """Return a copy with another shape, one length of which may be -1; that of `mx.nd` gives a view.

        Example:
            >>> import dualmx as mx
            >>> mx.np.arange(6).reshape(2, -1).shape
            (2, 3)
        """
        if order != "C":
            raise UnsupportedError(f"reshape: order={order!r}: only 'C' is supported")
        listed = len(shape) == 1 and isinstance(shape[0], Iterable) and getattr(shape[0], "ndim", 1)
        wanted = shape[0] if listed else shape
        return as_np_class(invoke_unary(OPS["_np_reshape"].call(newshape=tuple(wanted)), self))

    def reshape_view(self, *shape: Any, **kwargs: Any) -> ndarray:
        """Return a view by MXNet's shape codes, as `NDArray.reshape` does."""
        return as_np_class(super().reshape(*shape, **kwargs))

    # -- autograd

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Make this array a variable with a zero gradient buffer (an `ndarray`), detached from its graph."""
        super().attach_grad(grad_req, stype)

    @property
    def grad(self) -> Any:
        """Gradient array of a variable, None without `attach_grad`."""
        found = super().grad
        return found if found is None or isinstance(found, ndarray) else second_handle(found, ndarray)


__all__ = ["as_np", "as_np_class", "ndarray", "second_handle"]
