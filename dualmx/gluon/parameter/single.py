"""`Parameter`: a named array with a gradient, copied to each context, created when its shape is known."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any, TypeGuard

import numpy as np

from ... import autograd, initializer
from ...compile.mesh import Mesh, parse_spec
from ...core import np_mode
from ...core.checks import context as as_context
from ...core.context import Context, cpu, current_context
from ...core.dtypes import as_dtype
from ...core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ...core.seeds import rng_streams
from ...namespace import nd, sym
from ...ndarray import NDArray
from ...ndarray.placement import shard_like
from ...ndarray.trace import isolated_traces
from ...sparse import with_storage
from .held import REMEDY_DEFERRED, REMEDY_UNINITIALIZED, DeferredInitializationError, HeldArrays
from .rows import RowArrays
from .sharded import ShardedArrays

_GRAD_REQS = ("write", "add", "null")
_STYPES = ("default", "row_sparse", "csr")


class _VersionCounter:
    """Counts how often parameter arrays were replaced; lists of arrays may be kept while it stands still."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


ARRAYS_VERSION = _VersionCounter()


def shape_is_known(shape: tuple[int, ...] | None) -> TypeGuard[tuple[int, ...]]:
    """True if no dimension of `shape` is unknown (0 or -1)."""
    return shape is not None and all(d > 0 for d in shape)


def context_list(ctx: Context | Iterable[Context] | None) -> list[Context]:
    """Return `ctx` as a list: the current context for `None`, itself for one context."""
    if ctx is None:
        return [current_context()]
    listed = [as_context(c) for c in ([ctx] if isinstance(ctx, (Context, str)) else ctx)]
    if not listed:
        raise ArgumentError("ctx=[]: expected at least one context")
    return listed


