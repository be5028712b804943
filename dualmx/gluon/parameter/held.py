"""The arrays that a parameter holds, under the names by which subclasses written for MXNet ask for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from ...core.context import Context, current_context
from ...core.errors import MXNetError
from ...ndarray import NDArray

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
    """A parameter was read before its first forward pass told its shape."""


class HeldArrays:
    """What a parameter holds on which contexts."""

    name: str
    allow_deferred_init: bool
    # True if a subclass defines data(), so that every forward pass must call it.
    _computed = False
    # True if a subclass defines list_data() or list_grad(), so that every step must call them.
    _lists_itself = False
    _data: list[NDArray] | None
    _deferred_init: tuple[Any, ...]
    _grad_req: str
    _shape: tuple[int, ...] | None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "data" in cls.__dict__ and HeldArrays not in cls.__bases__:
            cls._computed = True
        if not {"list_data", "list_grad"}.isdisjoint(cls.__dict__) and HeldArrays not in cls.__bases__:
            cls._lists_itself = True

    def __copy__(self) -> Any:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __getstate__(self) -> dict[str, Any]:
        """What a deep copy or a pickle takes along: the values and where they are, no gradients and no Trainer."""
        left = {"_data": None, "_at": {}, "_plain": {}, "_sparse_at": {}, "_var": None, "_trainer": None}
        values = None if self._data is None else (self._reduce(), self._ctx_list)
        return {"values": values, "others": {**self.__dict__, **left, "_when_made": None}}

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

    def _adopt_arrays(self, arrays: list[NDArray], contexts: list[Context]) -> None:
        """Take the arrays as those of the contexts, with new gradients."""
        raise NotImplementedError

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

    def _set_arrays(self, data: Any, contexts: list[Context], fresh: bool = False) -> None:
        raise NotImplementedError

    def _reduce(self) -> NDArray:
        raise NotImplementedError

    def _arrays(self) -> list[NDArray]:
        raise NotImplementedError

    def list_ctx(self) -> list[Context]:
        """Return the contexts of the arrays, also while they wait for their shape."""
        raise NotImplementedError
