"""Storage casts and csr graphs as they act on dense values, and MXNet's `_sparse_*` aliases.

On a csr graph, row u has the edges out of vertex u, and values are edge ids. `sparse.graph_kernels` computes; the
bodies here give shapes and refuse dense matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Literal

import jax
import jax.core
import jax.numpy as jnp

from ...core.errors import ArgumentError, ArgumentTypeError
from ..registry import OPS, op
from ..schema import Count, Positive, Shape, Tensor, UntypedTensor
from ..traits import StorageRule, stored


@op(aliases=("_sparse_cast_storage",), traits=stored(StorageRule.CAST))
def cast_storage(data: Tensor, *, stype: Literal["default", "row_sparse", "csr"]) -> jax.Array:
    """The same values in the storage type `stype`; from one sparse type to the other by way of the default one."""
    return data


@op(name="_sparse_retain", traits=stored(StorageRule.RETAIN_ROWS))
def sparse_retain(data: Tensor, indices: UntypedTensor) -> jax.Array:
    """The rows `indices` of the row_sparse array `data`; all other rows become zero."""
    if indices.ndim != 1:
        raise ArgumentError(f"indices has shape {indices.shape}: expected one axis")
    kept = jnp.zeros(data.shape[0], jnp.bool_).at[indices.astype(jnp.int32)].set(True, mode="drop")
    return jnp.where(kept.reshape(-1, *[1] * (data.ndim - 1)), data, 0)


# Operators that compute on stored elements without having a definition of their own here.
SPARSE_NAMES = (
    "Embedding", "FullyConnected", "LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput",
    "adam_update", "dot", "ftrl_update", "sgd_mom_update", "sgd_update", "sigmoid", "slice", "where",
)  # fmt: skip


# Names under which graphs of `mx.np` and `mx.npx` hold operators: new name -> known one.
NUMPY_NAMES = {
    "_np_amax": "_np_max", "_np_amin": "_np_min", "_np_copy": "_copy", "_np_product": "_np_prod",
    "_np_sometrue": "_np_any", "_npi_abs": "_npi_absolute", "_npi_boolean_mask": "_contrib_boolean_mask",
    "_npi_nonzero": "_npx_nonzero", "_npi_reshape": "_npx_reshape", "_npi_rnn_param_concat": "_rnn_param_concat",
    "_npx_multibox_detection": "_contrib_MultiBoxDetection", "_npx_multibox_prior": "_contrib_MultiBoxPrior",
    "_npx_multibox_target": "_contrib_MultiBoxTarget", "_npx_relu": "relu", "_npx_roi_pooling": "ROIPooling",
    "_npx_sigmoid": "sigmoid",
}  # fmt: skip


def register_aliases() -> None:
    """Register further names of operators, which must be there."""
    images = {f"_npx_{n}": n for n in OPS if n.startswith("_image_")}
    sparse = {f"_sparse_{n}": n for n in SPARSE_NAMES} | {"_sparse_concat": "Concat"}
    for alias, known in (NUMPY_NAMES | images | sparse).items():
        if alias not in OPS:
            OPS[alias] = OPS[known]
            OPS[known].aliases = (*OPS[known].aliases, alias)


Shaped = jax.ShapeDtypeStruct


def _on_csr(shapes: Callable[..., Sequence[Shaped]]) -> Callable[..., Any]:
    """Make a body of a function that tells the results' shapes: it stands for them until values are asked for."""

    @wraps(shapes)
    def body(*inputs: Any, **params: Any) -> Any:
        arrays = [*inputs, *(v for v in params.values() if hasattr(v, "dtype"))]

        def refuse(*values: Any) -> Any:
            raise ArgumentTypeError(f"{shapes.__name__}: expected a csr matrix; make one with .tostype('csr')")

        results = tuple(shapes(*inputs, **params))
        if not any(isinstance(a, jax.core.Tracer) for a in arrays):
            refuse()
        return jax.pure_callback(refuse, results, *arrays)

    return body


def matrix(name: str, data: Any) -> None:
    """Raise unless `data` has two axes."""
    if len(data.shape) != 2:
        raise ArgumentError(f"{name}: data has shape {tuple(data.shape)}: expected two axes")


@op(dynamic=True, traits=stored(StorageRule.COUNT_STORED))
@_on_csr
def _contrib_getnnz(data: UntypedTensor, *, axis: int | None = None) -> Any:
    """How many elements a csr matrix stores, explicit zeros included: in all, int64 (1,), or in each row for `axis=1`.

    Example: `nd.contrib.getnnz(nd.array([[1, 0], [2, 3]]).tostype("csr"), axis=1)` is `[1, 2]`.
    """
    matrix("_contrib_getnnz", data)
    if axis not in (None, 1):
        raise ArgumentError(f"_contrib_getnnz: axis={axis}: expected None or 1")
    return (Shaped((1,) if axis is None else data.shape[:1], jnp.int64),)


