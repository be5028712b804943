"""Base of sparse arrays: components, densifying, copies, conversion."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NoReturn, Self

import jax
import numpy as np

from ..core.argcheck import context as as_context
from ..core.context import Context, current_context
from ..core.dtypes import as_dtype
from ..core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ..graph.trie import aval
from ..ndarray import creation
from ..ndarray.handle import copy_to_context, invoke, is_tracked
from ..ndarray.interop import array_from_numpy
from ..ndarray.ndarray import NDArray, make_variable
from ..ndarray.serialize import SparseBody
from ..ndarray.storage import sparse_storage
from ..op.registry import OPS, Call

STYPES = ("default", "row_sparse", "csr")


def padded_size(count: int, most: int | None = None) -> int:
    """How many places to keep for `count` stored elements: a power of two, so that few programs serve all counts."""
    size = 1 << max(count - 1, 7).bit_length()
    return size if most is None or size < most else max(most, count, 1)


def pad_to(values: np.ndarray, size: int, fill: Any = 0) -> np.ndarray:
    """`values` with `fill` behind them up to `size`."""
    out = np.full((size, *values.shape[1:]), fill, values.dtype)
    out[: len(values)] = values
    return out


def component_call(op: Any, /, **params: Any) -> Call:
    """The call of an operator on components."""
    return op.call(**params)


class NotSupportedForSparseNDArray(MXNetError):  # noqa: N818 (MXNet's name)
    """A method of dense arrays that sparse ones do not have."""

    def __init__(self, function: Any, alias: str | None = None, *args: Any):
        self.function = getattr(function, "__name__", str(function))
        self.alias, self.args_types = alias, tuple(type(a) for a in args)
        also = f" (namely operator {alias!r})" if alias else ""
        super().__init__(
            f"{self.function}{also} with arguments {self.args_types} is not supported for sparse arrays; convert "
            f"with tostype('default') first"
        )


class BaseSparseNDArray(NDArray):
    """Base of `CSRNDArray` and `RowSparseNDArray`.

    A sparse array holds dense pieces (values and indices, padded to a few lengths), or a dense array that it stands
    for: what takes part in a gradient is held densely, as is a row_sparse weight that stores all its rows.

    Attributes:
        dense: the array it stands for, None if it is held in pieces.
    """

    __slots__ = ("dense",)
    is_sparse = True
    dense: NDArray | None
    _stype = ""

    @classmethod
    def _blank(cls, shape: tuple[int, ...], dtype: Any, ctx: Context) -> Self:
        self = object.__new__(cls)
        self._value = aval(tuple(int(n) for n in shape), np.dtype(dtype), ctx)
        self._trace = self._data = self._meta = None
        self.dense = None
        return self

    @classmethod
    def of_dense(cls, array: NDArray) -> Self:
        """Return a sparse array that stands for `array`, and changes with it."""
        self = cls._blank(array.shape, array.dtype, array.context)
        self.dense, self._meta = array, array._meta
        return self

    # -- made by subclasses

    @classmethod
    def of_numpy(cls, values: np.ndarray, ctx: Context) -> Self:
        """Return the sparse array with the non-zero elements or rows of `values`."""
        raise NotImplementedError

    def materialized(self) -> Self:
        """Return the array held in pieces: itself, or what `dense` holds now."""
        return self if self.dense is None else self.of_numpy(self.dense.asnumpy(), self.context)

    def to_dense(self) -> NDArray:
        """Return the dense array with the same elements."""
        raise NotImplementedError

    def with_values(self, values: NDArray) -> Self:
        """Return an array of the same structure with other stored values."""
        raise NotImplementedError

    def replace_with(self, other: Self) -> None:
        """Take over the pieces of `other`, of the same shape, dtype and context."""
        raise NotImplementedError

    def body(self) -> SparseBody:
        """Return what files hold of the array."""
        raise NotImplementedError

    # -- what it is

    @property
    def stype(self) -> str:
        """Storage type: `"csr"` or `"row_sparse"`."""
        return self._stype

    @property
    def size(self) -> NoReturn:
        """Not defined for sparse arrays, as in MXNet."""
        raise NotImplementedError(f"size of a {self._stype} array: use shape, or nnz for the stored elements")

    @property
    def writable(self) -> bool:
        """True: every array can be written to."""
        return True

    def __repr__(self) -> str:
        shape = "x".join(str(n) for n in self.shape)
        return f"\n<{type(self).__name__} {shape} @{self.context}>"

    __str__ = __repr__

    def __hash__(self) -> int:
        return id(self) >> 4

    def __bool__(self) -> bool:
        raise ArgumentError("the truth value of a sparse array is ambiguous; convert it with asnumpy()")

    def _no_number(self) -> NoReturn:
        raise ArgumentTypeError(f"a {self._stype} array cannot be converted to a number; use asnumpy()")

    __float__ = __int__ = __index__ = _no_number

    # -- the engine's view: wherever a dense value is needed, the dense array is recorded in its place

    def realize_dense(self, reading_trace: Any) -> Any:
        """Make the dense value concrete and return it; it is only recorded if `reading_trace` reads it."""
        dense = self.to_dense()
        if reading_trace is not None and dense._data is None and dense._trace is reading_trace:
            self._trace, self._value = reading_trace, dense._value
            return None
        return dense.realize()

    def realize(self) -> jax.Array:
        return self.to_dense().realize()

    def _changed(self) -> None:
        """Forget the dense value that a pending program knows."""
        self._trace, self._value = None, self._value.aval

    # -- conversion

    def tostype(self, stype: str) -> NDArray:
        """Return the array in another storage type; a copy where it is the same.

        Raises:
            ArgumentError: an unknown storage type, or the other sparse one.
        """
        if stype not in STYPES:
            raise MXNetError(f"cast_storage: stype={stype!r}: expected one of {', '.join(STYPES)}")
        if stype == "default":
            return self.to_dense()
        if stype != self._stype:
            raise ArgumentError(
                f"cast_storage from {self._stype} to {stype} is not supported; go by way of tostype('default')"
            )
        return self.copy()

    def asnumpy(self) -> np.ndarray:
        """Return a dense NumPy array."""
        return self.to_dense().asnumpy()

    def asscalar(self) -> NoReturn:
        """Not defined for sparse arrays."""
        raise NotImplementedError(f"asscalar: not available on a {self._stype} array; use asnumpy()")

    def wait_to_read(self) -> None:
        """Compute the stored values and wait for them."""
        self._stored().wait_to_read()

    def _stored(self) -> NDArray:
        raise NotImplementedError

    def astype(self, dtype: Any, copy: bool = True) -> NDArray:
        """Return the array cast to `dtype`, in the same storage type."""
        target = as_dtype(dtype)
        if target == self._value.dtype and not copy:
            return self
        call = OPS["Cast"].call(dtype=target.name)
        return self.map_values(call)

    def map_values(self, call: Call, runtime: Sequence[float] = ()) -> NDArray:
        """Apply an element-wise call that keeps zeros to the stored values."""
        if self.dense is not None:
            return self.of_dense(invoke(call, (self.dense,), runtime)[0])
        return self.with_values(invoke(call, (self._stored(),), runtime)[0])

    def scale(self, factor: NDArray) -> None:
        """Multiply the elements in place by `factor` of shape (1,), waiting for nothing."""
        call = OPS["broadcast_mul"].call()
        if self.dense is not None:
            self.dense[:] = invoke(call, (self.dense, factor))[0]
        else:
            self._put_stored(invoke(call, (self._raw_values(), factor))[0])
        self._changed()

    def _raw_values(self) -> NDArray:
        """The stored values as they are, rows of equal number apart."""
        raise NotImplementedError

    def _put_stored(self, values: NDArray) -> None:
        raise NotImplementedError

    def copy(self) -> NDArray:
        """Return a copy of the same storage type."""
        return self.map_values(OPS["_copy"].call())

    def copyto(self, other: Any) -> NDArray:
        """Copy into a dense array or one of the same storage type, or to a new array on a context.

        Raises:
            ArgumentTypeError: the other sparse storage type. ArgumentError: the shapes differ.
        """
        if isinstance(other, Context):
            return self.to_context(other)
        if not isinstance(other, NDArray):
            raise ArgumentTypeError(f"copyto: other={other!r}: expected an NDArray or a Context")
        if other is self:
            warnings.warn("copyto: source and target are the same array; nothing is copied", stacklevel=2)
            return False  # type: ignore[return-value]
        if other.stype == "default":
            return self.to_dense().copyto(other)
        if other.stype != self._stype:
            raise ArgumentTypeError(f"copyto: cannot copy a {self._stype} array into a {other.stype} one")
        assert isinstance(other, BaseSparseNDArray)
        other.assign(self)
        return other

    def assign(self, source: NDArray) -> None:
        """Hold what `source`, dense or sparse, holds now, cast and moved to the own dtype and context.

        Raises:
            ArgumentError: the shapes differ. MXNetError: the array takes part in a recorded gradient.
        """
        if source.shape != self.shape:
            raise ArgumentError(f"assignment to a {self._stype} array of shape {self.shape}: got {source.shape}")
        if self.dense is not None:
            value = source.to_dense() if isinstance(source, BaseSparseNDArray) else source
            value.copyto(self.dense)
        else:
            if not isinstance(source, type(self)):
                source = self.of_numpy(source.asnumpy(), self.context)
            made = source.materialized()
            if made._value.dtype != self._value.dtype:
                made = made.astype(self._value.dtype)
            self.replace_with(made.to_context(self.context) if made.context is not self.context else made.copy())  # type: ignore
        self._changed()

    def array_to_assign(self, value: Any) -> NDArray:
        """Return what `x[:] = value` shall hold."""
        if isinstance(value, NDArray):
            if value.stype not in ("default", self._stype):
                raise ArgumentTypeError(f"assignment to a {self._stype} array: a {value.stype} one: convert it first")
            return value
        if isinstance(value, (int, float, np.number)):
            return creation.full(self.shape, float(value), self.context, self.dtype)
        if isinstance(value, np.ndarray) or hasattr(value, "__array__") or isinstance(value, Sequence):
            return creation.array(value, self.context, self.dtype)
        raise ArgumentTypeError(f"assignment to a {self._stype} array: a {type(value).__name__}: expected an array")

    def to_context(self, ctx: Context) -> NDArray:
        """Return a copy on `ctx`."""
        raise NotImplementedError

    def as_in_context(self, context: Context) -> NDArray:
        """Return the array on `context`; the same object if it is there already."""
        context = as_context(context)
        return self if context is self.context else self.to_context(context)

    as_in_ctx = as_in_context
    to_device = as_in_context

    def reshape(self, *shape: Any, **kwargs: Any) -> NoReturn:
        """Not supported: the stored elements would change places."""
        raise NotSupportedForSparseNDArray(self.reshape, None, *shape)

    def as_np_ndarray(self) -> NoReturn:
        """Not supported."""
        raise ArgumentError(f"as_np_ndarray: a {self._stype} array; convert it with tostype('default') first")

    def check_format(self, full_check: bool = True) -> None:
        """Check that the pieces describe an array.

        Args:
            full_check: look at every index, not only at the shapes and ends.

        Raises:
            MXNetError: they do not; the text says what is wrong.
        """
        problem = self._problem(full_check)
        if problem:
            raise MXNetError(f"check_format: {problem}")

    def _problem(self, full: bool) -> str | None:
        raise NotImplementedError

    # -- gradients

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Make this array a variable; its gradient has the same storage type unless `stype` says otherwise."""
        if self.dense is None:
            self.dense = self.to_dense()
        grad = sparse_storage().zeros(stype or self._stype, self.shape, self.context, self.dtype)
        make_variable(self.dense, grad, grad_req)
        self._meta = self.dense._meta

    @property
    def tracked(self) -> bool:
        """True if gradients can flow to the array."""
        return self.dense is not None and is_tracked(self.dense)

    def detach(self) -> NDArray:
        """Return an array with the same value through which no gradient flows."""
        return self.copy() if self.dense is None else self.of_dense(self.dense.detach())

    def backward(self, out_grad: Any = None, retain_graph: bool = False, train_mode: bool = True) -> None:
        """Compute the gradients of this array; see `NDArray.backward`."""
        seed = out_grad.to_dense() if isinstance(out_grad, BaseSparseNDArray) else out_grad
        self.to_dense().backward(seed, retain_graph, train_mode)

    def set_row_grad(self, lookups: Sequence[tuple[NDArray, NDArray]], add: bool) -> None:
        """Hold, or add, the gradient of a table from pairs (ids, gradient of the rows looked up)."""
        raise NotImplementedError

    def set_dense_grad(self, gradient: NDArray, add: bool) -> None:
        """Hold, or add, a gradient that was computed densely."""
        total = self.to_dense() + gradient if add else gradient
        self.dense, self._meta = total, None
        self._changed()

    # -- pickling

    def __getstate__(self) -> dict[str, Any]:
        body = self.body()
        return {"shape": self.shape, "data": body.data, "aux": body.aux, "ctx": str(self.context)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        ctx = Context.parse(state["ctx"])
        made = self.of_body(SparseBody(self._stype, state["shape"], state["data"], state["aux"]), ctx)
        for name in ("_value", "_trace", "_data", "_meta", "dense"):
            setattr(self, name, getattr(made, name))
        self.replace_with(made)

    @classmethod
    def of_body(cls, body: SparseBody, ctx: Context | None = None) -> Self:
        """Return the array that a file holds."""
        raise NotImplementedError


def component(values: np.ndarray, ctx: Context | None) -> NDArray:
    """Put a piece on a context."""
    return array_from_numpy(np.ascontiguousarray(values), ctx or current_context())


def moved(array: NDArray, ctx: Context) -> NDArray:
    """Return `array` on `ctx`."""
    return array if array.context is ctx else copy_to_context(array, ctx)


def leading_rows(array: NDArray, count: int) -> NDArray:
    """The first `count` slices of a piece, as an array of its own."""
    # An empty array has no place in a program.
    if count == 0:
        return array_from_numpy(np.zeros((0, *array.shape[1:]), array.dtype), array.context)
    if count == array.shape[0]:
        return array.copy()
    return invoke(OPS["slice_axis"].call(axis=0, begin=0, end=count), (array,))[0]


__all__ = ["STYPES", "BaseSparseNDArray", "NotSupportedForSparseNDArray", "pad_to", "padded_size"]
