"""`NDArray`: properties, synchronization, conversion, and ctypes handles for callbacks of MXNet's C API."""

from __future__ import annotations

import ctypes
import warnings
import weakref
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import jax
import numpy as np

from ..compile.devices import device_put, fully_replicated, spec_of
from ..core.argcheck import context as as_context
from ..core.context import Context
from ..core.dtypes import as_dtype
from ..core.errors import ArgumentError, ArgumentKeyError, ArgumentTypeError, RangeError
from ..core.module_alias import lazy_reexport
from ..graph.trie import Value
from ..op.registry import OPS
from . import tape, view
from .exchange import export, is_host, to_capsule
from .exposed import protect
from .fluent import Fluent
from .handle import (
    array_from_buffer,
    assign,
    check_writable,
    copy_to_context,
    exposed,
    invoke_unary,
    realize,
    set_array_class,
    to_jax_array,
)
from .recorder import TapePaused, async_error, backward_mode, local
from .storage import sparse_storage

_array_by_address: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def array_at_address(handle: Any) -> Any:
    """Return the array at an address; the handle of an array (`x.handle`) is that array.

    Raises:
        ArgumentTypeError: `handle` is none of `base.NDArrayHandle`. ArgumentError: no array has this address.
    """
    if isinstance(handle, Addressable):
        return handle
    if not isinstance(handle, ctypes.c_void_p):
        raise ArgumentTypeError(f"NDArray: handle={handle!r}: expected a base.NDArrayHandle; make arrays with nd.array")
    found = _array_by_address.get(handle.value or 0)
    if found is None:
        raise ArgumentError(f"NDArray: handle={handle!r}: no array has this address")
    return found


class Addressable:
    """An array whose address C's types can hold, and which an address gives back."""

    __slots__ = ()

    def __new__(cls, handle: Any, writable: bool = True) -> Any:
        """Return the array that a callback received as `handle`, cast to `base.NDArrayHandle`."""
        return array_at_address(handle)

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        """The address that `ctypes.cast(array, base.NDArrayHandle)` takes; good while something holds the array."""
        _array_by_address[id(self)] = self
        return ctypes.c_void_p(id(self))


