"""Calls on graphs, on masks and of NumPy's internal nodes, by MXNet when recorded and by dualmx when replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

PLAIN = np.array([[1, 0, 0, 2], [3, 0, 4, 0], [0, 5, 0, 0], [0, 6, 7, 0]], np.int64)


def complete_graph(mx: Any, n: int = 5) -> Any:
    """All edges between `n` vertices, numbered from 1 row by row."""
    columns = np.array([j for i in range(n) for j in range(n) if i != j], np.int64)
    pointer = np.arange(0, n * (n - 1) + 1, n - 1).astype(np.int64)
    return mx.nd.sparse.csr_matrix((np.arange(1, n * (n - 1) + 1), columns, pointer), shape=(n, n), dtype="int64")


def floats(mx: Any) -> Any:
    """A csr matrix that stores a zero."""
    pieces = np.array([1.5, 2.5, 0, 3.5], np.float32), np.array([0, 2, 1, 2]), np.array([0, 2, 3, 4])
    return mx.nd.sparse.csr_matrix(pieces, shape=(3, 4))


def plain(array: Any) -> list[Any]:
    """An array as JSON holds it: storage type, dtype, shape, values or pieces."""
    if array.stype == "csr":
        pieces = [a.asnumpy().tolist() for a in (array.data, array.indices, array.indptr)]
        return ["csr", np.dtype(array.dtype).name, list(array.shape), *pieces]
    return [array.stype, np.dtype(array.dtype).name, list(array.shape), array.asnumpy().tolist()]


def _sampled(outs: list[Any], sets: int, weighted: bool) -> list[Any]:
    """Samples without what lies behind the vertices that there are."""
    counts = [int(v[-1].asscalar()) for v in outs[:sets]]
    found = [v[:n].asnumpy().tolist() for v, n in zip(outs[:sets], counts, strict=True)]
    found += [plain(e) for e in outs[sets : 2 * sets]]
    rest = outs[2 * sets :]
    return found + [r[: counts[i % sets]].asnumpy().tolist() for i, r in enumerate(rest)]


def graphs(mx: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Calls on csr matrices."""
    nd, C = mx.nd, mx.nd.contrib

    def vertices(*numbers: int) -> Any:
        return nd.array(numbers, dtype="int64")

    def part(*sets: Any, **params: Any) -> Any:
        graph = nd.sparse.csr_matrix(PLAIN, dtype="int64")
        found = C.dgl_subgraph(graph, *sets, **params)
        return [plain(a) for a in (found if isinstance(found, list) else [found])]

    def drawn(*sets: Any, **params: Any) -> Any:
        return _sampled(C.dgl_csr_neighbor_uniform_sample(complete_graph(mx), *sets, **params), len(sets), False)

    yield "getnnz", lambda: plain(C.getnnz(floats(mx)))
    yield "getnnz rows", lambda: plain(C.getnnz(floats(mx), axis=1))
    yield "getnnz int64", lambda: plain(C.getnnz(complete_graph(mx)))
    u, v = nd.array([0, 0, 1, 2, 2]), nd.array([0, 1, 1, 3, 2])
    yield "edge_id", lambda: plain(C.edge_id(floats(mx), u, v))
    yield "edge_id int64", lambda: plain(C.edge_id(complete_graph(mx), vertices(0, 0, 1), vertices(0, 1, 3)))
    yield "adjacency", lambda: plain(C.dgl_adjacency(complete_graph(mx)))
    yield "subgraph", lambda: part(vertices(0, 1, 2), return_mapping=True)
    yield "subgraph alone", lambda: part(vertices(0, 1, 2), return_mapping=False)
    yield "subgraph of two", lambda: part(vertices(0, 1, 2), vertices(1, 3), return_mapping=True)
    for hops in (1, 2):
        for most in (3, 5, 6):
            params = {"num_hops": hops, "num_neighbor": 4, "max_num_vertices": most}
            yield f"sample {hops} {most}", lambda p=params: drawn(vertices(0, 3), num_args=2, **p)
    params = {"num_hops": 1, "num_neighbor": 4, "max_num_vertices": 6}
    yield "sample of two", lambda: drawn(vertices(0), vertices(1, 2), num_args=3, **params)

    def weighted() -> Any:
        chances = nd.array([0.9, 0.8, 0.2, 0.4, 0.1])
        given = complete_graph(mx), chances, vertices(0, 3)
        return _sampled(C.dgl_csr_neighbor_non_uniform_sample(*given, num_args=3, **{**params, "num_hops": 2}), 1, True)

    yield "weighted sample", weighted

    def compacted() -> Any:
        named, edges, _ = C.dgl_csr_neighbor_uniform_sample(complete_graph(mx), vertices(0, 3), num_args=2, **params)
        return plain(C.dgl_graph_compact(edges, named, graph_sizes=5, return_mapping=False))

    yield "compact", compacted


