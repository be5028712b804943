"""Tensor-parallel layers: dense, embedding, attention and transformer layers sharded over a mesh axis."""

from __future__ import annotations

from typing import Any

from ...core.argcheck import integer
from ...core.errors import ArgumentError
from ..hybrid import HybridBlock
from ..nn import Dense, Dropout, Embedding, LayerNorm


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


class ParallelSelfAttention(HybridBlock):
    """Multi-head self-attention whose heads are divided over the devices along an axis of the mesh.

    Queries, keys and values of a head are computed, and attention is, where the head lives; the projection of the
    output sums over the devices (one all-reduce). Off a mesh it computes the same.

    Args:
        units: size of inputs and outputs.
        heads: number of heads; divides `units`, and is a multiple of the devices along `axis`.
        causal: each position sees itself and those before it only.
        axis: axis of the mesh over which heads are divided.
        ring: axis of the mesh along which sequences are cut, if they are: see `nd.contrib.dot_product_attention`.
        in_units: size of the input, `units` by default.

    Shapes: input (N, L, units), output the same.

    Raises:
        ArgumentError: `heads` does not divide `units`.

    Example:
        >>> import dualmx as mx
        >>> layer = mx.gluon.parallel.ParallelSelfAttention(8, heads=2, causal=True)
        >>> mesh = mx.parallel.Mesh({"model": 1})
        >>> layer.initialize(ctx=mesh)
        >>> layer(mx.nd.ones((2, 5, 8), ctx=mesh)).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        units: int,
        heads: int,
        causal: bool = False,
        axis: str = "model",
        ring: str = "",
        in_units: int = 0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self._heads = integer("ParallelSelfAttention", "heads", heads, 1)
        if units % heads:
            raise ArgumentError(f"ParallelSelfAttention: units={units} cannot be divided into {heads} heads")
        self._causal, self._ring = causal, ring
        given: dict[str, Any] = {"axis": axis, "flatten": False}
        with self.name_scope():
            self.query = ColumnParallelDense(units, in_units=in_units or units, prefix="query_", **given)
            self.key = ColumnParallelDense(units, in_units=in_units or units, prefix="key_", **given)
            self.value = ColumnParallelDense(units, in_units=in_units or units, prefix="value_", **given)
            self.out = RowParallelDense(units, in_units=units, prefix="out_", **given)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Project, attend, project."""
        q, k, v = (self._split(F, project(x)) for project in (self.query, self.key, self.value))
        mixed = F.contrib.dot_product_attention(q, k, v, causal=self._causal, axis=self._ring)
        return self.out(F.reshape(F.transpose(mixed, axes=(0, 2, 1, 3)), shape=(0, 0, -3)))

    def _split(self, F: Any, x: Any) -> Any:
        """(N, L, units) as (N, heads, L, width)."""
        return F.transpose(F.reshape(x, shape=(0, 0, -4, self._heads, -1)), axes=(0, 2, 1, 3))


class ParallelTransformerCell(HybridBlock):
    """A transformer layer with normalization before each part, divided over the devices along an axis of the mesh.

    x + attention(norm(x)), then x + dense(gelu(dense(norm(x)))).

    Args:
        units: size of inputs and outputs.
        hidden: size of the layer between the two dense ones; a multiple of the devices along `axis`.
        heads, causal, axis, ring: see `ParallelSelfAttention`.
        dropout: fraction of both parts' outputs that is dropped in training.

    Shapes: input (N, L, units), output the same.

    Example:
        >>> import dualmx as mx
        >>> layer = mx.gluon.parallel.ParallelTransformerCell(8, 16, heads=2)
        >>> layer.initialize()
        >>> layer(mx.nd.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        units: int,
        hidden: int,
        heads: int,
        causal: bool = False,
        dropout: float = 0.0,
        axis: str = "model",
        ring: str = "",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        given: dict[str, Any] = {"axis": axis, "flatten": False}
        with self.name_scope():
            self.norm1 = LayerNorm(in_channels=units, prefix="norm1_")
            self.attention = ParallelSelfAttention(units, heads, causal, axis, ring, prefix="attention_")
            self.norm2 = LayerNorm(in_channels=units, prefix="norm2_")
            self.wide = ColumnParallelDense(hidden, in_units=units, prefix="wide_", **given)
            self.narrow = RowParallelDense(units, in_units=hidden, prefix="narrow_", **given)
            self.dropout = Dropout(dropout)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Attend, then transform each position."""
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.narrow(F.LeakyReLU(self.wide(self.norm2(x)), act_type="gelu")))
