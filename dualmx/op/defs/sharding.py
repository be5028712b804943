"""How values inside a program are cut over a mesh."""

from __future__ import annotations

import jax
from jax.sharding import PartitionSpec

from ..joint import mesh
from ..registry import op
from ..schema import Free


@op()
def _contrib_sharding_constraint(data: Free, *, spec: str = "()") -> jax.Array:
    """The input itself, cut over the axes of the mesh as `spec` says; nothing changes off a mesh.

    Args:
        spec: per axis of the data `None`, the name of an axis of the mesh, or a tuple of names, as in
            `"('data', None)"`. An entry `...` leaves any number of axes to XLA, as in `"(..., 'model')"`.

    Example:
        >>> import dualmx as mx
        >>> mx.nd.contrib.sharding_constraint(mx.nd.ones((2,)), spec="('data',)").asnumpy().tolist()
        [1.0, 1.0]
    """
    there = mesh()
    if there is None:
        return data
    open_axes = PartitionSpec.UNCONSTRAINED
    cut = there.sharding(spec, data.shape, "sharding_constraint", open_axes)
    return jax.lax.with_sharding_constraint(data, cut)
