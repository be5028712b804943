"""How values inside a program are cut over a mesh."""

from __future__ import annotations

import jax

from ..joint import mesh
from ..registry import op
from ..schema import Free


@op()
def _contrib_sharding_constraint(data: Free, *, spec: str = "()") -> jax.Array:
    """The input itself, cut over the axes of the mesh as `spec` says; nothing changes off a mesh.

    Args:
        spec: per axis of the data `None`, the name of an axis of the mesh, or a tuple of names, as in
            `"('data', None)"`.

    Example:
        >>> import dualmx as mx
        >>> mx.nd.contrib.sharding_constraint(mx.nd.ones((2,)), spec="('data',)").asnumpy().tolist()
        [1.0, 1.0]
    """
    there = mesh()
    return data if there is None else jax.lax.with_sharding_constraint(data, there.sharding(spec, data.shape))
