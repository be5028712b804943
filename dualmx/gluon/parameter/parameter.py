"""`Parameter`: a named array with a gradient per context: dense, row_sparse or sharded, its shape possibly inferred."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any, NoReturn, TypeGuard

import numpy as np

from ... import autograd, initializer
from ...compile.devices import Mesh, parse_spec, shard_one_more_axis
from ...core import np_mode
from ...core.argcheck import context as as_context
from ...core.context import Context, cpu, current_context
from ...core.dtypes import as_dtype
from ...core.errors import ArgumentError, ArgumentTypeError, MXNetError
from ...core.rng import rng_streams
from ...namespace import nd, sym
from ...ndarray import NDArray
from ...ndarray.execute import isolated_traces
from ...ndarray.sharding import replace_sharding, shard_array, shard_like
from ...optimizer.optimizer import Factor
from ...sparse import rows_of_table, with_storage

REMEDY_UNINITIALIZED = (
    "has not been initialized. Call initialize() on the block, or on block.collect_params(), first; "
    "block.params leaves out the parameters of child blocks, collect_params() does not"
)
REMEDY_DEFERRED = (
    "has not been initialized yet because its shape {shape} is not fully known and initialization was deferred "
    "to the first forward pass. Pass one batch through the network before you read it, or give the layer its "
    "input size (in_units, in_channels, ...)"
)


class DeferredInitializationError(MXNetError):
    """A parameter was read before its first forward pass gave its shape."""


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


class Parameter:
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

    name: str
    lr_mult: Any = Factor()
    wd_mult: Any = Factor()
    allow_deferred_init: bool
    # True if a subclass defines data(), so that every forward pass must call it.
    _computed = False
    # True if a subclass defines list_data() or list_grad(), so that every step must call them.
    _lists_itself = False
    _data: list[NDArray] | None
    _deferred_init: tuple[Any, ...]
    _grad_req: str
    _shape: tuple[int, ...] | None
    _stype: str
    _sparse_by_context: dict[Context, NDArray]
    _trainer: Any
    _shard: tuple[Any, ...]
    _extra_shard_axis: str
    _var: Any
    # Called once the values of a deferred initialization are there.
    on_initialized: Callable[[Parameter], None] | None = None

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
        self._shard = parse_spec(shard)
        self._extra_shard_axis = ""
        self.grad_req = grad_req

    def __repr__(self) -> str:
        return f"Parameter {self.name} (shape={self.shape}, dtype={self.dtype})"

    @property
    def is_initialized(self) -> bool:
        """Whether there are values."""
        return self._data is not None

    @property
    def is_deferred(self) -> bool:
        """Whether `initialize` waits for the shape."""
        return bool(self._deferred_init)

    @property
    def is_differentiable(self) -> bool:
        """Whether there can be a gradient."""
        return self._differentiable

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
        """Dtype, as given."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        self.cast(dtype)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape; 0 (-1 with NumPy's shapes) is an unknown dimension, `None` an unknown shape."""
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
        found = self.arrays()
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
        arrays = self.arrays()
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
        """Convert values and gradients to `dtype`; gradients are reset to zero."""
        self._dtype = dtype
        self._var = None
        if self._data is not None:
            with autograd.pause():
                fresh = [a.astype(as_dtype(dtype)) for a in self._data]
            self._adopt_arrays(fresh, self._ctx_list or [])

    def var(self) -> Any:
        """Return the symbol variable of this parameter, always the same one."""
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

    def arrays(self) -> list[NDArray]:
        """Return the arrays of all contexts, of any storage type; raises like `data`."""
        if self._data is None:
            self._context_key(None)
        assert self._data is not None
        return self._data

    def _context_key(self, ctx: Context | None) -> Context | None:
        """Return the key of `_by_context` for `ctx`; raises with the reason if there is none."""
        self._require_sparse("data")
        if self._data is None:
            self._raise_uninitialized()
        ctx = current_context() if ctx is None else ctx
        if ctx not in self._by_context:
            self._refuse_context(ctx)
        return ctx

    def finish_deferred_init(self) -> None:
        """Create the arrays of a deferred initialization, by the method that subclasses replace."""
        self._finish_deferred_init()

    def _finish_deferred_init(self) -> None:
        """Create the arrays now that the shape is known."""
        if not self._deferred_init:
            return
        init, contexts, default_init, data = self._deferred_init
        if not shape_is_known(self._shape):
            raise DeferredInitializationError(f"Parameter {self.name!r} {REMEDY_DEFERRED.format(shape=self._shape)}")
        # With several contexts the first one must not get a program of its own by it.
        mesh = contexts[0]
        streams = rng_streams.derived_from(cpu(), mesh) if isinstance(mesh, Mesh) and mesh.remote else nullcontext()
        with autograd.pause(), isolated_traces() if len(contexts) > 1 else nullcontext(), streams:
            if data is None:
                # A parameter that is cut over a mesh may be too large for one of its devices.
                first = contexts[0] if contexts[0].mesh is None else cpu()
                data = nd.zeros(self._shape, ctx=first, dtype=as_dtype(self._dtype))
                self._fill(data, init, default_init)
                self._set_arrays(data, contexts, fresh=first is contexts[0])
            else:
                self._set_arrays(data, contexts)
        self._deferred_init = ()
        if self.on_initialized is not None:
            self.on_initialized(self)

    def _fill(self, data: NDArray, init: Any, default_init: Any) -> None:
        own = default_init if init is None else init
        described: Any = {"__init__": own} if isinstance(initializer.create(own), initializer.Initializer) else {}
        seen = data.as_np_ndarray() if np_mode.array.get() else data
        initializer.create(default_init)(initializer.InitDesc(self.name, described), seen)

    def _set_arrays(self, data: Any, contexts: list[Context], fresh: bool = False) -> None:
        """Put copies of `data` on `contexts`; a `fresh` array, which has no other reader, becomes the first one."""
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

    def reduce(self) -> NDArray:
        """Return the mean of the copies on the first CPU, by the method that subclasses replace."""
        return self._reduce()

    def _reduce(self) -> NDArray:
        """The mean of the copies, on the first CPU."""
        if self._stype == "row_sparse" and self._trainer is not None:
            self._trainer._fetch_rows(self, None)
        with autograd.pause():
            arrays = self.arrays() if self._stype != "default" else self.list_data()
            if len(arrays) == 1:
                return (arrays[0] if self._stype != "default" else self.data()).as_in_context(cpu())
            return nd.add_n(*[a.as_in_context(cpu()) for a in arrays]) / len(arrays)

    def load_init(self, data: NDArray, ctx: Context | list[Context] | None = None) -> None:
        """Take values read from a file, by the method that subclasses replace.

        Raises:
            ArgumentError: shape, dtype or contexts do not fit.
        """
        self._load_init(data, ctx)

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

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "data" in cls.__dict__:
            cls._computed = True
        if not {"list_data", "list_grad"}.isdisjoint(cls.__dict__):
            cls._lists_itself = True

    def __copy__(self) -> Any:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __getstate__(self) -> dict[str, Any]:
        """What a deep copy or a pickle takes along: the values and where they are, no gradients and no Trainer."""
        left = {
            "_data": None,
            "_by_context": {},
            "_fast_lookup": {},
            "_sparse_by_context": {},
            "_var": None,
            "_trainer": None,
        }
        values = None if self._data is None else (self._reduce(), self._ctx_list)
        return {"values": values, "others": {**self.__dict__, **left, "on_initialized": None}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state["others"])
        if state["values"] is not None:
            self._set_arrays(*state["values"])

    @property
    def _allow_deferred_init(self) -> bool:
        """Whether an unknown shape is accepted at `initialize()`."""
        return self.allow_deferred_init

    @_allow_deferred_init.setter
    def _allow_deferred_init(self, allow: bool) -> None:
        self.allow_deferred_init = allow

    @property
    def _ctx_list(self) -> list[Context] | None:
        """The contexts that the arrays are on; `None` while there are no arrays."""
        return None if self._data is None else [a.context for a in self._data]

    @property
    def _ctx_map(self) -> list[list[int | None]] | None:
        """Position of each context's array: of GPUs and of CPUs, by device number; `None` while there are no arrays.

        The first list is that of GPUs, as MXNet's device types have it modulo 2.
        """
        if self._data is None:
            return None
        found: list[list[int | None]] = [[], []]
        for position, array in enumerate(self._data):
            places = found[array.context.device_typeid & 1]
            places.extend([None] * (array.context.device_id + 1 - len(places)))
            places[array.context.device_id] = position
        return found

    @property
    def _grad(self) -> list[NDArray] | None:
        """The gradient of each context; `None` while there are none."""
        if self._data is None or self._grad_req == "null":
            return None
        return [a.grad for a in self._data if a.grad is not None]

    def _check_and_get(self, arr_list: list[NDArray] | None, ctx: Any) -> Any:
        """Return the array of `ctx` in a list with one for each context.

        Args:
            arr_list: `_data` or `_grad`.
            ctx: a context, which may be `None` if there is only one array, or the class `list` for the whole list.

        Raises:
            DeferredInitializationError: no forward pass has told the shape yet.
            MXNetError: not initialized, or not on `ctx`.
        """
        if arr_list is None:
            self._raise_uninitialized()
        if ctx is list:
            return arr_list
        if ctx is None:
            if len(arr_list) == 1:
                return arr_list[0]
            ctx = current_context()
        found = next((a for a in arr_list if a.context == ctx), None)
        if found is None:
            self._refuse_context(ctx)
        return found

    def _raise_uninitialized(self) -> NoReturn:
        """Raise with the reason why there are no arrays."""
        if self._deferred_init:
            raise DeferredInitializationError(f"Parameter {self.name!r} {REMEDY_DEFERRED.format(shape=self._shape)}")
        raise MXNetError(f"Parameter {self.name!r} {REMEDY_UNINITIALIZED}")

    def _refuse_context(self, ctx: Context) -> NoReturn:
        held = ", ".join(map(str, self._ctx_list or ()))
        raise MXNetError(
            f"Parameter {self.name!r} was not initialized on context {ctx}, only on {held}; "
            "move the input there, or call reset_ctx()"
        )

    def _init_impl(self, data: Any, ctx_list: Iterable[Context]) -> None:
        """Put copies of `data` on contexts, with gradients as `grad_req` says."""
        self._set_arrays(data, list(ctx_list))

    def row_sparse_data(self, row_id: NDArray) -> NDArray:
        """Return the rows `row_id` of a `row_sparse` parameter, on the context of `row_id`, as a row_sparse array.

        Gradients of what is looked up in it go to the parameter.

        Raises:
            MXNetError: the parameter is dense, or has no Trainer. ArgumentTypeError: `row_id` is not an NDArray.

        Example:
            >>> import dualmx as mx
            >>> w = mx.gluon.Parameter("w", shape=(9, 2), stype="row_sparse", grad_stype="row_sparse")
            >>> w.initialize()
            >>> trainer = mx.gluon.Trainer([w], "sgd")
            >>> w.row_sparse_data(mx.nd.array([3, 1, 3])).indices.asnumpy().tolist()
            [1, 3]
        """
        if not isinstance(row_id, NDArray):
            raise ArgumentTypeError(f"Parameter {self.name!r}: row_id={row_id!r}: expected an NDArray")
        return self._rows(row_id, row_id.context)

    def list_row_sparse_data(self, row_id: NDArray) -> list[NDArray]:
        """Return `row_sparse_data` of every context."""
        return [self._rows(row_id, c) for c in self.list_ctx()]

    def _set_trainer(self, trainer: Any) -> None:
        """Set the trainer of the parameter; raises if it is a table that another Trainer updates."""
        if self._stype != "default" and self._trainer not in (None, trainer):
            raise MXNetError(
                f"Trainer: parameter {self.name!r} is {self._stype} and has a Trainer already; it can have one"
            )
        self._trainer = trainer

    def _rows(self, row_id: NDArray, ctx: Context) -> NDArray:
        if self._stype != "row_sparse":
            raise MXNetError(f"Parameter {self.name!r} has stype {self._stype!r}; read it with data()")
        self.arrays()
        if self._trainer is None:
            raise MXNetError(f"Parameter {self.name!r}: row_sparse data needs a Trainer that was made with it")
        self._trainer._init_store()
        self._trainer._fetch_rows(self, row_id)
        return rows_of_table(self._sparse_on(ctx), row_id)

    def _sparse_on(self, ctx: Context | None) -> NDArray:
        """The array on `ctx` of a parameter that is not dense."""
        if ctx is None and len(self._sparse_by_context) == 1:
            return next(iter(self._sparse_by_context.values()))
        found = self._sparse_by_context.get(current_context() if ctx is None else ctx)
        if found is None:
            held = ", ".join(map(str, self.list_ctx()))
            raise MXNetError(f"Parameter {self.name!r} was not initialized on context {ctx}, only on {held}")
        return found

    def _require_sparse(self, what: str) -> None:
        if self._data is not None and self._stype != "default":
            raise MXNetError(
                f"Parameter {self.name!r}: {what}() is for dense parameters, its storage type is {self._stype}; use "
                f"row_sparse_data()"
            )

    def _copied(self, data: NDArray, ctx: Context) -> NDArray:
        if not isinstance(ctx, Mesh):
            return data.copyto(ctx)
        return shard_array(data, self._spec_on(ctx, data.shape), ctx, self._shard_error_prefix)

    @property
    def shard(self) -> tuple[Any, ...]:
        """Partition spec: per axis the name of a mesh axis, or `None`; `()` if not sharded.

        Setting it moves an array that is on a mesh already.

        Example:
            >>> import dualmx as mx
            >>> w = mx.gluon.Parameter("w", shape=(4, 2))
            >>> w.shard = ("model", None)
            >>> w.initialize(ctx=mx.parallel.Mesh({"model": 1}))
            >>> w.data().sharding
            ('model', None)
        """
        return self._shard

    @property
    def _shard_error_prefix(self) -> str:
        """Return the start of error texts about sharding."""
        return f"Parameter {self.name!r}: sharding"

    def _spec_on(self, mesh: Mesh, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """The spec of the stored array on a mesh: sharded along one more axis if it is fully sharded."""
        return (
            shard_one_more_axis(mesh, self._shard, shape, self._extra_shard_axis)
            if self._extra_shard_axis
            else self._shard
        )

    def _shard_along(self, axis: str) -> None:
        """Store the array sharded along one more axis of its mesh; computations gather it."""
        for array in self._data or ():
            if isinstance(array.context, Mesh):
                array.context.sharding((axis,), None, self._shard_error_prefix)
        self._extra_shard_axis = axis
        self.shard = self._shard

    def _check_shard(self, spec: Any) -> None:
        """Raise if the meshes of the parameter do not allow this sharding."""
        for array in self._data or ():
            if isinstance(array.context, Mesh):
                array.context.sharding(spec, array.shape, self._shard_error_prefix)

    @shard.setter
    def shard(self, spec: Any) -> None:
        spec = parse_spec(spec)
        self._check_shard(spec)
        self._shard = spec
        self._var = None
        for array in self._data or ():
            if isinstance(array.context, Mesh):
                replace_sharding(array, self._spec_on(array.context, array.shape), self._shard_error_prefix)
                if array.grad is not None:
                    shard_like(array.grad, array)


def as_np_arrays(array: NDArray) -> None:
    """Give a parameter's array and its gradient NumPy semantics."""
    from ...numpy.np_ndarray import as_np_class

    for held in (array, array.grad):
        if held.__class__ is NDArray:
            as_np_class(held)
