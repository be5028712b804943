"""Kernels on csr adjacency matrices: edge ids, induced subgraphs, neighbour sampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError, DtypeError
from ..core.rng import rng_streams
from ..ndarray.interop import array_from_numpy
from ..ndarray.ndarray import NDArray
from ..op.registry import Call
from ..op.traits import StorageRule
from .csr import CSRNDArray
from .dispatch import kernel

Ins = Sequence[NDArray]
Edges = list[tuple[np.ndarray, np.ndarray]]  # for each row: columns and values


def _graph(call: Call, given: NDArray, numbered: bool = True) -> CSRNDArray:
    if not isinstance(given, CSRNDArray):
        raise ArgumentTypeError(f"{call.op.name}: the graph is {given.stype}: expected a csr matrix")
    if numbered and given._value.dtype != np.int64:
        raise DtypeError(f"{call.op.name}: the graph has dtype {given._value.dtype}: expected int64")
    return given


def _vertices(call: Call, given: NDArray) -> np.ndarray:
    found = given.asnumpy()
    if found.dtype != np.int64 or found.ndim != 1:
        shown = f"{found.dtype}{list(found.shape)}"
        raise ArgumentError(f"{call.op.name}: a set of vertices is {shown}: expected an int64 vector")
    return found


def _rows(graph: CSRNDArray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return graph.host()


def _matrix(edges: Edges, shape: tuple[int, int], like: NDArray) -> CSRNDArray:
    counts = [len(columns) for columns, _ in edges]
    counts += [0] * (shape[0] - len(counts))
    pointer = np.concatenate([[0], np.cumsum(counts)])
    columns = np.concatenate([c for c, _ in edges]) if edges else np.zeros(0, np.int64)
    values = np.concatenate([v for _, v in edges]) if edges else np.zeros(0, np.int64)
    return CSRNDArray.of_host(shape, values, columns, pointer, like.context)


def _renumbered(edges: Edges) -> Edges:
    """The same edges with values 0, 1, …"""
    made, at = [], 0
    for columns, _ in edges:
        made.append((columns, np.arange(at, at + len(columns), dtype=np.int64)))
        at += len(columns)
    return made


@kernel(StorageRule.COUNT_STORED)
def getnnz(call: Call, ins: Ins, runtime: Any) -> list[NDArray]:
    """Numbers of stored elements."""
    graph = _graph(call, ins[0], numbered=False)
    (shape, dtype), *_ = call.infer(((graph.shape, graph._value.dtype),))
    pointer = _rows(graph)[2]
    counts = pointer[-1:] if call.params["axis"] is None else np.diff(pointer)
    return [array_from_numpy(counts.astype(dtype).reshape(shape), graph.context)]


@kernel(StorageRule.EDGE_ID)
def edge_id(call: Call, ins: Ins, runtime: Any) -> list[NDArray]:
    """Values of edges, -1 for those that are not there."""
    graph = _graph(call, ins[0], numbered=False)
    call.infer(tuple((a.shape, a._value.dtype) for a in ins))
    values, columns, pointer = _rows(graph)
    starts, ends = (a.asnumpy().astype(np.int64) for a in ins[1:])
    found = np.full(len(starts), -1, values.dtype)
    for i, (u, v) in enumerate(zip(starts, ends, strict=True)):
        if not 0 <= u < graph.shape[0]:
            raise ArgumentError(f"_contrib_edge_id: u holds {u}: expected a row of a matrix {graph.shape}")
        row = slice(pointer[u], pointer[u + 1])
        at = np.flatnonzero(columns[row] == v)
        if at.size:
            found[i] = values[row][at[0]]
    return [array_from_numpy(found, graph.context)]


@kernel(StorageRule.ADJACENCY)
def adjacency(call: Call, ins: Ins, runtime: Any) -> list[NDArray]:
    """Ones in place of edge numbers."""
    graph = _graph(call, ins[0])
    values, columns, pointer = _rows(graph)
    ones = np.ones(len(values), np.float32)
    return [CSRNDArray.of_host(graph.shape, ones, columns, pointer, graph.context)]


@kernel(StorageRule.SUBGRAPH)
def subgraph(call: Call, ins: Ins, runtime: Any) -> list[NDArray]:
    """Edges among sets of vertices."""
    graph = _graph(call, ins[0])
    values, columns, pointer = _rows(graph)
    made: list[tuple[Edges, int]] = []
    for given in ins[1:]:
        chosen = _vertices(call, given)
        if (np.diff(chosen) < 0).any() or (chosen.size and not 0 <= chosen[0] <= chosen[-1] < graph.shape[0]):
            raise ArgumentError(f"{call.op.name}: vertices {chosen.tolist()}: expected sorted rows of {graph.shape}")
        edges: Edges = []
        for v in chosen:
            row = slice(pointer[v], pointer[v + 1])
            inside = np.isin(columns[row], chosen)
            edges.append((np.searchsorted(chosen, columns[row][inside]), values[row][inside]))
        made.append((edges, len(chosen)))
    found = [_matrix(_renumbered(edges), (n, n), graph) for edges, n in made]
    if call.params["return_mapping"]:
        found += [_matrix(edges, (n, n), graph) for edges, n in made]
    return list(found)


def _sample(
    call: Call, graph: CSRNDArray, seeds: np.ndarray, chances: np.ndarray | None, rng: np.random.Generator
) -> tuple[np.ndarray, Edges, np.ndarray]:
    """Vertices reached, sorted, the edges drawn from each, and the distance of each from the seeds."""
    values, columns, pointer = _rows(graph)
    p = call.params
    most, hops, few = p["max_num_vertices"], p["num_hops"], p["num_neighbor"]
    distance = dict.fromkeys(np.unique(seeds).tolist(), 0)
    if len(distance) > most:
        raise ArgumentError(f"{call.op.name}: {len(distance)} seeds: expected at most max_num_vertices={most}")
    queue, drawn, at = list(distance), dict[int, tuple[np.ndarray, np.ndarray]](), 0
    while at < len(queue) and len(distance) < most:
        vertex = queue[at]
        at += 1
        if distance[vertex] >= hops:
            continue
        places = np.arange(int(pointer[vertex]), int(pointer[vertex + 1]))
        if len(places) > few:
            places = np.sort(_drawn(places, few, None if chances is None else chances[columns[places]], rng))
        drawn[vertex] = columns[places], values[places]
        for target in columns[places].tolist():
            if target not in distance and len(distance) < most:
                distance[target] = distance[vertex] + 1
                queue.append(target)
    order = sorted(distance)
    none = np.zeros(0, np.int64), np.zeros(0, values.dtype)
    return np.array(order, np.int64), [drawn.get(v, none) for v in order], np.array([distance[v] for v in order])


def _drawn(places: np.ndarray, count: int, weights: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """Draw `count` places without replacement; those of weight 0 only if there are too few others."""
    if weights is None:
        return rng.choice(places, count, replace=False)
    # The largest of u ** (1 / w) are a sample by weights (Efraimidis & Spirakis, 2006).
    with np.errstate(divide="ignore"):
        keys = np.log(rng.random(len(places))) / weights.astype(np.float64)
    return places[np.argsort(-keys, kind="stable")[:count]]


def _padded(values: np.ndarray, length: int) -> np.ndarray:
    return np.concatenate([values, np.zeros(length - len(values), values.dtype)])


@kernel(StorageRule.NEIGHBOR_SAMPLE, StorageRule.WEIGHTED_NEIGHBOR_SAMPLE)
def neighbor_sample(call: Call, ins: Ins, runtime: Any) -> list[NDArray]:
    """Samples of the surroundings of sets of vertices."""
    graph = _graph(call, ins[0])
    weighted = call.op.traits.storage is StorageRule.WEIGHTED_NEIGHBOR_SAMPLE
    chances = ins[1].asnumpy() if weighted else None
    if chances is not None and chances.shape != (graph.shape[0],):
        raise ArgumentError(f"{call.op.name}: probability has shape {chances.shape}: expected {graph.shape[:1]}")
    rng, ctx, most = rng_streams.generator(graph.context), graph.context, call.params["max_num_vertices"]
    names, edges, shares, layers = [], [], [], []
    for given in ins[2 if weighted else 1 :]:
        seeds = _vertices(call, given)
        if seeds.size and not 0 <= seeds.min() <= seeds.max() < graph.shape[0]:
            raise ArgumentError(f"{call.op.name}: seeds {seeds.tolist()}: expected rows of {graph.shape}")
        order, drawn, far = _sample(call, graph, seeds, chances, rng)
        names.append(array_from_numpy(np.append(_padded(order, most), len(order)), ctx))
        edges.append(_matrix(drawn, (most, graph.shape[1]), graph))
        layers.append(array_from_numpy(_padded(far.astype(np.int64), most), ctx))
        if chances is not None:
            shares.append(array_from_numpy(_padded(chances[order].astype(np.float32), most), ctx))
    return [*names, *edges, *shares, *layers]


@kernel(StorageRule.COMPACT_GRAPH)
def graph_compact(call: Call, ins: Ins, runtime: Any) -> list[NDArray]:
    """Sampled graphs without their empty rows and columns."""
    call.infer(tuple((a.shape, a._value.dtype) for a in ins))
    half, made = len(ins) // 2, list[tuple[Edges, int, CSRNDArray]]()
    for given, named, size in zip(ins[:half], ins[half:], call.params["graph_sizes"], strict=True):
        graph, vertices = _graph(call, given), _vertices(call, named)
        if vertices[-1] != size:
            raise ArgumentError(f"{call.op.name}: graph_sizes has {size}: the graph has {vertices[-1]} vertices")
        values, columns, pointer = _rows(graph)
        if not np.isin(columns[: pointer[size]], vertices[:size]).all():
            raise ArgumentError(f"{call.op.name}: an edge leads to a vertex that is not among those of the graph")
        rows = [slice(pointer[i], pointer[i + 1]) for i in range(size)]
        edges = [(np.searchsorted(vertices[:size], columns[r]), values[r]) for r in rows]
        made.append((edges, size, graph))
    found = [_matrix(_renumbered(edges), (n, n), graph) for edges, n, graph in made]
    if call.params["return_mapping"]:
        found += [_matrix(edges, (n, n), graph) for edges, n, graph in made]
    return list(found)