def masks(mx: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Selection by a mask inside graphs."""
    x, m = mx.nd.array([[1, 2], [3, 4], [5, 6]]), mx.nd.array([0, 1, 1])
    node = mx.sym.contrib.boolean_mask(mx.sym.var("d"), mx.sym.var("i"))

    def bound() -> Any:
        grad = mx.nd.zeros((3, 2))
        executor = (node * 3).bind(mx.cpu(), {"d": x, "i": m}, {"d": grad}, {"d": "write", "i": "null"})
        out = executor.forward(is_train=True)[0].asnumpy().tolist()
        executor.backward(mx.nd.array([[1, 2], [3, 4]]))
        return [out, grad.asnumpy().tolist()]

    yield "mask bound", bound
    yield "mask then", lambda: mx.sym.sum(node * 2).eval(d=x, i=m)[0].asnumpy().tolist()
    yield "mask shapes", lambda: [repr(s) for s in node.infer_shape(d=(3, 2), i=(3,))]
    yield "mask partial", lambda: [repr(s) for s in node.infer_shape_partial(d=(3, 2), i=(3,))]
    yield "mask none", lambda: mx.nd.contrib.boolean_mask(x, mx.nd.zeros((3,))).shape

    def hybrid() -> Any:
        class Net(mx.gluon.HybridBlock):
            def hybrid_forward(self, F: Any, d: Any, i: Any) -> Any:
                return F.contrib.boolean_mask(d, i) * 2

        net = Net()
        net.hybridize()
        given = x.copy()
        given.attach_grad()
        with mx.autograd.record():
            out = net(given, m)
        out.backward()
        return [out.asnumpy().tolist(), given.grad.asnumpy().tolist()]

    yield "mask hybrid", hybrid


def numpy_nodes(mx: Any, call: Callable[..., Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Calls of the operators that graphs of NumPy's functions hold; `call(name, *arrays, **params)` runs one."""
    a, two = mx.np.array([[1.0, 2, 3], [4, 5, 6]]), mx.np.array([7.0, 8])
    whole = mx.np.array([0, 2], dtype="int64")
    spots, last = mx.np.array([True, False]), mx.np.array([1.0, 2, 3])
    for name, arrays, params in (
        ("insert_scalar", (a, two), {"int_ind": 1, "axis": 1}),
        ("insert_scalar", (a,), {"val": 9.0, "int_ind": 1}),
        ("insert_tensor", (a, two, whole), {"axis": 1}),
        ("delete", (a,), {"int_ind": 1, "axis": 1}),
        ("delete", (a,), {"start": 0, "stop": 3, "step": 2, "axis": 1}),
        ("delete", (a, whole), {"axis": 1}),
        ("delete", (a,), {"int_ind": 4}),
        ("pinv_scalar_rcond", (a,), {"rcond": 1e-15, "hermitian": False}),
        ("diag_indices_from", (mx.np.ones((3, 3)),), {}),
        ("hsplit", (a,), {"indices": (), "axis": 1, "squeeze_axis": False, "sections": 3}),
        ("dsplit", (mx.np.ones((2, 2, 4)),), {"indices": (), "axis": 2, "squeeze_axis": False, "sections": 2}),
        ("boolean_mask_assign_scalar", (a, spots), {"value": 0.5, "start_axis": 0}),
        ("boolean_mask_assign_tensor", (a, spots, last), {"start_axis": 0}),
        ("bernoulli", (mx.np.array([0.0, 1.0]),), {"prob": None, "logit": None, "is_logit": False, "size": (2, 2)}),
        ("normal_n", (a, two[:1]), {"loc": None, "scale": None, "size": (4,)}),
        ("uniform", (two, mx.np.ones((3, 1))), {"low": None, "high": None, "size": None}),
        ("uniform", (two,), {"low": 0.0, "high": None, "size": (3, 2)}),
        ("gamma", (two, two), {"shape": None, "scale": None, "size": None}),
        ("powerd", (two,), {"a": None, "size": None}),
        ("rayleigh", (two,), {"scale": None, "size": None}),
        ("logistic", (), {"loc": 0.0, "scale": 1.0, "size": (2, 3)}),
    ):
        yield f"{name} {len(arrays)} {params}", lambda n=name, x=arrays, p=params: call(n, *x, **p)


DRAWS = ("normal_n", "uniform", "gamma", "powerd", "rayleigh", "logistic")


def record(mx: Any) -> Any:
    """The results of every call; of those that draw, the shapes."""
    from mxnet.ndarray.numpy import _internal  # pyright: ignore[reportMissingImports]

    def node(name: str, *arrays: Any, **params: Any) -> Any:
        given = [a.copy() for a in arrays]
        if "assign" in name:
            params["out"] = given[0]
        found = getattr(_internal, name)(*given, **params)
        outs = found if isinstance(found, (list, tuple)) else [found]
        return [[str(o.dtype), list(o.shape), None if name in DRAWS else o.asnumpy().tolist()] for o in outs]

    found = {name: call() for cases in (graphs(mx), masks(mx)) for name, call in cases}
    mx.npx.set_np()
    return found | {name: call() for name, call in numpy_nodes(mx, node)}