class Parameter(ShardedArrays, RowArrays, HeldArrays):
    """A named array that a block learns, with one copy and one gradient per context.

    The arrays exist after `initialize()`; if `shape` has unknown dimensions (0) they exist after the first forward
    pass, provided that `allow_deferred_init` is true.

    Args:
        name: full name, unique within a model.
        grad_req: `"write"` replaces the gradient in each backward pass, `"add"` accumulates, `"null"` has none.
        shape: an int or a tuple of ints; 0 or -1 stands for a dimension not known yet.
        dtype: element type.
        lr_mult, wd_mult: factors of the Trainer's learning rate and weight decay for this parameter.
        init: initializer (instance, name or JSON string); `None` takes the one given to `initialize()`.
        allow_deferred_init: accept an unknown shape at `initialize()`.
        differentiable: false forces `grad_req` to stay `"null"`.
        stype, grad_stype: storage types of data and gradient. Data in another one than `"default"` is read with
            `row_sparse_data`, for which the parameter needs a Trainer.

        shard: how the array is cut when it is on a `parallel.Mesh`, see `Parameter.shard`.

    Raises:
        ArgumentError: an unknown `grad_req` or storage type.

    Example:
        >>> import dualmx as mx
        >>> w = mx.gluon.Parameter("w", shape=(2, 3), init="ones")
        >>> w.initialize(ctx=mx.cpu())
        >>> w.data().shape
        (2, 3)
    """

    def __init__(
        self,
        name: str,
        grad_req: str = "write",
        shape: int | Iterable[int] | None = None,
        dtype: Any = np.float32,
        lr_mult: float = 1.0,
        wd_mult: float = 1.0,
        init: Any = None,
        allow_deferred_init: bool = False,
        differentiable: bool = True,
        stype: str = "default",
        grad_stype: str = "default",
        shard: Any = (),
    ):
        for what, kind in (("stype", stype), ("grad_stype", grad_stype)):
            if kind not in _STYPES:
                raise ArgumentError(f"Parameter {name!r}: {what}={kind!r}: expected one of {', '.join(_STYPES)}")
        self.name = name
        self.lr_mult = lr_mult
        self.wd_mult = wd_mult
        self.init = init
        self.allow_deferred_init = allow_deferred_init
        self._differentiable = differentiable
        self._stype, self._grad_stype = stype, grad_stype
        self._dtype = dtype
        self._shape: tuple[int, ...] | None = None
        if shape is not None:
            self._shape = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)
        self._grad_req: str = "null"
        self._data: list[NDArray] | None = None
        self._by_context: dict[Context | None, NDArray] = {}
        # What a forward pass may read instead of calling data().
        self._fast_lookup: dict[Context | None, NDArray] = {}
        self._sparse_by_context: dict[Context, NDArray] = {}
        self._deferred_init: tuple[Any, ...] = ()
        self._var: Any = None
        self._trainer: Any = None
        # Called once the values of a deferred initialization are there.
        self._on_initialized: Callable[[Parameter], None] | None = None
        self._shard = parse_spec(shard)
        self._extra_shard_axis = ""
        self.grad_req = grad_req

    def __repr__(self) -> str:
        return f"Parameter {self.name} (shape={self.shape}, dtype={self.dtype})"

    @property
    def grad_req(self) -> str:
        """How backward passes store the gradient: `"write"`, `"add"` or `"null"`."""
        return self._grad_req

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req not in _GRAD_REQS:
            raise ArgumentError(f"Parameter {self.name!r}: grad_req={req!r}: expected 'write', 'add' or 'null'")
        if not self._differentiable:
            req = "null"
        if req == self._grad_req:
            return
        self._grad_req = req
        if self._data is not None:
            self._init_grad()

    @property
    def dtype(self) -> Any:
        """Element type, as it was given."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        self.cast(dtype)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape; 0 (-1 with NumPy's shapes) stands for a dimension not known yet, `None` for an unknown shape."""
        if np_mode.shape.get() and self._shape is not None:
            return tuple(d or -1 for d in self._shape)
        return self._shape

    @shape.setter
    def shape(self, new: tuple[int, ...]) -> None:
        new = tuple(new)
        old = self._shape
        if old is not None and (len(old) != len(new) or any(a > 0 and a != b for a, b in zip(old, new, strict=True))):
            raise ArgumentError(f"Parameter {self.name!r}: shape {new} does not fit the declared shape {old}")
        self._shape = new

    def initialize(
        self,
        init: Any = None,
        ctx: Context | list[Context] | None = None,
        default_init: Any = None,
        force_reinit: bool = False,
    ) -> None:
        """Create the arrays on the given contexts and fill them.

        Args:
            init: initializer; `None` takes the parameter's own, then `default_init`.
            ctx: one context or several; the same values are put on each. The current context by default.
            default_init: used when neither `init` nor the parameter's own is set; `Uniform(0.07)` if `None`.
            force_reinit: draw anew even if the parameter holds values.

        Raises:
            ArgumentError: the shape is unknown and deferred initialization is not allowed.
        """
        if self._data is not None and not force_reinit:
            warnings.warn(
                f"Parameter {self.name!r} is already initialized, ignoring. Set force_reinit=True to re-initialize.",
                stacklevel=2,
            )
            return
        contexts = context_list(ctx)
        if init is None:
            init = self.init
        if not shape_is_known(self._shape) and not self.allow_deferred_init:
            raise ArgumentError(
                f"Parameter {self.name!r}: cannot initialize the incomplete shape {self._shape}; give every "
                "dimension, or create the parameter with allow_deferred_init=True"
            )
        self._drop_arrays()
        self._deferred_init = (
            init,
            contexts,
            default_init if default_init is not None else initializer.Uniform(),
            None,
        )
        if shape_is_known(self._shape):
            self._finish_deferred_init()

    def set_data(self, data: Any) -> None:
        """Overwrite the values on every context; before a deferred initialization, provide them.

        Raises:
            ArgumentError: the shape does not fit, or the parameter was never initialized.
        """
        if not hasattr(data, "shape"):
            kind = type(data).__name__
            raise ArgumentTypeError(f"Parameter {self.name!r}: set_data: data of type {kind}: expected an array")
        self.shape = tuple(data.shape)
        if self._data is None:
            if not self._deferred_init:
                raise ArgumentError(f"Parameter {self.name!r} {REMEDY_UNINITIALIZED}")
            self._deferred_init = (*self._deferred_init[:3], data)
            return
        with autograd.pause():
            for array in self._data:
                array[:] = data
        if self._trainer is not None:
            self._trainer._parameter_was_set(self)

    def data(self, ctx: Context | None = None) -> NDArray:
        """Return the array on `ctx` (which may be left out when there is only one).

        Raises:
            DeferredInitializationError: no forward pass has told the shape yet.
            MXNetError: not initialized, or not on `ctx`.
        """
        try:
            return self._by_context[ctx]
        except KeyError:
            return self._by_context[self._context_key(ctx)]

    def list_data(self) -> list[NDArray]:
        """Return the arrays of all contexts, in the order given to `initialize()`."""
        found = self._arrays()
        self._require_sparse("list_data")
        return list(found)

    def grad(self, ctx: Context | None = None) -> NDArray:
        """Return the gradient on `ctx`; raises like `data`, and if `grad_req` is `"null"`."""
        array = self._sparse_on(ctx) if self._sparse_by_context else Parameter.data(self, ctx)
        if self._grad_req == "null":
            raise MXNetError(f"Parameter {self.name!r} has no gradient because its grad_req is 'null'")
        assert array.grad is not None
        return array.grad

    def list_grad(self) -> list[NDArray]:
        """Return the gradients of all contexts; raises like `grad`."""
        arrays = self._arrays()
        if self._grad_req == "null":
            raise MXNetError(f"Parameter {self.name!r} has no gradient because its grad_req is 'null'")
        return [a.grad for a in arrays if a.grad is not None]

    def list_ctx(self) -> list[Context]:
        """Return the contexts the parameter is (or will be) on."""
        if self._data is None:
            if self._deferred_init:
                return self._deferred_init[1]
            raise MXNetError(f"Parameter {self.name!r} {REMEDY_UNINITIALIZED}")
        return [c for c in self._sparse_by_context or self._by_context if c is not None]

    def zero_grad(self) -> None:
        """Set the gradients of all contexts to zero; nothing happens where there is none."""
        if self._data is not None and self._grad_req != "null":
            for grad in self.list_grad():
                grad[:] = 0

    def reset_ctx(self, ctx: Context | list[Context]) -> None:
        """Move the parameter to other contexts; several copies are averaged first.

        Raises:
            ArgumentError: the parameter was never initialized.
        """
        contexts = context_list(ctx)
        if self._data is not None:
            self._set_arrays(self._reduce(), contexts)
        elif self._deferred_init:
            init, _, default_init, data = self._deferred_init
            self._deferred_init = (init, contexts, default_init, data)
        else:
            raise ArgumentError(f"Parameter {self.name!r}: cannot change the context: it {REMEDY_UNINITIALIZED}")

    def cast(self, dtype: Any) -> None:
        """Convert values and gradients to `dtype`; gradients start again at zero."""
        self._dtype = dtype
        self._var = None
        if self._data is not None:
            with autograd.pause():
                fresh = [a.astype(as_dtype(dtype)) for a in self._data]
            self._adopt_arrays(fresh, self._ctx_list or [])

    def var(self) -> Any:
        """Return the symbol variable that stands for this parameter, always the same one."""
        if self._var is None:
            shape = self._shape
            if shape is not None and np_mode.shape.get():
                # There 0 is a size, and -1 stands for an unknown one.
                shape = tuple(d or -1 for d in shape)
            self._var = sym.var(
                self.name,
                shape=shape,
                dtype=self._dtype,
                lr_mult=self.lr_mult,
                wd_mult=self.wd_mult,
                init=self.init,
                stype=self._stype,
                attr={"__shard__": str(self._shard)} if self._shard else None,
            )
        return self._var

    def _arrays(self) -> list[NDArray]:
        if self._data is None:
            self._context_key(None)
        assert self._data is not None
        return self._data

    def _context_key(self, ctx: Context | None) -> Context | None:
        """The key of `_by_context` meant by `ctx`; raises with the reason when there is none."""
        self._require_sparse("data")
        if self._data is None:
            self._raise_uninitialized()
        ctx = current_context() if ctx is None else ctx
        if ctx not in self._by_context:
            self._refuse_context(ctx)
        return ctx

    def _finish_deferred_init(self) -> None:
        """Create the arrays now that the shape is known."""
        if not self._deferred_init:
            return
        init, contexts, default_init, data = self._deferred_init
        if not shape_is_known(self._shape):
            raise DeferredInitializationError(f"Parameter {self.name!r} {REMEDY_DEFERRED.format(shape=self._shape)}")
        # With several contexts the first one must not get a program of its own by it.
        mesh = contexts[0]
        alike = rng_streams.derived_from(cpu(), mesh) if isinstance(mesh, Mesh) and mesh.remote else nullcontext()
        with autograd.pause(), isolated_traces() if len(contexts) > 1 else nullcontext(), alike:
            if data is None:
                # A parameter that is cut over a mesh may be too large for one of its devices.
                first = contexts[0] if contexts[0].mesh is None else cpu()
                data = nd.zeros(self._shape, ctx=first, dtype=as_dtype(self._dtype))
                self._fill(data, init, default_init)
                self._set_arrays(data, contexts, fresh=first is contexts[0])
            else:
                self._set_arrays(data, contexts)
        self._deferred_init = ()
        if self._on_initialized is not None:
            self._on_initialized(self)

    def _fill(self, data: NDArray, init: Any, default_init: Any) -> None:
        own = default_init if init is None else init
        described: Any = {"__init__": own} if isinstance(initializer.create(own), initializer.Initializer) else {}
        seen = data.as_np_ndarray() if np_mode.array.get() else data
        initializer.create(default_init)(initializer.InitDesc(self.name, described), seen)

    def _set_arrays(self, data: Any, contexts: list[Context], fresh: bool = False) -> None:
        """Put copies of `data` on `contexts`; a `fresh` array, which nobody else holds, becomes the first one."""
        dtype = as_dtype(self._dtype)
        data = data.astype(dtype, copy=False) if isinstance(data, NDArray) else nd.array(data, dtype=dtype)
        with autograd.pause():
            data = data.tostype("default")
            self._adopt_arrays(
                [data if fresh and i == 0 else self._copied(data, c) for i, c in enumerate(contexts)], contexts
            )

    def _adopt_arrays(self, arrays: list[NDArray], contexts: list[Context]) -> None:
        if self._stype == "default":
            self._by_context = dict(zip(contexts, arrays, strict=True))
            if len(arrays) == 1:
                self._by_context[None] = arrays[0]
            self._fast_lookup = {} if self._computed else self._by_context
        else:
            arrays = [a if a.is_sparse else with_storage(a, self._stype) for a in arrays]
            self._sparse_by_context = dict(zip(contexts, arrays, strict=True))
        self._data = arrays
        self._attach_grads()
        ARRAYS_VERSION.count += 1
        if self._trainer is not None:
            self._trainer._parameter_moved()

    def _init_grad(self) -> None:
        """Give every array a gradient of zeros, or none, as `grad_req` says."""
        self._attach_grads()
        ARRAYS_VERSION.count += 1

    def _attach_grads(self) -> None:
        for array in self._data or ():
            if self._grad_req != "null" or array.grad is not None:
                array.attach_grad(self._grad_req, stype=self._grad_stype)
                if array.context.mesh is not None and array.grad is not None:
                    shard_like(array.grad, array)
            if np_mode.array.get():
                as_np_arrays(array)

    def _drop_arrays(self) -> None:
        self._data = None
        self._by_context, self._fast_lookup, self._sparse_by_context = {}, {}, {}
        ARRAYS_VERSION.count += 1

    def _reduce(self) -> NDArray:
        """The mean of the copies, on the first CPU."""
        if self._stype == "row_sparse" and self._trainer is not None:
            self._trainer._fetch_rows(self, None)
        with autograd.pause():
            arrays = self._arrays() if self._stype != "default" else self.list_data()
            if len(arrays) == 1:
                return (arrays[0] if self._stype != "default" else self.data()).as_in_context(cpu())
            return nd.add_n(*[a.as_in_context(cpu()) for a in arrays]) / len(arrays)

    def _load_init(
        self,
        data: NDArray,
        ctx: Context | list[Context] | None,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Take values read from a file, checking shape and dtype."""
        if dtype_source not in ("current", "saved"):
            raise ArgumentError(f"dtype_source={dtype_source!r}: expected 'current' or 'saved'")
        own, read = self._shape, tuple(data.shape)
        if own is not None and (len(own) != len(read) or any(a > 0 and a != b for a, b in zip(own, read, strict=True))):
            raise ArgumentError(
                f"Parameter {self.name!r}: the saved shape {read} does not fit the expected shape {own}"
            )
        self._shape = read
        if as_dtype(self._dtype) != as_dtype(data.dtype):
            if not cast_dtype:
                raise ArgumentError(
                    f"Parameter {self.name!r}: expected dtype {as_dtype(self._dtype).name}, saved "
                    f"{as_dtype(data.dtype).name}; set cast_dtype=True to convert"
                )
            if dtype_source == "saved":
                self.cast(data.dtype)
            else:
                data = data.astype(as_dtype(self._dtype))
        held = self.list_ctx() if self._data is not None or self._deferred_init else None
        wanted = held or [cpu()] if ctx is None else context_list(ctx)
        if held is not None and set(wanted) != set(held):
            raise ArgumentError(
                f"Parameter {self.name!r}: cannot load on {wanted} because it is on {held}; call reset_ctx() first"
            )
        if self._data is None:
            self._set_arrays(data, wanted)
        else:
            self.set_data(data)
        self._deferred_init = ()


def as_np_arrays(array: NDArray) -> None:
    """Give a parameter's array and its gradient NumPy semantics."""
    from ...numpy.array import as_np_class

    for held in (array, array.grad):
        if held.__class__ is NDArray:
            as_np_class(held)
