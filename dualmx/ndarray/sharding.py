"""Sharded arrays: create, reshard, query the partition spec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ..compile.devices import (
    Mesh,
    device_put_sharded,
    from_process_local,
    fully_replicated,
    parse_spec,
    shard_one_more_axis,
    x64,
)
from ..core.context import Context, current_context
from ..core.errors import ArgumentError, ArgumentTypeError
from .aliasing import invalidate_views
from .handle import array_from_buffer, to_jax_array
from .ndarray import NDArray


def shard(data: Any, spec: Sequence[Any] | str = (), mesh: Context | None = None, local: bool = False) -> NDArray:
    """Return an array cut over a mesh: each device gets its part.

    Args:
        data: an NDArray, a NumPy array (float64 becomes float32, as in `nd.array`) or nested lists; on a mesh over
            several processes, the same in all of them.
        spec: per axis of the array `None` (not cut), the name of an axis of the mesh, or a tuple of such names; missing
            entries are `None`.
        mesh: where to put it; the mesh of `data`, or the current context.
        local: each process gives its own rows only, as many as the others, in the order of the processes.

    Raises:
        ArgumentError: an axis cannot be cut into equal parts, or the mesh has no such axis.

    Example:
        >>> import dualmx as mx
        >>> x = mx.parallel.shard(mx.nd.ones((4, 2)), ("data", None), mx.parallel.Mesh({"data": 1}))
        >>> x.context, x.sharding
        (mesh(data=1), ('data', None))
    """
    return shard_array(data, spec, mesh, "sharding", local)


def shard_array(
    data: Any, spec: Sequence[Any] | str = (), mesh: Context | None = None, what: str = "sharding", local: bool = False
) -> NDArray:
    """`shard`, with what errors about the spec begin with."""
    mesh = mesh or (data.context if isinstance(data, NDArray) and isinstance(data.context, Mesh) else None)
    where = mesh or current_context()
    if not isinstance(where, Mesh):
        raise ArgumentTypeError(f"shard: mesh={mesh!r}: expected a parallel.Mesh, or to run inside `with mesh:`")
    spec = parse_spec(spec)
    if isinstance(data, NDArray):
        value = to_jax_array(data)
        if not isinstance(data.context, Mesh) or local:
            value = np.asarray(fully_replicated(value))
    else:
        value = np.asarray(data)
        if not isinstance(data, np.ndarray) or value.dtype == np.float64:
            value = value.astype(np.float32)
    return array_from_buffer(
        from_process_local(value, where, spec, what) if local else device_put_sharded(value, where, spec, what), where
    )


def sharded_zeros(mesh: Context, shape: Sequence[int], dtype: Any, spec: Sequence[Any] | str, variable: str) -> NDArray:
    """Return zeros for a variable of a symbol, cut over a mesh as its annotation says; each device makes its part."""
    assert isinstance(mesh, Mesh)
    sharding = mesh.sharding(parse_spec(spec), shape, f"variable {variable!r}: sharding")

    def part(at: Any) -> np.ndarray:
        return np.zeros([len(range(*s.indices(n))) for s, n in zip(at, shape, strict=True)], dtype)

    with x64():
        return array_from_buffer(jax.make_array_from_callback(tuple(shape), sharding, part), mesh)


def data_parallel_spec(mesh: Context, shape: Sequence[int], axis: int) -> tuple[Any, ...]:
    """Return the spec that cuts a batch along `axis` over the first axis of a mesh, `()` if it does not divide."""
    assert isinstance(mesh, Mesh)
    name, parts = next(iter(mesh.axes.items()))
    return () if axis < 0 or shape[axis] % parts else (*[None] * axis, name)


def replace_sharding(array: NDArray, spec: Sequence[Any] | str, what: str = "sharding") -> None:
    """Cut an array that is on a mesh in another way, in place."""
    mesh = array.context
    if not isinstance(mesh, Mesh):
        raise ArgumentError(f"{what}: the array is on {mesh}, not on a mesh")
    moved = device_put_sharded(to_jax_array(array), mesh, parse_spec(spec), what)
    array._data, array._trace, array._value = moved, None, array._value.aval
    invalidate_views(array)


def shard_like(array: NDArray, model: NDArray, axis: str = "") -> None:
    """Cut an array on a mesh like another one of the same shape, in place; nothing happens elsewhere.

    With an `axis` of the mesh it is cut along that too.
    """
    mesh = model.context
    if isinstance(mesh, Mesh) and array.context is mesh and array.shape == model.shape:
        wanted = model.sharding
        if wanted is not None and axis:
            wanted = shard_one_more_axis(mesh, wanted, array.shape, axis)
        if wanted is not None and array.sharding != wanted:
            replace_sharding(array, wanted)
