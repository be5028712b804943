"""`OneCall`: base of layers that are one operator call on their input and parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import autograd
from ...ndarray import invoke
from ...op.registry import Call, get_op
from ..hybrid import HybridBlock
from ..parameter import Parameter


class Settings(dict[str, Any]):
    """Operator parameters of a layer; changing one binds the layer's call anew."""

    def __init__(self, changed: Callable[[], None], values: dict[str, Any]):
        super().__init__(values)
        self._changed = changed

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        self._changed()

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Change several parameters."""
        super().update(*args, **kwargs)
        self._changed()


class OneCall(HybridBlock):
    """A layer whose eager path is a prepared `Call`; subclasses call `_prepare` in `__init__`.

    An activation block in `self.act`, if any, is applied to the first output.
    """

    _op: str
    _call: Call
    _kwargs: Settings
    _operands: tuple[Parameter, ...] = ()
    _has_train = False
    act: HybridBlock | None = None

    def _prepare(self, op: str, operands: tuple[Parameter | None, ...] = (), **params: Any) -> None:
        """Bind the operator to `params`; errors about them are raised here."""
        self._op = op
        self._operands = tuple(p for p in operands if p is not None)
        self._kwargs = Settings(self._bind, params)
        self._bind()

    def _bind(self) -> None:
        self._call = get_op(self._op).call(**self._kwargs)
        self._has_train = self._call.op.has_train

    def _eager(self, x: Any) -> Any:
        ctx = x.context
        try:
            ins = [x, *[p._at[ctx] for p in self._operands]]
        except KeyError:
            self._ready(ctx, x)
            ins = [x, *[p.data(ctx) for p in self._operands]]
        call = self._call
        out = invoke(call.at(autograd.is_training()) if self._has_train else call, ins)[0]
        act = self.act
        return out if act is None else act(out)
