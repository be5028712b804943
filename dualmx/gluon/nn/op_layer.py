"""`OpLayer`: base of layers that are one operator on their input and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from ...core.context import Context
from ...ndarray import invoke
from ...ndarray.handle import invoke_unary
from ...ndarray.recorder import local
from ...op.registry import Call, get_op
from ..hybrid import HybridBlock
from ..parameter import ARRAYS_VERSION, Parameter


class OpParams(dict[str, Any]):
    """Operator parameters of a layer; a change binds the layer's call again."""

    def __init__(self, changed: Callable[[], None], values: dict[str, Any]):
        super().__init__(values)
        self._changed = changed

    def __reduce__(self) -> Any:
        return OpParams, (self._changed, dict(self))

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        self._changed()

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Change several parameters."""
        super().update(*args, **kwargs)
        self._changed()


class OpLayer(HybridBlock):
    """A layer whose eager path is a prepared `Call`; subclasses call `_prepare` in `__init__`.

    An activation block in `self.act`, if any, is applied to the first output.
    """

    _op: str
    _call: Call
    _kwargs: OpParams
    # Attributes that MXNet's layers read at each call, and the parameters of the operator that they are.
    _named: ClassVar[Mapping[str, str]] = {}
    _operands: tuple[Parameter, ...] = ()
    _has_train = False
    _arrays_version = -1
    act: HybridBlock | None = None

    def _prepare(self, op: str, operands: tuple[Parameter | None, ...] = (), **params: Any) -> None:
        """Bind the operator to `params`; errors about them are raised here."""
        self._op = op
        self._operands = tuple(p for p in operands if p is not None)
        self._arrays: dict[Context, tuple[Any, ...]] = {}
        self._kwargs = OpParams(self._bind, params)
        self._bind()

    def __getstate__(self) -> dict[str, Any]:
        # Arrays are held for this process alone, and so are counted.
        return {**super().__getstate__(), "_arrays": {}, "_arrays_version": -1}

    def __setattr__(self, name: str, value: Any) -> None:
        old = self.__dict__.get(name)
        super().__setattr__(name, value)
        if isinstance(old, Parameter) and value is not old:
            self._operands = tuple(value if p is old else p for p in self._operands)
            self._arrays.clear()
        if name in self._named and "_kwargs" in self.__dict__:
            self._kwargs[self._named[name]] = value

    def _bind(self) -> None:
        self._call = get_op(self._op).call(**self._kwargs)
        self._has_train = self._call.op.has_train

    def _fast_forward(self, x: Any) -> Any:
        call = self._call
        if self._has_train:
            call = call.in_mode(local.training)
        if not self._operands:
            out = invoke_unary(call, x) if call.is_simple else invoke(call, (x,))[0]
        else:
            if self._arrays_version != ARRAYS_VERSION.count:
                self._arrays.clear()
                self._arrays_version = ARRAYS_VERSION.count
            out = invoke(call, (x, *(self._arrays.get(x.context) or self._operand_arrays(x))))[0]
        act = self.act
        return out if act is None else act(out)

    def _operand_arrays(self, x: Any) -> tuple[Any, ...]:
        """The operands' arrays on the context of `x`, kept until a parameter array is replaced."""
        ctx = x.context
        self._finish_deferred(ctx, x)
        arrays = tuple(p.data(ctx) for p in self._operands)
        self._arrays_version = ARRAYS_VERSION.count
        if not any(p._computed for p in self._operands):
            self._arrays[ctx] = arrays
        return arrays