class NDArray(Addressable, Fluent):
    """An n-dimensional array on one context, computed lazily.

    Operations are recorded; a value is computed, together with everything recorded before it, when it is needed:
    `asnumpy`, `asscalar`, `wait_to_read`, printing, `bool()` and the like. Wrong shapes and dtypes raise when the
    operation is called.

    Example:
        >>> import dualmx as mx
        >>> x = mx.nd.array([[1, 2], [3, 4]])
        >>> (x * 2).asnumpy().tolist()
        [[2.0, 4.0], [6.0, 8.0]]
    """

    __slots__ = ()
    # NumPy must leave `numpy_array * ndarray` to us.
    __array_priority__ = 1000.0

    if TYPE_CHECKING:  # attached by `operators` and `indexing`
        # fmt: off
        def __add__(self, other: Operand) -> NDArray: ...
        def __sub__(self, other: Operand) -> NDArray: ...
        def __mul__(self, other: Operand) -> NDArray: ...
        def __truediv__(self, other: Operand) -> NDArray: ...
        def __mod__(self, other: Operand) -> NDArray: ...
        def __pow__(self, other: Operand) -> NDArray: ...
        def __matmul__(self, other: NDArray) -> NDArray: ...
        def __radd__(self, other: Operand) -> NDArray: ...
        def __rsub__(self, other: Operand) -> NDArray: ...
        def __rmul__(self, other: Operand) -> NDArray: ...
        def __rtruediv__(self, other: Operand) -> NDArray: ...
        def __rmod__(self, other: Operand) -> NDArray: ...
        def __rpow__(self, other: Operand) -> NDArray: ...
        def __iadd__(self, other: Operand) -> NDArray: ...
        def __isub__(self, other: Operand) -> NDArray: ...
        def __imul__(self, other: Operand) -> NDArray: ...
        def __itruediv__(self, other: Operand) -> NDArray: ...
        def __imod__(self, other: Operand) -> NDArray: ...
        # An array as the result is what NumPy promises, and not what `object` does.
        def __eq__(self, other: Any) -> NDArray: ...  # pyright: ignore[reportIncompatibleMethodOverride]
        def __ne__(self, other: Any) -> NDArray: ...  # pyright: ignore[reportIncompatibleMethodOverride]
        def __lt__(self, other: Operand) -> NDArray: ...
        def __le__(self, other: Operand) -> NDArray: ...
        def __gt__(self, other: Operand) -> NDArray: ...
        def __ge__(self, other: Operand) -> NDArray: ...
        def __neg__(self) -> NDArray: ...
        def __abs__(self) -> NDArray: ...
        def __getitem__(self, key: Any) -> NDArray: ...
        def __setitem__(self, key: Any, value: Any) -> None: ...
        def __iter__(self) -> Iterator[NDArray]: ...
        # fmt: on

    # -- what it is

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self._value.shape

    @property
    def dtype(self) -> Any:
        """Element type as a NumPy type class, such as `numpy.float32`."""
        return self._value.dtype.type

    @property
    def context(self) -> Context:
        """Where the array lives."""
        return self._value.ctx

    ctx = context
    device = context

    @property
    def sharding(self) -> tuple[Any, ...] | None:
        """How the array is cut over its mesh: per axis the name of an axis of the mesh, or `None`.

        `None` for an array that is not on a `parallel.Mesh`. Computes a pending value.
        """
        return spec_of(to_jax_array(self)) if self.context.mesh is not None else None

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._value.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        n = 1
        for d in self._value.shape:
            n *= d
        return n

    @property
    def stype(self) -> str:
        """Storage type, `"default"` for dense arrays."""
        return "default"

    @property
    def T(self) -> NDArray:
        """The array with its axes reversed (a copy)."""
        return self if self.ndim < 2 else invoke_unary(OPS["transpose"].call(), self)

    @property
    def handle(self) -> NDArray:
        """The array itself: there is no separate native object."""
        return self

    def __len__(self) -> int:
        if not self._value.shape:
            raise RangeError("len(): a 0-d array has no length")
        return self._value.shape[0]

    # -- what other rooms ask of the engine's handle

    @property
    def aval(self) -> Value:
        """Shape, dtype and context."""
        return self._value.aval

    @property
    def buffer(self) -> Any:
        """What holds the value, a JAX array or memory of NumPy; None while there is none. Whoever sets it knows why."""
        return self._data

    @buffer.setter
    def buffer(self, data: Any) -> None:
        self._data = data

    @property
    def is_plain(self) -> bool:
        """Whether it has a value, and no program, tape, view or other library knows it."""
        return self._data is not None and self._trace is None and self._meta is None

    @property
    def is_exposed(self) -> bool:
        """Whether other libraries have been given its memory."""
        return self._meta is not None and self._meta.exposed is not None

    # -- synchronization and conversion

    def realize(self) -> jax.Array:
        """Return the JAX array, computing it first if it is pending."""
        return to_jax_array(self)

    def as_jax(self) -> jax.Array:
        """Return the value as a `jax.Array`; later writes to this array do not change it."""
        return protect(self.realize())

    def wait_to_read(self) -> None:
        """Compute the value and wait for it.

        Raises:
            MXNetError: its computation failed.
        """
        data = realize(self) if self._data is None else self._data
        if type(data) is not np.ndarray:
            self._block_on(data.block_until_ready)

    def _block_on(self, action: Any) -> Any:
        """Run a blocking action on the value; an error of the execution is reported as this array's error."""
        try:
            return action()
        except (jax.errors.JaxRuntimeError, RuntimeError) as e:
            error = async_error(e)
            self._trace = self._data = None
            self._extra().error = error
            raise error from e

    def asnumpy(self) -> np.ndarray:
        """Return a NumPy copy, computing the value first if it is pending."""
        data = self._data
        if type(data) is np.ndarray:
            return data.copy()
        if data is None and (shown := view.view_to_numpy(self)) is not None:
            return shown
        data = realize(self) if data is None else data
        return data.copy() if type(data) is np.ndarray else self._block_on(lambda: np.array(fully_replicated(data)))

    def asscalar(self) -> Any:
        """Return the only element as a NumPy scalar; `ValueError` for more elements.

        Raises:
            ArgumentError: there are several elements, or none.

        Example:
            >>> import dualmx as mx
            >>> mx.nd.array([[2]]).asscalar().item()
            2.0
        """
        if self.size != 1:
            raise ArgumentError(f"asscalar: the array has shape {self.shape}; expected exactly one element")
        return self.asnumpy().reshape(-1)[0]

    def item(self) -> Any:
        """Return the only element as a Python number."""
        return self.asscalar().item()

    def tolist(self) -> Any:
        """Return the elements as nested Python lists."""
        return self.asnumpy().tolist()

    def __bool__(self) -> bool:
        if self.size == 0:
            return False
        if self.size != 1:
            raise ArgumentError(f"the truth value of an array of shape {self.shape} is ambiguous; expected one element")
        return bool(self.asscalar())

    def __float__(self) -> float:
        return float(self.asscalar())

    def __int__(self) -> int:
        return int(self.asscalar())

    @property
    def writable(self) -> bool:
        """True: every array can be written to."""
        return True

    def __index__(self) -> int:
        if self._value.dtype.kind not in "biu":
            raise ArgumentTypeError(f"an array of {self._value.dtype} cannot be used as an index; cast it to int32")
        return int(self.asscalar())

    def __repr__(self) -> str:
        shape = "x".join(str(n) for n in self.shape)
        return f"\n{self.asnumpy()!s}\n<{type(self).__name__} {shape} @{self.context}>"

    def __hash__(self) -> int:
        return id(self) >> 4

    # -- copies

    def astype(self, dtype: Any, copy: bool = True) -> NDArray:
        """Return the array cast to `dtype`, float32 for None; the same object if it has it and `copy` is false.

        Example:
            >>> import dualmx as mx
            >>> mx.nd.array([1.7, -1.7]).astype("int8").asnumpy().tolist()
            [1, -1]
        """
        target = as_dtype("float32" if dtype is None else dtype)
        if target == self._value.dtype and not copy:
            return self
        return invoke_unary(OPS["Cast"].call(dtype=target.name), self)

    def copy(self) -> NDArray:
        """Return a copy on the same context."""
        return invoke_unary(OPS["_copy"].call(), self)

    def copyto(self, other: Any) -> NDArray:
        """Copy into the array `other` (cast to its dtype), or to a new array on the context `other`.

        Raises:
            ArgumentError: the shapes differ. ArgumentTypeError: `other` is neither.
            MXNetError: `other` is part of a recorded graph.

        Example:
            >>> import dualmx as mx
            >>> mx.nd.array([1.9]).copyto(mx.nd.zeros((1,), dtype="int32")).asscalar().item()
            1
        """
        if isinstance(other, NDArray):
            if other is self:
                warnings.warn("copyto: source and target are the same array; nothing is copied", stacklevel=2)
                return False  # type: ignore[return-value]
            check_writable(other, "copyto")
            assign(other, self, "copyto")
            return other
        if isinstance(other, Context):
            return self.copy() if other is self._value.ctx else copy_to_context(self, other)
        raise ArgumentTypeError(f"copyto: other={other!r}: expected an NDArray or a Context")

    def as_in_context(self, context: Context) -> NDArray:
        """Return the array on `context`; the same object if it is there already.

        Example:
            >>> import dualmx as mx
            >>> mx.nd.ones((2,)).as_in_context(mx.cpu(1)).context
            cpu(1)
        """
        context = as_context(context)
        return self if context is self._value.ctx else copy_to_context(self, context)

    as_in_ctx = as_in_context
    to_device = as_in_context

    def as_nd_ndarray(self) -> NDArray:
        """Return the array itself: it is a classic array."""
        return self

    def wrap_array(self, made: Any) -> Any:
        """Return an array made for this one, nothing else holding it, under the rules that this one follows."""
        return made

    def tostype(self, stype: str) -> NDArray:
        """Return the array as `"default"` (itself), `"csr"` or `"row_sparse"`.

        Example:
            >>> import dualmx as mx
            >>> mx.nd.array([[0, 0], [1, 2]]).tostype("row_sparse").indices.asnumpy().tolist()
            [1]
        """
        return self if stype == "default" else sparse_storage().of_array(self, stype)

    def __copy__(self) -> NDArray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> NDArray:
        return self.copy()

    def __getstate__(self) -> dict[str, Any]:
        return {"data": self.asnumpy(), "ctx": "cpu(0)" if self.context.mesh else str(self.context)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        ctx = Context.parse(state["ctx"])
        made = array_from_buffer(device_put(state["data"], ctx), ctx)
        self._trace, self._value, self._data, self._meta = None, made._value, made._data, None

    def __reduce__(self) -> Any:
        return (_new_handle, (type(self),), self.__getstate__())

    # -- views

    def reshape(self, *shape: Any, **kwargs: Any) -> NDArray:
        """Return a view with another shape; writes to it are visible here, and the other way round.

        Args:
            shape: lengths, with MXNet's codes 0 (keep), -1 (infer), -2 (keep the rest), -3 (merge two), -4 (split).
            reverse: match the codes from the right.

        Example:
            >>> import dualmx as mx
            >>> x = mx.nd.zeros((2, 3, 4))
            >>> x.reshape((0, -1)).shape, x.reshape(-3, 2, 2).shape
            ((2, 12), (6, 2, 2))
        """
        reverse = kwargs.pop("reverse", False)
        if "shape" in kwargs:
            shape = (kwargs.pop("shape"),)
        if kwargs:
            raise ArgumentTypeError(f"reshape: unknown argument {next(iter(kwargs))!r}; it takes shape and reverse")
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        if not shape:
            raise ArgumentError("reshape: shape=(): expected at least one length")
        lens = OPS["Reshape"].call(shape=shape, reverse=reverse)
        shown = lens.infer(((self._value.shape, self._value.dtype),))[0][0]
        return view.make_view(self, OPS["Reshape"].call(shape=shown) if all(shown) else lens, shown)

    # -- autograd

    @property
    def grad(self) -> NDArray | Any:
        """Gradient array of a variable, None without `attach_grad`."""
        x = self._meta
        if x is not None and x.view_base is not None and not x.view_ops:
            x = x.view_base._meta
        return None if x is None else x.grad

    @property
    def has_fresh_grad(self) -> bool:
        """Whether the gradient was computed since the last step of an optimizer."""
        x = self._meta
        return x is not None and x.fresh_grad

    @has_fresh_grad.setter
    def has_fresh_grad(self, value: bool) -> None:
        self._extra().fresh_grad = bool(value)

    _fresh_grad = has_fresh_grad  # MXNet's name

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Make this array a variable with a zero gradient buffer; an upstream graph is cut off.

        Args:
            grad_req: `"write"` (each backward overwrites), `"add"` (accumulates) or `"null"`.
            stype: storage type of the gradient, that of the array by default.

        Example:
            >>> import dualmx as mx
            >>> x = mx.nd.array([1, 2])
            >>> x.attach_grad()
            >>> with mx.autograd.record():
            ...     y = x**2
            >>> y.backward()
            >>> x.grad.asnumpy().tolist()
            [2.0, 4.0]
        """
        kept = stype in (None, "default")
        grad = None if kept else sparse_storage().zeros(stype, self.shape, self.context, self.dtype)
        make_variable(self, grad, grad_req)

    def detach(self) -> NDArray:
        """Return an array with the same value through which no gradient flows.

        Example:
            >>> import dualmx as mx
            >>> x = mx.nd.array([3])
            >>> x.attach_grad()
            >>> with mx.autograd.record():
            ...     y = x * x.detach()
            >>> y.backward()
            >>> x.grad.asscalar().item()
            3.0
        """
        with TapePaused():
            return invoke_unary(OPS["BlockGrad"].call(), self)

    def backward(self, out_grad: Any = None, retain_graph: bool = False, train_mode: bool = True) -> None:
        """Compute the gradients of this array with respect to the variables it was recorded from.

        Args:
            out_grad: gradient of this array, ones by default.
            retain_graph: keep the recorded graph for another backward.
            train_mode: training flag in the backward of a `Function`; other operations keep the mode in which they
                were recorded.
        """
        with nullcontext() if train_mode else backward_mode(False):
            tape.backward([self], None if out_grad is None else [out_grad], retain_graph)

    # -- interoperability

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            if not self.context.device_type.startswith("cpu") or dtype not in (None, self._value.dtype):
                raise ArgumentError(f"__array__: copy=False: an array of {self._value!r} as {dtype} needs a copy")
            # A read-only view; as long as it lives, the buffer is not reused.
            if exposed(self) is not None:
                shown = export(self, "__array__")
                shown.flags.writeable = False
                return shown
            return np.asarray(self.realize())
        found = self.asnumpy()
        return found if dtype is None else found.astype(dtype, copy=False)

    def __jax_array__(self) -> jax.Array:
        return self.as_jax()

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._capsule("__dlpack__", **kwargs)

    def __dlpack_device__(self) -> Any:
        if is_host(self.context):
            return (1, 0)
        data: Any = self.realize()
        return data.__dlpack_device__()

    def _capsule(self, what: str, **kwargs: Any) -> Any:
        # JAX asks in this way; its arrays never change, so they must not share memory that does.
        by_jax = "stream" in kwargs and "max_version" not in kwargs
        if self.is_sparse or (is_host(self.context) and not by_jax):
            return to_capsule(self, what, **kwargs)
        return self.as_jax().__dlpack__(**kwargs)

    def to_dlpack_for_read(self) -> Any:
        """Return a DLPack capsule of the array's memory, once everything that writes to it has been computed.

        On the CPU the memory is shared in both directions as long as somebody holds the capsule or what was made of it,
        as with `to_dlpack_for_write`; on accelerators it must not be written to.

        Raises:
            ArgumentTypeError: a sparse array.
        """
        return self._capsule("to_dlpack_for_read")

    def to_dlpack_for_write(self) -> Any:
        """Return a DLPack capsule of the array's memory, which the other library may write to.

        What it writes is seen by every operation that is called afterwards, and what is written to the array here, also
        through views, is seen there. Operations called before the capsule was made keep the values of that time. The
        memory is shared as long as somebody holds the capsule or what was made of it; each operation meanwhile reads a
        copy of it.

        Raises:
            ArgumentTypeError: a sparse array. ArgumentError: the array is not in the processor's memory, or read-only.
            MXNetError: it is part of a graph that is being recorded.

        Example:
            >>> import dualmx as mx
            >>> import numpy as np
            >>> x = mx.nd.zeros((2,))
            >>> shown = np.from_dlpack(x)
            >>> shown[0] = 5
            >>> (x + 1).asnumpy().tolist()
            [6.0, 1.0]
        """
        return to_capsule(self, "to_dlpack_for_write", for_writing=True)


def _new_handle(cls: type[NDArray]) -> NDArray:
    return object.__new__(cls)


def have_fresh_grads(arrays: Iterable[NDArray]) -> bool:
    """Return whether all of many arrays have a gradient that was computed since the last optimizer step."""
    return all([(x := a._meta) is not None and x.fresh_grad for a in arrays])


def mark_grads_used(arrays: Iterable[NDArray]) -> None:
    """Note that an optimizer step has used the gradients of arrays."""
    for a in arrays:
        (a._meta or a._extra()).fresh_grad = False


def grads_of(arrays: Iterable[NDArray]) -> list[NDArray | Any]:
    """Return the gradient of each of many arrays."""
    return [a.grad if (x := a._meta) is None or x.view_base is not None else x.grad for a in arrays]


def contexts_of(arrays: Iterable[NDArray]) -> set[Context]:
    """Return the contexts that arrays are on."""
    return {a._value.ctx for a in arrays}


def make_variable(a: NDArray, grad: NDArray | None, grad_req: str) -> None:
    """Make `a` a variable whose gradients go to `grad` (a new zero array if None)."""
    if grad_req not in ("write", "add", "null"):
        raise ArgumentKeyError(f"attach_grad: grad_req={grad_req!r}: expected 'write', 'add' or 'null'")
    x = a._extra()
    if x.view_base is not None and not x.view_ops:
        make_variable(cast("NDArray", x.view_base), grad, grad_req)
        return
    if grad is None:
        grad = array_from_buffer(device_put(np.zeros(a._value.shape, a._value.dtype), a._value.ctx), a._value.ctx)
        grad = a.wrap_array(grad)
    elif grad._value.shape != a._value.shape or grad._value.dtype != a._value.dtype:
        raise ArgumentError(
            f"mark_variables: gradient {grad._value.dtype}{list(grad._value.shape)} does not match its variable "
            f"{a._value.dtype}{list(a._value.shape)}"
        )
    x.grad = grad
    x.grad_req = None if grad_req == "null" else grad_req
    if x.grad_req is not None and grad is not None and grad.is_sparse:
        x.grad_req = "rows" if grad_req == "write" else "rows_add"
    x.tape_value = None
    if a._trace is not None and a._trace is local.traces.get(a._value.ctx):
        if x.grad_req is None:
            # A plain value enters anew; a pending one keeps its place but must not be followed backwards.
            if a._data is not None:
                a._trace = None
        else:
            a._trace.mark_variable(a)


Operand: TypeAlias = NDArray | np.ndarray | np.generic | jax.Array | float

set_array_class(NDArray)


__getattr__, __dir__ = lazy_reexport(__name__, "dualmx.ndarray")
