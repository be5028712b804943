"""Parameters that are not dense: tables of which rows are read."""

from __future__ import annotations

from typing import Any

from ...core.context import Context, current_context
from ...core.errors import ArgumentTypeError, MXNetError
from ...ndarray import NDArray
from ...sparse import rows_of_table
from .held import HeldArrays


class RowArrays(HeldArrays):
    """The arrays of a parameter whose storage type is not the default one."""

    _stype: str
    _sparse_by_context: dict[Context, NDArray]
    _trainer: Any

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
        """Remember who updates the parameter; raises if it is a table that another Trainer updates."""
        if self._stype != "default" and self._trainer not in (None, trainer):
            raise MXNetError(
                f"Trainer: parameter {self.name!r} is {self._stype} and has a Trainer already; it can have one"
            )
        self._trainer = trainer

    def _rows(self, row_id: NDArray, ctx: Context) -> NDArray:
        if self._stype != "row_sparse":
            raise MXNetError(f"Parameter {self.name!r} has stype {self._stype!r}; read it with data()")
        self._arrays()
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