@op(dynamic=True, traits=stored(StorageRule.EDGE_ID))
@_on_csr
def _contrib_edge_id(data: UntypedTensor, u: UntypedTensor, v: UntypedTensor) -> Any:
    """The values stored at (u[i], v[i]) in a csr matrix, -1 where there is none.

    Shapes: data (n, m), u and v (k,) -> (k,), dtype of data. Example: of `[[0, 5], [0, 0]]` at u = [0, 1], v = [1, 1]
    it is `[5, -1]`.
    """
    matrix("_contrib_edge_id", data)
    if u.ndim != 1 or u.shape != v.shape:
        raise ArgumentError(f"_contrib_edge_id: u {u.shape}, v {v.shape}: expected vectors of one length")
    return (Shaped(u.shape, data.dtype),)


@op(dynamic=True, traits=stored(StorageRule.ADJACENCY))
@_on_csr
def _contrib_dgl_adjacency(data: UntypedTensor) -> Any:
    """The csr matrix, float32, with 1 for every edge of a graph whose edges are numbered in int64; same shape."""
    matrix("_contrib_dgl_adjacency", data)
    return (Shaped(data.shape, jnp.float32),)


@op(
    dynamic=True,
    outputs=lambda p: (p.num_args - 1) * (1 + p.return_mapping),
    traits=stored(StorageRule.SUBGRAPH),
)
@_on_csr
def _contrib_dgl_subgraph(*data: UntypedTensor, num_args: Positive = 2, return_mapping: bool) -> Any:
    """The edges among the vertices of each given set, as csr matrices (k, k) with edges numbered anew from 0.

    Inputs are the graph (n, n), int64, and any number of sorted vectors of vertices (k,), int64. With `return_mapping`
    as many matrices follow whose values are the edges' numbers in the graph.
    """
    sets = [Shaped((len(v), len(v)), jnp.int64) for v in data[1:]]
    return sets * (1 + return_mapping)


def _sampled(sets: int, most: int, columns: int, weighted: bool) -> list[Shaped]:
    vertices, layers = Shaped((most + 1,), jnp.int64), Shaped((most,), jnp.int64)
    chances = [Shaped((most,), jnp.float32)] * sets if weighted else []
    return [vertices] * sets + [Shaped((most, columns), jnp.int64)] * sets + chances + [layers] * sets


@op(dynamic=True, outputs=lambda p: 3 * (p.num_args - 1), traits=stored(StorageRule.NEIGHBOR_SAMPLE))
@_on_csr
def _contrib_dgl_csr_neighbor_uniform_sample(
    *data: UntypedTensor,
    num_args: Positive = 2,
    num_hops: Count = 1,
    num_neighbor: Count = 2,
    max_num_vertices: Positive = 100,
) -> Any:
    """Sample the surroundings of each set of vertices: up to `num_neighbor` edges of each, with equal chances.

    From every vertex less than `num_hops` away from the seeds edges are drawn without replacement, until
    `max_num_vertices` = m are reached. Inputs are the graph (n, n), int64, and sets of seeds (k,), int64. The results
    are, each for all sets: the vertices, sorted, (m + 1,) with their number at the end; the edges as csr matrix (m, n)
    with one row for each vertex; the distances of the vertices from the seeds (m,). Unused elements are 0.
    """
    return _sampled(num_args - 1, max_num_vertices, data[0].shape[1], False)


@op(dynamic=True, outputs=lambda p: 4 * (p.num_args - 2), traits=stored(StorageRule.WEIGHTED_NEIGHBOR_SAMPLE))
@_on_csr
def _contrib_dgl_csr_neighbor_non_uniform_sample(
    *data: UntypedTensor,
    num_args: Positive = 3,
    num_hops: Count = 1,
    num_neighbor: Count = 2,
    max_num_vertices: Positive = 100,
) -> Any:
    """Sample like `dgl_csr_neighbor_uniform_sample`, an edge to vertex v with a chance in proportion to probability[v].

    Inputs are the graph, the probabilities (n,), float32, and sets of seeds. Between edges and distances come the
    probabilities of the vertices (m,).
    """
    return _sampled(num_args - 2, max_num_vertices, data[0].shape[1], True)


@op(
    dynamic=True,
    outputs=lambda p: (p.num_args // 2) * (1 + p.return_mapping),
    traits=stored(StorageRule.COMPACT_GRAPH),
)
@_on_csr
def _contrib_dgl_graph_compact(
    *data: UntypedTensor, num_args: Positive = 2, return_mapping: bool, graph_sizes: Shape
) -> Any:
    """Drop the empty rows and columns of sampled graphs: csr matrices (s, s) with edges numbered anew from 0.

    Inputs are graphs as the samplers return them, then the vectors of their vertices; `graph_sizes` are the numbers s
    of vertices. With `return_mapping` as many matrices follow whose values are the edges' numbers in the graph.
    """
    if len(data) % 2 or len(graph_sizes) != len(data) // 2:
        raise ArgumentError(
            f"_contrib_dgl_graph_compact: {len(data)} inputs, graph_sizes={graph_sizes}: expected graphs, as many "
            f"vectors of vertices, and as many sizes"
        )
    return [Shaped((s, s), jnp.int64) for s in graph_sizes] * (1 + return_mapping)


__all__ = ["NUMPY_NAMES", "SPARSE_NAMES", "cast_storage", "register_aliases", "sparse_retain"]
