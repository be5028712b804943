"""How the array of a parameter is cut over a mesh."""

from __future__ import annotations

from typing import Any

from ...compile.mesh import Mesh, parse_spec, shard_one_more_axis
from ...core.context import Context
from ...ndarray import NDArray
from ...ndarray.placement import replace_sharding, shard_array, shard_like
from .held import HeldArrays


class ShardedArrays(HeldArrays):
    """The arrays of a parameter that may be on a mesh."""

    _shard: tuple[Any, ...]
    _extra_shard_axis: str
    _var: Any

    def _copied(self, data: NDArray, ctx: Context) -> NDArray:
        if not isinstance(ctx, Mesh):
            return data.copyto(ctx)
        return shard_array(data, self._spec_on(ctx, data.shape), ctx, self._shard_error_prefix)

    @property
    def shard(self) -> tuple[Any, ...]:
        """How the array is cut over a mesh: per axis the name of an axis of the mesh, or `None`; `()` for not at all.

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
        """How errors about the cut begin."""
        return f"Parameter {self.name!r}: sharding"

    def _spec_on(self, mesh: Mesh, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """How the array is held on a mesh: cut further than computed with, if it is fully sharded."""
        return (
            shard_one_more_axis(mesh, self._shard, shape, self._extra_shard_axis)
            if self._extra_shard_axis
            else self._shard
        )

    def _shard_along(self, axis: str) -> None:
        """Hold the array cut along one more axis of its mesh; what computes with it gathers it."""
        for array in self._data or ():
            if isinstance(array.context, Mesh):
                array.context.sharding((axis,), None, self._shard_error_prefix)
        self._extra_shard_axis = axis
        self.shard = self._shard

    def _check_shard(self, spec: Any) -> None:
        """Raise if the meshes that the parameter is on cannot cut it so."""
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
