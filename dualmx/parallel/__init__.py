"""Arrays cut over meshes of devices; XLA compiles one program for all of them and inserts the exchanges."""

from ..compile.mesh import Mesh
from ..ndarray.placement import shard
from .rules import match_rules

__all__ = ["Mesh", "match_rules", "shard"]
