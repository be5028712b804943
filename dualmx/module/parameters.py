"""The parameters and auxiliary states of a `Module`."""

from __future__ import annotations

import warnings
from typing import Any

from ..core.context import cpu
from ..core.errors import ArgumentError, MXNetError, suggest
from ..initializer import InitDesc
from ..ndarray import NDArray, flush, zeros
from .base import SMALL_UNIFORM
from .inner import ModuleParts


class Parameters(ModuleParts):
    """Values are given to a module's parameters, and read from them."""

    _param_names: list[str]
    _aux_names: list[str]

    def init_params(
        self,
        initializer: Any = SMALL_UNIFORM,
        arg_params: dict[str, NDArray] | None = None,
        aux_params: dict[str, NDArray] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Give values to parameters and auxiliary states.

        Args:
            initializer: for values that are not given.
            arg_params, aux_params: given values by name; names the network does not have are ignored.
            allow_missing: let the initializer fill what is missing in `arg_params` and `aux_params`.
            force_init: do it even if there are values already.
            allow_extra: accepted.

        Raises:
            MXNetError: not bound, or a value is missing. ArgumentError: a value has the wrong shape.
        """
        if self.params_initialized and not force_init:
            warnings.warn(
                "Parameters already initialized and force_init=False. init_params call ignored.", stacklevel=2
            )
            return
        self._require("binded")
        attrs = self._symbol.attr_dict()
        main = self._devices[0]
        for table, names, given in (
            (main.args, self._param_names, arg_params),
            (main.aux, self._aux_names, aux_params),
        ):
            for name in sorted(names):
                self._fill(name, table[name], given, initializer, attrs.get(name, {}), allow_missing)
        self._broadcast_params()
        self.params_initialized = True
        self._sync_params_from_devices()

    def _fill(
        self,
        name: str,
        target: NDArray,
        given: dict[str, NDArray] | None,
        initializer: Any,
        attrs: dict[str, str],
        allow_missing: bool,
    ) -> None:
        if given is not None and name in given:
            value = given[name]
            if value.shape != target.shape:
                raise ArgumentError(f"Module: parameter {name!r} has shape {value.shape}: expected {target.shape}")
            if value is not target:
                value.copyto(target)
            return
        if given is not None and not allow_missing:
            raise MXNetError(f"Module: parameter {name!r} is missing; give it, or pass allow_missing=True")
        if initializer is None:
            return
        main = self._contexts[0]
        if target.context == main or target.stype != "default":
            initializer(InitDesc(name, attrs), target)
        else:  # drawn where all others are, since each context has a random stream: groups do not change values
            value = zeros(target.shape, ctx=main, dtype=target.dtype)
            initializer(InitDesc(name, attrs), value)
            value.copyto(target)

    def _broadcast_params(self) -> None:
        """Copy parameters and states of the first context to the others."""
        main = self._devices[0]
        for other in self._devices[1:]:
            for source, target in ((main.args, other.args), (main.aux, other.aux)):
                for name, value in source.items():
                    value.copyto(target[name])

    def set_params(
        self,
        arg_params: dict[str, NDArray],
        aux_params: dict[str, NDArray] | None,
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        if allow_missing and not allow_extra:
            known = {*self._param_names, *self._aux_names}
            for name in (*arg_params, *(aux_params or ())):
                if name not in known:
                    raise ArgumentError(
                        f"Module.set_params: {name!r} is no parameter; {suggest(name, known)}; see allow_extra"
                    )
        super().set_params(arg_params, aux_params, allow_missing, force_init, allow_extra)

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Return copies of the parameters and of the auxiliary states (averaged over contexts), by name."""
        self._require("binded", "params_initialized")
        main = self._devices[0]
        if self._updates is not None:
            self._updates.fetch_rows(None)
        arg_params = {n: main.args[n].copyto(cpu()) for n in self._param_names}
        aux_params = {}
        for n in self._aux_names:
            total = main.aux[n].copyto(cpu())
            for other in self._devices[1:]:
                total = total + other.aux[n].as_in_context(cpu())
            aux_params[n] = total / len(self._devices) if len(self._devices) > 1 else total
        flush()
        self._host.write(arg_params, aux_params)
        return arg_params, aux_params
