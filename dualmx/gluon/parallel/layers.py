"""Layers whose parameters are cut over an axis of a mesh, so that each device computes a part of the layer."""

from __future__ import annotations

from typing import Any

from ..nn import Dense, Embedding


class ColumnParallelDense(Dense):
    """A `Dense` layer whose units are divided over the devices along an axis of the mesh.

    Each device holds some rows of the weight and computes these units. Off a mesh it is a `Dense` layer.

    Args:
        units: size of the output; a multiple of the number of devices along `axis`.
        axis: name of an axis of the mesh.
        gather: give every device all units; otherwise the output stays cut, as `RowParallelDense` takes it.
        kwargs: see `nn.Dense`.

    Shapes: as `nn.Dense`. Reference: Shoeybi et al. 2019, Megatron-LM.

    Example:
        >>> import dualmx as mx
        >>> net = mx.gluon.nn.HybridSequential()
        >>> net.add(mx.gluon.parallel.ColumnParallelDense(8, activation="relu"))
        >>> net.add(mx.gluon.parallel.RowParallelDense(2))
        >>> mesh = mx.parallel.Mesh({"model": 1})
        >>> net.initialize(ctx=mesh)
        >>> net(mx.nd.ones((3, 5), ctx=mesh)).shape
        (3, 2)
    """

    def __init__(self, units: int, *args: Any, axis: str = "model", gather: bool = False, **kwargs: Any):
        super().__init__(units, *args, **kwargs)
        self._axis, self._out = axis, (..., None if gather else axis)
        self.weight.shard = (axis, None)
        if self.bias is not None:
            self.bias.shard = (axis,)

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        """Multiply, add, activate, leaving each device its units."""
        return F.contrib.sharding_constraint(super().hybrid_forward(F, x, weight, bias), spec=str(self._out))


class RowParallelDense(Dense):
    """A `Dense` layer whose inputs are divided over the devices along an axis of the mesh.

    Each device multiplies its part of the input with its columns of the weight, and the products are summed over the
    devices (one all-reduce). It goes behind `ColumnParallelDense`, whose output is divided so; other inputs are divided
    first. Off a mesh it is a `Dense` layer.

    Args:
        units: size of the output.
        axis: name of an axis of the mesh; the size of the input must be a multiple of its devices.
        kwargs: see `nn.Dense`.

    Shapes: as `nn.Dense`.
    """

    def __init__(self, units: int, *args: Any, axis: str = "model", **kwargs: Any):
        super().__init__(units, *args, **kwargs)
        self._axis = axis
        self.weight.shard = (None, axis)

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        """Multiply, sum over the devices, add, activate."""
        x = F.Flatten(x) if self._flatten else x
        x = F.contrib.sharding_constraint(x, spec=str((..., self._axis)))
        return F.contrib.sharding_constraint(super().hybrid_forward(F, x, weight, bias), spec="(..., None)")


class VocabParallelEmbedding(Embedding):
    """An `Embedding` whose rows are divided over the devices along an axis of the mesh.

    Each device looks up the rows it has, and the results are summed over the devices. Off a mesh it is an `Embedding`.

    Args:
        input_dim: number of rows, a multiple of the number of devices along `axis`.
        output_dim: length of a row.
        axis: name of an axis of the mesh.
        kwargs: see `nn.Embedding`.

    Shapes: as `nn.Embedding`.

    Example:
        >>> import dualmx as mx
        >>> layer = mx.gluon.parallel.VocabParallelEmbedding(10, 4)
        >>> mesh = mx.parallel.Mesh({"model": 1})
        >>> layer.initialize(ctx=mesh)
        >>> layer(mx.nd.array([[1, 2, 3]], ctx=mesh)).shape
        (1, 3, 4)
    """

    def __init__(self, input_dim: int, output_dim: int, *args: Any, axis: str = "model", **kwargs: Any):
        super().__init__(input_dim, output_dim, *args, **kwargs)
        self.weight.shard = (axis, None)

    def hybrid_forward(self, F: Any, x: Any, weight: Any) -> Any:
        """Look up, and sum over the devices."""
        return F.contrib.sharding_constraint(super().hybrid_forward(F, x, weight), spec="(..., None)")
