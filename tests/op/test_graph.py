"""Operators on graphs, selection by masks inside graphs, and NumPy's internal nodes, as MXNet gave them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import dualmx as mx
from dualmx import MXNetError
from tests.goldens.graph_cases import DRAWS, PLAIN, complete_graph, graphs, masks, numpy_nodes
from tests.goldens.store import load

GOLDEN: dict[str, Any] = load("graph")
nd: Any = mx.nd
C = nd.contrib


def as_read(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.mark.parametrize(("name", "call"), [*graphs(mx), *masks(mx)], ids=lambda v: v if isinstance(v, str) else "")
def test_calls_give_what_mxnet_gave(name: str, call: Any):
    assert as_read(call()) == GOLDEN[name]


def node(name: str, *arrays: Any, **params: Any) -> Any:
    found = getattr(nd._internal, f"_npi_{name}")(*arrays, **params)
    outs = found if isinstance(found, list) else [found]
    return [[np.dtype(o.dtype).name, list(o.shape), None if name in DRAWS else o.asnumpy().tolist()] for o in outs]


def test_numpy_nodes_give_what_mxnet_gave():
    for name, call in numpy_nodes(mx, node):
        for (kind, shape, values), (want_kind, want_shape, want) in zip(call(), GOLDEN[name], strict=True):
            assert (kind, shape) == (want_kind, want_shape), name
            if want is not None:
                np.testing.assert_allclose(values, want, rtol=1e-5, atol=1e-6, err_msg=name)


def test_samples_are_drawn_from_the_edges_there_are():
    mx.random.seed(3)
    graph, seeds = complete_graph(mx, 6), nd.array([1], dtype="int64")
    params = {"num_args": 2, "num_hops": 1, "num_neighbor": 2, "max_num_vertices": 4}
    counts = np.zeros(6)
    for _ in range(60):
        vertices, edges, layers = C.dgl_csr_neighbor_uniform_sample(graph, seeds, **params)
        found, far = vertices.asnumpy(), layers.asnumpy()
        assert found[-1] == 3 and 1 in found[:3] and far[:3].tolist().count(0) == 1
        row = int(np.flatnonzero(found[:3] == 1)[0])
        line = edges.asnumpy()[row]
        assert (line[line != 0] == graph.asnumpy()[1][line != 0]).all() and (line != 0).sum() == 2
        counts[line != 0] += 1
    assert counts[1] == 0 and counts[[0, 2, 3, 4, 5]].min() > 8
    chances = nd.array([0, 0, 1, 1, 0, 0])
    vertices = C.dgl_csr_neighbor_non_uniform_sample(graph, chances, seeds, **{**params, "num_args": 3})[0]
    assert vertices.asnumpy().tolist() == [1, 2, 3, 0, 3]


def test_compact_maps_to_the_edges_of_the_graph():
    seeds = nd.array([0, 3], dtype="int64")
    params = {"num_args": 2, "num_hops": 1, "num_neighbor": 4, "max_num_vertices": 6}
    named, edges, _ = C.dgl_csr_neighbor_uniform_sample(complete_graph(mx), seeds, **params)
    fresh, old = C.dgl_graph_compact(edges, named, graph_sizes=(5,), return_mapping=True)
    assert (fresh.indices.asnumpy() == old.indices.asnumpy()).all()
    assert old.data.asnumpy().tolist() == [1, 2, 3, 4, 13, 14, 15, 16]


def test_graph_operators_are_nodes():
    graph = nd.sparse.csr_matrix(PLAIN, dtype="int64")
    chosen = mx.sym.contrib.dgl_subgraph(mx.sym.var("g", stype="csr"), mx.sym.var("v"), return_mapping=True)
    found = chosen.eval(g=graph, v=nd.array([0, 1, 2], dtype="int64"))
    assert [f.stype for f in found] == ["csr", "csr"] and found[1].asnumpy().tolist() == [
        [1, 0, 0],
        [3, 0, 4],
        [0, 5, 0],
    ]
    assert chosen.infer_shape(g=(4, 4), v=(3,))[1] == [(3, 3), (3, 3)]


def test_wrong_graphs_are_refused():
    graph, some = nd.sparse.csr_matrix(PLAIN, dtype="int64"), nd.array([0, 1], dtype="int64")
    for call, text in (
        (lambda: C.getnnz(nd.ones((2, 2))), "csr"),
        (lambda: C.getnnz(graph, axis=0), "axis"),
        (lambda: C.edge_id(graph, some, some[:1]), "one length"),
        (lambda: C.edge_id(graph, nd.array([9]), nd.array([0])), "row"),
        (lambda: C.dgl_adjacency(graph.astype("float32")), "int64"),
        (lambda: C.dgl_subgraph(graph, nd.array([1, 0], dtype="int64"), return_mapping=False), "sorted"),
        (lambda: C.dgl_subgraph(graph, nd.array([0, 1]), return_mapping=False), "int64 vector"),
        (lambda: C.dgl_csr_neighbor_uniform_sample(graph, some, max_num_vertices=1), "seeds"),
        (lambda: C.dgl_graph_compact(graph, some, graph_sizes=(3,), return_mapping=False), "vertices"),
    ):
        with pytest.raises(MXNetError, match=text):
            call()
