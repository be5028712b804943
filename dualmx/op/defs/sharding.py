"""How values inside a program are cut over a mesh."""

from __future__ import annotations

import jax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import NamedSharding, PartitionSpec

from ..joint import REMAT_NAME, device_grid, mesh
from ..registry import op
from ..schema import UntypedTensor


@op()
def _contrib_sharding_constraint(data: UntypedTensor, *, spec: str = "()", saved: bool = True) -> jax.Array:
    """The input itself, cut over the axes of the mesh as `spec` says; nothing changes off a mesh.

    Args:
        spec: per axis of the data `None`, the name of an axis of the mesh, or a tuple of names, as in
            `"('data', None)"`. An entry `...` leaves any number of axes to XLA, as in `"(..., 'model')"`.
        saved: keep the result for the backward pass; if not, a hybridized block makes it once more there.

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
    out = jax.lax.with_sharding_constraint(data, NamedSharding(device_grid(), cut.spec))
    return out if saved else checkpoint_name(out, REMAT_NAME)
